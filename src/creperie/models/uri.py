"""Model URIs, `kind:name?option=value&option=value`, and the declaration of their options as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import isdir
from typing import Any
from urllib.parse import urlencode

from creperie.core import UsageError, query_options, unknown


@dataclass(frozen=True)
class ModelURI:
    """A parsed model URI.

    >>> parse_uri("st:intfloat/e5-base-v2?prefix=query: &pool=mean")
    ModelURI(kind='st', name='intfloat/e5-base-v2', options={'prefix': 'query: ', 'pool': 'mean'})
    """

    kind: str
    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def way(self) -> str:
        """How a generative model scores: its option `score` or the default; empty if it does not score."""
        return self.options.get("score", "visualgpt" if self.kind == "vlm" else "")

    def __str__(self) -> str:
        tail = f"?{urlencode(self.options)}" if self.options else ""
        return f"{self.kind}:{self.name}{tail}"


def parse_uri(text: str) -> ModelURI:
    kind, colon, rest = text.partition(":")
    if not colon or not kind or not rest:
        folder = isdir(text)  # noqa: PTH112  Path.is_dir fails on a name that is too long
        example = f"hf:{text}" if folder else "hf:openai/clip-vit-base-patch32"
        raise UsageError(f"{text!r} is not a model URI", hint=f"write kind:name, for example {example}")
    name, _, query = rest.partition("?")
    return ModelURI(kind.lower(), name, query_options(query, text))


#: type → a pattern of the values that it takes, a function that reads them, and what is said of other values
_TYPES: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "number": (r"\d+", int, "is not a positive whole number"),
    "decimal": (r"(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", float, "is not a number of at least 0"),
    "flag": (
        r"(?i:true|yes|1|false|no|0)",
        lambda text: text.lower() in ("true", "yes", "1"),
        "is neither true nor false",
    ),
}


@dataclass(frozen=True)
class ModelOption:
    """The declaration of one option. `type` is "text", "number", "decimal", "flag" or "choice"."""

    name: str
    help: str
    type: str = "text"
    default: Any = None
    choices: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """How the option is written in a URI, to be shown in help texts.

        >>> ModelOption("pool", "…", "choice", "mean", ("mean", "cls")).usage
        'pool=mean|cls'
        """
        values = {"text": "TEXT", "number": "N", "decimal": "X", "flag": "true", "choice": "|".join(self.choices)}
        return f"{self.name}={values[self.type]}"


def read_options(given: Mapping[str, str], declared: Sequence[ModelOption], *, where: str) -> dict[str, Any]:
    """Return the values of all declared options, from the URI or their defaults.

    >>> declared = [ModelOption("words", "…", "number"), ModelOption("lower", "…", "flag", False)]
    >>> read_options({"words": "30"}, declared, where="hf:x")
    {'words': 30, 'lower': False}
    """
    known = {option.name: option for option in declared}
    for name in given:
        if name not in known:
            raise unknown("option", name, known, where=where)
    return {
        name: _value(option, given[name], where) if name in given else option.default for name, option in known.items()
    }


def _value(option: ModelOption, text: str, where: str) -> Any:
    if option.type == "choice" and text not in option.choices:
        raise unknown(f"value of option {option.name}", text, option.choices, where=where)
    if option.type not in _TYPES:
        return text
    pattern, read, problem = _TYPES[option.type]
    value = read(text) if re.fullmatch(pattern, text) else None
    if value is None or (option.type == "number" and value < 1 and option.default != 0):
        raise UsageError(f"option {option.name}={text!r} {problem}", where=where)
    return value


def refuse_unused(given: Iterable[str], used: Iterable[str], *, where: str, what: str) -> None:
    """Raise a UsageError for the first option in `given` that is not in `used`. The option would have no effect on
    `what`.
    """
    taken = set(used)
    for name in given:
        if name not in taken:
            listed = ", ".join(sorted(taken)) or "none"
            raise UsageError(
                f"option {name!r} does not apply to {what}",
                where=where,
                hint=f"leave out {name}=; options that apply: {listed}",
            )
