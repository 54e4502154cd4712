"""Two scores of single captions, computed by pretrained models. Vera scores plausibility. GRUEN scores the quality of
the text, with a language model (`lm:` URI) and a classifier of acceptability that was trained on CoLA (`hf:` URI).

Vera is a T5 encoder whose head is stored in its embedding table: the weight is row 32099 of the shared embeddings, the
bias is element 0 of row 32098, and the temperature is element 0 of row 32097. The score is sigmoid((w · h + b) / t),
where h is the hidden state of the text's last token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from creperie.core import ModelError, UsageError
from creperie.lang import Gruen, grammaticalities, mean_zipf
from creperie.models import (
    Fingerprint,
    Judge,
    LanguageModel,
    LoadedNetwork,
    MaskedLM,
    batches_by_length,
    load_model,
    read_network,
)

WEIGHT_ROW, BIAS_ROW, TEMPERATURE_ROW = 32099, 32098, 32097
MAX_LENGTH = 128
BATCH = 32


def load_vera(uri: str) -> Judge:
    """Return a scorer with the Vera checkpoint `hf:owner/name` or `hf:/folder`."""
    network = read_network(uri, "T5EncoderModel")
    rows = network.model.get_input_embeddings().weight.shape[0]
    if rows <= WEIGHT_ROW:
        head = f"its {rows} embeddings do not include Vera's head, in numbers {TEMPERATURE_ROW} to {WEIGHT_ROW}"
        raise ModelError(f"not a Vera checkpoint: {head}", where=uri, hint="name a Vera checkpoint")
    return Judge(network, network.described("T5 encoder + Vera head", MAX_LENGTH), _plausible, BATCH)


def _plausible(network: LoadedNetwork, texts: Sequence[str]) -> Any:
    import torch

    tokens = network.read(texts, longest=MAX_LENGTH)
    table = network.model.get_input_embeddings().weight.detach().float()
    hidden = network(tokens).last_hidden_state.float()
    last = tokens.attention_mask.sum(dim=1) - 1
    final = hidden[torch.arange(len(texts), device=hidden.device), last]
    return torch.sigmoid((final @ table[WEIGHT_ROW] + table[BIAS_ROW, 0]) / table[TEMPERATURE_ROW, 0])


def load_cola(uri: str) -> Judge:
    """Return a scorer with a two-class classifier, such as `hf:textattack/distilbert-base-uncased-CoLA` or
    `hf:/folder`.
    """
    network = read_network(uri, "AutoModelForSequenceClassification")
    classes = network.model.config.num_labels
    if classes != 2:
        raise ModelError(
            f"this classifier has {classes} classes, but GRUEN needs a classifier with two",
            where=uri,
            hint="name a CoLA classifier",
        )
    name = f"{type(network.model).__name__} P(LABEL_1)"
    return Judge(network, network.described(name, network.tokenizer.model_max_length), _acceptable)


def _acceptable(network: LoadedNetwork, texts: Sequence[str]) -> Any:
    return network(network.read(texts)).logits.float().softmax(dim=-1)[:, 1]


PER_BILLION = 9  #: a Zipf frequency is the decimal logarithm of occurrences in a billion words
#: This name uses a parser in place of the classifier: not GRUEN as published, but it needs no weights.
PARSER = "link-grammar"
#: What a model is called that has no perplexity of the published kind; only masked models have.
NO_TERM = "its language-model term"
#: Tokens per sentence that the published code passes to the classifier.
LONGEST = 128


class GruenScorer:
    """A `TextScorer` that returns the GRUEN score of each caption, between 0 and 1."""

    def __init__(self, language_model: LanguageModel | Any, cola: Judge | None, uri: str) -> None:
        self.language_model = language_model
        self.cola = cola
        self._score = Gruen(self.perplexities, self.acceptabilities)
        judged = (language_model.fingerprint, *([cola.fingerprint] if cola else []))
        options = {"lm": judged[0].key, "cola": judged[1].key if cola else PARSER}
        weights = " ".join(fingerprint.weights for fingerprint in judged)
        term = "" if isinstance(language_model, MaskedLM) else f" and {NO_TERM}"
        instead = "" if cola else ", SLOR and parser for the classifier"
        self.fingerprint = Fingerprint(uri, f"GRUEN without focus{term}{instead}", weights, options=options)

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self._score(texts)

    def perplexities(self, sentences: Sequence[str]) -> np.ndarray:
        """Return a perplexity for each sentence. As in the published code, it is computed from a masked model's loss
        over all tokens, although no token is masked.

        For causal and n-gram models, the result is always infinity. Their true perplexities are 50 or more, for which
        GRUEN's term exp(−x / 2) is practically 0, as it is for infinity.
        """
        model = self.language_model
        return (
            np.exp(_unmasked_losses(model, sentences))
            if isinstance(model, MaskedLM)
            else np.full(len(sentences), np.inf)
        )

    def acceptabilities(self, sentences: Sequence[str]) -> np.ndarray:
        """Return, for each sentence, the logit (not the probability) of the label "acceptable".

        If a parser is used instead of the classifier, return SLOR (Lau et al. 2017): the language model's mean
        log-probability minus the mean log-frequency of the words. A penalty is subtracted for every word that the
        parser cannot link.
        """
        if self.cola is None:
            words_alone = (np.array([mean_zipf(s) for s in sentences]) - PER_BILLION) * np.log(10)
            logs = self.language_model.log_probabilities(sentences)
            means = np.array([of_words.mean() if len(of_words) else 0.0 for of_words in logs])
            return means - words_alone + grammaticalities(sentences)
        return Judge(self.cola.network, self.cola.fingerprint, _acceptable_logit).score_texts(sentences)


def _acceptable_logit(network: LoadedNetwork, texts: Sequence[str]) -> Any:
    longest = min(LONGEST, getattr(network.model.config, "max_position_embeddings", LONGEST))
    return network(network.read(texts, longest=longest)).logits[:, 1]


def _unmasked_losses(model: MaskedLM, sentences: Sequence[str]) -> np.ndarray:
    """Return the mean cross-entropy of all tokens of each sentence, including special tokens. No token is masked."""
    import torch

    longest = model.fingerprint.context or 512
    lines = model.tokenizer(list(sentences), truncation=True, max_length=longest)
    losses = np.zeros(len(sentences))
    for batch in batches_by_length([len(line) for line in lines["input_ids"]]):
        rows = {name: [column[k] for k in batch] for name, column in lines.items()}
        padded = model.tokenizer.pad(rows, return_tensors="pt").to(model.place.torch_device)
        ids, mask = padded["input_ids"], padded["attention_mask"]
        with torch.inference_mode():
            logits = model.model(input_ids=ids, attention_mask=mask).logits.float()
            logs = logits.gather(-1, ids.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)
        losses[batch] = (-(logs * mask).sum(dim=1) / mask.sum(dim=1)).cpu().numpy()
    return losses


def load_gruen(lm: str, cola: str) -> GruenScorer:
    """Return a GRUEN scorer with these two models. The paper uses bert-base-cased for both; the one for `cola` is
    fine-tuned on CoLA.
    """
    if not lm or not cola:
        raise UsageError(
            "GRUEN needs a language model and a CoLA classifier",
            hint="pass both `lm='lm:bert-base-cased'` and `grammar='hf:CHECKPOINT'`, or score with the model "
            "blind:gruen?lm=lm:…&cola=hf:…",
        )
    model = load_model(lm)
    if not hasattr(model, "log_probabilities"):
        raise UsageError("GRUEN needs a causal or masked language model", where=lm, hint="use lm:bert-base-cased")
    judge = None if cola == PARSER else load_cola(cola)
    return GruenScorer(model, judge, f"blind:gruen?lm={lm}&cola={cola}")
