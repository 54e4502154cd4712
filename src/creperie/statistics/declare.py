"""Analyses, declared as data: the outcome, the fixed terms, the random intercepts and the contrasts.

    Analysis(outcome="chosen", fixed=("grammaticality", "simplified", "grammaticality:simplified"), random=("image",))

Terms are names of columns. `a:b` is an interaction, `a*b` is short for `a + b + a:b`, `log10(x)` is a logarithm, and
`z(x)` standardises a number. A random term `a:b` has a group for every combination of values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, Literal, get_args

from creperie.core import UsageError, check_name

Family = Literal["linear", "logistic"]
FAMILIES: tuple[str, ...] = get_args(Family)
_NAME = re.compile(r"[^\s:*+()~|,]+|(?:log10|log|z)\([^\s:*+()~|,]+\)")


@dataclass(frozen=True)
class Analysis:
    """A declared analysis. `levels` gives the order of a factor's levels, the reference level first; rows with other
    levels are dropped.
    """

    outcome: str = "chosen"
    fixed: tuple[str, ...] = ()
    random: tuple[str, ...] = ("image",)
    family: Family = "linear"
    contrast: str = "treatment"  #: the contrast of factors that `contrasts` does not name
    contrasts: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: column → the values that rows must have
    reml: bool = True

    def __post_init__(self) -> None:
        check_name("family", self.family, FAMILIES)
        if not self.random:
            raise UsageError(
                "a mixed model needs a random intercept", hint="name a column, for instance `random=image`"
            )

    @property
    def formula(self) -> str:
        """The analysis as a formula in the syntax of R's package lme4.

        >>> Analysis(fixed=("grammaticality",), random=("image", "caption")).formula
        'chosen ~ grammaticality + (1 | image) + (1 | caption)'
        """
        return f"{self.outcome} ~ " + " + ".join([*(self.fixed or ("1",)), *(f"(1 | {r})" for r in self.random)])

    @property
    def factors(self) -> list[tuple[str, ...]]:
        """The fixed terms, each split into its factors."""
        return [tuple(term.split(":")) for term in self.fixed]

    def document(self) -> dict[str, Any]:
        return {"formula": self.formula, **asdict(self)}


def terms(text: str | Sequence[str]) -> tuple[str, ...]:
    """Return the terms of a formula such as `a * b`. `*` is expanded, and main effects come before interactions.

    >>> terms("grammaticality * type + log10(size)")
    ('grammaticality', 'type', 'log10(size)', 'grammaticality:type')
    """
    pieces = [text] if isinstance(text, str) else list(text)
    expanded: dict[tuple[str, ...], None] = {}
    for piece in (p for t in pieces for p in re.split(r"[+,]", t) if p.strip()):
        parts = [part.strip() for part in piece.split("*")]
        names = [tuple(_checked(n, piece) for n in part.split(":")) for part in parts]
        for size in range(1, len(names) + 1):
            for chosen in combinations(names, size):
                expanded[tuple(dict.fromkeys(n for group in chosen for n in group))] = None
    return tuple(":".join(t) for t in sorted(expanded, key=len))


def _checked(name: str, piece: str) -> str:
    if not _NAME.fullmatch(name.strip()):
        raise UsageError(
            f"cannot read the term {piece.strip()!r}",
            hint="join columns by +, : or *, as in a + b + a:b, which is a*b; log10(size) is allowed",
        )
    return name.strip()


_BESIDE = "simplified + source + model + log10(size)"
_LEVELS = {"grammaticality": ("caption", "equal", "foil")}
#: caption against the foil in its own construction: the paper's comparisons 1 and 2
_OWN = ("1-1", "2-2")
#: the same, and the second caption against the first foil: comparison 5
_COMPARED = ("1-1", "2-2", "2-1")


#: All models answer each comparison of an item, and comparisons of one item differ in difficulty.
_COMPARISON = "item:comparison"

#: the constructions of the paper's analyses; with/against is another alternation
_TYPES = ("active", "passive", "dative", "ditransitive")


def _sampled(*factors: str) -> tuple[str, ...]:
    """Return the random terms of an analysis: image, item, and model:factor for each of these factors."""
    # Image and item are included because all models answer every item. A factor affects some models more than others;
    # the terms model:factor allow for this. They give a model one intercept per level of the factor, and replace a
    # random slope.
    return ("image", "item", *(f"model:{factor}" for factor in factors))


@dataclass(frozen=True)
class AnalysisPreset:
    """A preset: several analyses, each with a label. Terms that a table does not support are left out, and a note says
    so.
    """

    what: str
    analyses: Mapping[str, Analysis]
    plot: tuple[str, str]  #: the interaction to draw: the factor on the axis, and the factor of the lines
    ours: bool = False  #: not a paper's: families of models are in it by default


def _first(other: str) -> Analysis:
    return Analysis(
        "chosen",
        terms(f"grammaticality*type + {_BESIDE}"),
        (*_sampled("grammaticality", "type"), _COMPARISON),
        contrast="rest",
        levels={**_LEVELS, "type": ("active", other)},
        where={"comparison": _OWN},
    )


#: `foils` is for any benchmark, the others are Hit or Be Hit's: linear mixed models of a 0/1 outcome whose
#: coefficients compare a level with the mean of the others (`rest`).
PRESETS: Mapping[str, AnalysisPreset] = {
    "foils": AnalysisPreset(
        "Any captions and foils: which is longer, the kind of foil, the model.",
        {"all": Analysis("chosen", terms("longer + subset + model"), _sampled("longer", "subset"))},
        ("longer", "model"),
        ours=True,
    ),
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
                (*_sampled("grammaticality", "order"), _COMPARISON),
                contrast="rest",
                levels={**_LEVELS, "order": ("alike", "different")},
                where={"comparison": _COMPARED, "type": _TYPES},
            )
        },
        ("grammaticality", "order"),
    ),
}


def find_analysis_preset(name: str) -> AnalysisPreset:
    """Return the preset with this name."""
    check_name("preset", name, PRESETS)
    return PRESETS[name]
