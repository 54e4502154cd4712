"""Items of every shape, for the tests of benchmarks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from creperie.bench import Item

texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["", " ", "a dog ", "é", "e\u0301", "\x00", "\n"]
)
tags = (
    st.text(st.characters(codec="utf-8"), max_size=3) | st.booleans() | st.floats(allow_nan=False) | st.integers(-9, 9)
)


@st.composite
def item_lists(draw: Any, max_size: int = 12) -> list[Item]:
    """Lists of items with unique keys: any text, no to three images, no to four captions, tags of one kind a name."""
    kinds = {"n": st.floats(allow_nan=False), "ok": st.booleans(), "odd name ü": texts}
    items = []
    for i in range(draw(st.integers(0, max_size))):
        images = tuple(draw(st.lists(texts, max_size=3)))
        captions = tuple(draw(st.lists(texts, max_size=4)))
        row = st.tuples(*[st.booleans()] * len(captions))
        match = tuple(draw(row) for _ in range(max(1, len(images))))
        own = {name: draw(kind) for name, kind in kinds.items() if draw(st.booleans())}
        items.append(
            Item(f"{i}{draw(texts)}", draw(st.sampled_from(["swap", "", "ü/ä", "add"])), images, captions, match, own)
        )
    return items


@pytest.fixture(scope="session")
def any_items() -> st.SearchStrategy[list[Item]]:
    return item_lists()
