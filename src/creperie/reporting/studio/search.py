"""The language of the search fields: words in any order, "phrases", -without, subset:NAME, model:NAME.

`templates/columns.js` reads the same language in reports; `tests/reporting/test_search.py` checks both against one
table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TERM = re.compile(r'(-?)(?:(subset|model):)?(?:"([^"]*)"?|([^\s"]+))', re.IGNORECASE)
_SIGNS = re.compile(r"-+|-?(?:subset|model):", re.IGNORECASE)  #: signs without a word: still being typed


@dataclass(frozen=True)
class SearchTerm:
    """One condition of a search. A word matches the beginnings of words. A phrase in quotes matches only whole
    words.
    """

    text: str  #: in lower case
    key: str = ""  #: subset or model; empty for captions and ids
    whole: bool = False
    without: bool = False

    @property
    def pattern(self) -> str:
        """The regular expression that finds the condition's text."""
        first, last = (c.lower() != c.upper() or c.isdigit() for c in (self.text[0], self.text[-1]))
        start = r"(?:^|[^\pL\pN])" if first else ""
        return start + re.escape(self.text) + (r"(?:$|[^\pL\pN])" if self.whole and last else "")

    def found(self, texts: pa.Array) -> np.ndarray:
        """Return which of these lower-case texts match."""
        # For speed, a substring test precedes the regular expression.
        hits = np.array(pc.match_substring(texts, self.text).to_numpy(zero_copy_only=False), dtype=bool)
        rows = np.flatnonzero(hits)
        hits[rows] = pc.match_substring_regex(texts.take(pa.array(rows)), self.pattern).to_numpy(zero_copy_only=False)
        return hits


def search_terms(text: str) -> list[SearchTerm]:
    """Return the conditions in a search field. All of them must hold. Signs without a word, such as a lone minus, are
    left out.

    >>> [(t.key, t.text, t.without) for t in search_terms('zebra -"a lion" subset:swap')]
    [('', 'zebra', False), ('', 'a lion', True), ('subset', 'swap', False)]
    """
    terms = []
    for minus, key, phrase, word in _TERM.findall(text):
        words = (phrase.strip() or word).lower()
        if words and not _SIGNS.fullmatch(word):
            terms.append(SearchTerm(words, key.lower(), bool(phrase), bool(minus)))
    return terms


def named_by(terms: Sequence[SearchTerm], names: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of `names` whose name satisfies all conditions. Conditions on subsets or models are never
    satisfied. If every condition begins with a minus, the result is empty.

    >>> named_by(search_terms("CLIP -large"), {"clip-base": "/1", "clip-large": "/2"})
    {'clip-base': '/1'}
    """
    if all(term.without for term in terms):
        return {}
    return {
        name: about
        for name, about in names.items()
        if all(not term.key and (term.text in name.lower()) != term.without for term in terms)
    }
