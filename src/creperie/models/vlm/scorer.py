"""Scores from likelihoods: of the caption (VisualGPTScore), of an answer (VQAScore), or of "yes" compared with "no"."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PIL import Image

from creperie.models.choice import Turns
from creperie.models.device import Place
from creperie.models.prompts import PromptText
from creperie.models.protocols import Fingerprint, Tokens
from creperie.models.vlm.prefix import Seen
from creperie.models.vlm.reader import AnswerLine, Reader

REDUCTIONS: Mapping[str, Callable[[np.ndarray], float]] = {
    "mean": lambda logs: float(logs.mean()) if len(logs) else float("nan"),
    "sum": lambda logs: float(logs.sum()) if len(logs) else float("nan"),
}


class LikelihoodEngine(Protocol):
    """The protocol of engines. Each engine computes the log-probabilities of answers for some model architectures."""

    reader: Reader

    def see(self, image: Image.Image, turns: Turns = ()) -> Seen: ...

    def lines(self, pairs: Sequence[tuple[str, str]], *, end: bool = False, turns: Turns = ()) -> list[AnswerLine]: ...

    def log_probabilities(
        self, seen: Sequence[Seen], lines: Sequence[Sequence[AnswerLine]]
    ) -> list[list[np.ndarray]]: ...


@dataclass(frozen=True, slots=True)
class CaptionTokens(Tokens):
    """The tokens for one caption. There is one line (prompt and answer) for each possible answer."""

    lines: tuple[AnswerLine, ...] = ()


@dataclass(eq=False)
class VlmScorer:
    """The base class of pair scorers. Subclasses define the questions to ask, and how the answers become one number."""

    engine: LikelihoodEngine
    prompt: PromptText
    fingerprint: Fingerprint
    place: Place
    end: bool

    # -- called by creperie.scoring ------------------------------------------------------------------------------

    def prepare_image(self, image: Image.Image) -> Seen:
        return self.engine.see(image)

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        tokens: list[Tokens] = []
        for text in texts:
            lines = self.engine.lines(self.pairs(text), end=self.end)
            tokens.append(CaptionTokens(lines[0].ids, max(line.cut for line in lines), tuple(lines)))
        return tokens

    def forward_pairs(self, image: Seen, texts: Sequence[Tokens]) -> np.ndarray:
        return self.forward_groups([image], [texts])[0]

    def forward_groups(self, images: Sequence[Seen], texts: Sequence[Sequence[Tokens]]) -> list[np.ndarray]:
        """Return one array per image, with the scores of its captions. The images are read together, in batches."""
        captions = [[t for t in own if isinstance(t, CaptionTokens)] for own in texts]
        flat = [[line for t in own for line in t.lines] for own in captions]
        logs_of_images = self.engine.log_probabilities(images, flat)
        scores = []
        for own, logs in zip(captions, logs_of_images, strict=True):
            rest = iter(logs)
            scores.append(np.array([self.value([next(rest) for _ in t.lines]) for t in own], np.float32))
        return scores

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return self.forward_pairs(self.prepare_image(image), self.prepare_texts(texts))

    # -- defined by subclasses -----------------------------------------------------------------------------------

    def pairs(self, text: str) -> list[tuple[str, str]]:
        """Return the (question, answer) pairs for one caption."""
        raise NotImplementedError

    def value(self, logs: Sequence[np.ndarray]) -> float:
        """Return the score of a caption. `logs` are the log-probabilities of each answer's tokens."""
        raise NotImplementedError


class CaptionLikelihood(VlmScorer):
    """VisualGPTScore: the likelihood of the caption after the prompt."""

    reduce: Callable[[np.ndarray], float] = staticmethod(REDUCTIONS["mean"])

    def pairs(self, text: str) -> list[tuple[str, str]]:
        return [(self.prompt.text, text)]

    def value(self, logs: Sequence[np.ndarray]) -> float:
        return self.reduce(logs[0])


class DebiasedLikelihood(CaptionLikelihood):
    """VisualGPTScore without language bias: log P(t|I) − α·log P(t).

    P(t) is the mean of P(t|J) over images J without content.
    """

    def __init__(self, plain: CaptionLikelihood, alpha: float, nulls: Sequence[Image.Image]) -> None:
        super().__init__(plain.engine, plain.prompt, plain.fingerprint, plain.place, end=plain.end)
        self.reduce = plain.reduce
        self.alpha = alpha
        self.nulls = [plain.engine.see(image) for image in nulls]
        self._marginals: dict[bytes, float] = {}

    def forward_groups(self, images: Sequence[Seen], texts: Sequence[Sequence[Tokens]]) -> list[np.ndarray]:
        given = super().forward_groups(images, texts)
        if not self.alpha:
            return given
        self.marginals([t for own in texts for t in own])  # all captions at once, so that each null image is read once
        return [score - np.float32(self.alpha) * self.marginals(own) for score, own in zip(given, texts, strict=True)]

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return log P(t), the log-likelihood of each caption without an image."""
        return self.marginals(self.prepare_texts(texts))

    def marginals(self, texts: Sequence[Tokens]) -> np.ndarray:
        missing = list({t.ids.tobytes(): t for t in texts if t.ids.tobytes() not in self._marginals}.values())
        if missing:
            by_null = np.stack(super().forward_groups(self.nulls, [missing] * len(self.nulls)))
            for t, value in zip(missing, log_mean_exp(by_null), strict=True):
                self._marginals[t.ids.tobytes()] = float(value)
        return np.array([self._marginals[t.ids.tobytes()] for t in texts], np.float32)


def log_mean_exp(logs: np.ndarray) -> np.ndarray:
    """Return the logarithm of the mean probability over the first axis. `logs` are log-probabilities.

    >>> np.round(log_mean_exp(np.log([[0.1, 0.5], [0.3, 0.5]])), 4).tolist()
    [-1.6094, -0.6931]
    """
    top = logs.max(axis=0)
    return top + np.log(np.exp(logs - top).mean(axis=0))


class AnswerLikelihood(VlmScorer):
    """VQAScore: the probability of the answer to a question that contains the caption.

    With `geometric`, the score is the geometric mean over the answer's tokens, as published. Otherwise, it is the
    probability of the whole answer.
    """

    geometric = True

    def pairs(self, text: str) -> list[tuple[str, str]]:
        return [(self.prompt.about(text), self.prompt.answers[0])]

    def value(self, logs: Sequence[np.ndarray]) -> float:
        return math.exp(float(logs[0].mean() if self.geometric else logs[0].sum()))


class YesNo(VlmScorer):
    """The score is P(yes) / (P(yes) + P(no)). Each probability is summed over all spellings. With `decision`, the score
    is 1 if "yes" is the likelier answer, and 0 if "no" is.
    """

    decision = False

    def pairs(self, text: str) -> list[tuple[str, str]]:
        question = self.prompt.about(text)
        return [(question, answer) for answer in (*self.prompt.yes, *self.prompt.no)]

    def value(self, logs: Sequence[np.ndarray]) -> float:
        sums = np.array([float(answer.sum()) for answer in logs])
        split = len(self.prompt.yes)
        # different spellings are disjoint answers, so their probabilities add up
        yes, no = np.logaddexp.reduce(sums[:split]), np.logaddexp.reduce(sums[split:])
        margin = float(yes - no)
        return float(margin > 0) if self.decision else 1 / (1 + math.exp(-max(-700.0, min(700.0, margin))))
