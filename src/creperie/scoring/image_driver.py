"""Images through a model: decoded and prepared by threads, some way ahead of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from creperie.core import Advance
from creperie.models import StagedImages
from creperie.scoring.driver import Ahead, Driver, Keep, OpenImage
from creperie.scoring.sheet import Fault, Sheet

AHEAD_BYTES = 512 << 20  #: prepared images that wait for the model


def prepare_images(driver: Driver, open_image: OpenImage, sheet: Sheet) -> Ahead[tuple[int, Any]]:
    """Start decoding and preparing what the sheet misses; `images` takes it from here."""
    rows = [int(r) for r in np.flatnonzero(~sheet.done)]
    work = functools.partial(_numbered, driver, open_image)
    ready: Ahead[tuple[int, Any]] = Ahead(driver.pool, work, rows, limit=2 * driver.pace.workers)
    first = ready.first()
    each = max(1, getattr(first[1], "nbytes", 1 << 20)) if first else 1
    ready.reach(max(2 * driver.pace.images, min(8192, AHEAD_BYTES // each)))
    return ready


def encode_images(driver: Driver, ready: Ahead[tuple[int, Any]], sheet: Sheet, keep: Keep, advance: Advance) -> None:
    """Fill a sheet with the vectors of images."""
    staged = isinstance(driver.model, StagedImages)
    forward = driver.model.forward_images if staged else driver.model.encode_images
    for rows, _, vectors in driver.through(_image_batches(driver, ready, sheet, advance), forward, "images"):
        keep(sheet.put(rows, driver.unit(vectors)))
        advance(len(rows))


def _image_batches(
    driver: Driver, ready: Ahead[tuple[int, Any]], sheet: Sheet, advance: Advance
) -> Iterator[tuple[np.ndarray, list[Any], int]]:
    at = 0
    while at < len(sheet):
        size = driver.pace.images
        missing = int((~sheet.done[at : at + size]).sum())
        at += size
        with driver.timings.stage("wait for images"):
            taken = ready.take(missing)
        sheet.faults += [p for _, p in taken if isinstance(p, Fault)]
        good = [(row, p) for row, p in taken if not isinstance(p, Fault)]
        advance(len(taken) - len(good))
        if good:
            yield np.array([row for row, _ in good]), [p for _, p in good], len(good)


def _numbered(driver: Driver, open_image: OpenImage, row: int) -> tuple[int, Any]:
    return row, driver.prepared(open_image, row)
