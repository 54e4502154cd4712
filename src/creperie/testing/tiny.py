"""Tiny checkpoints in the folder layout of a model hub, for tests and demos: text encoders, dual encoders and FLAVA.

Each function writes a model with random (seeded) weights, its tokenizer and its image processor into a folder.
Everything that loads a real model can load it in the same way, in milliseconds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from creperie.testing import tokenizers

IMAGE = 32
WIDTH = 32
JOINT = 16
LAYERS = {"hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = {**LAYERS, "image_size": IMAGE, "patch_size": 8}
Folder = Path | str


# -- text encoders ---------------------------------------------------------------------------------------------------


def tiny_bert(folder: Folder, seed: int = 0) -> Path:
    """Write a BERT text encoder into a folder and return the folder."""
    from transformers import BertConfig, BertModel

    tokenizer = tokenizers.wordpiece_tokenizer(128)
    config = BertConfig(
        **LAYERS, vocab_size=len(tokenizer), max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id
    )
    return save(Path(folder), enliven(BertModel(config), seed), tokenizer)


def tiny_sentence_encoder(folder: Folder, seed: int = 0, *, pooling: str = "mean", max_length: int = 64) -> Path:
    """Write a sentence-transformers model (a small BERT with pooling and normalisation) and return its folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    with tempfile.TemporaryDirectory() as inner:
        transformer = modules.Transformer(str(tiny_bert(inner, seed)), max_seq_length=max_length)
        parts = [transformer, modules.Pooling(WIDTH, pooling_mode=pooling), modules.Normalize()]
        SentenceTransformer(modules=parts, device="cpu").save(str(folder), create_model_card=False)
    return Path(folder)


# -- dual encoders with causal text towers ---------------------------------------------------------------------------


def tiny_clip(
    folder: Folder, seed: int = 0, *, activation: str = "quick_gelu", context: int = 77, legacy_eos: bool = False
) -> Path:
    """Write a CLIP model and return its folder. With `legacy_eos`, the end token has the id 2, as in old
    checkpoints.
    """
    from transformers import CLIPConfig, CLIPModel

    tokenizer = tokenizers.clip_tokenizer(context)
    text = causal_text(tokenizer, activation) | ({"bos_token_id": 0, "eos_token_id": 2} if legacy_eos else {})
    vision = {**VISION, "hidden_act": activation, "projection_dim": JOINT}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=JOINT)
    return save(Path(folder), enliven(CLIPModel(config), seed), tokenizer, clip_processor())


def causal_text(tokenizer: Any, activation: str = "quick_gelu") -> dict[str, Any]:
    return {
        **LAYERS,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": tokenizer.model_max_length,
        "hidden_act": activation,
        "projection_dim": JOINT,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


# -- pieces ----------------------------------------------------------------------------------------------------------


def clip_processor(size: int = IMAGE) -> Any:
    from transformers import CLIPImageProcessorPil

    return CLIPImageProcessorPil(size={"shortest_edge": size}, crop_size={"height": size, "width": size})


def enliven(model: Any, seed: int) -> Any:
    """Give the model seeded random weights, and return it. The weights are large enough for different inputs to give
    different outputs.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if weight.dim() >= 2:
                weight.copy_(noise / weight[0].numel() ** 0.5 * (4 if "embed" in name else 1))
            elif weight.dim() == 1:
                is_gain = name.endswith("weight")
                weight.copy_(noise * 0.1 + (1.0 if is_gain else 0.0))
    return model.eval()


def save(folder: Path, model: Any, *processors: Any) -> Path:
    """Write a model and its processors with `save_pretrained` into a folder and return the folder."""
    from creperie.models import quiet_libraries

    with quiet_libraries():
        model.save_pretrained(folder)
        for processor in processors:
            processor.save_pretrained(folder)
    return folder


def tiny_flava(folder: Folder, seed: int = 0) -> Path:
    """Write a FLAVA model for pre-training (with contrastive projections and a matching head) and return its folder."""
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
