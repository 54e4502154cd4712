"""`creperie data import` and `creperie data export` as a user runs them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import load, load_folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "my.csv"
    path.write_text(
        "file,caption,foil,foil2,kind\n7.jpg,A crab [red],A gull,A rock,swap\n8.jpg,B ,C,,add\n9.jpg,,D,,add\n"
    )
    return path


COLUMNS = ("--image", "file", "--positive", "caption", "--negative", "foil,foil2", "--subset", "kind")


def test_import_writes_a_benchmark(command: Any, table: Path, tmp_path: Path) -> None:
    code, out, _ = command("data", "import", table, *COLUMNS, "--out", tmp_path / "mine", "--json")
    document = json.loads(out)
    assert code == 0
    assert {k: document[k] for k in ("items", "subsets", "images", "skipped")} == {
        "items": 2,
        "subsets": {"swap": 1, "add": 1},
        "images": 2,
        "skipped": 1,
    }
    bench = load_folder(tmp_path / "mine")
    assert [item.captions for item in bench] == [("A crab [red]", "A gull", "A rock"), ("B ", "C")]
    assert document["hash"] == bench.hash
    code, _, err = command("data", "import", table, *COLUMNS, "--out", tmp_path / "mine")
    assert (code, "not empty" in err) == (2, True)
    assert command("data", "import", table, *COLUMNS, "--out", tmp_path / "mine", "--force")[0] == 0


def test_import_without_out_is_a_preview(command: Any, table: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    code, out, _ = command("data", "import", table, *COLUMNS)
    assert code == 0
    assert "A crab [red]" in out
    assert "1 left out (such as 2): no true caption in caption" in out
    assert "Nothing was written. To keep it, add: --out out/my" in out
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_the_separator_of_a_table_is_read_from_its_heading(
    tmp_path: Path, separator: str, ending: str, quoting: Any
) -> None:
    """Spreadsheets write semicolons into .csv files where the comma is the decimal mark."""
    rows = [["caption", "foil"], ["a dog, a cat", 'a "b"; c'], ["x", "y\tz|"]]
    with (tmp_path / f"odd.{ending}").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, quoting=quoting).writerows(rows)
    assert [list(item.captions) for item in load(tmp_path / f"odd.{ending}")] == rows[1:]


def test_mistakes_end_with_one_line(command: Any, table: Path, tmp_path: Path) -> None:
    cases = [
        (("data", "import", table, "--positive", "captoin"), "did you mean 'caption'?"),
        (("data", "import", tmp_path / "none.csv"), "there is no such file"),
        (("data", "import", tmp_path), "expected a file, found a folder; pass --format"),
        (("data", "import", table, "--format", "sugarcreep"), "did you mean 'sugarcrepe'?"),
        (("data", "import", table, "--format", "valse", "--image", "file"), "defines its own columns"),
        (("data", "export", tmp_path, "--format", "csv", "--out", tmp_path / "x"), "not a creperie benchmark"),
    ]
    for args, line in cases:
        code, out, err = command(*args)
        assert (code, out) == (2, "")
        assert line in err
        assert err.count("\n") == 1
    assert command("data", "import", table, "--image", "file")[0] == 0  # the caption column is found by its name


def test_a_published_format_goes_in_and_out_with_the_same_content(command: Any, tmp_path: Path) -> None:
    text = '{"0": {"filename": "a", "caption": "b ", "negative_caption": "c"}}'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "swap.json").write_text(text)
    assert command("data", "import", tmp_path / "in", "--format", "sugarcrepe", "--out", tmp_path / "mine")[0] == 0
    code, out, _ = command(
        "data", "export", tmp_path / "mine", "--format", "sugarcrepe", "--out", tmp_path / "out", "--json"
    )
    assert code == 0
    assert json.loads(out)["files"] == [str(tmp_path / "out" / "swap.json")]
    assert json.loads((tmp_path / "out" / "swap.json").read_text()) == json.loads(text)


def test_export_of_one_subset_into_a_file(command: Any, table: Path, tmp_path: Path) -> None:
    command("data", "import", table, *COLUMNS, "--out", tmp_path / "mine")
    code, out, _ = command(
        "data", "export", tmp_path / "mine", "--format", "sugarcrepe", "--subset", "add", "--out", tmp_path / "add.json"
    )
    assert code == 0
    assert "1 item in 1 file" in out
    assert json.loads((tmp_path / "add.json").read_text())["1"]["caption"] == "B "
    code, _, err = command("data", "export", tmp_path / "mine", "--format", "sugarcrepe", "--out", tmp_path / "all")
    assert (code, "item swap/0: has 1 images, 1 true and 2 false captions" in err) == (2, True)
    assert not (tmp_path / "all").exists()
