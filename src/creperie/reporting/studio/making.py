"""Foils for pasted captions: proposed by makers, accepted, edited or rejected one by one, saved as a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from creperie.bench import Benchmark, Item, ProvenanceStep, choice, from_items, save
from creperie.core import CreperieError, UsageError
from creperie.making import JobOptions, MakerOptions, make

#: makers that need no model and no images, in the order in which the page lists them
MAKERS = ("rules:swap", "rules:negate", "rules:replace", "grammar:passive", "grammar:dative")
MOST_CAPTIONS = 500


@dataclass(frozen=True)
class Proposed:
    """A candidate on the page; one with a reason was refused by the checks."""

    source: int
    text: str
    role: str
    kind: str
    reason: str


def propose(captions: Sequence[str], makers: Sequence[str]) -> tuple[list[Proposed], list[str]]:
    """Return the candidates of all makers for captions, and why a maker could not run."""
    if not captions:
        raise UsageError("there are no captions", hint="paste captions, one per line")
    if len(captions) > MOST_CAPTIONS:
        raise UsageError(f"{len(captions):,} captions are too many for one page", hint="use `creperie make`")
    proposed, notes = [], []
    for maker in makers or MAKERS[:2]:
        try:
            made = make(maker, list(captions), options=MakerOptions(), job=JobOptions())
        except CreperieError as e:
            notes.append(f"{maker}: {e}")
            continue
        for number, outcome in enumerate(made.outcomes):
            for v in outcome.verdicts:
                c = v.candidate
                proposed.append(Proposed(number, c.text, c.role, c.kind, v.reason or ""))
    return proposed, notes


def saved(form: Mapping[str, str], folder: Path) -> Benchmark:
    """Save the accepted candidates of the page's form: one item per foil, with a second positive if there is one."""
    name = form.get("name", "").strip()
    if not name or "/" in name or name.startswith("."):
        raise UsageError("the benchmark needs a name without slashes", hint="such as my-foils")
    if (folder / name).exists():
        raise UsageError(f"{name!r} is taken", hint="choose another name")
    sources = {key[7:]: text for key, text in form.items() if key.startswith("source-")}
    accepted = [key[5:] for key in form if key.startswith("keep-")]
    positives: dict[str, str] = {}
    for key in accepted:
        if form[f"role-{key}"] == "positive":
            positives.setdefault(form[f"of-{key}"], form[f"text-{key}"])
    items = []
    for key in accepted:
        source = form[f"of-{key}"]
        if form[f"role-{key}"] != "positive" and source in sources:
            true = [sources[source], *([positives[source]] if source in positives else [])]
            captions = (*true, form[f"text-{key}"].strip())
            items.append(Item(key, form[f"kind-{key}"], (), captions, choice(len(true), 1)))
    if not items:
        raise UsageError("no foil is accepted", hint="accept at least one: key a")
    args = {"maker": "studio", "sources": len(sources), "accepted": len(accepted)}
    return save(from_items(name, items, provenance=(ProvenanceStep("make", args),)), folder / name)
