"""A swap is a foil only where it changes the scene: relations that hold both ways give none."""

from __future__ import annotations

import pytest

import creperie as cr
from creperie.lang import ENTAILED, exchange_truth, parse, truth

SYMMETRIC = (
    "A girl in a blue dress walks next to a girl in a white dress.",
    "A boxer in red gloves boxes against a boxer in blue gloves.",
    "A man in a black hat hugs a man in a white hat.",
    "A woman in a red coat talks to a woman in a green coat.",
    "A boy in a yellow shirt meets a boy in a green shirt.",
    "A man hugs a woman.",
    "A man kisses a woman on the beach.",
    "A boy dances with a girl.",
    "A woman is standing beside a man.",
    "A black dog plays with a white dog in the park.",
    "A boy in a red shirt wrestles a boy in a blue shirt.",
    "A red car is parked next to a blue car.",
    "A brown horse stands by a white horse.",
    "A black dog and a white dog run.",
    "A brown dog, a spotted dog and a black dog wait.",
    "A man in a gray suit is talking with a man in a black suit.",
    "A girl is sitting beside a boy.",
    "A woman embraces a man.",
    "A player in white fights a player in black.",
    "A small dog wrestles with a big dog.",
    "A man in a green jacket stands near a man in a yellow jacket.",
    "A woman meets a man at a cafe.",
    "A white sheep stands close to a black sheep.",
    "A boy races against a girl.",
    "A cat sits alongside a dog.",
    "A boy in blue shorts is running beside a boy in red shorts.",
    "A lady in a white hat chats with a lady in a black hat.",
    "A red bus is near a blue bus.",
    "A girl faces a boy.",
    "A man in a blue cap plays chess with a man in a red cap.",
    "A large dog plays in the sand with a small dog.",
)
DIRECTED = (
    ("A dog chases a cat.", "A cat chases a dog."),
    ("A man in a blue hat looks at a man in a red hat.", "A man in a red hat looks at a man in a blue hat."),
    ("A red chair is next to a brown couch.", "A brown chair is next to a red couch."),
    ("A woman in a red coat photographs a woman in a green coat.", None),
)


@pytest.mark.parametrize("caption", SYMMETRIC)
def test_a_relation_that_holds_both_ways_gives_no_foil(caption: str) -> None:
    made = cr.make("rules:swap", [caption], lm="none", matched=False, foils=8)
    assert [c for item in made.items for c in item.negatives] == []


@pytest.mark.parametrize(("caption", "foil"), DIRECTED)
def test_a_relation_with_a_direction_changes_the_scene(caption: str, foil: str | None) -> None:
    (doc,) = parse([caption])
    adjectives = [t for t in doc if t.dep_ == "amod"]
    one, other = adjectives if adjectives else [t for t in doc if t.tag_ == "NN"]
    assert exchange_truth(doc, one, other, "attributes" if adjectives else "names").word != ENTAILED
    if foil:
        assert truth(caption, foil).word != ENTAILED
        made = cr.make("rules:swap", [caption], lm="none", matched=False, foils=8)
        assert foil in [c for item in made.items for c in item.negatives]
