"""New benchmarks: foils of pasted captions that a person accepted, and imported tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from creperie.bench import (
    NO_IMAGES,
    Benchmark,
    Item,
    ProvenanceStep,
    Roles,
    choice,
    from_items,
    open_store,
    read_table,
    save,
)
from creperie.core import CreperieError, UsageError, split_names
from creperie.making import JobOptions, MakerOptions, make

#: makers that need no model and no images, in the order in which the page lists them
MAKERS = ("rules:swap", "rules:negate", "rules:replace", "grammar:passive", "grammar:dative")
MOST_CAPTIONS = 500


@dataclass(frozen=True)
class Proposed:
    """A candidate on the page; one with a reason was rejected by the checks."""

    source: int
    text: str
    role: str
    kind: str
    reason: str


def propose(captions: Sequence[str], makers: Sequence[str]) -> tuple[list[Proposed], list[str]]:
    """Return the candidates of all makers for these captions, and why a maker could not run."""
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
    """Save and return a benchmark of the accepted candidates: one item per foil, with a second positive if any."""
    place = _new_place(form, folder)
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
        raise UsageError("no foil has been accepted yet", hint="accept at least one (press a)")
    args = {"maker": "studio", "sources": len(sources), "accepted": len(accepted)}
    return save(from_items(place.name, items, provenance=(ProvenanceStep("make", args),)), place)


def import_table(form: Mapping[str, str], folder: Path) -> Benchmark:
    """Save a table (CSV, TSV or JSON lines) as a benchmark and return it; columns left open are found by name."""
    place, table = _new_place(form, folder), form.get("table", "").lstrip("\ufeff")
    heading = table.partition("\n")[0]
    kind = "jsonl" if heading.startswith("{") else "tsv" if "\t" in heading else "csv"
    named = {role: tuple(split_names(form.get(role, ""))) for role in ("image", "positive", "negative", "subset")}
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / f"{place.name}.{kind}"
        file.write_text(table, encoding="utf-8")
        try:
            bench = read_table(file, kind, Roles(**named))
        except CreperieError as e:
            raise UsageError(str(e).replace(f"{scratch}/", "")) from None
    pictures = (folder / form["pictures"]).resolve() if form.get("pictures") else None
    if pictures and not (pictures.exists() and pictures.is_relative_to(folder)):
        raise UsageError("there is no such folder or zip in the studio's folder", where=form["pictures"])
    return save(replace(bench, images=open_store(pictures) if pictures else NO_IMAGES), place)


def _new_place(form: Mapping[str, str], folder: Path) -> Path:
    """Return the folder of a new benchmark; raise a UsageError if the name is taken or leads outside the folder."""
    name = form.get("name", "").strip()
    if not name or "/" in name or name.startswith("."):
        raise UsageError("the benchmark needs a name without slashes", hint="such as my-foils")
    if (folder / name).exists():
        raise UsageError(f"{name!r} is taken", hint="choose another name")
    return folder / name
