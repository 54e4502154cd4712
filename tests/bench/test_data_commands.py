"""`creperie data show|check|edit|concat` as users call them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from creperie.bench import PAIRED, Info, Item, SkippedRecord, choice, from_items, load_folder, save


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    rows = [
        Item(str(i), "swap" if i % 2 else "add", ("a.png",), (f"p{i}", f"n{i}"), choice(1, 1), {"n": i})
        for i in range(6)
    ]
    rows.append(Item("w", "pairs", ("a.png", "b.png"), ("left", "right"), PAIRED))
    rows.append(Item("x", "pairs", ("b.png", "a.png"), ("over", "under"), PAIRED))
    info = Info("Mine [bold]", "What it is.", "MIT", "https://example.org")
    save(from_items("mine", rows, info=info, skipped=(SkippedRecord("add", "9", "no good"),)), tmp_path / "clean")
    return tmp_path / "clean"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    rows = [
        Item("1", "swap", (), ("a [red] fox", "a [red] fox"), choice(1, 1)),
        Item("2", "swap", (), ("a", "b"), choice(1, 1)),
    ]
    save(from_items("broken", rows), tmp_path / "broken")
    return tmp_path / "broken"


def document(result: tuple[int, str, str]) -> dict[str, Any]:
    parsed = json.loads(result[1])
    assert isinstance(parsed, dict)
    return parsed


def test_show_as_json(command: Any, clean: Path) -> None:
    shown = document(command("data", "show", clean, "--json"))
    assert shown["items"] == 8
    assert shown["subsets"] == {"add": 3, "swap": 3, "pairs": 2}
    assert shown["images"] == 2
    assert shown["hash"] == load_folder(clean).hash
    assert shown["records"] == 9
    assert shown["skipped_reasons"] == {"no good": 1}
    assert shown["chance"] == {"add": 0.5, "swap": 0.5, "pairs": 0.25, "all": pytest.approx(0.4375)}
    assert shown["tags"]["n"] == {
        "kind": "number",
        "items": 6,
        "distinct": 6,
        "values": {str(i): 1 for i in range(6)},
    }
    assert len(shown["sample"]) == 3


def test_show_for_people(command: Any, clean: Path) -> None:
    code, out, err = command("data", "show", clean, "--sample", 8)
    assert (code, err) == (0, "")
    for part in [
        "Mine [bold]",
        "8 items, 2 images, 16 captions",
        "1 of 9 records: no good",
        "43.8%",
        "[[1,0],[0,1]]",
        "✓✗ left",
        "✗✓ right",
    ]:
        assert part in out


def test_show_one_item(command: Any, clean: Path) -> None:
    code, out, _ = command("data", "show", clean, "--item", "w")
    assert code == 0
    assert out.split() == ["pairs/w", "a.png", "b.png", "✓✗", "left", "✗✓", "right"]
    code, _, err = command("data", "show", clean, "--item", "nope")
    assert (code, err.count("\n")) == (2, 1)
    assert "no item has the id 'nope'" in err


def test_show_one_subset(command: Any, clean: Path) -> None:
    assert document(command("data", "show", clean, "--subset", "pairs", "--json"))["items"] == 2
    code, _, err = command("data", "show", clean, "--subset", "pair")
    assert code == 2
    assert "did you mean 'pairs'" in err


def test_check_says_yes_and_no(command: Any, clean: Path, broken: Path) -> None:
    code, out, _ = command("data", "check", clean)
    assert code == 0
    assert "8 items, 0 errors, 2 notes" in out
    code, out, _ = command("data", "check", broken)
    assert code == 1
    assert "positive-equals-negative (1)" in out
    assert 'swap/1  captions 1 and 2 are both "a [red] fox"' in out
    assert "2 items, 1 error, 0 notes" in out


def test_check_as_json(command: Any, broken: Path) -> None:
    result = command("data", "check", broken, "--json")
    assert result[0] == 1
    (finding,) = document(result)["findings"]
    assert {"code", "subset", "item", "message"} <= set(finding)
    assert (finding["code"], finding["subset"], finding["item"]) == ("positive-equals-negative", "swap", "1")


def pictures(folder: Path) -> Path:
    folder.mkdir()
    for i, name in enumerate(["a.png", "b.png"]):
        out = io.BytesIO()
        Image.new("RGB", (4, 4), (i, 0, 0)).save(out, "PNG")
        (folder / name).write_bytes(out.getvalue())
    return folder


def test_check_looks_at_images(command: Any, clean: Path, tmp_path: Path) -> None:
    place = pictures(tmp_path / "pictures")
    assert document(command("data", "check", clean, "--images", place, "--json"))["counts"] == {"skipped-record": 1}
    (place / "b.png").write_bytes(b"")
    result = command("data", "check", clean, "--images", place, "--json")
    assert result[0] == 1
    assert [f["item"] for f in document(result)["findings"] if f["code"] == "empty-image"] == ["w", "x"]
    assert command("data", "check", clean, "--images", place, "--no-images")[0] == 0


def test_edit(command: Any, clean: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"
    kept = ["--subset", "add", "--subset", "swap", "--tag", "n=1,2,3,4,5,6,7"]
    code, text, _ = command("data", "edit", clean, *kept, "--sample", 3, "--seed", 1, "--out", out)
    assert (code, text) == (0, f"3 of 8 items written to {out}\n")
    steps = [step.op for step in load_folder(out).provenance]
    assert steps == ["filter", "filter", "sample"]
    code, _, err = command("data", "edit", clean, "--out", out)
    assert code == 2
    assert "--force" in err
    assert document(command("data", "edit", clean, "--head", 1, "--out", out, "--force", "--json"))["items"] == 3


def test_edit_copies_images(command: Any, clean: Path, tmp_path: Path) -> None:
    place = pictures(tmp_path / "pictures")
    command("data", "edit", clean, "--images", place, "--subset", "add", "--copy-images", "--out", tmp_path / "new")
    assert [p.name for p in (tmp_path / "new" / "images").iterdir()] == ["a.png"]
    assert document(command("data", "check", tmp_path / "new", "--json"))["counts"] == {"skipped-record": 1}


def test_a_wrong_tag_writes_nothing(command: Any, clean: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    code, out, err = command("data", "edit", clean, "--tag", "m=1", "--out", tmp_path / "new")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "unknown tag" in err
    assert sorted(tmp_path.iterdir()) == before


def test_concat(command: Any, clean: Path, broken: Path, tmp_path: Path) -> None:
    made = document(command("data", "concat", clean, broken, "--prefix", "--out", tmp_path / "both", "--json"))
    assert (made["name"], made["items"]) == ("both", 10)
    assert list(made["subsets"]) == ["mine/add", "mine/swap", "mine/pairs", "broken/swap"]
    code, _, err = command("data", "concat", clean, broken, "--out", tmp_path / "clash")
    assert code == 2
    assert "'1' appears 2 times in subset 'swap'" in err
    assert "--prefix" in err
    assert not (tmp_path / "clash").exists()


def test_wrong_names_get_suggestions(command: Any, clean: Path) -> None:
    code, _, err = command("data", "chek", clean)
    assert code == 2
    assert "did you mean 'check'" in err
    code, _, err = command("data", "show", "nowhere/at/all")
    assert code == 2
    assert err.count("\n") == 1


def test_help_lists_all_commands(command: Any) -> None:
    code, out, _ = command("data", "--help")
    assert code == 0
    for name in ("list", "get", "import", "show", "check", "edit", "concat", "export"):
        assert f"\n  {name} " in out
