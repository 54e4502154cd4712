"""Numbers that are changed or exchanged: `a farmer` becomes `two farmers`, and its verbs agree; or two numbers change
places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from creperie.lang import (
    COUNTS,
    agreeing,
    in_number,
    is_above,
    is_mass,
    is_worn,
    kind_of,
    knows_verb,
    lemma,
    reagreed,
)
from creperie.making.atoms import base_of, dependents, joined, named, objects, sort_of
from creperie.making.corpus import WordCounts
from creperie.making.edits import CaptionEdit, replaced
from creperie.making.exchanging import ParsedScene, sort_here
from creperie.making.phrases import lacks_determiner, outer
from creperie.making.plausible import frames, is_made
from creperie.making.verbs import topics
from creperie.making.wording import plain, reworded

#: The largest number that changes places with `a`.
MOST_TURNED = 6
_ONE = ("a", "an", "one")
#: WordNet's files of times and quantities.
_MEASURES = ((28,), (23,))
#: Nouns of what is not counted at a glance, by WordNet's file: acts, states, times, feelings, quantities.
_UNCOUNTED = frozenset((4, 7, 9, 10, 11, 12, 14, 15, 19, 21, 22, 23, 24, 25, 26, 28))


def number_of(token: Any) -> int:
    """Return the number that a token stands for; 0 if it is no number."""
    tens = frames()["numbers"]
    return COUNTS.get(token.lower_) or tens.get(token.lower_) or (int(token.text) if token.text.isdecimal() else 0)


# -- other counts ----------------------------------------------------------------------------------------------------


def other_counts(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that change a number, or that turn one thing into two or three."""
    said = {t.lower_ for t in doc}
    for number in (t for t in doc if t.dep_ == "nummod" and t.head.tag_ == "NNS" and not is_divided(doc, t)):
        count, noun = number_of(number), number.head
        fixed = base_of(noun) in (*frames()["parts"], *frames()["paired"]) or topics(base_of(noun))[:1] in _MEASURES
        fixed = fixed or not set(frames()["of_pairs"]).isdisjoint(said)
        if 1 < count < 13 and not fixed and outer(noun) is noun:
            words = dict(zip(COUNTS.values(), COUNTS)) if number.text.isalpha() else {k: str(k) for k in range(13)}
            near = dict.fromkeys((count - 1, count + 1, count - 2, count + 2, 2 * count))
            for new in (words[k] for k in near if 1 < k < 13 and words[k] not in said):
                change = f"{number.text} {noun.text} → {new} {noun.text}"
                yield replace(replaced(doc, [number], new), change=change)
    for noun in objects(doc):
        if (alone := _made_alone(doc, noun)) is not None:
            yield alone
        changes = _made_several(doc, noun)
        if changes is None:
            continue
        article = next((c for c in noun.lefts if c.lower_ in _ONE), None)
        place = article.i if article is not None else noun.left_edge.i
        rest = "" if article is not None else f" {changes.get(place) or plain(doc[place])}"
        for word in ("two", "three") if _is_acting(noun) else ("two",):
            if word not in said:
                first = word.capitalize() if doc[place].text[:1].isupper() else word
                edit = f"{article or ''} {noun.text} → {word} {changes[noun.i]}".strip()
                yield CaptionEdit(reworded(doc, changes | {place: first + rest}), edit, place, old=doc[place])


def _made_several(doc: Any, noun: Any) -> dict[int, str] | None:
    """Return the changes of words that make a noun and its verbs plural; None if other words require the singular."""
    base, acts = base_of(noun), _is_acting(noun)
    articles = [c for c in noun.lefts if c.dep_ in ("det", "nummod", "poss", "predet")]
    listed = not articles and acts and not noun.left_edge.i and _is_headline(noun)
    if noun.tag_ != "NN" or is_mass(base) or not (listed or [c.lower_ in _ONE for c in articles] == [True]):
        return None
    sort = sort_here(noun)
    seen = sort in ("person", "animal", "vehicle") or sort_of(noun) in ("vehicle", "handheld", "gear", "food")
    if not (seen or is_made(noun)) or set(topics(base)[:1]) & _UNCOUNTED or "place" in (sort, sort_of(noun)):
        return None
    if base in (*frames()["parts"], *frames()["many"]) or is_divided(doc) or _refers_to_one(doc, noun, acts):
        return None
    after = doc[noun.i + 1 : noun.i + 2]
    tied = any(c.dep_ in ("appos", "poss", "case") or c.lower_ in ("of", "-") for c in noun.children)
    if tied or any(t.tag_[:2] == "NN" or t.text in ("-", "'s", "’s") for t in after):
        return None
    odd = {"most", "more", "first", "second", "same", *frames()["of_one"]}
    numbered = (c for c in noun.lefts if c.tag_ == "CD" and c.lower_ not in _ONE)
    if any(numbered) or any(c.lower_ in odd or c.tag_ in ("JJS", "JJR") for c in noun.lefts):
        return None
    if _has_one(noun) or not (_may_do_together(noun) if acts else _may_be_several(noun)):
        return None
    changes = {noun.i: in_number(plain(noun), True)}
    return changes | (dict(reagreed(noun, True)) if acts else {})


def _is_acting(noun: Any) -> bool:
    there = noun.dep_ == "attr" and any(c.dep_ == "expl" for c in noun.head.lefts)
    return there or noun.dep_ in ("nsubj", "nsubjpass", "ROOT")


def _is_headline(noun: Any) -> bool:
    """Return True if a caption has no finite verb and begins with this thing: `Silk tie with a paisley pattern`."""
    doc = noun.doc
    finite = ("VBZ", "VBP", "VBD", "MD")
    singles = [
        t for t in doc if t.dep_ in ("pobj", "conj") and t.tag_ == "NN" and not is_mass(t.lower_) and t.i > noun.i
    ]
    if any(lemma(t.text, "VBN") == "wear" or t.lower_ == "as" for t in doc):
        return False
    if any(lacks_determiner(t) and t.head.lower_ in ("with", "for", "and") for t in singles):
        return False  # a teapot with bamboo handle
    return all(
        t.tag_ not in finite and t.text not in (",", ":", ";") and (t.tag_ not in ("NNP", "NNPS") or not t.i)
        for t in doc
    )


def _refers_to_one(doc: Any, noun: Any, acts: bool) -> bool:
    """Return True if another word may refer to the thing, so that the thing must stay single. If the thing does
    something (`acts`), any pronoun counts as such a word.
    """
    if any(t.lower_ in (*frames()["of_one"], "one") and t not in noun.lefts for t in doc):
        return True
    meant = ("it", "its", "itself", "they", "them", "their", "which", "whose")
    every = acts or sort_here(noun) in ("person", "animal")
    return any(t.tag_[:3] == "PRP" or t.tag_ == "WP$" if every else t.lower_ in meant for t in doc)


def _may_do_together(noun: Any) -> bool:
    """Return True if several people or things could do together what the caption says of a single one (`noun`)."""
    doc, agrees = noun.doc, {t.i for t in agreeing(noun)}
    if noun.dep_ in ("nsubj", "nsubjpass") and noun.head.dep_ not in ("ROOT", "relcl"):
        return False
    if any(t.tag_ == "VBZ" and t.i not in agrees and _is_about(t, noun) for t in doc):
        return False
    if noun.dep_ == "ROOT" and any(doc[i].tag_ == "VBZ" and doc[i].dep_ in ("conj", "dobj", "advcl") for i in agrees):
        return False  # `holding kitchen utensils and`, as some parsers tag it
    if sort_here(noun) in ("person", "animal") and any(_is_for_one(t) or _is_bare(t) for t in doc[noun.i + 1 :]):
        return False
    plurals = [t for t in doc[noun.i + 1 :] if t.tag_[:2] == "NN" and t.lower_.endswith("s")]
    stray = [t for t in plurals if t.nbor(-1).tag_ in ("NN", "CC") or t.nbor(-1).dep_ == "compound"]
    if any(knows_verb(lemma(t.text, "VBZ")) for t in stray):
        return False  # `leaps into the circle and shoots`, as some parsers tag it
    return not dependents(noun, "conj") and noun.dep_ != "conj"


def _has_one(noun: Any) -> bool:
    """Return True if the phrase after a noun says that it has or wears one thing: `a toilet with a seat`."""
    doc, i = noun.doc, noun.i
    link = doc[i + 1].lower_ if i + 2 < len(doc) else ""
    if link not in ("with", "in", "wearing"):
        return False
    first, things = doc[i + 2], _nouns_from(doc[i + 2])
    worn = any(t.tag_ != "NNS" and (is_worn(base_of(t)) or base_of(t) == "top") for t in things)
    return (worn and first.tag_[:2] in ("DT", "NN", "JJ")) or (link == "with" and first.lower_ in _ONE)


def _is_bare(thing: Any) -> bool:
    """Return True for a single piece of clothing without an article: `men with glasses and checkered shirt`."""
    worn = thing.tag_ == "NN" and thing.dep_ in ("pobj", "dobj", "conj") and is_worn(base_of(thing))
    return worn and not any(c.dep_ in ("det", "poss", "nummod", "conj") for c in thing.children)


def _nouns_from(first: Any) -> list[Any]:
    """Return the nouns of the phrase whose first word is `first`, even if the parse attaches them elsewhere."""
    doc, end = first.doc, first.i + 1
    while end + 1 < len(doc) and (
        doc[end].tag_[:2] in ("NN", "JJ", "CD", "RB")
        or doc[end].tag_ in ("VBN", "HYPH")
        or (doc[end].tag_ in ("VBD", "VBG") and doc[end + 1].tag_[:2] == "NN")  # a flying disc
    ):
        end += 1
    return [t for t in doc[first.i : end] if t.tag_[:2] == "NN"]


def _is_for_one(article: Any) -> bool:
    """Return True if the article begins the name of a thing that only one person or animal at a time can wear, use or
    play with.
    """
    things, before = _nouns_from(article), article.nbor(-1)
    done = before.tag_[:2] == "VB"
    if article.lower_ not in _ONE and not (article.lower_ == "the" and done):
        return False
    if any(t.tag_ == "NNS" for t in things):
        return article.lower_ != "the"  # `a harness looks at`, as some parsers tag it
    if done and lemma(before.text, before.tag_) in frames()["jointly"]:
        return False
    beside = ("of", "at", *(word for word in frames()["stand_by"] if word not in ("with", "from")))
    return before.lower_ not in beside and not all(_is_shared(t, done) for t in things)


def _is_shared(thing: Any, done: bool) -> bool:
    """Return True if several people or animals can share a thing. If `done`, the thing is the object of their verb
    (they play a game); otherwise they are in, on or at it (they sit on a bench).
    """
    base, sort = base_of(thing), sort_here(thing)
    names = {base, named(thing).replace(" ", "")}  # a skate board is a skateboard
    if not names.isdisjoint(frames()["for_one"]) or is_worn(base) or kind_of(base) in ("handheld", "gear", "food"):
        return False
    if sort in ("person", "animal", "vehicle", "furniture"):
        return not done
    built = any(is_above(whole, base) for whole in ("structure", "way", "area")) or base in frames()["for_many"]
    return sort in ("place", "plant") or built or {6, 13}.isdisjoint(topics(base)[:5])


def _is_about(verb: Any, noun: Any) -> bool:
    """Return True if the noun may be the subject of this finite verb, whatever the parse says."""
    return not any(c.dep_ in ("nsubj", "nsubjpass", "expl") and c != noun and c.tag_[:1] != "W" for c in verb.lefts)


def _may_be_several(noun: Any) -> bool:
    """Return True if somebody could hold, see or stand beside several of these things instead of one."""
    link = noun.head
    if any(c.dep_ in ("relcl", "acl") for c in noun.rights) or sort_of(noun) == "clothing" or dependents(noun, "conj"):
        return False
    if noun.dep_ == "dobj":
        around = any(c.lower_ in ("over", "around", "through") for c in dependents(link, "prep"))
        return lemma(link.text, link.tag_) in frames()["held_together"] and not around
    near = link.lower_ in frames()["stand_by"] or (link.lower_ == "of" and link.head.lower_ == "front")
    if noun.dep_ != "pobj" or not near or base_of(noun) in frames()["for_one"]:
        return False
    counted = sort_here(noun) in ("person", "animal", "vehicle")
    room = link.lower_ == "with" and link.head.tag_[:2] == "NN" and sort_here(link.head) == "place"
    if room and (sort_of(noun) in ("furniture", "handheld") or is_made(noun)):
        return True  # a hotel lobby with a spiral staircase
    return (
        counted
        and (link.lower_ != "of" or link.head.lower_ == "front")
        and link.head.lower_ not in ("turn", "dress", "look")
    )


def _made_alone(doc: Any, noun: Any) -> CaptionEdit | None:
    """Return the edit that turns several people, animals or things into one; None if other words rule this out."""
    sort, base = sort_here(noun), base_of(noun)
    acts = noun.dep_ in ("nsubj", "nsubjpass") and noun.head.dep_ == "ROOT"
    shown = noun.dep_ == "ROOT" and _is_headline(noun) and (is_made(noun) or sort == "food")
    counted = (acts or noun.dep_ == "dobj") and sort in ("person", "animal", "vehicle")
    pairs = frames()["paired"]
    if noun.tag_ != "NNS" or not (shown or counted) or base in pairs or noun.lower_ in pairs or sort == "place":
        return None
    many = {*frames()["of_many"], "each", "both", "several", "many", "few", "most", "more", "some", "other", "various"}
    if any(t.tag_[:3] == "PRP" or t.tag_ in ("WP$", "CD") or t.lower_ in many for t in doc):
        return None
    if any(lemma(t.text, "VBG") in (*many, "wear") for t in doc) or is_divided(doc) or sort_of(noun) == "clothing":
        return None
    before = list(noun.lefts)
    plain_words = all(c.dep_ in ("amod", "compound", "nmod") and c.tag_ not in ("JJR", "JJS", "PDT") for c in before)
    joint = any(c.lower_ == "of" or c.dep_ in ("conj", "cc", "appos") for c in noun.rights) or noun.dep_ == "conj"
    if not plain_words or joint or (acts and not _may_do_alone(noun)):
        return None
    first = doc[min([noun.i, *(c.left_edge.i for c in before)])]
    word = "lone" if sort in ("person", "animal") else "single"
    changes = {noun.i: in_number(plain(noun), False)} | (dict(reagreed(noun, False)) if acts else {})
    start = changes.get(first.i, plain(first))
    article = "A" if first.text[:1].isupper() and not first.i else "a"
    changes[first.i] = f"{article} {word} {start}"
    change = f"{noun.text} → a {word} {base}"
    return CaptionEdit(reworded(doc, changes), change, noun.i, told="one, not several", old=noun)


def _may_do_alone(noun: Any) -> bool:
    """Return True if the verb of the plural subject `noun` can become singular: it agrees with the noun, it is nothing
    that only several do together, and no plural suggests one thing per person (`men in hats ride horses`).
    """
    verb, agrees = noun.head, {t.i for t in agreeing(noun)}
    finite = [
        t for t in verb.subtree if t.tag_ == "VBP" and t.i not in agrees and not dependents(t, "nsubj", "nsubjpass")
    ]
    bare = verb.tag_ in ("VBP", "VB") and not dependents(verb, "aux", "auxpass") and verb.i not in agrees
    things = [t for t in verb.subtree if t.tag_ == "NNS" and t.i > noun.i and t.dep_ == "dobj" and not list(t.lefts)]
    worn = [t for t in noun.doc[noun.i + 1 :] if t.tag_ == "NNS" and (t in noun.subtree or is_worn(base_of(t)))]
    known = verb.tag_[:2] == "VB" and lemma(verb.text, "VBP") not in frames()["of_many"]
    return known and not (bare or finite or things or worn)


# -- exchanged counts ------------------------------------------------------------------------------------------------


def swapped_counts(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the numbers of two things, as in `one bottle and three glasses`."""
    scene = ParsedScene(doc)
    counted = [(t, noun) for t in doc if (noun := _counted(t)) is not None]
    for (one, left), (other, right) in combinations(counted, 2):
        values = [1 if t.lower_ in ("a", "an") else number_of(t) for t in (one, other)]
        if values[0] == values[1] or is_divided(doc, one, other) or max(values) > 3 * min(values) + 3:
            continue
        if left.lower_ == right.lower_ and left.nbor(-1).lower_ == right.nbor(-1).lower_:
            continue
        changes = {one.i: plain(other), other.i: plain(one)}
        if 1 in values:
            if not _may_be_numbered(scene, left, right, values):
                continue
            changes |= _renumbered(left, values[1] > 1) | _renumbered(right, values[0] > 1)
        told = "each has the number of the other"
        yield CaptionEdit(reworded(doc, changes), f"{one.text} ↔ {other.text}", one.i, (left, right), told=told)


def _counted(number: Any) -> Any | None:
    """Return the noun to which a number or `a` belongs; None if there is none."""
    doc, i = number.doc, number.i
    near = {t.lower_ for t in doc[max(0, i - 2) : i]}
    if near & {"least", "than", "-", "about", "some", "nearly", "number", "including", "up", "under", "over"}:
        return None
    if i + 1 < len(doc) and doc[i + 1].text == "-":
        return None
    if number.lower_ in ("a", "an"):
        noun = number.head if number.dep_ == "det" and number.head.tag_ == "NN" else None
    elif (
        number.tag_ != "CD"
        or not (number.text.isalpha() or number.text.isdecimal())
        or any(c.i < i for c in number.children)
    ):
        return None
    else:
        noun = number.head if number.dep_ in ("nummod", "quantmod") and number.head.i > i else None
    if noun is None:
        return None
    measured = base_of(noun) in frames()["paired"] or is_mass(base_of(noun)) or outer(noun) is not noun
    return None if measured or noun.tag_ not in ("NN", "NNS") or topics(base_of(noun))[:1] in _MEASURES else noun


def _may_be_numbered(scene: ParsedScene, left: Any, right: Any, values: list[int]) -> bool:
    """Return True if a single thing and several other things can exchange their numbers: the two are listed side by
    side or one acts on the other, and nothing else in the caption depends on their numbers.
    """
    doc = scene.doc
    if "CD" in (left.tag_, right.tag_):
        return False
    refers = (t.tag_ in ("PRP", "PRP$", "WP$", "JJR", "JJS") or t.lower_ in ("ones", "both", "each") for t in doc)
    ones = (t.lower_ == "one" and t.dep_ not in ("nummod", "quantmod") for t in doc)
    many = (t.lower_ in frames()["of_many"] or lemma(t.text, "VBG") in frames()["of_many"] for t in doc)
    alone = (c.lower_ in frames()["of_one"] for t in (left, right) for c in t.lefts)
    if any((*refers, *ones, *many, *alone)):
        return False
    if joined(left, right) or (right.dep_ == "appos" and right.head == left):
        first = left
        while first.dep_ == "conj":
            first = first.head
        parts = first.dep_ == "pobj" and first.head.lower_ == "with"  # a pen with three nibs and a cartridge
        return max(values) <= (2 if parts else MOST_TURNED) and not any(c.dep_ in ("prep", "acl") for c in left.rights)
    links = scene.between(left, right)
    acts = any(not f.is_relation and {a, b} <= {"agent", "patient", "recipient"} for f, a, b in links)
    plain_right = not [c for c in right.rights if c.dep_ in ("prep", "acl", "relcl")]
    alike = sort_here(left) == sort_here(right) in ("person", "animal")
    return acts and alike and plain_right


def _renumbered(noun: Any, plural: bool) -> dict[int, str]:
    if plural == (noun.tag_ == "NNS"):
        return {}
    alone = not dependents(noun, "conj") and noun.dep_ != "conj"
    return {noun.i: in_number(plain(noun), plural)} | (dict(reagreed(noun, plural)) if alone else {})


# -- numbers that other words depend on ------------------------------------------------------------------------------


def is_divided(doc: Any, *numbers: Any) -> bool:
    """Return True if other words depend on the numbers, as in `six dogs, one brown and one grey` or `the older of the
    two`.
    """
    counts = [t for t in doc if t.tag_ == "CD" and t not in numbers]
    if any(map(picks_again, doc)) or any(t.tag_ in ("JJR", "JJS", "JJ") and _stands_for_one(t) for t in doc):
        return True
    values = [number_of(t) for t in (*numbers, *counts)]
    total = max(values, default=0)
    parted = 2 * total == sum(values) and len(values) > 1 and total in values[: len(numbers)]
    loose = [t for t in counts if t.head.tag_[:2] != "NN" and t.text.isalpha()]
    return parted or (len(numbers) < 2 and bool(loose)) or any(t.lower_ == "one" for t in loose)


def picks_again(token: Any) -> bool:
    """Return True for a word that picks out some of the things mentioned before, such as `a third`, `the others` or
    `both`.
    """
    after = token.nbor(1).tag_[:2] if token.i + 1 < len(token.doc) else ""
    before = token.nbor(-1).lower_ if token.i else ""
    ordinal = token.lower_ in frames()["ordinals"] and (after not in ("NN", "JJ") or before == "a")
    if token.tag_ in ("JJR", "JJS") and before == "the" and after not in ("NN", "JJ", "IN"):
        return True  # washes the feet of the youngest
    part = token.lower_ in ("half", "rest") and after not in ("IN", ".", ",")
    return ordinal or (token.lower_ in frames()["divided"] and token.tag_[:2] != "VB" and not part)


def _stands_for_one(adjective: Any) -> bool:
    """Return True for an adjective that picks out one of several things, as in `the upper one` or `the younger of
    them`.
    """
    after = adjective.nbor(1) if adjective.i + 1 < len(adjective.doc) else adjective
    picked = after.lower_ in ("one", "ones") or (adjective.tag_ != "JJ" and after.tag_[:1] not in ("N", "J"))
    return bool(picked and adjective.i and adjective.nbor(-1).lower_ in ("the", "a", "an"))
