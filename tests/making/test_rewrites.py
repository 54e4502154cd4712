"""Second positives: what says the same is kept, by back-translation and by synonyms."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from creperie.core import CreperieError
from creperie.lang import parse
from creperie.making import make
from creperie.making.rewrites import compare
from creperie.models import load_model

pytest.importorskip("spacy")
pytest.importorskip("lemminflect")

SAME = [
    ("A dog is leaping over a log.", "The dog jumps over a log."),
    ("Two children on swings with a woman pushing them.", "Two kids on swings with a woman who pushes them."),
    ("A gray cat sits next to a large rock.", "A grey cat is sitting beside a big stone."),
    ("A man takes a picture of a truck.", "A man takes a photo of a truck."),
]
OTHER = [
    ("A young boy runs.", "A boy runs."),  # says less
    ("A dog chases a cat.", "A cat chases a dog."),
    ("Two dogs play.", "A dog plays."),
    ("A dog licks its nose.", "A dog licks his nose."),
    ("A man is waving at two men.", "A man shakes two men."),
    ("A boy in blue pants runs.", "A boy in a blue pants runs."),  # not English
    ("Five people in a gym.", "Five people in the gym."),  # only an article
    ("Smiling girl with brown hair.", "Smileing girl with brown hair."),
]


@pytest.mark.parametrize(("caption", "text"), SAME)
def test_the_same_in_other_words_is_kept(caption: str, text: str) -> None:
    assert compare(*parse([caption, text]))[1] == ""
    assert compare(*parse([text, caption]))[1] == ""


@pytest.mark.parametrize(("caption", "text"), OTHER)
def test_what_says_something_else_is_refused(caption: str, text: str) -> None:
    assert compare(*parse([caption, text]))[1] != ""


def test_synonyms_keep_number_and_adjust_articles() -> None:
    made = make("rewrite:synonyms", ["A man sees an airplane.", "The big dogs are jumping.", "A goat eats grass."])
    assert [item.captions for item in made.items] == [
        ("A man sees an airplane.", "A man sees a plane."),
        ("The big dogs are jumping.", "The large dogs are jumping."),
    ]
    assert all(item.match == ((True, True),) for item in made.items)


@pytest.fixture(scope="module")
def translators(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A URI of two tiny MarianMT checkpoints in the hub's layout, with random weights."""
    torch = pytest.importorskip("torch")
    pieces = pytest.importorskip("sentencepiece")
    from transformers import MarianConfig, MarianMTModel

    text = tmp_path_factory.mktemp("text") / "lines.txt"
    words = product(("red", "big", "old"), ("dog", "cat"), ("mat", "log"))
    text.write_text("\n".join(f"a {a} {b} on the {c}" for a, b, c in words))
    folders = []
    for name in ("there", "back"):
        folder = tmp_path_factory.mktemp(name)
        for side in ("source", "target"):
            options = {"input": str(text), "model_prefix": str(folder / side), "vocab_size": 26, "minloglevel": 2}
            pieces.SentencePieceTrainer.train(**options, hard_vocab_limit=False)  # processors differ in how many
            (folder / f"{side}.model").rename(folder / f"{side}.spm")
        known = pieces.SentencePieceProcessor(model_file=str(folder / "source.spm"))
        vocabulary = ["</s>", "<unk>", *(known.id_to_piece(k) for k in range(3, known.get_piece_size())), "<pad>"]
        (folder / "vocab.json").write_text(json.dumps({word: k for k, word in enumerate(vocabulary)}))
        (folder / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "fr"}')
        size = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
        heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
        last = len(vocabulary) - 1
        torch.manual_seed(len(folders))
        ends = {"pad_token_id": last, "decoder_start_token_id": last, "eos_token_id": 0, "forced_eos_token_id": 0}
        config = MarianConfig(vocab_size=last + 1, max_position_embeddings=128, **size, **heads, **ends)
        MarianMTModel(config).save_pretrained(folder)
        folders.append(folder)
    return f"mt:{folders[0]}?back={folders[1]}"


def test_two_models_translate_there_and_back(translators: str) -> None:
    model = load_model(translators)
    texts = ["a red dog on the mat", "a big cat on the log"]
    rewritten = model.rewritten(texts, 4)  # type: ignore[attr-defined]
    assert [len(found) for found in rewritten] == [4, 4]
    assert rewritten == model.rewritten(texts, 4)  # type: ignore[attr-defined]
    assert model.fingerprint.weights.count("+") == 1
    made = make("rewrite:translate", texts, model=translators)  # noise says nothing that was said
    assert not made.items
    assert sum(made.report["reasons"].values()) >= 2


def test_both_directions_are_needed(tmp_path: Path) -> None:
    with pytest.raises(CreperieError, match="translates back"):
        load_model(f"mt:{tmp_path}")
    with pytest.raises(CreperieError, match="needs two translation models"):
        make("rewrite:translate", ["A dog barks."])
