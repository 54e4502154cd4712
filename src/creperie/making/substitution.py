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
from creperie.making.atoms import POSTURES, Form, forms, is_compound_head, phrase, vague_nouns
from creperie.making.data import read_data
from creperie.making.lexicon import age_of, dimension_of, excludes, is_mass, kind_of, listed_for, numbered, things
from creperie.making.replacements import contrasts
from creperie.making.slots import MISSED, Company, Slots
from creperie.making.source import SourceCaption
from creperie.making.verbs import is_measure

#: A token, its replacement in dictionary form, and the replacement as it fits the token.
Replacement = tuple[Any, str, str]
#: A thing, its plural, and the one of these that fits.
Rival = tuple[str, str, str]
#: How much worse than the word it replaces a word may fit the scene (mean log ratio of shared captions).
WORSE_SCENE = 0.05
#: How much more often than by chance two things may share captions before both may be in the picture.
BOTH_THERE = 1.0
_SINGULAR = frozenset(("a", "an", "one", "each", "every", "another"))
_SPANS = (["in", "front", "of"], ["on", "top", "of"], ["next", "to"], ["inside", "of"])
_SECOND = frozenset(parts[1] for parts in _SPANS)
_BESIDE, _WITHIN = frozenset(("near", "by", "beside", "next to")), frozenset(("in", "on", "inside", "on top of"))


class Substitutes:
    """Finds replacements with the help of a corpus. What it asks the corpus for again and again is remembered."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        kept = lru_cache(maxsize=1 << 15)
        self._rivals, self._beside = kept(self._find_rivals), kept(self._judge_beside)
        self._qualities, self._places = kept(self._find_qualities), kept(self._find_places)
        self._doings = kept(self._find_doings)
        self._company = kept(lambda w: Company(slots, w, 0.05 if kind_of(lemma(w, "NN")) == "place" else MISSED))

    def __reduce__(self) -> tuple[Any, ...]:
        return Substitutes, (self.slots,)

    # -- things ----------------------------------------------------------------------------------------------------

    def objects(self, source: SourceCaption, doc: Any) -> Iterator[Replacement]:
        said = forms(doc)
        present: set[str] = set()
        for i, form in enumerate(said):
            if not form.is_object or form.dep == "attr" or not listed_for(form.base):
                continue
            noun = doc[i]
            start = phrase(noun)[0]
            rivals = self._rivals(form.base, form.tag, said[start - 1].lower if start else "<s>")
            if rivals and not present:
                present = {w for other in source.others for w in words(other)}
                present.update(f.base for f in said if f.tag.startswith("NN"))
            fitting = self.fitting(noun, [r for r in rivals if present.isdisjoint(r[:2])], doc)
            if not fitting or is_compound_head(noun) or _names_part(noun) or _has_inborn(noun, form.base):
                continue
            if any(f.base == form.base and _refers(doc[k], noun) for k, f in enumerate(said)):
                continue
            banned = things()["gendered"] if any(f.lower in read_frames()["gendered"] for f in said) else ()
            grown = any(c.lower_ in ("little", "small", "tiny") for c in noun.lefts)
            for new, _, fitted in fitting if form.base not in banned else ():
                if new not in banned and not (grown and age_of(new) == "adult") and _same_count(noun, form.base, new):
                    yield noun, new, like(noun, fitted)  # no `little man`

    def _find_rivals(self, base: str, tag: str, before: str) -> list[Rival]:
        """Things of its class that are not there where it is, and that people say behind the word before its phrase."""
        listed = [w for w in listed_for(base) if excludes(base, w) and self._company(w).mean([base]) <= BOTH_THERE]
        found = ((w, numbered(w, "NNS"), numbered(w, tag)) for w in listed)
        return [r for r in found if self.slots.fits_after(before, r[2])]

    def fitting(self, token: Any, rivals: list[Rival], doc: Any) -> list[Rival]:
        """Those of some words that people say here: between these neighbours, and in such a scene."""
        slots, said, i = self.slots, forms(doc), token.i
        if not rivals or not slots.knows_enough:
            return rivals
        described = said[i - 1].lower if i and said[i - 1].tag in ("JJ", "VBN", "VBG", "NN") else ""
        left = [(r, company) for r in rivals if (company := self._beside(described, r[2])) is not None]
        old, governor = said[i].lower, _governor(token) if left else None
        if governor is not None:
            name = governor.lower_
            alone = slots.shared(old, name) > 2
            unknown = slots.seen[name] < 3 and kind_of(said[i].base) != "person"  # what is done to it
            bad = [unknown or c.mean([name]) < 0 or (alone and not slots.shared(c.word, name)) for _, c in left]
            left = [one for one, never in zip(left, bad) if one[1].is_rare or not never]
        if not left:
            return []
        told = [f.lower for k, f in enumerate(said) if f.tells and k != i and f.lower in slots.seen and _tells(f.lower)]
        least = min(0.0, self._company(old).mean(told)) - WORSE_SCENE
        return [r for r, c in left if (not slots.seen[old] if c.is_rare else c.fit(told) >= least)]  # rare: not known

    def _judge_beside(self, described: str, new: str) -> Company | None:
        """What is known of a word, if people say it behind this adjective or noun (if there is one)."""
        parts = words(new)
        kind = kind_of(lemma(parts[-1], "NN"))
        comes_so = kind not in ("place", "food", "") and dimension_of(described) in ("colour", "size")
        if described and not comes_so and not self.slots.follows(described, parts[0]):
            return None
        return self._company(parts[-1])

    # -- attributes ------------------------------------------------------------------------------------------------

    def attributes(self, source: SourceCaption, doc: Any) -> Iterator[Replacement]:
        said = forms(doc)
        adjectives = [doc[i] for i, form in enumerate(said) if form.is_attribute]
        numbers = [doc[i] for i, form in enumerate(said) if form.dep == "nummod" and form.lower in _numbers()]
        told = {w for other in source.others if adjectives or numbers for w in words(other)}
        told.update([form.lower for form in said] if adjectives or numbers else ())
        for adjective in adjectives:
            noun = said[adjective.head.i] if adjective.dep_ == "amod" else None
            named = (noun.lower, noun.tag) if noun is not None else ("", "")
            for new in self._qualities(said[adjective.i].lower, *named):
                if new not in told:
                    yield adjective, new, like(adjective, new)
        for number in (t for t in numbers if t.head.tag_ == "NNS"):
            yield from ((number, new, like(number, new)) for new in _numbers() if new not in told)

    def _find_qualities(self, old: str, name: str, tag: str) -> list[str]:
        """Attributes that exclude this one, and that such a thing (if one is named) has."""
        base = lemma(name, tag) if name else ""
        if name and (tag not in ("NN", "NNS") or base in vague_nouns() or things()["inborn"].get(base) == old):
            return []
        return [w for w in contrasts("attributes", old) if not name or self._described(w, old, name, base)]

    def _described(self, new: str, old: str, name: str, base: str) -> bool:
        """Whether a thing is called so: people must have done it, but for colours of what comes in all colours."""
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
        said = forms(doc)
        for i, form in enumerate(said):
            if form.tag == "IN" and form.dep == "prep":
                yield from self._elsewhere(doc[i])
        for i, form in enumerate(said):
            if form.is_action:
                verb = doc[i]
                doings = [v for v in self._for_verb(verb, form) if self._goes_on(v[2], said[i + 1 : i + 4])]
                doings = self.fitting(verb, doings, doc)
                for new, _, fitted in doings if doings and not _is_tied(verb) else ():
                    if _moves_alike(verb, new):
                        yield verb, new, like(verb, fitted)

    def _elsewhere(self, preposition: Any) -> Iterator[Replacement]:
        """Other places than the one that a preposition tells."""
        span, place = prepositional_span(preposition)
        if place is None or not any(c.dep_ == "pobj" for c in preposition.rights):
            return
        said, base = " ".join(t.lower_ for t in span), lemma(place.text, place.tag_)
        others = self._places(said, place.lower_, place.tag_)
        rests = bool(others) and _only_place(preposition)
        for new in others if not any(c.dep_ == "conj" for c in place.children) else ():
            if new in _WITHIN and said in _BESIDE and not rests:
                continue
            if self._follows(new, span[0]) and _can_be_there(preposition.head, new, base):
                yield span, new, like(span[0], new)

    def _goes_on(self, new: str, after: Sequence[Form]) -> bool:
        """Whether people say another verb before what follows this one: `sits on`, never `sleeps onstage`."""
        follows = next((f.lower for f in after if f.dep not in ("det", "amod", "poss", "nummod")), "")
        return not self.slots.knows_enough or not follows.isalpha() or self.slots.follows(new, follows) > 0

    def _find_places(self, said: str, name: str, tag: str) -> list[str]:
        """Prepositions that exclude this one, and that people say of this thing."""
        found, many = for_preposition(said, lemma(name, tag)), ("in", "inside") if tag == "NNS" else ()
        if not self.slots.knows_enough:
            return list(found)
        return [w for w in found if w not in many and self.slots.follows(w.split()[len(w.split()) // 2], name) > 0]

    def _follows(self, new: str, first: Any) -> bool:
        """Whether people say that preposition after that verb."""
        if not self.slots.knows_enough:
            return True
        before = first.nbor(-1) if first.i else first
        if before.tag_ in ("RB", "RP"):
            return False  # `up in a tree`
        return before.tag_[:2] != "VB" or self.slots.follows(before.lower_, new.split()[0]) > 0

    def _for_verb(self, verb: Any, form: Form) -> list[Rival]:
        """Verbs that take the same kind of object (or none), and that do not happen at the same time."""
        doer, thing = _doer(verb), next((c for c in verb.children if c.dep_ == "dobj"), None)
        if doer is None:
            return []
        acted = thing if thing is not None else doer
        kind, base = kind_of(lemma(acted.text, acted.tag_)), lemma(doer.text, doer.tag_)
        found = self._doings(form.base, form.tag, kind, acted.lower_, base, thing is not None)
        return found if found and not is_compound_head(acted) else []

    def _find_doings(self, base: str, tag: str, kind: str, name: str, doer: str, acts: bool) -> list[Rival]:
        """Verbs beside this one that the corpus has with such an object, or with such a doer if there is no object."""
        frames = read_frames()
        if base not in frames["transitive" if acts else "intransitive"].get(kind, ()):
            return []
        if acts:
            members = frames["animals" if kind_of(doer) == "animal" else "transitive"].get(kind, ())
            own = frames["own"]  # only kites fly
            members = [v for v in members if v not in own or lemma(name, "NNS") in own[v]]
        else:
            hoofed = doer in frames["hoofed"]  # no horse sits
            members = [v for v in frames["intransitive"][kind] if not hoofed or v not in ("sit", "lay")]
        found = [v for v in members if v != base and not compatible(v, base) and self._takes(v, name)]
        return [(v, v, inflected(v, tag)) for v in found]

    def _takes(self, new: str, name: str) -> bool:
        """Whether the corpus has this verb with this thing in one caption, in any form."""
        if not self.slots.knows_enough or self.slots.seen[name] < 5:
            return not self.slots.knows_enough
        return any(self.slots.shared(f, name) for f in (new, *(inflected(new, t) for t in ("VBG", "VBZ", "VBP"))))


def _is_tied(verb: Any) -> bool:
    """Whether what a verb has with it goes with few others."""
    objects_ = [c for c in verb.children if c.dep_ == "dobj"]
    links = (c for holder in (verb, *objects_) for c in holder.rights if c.dep_ == "prep")
    nothing = any(c.lower_ == "no" or c.dep_ == "conj" for thing in objects_ for c in thing.children)
    nothing |= bool(objects_) and any(c.lower_ in read_frames()["paths"] for c in verb.rights)
    return nothing or is_bound(verb) or any(_holds_part(c) for c in links)


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
    said = [form.lower for form in forms(doc)]
    for parts in _SPANS if not _SECOND.isdisjoint(said[i + 1 : i + 2]) else ():
        end = i + len(parts)
        if said[i:end] == parts:
            inner = (g for t in doc[i:end] for g in t.children if g.dep_ == "pobj" and g.i >= end)
            return list(doc[i:end]), _thing(next(inner, None))
    governed = next((c for c in preposition.children if c.dep_ == "pobj"), None)
    before = said[i - 1] if i else ""
    if before == "next" and said[i] == "to":
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


@cache
def _tells(word: str) -> bool:
    """Whether a noun or verb tells the scene. People are seen with anything, but skiers are not."""
    return kind_of(word) != "person" or not age_of(lemma(word, "NNS"))


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
