"""The trigram language model inside the pocketsphinx package: light, quick, and old on purpose."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from creperie.errors import ModelError, UsageError, missing_extra
from creperie.models.lm.likelihood import REDUCTIONS
from creperie.models.protocols import Fingerprint
from creperie.models.uri import ModelURI

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
ORDER = 3


def load_trigram(uri: ModelURI, options: Mapping[str, Any]) -> TrigramLM:
    for name in ("prompt", "start", "max_length", "revision"):
        if name in uri.options:
            raise UsageError(f"option {name!r} does not apply to a trigram model", where=str(uri))
    try:
        import pocketsphinx
    except ImportError as e:
        raise missing_extra("pocketsphinx", "lang") from e
    path = Path(pocketsphinx.get_model_path("en-us/en-us.lm.bin"))
    if not path.is_file():
        raise ModelError("the package holds no en-us.lm.bin", where=str(uri))
    config = pocketsphinx.Config(lm=None, hmm=None, dict=None)
    library = pocketsphinx.NGramModel(config, pocketsphinx.LogMath(), str(path))
    fingerprint = Fingerprint(
        uri=str(uri),
        architecture="pocketsphinx trigram",
        weights=hashlib.sha256(path.read_bytes()).hexdigest(),
        options={"reduce": options["reduce"]},
    )
    return TrigramLM(library, fingerprint)


class TrigramLM:
    """log P(word | the two words before it), with sentence marks; words are lower-cased, marks left out."""

    def __init__(self, library: Any, fingerprint: Fingerprint) -> None:
        self.library = library
        self._fingerprint = fingerprint
        # the library answers in its own integer logarithm
        self._unit = math.log(pocketsphinx_base(library))

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        reduce = REDUCTIONS[str(self.fingerprint.options["reduce"])]
        return np.array([reduce(logs) for logs in self.log_probabilities(texts)], dtype=np.float32)

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [self._words(text) for text in texts]

    def _words(self, text: str) -> np.ndarray:
        words = ["<s>", *_WORD.findall(text.lower()), "</s>"]
        logs = [
            self.library.prob(list(reversed(words[max(0, i - ORDER + 1) : i + 1]))) * self._unit
            for i in range(1, len(words))
        ]
        return np.array(logs, dtype=np.float32)


def pocketsphinx_base(library: Any) -> float:
    """The base of the library's logarithm."""
    return 1.0001
