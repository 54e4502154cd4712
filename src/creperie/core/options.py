"""Options. Each is a field of a dataclass, declared once, with its help text.

The command-line flag (`creperie.cli.options`), the Python keyword (`with_options`), the recipe key and the reference
page are derived from the field.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from creperie.core.arguments import explained
from creperie.core.errors import UsageError, unknown
from creperie.core.text import split_names

T = TypeVar("T")
#: type of an option → its description in words, and the Python types that are accepted
_TYPES: dict[type, tuple[str, Any]] = {
    bool: ("True or False", bool),
    int: ("a whole number", Integral),
    float: ("a number", Real),
    str: ("a text", (str, Path)),
    Path: ("a path", (str, Path)),
    tuple: ("a list of names", Sequence),
}


def option(
    default: Any,
    help: str,
    *,
    flags: str = "",
    choices: Iterable[str] = (),
    metavar: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    whole: bool = False,
) -> Any:
    """Return a dataclass field that is an option.

    The type of the value is the field's annotation: bool, int, float, str, Path, a Literal, a tuple of names, or one of
    these combined with None. `flags` are given only if they differ from the field's name, such as "--model -m" or
    "--matched/--unmatched".

    On the command line, the names of a tuple are separated by commas, or the flag is repeated for each name. With
    `whole`, the flag must be repeated, because a name may contain a comma, as model URIs do.
    """
    about: dict[str, Any] = {"help": help, "flags": flags, "choices": tuple(choices), "metavar": metavar}
    about |= {"minimum": minimum, "maximum": maximum, "whole": whole}
    return field(default=default, metadata={"option": about})


@dataclass(frozen=True)
class OptionField:
    """The declaration of one option. `kind` is bool, int, float, str, Path or tuple."""

    name: str
    kind: type
    default: Any
    optional: bool  #: None is allowed
    help: str
    flags: str
    choices: tuple[str, ...]
    metavar: str
    minimum: float | None = None
    maximum: float | None = None
    whole: bool = False

    def checked(self, value: Any, where: str = "") -> Any:
        """Return the value converted to the option's type. If that is impossible, raise a UsageError that says what is
        expected.
        """
        if value is None and self.optional:
            return None
        typed, low, high = self._typed(value), self.minimum, self.maximum
        if typed is None or (low is not None and typed < low) or (high is not None and typed > high):
            limits = {"at least": low, "at most": high}
            limited = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if limit is not None)
            what = _TYPES[self.kind][0] + (f" of {limited}" if limited else "")
            raise UsageError(f"`{self.name}={value!r}`: expected {what}", where=where)
        for name in typed if self.kind is tuple else (typed,):
            if self.choices and name not in self.choices:
                raise unknown(self.label, name, self.choices, where=where)
        return typed

    @property
    def label(self) -> str:
        """The name of the option in error messages: its first flag without the dashes."""
        return (self.flags.split("/")[0].split() or [self.name])[0].strip("-").replace("-", " ").replace("_", " ")

    def _typed(self, value: Any) -> Any:
        """Return the value converted to the option's type; None if it cannot be converted."""
        if self.kind is tuple and isinstance(value, str):
            value = (value,) if value else ()
        if not isinstance(value, _TYPES[self.kind][1]) or (isinstance(value, bool) and self.kind is not bool):
            return None
        if self.kind is not tuple:
            return self.kind(value)
        return tuple(value if self.whole else split_names(value)) if all(isinstance(n, str) for n in value) else None


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def options_in(kind: type) -> dict[str, OptionField]:
    """Return the options that a dataclass declares, by field name."""
    declared = {f.name: (f.default, f.metadata["option"]) for f in fields(kind) if "option" in f.metadata}
    hints = _hints(kind) if declared else {}
    return {name: _field(name, hints[name], default, dict(about)) for name, (default, about) in declared.items()}


def _field(name: str, hint: Any, default: Any, about: dict[str, Any]) -> OptionField:
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    (inner, *_) = [part for part in parts if part is not NoneType]
    if get_origin(inner) is Literal:
        about["choices"], inner = about["choices"] or get_args(inner), str
    kind = get_origin(inner) or inner
    if kind not in _TYPES:
        raise TypeError(f"{name}: an option is a bool, int, float, str, Path, Literal or tuple, not {hint}")
    return OptionField(name, kind, default, NoneType in parts, **about)


def options_from(kind: type[T], given: Mapping[str, Any], *, base: T | None = None, where: str = "") -> T:
    """Return an instance of the dataclass `kind` with the values in `given`, after checking them. All other fields are
    copied from `base`; without `base`, they have their default values.

    >>> @dataclass(frozen=True)
    ... class Bake:
    ...     minutes: int = option(20, "How long.", minimum=1)
    >>> options_from(Bake, {"minutes": 5})
    Bake(minutes=5)
    >>> options_from(Bake, {"minuts": 5})
    Traceback (most recent call last):
    ...
    creperie.core.errors.UnknownNameError: unknown option 'minuts'; did you mean 'minutes'? Known: minutes
    """
    known = options_in(kind)
    for name in given:
        if name not in known:
            raise unknown("option", name, known, where=where)
    values = {name: known[name].checked(value, where) for name, value in given.items()}
    return replace(base, **values) if base is not None else kind(**values)  # type: ignore[type-var]


def query_options(query: str, where: str) -> dict[str, str]:
    """Return the options in a text such as `name=value&name=value`. This is the part of a URI or spec after the
    question mark.
    """
    given: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in given:
            raise UsageError(f"the option {name!r} is given twice", where=where, hint="give it once")
        given[name] = value
    return given


def check_options(value: Any) -> None:
    """Raise a UsageError if a field of a dataclass instance has an invalid value. Called in `__post_init__`."""
    for name, about in options_in(type(value)).items():
        about.checked(getattr(value, name))


def with_options(**kinds: type) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a decorator for functions that take dataclasses of options. The decorated function also accepts each field
    of these dataclasses as a keyword.

    With `@with_options(options=MakerOptions)`, `make(…, seed=1)` and `make(…, options=MakerOptions(seed=1))` both work;
    the original function receives complete dataclasses. The function's signature and docstring list the keywords; its
    attribute `options` holds the dataclasses.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        signature, clear = inspect.signature(function), explained(function)
        own = signature.parameters
        owner = {name: group for group, kind in kinds.items() for name in options_in(kind) if name not in own}

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> T:
            for name in given:
                if name not in own and name not in owner:
                    raise unknown(f"keyword of {function.__name__}", name, [*own, *owner])
            for group, kind in kinds.items():
                values = {name: given.pop(name) for name in list(given) if owner.get(name) == group}
                given[group] = options_from(kind, values, base=given.get(group))
            return clear(*args, **given)

        listed = [(name, options_in(kinds[group])[name]) for name, group in owner.items()]
        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [inspect.Parameter(n, keyword, default=o.default, annotation=o.kind.__name__) for n, o in listed]
        call.__signature__ = signature.replace(parameters=[*own.values(), *added])  # type: ignore[attr-defined]
        call.options = kinds  # type: ignore[attr-defined]
        lines = "\n".join(f"    {name}: {about.help}" for name, about in listed)
        call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n{lines}\n"
        return call

    return decorate
