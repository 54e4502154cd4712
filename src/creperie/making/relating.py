"""Replacements of a relation by one that excludes it: another preposition, verb or posture, or `without` for `with`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from creperie.lang import doers, inflected, is_above, is_mass, kind_of, lemma
from creperie.making.atoms import (
    actions,
    base_of,
    dependent,
    dependents,
    has_of,
    is_compound_head,
    look_of,
    vague_nouns,
)
from creperie.making.corpus import WordCounts
from creperie.making.edits import CaptionEdit, replaced, scene_of
from creperie.making.exchanging import sort_here
from creperie.making.phrases import lacks_determiner
from creperie.making.plausible import ANIMATE, MADE, TURNED, frames, holder_of, is_listed, is_made
from creperie.making.verbs import is_solid, topics
from creperie.making.wording import reworded

#: WordNet's file of groups.
_GROUP = 14


def other_relations(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that replace a preposition by one that excludes it, or a verb by another with the same arguments."""
    yield from _other_phrases(doc)
    for preposition in (t for t in doc if t.dep_ == "prep"):
        span, place = prepositional_span(preposition)
        if place is not None and not _is_fixed(span):
            old = " ".join(t.lower_ for t in span)
            turned = [w for row in frames()["turned_places"] if old in row["pair"] for w in row["pair"] if w != old]
            for new in dict.fromkeys([*other_prepositions(old, base_of(place)), *turned]):
                if _fits_there(span, new):
                    told = "another place" if new in turned else ""
                    yield replace(replaced(doc, span, new), old=preposition, told=told)
        if preposition.lower_ == "with":
            yield from _without(preposition)
    for verb in actions(doc):
        if not is_bound(verb):
            others, scene = _alternatives(verb), scene_of(doc, verb.i)
            for base in dict.fromkeys([*others, *other_actions(verb)]):
                new = inflected(base, verb.tag_)
                edit = replaced(doc, [verb], new)
                if new not in scene:
                    yield replace(edit, told="another action", old=None) if base in others else edit


def _other_phrases(doc: Any) -> Iterator[CaptionEdit]:
    """Yield edits that replace a phrase for a time, a place or a manner by one that excludes it. For example, `at
    night` becomes `in daylight`.
    """
    lowered = [t.lower_ for t in doc]
    for pair in frames()["turned_phrases"]:
        for old, new in (pair, pair[::-1]):
            parts = old.split()
            for i in (i for i in range(len(doc)) if lowered[i : i + len(parts)] == parts):
                span, seen = doc[i : i + len(parts)], sort_here(doc[max(0, i - 1)])
                if "ground" in parts[-1] and seen not in (*ANIMATE, *MADE):
                    continue  # a mountain in the foreground
                if new.split()[-1] not in lowered and _ends_there(span) and _may_turn(span):
                    yield replace(replaced(doc, span, new), told="it excludes the other", old=None)


def _may_turn(span: Any) -> bool:
    """Return True if a phrase such as `from above` can be replaced by its opposite in this caption."""
    doc, old, before = span.doc, span.text.lower(), span.doc[max(0, span.start - 1)]
    after = doc[span.end].tag_[:2] if span.end < len(doc) else ""
    if old.startswith("from ") and after in ("DT", "PR", "CD"):
        return False  # from behind a curtain
    if old == "from above":
        return base_of(before) in ("light", "illuminate")  # nobody sees a court from below
    if old in ("on one side", "on both sides", "on each side"):
        return all(t.lower_ not in ("other", "another") for t in doc[span.end :])
    if old in ("halfway up", "at the foot of"):
        return any(base_of(t) in frames()["climbed"] for t in doc[span.end :][:4])
    return not (len(span) == 1 and before.tag_ in ("DT", "PRP$", "POS", "JJ"))  # the downhill


def _ends_there(span: Any) -> bool:
    """Return True if a phrase is complete, so that no later word belongs to it. If `of` follows, the phrase must name a
    part of a solid thing, as in `at the edge of a table`.
    """
    doc, end = span.doc, span.end
    after = doc[end] if end < len(doc) else None
    if after is not None and after.lower_ == "of":
        whole = dependent(after, "pobj")
        parts = {*frames()["sides"], "bottom", "foreground", "background", "sides"}
        return whole is not None and span[-1].lower_ in parts and is_solid(base_of(whole))
    return after is None or after.tag_[:2] not in ("NN", "JJ")


def _without(link: Any) -> Iterator[CaptionEdit]:
    """Yield the edit that replaces `with` by `without` and omits the adjectives that follow: `a dog with a red collar`
    becomes `a dog without a collar`.
    """
    doc, thing, owner = link.doc, dependent(link, "pobj"), link.head
    if thing is None or thing.tag_ not in ("NN", "NNS") or owner.tag_[:2] != "NN":
        return
    if base_of(thing) in frames()["needed"]:
        return
    before = [doc[i] for i in range(link.i + 1, thing.i)]
    own = [t for t in before if t.head == thing and not list(t.children)]
    told = [t for t in own if t.dep_ == "amod" or look_of(t) == "colour"]
    article = [t for t in before if t.lower_ in ("a", "an")]
    named = [t for t in own if t.dep_ == "compound" and t not in told]
    counted = thing.tag_ == "NN" and not is_mass(base_of(thing))
    part = is_above("body part", base_of(thing)) or base_of(thing) in (*frames()["parts"], *vague_nouns())
    if len(told) + len(article) + len(named) < len(before) or list(thing.rights):
        return
    after = doc[thing.i + 1].tag_ if thing.i + 1 < len(doc) else "."
    if after in ("CC", ",", "POS") or after[:2] in ("IN", "VB", "TO", "RB", "RP", "WD", "WP"):
        return  # what follows may belong to it
    if counted != bool(article) and not (counted and lacks_determiner(owner)):
        return
    sort = sort_here(thing)
    if owner.dep_ in ("dobj", "pobj") and is_above("implement", base_of(thing)):
        return  # peels an orange with a knife
    worn = sort == "clothing" and base_of(thing) not in frames()["taken_off"]
    if not part and not worn and (sort in ("animal", "person", "place", "handheld", "food") or is_made(thing)):
        changes = {t.i: "" for t in told} | {link.i: "without"}
        yield CaptionEdit(reworded(doc, changes), "with → without", link.i, told="it is not there")


def _alternatives(verb: Any) -> list[str]:
    """Return verbs for other actions with the same object, such as `leave` for `enter` (a shop) and `push` for `ride`
    (a bicycle).
    """
    base, thing = base_of(verb), dependent(verb, "dobj")
    doer = next(iter(doers(verb)), None)
    if thing is None or doer is None or is_compound_head(thing) or verb.tag_ == "VB":
        return []
    busy = any(base_of(v) not in frames()["quiet"] for v in actions(verb.doc) if v != verb)
    around = {t.lower_ for t in verb.doc[verb.i :]}
    if busy or "with" in around or not around.isdisjoint((*frames()["paths"], *frames()["moving"], "mouth", "mouths")):
        return []  # nobody washes a bicycle down a hill, or carries a hat while climbing
    sorts = _doing(doer), sort_here(thing)
    rows = (
        row
        for row, who, fit in frames()["turned"]
        if base in row and sorts[0] in who and is_listed(thing, fit, sorts[1])
    )
    return [new for row in rows for new in row if new != base]


def _doing(noun: Any) -> str:
    """Return the kind of thing that a noun names. For a name, this is "person"."""
    return "person" if sort_here(noun) == "name" else sort_here(noun)


@cache
def other_prepositions(preposition: str, noun: str) -> tuple[str, ...]:
    """Return the prepositions that can replace this one before this noun.

    >>> other_prepositions("behind", "car"), "under" in other_prepositions("on", "table")
    (('in front of',), True)
    """
    rows, kind = frames()["prepositions"].get(preposition, {}), kind_of(noun)
    named = (choices for names, choices in rows.items() if noun in str(frames().get(names, names)).split("|"))
    own = next(named, None)
    if own is None and kind in ("clothing", "food"):
        return ()
    return tuple(own if own is not None else rows.get(kind) or rows.get("*") or ())


def prepositional_span(preposition: Any) -> tuple[list[Any], Any | None]:
    """Return the tokens of a preposition, such as `in front of`, and the noun after it. The noun is replaced by None
    if the phrase does not say where something is (see `_thing`).
    """
    doc, i = preposition.doc, preposition.i
    lowered = [t.lower_ for t in doc]
    first = i - 1 if i and lowered[i - 1] in ("next", "close") else i
    for parts in frames()["spans"]:
        end = first + len(parts)
        if lowered[first:end] == parts:
            inner = (g for t in doc[first:end] for g in t.children if g.dep_ == "pobj" and g.i >= end)
            return list(doc[first:end]), _thing(next(inner, None))
    leads = i and lowered[i - 1] in frames()["leading"]
    return [preposition], None if leads else _thing(dependent(preposition, "pobj"))


def _thing(noun: Any) -> Any | None:
    """Return the noun if it can follow a preposition to say where something is, as `table` can (`on the table`).
    Otherwise return None, for example for `hand`, `air` and `the middle of …`.
    """
    if noun is None or noun.tag_ not in ("NN", "NNS") or noun.lower_ in vague_nouns():
        return None
    joined = dependents(noun, "conj") and noun.head.lower_ != "between"
    return None if joined or has_of(noun) or noun.lower_ in frames()["no_place"] else noun


def _is_fixed(span: Sequence[Any]) -> bool:
    """Return True if a preposition belongs to its verb (`looks at`) or follows an adverb (`up in a tree`)."""
    head = span[0].head
    if span[0].i and span[0].nbor(-1).tag_ in ("RB", "RP"):
        return True
    fixed = head.tag_ == "VBN" and base_of(head) not in frames()["placed"]
    return fixed or base_of(head) in frames()["unturned"]


def _fits_there(span: Sequence[Any], new: str) -> bool:
    """Return True if a thing at the new place could no longer be at the old one, so that the preposition `new` can
    replace the old one.

    Somebody who runs near the ocean does not run in the ocean, so `in` can replace `near`. Somebody in a boat who rows
    stays in it wherever the boat is, so nothing can replace that `in`.
    """
    holder = holder_of(span[0])
    kind = sort_here(holder) if holder is not None else ""
    ground = dependent(span[-1], "pobj")
    if span[0].lower_ == "on" and ground is not None:
        passing = any(t.lower_ in frames()["paths"] for t in span[0].doc)
        if (sort_here(ground) == "animal" or base_of(ground) in frames()["for_one"]) and (passing or new == "behind"):
            return False  # people on horses go past
    elsewhere = any(c.lower_ in frames()["places"] and c not in span for c in span[0].head.rights)
    if new in ("into", "out of", "onto", "off"):
        other = any(t.lower_ in frames()["paths"] and t not in span for t in span[0].doc)
        return not other and base_of(span[0].head) in frames()["motion"]
    if new in ("on", "in", "inside", "on top of"):
        return not elsewhere and kind in (*ANIMATE, "food", "handheld")
    moving = any(base_of(v) not in frames()["static"] for v in actions(span[0].doc))
    return not (moving and span[0].lower_ in ("in", "on", "inside")) and not (elsewhere and moving)


def other_actions(verb: Any) -> list[str]:
    """Return the dictionary forms of the verbs that can replace a verb. They take the same kind of object as this verb,
    or no object if it has none.
    """
    base, doer = base_of(verb), next(iter(doers(verb)), None)
    thing = dependent(verb, "dobj")
    acted = doer if thing is None else thing
    if doer is None or is_compound_head(acted):
        return []
    kind = _doing(acted)
    known = frames()["intransitive" if thing is None else "transitive"].get(kind, ())
    fit = frames()["animals"].get(kind, ()) if thing is not None and sort_here(doer) != "person" else known
    if base not in (*known, *fit):
        return []
    static, around = set(frames()["static"]), {t.lower_ for t in verb.subtree}
    barred = {base} | ({"sleep"} if len(actions(verb.doc)) > 1 else set())  # who also does something else is awake
    settled = any(c.lower_ in ("on", "in", "at", "under", "beside") for c in verb.rights)
    if base == "jump" or not around.isdisjoint((*frames()["paths"], *frames()["moving"])):
        barred |= static
    if thing is None and base in static and settled:
        barred |= set(fit) - static
    return [v for v in fit if v not in barred]


def is_bound(verb: Any) -> bool:
    """Return True if a verb cannot simply be replaced. It may be joined to another verb, or have a dependent that
    another verb might not take, such as a particle, a complement, a body part or an adverb in -ly.
    """
    for c in verb.children:
        goal = c.dep_ == "prep" and c.lower_ in frames()["goals"]  # `throws a ball to a dog`
        purpose = c.dep_ == "advcl" and c.left_edge.tag_ == "TO"  # `jumps to make a hoop`
        if goal or purpose or c.dep_ in frames()["bound"] or (c.dep_ == "advmod" and c.lower_.endswith("ly")):
            return True
    after = verb.doc[verb.i + 1 :]
    if any(t.lower_ in ("toward", "towards") for t in after):
        return True
    parts = any(lemma(t.lower_, "NNS") in frames()["parts"] for t in verb.subtree if t.i > verb.i)
    loose = after and after[0].lower_ in frames()["loose"]
    return bool(parts or loose or verb.dep_ == "conj")


# -- what rules vouch for ---------------------------------------------------------------------------------------------


def is_vouched_relation(old: Any, change: str) -> bool:
    """Return True if rules find a change of relation plausible without consulting the corpus: somebody or something
    could just as well be in the opposite place, move the other way, or sit instead of stand.
    """
    was, _, new = change.lower().partition(" → ")
    if old.tag_[:2] == "VB":
        return _is_vouched_posture(old, lemma(new, old.tag_))
    figure = holder_of(old)
    if old.lower_ in TURNED:
        free = old.lower_ in ("left", "right") or (figure is not None and sort_here(figure) in ANIMATE)
        return free and new == TURNED[old.lower_] and base_of(old.head) in ("be", "stand", "park", "place")
    pairs = [p for p in frames()["turned_places"] if {*p["pair"]} == {was, new}]
    ground = next((g for t in reversed(old.doc[old.i : old.i + 3]) for g in dependents(t, "pobj")), None)
    if not pairs or figure is None or ground is None or base_of(old.head) in ("hide", "peek", "peer", "look"):
        return False
    verb = base_of(old.head) if old.head.tag_[:2] == "VB" else "be"
    if sort_here(figure) == "person" and sort_here(ground) == "furniture" and "behind" in (was, new):
        return False  # who sits behind a table sits in front of it
    return any(
        _is_listed(figure, pair["figures"])
        and _is_listed(ground, pair["grounds"])
        and verb in frames().get(pair["verbs"], (verb,))
        for pair in pairs
    )


def _is_listed(noun: Any, lists: list[str]) -> bool:
    group = topics(base_of(noun))[:1] == (_GROUP,)
    return is_listed(noun, lists, sort_here(noun) or ("person" if group else ""))


def _is_vouched_posture(verb: Any, new: str) -> bool:
    """Return True if the verb `new` (a form of sit, stand or lie) could as well be true of the subject of `verb` in the
    same place.
    """
    doer = next(iter(doers(verb)), None)
    known = frames()["postures"]
    if doer is None or base_of(verb) == "swim" or new not in known.get(base_of(doer), known.get(_doing(doer), ())):
        return False
    places = [g for c in verb.children if c.lower_ in ("in", "into") for g in dependents(c, "pobj")]
    return not any(sort_here(g) == "furniture" or base_of(g) in (*frames()["for_one"], "direction") for g in places)
