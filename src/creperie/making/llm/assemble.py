"""The model names an edit, creperie writes the caption: small models name a word better than they copy a sentence.

A parser says what can be changed, the model is asked once per foil, its answer is held to what fits (by a schema where
the server takes one), and articles, number, agreement and capitals follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from creperie.lang import (
    COMPATIBLE,
    ENTAILED,
    exchange_truth,
    inflected,
    knows_verb,
    lemma,
    numbered,
    open_wordnet,
    truth,
    words,
)
from creperie.making.additions import is_plain, left_out
from creperie.making.atoms import actions, attributes, compound, objects, phrase, prepositions
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.edits import frames, is_bound, like, other_places, prepositional_span
from creperie.making.llm.parse import Fields, is_na
from creperie.making.llm.question import Ask, Talk
from creperie.making.llm.workflow import WorkflowTask
from creperie.making.source import SourceCaption
from creperie.making.swaps import adjective_pairs, agreement, exchange_spans, stands_alone, swappable
from creperie.making.wording import plain, reworded

#: Published workflows sample proposals at 1.5, at which small models write no words.
NAMING = 0.7
MOST_NAMED = 3  #: words of a replacement
_ARTICLES = frozenset(("a", "an", "the", "some"))
#: Tokens from the first to before the last, and the one that heads them.
Stretch = tuple[int, int, Any]


def assembled(task: WorkflowTask, source: SourceCaption, doc: Any) -> Talk[Proposal]:
    """Foils of a parsed caption, each from one question."""
    return (yield from (_swapped if task.kind.startswith("swap") else _named)(task, source, doc))


def stretches(doc: Any, kind: str) -> list[Stretch]:
    """What a kind of edit can change in a caption."""
    if kind == "replace-attribute":
        return [(a.i, a.i + 1, a) for a in attributes(doc)]
    if kind == "replace-relation":
        spans = [(span[0].i, span[-1].i + 1, place) for span, place in map(prepositional_span, prepositions(doc))]
        return [s for s in spans if s[2] is not None and _choices(doc, s)] + [
            (v.i, v.i + 1, v) for v in actions(doc) if not is_bound(v)
        ]
    nouns = [n for n in objects(doc) if kind != "add-attribute" or is_plain(n)]
    return [(*compound(n), n) for n in nouns if n.i + 1 == len(doc) or doc[n.i + 1].text.lower() != "of"]


def _choices(doc: Any, stretch: Stretch) -> tuple[str, ...]:
    """Prepositions that exclude the one that stands there; none where it is not one."""
    start, end, head = stretch
    said = doc[start:end].text.lower()
    return other_places(said, lemma(head.text, head.tag_)) if doc[start].tag_ == "IN" else ()


def _named(task: WorkflowTask, source: SourceCaption, doc: Any) -> Talk[Proposal]:
    """A word for another, or a word or phrase that is added."""
    found = stretches(doc, task.kind)
    if task.kind.startswith("add"):
        found = [s for s in found if left_out(doc, s[2], task.kind) is not None]
    if not found:
        return Proposal(skipped="the parser finds nothing to change")
    rng = dice_for(task.seed, task.maker, source.id)
    chosen = rng.sample(found, min(task.count, len(found)))
    step = task.naming
    misfits = [_misfit(task.kind, source, doc, stretch) for stretch in chosen]
    replies = yield [
        Ask(
            step,
            {"caption": source.text, "selected": _said(doc, stretch)},
            seed=rng.randrange(2**31),
            temperature=NAMING,
            objection=_all_of(misfit),
            choices={"few": _choices(doc, stretch)},
        )
        for stretch, misfit in zip(chosen, misfits)
    ]
    made: list[Candidate] = []
    for stretch, reply, misfit in zip(chosen, replies, misfits):
        if reply.fields is None:
            made.append(task.quarantine(source, reply, step.name))
        else:
            named = next(new for new in reply.fields["few"] if not misfit(new))
            new = fitted(task.kind, doc, stretch, bare(named, task.kind))
            old = doc[stretch[0] : stretch[1]].text
            text, gone = _written(task.kind, doc, stretch, new)
            edit = f"{old} + {new} − {gone}" if gone else f"{old} → {new}"
            made.append(task.candidate(source, text, "negative", edit))
    return Proposal(tuple(made), calls=sum(r.calls for r in replies))


def _written(kind: str, doc: Any, stretch: Stretch, new: str) -> tuple[str, str]:
    """The caption with the edit, and what was left out for an addition."""
    start, end, head = stretch
    if kind.startswith("replace"):
        changes = dict.fromkeys(range(start, end), "") | {start: like(doc[start], new)}
        return reworded(doc, changes), ""
    gone: Sequence[Any] = left_out(doc, head, kind) or ()
    if kind == "add-object":
        changes = {head.i: f"{head.text} {new}"}
    else:
        changes = {start: f"{like(doc[start], new)} {plain(doc[start])}"}
    changes |= {t.i: "" for t in gone}
    return reworded(doc, changes), " ".join(t.text for t in gone)


def bare(new: str, kind: str) -> str:
    """What was named, without the article and the full stop that models put to it.

    >>> bare("A horse.", "replace-object"), bare("with a dog", "add-object")
    ('horse', 'with a dog')
    """
    parts = new.strip().rstrip(".").split()
    if kind != "add-object" and len(parts) > 1 and parts[0].lower() in _ARTICLES:
        parts = parts[1:]
    said = " ".join(parts)
    return said if said.isupper() else said[:1].lower() + said[1:]


def fitted(kind: str, doc: Any, stretch: Stretch, new: str) -> str:
    """A named word with the number or the verb's ending of what it replaces."""
    start, _, head = stretch
    if kind == "replace-object":
        first, _, last = new.rpartition(" ")
        return numbered(f"{first} {lemma(last, 'NNS')}".strip(), head.tag_)
    if kind == "replace-relation" and doc[start].tag_.startswith("VB"):
        verb, _, rest = new.partition(" ")
        return f"{inflected(lemma(verb, 'VB'), doc[start].tag_)} {rest}".strip()
    return new


def _all_of(misfit: Callable[[str], str]) -> Callable[[Fields], str]:
    """What is wrong with the first of the named words, where none fits: models are asked again with it."""
    return lambda fields: (
        "" if not all(why := [misfit(new) for new in fields["few"]]) else f"{fields['few'][0]}: {why[0]}"
    )


def _misfit(kind: str, source: SourceCaption, doc: Any, stretch: Stretch) -> Callable[[str], str]:
    """What is wrong with a named word, or nothing."""
    told = {w for text in (source.text, *source.others) for w in words(text)}
    known = told | {lemma(w, "NNS") for w in told} | {lemma(w, "VB") for w in told}

    def objection(named: str) -> str:
        new = bare(named, kind)
        parts = words(new)
        if not parts or len(parts) > MOST_NAMED + (kind == "add-object"):
            return "it is not one word or a short phrase"
        if kind == "add-object" and parts[0] not in frames()["links"]:
            return "the phrase does not begin with a word such as with, beside or behind"
        last = parts[-1] if kind != "replace-relation" else parts[0]
        if not _choices(doc, stretch) and known & {last, lemma(last, "NNS"), lemma(last, "VB")}:
            return "the caption says this already"
        return _unlike(kind, source, doc, stretch, new)

    return objection


def _unlike(kind: str, source: SourceCaption, doc: Any, stretch: Stretch, new: str) -> str:
    """Why a word cannot stand there or would be true as well."""
    net, last = open_wordnet(), new.split()[-1]
    if kind.endswith("object") and not net.senses(lemma(last, "NNS"), "n"):
        return "it is not a noun"
    if kind.endswith("attribute") and not net.senses(last, "a"):
        return "it is not an adjective"
    if (
        kind == "replace-relation"
        and doc[stretch[0]].tag_.startswith("VB")
        and not knows_verb(lemma(new.split()[0], "VB"))
    ):
        return "it is not a verb"
    verdict = truth(source.text, _written(kind, doc, stretch, fitted(kind, doc, stretch, new))[0], source.others, doc)
    true = (ENTAILED, COMPATIBLE) if kind == "replace-object" else (ENTAILED,)
    return verdict.reason if verdict.word in true else ""


# -- swaps -----------------------------------------------------------------------------------------------------------


def _swapped(task: WorkflowTask, source: SourceCaption, doc: Any) -> Talk[Proposal]:
    """The model names the two that change places, among those that can."""
    pairs = swaps_of(doc, task.kind)
    if not pairs:
        return Proposal(skipped="the parser finds nothing to swap")
    named = {frozenset((_said(doc, one), _said(doc, other))): (one, other) for one, other in pairs}

    def objection(fields: Fields) -> str:
        if fields["possible"] == "no":
            return ""
        pair = frozenset((fields["first"], fields["second"]))
        return "" if pair in named else "these two cannot change places"

    sides = (dict.fromkeys(_said(doc, pair[k]) for pair in pairs) for k in range(2))
    choices = {field: [*names, "NA"] for field, names in zip(("first", "second"), sides)}
    reply = (yield [Ask(task.naming, {"caption": source.text}, objection=objection, choices=choices)])[0]
    if reply.fields is None:
        return Proposal((task.quarantine(source, reply, "name"),), calls=reply.calls)
    if reply.fields["possible"] == "no" or is_na(reply.fields["first"]):
        return Proposal(skipped="the model finds nothing to swap", calls=reply.calls)
    one, other = named[frozenset((reply.fields["first"], reply.fields["second"]))]
    edit = f"{_said(doc, one)} ↔ {_said(doc, other)}"
    text = exchange_spans(doc, one[:2], other[:2], True, agreement(one[2], other[2]))
    return Proposal((task.candidate(source, text, "negative", edit),), calls=reply.calls)


def _said(doc: Any, stretch: Stretch) -> str:
    return str(doc[stretch[0] : stretch[1]].text)


def swaps_of(doc: Any, kind: str) -> list[tuple[Stretch, Stretch]]:
    """Two phrases that could change places in one event, or adjectives of different things that are not joined."""
    if kind == "swap-attribute":
        pairs = [p for p in adjective_pairs(doc) if all(map(stands_alone, p)) and _changes(doc, *p, "attributes")]
        return [((a.i, a.i + 1, a), (b.i, b.i + 1, b)) for a, b in pairs]
    both = (((*phrase(a), a), (*phrase(b), b)) for a, b in swappable(doc) if _changes(doc, a, b, "phrases"))
    return [(one, other) for one, other in both if one[1] <= other[0]]


def _changes(doc: Any, left: Any, right: Any, exchange: str) -> bool:
    return exchange_truth(doc, left, right, exchange).word != ENTAILED
