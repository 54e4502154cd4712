"""Attackers as models: wherever a model URI is accepted, `blind:length`, `blind:surface`, `blind:grammar` … can be
used.

This module is a plug-in of `creperie.models`, registered as an entry point of the group `creperie.models`; that package
does not import it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.auditing.attackers import TextAttacker
from creperie.auditing.battery import AttackerModels, make_attackers
from creperie.auditing.registry import REGISTRY
from creperie.core import UsageError, __version__, unknown
from creperie.models import Fingerprint, ModelURI, Place

SHORT = {"length": "length-words"}
#: Attackers that look at one caption at a time, and so are models.
SINGLE = tuple(name for name, entry in REGISTRY.items() if entry.single)
#: Options of the URI, by attacker: the field of `AttackerModels` that each of them sets.
MODELS = {
    "grammar": {"model": "grammar"},
    "plausibility": {"model": "plausibility"},
    "gruen": {"lm": "lm", "cola": "grammar"},
}


@dataclass(frozen=True, eq=False)
class BlindScorer:
    """An attacker as a model that scores captions without the image. It prefers captions with higher scores."""

    attacker: TextAttacker
    fingerprint: Fingerprint

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self.attacker.scores(list(texts))


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> BlindScorer:
    """Return the blind model of a URI. `blind:grammar` and `blind:plausibility` accept `?model=hf:CHECKPOINT`.

    `blind:gruen?lm=lm:MODEL&cola=hf:CHECKPOINT` takes two models; with `cola=link-grammar`, a parser replaces the
    second one.
    """
    name = SHORT.get(uri.name, uri.name)
    if name not in SINGLE:
        raise unknown("blind model", uri.name, [*SINGLE, *SHORT], where=uri)
    fields = MODELS.get(name, {})
    for option in options:
        if option not in fields:
            raise UsageError(
                f"option {option!r} does not apply to {uri.kind}:{uri.name}", where=uri, hint=f"leave out {option!r}"
            )
    chosen: dict[str, Any] = {fields[option]: str(value) for option, value in options.items()}
    (attacker,) = make_attackers([name], AttackerModels(**chosen))
    assert isinstance(attacker, TextAttacker)
    # a rule has no weights: the version of its code identifies it
    model = " ".join(str(options[key]) for key in sorted(options))
    return BlindScorer(attacker, Fingerprint(str(uri), f"blind {name}", f"creperie {__version__} {model}"))
