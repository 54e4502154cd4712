"""What a package index would show: no link that leads nowhere, no image that is not there."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import hatch_build
import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_and_images_are_absolute_and_lead_to_files() -> None:
    place = "https://example.org/me/creperie"
    made = hatch_build.index_readme(TEXT, place, "v1")
    found = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", made)
    assert len(found) == len(re.findall(r"\]\([^)\s]+\)", TEXT)) > 20
    for image, link in found:
        if link.startswith(place):
            kind, path = re.fullmatch(rf"{re.escape(place)}/(raw|blob)/v1/(\S+)", link).groups()  # type: ignore[union-attr]
            assert kind == ("raw" if image else "blob")
            assert (ROOT / path.partition("#")[0]).exists(), path
        else:
            assert link.startswith("https://")
    assert set(hatch_build.index_urls(place, "v1")) == {
        "Homepage",
        "Documentation",
        "Repository",
        "Issues",
        "Changelog",
    }


def test_without_a_repository_nothing_is_broken() -> None:
    made = hatch_build.index_readme(TEXT, "", "v1")
    assert "](docs/" not in made
    assert "![" not in made
    assert "## Evaluate a model" in made
    assert hatch_build.index_urls("", "v1") == {}


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("tune", ["", "1"])
def test_the_house_model_is_made_by_whole_commands(tune: str) -> None:
    """The weights' folder is the caller's, and every option of the training exists."""
    from creperie.cli.train import fit

    words = ["make", "-n", "--no-print-directory", "house", "DATA=d", "WEIGHTS=w", "HOUSE=h", f"TUNE={tune}"]
    told = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.replace("\\\n", " ")
    lines = [shlex.split(line) for line in told.splitlines()]
    assert [".venv/bin/python", "requirements/fetch_weights.py", "w", "dinov2-s"] in lines
    training = next(line for line in lines if line[:2] == [".venv/bin/creperie", "train"])
    call = fit.make_context("fit", training[2:], resilient_parsing=True).params
    assert call["image_tower"] == f"hf:{ROOT / 'w/dinov2-s/hf'}"
    assert call["train_towers"] == (("image,text",) if tune else ())
    assert lines[-1][:5] == [".venv/bin/creperie", "train", "recall", "--model", "towers:h/model"]
