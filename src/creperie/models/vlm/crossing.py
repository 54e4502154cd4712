"""The first Idefics: its image is not a part of the sequence. Layers between the decoder's look at it, from the tokens
that stand behind its place in the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from creperie.models.hf.folder import quiet_libraries
from creperie.models.vlm.families import VlmFamily
from creperie.models.vlm.reader import Frame, Reader

AROUND = "<fake_token_around_image>"
IMAGE = "<image>"
#: behind a turn, where the model was trained with it
TURN = "<end_of_utterance>"


class CrossingReader(Reader):
    """Writes the image's place into the text as the library's processor does, which takes texts and images in turn."""

    def __init__(self, processor: Any, family: VlmFamily, context: int, system: str = "") -> None:
        super().__init__(processor, family, context, system)
        self.chats, self.gap = False, ""
        self.placeholder = AROUND + IMAGE + AROUND
        self._turn = TURN if TURN in self.tokenizer.get_vocab() else ""

    def _rendered(self, question: str, turns: Any) -> str:
        return super()._rendered(question, turns).replace("{turn}", self._turn)

    def opening_ids(self, head: str) -> list[int]:
        return super().opening_ids(self._begun(head))

    def whole_ids(self, images: Sequence[Image.Image], frame: Frame) -> Any:
        with quiet_libraries():
            parts = [frame.head.removesuffix(self.placeholder), *images, frame.tail]
            return self.processor(text=[parts], return_tensors="pt")["input_ids"][0]

    def see(self, image: Image.Image, head: str, before: Sequence[Image.Image] = ()) -> dict[str, np.ndarray]:
        """Pixels of one image, and from which token on it is looked at: its place and all behind it."""
        with quiet_libraries():
            pixels = self.processor.image_processor([image.convert("RGB")], return_tensors="np")
        ids = np.array(self.tokenizer(self._begun(head), add_special_tokens=False)["input_ids"], np.int64)[None]
        behind = np.cumsum(ids == self.tokenizer.convert_tokens_to_ids(IMAGE), axis=1)
        return {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "pixel_values": np.asarray(pixels, np.float32)[None],
            "image_attention_mask": behind[:, :, None].astype(np.int64),
        }

    def _begun(self, head: str) -> str:
        return f"{self.tokenizer.bos_token}{head}"
