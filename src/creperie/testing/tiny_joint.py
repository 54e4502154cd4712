"""A tiny FLAVA checkpoint: a model that joins image and text."""

from __future__ import annotations

from pathlib import Path

from creperie.testing import tokenizers
from creperie.testing.tiny import IMAGE, JOINT, LAYERS, VISION, WIDTH, Folder, enliven, save


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
