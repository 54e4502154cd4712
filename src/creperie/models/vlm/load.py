"""Load the model of a `vlm:` URI as a scorer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import UsageError
from creperie.models.answering import NAMES as ANSWERS
from creperie.models.device import Place
from creperie.models.hf.folder import REMOVED_ARCHITECTURES, Folder, ModelSource, no_adapter
from creperie.models.hub import model_folder
from creperie.models.prompts import PromptText, find_prompt
from creperie.models.protocols import Fingerprint, Model
from creperie.models.tokens import fitting_context
from creperie.models.uri import ModelURI, refuse_unused
from creperie.models.vlm.causal import CausalEngine
from creperie.models.vlm.encdec import BlipAnswerer, BlipCaptioner, EncoderDecoderEngine, QueryFormerT5
from creperie.models.vlm.families import DEFAULT, FAMILIES
from creperie.models.vlm.reader import Reader
from creperie.models.vlm.scorer import (
    REDUCTIONS,
    AnswerLikelihood,
    CaptionLikelihood,
    DebiasedLikelihood,
    LikelihoodEngine,
    YesNo,
)

#: mean and standard deviation of Gaussian noise, in units of 0…255; about 5 % of the pixels are clipped
MEAN, SPREAD = 127.5, 64.0


def blind_image(kind: str, size: tuple[int, int], seed: int = 0, name: str = "") -> Image.Image:
    """Return an image without content, of this width and height. `seed` and `name` determine the image if it is noise.

    >>> blind_image("grey", (4, 3)).getpixel((0, 0))
    (128, 128, 128)
    """
    width, height = size
    if kind == "grey":
        return Image.new("RGB", size, (128, 128, 128))
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(f"{seed}\n{name}".encode()).digest()[:8], "big"))
    if kind == "noise":
        return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
    values = rng.normal(MEAN, SPREAD, (height, width, 3))
    return Image.fromarray(np.rint(values).clip(0, 255).astype(np.uint8))


def null_images(kind: str, count: int) -> list[Image.Image]:
    """Return several images without content. They are used to estimate the probability of a caption without an
    image.
    """
    return [blind_image(kind, (336, 336), name=f"null {i}") for i in range(1 if kind == "grey" else count)]


def mean_image(images: Sequence[Image.Image]) -> Image.Image:
    """Return the pixel-wise mean of images after resizing them to one size."""
    total = np.zeros((256, 256, 3), np.float64)
    for image in images:
        total += np.asarray(image.convert("RGB").resize((256, 256), Image.Resampling.BICUBIC), np.float64)
    return Image.fromarray(np.rint(total / max(1, len(images))).clip(0, 255).astype(np.uint8))


SHARED = ("score", "prompt", "system", "end", "max_length", "revision", "trust_remote_code", "compile")
#: the options of each way of scoring
TAKES = {
    "visualgpt": ("reduce", "alpha", "null", "nulls"),
    "vqa": ("value",),
    "yesno": ("value",),
    "choice": ("by", "order", "shots", *(name for name in ANSWERS if name != "reasoning")),
}
VALUES = {"vqa": ("geometric", "yes"), "yesno": ("prob", "decision")}
PROMPTS = {"visualgpt": ("caption", "one-sentence"), "vqa": ("vqa", "vqascore"), "yesno": ("yesno", "match-1")}


def load_vlm(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    text = str(uri)
    folder = Folder(model_folder(uri.name, uri=text, revision=options["revision"]), text, options["trust_remote_code"])
    return scorer_of(folder, uri.options, options, place)


def scorer_of(folder: ModelSource, given: Iterable[str], options: Mapping[str, Any], place: Place) -> Model:
    """Return the adapter to a generative model, in a folder or in memory. `given` are the options that the user set."""
    text, way = folder.uri, options["score"]
    refuse_unused(given, (*SHARED, *TAKES[way]), where=text, what=f"score={way}")
    engine = read_engine(folder, place, options["max_length"], options["system"] or "")
    if options["compile"]:
        if not isinstance(engine, CausalEngine) or not engine.packs:
            raise UsageError("compile=true does not apply to this architecture: leave it out", where=text)
        engine.compile()
    if way == "choice":
        from creperie.models.vlm.chooser import load_chooser

        return load_chooser(engine, _fingerprint(folder, engine, place, {}), options, place)
    kind, default = PROMPTS[way]
    if kind == "caption" and not isinstance(engine, BlipAnswerer):  # BLIP's VQA model answers questions only
        default = engine.reader.family.describes
    prompt = find_prompt(options["prompt"], kind, default=default, where=text)
    end = isinstance(engine, EncoderDecoderEngine) if options["end"] is None else options["end"]
    used = {"score": way, "end": end, **{name: options[name] for name in TAKES[way] if options[name] is not None}}
    fingerprint = replace(_fingerprint(folder, engine, place, used), prompt=prompt.described)
    if way == "visualgpt":
        return _caption_likelihood(engine, prompt, fingerprint, place, options, end)
    value = options["value"] or VALUES[way][0]
    if value not in VALUES[way]:
        raise UsageError(f"value={value} does not apply to score={way}", where=text, hint=f"use {VALUES[way]}")
    fingerprint = replace(fingerprint, options={**used, "value": value})
    if way == "vqa":
        answer = AnswerLikelihood(engine, prompt, fingerprint, place, end=end and value == "geometric")
        answer.geometric = value == "geometric"
        return answer
    yesno = YesNo(engine, prompt, fingerprint, place, end=False)
    yesno.decision = value == "decision"
    return yesno


def _caption_likelihood(
    engine: LikelihoodEngine,
    prompt: PromptText,
    fingerprint: Fingerprint,
    place: Place,
    options: Mapping[str, Any],
    end: bool,
) -> Model:
    plain = CaptionLikelihood(engine, prompt, fingerprint, place, end=end)
    plain.reduce = REDUCTIONS[options["reduce"]]
    if options["alpha"] is None and options["nulls"] is None:
        return plain
    text = options["alpha"]
    try:
        alpha = 0.0 if text is None else float(text)
    except ValueError:
        alpha = -1.0
    if not 0 <= alpha <= 10:
        raise UsageError(f"option alpha={text!r} is not a number from 0 to 10", where=fingerprint.uri)
    return DebiasedLikelihood(plain, alpha, null_images(options["null"] or "gaussian", options["nulls"] or 3))


def read_engine(
    folder: ModelSource, place: Place, max_length: int | None = None, system: str = ""
) -> CausalEngine | EncoderDecoderEngine:
    """Load a generative model and return the engine for its architecture, which is a decoder or an encoder with a
    decoder.
    """
    from transformers import AutoModelForImageTextToText, BlipForConditionalGeneration, BlipForQuestionAnswering
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KNOWN

    config = folder.config()
    if config.model_type not in KNOWN or config.model_type in REMOVED_ARCHITECTURES:
        raise no_adapter(config.model_type, "is not a generative image-text model", FAMILIES, folder.uri)
    family = FAMILIES.get(config.model_type, DEFAULT)
    processor = folder.processor(config.model_type)
    positions = getattr(config.get_text_config(decoder=True), "max_position_embeddings", None)
    context = fitting_context(processor.tokenizer, positions, max_length)
    reader = Reader(processor, family, context, system)
    if system and not reader.chats:
        raise UsageError(
            "option 'system' needs a chat template, which this model does not have",
            where=folder.uri,
            hint="leave out system=",
        )
    if config.model_type == "blip":
        asks = any("QuestionAnswering" in name for name in config.architectures or ())
        model = folder.model(BlipForQuestionAnswering if asks else BlipForConditionalGeneration, place)
        return (BlipAnswerer if asks else BlipCaptioner)(model, reader, place)
    model = folder.model(AutoModelForImageTextToText, place)
    if getattr(config, "use_decoder_only_language_model", True):
        reader.check("What is this?", folder.uri)
        return CausalEngine(model, reader, family, place)
    return QueryFormerT5(model, reader, place)


def _fingerprint(folder: ModelSource, engine: Any, place: Place, used: Mapping[str, Any]) -> Fingerprint:
    processor = engine.reader.processor
    images = processor.image_processor.to_dict()
    return Fingerprint(
        uri=folder.uri,
        architecture=type(engine.model).__name__ + (", compiled" if getattr(engine, "compiled", False) else ""),
        weights=folder.weights(),
        preprocessing={
            "images": {k: v for k, v in images.items() if k not in ("processor_class", "_processor_class")},
            "template": getattr(processor, "chat_template", None) or engine.reader.family.fallback,
            **({"system": engine.reader.system} if engine.reader.system else {}),
        },
        dtype=place.dtype,
        context=engine.reader.context,
        options=dict(used),
    )
