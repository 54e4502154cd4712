"""Options that reach a command as one typed value, and how names and benchmarks are read from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from creperie.core import split_names

if TYPE_CHECKING:
    from creperie.bench import Benchmark


def as_one(name: str, kind: type | str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Hand the options that are fields of a dataclass to the command as one value, `name`.

    `kind` is the dataclass, or `module:Class` for one that is imported when the command runs.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def gathered(**given: Any) -> Any:
            made: Any = kind
            if isinstance(kind, str):
                module, _, class_name = kind.partition(":")
                made = getattr(import_module(module), class_name)
            fields = {field: given.pop(field) for field in made.__dataclass_fields__ if field in given}
            return command(**{name: made(**fields)}, **given)

        return gathered

    return decorate


def option_group(name: str, kind: type | str, *options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Several options that reach the command as one value."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        command = as_one(name, kind)(command)
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def names(ctx: click.Context, parameter: click.Parameter, value: str | Sequence[str]) -> tuple[str, ...]:
    """The callback of an option that takes names: by comma, or repeated."""
    return tuple(split_names(value))


def load_part(
    spec: str, images: str | None = None, subsets: Sequence[str] = (), limit: int | None = None, seed: int = 0
) -> Benchmark:
    """A benchmark, or some of its subsets, or at most so many items of each, drawn by the seed."""
    from creperie.bench import load

    bench = load(spec, images=images)
    if limit:  # first, so that a subset alone has the same items
        from creperie.scoring import limited

        bench = limited(bench, limit, seed)
    return bench.only(subsets) if subsets else bench
