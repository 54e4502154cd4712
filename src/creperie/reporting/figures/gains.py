"""What training with hard negatives gains, kind by kind: on biased foils and on clean ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from creperie.reporting.figures.style import INK, SOFT, colour, legend_below, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: colour and marker of a test; any other gets the third
TESTS = {"biased": (5, "s"), "clean": (0, "o")}
NEAR = 6.0  #: points between two dots whose names would stand on each other
NAMED = 5.0  #: dots beyond so many points say which kind they are


@dataclass(frozen=True)
class Gain:
    """Points gained on one kind of a test, with an interval."""

    test: str
    kind: str
    value: float
    low: float
    high: float


@styled
def gains_by_arm(arms: Mapping[str, Sequence[Gain]], *, title: str = "", mark: float | None = None) -> Figure:
    """One band per arm, one dot per kind, the biased test above the clean one; dashed: where gains are called large."""
    tests = list(dict.fromkeys(gain.test for own in arms.values() for gain in own))
    figure = new_figure(7.0, 1.2 + (0.12 + 0.24 * len(tests)) * len(arms))
    axes = figure.subplots()
    step = 0.7 / max(1, len(tests))
    marks: dict[str, Any] = {}
    for y, own in enumerate(arms.values()):
        if y:
            axes.axhline(y - 0.5, color=SOFT, linewidth=0.3)
        for k, test in enumerate(tests):
            at = y + (k - (len(tests) - 1) / 2) * step
            shade, shape = TESTS.get(test, (2, "^"))
            for gain in (g for g in own if g.test == test):
                axes.plot([gain.low, gain.high], [at, at], color=colour(shade), linewidth=1.2, alpha=0.6)
                (marks[test],) = axes.plot(gain.value, at, shape, color=colour(shade), markersize=5.5, alpha=0.85)
            for right, kinds in _names([g for g in own if g.test == test and abs(g.value) > NAMED]):
                axes.annotate(kinds, (right, at), (5, -3), textcoords="offset points", fontsize=7.5)
    axes.axvline(0, color=INK, linewidth=0.9)
    if mark is not None:
        marks[f"{mark:g} points"] = axes.axvline(mark, color=SOFT, linewidth=1.0, linestyle="--")
    axes.set_yticks(range(len(arms)), list(arms))
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.margins(x=0.12)
    axes.set_xlabel("points gained over the same training without foils")
    axes.set_title(title)
    legend_below(figure, list(marks.values()), list(marks))
    return figure


def _names(gains: Sequence[Gain]) -> list[tuple[float, str]]:
    """Where to write which kinds: those that lie close together are named together, behind the last.

    >>> _names([Gain("", "swap", 7, 6, 8), Gain("", "negate", 9, 8, 9.5), Gain("", "add", 30, 29, 31)])
    [(9.5, 'swap, negate'), (31, 'add')]
    """
    found: list[tuple[float, float, str]] = []
    for gain in sorted(gains, key=lambda g: g.value):
        if found and gain.value - found[-1][0] < NEAR:
            _, right, kinds = found.pop()
            found.append((gain.value, max(right, gain.high), f"{kinds}, {gain.kind}"))
        else:
            found.append((gain.value, gain.high, gain.kind))
    return [(right, kinds) for _, right, kinds in found]
