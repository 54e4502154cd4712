"""A recipe on an engine: the folders that one process writes, byte for byte."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_makers import register

from creperie.core import CreperieError
from creperie.core.checksums import CHECKSUMS
from creperie.engine import Engine, choose_engine
from creperie.recipes import Recipe, StageResult, read_recipe
from creperie.recipes.kitchen import CARD, PASSING, TIME
from creperie.recipes.kitchen import run_stages as cook

CAPTIONS = [
    f"A {colour} {who} {does} a {size} {what} near the {place}."
    for colour, size in (("brown", "small"), ("white", "tall"))
    for who, does in (("dog", "chases"), ("man", "rides"), ("woman", "feeds"))
    for what, place in (("cat", "pond"), ("horse", "barn"))
]
CHAIN = """
recipe: spread
stages:
  - {name: captions, does: captions, with: {source: '{recipe}/captions.txt'}}
  - {name: make, does: make, with: {makers: [MAKERS], seed: 3}}
  - {name: audit, does: audit, with: {attackers: [length-words, length-chars, surface, negation]}}
  - {name: refine, does: refine, from: make, with: {attackers: [length-chars], held_out: [length-words], bins: 2}}
  - {name: score, does: score, with: {models: ['blind:length'], tasks: [blind]}}
"""


@pytest.fixture
def chain(tmp_path: Path) -> Callable[[str], Recipe]:
    register()

    def read(makers: str) -> Recipe:
        (tmp_path / "captions.txt").write_text("\n".join(CAPTIONS) + "\n", encoding="utf-8")
        (tmp_path / "spread.yaml").write_text(CHAIN.replace("MAKERS", makers), encoding="utf-8")
        return read_recipe(tmp_path / "spread.yaml")

    return read


@pytest.fixture
def cooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[StageResult]]:
    """Cook into `out`, in a folder and with a store of its own."""

    def run(recipe: Recipe, name: str, engine: Engine | None = None) -> list[StageResult]:
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / name / "cache"))
        return cook(recipe, Path("out"), engine=engine)

    return run


def content(folder: Path) -> dict[str, Any]:
    """All files but the times of stages; of runs, all but what tells of the hour and the machine."""
    found: dict[str, Any] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != TIME):
        name = path.relative_to(folder).as_posix()
        if path.name in ("run.json", CARD):
            document = json.loads(path.read_text(encoding="utf-8"))
            found[name] = {k: v for k, v in document.items() if k not in (*PASSING, "places", CHECKSUMS)}
        else:
            found[name] = path.read_bytes()
    return found


@pytest.mark.slow
def test_a_recipe_is_the_same_in_process_and_on_ray(
    chain: Callable[[str], Recipe], cooked: Callable[..., list[StageResult]], tmp_path: Path
) -> None:
    """One process; a Ray cluster of two workers: foils, audit, refinement, run."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from creperie.lang import default_parser

    try:
        default_parser()
    except CreperieError as e:
        pytest.skip(f"no parser: {e}")
    recipe = chain("'rules:swap'")
    logging.getLogger("ray").setLevel(logging.ERROR)
    cooked(recipe, "one")
    on_ray = cooked(recipe, "ray", choose_engine("ray", workers=2))
    assert not ray.is_initialized(), "the Ray that was started is ended"
    assert {s.state for s in on_ray} == {"cooked"}
    one, two = (content(tmp_path / name / "out") for name in ("one", "ray"))
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
