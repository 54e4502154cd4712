"""Recall of the grammar makers: textbook sentences of giving in both orders, and VALSE's actant swaps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from creperie.making import Captions, Made, MakerOptions, SourceCaption, build_maker
from creperie.making.run import preview
from creperie.world import stream_items

#: who and the verb, the recipient, the thing, the preposition
GIVING = [
    ("A teacher gives", "the pupil", "a pencil", "to"),
    ("The waiter brings", "a guest", "two bottles", "to"),
    ("A girl hands", "her brother", "a towel", "to"),
    ("The clerk sold", "an old man", "a ticket", "to"),
    ("A woman is feeding", "the goat", "a carrot", "to"),
    ("A boy throws", "the dog", "a bone", "to"),
    ("The nurse showed", "the doctor", "a chart", "to"),
    ("A farmer offers", "a horse", "an apple", "to"),
    ("The guide lends", "the tourists", "a map", "to"),
    ("A man passes", "his wife", "the salt", "to"),
    ("The coach tosses", "a player", "a ball", "to"),
    ("A grandmother reads", "the children", "a story", "to"),
    ("The soldier sends", "his mother", "a letter", "to"),
    ("A student told", "his friend", "a joke", "to"),
    ("The judge awards", "the winner", "a medal", "to"),
    ("A chef serves", "the customers", "a soup", "to"),
    ("The monkey hands", "a zebra", "a banana", "to"),
    ("A robot gives", "a rabbit", "a red box", "to"),
    ("The boss paid", "a worker", "ten dollars", "to"),
    ("A boy kicks", "his sister", "the ball", "to"),
    ("The woman baked", "her son", "a cake", "for"),
    ("A man bought", "the girl", "a balloon", "for"),
    ("The cook made", "a child", "a pancake", "for"),
    ("A father built", "his daughter", "a swing", "for"),
    ("The girl poured", "her aunt", "a coffee", "for"),
    ("A painter drew", "the boy", "a horse", "for"),
    ("The lady knits", "a baby", "a cap", "for"),
    ("A maid cooks", "the family", "a meal", "for"),
    ("The dog found", "the hunter", "a bird", "for"),
    ("A woman orders", "her husband", "a pizza", "for"),
]


def test_textbook_sentences_of_giving(previewed: Callable[..., Made]) -> None:
    """Sixty sentences: each is found, and said in the other order word for word."""
    double = [f"{who} {person} {thing}." for who, person, thing, _ in GIVING]
    linked = [f"{who} {thing} {link} {person}." for who, person, thing, link in GIVING]
    made = previewed("grammar:dative", [*double, *linked])
    others = dict(zip([*double, *linked], [*linked, *double]))
    wrong = []
    for text, outcome in zip(others, made.outcomes, strict=True):
        found = [c.text for c in outcome.accepted if c.role == "positive" and not c.tags["simplified"]]
        if found != [others[text]]:
            wrong.append((text, found or outcome.skipped))
    assert len(wrong) <= 3, wrong


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        (
            "A robot hands a mushroom to a rabbit, but there is no bear.",
            "A robot hands a rabbit a mushroom, but there is no bear.",
        ),
        ("A cat gives the ball to a bear, and a dog runs.", "A cat gives a bear the ball, and a dog runs."),
        ("Here, the red cat passes the rabbit the mushroom.", "Here, the red cat passes the mushroom to the rabbit."),
        ("The robot handing a bear a ball, but no box.", "The robot handing a ball to a bear, but no box."),
        ("A woman hands a cup to a man, but he does not drink.", None),  # he would be somebody else
        ("A man hands a plate to a boy and smiles.", None),
    ],
)
def test_giving_with_something_told_besides(caption: str, other: str | None, previewed: Callable[..., Made]) -> None:
    (outcome,) = previewed("grammar:dative", [caption]).outcomes
    found = [c.text for c in outcome.accepted if c.role == "positive" and not c.tags["simplified"]]
    assert found == ([other] if other else [])


def test_the_worlds_own_sentences_of_giving(previewed: Callable[..., Made]) -> None:
    stream = stream_items("dative", "twins", "test", 0)
    said = dict.fromkeys(text for made in islice(stream, 120) for text in made.captions)
    active = [t for t in said if re.search(r"\b(hand|giv|pass)(s|es|ing)\b", t) and " by " not in t]
    assert len(active) > 50
    made = previewed("grammar:dative", active)
    refused = [(text, o.skipped) for text, o in zip(active, made.outcomes, strict=True) if not o.accepted]
    assert len(refused) <= len(active) // 10, refused  # what the parser misreads


@pytest.mark.slow
def test_valses_actant_swaps(shared_data: Path, parser: str, dictionary: None) -> None:
    """At least 600 of the captions that people found true; the paper that used them has 683 items."""
    path = shared_data / "valse" / "actant-swap.json"
    rows = {k: v for k, v in json.loads(path.read_text()).items() if v["mturk"]["caption"] >= 2}
    captions = Captions("valse", tuple(SourceCaption(k, v["caption"]) for k, v in rows.items()))
    made = preview(build_maker("grammar:passive", MakerOptions(parser=parser), captions), captions)
    assert made.report["subsets"]["passive"] >= 600


@pytest.mark.parametrize(
    ("caption", "passive"),
    [
        ("An old man reads a book on a bench.", "A book is read by an old man on a bench."),
        ("A boy rides a surfboard over a wave.", "A surfboard is ridden by a boy over a wave."),
        ("Two dogs play tug of war.", "Tug of war is played by two dogs."),
        ("Two athletes are competing on a field.", None),  # a place is not acted upon
    ],
)
def test_what_stands_after_the_object(caption: str, passive: str | None, previewed: Callable[..., Made]) -> None:
    made = previewed("grammar:passive", [caption])
    found = [c.text for o in made.outcomes for c in o.accepted if c.role == "positive" and c.kind == "passive"]
    assert passive in found if passive else not found
