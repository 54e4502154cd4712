"""The trigram language model of the pocketsphinx package. It is small and fast, and serves as a baseline from before
neural networks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from creperie.core import ModelError, UsageError, sha256_of
from creperie.models.lm.likelihood import REDUCTIONS
from creperie.models.protocols import Fingerprint
from creperie.models.uri import ModelURI

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
ORDER = 3
UNSEEN = -16.118  #: ln 1e-7, for words outside the vocabulary
UNKNOWN = -1000.0  #: smaller values mean that the word is not in the vocabulary


def load_trigram(uri: ModelURI, options: Mapping[str, Any]) -> TrigramLM:
    for name in ("prompt", "max_length", "revision"):
        if name in uri.options:
            raise UsageError(f"option {name!r} does not apply to a trigram model", where=uri, hint="leave it out")
    import pocketsphinx

    path = Path(pocketsphinx.get_model_path("en-us/en-us.lm.bin"))
    if not path.is_file():
        hint = "install a version of pocketsphinx that contains this file, such as 5.1.1"
        raise ModelError("the installed pocketsphinx does not contain en-us.lm.bin", where=uri, hint=hint)
    logmath = pocketsphinx.LogMath()
    library = pocketsphinx.NGramModel(pocketsphinx.Config(lm=None, hmm=None, dict=None), logmath, str(path))
    fingerprint = Fingerprint(
        uri=str(uri),
        architecture="pocketsphinx trigram",
        weights=sha256_of(path),
        options={"reduce": options["reduce"]},
    )
    return TrigramLM(lambda words: float(logmath.log_to_ln(library.prob(words))), fingerprint)


class TrigramLM:
    """A text scorer by log P(word | the two words before it), including the end of the sentence. It reads captions in
    lower case and without punctuation.

    A word outside the vocabulary gets the probability 1e-7 and is not used as context for later words.
    """

    def __init__(self, probability: Callable[[list[str]], float], fingerprint: Fingerprint) -> None:
        self._probability = probability  #: probability of the first word given the others, nearest first
        self._unknown = lru_cache(maxsize=1 << 16)(lambda word: probability([word]) < UNKNOWN)
        self.fingerprint = fingerprint

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        reduce = REDUCTIONS[str(self.fingerprint.options["reduce"])]
        return np.array([reduce(logs) for logs in self.log_probabilities(texts)], np.float32)

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return one float32 array per caption: the log-probability of each word and of the sentence end."""
        return [np.array(self._words(text), np.float32) for text in texts]

    def _words(self, text: str) -> list[float]:
        known = ["<s>"]
        logs = []
        for word in [*_WORD.findall(text.lower()), "</s>"]:
            if self._unknown(word):
                logs.append(UNSEEN)
                known = []
                continue
            known.append(word)
            logs.append(self._probability(known[: -ORDER - 1 : -1]))
        return logs
