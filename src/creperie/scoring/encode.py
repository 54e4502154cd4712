"""Captions and images through a model, each once: decoding and tokenising run beside it, batches are cut to fit.

This module needs numpy and whatever the model needs, nothing else of creperie's rooms.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from creperie.core import DataError, ModelError
from creperie.models import StagedImages, StagedTexts, Tokens, exact_float32
from creperie.scoring.batch_size import BatchSize, Timings
from creperie.scoring.prefetch import Ahead
from creperie.scoring.sheet import Fault, PairJob, Sheet

__all__ = ["Ahead", "Encoder", "Fault", "PairJob", "Sheet"]

WINDOW = 32_768  #: captions that are sorted by length together
TEXT_PAIRS = 512  #: pairs of captions that are compared between two keepings
TOKENISE = 4096  #: captions in one call of the tokenizer
SWITCH = 0.0002  #: seconds after which a thread gives way to another, on a GPU
AHEAD_BYTES = 512 << 20  #: prepared images that wait for the model
Keep = Callable[[np.ndarray], None]  #: called with the rows of a finished batch
Advance = Callable[[int], None]
OpenImage = Callable[[int], Any]  #: the decoded image of a row; DataError where there is none


@dataclass
class Encoder:
    """Drives one model. `close` ends its threads."""

    model: Any
    pace: BatchSize
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.pace.workers, thread_name_prefix="prepare")
        self._tokeniser = ThreadPoolExecutor(1, thread_name_prefix="tokenise")
        self._flight = ThreadPoolExecutor(self.pace.in_flight, thread_name_prefix="forward")

    def __enter__(self) -> Encoder:
        self._interval = sys.getswitchinterval()
        self._held = ExitStack()
        if self.pace.in_flight > 1:
            # a GPU starves while its one feeding thread waits for the interpreter among many that decode
            sys.setswitchinterval(SWITCH)
            # The adapters ask for exact float32 around each forward pass, a setting of the whole process: held from
            # before the first to after the last, it cannot be taken back by one thread under another's feet.
            self._held.enter_context(exact_float32())
        return self

    def __exit__(self, *_: object) -> None:
        sys.setswitchinterval(self._interval)
        for pool in (self._pool, self._tokeniser, self._flight):
            pool.shutdown(wait=True, cancel_futures=True)
        self._held.close()

    # -- captions ------------------------------------------------------------------------------------------------

    def texts(self, texts: Sequence[str], sheet: Sheet, keep: Keep, advance: Advance) -> None:
        """Fill a sheet with the vectors of captions."""
        if not isinstance(self.model, StagedTexts):
            self._plain(texts, sheet, keep, advance, self.model.encode_texts)
            return
        starts = [s for s in range(0, len(texts), WINDOW) if not sheet.done[s : s + WINDOW].all()]
        ahead = Ahead(self._tokeniser, lambda s: self._tokenise(texts[s : s + WINDOW]), starts, limit=2)
        for start in starts:
            with self.timings.stage("wait for tokens"):
                (tokens,) = ahead.take(1)
            for batch in self._through(self._text_batches(tokens, start, sheet), self.model.forward_texts, "tokens"):
                rows, prepared, vectors = batch
                keep(sheet.put(rows, self._unit(vectors), np.array([t.cut for t in prepared], np.int32)))
                advance(len(rows))
            advance(self._copy_repeats(tokens, start, sheet, keep))

    def scores(self, texts: Sequence[str], sheet: Sheet, keep: Keep, advance: Advance) -> None:
        """Fill a sheet with one number a caption, from a blind scorer."""
        self._plain(texts, sheet, keep, advance, self.model.score_texts)

    def _plain(
        self,
        texts: Sequence[str],
        sheet: Sheet,
        keep: Keep,
        advance: Advance,
        forward: Callable[[Sequence[str]], np.ndarray],
    ) -> None:
        """Captions through a model without stages: sorted by length, in batches that do not depend on what is done."""
        order = np.argsort([-len(t) for t in texts], kind="stable")
        size = self.pace.captions
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            rows = rows[~sheet.done[rows]]
            if len(rows):
                self.timings.counts.update({"tokens batches": 1})
                with self.timings.stage("forward captions"):
                    vectors = self._forward("captions", forward, [texts[r] for r in rows], len(rows))
                keep(sheet.put(rows, vectors if vectors.ndim == 1 else self._unit(vectors)))
                advance(len(rows))

    def _tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        with self.timings.stage("tokenise"):
            tokens: list[Tokens] = []
            for i in range(0, len(texts), TOKENISE):
                tokens += self.model.prepare_texts(texts[i : i + TOKENISE])
            return tokens

    def _text_batches(
        self, tokens: Sequence[Tokens], start: int, sheet: Sheet
    ) -> Iterator[tuple[np.ndarray, list[Tokens], int]]:
        """Batches of rows that the model reads differently, longest first.

        Batches are laid out over all captions and only then reduced to what is missing: after an interruption the
        same captions meet in the same batches, so that the resumed run ends with the same bits.
        """
        distinct = np.array(list({t.ids.tobytes(): i for i, t in reversed(list(enumerate(tokens)))}.values()))
        lengths = np.array([len(tokens[i].ids) for i in distinct])
        if getattr(self.model, "shares", False):  # captions that begin alike, together; padding costs nothing
            sort = np.array(sorted(range(len(distinct)), key=lambda i: tokens[int(distinct[i])].ids.tolist()))
            cut = self.pace.captions_in
        else:
            sort = np.lexsort((distinct, -lengths))
            cut = functools.partial(self.pace.captions_from, whole=0 if self.model.trims else self._context(lengths))
        order, lengths = distinct[sort], lengths[sort]
        at = 0
        while at < len(order):
            size, units = cut(lengths[at:])
            rows = order[at : at + size]
            at += size
            rows = rows[~sheet.done[start + rows]]
            if len(rows):
                yield start + rows, [tokens[i] for i in rows], max(1, units * len(rows) // size)

    def _context(self, lengths: np.ndarray) -> int:
        return max(int(lengths.max()), self.model.fingerprint.context or 0)

    def _copy_repeats(self, tokens: Sequence[Tokens], start: int, sheet: Sheet, keep: Keep) -> int:
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

    # -- images --------------------------------------------------------------------------------------------------

    def prepare(self, open_image: OpenImage, sheet: Sheet) -> Ahead[tuple[int, Any]]:
        """Start decoding and preparing what the sheet misses; `images` takes it from here."""
        rows = [int(r) for r in np.flatnonzero(~sheet.done)]
        work = functools.partial(self._numbered, open_image)
        ready: Ahead[tuple[int, Any]] = Ahead(self._pool, work, rows, limit=2 * self.pace.workers)
        first = ready.first()
        each = max(1, getattr(first[1], "nbytes", 1 << 20)) if first else 1
        ready.reach(max(2 * self.pace.images, min(8192, AHEAD_BYTES // each)))
        return ready

    def images(self, ready: Ahead[tuple[int, Any]], sheet: Sheet, keep: Keep, advance: Advance) -> None:
        """Fill a sheet with the vectors of images."""
        staged = isinstance(self.model, StagedImages)
        forward = self.model.forward_images if staged else self.model.encode_images
        for rows, _, vectors in self._through(self._image_batches(ready, sheet, advance), forward, "images"):
            keep(sheet.put(rows, self._unit(vectors)))
            advance(len(rows))

    def _image_batches(
        self, ready: Ahead[tuple[int, Any]], sheet: Sheet, advance: Advance
    ) -> Iterator[tuple[np.ndarray, list[Any], int]]:
        at = 0
        while at < len(sheet):
            size = self.pace.images
            missing = int((~sheet.done[at : at + size]).sum())
            at += size
            with self.timings.stage("wait for images"):
                taken = ready.take(missing)
            sheet.faults += [p for _, p in taken if isinstance(p, Fault)]
            good = [(row, p) for row, p in taken if not isinstance(p, Fault)]
            advance(len(taken) - len(good))
            if good:
                yield np.array([row for row, _ in good]), [p for _, p in good], len(good)

    def _prepared(self, open_image: OpenImage, row: int) -> Any:
        """A decoded and prepared image, or why there is none."""
        image = self._opened(open_image, row)
        staged = isinstance(self.model, StagedImages) or hasattr(self.model, "forward_pairs")
        if isinstance(image, Fault) or not staged:
            return image
        try:
            with self.timings.stage("prepare"):
                return self.model.prepare_image(image)
        except Exception as e:  # one odd image must not end a run; what it was is in the findings
            return Fault(row, "unprepared-image", f"the model's preprocessing fails: {type(e).__name__}: {e}")

    def _numbered(self, open_image: OpenImage, row: int) -> tuple[int, Any]:
        return row, self._prepared(open_image, row)

    def _opened(self, open_image: OpenImage, row: int) -> Any:
        try:
            with self.timings.stage("decode"):
                return open_image(row)
        except DataError as e:
            return Fault(row, getattr(e, "code", "undecodable-image"), str(e))

    # -- pairs ---------------------------------------------------------------------------------------------------

    def pairs(self, open_image: OpenImage, jobs: Sequence[PairJob], sheet: Sheet, keep: Keep, advance: Advance) -> None:
        """Fill a sheet of pairs, image by image; each image is seen once for all its captions."""
        if hasattr(self.model, "forward_groups"):
            from creperie.scoring.groups import grouped_pairs

            grouped_pairs(self, open_image, jobs, sheet, keep, advance)
            return
        staged = hasattr(self.model, "forward_pairs")
        tokens = self._job_tokens(jobs) if staged else {}
        work = functools.partial(self._prepared if staged else self._opened, open_image)
        ready = Ahead(self._pool, work, [job.image for job in jobs], limit=4 * self.pace.workers)
        for job in jobs:
            with self.timings.stage("wait for images"):
                (image,) = ready.take(1)
            if isinstance(image, Fault):
                sheet.faults += [Fault(int(r), image.code, image.message) for r in job.rows]
                advance(len(job.rows))
                continue
            read = [tokens[t] for t in job.texts] if staged else list(job.texts)
            self._pair_batches(image, job.rows, read, sheet, keep, advance)

    def _job_tokens(self, jobs: Sequence[PairJob]) -> dict[str, Tokens]:
        """The captions of all jobs, tokenised once."""
        texts = list(dict.fromkeys(t for job in jobs for t in job.texts))
        return dict(zip(texts, self._tokenise(texts), strict=True))

    def _pair_batches(
        self, image: Any, rows: np.ndarray, read: Sequence[Any], sheet: Sheet, keep: Keep, advance: Advance
    ) -> None:
        model = self.model
        join = next(getattr(model, n) for n in ("forward_pairs", "score_pairs", "encode_pairs") if hasattr(model, n))
        forward = functools.partial(join, image)
        for i in range(0, len(rows), self.pace.captions):
            part = read[i : i + self.pace.captions]
            with self.timings.stage("forward pairs"):
                values = self._forward("captions", forward, part, len(part))
            cut = np.array([getattr(t, "cut", 0) for t in part], np.int32)
            keep(sheet.put(rows[i : i + self.pace.captions], values, cut))
            advance(len(part))

    def text_pairs(
        self, pairs: Sequence[tuple[str, str]], rows: np.ndarray, sheet: Sheet, keep: Keep, advance: Advance
    ) -> None:
        """Fill a sheet of pairs of captions."""
        for start in range(0, len(pairs), TEXT_PAIRS):
            first, second = zip(*pairs[start : start + TEXT_PAIRS], strict=True)
            cut = np.zeros((2, len(first)), np.int32)
            if hasattr(self.model, "prepare_texts"):
                cut[:] = [[t.cut for t in self.model.prepare_texts(side)] for side in (first, second)]
            with self.timings.stage("forward pairs"):
                values = self.model.score_text_pairs(first, second)
            keep(sheet.put(rows[start : start + TEXT_PAIRS], np.asarray(values, np.float32), cut.max(axis=0)))
            advance(len(first))

    # -- the model -----------------------------------------------------------------------------------------------

    def _through(
        self,
        batches: Iterator[tuple[np.ndarray, list[Any], int]],
        forward: Callable[[Sequence[Any]], np.ndarray],
        what: str,
    ) -> Iterator[tuple[np.ndarray, list[Any], np.ndarray]]:
        """Batches with their vectors, in order; on a GPU the next batch is under way while one is waited for."""
        flying: deque[tuple[np.ndarray, list[Any], Future[np.ndarray]]] = deque()
        stage = f"forward {'images' if what == 'images' else 'captions'}"
        for rows, prepared, units in batches:
            self.timings.counts.update({f"{what} batches": 1} | ({what: units} if what == "tokens" else {}))
            if self.pace.in_flight == 1 or what in self.pace.learning:
                with self.timings.stage(stage):
                    vectors = self._forward(what, forward, prepared, units)
                yield rows, prepared, vectors
                continue
            if len(flying) > self.pace.in_flight:
                yield self._landed(flying, stage)
            flying.append((rows, prepared, self._flight.submit(self._forward, what, forward, prepared, units)))
        while flying:
            yield self._landed(flying, stage)

    def _landed(
        self, flying: deque[tuple[np.ndarray, list[Any], Future[np.ndarray]]], stage: str
    ) -> tuple[np.ndarray, list[Any], np.ndarray]:
        rows, prepared, future = flying.popleft()
        with self.timings.stage(stage):
            return rows, prepared, future.result()

    def _forward(
        self, what: str, forward: Callable[[Sequence[Any]], np.ndarray], batch: Sequence[Any], units: int
    ) -> np.ndarray:
        """A forward pass whose answer is checked: one float32 row for each that went in."""
        try:
            vectors = self.pace.run(what, forward, batch, units)
        except (RuntimeError, ValueError, IndexError, TypeError) as e:
            line = " ".join(str(e).split())[:200]
            raise ModelError(
                f"the model fails on a batch of {len(batch)}: {type(e).__name__}: {line}",
                where=self.model.fingerprint.uri,
            ) from e
        answer = np.asarray(vectors)
        if answer.shape[:1] != (len(batch),) or answer.ndim > 3 or answer.dtype.kind != "f":
            raise ModelError(
                f"the model answers {len(batch)} inputs with an array of {answer.shape}, {answer.dtype}",
                where=self.model.fingerprint.uri,
                hint="one row of float32 for each input is expected",
            )
        return answer.astype(np.float32, copy=False)

    def _unit(self, vectors: np.ndarray) -> np.ndarray:
        """Cosines are products here, so vectors must have length one; a model that forgot to normalise is an error."""
        off = np.abs(np.linalg.norm(vectors, axis=-1) - 1)
        worst = float(off[np.isfinite(off)].max(initial=0.0))
        if worst > 1e-3:
            raise ModelError(
                f"the model's vectors are not of length one (off by {worst:.3g})",
                where=self.model.fingerprint.uri,
                hint="divide them by their norm in the adapter",
            )
        return vectors
