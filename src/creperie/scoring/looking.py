"""A model that sees looks at every cell of a benchmark: is a true caption true of its image, and a false one false?

Scores become probabilities by a calibration on cells whose truth people know: P = 1 / (1 + exp(−(slope·score +
offset))), where true and false cells weigh the same. What lies between two thresholds is left to people.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark, new_folder, reweighed, save, write_table
from creperie.core import DataError, Progress, UsageError, silent, write_json
from creperie.models import load_model, parse_uri
from creperie.scoring.options import ScoreOptions
from creperie.scoring.run import Run
from creperie.scoring.score_runs import forecast_all, score

CERTAINTY = 0.9  #: share of right verdicts that the thresholds aim at
IMAGE_TOKENS, QUESTION_TOKENS = 800, 60  #: what one question to a server is taken to read
#: what a look can find, and what to say of it
LOOKS = {
    "false-looks-true": "the model finds a false caption true of the image",
    "true-looks-false": "the model finds a true caption false of the image",
    "unsure": "the model is not sure",
    "not-seen": "there is no score: the image cannot be read, or the answer is neither yes nor no",
}


@dataclass(frozen=True)
class Calibration:
    """How a score becomes a probability, and from where on it is believed. `held_out` is what the other half says."""

    source: str
    slope: float | None  #: None: scores are probabilities as they are
    offset: float
    low: float  #: false up to here
    high: float  #: true from here on
    cells: int = 0
    true: int = 0
    held_out: dict[str, float] | None = None

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        given = np.asarray(scores, float)
        return given if self.slope is None else np.asarray(1 / (1 + np.exp(-(self.slope * given + self.offset))))

    def verdicts(self, scores: np.ndarray) -> np.ndarray:
        """1 for true, 0 for false, −1 where it is not clear; −2 where there is no score."""
        p = self.probabilities(scores)
        found = np.where(p >= self.high, 1, np.where(p <= self.low, 0, -1))
        return np.where(np.isnan(p), -2, found)


#: P(yes) as it is
PLAIN = Calibration("P(yes) as it is", None, 0.0, 0.5, 0.5)


def calibrate(source: str, scores: np.ndarray, truths: np.ndarray, images: Sequence[str]) -> Calibration:
    """Fit one half of the images, choose thresholds there, and test both on the other half."""
    known = ~np.isnan(scores)
    scores, truths = np.asarray(scores, float)[known], np.asarray(truths, bool)[known]
    half = np.array([hashlib.sha256(i.encode()).digest()[-1] % 2 == 0 for i in np.asarray(images, object)[known]], bool)
    if any(len(np.unique(truths[part])) < 2 for part in (half, ~half)):
        raise DataError("needs true and false cells of at least two images in each half", where=source)
    slope, offset = _logistic(scores[half], truths[half])
    p = Calibration(source, slope, offset, 0.0, 1.0).probabilities(scores[half])
    low, high = _thresholds(p, truths[half])
    done = Calibration(source, slope, offset, low, high, len(scores), int(truths.sum()))
    return Calibration(**{**asdict(done), "held_out": _tested(done, scores[~half], truths[~half])})


def _weights(truths: np.ndarray) -> np.ndarray:
    """True and false cells weigh one half each."""
    return np.where(truths, 0.5 / max(1, truths.sum()), 0.5 / max(1, (~truths).sum()))


def _logistic(scores: np.ndarray, truths: np.ndarray) -> tuple[float, float]:
    """Slope and offset of the weighted logistic regression, by Newton's method."""
    middle, spread = scores.mean(), scores.std() or 1.0
    x, w, beta = np.stack([(scores - middle) / spread, np.ones(len(scores))]), _weights(truths), np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-(beta @ x)))
        gradient = x @ (w * (truths - p)) - 1e-4 * beta  # a little ridge: separable scores have no finite slope
        beta += np.linalg.solve((x * (w * p * (1 - p))) @ x.T + 1e-4 * np.eye(2), gradient)
    return float(beta[0] / spread), float(beta[1] - beta[0] * middle / spread)


def _thresholds(p: np.ndarray, truths: np.ndarray) -> tuple[float, float]:
    """The largest P up to which, and the smallest from which on, verdicts are expected to be right often enough."""
    order = np.argsort(p)
    w, p = _weights(truths)[order], p[order]
    below = np.cumsum(w * (1 - p)) / np.cumsum(w)
    above = (np.cumsum((w * p)[::-1]) / np.cumsum(w[::-1]))[::-1]
    low, high = p[below >= CERTAINTY], p[above >= CERTAINTY]
    return float(low.max()) if len(low) else -1.0, float(high.min()) if len(high) else 2.0


def _tested(fit: Calibration, scores: np.ndarray, truths: np.ndarray) -> dict[str, float]:
    """Of cells that weigh the same by truth: how many get a verdict, how many of those are right, and AUC."""
    verdicts, w = fit.verdicts(scores), _weights(truths)
    rank = np.searchsorted(np.sort(scores[~truths]), scores[truths], "left")
    ties = np.searchsorted(np.sort(scores[~truths]), scores[truths], "right")
    right = {name: (w * (truths == value))[verdicts == value].sum() for name, value in (("true", 1), ("false", 0))}
    whole = {"true": w[verdicts == 1].sum(), "false": w[verdicts == 0].sum()}
    decided = float(w[verdicts >= 0].sum())
    auc = float((rank + ties).mean() / 2 / max(1, (~truths).sum()))
    shares = {f"{k}_right": float(v / whole[k]) if whole[k] else float("nan") for k, v in right.items()}
    return {"cells": len(scores), "auc": auc, "decided": decided, **shares}


def calibration_of(spec: str, uri: str, progress: Progress = silent) -> Calibration:
    """Calibrate a model on a benchmark whose truth is known."""
    run = score(spec, uri, progress=progress)
    clusters = np.repeat(run.clusters, run.layout.widths("image_text"))
    return calibrate(spec, run.scores("image_text"), run.layout.match, [str(c) for c in clusters])


@dataclass(frozen=True)
class SeenCells:
    """What a model saw, cell by cell: every caption with every image of its item."""

    bench: Benchmark
    run: Run
    calibration: Calibration

    @property
    def rows(self) -> list[dict[str, Any]]:
        scores = self.run.scores("image_text")
        p, said = self.calibration.probabilities(scores), self.calibration.verdicts(scores)
        rows, at = [], 0
        for item in self.bench:
            for image, truths in enumerate(item.match):
                for caption, truth in enumerate(truths):
                    code = {-2: "not-seen", -1: "unsure"}.get(int(said[at]), "")
                    if said[at] >= 0 and bool(said[at]) != truth:
                        code = "true-looks-false" if truth else "false-looks-true"
                    cell = {"subset": item.subset, "item": item.id, "image": image, "caption": caption}
                    found = {"score": float(scores[at]), "p": float(p[at]), "code": code}
                    rows.append({**cell, "text": item.captions[caption], "truth": bool(truth), **found})
                    at += 1
        return rows

    @property
    def doubted(self) -> set[tuple[str, str]]:
        return {(r["subset"], r["item"]) for r in self.rows if r["code"].endswith(("true", "false"))}

    @property
    def document(self) -> dict[str, Any]:
        rows = self.rows
        kinds: dict[str, Any] = {}
        for truth in (True, False):
            own = [r["code"] for r in rows if r["truth"] == truth]
            kinds["true" if truth else "false"] = {"cells": len(own), **Counter(c for c in own if c)}
        return {
            "bench": self.bench.name,
            "model": self.run.model,
            "items": len(self.bench),
            "cells": kinds,
            "failed": len(self.doubted),
            "calibration": asdict(self.calibration),
            "findings": [{**r, "message": LOOKS[r["code"]]} for r in rows if r["code"]],
        }

    def save(self, out: str | Path) -> None:
        """`looks.json`, `looks.parquet` with a row per cell, `people/`: the items that people should look at, and
        `weighed/`: twins with their evidence levels as the model leaves them."""
        rows, wanted = self.rows, {(r["subset"], r["item"]) for r in self.rows if r["code"]}
        mask = [(item.subset, item.id) in wanted for item in self.bench]
        with new_folder(Path(out)) as draft:
            write_json(draft / "looks.json", self.document)
            write_table(pa.Table.from_pylist(rows), draft / "looks.parquet")
            if any(mask):
                save(self.bench.filter(mask, why="a model doubts them"), draft / "people")
            agreed = {(item.subset, item.id) for item in self.bench} - wanted
            if (weighed := reweighed(self.bench, self.run.model, self.doubted, agreed)) is not None:
                save(weighed, draft / "weighed")


def seeing(uri: str) -> str:
    """The URI of a model that answers yes or no where it does not say how it scores."""
    parsed = parse_uri(uri)
    asks = parsed.kind in ("vlm", "api") and "score" not in parsed.options
    return f"{uri}{'&' if '?' in uri else '?'}score=yesno" if asks else uri


def expected_look(bench: BenchmarkSpec, uri: str, progress: Progress = silent) -> dict[str, Any]:
    """What a look will take: pairs not yet in the store, seconds where they are known, and dollars for a server."""
    (plan,) = forecast_all([bench], [seeing(uri)], ScoreOptions(), progress=progress)
    cells = plan.pairs.missing or plan.images.missing
    endpoint = getattr(getattr(load_model(seeing(uri)), "generator", None), "endpoint", None)
    tokens = cells * (IMAGE_TOKENS + QUESTION_TOKENS) if endpoint else 0
    cost = endpoint.cost(tokens, cells) if endpoint and (endpoint.price_in or endpoint.price_out) else None
    seconds = None if np.isnan(plan.seconds) else plan.seconds
    return {"items": plan.items, "questions": cells, "tokens_in": tokens, "cost": cost, "seconds": seconds}


def look(
    bench: BenchmarkSpec, uri: str, *, calibrated: str = "", out: str | Path | None = None, progress: Progress = silent
) -> SeenCells:
    """Let a model look at every cell. `calibrated` names a benchmark whose truth is known.

    Scores that are no probabilities need a calibration. Every score is kept when it is known, so a killed run resumes.
    """
    if out is not None and Path(out).exists():
        raise UsageError("this folder exists", where=str(out), hint="choose another, or remove it")
    uri = seeing(uri)
    if not calibrated and "score=yesno" not in uri and "value=yes" not in uri:
        hint = "pass `calibrated=`, a benchmark whose truth is known"
        raise UsageError("the scores of this model are not probabilities", where=uri, hint=hint)
    known = as_benchmark(bench)
    calibration = calibration_of(calibrated, uri, progress) if calibrated else PLAIN
    run = score(known, uri, progress=progress)
    if "image_text" not in run.inputs:
        raise UsageError("this model does not compare captions with images here", where=uri, hint="pass `images=`")
    found = SeenCells(known, run, calibration)
    if out is not None:
        found.save(out)
    return found
