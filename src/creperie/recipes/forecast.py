"""What a recipe run will take: items, calls, dollars and time of every stage, before any of it is spent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from creperie.bench import Benchmark, find_entry, load
from creperie.core import CreperieError
from creperie.recipes.kitchen import check_given, folder_of, kept_record, nothing_to_do, seconds_of, stage_key
from creperie.recipes.recipe import Recipe, RecipeStage
from creperie.recipes.steps import Expected

#: items or captions per second on one slow core, rounded down: measured on a stage of this kind
RATES = {"captions": 20_000, "world": 150, "make": 40, "join": 20_000, "check": 20_000, "refine": 40, "audit": 40}
#: items that a maker can make of one caption, where it is more than one
MOST_ITEMS = {
    **{"rules:replace": 3, "rules:vl-checklist": 3, "rules:swap": 3, "rules:negate": 4, "rules:rebuild": 4},
    **{"rules:shuffle": 2, "grammar:passive": 2, "grammar:dative": 2, "grammar:with-against": 2},
}
TRIPLES = {"llm:paraphrase", "mine:spatial"}  #: makers of (P1, P2, N)
#: seconds that a stage takes before its first item
START = {"make": 3.0, "refine": 4.0, "audit": 4.0, "score": 8.0, "table": 2.0, "train": 5.0, "stats": 2.0}
START |= {"people": 6.0, "compare": 4.0, "trainings": 90.0, "tune": 25.0, "tiny": 5.0, "figure": 8.0}
#: items per second that one model scores on one slow core; of large models it is the order of magnitude
SCORED = {"blind": 5000.0, "st": 60.0, "small": 200.0, "lm": 60.0, "hf": 4.0, "open_clip": 4.0, "vlm": 0.02, "api": 4.0}
LARGE = 0.1  #: items per second of a language model of billions of weights
FITTED = 4_000  #: rows per second of a mixed model
ROWS = 2  #: rows of the statistics' table per item and model
TRAINED = 250  #: pictures per second of a small model
SERVED = 4  #: calls per second of a model behind a server
FIRST = ("score", "probe", "tune", "trainings")  #: they work on their first input; the others bring models or tests
NOTHING = ""  #: the place of a stage that is skipped and hands nothing on
ARMS = ("lm", "encoder", "plausibility", "grammar")
TYPICAL = "A man in a blue shirt is holding a small brown dog next to a red bicycle."


@dataclass(frozen=True)
class PlanLine:
    """A stage in a plan."""

    stage: RecipeStage
    state: str
    expected: Expected

    def document(self) -> dict[str, Any]:
        told = {"stage": self.stage.name, "does": self.stage.does, "state": self.state}
        return told | {name: getattr(self.expected, name) for name in ("items", "calls", "cost", "seconds", "note")}


def plan_recipe(recipe: Recipe, out: Path, use: Mapping[str, str] | None = None) -> list[PlanLine]:
    """Every stage: what will happen to it, and what that takes."""
    given = dict(use or {})
    check_given(recipe, given)
    places: dict[str, str | None] = {}
    items: dict[str, Expected] = {}
    lines = []
    for number, stage in enumerate(recipe.stages, 1):
        sources = [name for name in stage.sources if places[name] != NOTHING]
        inputs = [places[name] for name in sources]
        folder = folder_of(out, number, stage)
        full = {name for name, place in places.items() if place != NOTHING}
        state, place = _state(stage, inputs, folder, given.get(stage.name), nothing_to_do(stage, full))
        given_items = _together([items[name] for name in sources])
        if stage.does in FIRST and sources:
            given_items = replace(given_items, items=items[sources[0]].items)
        elif stage.does == "stats":  # rows of all its runs
            runs = [items[name].items for name in sources if items[name].models]
            given_items = replace(given_items, items=sum(filter(None, runs)))
        expected = _expected(stage, state, place, given_items, folder)
        if state == "skipped" and place == NOTHING:
            expected = Expected(0, note=stage.skip or nothing_to_do(stage, full))
        places[stage.name], items[stage.name] = place, expected
        lines.append(PlanLine(stage, state, expected))
    return lines


def _state(
    stage: RecipeStage, inputs: list[str | None], folder: Path, given: str | None, idle: str
) -> tuple[str, str | None]:
    if given is not None:
        return "given", given
    if stage.skip:
        return "skipped", inputs[0] if inputs and stage.step.gives == "benchmark" else NOTHING
    if idle:
        return "skipped", NOTHING
    known = [place for place in inputs if place is not None]
    if len(known) == len(inputs) and kept_record(folder, stage_key(stage, tuple(known))) is not None:
        return "unchanged", str(folder)
    return "to do", None


def _together(inputs: list[Expected]) -> Expected:
    """What all inputs of a stage hold. Runs are counted by model, their items are the benchmark's."""
    items = [e.items for e in inputs if e.items is not None]
    captions = [e.items if e.captions is None else e.captions for e in inputs]
    known = len(items) == len(inputs)
    runs = [e for e in inputs if e.models]
    total = sum(items) if not runs else max(items, default=0)
    distinct = sum(c for c in captions if c is not None)
    pairs = max((e.pairs for e in inputs), default=1)
    return Expected(total if known else None, distinct if known else None, sum(e.models for e in inputs), pairs)


def _expected(stage: RecipeStage, state: str, place: str | None, given: Expected, folder: Path) -> Expected:
    n = given.items
    if state == "skipped":
        return replace(given, note=stage.skip)
    if state in ("given", "unchanged") and place is not None:
        return _held(stage, place, given)
    if stage.does in ("captions", "load"):
        return _of_source(stage)
    if stage.does == "world":
        made = stage.options["items"] * len(stage.options["kinds"])
        return Expected(made, seconds=made / RATES["world"])
    if stage.does in ("make", "validate"):
        asked = _asked(stage, given.captions if stage.does == "make" else n, given.pairs)
        several = stage.does == "make" and not TRIPLES.isdisjoint(stage.options["makers"])
        return replace(asked, pairs=2 if several else given.pairs)
    if stage.does == "train":
        samples = (stage.options["steps"] or 0) * stage.options["batch"] or (n or 0) * stage.options["epochs"]
        small = not stage.options["model"] or stage.options["model"].endswith("student.json")
        rate = TRAINED if small else SCORED["hf"]
        return Expected(0, models=1, seconds=START["train"] + samples / rate)
    if stage.does == "people":
        waits = not stage.options["scripted"]
        told = "stops here until people have answered" if waits else ""
        return Expected(n, pairs=given.pairs, seconds=0.0 if waits else START["people"], note=told)
    models = len(stage.options.get("models", ())) + given.models if stage.step.gives == "runs" else given.models
    calls = sum((n or 0) * _questions(uri) for uri in stage.options.get("models", ()) if uri.startswith("api:"))
    note = "questions with images, whose price is not known" if calls else ""
    cost, seconds = None if calls else 0.0, _seconds(stage, given, folder)
    return Expected(n, models=models, pairs=given.pairs, calls=calls, cost=cost, seconds=seconds, note=note)


def _questions(uri: str) -> int:
    """Calls of a server per item, at most: a question for each caption, or the captions in six orders or in one.

    >>> _questions("api:m?score=choice"), _questions("api:m?score=choice&order=NPP"), _questions("api:m?score=yesno")
    (6, 1, 3)
    """
    if "score=choice" not in uri:
        return 3
    return 6 if re.search(r"order=all|^(?!.*order=)", uri) else 1


def _held(stage: RecipeStage, place: str, given: Expected) -> Expected:
    if stage.step.gives == "model":
        return Expected(0, models=1)
    if stage.step.gives != "benchmark":
        models = len(stage.options.get("models", ())) if stage.step.gives == "runs" else 0
        return replace(given, models=given.models + models)
    return _counted(load(place))


def _counted(bench: Benchmark) -> Expected:
    """The items of a benchmark that is here, and the captions that makers will see."""
    from creperie.making import captions_of

    pairs = round(len(bench.ragged("captions")[1]) / max(1, len(bench))) - 1
    return Expected(len(bench), len(captions_of(bench).sources), pairs=max(1, pairs))


def _seconds(stage: RecipeStage, given: Expected, folder: Path) -> float | None:
    """As long as it took last time, or by the rate of its kind; unknown only where the number of items is."""
    if before := seconds_of(folder):
        return before
    n = given.items
    if n is None:
        return None
    if stage.does in ("score", "probe"):
        return START["score"] + sum(n / _rate(uri) for uri in stage.options["models"]) + given.models * n / TRAINED
    if stage.does == "stats":
        return START["stats"] + len(stage.options["presets"]) * n * ROWS * max(1, given.models) / FITTED
    if stage.does in ("trainings", "tune") and stage.options["model"]:
        o = {"share": 1, "arms": [], "seeds": 1, **stage.options}
        each = (o["steps"] or 0) * o["batch"] or n * o["share"] * o["epochs"]
        return len(o["arms"] or o["ways"]) * o["seeds"] * each / _rate(o["model"])
    asked = sum(n / _rate(uri) for name in ARMS if (uri := stage.options.get(name, "")))
    return START.get(stage.does, 0.5) + asked + (n / RATES[stage.does] if stage.does in RATES else 0.0)


def _rate(uri: str) -> float:
    """Items per second of a model. A number of billions in its name makes it a large one.

    >>> _rate("lm:pkg:pocketsphinx"), _rate("lm:lmsys/vicuna-13b-v1.5"), _rate("open_clip:RN50/openai")
    (60.0, 0.1, 4.0)
    """
    kind = uri.partition(":")[0]
    rate = SCORED.get(kind, 1.0)
    return min(rate, LARGE) if re.search(r"\d+b\b", uri.lower()) else rate


def _of_source(stage: RecipeStage) -> Expected:
    """How many items there are; where they are not here, how many the catalog or the recipe expects."""
    from creperie.recipes.making import caption_source, chosen_items

    options = stage.options
    try:
        if stage.does == "captions":
            found = _counted(caption_source(options))
        else:
            found = _counted(chosen_items(load(options["source"]), options["subsets"], options["limit"]))
    except CreperieError as e:
        n = _published(options)
        note = f"not here yet ({e.what}); counted as published" if n else f"not here yet ({e.what})"
        seconds = (1 + n / RATES["captions"]) if n else None
        return Expected(n or None, n * _true_captions(options) or None, seconds=seconds, note=note)
    return replace(found, seconds=1 + (found.items or 0) / RATES["captions"])


def _true_captions(options: Mapping[str, Any]) -> int:
    """How many true captions an item of a source that is not here has, by the catalog's words."""
    try:
        found = re.search(r"(\d+)(?: true)? captions?", find_entry(options["source"].partition(":")[0]).shape)
    except CreperieError:
        found = None
    return int(found[1]) if found else 1


def _published(options: Mapping[str, Any]) -> int:
    """How many items a source that is not here has, by the catalog's count of its subsets; 0 where nobody knows."""
    limit, patterns = options["limit"], options["subsets"]
    try:
        entry = find_entry(options["source"].partition(":")[0])
    except CreperieError:
        entry = None
    if entry is None or not entry.items:
        return min(options["expect"], limit or options["expect"])
    counts = [n for s, n in entry.subsets.items() if not patterns or any(fnmatchcase(s, p) for p in patterns)]
    if not counts:  # the catalog does not know the parts
        total = options["expect"] or entry.items
        return min(total, limit or total)
    return sum(min(n, limit or n) for n in counts)


def _asked(stage: RecipeStage, n: int | None, pairs: int = 1) -> Expected:
    """Makers and validators: calls of a language model by the estimate of its prompts, seconds by rates."""
    from creperie.making import Captions, SourceCaption

    if n is None:
        return Expected(None, cost=None, seconds=None, note="known when there are captions")
    model = stage.options["model"]
    if stage.does == "validate":
        from creperie.making import CaptionPair, estimate_pairs

        one = estimate_pairs([CaptionPair("", "", TYPICAL, TYPICAL.replace("dog", "cat"), "different")], model)
        return _scaled([one] * pairs, n, model, items=n)
    from creperie.making import MakerOptions, build_maker

    makers = stage.options["makers"]
    asking = [m for m in makers if m.startswith("llm:")]
    foils = stage.options["foils"]
    several = {m: foils for m in asking if m.startswith(("llm:replace-", "llm:add-"))}
    most = stage.options["expect"] or n * sum(several.get(maker) or MOST_ITEMS.get(maker, 1) for maker in makers)
    if not asking:
        return Expected(most, seconds=START["make"] + n * len(makers) / RATES["make"])
    from creperie.making import LLMMaker, estimate_cost

    captions = Captions("typical", (SourceCaption("1", TYPICAL),))
    options = MakerOptions(model=model, foils=foils, as_published=stage.options["as_published"])
    ones = []
    for name in asking:
        maker = build_maker(name, options, captions)
        assert isinstance(maker, LLMMaker)
        ones.append(estimate_cost(maker, captions.sources))
    return _scaled(ones, n, model, items=most)


def _scaled(ones: list[dict[str, Any]], n: int, model: str, *, items: int) -> Expected:
    """The estimate of one typical caption, n times."""
    calls = n * sum(one["calls"] for one in ones)
    prices = [one["cost"] for one in ones]
    cost = None if any(p is None for p in prices) else n * sum(prices)
    seconds = calls / (SERVED if model.startswith("api:") else _rate(model))
    note = "by the prompts, on captions of typical length" + ("" if cost is not None else "; price not known")
    return Expected(items, calls=calls, cost=cost, seconds=seconds, note=note)
