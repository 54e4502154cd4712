"""The options of an audit. The models that its attackers use are in `AttackerModels`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from creperie.auditing.likeness import TreeParser, linkage_tree
from creperie.auditing.verdict import THRESHOLD
from creperie.core import UsageError, option, options_in


@dataclass(frozen=True)
class AuditOptions:
    """The options of an audit: which attackers are run, what accuracy is tolerated, and which further comparisons of
    captions are made.
    """

    attackers: tuple[str, ...] = option((), "Names, by comma; +NAME adds to the standard battery.", metavar="NAMES")
    threshold: float = option(THRESHOLD, "The highest blind accuracy that is tolerated.")
    full: bool = option(False, "Run slow attackers on every item, not on a sample.")
    syntax: bool = option(False, "Also compare the captions' trees, by link-grammar, on a sample.")
    parser: str = option("", "Parse with stanford:FOLDER, benepar:MODEL or pcfg:TREEBANK instead.", metavar="SPEC")

    def __post_init__(self) -> None:
        if not 0.5 <= self.threshold < 1:
            raise UsageError(
                f"`threshold={self.threshold}` is out of range", hint="choose 0.5 (chance) or more, but less than 1"
            )

    def tree_parser(self) -> TreeParser | None:
        """Return the parser for comparing the syntax of captions; None if syntax is not compared."""
        if self.parser:
            from creperie.lang import open_constituency_parser

            return open_constituency_parser(self.parser)
        return linkage_tree if self.syntax else None


def changed_options(*groups: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults, by the name of their flag.

    An audit's result depends only on these options, the content of the benchmark and the version of creperie.

    >>> changed_options(AuditOptions(("surface", "+judge"), syntax=True))
    {'attackers': 'surface,+judge', 'syntax': True}
    """
    changed = {}
    for group in groups:
        for name, about in options_in(type(group)).items():
            value = getattr(group, name)
            if value != about.default and value not in (None, "", ()):
                flag = (about.flags or f"--{name.replace('_', '-')}").split()[0].partition("/")[0].removeprefix("--")
                changed[flag] = ",".join(value) if isinstance(value, tuple) else value if value is True else str(value)
    return changed


def audit_command(spec: str, options: Mapping[str, Any]) -> list[str]:
    """Return the command that reproduces an audit, as a list of words. `options` are those that differ from their
    defaults.

    >>> audit_command("mine", {"attackers": ["surface", "cues"], "syntax": True})
    ['creperie', 'audit', 'mine', '--attackers', 'surface,cues', '--syntax']
    """
    words = ["creperie", "audit", spec]
    for name, value in options.items():
        shown = ",".join(value) if isinstance(value, list | tuple) else str(value)
        words += [f"--{name}"] if value is True else [f"--{name}", shown]
    return words
