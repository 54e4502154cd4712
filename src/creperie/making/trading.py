"""Two things that exchange their numbers: `a man with two dogs` becomes `two men with a dog`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creperie.lang import is_above, is_worn
from creperie.making.atoms import base_of, joined, objects
from creperie.making.corpus import WordCounts
from creperie.making.counting import MOST_TURNED, is_divided, is_part, number_of, swapped_counts
from creperie.making.edits import CaptionEdit
from creperie.making.exchanging import sort_here
from creperie.making.recounting import is_uncounted, made_several, singled
from creperie.making.verbs import topics
from creperie.making.wording import plain, reworded

#: WordNet's files of what can be counted in a picture: animals, artefacts, food, groups, people, plants.
_SOLID = ((5,), (6,), (13,), (14,), (18,), (20,))


def exchanged_counts(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the numbers of two things: two numbers, or else a number and `a`."""
    listed = list(swapped_counts(doc, corpus))
    yield from listed
    if listed:
        return
    numbers = [t for t in doc if t.dep_ == "nummod" and t.head.tag_ == "NNS" and 1 < number_of(t) <= MOST_TURNED]
    for number in numbers:
        if is_divided(doc, number) or is_uncounted(number.head):
            continue
        for noun in objects(doc):
            if (edit := _traded(doc, number, noun)) is not None:
                yield edit


def _traded(doc: Any, number: Any, noun: Any) -> CaptionEdit | None:
    """Return the edit in which a single thing (`noun`) and the several things counted by `number` exchange their
    numbers; None if other words depend on these numbers.
    """
    several, article = number.head, next((c for c in noun.lefts if c.lower_ in ("a", "an")), None)
    base = base_of(noun)
    around = [t for c in noun.rights for t in (c, *c.children)]
    worn = any(base_of(t) == "wear" or is_worn(base_of(t)) for t in around)
    place = sort_here(noun) == "place" or any(is_above(w, base, 1) for w in ("way", "room", "structure", "area"))
    solid = topics(base)[:1] in _SOLID
    if noun.head.lower_ in ("for", "of", "as") or worn or place or not solid:
        return None
    if article is None or is_part(noun, several) or joined(noun, several) or joined(several, noun):
        return None
    more, less = made_several(doc, noun), singled(doc, number, several)
    if more is None or less is None:
        return None
    words = {article.i: plain(number), number.i: "a"}
    first = min(words)
    words[first] = words[first].capitalize() if doc[first].text[:1].isupper() else words[first]
    pair = (noun, several) if noun.i < several.i else (several, noun)
    change = f"{doc[first].text} ↔ {doc[max(words)].text}"
    told = "each has the number of the other"
    return CaptionEdit(reworded(doc, more | less | words), change, first, pair, told=told)
