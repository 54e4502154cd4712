"""Small tokenizers of the families' own kinds, trained on a handful of sentences."""

from __future__ import annotations

from typing import Any

SENTENCES = (
    "a dog chases a cat across the green lawn",
    "the cat is chased by a small brown dog",
    "a woman in a red coat hands a book to a man",
    "two children play with a blue ball near the water",
    "there are three white cups on the wooden table",
    "a man rides a horse while another man holds the rope",
    "the bird sits on the fence, and the fence stands behind the house",
    "no one is standing in front of the old yellow bus",
)


def clip_tokenizer(context: int = 77) -> Any:
    """Byte-level BPE with end-of-word marks; start and end tokens have the highest ids, as in CLIP."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import CLIPTokenizer

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trained = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    trained.normalizer = normalizers.Lowercase()
    trained.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(False)])
    trainer = trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=alphabet, end_of_word_suffix="</w>", show_progress=False
    )
    trained.train_from_iterator(SENTENCES, trainer)
    import json

    state = json.loads(trained.to_str())["model"]
    words = alphabet + [f"{letter}</w>" for letter in alphabet]
    words += [word for word, _ in sorted(state["vocab"].items(), key=lambda pair: pair[1]) if word not in set(words)]
    vocab = {word: i for i, word in enumerate([*words, "<|startoftext|>", "<|endoftext|>"])}
    merges = [tuple(m) for m in state["merges"]]
    return CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=context)


def wordpiece_tokenizer(context: int = 128) -> Any:
    """Lower-casing WordPiece with [CLS] and [SEP], as in BERT."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import BertTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer(lowercase=True)
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789.,'\"!?-:;()")
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=letters, show_progress=False
    )
    trained.train_from_iterator(SENTENCES, trainer)
    return BertTokenizer(vocab=trained.get_vocab(), do_lower_case=True, model_max_length=context)
