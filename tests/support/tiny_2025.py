"""Tiny checkpoints of families that appeared in 2025: Gemma 3, GLM-4.1V to 4.6V, InternVL3.5, Llama 4, Qwen3-VL with
experts, and DeepSeek-VL."""

from __future__ import annotations

from pathlib import Path

from tiny_llava_kin import tiny_internvl
from tiny_qwen_vl import tiny_qwen3_vl
from vlm_parts import chat_tokenizer, chatml, mrope_config, save_parts

from creperie.testing.tiny import IMAGE, VISION, WIDTH, Folder, enliven, save
from creperie.testing.tiny_llava import CELLS, decoder_config, llama_config, token_id

EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 16}


def tiny_internvl3_5(folder: Folder, seed: int = 0) -> Path:
    """InternVL3.5: InternVL with a Qwen3."""
    return tiny_internvl(folder, seed, model_type="qwen3", head_dim=16)


def tiny_gemma3(folder: Folder, seed: int = 0) -> Path:
    """Gemma 3: an image's tokens see each other; most layers look back a window only."""
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3ImageProcessorPil

    marks = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    tokenizer = chat_tokenizer([], bos_token="<bos>", **marks)
    layers = ["sliding_attention", "full_attention"]
    text = {**decoder_config(tokenizer), "head_dim": 16, "num_key_value_heads": 1, "sliding_window": 8}
    config = Gemma3Config(
        vision_config={"model_type": "siglip_vision_model", **VISION, "vision_use_head": False},
        text_config={**text, "layer_types": layers},
        mm_tokens_per_image=CELLS // 4,
        boi_token_index=token_id(tokenizer, marks["boi_token"]),
        eoi_token_index=token_id(tokenizer, marks["eoi_token"]),
        image_token_id=token_id(tokenizer, marks["image_token"]),
    )
    images = Gemma3ImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
    model, settings = enliven(Gemma3ForConditionalGeneration(config), seed), {"image_seq_length": CELLS // 4}
    return save_parts(folder, model, tokenizer, images, chatml("<start_of_image>"), settings)


def tiny_deepseek_vl(folder: Folder, seed: int = 0) -> Path:
    """DeepSeek-VL, as transformers has it since 2025: SigLIP's tower and a Llama."""
    from transformers import (
        DeepseekVLConfig,
        DeepseekVLForConditionalGeneration,
        DeepseekVLImageProcessorPil,
        DeepseekVLProcessor,
    )

    tokenizer = chat_tokenizer([], image_token="<image_placeholder>")
    config = DeepseekVLConfig(
        vision_config={"model_type": "siglip_vision_model", **VISION, "vision_use_head": False},
        text_config=llama_config(tokenizer),
        image_token_id=token_id(tokenizer, "<image_placeholder>"),
    )
    images = DeepseekVLImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
    processor = DeepseekVLProcessor(images, tokenizer, chatml("<image_placeholder>"), num_image_tokens=CELLS)
    return save(Path(folder), enliven(DeepseekVLForConditionalGeneration(config), seed), processor)


def tiny_glm4v_moe(folder: Folder, seed: int = 0) -> Path:
    """GLM-4.5V: experts."""
    return tiny_glm4v(folder, seed, "Glm4vMoe", **EXPERTS, n_routed_experts=4, first_k_dense_replace=1)


def tiny_glm4v(folder: Folder, seed: int = 0, name: str = "Glm4v", **more: int) -> Path:
    """GLM-4.1V, GLM-4.6V: positions in three dimensions. `name` is that of its classes."""
    import transformers

    names = {"image_token_id": "image", "video_token_id": "video"}
    names |= {f"{kind}_{end}_token_id": f"{word}_of_{kind}" for kind in ("image", "video") for end, word in
              (("start", "begin"), ("end", "end"))}  # fmt: skip
    tokenizer = chat_tokenizer([f"<|{name}|>" for name in names.values()])
    vision = {
        "depth": 2, "hidden_size": WIDTH, "out_hidden_size": WIDTH, "num_heads": 2, "intermediate_size": 64,
        "image_size": 32, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2,
    }  # fmt: skip
    text = {**mrope_config(tokenizer), "head_dim": 16, **more}
    text["rope_parameters"]["partial_rotary_factor"] = 1.0
    ids = {field: token_id(tokenizer, f"<|{name}|>") for field, name in names.items()}
    config = getattr(transformers, f"{name}Config")(vision_config=vision, text_config=text, **ids)
    most = {"shortest_edge": 16 * 16, "longest_edge": 48 * 48}
    kind = getattr(transformers, f"{name.removesuffix('Moe')}ImageProcessorPil")
    images = kind(patch_size=4, merge_size=2, temporal_patch_size=2, size=most)
    template = chatml("<|begin_of_image|><|image|><|end_of_image|>")
    model = enliven(getattr(transformers, f"{name}ForConditionalGeneration")(config), seed)
    return save_parts(folder, model, tokenizer, images, template)


def tiny_glm46v(folder: Folder, seed: int = 0) -> Path:
    """GLM-4.6V."""
    return tiny_glm4v(folder, seed, "Glm46V")


def tiny_llama4(folder: Folder, seed: int = 0) -> Path:
    """Llama 4: experts, tiles, a layer that looks back a chunk only. Its processor needs torchvision."""
    from transformers import Llama4Config, Llama4ForConditionalGeneration, Llama4ImageProcessor, Llama4Processor

    marks = [f"<|{name}|>" for name in ("image_start", "image_end", "patch", "tile_x_separator", "tile_y_separator")]
    tokenizer = chat_tokenizer(["<|image|>", *marks])
    experts = {"num_local_experts": 2, "intermediate_size_mlp": 64, "head_dim": 16, "num_key_value_heads": 1}
    sizes = {f"{name}_dim": WIDTH for name in ("vision_output", "projector_input", "projector_output")}
    vision = {**VISION, **sizes, "image_size": 32, "patch_size": 8, "intermediate_size": 4 * WIDTH}
    config = Llama4Config(
        vision_config=vision,
        text_config={**decoder_config(tokenizer), **experts, "attention_chunk_size": 16, "no_rope_layers": [1, 0]},
        **{f"{name}_token_index": token_id(tokenizer, m) for name, m in zip(("boi", "eoi", "image"), marks)},
    )
    images = Llama4ImageProcessor(size={"height": 32, "width": 32}, max_patches=4)
    processor = Llama4Processor(images, tokenizer, patch_size=8, chat_template=chatml("<|image|>"))
    return save(Path(folder), enliven(Llama4ForConditionalGeneration(config), seed), processor)


def tiny_qwen3_vl_moe(folder: Folder, seed: int = 0) -> Path:
    """Qwen3-VL with experts."""
    return tiny_qwen3_vl(folder, seed, "Qwen3VLMoe", **EXPERTS, num_experts=4)
