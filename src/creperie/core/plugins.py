"""Plug-ins of two kinds. Installed packages provide entry points (`creperie.models`, `creperie.formats`, …); running
programs call `register_model`, `register_format` and so on. Both kinds follow the same protocols.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from creperie.core.digests import digest_of, path_digest
from creperie.core.errors import EXTRAS, UsageError, missing_module, unknown
from creperie.core.files import packaged_toml

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_REGISTERED: dict[str, dict[str, RegisteredPlugin]] = {}


@dataclass(frozen=True)
class RegisteredPlugin:
    """A plug-in registered by a running program, with the same interface as an entry point."""

    name: str
    plugin: Any

    @property
    def value(self) -> str:
        """Where the plug-in is defined, in the notation of entry points: `module:name`."""
        home = self.plugin if hasattr(self.plugin, "__qualname__") else type(self.plugin)
        return f"{home.__module__}:{home.__qualname__}"

    def load(self) -> Any:
        return self.plugin


#: by group: what a plug-in is called, the arguments of its function, and the file that names creperie's own
_GROUPS: dict[str, tuple[str, tuple[str, ...], tuple[str, str]]] = {
    "creperie.models": ("model kind", ("uri", "options", "place"), ("creperie.models", "kinds.toml")),
    "creperie.makers": ("maker", ("name", "options", "captions"), ("creperie.making", "makers.toml")),
    "creperie.attackers": ("attacker", ("models",), ("creperie.auditing", "attackers.toml")),
    "creperie.formats": ("format", ("source",), ("creperie.bench.formats", "formats.toml")),
}


def _check_plugin(group: str, name: str, plugin: Any) -> None:
    """Raise a UsageError if a plug-in cannot be called with the arguments that its group requires."""
    kind, arguments, _ = _GROUPS[group]
    try:
        signature(getattr(plugin, "read", plugin)).bind(*arguments)
    except (TypeError, ValueError) as e:
        hint = f"write a function of ({', '.join(arguments)})"
        raise UsageError(f"the {kind} {name!r} cannot be called ({e})", hint=hint) from None


def _register(group: str, plugin: Any, name: str) -> Any:
    """Register a plug-in and return it. If `plugin` is None, return a decorator. A later registration under the same
    name replaces the earlier one.
    """
    if isinstance(plugin, str):
        plugin, name = None, plugin
    if plugin is None:
        return lambda decorated: _register(group, decorated, name)
    known = name or str(getattr(plugin, "name", "") or getattr(plugin, "__name__", ""))
    if not known:
        raise UsageError("a plug-in needs a name", hint='write `@creperie.register_…("name")`')
    kind, _, file = _GROUPS[group]
    document = packaged_toml(*file)
    if known.lower() in ([*document["kinds"], *document["own"]] if "kinds" in document else document):
        what = f"creperie has a built-in {kind} called {known!r}"
        raise UsageError(what, hint="register yours under another name")
    _check_plugin(group, known, plugin)
    _REGISTERED.setdefault(group, {})[known] = RegisteredPlugin(known, plugin)
    return plugin


def register_model(plugin: Any = None, name: str = "") -> Any:
    """Register a kind of model URI. `plugin` is a function of (uri, options, place). It returns a model in any form
    that `score` accepts. `register_model` can also be used as a decorator.
    """
    return _register("creperie.models", plugin, name)


def register_maker(plugin: Any = None, name: str = "") -> Any:
    """Register `plugin`, a function of (name, options, captions) that returns a maker. `register_maker` can also be
    used as a decorator.
    """
    return _register("creperie.makers", plugin, name)


def register_attacker(plugin: Any = None, name: str = "") -> Any:
    """Register `plugin`, a function that takes an `AttackerModels` and returns an attacker. `register_attacker` can
    also be used as a decorator.
    """
    return _register("creperie.attackers", plugin, name)


def register_format(plugin: Any = None, name: str = "") -> Any:
    """Register a format that benchmarks can be read from. `plugin` is a `bench.Format` or a function that returns a
    benchmark; the function takes a source with the attributes `path` and `options`. `register_format` can also be used
    as a decorator.
    """
    return _register("creperie.formats", plugin, name)


def installed_plugins(group: str) -> dict[str, EntryPoint | RegisteredPlugin]:
    """Return the plug-ins of a group by name. Registered ones take precedence over entry points."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)} | _REGISTERED.get(group, {})


def load_plugin(group: str, kind: str, name: str, own: Iterable[str]) -> Any:
    """Return the plug-in of `group` with the given name; case is ignored. If there is none, raise an error that lists
    the known names.

    The known names are those of the plug-ins and the built-in names in `own`. `kind` is the noun used in the error,
    such as "maker".
    """
    points = {known.lower(): point for known, point in installed_plugins(group).items()}
    name = name.lower()
    if name not in points:
        raise unknown(kind, name, [*own, *points])
    try:
        plugin = points[name].load()
    except Exception as e:
        if isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] in EXTRAS:
            raise missing_module(e) from e
        what = f"the plug-in for {kind} {name!r} does not load: {e}"
        raise UsageError(what, where=points[name].value, hint="update or remove the package that provides it") from e
    _check_plugin(group, name, plugin)
    return plugin


def plugins_digest() -> str:
    """Return a digest of the code of all plug-ins; empty if there are none. Results may depend on this code.

    The code is the file that defines a plug-in. A plug-in without a file, as in a notebook, gives a new digest every
    time.
    """
    found = [(group, *plugin) for group in _GROUPS for plugin in installed_plugins(group).items()]
    code = {f"{group} {name}": [point.value, _code_of(point.value)] for group, name, point in found}
    return digest_of(code) if code else ""


def _code_of(value: str) -> str:
    from importlib.util import find_spec

    try:
        spec = find_spec(value.partition(":")[0])
        return path_digest(Path(str(spec and spec.origin)))
    except (ImportError, ValueError, OSError):
        return uuid4().hex
