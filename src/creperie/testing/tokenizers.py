"""Small tokenizers of several families, built from a few sentences."""

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
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,'\"!?-:;()"


def clip_tokenizer(context: int = 77) -> Any:
    """Return a byte-level BPE tokenizer like CLIP's. It marks the ends of words, and its start and end tokens have the
    highest ids.
    """
    from transformers import CLIPTokenizer

    words, merges = byte_pairs("</w>")
    vocab = {word: i for i, word in enumerate([*words, "<|startoftext|>", "<|endoftext|>"])}
    return CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=context)


def wordpiece_tokenizer(context: int = 128) -> Any:
    """Return a lower-casing WordPiece tokenizer with [CLS] and [SEP], like BERT's."""
    from transformers import BertTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted(set(LETTERS.lower()))
    pieces = [*letters, *[f"##{letter}" for letter in letters], *[word for word in sentence_words() if len(word) > 1]]
    vocab = {piece: i for i, piece in enumerate([*special, *pieces])}
    return BertTokenizer(vocab=vocab, do_lower_case=True, model_max_length=context)


def sentence_words() -> list[str]:
    return sorted({word for sentence in SENTENCES for word in sentence.replace(",", "").split()})


def byte_pairs(suffix: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the pieces (tokens) and the merges of a byte-level BPE tokenizer. Its merges build each known word from
    its letters, from left to right. `suffix` marks the end of a word; if it is empty, the space before a word marks its
    beginning.
    """
    # The merges are written here and not learned by a library, because libraries break ties differently in every run.
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = sorted(ByteLevel.alphabet())
    pieces = alphabet + ([f"{letter}{suffix}" for letter in alphabet] if suffix else [])
    merges: dict[tuple[str, str], None] = {}
    for word in sentence_words():
        symbols = [*word[:-1], word[-1] + suffix] if suffix else ["Ġ", *word]
        joined = symbols[0]
        for symbol in symbols[1:]:
            merges[joined, symbol] = None
            joined += symbol
    return list(dict.fromkeys([*pieces, *[left + right for left, right in merges]])), list(merges)
