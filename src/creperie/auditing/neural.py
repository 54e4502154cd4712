"""A small neural language model of the corpus: it learns from true captions of other images alone.

A recurrent network (GRU) over words, with one table of word vectors for reading and for guessing. It is trained from
scratch, once per fold, in seconds for a thousand captions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.auditing.corpus import Corpus
from creperie.auditing.learned import RemembersMargins
from creperie.auditing.pairs import Pairs, margins_of_scores
from creperie.core import Progress, missing_extra
from creperie.lang import words

FOLDS = 3
WIDTH = 128
#: Passes over the captions, captions per step, and the captions that one model learns from at most.
EPOCHS, BATCH, MOST = 6, 64, 20_000
RATE, DROPOUT = 4e-3, 0.3
#: 0 is padding, 1 begins and ends a caption, 2 is a word that was seen less than twice.
BORDER, RARE, FIRST = 1, 2, 3


@dataclass(frozen=True, kw_only=True)
class NeuralAttacker(RemembersMargins):
    """Prefers the caption that the model of other images' captions finds likelier per word."""

    corpus: Corpus
    name: str = "neural-lm"
    prefers: str = "the caption more like those of other images"
    otherwise: str = "the caption less like those of other images"
    directed: bool = False

    @property
    def learns(self) -> bool:
        """True where its corpus is the benchmark's own true captions."""
        return not self.corpus.spec

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        texts, own = self.corpus.texts(pairs)
        margins = np.full(len(pairs), np.nan, dtype=np.float32)
        for asked, train, test in self.corpus.folds(pairs, FOLDS, progress):
            some = np.random.default_rng(self.seed).permutation(train)[:MOST]
            of_texts = np.full(len(pairs.texts), np.nan, dtype=np.float32)
            of_texts[own[test]] = likelihoods([texts[i] for i in some], [texts[i] for i in test], self.seed)
            margins[asked] = margins_of_scores(pairs, of_texts)[asked]
        return margins


def likelihoods(learned: Sequence[str], asked: Sequence[str], seed: int = 0) -> np.ndarray:
    """The mean log-probability per word of some captions, by a model that is trained on others."""
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "models") from None
    often = Counter(word for text in learned for word in words(text))
    number = {word: k for k, word in enumerate((w for w, n in often.items() if n > 1), FIRST)}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _network(FIRST + len(number)).to("cuda" if torch.cuda.is_available() else "cpu")
        _train(model, _coded(learned, number), seed)
    scores = np.zeros(len(asked), dtype=np.float32)
    lines = _coded(asked, number)
    model.eval()
    with torch.inference_mode():
        for batch in _batches(lines, np.argsort([len(line) for line in lines], kind="stable")):
            rows = torch.nn.utils.rnn.pad_sequence([lines[i] for i in batch], batch_first=True).to(model.bias.device)
            scores[batch] = -model(rows).sum(1).div((rows[:, 1:] > 0).sum(1)).cpu().numpy()
    return scores


def _coded(texts: Sequence[str], number: dict[str, int]) -> list[Any]:
    import torch

    return [torch.tensor([BORDER, *(number.get(w, RARE) for w in words(text)), BORDER]) for text in texts]


def _batches(lines: Sequence[Any], order: np.ndarray) -> list[np.ndarray]:
    return np.array_split(order, -(-len(lines) // BATCH)) if len(lines) else []


def _train(model: Any, lines: Sequence[Any], seed: int) -> None:
    import torch

    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    steps = EPOCHS * len(_batches(lines, np.arange(len(lines))))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / max(1, steps))
    lengths = np.array([len(line) for line in lines])
    for _ in range(EPOCHS):
        batches = _batches(lines, np.argsort(lengths + rng.random(len(lines)), kind="stable"))  # of like length
        for k in rng.permutation(len(batches)):
            rows = torch.nn.utils.rnn.pad_sequence([lines[i] for i in batches[k]], batch_first=True)
            rows = rows.to(model.bias.device)
            loss = model(rows).sum() / (rows[:, 1:] > 0).sum()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()


def _network(size: int) -> Any:
    """Built here, so that torch is imported only when it is used."""
    import torch

    class CaptionModel(torch.nn.Module):
        """Rows of numbered words to the surprise at each word but the first; 0 where there is none."""

        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(size, WIDTH, padding_idx=0)
            torch.nn.init.normal_(self.words.weight, std=0.1)
            self.memory = torch.nn.GRU(WIDTH, WIDTH, batch_first=True)
            self.dropout = torch.nn.Dropout(DROPOUT)
            self.bias = torch.nn.Parameter(torch.zeros(size))

        def forward(self, rows: Any) -> Any:
            states, _ = self.memory(self.dropout(self.words(rows[:, :-1])))
            guesses = self.dropout(states) @ self.words.weight.T + self.bias
            return torch.nn.functional.cross_entropy(
                guesses.transpose(1, 2), rows[:, 1:], ignore_index=0, reduction="none"
            )

    return CaptionModel()
