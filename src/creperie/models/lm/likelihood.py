"""The log-probabilities of a caption's tokens under causal and masked language models.

A causal model reads a start token before the caption, so every token of the caption is predicted. A masked model gives
the pseudo-likelihood: each token in turn is masked and predicted from all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.core import ModelError, UsageError, sha256_of
from creperie.models.device import Place
from creperie.models.hf.folder import Folder, ModelSource
from creperie.models.lm.gguf import language_model_folder
from creperie.models.protocols import Fingerprint, Model, Prompt, Tokens
from creperie.models.tokens import batches_by_length, fitting_context, pad_tokens
from creperie.models.uri import ModelURI

if TYPE_CHECKING:
    from creperie.models.lm.chat import Chat

REDUCTIONS: Mapping[str, Callable[[np.ndarray], float]] = {
    "mean": lambda logs: float(logs.mean()) if len(logs) else float("nan"),
    "sum": lambda logs: float(logs.sum()),
    # higher is better for every score, so the perplexity is negated
    "ppl": lambda logs: -float(np.exp(-logs.mean())) if len(logs) else float("nan"),
}


def load_likelihood(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    folder = Folder(language_model_folder(uri.name, uri=str(uri), revision=options["revision"]), str(uri))
    return likelihood_of(folder, options, place)


def likelihood_of(folder: ModelSource, options: Mapping[str, Any], place: Place) -> Model:
    """Return the adapter that scores captions by their likelihood under a transformers language model. The model is in
    a folder or in memory.
    """
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as MASKED

    config = folder.config()
    only_masked = config.model_type in MASKED and config.model_type not in CAUSAL
    masked = only_masked or any("MaskedLM" in name for name in config.architectures or ())
    model = folder.model(AutoModelForMaskedLM if masked else AutoModelForCausalLM, place)
    tokenizer = folder.tokenizer()
    # the token to put before captions, so that their first token can be predicted
    start = [index for index in (tokenizer.bos_token_id, tokenizer.eos_token_id) if index is not None][:1]
    context = fitting_context(tokenizer, getattr(config, "max_position_embeddings", None), options["max_length"])
    fingerprint = Fingerprint(
        uri=folder.uri,
        architecture=type(model).__name__,
        weights=folder.weights(),
        dtype=place.dtype,
        context=context,
        prompt=options["prompt"] or "",
        options={"reduce": options["reduce"], "start": start},
    )
    kind = MaskedLM if masked else CausalLM
    return kind(model, tokenizer, fingerprint, place, start)


class ReducesLikelihoods:
    """The base class of text scorers that reduce the log-probabilities of each caption to one number."""

    fingerprint: Fingerprint

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        reduce = REDUCTIONS[str(self.fingerprint.options["reduce"])]
        return np.array([reduce(logs) for logs in self.log_probabilities(texts)], np.float32)

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return one float32 array per caption: the log-probability of each of its tokens."""
        raise NotImplementedError


@dataclass(eq=False)
class LanguageModel(ReducesLikelihoods):
    """The base class of causal and masked models. It tokenises captions."""

    model: Any
    tokenizer: Any
    fingerprint: Fingerprint
    place: Place
    start: list[int]

    @cached_property
    def prompt(self) -> list[int]:
        return self.tokenizer(self.fingerprint.prompt, add_special_tokens=False)["input_ids"]

    def _logits(self, ids: Any, mask: Any) -> Any:
        import torch

        device = self.place.torch_device
        with torch.no_grad():
            return self.model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits

    @property
    def beside(self) -> int:
        """The number of special tokens that the model reads with a caption."""
        raise NotImplementedError

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each caption's token ids, truncated to leave room for the prompt and the special tokens."""
        room = (self.fingerprint.context or 10**6) - len(self.prompt) - self.beside
        encoded = self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        return [ids[:room] for ids in encoded]


class CausalLM(LanguageModel):
    """A decoder. The score of a token is log P(token | start token, prompt, tokens before it). If the model has a chat
    template, it also generates text.
    """

    @property
    def beside(self) -> int:
        return len(self.start)

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        captions, before = self.token_ids(texts), self.start + self.prompt
        if before and len(captions) > 1 and self._reads_trees:
            return self._packed(captions, before)
        return self._rows(captions, before)

    @cached_property
    def _reads_trees(self) -> bool:
        """True if the model accepts position ids and a custom attention mask, so that captions can share prefixes."""
        before = self.start + self.prompt
        probe = [before[-1:] * 2, before[-1:] * 3, [0, 1], [0, 2, 1]]
        try:
            packed = self._packed(probe, before)[1::2]
        except (TypeError, ValueError, RuntimeError):
            return False
        rows = self._rows(probe[1::2], before)  # those that share their beginning with another one
        return all(np.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(packed, rows))

    def _packed(self, captions: Sequence[list[int]], before: list[int]) -> list[np.ndarray]:
        """Return one array of log-probabilities per caption. `before` are the tokens that precede every caption."""
        # Captions are combined into prefix trees, so that the model reads a prefix that they share only once.
        import torch

        results: dict[int, np.ndarray] = {}
        packs, device = list(packs_of(captions, before)), self.place.torch_device
        for batch in batches_by_length([len(p.inner) for p in packs]):
            mine = [packs[k] for k in batch]
            width = max(len(p.inner) for p in mine)
            tokens, depths = (
                torch.tensor([[line[i] for i in p.inner] + [0] * (width - len(p.inner)) for p, line in lines])
                for lines in zip(*(((p, p.token), (p, p.depth)) for p in mine))
            )
            sees = torch.from_numpy(np.stack([p.sees(width) for p in mine]))[:, None].to(device)
            dtype = self.model.dtype
            mask = torch.zeros(sees.shape, dtype=dtype, device=device).masked_fill(~sees, torch.finfo(dtype).min)
            with torch.no_grad():
                read = {"input_ids": tokens.to(device), "position_ids": depths.to(device)}
                logits = self.model(attention_mask=mask, **read).logits
                for pack, of_pack in zip(mine, logits):
                    of_pack, at = of_pack.float(), np.searchsorted(pack.inner, pack.parent)
                    logs = (of_pack[at, pack.token] - of_pack.logsumexp(-1)[at]).cpu().numpy()
                    results |= {caption: logs[path] for caption, path in pack.paths.items()}
        return [results[i] for i in range(len(captions))]

    def _rows(self, captions: Sequence[list[int]], before: list[int]) -> list[np.ndarray]:
        """Return one array of log-probabilities per caption. Each caption is read in a row of its own."""
        results: list[np.ndarray] = [np.zeros(0, np.float32)] * len(captions)
        for batch in batches_by_length([len(before) + len(c) for c in captions]):
            logs = self._forward(*padded([before + captions[i] for i in batch]))
            for row, i in enumerate(batch):
                # position p predicts token p + 1; without a start token, the first token is not predicted
                first = max(len(before) - 1, 0)
                results[i] = logs[row, first : len(before) + len(captions[i]) - 1]
        return results

    def _forward(self, ids: Any, mask: Any) -> np.ndarray:
        """Return the log-probability of each token given those before it, as an array (rows, width − 1)."""
        logits = self._logits(ids, mask)[:, :-1].float()
        targets = ids[:, 1:].to(logits.device).unsqueeze(-1)
        return (logits.gather(-1, targets).squeeze(-1) - logits.logsumexp(-1)).cpu().numpy()

    @cached_property
    def chat(self) -> Chat:
        from creperie.models.lm.chat import Chat

        return Chat(self.model, self.tokenizer, self.place.torch_device, self.fingerprint.uri)

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return self.chat.answers(prompts)


class MaskedLM(LanguageModel):
    """An encoder that gives the pseudo-likelihood: the log-probability of each token when only that token is masked."""

    @property
    def beside(self) -> int:
        return sum(map(len, self._frame()))

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        import torch

        captions = self.token_ids(texts)
        opening, closing = self._frame()
        lines = [opening + self.prompt + ids + closing for ids in captions]
        begin = len(opening) + len(self.prompt)
        tasks = [(i, begin + k) for i, ids in enumerate(captions) for k in range(len(ids))]
        logs = np.zeros(len(tasks), np.float32)
        for batch in batches_by_length([len(lines[i]) for i, _ in tasks]):
            ids, mask = padded([lines[tasks[t][0]] for t in batch], self.tokenizer.pad_token_id or 0)
            rows = torch.arange(len(batch))
            holes = torch.tensor([tasks[t][1] for t in batch])
            targets = ids[rows, holes]
            ids[rows, holes] = self.tokenizer.mask_token_id
            logits = self._logits(ids, mask)
            there = logits[rows.to(logits.device), holes.to(logits.device)].float().log_softmax(-1)
            logs[batch] = there.gather(-1, targets.to(logits.device).unsqueeze(-1)).squeeze(-1).cpu().numpy()
        ends = np.cumsum([len(ids) for ids in captions])
        return np.split(logs, ends[:-1]) if captions else []

    def _frame(self) -> tuple[list[int], list[int]]:
        """Return the special tokens before and after a sentence, as two lists."""
        probe = self.tokenizer("a", return_special_tokens_mask=True)
        own = [k for k, special in enumerate(probe["special_tokens_mask"]) if not special]
        ids: list[int] = probe["input_ids"]
        return (ids[: own[0]], ids[own[-1] + 1 :]) if own else ([], [])


def padded(lines: Sequence[Sequence[int]], pad_id: int = 0) -> tuple[Any, Any]:
    """Return token ids and their attention mask, padded on the right."""
    return pad_tokens([Tokens(np.asarray(line, np.int64)) for line in lines], pad_id=pad_id)


#: tokens per tree: in larger ones, masked attention costs more than the shared prefixes save
PACK = 160


class TokenTree:
    """A prefix tree of the tokens of several captions after a common start. Shared prefixes are stored once.

    A true caption and its foil mostly differ in a few words. A token attends only to its ancestors, and its position is
    its depth in the tree. The token's log-probability is therefore the same as if the caption were read by itself.
    """

    def __init__(self, start: Sequence[int]) -> None:
        self.token = list(start)
        self.parent = list(range(-1, len(start) - 1))
        self.depth = list(range(len(start)))
        self.paths: dict[int, list[int]] = {}  #: caption → the indices of its tokens
        self._children: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.token)

    def add(self, caption: int, ids: Sequence[int], root: int) -> None:
        """Add the tokens of a caption after `root`, the index of the last start token."""
        at, path = root, []
        for token in ids:
            child = self._children.get((at, token))
            if child is None:
                child = self._children[at, token] = len(self.token)
                self.token.append(token)
                self.parent.append(at)
                self.depth.append(self.depth[at] + 1)
            path.append(at := child)
        self.paths[caption] = path

    @cached_property
    def inner(self) -> np.ndarray:
        """The indices of the tokens that the model must read: the first token, and every token that precedes another
        one in a caption. The last token of a caption is only predicted.
        """
        return np.unique(np.maximum(self.parent, 0))

    def sees(self, width: int) -> np.ndarray:
        """Return the attention mask of the inner tokens (width × width). A token attends to itself and its
        ancestors.
        """
        # Rows after the inner tokens are padding, which attends only to itself.
        visible = np.eye(max(width, len(self)), dtype=bool)
        for i, parent in enumerate(self.parent[1:], 1):
            visible[i] |= visible[parent]
        mask = np.eye(width, dtype=bool)
        mask[: len(self.inner), : len(self.inner)] = visible[np.ix_(self.inner, self.inner)]
        return mask


def packs_of(captions: Sequence[list[int]], start: Sequence[int]) -> Iterator[TokenTree]:
    """Yield prefix trees that together contain all captions. Captions are sorted so that neighbours share prefixes."""
    pack, root = TokenTree(start), len(start) - 1
    for i in sorted(range(len(captions)), key=lambda i: captions[i]):
        if pack.paths and len(pack) + len(captions[i]) > PACK:
            yield pack
            pack = TokenTree(start)
        pack.add(i, captions[i], root)
    if pack.paths:
        yield pack


# -- a trigram model, a small and fast baseline from before neural networks --------------------------------------------

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


class TrigramLM(ReducesLikelihoods):
    """A text scorer by log P(word | the two words before it), including the end of the sentence. It reads captions in
    lower case and without punctuation.

    A word outside the vocabulary gets the probability 1e-7 and is not used as context for later words.
    """

    def __init__(self, probability: Callable[[list[str]], float], fingerprint: Fingerprint) -> None:
        self._probability = probability  #: probability of the first word given the others, nearest first
        self._unknown = lru_cache(maxsize=1 << 16)(lambda word: probability([word]) < UNKNOWN)
        self.fingerprint = fingerprint

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
