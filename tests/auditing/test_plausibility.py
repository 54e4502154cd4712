"""Vera's head and the CoLA classifier, on tiny random checkpoints, against a computation by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from creperie.auditing import AttackerModels, make_attackers
from creperie.auditing.gruen import load_gruen
from creperie.core import CreperieError
from creperie.models import TextScorer, load_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ("a", "dog", "cat", "chases", "the", "red", "mat", "on")
TEXTS = ["a dog chases the cat", "a cat", "the red mat on the red dog on the mat", "dog"]


def save_tokenizer(folder: Path, end: str) -> None:
    """A word tokenizer in the hub's layout that closes every text with an end token."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    names = ["<pad>", end, "<unk>", *WORDS]
    inner = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    inner.pre_tokenizer = Whitespace()
    inner.post_processor = TemplateProcessing(single=f"$A {end}", special_tokens=[(end, 1)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token=end, unk_token="<unk>", model_max_length=64
    ).save_pretrained(folder)


@pytest.fixture(scope="module")
def vera(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vera")
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=32128, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0.0
    )
    model = transformers.T5EncoderModel(config)
    with torch.no_grad():
        model.get_input_embeddings().weight[32097, 0] = 2.5  # a temperature that matters
    model.save_pretrained(folder)
    save_tokenizer(folder, "</s>")
    return folder


def vera_by_hand(folder: Path, text: str) -> float:
    """One text, no padding: sigmoid((E[32099] · h(</s>) + E[32098][0]) / E[32097][0])."""
    model = transformers.T5EncoderModel.from_pretrained(folder).eval()
    ids = [{w: i + 3 for i, w in enumerate(WORDS)}[word] for word in text.split()][:127] + [1]
    with torch.no_grad():
        hidden = model(torch.tensor([ids])).last_hidden_state[0, -1].double().numpy()
    table = model.shared.weight.detach().double().numpy()
    return float(1 / (1 + np.exp(-(table[32099] @ hidden + table[32098, 0]) / table[32097, 0])))


def test_vera_by_hand(vera: Path) -> None:
    (attacker,) = make_attackers(["plausibility"], AttackerModels(plausibility=f"hf:{vera}"))
    scores = attacker.scores(TEXTS)  # type: ignore[attr-defined]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, [vera_by_hand(vera, text) for text in TEXTS], rtol=1e-5)
    assert len(set(scores.tolist())) == len(TEXTS)


def test_vera_cuts_at_128_tokens(vera: Path) -> None:
    from creperie.auditing.gruen import load_vera

    long = " ".join(["a red dog on the mat"] * 40)
    model = load_vera(f"hf:{vera}")
    assert isinstance(model, TextScorer)
    np.testing.assert_allclose(model.score_texts([long])[0], vera_by_hand(vera, long), rtol=1e-5)


def test_a_checkpoint_without_the_head_is_refused(tmp_path: Path) -> None:
    from creperie.auditing.gruen import load_vera

    config = transformers.T5Config(vocab_size=100, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    transformers.T5EncoderModel(config).save_pretrained(tmp_path)
    save_tokenizer(tmp_path, "</s>")
    with pytest.raises(CreperieError, match="its 100 embeddings do not include Vera's head, in numbers 32097 to 32099"):
        load_vera(f"hf:{tmp_path}")


def save_classifier(folder: Path, labels: int) -> None:
    torch.manual_seed(1)
    config = transformers.DistilBertConfig(
        vocab_size=20, dim=16, hidden_dim=32, n_layers=1, n_heads=2, num_labels=labels, max_position_embeddings=64
    )
    transformers.DistilBertForSequenceClassification(config).save_pretrained(folder)
    save_tokenizer(folder, "[SEP]")


def test_cola_is_the_probability_of_label_1(tmp_path: Path) -> None:
    save_classifier(tmp_path, 2)
    (attacker,) = make_attackers(["grammar"], AttackerModels(grammar=f"hf:{tmp_path}"))
    scores = attacker.scores(TEXTS)  # type: ignore[attr-defined]
    model = transformers.DistilBertForSequenceClassification.from_pretrained(tmp_path).eval()
    for text, score in zip(TEXTS, scores):
        ids = [{w: i + 3 for i, w in enumerate(WORDS)}[word] for word in text.split()] + [1]
        with torch.no_grad():
            a, b = model(torch.tensor([ids])).logits[0].tolist()
        assert score == pytest.approx(np.exp(b) / (np.exp(a) + np.exp(b)), rel=1e-5)


def test_a_classifier_of_three_classes_is_refused(tmp_path: Path) -> None:
    save_classifier(tmp_path, 3)
    with pytest.raises(CreperieError, match="has 3 classes, but GRUEN needs a classifier with two; name a CoLA"):
        make_attackers(["grammar"], AttackerModels(grammar=f"hf:{tmp_path}"))


def test_gruens_formula_with_a_parser_and_a_trigram_model() -> None:
    """Without weights: acceptability / 8 + 1 / 2, acceptability being SLOR and the parse.

    GRUEN adds exp(−perplexity / 2) of a masked model, near 0.6; of a trigram model's perplexities (95 and more) it is
    below 1e-20 for any caption, so it is left out, and the name says so.
    """
    pytest.importorskip("pocketsphinx")
    from creperie.lang import grammaticalities, mean_zipf

    texts = ["The dog sleeps on the bed.", "The dog sleeps on the the bed of."]
    model: Any = load_model("blind:gruen?lm=lm:pkg:pocketsphinx&cola=link-grammar")
    try:
        parsed = grammaticalities(texts)
    except CreperieError as e:
        pytest.skip(str(e))
    trigrams: Any = load_model("lm:pkg:pocketsphinx")
    logs = trigrams.log_probabilities(texts)
    words_alone = [(mean_zipf(text) - 9) * np.log(10) for text in texts]
    accepted = [own.mean() - alone + g for own, alone, g in zip(logs, words_alone, parsed, strict=True)]
    wanted = [a / 8 + 0.5 for a in accepted]
    assert max(np.exp(-0.5 * np.exp(-own.mean())) for own in logs) < 1e-6
    own = load_gruen("lm:pkg:pocketsphinx", "link-grammar").fingerprint.architecture
    assert own == "GRUEN without focus and its language-model term, SLOR and parser for the classifier"
    np.testing.assert_allclose(model.score_texts(texts), wanted, rtol=1e-5)
    assert wanted[0] > wanted[1]
