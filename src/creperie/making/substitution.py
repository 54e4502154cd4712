"""Words that could stand in the place of others in a caption, and would make it false.

Things are replaced by others of their class, attributes by others of their dimension, verbs by others that take the
same arguments and exclude each other, prepositions by others that fit what they govern. What a caption corpus knows
about neighbours and scenes decides which of these people would say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from creperie.lang import inflected, lemma, words
from creperie.making.atoms import POSTURES, actions, attributes, is_compound_head, objects, prepositions, vague_nouns
from creperie.making.data import read_data
from creperie.making.lexicon import age_of, dimension_of, excludes, is_mass, kind_of, listed_for, numbered, things
from creperie.making.replacements import contrasts
from creperie.making.slots import Slots
from creperie.making.source import SourceCaption
from creperie.making.verbs import is_measure

#: A token, its replacement in dictionary form, and the replacement as it fits the token.
Replacement = tuple[Any, str, str]
#: How much worse than the word it replaces a word may fit the scene (mean log ratio of shared captions).
WORSE_SCENE = 0.05
#: Captions that two words would share by chance, from which on sharing none says that they do not go together.
MISSED = 0.5
#: How much more often than by chance two things may share captions before both may be in the picture.
BOTH_THERE = 1.0
#: How seldom a word may share captions with the verb or noun that governs it.
WORST_GOVERNED = 0.0
_SINGULAR = frozenset(("a", "an", "one", "each", "every", "another"))
_SPANS = {("in", "front", "of"): 3, ("on", "top", "of"): 3, ("next", "to"): 2, ("inside", "of"): 2}
_BESIDE, _WITHIN = frozenset(("near", "by", "beside", "next to")), frozenset(("in", "on", "inside", "on top of"))


class Substitutes:
    """Finds replacements with the help of a corpus."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self._known: dict[str, list[str]] = {}

    # -- things ----------------------------------------------------------------------------------------------------

    def objects(self, source: SourceCaption, doc: Any) -> Iterator[Replacement]:
        said = [(t, lemma(t.text, t.tag_)) for t in doc]
        present = {base for t, base in said if t.tag_.startswith("NN")}
        present |= {w for other in source.others for w in words(other)}
        pronoun = any(t.lower_ in read_frames()["gendered"] for t in doc)
        for noun in objects(doc):
            base = lemma(noun.text, noun.tag_)
            if not listed_for(base) or noun.dep_ == "attr" or any(b == base and _refers(t, noun) for t, b in said):
                continue
            if (
                is_compound_head(noun)
                or _names_part(noun)
                or (pronoun and base in things()["gendered"])
                or _has_inborn(noun, base)
            ):
                continue
            grown = any(c.lower_ in ("little", "small", "tiny") for c in noun.lefts)
            tag = "NNS" if noun.tag_ == "NNS" else "NN"
            for new in self._rivals(base):
                if (grown and age_of(new) == "adult") or (pronoun and new in things()["gendered"]):
                    continue  # no `little man`
                if new not in present and numbered(new, "NNS") not in present and _same_count(noun, base, new):
                    fitted = numbered(new, tag)
                    if self.slots.fits_slot(noun, fitted, doc) and self.fits(noun, fitted, doc):
                        yield noun, new, like(noun, fitted)

    def _rivals(self, base: str) -> list[str]:
        """Things of its class that are not there where it is."""
        if base not in self._known:
            listed = (w for w in listed_for(base) if excludes(base, w))
            self._known[base] = [w for w in listed if self.slots.fits_scene(w, [base]) <= BOTH_THERE]
        return self._known[base]

    def fits(self, token: Any, new: str, doc: Any) -> bool:
        """Whether people say a word here: between these neighbours, and in such a scene."""
        slots = self.slots
        if not slots.knows_enough:
            return True
        parts = words(new)
        before = doc[token.i - 1].lower_ if token.i else "<s>"
        described = token.i > 0 and doc[token.i - 1].tag_ in ("JJ", "VBN", "VBG", "NN")
        kind = kind_of(lemma(parts[-1], "NN"))
        comes_so = kind not in ("place", "food", "") and dimension_of(before) in ("colour", "size")
        if described and not comes_so and not slots.follows(before, parts[0]):
            return False
        if slots.seen[parts[-1]] <= slots.captions // 600:
            return not slots.seen[token.lower_]  # too few to know what is said of it
        governor = _governor(token)
        scene = scene_of(doc, token.i)
        if governor is not None:
            name, old = governor.lower_, token.lower_
            alone = slots.shared(old, name) > 2 and not slots.shared(parts[-1], name)
            if alone or slots.fits_scene(parts[-1], [name]) < WORST_GOVERNED:
                return False
            if slots.seen[name] < 3 and kind_of(lemma(old, token.tag_)) != "person":
                return False  # nothing is known about what is done to it
        least = 0.05 if kind == "place" else MISSED
        missed = (slots.expected(parts[-1], w) > least and not slots.shared(parts[-1], w) for w in scene)
        if slots.is_alien(parts[-1], scene) or any(missed):
            return False
        least = min(0.0, slots.fits_scene(token.lower_, scene)) - WORSE_SCENE
        return slots.fits_scene(parts[-1], scene) >= least

    # -- attributes ------------------------------------------------------------------------------------------------

    def attributes(self, source: SourceCaption, doc: Any) -> Iterator[Replacement]:
        present = {t.lower_ for t in doc}
        told = {w for other in source.others for w in words(other)}
        for adjective in attributes(doc):
            old = adjective.lower_
            noun = adjective.head if adjective.dep_ == "amod" else None
            if noun is not None and (noun.tag_ not in ("NN", "NNS") or lemma(noun.text, noun.tag_) in vague_nouns()):
                continue
            if noun is not None and things()["inborn"].get(lemma(noun.text, noun.tag_)) == old:
                continue
            for new in contrasts("attributes", old):
                if new not in present and new not in told and self._described(new, old, noun):
                    yield adjective, new, like(adjective, new)
        for number in (t for t in doc if t.dep_ == "nummod" and t.lower_ in _numbers() and t.head.tag_ == "NNS"):
            for new in _numbers():
                if new not in present and new not in told:
                    yield number, new, like(number, new)

    def _described(self, new: str, old: str, noun: Any) -> bool:
        """Whether a thing is called so: people must have done it, but for colours of what comes in all colours."""
        if noun is None:
            return True
        base, name = lemma(noun.text, noun.tag_), noun.lower_
        if dimension_of(old) == "material" and self.slots.knows_enough:
            return self.slots.follows(new, name) > 0
        if dimension_of(new) == "colour" and kind_of(base) == "animal" and new not in things()["coats"]:
            return False
        if dimension_of(old) == "colour" and kind_of(base) in ("vehicle", "clothing", "furniture", "handheld", "gear"):
            return True
        if not self.slots.knows_enough or self.slots.seen[name] < 5:
            return kind_of(base) not in ("person", "animal", "food", "place") or dimension_of(old) in ("size", "age")
        return self.slots.follows(new, name) > 0

    # -- relations -------------------------------------------------------------------------------------------------

    def relations(self, source: SourceCaption, doc: Any) -> Iterator[Replacement]:
        for preposition in prepositions(doc):
            span, place = prepositional_span(preposition)
            if place is None or any(c.dep_ == "conj" for c in place.children):
                continue
            said = " ".join(t.lower_ for t in span)
            base = lemma(place.text, place.tag_)
            others = for_preposition(said, base)
            rests = bool(others) and _only_place(preposition)
            for new in others:
                if new in _WITHIN and said in _BESIDE and not rests:
                    continue
                if self._placed(new, place, span[0]) and _can_be_there(preposition.head, new, base):
                    yield span, new, like(span[0], new)
        for verb in actions(doc):
            for new in self.for_verb(verb):
                fitted = inflected(new, verb.tag_)
                if _moves_alike(verb, new) and self._goes_on(verb, fitted) and self.fits(verb, fitted, doc):
                    yield verb, new, like(verb, fitted)

    def _goes_on(self, verb: Any, new: str) -> bool:
        """Whether people say another verb before what follows this one: `sits on`, never `sleeps onstage`."""
        inside = ("det", "amod", "poss", "nummod")
        after = [t.lower_ for t in verb.doc[verb.i + 1 : verb.i + 4] if t.dep_ not in inside][:1]
        return not self.slots.knows_enough or all(self.slots.follows(new, w) > 0 for w in after if w.isalpha())

    def _placed(self, new: str, place: Any, first: Any) -> bool:
        """Whether people say that preposition of that thing, and after that verb."""
        if not self.slots.knows_enough:
            return True
        if place.tag_ == "NNS" and new in ("in", "inside"):
            return False
        said, before = new.split(), first.nbor(-1) if first.i else first
        if before.tag_ in ("RB", "RP"):
            return False  # `up in a tree`
        after_verb = before.tag_[:2] != "VB" or self.slots.follows(before.lower_, said[0]) > 0
        return after_verb and self.slots.follows(said[len(said) // 2], place.lower_) > 0

    def for_verb(self, verb: Any) -> list[str]:
        """Verbs that take the same kind of object (or none), and that do not happen at the same time."""
        base = lemma(verb.text, verb.tag_)
        things_ = [c for c in verb.children if c.dep_ == "dobj"]
        links = (c for holder in (verb, *things_) for c in holder.rights if c.dep_ == "prep")
        nothing = any(c.lower_ == "no" or c.dep_ == "conj" for thing in things_ for c in thing.children)
        nothing |= bool(things_) and any(c.lower_ in read_frames()["paths"] for c in verb.rights)
        if is_bound(verb) or nothing or any(_holds_part(c) for c in links):
            return []
        frames = read_frames()
        doer = _doer(verb)
        if doer is None:
            return []
        if things_:
            kind = kind_of(lemma(things_[0].text, things_[0].tag_)) if not is_compound_head(things_[0]) else ""
            animal = kind_of(lemma(doer.text, doer.tag_)) == "animal"
            members = frames["animals" if animal else "transitive"].get(kind, ())
            seen = [v for v in members if self._takes(v, verb, things_[0])]
        else:
            kind = kind_of(lemma(doer.text, doer.tag_)) if not is_compound_head(doer) else ""
            hoofed = lemma(doer.text, doer.tag_) in frames["hoofed"]  # no horse sits
            members = [v for v in frames["intransitive"].get(kind, ()) if not hoofed or v not in ("sit", "lay")]
            seen = [v for v in members if self._takes(v, verb, doer)]
        own = frames["own"]  # only kites fly
        seen = [v for v in seen if not things_ or v not in own or lemma(things_[0].text, "NNS") in own[v]]
        return [v for v in seen if v != base and not compatible(v, base)] if base in members_of(kind, things_) else []

    def _takes(self, new: str, verb: Any, thing: Any) -> bool:
        """Whether the corpus has this verb with this object in one caption, in any form."""
        name = thing.lower_
        if not self.slots.knows_enough or self.slots.seen[name] < 5:
            return not self.slots.knows_enough
        return any(self.slots.shared(f, name) for f in (new, *(inflected(new, t) for t in ("VBG", "VBZ", "VBP"))))


def _only_place(link: Any) -> bool:
    """Whether somebody rests, and nothing else says where: not `in a field near a house`."""
    head = link.head if link.head.lower_ not in ("next", "close") else link.head.head
    others = [c for t in (head, *head.children) for c in t.children if c.dep_ == "prep" and c != link]
    rests = head.tag_[:2] == "NN" or lemma(head.text, head.tag_) in POSTURES - {"walk"}
    return rests and not any(c.lower_ in ("in", "on", "at", "through") for c in others)


def _holds_part(link: Any) -> bool:
    """`in her arms`, `on the head`: it goes with few verbs."""
    return any(lemma(c.lower_, c.tag_) in read_frames()["parts"] for c in link.subtree)


def is_bound(verb: Any) -> bool:
    """Whether something hangs on a verb that another verb would not take: a particle, a complement, another verb."""
    if any(c.dep_ in ("prt", "xcomp", "ccomp", "dative", "acomp", "oprd", "agent", "conj") for c in verb.children):
        return True
    if any(c.dep_ == "advcl" and any(g.tag_ == "TO" for g in c.children) for c in verb.children):
        return True  # `jumps to make a hoop`
    if any(c.dep_ == "prep" and all(g.dep_ == "pcomp" for g in c.children) for c in verb.rights):
        return True  # `walking by eating`
    after = verb.doc[verb.i + 1].lower_ if verb.i + 1 < len(verb.doc) else ""
    return bool(verb.dep_ == "conj" or after in ("out", "up", "off", "away", "over", "back", "down"))


def turns(verb: str, first: str, second: str) -> bool:
    """Whether either could do it to the other; nobody is carried by a child."""
    frames = read_frames()
    return verb in frames["both_ways"] and (verb not in frames["grown"] or age_of(first) == age_of(second) != "")


def members_of(kind: str, objects_: Sequence[Any]) -> Sequence[str]:
    frames = read_frames()["transitive" if objects_ else "intransitive"]
    members: Sequence[str] = frames.get(kind, ())
    return members


def _can_be_there(holder: Any, new: str, place: str) -> bool:
    """Furniture and buildings are on or in nothing, food is on or under something, who rides does so on something,
    nobody is under a chair, and after a participle `by` tells who did it."""
    frames = read_frames()
    if holder.lower_ == "next":
        holder = holder.head
    if holder.tag_.startswith("VB"):
        base = lemma(holder.text, holder.tag_)
        ashore = new != "beside" or place not in frames["waters"].split("|") or base in frames["ashore"]
        unturned = frames["unturned"].get(new, frames["unturned"]["*"])
        if not ashore or (new == "by" and holder.tag_ == "VBN") or base in unturned:
            return False
        holder = _doer(holder) or next((c for c in holder.lefts if c.dep_ == "nsubjpass"), holder)
    kind = kind_of(lemma(holder.text, holder.tag_))
    rides = place in frames["rides"].split("|") and holder.dep_ == "nsubj"
    if kind == "person" and (rides or (new == "under" and place not in frames["roofs"])):
        return False
    if kind not in ("person", "animal") and place in frames["climbed"]:
        return False
    if kind == "animal" and new in ("in", "on") and place in frames["cars"].split("|"):
        return False
    if kind in ("food", "handheld"):
        return new not in ("behind", "by", "near", "in front of", "on")
    if (kind_of(place) == "animal" or place in frames["rides"].split("|")) and new in ("on", "on top of"):
        return False
    return kind not in ("furniture", "vehicle", "place") or new not in ("on", "in", "inside", "on top of")


def prepositional_span(preposition: Any) -> tuple[list[Any], Any | None]:
    """The words of a preposition (`in front of` is one) and the noun that it governs, if that is a thing."""
    doc, i = preposition.doc, preposition.i
    for parts, length in _SPANS.items() if preposition.lower_ in ("in", "on", "next", "inside") else ():
        if tuple(t.lower_ for t in doc[i : i + length]) == parts:
            inner = next(
                (g for t in doc[i : i + length] for g in t.children if g.dep_ == "pobj" and g.i >= i + length), None
            )
            return list(doc[i : i + length]), _thing(inner)
    governed = next((c for c in preposition.children if c.dep_ == "pobj"), None)
    before = doc[i - 1].lower_ if i else ""
    if before == "next" and preposition.lower_ == "to":
        return list(doc[i - 1 : i + 1]), _thing(governed)
    if before in ("next", "close", "front", "top", "out", "away", "off"):
        return [preposition], None
    return [preposition], _thing(governed)


def _thing(noun: Any) -> Any | None:
    """The noun, if it names a thing that can be above or below another; not `the middle of`, `one hand`, `the air`."""
    if noun is None or noun.tag_ not in ("NN", "NNS") or noun.lower_ in vague_nouns():
        return None
    if any(c.dep_ == "prep" and c.lower_ == "of" for c in noun.rights):
        return None
    return noun


@cache
def for_preposition(said: str, noun: str) -> tuple[str, ...]:
    """Prepositions that cannot hold where this one does, for this kind of place.

    >>> for_preposition("behind", "car"), for_preposition("on", "street")
    (('in front of',), ('beside',))
    """
    frames = read_frames()
    rows = frames["prepositions"].get(said, {})
    kind = kind_of(noun)
    for names, found in rows.items():
        if noun in str(frames.get(names, names)).split("|"):
            return tuple(found)
    if kind in ("clothing", "food", ""):
        return ()
    return tuple(rows.get(kind) or rows.get("*") or ())


def read_frames() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_data("frames")
    return table


@cache
def compatible(verb: str, other: str) -> bool:
    """Whether one can do both at once, so that the other verb may be true too."""
    return any(verb in group and other in group for group in read_frames()["compatible"])


_GROUNDS = frozenset(["furniture", "handheld", "gear", "animal"])


def _moves_alike(verb: Any, new: str) -> bool:
    """No one lies down a hill, kneels in the air or sleeps on skis: paths take motion, furniture takes rest."""
    said = _said_with(verb)
    if not said.isdisjoint(read_frames()["moving"]):
        return False
    if any(c.dep_ == "advmod" and c.lower_.endswith("ly") for c in verb.children):
        return False  # `quickly pushes`: the manner is the verb's own
    wet = not said.isdisjoint(read_frames()["waters"].split("|"))
    if (new == "swim" and not wet) or (wet and new in ("sleep", "lie", "sit", "lay", "kneel")):
        return False
    if new in read_frames()["static"] and not said.isdisjoint(read_frames()["paths"]):
        return False
    goes = new not in read_frames()["static"] and new not in ("jump", "dance")
    for link in (c for c in verb.rights if c.dep_ in ("prep", "prt", "advmod")):
        rests = lemma(verb.text, verb.tag_) in read_frames()["static"]
        if link.lower_ in ("on", "in") and rests and new not in read_frames()["static"]:
            return False
        for place in (c for c in link.children if c.dep_ == "pobj"):
            if goes and kind_of(lemma(place.text, place.tag_)) in _GROUNDS:
                return not any(c.dep_ == "prep" for c in verb.rights) or any(c.dep_ == "dobj" for c in verb.children)
    return True


@lru_cache(maxsize=1)
def _said_with(verb: Any) -> set[str]:
    return {t.lower_ for t in verb.subtree}


@cache
def _numbers() -> tuple[str, ...]:
    return tuple(things()["dimensions"]["number"])


def _doer(verb: Any) -> Any | None:
    if verb.dep_ in ("acl", "relcl"):
        return verb.head
    return next((c for c in verb.lefts if c.dep_ == "nsubj"), None)


def _governor(token: Any) -> Any | None:
    """The verb or noun that a word depends on, through its preposition if there is one."""
    head = token.head.head if token.dep_ == "pobj" else token.head
    return head if head != token and head.tag_[:2] in ("NN", "VB") else None


@lru_cache(maxsize=2)
def scene_of(doc: Any, without: int) -> list[str]:
    """The other words that tell the scene: nouns and verbs. People are seen with anything, but skiers are not."""
    found = (t for t in doc if t.tag_[:2] in ("NN", "VB") and t.dep_ not in ("aux", "auxpass") and t.i != without)
    said = (t.lower_ for t in found if t.text.isalpha())
    return [w for w in said if kind_of(w) != "person" or not age_of(lemma(w, "NNS"))]


def _refers(token: Any, noun: Any) -> bool:
    """`another dog`, or a second `the shirt`: what was said of one thing is not said of another."""
    before = {c.lower_ for c in token.lefts}
    return bool(before & {"another", "other"}) or (token.i > noun.i and bool(before & {"the", "his", "her", "its"}))


def _names_part(noun: Any) -> bool:
    """`slice of pizza`, `the back of a truck`: what is measured or a part cannot go without its whole."""
    of = [c for c in noun.children if (c.dep_ == "prep" and c.lower_ == "of") or c.lower_ == "no"]
    if noun.dep_ == "pobj" and noun.head.lower_ == "of" and kind_of(lemma(noun.text, noun.tag_)) == "place":
        return True  # `a ball of snow`
    return bool(of) or (is_measure(noun.lower_) and noun.dep_ != "dobj")


def _has_inborn(noun: Any, base: str) -> bool:
    """`green grass`: its colour would stay behind and give the replacement away."""
    return any(c.lower_ == things()["inborn"].get(base) for c in noun.lefts)


def _same_count(noun: Any, base: str, new: str) -> bool:
    """A countable thing for a countable one, a substance for a substance."""
    if is_mass(new) == is_mass(base):
        return True
    article = {c.lower_ for c in noun.lefts if c.dep_ in ("det", "nummod", "poss")}
    return is_mass(base) and bool(article & _SINGULAR) and not is_mass(new)


def like(token: Any, word: str) -> str:
    """A word with the capital of the token that it replaces."""
    return word[:1].upper() + word[1:] if token.text[:1].isupper() else word
