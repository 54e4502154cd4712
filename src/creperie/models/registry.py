"""Load models by URI.

A kind that is not built in is looked up among the plug-ins: those of installed packages, and those that the program has
registered.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    one_line,
    unknown,
)
from creperie.models.abilities import abilities_of, in_words
from creperie.models.device import Place, find_place
from creperie.models.hub import no_package
from creperie.models.kinds import KINDS, OWN_KINDS, REMOVED
from creperie.models.protocols import Model
from creperie.models.uri import ModelURI, parse_uri, read_options

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "creperie.models"


def load_model(uri: str, *, device: str = "auto", dtype: str = "float32") -> Model:
    """Load and return the model that a URI names. If this fails, a `CreperieError` that names the model is raised."""
    from creperie.models.wrapping import as_model  # imports numpy, which listing models does not need

    place = find_place(device, dtype)
    return as_model(load_plain(uri, place), uri, place)


def load_plain(uri: str, place: Place) -> Any:
    """Return what a URI names. This is a model or, for the URI of a plug-in, any object that `wrap` accepts."""
    parsed = _parsed(uri)
    kind = KINDS.get(parsed.kind)
    options = parsed.options if kind is None else read_options(parsed.options, kind.options, where=uri)
    try:
        own = kind or OWN_KINDS.get(parsed.kind)
        if own:
            module, _, function = own.load.partition(":")
            loader = getattr(import_module(module), function)
        else:
            loader = load_plugin(GROUP, "model kind", parsed.kind, KINDS)
        loaded = loader(parsed, options, place)
        return _checked(loaded, uri) if own or isinstance(loaded, Model) else loaded
    except (CreperieError, MemoryError):
        raise
    except ModuleNotFoundError as e:
        raise missing_module(e, kind.extra if kind else "") from e
    except Exception as e:  # libraries raise all kinds of errors: a truncated file is a SafetensorError, a KeyError, …
        raise ModelError(
            f"the model cannot be loaded ({type(e).__name__}: {one_line(e)})",
            where=uri,
            hint="check that its files are complete; CREPERIE_TRACEBACK=1 shows the traceback",
        ) from e


def _parsed(uri: str) -> ModelURI:
    """Return the parsed URI. Raise a UsageError for a kind or an option that was removed; the error says what to use
    instead.
    """
    parsed = parse_uri(uri)
    options = [f"{parsed.kind}?{name}" for name in parsed.options]
    values = [f"{parsed.kind}?{name}={value}" for name, value in parsed.options.items()]
    for name in (parsed.kind, *options, *values):
        if name in REMOVED and parsed.kind not in model_plugins():
            raise UsageError(f"`{name}` was removed", where=uri, hint=REMOVED[name])
    return parsed


def model_plugins() -> dict[str, EntryPoint | RegisteredPlugin]:
    """Return the model kinds, by name, that installed packages or this program have added."""
    return installed_plugins(GROUP)


def _checked(model: object, uri: str) -> Model:
    """Return the model. Raise a ModelError if it has no fingerprint, or no ability that scoring can use."""
    if not isinstance(model, Model):
        raise ModelError("the loaded model has no fingerprint", where=uri, hint="give it one (docs/plugin.md)")
    if not abilities_of(model):
        raise ModelError(
            "the loaded model has none of the methods that scoring uses",
            where=uri,
            hint=f"give it a method to do one of these: {in_words()} (docs/plugin.md names the methods)",
        )
    return model


def check_uri(uri: str) -> None:
    """Raise the error that `load_model` would raise for a wrong name, option, package or path. Nothing is loaded.

    >>> check_uri("blind:length")
    """
    parsed = _parsed(uri)
    kind = KINDS.get(parsed.kind)
    if kind is not None:
        read_options(parsed.options, kind.options, where=uri)
    elif parsed.kind not in OWN_KINDS and parsed.kind not in model_plugins():
        raise unknown("model kind", parsed.kind, [*KINDS, *model_plugins()], where=uri)
    for package, extra in missing_packages(parsed):
        raise missing_extra(package, extra)
    _check_place(parsed, uri)


def _packages(name: str) -> Sequence[str]:
    kind = KINDS.get(name) or OWN_KINDS.get(name)
    return kind.packages if kind else ()


def missing_packages(uri: ModelURI) -> list[tuple[str, str]]:
    """Return the missing Python packages that a model needs, each with the extra that installs it."""
    kind = KINDS.get(uri.kind)
    packages, extra = _packages(uri.kind), kind.extra if kind else "models"
    if uri.name == "pkg:pocketsphinx":
        packages, extra = ["pocketsphinx"], "lang"
    elif uri.kind == "st" and uri.options.get("backend") == "onnx":
        packages, extra = ["onnxruntime", "transformers"], "onnx"
    elif uri.options.get("engine") == "llama.cpp":
        packages = ()  # no extra installs it
    return [(package, extra) for package in packages if find_spec(package) is None]


def _check_place(uri: ModelURI, text: str) -> None:
    """Raise an error if a path or a package with weights is missing. Names on the hub are not looked up here."""
    from creperie.models.lm.gguf import gguf_file, no_llama_cpp

    if uri.options.get("engine") == "llama.cpp" and find_spec("llama_cpp") is None:
        raise no_llama_cpp(text)
    if uri.kind == "lm" and uri.name.endswith(".gguf"):
        gguf_file(uri.name, text)
    elif uri.name.startswith("pkg:"):
        package = uri.name.removeprefix("pkg:")
        if find_spec(package) is None:
            raise no_package(package, text)
    elif not _packages(uri.kind) or uri.kind == "open_clip" or not uri.name.startswith(("/", "~", "./", "../")):
        return
    elif not Path(uri.name).expanduser().exists():
        hint = "give a model's folder or its name on the hub"
        raise ModelError(f"there is no folder {uri.name!r}", where=text, hint=hint)
