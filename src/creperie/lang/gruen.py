"""GRUEN, a measure of linguistic quality (Zhu and Bhat 2020), computed with language models that the caller provides.

GRUEN = grammaticality + redundancy + focus, clipped to [0, 1]. Grammaticality combines the judgements of a language
model and an acceptability classifier on each sentence. Redundancy is a penalty for texts that repeat themselves. Focus
needs word vectors for a word mover's distance and affects only texts of several sentences. It is left out here, so a
caption of one sentence scores exactly as published, and a text of several sentences may score 0.1 more.
"""

from __future__ import annotations

import difflib
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.lang.tokenizing import character_similarity

#: sentences → one number each
Judge = Callable[[Sequence[str]], np.ndarray]
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
_NO_MARKS = str.maketrans("", "", string.punctuation)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that GRUEN scores. The text is split at line breaks and dots, and sentences of one
    word are dropped.

    Decimal numbers are replaced by UNK. The text is also split at ! and ?, for which the published code uses NLTK's
    model; the result is the same except after some abbreviations.

    >>> sentences("A dog runs.It weighs 2.5 kilos!\\nGood dog... Wow.")
    ['A dog runs.', 'It weighs UNK kilos!.', 'Good dog.']
    """
    spaced = text.strip().replace("\n\n", ". ").replace("\n", ". ").replace("..", ".").replace(".", ". ")
    spaced = re.sub(" {2,}", " ", spaced.replace(". . ", ". ").replace(".  . ", ". "))
    spaced = re.sub(r"\d+\. \d+", "UNK", spaced).strip()
    return [s for s in _END.split(spaced) if len(s.translate(_NO_MARKS).split()) > 1]


def grammaticality(perplexity: float, acceptability: float) -> float:
    """Return max(0, (exp(−perplexity/2) + acceptability)/8 + 1/2), where the acceptability is a logit.

    >>> grammaticality(0.0, 0.0), round(grammaticality(2.0, 3.0), 4), grammaticality(50.0, -6.0)
    (0.625, 0.921, 0.0)
    """
    return max(0.0, (float(np.exp(-0.5 * perplexity)) + acceptability) / 8.0 + 0.5)


def redundancy(parts: Sequence[str]) -> float:
    """Return the redundancy score: −0.1 for every sign of repetition in each pair of sentences.

    >>> redundancy(["I am a boy.", "I am a boy.", "I am a boy."]), redundancy(["One sentence only."])
    (-1.2000000000000002, 0.0)
    """
    pairs = [(a.strip(), b.strip()) for i, a in enumerate(parts) for b in parts[i + 1 :]]
    return -0.1 * sum(_repetitions(a, b) for a, b in pairs) if pairs else 0.0


def _repetitions(a: str, b: str) -> int:
    """Return how many of four signs of repetition two sentences show; all four if one contains the other."""
    if a in b or b in a:
        return 4
    first, second = a.split(), b.split()
    if max(len(first), len(second)) < 5:
        return 0
    shared = difflib.SequenceMatcher(None, a, b).find_longest_match(0, len(a), 0, len(b))
    span = a[shared.a : shared.a + shared.size].strip().split()
    fewer = 0.8 * min(len(first), len(second))
    apart = 1.0 - float(character_similarity([a], [b])[0])
    signs = (
        shared.size > 0.8 * min(len(a), len(b)),
        len(span) > fewer,
        apart < 0.6,
        sum(word in second for word in first) > fewer,
    )
    return sum(signs)


@dataclass(frozen=True)
class Gruen:
    """Scores the linguistic quality of texts (GRUEN). `perplexity` and `acceptability` are functions that take
    sentences and return one number for each.
    """

    perplexity: Judge
    acceptability: Judge

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the score of each text, in float32. A text in which no sentence has two or more words scores 0.625, as
        in the published code.
        """
        parts = [sentences(text) for text in texts]
        distinct = list(dict.fromkeys(s for part in parts for s in part))
        ppl = dict(zip(distinct, np.asarray(self.perplexity(distinct), float))) if distinct else {}
        cola = dict(zip(distinct, np.asarray(self.acceptability(distinct), float))) if distinct else {}
        scores = [self._score(part, ppl, cola) for part in parts]
        return np.array(scores, dtype=np.float32)

    def _score(self, part: Sequence[str], ppl: dict[str, float], cola: dict[str, float]) -> float:
        mean = [float(np.mean([judged[s] for s in part])) if part else 0.0 for judged in (ppl, cola)]
        return min(1.0, max(0.0, grammaticality(*mean) + redundancy(part)))
