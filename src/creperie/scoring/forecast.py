"""Forecast how much work a run is, and how long it will take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from creperie.core import CreperieError, read_json, write_json
from creperie.metrics import Input
from creperie.models import StagedTexts
from creperie.scoring.batch_size import Timings, device_of, pace_for
from creperie.scoring.driver import Driver
from creperie.scoring.filler import CacheUse
from creperie.scoring.handle import Handle
from creperie.scoring.passes import encode_images, encode_texts, prepare_images, score_texts
from creperie.scoring.plan import ScoringPlan, pair_cells
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
    work = _work(plan, handle, store, routes)
    left = {what: use.missing for what, use in work.items()}
    nothing = not any(left.values())
    rates, basis = recall_rates(store, handle), "earlier runs"
    if any(n and not getattr(rates, what, 0) for what, n in left.items()):
        by_pairs = routes - {"towers", "text", "blind"}
        rates, basis = (None, "nothing") if by_pairs else (_probe(plan, handle, left["images"] > 0), "a probe")
    if work["images"].needed:
        left["images"] -= len(plan.broken)
    speed = vars(rates) if rates else {}
    sizes = {what: speed.get(f"{what}_per_batch", 0) for what in left}
    seconds = sum(n / speed[what] for what, n in left.items() if n and speed[what]) if rates else math.nan
    return Forecast(
        model=handle.uri,
        items=plan.items,
        **work,
        broken_images=len(plan.broken),
        tokens=round(left["captions"] * speed.get("tokens_per_caption", 0)),
        batches=sum(math.ceil(n / sizes[what]) for what, n in left.items() if n and sizes[what]),
        memory=_memory(plan, handle, store, work["images"].needed, work["captions"].needed),
        seconds=0.0 if nothing else seconds,
        device=rates.device if rates else "",
        basis="the store" if nothing else basis,
    )


def _work(plan: ScoringPlan, handle: Handle, store: ResultStore, routes: set[str]) -> dict[str, CacheUse]:
    """Return how many images, captions and pairs are needed and how many of them are stored. `routes` are the ways in
    which the model fills columns (see `Handle.routes`).

    Multiple-choice results are stored per image, not per pair. Their pairs are therefore counted as not stored.
    """
    keys = {"image": plan.image_keys, "text": plan.text_keys, "blind": plan.text_keys}

    def use(*kinds: str) -> CacheUse:
        needed = {kind: keys[kind] if kind in keys else pair_cells(plan, kind).keys for kind in kinds}
        shelves = {kind: store.shelf(handle.fingerprint, kind) for kind in kinds if handle.stored}
        stored = sum(len(shelf.find(needed[kind]).rows) for kind, shelf in shelves.items())
        return CacheUse(sum(map(len, needed.values())), stored)

    vectors = routes & {"towers", "text"}
    return {
        "images": use(*["image"] * ("towers" in routes)),
        "captions": use(*["text"] if vectors else routes & {"blind"}),
        "pairs": use(*{"pair" if route == "choice" else route for route in routes - {"towers", "text", "blind"}}),
    }


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
    work = encode_texts if hasattr(model, "encode_texts") else score_texts
    timings = Timings()
    for few, some in ((texts[:32], rows[:8]), (texts, rows)):  # the first to warm up
        timings = Timings()
        timings.counts.update(captions=len(few), images=len(some))
        with Driver(model, pace_for(model), timings) as driver:
            with timings.stage("encode captions"):
                work(driver, few, Sheet(len(few)))
            with timings.stage("encode images"):
                sheet = Sheet(len(some))
                ready = prepare_images(driver, lambda row, rows=some: plan.open(rows[row]), sheet)
                if some:
                    encode_images(driver, ready, sheet)
    rates = rates_of(timings, device_of(model), enough=1)
    if isinstance(model, StagedTexts) and texts:
        tokens = float(np.mean([len(t.ids) for t in model.prepare_texts(texts)]))
        rates = replace(rates, tokens_per_caption=tokens or rates.tokens_per_caption)
    return rates


# -- the speed of a model on this machine, stored for later forecasts --------------------------------------------------

#: below this count the start-up takes longer than the work, and the rate is meaningless
ENOUGH = 64


@dataclass(frozen=True)
class Rates:
    """The speed of one model on one device: how many images, captions and pairs it processes per second, and how many
    images and captions per batch. A number is 0 if it was not measured.
    """

    device: str
    images: float = 0.0
    captions: float = 0.0
    pairs: float = 0.0
    tokens_per_caption: float = 0.0
    images_per_batch: float = 0.0
    captions_per_batch: float = 0.0


def rates_of(timings: Timings, device: str, enough: int = ENOUGH) -> Rates:
    """Return how many images, captions and pairs were processed per second, and the average sizes: tokens per
    caption, images per batch, and captions per batch. A speed is 0 if fewer than `enough` inputs were processed.
    """

    def per_second(what: str) -> float:
        count, seconds = timings.counts[what], timings.seconds.get(f"encode {what}", 0.0)
        return count / seconds if count >= enough and seconds else 0.0

    def each(what: str, by: str) -> float:
        return timings.counts[what] / timings.counts[by] if timings.counts[by] else 0.0

    return Rates(
        device,
        per_second("images"),
        per_second("captions"),
        per_second("pairs"),
        each("tokens", "captions"),
        each("images", "images batches"),
        each("captions", "tokens batches"),
    )


def _path(store: ResultStore, handle: Handle) -> Path:
    return store.home / "rates" / f"{handle.fingerprint.key}.json"


def remember_rates(store: ResultStore, handle: Handle, timings: Timings) -> None:
    """Store the rates (inputs per second) measured in `timings`. Rates that were not measured keep their
    stored values.
    """
    new = rates_of(timings, device_of(handle.model))
    old = recall_rates(store, handle)
    if old and old.device == new.device:
        new = Rates(new.device, *(asdict(new)[k] or v for k, v in asdict(old).items() if k != "device"))
    if new.images or new.captions or new.pairs:
        try:
            write_json(_path(store, handle), asdict(new))
        except OSError:
            return  # only the forecast is lost


def recall_rates(store: ResultStore, handle: Handle) -> Rates | None:
    try:
        return Rates(**read_json(_path(store, handle)))
    except (CreperieError, TypeError):
        return None
