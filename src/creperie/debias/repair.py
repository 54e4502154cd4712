"""Repair before removing: give all captions of an item the same surface style.

A final period, a capital, a stray blank tell true from false captions in published sets. Those cues can be mended
instead of thrown away with their items: every caption of an item gets one style, whoever wrote it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa

from creperie.bench import Benchmark
from creperie.errors import UsageError

_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "`": "'"})
_BLANKS = re.compile(r"\s+")
_BEFORE_MARK = re.compile(r"\s+([,.;:!?])")
_CONTRACTION = re.compile(r"\b(\w+)\s+(n't|'s|'re|'ll|'ve|'d|'m)\b")
_END_MARKS = ".!?;:,"


@dataclass(frozen=True)
class Style:
    """How repaired captions look."""

    period: bool = True  #: one final period (True) or no final mark (False)
    capital: bool = True  #: the first letter: a capital (True) or as lower-case as it can be (False)


PLAIN = Style()


def restyle(caption: str, style: Style = PLAIN) -> str:
    """One caption in a style: blanks, quotes, tokenisation blanks, final mark, first letter. Words stay.

    >>> restyle("a man with a hat ,  walking his dog ")
    'A man with a hat, walking his dog.'
    >>> restyle("They do n't look at it!", Style(period=False, capital=False))
    "they don't look at it"
    >>> restyle("TV on a stand", Style(capital=False))
    'TV on a stand.'
    """
    text = _BLANKS.sub(" ", caption.translate(_QUOTES)).strip()
    text = _BEFORE_MARK.sub(r"\1", text)
    text = _CONTRACTION.sub(r"\1\2", text)
    text = text.rstrip(_END_MARKS + " ")
    if not text:
        return caption
    if style.capital:
        text = text[0].upper() + text[1:]
    elif len(text) < 2 or not text[1].isupper():
        text = text[0].lower() + text[1:]
    return text + "." if style.period else text


def repair(bench: Benchmark, style: Style = PLAIN) -> Benchmark:
    """The benchmark with every caption in one style. Items whose true and false captions would become equal stay."""
    offsets, captions = bench.ragged("captions")
    coded = captions.dictionary_encode()
    styled = [restyle(text, style) for text in coded.dictionary.to_pylist()]
    changed = sum(a != b for a, b in zip(coded.dictionary.to_pylist(), styled))
    flat = pa.array(styled, pa.string()).take(coded.indices) if styled else captions
    column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)
    index = bench.table.schema.get_field_index("captions")
    if index < 0:
        raise UsageError("has no captions", where=bench.name)
    table = bench.table.set_column(index, bench.table.schema.field(index), column)
    repaired = bench.with_table(table, "repair", period=style.period, capital=style.capital, captions_changed=changed)
    return replace(repaired, layout={})
