"""How much of the caption's own probability to subtract: α tuned on some items, judged on the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.core import UsageError
from creperie.metrics import HIT, TIE, VOID, outcomes, task
from creperie.scoring.run import Run

GRID = tuple(round(0.05 * k, 2) for k in range(31))


@dataclass(frozen=True)
class TunedAlpha:
    """The α that was best on the tuning items, and accuracies there and on the held-out items at 0, it, and 1."""

    alpha: float
    tuning: dict[float, float]
    held_out: dict[float, float]
    n_tuning: int
    n_held_out: int

    def document(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha,
            "n_tuning": self.n_tuning,
            "n_held_out": self.n_held_out,
            "rows": [
                {"alpha": a, "tuning": self.tuning[a], "held_out": self.held_out[a]} for a in sorted(self.held_out)
            ],
        }


def tune_alpha(run: Run, *, name: str = "itt", share: float = 0.5, seed: int = 0) -> TunedAlpha:
    """Tune α on a share of the items, drawn by seed so that items with a common image stay together.

    The run needs both columns: log P(t|I) (`image_text`) and log P(t) (`text`), as `vlm:…?nulls=3` gives them.
    """
    if not {"image_text", "text"} <= set(run.inputs):
        hint = "score with vlm:…?score=visualgpt&nulls=3"
        raise UsageError("the run lacks log P(caption | image) or log P(caption)", where=run.name, hint=hint)
    if float(run.document["model"]["fingerprint"]["options"].get("alpha") or 0):
        raise UsageError("the run's scores are already debiased", where=run.name, hint="score without ?alpha=")
    rng = np.random.default_rng(seed)
    clusters = np.unique(run.clusters)
    drawn = rng.permutation(clusters)[: max(1, round(share * len(clusters)))]
    tuning = np.isin(run.clusters, drawn)
    if tuning.all():
        raise UsageError("no items are left to judge α on", where=run.name, hint="take a smaller share")
    marginal = _spread(run)
    found = {a: outcomes(task(name), run.layout, run.scores("image_text") - np.float32(a) * marginal) for a in GRID}
    inside = {a: _accuracy(o[tuning]) for a, o in found.items()}
    best = max(GRID, key=lambda a: (inside[a], -a))
    shown = sorted({0.0, best, 1.0})
    outside = {a: _accuracy(found[a][~tuning]) for a in shown}
    return TunedAlpha(best, inside, outside, int(tuning.sum()), int((~tuning).sum()))


def _spread(run: Run) -> np.ndarray:
    """log P(t) for every cell of images × captions."""
    text = run.scores("text")
    starts = np.append(0, np.cumsum(run.layout.columns))
    rows = [np.tile(text[starts[i] : starts[i + 1]], int(n)) for i, n in enumerate(run.layout.rows)]
    return np.concatenate(rows) if rows else np.zeros(0, np.float32)


def _accuracy(found: np.ndarray) -> float:
    """Hits among the items that could be compared; a tie is a miss."""
    counted = found[found != VOID]
    assert TIE != HIT
    return float((counted == HIT).mean()) if len(counted) else float("nan")
