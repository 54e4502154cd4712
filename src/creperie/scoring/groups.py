"""Pairs through models that read several images in one batch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from creperie.core import ModelError
from creperie.scoring.batch_size import free_memory, out_of_memory
from creperie.scoring.encode import Advance, Ahead, Encoder, Fault, Keep, OpenImage, PairJob, Sheet

#: images that are handed to the model at once; it cuts them further to fit its memory
IMAGES = 64


def grouped_pairs(
    encoder: Encoder, open_image: OpenImage, jobs: Sequence[PairJob], sheet: Sheet, keep: Keep, advance: Advance
) -> None:
    """Fill a sheet of pairs, several images at a time. Images are decoded and prepared beside the model."""
    tokens = encoder._job_tokens(jobs)
    work = functools.partial(encoder._prepared, open_image)
    ready: Ahead[Any] = Ahead(encoder._pool, work, [job.image for job in jobs], limit=2 * IMAGES)
    size, at = IMAGES, 0
    while at < len(jobs):
        with encoder.timings.stage("wait for images"):
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
            size = _score(encoder, good, tokens, size)(sheet, keep, advance)


def _score(encoder: Encoder, good: Sequence[tuple[PairJob, Any]], tokens: dict[str, Any], size: int) -> Any:
    """Scores of a group, in halves where the memory is not enough; what follows writes them down."""
    done: list[tuple[PairJob, np.ndarray]] = []
    rest = list(good)
    while rest:
        part = rest[:size]
        texts = [[tokens[t] for t in job.texts] for job, _ in part]
        try:
            with encoder.timings.stage("forward pairs"):
                found = encoder.model.forward_groups([image for _, image in part], texts)
        except Exception as e:
            if not out_of_memory(e):
                line = " ".join(str(e).split())[:200]
                where = encoder.model.fingerprint.uri
                raise ModelError(
                    f"the model fails on {len(part)} images: {type(e).__name__}: {line}", where=where
                ) from e
            if size == 1:
                raise ModelError(
                    f"the memory of {encoder.pace.device} is not enough for one image and its captions",
                    hint="choose a smaller model, --dtype bfloat16 or another --device",
                ) from None
            free_memory(encoder.pace.device)
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
