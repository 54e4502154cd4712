"""The largest balanced subset, as an integer programme.

Items with the same signed bins under every attacker (and the same weight) are interchangeable, so the programme has
one integer variable per such signature, not one per item; which items of a signature stay is drawn at random.
"""

from __future__ import annotations

import time
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
    amounts = _rounded(programme, relaxed, bound, time_limit / 2)
    if _meets(programme, amounts, bound) or len(programme.count) > EXACT:
        return amounts, bound, _meets(programme, amounts, bound)
    exact, proven, dual = _whole(programme, np.zeros_like(programme.count), programme.count, time_limit)
    if exact is not None and programme.weight @ exact >= programme.weight @ amounts:
        return exact, min(bound, dual), proven
    return amounts, min(bound, dual), _meets(programme, amounts, min(bound, dual))


def _meets(programme: _Programme, amounts: np.ndarray, bound: float) -> bool:
    """No whole selection can be worth more: the bound's next possible value down is reached."""
    reached = float(programme.weight @ amounts)
    whole = bool((programme.weight == np.rint(programme.weight)).all())
    return reached >= (np.floor(bound + 1e-6) if whole else bound - 1e-6)


def _rounded(programme: _Programme, relaxed: np.ndarray, bound: float, time_limit: float) -> np.ndarray:
    """A whole solution near the relaxed one, of which at most one amount a balance row is not whole already.

    Nearly all amounts stay as they are. The fractional ones and a random handful a row may move by a little; the small
    programme over those is quick. Where it has no solution, more may move; once there is one, other handfuls are
    tried until the bound is met or the time is up.
    """
    rng = np.random.Generator(np.random.PCG64(0))
    near = np.abs(relaxed - np.rint(relaxed)) < 1e-6
    amounts = np.where(near, np.rint(relaxed), np.floor(relaxed))
    loose = ~near
    rows = programme.balance.shape[0]  # type: ignore[attr-defined]
    if rows == 0 or not loose.any():
        return amounts
    found = False
    tries = [(8, 1.0), (24, 2.0), (100, 4.0), (400, 16.0)] + [(12, 2.0)] * 40
    end = time.monotonic() + time_limit
    for handful, reach in tries:
        if (found and _meets(programme, amounts, bound)) or time.monotonic() > end:
            break
        if found and handful > 24:
            continue
        free = np.zeros_like(near) if found else loose.copy()
        free[rng.permutation(len(amounts))[: handful * rows]] = True
        moved = _moved(programme, amounts, free, reach, (end - time.monotonic()) / 4)
        if moved is not None and (not found or programme.weight @ moved > programme.weight @ amounts):
            amounts, found = moved, True
    return amounts if found else np.zeros_like(amounts)


def _moved(
    programme: _Programme, amounts: np.ndarray, free: np.ndarray, reach: float, time_limit: float
) -> np.ndarray | None:
    """The best balanced amounts where only the free ones move, each by at most `reach`; None if there are none."""
    part = _Programme(programme.weight[free], programme.count[free], programme.balance[:, free])  # type: ignore[index]
    held = programme.balance[:, ~free] @ amounts[~free]  # type: ignore[index]
    low = np.maximum(0, amounts[free] - reach)
    high = np.minimum(part.count, amounts[free] + reach)
    answer, _, _ = _whole(part, low, high, max(time_limit, 0.5), target=-held)
    if answer is None:
        return None
    moved = amounts.copy()
    moved[free] = answer
    return moved


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
    programme: _Programme,
    low: np.ndarray,
    high: np.ndarray,
    time_limit: float,
    *,
    target: np.ndarray | None = None,
) -> tuple[np.ndarray | None, bool, float]:
    """Solve for whole amounts within bounds: (amounts or None, proven, upper bound)."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    balance = programme.balance
    rows = balance.shape[0]  # type: ignore[attr-defined]
    goal = np.zeros(rows) if target is None else target
    answer = milp(
        -programme.weight,
        integrality=np.ones_like(programme.weight),
        bounds=Bounds(low, high),
        constraints=[LinearConstraint(balance, goal, goal)] if rows else [],
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    dual = float(-answer.mip_dual_bound) if answer.mip_dual_bound is not None else float("inf")
    if answer.x is None:
        return None, False, dual
    amounts = np.rint(answer.x)
    if rows and np.abs(balance @ amounts - goal).max() > 0:
        return None, False, dual
    return amounts, answer.status == 0, dual


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
