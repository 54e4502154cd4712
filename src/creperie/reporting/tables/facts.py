"""Rows of published tables that do not come from scoring a model: counts, comparisons of foils, people's answers, gains
from training, and effects in statistical models.

`RecipeFindings` holds the output of a recipe's stages. `fact_rows` turns it into rows like the printed ones.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

from creperie.auditing import kind_of
from creperie.bench import PAIRED, Benchmark, image_keys, match_chance
from creperie.core import Document, Json, counted, packaged_toml
from creperie.lang import character_similarity
from creperie.metrics import wilson
from creperie.reporting.tables.measure import MeasuredCell
from creperie.reporting.tables.published import (
    benchmark_names,
    model_label,
    model_uris,
    published_table,
    same_model,
    stands_for,
)
from creperie.training import seed_share_interval

_NAMES: Json = packaged_toml("creperie.reporting.tables", "facts.toml")
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
    """A row of results by column. `model` and `group` identify the corresponding printed row."""

    label: str
    model: str
    group: str
    cells: Mapping[str, MeasuredCell]
    benchmarks: tuple[str, ...] = ()  #: whose items were used; the row is compared only if all are the paper's
    stands_in: bool = False  #: another model than the printed row's, or a script: never compared with it
    by: str = "model"  #: what gave the results: a model, released files or released answers (`BY`)


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
    """Return rows for the table named `key`, made from a recipe's findings. The list is empty if the table is filled
    from runs instead.
    """
    makes = ROWS.get(key)
    return [row for row in makes(findings) if row.cells] if makes else []


def _cells(values: Mapping[str, float], n: int = 0) -> dict[str, MeasuredCell]:
    """Return cells with these values, without intervals."""
    return {name: MeasuredCell(float(value), n=n) for name, value in values.items()}


def _subset_counts(table: str, findings: RecipeFindings) -> Iterator[FactRow]:
    printed = published_table(table)
    columns = [column.name for column in printed.columns]
    for stage, bench in findings.benches.items():
        counts = {name: n for name, n in bench.subsets.items() if name in columns}
        if counts and "total" in columns:
            counts["total"] = sum(counts.values())
        label = f"items after stage {stage}"
        yield FactRow(label, printed.rows[0].model, "", _cells(counts), (bench.name,), by="files")


def _sugarcrepe_4(findings: RecipeFindings) -> Iterator[FactRow]:
    """Yield the rows of SugarCrepe's Table 4, which compares the foils of two benchmarks by scores such as grammar.
    The mean scores in the paper lie between 0 and 1; a mean score outside this range is left out.
    """
    for stage, document in findings.pairwise.items():
        for row in document["results"]:
            attacker, n = row["attacker"], int(row["n"])
            if row["kind"] not in KINDS or attacker not in SCORES:
                continue
            means = {"aro_crepe": 100 * row["first"], "sugarcrepe": 100 * row["second"]}
            cells = _cells(means if 0 <= row["first"] <= 1 else {}, n)
            better, low, high = (100 * row.get(name, math.nan) for name in ("better", "low", "high"))
            cells["better"] = MeasuredCell(better, low, high, n)
            model = document.get("models", {}).get(attacker, "")
            tied = f", {counted(row['ties'], 'tie')} counted as half" if row.get("ties") else ""
            label = f"{stage}: {attacker}" + (f" by {model_label(model)}" if model else "") + tied
            benches = document["first"], document["second"]
            stands_in = f"blind:{attacker}?model={model}" not in _PAPERS_SCORES
            yield FactRow(label, SCORES[attacker], KINDS[row["kind"]], cells, benches, stands_in)


#: the papers' plausibility and grammar models; others stand in for them
_PAPERS_SCORES = (*model_uris("Vera"), *model_uris("Grammar"))


def _sugarcrepe_6(findings: RecipeFindings) -> Iterator[FactRow]:
    """Yield GPT-4V's rows of SugarCrepe's Table 6, computed from the answers that SugarCrepe's authors released.
    Values are means over both orders of the captions. The mean over the subsets is included if no subset is missing.
    """
    subsets = {s for c in published_table("sugarcrepe/6").columns for s in c.subsets if c.measured}
    for stage, document in findings.answers.items():
        cells = {}
        for name, value in document["values"].items():
            n = document["n"][name]
            low, high = wilson(value / 100 * n, n)  # wider than necessary for the mean of two answers per item
            cells[name] = MeasuredCell(value, 100 * low, 100 * high, n)
        if set(cells) == subsets:
            cells["average"] = _joined(list(cells.values()))
        label = f"{stage}: released answers"
        yield FactRow(label, document["model"], "OpenAI", cells, ("sugarcrepe",), by="answers")


def _sugarcrepe_9(findings: RecipeFindings) -> Iterator[FactRow]:
    for stage, document in findings.people.items():
        if document.get("task") != "better-foil":
            continue
        sources = document["sources"]
        piles: dict[tuple[str, str], Counter[str]] = {}
        for row in document["table"]:
            if (kind := kind_of(row["subset"])) in KINDS:
                pile = piles.setdefault((KINDS[kind], EVALUATIONS[row["evaluation"]]), Counter())
                columns = zip(("aro_crepe", "sugarcrepe", "tie"), (*sources, "tie"), strict=True)
                pile.update({column: row.get(name, 0) for column, name in columns})
        who, scripted = _answered_by(document, stage)
        for (kind, evaluation), pile in piles.items():
            yield FactRow(who, evaluation, kind, _cells(pile, pile.total()), tuple(sources), scripted)


def _answered_by(document: Document, stage: str) -> tuple[str, bool]:
    """Return who answered, in words, and whether they were scripts."""
    scripted = bool(document.get("scripted"))
    return f"{annotators(len(document.get('annotators', ())), scripted)}, in stage {stage}", scripted


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
) -> Iterator[FactRow]:
    """Yield rows of a table, made from training studies. If `of` is "RN50", studies that train from scratch are used,
    else studies that tune a trained model.

    `rows` maps the studies' arms (types of training foils) to the paper's names of models. `groups` maps arms to the
    paper's groups of rows. `columns` maps the paper's columns to those of the studies.
    """
    for stage, document in findings.trainings.items():
        if document.get("scratch", False) != (of == "RN50"):
            continue
        rebuilt = [uri for uri, bench, _ in findings.runs if bench == document["benchmarks"][0]]
        for arm, model in rows.items():
            if arm == "base" and any(same_model(uri, document["model"]) for uri in rebuilt):
                continue  # the same items are a row of runs, with intervals
            exams = [exam for exam in (*document["base"], *document["sat"]) if exam["arm"] == arm]
            cells = {
                ours: _over_seeds([exam["values"][theirs] for exam in exams], int(document["sizes"][theirs]))
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
            kinds = {theirs.partition(" ")[0] for theirs in columns.values()}
            benches = tuple(b for b, kind in zip(document["benchmarks"], ("biased", "clean")) if kind in kinds)
            alone = stands_in and not groups  # one model is not two architectures
            place = ("", "") if alone else (model, groups.get(arm, of))
            yield FactRow(label, *place, cells, benches, stands_in)


def _over_seeds(values: Sequence[float], n: int) -> MeasuredCell:
    """Return the mean over seeds. With fewer than three, there is no interval."""
    low, high = seed_share_interval(values)[1:] if len(values) > 2 else (math.nan, math.nan)
    return MeasuredCell(sum(values) / len(values), low, high, n)


def _foils_of(arm: str, exams: Sequence[Document]) -> str:
    """Return a phrase that says how many training examples had foils, and of what type. If the number differs between
    seeds, it is given as a range. `exams` are the test results of each seed.
    """
    if arm == "none":
        return "no foils"
    sizes = sorted({int(exam["foils"]) for exam in exams if "foils" in exam})
    counts = " to ".join(f"{n:,}" for n in dict.fromkeys((*sizes[:1], *sizes[-1:])))
    return f"{counts} examples with {arm} foils" if counts else f"{arm} foils"


def _sugarcrepe_5(findings: RecipeFindings) -> Iterator[FactRow]:
    for of, rows in ARM_ROWS.items():
        yield from _trained(findings, of, rows, {}, _BIASED | _CLEAN)


def _sugarcrepe_10(findings: RecipeFindings) -> Iterator[FactRow]:
    groups = {arm: f"{'refined' if arm.endswith('-refined') else 'template'} hard negatives" for arm in REFINED_ROWS}
    return _trained(findings, "RN50", REFINED_ROWS, groups | {"none": ""}, _CLEAN)


def _scpp_9(findings: RecipeFindings) -> Iterator[FactRow]:
    """Yield the lexical similarities of SugarCrepe++'s Table 9, computed from its released captions. They are cut off
    after two digits, as in the paper.
    """
    # The syntactic similarities would need the paper's parser.
    printed = [row.model for row in published_table("sugarcrepe++/9").rows]
    named = [re.split(": | and | ", model) for model in printed]  # subset, number, and the names of two captions
    for stage, bench in findings.benches.items():
        if bench.name not in benchmark_names("sugarcrepe++"):
            continue
        items = {(item.subset, item.id): dict(zip(("P1", "P2", "N"), item.captions)) for item in bench}
        for model, (subset, number, *pair) in zip(printed, named):
            if captions := items.get((subset, number)):
                alike = float(character_similarity(*([captions[name]] for name in pair))[0])
                cells = {"lexical": MeasuredCell(math.floor(100 * alike + 1e-4) / 100)}
                yield FactRow(f"stage {stage}", model, "", cells, (bench.name,), by="files")


def _scpp_13(findings: RecipeFindings) -> Iterator[FactRow]:
    for stage, document in findings.tunings.items():
        model = str(document["model"])
        group = next((g for word, g in TUNED.items() if word in stage or word in model.lower()), "CLIP-ViT-B/32")
        own = any(same_model(model, uri) for uri in model_uris(f"{group}, frozen", group))
        name_of = model if own else f"{model_label(model)}, in place of {group}"
        frozen = next((row["accuracy"] for row in document["rows"] if row["way"] == "frozen"), None)
        for row in document["rows"]:
            way = WAYS.get(row["way"], row["way"])
            low, high = (row.get(end, {}) for end in ("low", "high"))
            cells = {
                name: MeasuredCell(
                    value, low.get(name, math.nan), high.get(name, math.nan), int(document["sizes"][name][1])
                )
                for name, value in row["accuracy"].items()
                if name in document["sizes"]
            }
            unchanged = row["way"] != "frozen" and row["accuracy"] == frozen
            label = f"{name_of}, {way}" + " (no answer differs from the frozen model's)" * unchanged
            benches = tuple(b for b in (document.get("benchmark"),) if b)
            yield FactRow(label, f"{group}, {way}", group, cells, benches, stands_in=not own)


#: Table 20 of SugarCrepe++: column → name, task, models that fill it, and stand-ins if none of them was scored. CLIP's
#: models are those of Table 12.
_JUDGES: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "vera": ("Vera", "blind", ("blind:plausibility",), ("lm:",)),
    "grammar": ("Grammar", "blind", ("blind:grammar?model=",), ("blind:grammar",)),
    "clip": ("CLIP", "itt", (), ("small:",)),
}


def _scpp_20(findings: RecipeFindings) -> Iterator[FactRow]:
    """Yield the rows of SugarCrepe++'s Table 20. For each model, the subsets with the same kind of foil (replace or
    swap) are averaged without weights. Each value is the mean of these averages over models. The value for CLIP is the
    mean over the 15 variants of Table 12.
    """
    variants = [uri for row in published_table("sugarcrepe++/12").rows for uri in row.uris]
    for kind, bench in itertools.product(("replace", "swap"), dict.fromkeys(bench for _, bench, _ in findings.runs)):
        cells: dict[str, MeasuredCell] = {}
        others: list[str] = []
        for column, (name, task, real, substitutes) in _JUDGES.items():
            means = _means_of(findings, bench, task, kind)
            own = [m for m in means if m.startswith(real) or any(same_model(m, uri) for uri in variants)]
            used = own or [m for m in means if m.startswith(substitutes)]
            if len(used) == 1:
                cells[column] = means[used[0]]
            elif used:  # without an interval: they share their items
                value, ties = (sum(getattr(means[m], part) for m in used) for part in ("value", "ties"))
                cells[column] = MeasuredCell(value / len(used), n=means[used[0]].n, ties=ties, tie_rule="wrong")
            others += [f"{name} by {model_label(model)}" for model in used if not own]
        label = f"{kind}: {', '.join(others)}" if others else kind
        group = "SugarCrepe" if bench in benchmark_names("sugarcrepe") else "SugarCrepe++"
        yield FactRow(label, kind.capitalize(), group, cells, (bench,), bool(others))


def _means_of(findings: RecipeFindings, bench: str, task: str, kind: str) -> dict[str, MeasuredCell]:
    """Return each model's mean accuracy over the subsets with this `kind` of foils (replace or swap). The mean is in
    percent, with an interval. `bench` and `task` select the results.
    """
    means = {}
    for model, on, results in findings.runs:
        own = [
            MeasuredCell(100 * r["hits"] / r["n"], low, high, int(r["n"]), int(r.get("ties", 0)), tie_rule="wrong")
            for r in results
            if on == bench and r["task"] == task and str(r["subset"]).startswith(kind) and r["n"]
            for low, high in [[math.nan if r.get(end) is None else 100 * r[end] for end in ("low", "high")]]
        ]
        if own:
            means[model] = _joined(own)
    return means


def _joined(cells: Sequence[MeasuredCell]) -> MeasuredCell:
    """Return the mean of several subsets' shares, and its interval. The subsets are assumed to be independent (Zou and
    Donner's MOVER).
    """
    mean = sum(cell.value for cell in cells) / len(cells)
    below = math.hypot(*(cell.value - cell.low for cell in cells)) / len(cells)
    above = math.hypot(*(cell.high - cell.value for cell in cells)) / len(cells)
    n, ties = sum(cell.n for cell in cells), sum(cell.ties for cell in cells)
    return MeasuredCell(mean, mean - below, mean + above, n, ties, tie_rule="wrong")


def _sade_1(findings: RecipeFindings) -> Iterator[FactRow]:
    """Yield the rows of SADE's Table 1: sizes, chance levels, and people's ratings before and after filtering. Its
    columns are the parts (branches) of SADE.
    """
    for stage, bench in findings.benches.items():
        if stage in findings.people:  # rated items, before filtering
            continue
        chance = match_chance(bench)
        figures: dict[tuple[str, str], dict[str, float]] = {
            ("images", "size"): {},
            ("references", "size"): {},
            ("random results", "chance, %"): {},
        }
        for column, name in _branches(bench.subsets).items():
            part = bench.only([name])
            pairs = all(item.match == PAIRED for item in part)  # their chance is that of the group score
            texts = sum(len(item.captions) for item in part)
            levels = (len(image_keys(part)) or len(part), texts, round(100 * (1 / 6 if pairs else chance[name]), 1))
            for values, level in zip(figures.values(), levels):
                values[column] = level
        for (model, group), values in figures.items():
            yield FactRow(f"{model} after stage {stage}", model, group, _cells(values), (bench.name,))
    for stage, document in findings.people.items():
        if document.get("task") != "bias-rating":
            continue
        for source, model in zip(document["sources"], ("original references", "SADE references")):
            by_subset = {r["subset"]: r for r in document["table"] if r["source"] == source}
            rated = {column: by_subset[name] for column, name in _branches(by_subset).items()}
            same = _branches(document.get("same_items", ())) if model.startswith("SADE") else {}  # nothing came before
            cells = {c: MeasuredCell(r["mean"], n=int(r["n"])) for c, r in rated.items() if c not in same}
            titles = [c.title for c in published_table("sade/1").columns if c.name in {*same} & {*rated}]
            who, scripted = _answered_by(document, stage)
            who += f"; the filter left nothing out of {', '.join(titles)}" if titles else ""
            yield FactRow(who, model, "bias rated by people", cells, (source,), scripted)


def _branches(subsets: Iterable[str]) -> dict[str, str]:
    """Return the subset for each column of SADE's Table 1."""
    return {COLUMNS[branch]: name for name in subsets if (branch := stands_for(name)) in COLUMNS}


def _hit_2(findings: RecipeFindings) -> Iterator[FactRow]:
    """Yield how many captions have each of the two constructions (passive and ditransitive), in total and by source
    (the tag `source`). No total is given for a benchmark with a single source.
    """
    # A source that stands in for a published one is counted under the published name (`world-as-cc` as `cc`).
    for stage, bench in findings.benches.items():
        for group, ending in (("as parsed", ""), ("simplified", "-simplified")):
            for model, subset in (("Active/Passive", "passive"), ("Ditransitive", "dative")):
                items = list(bench.only([subset + ending])) if subset + ending in bench.subsets else []
                tags = Counter(str(item.tags.get("source", "")).lower() for item in items)
                counts = Counter({"total": len(items)} if len(tags) > 1 else {})
                for tag, n in tags.items():
                    counts.update({stands_for(tag): n} if tag else {})
                label = f"{stage}: {', '.join(sorted(tags))}" if any(tags) else stage
                if ending and (n := same_captions(bench, subset, subset + ending)):
                    label += f"; {n:,} of {len(items):,} have no word left out"
                other = any("-as-" in tag for tag in tags)
                yield FactRow(label, model, group, _cells(counts), (bench.name,), other)


def same_captions(bench: Benchmark, one: str, two: str) -> int:
    """Return how many items of subset `two` have the same captions as the item with the same id in subset `one`."""
    if not {one, two} <= set(bench.subsets):
        return 0
    captions = {item.id: item.captions for item in bench.only([one])}
    return sum(captions.get(item.id) == item.captions for item in bench.only([two]))


def _hit_c(findings: RecipeFindings) -> Iterator[FactRow]:
    """Yield the effects in table C of Hit or Be Hit, by their names there. They are estimated once for all models
    together and once for each model.
    """
    printed = {(row.group, row.model) for row in published_table("hit-or-be-hit/C").rows}
    for stage, document in findings.fits.items():
        benches = [bench for bench in findings.benches.values() if bench.name in document.get("benchmarks", ())]
        for fit in document["fits"]:
            alone = _alone(fit["sample"])
            two = all(effect["name"] != "grammaticality[equal]" for effect in fit["coefficients"])
            by_grammar = f" by {document.get('grammar')}" + ", foil against caption alone" * two
            for effect in fit["coefficients"]:
                beta = MeasuredCell(effect["estimate"], effect["low"], effect["high"], fit["n"])
                cells = {"beta": beta, "t": MeasuredCell(effect["statistic"], n=fit["n"])}
                by = by_grammar if "grammaticality" in effect["name"] else ""
                by += _not_shorter(benches, fit["label"]) if effect["name"].startswith("simplified") else ""
                label = f"{stage}, {fit['label']}, {model_label(fit['sample'])}: {effect['name']}{by}"
                for group, name in printed.intersection(_printed_effects(fit["label"], alone, effect["name"])):
                    sets = tuple(document.get("benchmarks", ()))
                    yield FactRow(label, name, group, cells, sets, stands_in=True)


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


_Fill = Callable[[RecipeFindings], Iterator[FactRow]]
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
