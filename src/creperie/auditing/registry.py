"""The registry of attackers: what each one measures, what it needs, and when it is run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.core import check_name, packaged_toml

#: Why an attacker of the standard battery was not run in a quick audit.
NOT_QUICK = "left out of a quick audit"


@dataclass(frozen=True)
class AttackerEntry:
    """The entry of an attacker in attackers.toml, which explains the fields."""

    name: str
    family: str
    battery: str = ""
    needs: str = ""
    model: str = ""
    learned: bool = False
    sampled: int = 0
    seconds: float = 0.0
    tells: float = 1.0
    single: bool = False
    english: bool = False
    count: str = ""
    sign: int = 1
    prefers: str = ""
    otherwise: str = ""

    @property
    def choices(self) -> tuple[str, str]:
        """What the attacker chooses, and what it chooses if its rule is reversed."""
        return self.prefers, self.otherwise


_TABLE: dict[str, dict[str, Any]] = packaged_toml("creperie.auditing", "attackers.toml")
#: Every attacker by name, in the order in which they are run.
REGISTRY: dict[str, AttackerEntry] = {name: AttackerEntry(name, **row) for name, row in _TABLE.items()}
#: All families, in the order in which tables show them.
FAMILIES = tuple(dict.fromkeys(entry.family for entry in REGISTRY.values()))
#: Families of learned attackers; they are listed after attackers that name their cue.
LEARNED_FAMILIES = frozenset(entry.family for entry in REGISTRY.values() if entry.learned)


def entry_of(attacker: str) -> AttackerEntry:
    """Return the entry of an attacker. An attacker from a plug-in forms a family of its own.

    >>> entry_of("length-chars").family, entry_of("learned-boosted").family, entry_of("mine").family
    ('length', 'n-grams', 'mine')
    """
    return REGISTRY.get(attacker) or AttackerEntry(attacker, attacker)


def family_of(attacker: str) -> str:
    """Return the family of an attacker. Attackers that use the same cue, such as length in words or in letters, belong
    to one family.
    """
    return entry_of(attacker).family


def planned_battery(names: Sequence[str] = ()) -> list[AttackerEntry]:
    """Return the entries of the attackers that an audit runs if the user gives these names. Without names, these are
    the entries of the standard battery. `cues` is always included.

    >>> [entry.name for entry in planned_battery(["surface"])]
    ['surface', 'cues']
    """
    batteries = ("quick",) if "quick" in names else ("quick", "standard")
    standard = [entry.name for entry in REGISTRY.values() if entry.battery in batteries]
    chosen = standard if not names or "quick" in names else names
    for name in chosen:
        check_name("attacker", name, REGISTRY)
    return [REGISTRY[name] for name in dict.fromkeys((*chosen, "cues"))]


def several_learned(attackers: Iterable[str]) -> bool:
    """Return True if these include learned attackers of more than one family, so that an ensemble is worth running."""
    return len({family_of(name) for name in attackers} & LEARNED_FAMILIES - {"ensemble"}) > 1
