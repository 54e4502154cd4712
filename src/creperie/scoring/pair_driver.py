"""Pairs of an image and a caption, or of two captions, through a model that joins them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from creperie.core import Advance, ModelError
from creperie.models import Tokens
from creperie.scoring.batch_size import free_memory, out_of_memory
from creperie.scoring.driver import Ahead, Driver, Keep, OpenImage
from creperie.scoring.sheet import Fault, PairJob, Sheet

TEXT_PAIRS = 512  #: pairs of captions that are compared between two keepings
#: images that are handed to the model at once; it cuts them further to fit its memory
IMAGES = 64


def score_pairs(
    driver: Driver, open_image: OpenImage, jobs: Sequence[PairJob], sheet: Sheet, keep: Keep, advance: Advance
) -> None:
    """Fill a sheet of pairs, image by image; each image is seen once for all its captions."""
    if hasattr(driver.model, "forward_groups"):
        _grouped_pairs(driver, open_image, jobs, sheet, keep, advance)
        return
    staged = hasattr(driver.model, "forward_pairs")
    tokens = _job_tokens(driver, jobs) if staged else {}
    work = functools.partial(driver.prepared if staged else driver.opened, open_image)
    ready = Ahead(driver.pool, work, [job.image for job in jobs], limit=4 * driver.pace.workers)
    for job in jobs:
        with driver.timings.stage("wait for images"):
            (image,) = ready.take(1)
        if isinstance(image, Fault):
            sheet.faults += [Fault(int(r), image.code, image.message) for r in job.rows]
            advance(len(job.rows))
            continue
        read = [tokens[t] for t in job.texts] if staged else list(job.texts)
        _pair_batches(driver, image, job.rows, read, sheet, keep, advance)


def _job_tokens(driver: Driver, jobs: Sequence[PairJob]) -> dict[str, Tokens]:
    """The captions of all jobs, tokenised once."""
    texts = list(dict.fromkeys(t for job in jobs for t in job.texts))
    return dict(zip(texts, driver.tokenise(texts), strict=True))


def _pair_batches(
    driver: Driver, image: Any, rows: np.ndarray, read: Sequence[Any], sheet: Sheet, keep: Keep, advance: Advance
) -> None:
    model = driver.model
    join = next(getattr(model, n) for n in ("forward_pairs", "score_pairs", "encode_pairs") if hasattr(model, n))
    forward = functools.partial(join, image)
    for i in range(0, len(rows), driver.pace.captions):
        part = read[i : i + driver.pace.captions]
        with driver.timings.stage("forward pairs"):
            values = driver.forward("captions", forward, part, len(part))
        cut = np.array([getattr(t, "cut", 0) for t in part], np.int32)
        keep(sheet.put(rows[i : i + driver.pace.captions], values, cut))
        advance(len(part))


def score_text_pairs(
    driver: Driver, pairs: Sequence[tuple[str, str]], rows: np.ndarray, sheet: Sheet, keep: Keep, advance: Advance
) -> None:
    """Fill a sheet of pairs of captions."""
    for start in range(0, len(pairs), TEXT_PAIRS):
        first, second = zip(*pairs[start : start + TEXT_PAIRS], strict=True)
        cut = np.zeros((2, len(first)), np.int32)
        if hasattr(driver.model, "prepare_texts"):
            cut[:] = [[t.cut for t in driver.model.prepare_texts(side)] for side in (first, second)]
        with driver.timings.stage("forward pairs"):
            values = driver.model.score_text_pairs(first, second)
        keep(sheet.put(rows[start : start + TEXT_PAIRS], np.asarray(values, np.float32), cut.max(axis=0)))
        advance(len(first))


def _grouped_pairs(
    driver: Driver, open_image: OpenImage, jobs: Sequence[PairJob], sheet: Sheet, keep: Keep, advance: Advance
) -> None:
    """Fill a sheet of pairs, several images at a time. Images are decoded and prepared beside the model."""
    tokens = _job_tokens(driver, jobs)
    work = functools.partial(driver.prepared, open_image)
    ready: Ahead[Any] = Ahead(driver.pool, work, [job.image for job in jobs], limit=2 * IMAGES)
    size, at = IMAGES, 0
    while at < len(jobs):
        with driver.timings.stage("wait for images"):
            images = ready.take(min(size, len(jobs) - at))
        good: list[tuple[PairJob, Any]] = []
        for job, image in zip(jobs[at : at + len(images)], images, strict=True):
            if isinstance(image, Fault):
                sheet.faults += [Fault(int(r), image.code, image.message) for r in job.rows]
                advance(len(job.rows))
            else:
                good.append((job, image))
        at += len(images)
        if good:
            size = _score_group(driver, good, tokens, size)(sheet, keep, advance)


def _score_group(driver: Driver, good: Sequence[tuple[PairJob, Any]], tokens: dict[str, Any], size: int) -> Any:
    """Scores of a group, in halves where the memory is not enough; what follows writes them down."""
    done: list[tuple[PairJob, np.ndarray]] = []
    rest = list(good)
    while rest:
        part = rest[:size]
        texts = [[tokens[t] for t in job.texts] for job, _ in part]
        try:
            with driver.timings.stage("forward pairs"):
                found = driver.model.forward_groups([image for _, image in part], texts)
        except Exception as e:
            if not out_of_memory(e):
                line = " ".join(str(e).split())[:200]
                where = driver.model.fingerprint.uri
                raise ModelError(
                    f"the model fails on {len(part)} images: {type(e).__name__}: {line}", where=where
                ) from e
            if size == 1:
                raise ModelError(
                    f"the memory of {driver.pace.device} is not enough for one image and its captions",
                    hint="choose a smaller model, `dtype='bfloat16'` or another `device=`",
                ) from None
            free_memory(driver.pace.device)
            size = max(1, min(size, len(part)) // 2)
            continue
        done += [(job, values) for (job, _), values in zip(part, found, strict=True)]
        rest = rest[len(part) :]

    def write(sheet: Sheet, keep: Keep, advance: Advance) -> int:
        for job, values in done:
            cut = np.array([tokens[t].cut for t in job.texts], np.int32)
            keep(sheet.put(job.rows, np.asarray(values, np.float32), cut))
            advance(len(job.rows))
        return size

    return write
