"""Tiny checkpoints with query formers (BLIP-2, InstructBLIP) and of BLIP's captioner and its VQA model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vlm_parts import chat_tokenizer, opt_config, t5_config, t5_tokenizer

from creperie.testing import tokenizers
from creperie.testing.tiny import IMAGE, LAYERS, VISION, WIDTH, Folder, enliven, save
from creperie.testing.tiny_llava import llama_config, llama_tokenizer, token_id


def tiny_blip2_opt(folder: Folder, seed: int = 0) -> Path:
    """BLIP-2 with a decoder."""
    tokenizer = chat_tokenizer(["<image>"], bos_token="</s>")
    return _tiny_blip2(folder, seed, tokenizer, opt_config(tokenizer))


def tiny_blip2_t5(folder: Folder, seed: int = 0) -> Path:
    """BLIP-2 with an encoder and a decoder."""
    tokenizer = t5_tokenizer()
    return _tiny_blip2(folder, seed, tokenizer, t5_config(tokenizer))


def _tiny_blip2(folder: Folder, seed: int, tokenizer: Any, text: dict[str, Any]) -> Path:
    from transformers import Blip2Config, Blip2ForConditionalGeneration, Blip2Processor, BlipImageProcessorPil

    config = Blip2Config(
        vision_config=VISION,
        qformer_config={**LAYERS, "encoder_hidden_size": WIDTH, "cross_attention_frequency": 1},
        text_config=text,
        num_query_tokens=4,
        image_token_id=token_id(tokenizer, "<image>"),
    )
    processor = Blip2Processor(
        BlipImageProcessorPil(size={"height": IMAGE, "width": IMAGE}), tokenizer, num_query_tokens=4
    )
    return save(Path(folder), enliven(Blip2ForConditionalGeneration(config), seed), processor)


def tiny_instructblip_llama(folder: Folder, seed: int = 0) -> Path:
    """InstructBLIP with a decoder, as with Vicuna."""
    tokenizer = llama_tokenizer(["<image>", "<pad>"])
    return _tiny_instructblip(folder, seed, tokenizer, llama_config(tokenizer))


def tiny_instructblip_t5(folder: Folder, seed: int = 0) -> Path:
    """InstructBLIP with an encoder and a decoder, as with Flan-T5."""
    tokenizer = t5_tokenizer()
    return _tiny_instructblip(folder, seed, tokenizer, t5_config(tokenizer))


def _tiny_instructblip(folder: Folder, seed: int, tokenizer: Any, text: dict[str, Any]) -> Path:
    from transformers import (
        BlipImageProcessorPil,
        InstructBlipConfig,
        InstructBlipForConditionalGeneration,
        InstructBlipProcessor,
    )

    words = tokenizers.wordpiece_tokenizer(256)
    config = InstructBlipConfig(
        vision_config=VISION,
        qformer_config={
            **LAYERS, "encoder_hidden_size": WIDTH, "cross_attention_frequency": 1, "vocab_size": len(words),
            "max_position_embeddings": 256,
        },
        text_config=text,
        num_query_tokens=4,
        image_token_id=token_id(tokenizer, "<image>"),
    )  # fmt: skip
    images = BlipImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
    processor = InstructBlipProcessor(images, tokenizer, words, num_query_tokens=4)
    return save(Path(folder), enliven(InstructBlipForConditionalGeneration(config), seed), processor)


def tiny_blip_captioner(folder: Folder, seed: int = 0) -> Path:
    """BLIP's captioner."""
    from transformers import BlipForConditionalGeneration

    return _tiny_blip(folder, seed, BlipForConditionalGeneration)


def tiny_blip_vqa(folder: Folder, seed: int = 0) -> Path:
    """BLIP's answers to questions."""
    from transformers import BlipForQuestionAnswering

    return _tiny_blip(folder, seed, BlipForQuestionAnswering)


def _tiny_blip(folder: Folder, seed: int, model_class: Any) -> Path:
    from transformers import BlipConfig, BlipImageProcessorPil

    tokenizer = tokenizers.wordpiece_tokenizer(64)
    tokenizer.add_special_tokens({"bos_token": "[DEC]"})
    text = {
        **LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 64, "encoder_hidden_size": WIDTH,
        "bos_token_id": tokenizer.bos_token_id, "sep_token_id": tokenizer.sep_token_id,
        "pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.sep_token_id,
    }  # fmt: skip
    model = model_class(BlipConfig(text_config=text, vision_config=VISION))
    images = BlipImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
    return save(Path(folder), enliven(model, seed), tokenizer, images)
