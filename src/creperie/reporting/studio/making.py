"""New benchmarks in the studio: from foils that a person accepted, made from pasted captions, and from
imported tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from creperie.auditing import audit, audit_answer, audit_document
from creperie.bench import (
    CODES,
    NO_IMAGES,
    Benchmark,
    Item,
    ProvenanceStep,
    Roles,
    check,
    choice,
    from_items,
    open_image,
    open_store,
    open_table,
    read_table,
    save,
)
from creperie.core import CreperieError, UsageError, counted, percent, split_names
from creperie.making import NOT_CHOSEN, JobOptions, MakerOptions, make
from creperie.reporting.studio.items import QUICK

#: makers that need no model and no images: what they do, and an example
MAKERS = {
    "all": ("Everything that fits a caption", "several kinds, so that no single cue tells them apart"),
    "rules:swap": ("Two things or two properties change places", "A dog chases a cat. → A cat chases a dog."),
    "rules:replace": ("One word is replaced", "A red car at a kerb. → A blue car at a kerb."),
    "rules:negate": ("A negation is added", "A dog sleeps. → A dog does not sleep."),
    "grammar:passive": ("Active and passive", "A dog chases a cat. → A dog is chased by a cat."),
    "grammar:dative": ("Giver and receiver", "A man gives a boy a ball. → A boy gives a man a ball."),
}
MOST_CAPTIONS = 500
MOST_OPENED = 500  #: items whose pictures are opened after an import
#: what a preview calls the columns of a table
ROLES = {"positive": "true", "negative": "false", "subset": "subset", "image": "picture", "id": "id", "tag": "tag"}


@dataclass(frozen=True)
class Proposed:
    """A candidate as the page shows it. `reason` says why the checks rejected it, if they did."""

    source: int
    text: str
    role: str
    kind: str
    reason: str
    leak: str = ""  #: what gives away foils of this kind; they are not accepted unless somebody does so

    @property
    def spare(self) -> bool:
        """True if the only reason for rejecting this candidate is that its caption already has another foil. The user
        may still accept the candidate.
        """
        return self.reason == NOT_CHOSEN

    @property
    def usable(self) -> bool:
        """True if the user may accept this candidate."""
        return not self.reason or self.spare


def propose(captions: Sequence[str], makers: Sequence[str]) -> tuple[list[Proposed], list[str], dict[int, str]]:
    """Return the candidates of all makers for these captions, why some makers could not run, and why nothing was made
    of some captions, by their numbers.
    """
    if not captions:
        raise UsageError("there are no captions", hint="paste captions, one per line")
    if len(captions) > MOST_CAPTIONS:
        raise UsageError(f"{len(captions):,} captions are too many for one page", hint="use `creperie make`")
    proposed, notes, nothing = _candidates(captions, makers)
    proposed = _once(proposed)
    usable = [(p.kind, captions[p.source], p.text) for p in proposed if not p.reason and p.role != "positive"]
    items = [Item(str(k), kind, (), tuple(pair), choice(1, 1)) for k, (kind, *pair) in enumerate(usable)]
    leaks = _leaks(_judged(items))
    proposed = [p if p.role == "positive" else replace(p, leak=leaks.get(p.kind, "")) for p in proposed]
    kept = [p for p in proposed if not p.reason and not p.leak]
    chosen = [(str(k), str(p.source), p.role, p.kind, p.text) for k, p in enumerate(kept)]
    document = _judged(_items({str(k): text for k, text in enumerate(captions)}, chosen))
    leaking = (row for row in (document or {}).get("views", ()) if row["leaks"] and row["view"].startswith("P2-N"))
    second = next((_says(row) for row in leaking), "")
    return [replace(p, leak=second) if p.role == "positive" else p for p in proposed], notes, nothing


def _once(proposed: Sequence[Proposed]) -> list[Proposed]:
    """Return the candidates, with those refused that have the words of another candidate of their caption."""
    kept: dict[tuple[int, str], Proposed] = {}
    for one in sorted(proposed, key=lambda p: (p.spare, p.role != "positive")):
        if one.usable:
            kept.setdefault((one.source, one.text.casefold()), one)
    others = [(p, kept.get((p.source, p.text.casefold()), p)) for p in proposed]
    return [replace(p, reason=f"the same as {o.kind}") if p.usable and o is not p else p for p, o in others]


def _candidates(captions: Sequence[str], makers: Sequence[str]) -> tuple[list[Proposed], list[str], dict[int, str]]:
    """Return the candidates that the makers write, each with the result of the checks; why some makers wrote none; and
    why nothing was made of some captions, by their numbers. The candidates are not audited yet.
    """
    proposed: list[Proposed] = []
    notes = []
    nothing: dict[int, list[str]] = {}
    for maker in makers or ("all",):
        try:
            made = make(maker, list(captions), options=MakerOptions(), job=JobOptions())
        except CreperieError as e:
            notes.append(f"{maker}: {e}")
            continue
        for number, outcome in enumerate(made.outcomes):
            nothing.setdefault(number, []).append(outcome.why_nothing)
            for v in outcome.verdicts:
                c = v.candidate
                proposed.append(Proposed(number, c.text, c.role, c.kind, v.reason or ""))
    return proposed, notes, {number: "; ".join(whys) for number, whys in nothing.items() if all(whys)}


def verdict(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the number of accepted foils, and the verdict of a blind audit of these, with a sentence that
    explains it.
    """
    items = _accepted(form)
    document = _judged(items)
    if document is None:
        return {"n": 0, "verdict": "not shown", "text": "no foil is accepted yet"}
    return {"n": len(items), "verdict": document["verdict"], "text": audit_answer(document)}


def _judged(items: Sequence[Item]) -> dict[str, Any] | None:
    """Return the quick audit of these items; None if there are no items."""
    if not items:
        return None
    unique = [replace(item, id=str(k)) for k, item in enumerate(items)]
    return audit_document(audit(from_items("accepted", unique), QUICK))


def _leaks(document: Mapping[str, Any] | None) -> dict[str, str]:
    """Return, for each kind of foil that leaks in the audit `document`, the strongest cue that distinguishes its foils
    from true captions.
    """
    return {
        judged["subset"]: _says({**leak, "n": judged["items"]})
        for judged in (document["subsets"] if document else ())
        for leak in judged["through"][:1]
    }


def _says(leak: Mapping[str, Any]) -> str:
    return f"{leak['choice']} is right in {percent(leak['accuracy'])} % of {counted(leak['n'], 'pair')}"


def saved(form: Mapping[str, str], folder: Path) -> Benchmark:
    """Save the accepted candidates as a benchmark and return it. It has one item per foil, which also contains the
    second positive of the foil's caption if one was accepted.
    """
    place, items = _new_place(form, folder), _accepted(form)
    if not items:
        raise UsageError("no foil has been accepted yet", hint="accept at least one (press a)")
    sources = sum(key.startswith("source-") for key in form)
    args = {"maker": "studio", "sources": sources, "accepted": len(items)}
    return save(from_items(place.name, items, provenance=(ProvenanceStep("make", args),)), place)


def _accepted(form: Mapping[str, str]) -> list[Item]:
    """Return one item per accepted foil, with a second positive if one for its caption was accepted."""
    sources = {key[7:]: text for key, text in form.items() if key.startswith("source-")}
    accepted = [key[5:] for key in form if key.startswith("keep-")]
    about = ("of", "role", "kind", "text")
    return _items(sources, [(key, *(form[f"{what}-{key}"] for what in about)) for key in accepted])


def _items(sources: Mapping[str, str], chosen: Sequence[tuple[str, ...]]) -> list[Item]:
    """Return one item per foil in `chosen`, together with the second positive for its source caption. The elements of
    `chosen` are (key, source, role, kind, text).
    """
    positives: dict[str, str] = {}
    for _, source, role, _, text in chosen:
        if role == "positive":
            positives.setdefault(source, text)
    items = []
    for key, source, role, kind, text in chosen:
        if role != "positive" and source in sources:
            true = [sources[source], *([positives[source]] if source in positives else [])]
            items.append(Item(key, kind, (), (*true, text.strip()), choice(len(true), 1)))
    return items


def import_table(form: Mapping[str, str], folder: Path) -> Benchmark:
    """Save a table (CSV, TSV or JSON lines) as a benchmark and return the benchmark. Columns that the user did not
    choose in the form are recognised by their names.
    """
    place = _new_place(form, folder)
    with _table_file(form, place.name) as (file, kind):
        bench = read_table(file, kind, _roles(form))
    pictures = (folder / form["pictures"].replace("\0", "")).resolve() if form.get("pictures") else None
    if pictures and not (pictures.exists() and pictures.is_relative_to(folder)):
        what = "there is no such folder or zip in the studio's folder"
        raise UsageError(what, where=form["pictures"], hint="copy the pictures into the studio's folder first")
    return save(replace(bench, images=open_store(pictures) if pictures else NO_IMAGES), place)


def oddities(bench: Benchmark) -> list[str]:
    """Return what is odd about an imported benchmark: the rows that were left out and what `check` finds, counted. The
    pictures of a large benchmark are not opened.
    """
    found: dict[str, list[str]] = {}
    for one in check(bench, images=len(bench) <= MOST_OPENED and bench.images is not NO_IMAGES):
        if one.code in ("skipped-record", "empty-reference"):
            found.setdefault(f"left out: {one.message}", []).append(one.item)
        elif one.code != "images-not-checked":
            found.setdefault(CODES[one.code], []).append(one.item)
    return [f"{counted(len(ids), 'row')} (such as {ids[0]}): {what}" for what, ids in found.items()]


def preview(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what the preview of a table shows: its columns, what each is imported as, and the first rows. If the table
    can be read but not imported, the preview also says why.
    """
    shown: dict[str, Any] = {"columns": [], "rows": [], "n": 0, "problem": "", "odd": []}
    try:
        with _table_file(form, "table") as (file, kind):
            table = open_table(file, kind)
            shown["rows"] = [row for _, row in islice(table.rows(table.names), 4)]
            shown["columns"] = [(name, "") for name in table.names]
            bench = read_table(file, kind, _roles(form))
            roles = bench.provenance[-1].args.get("columns", {})
            role_of = {name: ROLES[role] for role, names in roles.items() for name in names}
            shown["columns"] = [(name, role_of.get(name, "")) for name in table.names]
            shown["n"], shown["odd"] = len(bench), oddities(bench)
    except CreperieError as e:
        shown["problem"] = str(e).partition("; pass `")[0] if shown["rows"] else ""
    return shown


@contextmanager
def _table_file(form: Mapping[str, str], name: str) -> Iterator[tuple[Path, str]]:
    """Write the table that was sent with the form to a temporary file, and yield (path of the file, kind of table).
    Error messages name the file without its folder.
    """
    table = form.get("table", "").lstrip("\ufeff")
    heading = table.partition("\n")[0]
    kind = "jsonl" if heading.startswith("{") else "tsv" if "\t" in heading else "csv"
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / f"{name}.{kind}"
        file.write_text(table, encoding="utf-8")
        try:
            yield file, kind
        except CreperieError as e:
            raise UsageError(str(e).replace(f"{scratch}/", "")) from None


def _roles(form: Mapping[str, str]) -> Roles:
    return Roles(
        **{role: tuple(split_names(form.get(role, ""))) for role in ("image", "positive", "negative", "subset")}
    )


def keep_picture(folder: Path, name: str, path: str, data: bytes) -> None:
    """Store a picture from a dropped folder in `NAME-pictures`, for the benchmark that is imported next."""
    place = _new_place({"name": name}, folder)
    parts = PurePosixPath(path).parts
    if not parts or any(part.startswith((".", "/")) or "\0" in part or "\\" in part for part in parts):
        what = "the path of a picture does not lead into its folder"
        raise UsageError(what, where=path[:80], hint="drag the folder onto the page again")
    open_image(NO_IMAGES, path, data=data)
    file = place.with_name(f"{place.name}-pictures").joinpath(*parts)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def _new_place(form: Mapping[str, str], folder: Path) -> Path:
    """Return the folder for a new benchmark; raise a UsageError if the name is taken or leads outside the studio's
    folder.
    """
    name = form.get("name", "").strip()
    if not re.fullmatch(r"\w[\w +.()-]{0,79}", name):
        raise UsageError(
            "the benchmark needs a name of letters, digits, spaces and - . _ + ( )",
            hint="choose a name such as my-foils",
        )
    if (folder / name).exists():
        raise UsageError(f"there is already a folder {name!r}", hint="choose another name")
    return folder / name
