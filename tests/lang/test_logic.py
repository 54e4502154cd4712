"""Truth of spatial captions: entailed, contradicted, compatible, unknown, and what text alone can decide."""

from __future__ import annotations

import pytest

from creperie.lang import decidability, truth
from creperie.lang.logic import relations

CAT = "The cat is {} the bed."


@pytest.mark.parametrize(
    ("said", "asked", "word"),
    [
        ("on", "on top of", "entailed"),
        ("on", "touching", "entailed"),
        ("touching", "on", "compatible"),
        ("on", "under", "contradicted"),
        ("touching", "far from", "contradicted"),  # touching is near, and near is not far
        ("in", "outside", "contradicted"),
        ("near", "above", "compatible"),
        ("among", "near", "unknown"),
    ],
)
def test_relations_of_the_same_two_things(said: str, asked: str, word: str) -> None:
    assert truth(CAT.format(said), CAT.format(asked)).word == word


@pytest.mark.parametrize("relation", sorted(relations()))
def test_no_relation_excludes_what_it_implies(relation: str) -> None:
    """The data is consistent: a caption entails itself and never contradicts itself or its own converse."""
    caption = f"The cat {relation} the bed."
    assert truth(caption, caption).word == "entailed"
    converse = relations()[relation].get("converse")
    if converse:
        assert truth(caption, f"The bed {converse} the cat.").word == "entailed"


def test_the_example_that_needs_the_image() -> None:
    """VISLA, guideline A.1: triplets must be decidable from the text."""
    first, second = "The suitcase is in front of the refrigerator.", "The refrigerator is close to the suitcase."
    assert decidability([first, second], ["The suitcase is behind the refrigerator."])[0] == "not decidable"
    proven = "The refrigerator is behind the suitcase."
    assert decidability([first, proven], ["The suitcase is behind the refrigerator."]) == ("decidable", "")
    assert decidability([first, proven], ["A man rides a horse."])[0] == "unknown"


def test_a_denial_contradicts() -> None:
    assert truth("The cow is adjacent to the bus.", "The cow is not adjacent to the bus.").word == "contradicted"
