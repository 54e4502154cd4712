"""Compute one model's results for a plan. Results that are stored are reused; all others are computed and stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from creperie.bench import ImageError
from creperie.core import Advance, ModelError, Progress
from creperie.metrics import Input
from creperie.models import ABILITIES
from creperie.scoring.answer_log import AnswerLog, Written, cut_items
from creperie.scoring.batch_size import Timings, pace_for
from creperie.scoring.driver import Driver
from creperie.scoring.findings import Findings
from creperie.scoring.handle import Handle
from creperie.scoring.passes import (
    encode_images,
    encode_texts,
    judge_pairs,
    prepare_images,
    score_pairs,
    score_text_pairs,
    score_texts,
)
from creperie.scoring.plan import PairCells, ScoringPlan
from creperie.scoring.segments import by_group
from creperie.scoring.sheet import Fault, PairJob, Sheet
from creperie.scoring.store import ResultStore

#: up to this many missing images are decoded first, to avoid loading a model for unreadable ones
FEW = 100
#: how much a recomputed score of about one may differ from the stored one: batches and threads change the order of sums
PROBE_TOLERANCE, COARSE_TOLERANCE = 1e-4, 5e-2


@dataclass(frozen=True)
class CacheUse:
    """How many results a run needed, how many of them were in the store, and how many could not be computed."""

    needed: int
    stored: int
    failed: int = 0

    @property
    def missing(self) -> int:
        return self.needed - self.stored

    @property
    def computed(self) -> int:
        return self.missing - self.failed


@dataclass(eq=False)
class Filler:
    """Computes the sheets (tables of vectors or scores) of one model for one plan. For every benchmark in the plan, it
    holds the filled score columns, the findings, and what the model wrote, by item.
    """

    plan: ScoringPlan
    handle: Handle
    store: ResultStore
    batch_size: int | None
    progress: Progress
    timings: Timings = field(default_factory=Timings)
    work: dict[str, CacheUse] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns: list[dict[Input, np.ndarray]] = [{} for _ in self.plan.parts]
        self.findings = [Findings() for _ in self.plan.parts]
        self.answers: list[dict[int, list[Written]]] = [{} for _ in self.plan.parts]

    def keep_answers(self, number: int, answers: dict[int, list[Written]]) -> None:
        """Keep the answers for the benchmark at position `number` in the plan. Set the scores of items with a cut-off
        answer to NaN.
        """
        self.answers[number] = answers
        starts = self.plan.parts[number].layout.starts("image_text")
        scores = np.split(self.columns[number]["image_text"], starts[1:])  # views
        for item in cut_items(answers):
            scores[item][:] = np.nan

    @cached_property
    def log(self) -> AnswerLog:
        """The log of the model's answers. It is kept only in memory if results of this model must not be stored."""
        return AnswerLog(self.store.answers(self.handle.fingerprint) if self.handle.stored else None)

    # -- sheets --------------------------------------------------------------------------------------------------

    def vectors(self, *, images: bool, captions: bool) -> tuple[Sheet, Sheet]:
        """Return two sheets: one with image vectors, one with caption vectors.

        Images are decoded while captions are encoded.
        """
        image_sheet = StoredSheet(self, "image", self.plan.image_keys if images else self.plan.image_keys[:0])
        text_sheet = StoredSheet(self, "text", self.plan.text_keys if captions else self.plan.text_keys[:0])
        self.probe(image_sheet, lambda model, row: model.encode_images([self.plan.open(row)])[0])
        self.probe(text_sheet, lambda model, row: model.encode_texts([self.plan.texts[row]])[0])
        if images:
            image_sheet.give_up(self.plan.broken)
        if text_sheet.done.all() and not self.handle.loaded:
            self._give_up_unreadable(image_sheet)
        if not (image_sheet.done.all() and text_sheet.done.all()):
            with self._driver() as driver:
                ready = prepare_images(driver, self.plan.open, image_sheet)
                if not text_sheet.done.all():
                    with self._bar("captions", text_sheet):
                        encode_texts(driver, self.plan.texts, text_sheet)
                if not image_sheet.done.all():
                    with self._bar("images", image_sheet):
                        encode_images(driver, ready, image_sheet)
        image_sheet.close()
        text_sheet.close()
        return image_sheet, text_sheet

    def blind(self) -> Sheet:
        """Return a sheet with one number per caption, computed without images."""
        sheet = StoredSheet(self, "blind", self.plan.text_keys)
        self.probe(sheet, lambda model, row: model.score_texts([self.plan.texts[row]])[0])
        if not sheet.done.all():
            with self._driver() as driver, self._bar("captions", sheet):
                score_texts(driver, self.plan.texts, sheet)
        sheet.close()
        return sheet

    def pairs(self, cells: PairCells) -> Sheet:
        """Return a sheet with one number or vector per pair of an image and a caption."""
        kind, image, caption = cells.kind, cells.first, cells.second
        sheet = StoredSheet(self, kind, cells.keys)
        join = ABILITIES[kind].method
        self.probe(
            sheet,
            lambda model, row: getattr(model, join)(self.plan.open(image[row]), [self.plan.texts[caption[row]]])[0],
        )
        broken = {f.row: f for f in self.plan.broken}
        for row in np.flatnonzero(np.isin(image, np.fromiter(broken, np.int64))):
            sheet.give_up(broken[int(image[row])].at(int(row)))
        missing = np.flatnonzero(~sheet.done)
        if len(missing):
            jobs = [
                PairJob(number, rows, [self.plan.texts[c] for c in caption[rows]])
                for number, rows in ((n, missing[places]) for n, places in by_group(image[missing]))
            ]
            names = [key.tobytes().hex() for key in cells.keys] if kind == "pair" else []
            with self._driver() as driver, self._bar("pairs", sheet):
                if hasattr(driver.model, "judge"):
                    judge_pairs(driver, self.plan.open, jobs, sheet, self.log, names)
                else:
                    score_pairs(driver, self.plan.open, jobs, sheet)
        sheet.close()
        return sheet

    def between(self, cells: PairCells) -> Sheet:
        """Return a sheet with one number per pair of captions."""
        first, second, texts = cells.first, cells.second, self.plan.texts
        sheet = StoredSheet(self, "between", cells.keys)
        self.probe(sheet, lambda model, row: model.score_text_pairs([texts[first[row]]], [texts[second[row]]])[0])
        missing = np.flatnonzero(~sheet.done)
        if len(missing):
            with self._driver() as driver, self._bar("caption pairs", sheet):
                score_text_pairs(driver, [(texts[first[r]], texts[second[r]]) for r in missing], missing, sheet)
        sheet.close()
        return sheet

    # -- pieces --------------------------------------------------------------------------------------------------

    def probe(self, sheet: Sheet, ask: Callable[[Any, int], Any]) -> None:
        """Check a model that was given in memory: recompute a few of the sheet's stored rows, and raise a ModelError if
        the results differ. Do nothing for other models. `ask` computes one row with the model.
        """
        rows = np.flatnonzero(sheet.done)
        if not self.handle.probed or not len(rows):
            return
        tolerance = PROBE_TOLERANCE if self.handle.fingerprint.dtype == "float32" else COARSE_TOLERANCE
        for row in {int(rows[0]), int(rows[len(rows) // 2]), int(rows[-1])}:
            try:
                again = np.asarray(ask(self.handle.model, row), np.float32)
            except ImageError:
                continue
            there = sheet.vectors[row]
            apart = np.inf if again.shape != there.shape else float(np.abs(again - there).max(initial=0))
            if not apart <= tolerance * max(1.0, float(np.abs(there).max(initial=0))):
                raise ModelError(
                    "the results stored under this model's fingerprint were computed by another model",
                    where=self.handle.uri,
                    hint="delete the stored results with `creperie cache clear`, or score without them: "
                    "pass `cache=False`, or a new name as `cache=`",
                )

    def _driver(self) -> Driver:
        with self.timings.stage("load model"):
            model = self.handle.model
        return Driver(model, pace_for(model, self.batch_size), self.timings)

    @contextmanager
    def _bar(self, what: str, sheet: Sheet) -> Iterator[None]:
        with self.timed(what, int((~sheet.done).sum())) as sheet.advance:
            yield

    @contextmanager
    def timed(self, what: str, count: int) -> Iterator[Advance]:
        self.timings.counts[what] += count
        with self.timings.stage(f"encode {what}"), self.progress(f"encode {what}", count, what) as advance:
            yield advance

    def _give_up_unreadable(self, sheet: Sheet) -> None:
        """If only a few images have no result yet, decode them, and mark those that cannot be decoded as failed. If no
        other result is missing, the model then need not be loaded.
        """
        missing = np.flatnonzero(~sheet.done)
        if len(missing) > FEW:
            return
        for row in missing:
            try:
                self.plan.open(int(row))
            except ImageError as e:
                sheet.give_up([Fault(int(row), e.code, str(e))])


class StoredSheet(Sheet):
    """A sheet that begins with the results in the store and writes new results there. It uses no store if the results
    of the model must not be stored (`Handle.stored` is False).
    """

    def __init__(self, filler: Filler, kind: str, keys: np.ndarray) -> None:
        super().__init__(len(keys))
        self._filler, self._kind, self._keys = filler, kind, keys
        self._shelf = filler.store.shelf(filler.handle.fingerprint, kind) if filler.handle.stored else None
        self._refused = False
        if self._shelf is not None and len(keys):
            with filler.timings.stage("look up"):
                stored = self._shelf.find(keys)
                self.put(stored.rows, stored.vectors, stored.cut)
        if self._shelf is None or len(keys):
            filler.work[kind] = CacheUse(len(keys), int(self.done.sum()))

    def keep(self, rows: np.ndarray) -> None:
        if self._shelf is None or self._refused or not len(rows):
            return
        try:
            with self._filler.timings.stage("keep"):
                self._shelf.add(self._keys[rows], self.vectors[rows], self.cut[rows])
        except OSError as e:  # a full or read-only disk: the scores are still valid
            self._refused = True
            self._filler.notes.append(
                f"the store at {self._filler.store.root} cannot be written ({e.strerror}): results are not cached"
            )

    def close(self) -> None:
        """Write the results that are not stored yet, and record how many rows could not be computed."""
        if self._shelf is not None:
            with suppress(OSError):
                self._shelf.close()
        if self._kind in (work := self._filler.work):
            work[self._kind] = replace(work[self._kind], failed=len({f.row for f in self.faults}))
