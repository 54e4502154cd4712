"""Content-only captions (SADE): the nouns and adjectives of a caption without grammar. Their foils are fluent captions
about other things.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from creperie.bench import Item
from creperie.lang import lemma, parse, words
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.checks import why_unfit
from creperie.making.options import MakerOptions
from creperie.making.phrases import ADJECTIVES, NOUN_TAGS
from creperie.making.pipeline import Maker, without_source
from creperie.making.source import Captions, SourceCaption, read_captions
from creperie.making.wording import plain

FLUENT = "fluent"  #: the kind of foils: captions about other things
FOILS = 2
TRIES = 60
_PARTS = NOUN_TAGS | ADJECTIVES


@dataclass(frozen=True)
class ContentMaker(Maker):
    """A maker of items with one true caption and two fluent foils about other things. The true caption consists of
    content words only.
    """

    pool: tuple[tuple[str, tuple[str, ...]], ...]  #: fluent captions with their images
    pool_digest: str
    parallel = parses = True

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**super().settings, "pool": self.pool_digest}

    def takes(self, kind: str) -> bool:
        return kind == FLUENT

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        return map(self._proposal, sources, parse([s.text for s in sources], self.options.parser))

    def _proposal(self, source: SourceCaption, doc: Any) -> Proposal:
        phrases = content_phrases(doc)
        if len(phrases) < 2:
            return Proposal(skipped="fewer than two things")
        foils = self._foils(source, {lemma(w, "NN") for p in phrases for w in words(p)})
        if len(foils) < FOILS:
            return Proposal(skipped="no fluent captions of other things")
        text = " , ".join(phrases)
        candidates = [Candidate(source.id, text, "positive", "content-only", self.name, "grammar removed", "content")]
        candidates += [Candidate(source.id, f, "negative", FLUENT, self.name, "other things", "content") for f in foils]
        return Proposal(candidates)

    def _foils(self, source: SourceCaption, content: set[str]) -> list[str]:
        """Return fluent captions that share no content word with the source, drawn at random."""
        rng = dice_for(self.options.seed, self.name, source.id)
        foils: list[str] = []
        for _ in range(TRIES if self.pool else 0):
            text, images = self.pool[rng.randrange(len(self.pool))]
            same_image = bool(images) and images == source.images
            if text in (source.text, *source.others, *foils) or same_image or why_unfit(text):
                continue
            if content.isdisjoint(lemma(w, "NN") for w in words(text)):
                foils.append(text)
            if len(foils) == FOILS:
                break
        return foils

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """Return the item if the content-only caption and both foils were accepted, else an empty list."""
        return without_source(source, accepted) if len(accepted) == FOILS + 1 else []


def content_phrases(doc: Any) -> list[str]:
    """Return the nouns of a caption without duplicates, each with the adjectives and nouns directly before it."""
    phrases: dict[str, None] = {}
    run: list[str] = []
    for token, following in zip_longest(doc, doc[1:]):
        run = [*run, plain(token)] if token.tag_ in _PARTS and token.text[:1].isalnum() else []
        if run and token.tag_ in NOUN_TAGS and (following is None or following.tag_ not in NOUN_TAGS):
            phrases[" ".join(run)] = None
            run = []
    return list(phrases)


def content_maker(name: str, options: MakerOptions, captions: Captions) -> ContentMaker:
    """Return the maker `content`. Its fluent foils are captions from the file that `options.others` names or, if it
    names none, from the source captions.
    """
    others = read_captions(options.others) if options.others else captions
    pool = tuple((s.text, s.images) for s in others.sources)
    return ContentMaker(name, options, pool, others.digest)
