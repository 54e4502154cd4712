"""A recipe on an engine and in shares: the folders that one process writes, byte for byte."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_makers import NAME, register

from creperie.cli.app import main
from creperie.core.errors import CreperieError, UsageError
from creperie.engine import Local, Shard, choose_engine
from creperie.recipes.kitchen import PASSING, TIME, StageResult, Workers, alone_in
from creperie.recipes.kitchen import run_stages as cook
from creperie.recipes.recipe import Recipe, read_recipe

CAPTIONS = [
    f"A {colour} {who} {does} a {size} {what} near the {place}."
    for colour, size in (("brown", "small"), ("white", "tall"), ("grey", "young"))
    for who, does in (("dog", "chases"), ("man", "rides"), ("woman", "feeds"))
    for what, place in (("cat", "pond"), ("horse", "barn"), ("duck", "fence"))
]
CHAIN = """
recipe: spread
stages:
  - {name: captions, does: captions, with: {source: '{recipe}/captions.txt'}}
  - {name: make, does: make, with: {makers: [MAKERS], seed: 3}}
  - {name: scenes, does: world, with: {kinds: [swap_obj, add_obj], items: 6, size: 32}}
  - {name: all, does: join, from: [make, scenes]}
  - {name: audit, does: audit, with: {attackers: [length-words, length-chars, surface, negation]}}
  - {name: refine, does: refine, from: all, with: {attackers: [length-chars], held_out: [length-words], bins: 2}}
  - {name: score, does: score, with: {models: ['blind:length', 'blind:surface'], tasks: [blind], resamples: 50}}
  - {name: table, does: table, with: {tables: [sugarcrepe/6]}}
"""
#: all that happens when four jobs are called in turn, twice
TURNS = [Shard(4, k) for k in (1, 2, 3, 4, 1, 2, 3)]


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

    def run(recipe: Recipe, name: str, hands: Workers | None = None) -> list[StageResult]:
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / name / "cache"))
        return cook(recipe, Path("out"), hands=hands)

    return run


def content(folder: Path) -> dict[str, Any]:
    """All files but the times of stages; of runs, all but what tells of the hour and the machine."""
    found: dict[str, Any] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != TIME):
        name = path.relative_to(folder).as_posix()
        if path.name == "run.json":
            document = json.loads(path.read_text(encoding="utf-8"))
            found[name] = {k: v for k, v in document.items() if k not in PASSING}
        else:
            found[name] = path.read_bytes()
    return found


def test_shares_become_what_one_job_cooks(
    chain: Callable[[str], Recipe], cooked: Callable[..., list[StageResult]], tmp_path: Path
) -> None:
    recipe = chain(f"'{NAME}', 'mine:spatial'")
    whole = cooked(recipe, "one")
    turns = [cooked(recipe, "four", Workers(shard=shard)) for shard in TURNS]
    last = [(served[-1].name, served[-1].state) for served in turns]
    assert last == [("make", "waiting")] * 3 + [("score", "waiting")] * 3 + [("table", "cooked")]
    assert turns[0][-1].why == "shares of 4 that are missing: 2, 3, 4"
    assert [s.summary for s in turns[-1]] == [s.summary for s in whole]
    one, four = content(tmp_path / "one" / "out"), content(tmp_path / "four" / "out")
    assert four.keys() == one.keys()
    assert [name for name in one if one[name] != four[name]] == []
    assert len(one) > 30
    assert {s.state for s in cooked(recipe, "four", Workers(shard=Shard(4, 4)))} == {"unchanged"}


def test_shares_of_others_are_neither_lost_nor_mixed(
    chain: Callable[[str], Recipe], cooked: Callable[..., list[StageResult]], tmp_path: Path
) -> None:
    recipe = chain(f"'{NAME}'")
    cooked(recipe, "x", Workers(shard=Shard(2, 1)))
    share = next((tmp_path / "x" / "out" / ".shares").glob("make-*/1-of-2"))
    before = {p: p.stat().st_mtime_ns for p in share.rglob("*") if p.is_file()}
    assert cooked(recipe, "x", Workers(shard=Shard(3, 1)))[-1].why == "shares of 3 that are missing: 2, 3"
    assert cooked(recipe, "x", Workers(shard=Shard(2, 1)))[-1].why == "shares of 2 that are missing: 2"
    assert {p: p.stat().st_mtime_ns for p in share.rglob("*") if p.is_file()} == before, "a share was cooked again"
    shutil.rmtree(share.with_name("1-of-3"))
    with alone_in(share.with_name("2-of-2")), pytest.raises(UsageError, match="another cooking is at work"):
        cooked(recipe, "x", Workers(shard=Shard(2, 2)))
    # One process alone takes over at any time, with what is there.
    assert {s.state for s in cooked(recipe, "x")} == {"cooked", "unchanged"}
    assert not list((tmp_path / "x" / "out").glob(".*"))
    with pytest.raises(UsageError, match="cut the same work twice"):
        Workers(Local(2), Shard(2, 1))
    with pytest.raises(UsageError, match="cut fewer shards"):
        cooked(recipe, "many", Workers(shard=Shard(99, 1)))


def test_the_command_in_shares(
    chain: Callable[[str], Recipe], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    chain(f"'{NAME}'")
    common = ["cook", str(tmp_path / "spread.yaml"), "--out", str(tmp_path / "out"), "--shard"]
    with pytest.raises(SystemExit) as ended:
        main([*common, "2/2", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert (document["shard"], document["waiting"]) == ("2/2", "make")
    with pytest.raises(SystemExit):
        main([*common, "2/2"])
    assert "The same command goes on when the others are there." in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([*common, "1/2", "--workers", "2"])
    assert ended.value.code == 2
    assert "cut the same work twice" in capsys.readouterr().err


@pytest.mark.slow
def test_a_recipe_is_the_same_in_process_on_ray_and_in_shards(
    chain: Callable[[str], Recipe], cooked: Callable[..., list[StageResult]], tmp_path: Path
) -> None:
    """One process; a Ray cluster of two workers; four shards: foils, audit, refinement, runs, table."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from creperie.lang.parser import default_parser

    try:
        default_parser()
    except CreperieError as e:
        pytest.skip(f"no parser: {e}")
    recipe = chain("'rules:swap'")
    logging.getLogger("ray").setLevel(logging.ERROR)
    cooked(recipe, "one")
    on_ray = cooked(recipe, "ray", Workers(choose_engine("ray", workers=2)))
    assert not ray.is_initialized(), "the Ray that was started is ended"
    assert {s.state for s in on_ray} == {"cooked"}
    for shard in TURNS:
        cooked(recipe, "four", Workers(shard=shard))
    one, two, four = (content(tmp_path / name / "out") for name in ("one", "ray", "four"))
    assert one.keys() == two.keys() == four.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert [name for name in one if one[name] != four[name]] == []
