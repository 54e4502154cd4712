"""A small neural language model of the corpus, trained only on true captions of other images.

It is a recurrent network (GRU) over words, with the same embeddings for input and output. It is trained from scratch
for each fold, which takes seconds for a thousand captions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from creperie.core import missing_extra
from creperie.lang import words

WIDTH = 128
#: Epochs, captions per step, and most captions that one model learns from.
EPOCHS, BATCH, MOST = 6, 64, 20_000
RATE, DROPOUT = 4e-3, 0.3
#: 0 is padding, 1 begins and ends a caption, 2 is a word that was seen less than twice.
BORDER, RARE, FIRST = 1, 2, 3


def network_scores(texts: Sequence[str], seed: int, train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
    """Return the mean log-probability per word of each `test` caption, under a network trained on the `train` captions.
    Captions are given by their position in `texts`.
    """
    some = np.random.default_rng(seed).permutation(train)[:MOST]
    return [likelihoods([texts[i] for i in some], [texts[i] for i in test], seed)]


def likelihoods(learned: Sequence[str], asked: Sequence[str], seed: int = 0) -> np.ndarray:
    """Return the mean log-probability per word of each `asked` caption, under a network trained on the `learned`
    captions.
    """
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
    scores = np.zeros(len(asked), np.float32)
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
    """Return a new network for a vocabulary of this size."""
    # The class is defined inside the function so that torch is imported only when needed.
    import torch

    class CaptionModel(torch.nn.Module):
        """A network that takes rows of word numbers and returns the surprisal of each word except the first. The
        surprisal of padding is 0.
        """

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
