"""Check whether the results of a recipe run support the papers' claims."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from creperie.bench import MANIFEST_FILE, load
from creperie.core import Document, counted, percent, read_json, with_interval
from creperie.metrics import wilson
from creperie.recipes.figure_prompts import papers
from creperie.recipes.kitchen import RECORD, read_card
from creperie.reporting import model_label, same_captions
from creperie.training import STUDY_FILE, seed_interval

ORDER = "order.json"  #: the file that the probe of word order writes
LOWERED = "refinement lowers what its attackers get"
SHRINK = "gains from foils in training are smaller on SugarCrepe than on ARO+CREPE (Table 5)"
MATCHED = {"replace": "replace", "swap": "swap", "negate": "add"}  #: foils in training → the form in SugarCrepe
BLIND = ("blind:", "lm:")  #: kinds of models that see no image
GENERATIVE = ("lm:", "vlm:")  #: kinds of models that give a likelihood of a caption


#: "not shown": the intervals allow both; "by construction": the run made it so, whatever is true of the world
Holds = Literal["yes", "no", "not shown", "by construction", "stand-in: agrees", "stand-in: disagrees"]
#: the same on other items or models, which is never evidence
STANDS_IN: dict[Holds, Holds] = {"yes": "stand-in: agrees", "no": "stand-in: disagrees"}
Claim = tuple[str, str, str, Holds]  #: claim, who, numbers, holds


def claim_holds(above: bool, below: bool, *, evidence: bool = True) -> Holds:
    """Return whether a claim holds: `yes` if the whole interval of a result is above the threshold, `no` if the whole
    interval is below it, else `not shown`.

    `evidence=False` means that the items are not the paper's own. The answer is then `stand-in: agrees` or `stand-in:
    disagrees` instead of `yes` or `no`.
    """
    if above == below:
        return "not shown"
    holds: Holds = "yes" if above else "no"
    return holds if evidence else STANDS_IN[holds]


@dataclass(frozen=True)
class Direction:
    """A paper's claim about which of two numbers is larger. It includes both numbers, from the results of one stage,
    and whether the claim holds for them.
    """

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
        for claim, who, numbers, holds in _claims(stage, card["recipe"])
    ]
    if card["profile"] == "small":  # all its items and models stand in for the papers'
        claims = [replace(c, holds=STANDS_IN.get(c.holds, c.holds)) for c in claims]
    return list({(c.claim, c.who, c.numbers): c for c in claims}.values())  # two stages may fill the same table


def _claims(stage: Path, recipe: str) -> Iterator[Claim]:
    claims = [(p["name"], claim) for p in papers() if p["recipe"] == recipe for claim in p.get("claims", ())]
    yield from (row for _, claim in claims if claim.get("shuffles") for row in _orders(claim["says"], stage))
    yield from _refinements(stage)
    yield from _gains(stage)
    yield from (row for paper, claim in claims if "table" in claim for row in _columns(stage, paper, claim))


def _orders(says: str, stage: Path) -> Iterator[Claim]:
    """Yield one claim per language model: the model prefers the true caption to shuffled captions. The claim is tested
    on the kind of shuffling that most often deceives the model.
    """
    spreads = read_json(stage / ORDER)["spreads"] if (stage / ORDER).is_file() else ()
    for model in dict.fromkeys(row["model"] for row in spreads):
        shuffles = [row for row in spreads if row["model"] == model and row["kind"] != "caption" and row["n"]]
        if shuffles and model.startswith(GENERATIVE):  # of BERTScore and CLIPScore the paper says the opposite
            worst = min(shuffles, key=lambda row: row["above"] / row["n"])
            low, high = wilson(worst["above"], worst["n"])
            share = with_interval(worst["above"] / worst["n"], low, high)
            alike = sum(row["above"] / row["n"] == worst["above"] / worst["n"] for row in shuffles) > 1
            place = f"{'one of ' * alike}the hardest of {len(shuffles)}"
            numbers = f"{share} % of {worst['n']} true captions above {worst['kind']}, {place}"
            yield says, model_label(model), numbers, claim_holds(low > 0.5, high < 0.5)


def _refinements(stage: Path) -> Iterator[Claim]:
    """Yield one claim per attacker: refinement lowers the attacker's accuracy. The accuracy is given on all items and
    as an unweighted mean over subsets.
    """
    # The mean does not depend on how many items each subset loses. Refinement removes items by the scores of these
    # attackers, so their accuracies approach chance by construction. The attackers that it did not use are left out
    # here: the audit reports them.
    record = read_json(stage / RECORD)
    for name, figures in record["summary"].get("attackers", {}).items() if record["does"] == "refine" else ():
        if not figures["held_out"]:
            pairs = {"all items": ("before", "after"), "mean of subsets": ("mean_before", "mean_after")}
            spans = {what: (figures[old], figures[new]) for what, (old, new) in pairs.items()}
            numbers = ", ".join(f"{what} {percent(old)} % → {percent(new)} %" for what, (old, new) in spans.items())
            nearer = {abs(new - 0.5) < abs(old - 0.5) or old == new == 0.5 for old, new in spans.values()}
            yield (
                LOWERED,
                name,
                numbers,
                "by construction" if nearer == {True} else claim_holds(False, nearer == {False}),
            )


def _gains(stage: Path) -> Iterator[Claim]:
    """Yield one claim per type of training foils (SugarCrepe, Table 5): compared with training without foils, this type
    raises the accuracy on rule-made test foils of the same type more than the accuracy on SugarCrepe's foils.
    """
    document = read_json(stage / STUDY_FILE) if (stage / STUDY_FILE).is_file() else {}
    for arm, form in MATCHED.items() if "sizes" in document else ():
        columns = (f"biased {arm}", f"clean {form}")
        if not {*columns} <= set(document["columns"]) or not any(exam["arm"] == arm for exam in document["sat"]):
            continue
        gains = [[exam["values"][c] - plain["values"][c] for c in columns] for exam, plain in _paired(document, arm)]
        shares = [exam["values"][c] for pair in _paired(document, arm)[:1] for exam in pair for c in columns]
        sizes = [document["sizes"][c] for c in columns] * 2
        apart, low, high = seed_interval([biased - clean for biased, clean in gains])
        enough = len(gains) > 2  # else an interval would be of items alone, and say nothing of another training
        seeds = max(apart - low, high - apart) if enough else 0.0
        spread = math.sqrt(sum(plain_variance(share / 100, n) for share, n in zip(shares, sizes, strict=True)))
        half = math.hypot(seeds, 196 * spread)
        means = [sum(own) / len(own) for own in zip(*gains, strict=True)]
        names = [f"{name} {column.split()[1]}" for name, column in zip(document["benchmarks"], columns, strict=True)]
        gains_text = " and ".join(f"{_signed(mean)} on {name}" for mean, name in zip(means, names, strict=True))
        interval = f" [{_signed(apart - half)}, {_signed(apart + half)}]" if enough else ""
        numbers = f"{gains_text}; {_signed(apart)}{interval} apart"
        numbers += "" if enough else f", {counted(len(gains), 'seed')}, too few for an interval"
        who = f"{model_label(document['model'])}, trained with {arm} foils"
        yield SHRINK, who, numbers, claim_holds(enough and apart > half, enough and apart < -half)


def _signed(points: float) -> str:
    """Return a number of percentage points with its sign.

    >>> _signed(-2.04), _signed(3.0)
    ('−2.0', '+3.0')
    """
    return f"{points:+z.1f}".replace("-", "−")


def _paired(document: Document, arm: str) -> list[tuple[Document, Document]]:
    """Return pairs of test results with the same training seed. The first is the result of `arm` (a type of training
    foils), the second that of training without foils.
    """
    plain = {exam["seed"]: exam for exam in document["sat"] if exam["arm"] == "none"}
    return [(exam, plain[exam["seed"]]) for exam in document["sat"] if exam["arm"] == arm and exam["seed"] in plain]


def plain_variance(share: float, n: int) -> float:
    """Return the variance of a share of n items by Agresti and Coull's formula. It is above 0 even if the share is 0 or
    1.

    >>> plain_variance(0.5, 96), plain_variance(1.0, 96) > 0
    (0.0025, True)
    """
    nearer = (share * n + 2) / (n + 4)
    return nearer * (1 - nearer) / (n + 4)


def _blind(claim: Document, rows: Sequence[Document], columns: Sequence[str]) -> Iterator[Claim]:
    """Yield one claim about a table, judged from all its columns: the best blind model (without images) beats the best
    model with images.
    """
    # If items stand in for the paper's, a column supports the claim only if the model with images is above chance
    # there, because beating a model that guesses shows nothing.
    sides = [[row for row in rows if str(row["uri"]).startswith(BLIND) is blind] for blind in (True, False)]
    sets = dict.fromkeys(bench for row in rows if not row.get("released") for bench in row["benchmarks"])
    who = f"in each column the best of {len(sides[0])} without the image against the best of {len(sides[1])} with it"
    who += f", on {', '.join(sets)}, not the published sets" if sets else ""
    found = []
    for column in columns:
        own = [[row for row in side if row.get(column) is not None] for side in sides]
        if all(own):
            blind, seeing = (max(some, key=lambda row: float(row[column])) for some in own)
            learned = _end(seeing, "low", column) > (seeing.get("chance", {}).get(column) or math.inf)
            above = _end(blind, "low", column) > _end(seeing, "high", column)
            below = _end(blind, "high", column) < _end(seeing, "low", column)
            found.append((blind[column] > seeing[column], above, below, learned, above and (learned or not sets)))
    if found:
        n, (ahead, clear, behind, seen, shown) = len(found), map(sum, zip(*found))
        numbers = f"ahead in {ahead} of {n} columns, beyond both intervals in {clear}, behind beyond them in {behind}"
        numbers += f"; the one with the image is above chance in {seen}" if sets else ""
        yield claim["says"], who, numbers, claim_holds(2 * shown > n, 2 * behind > n, evidence=not sets)
    elif sides[0]:
        yield claim["says"], who, "no image-text model was scored on these benchmarks", "not shown"


def _end(row: Document, end: str, column: str) -> float:
    """Return the lower or upper end (`low` or `high`) of a cell's interval. Without an interval, return the cell's
    value.
    """
    value = row[end].get(column)
    return float(row[column] if value is None or math.isnan(value) else value)


def _columns(stage: Path, paper: str, claim: Document) -> Iterator[Claim]:
    """Yield one claim for each table row that comes from a run: as in the paper, the row's value in one column is lower
    than its value in another.
    """
    file = stage / f"{paper}-{claim['table']}.json"
    document = read_json(file) if file.is_file() else {"rows": (), "columns": ()}
    rows = [row for row in document["rows"] if row["source"] == "run"]
    titles = {column["name"]: column["title"] for column in document["columns"]}
    if claim.get("blind"):
        yield from _blind(claim, rows, list(titles))
        return
    shared = _shared(stage, claim["subsets"]) if "subsets" in claim else ""
    for row in rows:
        lower, higher = _cell(row, claim["lower"]), _cell(row, claim["higher"])
        if lower and higher:
            below, above = lower[2] < higher[1], higher[2] < lower[1]
            numbers = f"{titles[claim['lower']]} {lower[0]}, {titles[claim['higher']]} {higher[0]}{shared}"
            yield claim["says"], row["model"], numbers, claim_holds(below, above, evidence=row["released"])


def _shared(stage: Path, subsets: Sequence[str]) -> str:
    """Return a phrase that says how many items have the same captions in both subsets. Items with the same id are
    compared. The phrase is about the first input benchmark with such items; it is empty if there is none.
    """
    places = [stage.parent / part["place"] for part in read_json(stage / RECORD).get("inputs", ())]
    benches = [load(place) for place in places if (place / MANIFEST_FILE).is_file()]
    for bench in benches:
        if n := same_captions(bench, *subsets):
            return f"; {n:,} of {bench.subsets[subsets[1]]:,} items have the same captions in both"
    return ""


def _cell(row: Document, column: str) -> tuple[str, float, float] | None:
    """Return a column's value with its interval as text, followed by the two ends of the interval. Return None if the
    cell is empty.
    """
    if row.get(column) is None:
        return None
    cell = (row[column], row["low"][column], row["high"][column])
    value, low, high = (math.nan if part is None else part / 100 for part in cell)
    return with_interval(value, low, high), 100 * low, 100 * high
