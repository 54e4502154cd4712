"""Makers that look at one caption's parse at a time: rules and grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from creperie.bench import Item
from creperie.lang import default_parser, parse
from creperie.making.candidate import BatchCheck, Candidate, Check, Proposal
from creperie.making.options import MakerOptions
from creperie.making.pipeline import with_source
from creperie.making.source import SourceCaption

#: A source, its parse (a spaCy document) and the options: what is proposed.
ProposeOne = Callable[[SourceCaption, Any, MakerOptions], Proposal]
BuildItems = Callable[[SourceCaption, Sequence[Candidate]], list[Item]]


@dataclass(frozen=True)
class ParsedMaker:
    """A maker made of one function over a source and its parse."""

    name: str
    propose_one: ProposeOne
    options: MakerOptions
    checks: tuple[Check | BatchCheck, ...] = ()
    build: BuildItems = with_source
    whole: bool = False
    chunk: int = 512
    parallel: bool = True
    chooses: bool = False  #: proposes more than it makes

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**self.options.settings, "parser": self.options.parser or default_parser()}

    @property
    def chosen(self) -> int:
        return self.options.foils if self.chooses else 0

    @property
    def note(self) -> str:
        """What a user should know about how foils are chosen; empty where there is nothing to say."""
        corpus = getattr(self.propose_one, "corpus", None)
        if corpus is None or corpus.knows_enough:
            return ""
        return (
            f"{corpus.captions} captions are too few to learn which words go together: only the shipped word lists are "
            "used (from 400 captions on, or with --corpus, the corpus is)"
        )

    @property
    def balanced(self) -> bool:
        return self.options.matched

    @property
    def tidies(self) -> bool:
        return self.options.tidy and (self.whole or not self.options.as_published)

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        unread = ("attribute_ruler",)  # parts of speech and morphology, which no rule asks for
        docs = parse([s.text for s in sources], self.options.parser, without=unread)
        for source, doc in zip(sources, docs, strict=True):
            yield self.propose_one(source, doc, self.options)

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        if not self.options.apart:
            return self.build(source, accepted)
        true = [c for c in accepted if c.role == "positive"]
        each = [[*(t for t in true if t.subset == c.subset), c] for c in accepted if c.role == "negative"]
        return [replace(i, id=f"{i.id}-{k}") for k, own in enumerate(each, 1) for i in self.build(source, own)]
