"""Does the true caption already say what the foil says? A model of natural language inference decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from creperie.core import ModelError
from creperie.making.candidate import Candidate
from creperie.making.source import SourceCaption
from creperie.models import LoadedNetwork, read_network

BATCH = 64
LABEL = "entailment"


@dataclass(frozen=True)
class NotEntailed:
    """A foil that follows from the true caption is true as well. `most` is the probability that is tolerated."""

    uri: str
    most: float = 0.5

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        foils = [(s.text, c.text) for s, c in pairs if c.role == "negative"]
        found = iter(entailment(self.uri).probabilities(foils) if foils else [])
        reason = "entailed by the source"
        return [reason if c.role == "negative" and next(found) > self.most else None for _, c in pairs]


@dataclass(frozen=True)
class Entailment:
    """P(entailment) of premise and hypothesis, by a sequence classifier one of whose labels is so called."""

    network: LoadedNetwork
    label: int

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        found: list[float] = []
        for start in range(0, len(pairs), BATCH):
            premises, hypotheses = zip(*pairs[start : start + BATCH], strict=True)
            logits = self.network(self.network.read(premises, hypotheses)).logits.float()
            found += logits.softmax(dim=-1)[:, self.label].tolist()
        return found


@cache
def entailment(uri: str) -> Entailment:
    """Load a classifier: `hf:cross-encoder/nli-deberta-v3-base`, or a folder."""
    network = read_network(uri, "AutoModelForSequenceClassification")
    labels = {str(name).lower(): number for number, name in network.model.config.id2label.items()}
    if LABEL not in labels:
        raise ModelError(
            f"none of its labels is {LABEL!r}: {', '.join(labels)}",
            where=uri,
            hint="name a model of natural language inference",
        )
    return Entailment(network, int(labels[LABEL]))
