"""Fill the score columns of a plan with a model: from the store what is there, the rest computed and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from PIL import Image

from creperie.bench import ImageError, open_image
from creperie.core import Advance, Progress, silent
from creperie.metrics import Input
from creperie.scoring import product
from creperie.scoring.batch_size import Timings, pace_for
from creperie.scoring.choice import fill_by_choice
from creperie.scoring.encode import Encoder
from creperie.scoring.findings import Findings, cell_findings, cut_message, item_findings
from creperie.scoring.handle import Handle
from creperie.scoring.plan import BenchmarkPart, ScoringPlan
from creperie.scoring.rates import remember_rates
from creperie.scoring.sheet import Fault, PairJob, Sheet
from creperie.scoring.store import ResultStore, VectorShelf, pair_keys

#: images that are tried before a model is loaded for them
FEW = 100


@dataclass(frozen=True)
class CacheUse:
    """How many of something a run needed, how many of them the store had, and how many could not be computed."""

    needed: int
    stored: int
    failed: int = 0

    @property
    def missing(self) -> int:
        return self.needed - self.stored

    @property
    def computed(self) -> int:
        return self.missing - self.failed


@dataclass
class FilledScores:
    """The score columns of every part, and what there is to say about how they came to be."""

    columns: list[dict[Input, np.ndarray]]
    findings: list[Findings]
    work: dict[str, CacheUse]
    timings: Timings
    notes: list[str] = field(default_factory=list)


class Filler:
    """Fills sheets for one model over one plan."""

    def __init__(
        self, plan: ScoringPlan, handle: Handle, store: ResultStore, *, batch_size: int | None, progress: Progress
    ) -> None:
        self.plan, self.handle, self.store = plan, handle, store
        self.batch_size, self.progress = batch_size, progress
        self.timings = Timings()
        self.work: dict[str, CacheUse] = {}
        self.notes: list[str] = []

    # -- sheets --------------------------------------------------------------------------------------------------

    def vectors(self, *, images: bool, captions: bool) -> tuple[Sheet, Sheet]:
        """The vectors of all images and captions. Decoding starts first, so that it runs beside the text tower."""
        image_sheet, image_shelf = self._stored("image", self.plan.image_keys if images else self.plan.image_keys[:0])
        text_sheet, text_shelf = self._stored("text", self.plan.text_keys if captions else self.plan.text_keys[:0])
        if images:
            image_sheet.give_up(self.plan.broken)
        if text_sheet.done.all() and not self.handle.loaded:
            self._give_up_unreadable(image_sheet)
        if not (image_sheet.done.all() and text_sheet.done.all()):
            with self._encoder() as encoder:
                ready = encoder.prepare(self._open, image_sheet)
                if not text_sheet.done.all():
                    with self._bar("captions", text_sheet) as advance:
                        encoder.texts(self.plan.texts, text_sheet, self._keep(text_shelf, text_sheet), advance)
                if not image_sheet.done.all():
                    with self._bar("images", image_sheet) as advance:
                        encoder.images(ready, image_sheet, self._keep(image_shelf, image_sheet), advance)
        self._close("image", image_shelf, image_sheet)
        self._close("text", text_shelf, text_sheet)
        return image_sheet, text_sheet

    def blind(self) -> Sheet:
        """One number a caption."""
        sheet, shelf = self._stored("blind", self.plan.text_keys)
        if not sheet.done.all():
            with self._encoder() as encoder, self._bar("captions", sheet) as advance:
                encoder.scores(self.plan.texts, sheet, self._keep(shelf, sheet), advance)
        self._close("blind", shelf, sheet)
        return sheet

    def pairs(self, kind: str, codes: np.ndarray) -> Sheet:
        """One number or vector a pair; codes are image × captions + caption, each once, in order."""
        image, caption = np.divmod(codes, max(1, len(self.plan.texts)))
        keys = pair_keys(self.plan.image_keys[image], self.plan.text_keys[caption])
        sheet, shelf = self._stored(kind, keys)
        broken = {f.row: f for f in self.plan.broken}
        for row in np.flatnonzero(np.isin(image, np.fromiter(broken, np.int64))):
            fault = broken[int(image[row])]
            sheet.give_up([Fault(int(row), fault.code, fault.message)])
        missing = np.flatnonzero(~sheet.done)
        if len(missing):
            jobs = [
                PairJob(number, rows, [self.plan.texts[c] for c in caption[rows]])
                for number, rows in _runs(image[missing], missing)
            ]
            with self._encoder() as encoder, self._bar("pairs", sheet) as advance:
                encoder.pairs(self._open, jobs, sheet, self._keep(shelf, sheet), advance)
        self._close(kind, shelf, sheet)
        return sheet

    def between(self, codes: np.ndarray) -> Sheet:
        """One number for two captions; codes are caption × captions + caption, each once, in order."""
        first, second = np.divmod(codes, max(1, len(self.plan.texts)))
        sheet, shelf = self._stored("between", pair_keys(self.plan.text_keys[first], self.plan.text_keys[second]))
        missing = np.flatnonzero(~sheet.done)
        if len(missing):
            with self._encoder() as encoder, self._bar("caption pairs", sheet) as advance:
                pairs = [(self.plan.texts[first[r]], self.plan.texts[second[r]]) for r in missing]
                encoder.text_pairs(pairs, missing, sheet, self._keep(shelf, sheet), advance)
        self._close("between", shelf, sheet)
        return sheet

    # -- pieces --------------------------------------------------------------------------------------------------

    def _stored(self, kind: str, keys: np.ndarray) -> tuple[Sheet, _Kept]:
        """A sheet with what the store has."""
        sheet = Sheet(len(keys))
        shelf = self.store.shelf(self.handle.fingerprint, kind)
        if len(keys):
            with self.timings.stage("look up"):
                found = shelf.find(keys)
                sheet.put(found.rows, found.vectors, found.cut)
            self.work[kind] = CacheUse(len(keys), len(found.rows))
        return sheet, _Kept(shelf, keys)

    def _close(self, kind: str, kept: _Kept, sheet: Sheet) -> None:
        kept.close()
        if kind in self.work:
            self.work[kind] = replace(self.work[kind], failed=len({f.row for f in sheet.faults}))

    def _keep(self, kept: _Kept, sheet: Sheet) -> Callable[[np.ndarray], None]:
        def keep(rows: np.ndarray) -> None:
            if not len(rows) or kept.refused:
                return
            try:
                with self.timings.stage("keep"):
                    kept.shelf.add(kept.keys[rows], sheet.vectors[rows], sheet.cut[rows])
            except OSError as e:  # a full or read-only disk: the scores are right all the same
                kept.refused = True
                self.notes.append(f"the store at {self.store.root} cannot be written ({e.strerror}): nothing is kept")

        return keep

    def _encoder(self) -> Encoder:
        with self.timings.stage("load model"):
            model = self.handle.model
        return Encoder(model, pace_for(model, self.batch_size), self.timings)

    def _bar(self, what: str, sheet: Sheet) -> AbstractContextManager[Advance]:
        return self._timed(what, int((~sheet.done).sum()))

    @contextmanager
    def _timed(self, what: str, count: int) -> Iterator[Advance]:
        self.timings.counts[what] += count
        with self.timings.stage(f"encode {what}"), self.progress(f"encode {what}", count, what) as advance:
            yield advance

    def _give_up_unreadable(self, sheet: Sheet) -> None:
        """Where a few images are all that is missing, they are often the ones that nobody can decode: then there is
        nothing to load a model for."""
        missing = np.flatnonzero(~sheet.done)
        if len(missing) > FEW:
            return
        for row in missing:
            try:
                self._open(int(row))
            except ImageError as e:
                sheet.give_up([Fault(int(row), e.code, str(e))])

    def _open(self, row: int) -> Image.Image:
        source = self.plan.images[row]
        return open_image(source.store, source.reference)


@dataclass
class _Kept:
    """Where finished rows go."""

    shelf: VectorShelf
    keys: np.ndarray
    refused: bool = False

    def close(self) -> None:
        try:
            self.shelf.close()
        except OSError:
            self.refused = True


def _runs(numbers: np.ndarray, rows: np.ndarray) -> Iterable[tuple[int, np.ndarray]]:
    """Rows by number; the numbers are sorted."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for start, part in zip(starts, np.split(rows, starts[1:]), strict=True):
        yield int(numbers[start]), part


def fill(
    plan: ScoringPlan,
    handle: Handle,
    inputs: Iterable[Input],
    *,
    store: ResultStore | None = None,
    batch_size: int | None = None,
    progress: Progress = silent,
) -> FilledScores:
    """Score everything in the plan: the columns asked for, each once over all benchmarks."""
    wanted = set(inputs)
    filler = Filler(plan, handle, store or ResultStore(), batch_size=batch_size, progress=progress)
    filled = FilledScores(
        [{} for _ in plan.parts], [Findings() for _ in plan.parts], filler.work, filler.timings, filler.notes
    )
    can = handle.abilities
    towers = {"image", "text"} <= can and "image_text" in wanted
    if towers or ("text" in can and "text_text" in wanted):
        _fill_by_towers(filler, filled, wanted, images=towers)
    if "image_text" in wanted and not towers:
        (fill_by_choice if "choice" in can else _fill_by_pairs)(filler, filled)
    if "text_text" in wanted and "text" not in can:
        (_fill_between if "between" in can else _fill_by_joint_vectors)(filler, filled)
    if "text" in wanted:
        _fill_blind(filler, filled)
    if handle.loaded:
        remember_rates(filler.store, handle, filler.timings)
    return filled


def _fill_by_towers(filler: Filler, filled: FilledScores, wanted: set[Input], *, images: bool) -> None:
    image_sheet, text_sheet = filler.vectors(images=images, captions=True)
    for part, columns in zip(filler.plan.parts, filled.columns, strict=True):
        with filler.timings.stage("product"):
            if images:
                columns["image_text"] = product.image_text(part, image_sheet.vectors, text_sheet.vectors)
            if "text_text" in wanted:
                columns["text_text"] = product.text_text(part, text_sheet.vectors)
    _report(filler, filled, image_sheet.faults, text_sheet)


def _fill_blind(filler: Filler, filled: FilledScores) -> None:
    sheet = filler.blind()
    for part, columns in zip(filler.plan.parts, filled.columns, strict=True):
        columns["text"] = _number_column(sheet, part.captions)
    _report(filler, filled, [], sheet)


def _fill_by_pairs(filler: Filler, filled: FilledScores) -> None:
    cells = [cell_codes(filler.plan, *part.pairs) for part in filler.plan.parts]
    codes = np.unique(np.concatenate([c[c >= 0] for c in cells]))
    sheet = filler.pairs("pair", codes)
    for i, own in enumerate(cells):
        places = _places(codes, own)
        filled.columns[i]["image_text"] = _number_column(sheet, places)
        _report_pairs(filler.plan.parts[i], "image_text", sheet, places, filled.findings[i])


def _fill_by_joint_vectors(filler: Filler, filled: FilledScores) -> None:
    """Captions compared through vectors that have seen the item's image; items with one image only."""
    sides = [_joint_codes(filler.plan, part) for part in filler.plan.parts]
    every = np.concatenate([side for pair in sides for side in pair])
    codes = np.unique(every[every >= 0])
    sheet = filler.pairs("joint", codes)
    for i, (a, b) in enumerate(sides):
        left, right = _places(codes, np.minimum(a, b)), _places(codes, np.maximum(a, b))
        with filler.timings.stage("product"):
            filled.columns[i]["text_text"] = product.products(sheet.vectors, left, sheet.vectors, right)
        _report_pairs(filler.plan.parts[i], "text_text", sheet, left, filled.findings[i])


def _fill_between(filler: Filler, filled: FilledScores) -> None:
    """Captions compared two by two; each two once, whichever comes first."""
    cells = caption_pair_codes(filler.plan)
    codes = np.unique(np.concatenate(cells))
    sheet = filler.between(codes)
    for i, own in enumerate(cells):
        places = _places(codes, own)
        filled.columns[i]["text_text"] = _number_column(sheet, places)
        _report_pairs(filler.plan.parts[i], "text_text", sheet, places, filled.findings[i])


def caption_pair_codes(plan: ScoringPlan) -> list[np.ndarray]:
    """The two captions of every text_text cell as one number, the smaller first."""
    sides = [part.caption_pairs[1:] for part in plan.parts]
    return [cell_codes(plan, np.minimum(a, b), np.maximum(a, b)) for a, b in sides]


def _joint_codes(plan: ScoringPlan, part: BenchmarkPart) -> tuple[np.ndarray, np.ndarray]:
    owner, a, b = part.caption_pairs
    single = np.diff(part.image_starts) == 1
    image = np.where(single, part.images[part.image_starts[:-1] * single] if len(part.images) else -1, -1)[owner]
    return cell_codes(plan, image, a), cell_codes(plan, image, b)


def cell_codes(plan: ScoringPlan, image: np.ndarray, caption: np.ndarray) -> np.ndarray:
    return np.where(image >= 0, image * len(plan.texts) + caption, -1)


def _places(codes: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Where each asked code stands in the sorted codes; −1 stays −1."""
    return np.where(asked >= 0, np.searchsorted(codes, np.maximum(asked, 0)), -1)


def _number_column(sheet: Sheet, rows: np.ndarray) -> np.ndarray:
    """Numbers by row, NaN for −1 and for rows that were never computed."""
    values = np.full(len(sheet) + 1, np.nan, np.float32)
    if sheet.vectors.ndim == 1:
        values[:-1] = sheet.vectors
    return values[rows]


def _report(filler: Filler, filled: FilledScores, images: Iterable[Fault], texts: Sheet) -> None:
    faults = list(images)
    cut = {int(row): int(texts.cut[row]) for row in np.flatnonzero(texts.cut)}
    for i, part in enumerate(filler.plan.parts):
        filled.findings[i].merge(item_findings(part, faults, texts.faults, cut, filler.plan))


def _report_pairs(part: BenchmarkPart, needs: Input, sheet: Sheet, places: np.ndarray, findings: Findings) -> None:
    """The faults of pairs as findings of the items whose cells they are."""
    starts = np.append(part.layout.starts(needs), len(places))
    cut = [Fault(int(r), "caption-cut", cut_message(int(sheet.cut[r]))) for r in np.flatnonzero(sheet.cut)]
    findings.merge(cell_findings(part, [*sheet.faults, *cut], places, starts))
