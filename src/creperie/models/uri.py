"""A model is named by one line: `kind:name?option=value&option=value`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os.path import isdir
from urllib.parse import parse_qsl, urlencode

from creperie.core import UsageError


@dataclass(frozen=True)
class ModelURI:
    """A parsed model URI.

    >>> parse_uri("st:intfloat/e5-base-v2?prefix=query: &pool=mean")
    ModelURI(kind='st', name='intfloat/e5-base-v2', options={'prefix': 'query: ', 'pool': 'mean'})
    """

    kind: str
    name: str
    options: Mapping[str, str] = field(default_factory=dict)

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
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=False)
    return ModelURI(kind.lower(), name, dict(pairs))
