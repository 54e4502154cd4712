"""Random numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def seeded(seed: int | Sequence[int]) -> np.random.Generator:
    """Return a generator of random numbers that does not depend on which one numpy takes by default."""
    return np.random.Generator(np.random.PCG64(seed))
