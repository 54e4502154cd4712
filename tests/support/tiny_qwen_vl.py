"""Tiny checkpoints of the Qwen-VL models: pictures of any size, positions in three dimensions."""

from __future__ import annotations

from pathlib import Path

from vlm_parts import QWEN_IMAGE, chatml, mrope_config, qwen_ids, qwen_images, qwen_tokenizer, save_parts

from creperie.testing.tiny import WIDTH, Folder, enliven


def tiny_qwen2_vl(folder: Folder, seed: int = 0) -> Path:
    """Qwen2-VL: pictures of any size, positions in three dimensions."""
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    tokenizer = qwen_tokenizer()
    vision = {
        "depth": 2, "embed_dim": WIDTH, "hidden_size": WIDTH, "num_heads": 2, "mlp_ratio": 2, "patch_size": 4,
        "spatial_merge_size": 2, "temporal_patch_size": 2,
    }  # fmt: skip
    config = Qwen2VLConfig(vision_config=vision, text_config=mrope_config(tokenizer), **qwen_ids(tokenizer))
    model = enliven(Qwen2VLForConditionalGeneration(config), seed)
    return save_parts(folder, model, tokenizer, qwen_images(4), chatml(QWEN_IMAGE))


def tiny_qwen2_5_vl(folder: Folder, seed: int = 0) -> Path:
    """Qwen2.5-VL: windows in the tower."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    tokenizer = qwen_tokenizer()
    vision = {
        "depth": 2, "hidden_size": WIDTH, "out_hidden_size": WIDTH, "num_heads": 2, "intermediate_size": 64,
        "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 16,
        "fullatt_block_indexes": [1],
    }  # fmt: skip
    config = Qwen2_5_VLConfig(vision_config=vision, text_config=mrope_config(tokenizer), **qwen_ids(tokenizer))
    model = enliven(Qwen2_5_VLForConditionalGeneration(config), seed)
    return save_parts(folder, model, tokenizer, qwen_images(4), chatml(QWEN_IMAGE))


def tiny_qwen3_vl(folder: Folder, seed: int = 0, name: str = "Qwen3VL", **text: int) -> Path:
    """Qwen3-VL: the tower also speaks to the first layers of the decoder. `name` is that of its classes."""
    import transformers

    tokenizer = qwen_tokenizer()
    vision = {
        "depth": 2, "hidden_size": WIDTH, "out_hidden_size": WIDTH, "num_heads": 2, "intermediate_size": 64,
        "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 16,
        "deepstack_visual_indexes": [0],
    }  # fmt: skip
    config = getattr(transformers, f"{name}Config")(
        vision_config=vision, text_config={**mrope_config(tokenizer), "head_dim": 16, **text}, **qwen_ids(tokenizer)
    )
    model = enliven(getattr(transformers, f"{name}ForConditionalGeneration")(config), seed)
    return save_parts(folder, model, tokenizer, qwen_images(4), chatml(QWEN_IMAGE))
