"""Something added that is not there: a second object with a place of its own, or an attribute.

What is added makes a caption longer, so that something else is left out for it: an adjective for an adjective, a phrase
that tells a place for one that brings an object. Whatever is left out, what remains was true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from creperie.lang import article_for, lemma, open_wordnet, words
from creperie.making.atoms import POSTURES, Form, attributes, forms, is_compound_head, objects, vague_nouns
from creperie.making.balance import MOST
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.checks import LengthMatched
from creperie.making.lexicon import age_of, dimension_of, is_mass, kind_of, things
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.replace import draw_plausible
from creperie.making.slots import Slots, corpus_slots
from creperie.making.source import Captions, SourceCaption
from creperie.making.substitution import read_frames
from creperie.making.verbs import may_be_verb
from creperie.making.wording import reworded

NAME = "rules:add"
MOVES = frozenset(("run", "wait", "graze", "crouch", "kneel"))
#: How much more often than by chance an added thing may share captions with a word of the scene before it is implied.
IMPLIED = 1.0


def add(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:add`."""
    open_wordnet()
    found = Adder(corpus_slots(options, captions))
    return ParsedMaker(name, found, options, (LengthMatched(1), *options.rule_checks))


@dataclass(frozen=True)
class Adder:
    """Proposes one added object and one added attribute per caption."""

    slots: Slots

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        rng: Random | None = None
        made: list[Candidate] = []
        lost = ""
        for find in (self._objects, self._attributes):
            found = list(find(source, doc))
            if not found:
                continue
            rng = rng or dice_for(options.seed, NAME, source.id)
            rng.shuffle(found)
            chosen, why = draw_plausible(source, found[:MOST], options, rng)
            made += chosen
            lost = lost or why
        return Proposal(tuple(made), "" if made else lost)

    def _attributes(self, source: SourceCaption, doc: Any) -> Iterator[tuple[int, Candidate]]:
        """An adjective goes from one thing, another one comes to a thing that had none."""
        dropped = [a for a in attributes(doc) if a.dep_ == "amod" and _can_go(a)]
        told = {w for text in (source.text, *source.others) for w in words(text)} if dropped else set()
        for noun in objects(doc) if dropped else ():
            base = lemma(noun.text, noun.tag_)
            if not is_compound_head(noun) and is_plain(noun) and not is_mass(base):
                for new in (a for a in _attributes_of(base) if a not in told and self._may_be(a, noun, base, told)):
                    for gone in (a for a in dropped if a.head != noun):
                        changes = {gone.i: "", noun.i: f"{new} {noun.text}"}
                        yield noun.i, _candidate(source, doc, "add-attribute", changes, f"− {gone.text}, + {new}")

    def _may_be(self, new: str, noun: Any, base: str, told: set[str]) -> bool:
        """Whether people call such a thing so, and nothing in the caption speaks against it."""
        if not told.isdisjoint(things()["against"].get(new, ())) or (kind_of(base) == "person" and _acts(noun)):
            return False
        said = self.slots.follows(new, noun.lower_) > 0
        return said or not self.slots.knows_enough or kind_of(base) == "person"

    def _objects(self, source: SourceCaption, doc: Any) -> Iterator[tuple[int, Candidate]]:
        """A phrase that tells a place goes, and an object with its own place comes instead."""
        told: set[str] = set()
        left = read_frames()["left"]
        for link in [t for t, form in zip(doc, forms(doc)) if form.dep == "prep" and form.lower in left]:
            span = _simple_phrase(link)
            if span is None or not _may_leave(link, span[-1]) or _acts(link.head) or _goes_on(span):
                continue  # `a boy by a bride jumps into a pool`
            told = told or {lemma(w, "NNS") for text in (source.text, *source.others) for w in words(text)}
            goes, holder = " ".join(t.text for t in span), _holder_kind(link)
            others = (f for k, f in enumerate(forms(doc)) if not span[0].i <= k <= span[-1].i)
            scene = [f for f in others if f.tag[:2] in ("NN", "VB") and f.dep not in ("aux", "auxpass")]
            for place, new in _companions(holder, "with" not in told):
                fits = len(span) == len(place.split()) + 1 + len(new.split()) and told.isdisjoint(new.split())
                if fits and self._may_come(place, new, scene, holder) and self._as_usual(span, place, new):
                    comes = f"{place} {article_for(new)} {new}"
                    changes = {t.i: "" for t in span} | {span[0].i: comes}
                    yield link.i, _candidate(source, doc, "add-object", changes, f"− {goes}, + {comes}")

    def _as_usual(self, gone: list[Any], place: str, new: str) -> bool:
        """Whether people say what comes more than once, of one such thing in 150, and a tenth as often as what goes.
        A language model tells `near a dog` for `in the snow`."""
        slots, said = self.slots, [place.split()[-1], *new.split()]
        usual = slots.follows(said[0], said[-1]) > max(1, slots.seen[said[-1]] / 150)
        often, before = slots.often(said), slots.often([t.lower_ for t in gone if t.dep_ != "det"])
        return not slots.knows_enough or (usual and 10 * often > before)

    def _may_come(self, place: str, new: str, scene: list[Form], holder: str) -> bool:
        """Whether people have said so, with all of the scene, but with nothing of it so often that it is implied."""
        slots, (*before, head) = self.slots, new.split()
        kind = kind_of(head)
        if kind not in ("", "person", holder) and any(kind == kind_of(form.base) for form in scene):
            return False  # one bicycle or another
        if not slots.knows_enough:
            return True
        if not slots.follows(place.split()[-1], head) or not all(slots.follows(w, head) for w in before):
            return False
        for word, base in ((form.lower, form.base) for form in scene):
            shared = slots.shared(head, word)
            known = kind_of(base) in ("person", "clothing") or base in read_frames()["parts"]
            if (not shared and not known) or (shared > 2 and slots.fits_scene(head, [word]) > IMPLIED):
                return False
        return True


def _attributes_of(base: str) -> list[str]:
    """Visible attributes that few things of this kind have."""
    found = things()["scenery"] if base in things()["roads"] else things()["added"].get(kind_of(base), ())
    return [a for a in found if base in things()["only"].get(a, (base,)) and base != "camera"]


@cache
def _companions(kind: str, carries: bool) -> tuple[tuple[str, str], ...]:
    """What may come, and how: people may have something with them, things have something beside them."""
    table = things()["companions"]
    said = [(place, by) for places, by in table.items() for place in places.split("|")]
    return tuple((place, w) for place, by in said if carries or place != "with" for w in by.get(kind, ()))


def _goes_on(span: list[Any]) -> bool:
    """Whether what follows would be said of what is added (`with a cat sitting`), or what precedes of the place."""
    first, last = span[0].i, span[-1].i
    before, after = span[0].doc[max(0, first - 1) : first], span[0].doc[last + 1 : last + 2]
    own = any(t.tag_ in ("RB", "RP") for t in before)  # `up in a tree`
    return own or any(not t.is_punct and t.tag_ not in ("VBZ", "VBP") and t.text not in ("while", "as") for t in after)


def _may_leave(link: Any, place: Any) -> bool:
    """Whether a phrase tells where somebody is: not `in a hat`, `covered in snow`, `his head on a pillow`."""
    name, kind = place.lower_, kind_of(lemma(place.lower_, place.tag_))
    if kind in ("clothing", "food", "handheld", "gear") or name in read_frames()["no_place"]:
        return False
    base = lemma(link.head.text, link.head.tag_)
    if any(c.dep_ == "conj" for c in (*link.head.children, *place.children, *link.children)):
        return False  # `a girl in an outfit and a cap`
    if link.head.tag_[:2] == "VB":
        return base in POSTURES or base in MOVES
    return kind_of(base) in ("person", "animal", "vehicle")


def _acts(holder: Any) -> bool:
    """A noun whose verb, which follows, tells of something else than a posture."""
    verbs = [c for c in holder.rights if c.dep_ == "acl"] + [holder.head] * (holder.dep_ == "nsubj")
    return holder.tag_[:2] == "NN" and any(lemma(v.text, v.tag_) not in (*POSTURES, "be") for v in verbs)


def _holder_kind(link: Any) -> str:
    """The kind of thing whose place a phrase tells."""
    head = link.head
    if head.tag_.startswith("VB"):
        head = head.head if head.dep_ in ("acl", "relcl") else next((c for c in head.lefts if c.dep_ == "nsubj"), head)
    base = lemma(head.text, head.tag_)
    return kind_of(base) if age_of(base) or kind_of(base) != "person" or base in ("person", "adult") else ""


def _candidate(source: SourceCaption, doc: Any, kind: str, changes: dict[int, str], edit: str) -> Candidate:
    return Candidate(source.id, reworded(doc, changes), "negative", kind, NAME, edit)


def left_out(doc: Any, noun: Any, kind: str) -> list[Any] | None:
    """What can go when something is added to a noun: an adjective of another, or a phrase that tells a place."""
    if kind == "add-attribute":
        gone = [[a] for a in attributes(doc) if a.dep_ == "amod" and a.head != noun and _can_go(a)]
    else:
        phrases = [_simple_phrase(t) for t in doc if t.dep_ == "prep" and t.lower_ in read_frames()["places"]]
        gone = [span for span in phrases if span is not None and noun not in span]
    return gone[-1] if gone else None


def _can_go(adjective: Any) -> bool:
    """Whether a noun phrase stands without its adjective: not in `teddy bear`, `hot dog`, `a red and white bus`."""
    noun = adjective.head
    if not _is_quality(adjective.lower_) or noun.lower_ in read_frames()["described"]:
        return False  # nobody says `on a day`, `a man in clothes` or `a cat with eyes`
    if any(True for _ in adjective.children) or is_compound_head(noun) or noun.tag_ not in ("NN", "NNS"):
        return False
    between = noun.doc[adjective.i + 1 : noun.i]
    loose = adjective.i >= noun.i or any(not dimension_of(t.lower_) for t in between)
    if loose or may_be_verb(lemma(noun.text, "VB")):
        return False
    before = [c for c in noun.lefts if c.dep_ in ("det", "poss", "nummod")]
    if noun.doc[adjective.i - 1].is_punct:
        return False  # `an enclosed , snowy area`
    return noun.tag_ == "NNS" or bool(before) or noun.lower_ in things()["mass"]


@cache
def _is_quality(word: str) -> bool:
    """An adjective that says how a thing is; not `fellow`, `oven` or `haired`, without which it is another."""
    net = open_wordnet()
    return bool(dimension_of(word)) or (
        not word.endswith("ed") and bool(net.senses(word, "a")) and not net.senses(word, "n")
    )


def is_plain(noun: Any) -> bool:
    """A thing that stands alone after its article."""
    before = [c for c in noun.lefts if c.dep_ in ("amod", "compound", "nmod", "nummod")]
    first = noun.doc[noun.i - 1] if noun.i else None
    if before or first is None or first.lower_ == "no":
        return False
    return first.dep_ in ("det", "poss") or noun.tag_ == "NNS"


def _simple_phrase(link: Any) -> list[Any] | None:
    """A preposition, an article, perhaps an adjective, and a noun that names a place; None where more hangs on it."""
    inside = list(link.subtree)
    between = [t.dep_ for t in inside[1:-1]]
    if inside[0] != link or inside[-1].dep_ != "pobj" or between not in (["det"], ["det", "amod"]):
        return None
    if link.head.tag_[:2] not in ("VB", "NN") or inside[-1].lower_ in vague_nouns():
        return None
    if link.head.tag_[:2] == "NN" and link.lower_ in ("along", "across"):
        return None
    if link.head.tag_[:2] == "VB" and link.head.lower_ in ("is", "are", "has", "looking", "looks", "look"):
        return None
    return inside
