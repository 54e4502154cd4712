"""Kendall's τ of models with people's judgements of Flickr8k's captions, into research/results/judgements.md.

    python research/judgements.py path/to/flickr8k --out FILE.json "the house model=towers:out/house/model" …

Every model is `label=URI`; one that FILE.json has already is not computed again, so several machines can add to it.
`--limit N` takes N photographs, drawn by a fixed seed, for models that are slow. With `--page`, write the table.

Protocol, as caption metrics are usually tested on these files: pairs whose caption was written for the same image are
left out (a metric with references would see its own reference). Expert: every one of the three ratings, 1 to 4, is a
data point with the pair's score. CF: one data point per pair, the share of yes. Ties in ratings or scores enter τ by
its own formula; nothing is broken by chance. Scores that are missing are counted and left out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from first_minute import write
from scipy.stats import kendalltau

from creperie.bench import ImageError, ImageStore, open_image, open_store
from creperie.core import DataError, ModelError, Progress, silent, unknown, write_text
from creperie.models import ImageEncoder, PairScorer, TextEncoder, TextScorer, in_parts, load_model

FILES = {"expert": "ExpertAnnotations.txt", "cf": "CrowdFlowerAnnotations.txt"}
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


def tau(x: np.ndarray, y: np.ndarray, variant: str) -> float:
    return float(kendalltau(x, y, variant=variant).statistic)


def _interval(points: Sequence[tuple[str, float, float]], variant: str) -> tuple[float, float, float]:
    """τ and the middle 95 % of τ over resampled images."""
    scores, ratings = (np.array([p[k] for p in points]) for k in (1, 2))
    images = np.unique([p[0] for p in points], return_inverse=True)[1]
    by_image = [np.flatnonzero(images == k) for k in range(int(images.max()) + 1)]
    dice = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        chosen = np.concatenate([by_image[k] for k in dice.integers(0, len(by_image), len(by_image))])
        drawn.append(tau(scores[chosen], ratings[chosen], variant))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return tau(scores, ratings, variant), float(low), float(high)


SETS = ("expert", "cf")
PRINTED = ["CLIPScore, ViT-B/32, as its paper prints it", "–", "51.2", "34.4", "–", "", ""]


def measured(folder: Path, which: str, uri: str, how: dict[str, Any]) -> dict[str, Any]:
    """τ of a model, with the seconds that it took."""
    began = time.perf_counter()
    row = human_correlation(folder, which, uri, **how).document
    return {**row, "seconds": round(time.perf_counter() - began, 1)}


def table(known: dict[str, dict[str, Any]]) -> str:
    def tau(row: dict[str, Any], variant: str) -> str:
        value, low, high = (100 * v for v in row[f"tau_{variant}"])
        return f"{value:.1f} [{low:.1f}, {high:.1f}]"

    rows = [PRINTED]
    for label in dict.fromkeys(key.split("/", 1)[1] for key in known):
        expert, crowd = (known.get(f"{which}/{label}") for which in SETS)
        cells = [tau(row, v) if row else "not run" for row, v in zip((expert, expert, crowd, crowd), "bcbc")]
        counts = " / ".join(f"{row['pairs']:,}" if row else "–" for row in (expert, crowd))
        rows.append([label, *cells, counts, str(sum(row["missing"] for row in (expert, crowd) if row))])
    head = ["model", "Expert τ_b", "Expert τ_c", "CF τ_b", "CF τ_c", "pairs", "missing"]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flickr8k", type=Path)
    parser.add_argument("models", nargs="*", metavar="LABEL=URI")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--limit", type=int, help="photographs, drawn by a fixed seed")
    parser.add_argument("--limit-cf", type=int)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_intermixed_args()
    known: dict[str, dict[str, Any]] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for model in asked.models:
        label, _, uri = model.partition("=")
        for which in SETS:
            if f"{which}/{label}" not in known:
                limit = asked.limit if which == "expert" else asked.limit_cf or asked.limit
                row = measured(asked.flickr8k, which, uri, {"images": asked.images, "limit": limit})
                known[f"{which}/{label}"] = row
                write_text(asked.out, json.dumps(known, indent=1))
                print(label, which, row["tau_b"], row["tau_c"], row["seconds"], flush=True)
    print(table(known))
    if asked.page:
        write(asked.page, "judgements", f"\n{table(known)}\n")


if __name__ == "__main__":
    main()
