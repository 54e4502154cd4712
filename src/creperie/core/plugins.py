"""What installed packages add to creperie, by entry points: `creperie.models`, `creperie.formats`, …"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from creperie.core.errors import EXTRAS, UsageError, missing_module, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def installed_plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}


def load_plugin(group: str, kind: str, name: str, own: Iterable[str]) -> Any:
    """What a package provides under this name, in any case; an error that lists the known names where none does."""
    found = {known.lower(): point for known, point in installed_plugins(group).items()}
    name = name.lower()
    if name not in found:
        raise unknown(kind, name, [*own, *found])
    try:
        return found[name].load()
    except Exception as e:
        if isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] in EXTRAS:
            raise missing_module(e) from e
        what = f"the plug-in for {kind} {name!r} does not load: {e}"
        raise UsageError(what, where=found[name].value, hint="update or remove the package that provides it") from e
