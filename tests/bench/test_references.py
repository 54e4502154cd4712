"""How items name images, and how keys become paths."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.bench import ImageError, Item, choice, from_items, image_keys, split_reference
from creperie.bench.images import image_reference, safe_path
from creperie.core import DataError

TAILS = ("", "#", "##", "#xywh=1,2,3,4", "#xywh=1,2,3,4#", "#xywh=1,2,3", "\n", "#\n", "#xywh=1,2,3,4\n", ".jpg")
keys = st.builds(lambda head, tail: head + tail, st.text(st.characters(codec="utf-8")), st.sampled_from(TAILS))
numbers = st.floats(-1e6, 1e6).map(lambda v: v + 0.0) | st.integers(-5000, 5000).map(float)


@given(keys, st.none() | st.tuples(numbers, numbers, numbers, numbers))
def test_a_reference_gives_back_its_key_and_box(key: str, box: tuple[float, float, float, float] | None) -> None:
    assert split_reference(image_reference(key, box)) == (key, box)


@pytest.mark.parametrize(
    ("box", "text"),
    [
        ((10, 20, 64, 48), "a.jpg#xywh=10,20,64,48"),
        ((0.5, 0, 1e6, 0.1), "a.jpg#xywh=0.5,0,1000000,0.1"),
        ((-3.0, -0.0, 1e-7, 1e17), "a.jpg#xywh=-3,0,0.0000001,100000000000000000"),
    ],
)
def test_numbers_are_written_short_and_without_exponents(box: tuple[float, float, float, float], text: str) -> None:
    assert image_reference("a.jpg", box) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_box_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(DataError, match="crop box"):
        image_reference("a.jpg", (0, 0, value, 1))


@given(st.lists(st.tuples(keys, st.booleans()), max_size=8))
def test_image_keys_are_those_of_split_reference(pairs: list[tuple[str, bool]]) -> None:
    references = tuple(image_reference(k, (1, 2, 3, 4) if boxed else None) for k, boxed in pairs)
    bench = from_items("b", [Item("0", "s", references, ("c",), ((True,),) * max(1, len(references)))])
    assert image_keys(bench) == list(dict.fromkeys(split_reference(r)[0] for r in references))


def test_image_keys_come_in_order_of_first_use() -> None:
    bench = from_items("b", [Item(str(i), "s", (k,), ("c",), choice(1, 0)) for i, k in enumerate("bab")])
    assert image_keys(bench) == ["b", "a"]


@pytest.mark.parametrize("key", ["../a", "a/../../b", "/etc/passwd", "", ".", "a\0b", "C:/x", "..", "a/.."])
def test_keys_that_lead_out_of_the_folder_are_refused(key: str) -> None:
    with pytest.raises(ImageError) as caught:
        safe_path(Path("images"), key)
    assert caught.value.code == "unsafe-image"


@given(st.text())
def test_a_safe_path_lies_inside(key: str) -> None:
    try:
        path = safe_path(Path("/images"), key)
    except ImageError:
        return
    assert path.is_relative_to("/images")
    assert path != Path("/images")
    assert ".." not in path.parts
