"""Options that several commands share, and options that reach a command as one typed value."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.core import OptionField, UsageError, as_flags, missing_extra, options_from, options_in

if TYPE_CHECKING:
    from creperie.annotation import Database


def pairs_of(texts: Sequence[str], option: str, form: str, *, last: bool = False) -> dict[str, str]:
    """Return the values of an option NAME=VALUE that may be repeated; `last` cuts at the last equals sign, for URIs."""
    pairs = {}
    for text in texts:
        name, _, value = text.rpartition("=") if last else text.partition("=")
        if not name or not value:
            raise UsageError(f"{option} {text!r} is not {form}", hint=f"write {option} {form}")
        pairs[name] = value
    return pairs


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
            values = {field: given.pop(field) for field in made.__dataclass_fields__ if field in given}
            value = options_from(made, values) if options_in(made) else made(**values)
            return command(**{name: value}, **given)

        return gathered

    return decorate


def options_of(name: str, kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that a dataclass declares (`creperie.core.option`); the command gets them as one value."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        command = as_one(name, kind)(command)
        for about in reversed(options_in(kind).values()):
            command = click_option(about)(command)
        return command

    return decorate


#: what an option takes, where it does not say so itself
NAMED = {str: "NAME", Path: "PATH", int: "N", float: "X"}


def click_option(about: OptionField) -> Any:
    """Return the option as click takes it: flags, type, default and help. `options_from` checks the value."""
    plain = f"--{about.name.replace('_', '-')}"
    negatable = f"{plain}/--no-{plain[2:]}" if about.kind is bool and about.default else plain
    settings: dict[str, Any] = {"help": f"{as_flags(about.help)}{_default_text(about)}", "default": about.default}
    if about.kind is bool:
        settings |= {"is_flag": True}
    elif about.kind is tuple:
        settings |= {"multiple": True, "metavar": about.metavar or "|".join(about.choices) or "NAMES"}
    elif about.choices:
        settings |= {"type": click.Choice(about.choices)}
    else:
        kind = click.Path(path_type=Path) if about.kind is Path else about.kind
        settings |= {"type": kind, "metavar": about.metavar or NAMED.get(about.kind)}
    return click.option(*(about.flags or negatable).split(), about.name, **settings)


def _default_text(about: OptionField) -> str:
    """Return the default as the help shows it; empty where there is none."""
    value = about.default
    if value in (None, "", (), False) and not isinstance(value, (int, float)):
        return ""
    if about.kind is bool:
        return "  [default: on]" if value else ""
    shown = ",".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else value
    return f"  [default: {shown}]"


def engine_options(command: Callable[..., int]) -> Callable[..., int]:
    """--engine, --address, --workers and --gpus, given to the command as one value, `engine`; None: this process."""
    from creperie.engine import EngineOptions

    @functools.wraps(command)
    def with_engine(engine: EngineOptions, **options: Any) -> int:
        return command(engine=engine.unless_plain(), **options)

    return options_of("engine", EngineOptions)(with_engine)


DATABASE = "CREPERIE_PEOPLE_DB"


def database(command: Callable[..., Any]) -> Callable[..., Any]:
    """--db, given to the command as the open database, `db`."""
    about = f"SQLite file or postgresql:// URL [${DATABASE}, creperie-people.db]."

    @click.option("--db", "place", metavar="FILE|URL", help=about)
    @functools.wraps(command)
    def with_database(place: str | None, **options: Any) -> Any:
        return command(db=open_place(place), **options)

    return with_database


def open_place(place: str | None) -> Database:
    """Return the database that --db names, else the usual one."""
    try:
        from creperie.annotation import DEFAULT_DATABASE, open_database
    except ModuleNotFoundError as e:
        raise missing_extra(e.name or "sqlalchemy", "people") from None
    return open_database(place or os.environ.get(DATABASE) or DEFAULT_DATABASE)
