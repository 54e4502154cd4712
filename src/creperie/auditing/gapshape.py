"""The distribution of an attacker's gaps: what Figure 4 of SugarCrepe and Figure 5 of SADE draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BINS = 20
_BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class GapShape:
    """Gaps of one attacker on one subset. `histogram` counts gap / scale in equal bins from −1 to 1.

    Divided by the largest gap in size, zero stays zero: of `lm-mean` this is the SyntaxBias score.
    """

    n: int
    mean: float
    quantiles: tuple[float, ...]  #: at 5, 25, 50, 75 and 95 %
    positive: float
    zero: float
    negative: float
    scale: float
    histogram: tuple[int, ...]

    @property
    def sparkline(self) -> str:
        """The histogram in one line of text.

        >>> gap_shape(np.array([-1.0, 1.0, 1.0, 0.0])).sparkline
        '▄         ▄        █'
        """
        top = max(self.histogram, default=0)
        if not top:
            return ""
        return "".join(_BLOCKS[-(-c * (len(_BLOCKS) - 1) // top)] for c in self.histogram)


def gap_shape(gaps: np.ndarray) -> GapShape:
    known = np.asarray(gaps, dtype=np.float64)
    known = known[np.isfinite(known)]
    n = len(known)
    if not n:
        nan = float("nan")
        return GapShape(0, nan, (nan,) * 5, nan, nan, nan, nan, ())
    scale = float(np.abs(known).max())
    counts, _ = np.histogram(known / scale if scale else known, bins=BINS, range=(-1, 1))
    return GapShape(
        n,
        float(known.mean()),
        tuple(float(q) for q in np.quantile(known, (0.05, 0.25, 0.5, 0.75, 0.95))),
        float((known > 0).mean()),
        float((known == 0).mean()),
        float((known < 0).mean()),
        scale,
        tuple(counts.tolist()),
    )
