"""What tiny generative checkpoints are put together from: tokenizers, configurations, image processors, templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tiny_rare

from creperie.testing import tokenizers
from creperie.testing.tiny import VISION, WIDTH, Folder, save
from creperie.testing.tiny_llava import decoder_config, llama_config, token_id

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}"
    "{% if part.type == 'image' %}IMAGE{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"


def chat_tokenizer(special: list[str], **named: str) -> Any:
    """Byte-level BPE with chat tags, as in Qwen and SmolLM. Named tokens become attributes of the tokenizer."""
    tokenizer = tiny_rare.gpt2_tokenizer(512)
    models_own = {name: token for name, token in named.items() if name != "bos_token"}
    if models_own:  # saved and read again with the tokenizer, as in the hub's folders
        tokenizer = type(tokenizer)(
            vocab=tokenizer.get_vocab(),
            merges=tokenizers.byte_pairs("")[1],
            model_max_length=512,
            extra_special_tokens=models_own,
        )
    tokens = ["<|im_start|>", "<|im_end|>", *special]
    tokenizer.add_special_tokens({"additional_special_tokens": tokens, "pad_token": "<|pad|>"})
    if "bos_token" in named:
        tokenizer.add_special_tokens({"bos_token": named["bos_token"]})
    return tokenizer


def t5_tokenizer() -> Any:
    tokenizer = tiny_rare.t5_tokenizer(128)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    return tokenizer


def qwen_tokenizer() -> Any:
    return chat_tokenizer(["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"])


def idefics_tokenizer() -> Any:
    cells = [f"<row_{r}_col_{c}>" for r in range(1, 4) for c in range(1, 4)]
    return chat_tokenizer(["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", *cells])


def chatml(image: str) -> str:
    return CHATML.replace("IMAGE", image)


def qwen_config(tokenizer: Any) -> dict[str, Any]:
    return {"model_type": "qwen2", **decoder_config(tokenizer), "num_key_value_heads": 2}


def opt_config(tokenizer: Any) -> dict[str, Any]:
    text = decoder_config(tokenizer)
    text["ffn_dim"] = text.pop("intermediate_size")
    return {"model_type": "opt", **text, "word_embed_proj_dim": WIDTH}


def t5_config(tokenizer: Any) -> dict[str, Any]:
    return {
        "model_type": "t5", "d_model": WIDTH, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2,
        "vocab_size": len(tokenizer), "decoder_start_token_id": tokenizer.pad_token_id,
    }  # fmt: skip


def mrope_config(tokenizer: Any) -> dict[str, Any]:
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
    return {**decoder_config(tokenizer), "num_key_value_heads": 2, "rope_parameters": rope}


def qwen_ids(tokenizer: Any) -> dict[str, int]:
    names = {"image_token_id": "image_pad", "video_token_id": "video_pad", "vision_start_token_id": "vision_start"}
    names["vision_end_token_id"] = "vision_end"
    return {field: token_id(tokenizer, f"<|{name}|>") for field, name in names.items()}


def qwen_images(patch: int) -> Any:
    from transformers import Qwen2VLImageProcessorPil

    most = {"shortest_edge": 16 * 16, "longest_edge": 48 * 48}
    return Qwen2VLImageProcessorPil(patch_size=patch, merge_size=2, temporal_patch_size=2, size=most)


def idefics3_parts(tokenizer: Any) -> dict[str, Any]:
    return {
        "vision_config": VISION,
        "text_config": llama_config(tokenizer),
        "image_token_id": token_id(tokenizer, "<image>"),
        "scale_factor": 2,
    }


def save_parts(
    folder: Folder, model: Any, tokenizer: Any, images: Any, template: str, settings: dict[str, Any] | None = None
) -> Path:
    """A folder whose processor class was not made: its parts, its settings and its chat template as files."""
    path = save(Path(folder), model, tokenizer, images)
    (path / "chat_template.jinja").write_text(template, encoding="utf-8")
    if settings:
        (path / "processor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return path
