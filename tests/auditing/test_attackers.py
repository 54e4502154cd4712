"""Attackers on hand-made captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from creperie.auditing import (
    Attacker,
    AttackerModels,
    OddOneOut,
    TextAttacker,
    by_embedding,
    item_gaps,
    make_attackers,
    pairs_of,
    planned_battery,
)
from creperie.auditing.battery import MAKERS
from creperie.auditing.registry import REGISTRY
from creperie.bench import Item, choice, from_items
from creperie.core import CreperieError
from creperie.lang import character_similarity
from creperie.models import Fingerprint


def gap(name: str, captions: tuple[str, ...], positives: int = 1) -> float:
    bench = from_items("hand", [Item("1", "s", ("a",), captions, choice(positives, len(captions) - positives))])
    pairs = pairs_of(bench)
    (attacker,) = make_attackers([name], AttackerModels())
    return float(item_gaps(pairs, attacker.margins(pairs))[0])


@pytest.mark.parametrize(
    ("name", "true", "false", "sign"),
    [
        ("length-words", "a dog", "a big dog", 1),
        ("length-words", "an enormous dog", "a big dog", 0),
        ("length-chars", "a dog", "a cow ", 1),
        ("length-tokens", "a dog, a cat", "a dog and a cat", 0),
        ("length-tokens", "a dog a cat", "a dog, a cat", 1),
        ("surface", "a dog on a mat ", "A dog on a mat.", 1),
        ("surface", "A dog on a mat.", "A dog on a mat .", 1 - 2),
        ("surface", "A dog on a mat.", "A cat on a mat.", 0),
        ("negation", "a dog on a mat", "there is no dog on a mat", 1),
        ("negation", "a dog is not here", "a dog isn't here", 0),
        ("frequency", "a dog on a table", "a dachshund on a credenza", 1),
        ("rarity", "a dog on a table", "a dog on a credenza", 1),
        ("similarity", "a dog", "a cat", 0),
    ],
)
def test_sign_of_the_gap(name: str, true: str, false: str, sign: int) -> None:
    assert np.sign(gap(name, (true, false))) == sign
    assert np.sign(gap(name, (false, true))) == -sign


def test_the_hub_of_several_foils_is_found() -> None:
    hub = "a red dog on a mat"
    foils = ("a blue dog on a mat", "a red cat on a mat", "a red dog under a mat")
    assert gap("similarity", (hub, *foils)) > 0


def test_a_paraphrase_far_from_both_is_odd() -> None:
    assert gap("similarity", ("a dog chases a cat", "the cat is being chased by the dog", "a cat chases a dog"), 2) < 0


class ByFirstLetter:
    """A text encoder that sees the first letter only."""

    fingerprint = Fingerprint("test:first", "none", "0")

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[t[0] == "a", t[0] != "a"] for t in texts], dtype=np.float32)


@pytest.mark.parametrize(
    ("likeness", "captions", "margin"),
    [
        (character_similarity, ("abcd", "abcx", "abyy"), 0.125),  # sims 3/4, 2/4 and 2/4
        (by_embedding(ByFirstLetter()), ("apple", "ant", "bee"), 0.5),
    ],
)
def test_similarity_by_hand(likeness: Any, captions: tuple[str, ...], margin: float) -> None:
    """margin(P1, N) = (sim(P1,P2) - sim(N,P2)) / 2 and so on."""
    pairs = pairs_of(from_items("hand", [Item("1", "s", ("a",), captions, choice(2, 1))]))
    assert OddOneOut(likeness).margins(pairs).tolist() == pytest.approx([margin, margin])


def test_each_text_is_scored_once() -> None:
    seen: list[str] = []

    def score(texts: Sequence[str]) -> np.ndarray:
        seen.extend(texts)
        return np.zeros(len(texts), dtype=np.float32)

    attacker = TextAttacker("counting", score)
    attacker.scores(["a", "b", "a"])
    attacker.scores(["b", "c"])
    assert sorted(seen) == ["a", "b", "c"]


def test_an_unknown_attacker_is_named_with_its_neighbour() -> None:
    with pytest.raises(CreperieError, match=r"unknown attacker 'length-word'; did you mean 'length-words'\?"):
        make_attackers(["length-word"], AttackerModels())


@pytest.mark.parametrize("name", ["lm-mean", "lm-sum", "tuned-lm", "plausibility"])
def test_attackers_that_need_a_model_say_so(name: str) -> None:
    missing = "a Vera checkpoint; pass `plausibility=" if name == "plausibility" else "a language model; pass `lm="
    with pytest.raises(CreperieError, match=f"'{name}' needs {missing}"):
        make_attackers([name], AttackerModels())


def test_all_makers_give_attackers() -> None:
    assert {*MAKERS, "ensemble", "image-embedding"} == set(REGISTRY)
    names = [
        n for n, entry in REGISTRY.items() if n in MAKERS and (n == "grammar" or not (entry.model or n == "gruen"))
    ]
    standard = [n for n, entry in REGISTRY.items() if entry.battery in ("quick", "standard")]
    assert [entry.name for entry in planned_battery()] == [*standard, "cues"]
    made = make_attackers(names, AttackerModels())
    assert [a.name for a in made] == names
    assert all(isinstance(a, Attacker) for a in made)
