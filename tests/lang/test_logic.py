"""Truth of spatial captions: entailed, contradicted, compatible, unknown, and what text alone can decide."""

from __future__ import annotations

import pytest

from creperie.lang import decidability, truth
from creperie.lang.relations import relations

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


@pytest.mark.parametrize(
    ("caption", "candidate", "word"),
    [
        ("A dog sleeps on a couch.", "An animal sleeps on a couch.", "entailed"),
        ("A dog sleeps on a couch.", "A dog sleeps on a sofa.", "entailed"),
        ("An animal sleeps.", "A dog sleeps.", "compatible"),
        ("A dog sleeps.", "A cat sleeps.", "contradicted"),
        ("A man waits.", "A woman waits.", "contradicted"),
        ("A man waits.", "A skier waits.", "compatible"),  # a man may be a skier
        ("A boy runs in a field.", "A boy runs in the grass.", "compatible"),
        ("A red car waits.", "A blue car waits.", "contradicted"),
        ("A red car waits.", "A big car waits.", "compatible"),
        ("A red car waits.", "An orange car waits.", "compatible"),
        ("A girl rides a tricycle.", "A girl rides a bike.", "compatible"),
        ("A man sits on a bench.", "A man sits on a wall.", "compatible"),
        ("Two dogs bark.", "Three dogs bark.", "contradicted"),
        ("Two dogs bark.", "Several dogs bark.", "compatible"),
        ("A dog barks.", "Two dogs bark.", "contradicted"),
        ("Three cups, two empty and one full.", "Three cups, two empty and two full.", "contradicted"),
        ("A man sits.", "A man stands.", "contradicted"),
        ("A man holds a cup.", "A man carries a cup.", "compatible"),
        ("A boy chases a dog.", "A boy follows a dog.", "compatible"),
        ("A cat lies on a table.", "A cat lies under a table.", "contradicted"),
        ("A cat lies on a table.", "A cat lies near a table.", "entailed"),
        ("A cat lies near a table.", "A cat lies on a table.", "contradicted"),
        ("A dog barks.", "A dog does not bark.", "contradicted"),
        ("A brown dog barks.", "A dog barks.", "entailed"),
        ("A man walks in a park.", "A man walks near a horse.", "compatible"),
        ("A man hugs a woman in the park.", "A woman hugs a man in the park.", "entailed"),
        ("A dog chases a cat.", "A cat chases a dog.", "contradicted"),
        ("A red cup stands on a blue table.", "A blue cup stands on a red table.", "contradicted"),
        ("A man rides a horse.", "Two planes fly over a city.", "unknown"),
        ("No one sits on the bench.", "No one sits on the desk.", "compatible"),
        ("No dog chases a cat.", "No cat chases a dog.", "compatible"),
        ("Nobody sits on a bench.", "Nobody sits on a bench near a flag.", "entailed"),
        ("A man with no hat rides a red bike.", "A man with no hat rides a blue bike.", "contradicted"),
        ("At most three dogs play.", "At most five dogs play.", "compatible"),
        ("All the dogs are brown.", "All the cats are brown.", "compatible"),
        ("A man follows a dog.", "A man is followed by a dog.", "contradicted"),
        ("A dog chases a cat.", "A cat is chased by a dog.", "entailed"),
        ("A man hugs a woman at the airport.", "At the airport a man hugs a woman.", "entailed"),
    ],
)
def test_captions_that_differ_in_one_place(caption: str, candidate: str, word: str) -> None:
    assert truth(caption, candidate).word == word, truth(caption, candidate)


def test_other_captions_of_the_image_count_as_true() -> None:
    caption, foil = "A dog sleeps.", "A cat sleeps."
    assert truth(caption, foil, ["A cat lies beside a dog."]).word == "compatible"
    assert truth(caption, foil, ["a cat sleeps"]).word == "entailed"
    assert truth("A red car waits.", "A blue car waits.", ["A blue and red car."]).word == "compatible"
    assert truth("A man waits.", "A man waits with a dog.", ["A man and his dog."]).word == "unknown"


@pytest.mark.parametrize(
    ("caption", "candidate", "quoted"),
    [
        ("The cat is on the left of the sofa.", "The cat is on the right of the sofa.", "left of sofa"),
        ("Bread lies on top of the box.", "The box lies on top of the bread.", "on top of box"),
        ("The mug is bigger than the bowl.", "The bowl is bigger than the mug.", "bigger than bowl"),
    ],
)
def test_reasons_quote_the_whole_relation(caption: str, candidate: str, quoted: str) -> None:
    found = truth(caption, candidate)
    assert found.word == "contradicted"
    assert quoted in found.reason
