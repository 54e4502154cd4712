"""The forecast of a recipe run: the items, model calls, dollars and time that every stage will take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from creperie.bench import Benchmark, find_entry, load
from creperie.core import CreperieError, Json, packaged_toml
from creperie.recipes.kitchen import (
    check_given,
    folder_of,
    route,
    seconds_of,
)
from creperie.recipes.recipe import Recipe, RecipeStage
from creperie.recipes.steps import Expected, models_of

_NUMBERS: dict[str, Json] = packaged_toml("creperie.recipes", "forecast.toml")
TRIPLES = {"llm:paraphrase", "mine:spatial"}  #: makers of (P1, P2, N)
LARGE = 0.1  #: items per second of a model with billions of weights
ROWS = 2  #: rows of the statistics' table per item and model
NOTHING = ""  #: the place of a skipped stage that has no output
TYPICAL = "A man in a blue shirt is holding a small brown dog next to a red bicycle."


@dataclass(frozen=True)
class PlanLine:
    """A stage of a plan, with its state and what it is expected to cost."""

    stage: RecipeStage
    state: str
    expected: Expected

    def document(self) -> Json:
        about = {"stage": self.stage.name, "does": self.stage.does, "state": self.state}
        return about | {name: getattr(self.expected, name) for name in ("items", "calls", "cost", "seconds", "note")}


def plan_recipe(recipe: Recipe, out: Path, use: Mapping[str, str] | None = None) -> list[PlanLine]:
    """Return, for every stage, what will happen to it and what it is expected to cost."""
    outputs = dict(use or {})
    check_given(recipe, outputs)
    places: dict[str, str | None] = {}
    lines: dict[str, PlanLine] = {}
    for number, stage in enumerate(recipe.stages, 1):
        full = {name for name, place in places.items() if place != NOTHING}
        sources = [name for name in stage.sources if name in full]
        inputs = [places[name] for name in sources]
        folder = folder_of(out, number, stage)
        settled, place, why, *_ = route(stage, inputs, folder, outputs.get(stage.name), full)
        state = settled or "to do"
        if state == "skipped" and place == NOTHING:
            expected = Expected(0, note=why)
        else:
            expected = _expected(stage, state, place, _input(stage, [lines[s].expected for s in sources]), folder)
        places[stage.name], lines[stage.name] = place, PlanLine(stage, state, expected)
    return list(lines.values())


def _input(stage: RecipeStage, inputs: Sequence[Expected]) -> Expected:
    """Return the expected input of a stage. For a stage that joins its inputs, this is their sum; for one that fits
    statistical models, the sum of the inputs that have runs; for any other stage, the first input. The number of models
    is always counted over all inputs.
    """
    if stage.does == "stats":
        counted = [e for e in inputs if e.models]
    else:
        counted = list(inputs) if stage.does == "join" else list(inputs[:1])
    models, pairs = sum(e.models for e in inputs), max((e.pairs for e in inputs), default=1)
    items = [e.items for e in counted if e.items is not None]
    if len(items) < len(counted):
        return Expected(None, None, models, pairs)
    captions = [e.items if e.captions is None else e.captions for e in counted]
    return Expected(sum(items), sum(c or 0 for c in captions), models, pairs)


def _expected(stage: RecipeStage, state: str, place: str | None, given: Expected, folder: Path) -> Expected:
    n, options, gives = given.items, stage.options, stage.step.gives
    named = options.get("models", ())
    if gives == "model":
        return Expected(0, models=1, seconds=_seconds(stage, given, folder) if state == "to do" else 0.0)
    if state == "skipped":
        return replace(given, note=stage.skip)
    if place is not None:
        more = len(named) if gives == "runs" else 0
        return _counted(load(place)) if gives == "benchmark" else replace(given, models=given.models + more)
    if stage.does in ("captions", "load"):
        return _of_source(stage)
    if stage.does == "world":
        made = options["items"] * len(options["kinds"])
        return Expected(made, seconds=made / stage.step.rate)
    if stage.does in ("make", "validate"):
        several = stage.does == "make" and not TRIPLES.isdisjoint(options["makers"])
        return replace(_writer_expected(stage, given), pairs=2 if several else given.pairs)
    if stage.does == "people" and not options["scripted"]:
        return Expected(n, pairs=given.pairs, note="stops here until people have answered")
    calls = sum((n or 0) * _questions(uri) for uri in named if uri.startswith("api:"))
    return Expected(
        n,
        models=given.models + (len(named) if gives == "runs" else 0),
        pairs=given.pairs,
        calls=calls,
        cost=None if calls else 0.0,
        seconds=_seconds(stage, given, folder),
        note="questions with images, whose price is not known" if calls else "",
    )


def _questions(uri: str) -> int:
    """Return how many requests a model needs at most for an item with three captions: one per caption, or one per order
    of the captions.

    >>> _questions("api:m?score=choice"), _questions("api:m?score=choice&order=NPP"), _questions("api:m?score=yesno")
    (6, 1, 3)
    """
    if "score=choice" not in uri:
        return 3
    return 6 if re.search(r"order=all|^(?!.*order=)", uri) else 1


def _counted(bench: Benchmark) -> Expected:
    """Return the number of items of a benchmark, and the number of its captions from which makers would create
    foils.
    """
    from creperie.making import captions_of

    pairs = round(len(bench.ragged("captions")[1]) / max(1, len(bench))) - 1
    return Expected(len(bench), len(captions_of(bench).sources), pairs=max(1, pairs))


def _seconds(stage: RecipeStage, given: Expected, folder: Path) -> float | None:
    """Return the seconds that a stage took last time. Without an earlier run, return an estimate from its step and
    models, or None if that is not possible.
    """
    n, options, step = given.items, stage.options, stage.step
    if before := seconds_of(folder):
        return before
    if n is None:
        return None
    if "epochs" in options:  # one or several training runs
        examples = (options["steps"] or 0) * options["batch"] or n * options.get("share", 1) * options["epochs"]
        times = len(options.get("arms") or options.get("ways") or "1") * options.get("seeds", 1)
        return step.start + times * examples / _rate(options["model"])
    if stage.does == "stats":
        n *= len(options["presets"]) * ROWS * max(1, given.models)
    asked = sum(n / _rate(uri) for uri in models_of(options))
    trained = given.models * n / _rate("small:") if step.gives in ("runs", "probes") else 0.0
    return step.start + asked + trained + (n / step.rate if step.rate else 0.0)


def _rate(uri: str) -> float:
    """Return the expected number of items per second that a model scores, judging by its URI.

    A size such as 13b in the name means a large model. A JSON file or an empty URI counts as a small CLIP.

    >>> _rate("lm:pkg:pocketsphinx"), _rate("lm:lmsys/vicuna-13b-v1.5"), _rate("hf:laion/CLIP-ViT-B-32-laion2B-s34B")
    (60.0, 0.1, 4.0)
    """
    kind = "small" if not uri or uri.endswith(".json") else uri.partition(":")[0]
    rate = _NUMBERS["scored"].get(kind, 1.0)
    return min(rate, LARGE) if re.search(r"(?<![a-z\d])[\d.]+b\b", uri.lower()) else rate


def _of_source(stage: RecipeStage) -> Expected:
    """Return the number of items in a source. If the source is not available, the number comes from the catalog or the
    recipe.
    """
    from creperie.recipes.making import caption_source, chosen_items

    options, rate = stage.options, stage.step.rate
    try:
        if stage.does == "captions":
            here = _counted(caption_source(options))
        else:
            here = _counted(chosen_items(load(options["source"]), options["subsets"], options["limit"]))
        return replace(here, seconds=1 + (here.items or 0) / rate)
    except CreperieError as e:
        n, captions = _published(options)
        note = f"not here yet ({e.what})" + ("; counted as published" if n else "")
        return Expected(n or None, n * captions or None, seconds=1 + n / rate if n else None, note=note)


def _published(options: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of items in an unavailable source, and the number of true captions per item. The first is 0 if
    unknown.
    """
    limit, expected, patterns = options["limit"], options["expect"], options["subsets"]
    try:
        entry = find_entry(options["source"].partition(":")[0])
    except CreperieError:
        return min(expected, limit or expected), 1
    shape = re.search(r"(\d+)(?: true)? captions?", entry.shape)
    own = [n for s, n in entry.subsets.items() if not patterns or any(fnmatchcase(s, p) for p in patterns)]
    counts = own if own and entry.items else [expected or entry.items or 0]  # the catalog may not list the subsets
    return sum(min(n, limit or n) for n in counts), int(shape[1]) if shape else 1


def _writer_expected(stage: RecipeStage, given: Expected) -> Expected:
    """Return what a stage with makers or a validator is expected to cost. Calls are counted from the prompts, and
    seconds estimated from rates.
    """
    from creperie.making import Captions, LLMMaker, MakerOptions, SourceCaption, build_maker, estimate_cost

    options, making = stage.options, stage.does == "make"
    n = given.captions if making else given.items
    if n is None:
        return Expected(None, cost=None, seconds=None, note="known when there are captions")
    model = options["model"]
    if not making:
        from creperie.making import CaptionPair, estimate_pairs

        one = estimate_pairs([CaptionPair("", "", TYPICAL, TYPICAL.replace("dog", "cat"), "different")], model)
        return _scaled([one] * given.pairs, n, model, items=n)
    makers, foils = options["makers"], options["foils"]
    several = {m: foils for m in makers if m.startswith(("llm:replace-", "llm:add-"))} | _NUMBERS["most_items"]
    most = options["expect"] or n * sum(several.get(maker) or 1 for maker in makers)
    captions = Captions("typical", (SourceCaption("1", TYPICAL),))
    how = MakerOptions(model=model, foils=foils, as_published=options["as_published"])
    asking = [build_maker(name, how, captions) for name in makers if name.startswith("llm:")]
    if not asking:
        return Expected(most, seconds=stage.step.start + n * len(makers) / stage.step.rate)
    ones = [estimate_cost(maker, captions.sources) for maker in asking if isinstance(maker, LLMMaker)]
    return _scaled(ones, n, model, items=most)


def _scaled(ones: list[Json], n: int, model: str, *, items: int) -> Expected:
    """Return the expected cost of sending `n` captions to `model`. `ones` holds the calls and cost of each question
    about one typical caption, and `items` is the expected number of items in the output.
    """
    calls = n * sum(one["calls"] for one in ones)
    prices = [one["cost"] for one in ones]
    cost = None if None in prices else n * sum(prices)
    note = "by the prompts, on captions of typical length" + ("" if cost is not None else "; price not known")
    return Expected(items, calls=calls, cost=cost, seconds=calls / _rate(model), note=note)
