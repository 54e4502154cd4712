"""The reading of a caption: things, what they do to whom, how they are related, and what is denied.

`read` turns a parse into a `Reading`. Active and passive, both forms of the dative, participles, relative clauses,
`there is` and all tenses give the same facts. A spatial relation and its converse give different facts; the table of
relations says later that they mean the same. Every part keeps the words from which it was read. Words that no rule
covers are listed in `unread`; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from creperie.lang.clauses import (
    DENYING,
    OPENERS,
    PARTS,
    PHASES,
    QUANTIFIERS,
    SUBJECTS,
    UNIVERSAL,
    WITHIN,
    doers,
    is_pair,
    is_verb,
    joined_nouns,
    of_group,
    scope_of,
    suspending,
    verb_base,
    whole_preposition,
    without_verb,
)
from creperie.lang.inflection import inflected, lemma
from creperie.lang.lexicon import dimension_of, is_above, is_mass, is_reciprocal, is_worn, kind_of
from creperie.lang.lexicon import facts as known_facts
from creperie.lang.relations import relations
from creperie.lang.scene import MANY, Entity, Reading, Stated
from creperie.lang.wordnet import open_wordnet
from creperie.lang.writer import in_case

COUNTS = {
    w: n
    for n, w in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
}
#: Words before a count that make it a limit or an estimate: `at least two`, `more than two`.
_INEXACT = frozenset(("least", "most", "than", "about", "nearly", "almost"))
_NOBODY = {"nobody": "person", "none": "person", "nothing": "thing"}
_SOMEBODY = frozenset(("someone", "somebody", "anyone", "anybody", "everyone", "everybody"))
_READING = "creperie: reading"
_EMPTY = frozenset(("be", "is", "are", "was", "were", "being", "there", "not", "n't", "never", "nobody", "one", "none"))
_ANIMATE = ("person", "animal")
#: Adverbs of place, which parsers take for nouns: `running indoors`.
_WHERE = frozenset(("indoors", "outdoors", "inside", "outside", "upstairs", "downstairs"))
#: Words that only strengthen what they stand before.
_DEGREES = frozenset(("very", "quite", "really", "so", "extremely"))
#: Predicates that relate the things joined by `and` to each other: `The cat and the bed are far apart.`
_MUTUAL = {"far apart": "is far from", "close together": "is near", "side by side": "is next to"}
#: Counts that a word for a group gives; other groups are more than two.
_GROUP_COUNTS = {"pair": 2, "couple": 2, "trio": 3}


def read(doc: Any) -> Reading:
    """Return the reading of a parsed caption: its things and facts.

    >>> from creperie.lang import parse
    >>> a, b = (read(d) for d in parse(["A girl is pushed by a boy.", "A boy is pushing a girl."]))
    >>> [sorted((role, r.entities[i].head) for role, i in r.facts[0].roles) for r in (a, b)]
    [[('agent', 'boy'), ('patient', 'girl')], [('agent', 'boy'), ('patient', 'girl')]]
    """
    known: dict[Any, Any] = doc.user_data  # one reading for all makers
    if _READING not in known:
        known[_READING] = _Reader(doc).reading()
    reading: Reading = known[_READING]
    return reading


# -- the reading -----------------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    """Collects the things and facts of one parse, and records which tokens have been read."""

    doc: Any
    entities: dict[int, Entity] = field(default_factory=dict)
    facts: list[Stated] = field(default_factory=list)
    used: set[int] = field(default_factory=set)

    def reading(self) -> Reading:
        denials = {t.i: scope_of(t) for t in self.doc if t.lower_ in OPENERS - UNIVERSAL}
        self.denied = {i: opener for opener, inside in denials.items() for i in inside}
        self._entities()
        for token in self.doc:
            if is_verb(token) and token.dep_ not in ("aux", "auxpass") and token.i not in self.entities:
                self._clause(token)
        for token in self.doc:
            if token.dep_ in ("prep", "dative", "agent", "prt", "advmod") and token.tag_ in (
                "IN",
                "TO",
                "RB",
                "RP",
                "JJ",
            ):
                self._preposition(token)
            elif token.dep_ == "poss" and token.i in self.entities and token.head.i in self.entities:
                self._relate("own", [token], [token.head], token)
        unread = tuple(t.lower_ for t in self.doc if self._is_unread(t))
        content = {t.i: t.lower_ for t in self.doc if t.tag_[:2] in ("NN", "VB", "JJ", "RB") and t.dep_[:3] != "aux"}
        content = {i: w for i, w in content.items() if w not in _EMPTY}
        words = frozenset(w for i, w in content.items() if i not in self.denied)
        inside = {i: frozenset(content[k] for k in scope if k in content) for i, scope in denials.items()}
        return Reading(
            self.entities, tuple(self.facts), unread, tuple(self._order()), words, inside, suspending(self.doc)
        )

    def _is_unread(self, token: Any) -> bool:
        silent = ("aux", "auxpass", "det", "predet", "mark", "cc", "expl", "neg", "punct", "case", "preconj", "poss")
        if token.i in self.used or token.i in self.entities or token.dep_ in silent or token.is_punct or token.is_space:
            return False
        silenced = token.lower_ in ("there", "be", "also") or (token.lower_ in _DEGREES and token.dep_ == "advmod")
        return not silenced and token.tag_[:2] in ("NN", "VB", "JJ", "RB", "CD", "IN", "RP", "PR", "UH")

    # -- things

    def _entities(self) -> None:
        for token in self.doc:
            noun = token.tag_[:2] in ("NN", "PR") or (
                token.dep_ in (*SUBJECTS, "pobj", "dobj")
                and (token.tag_ in ("CD", "DT") or (token.tag_ == "JJ" and any(c.dep_ == "det" for c in token.lefts)))
            )
            if not noun or token.tag_ == "PRP$" or token.dep_ in ("compound", "npadvmod", "nmod") or is_verb(token):
                continue
            if token.lower_ in _WHERE and not list(token.children):
                continue
            if of_group(token) is not None:
                self.used |= {token.i, token.i + 1}
            elif not self._in_preposition(token):
                self.entities[token.i] = self._entity(token)

    def _in_preposition(self, token: Any) -> bool:
        after = token.nbor(1).lower_ if token.i + 1 < len(self.doc) else ""
        if token.lower_ == "contact" and after == "with":
            return True
        return after == "of" and (token.lower_ == "part" or (token.lower_ in WITHIN and token.dep_ == "pobj"))

    def _entity(self, token: Any) -> Entity:
        before = [t for t in token.lefts if t.dep_ in ("amod", "compound", "nmod", "nummod", "quantmod", "advmod")]
        head = lemma(token.text, token.tag_ if token.tag_[:2] == "NN" else "NN")
        head = _NOBODY.get(head, "person" if head in _SOMEBODY else head)
        head = in_case(head, subject=True) if token.tag_ == "PRP" else head
        if head == "one" and token.i and self.doc[token.i - 1].lower_ in ("no", "any", "some", "every"):
            head = "person"
        elif head == "one" and token.tag_[:2] != "PR":
            head = self._meant(token, {w.lower_ for w in before}) or head
        named = f"{before[-1].lower_} {head}" if before and before[-1].i == token.i - 1 else ""
        if named and (before[-1].dep_ == "compound" or not dimension_of(before[-1].lower_)) and _is_name(named, head):
            head, before = named, before[:-1]
            self.used.update(
                (token.i - 1, *(t.i for t in self.doc[max(0, token.i - 2) : token.i] if t.lower_ in ("far", "in")))
            )
        count, quantity = self._count(token)
        attributes = set()
        for part in before:
            if part.tag_ == "VBG" and part.dep_ == "amod":
                continue  # `a smiling man` smiles
            for one in (
                part,
                *(c for c in part.subtree if c.dep_ in ("conj", "compound", "amod") and c.head.i != token.i),
            ):
                self.used.add(one.i)
                if (one.lower_ not in COUNTS and one.dep_ not in ("nummod", "quantmod")) or self._is_part_of_name(
                    one, token, {t.lower_ for t in token.lefts}
                ):
                    attributes.add(lemma(one.text, "NN") if one.tag_[:2] == "NN" else one.lower_)
        if token.head.lower_ == "of" and of_group(token.head.head) == token:
            attributes |= {lemma(token.head.head.text, "NNS")} & PARTS
        attributes -= {"other", "many", "several", "few"}
        definite = any(c.lower_ in ("the", "this", "that", "these", "those") or c.dep_ == "poss" for c in token.lefts)
        words = " ".join(t.text for t in self.doc[min([token.i, *(t.i for t in token.lefts)]) : token.i + 1])
        return Entity(
            head, frozenset(attributes), count, definite, words, quantity, token.i in self.denied and not definite
        )

    def _meant(self, one: Any, attributes: set[str]) -> str:
        """Return the noun that `one` stands for, as in `a black one`; empty if none is found. With `attributes`, this
        is a noun that has an attribute of the same dimension, such as another colour. Without, it is the subject of a
        verb.
        """
        own = {dimension_of(word) for word in attributes} - {""}
        known = [(i, e) for i, e in self.entities.items() if i < one.i and self.doc[i].tag_ in ("NN", "NNS")]
        alike = [e for _, e in known if own & {dimension_of(a) for a in e.attributes}]
        subjects = [e for i, e in known if self.doc[i].dep_ in SUBJECTS]
        found = alike or (subjects if not attributes else [])
        return found[0].head if found else ""

    @staticmethod
    def _is_part_of_name(number: Any, noun: Any, words: set[str]) -> bool:
        """Return whether a number is part of a name, as in `a two tier cake`, and does not count things."""
        single = noun.tag_ == "NN" and not is_mass(noun.lower_) and bool(words & {"a", "an", "the"})
        return single and number.tag_ == "CD" and number.lower_ not in ("one", "1")

    def _count(self, token: Any) -> tuple[int | None, str]:
        group = token.head.head if token.head.lower_ == "of" and of_group(token.head.head) == token else None
        named = [c for c in token.lefts if c.dep_ == "compound"]
        children = [c for t in (token, *named, group) if t is not None for c in t.lefts]
        words = {c.lower_ for c in children}
        if group is not None and group.lower_ in QUANTIFIERS:  # `all of the people`
            words, group = words | {group.lower_}, None
        quantity = "no" if words & DENYING or token.lower_ in _NOBODY else "all" if words & UNIVERSAL else ""
        if group is not None and group.lower_ not in PARTS and lemma(group.text, "NNS") not in PARTS:
            count = _GROUP_COUNTS.get(group.lower_, MANY)
            return count, quantity or ("group" if count == MANY else "")
        for number in (c for c in children if c.dep_ == "nummod" or c.lower_ in COUNTS):
            self.used.add(number.i)
            if self._is_part_of_name(number, token, words):
                continue
            near = {t.lower_ for t in self.doc[max(0, number.i - 2) : number.i]}
            if near & _INEXACT:
                return None, "inexact"
            if number.lower_ in COUNTS or number.text.isdigit():
                return COUNTS.get(number.lower_) or int(number.text), quantity or "exactly"
        if "both" in words:
            return 2, quantity or "exactly"
        if "few" in words or words & {"single", "only"}:
            return (1 if "few" not in words else MANY), "few" if "few" in words else "exactly"
        if token.tag_ in ("NNS", "NNPS") or words & {"several", "many", "some", "multiple"}:
            return (MANY if token.tag_ in ("NNS", "NNPS") else None), "several" if words & {
                "several",
                "many",
                "multiple",
            } else quantity
        headline = token.tag_ == "NN" and not token.left_edge.i and token.dep_ in ("ROOT", *SUBJECTS)
        headline = headline and not any(c.dep_ in ("det", "poss", "nummod", "quantmod") for c in children)
        single = words & {"a", "an", "another", "the"} or (headline and not is_mass(token.lower_))  # `Silk tie in blue`
        return (1 if single else None), quantity

    # -- events

    def _clause(self, verb: Any) -> None:
        base = verb_base(verb)
        if verb.lower_ == "left" and any(c.lower_ == "of" for c in verb.rights):
            return self.used.add(verb.i)  # `is left of`
        subjects = self._not_denied([t for t in doers(verb) if t.i in self.entities])
        self.used.add(verb.i)
        modified = verb.dep_ in ("acl", "amod", "advcl", "conj", "ROOT", "relcl") and verb.tag_ == "VBN"
        helped = any(c.lower_ in ("has", "have", "had", "having", "'s", "'ve") and c.dep_ == "aux" for c in verb.lefts)
        phrase = self.doc[verb.i : verb.i + 4].text.lower()
        objects = [t for c in verb.rights if c.dep_ == "dobj" for t in joined_nouns(c) if t.i in self.entities]
        acts = bool(objects) and any(c.dep_ == "nsubj" for c in verb.lefts)  # `United defeated Rovers`
        passive = any(c.dep_ in ("auxpass", "nsubjpass") for c in verb.children)
        passive = passive or (modified and not helped and not acts)
        if verb.dep_ == "relcl" and not passive and not objects and (own := self._relative_object(verb)):
            objects, subjects = [own], [t for t in subjects if t != own]
        if base == "be":
            return self._copula(verb, subjects)
        if base in PHASES and any(c.dep_ == "xcomp" and is_verb(c) for c in verb.children):
            return None
        objects, second = self._second_object(objects)
        receivers = second + [
            t for c in verb.rights if c.dep_ == "dative" and c.tag_[:2] in ("NN", "PR") for t in joined_nouns(c)
        ]
        roles = [("agent", t) for t in subjects] + [("patient", t) for t in objects]
        if passive:
            agents = self._by(verb)
            given = "recipient" if objects else "patient"
            roles = [(given, t) for t in subjects] + [("patient", t) for t in objects] + [("agent", t) for t in agents]
        roles += [("recipient", t) for t in receivers]
        particles = [c for c in verb.children if c.dep_ == "prt" and not any(p.dep_ == "pobj" for p in c.children)]
        self.used |= {c.i for c in particles}
        name = " ".join([base, *(c.lower_ for c in particles)])
        if verb.dep_ == "xcomp" and any(c.tag_ == "TO" for c in verb.lefts) and verb_base(verb.head) not in PHASES:
            name = f"to {name}"  # `tries to climb` does not climb
        others = [(c, o) for t in objects for c in t.rights if c.dep_ == "conj" for o in without_verb(c)]
        others = [pair for pair in others if all(t.i in self.entities for t in pair)]
        if name == "wear" and objects:
            for doer, what in others:
                self._relate("wear", [doer], [what], verb)
            return self._relate("wear", subjects, objects, verb)
        relation = next(
            (r for r in (phrase, inflected(base, "VBZ"), f"is {inflected(base, 'VBG')}") if r in relations()), ""
        )
        if relation and objects and not passive:
            for part in self.doc[verb.i : verb.i + len(relation.split())]:
                self.used.add(part.i)
                self.entities.pop(part.i, None)
            return self._relate(relation, subjects, [t for t in objects if t.i in self.entities], verb)
        if passive and f"is {verb.lower_} by" in relations() and any(role == "agent" for role, _ in roles):
            return self._relate(f"is {verb.lower_} by", subjects, [t for role, t in roles if role == "agent"], verb)
        adverbs = [c for c in verb.children if self._is_adverb(c)]
        self.used.update(i for c in adverbs for i in (c.i, *(g.i for g in c.children)))
        manner = frozenset(
            c.lower_ for c in adverbs if c.lower_ not in ("not", "never", "there", "then", "also", "just")
        )
        numbers = tuple(sorted({(role, t.i) for role, t in roles if t.i in self.entities}))
        denied = self._denier(verb, numbers)
        absent = {i for role, i in numbers if role == "patient" and self.entities[i].quantity == "no"}
        if absent and denied == min(absent) and len(absent) < sum(role == "patient" for role, _ in numbers):
            present = tuple(one for one in numbers if one[1] not in absent)  # `has a hat and no coat`
            self.facts.append(Stated(name, present, verb.text, verb.i, passive=passive, manner=manner))
            numbers = tuple(one for one in numbers if one[0] != "patient" or one[1] in absent)
        self.facts.append(Stated(name, numbers, verb.text, verb.i, denied=denied, passive=passive, manner=manner))
        for doer, what in others:
            self.facts.append(Stated(name, (("agent", doer.i), ("patient", what.i)), verb.text, doer.i, denied=denied))

    def _is_adverb(self, token: Any) -> bool:
        alone = token.i + 1 == len(self.doc) or not is_pair(token.nbor(1))
        if token.lower_ in _WHERE and not list(token.children):
            return alone
        return token.dep_ == "advmod" and token.tag_[:2] == "RB" and alone and _is_plain(token)

    def _second_object(self, objects: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the objects and the recipients of a verb, corrected if the parse missed one of two objects. In `hands
        the queen a letter`, for example, the parser may take `letter` for an apposition. In `feeds a horse hay`, it may
        take `horse` for the first part of a compound.
        """
        for noun in objects[:1]:
            for after in noun.rights:
                if after.dep_ == "appos" and after.i in self.entities and self.doc[after.left_edge.i - 1].i == noun.i:
                    return [after], [noun]
            part = self.doc[noun.i - 1]
            if part.dep_ == "compound" and is_mass(noun.lower_) and any(c.lower_ in ("a", "an") for c in noun.lefts):
                own = self.entities[noun.i]
                self.entities[noun.i] = replace(own, attributes=own.attributes - {part.lower_}, count=None)
                self.entities[part.i] = Entity(lemma(part.text, part.tag_), frozenset(), 1, False, part.text)
                return [noun], [part]
        return objects, []

    def _relative_object(self, verb: Any) -> Any:
        """Return the noun that a relative clause describes if it is the object of the clause's verb, as `dog` is in
        `the dog that the cat chases`; else None.
        """
        pronouns = [c for c in verb.lefts if c.dep_ == "dobj" and c.tag_[:1] == "W"]
        own = [c for c in verb.lefts if c.dep_ in SUBJECTS and c.tag_[:1] != "W"]
        return verb.head if (pronouns or own) and verb.head.i in self.entities else None

    def _by(self, verb: Any) -> list[Any]:
        by = [c for c in verb.subtree if c.lower_ == "by" and c.dep_ in ("agent", "prep") and c.i > verb.i]
        by = [c for c in by if c.dep_ == "agent" or c.head == verb or c.head.dep_ == "dobj"]
        self.used |= {c.i for c in by[:1]}
        return [t for c in by[:1] for p in c.children if p.dep_ == "pobj" for t in joined_nouns(p)]

    def _denier(self, token: Any, roles: Iterable[tuple[str, int]] = ()) -> int:
        own = self.denied.get(token.i, -1)
        nobody = [i for _, i in roles if self.entities[i].quantity == "no"]
        return own if own >= 0 or not nobody else nobody[0]

    def _copula(self, verb: Any, subjects: list[Any]) -> None:
        """Read what follows `is`, as in `is red` and `is a surfer`. Other rules read `is on the bed` (by its
        preposition) and `is bigger than` (by `than`).
        """
        existing = any(c.dep_ == "expl" for c in verb.children)
        mutual = _MUTUAL.get(self.doc[verb.i + 1 :].text.lower().rstrip(" .!"))
        if mutual and len(subjects) == 2:
            for token in self.doc[verb.i + 1 :]:
                self.used.add(token.i)
                self.entities.pop(token.i, None)
            return self._relate(mutual, subjects[:1], subjects[1:], verb)
        for child in verb.children:
            if child.dep_ in ("acomp", "attr", "oprd") and child not in subjects and not existing:
                said = [child, *(c for c in child.subtree if c.dep_ == "conj" and c.tag_[:2] == child.tag_[:2])]
                after = {c.lower_ for c in child.children} & {"than", "to", "of", "from"}
                if self._in_preposition(child) or (after and child.tag_[:2] != "NN" and child.lower_ != "full"):
                    continue
                self.used |= {t.i for t in said}
                for thing in subjects:
                    self._describe(thing.i, said, max(self._denier(verb), self._denier(child)))
            elif self._is_adverb(child):
                self.used.add(child.i)
                for thing in subjects:
                    self._describe(thing.i, [child], self._denier(verb))

    def _describe(self, thing: int, said: Iterable[Any], denied: int) -> None:
        for word in said:
            what = self.entities.pop(word.i) if word.i in self.entities and word.tag_[:2] == "NN" else None
            name = what.head if what else word.lower_
            if name in ("not", "n't", "never", "there", "also"):
                continue
            if denied >= 0:
                self.facts.append(Stated(f"be {name}", (("agent", thing),), word.text, word.i, denied=denied))
            else:
                own = self.entities[thing]
                more = what.attributes if what else frozenset()
                self.entities[thing] = replace(own, attributes=own.attributes | {name} | more)

    # -- relations

    def _preposition(self, token: Any) -> None:
        if token.i in self.used:
            return
        name, head = whole_preposition(token)
        grounds = [t for c in token.children if c.dep_ == "pobj" for t in joined_nouns(c) if t.i in self.entities]
        if not grounds:
            return
        joint = (
            name in ("with", "against") and self._are_animate(grounds, grounds) and not self._are_animate([head, head])
        )
        if (name in ("to", "for") or joint) and head.dep_ == "dobj":
            head = (
                head.head
            )  # `buys a toy for a child`, `plays chess with a man`: parses attach the phrase to the thing
        event = head.i if is_verb(head) and head.i not in self.entities else -1
        figures = doers(head) if event >= 0 else self._thing_of(head)
        fact = next((f for f in self.facts if f.token == event), None) if event >= 0 else None
        if fact is not None:
            owned = fact.fillers("patient") if fact.name == "have" else set()  # `has tiles in the shower`
            figures = [self.doc[i] for i in sorted(owned or fact.fillers("patient") | fact.fillers("agent"))]
        whole = (token.i, token.head.i, token.head.head.i) if self._in_preposition(token.head) else (token.i,)
        self.used.update(whole)
        self.used.update(c.i for c in token.head.lefts if len(whole) > 1)
        if is_pair(token):
            self.used.update(
                (token.i - 1, *(t.i for t in self.doc[max(0, token.i - 2) : token.i] if t.lower_ in ("far", "in")))
            )
        if name == "than":
            return self._compared(head, grounds, token)
        known = (f"is {head.lower_} {name}", f"{inflected(verb_base(head), 'VBZ')} {name}") if fact is not None else ()
        if fact is not None and (said := [r for r in known if r in relations()]):
            self.facts.remove(fact)
            return self._relate(said[0], figures, grounds, token)
        if fact is not None and name in ("to", "for") and fact.fillers("patient"):
            role = "recipient" if name == "to" else "for"
            roles = tuple(sorted({*fact.roles, *((role, t.i) for t in grounds)}))
            self.facts[self.facts.index(fact)] = replace(fact, roles=roles)
            return
        shared = "with" if name == "against" else name
        if fact is not None and is_reciprocal(fact.name, shared) and self._are_animate(figures, grounds):
            role = "partner" if fact.fillers("patient") else "patient"
            roles = tuple(sorted({*fact.roles, *((role, t.i) for t in grounds)}))
            self.facts[self.facts.index(fact)] = replace(fact, roles=roles)
            return
        before = [i for i in sorted(self.entities) if i < token.i and kind_of(self.entities[i].head) in _ANIMATE]
        if name in ("in", "with", "without") and before and all(is_worn(self.entities[t.i].head) for t in grounds):
            last = self.doc[before[-1]]  # wears it, whatever the parse says
            together = [t for t in figures if t.i in before] if last in figures and event < 0 else [last]
            return self._relate("wear", together, grounds, token, event)
        self._relate(self._relation(name, figures, grounds, head), figures, grounds, token, event)

    def _are_animate(self, *sides: list[Any]) -> bool:
        heads = [self.entities[t.i].head for side in sides for t in side if t.i in self.entities]
        return sum(kind_of(head) in _ANIMATE for head in heads) >= 2

    def _thing_of(self, head: Any) -> list[Any]:
        if head.i in self.entities:
            return [head]
        if (inner := of_group(head)) is not None:
            return [inner]
        verb = head.head if head.dep_ in ("acomp", "advmod", "prep") else head
        return doers(verb) if is_verb(verb) else [t for t in (verb,) if t.i in self.entities]

    def _relation(self, name: str, figures: list[Any], grounds: list[Any], head: Any) -> str:
        """Return the name of the relation that the preposition `name` states between `figures` and `grounds`. In `a cat
        on a bed`, the cat is the figure and the bed the ground. The name is `is NAME` if the table of relations has
        this entry, else the preposition itself. `with` becomes `is with`, `have` or `with`, depending on what it joins.
        """
        kinds = {kind_of(self.entities[t.i].head) for t in grounds}
        animate = any(kind_of(self.entities[t.i].head) in _ANIMATE for t in figures if t.i in self.entities)
        if (
            name in ("with", "against")
            and kinds <= set(_ANIMATE)
            and animate
            and verb_base(head) not in ("lean", "push")
        ):
            return "is with"
        if name == "with" and verb_base(head) == "be":
            return "is with"
        if name in ("with", "without"):
            return "have" if not is_verb(head) else "with"
        return f"is {name}" if f"is {name}" in relations() else name

    def _compared(self, adjective: Any, grounds: list[Any], token: Any) -> None:
        """Read a comparison such as `bigger than`. `smaller than` is read as `bigger than`, with the two sides
        exchanged.
        """
        verb = adjective.head
        self.used |= {adjective.i}
        word = lemma(adjective.text, "JJR") if adjective.tag_ in ("JJR", "RBR") else adjective.lower_
        pair = next((p for p in known_facts()["compared"] if word in p), [word, ""])
        sides = doers(verb) if is_verb(verb) else [verb], grounds
        first, second = sides if pair[0] == word else sides[::-1]
        name = "is above" if pair[0] == "high" else f"more {pair[0]} than"
        self._relate(name, first, second, token, said=f"{adjective.text} than")

    def _relate(
        self, name: str, figures: list[Any], grounds: list[Any], token: Any, event: int = -1, said: str = ""
    ) -> None:
        figures = self._not_denied(figures)
        for ground in grounds:
            nobody = [i.i for i in (*figures, ground) if i.i in self.entities and self.entities[i.i].quantity == "no"]
            places = (token.i, event, *nobody, ground.i)
            denied = next((self.denied[i] for i in places if i in self.denied), nobody[0] if nobody else -1)
            roles = [("figure", f.i) for f in figures if f.i in self.entities] + [("ground", ground.i)]
            whole = name.removeprefix("is ")  # `on the left of`
            words = said or (whole if whole.endswith(f" {token.lower_}") else token.text)
            self.facts.append(Stated(name, tuple(roles), f"{words} {ground.text}", token.i, event, denied))

    def _not_denied(self, things: list[Any]) -> list[Any]:
        """Return the things that the caption does not deny. In `a boat and no passengers`, the passengers are denied.
        If all things are denied, return all of them.
        """
        there = [t for t in things if t.i in self.entities and self.entities[t.i].quantity != "no"]
        return there or things

    def _order(self) -> Iterator[tuple[str, str]]:
        for verb in (t for t in self.doc if is_verb(t) and t.dep_ in ("advcl", "conj", "pcomp")):
            main = verb.head if is_verb(verb.head) else verb.head.head
            marks = {c.lower_ for c in (*verb.lefts, verb.head) if c.dep_ in ("mark", "prep", "advmod")}
            pair = verb_base(verb), verb_base(main)
            if "after" in marks:
                yield pair
            elif marks & {"before", "then"}:
                yield pair[::-1]


def _is_plain(adverb: Any) -> bool:
    return all(c.lower_ in _DEGREES for c in adverb.children)


@cache
def _is_name(named: str, head: str) -> bool:
    """Return whether `named`, which ends with the noun `head`, is the name of something that is not a kind of `head`: a
    `hot dog` is not a dog.
    """
    return bool(open_wordnet().senses(named, "n")) and not is_above(head, named)
