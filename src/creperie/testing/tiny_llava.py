"""A tiny LLaVA checkpoint, and the parts that similar checkpoints share with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from creperie.testing import tokenizers
from creperie.testing.tiny import IMAGE, LAYERS, VISION, WIDTH, Folder, clip_processor, enliven, save

PATCH = 8
CELLS = (IMAGE // PATCH) ** 2  #: image tokens of one picture
#: the dialogue format of LLaVA 1.5: the answer follows a space
DIALOGUE = (
    "{% for m in messages %}{{ m.role | upper }}: {% for part in m.content %}"
    "{% if part.type == 'image' %}<image>\n{% else %}{{ part.text }}{% endif %}{% endfor %} {% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


def tiny_llava(folder: Folder, seed: int = 0) -> Path:
    """Write a LLaVA 1.5 model and return its folder. The model has the image tower of CLIP, a Llama whose tokenizer
    resembles SentencePiece, and a fixed number of image tokens.
    """
    from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    tokenizer = llama_tokenizer(["<image>", "<pad>"])
    config = LlavaConfig(
        vision_config=clip_vision(), text_config=llama_config(tokenizer), image_token_id=token_id(tokenizer, "<image>")
    )
    processor = LlavaProcessor(
        clip_processor(),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=DIALOGUE,
    )
    return save(Path(folder), enliven(LlavaForConditionalGeneration(config), seed), processor)


def llama_tokenizer(special: list[str]) -> Any:
    """Return a tokenizer that puts a space before every word, including the first one, like those of Llama 1 and 2."""
    from transformers import LlamaTokenizer

    letters = sorted({*tokenizers.LETTERS, "▁", "\n"})
    merges: dict[tuple[str, str], None] = {}
    for word in tokenizers.sentence_words():
        joined = "▁"
        for letter in word:
            merges[joined, letter] = None
            joined += letter
    pieces = dict.fromkeys([*letters, *[a + b for a, b in merges]])
    bytes_ = [f"<0x{n:02X}>" for n in range(256)]
    vocab = {piece: i for i, piece in enumerate(["<unk>", "<s>", "</s>", *bytes_, *pieces])}
    tokenizer = LlamaTokenizer(vocab=vocab, merges=list(merges), model_max_length=512)
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    if "<pad>" in special:
        tokenizer.pad_token = "<pad>"
    return tokenizer


def token_id(tokenizer: Any, token: str) -> int:
    return int(tokenizer.convert_tokens_to_ids(token))


def decoder_config(tokenizer: Any) -> dict[str, Any]:
    return {
        **LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 512,
        "pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.bos_token_id,
    }  # fmt: skip


def llama_config(tokenizer: Any) -> dict[str, Any]:
    return {"model_type": "llama", **decoder_config(tokenizer), "num_key_value_heads": 2}


def clip_vision() -> dict[str, Any]:
    return {"model_type": "clip_vision_model", **VISION, "projection_dim": WIDTH}
