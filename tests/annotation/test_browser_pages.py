"""Pages in a real browser that need no second database: right to left, and the page of an account."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.slow

ALPHABET = str.maketrans(dict(zip("abcdefghijklmnopqrstuvwxyz", "ابتثجحخدذرزسشصضطظعغفقكلمنه", strict=True)))


def mirrored(text: str) -> str:
    """A text in Arabic letters and as long as it was, for a language that nobody has translated yet."""
    return "".join(part if n % 2 else part.lower().translate(ALPHABET) for n, part in enumerate(_KEPT.split(text)))


_KEPT = re.compile(r"(%\(\w+\)s)")
