"""The registry of attackers: what each stands for, what it needs, and when it is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from creperie.core import packaged_toml


@dataclass(frozen=True)
class AttackerEntry:
    """One attacker, as attackers.toml describes it."""

    name: str
    family: str
    battery: str = ""
    needs: str = ""
    model: str = ""
    learned: bool = False
    sampled: bool = False
    single: bool = False
    count: str = ""
    sign: int = 1
    prefers: str = ""
    otherwise: str = ""


_TABLE: dict[str, dict[str, Any]] = packaged_toml("creperie.auditing", "attackers.toml")
#: Every attacker by name, in the order in which they are run.
REGISTRY: dict[str, AttackerEntry] = {name: AttackerEntry(name, **row) for name, row in _TABLE.items()}
#: All families, in the order in which tables show them.
FAMILIES = tuple(dict.fromkeys(entry.family for entry in REGISTRY.values()))
#: Families that learn what they look for; cues that say what they are come first.
LEARNED_FAMILIES = frozenset(entry.family for entry in REGISTRY.values() if entry.learned)


def entry_of(attacker: str) -> AttackerEntry:
    """The entry of an attacker; one that a plug-in brings is a family of its own.

    >>> entry_of("length-chars").family, entry_of("learned-boosted").family, entry_of("mine").family
    ('length', 'n-grams', 'mine')
    """
    return REGISTRY.get(attacker) or AttackerEntry(attacker, attacker)


def family_of(attacker: str) -> str:
    """What an attacker stands for: length in words and in letters is one cue."""
    return entry_of(attacker).family


def several_learned(attackers: Iterable[str]) -> bool:
    """True if attackers of several families learn: then an ensemble of all is worth its time."""
    return len({family_of(name) for name in attackers} & LEARNED_FAMILIES - {"ensemble"}) > 1
