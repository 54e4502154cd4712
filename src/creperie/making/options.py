"""What a user may choose about a generation job, and the checks that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from creperie.making.candidate import BatchCheck, Candidate, Check
from creperie.making.checks import NotEntailed, ScoredAlike
from creperie.making.source import SourceCaption

#: The language model that judges plausibility unless another one is named: small, quick, inside a package.
TRIGRAM = "lm:pkg:pocketsphinx?reduce=sum"


@dataclass(frozen=True)
class MakerOptions:
    """Choices that makers share. A maker leaves alone what does not concern it."""

    seed: int = 0
    parser: str = ""  #: a spaCy pipeline; empty: the best that is installed
    as_published: bool = False  #: as the originals do it, their broken grammar included
    matched: bool = True  #: replacements are drawn such that neither length nor frequency tells them
    tidy: bool = True  #: one surface style for all captions of an item
    foils: int = 1  #: how many foils of a kind are wanted for a caption
    apart: bool = False  #: of rule makers: every foil in an item of its own
    others: str = ""  #: where foils that are captions of something else come from (a file or a benchmark)
    grammar: str = ""  #: a blind model that must not find a candidate less grammatical than its source
    fluency: str = ""  #: a blind model that must not find a candidate much less likely than its source
    margin: float = 0.0  #: how much worse those may find it
    lm: str = TRIGRAM  #: a language model that must find rule foils about as likely as their source; empty: none
    band: float = 6.0  #: how far apart it may find them, in nats
    corpus: str = ""  #: captions that tell which words people use where (default: those that foils are made from)
    reversible_only: bool = False  #: only foils whose two arguments could also be the other way round
    nli: str = ""  #: a model of natural language inference: foils must not follow from their source
    model: str = ""  #: the generator of LLM makers
    prompts: str = ""  #: a folder of prompt files that replace the shipped ones of the same name
    demonstrations: int = 0  #: how many examples a prompt shows, those most like the caption; 0: all, in one order
    assemble: bool = False  #: the model of an LLM maker only names an edit, and creperie writes the caption
    evidence: str = "likely"  #: of twins: the least evidence that a caption is false of the other's image
    image_model: str = ""  #: of twins: an image encoder that must not find the two images almost the same

    @property
    def settings(self) -> Mapping[str, Any]:
        """What is recorded: the choices that differ from the defaults, and the seed always."""
        plain = MakerOptions()
        return {k: v for k, v in asdict(self).items() if k == "seed" or v != getattr(plain, k)}

    @property
    def model_checks(self) -> tuple[BatchCheck, ...]:
        """Checks by blind models, where models were named."""
        named = ((self.grammar, "less grammatical than the source"), (self.fluency, "less fluent than the source"))
        alike: list[BatchCheck] = [ScoredAlike(uri, self.margin, reason) for uri, reason in named if uri]
        return (*alike, NotEntailed(self.nli)) if self.nli else tuple(alike)

    @property
    def rule_checks(self) -> tuple[Check | BatchCheck, ...]:
        """Checks of rule makers: by models, and that a foil is reversible where that is wanted."""
        return (*((is_reversible,) if self.reversible_only else ()), *self.model_checks)


def is_reversible(source: SourceCaption, candidate: Candidate) -> str | None:
    """The two arguments of a foil could also be the other way round, as its maker tags it."""
    ok = candidate.role == "positive" or candidate.tags.get("reversible")
    return None if ok else "not reversible"
