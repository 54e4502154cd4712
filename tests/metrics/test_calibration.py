"""A thinned grid of research/calibration.py: intervals hold the truth as often as they say."""

from __future__ import annotations

from typing import Any

import pytest
from research.calibration import measured


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        {"kind": "accuracy", "clusters": 15, "size": 20, "icc": 0.4, "share": 0.9},
        {"kind": "accuracy", "clusters": 60, "size": 4, "icc": 0.2, "share": 0.98},
        {"kind": "difference", "clusters": 15, "size": 8, "icc": 0.2, "share": 0.95, "gap": 0.0},
        {"kind": "small against large", "clusters": 30, "size": 8, "icc": 0.2, "share": 0.75},
        {"kind": "macro mean", "sizes": (1,) * 8 + (100,), "share": 0.6, "icc": 0.3},
        {"kind": "macro difference", "sizes": (20, 20, 20), "share": 0.9, "icc": 0.3},
        {"kind": "agreement", "items": 300, "rare": 0.1, "kappa": 0.95, "readers": 2, "coefficient": "cohen"},
        {"kind": "agreement", "items": 300, "rare": 0.02, "kappa": 0.7, "readers": 3, "coefficient": "alpha"},
        {"kind": "F1", "clusters": 15, "size": 8, "icc": 0.2, "share": 0.9},
        {"kind": "AUROC", "clusters": 100, "size": 8, "icc": 0.4, "share": 0.98},
        {"kind": "mean rank", "clusters": 15, "size": 8, "icc": 0.2, "share": 0.98},
    ],
    ids=lambda cell: cell["kind"],
)
def test_intervals_hold_the_truth(cell: dict[str, Any]) -> None:
    """93 to 99 %, give or take three standard errors of 400 draws."""
    found = measured((cell, 400))
    assert found["coverage"] >= 0.897
    assert found["none"] < 0.1
