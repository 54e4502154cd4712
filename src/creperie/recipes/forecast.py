"""What a cooking will take: items, calls, dollars and time of every stage, before any of it is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.bench import load
from creperie.core import CreperieError
from creperie.recipes.kitchen import check_given, folder_of, kept_record, seconds_of, stage_key
from creperie.recipes.recipe import Recipe, RecipeStage
from creperie.recipes.steps import Expected

#: items or captions a second on one slow core, rounded down: what a stage of this kind did when it was measured
RATES = {"captions": 20_000, "world": 150, "make": 40, "join": 20_000, "check": 20_000, "refine": 40, "audit": 40}
#: items that a maker can make of one caption, where it is more than one
MOST_ITEMS = {
    **{"rules:replace": 3, "rules:vl-checklist": 3, "rules:swap": 3, "rules:negate": 4, "rules:rebuild": 4},
    **{"rules:shuffle": 2, "grammar:passive": 2, "grammar:dative": 2, "grammar:with-against": 2},
}
START = {"make": 3.0, "refine": 4.0, "audit": 4.0, "score": 8.0, "table": 2.0, "train": 5.0}
SCORED = 60  #: items a second and model
TRAINED = 250  #: pictures a second of a small model
SERVED = 4  #: calls a second of a model behind a server
NOTHING = ""  #: the place of a stage that is passed over and hands nothing on
ARMS = ("lm", "encoder", "plausibility", "grammar")
TYPICAL = "A man in a blue shirt is holding a small brown dog next to a red bicycle."


@dataclass(frozen=True)
class PlanLine:
    """A stage in a plan."""

    stage: RecipeStage
    state: str
    expected: Expected

    def document(self) -> dict[str, Any]:
        e = self.expected
        return {
            "stage": self.stage.name,
            "does": self.stage.does,
            "state": self.state,
            "items": e.items,
            "calls": e.calls,
            "cost": e.cost,
            "seconds": e.seconds,
            "note": e.note,
        }


def plan_recipe(recipe: Recipe, out: Path, use: Mapping[str, str] | None = None) -> list[PlanLine]:
    """Every stage: what will happen to it, and what that takes."""
    given = dict(use or {})
    check_given(recipe, given)
    places: dict[str, str | None] = {}
    items: dict[str, int | None] = {}
    lines = []
    for number, stage in enumerate(recipe.stages, 1):
        sources = [name for name in stage.sources if places[name] != NOTHING]
        inputs = [places[name] for name in sources]
        folder = folder_of(out, number, stage)
        state, place = _state(stage, inputs, folder, given.get(stage.name))
        incoming = [items[name] for name in sources]
        n = None if any(i is None for i in incoming) else sum(i for i in incoming if i is not None)
        expected = _expected(stage, state, place, n, folder)
        places[stage.name], items[stage.name] = place, expected.items
        lines.append(PlanLine(stage, state, expected))
    return lines


def _state(stage: RecipeStage, inputs: list[str | None], folder: Path, given: str | None) -> tuple[str, str | None]:
    if given is not None:
        return "given", given
    if stage.skip:
        return "skipped", inputs[0] if inputs else NOTHING
    known = [place for place in inputs if place is not None]
    if len(known) == len(inputs) and kept_record(folder, stage_key(stage, tuple(known))) is not None:
        return "unchanged", str(folder)
    return "to do", None


def _expected(stage: RecipeStage, state: str, place: str | None, n: int | None, folder: Path) -> Expected:
    if state == "skipped":
        return Expected(n, note=stage.skip)
    if state in ("given", "unchanged") and place is not None:
        return Expected(_held(stage, place, n))
    if stage.does in ("captions", "load"):
        return _of_source(stage)
    if stage.does == "world":
        made = stage.options["items"] * len(stage.options["kinds"])
        return Expected(made, seconds=made / RATES["world"])
    if stage.does in ("make", "validate"):
        return _asked(stage, n)
    if stage.does == "train":
        samples = stage.options["steps"] * stage.options["batch"] or (n or 0) * stage.options["epochs"]
        small = stage.options["model"].endswith(".json")
        return Expected(0, seconds=START["train"] + samples / TRAINED if small else None)
    if stage.does == "people":
        told = "stops here with a sheet to fill in" if not stage.options["answers"] else ""
        return Expected(n, seconds=0.0, note=told)
    return Expected(n, seconds=_seconds(stage, n, folder))


def _held(stage: RecipeStage, place: str, n: int | None) -> int | None:
    if stage.step.gives == "model":
        return 0
    return len(load(place)) if stage.step.gives == "benchmark" else n


def _seconds(stage: RecipeStage, n: int | None, folder: Path) -> float | None:
    """As long as it took last time, or by the rate of its kind; unknown where a model from elsewhere decides."""
    if before := seconds_of(folder):
        return before
    models = [*stage.options.get("models", []), *(stage.options.get(name, "") for name in ARMS)]
    if n is None or any(m and not m.startswith("blind:") and ":pkg:" not in m for m in models):
        return None
    if stage.does == "score":
        return START["score"] + max(1, len(stage.options["models"])) * n / SCORED
    return START.get(stage.does, 0.5) + (n / RATES[stage.does] if stage.does in RATES else 0.0)


def _of_source(stage: RecipeStage) -> Expected:
    """How many captions or items there are; where they are not at hand, how many the recipe expects."""
    from creperie.making import read_captions

    limit = stage.options["limit"]
    try:
        if stage.does == "load":
            n = len(load(stage.options["source"]))
        else:
            n = len(read_captions(stage.options["source"], limit=limit or None).sources)
    except CreperieError as e:
        n = min(stage.options["expect"], limit or stage.options["expect"])
        note = f"not here yet ({e.what}); counted as published" if n else f"not here yet ({e.what})"
        return Expected(n or None, seconds=None, note=note)
    return Expected(n, seconds=1 + n / RATES["captions"])


def _asked(stage: RecipeStage, n: int | None) -> Expected:
    """Makers and validators: calls of a language model by the estimate of its prompts, seconds by rates."""
    from creperie.making import Captions, SourceCaption

    if n is None:
        return Expected(None, cost=None, seconds=None, note="known when there are captions")
    model = stage.options["model"]
    if stage.does == "validate":
        from creperie.making import CaptionPair, estimate_pairs

        one = estimate_pairs([CaptionPair("", "", TYPICAL, TYPICAL.replace("dog", "cat"), "different")], model)
        return _scaled([one], n, model, items=n)
    from creperie.making import MakerOptions, build_maker

    makers = stage.options["makers"]
    asking = [m for m in makers if m.startswith("llm:")]
    most = n * sum(MOST_ITEMS.get(maker, 1) for maker in makers)
    if not asking:
        return Expected(most, seconds=START["make"] + n * len(makers) / RATES["make"])
    from creperie.making import LLMMaker, estimate_cost

    captions = Captions("typical", (SourceCaption("1", TYPICAL),))
    options = MakerOptions(model=model, foils=stage.options["foils"], as_published=stage.options["as_published"])
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
    seconds = calls / SERVED if model.startswith("api:") else None
    note = "by the prompts, on captions of typical length" + ("" if cost is not None else "; price not known")
    return Expected(items, calls, cost, seconds, note)
