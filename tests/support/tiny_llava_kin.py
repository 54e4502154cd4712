"""Tiny checkpoints of LLaVA's kin: a tower's patches as tokens of a decoder (NeXT, OneVision, InternVL, PaliGemma)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vlm_parts import chat_tokenizer, chatml, qwen_config, save_parts

from creperie.testing.tiny import IMAGE, VISION, WIDTH, Folder, enliven, save
from creperie.testing.tiny_llava import (
    CELLS,
    DIALOGUE,
    PATCH,
    clip_vision,
    decoder_config,
    llama_config,
    llama_tokenizer,
    token_id,
)


def tiny_llava_next(folder: Folder, seed: int = 0) -> Path:
    """LLaVA-NeXT: the picture is also cut into tiles, as many as its shape asks for."""
    from transformers import (
        LlavaNextConfig,
        LlavaNextForConditionalGeneration,
        LlavaNextImageProcessorPil,
        LlavaNextProcessor,
    )

    tokenizer = llama_tokenizer(["<image>", "<pad>"])
    grid = [[IMAGE, 2 * IMAGE], [2 * IMAGE, IMAGE], [2 * IMAGE, 2 * IMAGE]]
    config = LlavaNextConfig(
        vision_config=clip_vision(),
        text_config=llama_config(tokenizer),
        image_token_id=token_id(tokenizer, "<image>"),
        image_grid_pinpoints=grid,
    )
    size = {"size": {"shortest_edge": IMAGE}, "crop_size": {"height": IMAGE, "width": IMAGE}}
    processor = LlavaNextProcessor(
        LlavaNextImageProcessorPil(**size, image_grid_pinpoints=grid),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=DIALOGUE,
    )
    return save(Path(folder), enliven(LlavaNextForConditionalGeneration(config), seed), processor)


def tiny_llava_onevision(folder: Folder, seed: int = 0) -> Path:
    """LLaVA-OneVision: SigLIP's tower, a Qwen2, tiles."""
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionForConditionalGeneration,
        LlavaOnevisionImageProcessorPil,
    )

    tokenizer = chat_tokenizer(["<image>", "<video>"])
    grid = [[IMAGE, IMAGE], [IMAGE, 2 * IMAGE], [2 * IMAGE, IMAGE]]
    config = LlavaOnevisionConfig(
        vision_config={"model_type": "siglip_vision_model", **VISION, "vision_use_head": False},
        text_config=qwen_config(tokenizer),
        image_token_id=token_id(tokenizer, "<image>"),
        video_token_id=token_id(tokenizer, "<video>"),
        image_grid_pinpoints=grid,
    )
    images = LlavaOnevisionImageProcessorPil(size={"height": IMAGE, "width": IMAGE}, image_grid_pinpoints=grid)
    settings = {"num_image_tokens": CELLS, "vision_feature_select_strategy": "full"}
    model = enliven(LlavaOnevisionForConditionalGeneration(config), seed)
    return save_parts(folder, model, tokenizer, images, chatml("<image>\n"), settings)


def tiny_internvl(folder: Folder, seed: int = 0, **text: Any) -> Path:
    """InternVL: its own tower, pixel shuffling, a Qwen2; `text` changes the decoder."""
    from transformers import GotOcr2ImageProcessorPil, InternVLConfig, InternVLForConditionalGeneration

    tokenizer = chat_tokenizer(
        [],
        start_image_token="<img>",
        end_image_token="</img>",
        context_image_token="<IMG_CONTEXT>",
        video_token="<video>",
    )
    vision = {**VISION, "image_size": [IMAGE, IMAGE], "patch_size": [PATCH, PATCH], "num_hidden_layers": 2}
    config = InternVLConfig(
        vision_config=vision,
        text_config={**qwen_config(tokenizer), **text},
        image_token_id=token_id(tokenizer, "<IMG_CONTEXT>"),
        image_seq_length=CELLS // 4,
    )
    images = GotOcr2ImageProcessorPil(size={"height": IMAGE, "width": IMAGE}, crop_to_patches=False)
    model = enliven(InternVLForConditionalGeneration(config), seed)
    settings = {"image_seq_length": CELLS // 4}
    return save_parts(folder, model, tokenizer, images, chatml("<IMG_CONTEXT>\n"), settings)


def tiny_paligemma(folder: Folder, seed: int = 0) -> Path:
    """PaliGemma: image and prompt look at each other both ways; only the answer is causal."""
    from transformers import (
        PaliGemmaConfig,
        PaliGemmaForConditionalGeneration,
        PaliGemmaProcessor,
        SiglipImageProcessorPil,
    )

    tokenizer = chat_tokenizer([], bos_token="<bos>")
    images = SiglipImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
    images.image_seq_length = CELLS
    processor = PaliGemmaProcessor(images, tokenizer)
    text = {"model_type": "gemma", **decoder_config(tokenizer), "head_dim": 16, "num_key_value_heads": 1}
    config = PaliGemmaConfig(
        vision_config={"model_type": "siglip_vision_model", **VISION, "vision_use_head": False},
        text_config=text,
        image_token_id=token_id(tokenizer, "<image>"),
        projection_dim=WIDTH,
        hidden_size=WIDTH,
    )
    return save(Path(folder), enliven(PaliGemmaForConditionalGeneration(config), seed), processor)
