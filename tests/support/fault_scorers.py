"""Slow models for tests of faults: they live here because workers in other processes import them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fault_stages import begin

from creperie.models import KINDS, Fingerprint, ModelKind, ModelOption, ModelURI, Place, Prompt

KIND, SPEAKER = "slow", "slow-speaker"


class SlowScorer:
    """A caption's digest as its score, after some seconds per batch. Every batch that is begun leaves a mark."""

    def __init__(self, marks: str, seconds: float) -> None:
        self.marks = Path(marks)
        self.seconds = seconds

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(f"{KIND}:x", "a digest", "1")  # the same however slow it is

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        digests = [hashlib.sha256(t.encode()).digest() for t in texts]
        begin(self.marks, digests[0].hex()[:16])
        time.sleep(self.seconds)
        return np.array([int.from_bytes(d[:2], "big") / 65_536 for d in digests], np.float32)


class SlowSpeaker:
    """A validator to whom no two captions say the same; marks and seconds as above."""

    def __init__(self, marks: str, seconds: float) -> None:
        self.marks = Path(marks)
        self.seconds = seconds

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(f"{SPEAKER}:x", "no", "1")

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        begin(self.marks, hashlib.sha256(str(prompts[0]).encode()).hexdigest()[:16])
        time.sleep(self.seconds)
        return [json.dumps({"reason": "so it is", "verdict": "no", "correction": "NA"})] * len(prompts)


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> SlowScorer | SlowSpeaker:
    model = SlowScorer if uri.kind == KIND else SlowSpeaker
    return model(uri.name, float(options.get("seconds") or 0))


def register() -> None:
    """Make them known to this process: `slow:FOLDER?seconds=0.5` scores, `slow-speaker:FOLDER` answers."""
    options = (
        ModelOption("seconds", "how long a batch takes"),
        ModelOption("reduce", "asked of every language model; without meaning here"),
    )
    for kind in (KIND, SPEAKER):
        KINDS[kind] = ModelKind("fault_scorers:load", "for tests of faults", f"{kind}:marks", options=options)
