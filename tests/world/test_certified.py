"""Every emitted caption is true or false as its item says: by the product's check, and by an independent one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.auditing import symmetry_of
from creperie.world import (
    BIASED,
    CLEAN,
    FORMS,
    Dice,
    Graph,
    Scene,
    World,
    check_world,
    evaluate,
    make_world,
    stream_items,
)
from creperie.world.biased import biased_items
from creperie.world.clean_items import MadeItem, clean_items
from creperie.world.parse import parse
from creperie.world.truth import LogicalForm

Opinion = Callable[[LogicalForm, Scene], bool]
SUBSETS = [(kind, form) for kind in CLEAN for form in CLEAN[kind].forms]


@cache
def choices(kind: str) -> list[MadeItem]:
    return list(islice(clean_items(kind, "choice", "test", 3), 80))


def judge(made: MadeItem, second_opinion: Opinion) -> None:
    """The text is read back, then judged by the scene graph (with margins) and by plain geometry (without)."""
    for scene, row in zip(made.scenes, made.match, strict=True):
        graph = Graph(scene)
        for caption, expected in zip(made.captions, row, strict=True):
            claim = parse(caption)
            if claim is None:
                assert not expected
                assert made.tags["clean"] is False, caption
                continue
            assert evaluate(claim, graph) is expected, (caption, scene)
            assert second_opinion(claim, scene) is expected, (caption, scene)


@pytest.mark.parametrize(("kind", "form"), SUBSETS)
def test_clean_items(kind: str, form: str, second_opinion: Opinion) -> None:
    for made in islice(clean_items(kind, form, "test", 11), 12):
        judge(made, second_opinion)


@pytest.mark.parametrize("kind", BIASED)
def test_biased_items(kind: str, second_opinion: Opinion) -> None:
    for made in islice(biased_items(kind, "train", 11), 25):
        judge(made, second_opinion)


@given(st.integers(0, 2**32), st.sampled_from(SUBSETS), st.sampled_from(["train", "val", "test"]))
def test_any_seed(second_opinion: Opinion, seed: int, subset: tuple[str, str], split: str) -> None:
    for made in islice(clean_items(*subset, split, seed), 4):
        judge(made, second_opinion)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*CLEAN, *BIASED])
def test_many_items(kind: str, second_opinion: Opinion) -> None:
    for made in islice(stream_items(kind, "choice", "test", 12), 80):
        judge(made, second_opinion)


def test_check_finds_a_wrong_match() -> None:
    from dataclasses import replace

    from creperie.bench import from_items

    bench = make_world(World(items=3, kinds=("swap_obj",)))
    assert check_world(bench) == []
    first, second, third = bench
    lying = replace(first, match=((False, True),))
    muttering = replace(second, captions=("Colourless green ideas.", second.captions[1]))
    lost = replace(third, images=("nowhere.png",))
    findings = check_world(from_items("lies", [lying, muttering, lost]))
    assert [f.code for f in findings] == ["wrong-match", "wrong-match", "unreadable-caption", "unknown-scene"]
    assert findings[0].item == "00000"


# -- the fair coin ---------------------------------------------------------------------------------------------------


class Recorded(Dice):
    """Dice that remember what was rolled, or play back what they were given."""

    def __init__(self, key: int = 0, script: list[tuple[int, int]] | None = None) -> None:
        super().__init__(key)
        self.rolls: list[tuple[int, int]] = []
        self.script = script

    def roll(self, n: int) -> int:
        value = self.script[len(self.rolls)][1] if self.script is not None else super().roll(n)
        self.rolls.append((n, value))
        return value


@pytest.mark.parametrize("kind", CLEAN)
@pytest.mark.parametrize("form", ["choice", "quad"])
def test_the_last_coin_exchanges_truth_and_foil(kind: str, form: str) -> None:
    """Same twins, same wording, other side of the coin: the same texts with exchanged roles, and the other scene.

    So every text is the true one exactly as often as the foil, and no text-only model can know.
    """
    from creperie.world import find_twins
    from creperie.world.clean_items import made_item

    dice = Dice(77)
    for _ in range(10):
        twins = find_twins(kind, dice, "train")
        first = Recorded(dice.roll(10**6))
        one = made_item(kind, form, twins, first)
        flipped = [*first.rolls[:-1], (2, 1 - first.rolls[-1][1])]
        assert first.rolls[-1][0] == 2
        two = made_item(kind, form, twins, Recorded(script=flipped))
        if one is None or two is None:
            assert one is two
            continue
        half = len(one.captions) // 2
        assert one.captions[:half] == two.captions[half:]
        assert one.captions[half:] == two.captions[:half]
        assert {one.scenes[0], two.scenes[0]} == set(twins.scenes)


@pytest.mark.parametrize("kind", CLEAN)
def test_the_foil_is_worded_like_either_true_caption_equally_often(kind: str) -> None:
    items = [m.tags for m in islice(clean_items(kind, "triple", "train", 5), 80)]
    distinct = [t for t in items if t["construction"] != t["construction_2"]]
    first = sum(t["construction_foil"] == t["construction"] for t in distinct)
    second = sum(t["construction_foil"] == t["construction_2"] for t in distinct)
    assert first + second > 32
    assert abs(first - second) < 4 * (first + second) ** 0.5


# -- forms -----------------------------------------------------------------------------------------------------------


def bag(text: str) -> Counter[str]:
    return Counter(text.lower().replace(",", "").rstrip(".").split())


@pytest.mark.parametrize("kind", [k for k in CLEAN if "winoground" in CLEAN[k].forms])
def test_winoground_captions_have_the_same_words(kind: str) -> None:
    for made in islice(clean_items(kind, "winoground", "test", 1), 40):
        assert made.match == ((True, False), (False, True))
        assert bag(made.captions[0]) == bag(made.captions[1])
        assert made.captions[0] != made.captions[1]
        assert made.scenes[0] != made.scenes[1]


@pytest.mark.parametrize("kind", ["add_obj", "add_att"])
def test_additions_are_as_long_as_each_other(kind: str) -> None:
    for made in islice(clean_items(kind, "choice", "test", 1), 100):
        base = str(made.tags["base"])
        sizes = [len(caption.split()) for caption in made.captions]
        assert sizes[0] == sizes[1]
        assert sizes[0] > len(base.split())
        claim = parse(base)
        assert claim is not None
        assert evaluate(claim, Graph(made.scenes[0])) is True


def test_both_captions_negate_or_none_does() -> None:
    for kind in CLEAN:
        for made in choices(kind):
            assert [("not" in bag(caption)) for caption in made.captions] == [kind == "negation"] * 2


def test_all_relations_and_constructions_occur() -> None:
    relations: Counter[str] = Counter()
    plans: Counter[str] = Counter()
    for kind in CLEAN:
        for made in choices(kind):
            plans[str(made.tags["construction"])] += 1
            claim = parse(made.captions[0])
            assert claim is not None
            relations.update(fact.relation for fact in claim.facts)
    assert set(relations) == {
        "left", "right", "above", "below", "inside", "on", "front", "behind", "near", "far",
        "follows", "pushes", "pulls", "carries", "holds", "faces", "hands", "throws", "depth",
    }  # fmt: skip
    assert min(relations.values()) >= 6
    assert {"plain", "turned", "to", "double", "with", "there", "turned there", "middle", "turned middle"} <= set(plans)


def test_forms_are_the_published_shapes() -> None:
    shapes = {"choice": 2, "triple": 3, "quad": 4, "winoground": 2, "twins": 2, "half": 3}
    for form in FORMS:
        made = next(clean_items("add_obj" if form == "half" else "dative", form, "test", 0))
        assert len(made.captions) == shapes[form]


def test_half_truths_add_one_true_or_one_false_detail() -> None:
    for made in islice(clean_items("add_obj", "half", "test", 1), 40):
        short, true, false = (caption.rstrip(".").split() for caption in made.captions)
        assert len(true) == len(false) > len(short)
        assert made.match == ((True, True, False),)


def test_confusions_name_kinds_and_colours_that_the_picture_has_anyway() -> None:
    for made in islice(clean_items("confusion", "choice", "test", 1), 40):
        things = made.scenes[0].things
        assert sorted(Counter(t.kind for t in things).values()) == [2, 2, 2]
        assert sorted(Counter(t.colour for t in things).values()) == [2, 2, 2]
        false = parse(made.captions[1])
        assert false is not None
        for desc in false.things:
            assert any(t.kind == desc.kind for t in things)
            assert any(t.colour == desc.colour for t in things)


def test_scenes_hold_up_to_eight_things() -> None:
    sizes = Counter(len(m.scenes[0].things) for kind in CLEAN for m in choices(kind))
    assert set(sizes) >= {2, 3, 5, 6}
    assert max(sizes) <= 8


@pytest.mark.parametrize("kind", list(CLEAN))
def test_the_form_twins_is_balanced_by_design_for_every_kind(kind: str) -> None:
    bench = make_world(World(items=5, kinds=(kind,), forms=("twins",)))
    assert bench.subsets == {f"{kind}_twins": 5}
    assert symmetry_of(bench).balanced
