"""Mining VISLA's spatial triplets: a second true caption from the other side, foils from other images.

P2 is a true caption of the same image with subject and object exchanged, or, where there is none, the converse of
P1; a table of converses and synonyms must prove it. N are captions of other images about the same things, the three
most alike by Jaccard similarity, that people found false of the image or that say the opposite. As published, any
caption with subject and object exchanged is a P2, and foils need not be proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.bench import Item
from creperie.lang import word_jaccard
from creperie.making.candidate import BatchCheck, Candidate, Check, Proposal
from creperie.making.options import MakerOptions
from creperie.making.pipeline import with_source
from creperie.making.source import Captions, SourceCaption
from creperie.making.spatial import Spatial, spatial

MINED = 3
NAME = "mine:spatial"
Things = frozenset[str]


@dataclass(frozen=True)
class SpatialMiner:
    """Looks up captions about the same things, of the same image and of others."""

    options: MakerOptions
    pool: Mapping[Things, tuple[tuple[str, frozenset[str]], ...]]  #: captions about two things, with their images
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
            if read is not None and exchanged and (self.options.as_published or told.proves(read)):
                return _candidate(source, other, "mined", "subject ↔ object")
        converse = told.converse()
        if converse is None:
            return None
        return _candidate(source, converse.said(), "converse", f"{told.relation} ↔ {converse.relation}")

    def _foils(self, source: SourceCaption, told: Spatial) -> list[Candidate]:
        """The captions most like the source, of other images, that cannot be true with it."""
        known = {source.text, *source.others}
        found = []
        for text, images in self.pool.get(told.things, ()):
            read = spatial(text)
            if text in known or images <= set(source.images) or read is None or told.may_agree(read):
                continue
            found.append((-word_jaccard(source.text, text), text))
        return [self._foil(source, told, text, -alike) for alike, text in sorted(found)[:MINED]]

    def _foil(self, source: SourceCaption, told: Spatial, text: str, alike: float) -> Candidate:
        """A foil, with how sure it is that it is one: people said so, it says the opposite, or neither."""
        read = spatial(text)
        if any((image, text) in self.false for image in source.images):
            sure = "people"
        else:
            sure = "opposite" if read is not None and told.excludes(read) else "unsure"
        refused = "not sure to be false" if sure == "unsure" and not self.options.as_published else ""
        edit, tags = f"Jaccard {alike:.2f}", {"foil": sure}
        return Candidate(source.id, text, "negative", "mined-foil", NAME, edit, "spatial", tags, refused)

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """P1, P2 and the surest foils; the other foils stay among the candidates, for people to choose from."""
        true = [c for c in accepted if c.role == "positive"]
        false = sorted((c for c in accepted if c.role == "negative"), key=lambda c: c.tags["foil"] == "unsure")
        return with_source(source, [*true, *false[: self.options.foils]]) if true and false else []


def _candidate(source: SourceCaption, text: str, kind: str, edit: str) -> Candidate:
    return Candidate(source.id, text, "positive", kind, NAME, edit, "spatial", {"second_positive": kind})


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
    pool: dict[Things, list[tuple[str, frozenset[str]]]] = {}
    for caption, images in sorted(told.items()):
        read = spatial(caption)
        if read is not None:
            pool.setdefault(read.things, []).append((caption, frozenset(images)))
    return SpatialMiner(options, {things: tuple(found) for things, found in pool.items()}, frozenset(false))
