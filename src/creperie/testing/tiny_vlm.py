"""Tiny checkpoints of generative models, one a family, in the hub's folder layout.

Processors that also read video cannot be made without torchvision; their parts are saved one by one, as older
checkpoints on the hub have them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from creperie.testing import tokenizers
from creperie.testing.tiny import IMAGE, LAYERS, VISION, WIDTH, Folder, enliven, save

PATCH = 8
CELLS = (IMAGE // PATCH) ** 2  #: image tokens of one picture
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}"
    "{% if part.type == 'image' %}IMAGE{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: the shape of LLaVA 1.5's dialogue: the answer follows a blank
DIALOGUE = (
    "{% for m in messages %}{{ m.role | upper }}: {% for part in m.content %}"
    "{% if part.type == 'image' %}<image>\n{% else %}{{ part.text }}{% endif %}{% endfor %} {% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


# -- decoders that read image tokens ---------------------------------------------------------------------------------


def tiny_llava(folder: Folder, seed: int = 0) -> Path:
    """LLaVA 1.5: CLIP's tower, a Llama with its SentencePiece-like tokenizer, a fixed number of image tokens."""
    from transformers import LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    tokenizer = llama_tokenizer(["<image>", "<pad>"])
    config = LlavaConfig(
        vision_config=_clip_vision(), text_config=_llama(tokenizer), image_token_id=_id(tokenizer, "<image>")
    )
    processor = LlavaProcessor(
        _clip_processor(),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=DIALOGUE,
    )
    return save(Path(folder), enliven(LlavaForConditionalGeneration(config), seed), processor)


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
        vision_config=_clip_vision(),
        text_config=_llama(tokenizer),
        image_token_id=_id(tokenizer, "<image>"),
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
        text_config=_qwen(tokenizer),
        image_token_id=_id(tokenizer, "<image>"),
        video_token_id=_id(tokenizer, "<video>"),
        image_grid_pinpoints=grid,
    )
    images = LlavaOnevisionImageProcessorPil(size={"height": IMAGE, "width": IMAGE}, image_grid_pinpoints=grid)
    settings = {"num_image_tokens": CELLS, "vision_feature_select_strategy": "full"}
    model = enliven(LlavaOnevisionForConditionalGeneration(config), seed)
    return _save_parts(folder, model, tokenizer, images, _chatml("<image>\n"), settings)


def tiny_internvl(folder: Folder, seed: int = 0) -> Path:
    """InternVL: its own tower, pixel shuffling, a Qwen2."""
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
        text_config=_qwen(tokenizer),
        image_token_id=_id(tokenizer, "<IMG_CONTEXT>"),
        image_seq_length=CELLS // 4,
    )
    images = GotOcr2ImageProcessorPil(size={"height": IMAGE, "width": IMAGE}, crop_to_patches=False)
    model = enliven(InternVLForConditionalGeneration(config), seed)
    settings = {"image_seq_length": CELLS // 4}
    return _save_parts(folder, model, tokenizer, images, _chatml("<IMG_CONTEXT>\n"), settings)


def tiny_qwen2_vl(folder: Folder, seed: int = 0) -> Path:
    """Qwen2-VL: pictures of any size, positions in three dimensions."""
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    tokenizer = _qwen_tokenizer()
    vision = {
        "depth": 2, "embed_dim": WIDTH, "hidden_size": WIDTH, "num_heads": 2, "mlp_ratio": 2, "patch_size": 4,
        "spatial_merge_size": 2, "temporal_patch_size": 2,
    }  # fmt: skip
    config = Qwen2VLConfig(vision_config=vision, text_config=_mrope(tokenizer), **_qwen_ids(tokenizer))
    model = enliven(Qwen2VLForConditionalGeneration(config), seed)
    return _save_parts(folder, model, tokenizer, _qwen_images(4), _chatml(QWEN_IMAGE))


def tiny_qwen2_5_vl(folder: Folder, seed: int = 0) -> Path:
    """Qwen2.5-VL: windows in the tower."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    tokenizer = _qwen_tokenizer()
    vision = {
        "depth": 2, "hidden_size": WIDTH, "out_hidden_size": WIDTH, "num_heads": 2, "intermediate_size": 64,
        "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 16,
        "fullatt_block_indexes": [1],
    }  # fmt: skip
    config = Qwen2_5_VLConfig(vision_config=vision, text_config=_mrope(tokenizer), **_qwen_ids(tokenizer))
    model = enliven(Qwen2_5_VLForConditionalGeneration(config), seed)
    return _save_parts(folder, model, tokenizer, _qwen_images(4), _chatml(QWEN_IMAGE))


def tiny_qwen3_vl(folder: Folder, seed: int = 0) -> Path:
    """Qwen3-VL: the tower also speaks to the first layers of the decoder."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    tokenizer = _qwen_tokenizer()
    vision = {
        "depth": 2, "hidden_size": WIDTH, "out_hidden_size": WIDTH, "num_heads": 2, "intermediate_size": 64,
        "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 16,
        "deepstack_visual_indexes": [0],
    }  # fmt: skip
    text = {**_mrope(tokenizer), "head_dim": 16}
    config = Qwen3VLConfig(vision_config=vision, text_config=text, **_qwen_ids(tokenizer))
    model = enliven(Qwen3VLForConditionalGeneration(config), seed)
    return _save_parts(folder, model, tokenizer, _qwen_images(4), _chatml(QWEN_IMAGE))


def tiny_smolvlm(folder: Folder, seed: int = 0) -> Path:
    """SmolVLM: Idefics3's shape with other tags."""
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration, SmolVLMImageProcessorPil

    tokenizer = _idefics_tokenizer()
    config = SmolVLMConfig(**_idefics3_parts(tokenizer))
    images = SmolVLMImageProcessorPil(size={"longest_edge": IMAGE}, max_image_size={"longest_edge": IMAGE})
    model = enliven(SmolVLMForConditionalGeneration(config), seed)
    return _save_parts(folder, model, tokenizer, images, _chatml("<image>"), {"image_seq_len": CELLS // 4})


def tiny_idefics3(folder: Folder, seed: int = 0) -> Path:
    """Idefics3: tiles around a whole picture, each between tags."""
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
    )

    tokenizer = _idefics_tokenizer()
    config = Idefics3Config(**_idefics3_parts(tokenizer))
    images = Idefics3ImageProcessorPil(size={"longest_edge": 2 * IMAGE}, max_image_size={"longest_edge": IMAGE})
    processor = Idefics3Processor(images, tokenizer, image_seq_len=CELLS // 4, chat_template=_chatml("<image>"))
    return save(Path(folder), enliven(Idefics3ForConditionalGeneration(config), seed), processor)


def tiny_idefics2(folder: Folder, seed: int = 0) -> Path:
    """Idefics2: a perceiver makes a fixed number of image tokens."""
    from transformers import (
        Idefics2Config,
        Idefics2ForConditionalGeneration,
        Idefics2ImageProcessorPil,
        Idefics2Processor,
    )

    tokenizer = _idefics_tokenizer()
    config = Idefics2Config(
        vision_config=VISION,
        perceiver_config={
            "resampler_n_latents": 4, "resampler_depth": 1, "resampler_n_heads": 2, "resampler_head_dim": 16,
            "num_key_value_heads": 2, "hidden_size": WIDTH,
        },
        text_config={"model_type": "mistral", **_decoder(tokenizer), "num_key_value_heads": 2},
        image_token_id=_id(tokenizer, "<image>"),
    )  # fmt: skip
    images = Idefics2ImageProcessorPil(
        size={"shortest_edge": IMAGE, "longest_edge": 2 * IMAGE}, do_image_splitting=False
    )
    processor = Idefics2Processor(images, tokenizer, image_seq_len=4, chat_template=_chatml("<image>"))
    return save(Path(folder), enliven(Idefics2ForConditionalGeneration(config), seed), processor)


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
    text = {"model_type": "gemma", **_decoder(tokenizer), "head_dim": 16, "num_key_value_heads": 1}
    config = PaliGemmaConfig(
        vision_config={"model_type": "siglip_vision_model", **VISION, "vision_use_head": False},
        text_config=text,
        image_token_id=_id(tokenizer, "<image>"),
        projection_dim=WIDTH,
        hidden_size=WIDTH,
    )
    return save(Path(folder), enliven(PaliGemmaForConditionalGeneration(config), seed), processor)


# -- query formers ---------------------------------------------------------------------------------------------------


def tiny_blip2_opt(folder: Folder, seed: int = 0) -> Path:
    """BLIP-2 with a decoder."""
    tokenizer = chat_tokenizer(["<image>"], bos_token="</s>")
    return _tiny_blip2(folder, seed, tokenizer, _opt(tokenizer))


def tiny_blip2_t5(folder: Folder, seed: int = 0) -> Path:
    """BLIP-2 with an encoder and a decoder."""
    tokenizer = _t5_tokenizer()
    return _tiny_blip2(folder, seed, tokenizer, _t5(tokenizer))


def _tiny_blip2(folder: Folder, seed: int, tokenizer: Any, text: dict[str, Any]) -> Path:
    from transformers import Blip2Config, Blip2ForConditionalGeneration, Blip2Processor, BlipImageProcessorPil

    config = Blip2Config(
        vision_config=VISION,
        qformer_config={**LAYERS, "encoder_hidden_size": WIDTH, "cross_attention_frequency": 1},
        text_config=text,
        num_query_tokens=4,
        image_token_id=_id(tokenizer, "<image>"),
    )
    processor = Blip2Processor(
        BlipImageProcessorPil(size={"height": IMAGE, "width": IMAGE}), tokenizer, num_query_tokens=4
    )
    return save(Path(folder), enliven(Blip2ForConditionalGeneration(config), seed), processor)


def tiny_instructblip_llama(folder: Folder, seed: int = 0) -> Path:
    """InstructBLIP with a decoder, as with Vicuna."""
    tokenizer = llama_tokenizer(["<image>", "<pad>"])
    return _tiny_instructblip(folder, seed, tokenizer, _llama(tokenizer))


def tiny_instructblip_t5(folder: Folder, seed: int = 0) -> Path:
    """InstructBLIP with an encoder and a decoder, as with Flan-T5."""
    tokenizer = _t5_tokenizer()
    return _tiny_instructblip(folder, seed, tokenizer, _t5(tokenizer))


def _tiny_instructblip(folder: Folder, seed: int, tokenizer: Any, text: dict[str, Any]) -> Path:
    from transformers import (
        BlipImageProcessorPil,
        InstructBlipConfig,
        InstructBlipForConditionalGeneration,
        InstructBlipProcessor,
    )

    words = tokenizers.wordpiece_tokenizer(64)
    config = InstructBlipConfig(
        vision_config=VISION,
        qformer_config={
            **LAYERS, "encoder_hidden_size": WIDTH, "cross_attention_frequency": 1, "vocab_size": len(words),
            "max_position_embeddings": 64,
        },
        text_config=text,
        num_query_tokens=4,
        image_token_id=_id(tokenizer, "<image>"),
    )  # fmt: skip
    images = BlipImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
    processor = InstructBlipProcessor(images, tokenizer, words, num_query_tokens=4)
    return save(Path(folder), enliven(InstructBlipForConditionalGeneration(config), seed), processor)


# -- BLIP ------------------------------------------------------------------------------------------------------------


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


# -- parts -----------------------------------------------------------------------------------------------------------

QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"


def chat_tokenizer(special: list[str], **named: str) -> Any:
    """Byte-level BPE with chat tags, as in Qwen and SmolLM. Named tokens become attributes of the tokenizer."""
    tokenizer = tokenizers.gpt2_tokenizer(512)
    models_own = {name: token for name, token in named.items() if name != "bos_token"}
    if models_own:  # saved and read again with the tokenizer, as in the hub's folders
        tokenizer = type(tokenizer)(
            vocab=tokenizer.get_vocab(),
            merges=tokenizers._byte_pairs("")[1],
            model_max_length=512,
            extra_special_tokens=models_own,
        )
    tokens = ["<|im_start|>", "<|im_end|>", *special]
    tokenizer.add_special_tokens({"additional_special_tokens": tokens, "pad_token": "<|pad|>"})
    if "bos_token" in named:
        tokenizer.add_special_tokens({"bos_token": named["bos_token"]})
    return tokenizer


def llama_tokenizer(special: list[str]) -> Any:
    """Pieces that begin with a blank, which is also put before the first word, as in Llama 1 and 2."""
    from transformers import LlamaTokenizer

    letters = sorted({*tokenizers.LETTERS, "▁", "\n"})
    merges: dict[tuple[str, str], None] = {}
    for word in tokenizers._words():
        joined = "▁"
        for letter in word:
            merges[joined, letter] = None
            joined += letter
    pieces = dict.fromkeys([*letters, *[a + b for a, b in merges]])
    bytes_ = [f"<0x{n:02X}>" for n in range(256)]
    vocab = {piece: i for i, piece in enumerate(["<unk>", "<s>", "</s>", *bytes_, *pieces])}
    tokenizer = LlamaTokenizer(vocab=vocab, merges=list(merges), model_max_length=512)
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    if "<pad>" in special:
        tokenizer.pad_token = "<pad>"
    return tokenizer


def _t5_tokenizer() -> Any:
    tokenizer = tokenizers.t5_tokenizer(128)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    return tokenizer


def _qwen_tokenizer() -> Any:
    return chat_tokenizer(["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"])


def _idefics_tokenizer() -> Any:
    cells = [f"<row_{r}_col_{c}>" for r in range(1, 4) for c in range(1, 4)]
    return chat_tokenizer(["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", *cells])


def _id(tokenizer: Any, token: str) -> int:
    return int(tokenizer.convert_tokens_to_ids(token))


def _chatml(image: str) -> str:
    return CHATML.replace("IMAGE", image)


def _decoder(tokenizer: Any) -> dict[str, Any]:
    return {
        **LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 512,
        "pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.bos_token_id,
    }  # fmt: skip


def _llama(tokenizer: Any) -> dict[str, Any]:
    return {"model_type": "llama", **_decoder(tokenizer), "num_key_value_heads": 2}


def _qwen(tokenizer: Any) -> dict[str, Any]:
    return {"model_type": "qwen2", **_decoder(tokenizer), "num_key_value_heads": 2}


def _opt(tokenizer: Any) -> dict[str, Any]:
    text = _decoder(tokenizer)
    text["ffn_dim"] = text.pop("intermediate_size")
    return {"model_type": "opt", **text, "word_embed_proj_dim": WIDTH}


def _t5(tokenizer: Any) -> dict[str, Any]:
    return {
        "model_type": "t5", "d_model": WIDTH, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2,
        "vocab_size": len(tokenizer), "decoder_start_token_id": tokenizer.pad_token_id,
    }  # fmt: skip


def _mrope(tokenizer: Any) -> dict[str, Any]:
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
    return {**_decoder(tokenizer), "num_key_value_heads": 2, "rope_parameters": rope}


def _qwen_ids(tokenizer: Any) -> dict[str, int]:
    names = {"image_token_id": "image_pad", "video_token_id": "video_pad", "vision_start_token_id": "vision_start"}
    names["vision_end_token_id"] = "vision_end"
    return {field: _id(tokenizer, f"<|{name}|>") for field, name in names.items()}


def _qwen_images(patch: int) -> Any:
    from transformers import Qwen2VLImageProcessorPil

    most = {"shortest_edge": 16 * 16, "longest_edge": 48 * 48}
    return Qwen2VLImageProcessorPil(patch_size=patch, merge_size=2, temporal_patch_size=2, size=most)


def _clip_vision() -> dict[str, Any]:
    return {"model_type": "clip_vision_model", **VISION, "projection_dim": WIDTH}


def _clip_processor() -> Any:
    from transformers import CLIPImageProcessorPil

    return CLIPImageProcessorPil(size={"shortest_edge": IMAGE}, crop_size={"height": IMAGE, "width": IMAGE})


def _idefics3_parts(tokenizer: Any) -> dict[str, Any]:
    return {
        "vision_config": VISION,
        "text_config": _llama(tokenizer),
        "image_token_id": _id(tokenizer, "<image>"),
        "scale_factor": 2,
    }


def _save_parts(
    folder: Folder, model: Any, tokenizer: Any, images: Any, template: str, settings: dict[str, Any] | None = None
) -> Path:
    """A folder whose processor class was not made: its parts, its settings and its chat template as files."""
    path = save(Path(folder), model, tokenizer, images)
    (path / "chat_template.jinja").write_text(template, encoding="utf-8")
    if settings:
        (path / "processor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return path


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
    "paligemma": tiny_paligemma,
    "blip2-opt": tiny_blip2_opt,
    "blip2-t5": tiny_blip2_t5,
    "instructblip-llama": tiny_instructblip_llama,
    "instructblip-t5": tiny_instructblip_t5,
    "blip-captioner": tiny_blip_captioner,
    "blip-vqa": tiny_blip_vqa,
}
