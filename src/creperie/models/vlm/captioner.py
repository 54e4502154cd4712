"""Models that say what they see: captions for images, by which other captions are judged (reference-based scores)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL import Image

from creperie.core import UsageError
from creperie.models.prompts import find_prompt
from creperie.models.protocols import Generator, Prompt
from creperie.models.vlm.chooser import VlmGenerator

CAPTION_TOKENS = 48


def caption_images(model: Any, images: Sequence[Image.Image]) -> list[str]:
    """What a model says about each image in one sentence, without sampling; the model is a `vlm:` or `api:` one."""
    describes = "one-sentence"
    if not isinstance(model, Generator):
        engine = getattr(model, "engine", None)
        if engine is None:
            raise UsageError(
                "does not talk about images", where=model.fingerprint.uri, hint="name a vlm: or api: model"
            )
        describes = engine.reader.family.describes
        model = VlmGenerator(engine, model.fingerprint, model.place)
    asked = find_prompt(describes, "caption").text
    prompts = [Prompt((("user", asked),), images=(image,), max_tokens=CAPTION_TOKENS) for image in images]
    return [" ".join(said.split()) for said in model.generate(prompts)]
