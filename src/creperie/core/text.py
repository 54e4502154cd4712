"""Numbers and names as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage, without the sign; a dash where there is no number.

    >>> percent(0.4567), percent(None), percent(float("nan")), percent(1.0, 0)
    ('45.7', '–', '–', '100')
    """
    if value is None or math.isnan(value):
        return "–"
    return f"{100 * value:.{digits}f}"


def listing(names: Iterable[object], most: int = 3) -> str:
    """The first names, and how many more there are.

    >>> listing(["a", "b"]), listing("abcdef")
    ('a, b', 'a, b, c and 3 more')
    """
    shown = [str(name) for name in names]
    more = len(shown) - most
    return ", ".join(shown) if more <= 0 else f"{', '.join(shown[:most])} and {more:,} more"


def split_names(values: str | Iterable[str]) -> list[str]:
    """Names from an option that is given several times, or once with commas. A bare string is one option.

    >>> split_names(["length-words, surface", "learned"]), split_names("length-words")
    (['length-words', 'surface', 'learned'], ['length-words'])
    """
    options = [values] if isinstance(values, str) else values
    return [name.strip() for option in options for name in option.split(",") if name.strip()]
