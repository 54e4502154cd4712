"""What rules vouch for without a corpus and without a judge: each caption was refused before, and gets a foil now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from creperie.making import Made, MakerOptions


def made_of(previewed: Callable[..., Made], parser: str, maker: str, caption: str) -> dict[str, str]:
    """Return the foils of a caption that is its own corpus, with the edits that made them."""
    options = MakerOptions(parser=parser, matched=False, foils=20)
    (outcome,) = previewed(maker, [caption], options).outcomes
    return {c.text: c.edit for c in outcome.accepted}


@pytest.mark.parametrize(
    ("caption", "foil"),
    [
        ("A welder stands on a crate.", "A welder sits on a crate."),
        ("Two nuns are sitting near a fountain.", "Two nuns are standing near a fountain."),
        ("A pony stands beside a gate.", "A pony lies beside a gate."),
        ("A boy pushes a heavy cart.", "A boy pulls a heavy cart."),
        ("A girl throws a ball.", "A girl catches a ball."),
        ("A runner in white enters the stadium.", "A runner in white leaves the stadium."),
        ("Two men walk out of a bank.", "Two men walk into a bank."),
        ("A couple is walking up a hill.", "A couple is walking down a hill."),
        ("A bus in front of a truck.", "A bus behind a truck."),
        ("A kitten lies under a bed.", "A kitten lies on a bed."),
        ("A woman reads outside a cafe.", "A woman reads inside a cafe."),
        ("A goat with a red collar.", "A goat without a collar."),
        ("Small attic room with shelves.", "Small attic room without shelves."),
    ],
)
def test_relations_that_rules_vouch_for(caption: str, foil: str, previewed: Callable[..., Made], parser: str) -> None:
    assert foil in made_of(previewed, parser, "rules:replace", caption)


@pytest.mark.parametrize(
    ("caption", "never"),
    [
        ("A dog catches a ball.", "A dog throws a ball."),
        ("A man sits in an armchair.", "A man stands in an armchair."),
        ("Four people walk in the same direction.", "Four people sit in the same direction."),
        ("A bathroom with black tiles on the floor.", "A bathroom without tiles on the floor."),
        ("A boy with blue eyes.", "A boy without eyes."),
        ("A cat with white paws.", "A cat without paws."),
        ("A girl looks into a pool.", "A girl looks out of a pool."),
    ],
)
def test_relations_that_nobody_vouches_for(
    caption: str, never: str, previewed: Callable[..., Made], parser: str
) -> None:
    assert never not in made_of(previewed, parser, "rules:replace", caption)
