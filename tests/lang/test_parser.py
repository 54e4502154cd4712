"""The parser with its remembered attributes is spaCy's own parser, only faster."""

from __future__ import annotations

from typing import Any

import pytest

spacy = pytest.importorskip("spacy")

from creperie.lang.parser import RULER, UNUSED, default_parser, load_parser  # noqa: E402

TEXTS = [
    "A man in a red coat feeds two geese by the pond.",
    "There are three cups on that table, and that is all.",
    "I'm gonna ride it, let's go, y'all ain't late.",
    "  Two  spaces, a tab\tand a line\nbreak ",
    "Nothin' but blue sky over the boats which they painted themselves.",
    "He gave her what she wanted; the dog that barked did not.",
    "",
    "Whose bike leans against the wall that was built by hers and mine?",
]


def seen(doc: Any) -> list[tuple[Any, ...]]:
    return [(t.text, t.tag_, t.pos_, str(t.morph), t.dep_, t.head.i, t.lemma_) for t in doc]


def test_remembered_attributes_are_those_of_spacys_own_ruler() -> None:
    """Twice over, so that the second time everything is looked up."""
    own = spacy.load(default_parser(), exclude=list(UNUSED))
    if RULER not in own.pipe_names:
        pytest.skip(f"{default_parser()} has no {RULER}")
    fast = load_parser()
    assert fast.get_pipe(RULER).__name__ == "look_up"
    for text in TEXTS + TEXTS[::-1]:
        assert seen(fast(text)) == seen(own(text))
