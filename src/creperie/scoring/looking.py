"""Check the match matrix with a model that sees images. Captions marked true should be true of their images, and
captions marked false should be false.

The model must give probabilities: P(yes) of a generative model, or P(match) of a matching head. A caption with a
probability of 0.5 or more counts as true of the image.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark, new_folder, reweighed, save
from creperie.core import Progress, UsageError, silent, write_json, write_parquet
from creperie.models import load_model, parse_uri
from creperie.scoring.matrix import forecast_all, score
from creperie.scoring.options import ScoreOptions
from creperie.scoring.run import Run

IMAGE_TOKENS, QUESTION_TOKENS = 800, 60  #: assumed tokens per question to a server
#: the codes of findings → their messages
LOOKS = {
    "false-looks-true": "the model finds a false caption true of the image",
    "true-looks-false": "the model finds a true caption false of the image",
    "not-seen": "there is no score: the image cannot be read, or the answer is neither yes nor no",
}


@dataclass(frozen=True)
class SeenCells:
    """A model's judgement of every cell, that is, of each caption with each image of its item."""

    bench: Benchmark
    run: Run

    @property
    def rows(self) -> list[dict[str, Any]]:
        scores = self.run.scores("image_text")
        rows, at = [], 0
        for item in self.bench:
            for image, truths in enumerate(item.match):
                for caption, truth in enumerate(truths):
                    p = float(scores[at])
                    code = "" if (p >= 0.5) == truth else "true-looks-false" if truth else "false-looks-true"
                    code = "not-seen" if np.isnan(p) else code
                    cell = {"subset": item.subset, "item": item.id, "image": image, "caption": caption}
                    rows.append({**cell, "text": item.captions[caption], "truth": bool(truth), "p": p, "code": code})
                    at += 1
        return rows

    @property
    def doubted(self) -> set[tuple[str, str]]:
        return {(r["subset"], r["item"]) for r in self.rows if r["code"].endswith(("true", "false"))}

    @property
    def document(self) -> dict[str, Any]:
        rows = self.rows
        codes = {kind: [r["code"] for r in rows if r["truth"] == (kind == "true")] for kind in ("true", "false")}
        kinds = {kind: {"cells": len(own), **Counter(filter(None, own))} for kind, own in codes.items()}
        return {
            "bench": self.bench.name,
            "model": self.run.model,
            "items": len(self.bench),
            "cells": kinds,
            "failed": len(self.doubted),
            "findings": [{**r, "message": LOOKS[r["code"]]} for r in rows if r["code"]],
        }

    def save(self, out: str | Path) -> None:
        """Write the judgements to a folder.

        `looks.json` and `looks.parquet` (one row per cell) hold the judgements, and `people/` the items that people
        should check. If items have an evidence level (the tag `evidence`), `weighed/` holds the benchmark with levels
        that are raised or lowered according to the judgements.
        """
        rows, doubted = self.rows, {(r["subset"], r["item"]) for r in self.rows if r["code"]}
        mask = [(item.subset, item.id) in doubted for item in self.bench]
        with new_folder(Path(out)) as draft:
            write_parquet(pa.Table.from_pylist(rows), draft / "looks.parquet")
            write_json(draft / "looks.json", self.document, files=["looks.parquet"])
            if any(mask):
                save(self.bench.filter(mask, why="a model doubts them"), draft / "people")
            agreed = {(item.subset, item.id) for item in self.bench} - doubted
            if (weighed := reweighed(self.bench, self.run.model, self.doubted, agreed)) is not None:
                save(weighed, draft / "weighed")


def seeing(uri: str) -> str:
    """Return a model URI for judging captions with images: if a generative model has no option `score`, `score=yesno`
    is added.
    """
    parsed = parse_uri(uri)
    asks = parsed.kind in ("vlm", "api") and "score" not in parsed.options
    return f"{uri}{'&' if '?' in uri else '?'}score=yesno" if asks else uri


def expected_look(bench: BenchmarkSpec, uri: str, progress: Progress = silent) -> dict[str, Any]:
    """Return a forecast of `look`: how many items there are, how many questions have no stored answer, how many tokens
    must be sent to a server (`tokens_in`), the cost, and the seconds. The cost is None unless a server charges for the
    questions. The seconds are None if unknown.
    """
    (plan,) = forecast_all([bench], [seeing(uri)], ScoreOptions(), progress=progress)
    cells = plan.pairs.missing or plan.images.missing
    endpoint = getattr(getattr(load_model(seeing(uri)), "generator", None), "endpoint", None)
    tokens = cells * (IMAGE_TOKENS + QUESTION_TOKENS) if endpoint else 0
    cost = endpoint.cost(tokens, cells) if endpoint and (endpoint.price_in or endpoint.price_out) else None
    seconds = None if np.isnan(plan.seconds) else plan.seconds
    return {"items": plan.items, "questions": cells, "tokens_in": tokens, "cost": cost, "seconds": seconds}


def look(bench: BenchmarkSpec, uri: str, *, out: str | Path | None = None, progress: Progress = silent) -> SeenCells:
    """Let a model judge every caption with every image of its item, and return the judgements.

    Scores are stored as they are computed, so that an interrupted run can be resumed.
    """
    if out is not None and Path(out).exists():
        raise UsageError("this folder already exists", where=out, hint="choose another, or remove it")
    uri = seeing(uri)
    if not any(way in uri for way in ("score=yesno", "value=yes", "score=itm")):
        raise UsageError(
            "the scores of this model are not probabilities",
            where=uri,
            hint="name a vlm: or api: model, or a matching head: hf:MODEL?score=itm",
        )
    known = as_benchmark(bench)
    run = score(known, uri, progress=progress)
    if "image_text" not in run.inputs:
        raise UsageError(
            "this model needs the images to give image-text scores", where=uri, hint="pass them with `images=`"
        )
    seen = SeenCells(known, run)
    if out is not None:
        seen.save(out)
    return seen
