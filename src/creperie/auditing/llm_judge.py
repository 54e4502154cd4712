"""A language model that is asked: which of two sentences describes a real photograph?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from creperie.auditing.learned import RemembersMargins
from creperie.auditing.pairs import Pairs
from creperie.core import Progress
from creperie.models import Generator, Prompt, parse_choice

QUESTION = """A person who looked at a photograph wrote one of these two sentences. The other is a changed copy of it.
(1) {first}
(2) {second}
Which one describes a real photograph? Answer with (1) or (2) only."""
BATCH = 64


@dataclass(frozen=True)
class LlmJudge(RemembersMargins):
    """Every pair is asked in both orders; a margin is the mean of the two answers, 0 where they contradict."""

    model: Generator
    name: str = "judge"
    prefers: str = "the sentence that a language model takes for a real photograph's"
    otherwise: str = ""
    directed: bool = True
    learns: bool = False
    _known: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        """Each two captions are asked about once, whatever their roles."""
        asked = sorted({(min(a, b), max(a, b)) for a, b in zip(pairs.left.tolist(), pairs.right.tolist()) if a != b})
        chosen: dict[tuple[int, int], float] = {}
        with progress(self.name, 2 * len(asked), "questions") as advance:
            for start in range(0, len(asked), BATCH):
                batch = asked[start : start + BATCH]
                chosen |= self._answers(batch, pairs.texts)
                advance(2 * len(batch))
        margins = [
            chosen.get((a, b), 0.0) - chosen.get((b, a), 0.0) for a, b in zip(pairs.left.tolist(), pairs.right.tolist())
        ]
        return np.array(margins, dtype=np.float32)

    def _answers(self, batch: Sequence[tuple[int, int]], texts: Sequence[str]) -> Mapping[tuple[int, int], float]:
        """How far the first of each two is preferred, from −1 to 1."""
        orders = [order for a, b in batch for order in ((a, b), (b, a))]
        options = [(texts[a].strip(), texts[b].strip()) for a, b in orders]
        prompts = [Prompt((("user", QUESTION.format(first=a, second=b)),), max_tokens=8) for a, b in options]
        votes = []
        for answer, shown in zip(self.model.generate(prompts), options, strict=True):
            at = parse_choice(answer, shown).option
            votes.append(0.0 if at is None else 1.0 - 2.0 * at)
        return {pair: (votes[2 * k] - votes[2 * k + 1]) / 2 for k, pair in enumerate(batch)}
