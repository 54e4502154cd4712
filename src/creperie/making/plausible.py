"""The plausibility of foils that are made by rules: would a person expect to see this?

A rule vouches for a change that is always plausible, whatever else the caption says: another colour of a man-made
thing, another number, a woman for a man, two people of equal rank in each other's roles. Any other foil needs a
corpus in which its new words stand side by side, or a judge (a model that is asked). With `--plausible no`, foils
that have neither are made as well, as a separate kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from creperie.lang import age_of, doers, is_above, kind_of, knows_verb, lemma, things, whole_preposition
from creperie.making.atoms import base_of, look_of, look_of_word, name_words, sort_of
from creperie.making.classes import is_class_mate
from creperie.making.data import read_data
from creperie.making.verbs import is_name, topics

ANIMATE = frozenset(("person", "animal"))
#: Kinds of manufactured things, which come in all colours, sizes and patterns.
MADE = frozenset(("vehicle", "gear", "furniture", "handheld", "clothing"))
_ARTEFACT, _ANIMAL, _PERSON, _GROUP = 6, 5, 18, 14
#: WordNet's files of things besides artefacts that come in several sizes: food, places, things of nature, plants.
_SIZED = ((13,), (15,), (17,), (20,))
#: Dimensions in which rules know what a thing may be like.
_SEEN_AT_ONCE = frozenset(("colour", "size", "pattern", "shape"))
#: What a person does with an animal, although animals also do it alone or with each other.
_LEADING = frozenset(("walk", "run", "lead", "jump"))
TURNED = {"left": "right", "right": "left", "above": "below", "below": "above", "upper": "lower", "lower": "upper"}


def frames() -> Any:
    return read_data("frames")


# -- replacements ----------------------------------------------------------------------------------------------------


def is_vouched(kind: str, old: Any, change: str) -> bool:
    """Return True if rules alone find it plausible to replace the token `old` as in `change` (`dog → cat`). The corpus
    is not consulted.
    """
    what, new = kind.rpartition("-")[2], change.lower().partition(" → ")[2]
    if what == "count":
        return True
    if what == "object":
        return _is_vouched_thing(old, new)
    return what == "attribute" and _is_vouched_look(old, new)


def _is_vouched_thing(old: Any, new: str) -> bool:
    """Return True if rules alone find it plausible to replace the noun `old` by the noun `new`. The nouns may name two
    people who differ only in age, sex or family role. They may also name two things of one class, if everything that
    the caption says fits both.
    """
    base, singular, general = base_of(old), lemma(new, "NNS"), {*frames()["anybody"]}
    if {base, singular} & general:
        return {base, singular} <= general and not general_pair(old.doc)
    beneath = any(t.lower_ in ("under", "underneath", "beneath", "below") for t in old.doc)
    if kind_of(base) in ("animal", "vehicle") and beneath:
        return False  # a giraffe under an elephant
    return is_class_mate(old, singular) and not _is_told_by_place(old, base, singular)


def _is_told_by_place(old: Any, base: str, new: str) -> bool:
    """Return True if the rest of a caption shows that the thing must be `base` and not `new`, or the reverse. This is
    so for snow in winter sports, an animal in or beside water, a field where people play, and a seat of several people.
    """
    about = {base_of(t) for t in old.doc if t != old}
    many = [t for t in old.doc if t.tag_[:2] == "NN" and sort_of(t) in ANIMATE]
    crowded = len(many) > 1 or any(t.tag_ == "NNS" for t in many)
    if crowded and new in frames()["for_one"] and base not in frames()["for_one"]:
        return True
    if kind_of(base) == kind_of(new) == "place" and (
        any(kind_of(w) == "gear" for w in about)
        or not about.isdisjoint((*frames()["sports"].split("|"), "player", "goal", "goalie", "play"))
    ):
        return True
    wintry = any(word.startswith(tuple(frames()["wintry"])) for word in about)
    wet = bool(about & {*frames()["waters"].split("|"), "shore", "beach", "swim"})
    return (wintry and "snow" in (base, new)) or (wet and kind_of(base) == "animal")


def may_both_hold(old: Any, new: str) -> bool:
    """Return True if a caption may stay true when the noun `new` replaces `old`, because the picture may show both
    things. A statue may stand in a fountain, and a list such as `a bathroom with a toilet` or `a van and two cars
    outside a bank` need not be complete.
    """
    if any({base_of(old), new} == {*pair} for pair in frames()["together"]):
        return True
    first, joined = old, any(c.dep_ == "conj" for c in old.children)
    while first.dep_ == "conj" and first.head.tag_[:2] == "NN":
        first, joined = first.head, True
    link = first.head
    room = (
        first.dep_ == "pobj"
        and link.lower_ == "with"
        and is_listed(link.head, ["rooms", "<room", "<structure", "<area"])
    )
    told = any(t.tag_[:2] == "VB" and t.lower_ != "left" for t in old.doc)
    side = old.doc[old.i + 1 : old.i + 4].text.lower() in ("on the left", "on the right")
    listed = not told and (side or (joined and first.dep_ == "ROOT"))
    return room or (listed and sort_of(old) not in ANIMATE)


def fits_only_old(old: Any, new: str) -> bool:
    """Return True if `new` cannot replace a noun because other words fit only the old one. They show its meaning
    (`chinos in sand`), its purpose (`a children's bedroom`) or its colour (`a red fish`).
    """
    if any(c.dep_ == "poss" and c.tag_[:2] == "NN" for c in old.children):
        return True
    before = old.nbor(-1) if old.i else old
    if before.lower_ == "in" and old.tag_ == "NN":
        worn = before.i and is_above("clothing", base_of(before.nbor(-1)), 1)
        if worn or not any(t.tag_[:2] == "VB" for t in old.doc):
            return True
    coloured = (c.lower_ for c in old.lefts if look_of(c) == "colour")
    return kind_of(new) == "animal" and any(w not in (*things()["coats"], "grey") for w in coloured)  # red turtles


def is_furnished(doc: Any) -> bool:
    """Return True if a caption names furniture, food or other things that show what kind of room the scene is in."""
    words = map(base_of, doc)
    return any(kind_of(w) in ("furniture", "food") or w in frames()["of_rooms"] for w in words)


def general_pair(doc: Any) -> bool:
    """Return True if a caption names two people by one word, such as `couple` or `twins`."""
    return any(t.lower_ in ("couple", "twin", "twins", "parents") for t in doc)


def _is_vouched_look(old: Any, new: str) -> bool:
    if old.lower_ in TURNED:
        return True
    worn = old.dep_ == "pobj" or (old.i > 0 and old.nbor(-1).lower_ == "in" and look_of(old) == "colour")
    noun, look = named_noun(old) or old.head, look_of_word(new, "JJ")
    if old.tag_[:3] == "PRP":
        return True
    own = base_of(noun)
    coloured = look == "colour" or new in ("open", "closed")  # a yellow jacket is a wasp
    named = is_name(f"{old.lower_} {own}") and look not in ("age", "size") and not (coloured and kind_of(own) in MADE)
    if (not worn and noun.tag_[:2] != "NN") or named:
        return False
    if new in other_states(old.lower_, noun):
        return True
    if look == "age":
        person = sort_of(noun) in ANIMATE or topics(own)[:1] == (_PERSON,)
        return person and {old.lower_, new} <= {"young", "old", "elderly"}
    if look == "colour":
        if worn:
            return True  # a hat in cream
        bred = sort_of(noun) == "animal" and bool(name_words(noun))  # polar bears
        if own in frames()["named_by_colour"] or is_above("body covering", own) or bred:
            return False  # the yellow card, orange fur
        return old.tag_[:2] == "JJ" and (is_made(noun, 5) or sort_of(noun) == "animal" or is_above("flower", own))
    if look in ("material", "fabric"):
        doubled = any(c != old and look_of(c) in ("material", "fabric") for c in noun.lefts)  # a tartan wool scarf
        return not doubled and may_be_of(noun, new)
    if {old.lower_, new} == {"open", "closed"}:
        within = noun.dep_ == "pobj" and noun.head.lower_ in ("in", "inside", "into", "through", "from", "of", "with")
        return is_made(noun) and not within  # a cat in an open suitcase
    sized = topics(own)[:1] in _SIZED and new in frames()["sizes"][0][0] + frames()["sizes"][0][1]
    return look in _SEEN_AT_ONCE and (is_made(noun) or sort_of(noun) in ANIMATE or sized)


def is_made(noun: Any, senses: int = 1) -> bool:
    """Return True if a noun names a man-made thing: the word lists say so, or its first sense in WordNet is an
    artefact. For a noun of unknown kind, it is enough that one of its first `senses` senses is an artefact.
    """
    base, sort = base_of(noun), sort_of(noun)
    return sort in MADE or _ARTEFACT in topics(base)[: 1 if sort else senses]


def named_noun(modifier: Any) -> Any | None:
    """Return the noun that `modifier`, a word before it, describes. The parse is not relied on: the noun is the last
    of the nouns and adjectives that directly follow the modifier. Return None if that word is not a noun, or if the
    modifier belongs to the word before it, as in `blood orange`.
    """
    doc, end = modifier.doc, modifier.i + 1
    while end < len(doc) and doc[end].tag_[:2] in ("JJ", "NN") and doc[end].text.isalpha():
        acts = doc[end].text.endswith("ing") and knows_verb(lemma(doc[end].text, "VBG"))
        if acts and end > modifier.i + 1 and doc[end - 1].tag_[:2] == "NN":
            break  # a red shirt playing, as some parsers tag it
        end += 1
    noun, before = doc[end - 1], doc[max(0, modifier.i - 1)]
    joint = modifier.i > 0 and before.tag_[:2] in ("NN", "JJ") and before.lower_ not in frames()["shades"]
    torn = before.lower_ == "in" or (joint and is_name(f"{before.lower_} {modifier.lower_}"))  # in white, blood orange
    named = noun.tag_ in ("NN", "NNS") or (noun.tag_ == "NNP" and noun.is_lower)
    return noun if noun.i > modifier.i and named and not torn else None


def is_listed(noun: Any, lists: list[str], sort: str = "") -> bool:
    """Return True if an entry of `lists` covers the noun. An entry is a kind of noun, the name of a word list, a single
    word, a hypernym in WordNet (written `<room`), or `made` for all man-made things. `sort` is the kind of the noun; if
    it is empty, the kind is looked up.
    """
    words = {w for name in lists for w in _listed_words(name)}
    if (sort or sort_of(noun)) in lists or base_of(noun) in words or ("made" in lists and is_made(noun)):
        return True
    return any(w[:1] == "<" and is_above(w[1:], base_of(noun), 1) for w in words)


def _listed_words(name: str) -> list[str]:
    entry = frames().get(name, name)
    return entry.split("|") if isinstance(entry, str) else list(entry)


def other_states(state: str, noun: Any) -> list[str]:
    """Return states that exclude `state` but are possible for the same thing, such as *closed* for an *open* door."""
    if is_explained(state, noun):
        return []
    filled = any(c.lower_ in ("of", "with") for c in noun.rights) and state in frames()["filled"]
    pairs = (p for p, fit in frames()["states"] if not filled and state in p and is_listed(noun, fit))
    return [other for pair in pairs for other in pair if other != state]


def is_explained(state: str, noun: Any) -> bool:
    """Return True if the opposite of `state` would not fit. `older` may compare a woman with a girl in the same
    caption, and `light` may describe the weight of a thing.
    """
    if state in ("older", "younger"):
        return any(t.tag_[:2] == "NN" and t != noun and sort_of(t) == "person" for t in noun.doc)
    return state == "light" and is_listed(noun, ["weighed", "vehicle"])


def may_be_of(noun: Any, stuff: str) -> bool:
    """Return True if the thing that a noun names is often made of the material `stuff`, according to frames.json."""
    return stuff in frames()["stuffs"] and is_listed(noun, [frames()["stuffs"][stuff]])


def holder_of(link: Any) -> Any | None:
    """Return the noun that a prepositional phrase locates: the word on which the preposition depends or, if that is a
    verb, the subject of the verb. Return None if the verb has no subject.
    """
    head = whole_preposition(link)[1]
    return next(iter(doers(head)), None) if head.tag_.startswith("VB") else head


# -- exchanges -------------------------------------------------------------------------------------------------------


#: Classes of things by their size → words above their nouns in WordNet.
_SIZES = (
    (("vehicle", "craft"), 4),
    (("furniture", "white goods", "piano", "stove"), 3),
    (("container", "tool", "tableware", "utensil", "publication", "plaything", "electronic equipment", "food"), 1),
    (("plant", "vascular plant"), 2),
)


def size_of(noun: Any) -> int:
    """Return the size of a thing, from 1 (held in a hand) to 4 (a vehicle); 0 for other things."""
    sort, base = sort_of(noun), base_of(noun)
    if is_above("floor cover", base, 1) or is_above("step", base, 1):
        return 0
    if is_above("cushion", base, 1) or is_above("bedclothes", base, 1):
        return 1
    if sort in ("handheld", "food", "clothing", "furniture", "vehicle"):
        return {"furniture": 3, "vehicle": 4}.get(sort, 1)
    if not set(topics(base)[:1]) <= {6, 13, 20}:
        return 0
    return next((size for names, size in _SIZES if any(is_above(name, base, 1) for name in names)), 0)


def are_of_one_size(left: Any, right: Any) -> bool:
    """Return True if two things are about equally large, so that each could take the other's place. Food changes places
    only with food, and clothes only with clothes.
    """
    sorts = [sort_of(t) if sort_of(t) in ("food", "clothing") else "" for t in (left, right)]
    return sorts[0] == sorts[1] and size_of(left) == size_of(right) > 0


def may_be_done(
    verbs: list[str], nouns: list[str], sorts: tuple[str, str], many: tuple[bool, bool], said: Iterable[str]
) -> bool:
    """Return True if each of two people or animals, named by `nouns`, could do to the other what the verbs say. `many`
    says for each noun whether it names several, and `said` holds the words before the nouns.

    Two people could do anything for which neither needs an office, such as that of a judge. For an adult and a child,
    or a group and one person, actions that need an adult's strength are excluded as well. Animals could do only what
    frames.json lists for them. If one of the two is helpless, the result is False.
    """
    if not {*frames()["helpless"]}.isdisjoint(map(str.lower, said)) or any(
        age_of(noun) == "baby" or any(is_above(word, noun, 1) for word in frames()["weak"]) for noun in nouns
    ):
        return False
    acts = {verb.removeprefix("to ").split()[0] for verb in verbs}
    if "animal" in sorts:
        alike = sorts[0] == sorts[1]
        return bool(acts or alike) and acts <= {*frames()["of_animals"]} and (alike or acts.isdisjoint(_LEADING))
    if not acts.isdisjoint(frames()["one_way"]):
        return False
    ages = {"" if noun in frames()["ageless"] else age_of(noun) or "adult" for noun in nouns} - {""}
    if len(ages) > 1 and any(is_above("worker", noun, 1) or is_above("professional", noun, 1) for noun in nouns):
        return acts <= {*frames()["of_animals"]}  # no child examines a dentist
    return acts.isdisjoint(frames()["grown"]) or (len(ages) < 2 and many[0] == many[1])
