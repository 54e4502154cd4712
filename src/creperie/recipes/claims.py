"""Check whether the results of a recipe run support the papers' claims."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from creperie.core import percent, read_json, with_interval
from creperie.metrics import wilson
from creperie.recipes.figure_prompts import papers
from creperie.recipes.kitchen import RECORD, read_card
from creperie.reporting import model_label

ORDER = "order.json"  #: the file that the probe of word order writes
SHUFFLED = "shuffled captions score below true ones"
LOWERED = "refinement lowers what its attackers get"


Holds = Literal["yes", "no", "not shown"]  #: "not shown": the intervals allow both
Claim = tuple[str, str, str, Holds]  #: claim, who, numbers, holds


@dataclass(frozen=True)
class Direction:
    """A claim of a paper, the numbers of one stage that support or contradict it, and whether it holds."""

    recipe: str
    profile: str
    stage: str
    claim: str
    who: str  #: the model or attacker
    numbers: str
    holds: Holds


def directions(folder: Path) -> list[Direction]:
    """Return the claims that the stages of a recipe run can check, in the order of the stages."""
    card = read_card(folder)
    stages = [folder / name for name in card["stages"] if (folder / name / RECORD).is_file()]
    claims = [
        Direction(card["recipe"], card["profile"], stage.name.partition("-")[2], claim, who, numbers, holds)
        for stage in stages
        for claim, who, numbers, holds in (*_orders(stage), *_refinements(stage), *_columns(stage, card["recipe"]))
    ]
    return list({(c.claim, c.who, c.numbers): c for c in claims}.values())  # two stages may fill the same table


def _orders(stage: Path) -> Iterator[Claim]:
    """Yield one claim per model, about the kind of shuffle that most often scores above the true caption."""
    spreads = read_json(stage / ORDER)["spreads"] if (stage / ORDER).is_file() else ()
    for model in dict.fromkeys(row["model"] for row in spreads):
        shuffles = [row for row in spreads if row["model"] == model and row["kind"] != "caption" and row["n"]]
        if shuffles:
            worst = min(shuffles, key=lambda row: row["above"] / row["n"])
            low, high = wilson(worst["above"], worst["n"])
            share = with_interval(worst["above"] / worst["n"], low, high)
            numbers = f"{share} % of {worst['n']} true captions above {worst['kind']}"
            yield (
                SHUFFLED,
                unquote(model_label(model)),
                numbers,
                "yes" if low > 0.5 else "no" if high < 0.5 else "not shown",
            )


def _refinements(stage: Path) -> Iterator[Claim]:
    """Yield one claim per attacker: its accuracy before and after refinement, on all items and as an unweighted mean
    over subsets, for which the number of items a subset loses does not matter. It holds if both come nearer to chance.
    """
    record = read_json(stage / RECORD)
    for name, figures in record["summary"].get("attackers", {}).items() if record["does"] == "refine" else ():
        if not figures["held_out"]:
            pairs = {"all items": ("before", "after"), "mean of subsets": ("mean_before", "mean_after")}
            spans = {what: (figures[old], figures[new]) for what, (old, new) in pairs.items()}
            numbers = ", ".join(f"{what} {percent(old)} % → {percent(new)} %" for what, (old, new) in spans.items())
            nearer = {abs(new - 0.5) < abs(old - 0.5) or old == new == 0.5 for old, new in spans.values()}
            yield LOWERED, name, numbers, "not shown" if len(nearer) > 1 else "yes" if nearer == {True} else "no"


def _columns(stage: Path, recipe: str) -> Iterator[Claim]:
    """Yield, for each table row from a run, whether one column is below another as it is in the paper."""
    claims = [(p["name"], claim) for p in papers() if p["recipe"] == recipe for claim in p.get("claims", ())]
    for name, claim in claims:
        file = stage / f"{name}-{claim['table']}.json"
        rows = read_json(file)["rows"] if file.is_file() else ()
        for row in (row for row in rows if row["source"] == "run"):
            lower, higher = _cell(row, claim["lower"]), _cell(row, claim["higher"])
            if lower and higher:
                below, above = lower[2] < higher[1], higher[2] < lower[1]
                numbers = f"{lower[0]}, {higher[0]}"
                yield claim["says"], row["model"], numbers, "yes" if below else "no" if above else "not shown"


def _cell(row: Mapping[str, Any], column: str) -> tuple[str, float, float] | None:
    """Return a column's value as text with its interval, and the ends of the interval; None for an empty cell."""
    if row.get(column) is None:
        return None
    cell = (row[column], row["low"][column], row["high"][column])
    value, low, high = (math.nan if part is None else part / 100 for part in cell)
    return f"{column} {with_interval(value, low, high)}", 100 * low, 100 * high
