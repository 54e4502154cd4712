"""Sources of hard negatives: the items themselves, makers (which write foils for captions), or other benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from creperie.auditing import AttackerModels
from creperie.bench import Benchmark, Item, choice, from_items
from creperie.core import CreperieError, Progress, UsageError, silent
from creperie.engine import Engine, Local
from creperie.training.examples import TrainSet, train_set, true_and_false, with_foils

OWN = "own"
Key = tuple[str, str]  #: an image and its true caption
Written = Mapping[Key, tuple[str, ...]]  #: foils


@dataclass(frozen=True)
class FoilRefinement:
    """The settings for refining training foils against a plausibility model and a grammar model, as SugarCrepe does for
    its test foils (its appendix D.3).

    `attackers` names the models that judge the foils. If it is empty, a plausibility model and a grammar model are
    used, or the only one of the two that is available.
    """

    attackers: tuple[str, ...] = ()
    bins: int | None = None  #: cells of the grid per sign of a gap; None: 50, as published
    models: AttackerModels = field(default_factory=AttackerModels)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of the models that judge the foils. The plausibility model is Vera; if there is no checkpoint of
        Vera, a language model is used instead.
        """
        if self.attackers:
            return self.attackers
        plausibility = "plausibility" if self.models.plausibility else "lm-mean" if self.models.lm_uri else ""
        names = tuple(filter(None, (plausibility, "grammar" if self.models.grammar or _parses() else "")))
        if not names:
            raise UsageError(
                "no plausibility or grammar model is available to refine foils with",
                hint="install the extra `demo`, or name `lm=` or `attackers=`",
            )
        return names

    @property
    def document(self) -> dict[str, Any]:
        return {"attackers": list(self.chosen), "bins": self.bins, "models": asdict(self.models)}


def _parses() -> bool:
    """Return whether link-grammar is installed."""
    from creperie.lang import grammaticalities

    try:
        return bool(len(grammaticalities(["A dog sleeps."])))
    except CreperieError:
        return False


@dataclass(frozen=True)
class Negatives:
    """The sources of training foils: `own` (the items' false captions), makers such as `rules:swap`, and benchmarks."""

    names: tuple[str, ...] = (OWN,)
    refinement: FoilRefinement | None = None
    seed: int = 0


def training_data(
    bench: Benchmark, negatives: Negatives, progress: Progress = silent, engine: Engine | None = None
) -> TrainSet:
    """Return the images and true captions of a benchmark with the foils that `negatives` names. If makers write the
    foils, they run on `engine`; the foils are the same on any engine.
    """
    data, foils = train_set(bench), []
    for name in negatives.names:
        if name == OWN:
            foils.append([e.foils for e in data.examples])
        else:
            made = _is_maker(name)
            written = _foils_by_maker(name, bench, negatives.seed, engine, progress) if made else _from_benchmark(name)
            foils.append([written.get((e.image, e.caption), ()) for e in data.examples])
    if negatives.refinement is not None and negatives.names:
        # Only the first foil of each name and caption is considered.
        firsts = {name: tuple(own[0] if own else "" for own in rows) for name, rows in zip(negatives.names, foils)}
        left = keep_refined(firsts, [e.caption for e in data.examples], negatives.refinement, progress)
        foils = [[(text,) if text else () for text in left[name]] for name in negatives.names]
    rows = [tuple(dict.fromkeys(text for own in foils for text in own[i])) for i in range(len(data))]
    for name, own in zip(negatives.names, foils, strict=True):
        if not any(own) and negatives.refinement is None:
            raise UsageError("makes no foil for any caption", where=name, hint="name others with `negatives=`")
    return with_foils(data, rows)


def _is_maker(name: str) -> bool:
    """Return whether a name means a maker. It does if it is a maker's name or begins with the prefix of a group of
    makers, such as `rules:`. Any other name means a benchmark.
    """
    from creperie.making import MAKERS

    families = {maker.partition(":")[0] for maker in MAKERS if ":" in maker}
    return name in MAKERS or name.partition(":")[0] in families


def _foils_by_maker(name: str, bench: Benchmark, seed: int, engine: Engine | None, progress: Progress) -> Written:
    """Return the foils that the maker `name` writes for the captions of a benchmark, by image and caption."""
    from creperie.making import MakerOptions, build_maker, captions_of, choose, proposed

    captions = captions_of(bench)
    # Keep everything that a template makes, as the papers did: the study is about foils that give themselves away.
    maker = build_maker(name, MakerOptions(seed=seed, matched=False), captions)
    foils = {}
    with (
        TemporaryDirectory(prefix="creperie-foils-") as place,
        proposed(
            maker, captions.sources, {}, Path(place) / "foils", engine=engine or Local(), progress=progress
        ) as outcomes,
    ):
        for source, outcome in zip(captions.sources, choose(maker, outcomes), strict=True):
            texts = tuple(c.text for c in outcome.accepted if c.role == "negative")
            if texts and source.images:
                foils[source.images[0], source.text] = texts
    return foils


def _from_benchmark(spec: str) -> Written:
    """Return the false captions of another benchmark, keyed by image and true caption."""
    from creperie.bench import load

    foils: dict[Key, tuple[str, ...]] = {}
    for item in load(spec):
        for row, image in enumerate(item.images):
            true, false = true_and_false(item, row)
            for caption in true:
                foils[image, caption] = (*foils.get((image, caption), ()), *false)
    return foils


def keep_refined(
    foils: Mapping[str, tuple[str, ...]], captions: list[str], refinement: FoilRefinement, progress: Progress = silent
) -> dict[str, tuple[str, ...]]:
    """Return the foils of each type, one per caption. A foil that the refinement removes becomes ""."""
    from creperie.refining import RefinePlan, refine

    plan = RefinePlan(attackers=refinement.chosen, held_out=HELD_OUT, bins=refinement.bins)
    left = refine(foil_bench(foils, captions), plan=plan, models=refinement.models, progress=progress).bench
    stay = {(item.subset, int(item.id)) for item in left}
    return {
        name: tuple(text if (name, i) in stay else "" for i, text in enumerate(texts)) for name, texts in foils.items()
    }


#: attackers that are measured before and after refinement, for the record
HELD_OUT = ("length-chars",)


def foil_bench(foils: Mapping[str, tuple[str, ...]], captions: list[str]) -> Benchmark:
    """Return the captions and foils as a benchmark without images. Every type of foils is a subset."""
    items = [
        Item(str(i), name, (), (captions[i], text), choice(1, 1))
        for name, texts in foils.items()
        for i, text in enumerate(texts)
        if text
    ]
    return from_items("training-foils", items)
