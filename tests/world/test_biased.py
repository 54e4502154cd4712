"""Each biased kind has the give-away that it is there to show."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice

import pytest

from creperie.world import BIASED
from creperie.world.biased import biased_items
from creperie.world.parse import parse


def texts(kind: str, count: int = 80) -> list[tuple[str, str]]:
    return [(m.captions[0], m.captions[1]) for m in islice(biased_items(kind, "test", 8), count)]


def words(text: str) -> list[str]:
    return re.findall(r"\w+|,", text)


@pytest.mark.parametrize("kind", ["negate_there", "negate_relation"])
def test_negation(kind: str) -> None:
    for true, false in texts(kind):
        assert sum(w in ("no", "not") for w in words(false.lower())) > sum(
            w in ("no", "not") for w in words(true.lower())
        )


@pytest.mark.parametrize("kind", [k for k in BIASED if k.startswith("shuffle")])
def test_shuffles_keep_the_words(kind: str) -> None:
    for true, false in texts(kind):
        assert Counter(words(true)) == Counter(words(false))
        assert true != false


def test_shuffled_trigrams_stay_together() -> None:
    for true, false in texts("shuffle_trigrams"):
        groups = Counter(tuple(words(true)[k : k + 3]) for k in range(0, len(words(true)), 3))
        assert sum(tuple(words(false)[k : k + 3]) in groups for k in range(len(words(false)))) >= 1


def test_longer_foils_are_longer() -> None:
    for true, false in texts("add_obj_longer"):
        assert len(false.split()) - len(true.split()) >= 3


def test_rare_nouns_are_from_outside() -> None:
    for true, false in texts("replace_rare"):
        assert parse(true) is not None
        assert parse(false) is None
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", false)
        assert len(Counter(words(false)) - Counter(words(true))) in (1, 2)  # the noun, and its article


def test_ungrammatical_foils_are_no_sentences() -> None:
    assert all(parse(false) is None for _, false in texts("replace_ungrammatical"))


def test_implausible_foils_are_sentences_with_exchanged_things() -> None:
    for true, false in texts("swap_implausible"):
        assert parse(false) is not None
        assert Counter(words(true.lower())) == Counter(words(false.lower()))


def test_tidy_foils_and_untidy_captions() -> None:
    pairs = texts("replace_restyled")
    assert all(false[0].isupper() and false.endswith(".") for _, false in pairs)
    assert sum(true.endswith(".") for true, _ in pairs) < 0.6 * len(pairs)
    assert any(true.endswith(" ") for true, _ in pairs)
