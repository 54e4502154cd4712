"""Named analyses: the two of Hit or Be Hit, as data.

The paper fits linear mixed models to a 0/1 outcome with a random intercept per image. Its coefficients compare a level
with the mean of the others (`rest`); for two levels that is their difference. `family="logistic"` gives the same
questions the model that they should have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from creperie.core import unknown
from creperie.statistics.declare import Analysis, terms

_BESIDE = "simplified + source + model + log10(size)"
_LEVELS = {"grammaticality": ("caption", "equal", "foil")}
#: caption against the foil in its own construction: the paper's comparisons 1 and 2
_OWN = ("1-1", "2-2")
#: and the second caption against the first foil: comparison 5
_COMPARED = ("1-1", "2-2", "2-1")


@dataclass(frozen=True)
class AnalysisPreset:
    """Analyses under one name, each with a label; terms that the table cannot bear are left out with a note."""

    what: str
    analyses: Mapping[str, Analysis]
    plot: tuple[str, str]  #: the interaction to draw: along the axis, and one per line


def _first(other: str) -> Analysis:
    return Analysis(
        "chosen",
        terms(f"grammaticality*type + {_BESIDE}"),
        ("image",),
        contrast="rest",
        levels={**_LEVELS, "type": ("active", other)},
        where={"comparison": _OWN},
    )


PRESETS: Mapping[str, AnalysisPreset] = {
    "construction": AnalysisPreset(
        "Hit or Be Hit, first test: does the construction matter, and does it change what grammaticality does?",
        {"active or passive": _first("passive"), "active or ditransitive": _first("ditransitive")},
        ("grammaticality", "type"),
    ),
    "argument-order": AnalysisPreset(
        "Hit or Be Hit, second test: does it matter that caption and foil name their arguments in the same order?",
        {
            "alike or different": Analysis(
                "chosen",
                terms(f"grammaticality*order + {_BESIDE}"),
                ("image",),
                contrast="rest",
                levels={**_LEVELS, "order": ("alike", "different")},
                where={"comparison": _COMPARED},
            )
        },
        ("grammaticality", "order"),
    ),
}


def find_analysis_preset(name: str) -> AnalysisPreset:
    """The preset of this name."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
