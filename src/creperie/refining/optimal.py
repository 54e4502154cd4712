"""The largest balanced subset of the items, found by an integer programme.

The signature of an item is the vector of its signed bins, one per attacker. Items with the same signature are
interchangeable. The programme therefore has one integer variable per signature, its *amount*: the number of items to
keep. Which items of a signature are kept is decided at random.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.core import CreperieError, Progress, seeded
from creperie.refining.cells import first_of_each, signed_bins, unit_gaps
from creperie.refining.select import Choice, ChoiceSettings, RefinementMethod, Selection, SelectionPool, by_gaps

#: Up to this many signatures the programme is solved to proven optimality (or the time limit).
EXACT = 20_000


@dataclass(frozen=True)
class _Programme:
    """The integer programme: maximise Σx subject to balance @ x = 0 and 0 ≤ x ≤ count, where x is integer."""

    count: np.ndarray
    balance: Any  #: scipy's sparse matrix: one row per attacker and bin
    signs: Any  #: the same summed over the bins: one row per attacker
    cells: np.ndarray

    @property
    def mirrored(self) -> np.ndarray:
        """How many items of each signature (vector of signed bins) to keep for a balanced selection. A signature and
        its opposite, in which all signs are reversed, both get the smaller of their two counts.
        """
        count = {tuple(cell): n for cell, n in zip(self.cells.tolist(), self.count.tolist())}
        return np.array([min(n, count.get(tuple(-x for x in cell), 0.0)) for cell, n in count.items()])


def optimal(gaps: np.ndarray, *, bins: int = 10, seed: int = 0, time_limit: float = 60.0) -> Selection:
    """Return the largest selection of items in which every attacker's gap histogram is symmetric about zero.

    For every attacker and in every bin of |gap|, equally many of the kept items have a positive and a negative gap.
    With enough time the result is optimal and always the same.

    If the time limit ends the search, a larger selection may exist; the field `proven` is True if there certainly is
    none. A few bins may then have more gaps of one sign than of the other; the field `off` is the sum of these
    differences. Over all bins together, both signs are always equally frequent.
    """
    scaled = unit_gaps(gaps)
    cells = signed_bins(scaled, bins)
    signatures, codes, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    programme = _programme(counts, signatures, bins)
    amounts, bound, proven = _solve(programme, time_limit)
    keep = _draw(codes.reshape(-1), amounts, seed)
    off = int(np.abs(programme.balance @ amounts).sum())
    return Selection(keep, bound, proven, off)


def _programme(count: np.ndarray, cells: np.ndarray, bins: int) -> _Programme:
    """Return the integer programme. Its matrix `balance` has one row per attacker and bin of |gap|, and one column per
    signature (vector of signed bins). An entry is +1 if items with this signature have a positive gap in the bin, and
    −1 if they have a negative one.
    """
    from scipy.sparse import csr_matrix

    signature, attacker = np.nonzero(cells)
    values = cells[signature, attacker]
    used, packed = np.unique(attacker * bins + np.abs(values) - 1, return_inverse=True)
    side = np.sign(values).astype(float)
    balance = csr_matrix((side, (packed, signature)), shape=(len(used), len(cells)))
    signs = csr_matrix((side, (attacker, signature)), shape=(cells.shape[1], len(cells)))
    return _Programme(count.astype(np.float64), balance, signs, cells)


def _solve(programme: _Programme, time_limit: float) -> tuple[np.ndarray, float, bool]:
    """Return three values: how many items of each signature (vector of signed bins) to keep, an upper bound of the
    number of items that can be kept, and whether this bound is reached.
    """
    end = time.monotonic() + time_limit
    relaxed, bound, price = _linear(programme)
    near = _Near(programme, relaxed, price, bound)
    amounts = near.balanced(time.monotonic() + 0.6 * max(0.0, end - time.monotonic()))
    exact = not any(near.off(amounts))
    best = exact and _is_optimal(amounts, bound)
    if best or not exact or len(programme.count) > EXACT:
        return amounts, bound, best
    better, dual = _better_than(programme, amounts, max(1.0, end - time.monotonic()))
    bound = min(bound, max(dual, float(better.sum())))
    return better, bound, _is_optimal(better, bound)


def _is_optimal(amounts: np.ndarray, bound: float) -> bool:
    """Return True if `bound` proves that no selection is larger: the sum of `amounts` is the largest integer that does
    not exceed it.
    """
    return bool(amounts.sum() >= np.floor(bound + 1e-6))


@dataclass
class _Near:
    """A search for balanced integer amounts (how many items to keep of each signature). It begins near the solution of
    the linear relaxation.
    """

    # Few of the relaxed amounts are fractional. When these are rounded down, some rows are out of balance. Small
    # programmes correct them. Each may change a few hundred amounts by a little: mainly those that are cheap to change,
    # according to the dual prices of the relaxed solution. Imbalance is penalised but allowed, so every small programme
    # has a solution, and each brings the amounts closer to balance. Once all rows are balanced, further programmes look
    # for a larger selection.

    programme: _Programme
    relaxed: np.ndarray
    price: np.ndarray
    bound: float

    def balanced(self, end: float) -> np.ndarray:
        """Return the best amounts (numbers of items to keep of each signature) found by the time `end`. If possible,
        each attacker has equally many positive and negative gaps in every bin. Otherwise this holds only for all bins
        together.

        If even that was not achieved, return the amounts of the grid method.
        """
        programme = self.programme
        settled = np.abs(self.relaxed - np.rint(self.relaxed)) < 1e-6
        amounts = np.where(settled, np.rint(self.relaxed), np.floor(self.relaxed))
        rows = programme.balance.shape[0]
        off = self.off(amounts)
        rng = seeded(0)
        idle = 0
        for attempt in range(ATTEMPTS if rows else 0):
            if time.monotonic() > end or (not any(off) and (_is_optimal(amounts, self.bound) or idle >= IDLE)):
                break
            free = self._cheap_to_change(rng, FREE[idle % len(FREE)])
            if attempt < 3:
                free |= ~settled
            moved = self._improved(amounts, free, REACH, end)
            now = self.off(moved)
            gained = (*now, -moved.sum()) < (*off, -amounts.sum())
            idle = 0 if gained else idle + 1
            if gained:
                amounts, off = moved, now
        if off[0]:
            amounts = self._with_even_signs(amounts)
        return programme.mirrored if self.off(amounts)[0] else amounts

    def _with_even_signs(self, amounts: np.ndarray) -> np.ndarray:
        """Return how many items of each signature to keep, such that every attacker has equally many positive and
        negative gaps on the kept items. If the search finds no solution, return `amounts` unchanged.
        """
        # A small programme searches for them briefly; it removes as few items as possible.
        from scipy.optimize import Bounds, LinearConstraint, milp

        programme = self.programme
        there = amounts > 0
        imbalance = programme.signs @ amounts
        answer = milp(
            np.where(there, 1.0, 1e-3),  # removing costs an item, adding next to nothing
            integrality=np.ones_like(amounts),
            bounds=Bounds(np.zeros_like(amounts), np.where(there, amounts, programme.count)),
            constraints=[
                LinearConstraint(programme.signs.multiply(np.where(there, -1.0, 1.0)), -imbalance, -imbalance)
            ],
            options={"time_limit": A_WHILE, "mip_rel_gap": 0.5},
        )
        if answer.x is None:
            return amounts
        change = np.rint(answer.x)
        return np.where(there, amounts - change, change)

    def off(self, amounts: np.ndarray) -> tuple[float, float]:
        """Return two imbalances of a selection that keeps `amounts` items of each signature. For the first, the numbers
        of positive and of negative gaps are compared for each attacker, and the absolute differences are summed. For
        the second, they are compared for each attacker and bin.
        """
        programme = self.programme
        return float(np.abs(programme.signs @ amounts).sum()), float(np.abs(programme.balance @ amounts).sum())

    def _cheap_to_change(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Return a mask of `size` random signatures (vectors of signed bins). The next step of the search may change
        how many items with these signatures are kept, and nothing else. Signatures for which a change costs little are
        preferred.
        """
        spread = np.median(self.price) + 1e-3
        order = np.argsort(self.price + rng.exponential(spread, len(self.price)), kind="stable")
        free = np.zeros(len(self.price), bool)
        free[order[:size]] = True
        return free

    def _improved(self, amounts: np.ndarray, free: np.ndarray, reach: float, end: float) -> np.ndarray:
        """Return the best numbers of items to keep of each signature. They differ from `amounts` only where the mask
        `free` is True, and there by at most `reach`. A difference between the numbers of positive and negative gaps is
        penalised.
        """
        import scipy.sparse as sparse
        from scipy.optimize import Bounds, LinearConstraint, milp

        programme = self.programme
        balance = sparse.vstack([programme.balance, programme.signs], format="csr")
        part = balance[:, free]
        rows, size = part.shape
        imbalance = balance[:, ~free] @ amounts[~free]
        fines = sparse.eye(rows, format="csr")
        low = np.r_[np.maximum(0, amounts[free] - reach), np.zeros(2 * rows)]
        high = np.r_[np.minimum(programme.count[free], amounts[free] + reach), np.full(2 * rows, np.inf)]
        fine = np.full(rows, FINE)
        fine[programme.balance.shape[0] :] *= 10  # the signs matter most
        # A gap of a thousandth is not worth further search: the next programme looks elsewhere.
        enough = 1e-3 * self.bound / max(1.0, float(amounts[free].sum()))
        answer = milp(
            np.r_[-np.ones(size), fine, fine],
            integrality=np.r_[np.ones(size), np.zeros(2 * rows)],
            bounds=Bounds(low, high),
            constraints=[LinearConstraint(sparse.hstack([part, fines, -fines], format="csr"), -imbalance, -imbalance)],
            options={"time_limit": max(0.5, min(A_WHILE, end - time.monotonic())), "mip_rel_gap": enough},
        )
        moved = amounts.copy()
        if answer.x is not None:
            moved[free] = np.rint(answer.x[:size])
        return moved


#: Maximum number of small programmes, and of those without improvement in a row; how many amounts each may change.
ATTEMPTS, IDLE, FREE = 400, 6, (400, 250, 800, 150)
#: Largest change of an amount; penalty per item of imbalance, in items; seconds for one programme.
REACH, FINE, A_WHILE = 2.0, 30.0, 3.0


def _linear(programme: _Programme) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the solution of the linear relaxation: how many items of each signature to keep, the total of these
    numbers, and the cost of changing the number for each signature.
    """
    from scipy.optimize import linprog

    rows = programme.balance.shape[0]
    answer = linprog(
        -np.ones_like(programme.count),
        A_eq=programme.balance if rows else None,
        b_eq=np.zeros(rows) if rows else None,
        bounds=np.column_stack([np.zeros_like(programme.count), programme.count]),
        method="highs",
    )
    if answer.status != 0:
        raise CreperieError(f"the linear programme was not solved ({answer.message})", hint="use fewer `bins=`")
    price = np.abs(answer.lower.marginals) + np.abs(answer.upper.marginals)
    return np.asarray(answer.x), float(-answer.fun), np.asarray(price)


def _better_than(programme: _Programme, amounts: np.ndarray, time_limit: float) -> tuple[np.ndarray, float]:
    """Search for a selection that keeps more items than `amounts`, solving the integer programme for all signatures at
    once. Return the best amounts found, and an upper bound of their sum.

    If there is no larger selection, the bound is the sum of `amounts`.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    reached = float(amounts.sum())
    rows = programme.balance.shape[0]
    more = LinearConstraint(np.ones((1, len(amounts))), reached + 1, np.inf)
    even = [LinearConstraint(programme.balance, np.zeros(rows), np.zeros(rows))] if rows else []
    answer = milp(
        -np.ones_like(programme.count),
        integrality=np.ones_like(programme.count),
        bounds=Bounds(np.zeros_like(programme.count), programme.count),
        constraints=[*even, more],
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    if answer.status == 2:  # infeasible
        return amounts, reached
    dual = float(-answer.mip_dual_bound) if answer.mip_dual_bound is not None else float("inf")
    if answer.x is None:
        return amounts, dual
    larger = np.rint(answer.x)
    if np.abs(programme.balance @ larger).sum() > 0 or larger.sum() < reached:
        return amounts, dual
    return larger, dual


def _draw(codes: np.ndarray, amounts: np.ndarray, seed: int) -> np.ndarray:
    """Return a mask that selects `amounts[s]` random items of every signature s. `codes` holds the signature of each
    item.
    """
    shuffled = seeded(seed).permutation(len(codes))
    keep = np.zeros(len(codes), bool)
    keep[first_of_each(shuffled, codes[shuffled], amounts)] = True
    return keep


def _choose(pool: SelectionPool, settings: ChoiceSettings, progress: Progress) -> Choice:
    def balanced(gaps: np.ndarray, time_limit: float) -> tuple[np.ndarray, Selection]:
        chosen = optimal(gaps, bins=settings.bins, seed=settings.seed, time_limit=time_limit)
        return chosen.keep, chosen

    return by_gaps(pool, settings, balanced)


METHOD = RefinementMethod(
    name="optimal",
    does="keep the largest set whose gap histograms are symmetric about zero",
    reason="balance",
    why="with it, the attackers' gaps would not be symmetric about zero",
    choose=_choose,
    attackers=("length-words", "length-chars", "surface", "frequency"),
    bins=10,
)
