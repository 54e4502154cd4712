"""The answer parser: a table of answers as models give them, and what must never be guessed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.models import CHOSE_OPTION, UNPARSABLE, parse_choice, reply_of
from creperie.models.answers import NONE, SEVERAL, parse_yes_no

THREE = ("A cat chases a dog.", "A dog chases a cat.", "The cat is chased by a dog")
TWO = ("a man holds a book", "a book holds a man ")
TABLE = tomllib.loads((Path(__file__).parent / "answer_styles.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("answer", "expected"), TABLE["odd"])
def test_which_does_not_fit(answer: str, expected: int | str) -> None:
    check(answer, THREE, "odd", expected)


@pytest.mark.parametrize(("answer", "expected"), TABLE["match"])
def test_which_fits(answer: str, expected: int | str) -> None:
    check(answer, TWO, "match", expected)


def check(answer: str, options: tuple[str, ...], asks: str, expected: int | str) -> None:
    read = parse_choice(answer, options, asks=asks)
    if isinstance(expected, int):
        assert (read.kind, read.option) == (CHOSE_OPTION, expected), read
    else:
        assert (read.kind, read.option) == (expected, None), read
    assert bool(read.why) == (read.kind == UNPARSABLE)


def test_equal_captions_cannot_be_told_by_quoting() -> None:
    assert parse_choice("a cat", ["a cat", "a cat"]).kind == UNPARSABLE
    assert parse_choice("(2) a cat", ["a cat", "a cat"]).option == 1


def test_a_caption_inside_another_is_not_quoted_with_it() -> None:
    assert parse_choice("a cat on a mat", ["a cat", "a cat on a mat"]).option == 1


@pytest.mark.parametrize(("answer", "expected"), TABLE["yes_no"])
def test_yes_and_no(answer: str, expected: str) -> None:
    assert parse_yes_no(answer) is {"yes": True, "no": False}.get(expected)


@pytest.mark.parametrize("style", TABLE["style"], ids=lambda style: style["text"][:40])
def test_styles_of_today(style: dict[str, Any]) -> None:
    text, kind = style["text"], style.get("choice", UNPARSABLE)
    read = parse_choice(text, ("a cat on a mat", "a dog on a mat"))
    assert (read.option if isinstance(kind, int) else read.kind) == kind, read
    assert parse_yes_no(text) is style.get("yes")
    assert style.get("thought", "") in reply_of(text).thought
    assert reply_of(text).cut == (kind == "cut off")


@given(st.text(max_size=80), st.sampled_from(["odd", "match"]))
def test_any_text_is_read_or_refused(text: str, asks: str) -> None:
    read = parse_choice(text, THREE, asks=asks)
    assert read.kind in (CHOSE_OPTION, NONE, SEVERAL, UNPARSABLE)
    assert read.option is None or 0 <= read.option < 3


@given(st.permutations(range(3)), st.sampled_from(["({})", "option {}", "{}.", "Final answer: {}", "#{}"]))
def test_a_label_is_read_whatever_stands_behind_it(order: list[int], form: str) -> None:
    options = [THREE[i] for i in order]
    assert [parse_choice(form.format(n + 1), options).option for n in range(3)] == [0, 1, 2]
