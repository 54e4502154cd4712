"""The options of a generation job, and the checks that they require."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from creperie.core import option
from creperie.making.candidate import BatchCheck, Check
from creperie.making.checks import NotEntailed
from creperie.making.judges import JudgedByModel

#: The default language model for plausibility: small, fast, and inside a package.
TRIGRAM = "lm:pkg:pocketsphinx?reduce=sum"


@dataclass(frozen=True)
class JobOptions:
    """The options of a generation job: which captions it uses, and whether it may overwrite what is in the output
    folder.
    """

    images: str | None = option(None, "Where the images are: a folder, zip or Parquet file.", metavar="DIR")
    limit: int | None = option(None, "Only the first N captions.", minimum=1, metavar="N")
    sample: int | None = option(None, "Only N captions, drawn at random.", minimum=1, metavar="N")
    shard: str | None = option(None, "Only this share of the captions; `creperie merge` joins shards.", metavar="I/N")
    force: bool = option(False, "Replace what creperie wrote there, and drop an interrupted job.")


#: options of makers whose values name files: models, captions, prompts
NAMES_FILES = ("others", "model", "prompts", "lm", "corpus", "nli", "judge")


@dataclass(frozen=True)
class MakerOptions:
    """The options that makers share. A maker ignores the ones that do not concern it."""

    seed: int = option(0, "Seed of every random choice.")
    foils: int = option(1, "Foils per kind and caption.", minimum=1)
    apart: bool = option(False, "Rule and grammar makers: every foil in an item of its own.")
    as_published: bool = option(False, "As the published makers: broken articles, capitals and blanks stay.")
    matched: bool = option(
        True,
        "Rule makers: limit the foils that `lm=` finds less likely than their captions, or keep them all.",
        flags="--matched/--unmatched",
    )
    tidy: bool = option(True, "One surface style for all captions of an item.")
    parser: str = option("", "A spaCy pipeline (default: the best that is installed).", metavar="NAME")
    others: str = option("", "content: fluent captions of other images.", metavar="FILE|BENCH")
    model: str = option("", "llm: makers: the generator, such as api:gpt-4o-mini.", metavar="URI")
    prompts: str = option(
        "", "llm: makers: prompt files of your own, in place of those of the same name.", metavar="DIR"
    )
    duplicates: str = option(
        "context",
        "llm:paraphrase, when the model repeats the caption: ask again with the answer in the context (SugarCrepe++), "
        "or ask the first question again.",
        choices=("context", "again"),
    )
    evidence: str = option(
        "likely",
        "mine:twins, mine:scenes: the evidence required that a caption is false of the other image.",
        choices=("certain", "likely", "unchecked"),
    )
    lm: str = option(
        TRIGRAM,
        "Rule makers: the language model that must find a foil about as likely as its caption.",
        metavar="URI|none",
    )
    band: float = option(6.0, "Rule makers: the largest difference in log-likelihood by `lm=`, in nats.", minimum=0)
    corpus: str = option(
        "", "Captions that show which words go together (default: the given ones).", metavar="FILE|BENCH"
    )
    plausible: str = option(
        "yes",
        "Rule makers: `no` also makes what rules do not vouch for (kinds *-unsure, swap-absurd).",
        choices=("yes", "no"),
    )
    taste: bool = option(
        True, "Rule makers: refuse foils that degrade people.", flags="--taste-filter/--no-taste-filter"
    )
    nli: str = option("", "An entailment classifier: foils must not follow from their caption.", metavar="URI")
    judge: str = option(
        "", "A language model (lm:, vlm: or api:) that decides about foils that no rule decides.", metavar="URI"
    )

    def __post_init__(self) -> None:
        if self.lm == "none":
            object.__setattr__(self, "lm", "")

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options to record: those that differ from the defaults, and always the seed."""
        plain = MakerOptions()
        return {k: v for k, v in asdict(self).items() if k == "seed" or v != getattr(plain, k)}

    @property
    def model_checks(self) -> tuple[Check | BatchCheck, ...]:
        """The checks that ask a model. If the option `nli` is set, its classifier rejects foils that the caption
        entails. If the option `judge` is set, its model decides about foils that the rules leave open.
        """
        by_entailment = (NotEntailed(self.nli),) if self.nli else ()
        return (*by_entailment, JudgedByModel(self.judge, self.prompts)) if self.judge else by_entailment
