"""Does the true caption already say what the foil says? A model of natural language inference decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.errors import ModelError, missing_extra
from creperie.make.candidate import Candidate
from creperie.make.source import Source
from creperie.models.hub import model_folder
from creperie.models.place import Place, exact, find_place
from creperie.models.uri import parse_uri

BATCH = 64
LABEL = "entailment"


@dataclass(frozen=True)
class NotEntailed:
    """A foil that follows from the true caption is true as well. `most` is the probability that is tolerated."""

    uri: str
    most: float = 0.5

    def review(self, pairs: Sequence[tuple[Source, Candidate]]) -> list[str | None]:
        foils = [(s.text, c.text) for s, c in pairs if c.role == "negative"]
        found = iter(entailment(self.uri).probabilities(foils) if foils else [])
        reason = "entailed by the source"
        return [reason if c.role == "negative" and next(found) > self.most else None for _, c in pairs]


class Entailment:
    """P(entailment) of premise and hypothesis, by a sequence classifier one of whose labels is so called."""

    def __init__(self, model: Any, tokenizer: Any, place: Place, label: int) -> None:
        self.model, self.tokenizer, self.place, self.label = model, tokenizer, place, label

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        import torch

        found: list[float] = []
        for start in range(0, len(pairs), BATCH):
            premises, hypotheses = zip(*pairs[start : start + BATCH], strict=True)
            encoded = self.tokenizer(
                list(premises), list(hypotheses), return_tensors="pt", padding=True, truncation=True
            )
            with exact():
                logits = self.model(**encoded.to(self.place.torch_device)).logits.float()
            found += torch.softmax(logits, dim=-1)[:, self.label].tolist()
        return found


@cache
def entailment(uri: str) -> Entailment:
    """Load a classifier: `hf:cross-encoder/nli-deberta-v3-base`, or a folder."""
    try:
        import transformers
    except ImportError as e:
        raise missing_extra(e.name or "transformers", "models") from e
    place = find_place("auto", "float32")
    folder = model_folder(parse_uri(uri).name, uri=uri)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=place.torch_dtype)
    except (OSError, ValueError, KeyError) as e:
        raise ModelError(f"this is no classifier that can be read: {str(e).splitlines()[0]}", where=uri) from e
    labels = {str(name).lower(): number for number, name in model.config.id2label.items()}
    if LABEL not in labels:
        raise ModelError(
            f"none of its labels is {LABEL!r}: {', '.join(labels)}",
            where=uri,
            mend="name a model of natural language inference",
        )
    return Entailment(model.eval().to(place.torch_device), tokenizer, place, int(labels[LABEL]))
