"""Who does what to whom: two people change roles in what one of them does to the other."""

from __future__ import annotations

import pytest

import creperie as cr

EXCHANGED = [
    ("A plumber scares a neighbour with a snake.", "A neighbour scares a plumber with a snake."),
    ("A barber trims a sailor's beard.", "A sailor trims a barber's beard."),
    ("Rafael Pinto gives his helmet to a mechanic.", "A mechanic gives his helmet to Rafael Pinto."),
    (
        "Ambassador Yuki Tanaka presents a scroll to minister Paul Ndiaye.",
        "Minister Paul Ndiaye presents a scroll to Ambassador Yuki Tanaka.",
    ),
    ("Keeper Noor Jansen stops a shot taken by Carla Ruiz.", "Carla Ruiz stops a shot taken by keeper Noor Jansen."),
]
KEPT = [
    "A clerk weds a singer in Reno.",  # it holds both ways
    "A player pushes an opponent.",  # whose opponent is a player
    "A referee cautions a striker.",  # nobody would expect the reverse
    "A woman holds a baby in front of a church.",
    "Pupils from Leeds present a cheque to Sue Marsh of the air ambulance.",
    "The mayor greets the winner of the race.",
]


@pytest.fixture(scope="module")
def swaps() -> set[tuple[str, str]]:
    captions = [caption for caption, _ in EXCHANGED] + KEPT
    made = cr.make("rules:swap", captions, lm="none", matched=False, foils=8)
    kinds = ("swap-object", "swap-phrase")
    return {(row["source"], row["text"]) for row in made.rows if row["accepted"] and row["kind"] in kinds}


@pytest.mark.parametrize("pair", EXCHANGED)
def test_two_people_exchange_roles(swaps: set[tuple[str, str]], pair: tuple[str, str]) -> None:
    assert pair in swaps


@pytest.mark.parametrize("caption", KEPT[:-1])
def test_roles_that_nobody_would_exchange_are_kept(swaps: set[tuple[str, str]], caption: str) -> None:
    assert caption not in {source for source, _ in swaps}


def test_no_winner_of_a_race_becomes_its_mayor(swaps: set[tuple[str, str]]) -> None:
    assert (KEPT[-1], "The winner greets the mayor of the race.") not in swaps
