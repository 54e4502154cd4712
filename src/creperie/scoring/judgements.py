"""People's judgements of captions as the truth for scores: Flickr8k-Expert and Flickr8k-CF.

Protocol, as caption metrics are usually tested on these files: pairs whose caption was written for the same image are
left out (a metric with references would see its own reference). Expert: every one of the three ratings, 1 to 4, is a
data point with the pair's score. CF: one data point per pair, the share of yes. Ties in ratings or scores enter τ by
its own formula; nothing is broken by chance. Scores that are missing are counted and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench import ImageError, ImageStore, open_image, open_store
from creperie.core import DataError, ModelError, Progress, silent, unknown
from creperie.metrics import kendall
from creperie.models import ImageEncoder, PairScorer, TextEncoder, TextScorer, in_parts, load_model

FILES = {"expert": "ExpertAnnotations.txt", "cf": "CrowdFlowerAnnotations.txt"}
#: τ that CLIPScore's paper prints for each set, in percent, and its variant
PUBLISHED_TAU = {"expert": ("c", 51.2), "cf": ("b", 34.4)}
RESAMPLES = 200


@dataclass(frozen=True)
class JudgedPair:
    """An image, a caption, and people's ratings of how well the caption describes it."""

    image: str
    caption: str
    ratings: tuple[float, ...]


@dataclass(frozen=True)
class HumanCorrelation:
    """τ_b and τ_c of a model's scores with people's ratings; 95 % intervals from resampled images."""

    set: str
    model: str
    pairs: int
    points: int
    own_captions: int  #: pairs left out because the caption was written for the image
    missing: int  #: pairs without a score
    photographs: int
    tau_b: tuple[float, float, float]
    tau_c: tuple[float, float, float]

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self)


def read_judgements(folder: str | Path, which: str) -> tuple[list[JudgedPair], int]:
    """The judged pairs of a Flickr8k folder, and how many were left out because image and caption belong together."""
    if which not in FILES:
        raise unknown("set of judgements", which, FILES)
    place = Path(folder)
    for name in (FILES[which], "Flickr8k.token.txt"):
        if not (place / name).is_file():
            raise DataError("there is no such file", where=str(place / name), hint="name the folder of Flickr8k")
    lines = (place / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
    captions = dict(line.split("\t", 1) for line in lines if "\t" in line)
    found, own = [], 0
    for number, line in enumerate((place / FILES[which]).read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split("\t")
        if len(cells) != 5 or cells[1] not in captions:
            raise DataError("expected an image, a known caption and three numbers", where=f"{FILES[which]}:{number}")
        if cells[1].partition("#")[0] == cells[0]:
            own += 1
            continue
        ratings = cells[2:] if which == "expert" else cells[2:3]
        found.append(JudgedPair(cells[0], captions[cells[1]], tuple(map(float, ratings))))
    return found, own


def human_correlation(
    folder: str | Path,
    which: str,
    model: str,
    *,
    images: str | Path | None = None,
    device: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> HumanCorrelation:
    """Score all judged pairs with a model and correlate the scores with the ratings. `limit` draws photographs."""
    pairs, own = read_judgements(folder, which)
    names = sorted({pair.image for pair in pairs})
    if limit:
        chosen = {names[k] for k in np.random.default_rng(seed).permutation(len(names))[:limit]}
        pairs = [pair for pair in pairs if pair.image in chosen]
    store = open_store(str(images or Path(folder) / "images.zip"))
    scores = pair_scores(pairs, load_model(model, device=device), store, progress)
    known = [(pair, score) for pair, score in zip(pairs, scores, strict=True) if not np.isnan(score)]
    points = [(pair.image, score, rating) for pair, score in known for rating in pair.ratings]
    counts = (len(known), len(points), own, len(pairs) - len(known), len({pair.image for pair in pairs}))
    return HumanCorrelation(which, model, *counts, _interval(points, "b"), _interval(points, "c"))


def pair_scores(pairs: Sequence[JudgedPair], model: Any, store: ImageStore, progress: Progress = silent) -> np.ndarray:
    """One score per pair; NaN where an image cannot be read. Models that see no image score the caption alone."""
    texts = list(dict.fromkeys(pair.caption for pair in pairs))
    number = {text: k for k, text in enumerate(texts)}
    if isinstance(model, TextScorer) and not isinstance(model, PairScorer):
        return np.asarray(in_parts(model.score_texts, texts)[[number[pair.caption] for pair in pairs]], np.float64)
    dual = isinstance(model, ImageEncoder) and isinstance(model, TextEncoder)
    if not dual and not isinstance(model, PairScorer):
        raise ModelError("cannot score an image with a caption", where=model.fingerprint.uri)
    said = in_parts(model.encode_texts, texts) if dual else None
    rows: dict[str, list[int]] = {}
    for row, pair in enumerate(pairs):
        rows.setdefault(pair.image, []).append(row)
    found = np.full(len(pairs), np.nan)
    with progress("score judged pairs", len(rows), "images") as advance:
        for key, own in rows.items():
            try:
                image = open_image(store, key)
            except ImageError:
                continue
            wanted = [number[pairs[row].caption] for row in own]
            if said is not None:
                found[own] = said[wanted] @ model.encode_images([image])[0]
            else:
                found[own] = model.score_pairs(image, [texts[k] for k in wanted])
            advance(1)
    return found


def _interval(points: Sequence[tuple[str, float, float]], variant: str) -> tuple[float, float, float]:
    """τ and the middle 95 % of τ over resampled images."""
    scores, ratings = (np.array([p[k] for p in points]) for k in (1, 2))
    images = np.unique([p[0] for p in points], return_inverse=True)[1]
    by_image = [np.flatnonzero(images == k) for k in range(int(images.max()) + 1)]
    dice = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        chosen = np.concatenate([by_image[k] for k in dice.integers(0, len(by_image), len(by_image))])
        drawn.append(kendall(scores[chosen], ratings[chosen], variant))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return kendall(scores, ratings, variant), float(low), float(high)
