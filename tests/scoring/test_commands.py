"""The commands: what a script and what a person gets to see."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import Benchmark, save
from creperie.testing.tiny import tiny_clip

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def creperie(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in a folder of its own: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    return command


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"hf:{tiny_clip(tmp_path_factory.mktemp('models') / 'clip')}"


@pytest.fixture(scope="module")
def other_clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"hf:{tiny_clip(tmp_path_factory.mktemp('models') / 'other', seed=5)}"


@pytest.fixture
def benches(triples: Benchmark, paired: Benchmark, tmp_path: Path) -> tuple[str, str]:
    save(triples, tmp_path / "triples")
    save(paired, tmp_path / "paired")
    return str(tmp_path / "triples"), str(tmp_path / "paired")


def scored(creperie: Command, *args: str) -> dict[str, Any]:
    code, out, _ = creperie("score", *args, "--device", "cpu", "--json")
    assert code == 0
    document: dict[str, Any] = json.loads(out)
    return document


def test_score_json(creperie: Command, benches: tuple[str, str], clip: str) -> None:
    document = scored(creperie, benches[0], "--model", clip, "--task", "tot,itt")
    assert Path(document["run"]).is_dir()
    assert Path(document["run"]).parent == Path("runs")
    rows = document["results"]
    assert {(r["task"], r["subset"]) for r in rows} == {
        (t, s) for t in ("tot", "itt") for s in ("replace", "swap", "all", "macro")
    }
    for key in ("n", "hits", "ties", "accuracy", "low", "high", "chance"):
        assert all(key in r for r in rows)
    assert "runs" not in document


def test_several_models_and_benchmarks(creperie: Command, benches: tuple[str, str], clip: str, other_clip: str) -> None:
    document = scored(creperie, *benches, "-m", clip, "-m", other_clip, "--out", "elsewhere")
    assert len(document["runs"]) == 4
    assert len({r["run"] for r in document["runs"]}) == 4


def test_score_for_people(creperie: Command, benches: tuple[str, str], clip: str, pictures: Path) -> None:
    (pictures / "3.png").write_bytes(b"")
    code, out, _ = creperie("score", benches[0], "--model", clip, "--device", "cpu", "--ties", "half")
    assert code == 0
    assert "task  subset" in out
    assert "a tie counts as half" in out
    assert "empty-image: 5 items" in out
    assert "swap/3:" in out
    assert "image_text covers 35 of 40 items" in out
    assert "7 of 8 images computed" in out


def test_limit_subset_and_seed(creperie: Command, benches: tuple[str, str], clip: str) -> None:
    first = scored(creperie, benches[0], "--model", clip, "--task", "tot", "--limit", "3")
    assert [r["n"] for r in first["results"] if r["subset"] != "macro"] == [3, 3, 6]
    one = scored(creperie, benches[0], "--model", clip, "--task", "tot", "--limit", "3", "--subset", "swap")
    assert [r["n"] for r in one["results"]] == [3, 3]
    drawn = [scored(creperie, benches[0], "-m", clip, "-t", "tot", "--limit", "3", "--seed", s)["run"] for s in "112"]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] != first["run"]


def test_dry_run(creperie: Command, benches: tuple[str, str], clip: str) -> None:
    plan = scored(creperie, *benches, "--model", clip, "--dry-run")["plan"]
    assert plan[0]["images"] == {"needed": 8, "stored": 0, "missing": 8}
    assert plan[0]["captions"]["needed"] == 29
    assert plan[0]["tokens"] > 29
    assert not Path("runs").exists()
    code, out, _ = creperie("score", *benches, "--model", clip, "--dry-run", "--device", "cpu")
    assert code == 0
    assert "(by a probe)" in out


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["nowhere", "--model", "x"], "nowhere"),
        (["{bench}", "--model", "hff:x"], "unknown model kind 'hff'; did you mean 'hf'?"),
        (["{bench}", "--model", "{clip}", "--task", "itx"], "unknown task 'itx'; did you mean 'itt'?"),
        (["{bench}", "--model", "{clip}", "--subset", "swapp"], "unknown subset 'swapp'; did you mean 'swap'?"),
        (["{bench}", "--model", "{clip}", "--dtype", "float23"], "unknown dtype 'float23'; did you mean 'float32'?"),
        (["{bench}"], "no model given"),
    ],
)
def test_mistakes_are_one_line(
    creperie: Command, benches: tuple[str, str], clip: str, args: list[str], line: str
) -> None:
    code, out, err = creperie("score", *[a.format(bench=benches[0], clip=clip) for a in args])
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


def test_compare(creperie: Command, benches: tuple[str, str], clip: str, other_clip: str) -> None:
    runs = [r["run"] for r in scored(creperie, benches[0], "-m", clip, "-m", other_clip)["runs"]]
    code, out, _ = creperie("compare", *runs, "--json")
    assert code == 0
    rows = json.loads(out)["comparisons"]
    assert {(r["task"], r["subset"]) for r in rows} == {
        (t, s) for t in ("itt", "tot") for s in ("replace", "swap", "all", "macro")
    }
    code, out, _ = creperie("compare", *runs)
    assert code == 0
    assert "McNemar" in out
    assert "Holm" in out
    code, _, err = creperie("compare", runs[0], "nowhere")
    assert code == 2
    assert "nowhere: is not a run" in err


def test_cache(creperie: Command, benches: tuple[str, str], clip: str, cache: Path) -> None:
    scored(creperie, benches[0], "--model", clip, "--task", "tot", "--no-cache")
    assert "is empty" in creperie("cache")[1]
    scored(creperie, benches[0], "--model", clip)
    document = json.loads(creperie("cache", "show", "--json")[1])
    assert document == json.loads(creperie("cache", "--json")[1])
    assert document["models"][0]["uri"] == clip
    assert document["models"][0]["kinds"]["image"]["records"] == 8
    assert document["entries"] == 23
    assert creperie("cache", "verify")[0] == 0
    for path in cache.rglob("store/*/text/*.seg"):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    assert creperie("cache", "verify")[0] == 1
    assert creperie("cache", "verify", "--repair")[0] == 0
    assert 8 <= json.loads(creperie("cache", "--json")[1])["entries"] < 23  # the damaged batch of captions is gone
    assert creperie("cache", "clear", "--model", clip)[0] == 0
    assert "is empty" in creperie("cache")[1]
    code, _, err = creperie("cache", "cleer")
    assert code == 2
    assert "did you mean 'clear'?" in err
