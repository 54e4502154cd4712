"""Where hard negatives come from: the items themselves, makers, or benchmarks that were made before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from creperie.auditing import AttackerModels
from creperie.bench import Benchmark, Item, choice, from_items
from creperie.core import CreperieError, Progress, UsageError, silent
from creperie.engine import Engine, Local
from creperie.training.examples import TrainSet, train_set, with_foils

OWN = "own"
Key = tuple[str, str]  #: an image and its true caption


@dataclass(frozen=True)
class FoilRefinement:
    """How training foils are refined: by the published grid. SugarCrepe (appendix D.3) refines them as its benchmark,
    against a model of plausibility and one of grammar; without `attackers` these two, by the models at hand."""

    attackers: tuple[str, ...] = ()
    bins: int | None = None  #: per sign of a gap; the grid's 50 where not given
    models: AttackerModels = field(default_factory=AttackerModels)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The attackers by name. Where no Vera checkpoint is named, a language model judges plausibility."""
        if self.attackers:
            return self.attackers
        plausibility = "plausibility" if self.models.plausibility else "lm-mean" if self.models.lm_uri else ""
        names = tuple(filter(None, (plausibility, "grammar" if self.models.grammar or _parses() else "")))
        if not names:
            hint = "install the extra `demo`, or name `lm=` or `attackers=`"
            raise UsageError("no model of plausibility or grammar is at hand to refine foils with", hint=hint)
        return names

    @property
    def document(self) -> dict[str, Any]:
        return {"attackers": list(self.chosen), "bins": self.bins, "models": asdict(self.models)}


def _parses() -> bool:
    """True if link-grammar is installed."""
    from creperie.lang import grammaticalities

    try:
        return bool(len(grammaticalities(["A dog sleeps."])))
    except CreperieError:
        return False


@dataclass(frozen=True)
class Negatives:
    """Which foils to train with. Names are `own` (the items' false captions), makers (`rules:swap`), or benchmarks."""

    names: tuple[str, ...] = (OWN,)
    refinement: FoilRefinement | None = None
    seed: int = 0


def training_data(
    bench: Benchmark, negatives: Negatives, progress: Progress = silent, engine: Engine | None = None
) -> TrainSet:
    """Return a benchmark's pictures and true captions with the foils that were asked for. Makers run where the engine
    says; what they make does not depend on it."""
    data = train_set(bench)
    made = _Kitchen(bench, negatives.seed, engine or Local(), progress)
    foils = [_foils_of(name, data, made) for name in negatives.names]
    if negatives.refinement is not None and negatives.names:
        by_name = dict(zip(negatives.names, foils, strict=True))
        foils = _refined(data, by_name, negatives.refinement, progress)
    rows = [tuple(dict.fromkeys(text for own in foils for text in own[i])) for i in range(len(data))]
    for name, own in zip(negatives.names, foils, strict=True):
        if not any(own) and negatives.refinement is None:
            raise UsageError("this gives no foil for any caption", where=name, hint="choose other negatives")
    return with_foils(data, rows)


def _foils_of(name: str, data: TrainSet, kitchen: _Kitchen) -> list[tuple[str, ...]]:
    if name == OWN:
        return [e.foils for e in data.examples]
    made = kitchen.made(name) if _is_maker(name) else _from_benchmark(name)
    return [made.get((e.image, e.caption), ()) for e in data.examples]


def _is_maker(name: str) -> bool:
    """Is it a maker's name, or a misspelt name of a maker's family? All else names a benchmark."""
    from creperie.making import MAKERS

    families = {maker.partition(":")[0] for maker in MAKERS if ":" in maker}
    return name in MAKERS or name.partition(":")[0] in families


@dataclass(frozen=True)
class _Kitchen:
    """Where makers work: on which captions, with which seed, in which processes."""

    bench: Benchmark
    seed: int
    engine: Engine
    progress: Progress

    def made(self, name: str) -> Mapping[Key, tuple[str, ...]]:
        """Return what one maker makes of every picture's true captions."""
        from creperie.making import MakerOptions, build_maker, captions_of, kept_outcomes, make_parts

        captions = captions_of(self.bench)
        # All that a template makes, as the papers trained with: what gives foils away is for the study to ask.
        maker = build_maker(name, MakerOptions(seed=self.seed, matched=False), captions)
        foils: dict[Key, tuple[str, ...]] = {}
        with TemporaryDirectory(prefix="creperie-foils-") as place:
            make_parts(maker, captions.sources, Path(place), self.engine, self.progress)
            outcomes = kept_outcomes(maker, captions.sources, Path(place))
            for source, outcome in zip(captions.sources, outcomes, strict=True):
                texts = tuple(c.text for c in outcome.accepted if c.role == "negative")
                if texts and source.images:
                    foils[source.images[0], source.text] = texts
        return foils


def _from_benchmark(spec: str) -> Mapping[Key, tuple[str, ...]]:
    """Return the false captions of another benchmark's items, by picture and true caption."""
    from creperie.bench import load

    foils: dict[Key, tuple[str, ...]] = {}
    for item in load(spec):
        for row, image in enumerate(item.images):
            true = [c for c, holds in zip(item.captions, item.match[row], strict=True) if holds]
            false = tuple(c for c, holds in zip(item.captions, item.match[row], strict=True) if not holds)
            for caption in true:
                foils[image, caption] = (*foils.get((image, caption), ()), *false)
    return foils


def _refined(
    data: TrainSet, foils: Mapping[str, Sequence[tuple[str, ...]]], refinement: FoilRefinement, progress: Progress
) -> list[list[tuple[str, ...]]]:
    """Return what is left of the foils. Refinement looks at one foil per caption: the first of each name."""
    firsts = {name: tuple(own[0] if own else "" for own in rows) for name, rows in foils.items()}
    left = keep_refined(firsts, [e.caption for e in data.examples], refinement, progress)
    return [[(text,) if text else () for text in left[name]] for name in foils]


def keep_refined(
    foils: Mapping[str, tuple[str, ...]], captions: list[str], refinement: FoilRefinement, progress: Progress = silent
) -> dict[str, tuple[str, ...]]:
    """Return the foils of each type, one per caption, with "" in place of those that the refinement removes."""
    from creperie.refining import RefinePlan, refine

    plan = RefinePlan(attackers=refinement.chosen, held_out=HELD_OUT, bins=refinement.bins)
    left = refine(foil_bench(foils, captions), plan=plan, models=refinement.models, progress=progress).bench
    stay = {(item.subset, int(item.id)) for item in left}
    return {
        name: tuple(text if (name, i) in stay else "" for i, text in enumerate(texts)) for name, texts in foils.items()
    }


#: measured before and after, for the record
HELD_OUT = ("length-chars",)


def foil_bench(foils: Mapping[str, tuple[str, ...]], captions: list[str]) -> Benchmark:
    """Return captions and foils as a benchmark without images, one subset per type."""
    items = [
        Item(str(i), name, (), (captions[i], text), choice(1, 1))
        for name, texts in foils.items()
        for i, text in enumerate(texts)
        if text
    ]
    return from_items("training-foils", items)
