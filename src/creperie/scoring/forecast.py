"""Forecast how much work a run is, and how long it will take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.metrics import Input
from creperie.models import StagedTexts
from creperie.scoring.batch_size import Timings, device_of, pace_for
from creperie.scoring.cells import pair_cells
from creperie.scoring.driver import Driver
from creperie.scoring.filler import CacheUse
from creperie.scoring.handle import Handle
from creperie.scoring.passes import encode_images, encode_texts, prepare_images, score_texts
from creperie.scoring.plan import ScoringPlan
from creperie.scoring.rates import Rates, rates_of, recall_rates
from creperie.scoring.sheet import Sheet
from creperie.scoring.store import ResultStore

PROBE_CAPTIONS = 256
PROBE_IMAGES = 64


@dataclass(frozen=True)
class Forecast:
    """The work that remains for one model. `seconds` is NaN if the speed of the model is unknown."""

    model: str
    items: int
    images: CacheUse
    captions: CacheUse
    pairs: CacheUse
    broken_images: int
    tokens: int
    batches: int
    memory: int  #: bytes of vectors and scores in memory while scoring
    seconds: float
    device: str
    basis: str  #: the source of the rates


def forecast(plan: ScoringPlan, handle: Handle, inputs: Iterable[Input], store: ResultStore) -> Forecast:
    """Return how many results are missing and how long it will take to compute them.

    The speed is taken from earlier runs or, if there are none, from a short test.
    """
    routes = set(handle.routes(inputs).values())
    by_pairs = routes - {"towers", "text", "blind"}
    images = _share(plan.image_keys, handle, store, "image") if "towers" in routes else CacheUse(0, 0)
    kind = "text" if routes & {"towers", "text"} else "blind"
    captions = CacheUse(0, 0) if routes == by_pairs else _share(plan.text_keys, handle, store, kind)
    pairs = _pairs(plan, handle, store, by_pairs)
    nothing = not (images.missing + captions.missing + pairs.missing)
    rates, basis = recall_rates(store, handle), "earlier runs"
    if not nothing and not _covers(rates, images, captions, pairs):
        rates, basis = (None, "nothing") if by_pairs else (_probe(plan, handle, images.missing > 0), "a probe")
    readable = images.missing - len(plan.broken) if images.needed else 0
    return Forecast(
        model=handle.uri,
        items=plan.items,
        images=images,
        captions=captions,
        pairs=pairs,
        broken_images=len(plan.broken),
        tokens=round(captions.missing * rates.tokens_per_caption) if rates else 0,
        batches=_batches(rates, readable, captions.missing),
        memory=_memory(plan, handle, store, images.needed, captions.needed),
        seconds=0.0 if nothing else _seconds(rates, readable, captions.missing, pairs.missing),
        device=rates.device if rates else "",
        basis="the store" if nothing else basis,
    )


def _share(keys: np.ndarray, handle: Handle, store: ResultStore, kind: str) -> CacheUse:
    stored = store.shelf(handle.fingerprint, kind).find(keys).rows if handle.stored else ()
    return CacheUse(len(keys), len(stored))


def _pairs(plan: ScoringPlan, handle: Handle, store: ResultStore, routes: set[str]) -> CacheUse:
    """Return how many pairs are needed and how many of them are stored. `routes` are the ways in which the model fills
    columns pair by pair (see `Handle.routes`).

    Multiple-choice results are stored per image, not per pair. Their pairs are therefore counted as not stored.
    """
    kinds = {"pair" if route == "choice" else route for route in routes}
    uses = [_share(pair_cells(plan, kind).keys, handle, store, kind) for kind in kinds]
    return CacheUse(sum(use.needed for use in uses), sum(use.stored for use in uses))


def _covers(rates: Rates | None, images: CacheUse, captions: CacheUse, pairs: CacheUse) -> bool:
    return rates is not None and not (
        (images.missing and not rates.images)
        or (captions.missing and not rates.captions)
        or (pairs.missing and not rates.pairs)
    )


def _batches(rates: Rates | None, images: int, captions: int) -> int:
    if rates is None:
        return 0
    parts = ((images, rates.images_per_batch), (captions, rates.captions_per_batch))
    return sum(math.ceil(n / each) for n, each in parts if n and each)


def _seconds(rates: Rates | None, images: int, captions: int, pairs: int) -> float:
    if rates is None:
        return math.nan
    parts = ((images, rates.images), (captions, rates.captions), (pairs, rates.pairs))
    return sum(n / rate for n, rate in parts if n and rate)


def _memory(plan: ScoringPlan, handle: Handle, store: ResultStore, images: int, captions: int) -> int:
    """Return how many bytes all scores and vectors take. The dimension of the vectors is read from stored vectors; if
    there are none, it is assumed to be 512.
    """
    width = 512
    for kind in ("text", "image") if handle.stored else ():
        keys = plan.text_keys if kind == "text" else plan.image_keys
        sample = store.shelf(handle.fingerprint, kind).find(keys[:64])
        if sample.vectors.ndim > 1 and len(sample.rows):
            width = int(np.prod(sample.vectors.shape[1:]))
    scores = sum(int(p.layout.widths("image_text").sum() + p.layout.widths("text_text").sum()) for p in plan.parts)
    return 4 * (width * (images + captions) + scores)


def _probe(plan: ScoringPlan, handle: Handle, images: bool) -> Rates:
    """Return the speed measured on a few captions and images; nothing is stored."""
    model = handle.model
    rng = np.random.default_rng(0)
    texts = [plan.texts[i] for i in rng.permutation(len(plan.texts))[:PROBE_CAPTIONS]]
    broken = {f.row for f in plan.broken}
    rows = [i for i in rng.permutation(len(plan.images)).tolist() if i not in broken][:PROBE_IMAGES] if images else []
    timings = Timings()
    for few, some in ((texts[:32], rows[:8]), (texts, rows)):  # the first to warm up
        timings = Timings()
        with Driver(model, pace_for(model), timings) as driver:
            _time_texts(driver, few)
            _time_images(driver, plan, some)
    rates = rates_of(timings, device_of(model), enough=1)
    tokens = _tokens_per_caption(model, texts)
    return Rates(**{**vars(rates), "tokens_per_caption": tokens or rates.tokens_per_caption})


def _tokens_per_caption(model: object, texts: Sequence[str]) -> float:
    if not isinstance(model, StagedTexts) or not texts:
        return 0.0
    return float(np.mean([len(t.ids) for t in model.prepare_texts(texts)]))


def _time_texts(driver: Driver, texts: Sequence[str]) -> None:
    sheet = Sheet(len(texts))
    work = encode_texts if hasattr(driver.model, "encode_texts") else score_texts
    with driver.timings.stage("encode captions"):
        work(driver, texts, sheet)
    driver.timings.counts["captions"] += len(texts)


def _time_images(driver: Driver, plan: ScoringPlan, rows: Sequence[int]) -> None:
    sheet = Sheet(len(rows))
    with driver.timings.stage("encode images"):
        ready = prepare_images(driver, lambda row: plan.open(rows[row]), sheet)
        if rows:
            encode_images(driver, ready, sheet)
    driver.timings.counts["images"] += len(rows)
