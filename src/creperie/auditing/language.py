"""The language of a benchmark's captions: attackers that know only English are not run on other languages."""

from __future__ import annotations

import re
from collections import Counter

from creperie.bench import TAG_PREFIX, Benchmark
from creperie.core import MissingExtraError
from creperie.lang import language_of

#: Captions that are looked at, and how certain their language must be.
LOOKED_AT, CERTAIN = 200, 0.99
_ENGLISH = re.compile(r"\b(?:a|an|the|of|and|with|is|are|in|on|at|to)\b", re.IGNORECASE)


def language_of_captions(bench: Benchmark) -> str:
    """Return the language of most captions. It is read from the tag `language` or recognised from the text. If
    neither works, return "en".

    For a script other than Latin, the result is "another script" instead of a language code.
    """
    if f"{TAG_PREFIX}language" in bench.columns:
        tags = [str(value) for value in bench.column(f"{TAG_PREFIX}language").to_pylist() if value]
        return max(sorted({*tags}), key=tags.count) if tags else "en"
    step = max(1, len(bench) // LOOKED_AT)
    captions = bench.column("captions")
    texts = [captions[k].as_py()[0] for k in range(0, len(bench), step) if len(captions[k])]
    named = Counter(_language(text) for text in texts)
    name, most = max(named.items(), key=lambda pair: pair[1], default=("en", 1))
    return name if most > len(texts) / 2 else "en"


def _language(text: str) -> str:
    letters = [c for c in text if c.isalpha()]
    if letters and sum(ord(c) < 0x250 for c in letters) < len(letters) / 2:
        return "another script"
    if not letters or len(_ENGLISH.findall(text)) > 1:
        return "en"
    try:
        name, certainty = language_of(text)
    except MissingExtraError:
        return "en"
    return name if certainty > CERTAIN else "en"
