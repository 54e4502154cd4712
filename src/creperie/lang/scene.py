"""The scene that a caption describes, as a graph: its things, their attributes, and the relations between them.

Two captions with the same graph describe the same scene, so a swap is a foil only if it changes the graph. Swapping the
colours in `A girl in a blue dress walks next to a girl in a white dress` changes nothing, because `next to` is
symmetric; nor does swapping the two people in `A man hugs a woman`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from creperie.lang.inflection import lemma
from creperie.lang.lexicon import facts, kind_of

#: Dependency labels of the words that describe a noun.
_DESCRIBING = frozenset(("amod", "nummod", "compound", "nmod", "poss"))
#: Words before `to` that form one preposition with it: `next to`, `close to`.
_WITH_TO = frozenset(("next", "close", "adjacent", "opposite"))
_PREPOSITIONS = frozenset(("to", "with", "at", "in", "on", "against", "by", "near", "of"))
_IGNORED = frozenset(("is", "are", "was", "were", "that", "who", "which", "a", "an", "the", "another"))


@cache
def _reciprocal() -> Mapping[str, frozenset[str]]:
    return {name: frozenset(facts()[name]) for name in ("verbs", "prepositions", "phrases")}


def holds_both_ways(verb: str, preposition: str = "") -> bool:
    """Return whether a relation between two things is symmetric; `verb` is a dictionary form.

    >>> [holds_both_ways(*r) for r in (("hug",), ("chase",), ("walk", "next to"), ("talk", "to"))]
    [True, False, True, True]
    """
    table = _reciprocal()
    if not preposition:
        return verb in table["verbs"]
    return preposition in table["prepositions"] or f"{verb} {preposition}" in table["phrases"]


def describes_same_scene(doc: Any, left: Any, right: Any, exchange: str) -> bool:
    """Return whether the caption describes the same scene after two of its words are exchanged.

    `exchange` is "names" (two nouns, their attributes stay), "phrases" (nouns with their attributes) or "attributes"
    (two adjectives).
    """
    from networkx.algorithms.isomorphism import categorical_multiedge_match, categorical_node_match, is_isomorphic

    if _is_mirrored(doc, left, right) or (exchange == "attributes" and _are_together(doc, left.head, right.head)):
        return True
    before = scene_graph(doc)
    after = before.copy()
    one, other = (t.head.i if exchange == "attributes" else t.i for t in (left, right))
    if not (after.degree(one) if one in after else 0) or not (after.degree(other) if other in after else 0):
        return False  # no relation of one of the two is known
    names, attributes = ({i: after.nodes[i][part] for i in (one, other)} for part in ("name", "said"))
    if exchange == "attributes":
        after.nodes[one]["said"] = attributes[one] - {left.lower_} | {right.lower_}
        after.nodes[other]["said"] = attributes[other] - {right.lower_} | {left.lower_}
    else:
        after.nodes[one]["name"], after.nodes[other]["name"] = names[other], names[one]
        if exchange == "phrases":
            after.nodes[one]["said"], after.nodes[other]["said"] = attributes[other], attributes[one]
    alike = categorical_node_match(["name", "said", "does"], [None, None, None])
    return bool(is_isomorphic(before, after, alike, categorical_multiedge_match("relation", None)))


def _are_together(doc: Any, one: Any, other: Any) -> bool:
    """Return whether two people or animals of one name are together or look at each other: `a dog plays in the sand
    with a dog`. Only words are compared, because a parse may attach `with` to the sand.
    """
    base = lemma(one.text, one.tag_)
    if base != lemma(other.text, other.tag_) or kind_of(base) not in ("person", "animal"):
        return False
    between = doc[one.i + 1 : other.i]
    return any(t.lower_ == "with" or holds_both_ways("", t.lower_) or verb_base(t) in facts()["looks"] for t in between)


def _is_mirrored(doc: Any, left: Any, right: Any) -> bool:
    """Return whether the exchange only swaps the two sides of a symmetric relation.

    Only words are compared, because parsers take `a blue dress walks` for a noun phrase.
    """
    tokens = [t for t in doc if t.text == "," or not (t.is_punct or t.dep_ == "det" or t.lower_ in _IGNORED)]
    words = [{",": "and", "wearing": "in"}.get(t.lower_, t.lower_) for t in tokens]
    places = {t.i: k for k, t in enumerate(tokens)}
    if left.i not in places or right.i not in places:
        return False
    one, other = places[left.i], places[right.i]
    last = max(other, places.get(right.head.i, 0)) if right.dep_ == "amod" else other  # a side ends with a whole phrase
    swapped = words[:]
    swapped[one], swapped[other] = words[other], words[one]
    for start in range(one + 1, other):
        for end in range(start + 1, min(start + 6, other + 1)):
            if not _links(words[start:end]):
                continue
            for size in range(max(start - one, last - end + 1), min(start, len(words) - end) + 1):
                sides = slice(start - size, start), slice(end, end + size)
                if swapped[sides[0]] == words[sides[1]] and swapped[sides[1]] == words[sides[0]]:
                    return True
    return False


def _links(words: list[str]) -> bool:
    """Return whether the words are a symmetric relation: `walks next to`, `hugs`, `and`, or a list."""
    verb, *rest = words
    base = lemma(verb, "VBZ" if verb.endswith("s") else "VBG" if verb.endswith("ing") else "VBD")
    if words[0] == words[-1] == "and" or holds_both_ways("", " ".join(words)):
        return True
    at_something = len(rest) == 2 and rest[0] not in _PREPOSITIONS  # `plays chess with`
    return holds_both_ways(base, " ".join(rest)) or (at_something and holds_both_ways(base, rest[1]))


def scene_graph(doc: Any) -> Any:
    """Return a directed multigraph: a node per noun, an edge per relation, in both directions if it is symmetric."""
    from networkx import MultiDiGraph

    graph = MultiDiGraph()
    for token in doc:
        if token.tag_[:2] in ("NN", "PR") and token.dep_ not in ("compound", "npadvmod") and not _is_verb(token):
            attributes = frozenset(c.lower_ for c in token.children if c.dep_ in _DESCRIBING)
            graph.add_node(token.i, name=lemma(token.text, token.tag_), said=attributes, does=frozenset())
    acting: dict[int, set[str]] = {}
    for relation, both_ways, one, other in _relations(doc):
        if one.i in graph and other.i in graph:
            graph.add_edge(one.i, other.i, relation=relation)
            if both_ways:
                graph.add_edge(other.i, one.i, relation=relation)
    for token in doc:
        if _is_verb(token) and not _shares(token):
            for doer in doers(token):
                acting.setdefault(doer.i, set()).add(verb_base(token))
    for i, verbs in acting.items():
        if i in graph:
            graph.nodes[i]["does"] = frozenset(verbs)
    return graph


def _is_verb(token: Any) -> bool:
    """Return whether a token is a verb, or has a subject or object although its tag says otherwise (`a dog chases`)."""
    return token.tag_.startswith("VB") or any(c.dep_ in ("nsubj", "dobj") for c in token.children)


def verb_base(verb: Any) -> str:
    """Return the dictionary form of a verb, whatever its tag says."""
    return lemma(verb.text, verb.tag_ if verb.tag_.startswith("VB") else "VBZ")


def _relations(doc: Any) -> Iterator[tuple[str, bool, Any, Any]]:
    """Yield each relation as (name, whether it is symmetric, first thing, second thing)."""
    for token in doc:
        verb = verb_base(token) if _is_verb(token) else ""
        if verb:
            for thing in (t for c in token.rights if c.dep_ in ("dobj", "agent") for t in _objects(c)):
                backwards = thing.head.dep_ == "agent" or thing.dep_ == "agent"
                for doer in doers(token):
                    pair = (thing, doer) if backwards else (doer, thing)
                    yield verb, holds_both_ways(verb), *pair
        elif token.dep_ == "prep":
            name, head = whole_preposition(token)
            doing = verb_base(head) if _is_verb(head) else ""
            for thing in (t for c in token.children if c.dep_ == "pobj" for t in _objects(c)):
                for holder in doers(head) if doing else _if_noun(head):
                    yield f"{doing} {name}", holds_both_ways(doing, name), holder, thing
        if token.dep_ == "conj" and token.tag_.startswith("NN") and token.head.tag_.startswith("NN"):
            yield "and", True, token.head, token


def whole_preposition(token: Any) -> tuple[str, Any]:
    """Return a preposition with the words that belong to it (`in front of`), and the word that it depends on."""
    head = token.head
    if token.lower_ == "to" and head.lower_ in _WITH_TO:
        return f"{head.lower_} to", head.head
    if token.lower_ == "of" and head.lower_ in ("front", "top") and head.dep_ == "pobj":
        return f"{head.head.lower_} {head.lower_} of", head.head.head
    return token.lower_, head


def _objects(token: Any) -> list[Any]:
    """Return a noun and the nouns joined to it by `and`; for the `by` of a passive, those of its object."""
    if token.dep_ == "agent":
        return [t for c in token.children if c.dep_ == "pobj" for t in _objects(c)]
    return [token, *(t for c in token.rights if c.dep_ == "conj" and c.tag_[:2] == "NN" for t in _objects(c))]


def _if_noun(noun: Any) -> list[Any]:
    return [noun] if noun.tag_[:2] in ("NN", "PR") else []


def doers(verb: Any) -> list[Any]:
    """Return the subjects of a verb: its own, the noun that it modifies, or those of the verb that it is joined to."""
    own = [t for c in verb.lefts if c.dep_ in ("nsubj", "nsubjpass") and c.tag_[:1] != "W" for t in _objects(c)]
    if own:
        return own
    if verb.dep_ in ("acl", "relcl") or (verb.dep_ in ("ROOT", "amod") and verb.head.tag_.startswith("NN")):
        return _if_noun(verb.head)
    return doers(verb.head) if verb.dep_ in ("conj", "xcomp", "advcl") and verb.head != verb else []


def _shares(verb: Any) -> bool:
    """Return whether the verb's other participant does the same: `walks next to a girl`, `talks with a man`."""
    base = verb_base(verb)
    if base in ("be", "have") or holds_both_ways(base):
        return True
    links = [t for t in verb.subtree if t.dep_ == "prep" and whole_preposition(t)[1] == verb]
    return any(holds_both_ways(base, whole_preposition(t)[0]) for t in links)
