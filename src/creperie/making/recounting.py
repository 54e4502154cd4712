"""Other numbers of things: `a farmer` becomes `two farmers`, `two dogs` become `one dog`, and the verbs agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from creperie.lang import (
    COUNTS,
    agreeing,
    in_number,
    is_above,
    is_mass,
    is_reciprocal,
    is_worn,
    kind_of,
    knows_verb,
    lemma,
    reagreed,
)
from creperie.making.atoms import base_of, dependent, dependents, named, objects, sort_of
from creperie.making.corpus import WordCounts
from creperie.making.counting import MEASURES, has_single_thing, is_divided, number_of
from creperie.making.edits import CaptionEdit, replaced
from creperie.making.exchanging import sort_here
from creperie.making.phrases import lacks_determiner, outer
from creperie.making.plausible import MADE, frames, is_made
from creperie.making.verbs import topics
from creperie.making.wording import plain, reworded

_ONE = ("a", "an", "one")
#: Nouns of what is not counted at a glance, by WordNet's file: acts, states, times, feelings, quantities.
_UNCOUNTED = frozenset((4, 7, 9, 10, 11, 12, 14, 15, 19, 21, 22, 23, 24, 25, 26, 28))


def other_counts(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that change a number, or that turn one thing into several."""
    said = {t.lower_ for t in doc}
    for number in (t for t in doc if t.dep_ == "nummod" and t.head.tag_ == "NNS" and not is_divided(doc, t)):
        count, noun = number_of(number), number.head
        paired = not set(frames()["of_pairs"]).isdisjoint(said)
        if 1 < count < 13 and not paired and not is_uncounted(noun):
            words = dict(zip(COUNTS.values(), COUNTS)) if number.text.isalpha() else {k: str(k) for k in range(13)}
            near = dict.fromkeys((count - 1, count + 1, count - 2, count + 2, 2 * count, 3 * count))
            for new in (words[k] for k in near if 1 < k < 13 and words[k] not in said):
                change = f"{number.text} {noun.text} → {new} {noun.text}"
                yield replace(replaced(doc, [number], new), change=change)
            yield from _made_one(doc, number, noun)
            for new in _loosely(count, noun) if number.i == noun.left_edge.i else ():
                told = f"{new.removeprefix('a ')}, not {number.text}"
                change = f"{number.text} {noun.text} → {new} {noun.text}"
                yield replace(replaced(doc, [number], new), change=change, told=told)
    yield from _counted_exactly(doc)
    for noun in objects(doc):
        if (alone := _made_alone(doc, noun)) is not None:
            yield alone
        changes = made_several(doc, noun)
        if changes is None:
            continue
        article = next((c for c in noun.lefts if c.lower_ in _ONE), None)
        place = article.i if article is not None else noun.left_edge.i
        rest = "" if article is not None else f" {changes.get(place) or plain(doc[place])}"
        for word in ("two", "three", "four") if _is_acting(noun) else ("two", "three"):
            if word not in said:
                first = word.capitalize() if doc[place].text[:1].isupper() else word
                edit = f"{article or ''} {noun.text} → {word} {changes[noun.i]}".strip()
                yield CaptionEdit(reworded(doc, changes | {place: first + rest}), edit, place, old=doc[place])
        if article is not None and _is_acting(noun):
            edit, told = f"{article} {noun.text} → {changes[noun.i]}", "several, not one"
            yield CaptionEdit(reworded(doc, changes | {place: ""}), edit, place, told=told, old=doc[place])


def _loosely(count: int, noun: Any) -> tuple[str, ...]:
    """Return inexact words for a number of things, such as `several`, that are wrong for the number `count`."""
    if noun.head.lower_ == "for" or not any(t.tag_[:2] == "VB" for t in noun.doc):
        return ()  # a kayak for two people, a list of ports
    return ("a couple of",) if count > 3 else ("several", "many") if count < 3 else ()


def _counted_exactly(doc: Any) -> Iterator[CaptionEdit]:
    """Yield edits that put a number in place of words such as `several`, `a group of` or `a couple of`."""
    if is_divided(doc) or any(base_of(t) in frames()["of_crowds"] or t.lower_ in frames()["of_crowds"] for t in doc):
        return
    for word in doc:
        noun, span = word.head, doc[word.i : word.i + 1]
        if word.lower_ in frames()["groups"] and (of := dependent(word, "prep")) is not None and of.lower_ == "of":
            noun, span = dependent(of, "pobj"), doc[word.left_edge.i : of.i + 1]
        elif word.lower_ not in frames()["some"] or word.dep_ != "amod":
            continue
        if noun is None or noun.tag_ != "NNS" or is_uncounted(noun, word):
            continue
        if dependents(noun, "conj") or in_number(noun.lower_, True) != noun.lower_:
            continue  # young men and women, cattle
        if set(topics(base_of(noun))[:1]) & _UNCOUNTED or any(t.lower_ == "pair" and t not in span for t in doc):
            continue  # a choice of colours, a pair of skis
        if word.lower_ in ("hundreds", "thousands"):
            continue
        first = span[0]
        changes = dict.fromkeys((t.i for t in span), "") | (dict(reagreed(word, True)) if word != first else {})
        for new in {"couple": ("four", "five"), "pair": ("three", "four", "five")}.get(word.lower_, ("two",)):
            changes[first.i] = new.capitalize() if first.text[:1].isupper() else new
            change = f"{span.text} {noun.text} → {new} {noun.text}"
            yield CaptionEdit(reworded(doc, changes), change, first.i, told=f"{new}, not so many", old=first)
        if word == first:
            yield from _made_one(doc, word, noun)


def is_uncounted(noun: Any, group: Any = None) -> bool:
    """Return True if the number of a thing cannot be changed by itself. This is so for a part of something, one of a
    pair, a time and a measure. It is also so for things that surround another (`trees` in `a deer among trees`), and
    for a thing that is grouped or measured by a noun (`a bowl of plums`), unless that noun is `group`.
    """
    if base_of(noun) in ("clock", "face", "side") and any(t.lower_ == "tower" for t in noun.doc):
        return True  # there may be more behind
    fixed = {*frames()["parts"], *frames()["paired"]}
    if noun.dep_ == "pobj" and outer(noun).head.lower_ in frames()["amid"]:
        return True
    return outer(noun) not in (noun, group) or base_of(noun) in fixed or topics(base_of(noun))[:1] in MEASURES


def made_several(doc: Any, noun: Any) -> dict[int, str] | None:
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
    if has_single_thing(noun) or any(is_above(whole, base, 1) for whole in ("room", "area", "tract")):
        return None
    fixed = (*frames()["parts"], *frames()["many"], *frames()["alone_in_play"])
    if base in fixed or is_divided(doc) or _refers_to_one(doc, noun, acts):
        return None
    after = doc[noun.i + 1 : noun.i + 2]
    tied = any(c.dep_ in ("appos", "poss", "case") or c.lower_ in ("of", "-") for c in noun.children)
    if tied or any(t.tag_[:2] == "NN" or t.text in ("-", "'s", "’s") for t in after):
        return None
    odd = {"most", "more", "first", "second", "same", *frames()["of_one"]}
    if any(c.lower_ in odd or c.tag_ in ("JJS", "JJR") for c in noun.lefts):
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
    return any(t.tag_[:3] == "PRP" if every else t.lower_ in meant for t in doc)


def _may_do_together(noun: Any) -> bool:
    """Return True if what the caption says of one person or thing (`noun`) could be true of several together."""
    doc, agrees = noun.doc, {t.i for t in agreeing(noun)}
    if noun.dep_ in ("nsubj", "nsubjpass") and noun.head.dep_ not in ("ROOT", "relcl"):
        return False
    if any(t.tag_ == "VBZ" and t.i not in agrees and _is_about(t, noun) for t in doc):
        return False
    if sort_here(noun) in ("person", "animal") and any(_is_for_one(t) or _is_bare(t) for t in doc[noun.i + 1 :]):
        return False
    plurals = [t for t in doc[noun.i + 1 :] if t.tag_[:2] == "NN" and t.lower_.endswith("s")]
    stray = [t for t in plurals if t.nbor(-1).tag_ in ("NN", "CC") or t.nbor(-1).dep_ == "compound"]
    stray += [t for t in plurals if t.nbor(-1).tag_ == "JJ" and t.nbor(-2).lower_ == "in" and not is_worn(base_of(t))]
    if any(knows_verb(lemma(t.text, "VBZ")) for t in stray):
        return False  # `leaps into the circle and shoots`, as some parsers tag it
    return not dependents(noun, "conj")


def _has_one(noun: Any) -> bool:
    """Return True if the words after a noun say that it has or wears one thing, as in `a toilet with a seat`."""
    doc, i = noun.doc, noun.i
    link = doc[i + 1].lower_ if i + 2 < len(doc) else ""
    if link not in ("with", "in", "wearing"):
        return False
    first, things = doc[i + 2], _nouns_from(doc[i + 2])
    worn = any(t.tag_ != "NNS" and (is_worn(base_of(t)) or base_of(t) == "top") for t in things)
    return (worn and first.tag_[:2] in ("DT", "NN", "JJ")) or (link == "with" and first.lower_ in _ONE)


def _is_bare(thing: Any) -> bool:
    """Return True for a single piece of clothing without an article, such as `shirt` in `men with checkered shirt`."""
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
    """Return True if the noun may be the subject of this finite verb: the parse gives the verb no other subject."""
    return not any(c.dep_ in ("nsubj", "nsubjpass", "expl") and c != noun and c.tag_[:1] != "W" for c in verb.lefts)


def _may_be_several(noun: Any) -> bool:
    """Return True if the noun could as well be plural, because somebody only holds or sees the thing or stands beside
    it.
    """
    link = noun.head
    if any(c.dep_ in ("relcl", "acl") for c in noun.rights) or sort_of(noun) == "clothing" or dependents(noun, "conj"):
        return False
    if noun.dep_ == "dobj":
        around = any(c.lower_ in ("over", "around", "through") for c in dependents(link, "prep"))
        return lemma(link.text, link.tag_) in frames()["held_together"] and not around
    if noun.dep_ != "pobj" or link.lower_ not in frames()["stand_by"] or base_of(noun) in frames()["for_one"]:
        return False
    counted = sort_here(noun) in ("person", "animal", "vehicle")
    room = link.lower_ == "with" and link.head.tag_[:2] == "NN" and sort_here(link.head) == "place"
    if room:
        return True  # a hotel lobby with a spiral staircase
    return counted and (link.lower_ != "of" or link.head.lower_ == "front")


def _made_alone(doc: Any, noun: Any) -> CaptionEdit | None:
    """Return the edit that turns several people, animals or things into one; None if other words rule this out."""
    sort, base = sort_here(noun), base_of(noun)
    acts = noun.dep_ in ("nsubj", "nsubjpass") and noun.head.dep_ == "ROOT" and not _is_told_of(noun)
    shown = noun.dep_ == "ROOT" and _is_headline(noun) and (is_made(noun) or sort == "food")
    counted = (acts or noun.dep_ == "dobj") and sort in ("person", "animal", "vehicle")
    pairs = frames()["paired"]
    if noun.tag_ != "NNS" or not (shown or counted) or base in pairs or noun.lower_ in pairs:
        return None
    if acts and (is_reciprocal(base_of(noun.head)) or _is_title(noun)):
        return None
    if any(t.dep_ == "pobj" and _is_distributed(t) for t in doc[noun.i + 1 :] if t.tag_ == "NNS" and not [*t.lefts]):
        return None  # people on surfboards
    if topics(base)[:1] == (14,) or (noun.i + 1 < len(doc) and noun.nbor(1).tag_[:2] == "NN"):
        return None  # sports highlights
    if any(t.tag_ == "NNS" and t.i > noun.i and t.head.lower_ in ("with", "in") for t in noun.subtree):
        return None  # fans with painted faces
    many = {*frames()["of_many"], "each", "both", "several", "many", "few", "most", "more", "some", "other", "various"}
    if any(t.tag_[:3] == "PRP" or t.tag_ in ("WP$", "CD") or t.lower_ in many for t in doc):
        return None
    if any(lemma(t.text, "VBG") in (*many, "wear") for t in doc) or is_divided(doc) or sort_of(noun) == "clothing":
        return None
    before = list(noun.lefts)
    plain_words = all(c.dep_ in ("amod", "compound", "nmod") for c in before)
    joint = any(c.lower_ == "of" or c.dep_ in ("conj", "cc", "appos") for c in noun.rights)
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


def _made_one(doc: Any, number: Any, noun: Any) -> Iterator[CaptionEdit]:
    """Yield the edits that turn several things that are counted (`two dogs`) into one (`one dog`, `a lone dog`); none
    if other words need more than one.
    """
    changes = singled(doc, number, noun)
    if changes is None:
        return
    lone = "a lone" if sort_here(noun) in ("person", "animal") else "a single"
    one = "one" if number.text.isalpha() else "1"
    for word in (one, lone) if not _is_told_of(noun) else (one,):
        changes[number.i] = word.capitalize() if number.text[:1].isupper() else word
        change = f"{number.text} {noun.text} → {word} {changes[noun.i]}"
        yield CaptionEdit(reworded(doc, changes), change, number.i, told="one, not several", old=number)


def _is_title(noun: Any) -> bool:
    """Return True if the word after a noun is a person's role before a name, which the parse may have read as a verb:
    `quarterback` in `Bulls quarterback Stone`.
    """
    role, name = (noun.doc[min(noun.i + k, len(noun.doc) - 1)] for k in (1, 2))
    return role.tag_[:2] in ("VB", "NN") and topics(role.lower_)[:1] == (18,) and name.text[:1].isupper()


def _is_told_of(noun: Any) -> bool:
    """Return True if a noun is the subject of a verb that names no visible action: `officials said`, `forks not
    included`.
    """
    verb = noun.head
    if noun.dep_ not in ("nsubj", "nsubjpass"):
        return False
    fragment = verb.tag_ == "VBN" and not dependents(verb, "aux", "auxpass")
    return fragment or base_of(verb) in (*frames()["unseen_acts"], "include")


def singled(doc: Any, number: Any, noun: Any) -> dict[int, str] | None:
    """Return the changes of words that make a counted noun and its verbs singular; None if other words need more than
    one. The number itself stays.
    """
    acts = _is_acting(noun)
    if noun.head.lower_ == "of" and noun.head.head.lower_ not in frames()["sides"] and outer(noun) is noun:
        return None  # a stack of six bowls
    if number.i != noun.left_edge.i or noun.dep_ in ("attr", "npadvmod", "appos") or _needs_several(doc, noun):
        return None
    told = [t for t in doc if t.tag_ in ("VBP", "VB") and not dependents(t, "nsubj", "nsubjpass", "aux")]
    if acts and not (_may_do_alone(noun) if noun.dep_ != "ROOT" else not told):
        return None
    if any(t.lower_ == "one" for t in doc):
        return None
    listed = noun.dep_ == "conj" or dependents(noun, "conj")
    return {noun.i: in_number(plain(noun), False)} | ({} if listed else dict(reagreed(noun, False)))


def _needs_several(doc: Any, noun: Any) -> bool:
    """Return True if other words show that a noun names several things: a word such as `together` or `wrestle`, or a
    plural noun that gives each of them something of its own, such as `bikes` in `two men on bikes`.
    """
    if _tells_several([t for t in doc if t.lower_ not in frames()["some"] or t.head != noun]):
        return True
    if any(c.tag_ in ("JJR", "JJS", "PDT") or c.dep_ in ("appos", "acl:relcl") for c in noun.children):
        return True
    verbs = [noun.head, *(t for t in noun.subtree if t.tag_[:2] == "VB")] if _is_acting(noun) else list(noun.subtree)
    if any(is_reciprocal(lemma(t.text, t.tag_)) for t in verbs if t.tag_[:2] == "VB"):
        return True  # two boys wrestle
    after = [t for t in doc[noun.i + 1 :] if t.tag_ == "NNS" and not dependents(t, "nummod", "det", "poss")]
    return any(_is_distributed(t) for t in after)


def _tells_several(words: Sequence[Any]) -> bool:
    """Return True if one of the words shows that there are several people or things, as `together` and `their` do."""
    many = {*frames()["of_many"], *frames()["plural_words"]}
    beside = any(t.lower_ == "side" and t.i and t.nbor(-1).lower_ == "by" for t in words)
    return beside or any(t.lower_ in many or lemma(t.text, "VBG") in many for t in words)


def _is_distributed(noun: Any) -> bool:
    """Return True if a plural noun names what each of several people or things has, wears or uses: `two men on
    bikes`.
    """
    if noun.dep_ == "dobj" or noun.head.lower_ in ("with", "as", "like") or is_worn(base_of(noun)):
        return True
    sort = sort_here(noun)
    return noun.head.lower_ in ("in", "on", "astride") and (sort in (*MADE, "animal", "person") or not sort)


def _may_do_alone(noun: Any) -> bool:
    """Return True if the plural subject `noun` and its verb can become singular. The verb must agree with the noun
    and say what a single person or thing can do. No other plural may suggest one thing per person (`men in hats ride
    horses`).
    """
    verb = noun.head
    things = [t for t in verb.subtree if t.tag_ == "NNS" and t.i > noun.i and t.dep_ == "dobj" and not list(t.lefts)]
    worn = [t for t in noun.doc[noun.i + 1 :] if t.tag_ == "NNS" and (t in noun.subtree or is_worn(base_of(t)))]
    return verb.tag_[:2] == "VB" and not (things or worn)
