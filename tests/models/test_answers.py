"""The answer parser: a table of answers as models give them, and what must never be guessed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.models.answers import CHOSE_OPTION, NONE, SEVERAL, UNPARSABLE, parse_choice, parse_yes_no
from creperie.models.thoughts import reply_of

THREE = ("A cat chases a dog.", "A dog chases a cat.", "The cat is chased by a dog")
TWO = ("a man holds a book", "a book holds a man ")

#: answer, the option it names (None: none at all), to the question which of three does not fit
ODD: list[tuple[str, int | str]] = [
    ("(1)", 0),
    ("(3)", 2),
    ("2", 1),
    ("2.", 1),
    (" (2) ", 1),
    ("[2]", 1),
    ("#3", 2),
    ("B", 1),
    ("b)", 1),
    ("(C)", 2),
    ("C.", 2),
    ("**(2)**", 1),
    ("`2`", 1),
    ("Option 2", 1),
    ("option (2)", 1),
    ("Caption #1", 0),
    ("caption two", 1),
    ("Statement three.", 2),
    ("Number 3", 2),
    ("No. 3", 2),
    ("one", 0),
    ("The first caption.", 0),
    ("The second one", 1),
    ("2nd", 1),
    ("the last caption", 2),
    ("third", 2),
    ("Answer: (2)", 1),
    ("The answer is B.", 1),
    ("The correct answer is option 3.", 2),
    ("Let me look. (1) fits. (3) fits. Final answer: (2)", 1),
    ("(2) A dog chases a cat.", 1),
    ("2. A dog chases a cat.", 1),
    ("2) a dog chases a cat", 1),
    ("A dog chases a cat.", 1),
    ('"The cat is chased by a dog"', 2),
    ("“A cat chases a dog”", 0),
    ("Caption (1) does not match the image.", 0),
    ("(2) is wrong, not (1).", 1),
    ("I would say option 2 rather than option 3.", 1),
    ("none", NONE),
    ("None.", NONE),
    ("None of the above", NONE),
    ("Neither", NONE),
    ("No caption is wrong", NONE),
    ("All of the captions match the image.", NONE),
    ("both", SEVERAL),
    ("All of them", SEVERAL),
    ("None of the captions match the image.", SEVERAL),
    # what must not be guessed
    ("", UNPARSABLE),
    ("   \n", UNPARSABLE),
    ("(1) or (2)", UNPARSABLE),
    ("(1) and (3)", UNPARSABLE),
    ("the first and second", UNPARSABLE),
    ("1, 2", UNPARSABLE),
    ("(4)", UNPARSABLE),
    ("D", UNPARSABLE),
    ("option 9", UNPARSABLE),
    ("not (1)", UNPARSABLE),
    ("It isn't caption 2", UNPARSABLE),
    ("A dog is running", UNPARSABLE),
    ("2 dogs are in the picture", UNPARSABLE),
    ("There are two cats.", UNPARSABLE),
    ("Yes", UNPARSABLE),
    ("1: A dog chases a cat.", UNPARSABLE),
    ("A cat chases a dog. A dog chases a cat.", UNPARSABLE),
    ("(2) matches the image.", UNPARSABLE),
    ("(1) is wrong. No, (1) matches.", UNPARSABLE),
    ("I'm sorry, I cannot see the image.", UNPARSABLE),
    ("As an AI I am unable to choose (1).", UNPARSABLE),
    ("12", UNPARSABLE),
    ("🙂", UNPARSABLE),
    ("the former", UNPARSABLE),
    ("A", 0),
]
#: the same for the question which of two fits
MATCH: list[tuple[str, int | str]] = [
    ("(1)", 0),
    ("a", 0),
    ("The former.", 0),
    ("the latter", 1),
    ("A man holds a book.", 0),
    ("A book holds a man", 1),
    ("Caption 1 matches the picture.", 0),
    ("(1) fits; (2) does not match.", 0),
    ("neither", NONE),
    ("Both captions fit.", SEVERAL),
    ("Either", SEVERAL),
    ("(2) is incorrect.", UNPARSABLE),
    ("A man", UNPARSABLE),
    ("(1) is right, but (2) is right too", UNPARSABLE),
]


@pytest.mark.parametrize(("answer", "expected"), ODD)
def test_which_does_not_fit(answer: str, expected: int | str) -> None:
    check(answer, THREE, "odd", expected)


@pytest.mark.parametrize(("answer", "expected"), MATCH)
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


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("yes", True),
        ("Yes.", True),
        ("**NO**", False),
        ("No, the cat is black.", False),
        ("True", True),
        ("Incorrect.", False),
        ("yes and no", None),
        ("not correct", None),
        ("", None),
        ("the cat sits", None),
        ("I know", None),
    ],
)
def test_yes_and_no(answer: str, expected: bool | None) -> None:
    assert parse_yes_no(answer) is expected


STYLES = tomllib.loads((Path(__file__).parent / "answer_styles.toml").read_text(encoding="utf-8"))["style"]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style["text"][:40])
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
