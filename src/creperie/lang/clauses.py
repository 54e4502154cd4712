"""The grammar of a parse: subjects, whole prepositions, groups of nouns, and the scope of negations and of `all`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from creperie.lang.inflection import lemma
from creperie.lang.lexicon import facts, kind_of

SUBJECTS = ("nsubj", "nsubjpass", "csubj")
DENYING = frozenset(("no", "nobody", "none", "nothing", "neither"))
#: Verbs that say of an action only that it begins, goes on or is to come: `is going to play` plays.
PHASES = frozenset(("go", "begin", "start", "continue", "keep"))
UNIVERSAL = frozenset(("all", "every", "each"))
#: Words that open a scope in which another word does not contradict the caption.
OPENERS = DENYING | UNIVERSAL | {"not", "n't", "never", "without"}
PARTS = frozenset(["piece", "slice", "bit", "chunk", "type", "kind", "sort"])
_GROUPS = PARTS | frozenset(
    [
        "group",
        "pair",
        "couple",
        "bunch",
        "crowd",
        "herd",
        "flock",
        "team",
        "row",
        "set",
        "lot",
        "number",
        "pack",
        "band",
        "trio",
        "class",
    ]
)
#: Words for all or none of several things, which may stand before `of`: `all of the people`.
QUANTIFIERS = frozenset(("all", "each", "both", "none"))
#: Nouns and adverbs that form one preposition with their neighbours: `in front of`, `to the left of`, `next to`.
WITHIN = frozenset(("front", "top", "left", "right", "side", "back", "middle", "edge", "center"))
_PAIRS: Mapping[str, tuple[str, ...]] = {
    "to": ("next", "close", "adjacent", "opposite", "near", "parallel", "perpendicular"),
    "from": ("far", "away", "apart", "across"),
    "with": ("contact",),
    "of": ("out", "part", "ahead", "left", "right", "inside", "outside"),
}


def is_verb(token: Any) -> bool:
    """Return whether a token is a verb, or has a subject or object even though it is tagged otherwise (`a dog
    chases`).
    """
    return token.tag_.startswith("VB") or any(c.dep_ in ("nsubj", "dobj") for c in token.children)


def verb_base(verb: Any) -> str:
    """Return the dictionary form of a verb, even if the verb is tagged wrongly."""
    return lemma(verb.text, verb.tag_ if verb.tag_.startswith("VB") else "VBZ")


def doers(verb: Any) -> list[Any]:
    """Return the subjects of a verb. If a verb has no subject of its own, return the noun that it modifies or, if it is
    joined to another verb, the subjects of that verb.
    """
    own = [t for c in verb.lefts if c.dep_ in ("nsubj", "nsubjpass") and c.tag_[:1] != "W" for t in joined_nouns(c)]
    if own:
        return own
    if verb.dep_ == "acl" and verb.tag_ == "VBG":
        return _wearers(verb.head)
    if verb.dep_ in ("acl", "relcl", "amod") or (verb.dep_ == "ROOT" and verb.head.tag_.startswith("NN")):
        return _if_noun(verb.head)
    if verb.dep_ in ("conj", "xcomp", "advcl", "ccomp", "dep") and verb.head != verb:
        return doers(verb.head) if is_verb(verb.head) else _if_noun(verb.head)
    there = [c for c in verb.children if c.dep_ == "attr"] if verb.dep_ == "ROOT" else []
    return [t for c in there for t in joined_nouns(c)]


def _wearers(noun: Any) -> list[Any]:
    """Return a noun or, if it names clothing, the person who wears it. In `a man in jeans sitting` the man sits,
    although the parse may attach the verb to the jeans.
    """
    above = noun.head.head if noun.dep_ == "pobj" else noun.head
    if kind_of(lemma(noun.text, noun.tag_)) != "clothing" or above in (noun, noun.head.head.head):
        return _if_noun(noun)
    return doers(above) if is_verb(above) else _wearers(above)


def whole_preposition(token: Any) -> tuple[str, Any]:
    """Return a preposition with the words that belong to it (such as `in front of`), and the word on which it
    depends.
    """
    head = token.head
    if is_pair(token):
        first = token.nbor(-1)
        if first.lower_ == "contact":
            return "in contact with", first.head.head
        above = first.head if head == first and not is_verb(first) else head
        if first.i and first.nbor(-1).lower_ == "far":
            return f"far {first.lower_} {token.lower_}", above.head if above == first.nbor(-1) else above
        return f"{first.lower_} {token.lower_}", above
    if token.lower_ == "of" and head.lower_ in WITHIN and head.dep_ in ("pobj", "advmod", "acomp"):
        before = [t.lower_ for t in head.lefts if t.dep_ != "det"]
        first = [head.head.lower_] if head.dep_ == "pobj" else []
        article = (
            ["the"] if head.lower_ in ("left", "right", "side", "back", "middle", "edge", "center") and first else []
        )
        return " ".join([*first, *article, *before, head.lower_, "of"]), head.head.head if first else head.head
    return token.lower_, head


def is_pair(token: Any) -> bool:
    """Return whether a preposition and the word before it form one preposition, such as `next to`, `far from`, `out
    of`.
    """
    return token.i > 0 and token.nbor(-1).lower_ in _PAIRS.get(token.lower_, ())


def joined_nouns(token: Any) -> list[Any]:
    """Return a noun and the nouns joined to it by `and`. If the token is the `by` of a passive, return the nouns after
    it.
    """
    if token.dep_ == "agent":
        return [t for c in token.children if c.dep_ == "pobj" for t in joined_nouns(c)]
    if (inner := of_group(token)) is not None:
        return joined_nouns(inner)
    nouns = (c for c in token.rights if c.dep_ in ("conj", "appos") and c.tag_[:2] in ("NN", "PR"))
    return [token, *(t for c in nouns if c.dep_ == "conj" and not without_verb(c) for t in joined_nouns(c))]


def without_verb(noun: Any) -> list[Any]:
    """Return the object that belongs to a subject without a verb: `guitar` for `girl` in `A boy plays the drums and a
    girl the guitar`. The list is empty if there is none.
    """
    return [c for c in noun.rights if c.dep_ == "appos" and noun.dep_ == "conj" and c.left_edge.i == noun.i + 1]


def of_group(token: Any) -> Any:
    """Return the noun after the `of` that follows a word such as `group` or `all`: `people` in `a group of people`.
    Return None for other tokens.
    """
    if lemma(token.text, "NNS") not in _GROUPS and token.lower_ not in QUANTIFIERS:
        return None
    ofs = [c for c in token.rights if c.lower_ == "of" and c.i == token.i + 1]
    return next((c for of in ofs for c in of.children if c.dep_ == "pobj" and c.tag_[:2] == "NN"), None)


def _if_noun(noun: Any) -> list[Any]:
    return joined_nouns(noun) if noun.tag_[:2] in ("NN", "PR") else []


def scoped_tokens(doc: Any) -> frozenset[int]:
    """Return the indices of the tokens in the scope of a negating word or of `all`.

    Brackets mark the scope in these examples: `No one [sits on the bench]`, `A man is not [wearing a hat]`, `a man
    without [a hat]`, `All [the dogs] bark`.
    """
    return frozenset(i for token in doc for i in scope_of(token))


def scope_of(token: Any) -> set[int]:
    """Return the indices of the tokens in the scope of a word such as `not` or `all`; empty if the word has no
    scope.
    """
    word = token.lower_
    if word in ("not", "n't", "never"):
        verb = token.head.head if token.head.dep_ in ("aux", "auxpass") else token.head
        subjects = [child for v in (verb, token.head) for child in v.children if child.dep_ in SUBJECTS]
        later = [c for c in verb.rights if c.dep_ == "conj" and verb.tag_ == "VB" and c.tag_ in ("VBZ", "VBP", "VBD")]
        outside = [*subjects, *later]  # `does not wear a hat but wears glasses`
        return {t.i for t in verb.subtree} - {t.i for s in outside for t in s.subtree}
    if word in OPENERS:
        if word == "no" and token.i > 1 and token.nbor(-2).dep_ == "expl":
            return {t.i for t in token.nbor(-1).subtree}  # `There is no man sprinkling cheese`, however it is parsed
        noun = token.head if token.dep_ in ("det", "predet", "advmod") else token
        while noun.dep_ == "compound":
            noun = noun.head
        only = len([c for c in noun.head.children if c.dep_ in SUBJECTS]) < 2
        whole = word in DENYING and noun.dep_ in (*SUBJECTS, "attr") and only
        inside = noun.head if whole or (word == "no" and noun.dep_ == "dobj") else noun
        return {t.i for t in inside.subtree}
    return set()


def suspending(doc: Any) -> frozenset[str]:
    """Return the words of a caption that leave open whether something is so, or is so of everybody: `may`, `pretends
    to`, `instead of`, `everyone except`, `not every`, `two of the three`.
    """
    found = set()
    for token in doc:
        phrase = doc[max(0, token.i - 1) : token.i + 1].text.lower()
        inner = {doc[i].lower_ for i in scope_of(token)} - {token.lower_}
        found |= {token.lower_, phrase} & {*facts()["suspending"]}
        if token.dep_ == "xcomp" and any(c.tag_ == "TO" for c in token.lefts):
            found |= {verb_base(token.head)} - PHASES
        if token.dep_ in ("xcomp", "acomp", "oprd"):
            found |= {verb_base(token.head)} & {*facts()["seeming" if token.dep_ != "xcomp" else "ended"]}
        if inner & (OPENERS - UNIVERSAL if token.lower_ in UNIVERSAL else OPENERS):
            found.add(token.lower_)
        if token.tag_ == "CD" and phrase.startswith("the ") and doc[max(0, token.i - 2)].lower_ == "of":
            found.add("of the")
    return frozenset(found)
