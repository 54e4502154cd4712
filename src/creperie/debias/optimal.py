"""The largest balanced subset, as an integer programme.

Items with the same signed bins under every attacker (and the same weight) are interchangeable, so the programme has
one integer variable per such signature, not one per item; which items of a signature stay is drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from creperie.debias.cells import signed_bins, unit_gaps
from creperie.errors import CreperieError, missing_extra

#: Up to this many signatures the programme is solved to proven optimality (or the time limit).
EXACT = 20_000


@dataclass(frozen=True)
class Selection:
    """Which items are kept, and how good that is: `bound` is the most that any balanced subset could keep."""

    keep: np.ndarray
    kept_weight: float
    bound: float
    proven: bool  #: True when no balanced subset is larger


@dataclass(frozen=True)
class _Programme:
    """max weight·x subject to balance @ x = 0 and 0 ≤ x ≤ count, x whole."""

    weight: np.ndarray
    count: np.ndarray
    balance: object  # scipy sparse matrix


def joint_gaps(gaps: np.ndarray) -> np.ndarray:
    """The gaps with the sum and the difference of every two attackers beside them.

    Balancing these too keeps a blind model from winning by adding two attackers up.
    """
    scaled = unit_gaps(gaps)
    k = scaled.shape[1]
    pairs = [scaled[:, a] + s * scaled[:, b] for a in range(k) for b in range(a + 1, k) for s in (1.0, -1.0)]
    return unit_gaps(np.column_stack([scaled, *pairs])) if pairs else scaled


def optimal(
    gaps: np.ndarray,
    *,
    bins: int = 10,
    weights: np.ndarray | None = None,
    seed: int = 0,
    time_limit: float = 60.0,
) -> Selection:
    """Keep as much weight as possible so that every attacker's gap histogram mirrors itself at zero.

    For every attacker and every bin of |gap|, as many kept items have a positive gap in it as have a negative one.
    """
    scaled = unit_gaps(gaps)
    cells = signed_bins(scaled, bins)
    worth = np.ones(len(cells)) if weights is None else np.asarray(weights, dtype=np.float64)
    keyed = np.column_stack([cells, np.unique(worth, return_inverse=True)[1].reshape(-1)])
    signatures, codes, counts = np.unique(keyed, axis=0, return_inverse=True, return_counts=True)
    codes = codes.reshape(-1)
    first = np.full(len(signatures), -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    programme = _Programme(worth[first], counts.astype(np.float64), _balance(signatures[:, :-1], bins))
    amounts, bound, proven = _solve(programme, time_limit)
    keep = _draw(codes, amounts, seed)
    return Selection(keep, float(worth[keep].sum()), bound, proven)


def _balance(cells: np.ndarray, bins: int) -> object:
    """One row an attacker and bin: +1 where the signature's gap is positive there, −1 where negative."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        raise missing_extra("scipy", "stats") from None
    signature, attacker = np.nonzero(cells)
    values = cells[signature, attacker]
    rows = attacker * bins + np.abs(values) - 1
    used, packed = np.unique(rows, return_inverse=True)
    return csr_matrix((np.sign(values).astype(float), (packed, signature)), shape=(len(used), len(cells)))


def _solve(programme: _Programme, time_limit: float) -> tuple[np.ndarray, float, bool]:
    """Whole amounts per signature, the upper bound, and whether the bound is met."""
    relaxed, bound = _linear(programme)
    if len(programme.count) <= EXACT:
        amounts, proven, dual = _whole(programme, np.zeros_like(programme.count), programme.count, time_limit)
        if amounts is not None:
            return amounts, min(bound, dual), proven
    # Large, or out of time: stay near the relaxed solution, of which only few amounts are not whole already.
    for reach in (2.0, 8.0, 64.0):
        low = np.maximum(0, np.floor(relaxed) - reach)
        high = np.minimum(programme.count, np.ceil(relaxed) + reach)
        amounts, _, _ = _whole(programme, low, high, time_limit)
        if amounts is not None:
            return amounts, bound, bool(programme.weight @ amounts >= bound - 1e-6)
    return np.zeros_like(programme.count), bound, False


def _linear(programme: _Programme) -> tuple[np.ndarray, float]:
    from scipy.optimize import linprog

    balance = programme.balance
    rows = balance.shape[0]  # type: ignore[attr-defined]
    answer = linprog(
        -programme.weight,
        A_eq=balance if rows else None,
        b_eq=np.zeros(rows) if rows else None,
        bounds=np.column_stack([np.zeros_like(programme.count), programme.count]),
        method="highs",
    )
    if answer.status != 0:
        raise CreperieError(f"the linear programme was not solved ({answer.message})", mend="use fewer bins")
    return np.asarray(answer.x), float(-answer.fun)


def _whole(
    programme: _Programme, low: np.ndarray, high: np.ndarray, time_limit: float
) -> tuple[np.ndarray | None, bool, float]:
    from scipy.optimize import Bounds, LinearConstraint, milp

    balance = programme.balance
    rows = balance.shape[0]  # type: ignore[attr-defined]
    constraints = [LinearConstraint(balance, np.zeros(rows), np.zeros(rows))] if rows else []
    answer = milp(
        -programme.weight,
        integrality=np.ones_like(programme.weight),
        bounds=Bounds(low, high),
        constraints=constraints,
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    if answer.x is None:
        return None, False, float("inf")
    dual = answer.mip_dual_bound
    amounts = np.rint(answer.x)
    if rows and np.abs(balance @ amounts).max() > 0:
        return None, False, float("inf")
    return amounts, answer.status == 0, float(-dual) if dual is not None else float("inf")


def _draw(codes: np.ndarray, amounts: np.ndarray, seed: int) -> np.ndarray:
    """Keep `amounts[s]` random items of every signature s."""
    rng = np.random.Generator(np.random.PCG64(seed))
    shuffled = rng.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    starts = np.searchsorted(codes[order], np.arange(len(amounts)))
    rank = np.arange(len(order)) - starts[codes[order]]
    keep = np.zeros(len(codes), dtype=bool)
    keep[order] = rank < amounts[codes[order]]
    return keep
