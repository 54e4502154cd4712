"""What others add to creperie: installed packages by entry points (`creperie.models`, `creperie.formats`, …), and
programs by `register_model`, `register_format`, … while they run. Both follow the same protocols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from creperie.core.errors import EXTRAS, UsageError, missing_module, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_REGISTERED: dict[str, dict[str, RegisteredPlugin]] = {}


@dataclass(frozen=True)
class RegisteredPlugin:
    """What a program registered, in the place of an entry point."""

    name: str
    plugin: Any

    @property
    def value(self) -> str:
        """Where it is defined, as an entry point says it."""
        home = self.plugin if hasattr(self.plugin, "__qualname__") else type(self.plugin)
        return f"{home.__module__}:{home.__qualname__}"

    def load(self) -> Any:
        return self.plugin


def _register(group: str, plugin: Any, name: str) -> Any:
    """Add a plug-in; without one, return a decorator that does. A later one of the same name takes its place."""
    if isinstance(plugin, str):
        plugin, name = None, plugin
    if plugin is None:
        return lambda decorated: _register(group, decorated, name)
    known = name or str(getattr(plugin, "name", "") or getattr(plugin, "__name__", ""))
    if not known:
        raise UsageError("a plug-in needs a name", hint='write `@creperie.register_…("name")`')
    _REGISTERED.setdefault(group, {})[known] = RegisteredPlugin(known, plugin)
    return plugin


def register_model(plugin: Any = None, name: str = "") -> Any:
    """Add a kind of model URI: a function of (uri, options, place) that returns a model. Also a decorator."""
    return _register("creperie.models", plugin, name)


def register_maker(plugin: Any = None, name: str = "") -> Any:
    """Add a maker: a function of (name, options, captions) that returns a maker. Also a decorator."""
    return _register("creperie.makers", plugin, name)


def register_attacker(plugin: Any = None, name: str = "") -> Any:
    """Add an attacker: a function of `AttackerModels` that returns an attacker. Also a decorator."""
    return _register("creperie.attackers", plugin, name)


def register_format(plugin: Any = None, name: str = "") -> Any:
    """Add a format that benchmarks are read from: a `Format`, under its own name."""
    return _register("creperie.formats", plugin, name)


def installed_plugins(group: str) -> dict[str, EntryPoint | RegisteredPlugin]:
    """Return the plug-ins of a group by name; what was registered while the program runs comes before entry points."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)} | _REGISTERED.get(group, {})


def load_plugin(group: str, kind: str, name: str, own: Iterable[str]) -> Any:
    """Return what a package provides under this name, in any case; an error that lists the known names where none
    does."""
    points = {known.lower(): point for known, point in installed_plugins(group).items()}
    name = name.lower()
    if name not in points:
        raise unknown(kind, name, [*own, *points])
    try:
        return points[name].load()
    except Exception as e:
        if isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] in EXTRAS:
            raise missing_module(e) from e
        what = f"the plug-in for {kind} {name!r} does not load: {e}"
        raise UsageError(what, where=points[name].value, hint="update or remove the package that provides it") from e
