"""Files from strangers that would take all memory or time end with one line; terminals get no control characters."""

from __future__ import annotations

import ast
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sources import calls

import creperie
from creperie.bench import ImageError, open_store
from creperie.cli import main
from creperie.cli.data import data
from creperie.cli.output import echo, print_table, say
from creperie.core import CreperieError, DataError, csv_rows, limits, parse_json, parse_yaml
from creperie.recipes import read_recipe
from creperie.scoring import read_column
from creperie.statistics import read_table

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)


def test_yaml_aliases_are_not_expanded_without_end(tmp_path: Path) -> None:
    assert len(LAUGHS) < 320
    with pytest.raises(DataError, match="aliases that expand to more than 100,000 values"):
        parse_yaml(LAUGHS, "x.yaml")
    with pytest.raises(DataError, match=r"x\.yaml:1: an alias refers to a value that contains it"):
        parse_yaml("a: &a [*a]\n", "x.yaml")
    (tmp_path / "x.yaml").write_text(LAUGHS)
    with pytest.raises(CreperieError, match="expand to more than"):
        read_recipe(tmp_path / "x.yaml", "paper", {})
    assert parse_yaml("a: &a [1, 2]\nb: *a\n", "x.yaml") == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[" * 5000, "nested too deeply"),
        ("- " * 5000, "nested too deeply"),
        ("[" + "1," * 4000 + "]", "too many values"),
        ("a: [1", r"x\.yaml:1: is not YAML"),
        ("a: 2020-99-99", "is not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "is not YAML"),
        ("x" * 5_000_000, "at most 4,194,304 are read"),
    ],
)
def test_yaml_beyond_the_limits(monkeypatch: pytest.MonkeyPatch, text: str, line: str) -> None:
    monkeypatch.setattr(limits, "MAX_YAML_VALUES", 3000)
    with pytest.raises(DataError, match=line):
        parse_yaml(text, "x.yaml")


@pytest.mark.parametrize("text", ["[" * 150 + "]" * 150, '{"a":' * 150 + "1" + "}" * 150, "[" * 100_000])
def test_deep_json(text: str) -> None:
    with pytest.raises(DataError, match="nested too deeply"):
        parse_json(text, "x.json")
    assert parse_json("[" * 90 + "]" * 90, "x.json") is not None


def wide(folder: Path, kind: str) -> Path:
    names = ["caption", "foil", *(f"c{i}" for i in range(100_000))]
    path = folder / f"wide.{kind}"
    if kind == "csv":
        path.write_text(",".join(names) + "\n" + ",".join(["x"] * len(names)) + "\n")
    elif kind == "jsonl":
        path.write_text("{" + ", ".join(f'"{name}": "x"' for name in names) + "}\n")
    else:
        pq.write_table(pa.table({name: ["x"] for name in names[:3000]}), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_hundred_thousand_columns(tmp_path: Path, kind: str) -> None:
    path = wide(tmp_path, kind)
    with pytest.raises(CreperieError, match="columns, but at most 2,000 are read"):
        creperie.load(path)
    if kind != "jsonl":
        with pytest.raises(CreperieError, match="columns, but at most 2,000 are read"):
            read_table(path)
    if kind == "csv":
        with pytest.raises(CreperieError, match="columns, but at most 2,000 are read"):
            read_column(path, "caption", "foil")
    done = CliRunner().invoke(data, ["import", str(path)])
    assert "at most 2,000" in str(done.exception)


def test_a_cell_without_end(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("caption\n" + "x" * 200_000 + "\n")
    with pytest.raises(DataError, match=r"x\.csv:2: is not a table that can be read \(field larger than"):
        list(csv_rows(tmp_path / "x.csv"))


def test_archives_with_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MEMBERS", 3)
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for k in range(5):
            archive.writestr(f"{k}.jpg", b"")
    with pytest.raises(DataError, match="has more than 3 files"):
        open_store(path).read("7.jpg")
    monkeypatch.setattr(limits, "MAX_MEMBERS", 5)
    with pytest.raises(ImageError, match="there is no such image"):
        open_store(path).read("7.jpg")


EVIL = "a\x1b]0;owned\x07b\r\x9bc\u202ed"


def test_no_control_character_reaches_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    say(EVIL)
    echo(EVIL)
    echo(EVIL, error=True)
    print_table(["x"], [[EVIL]])
    (tmp_path / "x.csv").write_text(f"caption,foil\n{EVIL},y\n", newline="")
    for arguments in (["data", "show", str(tmp_path / "x.csv"), "--json"], ["data", "show", f"{tmp_path}/{EVIL}.csv"]):
        with pytest.raises(SystemExit):
            main(arguments)
    shown = "".join(capsys.readouterr())
    assert "owned" in shown
    assert not set(shown) & set("\x1b\x07\r\x9b\u202e")


def test_json_keeps_what_a_terminal_must_not_see(tmp_path: Path, command: Any) -> None:
    (tmp_path / "x.csv").write_text("caption,foil,id\na,y,q\x9b\n", encoding="utf-8")
    _, shown, _ = command("data", "import", tmp_path / "x.csv", "--json")
    assert "\x9b" not in shown
    assert parse_json(shown, "out")["preview"][0]["id"] == "q\x9b"


#: Modules that parse what creperie itself wrote, packs or was handed in memory: caches, run folders, packaged data,
#: rows of the study database, answers of servers (whose size the client limits).
OWN = (
    "core/limits.py",
    "testing/",
    "annotation/",
    "engine/",
    "making/",
    "models/api/",
    "training/checkpoints.py",
    "recipes/making.py",
    "scoring/handle.py",
    "scoring/forecast.py",
    "scoring/store.py",
    "bench/catalog/",
    "reporting/figures/",
)
PARSERS = {"json.load", "yaml.safe_load", "yaml.load", "yaml.SafeLoader", "csv.reader", "csv.DictReader"}


def parses_a_file(name: str, call: ast.Call) -> bool:
    if name not in {*PARSERS, "json.loads"}:
        return False
    arguments = " ".join(ast.unparse(argument) for argument in call.args)
    whole = name == "json.loads" and any(word in arguments for word in ("read_text(", "read_bytes(", ".read("))
    return whole or (name in PARSERS and "packaged(" not in arguments)


def test_files_of_users_are_parsed_in_one_place() -> None:
    direct = [
        f"{path}:{call.lineno}"
        for path, name, call in calls()
        if not path.startswith(OWN) and parses_a_file(name, call)
    ]
    assert direct == []


def test_commands_print_in_one_place() -> None:
    assert {path for path, name, _ in calls() if path.startswith("cli/") and name == "print"} == {"cli/output.py"}
