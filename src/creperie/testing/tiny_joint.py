"""Tiny checkpoints of models that join image and text: BLIP, BLIP-2, BridgeTower, FLAVA, ViLT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from creperie.testing import tokenizers
from creperie.testing.tiny import IMAGE, JOINT, LAYERS, VISION, WIDTH, Folder, enliven, save


def tiny_blip(folder: Folder, seed: int = 0) -> Path:
    """A BLIP retrieval model: contrastive and matching heads."""
    from transformers import BlipConfig, BlipForImageTextRetrieval

    tokenizer = tokenizers.wordpiece_tokenizer(64)
    text = {
        **LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 64, "encoder_hidden_size": WIDTH,
        "bos_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    config = BlipConfig(text_config=text, vision_config=VISION, projection_dim=JOINT, image_text_hidden_size=JOINT)
    return save(Path(folder), enliven(BlipForImageTextRetrieval(config), seed), tokenizer, _blip_processor())


def tiny_blip2(folder: Folder, seed: int = 0) -> Path:
    """A BLIP-2 retrieval model: contrastive and matching heads over four queries."""
    from transformers import Blip2Config, Blip2ForImageTextRetrieval

    tokenizer = tokenizers.wordpiece_tokenizer(64)
    qformer = {
        **LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 64, "encoder_hidden_size": WIDTH,
        "cross_attention_frequency": 1, "use_qformer_text_input": True,
    }  # fmt: skip
    config = Blip2Config(vision_config=VISION, qformer_config=qformer, num_query_tokens=4, image_text_hidden_size=JOINT)
    return save(Path(folder), enliven(Blip2ForImageTextRetrieval(config), seed), tokenizer, _blip_processor())


def tiny_flava(folder: Folder, seed: int = 0) -> Path:
    """A FLAVA pre-training model: contrastive projections and matching head."""
    from transformers import FlavaConfig, FlavaForPreTraining, FlavaImageProcessorPil

    tokenizer = tokenizers.wordpiece_tokenizer(80)
    text = {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 80, "pad_token_id": 0}
    config = FlavaConfig(
        text_config=text,
        image_config={**VISION, "vocab_size": 32},
        multimodal_config=LAYERS,
        hidden_size=WIDTH,
        projection_dim=JOINT,
        init_codebook=False,
    )
    size = {"height": IMAGE, "width": IMAGE}
    processor = FlavaImageProcessorPil(size=size, crop_size=size)
    return save(Path(folder), enliven(FlavaForPreTraining(config), seed), tokenizer, processor)


def tiny_vilt(folder: Folder, seed: int = 0, *, max_patches: int = -1) -> Path:
    """A ViLT retrieval model. `max_patches` is the number above which it draws patches at random."""
    from transformers import ViltConfig, ViltForImageAndTextRetrieval, ViltImageProcessorPil

    tokenizer = tokenizers.wordpiece_tokenizer(40)
    config = ViltConfig(**VISION, vocab_size=len(tokenizer), max_position_embeddings=40, max_image_length=max_patches)
    processor = ViltImageProcessorPil(size={"shortest_edge": IMAGE}, size_divisor=8)
    return save(Path(folder), enliven(ViltForImageAndTextRetrieval(config), seed), tokenizer, processor)


def tiny_bridgetower(folder: Folder, seed: int = 0) -> Path:
    """A BridgeTower matching model."""
    from transformers import BridgeTowerConfig, BridgeTowerForImageAndTextRetrieval, BridgeTowerImageProcessorPil

    tokenizer = tokenizers.roberta_tokenizer(64)
    layers = {**LAYERS, "hidden_size": 64}  # one head of its vision tower is 64 wide
    text = {**layers, "vocab_size": len(tokenizer), "max_position_embeddings": 66}
    vision = {"hidden_size": 64, "num_hidden_layers": 2, "image_size": IMAGE, "patch_size": 8}
    config = BridgeTowerConfig(**layers, text_config=text, vision_config=vision)
    processor = BridgeTowerImageProcessorPil(
        size={"shortest_edge": IMAGE}, crop_size={"shortest_edge": IMAGE}, size_divisor=8
    )
    return save(Path(folder), enliven(BridgeTowerForImageAndTextRetrieval(config), seed), tokenizer, processor)


def _blip_processor() -> Any:
    from transformers import BlipImageProcessorPil

    return BlipImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
