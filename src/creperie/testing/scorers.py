"""A slow blind model for tests of faults: it lives here because workers in other processes import it."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from creperie.models.options import Option
from creperie.models.place import Place
from creperie.models.protocols import Fingerprint
from creperie.models.registry import KINDS, Kind
from creperie.models.uri import ModelURI

KIND = "slow"


class SlowScorer:
    """A caption's digest as its score, after some seconds a batch. Every batch that is begun leaves a mark in a folder.

    With `dies`, the process that comes to the batch of that number kills itself, once.
    """

    def __init__(self, marks: str, seconds: float, dies: int) -> None:
        self.marks = Path(marks)
        self.seconds = seconds
        self.dies = dies

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(f"{KIND}:x", "a digest", "1")  # the same however slow it is

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        digests = [hashlib.sha256(t.encode()).digest() for t in texts]
        (self.marks / f"{digests[0].hex()[:16]}-{len(texts)}-{time.time_ns()}-{os.getpid()}").touch()
        if self.dies and len(list(self.marks.iterdir())) >= self.dies and not (self.marks / ".died").exists():
            (self.marks / ".died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        return np.array([int.from_bytes(d[:2], "big") / 65_536 for d in digests], np.float32)


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> SlowScorer:
    return SlowScorer(uri.name, float(options.get("seconds") or 0), int(options.get("dies") or 0))


def register() -> None:
    """Make it known to this process: `slow:FOLDER?seconds=0.5`."""
    options = (
        Option("seconds", "how long a batch takes"),
        Option("dies", "the batch at which its process ends", "number"),
        Option("reduce", "asked of every language model; without meaning here"),
    )
    KINDS[KIND] = Kind("creperie.testing.scorers:load", "for tests of faults", f"{KIND}:marks", options=options)
