"""Captions through a model: tokenised beside it, sorted by length, each distinct sequence of tokens once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from creperie.core import Advance
from creperie.models import StagedTexts, Tokens
from creperie.scoring.driver import Ahead, Driver, Keep
from creperie.scoring.sheet import Sheet

WINDOW = 32_768  #: captions that are sorted by length together


def encode_texts(driver: Driver, texts: Sequence[str], sheet: Sheet, keep: Keep, advance: Advance) -> None:
    """Fill a sheet with the vectors of captions."""
    if not isinstance(driver.model, StagedTexts):
        _plain(driver, texts, sheet, keep, advance, driver.model.encode_texts)
        return
    starts = [s for s in range(0, len(texts), WINDOW) if not sheet.done[s : s + WINDOW].all()]
    ahead = Ahead(driver.tokeniser, lambda s: driver.tokenise(texts[s : s + WINDOW]), starts, limit=2)
    for start in starts:
        with driver.timings.stage("wait for tokens"):
            (tokens,) = ahead.take(1)
        for batch in driver.through(_text_batches(driver, tokens, start, sheet), driver.model.forward_texts, "tokens"):
            rows, prepared, vectors = batch
            keep(sheet.put(rows, driver.unit(vectors), np.array([t.cut for t in prepared], np.int32)))
            advance(len(rows))
        advance(_copy_repeats(driver, tokens, start, sheet, keep))


def score_texts(driver: Driver, texts: Sequence[str], sheet: Sheet, keep: Keep, advance: Advance) -> None:
    """Fill a sheet with one number per caption, from a blind scorer."""
    _plain(driver, texts, sheet, keep, advance, driver.model.score_texts)


def _plain(
    driver: Driver,
    texts: Sequence[str],
    sheet: Sheet,
    keep: Keep,
    advance: Advance,
    forward: Callable[[Sequence[str]], np.ndarray],
) -> None:
    """Captions through a model without stages: sorted by length, in batches that do not depend on what is done."""
    order = np.argsort([-len(t) for t in texts], kind="stable")
    size = driver.pace.captions
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        rows = rows[~sheet.done[rows]]
        if len(rows):
            driver.timings.counts.update({"tokens batches": 1})
            with driver.timings.stage("forward captions"):
                vectors = driver.forward("captions", forward, [texts[r] for r in rows], len(rows))
            keep(sheet.put(rows, vectors if vectors.ndim == 1 else driver.unit(vectors)))
            advance(len(rows))


def _text_batches(
    driver: Driver, tokens: Sequence[Tokens], start: int, sheet: Sheet
) -> Iterator[tuple[np.ndarray, list[Tokens], int]]:
    """Batches of rows that the model reads differently, longest first.

    Batches are laid out over all captions and only then reduced to what is missing: after an interruption the
    same captions meet in the same batches, so that the resumed run ends with the same bits.
    """
    distinct = np.array(list({t.ids.tobytes(): i for i, t in reversed(list(enumerate(tokens)))}.values()))
    lengths = np.array([len(tokens[i].ids) for i in distinct])
    if getattr(driver.model, "shares", False):  # captions that begin alike, together; padding costs nothing
        sort = np.array(sorted(range(len(distinct)), key=lambda i: tokens[int(distinct[i])].ids.tolist()))
        cut = driver.pace.captions_in
    else:
        sort = np.lexsort((distinct, -lengths))
        cut = functools.partial(driver.pace.captions_from, whole=0 if driver.model.trims else _context(driver, lengths))
    order, lengths = distinct[sort], lengths[sort]
    at = 0
    while at < len(order):
        size, units = cut(lengths[at:])
        rows = order[at : at + size]
        at += size
        rows = rows[~sheet.done[start + rows]]
        if len(rows):
            yield start + rows, [tokens[i] for i in rows], max(1, units * len(rows) // size)


def _context(driver: Driver, lengths: np.ndarray) -> int:
    return max(int(lengths.max()), driver.model.fingerprint.context or 0)


def _copy_repeats(driver: Driver, tokens: Sequence[Tokens], start: int, sheet: Sheet, keep: Keep) -> int:
    """Captions that the model reads as the same tokens get the same vector, to the bit: a tie stays a tie."""
    first: dict[bytes, int] = {}
    repeats, sources = [], []
    for i, t in enumerate(tokens):
        source = first.setdefault(t.ids.tobytes(), i)
        if source != i and not sheet.done[start + i] and sheet.done[start + source]:
            repeats.append(start + i)
            sources.append(start + source)
    if repeats:
        rows = np.array(repeats)
        keep(sheet.put(rows, sheet.vectors[sources], np.array([tokens[r - start].cut for r in repeats], np.int32)))
    return len(repeats)
