"""A text encoder, fine-tuned out of fold to tell true captions from false ones: the strongest attacker of its size.

A wide and deep model: logistic regression on n-grams, lengths and marks of style, which tokenizers hide (capitals,
blanks), and beside it a transformer that learns what the regression misses. The transformer's lower half stays as it
is, so every caption passes through it once and training touches the upper half alone. Its part of a pair's margin is
s(true) − s(false), s a linear function of the mean of the token vectors. Training minimises the logistic loss of the
whole margin, in which the regression answers training pairs out of inner folds, and stops when the loss on a held-out
part of the training pairs no longer falls. Few pairs are answered by the mean of several such models.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.auditing.features import PairFeatures, pair_features
from creperie.auditing.folds import grouped_folds
from creperie.auditing.learned import INNER_FOLDS, RemembersMargins
from creperie.auditing.linear import fit_linear
from creperie.auditing.measure import fit_scale, log_loss
from creperie.auditing.pairs import Pairs, one_thread, training_blocks
from creperie.core import ModelError, Progress, missing_extra
from creperie.models import load_model

FOLDS, FOLDS_WHEN_SMALL, SMALL = 3, 5, 1000
#: Models of a fold with fewer than so many training pairs, each with another held-out part.
MEMBERS, FEW = 3, 400
#: Pairs that one model learns from, at most; passes over them, at most; pairs per step.
MOST, EPOCHS, BATCH = 2000, 4, 16
RATE, HEAD_RATE = 1e-4, 2e-3
LONGEST = 64
#: The share of the training pairs on which early stopping looks.
HELD_OUT = 6
#: From fewer pairs than this nothing is learned.
FEWEST = 40
Lower = dict[int, Any]  #: token vectors by caption
Rows = tuple[np.ndarray, np.ndarray]  #: training and test pairs


@dataclass(frozen=True)
class FinetunedAttacker(RemembersMargins):
    """Any encoder of the sentence-transformers library (`st:`), by URI."""

    uri: str
    name: str = "finetuned"
    prefers: str = "what an encoder tuned on the other folds prefers"

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        found = np.full(len(pairs), np.nan, dtype=np.float32)
        tower = _Tower(self.uri)
        blocks = [np.flatnonzero(keep[pairs.item]) for keep in training_blocks(pairs)]
        folds = [pairs.folds_of(mine, FOLDS_WHEN_SMALL if len(mine) < SMALL else FOLDS, self.seed) for mine in blocks]
        features = pair_features(pairs)
        with progress(self.name, sum(len(np.unique(f)) for f in folds), "folds") as advance:
            for mine, fold in zip(blocks, folds):
                lower = tower.lower_states(pairs.texts, np.concatenate([pairs.left[mine], pairs.right[mine]]))
                for k in np.unique(fold):
                    train, test = mine[fold != k], mine[fold == k]
                    if len(train) >= FEWEST:
                        found[test] = self._fold(tower, lower, pairs, features, (train, test))
                    advance(1)
        return found

    def _fold(self, tower: _Tower, lower: Lower, pairs: Pairs, features: PairFeatures, rows: Rows) -> np.ndarray:
        """Margins of the test pairs: the mean of models with different held-out parts of the training pairs."""
        train, test = rows
        if len(train) > MOST:
            train = np.sort(np.random.Generator(np.random.PCG64(self.seed)).choice(train, MOST, replace=False))
        group = pairs.own_group[pairs.item[train]]
        with one_thread():
            wide = fit_linear(features, train, grouped_folds(group, INNER_FOLDS, self.seed + 1), self.seed)
        parts = grouped_folds(group, HELD_OUT, self.seed + 1)
        members = MEMBERS if len(train) < FEW else 1
        found = np.zeros(len(test))
        for k in range(members):
            model = tower.trainable(self.seed + k, lower)
            margins = _learn(model, pairs, train, wide.inner, parts == k, self.seed + k)
            found += (wide.margins(test) + model.margins(pairs.left[test], pairs.right[test])) * fit_scale(margins)
        return found / members


def _learn(
    model: Any, pairs: Pairs, train: np.ndarray, beside: np.ndarray, watched: np.ndarray, seed: int
) -> np.ndarray:
    """Train beside known margins until the loss on the watched pairs no longer falls; the margins there."""
    rng = np.random.Generator(np.random.PCG64(seed))
    left, right = pairs.left[train], pairs.right[train]
    best, margins = copy.deepcopy(model.state_dict()), beside[watched]
    for _ in range(EPOCHS):
        seen = rng.permutation(np.flatnonzero(~watched))
        for batch in np.array_split(seen, max(1, len(seen) // BATCH)):
            model.step(left[batch], right[batch], beside[batch])
        reached = beside[watched] + model.margins(left[watched], right[watched])
        if log_loss(reached) >= log_loss(margins):
            break
        best, margins = copy.deepcopy(model.state_dict()), reached
    model.load_state_dict(best)
    return margins


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

    def lower_states(self, texts: Sequence[str], wanted: np.ndarray) -> Lower:
        """Every caption's token vectors behind the lower half, by its number."""
        import torch

        rows = sorted(set(wanted.tolist()), key=lambda i: (len(texts[i]), i))
        found: Lower = {}
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

    def trainable(self, seed: int, lower: Lower) -> Any:
        """A fresh copy of the upper half with a head, and its optimizer."""
        import torch

        torch.manual_seed(seed)
        upper = copy.deepcopy(self.layers[self.cut :])
        return _upper_half(upper, self.inner.config.hidden_size, self.inner.device, lower)


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


def _upper_half(layers: Any, width: int, device: Any, lower: Lower) -> Any:
    """Built here, so that torch is imported only when it is used."""
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "models") from None

    class UpperHalf(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.head = layers, torch.nn.Linear(width, 1, bias=False)
            torch.nn.init.zeros_(self.head.weight)
            self.to(device).eval()  # no dropout: a handful of passes over few pairs, and early stopping
            parts = ((self.layers, RATE), (self.head, HEAD_RATE))
            groups = [{"params": list(part.parameters()), "lr": rate} for part, rate in parts]
            self.optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
            for p in self.parameters():
                p.requires_grad_(True)

        def scores(self, texts: np.ndarray) -> Any:
            states = torch.nn.utils.rnn.pad_sequence([lower[i] for i in texts.tolist()], batch_first=True)
            lengths = torch.tensor([len(lower[i]) for i in texts.tolist()], device=states.device)
            mask = (torch.arange(states.shape[1], device=states.device)[None] < lengths[:, None]).long()
            out = _through(self.layers, states, mask)
            return self.head((out * mask[..., None]).sum(1) / lengths[:, None])[:, 0]

        def step(self, left: np.ndarray, right: np.ndarray, beside: np.ndarray) -> None:
            both = self.scores(np.concatenate([left, right]))
            known = torch.from_numpy(beside.astype(np.float32)).to(both.device)
            loss = torch.nn.functional.softplus(both[len(left) :] - both[: len(left)] - known).mean()
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)
            self.optimizer.step()

        def margins(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            order = np.argsort([len(lower[i]) for i in left.tolist()], kind="stable")
            found = np.zeros(len(left), dtype=np.float32)
            with torch.inference_mode():
                for start in range(0, len(order), 128):
                    rows = order[start : start + 128]
                    both = self.scores(np.concatenate([left[rows], right[rows]])).float().cpu().numpy()
                    found[rows] = both[: len(rows)] - both[len(rows) :]
            return found

    return UpperHalf()
