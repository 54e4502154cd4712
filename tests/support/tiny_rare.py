"""Tiny checkpoints of architectures that only tests need, in the hub's folder layout (see `creperie.testing.tiny`)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from creperie.testing import tokenizers
from creperie.testing.tiny import (
    IMAGE,
    JOINT,
    LAYERS,
    VISION,
    WIDTH,
    Folder,
    clip_processor,
    enliven,
    save,
)
from creperie.testing.tokenizers import LETTERS, SENTENCES, byte_pairs, sentence_words


def tiny_t5(folder: Folder, seed: int = 0) -> Path:
    """A T5 encoder."""
    from transformers import T5Config, T5EncoderModel

    tokenizer = t5_tokenizer()
    config = T5Config(d_model=WIDTH, d_kv=16, d_ff=64, num_layers=2, num_heads=2, vocab_size=len(tokenizer))
    return save(Path(folder), enliven(T5EncoderModel(config), seed), tokenizer)


def tiny_gpt2(folder: Folder, seed: int = 0) -> Path:
    """A GPT-2 decoder without a language-model head, as decoders are used as text encoders."""
    from transformers import GPT2Config, GPT2Model

    tokenizer = gpt2_tokenizer()
    end = tokenizer.eos_token_id
    config = GPT2Config(
        n_embd=WIDTH, n_layer=2, n_head=2, n_positions=64, vocab_size=len(tokenizer), bos_token_id=end, eos_token_id=end
    )
    return save(Path(folder), enliven(GPT2Model(config), seed), tokenizer)


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

    tokenizer = xlm_roberta_tokenizer(64)
    text = {**_bert_text(tokenizer), "max_position_embeddings": 66, "project_dim": WIDTH, "type_vocab_size": 1}
    config = AltCLIPConfig(text_config=text, vision_config=VISION, projection_dim=JOINT)
    return save(Path(folder), enliven(AltCLIPModel(config), seed), tokenizer, clip_processor())


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


def tiny_siglip(folder: Folder, seed: int = 0) -> Path:
    """A SigLIP model of fixed resolution."""
    from transformers import SiglipConfig, SiglipImageProcessorPil, SiglipModel

    with tempfile.TemporaryDirectory() as pieces:
        tokenizer = siglip_tokenizer(Path(pieces))
        config = SiglipConfig(text_config=_siglip_text(tokenizer), vision_config=VISION)
        processor = SiglipImageProcessorPil(size={"height": IMAGE, "width": IMAGE})
        return save(Path(folder), enliven(SiglipModel(config), seed), tokenizer, processor)


def _siglip_text(tokenizer: Any) -> dict[str, Any]:
    ids = {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    return {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": tokenizer.model_max_length} | ids


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

    tokenizer = roberta_tokenizer(64)
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


def roberta_tokenizer(context: int = 64) -> Any:
    """Byte-level BPE with <s> and </s>, as in RoBERTa."""
    from transformers import RobertaTokenizer

    words, merges = byte_pairs("")
    vocab = {word: i for i, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *words, "<mask>"])}
    return RobertaTokenizer(vocab=vocab, merges=merges, model_max_length=context)


def gpt2_tokenizer(context: int = 64) -> Any:
    """Byte-level BPE without any special token around a caption, as in decoders."""
    from transformers import GPT2Tokenizer

    words, merges = byte_pairs("")
    vocab = {word: i for i, word in enumerate([*words, "<|endoftext|>"])}
    return GPT2Tokenizer(vocab=vocab, merges=merges, model_max_length=context)


def t5_tokenizer(context: int = 64) -> Any:
    """Unigram pieces with </s> behind, as in T5."""
    from transformers import T5Tokenizer

    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return T5Tokenizer(vocab=special + _unigrams(), extra_ids=0, model_max_length=context)


def xlm_roberta_tokenizer(context: int = 64) -> Any:
    """Unigram pieces with <s> and </s>, as in XLM-RoBERTa."""
    from transformers import XLMRobertaTokenizer

    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return XLMRobertaTokenizer(vocab=[*special, *_unigrams(), ("<mask>", 0.0)], model_max_length=context)


def siglip_tokenizer(folder: Path, context: int = 16) -> Any:
    """A SentencePiece model with </s> behind, which is also the padding, and no attention mask, as in SigLIP."""
    import sentencepiece
    from transformers import SiglipTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "spiece.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES),
            model_writer=file,
            vocab_size=80,
            hard_vocab_limit=False,  # how many pieces there are differs between processors
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            minloglevel=2,
        )
    names = ["input_ids"]
    return SiglipTokenizer(str(folder / "spiece.model"), model_max_length=context, model_input_names=names)


def _unigrams() -> list[tuple[str, float]]:
    """Every word and letter of the sentences, longer pieces preferred."""
    letters = sorted({"▁", *LETTERS})
    return [(f"▁{word}", -3.0) for word in sentence_words()] + [(letter, -6.0) for letter in letters]
