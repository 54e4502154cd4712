"""Mining of VISLA's spatial triplets: a second true caption in which the roles are exchanged, and foils from other
images.

P1 is a caption. P2 is a true caption of the same image with subject and object exchanged or, if there is none, the
converse of P1. N stands for three foils: the captions of other images that are most similar to P1 (by Jaccard
similarity). The published method ends here; experts then choose among these captions and correct them. By default a
triplet must also be decidable without the image (`lang/logic.py`): P1 entails P2 and contradicts N.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.bench import Item
from creperie.core import by_key
from creperie.lang import CONTRADICTED, Spatial, decidability, place_likeness, read_together, spatial, truth, words
from creperie.making.candidate import Candidate, Proposal
from creperie.making.options import MakerOptions
from creperie.making.pipeline import Maker, with_source
from creperie.making.source import Captions, SourceCaption

MINED = 3
MINED_POSITIVE, MINED_FOIL = "mined", "mined-foil"  #: kinds of candidates that are captions of the collection
NAME = "mine:spatial"


@dataclass(frozen=True)
class SpatialMiner(Maker):
    """A maker that searches a collection of captions for others about the same things as the source. A caption of the
    same image becomes the second positive, and captions of other images become foils.
    """

    pool: CaptionPool
    false: frozenset[tuple[str, str]]  #: (image, caption) pairs that people found false

    normalises = True

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        if not self.options.as_published:
            read_together((*self.pool.texts, *(source.text for source in sources)))
        return map(self._proposal, sources)

    def _proposal(self, source: SourceCaption) -> Proposal:
        scene = spatial(source.text)
        if scene is None:
            return Proposal(skipped="not a spatial caption")
        second = self._second(source, scene)
        if second is None:
            return Proposal(skipped="no caption has subject and object exchanged, and no converse is known")
        foils = self._foils(source, scene)
        return Proposal((second, *foils)) if foils else Proposal(skipped="no suitable caption of another image")

    def _second(self, source: SourceCaption, scene: Spatial) -> Candidate | None:
        for other in sorted(source.others):
            read = spatial(other)
            exchanged = read is not None and (read.subject, read.object) == (scene.object, scene.subject)
            if read is not None and exchanged and (self.options.as_published or _follows(scene, read)):
                return _candidate(source, other, MINED_POSITIVE, "subject ↔ object")
        converse = scene.converse()
        if converse is None:
            return None
        return _candidate(source, converse.said(), "converse", f"{scene.relation} ↔ {converse.relation}")

    def _foils(self, source: SourceCaption, scene: Spatial) -> list[Candidate]:
        """Return, as foils, the captions of other images that are most similar to the source. Unless the option
        `as_published` is set, only captions that contradict the source are returned.

        There are three of them, or more if others are as similar as the third. The most similar captions come first; of
        equally similar ones, those that contradict the source.
        """
        known = {source.text, *source.others}
        images = frozenset(source.images)
        foils: list[tuple[float, bool, str]] = []
        things = () if self.options.as_published else scene.things
        for text, alike in self.pool.ranked(source.text, things):
            if text in known or self.pool.images[text] <= images:
                continue
            if len(foils) >= MINED and alike < -foils[-1][0]:
                break
            other = self.pool.scenes[text]
            possible = self.options.as_published or other is None or may_contradict(scene, other)
            contradicted = possible and truth(source.text, text).word == CONTRADICTED
            if contradicted or self.options.as_published:
                foils.append((-alike, not contradicted, text))
            elif alike == 0:
                break
        return [self._foil(source, *foil) for foil in sorted(foils)]

    def _foil(self, source: SourceCaption, unlike: float, unproven: bool, text: str) -> Candidate:
        """Return `text` as a foil, tagged with the evidence that it is false: `opposite` (it contradicts the source
        caption), `people` (people labelled it false) or `unsure` (neither).

        `unlike` is minus the Jaccard similarity of `text` and the source caption. `unproven` is True if `text` does
        not contradict the source caption.
        """
        false = any((image, text) in self.false for image in source.images)
        sure = "unsure" if unproven and not false else "people" if unproven else "opposite"
        edit = f"Jaccard {-unlike:.2f}"
        return Candidate(source.id, text, "negative", MINED_FOIL, NAME, edit, "spatial", {"foil": sure})

    def takes(self, kind: str) -> bool:
        return kind in (MINED_POSITIVE, MINED_FOIL)

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """Return the item made of the source caption (P1), a second true caption (P2) and the foils most similar to P1.
        People can choose other foils among the candidates.
        """
        true = [c for c in accepted if c.role == "positive"]
        false = [c for c in accepted if c.role == "negative"][: self.options.foils]
        if not true or not false:
            return []
        word, why = decidability([source.text, *(c.text for c in true)], [c.text for c in false])
        tags = {"decidable": word, **({"undecided_because": why} if why else {})}
        return [replace(item, tags={**item.tags, **tags}) for item in with_source(source, [*true, *false])]


def _candidate(source: SourceCaption, text: str, kind: str, edit: str) -> Candidate:
    return Candidate(source.id, text, "positive", kind, NAME, edit, "spatial", {"second_positive": kind})


@dataclass(frozen=True)
class CaptionPool:
    """All captions with their images, and an index of words for ranking captions by similarity."""

    images: Mapping[str, frozenset[str]]
    texts: tuple[str, ...]
    lengths: np.ndarray
    holders: Mapping[str, np.ndarray]  #: word → numbers of the captions that contain it
    scenes: Mapping[str, Spatial | None]  #: caption → subject, relation and object, if it has this form

    def ranked(self, text: str, things: Iterable[str] = ()) -> Iterator[tuple[str, float]]:
        """Yield captions with their Jaccard similarity to the text, the most similar first. Ties are in alphabetical
        order.

        If `things` are given, only captions that name one of them are included.
        """
        own = set(words(text))
        shared = np.zeros(len(self.texts), np.int64)
        for word in own:
            shared[self.holders.get(word, [])] += 1
        alike = shared / np.maximum(1, len(own) + self.lengths - shared)
        rows = [self.holders.get(thing.split()[-1], np.empty(0, np.int64)) for thing in things]
        some = np.unique(np.concatenate(rows)) if rows else np.arange(len(self.texts))
        for k in some[np.argsort(-alike[some], kind="stable")]:
            yield self.texts[k], float(alike[k])


def may_contradict(one: Spatial, other: Spatial) -> bool:
    """Return whether two spatial captions may contradict each other. This quickly rules out most pairs of captions;
    `truth` (lang/truth.py) decides about the others.

    Captions that name the same two things may contradict each other. Captions that differ in one of the two things may
    also contradict each other if they state the same relation, or if the relation in `other` follows from the one in
    `one`.
    """
    if one.things == other.things:
        return True
    turned = one.object == other.subject or one.subject == other.object
    pairs = (
        [(one.subject, other.object), (one.object, other.subject)]
        if turned
        else [(one.subject, other.subject), (one.object, other.object)]
    )
    named = [(a, b) for a, b in pairs if a != b]
    return len(named) < 2 and _follows(one, other, turned)


def _follows(one: Spatial, other: Spatial, turned: bool = True) -> bool:
    return place_likeness(one.relation, other.relation, turned, True) in ("same", "above")


def _pool(images: Mapping[str, frozenset[str]]) -> CaptionPool:
    texts = tuple(sorted(images))
    bags = [set(words(text)) for text in texts]
    holders = by_key((word, k) for k, bag in enumerate(bags) for word in bag)
    index = {word: np.array(rows, np.int64) for word, rows in holders.items()}
    scenes = {text: spatial(text) for text in texts}
    return CaptionPool(images, texts, np.array([len(bag) for bag in bags]), index, scenes)


def spatial_miner(name: str, options: MakerOptions, captions: Captions) -> SpatialMiner:
    """Return the maker `mine:spatial`, which searches all captions of the benchmark, whether true or false of their
    image.
    """
    images: dict[str, set[str]] = {}
    if captions.bench is not None:
        for item in captions.bench:
            for caption in item.captions:
                images.setdefault(caption, set()).update(item.images)
    else:
        for source in captions.sources:
            images.setdefault(source.text, set()).add(source.id)
    pool = _pool({caption: frozenset(own) for caption, own in images.items()})
    return SpatialMiner(name, options, pool, captions.false)
