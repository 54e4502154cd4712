"""A language model tuned on the benchmark's own captions. It shows what can be learned from the captions without the
image.

The model gets a head that returns one number for each caption. The head and the upper layers are trained so that the
true caption of a pair gets the higher number (pairwise logistic loss). The answers are out of fold, and every fold of
every subset starts from the same weights. This is the k-fold stress test of a benchmark's text (arXiv 2511.04655),
applied to a choice between two captions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.auditing.learned import MarginSource
from creperie.auditing.null import FEWEST
from creperie.auditing.pairs import Pairs, training_blocks
from creperie.core import Progress, batched

FOLDS = 3
#: Most pairs that one model learns from, by device: beyond that, a processor takes minutes more per fold.
MOST = {"cuda": 20_000, "cpu": 300}
#: Most epochs; large sets are learned from for at least two, and for no more than `STEPS` steps if that is more.
EPOCHS, STEPS = 6, 200
#: Pairs per step, and captions per batch when captions are scored.
BATCH, ASKED = 32, 256
RATE, HEAD_RATE, WARMUP = 1e-4, 1e-3, 0.1
#: The share of the layers that is trained, from the last one downwards.
TRAINED = 1 / 2


@dataclass(eq=False)
class TunedLanguageModel(MarginSource):
    """Computes the margins of a language model that is tuned anew for each subset and fold."""

    open: Callable[[], Any]  #: loads the language model: an adapter with `model`, `place`, `start` and `token_ids`

    def _learned(self, pairs: Pairs, name: str, progress: Progress) -> dict[str, np.ndarray]:
        margins = np.full(len(pairs), np.nan, np.float32)
        adapter = self.open()
        used = np.unique(np.concatenate([pairs.left, pairs.right]))
        ids_of_texts = zip(used.tolist(), adapter.token_ids(pairs.captions_at(used)), strict=True)
        lines = {index: adapter.start + ids or [0] for index, ids in ids_of_texts}
        asked = [(lines[a], lines[b]) for a, b in zip(pairs.left.tolist(), pairs.right.tolist())]
        with progress(name, len(pairs), "pairs") as advance:
            for keep in training_blocks(pairs):
                members = np.flatnonzero(keep[pairs.item])
                fold = pairs.folds_of(members, FOLDS, self.seed)
                for k in np.unique(fold):
                    train, test = members[fold != k], members[fold == k]
                    if len(train) >= FEWEST:
                        tuned = [asked[i] for i in train], [asked[i] for i in test]
                        margins[test] = margins_after_tuning(adapter, *tuned, self.seed)
                    advance(len(test))
        return {name: margins}


#: The token ids of a true and of a false caption.
TokenPair = tuple[list[int], list[int]]


def margins_after_tuning(
    adapter: Any, learned: Sequence[TokenPair], asked: Sequence[TokenPair], seed: int
) -> np.ndarray:
    """Tune a copy of the model on the `learned` pairs. Return, for each `asked` pair, the score of the true caption
    minus that of the false one.
    """
    import torch

    device = adapter.place.torch_device
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(learned))[: MOST.get(device.type, MOST["cuda"])]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        scorer = _scorer(adapter.model.base_model, device)
        with torch.enable_grad():
            _tune(scorer, [learned[i] for i in some], rng)
    scores = _scored(scorer, [line for pair in asked for line in pair]).reshape(-1, 2)
    return (scores[:, 0] - scores[:, 1]).astype(np.float32)


def _tune(scorer: Any, learned: Sequence[TokenPair], rng: np.random.Generator) -> None:
    """Train the model on batches whose pairs have similar lengths. The learning rate rises, then falls to zero."""
    import torch

    per_epoch = -(-len(learned) // BATCH)
    epochs = max(2, min(EPOCHS, STEPS // per_epoch))
    body = [p for p in scorer.body.parameters() if p.requires_grad]
    groups = [{"params": body, "lr": RATE}, {"params": scorer.head.parameters(), "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = epochs * per_epoch
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (1 + WARMUP * steps), 1 - step / steps)
    )
    lengths = np.array([max(map(len, pair)) for pair in learned])
    scorer.train()
    for _ in range(epochs):
        order = np.argsort(lengths + rng.random(len(learned)) * 3, kind="stable")
        for batch in rng.permutation(np.arange(per_epoch)):
            pairs = [learned[i] for i in order[batch * BATCH : (batch + 1) * BATCH]]
            scores = scorer([line for pair in pairs for line in pair]).view(-1, 2)
            loss = torch.nn.functional.softplus(scores[:, 1] - scores[:, 0]).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(body, 1.0)
            optimizer.step()
            schedule.step()
    scorer.eval()


def _scored(scorer: Any, lines: Sequence[list[int]]) -> np.ndarray:
    """Return the score of each caption, given as token ids. Equal captions are scored once."""
    import torch

    distinct = sorted({tuple(line) for line in lines}, key=lambda line: (len(line), line))
    scores = dict[tuple[int, ...], float]()
    with torch.inference_mode():
        for batch in batched(distinct, ASKED):
            scores.update(zip(batch, scorer(batch).tolist()))
    return np.array([scores[tuple(line)] for line in lines], np.float32)


def _scorer(body: Any, device: Any) -> Any:
    """Return a copy of the language model with a layer that returns a score, as a `CaptionScorer`."""
    # The class is defined inside the function so that torch is imported only when needed.
    import torch

    class CaptionScorer(torch.nn.Module):
        """A network that takes the token ids of captions and returns one number for each, computed at its
        last token.
        """

        def __init__(self) -> None:
            super().__init__()
            self.body = copy.deepcopy(body).float().to(device)
            self.body.requires_grad_(requires_grad=False)
            layers = max((m for m in self.body.modules() if isinstance(m, torch.nn.ModuleList)), key=len)
            for layer in layers[-max(1, round(len(layers) * TRAINED)) :]:
                layer.requires_grad_()
            self.head = torch.nn.Linear(self.body.config.hidden_size, 1, bias=False, device=device)
            torch.nn.init.normal_(self.head.weight, std=0.02)

        def forward(self, lines: Sequence[Sequence[int]]) -> Any:
            last = torch.tensor([len(line) - 1 for line in lines], device=device)
            width = max(map(len, lines))
            ids = torch.tensor([[*line, *[0] * (width - len(line))] for line in lines], device=device)
            seen = torch.arange(width, device=device)[None] <= last[:, None]
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                states = self.body(input_ids=ids, attention_mask=seen.long()).last_hidden_state
            return self.head(states[torch.arange(len(lines), device=device), last].float())[:, 0]

    return CaptionScorer()
