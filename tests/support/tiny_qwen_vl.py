"""Tiny checkpoints of the Qwen-VL models: pictures of any size, positions in three dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vlm_parts import QWEN_IMAGE, chatml, mrope_config, qwen_ids, qwen_images, qwen_tokenizer, save_parts

from creperie.testing.tiny import WIDTH, Folder, enliven

TOWER = {
    "depth": 2, "hidden_size": WIDTH, "num_heads": 2, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2
}  # fmt: skip
LATER = TOWER | {"out_hidden_size": WIDTH, "intermediate_size": 64}


def _saved(folder: Folder, seed: int, name: str, vision: dict[str, Any], **text: int) -> Path:
    """A checkpoint of the classes of this name."""
    import transformers

    tokenizer = qwen_tokenizer()
    config = getattr(transformers, f"{name}Config")(
        vision_config=vision, text_config={**mrope_config(tokenizer), **text}, **qwen_ids(tokenizer)
    )
    model = enliven(getattr(transformers, f"{name}ForConditionalGeneration")(config), seed)
    return save_parts(folder, model, tokenizer, qwen_images(4), chatml(QWEN_IMAGE))


def tiny_qwen2_vl(folder: Folder, seed: int = 0) -> Path:
    """Qwen2-VL: pictures of any size, positions in three dimensions."""
    return _saved(folder, seed, "Qwen2VL", TOWER | {"embed_dim": WIDTH, "mlp_ratio": 2})


def tiny_qwen2_5_vl(folder: Folder, seed: int = 0) -> Path:
    """Qwen2.5-VL: windows in the tower."""
    return _saved(folder, seed, "Qwen2_5_VL", LATER | {"window_size": 16, "fullatt_block_indexes": [1]})


def tiny_qwen3_vl(folder: Folder, seed: int = 0, name: str = "Qwen3VL", **text: int) -> Path:
    """Qwen3-VL: the tower also speaks to the first layers of the decoder. `name` is that of its classes."""
    vision = LATER | {"num_position_embeddings": 16, "deepstack_visual_indexes": [0]}
    return _saved(folder, seed, name, vision, **{"head_dim": 16, **text})
