"""Every sentence that grammar makers wrote is parsed again: the parser must find the roles that were meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.lang import parse
from creperie.making.candidate import Candidate
from creperie.making.source import SourceCaption

OTHER_ROLES = "parsed again, the roles are others"


@dataclass(frozen=True)
class RolesConfirmed:
    """A check: who does what to whom, by a second parse."""

    parser: str = ""

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        unsure = [c for _, c in pairs if not c.tags.get("plain")]
        texts = list(dict.fromkeys(c.text for c in unsure))  # short captions are their own simplification
        docs = dict(zip(texts, parse(texts, self.parser), strict=True))
        return [None if c.tags.get("plain") or _holds(docs[c.text], c) else OTHER_ROLES for _, c in pairs]


def _holds(doc: Any, candidate: Candidate) -> bool:
    tests = {
        "active": _is_active,
        "passive": _is_passive,
        "ditransitive": _is_ditransitive,
        "dative": _is_linked("to", "for"),
        "with": _is_linked("with"),
        "against": _is_linked("against"),
    }
    return tests[candidate.kind](doc, str(candidate.tags["first"]), str(candidate.tags["second"]))


def _verbs(doc: Any) -> list[Any]:
    """The root verb, or participles on a root noun."""
    root = next((t for t in doc if t.dep_ == "ROOT"), None)
    if root is None:
        return []
    return [root] if root.tag_.startswith("VB") else [c for c in root.children if c.dep_ == "acl"]


def _child(token: Any, *relations: str) -> str:
    return next((c.text.lower() for c in token.children if c.dep_ in relations), "")


def _subject(verb: Any, relation: str) -> str:
    return str(verb.head.text.lower()) if verb.dep_ == "acl" else _child(verb, relation)


def _is_active(doc: Any, agent: str, patient: str) -> bool:
    return any(_same(_subject(v, "nsubj"), agent) and _same(_child(v, "dobj"), patient) for v in _verbs(doc))


def _is_passive(doc: Any, agent: str, patient: str) -> bool:
    for verb in _verbs(doc):
        by = next((c for c in verb.children if c.dep_ == "agent"), None)
        if by is not None and _same(_subject(verb, "nsubjpass"), patient) and _same(_child(by, "pobj"), agent):
            return True
    return False


def _is_ditransitive(doc: Any, recipient: str, thing: str) -> bool:
    """Both are complements of one verb, in this order; which of two objects is the recipient, order alone tells."""
    for verb in (t for t in doc if t.tag_.startswith("VB")):
        found = [c.text.lower() for c in verb.rights if c.dep_ in ("dative", "dobj", "npadvmod", "oprd", "iobj")]
        if len(found) == 2 and _same(found[0], recipient) and _same(found[1], thing):
            return True
    return False


def _is_linked(*links: str) -> Callable[[Any, str, str], bool]:
    """`b to a`, `a with b`, `b against a`: an object, then a preposition with its own."""

    def test(doc: Any, first: str, second: str) -> bool:
        thing, governed = (first, second) if "with" in links else (second, first)
        for verb in (t for t in doc if t.tag_.startswith("VB")):
            for noun in (c for c in verb.rights if c.dep_ == "dobj" and _same(c.text.lower(), thing)):
                after = [p for p in (*verb.rights, *noun.rights) if p.text.lower() in links]
                if any(_same(_child(p, "pobj"), governed) for p in after):
                    return True
        return False

    return test


_CASES = {"me": "i", "him": "he", "her": "she", "us": "we", "them": "they"}


def _same(found: str, meant: str) -> bool:
    return _CASES.get(found, found) == _CASES.get(meant, meant)
