"""Cook a recipe by name: read it, check that nothing it needs is missing, run its stages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from creperie.core import Progress, UsageError, silent
from creperie.recipes.forecast import plan_recipe
from creperie.recipes.kitchen import StageResult, Tell, Workers, run_stages
from creperie.recipes.preflight import Shortfall, check_plan
from creperie.recipes.recipe import Recipe, find_recipe, read_recipe

NAMED = 4  #: pieces that an error names before it counts the rest


def cook(
    recipe: str | Path | Recipe,
    out: str | Path | None = None,
    *,
    profile: str = "small",
    changes: Mapping[str, Any] | None = None,
    use: Mapping[str, str] | None = None,
    workers: Workers | None = None,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
) -> list[StageResult]:
    """Run a recipe: one result per stage. `recipe` is a name of the cookbook, a YAML file, or a recipe that was read.

    `changes` overrule single options (`{"score.models": ["blind:length"]}`); `use` takes the output of a stage from
    elsewhere, a folder or a benchmark. `out` is `out/cook/RECIPE-PROFILE` by default; unchanged stages there are kept.
    """
    read = recipe if isinstance(recipe, Recipe) else read_recipe(find_recipe(str(recipe)), profile, changes)
    folder = Path(out) if out is not None else default_folder(read)
    refuse_gaps(check_plan(plan_recipe(read, folder, use), folder), read)
    return run_stages(read, folder, use=use, hands=workers, progress=progress, tell=tell)


def default_folder(recipe: Recipe) -> Path:
    return Path("out/cook") / f"{recipe.name}-{recipe.profile}"


def refuse_gaps(found: list[Shortfall], recipe: Recipe) -> None:
    """Say everything that is missing at once, before anything is spent."""
    gaps = [short for short in found if short.blocks]
    if not gaps:
        return
    said = [f"{s.stage + ': ' if s.stage else ''}{s.message}" for s in gaps]
    more = f"; and {len(gaps) - NAMED} more (--plan lists them)" if len(gaps) > NAMED else ""
    raise UsageError(
        f"{len(gaps)} {'piece is' if len(gaps) == 1 else 'pieces are'} missing: {'; '.join(said[:NAMED])}{more}",
        where=f"{recipe.name}, profile {recipe.profile}",
        hint=gaps[0].hint or "see `creperie cook RECIPE --plan`",
    )
