"""New benchmarks in the studio. Their foils are made from pasted captions and accepted by a person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from creperie.auditing import audit, audit_answer, audit_document
from creperie.bench import (
    Benchmark,
    Item,
    ProvenanceStep,
    choice,
    from_items,
    save,
)
from creperie.core import CreperieError, Document, Json, UsageError, counted, percent
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
_FLAGS = re.compile(r" \(--[^)]*\)")  #: options of the command line in a reason


@dataclass(frozen=True)
class Proposed:
    """A candidate (a foil or a second true caption) as the page shows it. If the checks rejected it, `reason` says why,
    else it is empty.
    """

    source: int
    text: str
    role: str
    kind: str
    reason: str
    leak: str = ""  #: what gives away foils of this kind; they are not accepted unless somebody does so

    @property
    def spare(self) -> bool:
        """True if this candidate was rejected only because its caption already has another foil or second true caption.
        The user may still accept it.
        """
        return self.reason == NOT_CHOSEN

    @property
    def usable(self) -> bool:
        """True if the user may accept this candidate."""
        return not self.reason or self.spare


def propose(captions: Sequence[str], makers: Sequence[str]) -> tuple[list[Proposed], list[str], dict[int, str]]:
    """Return the candidates of all makers for these captions, a note for each maker that could not run, and a mapping
    from the index of a caption to the reason why it has no candidate.
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
    second = _second_leaks([p for p in proposed if not p.reason and not p.leak])
    return [replace(p, leak=second.get(p.kind, "")) if p.role == "positive" else p for p in proposed], notes, nothing


def _second_leaks(kept: Sequence[Proposed]) -> dict[str, str]:
    """Return, for each kind of second true caption, the cue (such as length) by which a blind attacker tells these
    captions from the foils of the same source captions. If there is such a cue only for all kinds together, every kind
    gets this cue.
    """
    foils: dict[int, list[Proposed]] = {}
    for p in kept:
        foils.setdefault(p.source, []).extend([p] * (p.role != "positive"))
    second = [p for p in kept if p.role == "positive"]
    pairs = [Item("", p.kind, (), (p.text, foil.text), choice(1, 1)) for p in second for foil in foils[p.source]]
    document = _judged(pairs)
    whole = [row for row in (document or {}).get("results", ()) if row["leaks"] and row["subset"] == "all"][:1]
    together = {p.kind: f"second captions leak: {_says(row)}" for row in whole for p in second}
    return _leaks(document) or together


def _once(proposed: Sequence[Proposed]) -> list[Proposed]:
    """Return the candidates, with a reason for rejection added to duplicates. If several candidates of a caption have
    the same words, only one stays usable. Of the second true captions made from one caption, all but one become spare
    (see `Proposed.spare`), because an item has only one.
    """
    kept: dict[tuple[int, str], Proposed] = {}
    first: dict[int, Proposed] = {}
    for one in sorted(proposed, key=lambda p: (p.spare, p.role != "positive")):
        if one.usable and kept.setdefault((one.source, one.text.casefold()), one) is one and one.role == "positive":
            first.setdefault(one.source, one)
    others = [(p, kept.get((p.source, p.text.casefold()), p)) for p in proposed]
    once = [replace(p, reason=f"the same as {o.kind}") if p.usable and o is not p else p for p, o in others]
    return [
        replace(p, reason=NOT_CHOSEN) if p.role == "positive" and not p.reason and p is not first[p.source] else p
        for p in once
    ]


def _candidates(captions: Sequence[str], makers: Sequence[str]) -> tuple[list[Proposed], list[str], dict[int, str]]:
    """Return the same as `propose`. The candidates were checked one by one, but neither compared with each other nor
    audited.
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
            nothing.setdefault(number, []).append(_FLAGS.sub("", outcome.why_nothing))
            for v in outcome.verdicts:
                c = v.candidate
                proposed.append(Proposed(number, c.text, c.role, c.kind, v.reason or ""))
    return proposed, notes, {number: "; ".join(whys) for number, whys in nothing.items() if all(whys)}


def verdict(form: Mapping[str, str]) -> Json:
    """Return four texts for the page. They say how many foils and second true captions are accepted, how many other
    second true captions are left out, what the verdict of a blind audit is, and what this verdict means.
    """
    # A caption takes only one second caption, and only together with a foil.
    items = _accepted(form)
    document = _judged(items)
    ticked = sum(form[f"role-{key[5:]}"] == "positive" for key in form if key.startswith("keep-"))
    used = len({item.captions[:2] for item in items if len(item.captions) > 2})
    number = counted(len(items), "foil") + f" and {counted(used, 'second caption')}" * bool(used)
    left = f"{counted(ticked - used, 'second caption')} left out: each caption takes one, beside a foil"
    about = {"number": number, "left": left if ticked > used else ""}
    if document is None:
        return {**about, "verdict": "not shown", "text": "no foil is accepted yet"}
    return {**about, "verdict": document["verdict"], "text": audit_answer(document)}


def _judged(items: Sequence[Item]) -> Json | None:
    """Return the quick audit of these items. Return None if there are no items."""
    if not items:
        return None
    unique = [replace(item, id=str(k)) for k, item in enumerate(items)]
    return audit_document(audit(from_items("accepted", unique), QUICK))


def _leaks(document: Document | None) -> dict[str, str]:
    """Return, for each kind of foil that leaks in the audit `document`, the strongest cue: what best distinguishes the
    false captions of this kind from true ones.
    """
    return {
        judged["subset"]: f"this kind leaks: {_says({**leak, 'n': judged['items']})}"
        for judged in (document["subsets"] if document else ())
        for leak in judged["through"][:1]
    }


def _says(leak: Document) -> str:
    return f"{leak['choice']} is right in {percent(leak['accuracy'])} % of {counted(leak['n'], 'pair')}"


def saved(form: Mapping[str, str], folder: Path) -> Benchmark:
    """Save the accepted candidates as a benchmark and return it. Each item has one foil and the caption from which the
    foil was made. If a second true caption was accepted, the item has that too.
    """
    place, items = new_place(form, folder), _accepted(form)
    if not items:
        raise UsageError("no foil has been accepted yet", hint="accept at least one (press a)")
    sources = sum(key.startswith("source-") for key in form)
    args = {"maker": "studio", "sources": sources, "accepted": len(items)}
    return save(from_items(place.name, items, provenance=(ProvenanceStep("make", args),)), place)


def _accepted(form: Mapping[str, str]) -> list[Item]:
    """Return one item per accepted foil, with a second true caption if one was accepted."""
    sources = {key[7:]: text for key, text in form.items() if key.startswith("source-")}
    accepted = [key[5:] for key in form if key.startswith("keep-")]
    chosen = [(key, *(form[f"{what}-{key}"] for what in ("of", "role", "kind", "text"))) for key in accepted]
    positives: dict[str, list[str]] = {}
    for _, source, role, _, text in chosen:
        if role == "positive":
            positives.setdefault(source, [text])
    items = []
    for key, source, role, kind, text in chosen:
        if role != "positive" and source in sources:
            true = [sources[source], *positives.get(source, ())]
            items.append(Item(key, kind, (), (*true, text.strip()), choice(len(true), 1)))
    return items


def new_place(form: Mapping[str, str], folder: Path) -> Path:
    """Return the folder for a new benchmark. Raise a UsageError if the name is taken or leads outside the studio's
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
