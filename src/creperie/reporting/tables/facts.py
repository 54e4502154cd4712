"""Rows of published tables that do not come from scoring a model: counts, comparisons of foils, people's answers, gains
from training, and effects in statistical models.

`RecipeFindings` holds the output of a recipe's stages. `fact_rows` turns it into rows like the printed ones.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from creperie.auditing import kind_of
from creperie.bench import PAIRED, Benchmark, image_keys, match_chance
from creperie.core import counted, packaged_toml
from creperie.lang import character_similarity
from creperie.metrics import wilson
from creperie.reporting.tables.published import (
    benchmark_names,
    model_label,
    model_uris,
    published_table,
    same_model,
    stands_for,
)
from creperie.training import seed_share_interval

Document = Mapping[str, Any]
_NAMES: dict[str, Any] = packaged_toml("creperie.reporting.tables", "facts.toml")
#: attacker → SugarCrepe's score that it gives; a language model stands in for the plausibility model
SCORES = _NAMES["scores"]
EVALUATIONS = _NAMES["evaluations"]
KINDS = _NAMES["kinds"]
BY = _NAMES["by"]  #: what gave a row's values → its words in the ledger
STAND_IN_SETS = _NAMES["stand_in_sets"]
TIES = _NAMES["ties"]
COLUMNS = {subset: column for column, subset in _NAMES["branches"].items()}  #: SADE's branches → columns of Table 1
ARM_ROWS = _NAMES["arm_rows"]  #: by the paper's model: from scratch RN50, tuned ViT-B/32
REFINED_ROWS = _NAMES["refined_rows"]
#: what the paper's trainings of Tables 5 and 10 start from
STARTS = {"RN50": ("open_clip:RN50/random",), "ViT-B/32": model_uris("CLIP pretrained", "ViT-B/32")}
WAYS = _NAMES["ways"]
TUNED = _NAMES["tuned"]  #: part of a model's name → its group in the table
ANALYSES = _NAMES["analyses"]
CONSTRUCTIONS = _NAMES["constructions"]  #: word in the name of an analysis → its subset


@dataclass(frozen=True)
class FactRow:
    """A row of values by column. `model` and `group` identify the corresponding printed row."""

    label: str
    model: str
    group: str
    values: Mapping[str, float]
    n: Mapping[str, int] = field(default_factory=dict)
    benchmarks: tuple[str, ...] = ()  #: whose items were used; the row is compared only if all are the paper's
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    stands_in: bool = False  #: another model than the printed row's, or a script: never compared with it
    by: str = "model"  #: what gave the values: a model, released files or released answers (`BY`)
    ties: Mapping[str, int] = field(default_factory=dict)  #: counted as wrong


@dataclass(frozen=True)
class RecipeFindings:
    """The documents that earlier stages of a recipe wrote, each by the name of its stage."""

    benches: dict[str, Benchmark] = field(default_factory=dict)
    pairwise: dict[str, Document] = field(default_factory=dict)
    people: dict[str, Document] = field(default_factory=dict)
    trainings: dict[str, Document] = field(default_factory=dict)
    tunings: dict[str, Document] = field(default_factory=dict)
    fits: dict[str, Document] = field(default_factory=dict)
    answers: dict[str, Document] = field(default_factory=dict)
    runs: tuple[tuple[str, str, Sequence[Document]], ...] = ()  #: (model, benchmark, results)


def fact_rows(key: str, findings: RecipeFindings) -> list[FactRow]:
    """Return rows for the table named `key`, made from a recipe's findings. There are none if runs fill this table
    instead.
    """
    makes = ROWS.get(key)
    return [row for row in makes(findings) if row.values] if makes else []


def _subset_counts(table: str, findings: RecipeFindings) -> list[FactRow]:
    printed = published_table(table)
    columns = [column.name for column in printed.columns]
    rows = []
    for stage, bench in findings.benches.items():
        values = {name: float(bench.subsets[name]) for name in columns if name in bench.subsets}
        if values and "total" in columns:
            values["total"] = sum(values.values())
        label = f"items after stage {stage}"
        rows.append(FactRow(label, printed.rows[0].model, "", values, benchmarks=(bench.name,), by="files"))
    return rows


def _sugarcrepe_4(findings: RecipeFindings) -> list[FactRow]:
    """Return the rows of SugarCrepe's Table 4, which compares the foils of two benchmarks by scores such as grammar.
    The paper's mean scores are between 0 and 1; others are left out.
    """
    rows = []
    for stage, document in findings.pairwise.items():
        for row in document["results"]:
            if row["kind"] in KINDS and row["attacker"] in SCORES:
                means = {"aro_crepe": 100 * row["first"], "sugarcrepe": 100 * row["second"]}
                values = {"better": 100 * row["better"]} | (means if 0 <= row["first"] <= 1 else {})
                model = document.get("models", {}).get(row["attacker"], "")
                tied = f", {counted(row['ties'], 'tie')} counted as half" if row.get("ties") else ""
                label = f"{stage}: {row['attacker']}" + (f" by {model_label(model)}" if model else "") + tied
                rows.append(
                    FactRow(
                        label,
                        SCORES[row["attacker"]],
                        KINDS[row["kind"]],
                        values,
                        dict.fromkeys(values, int(row["n"])),
                        (document["first"], document["second"]),
                        {"better": (100 * row["low"], 100 * row["high"])} if "low" in row else {},
                        stands_in=f"blind:{row['attacker']}?model={model}" not in _PAPERS_SCORES,
                    )
                )
    return rows


#: the papers' plausibility and grammar models; others stand in for them
_PAPERS_SCORES = (*model_uris("Vera"), *model_uris("Grammar"))


def _sugarcrepe_6(findings: RecipeFindings) -> list[FactRow]:
    """Return GPT-4V's rows of SugarCrepe's Table 6, computed from the answers that SugarCrepe's authors released.
    Values are means over both orders of the captions. The mean over the subsets is included if no subset is missing.
    """
    rows = []
    subsets = {s for c in published_table("sugarcrepe/6").columns for s in c.subsets if c.measured}
    for stage, document in findings.answers.items():
        values, n = dict(document["values"]), dict(document["n"])
        intervals = _share_intervals(values, n)
        if set(values) == subsets:
            mean, low, high = _joined([(value, *intervals[name]) for name, value in values.items()])
            values["average"], intervals["average"], n["average"] = mean, (low, high), sum(n.values())
        label = f"{stage}: released answers"
        rows.append(FactRow(label, document["model"], "OpenAI", values, n, ("sugarcrepe",), intervals, by="answers"))
    return rows


def _share_intervals(values: Mapping[str, float], n: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Return Wilson's interval of each percentage."""
    # If a percentage is the mean of two answers per item, its interval is wider than necessary.
    bounds = {name: wilson(value / 100 * n[name], n[name]) for name, value in values.items()}
    return {name: (100 * low, 100 * high) for name, (low, high) in bounds.items()}


def _sugarcrepe_9(findings: RecipeFindings) -> list[FactRow]:
    rows = []
    for stage, document in findings.people.items():
        if document.get("task") != "better-foil":
            continue
        sources = document["sources"]
        piles: dict[tuple[str, str], dict[str, float]] = {}
        for row in (row for row in document["table"] if row["subset"] != "all"):
            own = piles.setdefault((kind_of(row["subset"]), row["evaluation"]), dict.fromkeys(COUNTED, 0.0))
            for column, name in zip(COUNTED, (*sources, "tie"), strict=True):
                own[column] += row.get(name, 0)
        for (kind, evaluation), values in piles.items():
            if kind in KINDS:
                who, scripted = _answered_by(document, stage), bool(document.get("scripted"))
                n = dict.fromkeys(values, int(sum(values.values())))
                rows.append(
                    FactRow(who, EVALUATIONS[evaluation], KINDS[kind], values, n, tuple(sources), stands_in=scripted)
                )
    return rows


COUNTED = ("aro_crepe", "sugarcrepe", "tie")


def _answered_by(document: Document, stage: str) -> str:
    return f"{annotators(len(document.get('annotators', ())), bool(document.get('scripted')))}, in stage {stage}"


def annotators(n: int, scripted: bool) -> str:
    """Return a phrase that says who answered a study: `n` people or, if `scripted`, `n` scripts.

    >>> annotators(1, False), annotators(2, True)
    ('1 person', '2 scripted annotators, not people')
    """
    if scripted:
        return f"{counted(n, 'scripted annotator')}, not people"
    return "1 person" if n == 1 else f"{n} people"


def _trained(
    findings: RecipeFindings, of: str, rows: Mapping[str, str], groups: Mapping[str, str], columns: Mapping[str, str]
) -> list[FactRow]:
    """Return rows of a table, made from training studies. If `of` is "RN50", studies that train from scratch are used,
    else studies that tune a trained model.

    `rows` maps the studies' arms (types of training foils) to the paper's names of models. `groups` maps arms to the
    paper's groups of rows. `columns` maps the paper's columns to those of the studies.
    """
    made = []
    for stage, document in findings.trainings.items():
        if document.get("scratch", False) != (of == "RN50"):
            continue
        rebuilt = [uri for uri, bench, _ in findings.runs if bench == document["benchmarks"][0]]
        for arm, model in rows.items():
            if arm == "base" and any(same_model(uri, document["model"]) for uri in rebuilt):
                continue  # the same items are a row of runs, with intervals
            exams = [exam for exam in (*document["base"], *document["sat"]) if exam["arm"] == arm]
            values = {
                ours: sum(exam["values"][theirs] for exam in exams) / len(exams)
                for ours, theirs in columns.items()
                if exams and theirs in exams[0]["values"]
            }
            who, few = model_label(document["model"]), " (too few for an interval)" * (len(exams) < 3)
            seeds = counted(len(exams), "seed") + few
            way = "trained" if document.get("scratch") else "tuned"
            named = not document["model"].endswith(".json")  # the architecture of a small model is no URI
            stands_in = not (named and any(same_model(document["model"], uri) for uri in STARTS[of]))
            label = f"{stage}: {who}" + f", in place of {of}" * stands_in
            label += f", {_foils_of(arm, exams)}, {way} with {document['data']}, {seeds}" * (arm != "base")
            n = {ours: int(document["sizes"][columns[ours]]) for ours in values}
            intervals = {
                ours: seed_share_interval([exam["values"][columns[ours]] for exam in exams])[1:]
                for ours in values
                if len(exams) > 2
            }
            kinds = {theirs.partition(" ")[0] for theirs in columns.values()}
            benches = tuple(b for b, kind in zip(document["benchmarks"], ("biased", "clean")) if kind in kinds)
            alone = stands_in and not groups  # one model is not two architectures
            place = ("", "") if alone else (model, groups.get(arm, of))
            made.append(FactRow(label, *place, values, n, benches, intervals, stands_in))
    return made


def _foils_of(arm: str, exams: Sequence[Document]) -> str:
    """Return a phrase that says how many training examples had foils, and of what type. If seeds differ, the number is
    a range. `exams` are the test results of each seed.
    """
    if arm == "none":
        return "no foils"
    sizes = sorted({int(exam["foils"]) for exam in exams if "foils" in exam})
    counts = " to ".join(f"{n:,}" for n in dict.fromkeys((*sizes[:1], *sizes[-1:])))
    return f"{counts} examples with {arm} foils" if counts else f"{arm} foils"


def _sugarcrepe_5(findings: RecipeFindings) -> list[FactRow]:
    columns = _BIASED | _CLEAN
    return [row for of, rows in ARM_ROWS.items() for row in _trained(findings, of, rows, {}, columns)]


def _sugarcrepe_10(findings: RecipeFindings) -> list[FactRow]:
    groups = {arm: f"{'refined' if arm.endswith('-refined') else 'template'} hard negatives" for arm in REFINED_ROWS}
    return _trained(findings, "RN50", REFINED_ROWS, groups | {"none": ""}, _CLEAN)


def _scpp_9(findings: RecipeFindings) -> list[FactRow]:
    """Return the lexical similarities of SugarCrepe++'s Table 9, computed from its released captions. They are cut off
    after two digits, as in the paper.
    """
    # The syntactic similarities would need the paper's parser.
    rows = []
    printed = [row.model for row in published_table("sugarcrepe++/9").rows]
    named = [re.split(": | and | ", model) for model in printed]  # subset, number, and the names of two captions
    for stage, bench in findings.benches.items():
        if bench.name not in benchmark_names("sugarcrepe++"):
            continue
        items = {(item.subset, item.id): dict(zip(("P1", "P2", "N"), item.captions)) for item in bench}
        for model, (subset, number, *pair) in zip(printed, named):
            if captions := items.get((subset, number)):
                alike = float(character_similarity(*([captions[name]] for name in pair))[0])
                values = {"lexical": math.floor(100 * alike + 1e-4) / 100}
                rows.append(FactRow(f"stage {stage}", model, "", values, {}, (bench.name,), by="files"))
    return rows


def _scpp_13(findings: RecipeFindings) -> list[FactRow]:
    rows = []
    for stage, document in findings.tunings.items():
        model = str(document["model"])
        group = next((g for word, g in TUNED.items() if word in stage or word in model.lower()), "CLIP-ViT-B/32")
        own = any(same_model(model, uri) for uri in model_uris(f"{group}, frozen", group))
        name_of = model if own else f"{model_label(model)}, in place of {group}"
        for row in document["rows"]:
            way = WAYS.get(row["way"], row["way"])
            values = {name: value for name, value in row["accuracy"].items() if name in document["sizes"]}
            n = {name: int(document["sizes"][name][1]) for name in values}
            label = f"{name_of}, {way}" + _unchanged(row, document["rows"])
            intervals = {name: (row["low"][name], row["high"][name]) for name in values if name in row.get("low", {})}
            benches = tuple(b for b in (document.get("benchmark"),) if b)
            rows.append(FactRow(label, f"{group}, {way}", group, values, n, benches, intervals, stands_in=not own))
    return rows


def _unchanged(row: Document, rows: Sequence[Document]) -> str:
    """Return a note if a tuned model's accuracies equal those of the untuned (frozen) model in every subset. Otherwise
    return an empty string.
    """
    frozen = next((r for r in rows if r["way"] == "frozen"), None)
    same = frozen is not None and row is not frozen and row["accuracy"] == frozen["accuracy"]
    return " (no answer differs from the frozen model's)" if same else ""


#: Table 20 of SugarCrepe++: column → task, models that fill it, and stand-ins if none of them was scored
_JUDGES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "vera": ("blind", ("blind:plausibility",), ("lm:",)),
    "grammar": ("blind", ("blind:grammar?model=",), ("blind:grammar",)),
    "clip": ("itt", (), ("small:",)),
}


NAMED = {"vera": "Vera", "grammar": "Grammar", "clip": "CLIP"}


def _scpp_20(findings: RecipeFindings) -> list[FactRow]:
    """Return the rows of SugarCrepe++'s Table 20. For each model, the subsets with the same kind of foil (replace or
    swap) are averaged without weights. Each value is the mean of these averages over models. The value for CLIP is the
    mean over the 15 variants of Table 12.
    """
    variants = [uri for row in published_table("sugarcrepe++/12").rows for uri in row.uris]
    rows = []
    for kind, bench in itertools.product(("replace", "swap"), dict.fromkeys(bench for _, bench, _ in findings.runs)):
        group = "SugarCrepe" if bench in benchmark_names("sugarcrepe") else "SugarCrepe++"
        values: dict[str, float] = {}
        n: dict[str, int] = {}
        intervals: dict[str, tuple[float, float]] = {}
        ties: dict[str, int] = {}
        others: list[str] = []
        for column, (task, real, substitutes) in _JUDGES.items():
            means = _means_of(findings, bench, task, kind)
            if column == "clip":
                own = [m for m in means if any(same_model(m, uri) for uri in variants)]
            else:
                own = [m for m in means if m.startswith(real)]
            used = own or [m for m in means if m.startswith(substitutes)]
            if used:
                values[column] = sum(means[m].value for m in used) / len(used)
                n[column], ties[column] = means[used[0]].n, sum(means[m].ties for m in used)
                alone = means[used[0]].interval if len(used) == 1 else None  # several share their items
                intervals |= {column: alone} if alone else {}
            others += [f"{NAMED[column]} by {model_label(model)}" for model in used if not own]
        instead = f": {', '.join(others)}" if others else ""
        about = (f"{kind}{instead}", kind.capitalize(), group, values, n, (bench,), intervals, bool(others))
        rows.append(FactRow(*about, ties=ties))
    return rows


class _SubsetMean(NamedTuple):
    value: float
    n: int
    interval: tuple[float, float] | None
    ties: int


def _means_of(findings: RecipeFindings, bench: str, task: str, kind: str) -> dict[str, _SubsetMean]:
    """Return each model's mean accuracy over the subsets with this `kind` of foils (replace or swap). It is in percent,
    with an interval. `bench` and `task` select the results.
    """
    means = {}
    for model, on, results in findings.runs:
        own = [r for r in results if on == bench and r["task"] == task and str(r["subset"]).startswith(kind) and r["n"]]
        if own:
            ends = [[math.nan if r.get(end) is None else 100 * r[end] for end in ("low", "high")] for r in own]
            value, low, high = _joined([(100 * r["hits"] / r["n"], *both) for r, both in zip(own, ends, strict=True)])
            n, ties = (sum(int(r.get(name, 0)) for r in own) for name in ("n", "ties"))
            means[model] = _SubsetMean(value, n, None if math.isnan(low + high) else (low, high), ties)
    return means


def _joined(shares: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Return the mean of several subsets' shares, and its interval. `shares` are (value, low, high). The subsets are
    assumed to be independent (Zou and Donner's MOVER).
    """
    mean = sum(value for value, _, _ in shares) / len(shares)
    below = math.hypot(*(value - low for value, low, _ in shares)) / len(shares)
    above = math.hypot(*(high - value for value, _, high in shares)) / len(shares)
    return mean, mean - below, mean + above


def _sade_1(findings: RecipeFindings) -> list[FactRow]:
    """Return the rows of SADE's Table 1: sizes, chance levels, and people's ratings before and after filtering. Its
    columns are the parts (branches) of SADE.
    """
    rows = []
    for stage, bench in findings.benches.items():
        if stage in findings.people:  # rated items, before filtering
            continue
        own = {COLUMNS[stands_for(name)]: name for name in bench.subsets if stands_for(name) in COLUMNS}
        parts = {column: bench.only([name]) for column, name in own.items()}
        chance = match_chance(bench)  # replaced below by that of the group score, for two images and two captions
        chance |= {own[column]: 1 / 6 for column, part in parts.items() if all(i.match == PAIRED for i in part)}
        images = {column: float(len(image_keys(part)) or len(part)) for column, part in parts.items()}
        texts = {column: float(sum(len(item.captions) for item in part)) for column, part in parts.items()}
        levels = {column: round(100 * chance[name], 1) for column, name in own.items()}
        for model, group, values in (
            ("images", "size", images),
            ("references", "size", texts),
            ("random results", "chance, %", levels),
        ):
            rows.append(FactRow(f"{model} after stage {stage}", model, group, values, benchmarks=(bench.name,)))
    for stage, document in findings.people.items():
        if document.get("task") == "bias-rating":
            for source, model in zip(document["sources"], ("original references", "SADE references")):
                table = [r for r in document["table"] if r["source"] == source]
                rated = {COLUMNS[name]: r for r in table if (name := stands_for(r["subset"])) in COLUMNS}
                kept = {
                    COLUMNS[stands_for(name)] for name in document.get("same_items", ()) if stands_for(name) in COLUMNS
                }
                kept &= set(rated) if model.startswith("SADE") else set()  # nothing to compare with what was before
                values = {column: r["mean"] for column, r in rated.items() if column not in kept}
                n = {column: int(rated[column]["n"]) for column in values}
                who, scripted = _answered_by(document, stage), bool(document.get("scripted"))
                titles = [c.title for c in published_table("sade/1").columns if c.name in kept]
                who += f"; the filter left nothing out of {', '.join(titles)}" if titles else ""
                rows.append(FactRow(who, model, "bias rated by people", values, n, (source,), stands_in=scripted))
    return rows


def _hit_2(findings: RecipeFindings) -> list[FactRow]:
    """Return how many captions have each of the two constructions (passive and ditransitive), in total and by source
    (the tag `source`). No total is given for a benchmark with a single source.
    """
    # A source that stands in for a published one is counted under the published name (`world-as-cc` as `cc`).
    rows = []
    for stage, bench in findings.benches.items():
        for group, ending in (("as parsed", ""), ("simplified", "-simplified")):
            for model, subset in (("Active/Passive", "passive"), ("Ditransitive", "dative")):
                items = list(bench.only([subset + ending])) if subset + ending in bench.subsets else []
                tags = Counter(str(item.tags.get("source", "")).lower() for item in items)
                values = {"total": float(len(items))} if len(tags) > 1 else {}
                for tag, n in tags.items():
                    values |= {stands_for(tag): values.get(stands_for(tag), 0.0) + n} if tag else {}
                label = f"{stage}: {', '.join(sorted(tags))}" if any(tags) else stage
                if ending and (n := same_captions(bench, subset, subset + ending)):
                    label += f"; {n:,} of {len(items):,} have no word left out"
                other = any("-as-" in tag for tag in tags)
                rows.append(FactRow(label, model, group, values, benchmarks=(bench.name,), stands_in=other))
    return rows


def same_captions(bench: Benchmark, one: str, two: str) -> int:
    """Return how many items of subset `two` have the same captions as the item with the same id in subset `one`."""
    if not {one, two} <= set(bench.subsets):
        return 0
    captions = {item.id: item.captions for item in bench.only([one])}
    return sum(captions.get(item.id) == item.captions for item in bench.only([two]))


def _hit_c(findings: RecipeFindings) -> list[FactRow]:
    """Return the effects in table C of Hit or Be Hit, by their names there. They are estimated once for all models
    together and once for each model.
    """
    rows = []
    printed = {(row.group, row.model) for row in published_table("hit-or-be-hit/C").rows}
    for stage, document in findings.fits.items():
        benches = [bench for bench in findings.benches.values() if bench.name in document.get("benchmarks", ())]
        for fit in document["fits"]:
            alone = _alone(fit["sample"])
            two = all(effect["name"] != "grammaticality[equal]" for effect in fit["coefficients"])
            by_grammar = f" by {document.get('grammar')}" + ", foil against caption alone" * two
            for effect in fit["coefficients"]:
                values = {"beta": effect["estimate"], "t": effect["statistic"]}
                n, intervals = dict.fromkeys(values, fit["n"]), {"beta": (effect["low"], effect["high"])}
                by = by_grammar if "grammaticality" in effect["name"] else ""
                by += _not_shorter(benches, fit["label"]) if effect["name"].startswith("simplified") else ""
                label = f"{stage}, {fit['label']}, {model_label(fit['sample'])}: {effect['name']}{by}"
                for group, name in printed.intersection(_printed_effects(fit["label"], alone, effect["name"])):
                    sets = tuple(document.get("benchmarks", ()))
                    rows.append(FactRow(label, name, group, values, n, sets, intervals, stands_in=True))
    return rows


def _not_shorter(benches: Sequence[Benchmark], analysis: str) -> str:
    """Return a note that says for how many items of an analysis the simplified captions equal the long ones. It is
    empty if there are no such items.
    """
    forms = [form for word, form in CONSTRUCTIONS.items() if word in analysis] or [*CONSTRUCTIONS.values()]
    pairs = [(bench, form, f"{form}-simplified") for bench in benches for form in forms]
    same = sum(same_captions(*pair) for pair in pairs)
    items = sum(bench.subsets.get(short, 0) for bench, _, short in pairs)
    return f"; {same:,} of {items:,} items have the same captions long and simplified and count as both" if same else ""


def _alone(sample: str) -> str:
    """Return the paper's name for the only model in a statistical sample. It is empty for the sample `all models`."""
    if sample == "all models":
        return ""
    named = {"flava": "FLAVA", "locked-image": "LiT", "clip": "CLIP", "plain": "CLIP"}
    return next((model for word, model in named.items() if word in sample.lower()), sample)


def _printed_effects(analysis: str, alone: str, effect: str) -> Iterator[tuple[str, str]]:
    """Yield (group, name) of each printed row that shows this effect. `alone` is the model if only one was analysed.

    >>> list(_printed_effects("active or ditransitive", "", "grammaticality[foil]:type[ditransitive]"))
    [('first model', 'ditransitive × grammaticality foil')]
    >>> list(_printed_effects("active or passive", "LiT", "simplified[true]"))
    [('one model alone, simplified', 'LiT')]
    """
    terms = effect.split(":")
    type_ = next((t[5:-1] for t in terms if t.startswith("type[")), "")
    name = next((known for t in terms if (known := _effect_name(t)) is not None), None)
    if name is None or len(terms) > 2:
        return
    if len(terms) == 1 and not alone and analysis in ANALYSES:
        yield ANALYSES[analysis], name
    elif len(terms) == 1 and alone and name == "simplified" and analysis == "active or passive":
        yield "one model alone, simplified", alone
    elif len(terms) == 2 and type_ in analysis:
        yield (f"{alone} alone" if alone else "first model"), f"{type_} × {name}"
    elif len(terms) == 1 and alone and name == "grammaticality foil" and analysis == "active or ditransitive":
        yield f"{alone} alone", "ditransitive sub-sample, grammaticality foil"


def _effect_name(name: str) -> str | None:
    """Return the paper's name for a term of a statistical model. Return None if the paper does not print the term.

    >>> _effect_name("grammaticality[equal]"), _effect_name("type[passive]")
    ('grammaticality equal', None)
    """
    return next((known for pattern, known in _NAMES["effects"].items() if fnmatchcase(name, pattern)), None)


_Fill = Callable[[RecipeFindings], list[FactRow]]
_CLEAN = {name: f"clean {name}" for name in ("replace", "swap", "add")}
_BIASED = {f"aro_{name}": f"biased {name}" for name in ("replace", "swap", "negate", "shuffle")}


ROWS: Mapping[str, _Fill] = {
    "sugarcrepe/2": partial(_subset_counts, "sugarcrepe/2"),
    "sugarcrepe/4": _sugarcrepe_4,
    "sugarcrepe/5": _sugarcrepe_5,
    "sugarcrepe/6": _sugarcrepe_6,
    "sugarcrepe/9": _sugarcrepe_9,
    "sugarcrepe/10": _sugarcrepe_10,
    "sugarcrepe++/1": partial(_subset_counts, "sugarcrepe++/1"),
    "sugarcrepe++/9": _scpp_9,
    "sugarcrepe++/13": _scpp_13,
    "sugarcrepe++/20": _scpp_20,
    "sade/1": _sade_1,
    "hit-or-be-hit/2": _hit_2,
    "hit-or-be-hit/C": _hit_c,
}
