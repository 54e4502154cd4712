"""A text encoder, fine-tuned out of fold to tell true captions from false ones: the strongest attacker of its size.

The encoder's lower half stays as it is, so every caption passes through it once and training touches the upper half
alone. A pair's margin is s(true) − s(false), s a linear function of the mean of the token vectors and of the caption's
lengths and marks of style, which tokenizers hide (capitals, blanks); training minimises its logistic loss, and stops
when the loss on a held-out part of the training pairs no longer falls.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from creperie.auditing.features import summary
from creperie.auditing.folds import grouped_folds
from creperie.auditing.learned import RemembersMargins
from creperie.auditing.measure import fit_scale
from creperie.auditing.pairs import Pairs, training_blocks
from creperie.core import ModelError, Progress, missing_extra
from creperie.models import load_model

FOLDS, FOLDS_WHEN_SMALL, SMALL = 3, 5, 600
#: Pairs that one model learns from, at most; passes over them, at most; pairs per step.
MOST, EPOCHS, BATCH = 2000, 4, 16
RATE, HEAD_RATE, STYLE_RATE = 1e-4, 2e-3, 1e-2
LONGEST = 64
#: The share of the training pairs on which early stopping looks.
HELD_OUT = 6
#: From fewer pairs than this nothing is learned.
FEWEST = 40


@dataclass(frozen=True)
class FinetunedAttacker(RemembersMargins):
    """Any encoder of the sentence-transformers library (`st:`), by URI."""

    uri: str
    seed: int = 0
    name: str = "finetuned"
    prefers: str = "what an encoder tuned on the other folds prefers"
    otherwise: str = ""
    directed: bool = True
    _known: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        found = np.full(len(pairs), np.nan, dtype=np.float32)
        tower = _Tower(self.uri)
        blocks = [np.flatnonzero(keep[pairs.item]) for keep in training_blocks(pairs)]
        folds = [pairs.folds_of(mine, _folds(len(mine)), self.seed) for mine in blocks]
        with progress(self.name, sum(len(np.unique(f)) for f in folds), "folds") as advance:
            for mine, fold in zip(blocks, folds):
                lower = tower.lower_states(pairs.texts, np.concatenate([pairs.left[mine], pairs.right[mine]]))
                for k in np.unique(fold):
                    train, test = mine[fold != k], mine[fold == k]
                    if len(train) >= FEWEST:
                        found[test] = self._fold(tower, lower, pairs, train, test)
                    advance(1)
        return found

    def _fold(
        self, tower: _Tower, lower: dict[int, Any], pairs: Pairs, train: np.ndarray, test: np.ndarray
    ) -> np.ndarray:
        rng = np.random.Generator(np.random.PCG64(self.seed))
        if len(train) > MOST:
            train = np.sort(rng.choice(train, MOST, replace=False))
        inner = grouped_folds(pairs.group[pairs.item[train]], HELD_OUT, self.seed + 1)
        seen, watched = train[inner != 0], train[inner == 0]
        model = tower.trainable(self.seed, _styles(pairs, seen))
        best, least = copy.deepcopy(model.state_dict()), np.inf
        for _ in range(EPOCHS):
            for batch in np.array_split(rng.permutation(seen), max(1, len(seen) // BATCH)):
                model.step(lower, pairs.left[batch], pairs.right[batch])
            loss = float(np.mean(np.logaddexp(0, -model.margins(lower, pairs.left[watched], pairs.right[watched]))))
            if loss >= least:
                break
            best, least = copy.deepcopy(model.state_dict()), loss
        model.load_state_dict(best)
        scale = fit_scale(model.margins(lower, pairs.left[watched], pairs.right[watched]))
        return model.margins(lower, pairs.left[test], pairs.right[test]) * scale


def _folds(pairs: int) -> int:
    return FOLDS_WHEN_SMALL if pairs < SMALL else FOLDS


def _styles(pairs: Pairs, seen: np.ndarray) -> np.ndarray:
    """Lengths and marks of every caption; their differences within the training pairs have unit size."""
    found = np.array([summary(t) for t in pairs.texts], dtype=np.float32)
    size = np.sqrt(np.mean((found[pairs.left[seen]] - found[pairs.right[seen]]) ** 2, axis=0))
    return np.divide(found, size, out=np.zeros_like(found), where=size > 0)


class _Tower:
    """The transformer inside an encoder, cut into a lower half that stays and an upper half that learns."""

    def __init__(self, uri: str) -> None:
        library: Any = getattr(load_model(uri), "library", None)
        inner = getattr(library[0], "auto_model", None) if library is not None else None
        layers = getattr(getattr(inner, "encoder", None), "layer", None)
        if inner is None or layers is None:
            raise ModelError("this encoder cannot be fine-tuned here", where=uri, hint="pass a BERT-like `st:` model")
        self.inner, self.layers, self.tokenizer = inner.eval(), layers, library.tokenizer
        self.cut = len(layers) // 2

    def lower_states(self, texts: Sequence[str], wanted: np.ndarray) -> dict[int, Any]:
        """Every caption's token vectors behind the lower half, by its number."""
        import torch

        rows = sorted(set(wanted.tolist()), key=lambda i: (len(texts[i]), i))
        found: dict[int, Any] = {}
        for start in range(0, len(rows), 128):
            batch = rows[start : start + 128]
            shown = [texts[i] for i in batch]
            tokens = self.tokenizer(shown, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
            tokens = tokens.to(self.inner.device)
            with torch.no_grad():
                states = self.inner.embeddings(tokens["input_ids"], token_type_ids=tokens.get("token_type_ids"))
                states = _through(self.layers[: self.cut], states, tokens["attention_mask"])
            for i, state, length in zip(batch, states, tokens["attention_mask"].sum(1).tolist()):
                found[i] = state[:length].clone()
        return found

    def trainable(self, seed: int, styles: np.ndarray) -> Any:
        """A fresh copy of the upper half with a head, and its optimizer."""
        import torch

        torch.manual_seed(seed)
        upper = copy.deepcopy(self.layers[self.cut :])
        return _upper_half(upper, self.inner.config.hidden_size, self.inner.device, styles)


def _through(layers: Any, states: Any, mask: Any) -> Any:
    """Hidden states through some layers, with padding masked out."""
    import torch

    hidden = torch.zeros_like(mask[:, None, None, :], dtype=states.dtype).masked_fill(
        mask[:, None, None, :] == 0, torch.finfo(states.dtype).min
    )
    for layer in layers:
        out = layer(states, hidden)
        states = out[0] if isinstance(out, tuple) else out
    return states


def _upper_half(layers: Any, width: int, device: Any, styles: np.ndarray) -> Any:
    """Built here, so that torch is imported only when it is used."""
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "models") from None

    class UpperHalf(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.head = layers, torch.nn.Linear(width, 1, bias=False)
            self.style, self.styles = torch.nn.Linear(styles.shape[1], 1, bias=False), torch.from_numpy(styles)
            for head in (self.head, self.style):
                torch.nn.init.zeros_(head.weight)
            self.to(device).eval()  # no dropout: a handful of passes over few pairs, and early stopping
            parts = ((self.layers, RATE), (self.head, HEAD_RATE), (self.style, STYLE_RATE))
            groups = [{"params": list(part.parameters()), "lr": rate} for part, rate in parts]
            self.optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
            for p in self.parameters():
                p.requires_grad_(True)

        def scores(self, lower: dict[int, Any], texts: np.ndarray) -> Any:
            states = torch.nn.utils.rnn.pad_sequence([lower[i] for i in texts.tolist()], batch_first=True)
            lengths = torch.tensor([len(lower[i]) for i in texts.tolist()], device=states.device)
            mask = (torch.arange(states.shape[1], device=states.device)[None] < lengths[:, None]).long()
            out = _through(self.layers, states, mask)
            style = self.style(self.styles[torch.from_numpy(texts)].to(states.device))
            return (self.head((out * mask[..., None]).sum(1) / lengths[:, None]) + style)[:, 0]

        def step(self, lower: dict[int, Any], left: np.ndarray, right: np.ndarray) -> None:
            both = self.scores(lower, np.concatenate([left, right]))
            loss = torch.nn.functional.softplus(both[len(left) :] - both[: len(left)]).mean()
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)
            self.optimizer.step()

        def margins(self, lower: dict[int, Any], left: np.ndarray, right: np.ndarray) -> np.ndarray:
            order = np.argsort([len(lower[i]) for i in left.tolist()], kind="stable")
            found = np.zeros(len(left), dtype=np.float32)
            with torch.inference_mode():
                for start in range(0, len(order), 128):
                    rows = order[start : start + 128]
                    both = self.scores(lower, np.concatenate([left[rows], right[rows]])).float().cpu().numpy()
                    found[rows] = both[: len(rows)] - both[len(rows) :]
            return found

    return UpperHalf()
