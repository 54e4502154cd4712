"""GRUEN: its preparation, its formula (SEMANTICS of the published code, by hand), and over tiny checkpoints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creperie.core import CreperieError
from creperie.lang import Gruen, linkgrammar
from creperie.lang.gruen import grammaticality, redundancy, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A dog runs.", ["A dog runs."]),
        ("A dog runs", ["A dog runs"]),
        (" A dog runs. A cat sleeps! ", ["A dog runs.", "A cat sleeps!"]),
        ("one line\nanother line", ["one line.", "another line"]),
        ("It costs 3.50 dollars.", ["It costs UNK dollars."]),
        ("Wait... what now?", ["what now?"]),
        ("Dog.", []),
        ("", []),
        ("...", []),
        ('He said "go now." Then he left.', ['He said "go now.', '" Then he left.']),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=80))
def test_any_text_can_be_split(text: str) -> None:
    assert all(len(s.split()) > 1 for s in sentences(text))


@pytest.mark.parametrize(
    ("parts", "signs"),
    [
        (["A dog runs."], 0),
        (["A dog runs.", "A cat sleeps."], 0),  # fewer than five words are never compared
        (["A dog runs.", "A dog runs."], 4),
        (["A big dog runs.", "dog"], 4),
        # common words, edit distance; the longest shared run is "a woman in a red " of 33 letters
        (["a woman in a red hat sings loudly", "a woman in a red coat sings loudly"], 2),
        (["two men carry a long ladder home", "the sky above us is quite blue"], 0),
    ],
)
def test_redundancy(parts: list[str], signs: int) -> None:
    assert redundancy(parts) == pytest.approx(-0.1 * signs)


def fixed(ppl: float, logit: float) -> Gruen:
    def constant(value: float) -> object:
        return lambda texts: np.full(len(texts), value)

    return Gruen(constant(ppl), constant(logit))  # type: ignore[arg-type]


def test_one_sentence_is_its_clipped_grammaticality() -> None:
    assert fixed(3.0, 1.0)(["A dog runs."])[0] == pytest.approx((math.exp(-1.5) + 1.0) / 8 + 0.5)
    assert fixed(1.0, 40.0)(["A dog runs."])[0] == 1.0
    assert fixed(1.0, -40.0)(["A dog runs."])[0] == 0.0
    assert fixed(1.0, 1.0)(["", "Dog.", "dog"]).tolist() == [0.625] * 3


def test_sentences_are_averaged_and_judged_once() -> None:
    asked: list[str] = []

    def lengths(texts: Sequence[str]) -> np.ndarray:
        asked.extend(texts)
        return np.array([len(t.split()) for t in texts], float)

    scores = Gruen(lengths, lambda texts: np.zeros(len(texts)))(["A b c. D e.", "D e."])
    assert asked == ["A b c.", "D e."]
    assert scores == pytest.approx([grammaticality(2.5, 0.0), grammaticality(2.0, 0.0)])


# -- over models -----------------------------------------------------------------------------------------------------

WORDS = ("a", "dog", "cat", "chases", "the", "red", "mat", ".")
TEXTS = ["a dog chases the cat .", "the the red red", "a cat . the dog chases a mat .", "dog"]


def save_tokenizer(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    names = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *WORDS]
    inner = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    inner.pre_tokenizer = Whitespace()
    inner.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", model_max_length=64, **special
    ).save_pretrained(folder)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A masked language model and a two-class classifier."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    masked, cola = tmp_path_factory.mktemp("masked"), tmp_path_factory.mktemp("cola")
    torch.manual_seed(3)
    small = {"vocab_size": 16, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(**small, intermediate_size=32, max_position_embeddings=64, initializer_range=0.5)
    transformers.BertForMaskedLM(config).save_pretrained(masked)
    config.num_labels = 2
    transformers.BertForSequenceClassification(config).save_pretrained(cola)
    save_tokenizer(masked)
    save_tokenizer(cola)
    return masked, cola


def by_hand(text: str, masked: Path, cola: Path) -> float:
    """Sentence by sentence, without padding: the library's own loss and logit."""
    import torch
    import transformers

    lm = transformers.BertForMaskedLM.from_pretrained(masked).eval()
    classifier = transformers.BertForSequenceClassification.from_pretrained(cola).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(masked)
    perplexities, logits = [], []
    for sentence in sentences(text):
        ids = tokenizer(sentence, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            perplexities.append(math.exp(float(lm(ids, labels=ids).loss)))
            logits.append(float(classifier(ids).logits[0, 1]))
    if not logits:
        return 0.625
    return min(1.0, max(0.0, (math.exp(-0.5 * np.mean(perplexities)) + float(np.mean(logits))) / 8 + 0.5))


def test_scores_are_those_of_the_formula(checkpoints: tuple[Path, Path]) -> None:
    from creperie.auditing.gruen import load_gruen

    masked, cola = checkpoints
    scores = load_gruen(f"lm:{masked}", f"hf:{cola}").score_texts(TEXTS)
    assert scores.dtype == np.float32
    assert scores == pytest.approx([by_hand(text, masked, cola) for text in TEXTS], rel=1e-5)
    assert len(set(scores.tolist())) == len(TEXTS)


def test_an_attacker_and_a_model_uri(checkpoints: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from creperie.auditing import AttackerModels, make_attackers
    from creperie.models import TextScorer, load_model

    masked, cola = checkpoints
    monkeypatch.setenv("CREPERIE_CACHE", str(masked / "cache"))
    (attacker,) = make_attackers(["gruen"], AttackerModels(lm=f"lm:{masked}", grammar=f"hf:{cola}"))
    model = load_model(f"blind:gruen?lm=lm:{masked}&cola=hf:{cola}")
    assert isinstance(model, TextScorer)
    assert model.score_texts(TEXTS).tolist() == attacker.scores(TEXTS).tolist()  # type: ignore[attr-defined]


def test_models_must_be_named() -> None:
    from creperie.auditing import AttackerModels, make_attackers

    with pytest.raises(CreperieError, match="GRUEN needs a language model and a CoLA classifier"):
        make_attackers(["gruen"], AttackerModels())


def test_gruen_without_a_classifier_falls_on_broken_sentences() -> None:
    """The stand-in of the small profiles: a trigram model and a parser. Words out of order lower it by far."""
    pytest.importorskip("pocketsphinx")
    if not linkgrammar.available():
        pytest.skip("link-grammar is not installed")
    from creperie.auditing.gruen import load_gruen

    scorer = load_gruen("lm:pkg:pocketsphinx", "link-grammar")
    whole = ["A man is riding a brown horse on the beach.", "The player hits the ball."]
    broken = ["Beach riding a on man the is brown a horse.", "player ball the hits the."]
    assert (scorer.score_texts(whole) - scorer.score_texts(broken)).min() > 0.3
    # the parse is whole in both: the language model alone tells them apart
    alike = ["The dog chased the cat over the fence.", "The fence chased the dog over the cat."]
    first, second = scorer.acceptabilities(alike)
    assert first > second
