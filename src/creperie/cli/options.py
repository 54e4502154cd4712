"""Options that several commands share, and groups of options that a command receives as one typed value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.output import CommandResult, answers
from creperie.core import Json, OptionField, UsageError, as_flags, missing_extra, options_from, options_in

if TYPE_CHECKING:
    from creperie.annotation import Database


def pairs_of(texts: Sequence[str], option: str, form: str, *, last: bool = False) -> dict[str, str]:
    """Return the values of a repeatable option NAME=VALUE as a dictionary. Each text is split at its first equals sign.
    With `last`, it is split at the last one, because a URI as a name may contain equals signs.

    `texts` are the values as typed. `option` (the option's name) and `form` (such as `NAME=VALUE`) are used in error
    messages.
    """
    pairs = {}
    for text in texts:
        name, _, value = text.rpartition("=") if last else text.partition("=")
        if not name or not value:
            raise UsageError(f"{option} {text!r} is not {form}", hint=f"write {option} {form}")
        pairs[name] = value
    return pairs


def options_of(name: str, kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for commands. The command gets the options declared in the dataclass `kind` as a single
    argument called `name`.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        declared = options_in(kind)

        @functools.wraps(command)
        def gathered(**given: Any) -> Any:
            value: Any = options_from(kind, {field: given.pop(field) for field in declared if field in given})
            return command(**{name: value}, **given)

        for about in reversed(declared.values()):
            gathered = click_option(about)(gathered)
        return gathered

    return decorate


#: type of an option → its default metavar
NAMED = {str: "NAME", Path: "PATH", int: "N", float: "X"}


def click_option(about: OptionField) -> Any:
    """Return the click option for a field, with its flags, type, default and help. Its value is checked later by
    `options_from`.
    """
    plain = f"--{about.name.replace('_', '-')}"
    negatable = f"{plain}/--no-{plain[2:]}" if about.kind is bool and about.default else plain
    settings: Json = {"help": f"{as_flags(about.help)}{_default_text(about)}", "default": about.default}
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
    """Return the default value of an option as text for the help; empty if the option has no default."""
    value = about.default
    if value in (None, "", (), False) and not isinstance(value, (int, float)):
        return ""
    if about.kind is bool:
        return "  [default: on]" if value else ""
    shown = ",".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else value
    return f"  [default: {shown}]"


def engine_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add --engine, --address, --workers and --gpus to a command. The command gets them as the argument `engine`; None
    means this process.
    """
    from creperie.engine import EngineOptions

    @functools.wraps(command)
    def with_engine(engine: EngineOptions, **options: Any) -> int:
        return command(engine=engine.if_needed(), **options)

    return options_of("engine", EngineOptions)(with_engine)


#: types of options that name a file: one to write, and one that must exist
FILE = click.Path(path_type=Path)
EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)
DATABASE = "CREPERIE_PEOPLE_DB"


def database(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --db to a command. The command gets the opened database as the argument `db`."""
    about = f"SQLite file or postgresql:// URL [${DATABASE}, creperie-people.db]."

    @click.option("--db", "place", metavar="FILE|URL", help=about)
    @functools.wraps(command)
    def with_database(place: str | None, **options: Any) -> Any:
        return command(db=open_place(place), **options)

    return with_database


def study_command(function: Callable[..., CommandResult]) -> click.Command:
    """Return a click command, with --db and --json, for a function. The function's first argument is the STUDY."""
    command = click.command()(click.argument("study")(database(answers(function))))
    command.params.sort(key=lambda option: option.name in ("place", "as_json"))
    return command


def open_place(place: str | None) -> Database:
    """Return the database that --db names. By default, return that of $CREPERIE_PEOPLE_DB or, if this is not set, the
    standard one.
    """
    try:
        from creperie.annotation import database_place, open_database
    except ModuleNotFoundError as e:
        raise missing_extra(e.name or "sqlalchemy", "people") from None
    return open_database(database_place(place=place))
