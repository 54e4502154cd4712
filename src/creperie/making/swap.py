"""Two atoms of one kind exchanged: nouns, adjectives, noun phrases. By default only where either order makes sense."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from creperie.lang import be, inflected, lemma, open_wordnet
from creperie.making.atoms import attributes, compound, joined, objects, phrase
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.checks import vocabulary_kept
from creperie.making.lexicon import age_of, dimension_of, excludes, gender_of, is_mass, kind_of, things
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.phrases import is_plural, lacks_determiner
from creperie.making.plausibility import even_chance, gaps, with_gap, within_band
from creperie.making.scene import describes_same_scene
from creperie.making.slots import Slots, corpus_slots
from creperie.making.source import Captions, SourceCaption
from creperie.making.substitution import read_frames, turns
from creperie.making.wording import Piece, plain, written

Pair = tuple[Any, Any]
#: Clothes and gear change owners, food and vehicles places; a place and a thing never change roles.
_MOVABLE = frozenset(("person", "animal", "vehicle", "gear", "furniture", "handheld", "food", "clothing"))
#: What of two words changes places, as `describes_same_scene` calls it.
EXCHANGED = {"swap-object": "names", "swap-phrase": "phrases", "swap-attribute": "attributes"}
#: Attributes are exchanged within one dimension, so that fewer of their swaps are unlikely.
SOFTENED = {"swap-object": 8.0, "swap-phrase": 5.0, "swap-attribute": 4.5}
#: Things that are made, so that they may be old, new or striped.
_MADE = frozenset(("vehicle", "gear", "furniture", "handheld", "clothing"))
_SIZES = ({"small", "little", "tiny"}, {"big", "large", "huge", "giant"})
_SHADES = frozenset(("light", "dark", "bright", "hot", "pale", "neon"))
_ANIMATE = frozenset(("person", "animal"))
_LIVING_LINKS = frozenset(["behind", "at", "toward", "towards", "over", "above", "after"])
_THING_LINKS = frozenset(("behind", "above", "below"))
#: Where one thing is, and where another one is beside it.
_ON = frozenset(("on", "in", "at", "under", "behind", "against"))
_NEAR = frozenset(("near", "by", "beside", "behind", "to", "under", "past", "of"))


def swap(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:swap`."""
    if options.as_published:
        return ParsedMaker(name, propose_swaps, options, (vocabulary_kept, *options.rule_checks))
    open_wordnet()
    found = Swapper(corpus_slots(options, captions))
    return ParsedMaker(name, found, options, (vocabulary_kept, *options.rule_checks))


@dataclass(frozen=True)
class Swapper:
    """Proposes swaps whose arguments could be the other way round, and that a language model finds as likely."""

    slots: Slots

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        candidates: list[Candidate] = []
        why = ""
        nouns = [t for t in objects(doc) if kind_of(lemma(t.text, t.tag_)) in _MOVABLE]
        turned = [pair for pair in noun_pairs(nouns, False) if turns_round(*pair, doc)]
        swaps = {
            "swap-object": list(self._nouns(doc, turned)),
            "swap-attribute": list(self._attributes(doc)),
            "swap-phrase": [pair for pair in _phrase_pairs(turned) if _alike(*pair)],
        }
        if not any(swaps.values()):
            return Proposal()
        rng = dice_for(options.seed, "rules:swap", source.id)
        for kind, proposed in swaps.items():
            pairs = [pair for pair in proposed if not describes_same_scene(doc, *pair, EXCHANGED[kind])]
            if proposed and not pairs:
                why = why or "the swap says the same: the relation holds both ways"
            made = [_candidate(source, doc, kind, pair, options) for pair in pairs]
            scored = zip(made, gaps(source.text, [c.text for c in made], options.lm))
            kept = sorted(((c, g) for c, g in scored if within_band(g / 2, options)), key=lambda one: abs(one[1]))
            kept = [(c, gap) for c, gap in kept if not options.matched or even_chance(gap, rng, SOFTENED[kind])]
            if made and not kept:
                why = "no swap within the band"
            candidates += [with_gap(source, c, gap, reversible=True) for c, gap in kept[: options.foils]]
        return Proposal(tuple(candidates), "" if candidates else why)

    def _attributes(self, doc: Any) -> Iterator[Pair]:
        """Attributes of two things that both could have: of one dimension, or both seen with either thing."""
        for left, right in adjective_pairs(doc, False):
            one, other = left.head, right.head
            if one in other.subtree and any(
                c == one and c.dep_ in ("compound", "nmod", "amod") for c in other.children
            ):
                continue
            if not any(t.tag_ in ("NN", "NNS") for t in doc[left.i + 1 : right.i]) or collides(left, right):
                continue
            if any(_is_inborn(a, n) for a in (left, right) for n in (one, other)):
                continue
            dimensions = {dimension_of(t.lower_) for t in (left, right)}
            if len(dimensions) > 1 or dimensions == {""} or not all(map(_stands_alone, (left, right))):
                continue
            if self._could_be(left, other) and self._could_be(right, one):
                yield left, right

    def _could_be(self, adjective: Any, noun: Any) -> bool:
        """Whether a thing is called so: people said it, or it is made in all colours and patterns."""
        word, name = adjective.lower_, noun.lower_
        base, dimension = lemma(name, noun.tag_), dimension_of(word)
        kind = kind_of(base)
        if self.slots.knows_enough and self.slots.follows(word, name) >= (5 if kind == "animal" else 1):
            return True
        if dimension == "colour":
            return word in things()["coats"] if kind == "animal" else kind in _MADE and word != "blonde"
        if dimension == "age":
            return (kind in _ANIMATE and age_of(base) != "child") or (
                kind in _MADE and word not in ("young", "elderly")
            )
        sized = kind in _ANIMATE and dimension == "size" and word not in ("giant", "huge", "enormous", "massive")
        return sized or (kind in _MADE and dimension in ("size", "pattern"))

    def _nouns(self, doc: Any, turned: Iterable[Pair]) -> Iterator[Pair]:
        """Things that could change places; those that do not act must have been seen in each other's slot."""
        for left, right in (p for p in turned if not _stays_small(*p)):
            seen = all(self.slots.fits_slot(a, b.text, doc) for a, b in ((left, right), (right, left)))
            laden = any(c.lower_ in ("with", "of") for t in (left, right) for c in t.rights)
            if kind_of(lemma(left.text, left.tag_)) in _ANIMATE or (seen and not laden):
                yield left, right


def _alike(left: Any, right: Any) -> bool:
    """Whether both have `the` or neither, and neither is named again: nobody says `the man … a man's bicycle`."""
    said = [lemma(t.text, t.tag_) for t in left.doc]
    again = any(said.count(said[t.i]) > 1 for t in (left, right))
    return not again and len({any(c.lower_ == "the" for c in t.lefts) for t in (left, right)}) == 1


def _stands_alone(adjective: Any) -> bool:
    """Whether its noun has no second colour: not in `a white, grey and black box`."""
    start, end = phrase(adjective.head)
    said = [t.lower_ for t in adjective.doc[start:end]]
    return sum(dimension_of(w) == "colour" for w in said) < 2 and _SHADES.isdisjoint(said)


def collides(left: Any, right: Any) -> bool:
    """Whether an adjective would come beside another of its dimension: `a white black table`."""

    def meets(adjective: Any, old: Any) -> bool:
        word = adjective.lower_
        new = dimension_of(word)
        beside = (c.lower_ for c in (*old.head.lefts, *old.children) if c.tag_ == "JJ" and c != old)
        return any(w == word or (new and dimension_of(w) == new) for w in beside)

    return meets(left, right) or meets(right, left)


def _is_inborn(adjective: Any, noun: Any) -> bool:
    """`green grass`, `blue sky`: a colour that a thing always has; and colours of people, which mean something else."""
    base = lemma(noun.text, noun.tag_)
    own = things()["inborn"].get(base)
    return own is not None or (kind_of(base) == "person" and dimension_of(adjective.lower_) == "colour")


def _stays_small(left: Any, right: Any) -> bool:
    """Whether `little`, `old` or `pregnant` would stay behind for somebody that it does not fit."""
    return any(c.dep_ == "amod" and dimension_of(c.lower_) != "colour" for t in (left, right) for c in t.children)


def turns_round(left: Any, right: Any, doc: Any) -> bool:
    """Whether two things could change places: of one kind, in different roles, not tied to their own."""
    first, second = (lemma(t.text, t.tag_) for t in (left, right))
    kind = kind_of(first)
    if kind != kind_of(second) or kind not in _MOVABLE or is_mass(first) != is_mass(second):
        return False
    if not excludes(first, second):
        return False  # a coat and a jacket, a dog and a puppy
    if any(t.lower_ in read_frames()["pronouns"] for t in doc) and gender_of(first) != gender_of(second):
        return False
    bites = kind == "animal" and any(t.lower_ in read_frames()["parts"] for t in doc)
    if bites or "baby" in (age_of(first), age_of(second)) or any(map(_is_tied, (left, right))):
        return False
    if (kind == "clothing" and right in left.subtree) or any(map(lacks_determiner, (left, right))):
        return False  # `shirts with vests`, `leading cyclist`
    return _one_event(left, right) or _two_holders(left, right) or _two_places(left, right, kind)


def _two_places(left: Any, right: Any, kind: str) -> bool:
    """Two things of one kind in different places of a scene: `on a couch near a bench`, `riding a bike past a bus`."""
    link = right.head.lower_
    if kind not in _MADE or right.dep_ != "pobj" or link not in _NEAR:
        return False
    if link in ("of", "to") and right.head.head.lower_ not in ("front", "next"):
        return False
    if left.dep_ == "dobj":
        return kind_of(_doer_base(left.head)) == "person" and link != "of"
    beings = (
        [t for t in _holders(left.head) if kind_of(lemma(t.text, t.tag_)) in _ANIMATE] if left.dep_ == "pobj" else []
    )
    return bool(beings and left.head.lower_ in _ON - {link})


def _doer_base(verb: Any) -> str:
    doer = verb.head if verb.dep_ in ("acl", "relcl") else next((c for c in verb.lefts if c.dep_ == "nsubj"), verb)
    return lemma(doer.text, doer.tag_)


def _is_tied(noun: Any) -> bool:
    """A part, a measure, a possession, one of several, or one that refers to another: it cannot go elsewhere alone."""
    if any(c.dep_ == "prep" and c.lower_ == "of" for c in noun.rights) or noun.dep_ == "conj":
        return True
    if noun.dep_ == "pobj" and noun.head.lower_ == "of" and noun.head.head.lower_ != "front":
        return True
    return any(c.dep_ in ("poss", "conj") or c.lower_ in ("another", "other", "each") for c in noun.children)


def _one_event(left: Any, right: Any) -> bool:
    """Both belong to one verb or preposition that can be turned round: `a dog chases a cat`, `a bus behind a truck`."""
    first, second = (lemma(t.text, t.tag_) for t in (left, right))
    kind = kind_of(first)
    if right.dep_ == "dobj":
        return kind in _ANIMATE and _turns(right.head, "nsubj", left, first, second)
    if right.dep_ != "pobj":
        return False
    link = right.head
    if link.dep_ == "agent":
        return kind in _ANIMATE and _turns(link.head, "nsubjpass", left, first, second)
    verb = link.head
    talks = verb.tag_.startswith("VB") and lemma(verb.text, verb.tag_) in read_frames()["no_turn"]
    if talks and link.lower_ in ("to", "at", "with"):
        return False
    links = _LIVING_LINKS if kind in _ANIMATE else _THING_LINKS if kind in _MADE else ()
    if link.lower_ in ("near", "beside", "by") or (link.lower_ == "to" and link.head.lower_ == "next"):
        return kind in _MADE  # `a red chair next to a brown couch`: their colours stay
    front = link.lower_ == "of" and link.head.lower_ == "front"
    return (link.lower_ in links or front) and left in _holders(link)


def _turns(verb: Any, role: str, left: Any, first: str, second: str) -> bool:
    """Whether the verb's two arguments could be exchanged; nobody is carried by a child."""
    doer = verb.head if verb.dep_ in ("acl", "relcl") else next((c for c in verb.lefts if c.dep_ == role), None)
    return doer == left and turns(lemma(verb.text, verb.tag_), first, second)


def _holders(link: Any) -> list[Any]:
    """The nouns that a preposition may tell the place of: its head, or the subject of the verb it hangs on."""
    head = link.head
    if head.lower_ in ("front", "top") and head.head.dep_ == "prep":
        return _holders(head.head)
    if head.tag_.startswith("NN"):
        return [head]
    if head.tag_.startswith("VB"):
        subject = [c for c in head.lefts if c.dep_ in ("nsubj", "nsubjpass")]
        return [head.head] if head.dep_ in ("acl", "relcl") else subject
    return []


def _two_holders(left: Any, right: Any) -> bool:
    """Each has a holder: `a man in a hat and a woman in a coat`, `a boy reads while a girl sleeps`."""
    one, other = _holder(left), _holder(right)
    if one is None or other is None or one == other or one in (left, right) or other in (left, right):
        return False
    alike = one.tag_[:2] == other.tag_[:2]
    if one.tag_.startswith("NN"):
        kinds = [kind_of(lemma(t.text, t.tag_)) for t in (one, other)]
        return alike and kinds[0] == kinds[1] in _MOVABLE and lemma(one.text, one.tag_) != lemma(other.text, other.tag_)
    return alike and left.dep_ == right.dep_ == "nsubj" and lemma(one.text, one.tag_) != lemma(other.text, other.tag_)


def _holder(noun: Any) -> Any | None:
    """What a noun belongs to: the verb it is the subject of, or the person who wears, holds or has it."""
    if noun.dep_ == "nsubj":
        return noun.head
    if noun.dep_ == "pobj" and noun.head.lower_ in ("in", "with") and noun.head.head.tag_.startswith("NN"):
        return noun.head.head
    if noun.dep_ == "dobj":
        verb = noun.head
        return verb.head if verb.dep_ == "acl" else next((c for c in verb.lefts if c.dep_ == "nsubj"), None)
    return None


def _candidate(source: SourceCaption, doc: Any, kind: str, pair: Pair, options: MakerOptions) -> Candidate:
    left, right = pair
    text = EXCHANGES[kind](doc, left, right, not options.as_published)
    group = "swap" if options.as_published else ""
    return Candidate(source.id, text, "negative", kind, "rules:swap", f"{left.text} ↔ {right.text}", group)


def propose_swaps(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    """As published: up to `foils` candidates of each kind, whatever they mean."""
    rng = dice_for(options.seed, "rules:swap", source.id)
    candidates = []
    nouns = list(noun_pairs(objects(doc), True))
    for kind, found in zip(EXCHANGES, (nouns[:], list(adjective_pairs(doc, True)), list(_phrase_pairs(nouns)))):
        rng.shuffle(found)
        candidates += [_candidate(source, doc, kind, pair, options) for pair in found[: options.foils]]
    return Proposal(tuple(candidates))


def noun_pairs(nouns: Iterable[Any], any_number: bool) -> Iterator[Pair]:
    """Two things that are not joined by `and`, of one number, each with a word of its own."""
    for left, right in combinations(nouns, 2):
        if joined(left, right) or lemma(left.text, left.tag_) == lemma(right.text, right.tag_):
            continue
        if any_number or (left.tag_ == right.tag_ and compound(left)[1] <= compound(right)[0]):
            yield left, right


def _phrase_pairs(pairs: Iterable[Pair]) -> Iterator[Pair]:
    for left, right in pairs:
        apart = phrase(left)[1] <= phrase(right)[0]
        more_than_nouns = phrase(left)[1] - phrase(left)[0] > 2 or phrase(right)[1] - phrase(right)[0] > 2
        if apart and more_than_nouns:
            yield left, right


def adjective_pairs(doc: Any, any_number: bool) -> Iterator[Pair]:
    """Two adjectives of different things."""
    for left, right in combinations(attributes(doc), 2):
        if left.head == right.head or joined(left, right) or left.lower_ == right.lower_:
            continue
        if _colours_a_person(left, right) or any({left.lower_, right.lower_} <= group for group in _SIZES):
            continue  # `a white child` may be true, `a tiny room with a small bed` is
        if [[t.text for t in doc[a.i + 1 : a.i + 2]] for a in (left.head, right)] == [["and"], [left.head.text]]:
            continue  # `a black dog and a yellow dog`
        if left.dep_ == right.dep_ == "amod" and left.head.tag_ in ("NN", "NNS") and right.head.tag_ in ("NN", "NNS"):
            yield left, right


def _colours_a_person(*adjectives: Any) -> bool:
    heads = [lemma(a.head.text, a.head.tag_) for a in adjectives]
    people = any(kind_of(head) == "person" or head in ("person", "people") for head in heads)
    return people and any(dimension_of(a.lower_) == "colour" for a in adjectives)


def _exchange_nouns(doc: Any, left: Any, right: Any, repair: bool) -> str:
    """Nouns with the compounds that they head; published swaps tear those apart."""
    if not repair:
        return exchange_spans(doc, (left.i, left.i + 1), (right.i, right.i + 1), repair)
    return exchange_spans(doc, compound(left), compound(right), repair)


def _exchange_adjectives(doc: Any, left: Any, right: Any, repair: bool) -> str:
    return exchange_spans(doc, (left.i, left.i + 1), (right.i, right.i + 1), repair)


def _exchange_phrases(doc: Any, left: Any, right: Any, repair: bool) -> str:
    return exchange_spans(doc, phrase(left), phrase(right), repair, agreement(left, right) if repair else None)


def exchange_spans(
    doc: Any, left: tuple[int, int], right: tuple[int, int], repair: bool, changes: Mapping[int, str] | None = None
) -> str:
    """The caption with two stretches of words in each other's place; blanks stay where they were. `changes` are words
    that follow, as a verb's ending does."""
    (a, b), (c, d) = left, right
    follow = changes or {}
    order = [range(a), range(c, d), range(b, c), range(a, b), range(d, len(doc))]
    blanks = {d - 1: doc[b - 1].whitespace_, b - 1: doc[d - 1].whitespace_}
    pieces: list[Piece] = [
        (follow.get(i) or (plain(doc[i]) if repair else doc[i].text), blanks.get(i, doc[i].whitespace_))
        for part in order
        for i in part
    ]
    return written(pieces, like=doc.text if repair else "")


def agreement(left: Any, right: Any) -> dict[int, str]:
    """The verbs whose ending follows what changes places: `a man is holding`, `two men are holding`."""
    changes: dict[int, str] = {}
    for old, new in ((left, right), (right, left)):
        if old.dep_ not in ("nsubj", "nsubjpass") or is_plural(old) == is_plural(new):
            continue
        verb = old.head
        for token in (t for t in (*verb.lefts, verb) if t == verb or t.dep_ in ("aux", "auxpass")):
            base = lemma(token.text, "VB")
            if base == "be" and token.tag_ in ("VBZ", "VBP", "VBD"):
                tense = "past" if token.lower_ in ("was", "were") else "present"
                changes[token.i] = be(tense, plural=bool(is_plural(new)))
            elif token.tag_ in ("VBZ", "VBP"):
                changes[token.i] = inflected(base, "VBP" if is_plural(new) else "VBZ")
    return changes


EXCHANGES: dict[str, Callable[[Any, Any, Any, bool], str]] = {
    "swap-object": _exchange_nouns,
    "swap-attribute": _exchange_adjectives,
    "swap-phrase": _exchange_phrases,
}
