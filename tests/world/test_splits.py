"""Splits hold out scenes and combinations."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import islice

import pytest

from creperie.core import UnknownNameError
from creperie.world import BIASED, CLEAN, Dice, Graph, find_twins, stream_items
from creperie.world.clean_items import MadeItem
from creperie.world.kinds import COLOURS, NAMES
from creperie.world.parse import parse
from creperie.world.splits import SEEN_COLOURS, SPLITS, is_novel, novel_colour, novel_triple, settle

_NAMED = {"right": "left", "below": "above", "behind": "front"}


@cache
def by_kind(split: str) -> list[list[MadeItem]]:
    return [list(islice(stream_items(kind, "choice", split, 4), 16)) for kind in (*CLEAN, *BIASED)]


def items(split: str, count: int = 16) -> list[MadeItem]:
    return [made for of_kind in by_kind(split) for made in of_kind[:count]]


@pytest.mark.parametrize("split", SPLITS)
def test_scenes_belong_to_their_split(split: str) -> None:
    for made in items(split, 10):
        assert all(settle(scene, split) == scene for scene in made.scenes)


@pytest.mark.parametrize("split", ["train", "val"])
def test_held_out_combinations_never_appear(split: str) -> None:
    """Neither in a picture nor in any caption, true or false."""
    for made in items(split):
        assert made.tags["combination"] == "seen"
        assert not any(is_novel(Graph(scene)) for scene in made.scenes)
        if not made.tags["clean"]:
            continue  # templates put words together as they like
        for caption in made.captions:
            claim = parse(caption)
            assert claim is not None
            for desc in claim.things:
                assert desc.colour is None or not novel_colour(desc.kind, desc.colour), caption
            for fact in claim.facts:
                if fact.negated or fact.relation in ("near", "far", "depth"):
                    continue
                ends = claim.things[fact.args[0]].kind, claim.things[fact.args[-1]].kind
                if fact.relation in _NAMED:
                    ends = ends[::-1]
                assert not novel_triple(ends[0], _NAMED.get(fact.relation, fact.relation), ends[1]), caption


def test_half_of_the_test_is_novel() -> None:
    made = items("test")
    counts = Counter(m.tags["combination"] for m in made)
    assert 0.4 < counts["novel"] / len(made) < 0.6
    for m in made:
        assert is_novel(Graph(m.scenes[0])) == (m.tags["combination"] == "novel")


@pytest.mark.slow
def test_training_shows_every_kind_colour_and_most_pairs() -> None:
    shown: Counter[tuple[str, str]] = Counter()
    dice = Dice(0)
    for k in range(900):
        twins = find_twins(list(CLEAN)[k % len(CLEAN)], dice, "train")
        shown.update((thing.kind, thing.colour) for scene in twins.scenes for thing in scene.things)
    assert {kind for kind, _ in shown} == set(NAMES)
    assert {colour for _, colour in shown} == set(COLOURS)
    allowed = {(kind, colour) for kind in NAMES for colour in SEEN_COLOURS[kind]}
    assert set(shown) <= allowed
    assert len(set(shown)) > 0.97 * len(allowed)


def test_the_rules_are_latin_squares() -> None:
    assert all(len(SEEN_COLOURS[kind]) == 8 for kind in NAMES)
    for colour in COLOURS:
        assert 4 <= sum(novel_colour(kind, colour) for kind in NAMES) <= 6
    for relation in ("left", "on", "pushes", "hands"):
        for kind in NAMES:
            assert 1 <= sum(novel_triple(kind, relation, other) for other in NAMES) <= 4


def test_settling_moves_by_a_hair_and_keeps_every_relation() -> None:
    for made in items("train", 4):
        scene = made.scenes[0]
        for split in SPLITS:
            moved = settle(scene, split)
            assert moved is not None
            assert settle(moved, split) == moved
            assert Graph(moved).places == Graph(scene).places
            assert max(abs(a.x - b.x) + abs(a.y - b.y) for a, b in zip(moved.things, scene.things, strict=True)) <= 6
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        settle(made.scenes[0], "trian")
