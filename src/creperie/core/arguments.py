"""Clear errors for arguments of the wrong type. They name the argument, not the place where the library failed.

Nothing is checked before a call. If a call ends in an error that is not creperie's, its arguments are compared with the
function's annotations, and the first argument that does not fit is named. If all fit, the error is raised unchanged.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from creperie.core.errors import CreperieError, UsageError

P = ParamSpec("P")
T = TypeVar("T")


def explained(function: Callable[P, T]) -> Callable[P, T]:
    """Return a wrapper of the function. If an argument has the wrong type, the wrapper's error names that argument.

    >>> @explained
    ... def shout(text: str) -> str:
    ...     return text.upper()
    >>> shout(3)
    Traceback (most recent call last):
    ...
    creperie.core.errors.UsageError: shout: `text=` is int, expected str; see help(shout)
    """
    lazy = inspect.isgeneratorfunction(function)

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> T:
        if lazy and (wrong := wrong_argument(function, args, given)):
            raise wrong
        try:
            return function(*args, **given)
        except CreperieError:
            raise
        except Exception as e:
            if wrong := wrong_argument(function, args, given):
                raise wrong from e
            raise

    return call


def wrong_argument(function: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]) -> UsageError | None:
    """Return the error for the first argument that does not fit its annotation. Return None if all fit."""
    plain = inspect.unwrap(function)
    signature, name = inspect.signature(plain), plain.__name__
    see = f"see help({name})"
    try:
        bound = signature.bind(*args, **given)
    except TypeError as e:
        return UsageError(str(e), where=name, hint=see)
    for parameter in (signature.parameters[key] for key in bound.arguments):
        value, hint = bound.arguments[parameter.name], _resolved(parameter.annotation, plain)
        values = value if parameter.kind is parameter.VAR_POSITIONAL else (value,)
        for one in values if parameter.kind is not parameter.VAR_KEYWORD else ():
            if not fits(one, hint):
                what = f"`{parameter.name}=` is {type(one).__name__}, expected {parameter.annotation}"
                return UsageError(what, where=name, hint=see)
    return None


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return the type that a function's annotation stands for. If the annotation uses a name that is imported only for
    type checkers, return Any.
    """
    if not isinstance(annotation, str):
        return annotation
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), function.__globals__)["it"]
    except (NameError, TypeError):
        return Any


def fits(value: Any, hint: Any) -> bool:
    """Return False if a value certainly does not have the type `hint`. In case of doubt, return True.

    >>> from collections.abc import Sequence
    >>> fits("a", str | Sequence[str]), fits([1], Sequence[str]), fits(2, float), fits(None, Literal["a"])
    (True, False, True, False)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if hint is None or hint is NoneType:
        return value is None
    kind: Any = origin or hint
    if not isinstance(kind, type) or kind is inspect.Parameter.empty:
        return True
    numbers: dict[Any, type] = {float: Real, int: Integral}
    try:
        known = isinstance(value, numbers.get(kind, kind))
    except TypeError:  # a protocol that cannot be checked
        return True
    if isinstance(value, bytes | str):
        return known and not (isinstance(value, bytes) and inner) and (not inner or fits("", inner[0]))
    elements = value if isinstance(value, list | tuple | set) and inner and issubclass(kind, Iterable) else ()
    return known and all(fits(one, inner[0]) for one in elements)
