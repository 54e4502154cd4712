"""Tiny checkpoints of the Idefics models and SmolVLM."""

from __future__ import annotations

from pathlib import Path

from vlm_parts import chatml, idefics3_parts, idefics_tokenizer, save_parts

from creperie.testing.tiny import IMAGE, VISION, WIDTH, Folder, enliven, save
from creperie.testing.tiny_llava import CELLS, decoder_config, token_id


def tiny_smolvlm(folder: Folder, seed: int = 0) -> Path:
    """SmolVLM: Idefics3's shape with other tags."""
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration, SmolVLMImageProcessorPil

    tokenizer = idefics_tokenizer()
    config = SmolVLMConfig(**idefics3_parts(tokenizer))
    images = SmolVLMImageProcessorPil(size={"longest_edge": IMAGE}, max_image_size={"longest_edge": IMAGE})
    model = enliven(SmolVLMForConditionalGeneration(config), seed)
    return save_parts(folder, model, tokenizer, images, chatml("<image>"), {"image_seq_len": CELLS // 4})


def tiny_idefics3(folder: Folder, seed: int = 0) -> Path:
    """Idefics3: tiles around a whole picture, each between tags."""
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
    )

    tokenizer = idefics_tokenizer()
    config = Idefics3Config(**idefics3_parts(tokenizer))
    images = Idefics3ImageProcessorPil(size={"longest_edge": 2 * IMAGE}, max_image_size={"longest_edge": IMAGE})
    processor = Idefics3Processor(images, tokenizer, image_seq_len=CELLS // 4, chat_template=chatml("<image>"))
    return save(Path(folder), enliven(Idefics3ForConditionalGeneration(config), seed), processor)


def tiny_idefics2(folder: Folder, seed: int = 0) -> Path:
    """Idefics2: a perceiver makes a fixed number of image tokens."""
    from transformers import (
        Idefics2Config,
        Idefics2ForConditionalGeneration,
        Idefics2ImageProcessorPil,
        Idefics2Processor,
    )

    tokenizer = idefics_tokenizer()
    config = Idefics2Config(
        vision_config=VISION,
        perceiver_config={
            "resampler_n_latents": 4, "resampler_depth": 1, "resampler_n_heads": 2, "resampler_head_dim": 16,
            "num_key_value_heads": 2, "hidden_size": WIDTH,
        },
        text_config={"model_type": "mistral", **decoder_config(tokenizer), "num_key_value_heads": 2},
        image_token_id=token_id(tokenizer, "<image>"),
    )  # fmt: skip
    images = Idefics2ImageProcessorPil(
        size={"shortest_edge": IMAGE, "longest_edge": 2 * IMAGE}, do_image_splitting=False
    )
    processor = Idefics2Processor(images, tokenizer, image_seq_len=4, chat_template=chatml("<image>"))
    return save(Path(folder), enliven(Idefics2ForConditionalGeneration(config), seed), processor)
