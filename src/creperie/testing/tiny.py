"""Tiny checkpoints in the hub's folder layout, for tests and demos: text encoders and dual encoders.

Each function writes a model with random (seeded) weights, its tokenizer and its image processor into a folder, so
that everything that loads a real model loads it in the same way, in milliseconds.
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
    """A BERT text encoder."""
    from transformers import BertConfig, BertModel

    tokenizer = tokenizers.wordpiece_tokenizer(128)
    config = BertConfig(
        **LAYERS, vocab_size=len(tokenizer), max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id
    )
    return save(Path(folder), enliven(BertModel(config), seed), tokenizer)


def tiny_t5(folder: Folder, seed: int = 0) -> Path:
    """A T5 encoder."""
    from transformers import T5Config, T5EncoderModel

    tokenizer = tokenizers.t5_tokenizer()
    config = T5Config(d_model=WIDTH, d_kv=16, d_ff=64, num_layers=2, num_heads=2, vocab_size=len(tokenizer))
    return save(Path(folder), enliven(T5EncoderModel(config), seed), tokenizer)


def tiny_gpt2(folder: Folder, seed: int = 0) -> Path:
    """A GPT-2 decoder without a language-model head, as decoders are used as text encoders."""
    from transformers import GPT2Config, GPT2Model

    tokenizer = tokenizers.gpt2_tokenizer()
    end = tokenizer.eos_token_id
    config = GPT2Config(
        n_embd=WIDTH, n_layer=2, n_head=2, n_positions=64, vocab_size=len(tokenizer), bos_token_id=end, eos_token_id=end
    )
    return save(Path(folder), enliven(GPT2Model(config), seed), tokenizer)


def tiny_sentence_encoder(folder: Folder, seed: int = 0, *, pooling: str = "mean", max_length: int = 64) -> Path:
    """A sentence-transformers folder: a small BERT, pooling, normalisation."""
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
    """A CLIP model. `legacy_eos` writes the configuration of old checkpoints, where the end token is called 2."""
    from transformers import CLIPConfig, CLIPModel

    tokenizer = tokenizers.clip_tokenizer(context)
    text = _causal_text(tokenizer, activation) | ({"bos_token_id": 0, "eos_token_id": 2} if legacy_eos else {})
    vision = {**VISION, "hidden_act": activation, "projection_dim": JOINT}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=JOINT)
    return save(Path(folder), enliven(CLIPModel(config), seed), tokenizer, clip_processor())


def tiny_clipseg(folder: Folder, seed: int = 0) -> Path:
    """A CLIPSeg model, with the square resizing of its processor."""
    from transformers import CLIPSegConfig, CLIPSegModel, ViTImageProcessorPil

    tokenizer = tokenizers.clip_tokenizer(77)
    config = CLIPSegConfig(text_config=_causal_text(tokenizer), vision_config=VISION, projection_dim=JOINT)
    processor = ViTImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
    return save(Path(folder), enliven(CLIPSegModel(config), seed), tokenizer, processor)


def tiny_metaclip2(folder: Folder, seed: int = 0) -> Path:
    """A MetaCLIP 2 model: CLIP with a multilingual tokenizer."""
    from transformers import MetaClip2Config, MetaClip2Model

    tokenizer = tokenizers.xlm_roberta_tokenizer(77)
    config = MetaClip2Config(text_config=_causal_text(tokenizer), vision_config=VISION, projection_dim=JOINT)
    return save(Path(folder), enliven(MetaClip2Model(config), seed), tokenizer, clip_processor())


def tiny_groupvit(folder: Folder, seed: int = 0) -> Path:
    """A GroupViT model."""
    from transformers import GroupViTConfig, GroupViTModel

    tokenizer = tokenizers.clip_tokenizer(77)
    vision = {
        **VISION, "depths": [1, 1, 1], "num_hidden_layers": 3, "num_group_tokens": [8, 4, 0],
        "num_output_groups": [8, 4, 4],
    }  # fmt: skip
    config = GroupViTConfig(
        text_config=_causal_text(tokenizer),
        vision_config=vision,
        projection_dim=JOINT,
        projection_intermediate_dim=WIDTH,
    )
    return save(Path(folder), enliven(GroupViTModel(config), seed), tokenizer, clip_processor())


def _causal_text(tokenizer: Any, activation: str = "quick_gelu") -> dict[str, Any]:
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


# -- dual encoders with masked text towers ---------------------------------------------------------------------------


def tiny_align(folder: Folder, seed: int = 0) -> Path:
    """An ALIGN model: BERT and EfficientNet."""
    from transformers import AlignConfig, AlignModel, EfficientNetImageProcessorPil

    tokenizer = tokenizers.wordpiece_tokenizer(64)
    vision = {
        "image_size": IMAGE, "hidden_dim": 64, "width_coefficient": 0.25, "depth_coefficient": 1.0,
        "depthwise_padding": [], "kernel_sizes": [3, 3], "in_channels": [32, 16], "out_channels": [16, 64],
        "strides": [1, 2], "num_block_repeats": [1, 1], "expand_ratios": [1, 2],
    }  # fmt: skip
    config = AlignConfig(text_config=_bert_text(tokenizer), vision_config=vision, projection_dim=JOINT)
    size = {"height": IMAGE + 8, "width": IMAGE + 8}
    processor = EfficientNetImageProcessorPil(
        size=size, crop_size={"height": IMAGE, "width": IMAGE}, do_center_crop=True, rescale_offset=True
    )
    return save(Path(folder), enliven(AlignModel(config), seed), tokenizer, processor)


def tiny_altclip(folder: Folder, seed: int = 0) -> Path:
    """An AltCLIP model: XLM-RoBERTa and CLIP's vision tower."""
    from transformers import AltCLIPConfig, AltCLIPModel

    tokenizer = tokenizers.xlm_roberta_tokenizer(64)
    text = {**_bert_text(tokenizer), "max_position_embeddings": 66, "project_dim": WIDTH, "type_vocab_size": 1}
    config = AltCLIPConfig(text_config=text, vision_config=VISION, projection_dim=JOINT)
    return save(Path(folder), enliven(AltCLIPModel(config), seed), tokenizer, clip_processor())


def tiny_chinese_clip(folder: Folder, seed: int = 0) -> Path:
    """A Chinese-CLIP model: BERT and CLIP's vision tower."""
    from transformers import ChineseCLIPConfig, ChineseCLIPImageProcessorPil, ChineseCLIPModel

    tokenizer = tokenizers.wordpiece_tokenizer(64)
    config = ChineseCLIPConfig(text_config=_bert_text(tokenizer), vision_config=VISION, projection_dim=JOINT)
    size = {"height": IMAGE, "width": IMAGE}
    processor = ChineseCLIPImageProcessorPil(size=size, crop_size=size)
    return save(Path(folder), enliven(ChineseCLIPModel(config), seed), tokenizer, processor)


def tiny_lit(folder: Folder, seed: int = 0) -> Path:
    """A pair of a ViT and a BERT, as LiT models are saved."""
    from transformers import (
        BertConfig,
        VisionTextDualEncoderConfig,
        VisionTextDualEncoderModel,
        ViTConfig,
        ViTImageProcessorPil,
    )

    tokenizer = tokenizers.wordpiece_tokenizer(64)
    config = VisionTextDualEncoderConfig.from_vision_text_configs(
        ViTConfig(**VISION), BertConfig(**_bert_text(tokenizer)), projection_dim=JOINT
    )
    processor = ViTImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
    return save(Path(folder), enliven(VisionTextDualEncoderModel(config), seed), tokenizer, processor)


def _bert_text(tokenizer: Any) -> dict[str, Any]:
    return {
        **LAYERS,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": tokenizer.model_max_length,
        "pad_token_id": tokenizer.pad_token_id,
    }


# -- dual encoders that must be padded -------------------------------------------------------------------------------


def tiny_siglip(folder: Folder, seed: int = 0) -> Path:
    """A SigLIP model of fixed resolution."""
    from transformers import SiglipConfig, SiglipImageProcessorPil, SiglipModel

    with tempfile.TemporaryDirectory() as pieces:
        tokenizer = tokenizers.siglip_tokenizer(Path(pieces))
        config = SiglipConfig(text_config=_siglip_text(tokenizer), vision_config=VISION)
        processor = SiglipImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
        return save(Path(folder), enliven(SiglipModel(config), seed), tokenizer, processor)


def tiny_siglip2(folder: Folder, seed: int = 0) -> Path:
    """A SigLIP 2 model of flexible resolution."""
    from transformers import Siglip2Config, Siglip2ImageProcessorPil, Siglip2Model

    tokenizer = tokenizers.siglip2_tokenizer()
    vision = {**LAYERS, "num_patches": 16, "patch_size": 8}
    config = Siglip2Config(text_config=_siglip_text(tokenizer), vision_config=vision)
    processor = Siglip2ImageProcessorPil(patch_size=8, max_num_patches=24)
    return save(Path(folder), enliven(Siglip2Model(config), seed), tokenizer, processor)


def _siglip_text(tokenizer: Any) -> dict[str, Any]:
    ids = {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    return {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": tokenizer.model_max_length} | ids


# -- pieces ----------------------------------------------------------------------------------------------------------


def clip_processor(size: int = IMAGE) -> Any:
    from transformers import CLIPImageProcessorPil

    return CLIPImageProcessorPil(size={"shortest_edge": size}, crop_size={"height": size, "width": size})


def enliven(model: Any, seed: int) -> Any:
    """Seeded weights large enough that different inputs give clearly different outputs."""
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
    """Write a model and what belongs to it as `save_pretrained` does."""
    from creperie.models import quiet_transformers

    with quiet_transformers():
        model.save_pretrained(folder)
        for processor in processors:
            processor.save_pretrained(folder)
    return folder
