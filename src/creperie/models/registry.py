"""The kinds of models, and how a URI becomes a model.

`KINDS` is data: a kind names the function that loads it, and that function's module is imported when a model of the
kind is asked for. A kind that is not here is looked up among the entry points of group `creperie.models`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from creperie.core import CreperieError, ModelError, installed_plugins, load_plugin, missing_module
from creperie.models import captions
from creperie.models.blind_images import NULLS
from creperie.models.choice import CHOICE_OPTIONS, Chooser
from creperie.models.device import Place, find_place
from creperie.models.hf.families import FAMILIES
from creperie.models.hf.matching import MATCHERS
from creperie.models.hf.text import DECODERS, ENCODERS
from creperie.models.options import ModelOption, read_options
from creperie.models.protocols import (
    Generator,
    ImageEncoder,
    Model,
    PairEncoder,
    PairScorer,
    TextEncoder,
    TextPairScorer,
    TextScorer,
)
from creperie.models.uri import ModelURI, parse_uri
from creperie.models.vlm.families import FAMILIES as GENERATIVE

GROUP = "creperie.models"
Loader = Callable[[ModelURI, Mapping[str, Any], Place], Model]


@dataclass(frozen=True)
class ModelKind:
    """One kind of model URI. `load` is `module:function`, called with the URI, its options, and the place."""

    load: str
    summary: str
    example: str
    families: Mapping[str, str] = field(default_factory=dict)  #: what it covers, with a note each
    options: tuple[ModelOption, ...] = ()
    extra: str = "models"  #: what to pip install when the loader's imports fail


_TRUST = ModelOption("trust_remote_code", "run Python code that comes with the model", "flag", False)
_REVISION = ModelOption("revision", "branch, tag or commit on the hub")
_LENGTH = ModelOption("max_length", "tokens per caption may have, less than the model's context", "number")

_ACTIVATION = ModelOption(
    "activation",
    "the activation that a checkpoint was trained with; must be said",
    "choice",
    None,
    ("quick_gelu", "gelu"),
)

KINDS: dict[str, ModelKind] = {
    "hf": ModelKind(
        load="creperie.models.hf:load",
        summary="a model of the transformers library, by hub name or folder",
        example="hf:openai/clip-vit-base-patch32",
        families={
            **{name: family.note for name, family in FAMILIES.items()},
            **{name: f"{matcher.note}: matching head" for name, matcher in MATCHERS.items() if name not in FAMILIES},
            ", ".join(ENCODERS): "text encoders, mean pooling by default",
            ", ".join(DECODERS): "text decoders as encoders, last token by default",
        },
        options=(
            ModelOption(
                "score",
                "contrastive vectors, the matching head, or fused vectors; of text encoders, vectors or BERTScore",
                "choice",
                None,
                ("contrastive", "itm", "fused", "text", "bertscore"),
            ),
            ModelOption(
                "value",
                "of a matching head: P(match), the match logit, or match minus no match",
                "choice",
                "prob",
                ("prob", "logit", "margin"),
            ),
            ModelOption(
                "query", "BLIP-2's contrastive score: the best query, or the first", "choice", None, ("best", "first")
            ),
            ModelOption("pool", "of a plain text encoder", "choice", None, ("mean", "cls", "last")),
            ModelOption("layer", "of BERTScore: the states behind so many layers (the last)", "number"),
            ModelOption("eos", "append the end token (plain text encoders)", "flag", False),
            *captions.OPTIONS,
            ModelOption("pad_to", "pad every caption to N tokens", "number"),
            _LENGTH,
            _REVISION,
            _TRUST,
        ),
    ),
    "clip": ModelKind(
        load="creperie.models.checkpoint:load",
        summary="a released CLIP-shaped checkpoint, by path",
        example="clip:/path/to/negclip.pth?activation=quick_gelu",
        families={"OpenAI's layout": "also open_clip's training files; NegCLIP, CLIP-SVLC and other ViTs; merged LoRA"},
        options=(
            _ACTIVATION,
            ModelOption("tokenizer", "a CLIP folder or hub name with the vocabulary; CLIP's own by default"),
            ModelOption("vision_heads", "attention heads, where they are not 64 wide", "number"),
            ModelOption("text_heads", "attention heads, where they are not 64 wide", "number"),
            ModelOption("unsafe_pickle", "read a file that may run code: only if you trust it", "flag", False),
            *captions.OPTIONS,
            _LENGTH,
        ),
    ),
    "open_clip": ModelKind(
        load="creperie.models.openclip:load",
        summary="a model of the open_clip library: ARCHITECTURE/TAG, or ARCHITECTURE//path/to/checkpoint",
        example="open_clip:ViT-B-32/laion2b_s34b_b79k",
        families={"any": "every architecture and tag of the library, hf-hub: and local-dir: names, local checkpoints"},
        options=(
            ModelOption("checkpoint", "a file of weights in place of a tag"),
            _ACTIVATION,
            *captions.OPTIONS,
        ),
        extra="open-clip",
    ),
    "st": ModelKind(
        load="creperie.models.st:load",
        summary="a text encoder of the sentence-transformers library, by hub name, folder or pkg:MODULE",
        example="st:sentence-transformers/all-MiniLM-L6-v2",
        families={"any": "every model that the library reads"},
        options=(
            ModelOption(
                "backend",
                "what runs the model; onnx needs onnxruntime and a model.onnx in the folder",
                "choice",
                "torch",
                ("torch", "onnx"),
            ),
            ModelOption("file", "the ONNX file, where there are several"),
            *captions.OPTIONS,
            ModelOption("prompt_name", "one of the prompts stored with the model"),
            ModelOption("pool_prompt", "whether the prompt's tokens are pooled; false for INSTRUCTOR", "flag"),
            _LENGTH,
            _REVISION,
            _TRUST,
        ),
    ),
    "lm": ModelKind(
        load="creperie.models.lm:load",
        summary="a language model that never sees the image, by hub name, folder, GGUF file or pkg:MODULE",
        example="lm:HuggingFaceTB/SmolLM2-135M-Instruct",
        families={
            "causal": "log P(token | tokens before it)",
            "masked": "pseudo-likelihood: each token masked in turn",
            "pkg:pocketsphinx": "a trigram model",
        },
        options=(
            ModelOption(
                "reduce",
                "mean or sum of token log-probabilities, or −perplexity",
                "choice",
                "mean",
                ("mean", "sum", "ppl"),
            ),
            ModelOption("prompt", "text before every caption, not scored"),
            ModelOption("start", "token before the caption: auto, none, or a token", "text", "auto"),
            _LENGTH,
            _REVISION,
        ),
    ),
    "vlm": ModelKind(
        load="creperie.models.vlm.load:load_vlm",
        summary="a generative image-text model of the transformers library, by hub name or folder",
        example="vlm:llava-hf/llava-1.5-7b-hf?score=vqa",
        families={name: family.note for name, family in GENERATIVE.items()},
        options=(
            ModelOption(
                "score",
                "likelihood of the caption, of an answer about it, of yes against no, or a choice between captions",
                "choice",
                "visualgpt",
                ("visualgpt", "vqa", "yesno", "choice"),
            ),
            ModelOption("prompt", "a prompt by id, or from a file: my.toml#id"),
            ModelOption("system", "the text of a system turn before the image"),
            ModelOption(
                "reduce", "visualgpt: mean or sum over the caption's tokens", "choice", "mean", ("mean", "sum")
            ),
            ModelOption("alpha", "visualgpt: subtract this much of log P(caption) without an image"),
            ModelOption("null", "visualgpt: images that show nothing", "choice", None, NULLS),
            ModelOption("nulls", "visualgpt: how many of them (3); also gives the blind score", "number"),
            ModelOption(
                "value",
                "vqa: geometric mean over the answer's tokens, or P(yes); yesno: P(yes), or 1 and 0",
                "choice",
                None,
                ("geometric", "yes", "prob", "decision"),
            ),
            *CHOICE_OPTIONS,
            ModelOption("end", "score the end token too (default: encoder-decoder models only)", "flag"),
            _LENGTH,
            _REVISION,
            _TRUST,
        ),
    ),
    "api": ModelKind(
        load="creperie.models.api:load",
        summary="a model behind an OpenAI-compatible endpoint; the key comes from the environment",
        example="api:gpt-4o?base_url=http://127.0.0.1:8000/v1",
        families={"chat": "text and images in, text out"},
        options=(
            ModelOption("score", "score captions by a choice or by yes and no", "choice", None, ("choice", "yesno")),
            ModelOption("prompt", "of a score: a prompt by id, or from a file: my.toml#id"),
            *CHOICE_OPTIONS,
            ModelOption("base_url", "the endpoint up to and with /v1"),
            ModelOption("key_env", "environment variable that holds the key", "text", "OPENAI_API_KEY"),
            ModelOption("concurrency", "requests in flight at once", "number", 8),
            ModelOption("rpm", "requests per minute at most", "number"),
            ModelOption("retries", "tries after the first (default 6)"),
            ModelOption("timeout", "seconds to wait for an answer (default 60)"),
            ModelOption("price_in", "dollars per million tokens read"),
            ModelOption("price_out", "dollars per million tokens written"),
            ModelOption("budget", "dollars that may be spent at most"),
            ModelOption("structured", "hold answers of LLM makers to a JSON schema (response_format)", "flag", False),
        ),
        extra="llm",
    ),
}


def load_model(uri: str, *, device: str = "auto", dtype: str = "float32") -> Model:
    """Load the model that a URI names. Whatever goes wrong is a `CreperieError` that names the model."""
    parsed = parse_uri(uri)
    place = find_place(device, dtype)
    kind = KINDS.get(parsed.kind)
    options = parsed.options if kind is None else read_options(parsed.options, kind.options, where=uri)
    try:
        loader = _plugin_loader(parsed.kind) if kind is None else _loader(kind)
        return _checked(loader(parsed, options, place), uri)
    except (CreperieError, MemoryError):
        raise
    except ModuleNotFoundError as e:
        raise missing_module(e, kind.extra if kind else "") from e
    except Exception as e:  # libraries fail in ways of their own: a truncated file is a SafetensorError, a KeyError, …
        told = " ".join(str(e).split())[:200]
        raise ModelError(
            f"the model cannot be loaded ({type(e).__name__}: {told})",
            where=uri,
            hint="are its files complete? CREPERIE_TRACEBACK=1 shows the traceback",
        ) from e


def model_plugins() -> dict[str, EntryPoint]:
    """The kinds that installed packages add, by name."""
    return installed_plugins(GROUP)


def _loader(kind: ModelKind) -> Loader:
    module, _, function = kind.load.partition(":")
    loader: Loader = getattr(import_module(module), function)
    return loader


def _plugin_loader(kind: str) -> Loader:
    loader: Loader = load_plugin(GROUP, "model kind", kind, KINDS)
    return loader


def _checked(model: object, uri: str) -> Model:
    """A model must say what it is and be able to do something."""
    if not isinstance(model, Model):
        raise ModelError("the loaded model has no fingerprint", where=uri, hint="see docs/plugin.md")
    able = (ImageEncoder, TextEncoder, PairScorer, PairEncoder, TextPairScorer, TextScorer, Generator, Chooser)
    if not isinstance(model, able):
        raise ModelError(
            "the loaded model can neither encode, score nor generate", where=uri, hint="see docs/plugin.md"
        )
    return model
