"""What `data import` says about a benchmark's name, licence and images."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from creperie.bench import load
from creperie.cli.data_io import import_


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "my.csv").write_text("image,caption,foil\n1.png,a dog,a cat\n2.png,a cup,a ball\n", encoding="utf-8")
    (tmp_path / "here").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "here" / "1.png")
    (tmp_path / "empty").mkdir()
    return tmp_path / "my.csv"


def imported(*args: str) -> dict[str, object]:
    done = CliRunner().invoke(import_, [*args, "--json"])
    assert done.exit_code == 0, done.output
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_name_and_licence_are_kept(table: Path) -> None:
    out = str(table.parent / "out")
    imported(str(table), "--name", "Dogs and cups", "--licence", "CC-BY-4.0", "--out", out)
    bench = load(out)
    assert (bench.name, bench.info.licence) == ("Dogs and cups", "CC-BY-4.0")
    cut = {"0": {"filename": "1.png", "caption": "a dog", "negative_caption": "a cat"}}
    (table.parent / "swap_obj.json").write_text(json.dumps(cut), encoding="utf-8")
    imported(str(table.parent / "swap_obj.json"), "--format", "sugarcrepe", "--name", "sc50", "--out", out, "--force")
    card = (Path(out) / "README.md").read_text(encoding="utf-8")
    assert "\n# sc50\n" in card
    assert "SugarCrepe" not in card, "a part under another name is not the published set"


@pytest.mark.parametrize(
    ("images", "says"),
    [("", "it names 2 images, but not where they are"), ("empty", "none of its images was found"), ("here", "")],
)
def test_images_that_are_not_there_are_noted(table: Path, images: str, says: str) -> None:
    given = ["--images", str(table.parent / images)] if images else []
    notes = imported(str(table), *given)["notes"]
    assert isinstance(notes, list)
    assert (says in notes[0]) if says else notes == []


@pytest.mark.parametrize("place", ["", "pictures", "images"])
def test_images_beside_the_table_are_found(tmp_path: Path, place: str) -> None:
    """Named from the table's folder, or in a folder `images`; never by chance in another."""
    (tmp_path / place / "other").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(tmp_path / place / "1.png")
    named = "1.png" if place == "images" else f"{place}/1.png".strip("/")
    (tmp_path / "my.csv").write_text(f"image,caption,foil\n{named},a dog,a cat\n", encoding="utf-8")
    assert imported(str(tmp_path / "my.csv"), "--out", str(tmp_path / "out"))["notes"] == []
    assert load(tmp_path / "out").images.read(named)
    (tmp_path / place / "1.png").rename(tmp_path / place / "other" / "1.png")
    assert imported(str(tmp_path / "my.csv"))["notes"] or place == "images"


def test_one_of_a_thing_is_not_called_several(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("image,caption,foil\n1.png,a dog,a cat\n", encoding="utf-8")
    done = CliRunner().invoke(import_, [str(tmp_path / "one.csv")])
    assert done.output.startswith("one: 1 item, 1 subset, 1 image\n")
