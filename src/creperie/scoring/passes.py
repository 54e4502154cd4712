"""Pass captions, images and pairs through a model, while other threads prepare the next inputs.

Captions are tokenised and sorted by length, and each distinct token sequence is computed once. Images are decoded by
threads. A pair is an image and a caption, or two captions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from creperie.models import Chosen, StagedImages, StagedTexts, Tokens
from creperie.scoring.answer_log import AnswerLog, code_of, gather_first, reason, written
from creperie.scoring.driver import Ahead, Driver, OpenImage
from creperie.scoring.sheet import Fault, PairJob, Sheet

WINDOW = 32_768  #: captions that are tokenised and sorted by length together


def encode_texts(driver: Driver, texts: Sequence[str], sheet: Sheet) -> None:
    """Fill a sheet with the vectors of captions; while the model encodes some of them, the next ones are tokenised."""
    if not isinstance(driver.model, StagedTexts):
        score_texts(driver, texts, sheet, driver.model.encode_texts)
        return
    starts = range(0, len(texts), WINDOW)
    ready = Ahead(driver.tokeniser, lambda start: driver.tokenise(texts[start : start + WINDOW]), starts, limit=2)
    first: dict[bytes, int] = {}  # token ids → the first row that has them, over all windows
    for start in starts:
        with driver.timings.stage("wait for tokens"):
            (tokens,) = ready.take(1)
        batches = _text_batches(driver, tokens, start, sheet, first)
        for rows, prepared, vectors in driver.through(batches, driver.model.forward_texts, "tokens"):
            sheet.finish(rows, driver.unit(vectors), _cut(prepared))
        _copy_repeats(tokens, start, sheet, first)


def _cut(tokens: Sequence[Any]) -> np.ndarray:
    """Return how many tokens of each caption were cut off; 0 for captions that the model does not tokenise."""
    return np.array([getattr(t, "cut", 0) for t in tokens], np.int32)


def score_texts(
    driver: Driver, texts: Sequence[str], sheet: Sheet, forward: Callable[[Sequence[str]], np.ndarray] | None = None
) -> None:
    """Fill a sheet by calling `forward` on batches of captions, without tokenising them. By default, the model scores
    the texts without images.
    """
    # All captions are sorted by length and divided into batches; then those that already have a result are removed from
    # the batches. A resumed run therefore has the same batches as an uninterrupted run.
    forward = forward or driver.model.score_texts
    order = np.argsort([-len(t) for t in texts], kind="stable")
    size = driver.pace.captions
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        rows = rows[~sheet.done[rows]]
        if len(rows):
            driver.timings.counts.update({"tokens batches": 1})
            with driver.timings.stage("forward captions"):
                vectors = driver.forward("captions", forward, [texts[r] for r in rows], len(rows))
            sheet.finish(rows, vectors if vectors.ndim == 1 else driver.unit(vectors))


def _text_batches(
    driver: Driver, tokens: Sequence[Tokens], start: int, sheet: Sheet, first: dict[bytes, int]
) -> Iterator[tuple[np.ndarray, list[Tokens], int]]:
    """Yield batches (rows, tokens, units), longest captions first; units is the size of the batch in padded tokens.
    Captions that repeat the tokens of an earlier row are skipped.

    `tokens[0]` belongs to row `start` of the sheet, and `first` maps tokens to the first row that has them. Batches are
    formed from all captions first, and finished captions are then removed. A resumed run therefore has the same batches
    as an uninterrupted run, and gives bit-identical results.
    """
    distinct = (
        np.array([i for i, t in enumerate(tokens, start) if first.setdefault(t.ids.tobytes(), i) == i], int) - start
    )
    lengths = np.array([len(tokens[i].ids) for i in distinct], int)
    sort = np.lexsort((distinct, -lengths))
    order, lengths = distinct[sort], lengths[sort]
    whole = 0 if driver.model.trims else max(0, *lengths[:1].tolist(), driver.model.fingerprint.context or 0)
    at = 0
    while at < len(order):
        size, units = driver.pace.captions_from(lengths[at:], whole=whole)
        rows = order[at : at + size]
        at += size
        rows = rows[~sheet.done[start + rows]]
        if len(rows):
            yield start + rows, [tokens[i] for i in rows], max(1, units * len(rows) // size)


def _copy_repeats(tokens: Sequence[Tokens], start: int, sheet: Sheet, first: dict[bytes, int]) -> None:
    """Copy the vectors of repeated captions from the first caption with the same tokens, so that ties are exact.
    `tokens[0]` belongs to the row `start`; `first` maps tokens to the first row that has them.
    """
    sources = {i: first[t.ids.tobytes()] for i, t in enumerate(tokens, start) if not sheet.done[i]}
    repeats = {i: source for i, source in sources.items() if source != i and sheet.done[source]}
    if repeats:
        vectors = sheet.vectors[list(repeats.values())]
        sheet.finish(np.array(list(repeats)), vectors, _cut([tokens[r - start] for r in repeats]))


AHEAD_BYTES = 512 << 20  #: limit for prepared images that wait for the model


def prepare_images(driver: Driver, open_image: OpenImage, sheet: Sheet) -> Ahead[tuple[int, Any]]:
    """Start to decode and prepare the images that the sheet lacks, and return the queue for `encode_images`."""
    rows = np.flatnonzero(~sheet.done).tolist()
    ready = Ahead(driver.pool, lambda row: (row, driver.prepared(open_image, row)), rows, 2 * driver.pace.workers)
    first = ready.first()
    each = max(1, getattr(first[1], "nbytes", 1 << 20)) if first else 1
    ready.reach(max(2 * driver.pace.images, min(8192, AHEAD_BYTES // each)))
    return ready


def encode_images(driver: Driver, ready: Ahead[tuple[int, Any]], sheet: Sheet) -> None:
    """Fill a sheet with the vectors of images, taken from the queue `ready` of prepared images."""
    staged = isinstance(driver.model, StagedImages)
    forward = driver.model.forward_images if staged else driver.model.encode_images
    for rows, _, vectors in driver.through(_image_batches(driver, ready, sheet), forward, "images"):
        sheet.finish(rows, driver.unit(vectors))


def _image_batches(
    driver: Driver, ready: Ahead[tuple[int, Any]], sheet: Sheet
) -> Iterator[tuple[np.ndarray, list[Any], int]]:
    at = 0
    while at < len(sheet):
        size = driver.pace.images
        missing = int((~sheet.done[at : at + size]).sum())
        at += size
        taken = driver.awaited(ready, missing)
        sheet.lose([p for _, p in taken if isinstance(p, Fault)])
        good = [(row, p) for row, p in taken if not isinstance(p, Fault)]
        if good:
            yield np.array([row for row, _ in good]), [p for _, p in good], len(good)


TEXT_PAIRS = 512  #: caption pairs scored between two writes to the store
#: images per call of the model, which splits them further to fit its memory
IMAGES = 64


def score_pairs(driver: Driver, open_image: OpenImage, jobs: Sequence[PairJob], sheet: Sheet) -> None:
    """Fill a sheet with the scores of pairs. Each image is processed only once for all its captions. If the model can
    read several images at a time, it does. Other threads decode and prepare the images.
    """
    model, pace = driver.model, driver.pace
    grouped, staged = hasattr(model, "forward_groups"), hasattr(model, "forward_pairs")
    texts = list(dict.fromkeys(t for job in jobs for t in job.texts))
    tokens: dict[str, Any] = dict(zip(texts, driver.tokenise(texts) if grouped or staged else texts, strict=True))
    work = functools.partial(driver.prepared if grouped or staged else driver.opened, open_image)
    limit = 2 * pace.groups if grouped else 4 * pace.workers
    ready, rest = Ahead(driver.pool, work, [job.image for job in jobs], limit), iter(jobs)

    def score(group: Sequence[tuple[Any, PairJob]]) -> list[np.ndarray]:
        captions = [[tokens[t] for t in job.texts] for _, job in group]
        return list(model.forward_groups([image for image, _ in group], captions))

    while both := list(zip(driver.awaited(ready, pace.groups if grouped else 1), rest)):
        for image, job in both:
            if isinstance(image, Fault):
                sheet.lose(image.at(*job.rows))
        good = [(image, job) for image, job in both if not isinstance(image, Fault)]
        if not grouped:
            for image, job in good:
                _pair_batches(driver, image, job.rows, [tokens[t] for t in job.texts], sheet)
            continue
        with driver.timings.stage("forward pairs"):
            parts = driver.parts("groups", score, good, len(good)) if good else []
        for (_, job), values in zip(good, chain(*parts), strict=True):
            sheet.finish(job.rows, np.asarray(values, np.float32), _cut([tokens[t] for t in job.texts]))


def judge_pairs(
    driver: Driver,
    open_image: OpenImage,
    jobs: Sequence[PairJob],
    sheet: Sheet,
    log: AnswerLog,
    keys: Sequence[str],
) -> None:
    """Fill a sheet with the scores of pairs, using a model that answers in words, and log its answers.

    The model is asked about several images at a time. `keys` are the keys of the pairs in the log.
    """
    groups = [jobs[at : at + IMAGES] for at in range(0, len(jobs), IMAGES)]
    unseen: dict[int, Fault] = {}

    def answers_to(group: Sequence[PairJob]) -> list[tuple[int, str, Chosen]]:
        opened = list(driver.pool.map(functools.partial(driver.opened, open_image), [job.image for job in group]))
        both = list(zip(group, opened, strict=True))
        unseen.update({job.image: image for job, image in both if isinstance(image, Fault)})
        seen = [(job, image) for job, image in both if not isinstance(image, Fault)]
        rows = [(int(row), text) for job, _ in seen for row, text in zip(job.rows, job.texts, strict=True)]
        with driver.timings.stage("forward pairs"):
            judged = driver.model.judge([(image, text) for job, image in seen for text in job.texts]) if seen else []
        return [(row, text, one) for (row, text), one in zip(rows, judged, strict=True)]

    gather_first(driver.model, answers_to, groups)
    for group in groups:
        answered = answers_to(group)
        log.add({keys[row]: [written(text, one)] for row, text, one in answered if one.answer or one.parsed})
        for row, _, one in answered:
            if code := code_of(one):
                sheet.give_up([Fault(row, code, reason(one))])
                sheet.advance(1)
            else:
                sheet.finish(np.array([row]), np.array(one.shares[:1], np.float32))
        for job in group:
            if job.image in unseen:
                sheet.lose(unseen[job.image].at(*job.rows))


def _pair_batches(driver: Driver, image: Any, rows: np.ndarray, read: Sequence[Any], sheet: Sheet) -> None:
    model = driver.model
    join = next(getattr(model, n) for n in ("forward_pairs", "score_pairs", "encode_pairs") if hasattr(model, n))
    forward = functools.partial(join, image)
    for i in range(0, len(rows), driver.pace.captions):
        part = read[i : i + driver.pace.captions]
        with driver.timings.stage("forward pairs"):
            values = driver.forward("captions", forward, part, len(part))
        sheet.finish(rows[i : i + driver.pace.captions], values, _cut(part))


def score_text_pairs(driver: Driver, pairs: Sequence[tuple[str, str]], rows: np.ndarray, sheet: Sheet) -> None:
    """Fill a sheet with one number per pair of captions."""
    for start in range(0, len(pairs), TEXT_PAIRS):
        first, second = zip(*pairs[start : start + TEXT_PAIRS], strict=True)
        cut = np.zeros((2, len(first)), np.int32)
        if hasattr(driver.model, "prepare_texts"):
            cut[:] = [[t.cut for t in driver.model.prepare_texts(side)] for side in (first, second)]
        with driver.timings.stage("forward pairs"):
            values = driver.model.score_text_pairs(first, second)
        sheet.finish(rows[start : start + TEXT_PAIRS], np.asarray(values, np.float32), cut.max(axis=0))
