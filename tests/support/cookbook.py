"""Recipes of the cookbook by their names."""

from __future__ import annotations

from typing import Any

from creperie.recipes import Recipe, find_recipe, read_recipe
from creperie.recipes.recipe import RecipeStage


def recipe_of(name: str, *how: Any, **more: Any) -> Recipe:
    """The recipe of this name, read as `read_recipe` reads a file."""
    return read_recipe(find_recipe(name), *how, **more)


def stages_of(name: str, *how: Any, **more: Any) -> dict[str, RecipeStage]:
    """Its stages by their names."""
    return {stage.name: stage for stage in recipe_of(name, *how, **more).stages}
