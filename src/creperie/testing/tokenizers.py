"""Small tokenizers of the families' own kinds, made from a handful of sentences."""

from __future__ import annotations

from pathlib import Path
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
    """Byte-level BPE with end-of-word marks; start and end tokens have the highest ids, as in CLIP."""
    from transformers import CLIPTokenizer

    words, merges = _byte_pairs("</w>")
    vocab = {word: i for i, word in enumerate([*words, "<|startoftext|>", "<|endoftext|>"])}
    return CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=context)


def roberta_tokenizer(context: int = 64) -> Any:
    """Byte-level BPE with <s> and </s>, as in RoBERTa."""
    from transformers import RobertaTokenizer

    words, merges = _byte_pairs("")
    vocab = {word: i for i, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *words, "<mask>"])}
    return RobertaTokenizer(vocab=vocab, merges=merges, model_max_length=context)


def gpt2_tokenizer(context: int = 64) -> Any:
    """Byte-level BPE without any special token around a caption, as in decoders."""
    from transformers import GPT2Tokenizer

    words, merges = _byte_pairs("")
    vocab = {word: i for i, word in enumerate([*words, "<|endoftext|>"])}
    return GPT2Tokenizer(vocab=vocab, merges=merges, model_max_length=context)


def wordpiece_tokenizer(context: int = 128) -> Any:
    """Lower-casing WordPiece with [CLS] and [SEP], as in BERT."""
    from transformers import BertTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted(set(LETTERS.lower()))
    pieces = [*letters, *[f"##{letter}" for letter in letters], *[word for word in _words() if len(word) > 1]]
    vocab = {piece: i for i, piece in enumerate([*special, *pieces])}
    return BertTokenizer(vocab=vocab, do_lower_case=True, model_max_length=context)


def t5_tokenizer(context: int = 64) -> Any:
    """Unigram pieces with </s> behind, as in T5."""
    from transformers import T5Tokenizer

    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return T5Tokenizer(vocab=special + _unigrams(), extra_ids=0, model_max_length=context)


def xlm_roberta_tokenizer(context: int = 64) -> Any:
    """Unigram pieces with <s> and </s>, as in XLM-RoBERTa."""
    from transformers import XLMRobertaTokenizer

    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return XLMRobertaTokenizer(vocab=[*special, *_unigrams(), ("<mask>", 0.0)], model_max_length=context)


def siglip_tokenizer(folder: Path, context: int = 16) -> Any:
    """A SentencePiece model with </s> behind, which is also the padding, and no attention mask, as in SigLIP."""
    import sentencepiece
    from transformers import SiglipTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "spiece.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES),
            model_writer=file,
            vocab_size=80,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            minloglevel=2,
        )
    names = ["input_ids"]
    return SiglipTokenizer(str(folder / "spiece.model"), model_max_length=context, model_input_names=names)


def siglip2_tokenizer(context: int = 16) -> Any:
    """Lower-casing byte-fallback BPE, padded on the right without an attention mask, as SigLIP 2 was released."""
    from transformers import Siglip2Tokenizer

    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    letters = sorted({*LETTERS.lower(), "▁"})
    vocab = {word: i for i, word in enumerate([*special, *[f"<0x{n:02X}>" for n in range(256)], *letters])}
    return Siglip2Tokenizer(
        vocab=vocab, merges=[], model_max_length=context, padding_side="right", model_input_names=["input_ids"]
    )


def _words() -> list[str]:
    return sorted({word for sentence in SENTENCES for word in sentence.replace(",", "").split()})


def _byte_pairs(suffix: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The pieces and merges of a byte-level BPE that joins the sentences' words from the left. Not trained by a
    library, whose ties fall differently in every run. Without a suffix a word is marked by the blank before it."""
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = sorted(ByteLevel.alphabet())
    pieces = alphabet + ([f"{letter}{suffix}" for letter in alphabet] if suffix else [])
    merges: dict[tuple[str, str], None] = {}
    for word in _words():
        symbols = [*word[:-1], word[-1] + suffix] if suffix else ["Ġ", *word]
        joined = symbols[0]
        for symbol in symbols[1:]:
            merges[joined, symbol] = None
            joined += symbol
    return list(dict.fromkeys([*pieces, *[left + right for left, right in merges]])), list(merges)


def _unigrams() -> list[tuple[str, float]]:
    """Every word and letter of the sentences, longer pieces preferred."""
    letters = sorted({"▁", *LETTERS})
    return [(f"▁{word}", -3.0) for word in _words()] + [(letter, -6.0) for letter in letters]
