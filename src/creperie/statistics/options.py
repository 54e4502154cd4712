"""The options of `creperie stats`: how runs become a table, and which effects explain which outcome."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.core import option
from creperie.metrics import Ties
from creperie.statistics.declare import Family


@dataclass(frozen=True)
class RunsInput:
    """Options for reading runs into a table, one row per comparison."""

    bench: tuple[str, ...] = option(
        (), "The benchmark of the runs: captions and tags; repeat for more.", metavar="BENCH", whole=True
    )
    task: str = option("", "One row per item, by this task; else a row for every caption and foil.")
    ties: Ties = option("wrong", "How a tie between a true and a false caption counts.")
    grammar: str = option("", "The judge of grammaticality: link-grammar or a model URI.", metavar="URI")
    equal: float = option(0.0, "Scores this close count as equally grammatical.", minimum=0)
    size: tuple[str, ...] = option(
        (), "Parameters of a model: `size='hf:MODEL=151e6'`; repeat for more.", metavar="URI=N", whole=True
    )


@dataclass(frozen=True)
class AnalysisOptions:
    """Options that declare an analysis: its outcome, its fixed effects and its random effects."""

    preset: str = option("", "Declared analyses: foils, or (Hit or Be Hit) construction, argument-order.")
    fixed: tuple[str, ...] = option(
        (), "Fixed effects: 'grammaticality*type + log10(size)'.", metavar="TERMS", whole=True
    )
    random: tuple[str, ...] = option(
        (), "Random intercepts, crossed: image,caption,model.", metavar="NAMES", whole=True
    )
    families: str = option(
        "",
        "Families of models as random effects: auto (by name; the default of foils), none, or a column.",
        metavar="NAME",
    )
    outcome: str = option("", "The outcome to explain: chosen (the default), gap, or a column of the table.")
    family: Family | None = option(None, "The kind of model; linear (as published) is the default.")
    contrasts: tuple[str, ...] = option(
        (),
        "How a factor's levels are compared: treatment, centred, rest, orthogonal or sum.",
        metavar="[X=]KIND",
        whole=True,
    )
    levels: tuple[str, ...] = option((), "Levels of a factor, the reference first.", metavar="NAME=A,B", whole=True)
    where: tuple[str, ...] = option((), "Only rows with these values.", metavar="NAME=A,B", whole=True)
    ml: bool = option(False, "Maximum likelihood in place of REML (linear).")
