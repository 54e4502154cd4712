"""Tiny checkpoints of generative models, one per family, in the hub's folder layout.

Processors that also read video cannot be made without torchvision; their parts are saved one by one, as older
checkpoints on the hub have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tiny_2025 import (
    tiny_deepseek_vl,
    tiny_gemma3,
    tiny_glm4v,
    tiny_glm4v_moe,
    tiny_glm46v,
    tiny_internvl3_5,
    tiny_qwen3_vl_moe,
)
from tiny_blip import (
    tiny_blip2_opt,
    tiny_blip2_t5,
    tiny_blip_captioner,
    tiny_blip_vqa,
    tiny_instructblip_llama,
    tiny_instructblip_t5,
)
from tiny_idefics import tiny_idefics2, tiny_idefics3, tiny_smolvlm
from tiny_llava_kin import tiny_internvl, tiny_llava_next, tiny_llava_onevision, tiny_paligemma
from tiny_qwen_vl import tiny_qwen2_5_vl, tiny_qwen2_vl, tiny_qwen3_vl

from creperie.testing.tiny import Folder
from creperie.testing.tiny_llava import tiny_llava

FAMILIES: dict[str, Callable[[Folder], Path]] = {
    "llava": tiny_llava,
    "llava_next": tiny_llava_next,
    "llava_onevision": tiny_llava_onevision,
    "internvl": tiny_internvl,
    "qwen2_vl": tiny_qwen2_vl,
    "qwen2_5_vl": tiny_qwen2_5_vl,
    "qwen3_vl": tiny_qwen3_vl,
    "smolvlm": tiny_smolvlm,
    "idefics3": tiny_idefics3,
    "idefics2": tiny_idefics2,
    "qwen3_vl_moe": tiny_qwen3_vl_moe,
    "internvl3_5": tiny_internvl3_5,
    "gemma3": tiny_gemma3,
    "glm4v": tiny_glm4v,
    "glm4v_moe": tiny_glm4v_moe,
    "glm46v": tiny_glm46v,
    "deepseek_vl": tiny_deepseek_vl,
    "paligemma": tiny_paligemma,
    "blip2-opt": tiny_blip2_opt,
    "blip2-t5": tiny_blip2_t5,
    "instructblip-llama": tiny_instructblip_llama,
    "instructblip-t5": tiny_instructblip_t5,
    "blip-captioner": tiny_blip_captioner,
    "blip-vqa": tiny_blip_vqa,
}


def by_family(others: pytest.MarkDecorator, names: Iterable[str] = FAMILIES) -> list[Any]:
    """Return families as parameters of a test: two that chat and two older ones as they are, the others marked."""
    plain = ("llava", "qwen2_5_vl", "blip2-t5", "blip-vqa")
    return [name if name in plain else pytest.param(name, marks=others) for name in names]


__all__ = [
    "FAMILIES",
    "by_family",
    "tiny_blip2_t5",
    "tiny_blip_captioner",
    "tiny_blip_vqa",
    "tiny_llava",
    "tiny_llava_onevision",
]
