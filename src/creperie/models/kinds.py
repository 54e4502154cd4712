"""The kinds of models, read from kinds.toml.

The file names a function for each kind, which loads models of this kind. The function's module is imported only when it
is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from creperie.core import packaged_toml
from creperie.models import captions
from creperie.models.choice import CHOICE_OPTIONS
from creperie.models.hf.text import DECODERS, ENCODERS
from creperie.models.uri import ModelOption
from creperie.models.vlm.families import FAMILIES


@dataclass(frozen=True)
class ModelKind:
    """One kind of model URI. `load`, written as `module:function`, is called with three arguments: the URI, its
    options, and a `Place` (device and precision).
    """

    load: str
    summary: str
    example: str
    families: Mapping[str, str] = field(default_factory=dict)  #: the architectures it covers, each with a note
    options: tuple[ModelOption, ...] = ()
    extra: str = "models"  #: the extra of creperie to install if the loader's imports fail
    packages: Sequence[str] = ()  #: the packages that the loader imports


#: families that are derived from Python tables instead of kinds.toml
_FAMILIES: dict[str, dict[str, str]] = {
    "hf": {
        ", ".join(ENCODERS): "text encoders, mean pooling by default",
        ", ".join(DECODERS): "text decoders as encoders, last token by default",
    },
    "vlm": {name: family.note for name, family in FAMILIES.items()},
}


_DOCUMENT = packaged_toml("creperie.models", "kinds.toml")
OWN_KINDS = {name: ModelKind(**record) for name, record in _DOCUMENT["own"].items()}
#: removed kinds, options and values of the last release → what to use instead
REMOVED: dict[str, str] = _DOCUMENT["removed"]


def _read_kinds() -> dict[str, ModelKind]:
    groups = {"captions": captions.OPTIONS, "choices": CHOICE_OPTIONS}
    groups["answers"] = tuple(map(_option, _DOCUMENT["answers"]))
    groups |= {name: (_option(record),) for name, record in _DOCUMENT["shared"].items()}
    kinds = {}
    for name, record in _DOCUMENT["kinds"].items():
        options = [groups[given] if isinstance(given, str) else (_option(given),) for given in record["options"]]
        families = record.get("families", {}) | _FAMILIES.get(name, {})
        kinds[name] = ModelKind(**record | {"families": families, "options": tuple(itertools.chain(*options))})
    return kinds


def _option(record: Mapping[str, Any]) -> ModelOption:
    choices = tuple(record.get("choices", ()))
    return ModelOption(**{"type": "choice" if choices else "text", **record, "choices": choices})


KINDS: dict[str, ModelKind] = _read_kinds()
