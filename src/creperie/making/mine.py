"""Mining VISLA's spatial triplets: a second true caption from the other side, foils from other images.

P2 is a true caption of the same image with subject and object exchanged, or, where there is none, the converse of
P1. N are the three captions most like P1 by Jaccard similarity, among all captions of other images. As published, that
is all: experts choose and correct. By default a triplet must also be decidable without the image (`lang/logic.py`): P2
follows from P1, and N is contradicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from creperie.bench import Item
from creperie.lang import CONTRADICTED, Spatial, decidability, spatial, truth, words
from creperie.making.candidate import BatchCheck, Candidate, Check, Proposal
from creperie.making.options import MakerOptions
from creperie.making.pipeline import with_source
from creperie.making.source import Captions, SourceCaption

MINED = 3
NAME = "mine:spatial"


@dataclass(frozen=True)
class SpatialMiner:
    """Looks up captions about the same things, of the same image and of others."""

    options: MakerOptions
    pool: CaptionPool
    false: frozenset[tuple[str, str]]  #: (image, caption) that people found false
    name: str = NAME
    whole: bool = False
    chunk: int = 2048
    parallel: bool = False

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.options.settings

    @property
    def tidies(self) -> bool:
        return self.options.tidy and not self.options.as_published

    @property
    def checks(self) -> tuple[Check | BatchCheck, ...]:
        return self.options.model_checks

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        for source in sources:
            yield self._proposal(source)

    def _proposal(self, source: SourceCaption) -> Proposal:
        told = spatial(source.text)
        if told is None:
            return Proposal(skipped="no spatial caption")
        second = self._second(source, told)
        if second is None:
            return Proposal(skipped="nobody tells it from the other side, and it has no converse")
        foils = self._foils(source, told)
        return Proposal((second, *foils)) if foils else Proposal(skipped="no other image with the same things")

    def _second(self, source: SourceCaption, told: Spatial) -> Candidate | None:
        for other in sorted(source.others):
            read = spatial(other)
            exchanged = read is not None and (read.subject, read.object) == (told.object, told.subject)
            if read is not None and exchanged and (self.options.as_published or told.entails(read)):
                return _candidate(source, other, "mined", "subject ↔ object")
        converse = told.converse()
        if converse is None:
            return None
        return _candidate(source, converse.said(), "converse", f"{told.relation} ↔ {converse.relation}")

    def _foils(self, source: SourceCaption, told: Spatial) -> list[Candidate]:
        """The captions most like the source among all of other images; by default among those that contradict it.

        All that share the third place are candidates, those that contradict the caption first.
        """
        known = {source.text, *source.others}
        images = frozenset(source.images)
        found: list[tuple[float, bool, str]] = []
        for text, alike in self.pool.ranked(source.text):
            if text in known or self.pool.images[text] <= images:
                continue
            if len(found) >= MINED and alike < -found[-1][0]:
                break
            contradicted = truth(source.text, text).word == CONTRADICTED
            if contradicted or self.options.as_published:
                found.append((-alike, not contradicted, text))
            elif alike == 0:
                break
        return [self._foil(source, text, -alike) for alike, _, text in sorted(found)]

    def _foil(self, source: SourceCaption, text: str, alike: float) -> Candidate:
        """A foil, with how sure it is that it is one: it contradicts the caption, people said so, or neither."""
        contradicted = truth(source.text, text).word == CONTRADICTED
        false = any((image, text) in self.false for image in source.images)
        sure = "opposite" if contradicted else "people" if false else "unsure"
        return Candidate(
            source.id, text, "negative", "mined-foil", NAME, f"Jaccard {alike:.2f}", "spatial", {"foil": sure}
        )

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """P1, P2 and the foils most like P1; the other foils stay among the candidates, for people to choose from."""
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
    """All captions with their images, and an index of their words to rank them by."""

    images: Mapping[str, frozenset[str]]
    texts: tuple[str, ...]
    lengths: np.ndarray
    holders: Mapping[str, np.ndarray]  #: word → the numbers of the captions that have it

    def ranked(self, text: str) -> Iterator[tuple[str, float]]:
        """The captions with their Jaccard similarity, the most alike first; equal ones in alphabetical order."""
        own = set(words(text))
        shared = np.zeros(len(self.texts), dtype=np.int64)
        for word in own:
            shared[self.holders.get(word, NOBODY)] += 1
        alike = shared / np.maximum(1, len(own) + self.lengths - shared)
        for k in np.argsort(-alike, kind="stable"):
            yield self.texts[k], float(alike[k])


NOBODY = np.zeros(0, dtype=np.int64)


def _pool(images: Mapping[str, frozenset[str]]) -> CaptionPool:
    texts = tuple(sorted(images))
    bags = [set(words(text)) for text in texts]
    holders: dict[str, list[int]] = {}
    for k, bag in enumerate(bags):
        for word in bag:
            holders.setdefault(word, []).append(k)
    index = {word: np.array(rows, dtype=np.int64) for word, rows in holders.items()}
    return CaptionPool(images, texts, np.array([len(bag) for bag in bags]), index)


def spatial_miner(name: str, options: MakerOptions, captions: Captions) -> SpatialMiner:
    """The maker `mine:spatial`: all captions of the benchmark, true or false of their image, are what it mines."""
    told: dict[str, set[str]] = {}
    false: set[tuple[str, str]] = set()
    if captions.bench is not None:
        for item in captions.bench:
            for column, caption in enumerate(item.captions):
                told.setdefault(caption, set()).update(item.images)
                false.update((i, caption) for row, i in zip(item.match, item.images) if not row[column])
    else:
        for source in captions.sources:
            told.setdefault(source.text, set()).add(source.id)
    pool = _pool({caption: frozenset(images) for caption, images in told.items()})
    return SpatialMiner(options, pool, frozenset(false))
