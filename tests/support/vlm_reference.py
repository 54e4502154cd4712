"""The slow reference for generative models: one image and one caption at a time, through the library's own loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from creperie.models import Folder, quiet_libraries


@cache
def _loaded(folder: Path, name: str) -> tuple[Any, Any]:
    import transformers

    source = Folder(folder, "test")
    kind = {"blip-vqa": "BlipForQuestionAnswering"}.get(name, "AutoModelForImageTextToText")
    with quiet_libraries():
        model = getattr(transformers, kind).from_pretrained(folder).eval()
    return source.processor(source.config().model_type), model


class Reference:
    """The library's model and processor, and its loss for one image and one caption. `before` are messages that stand
    before the turn with the image: (role, text); with `shown`, each of the user has an image."""

    def __init__(
        self,
        name: str,
        folder: Path,
        before: Sequence[tuple[str, str]] = (),
        shown: Sequence[Image.Image] = (),
    ) -> None:
        self.name, self.before, self.shown = name, before, shown
        self.processor, self.model = _loaded(folder, name)

    def prompt(self, question: str) -> str:
        if getattr(self.processor, "chat_template", None):
            parts = [{"type": "image"}, {"type": "text", "text": question}]
            tokenizer, template = self.processor.tokenizer, self.processor.chat_template
            image = {"user": parts[:1] if self.shown else []}
            before = [
                {"role": role, "content": [*image.get(role, []), {"type": "text", "text": text}]}
                for role, text in self.before
            ]
            text = tokenizer.apply_chat_template(
                [*before, {"role": "user", "content": parts}],
                chat_template=template,
                add_generation_prompt=True,
                tokenize=False,
            )
            return str(text)
        return f"Question: {question} Answer:" if self.name.startswith("blip2") else question

    def loss(self, picture: Image.Image, question: str, answer: str) -> float:
        """The mean over the answer's tokens of −log P, as the library computes it in training."""
        import torch

        ways = {"blip-captioner": self._captioner, "blip-vqa": self._answerer, "paligemma": self._suffix}
        if self.name.endswith("t5"):
            inputs = self._encoder_decoder(picture, question, answer)
        else:
            inputs = ways.get(self.name, self._sequence)(picture, question, answer)
        with torch.inference_mode():
            return float(self.model(**inputs).loss)

    def _sequence(self, picture: Image.Image, question: str, answer: str) -> dict[str, Any]:
        import torch

        prompt = self.prompt(question)
        blank = " " if prompt.endswith(":") else ""
        inputs, whole = self._read(picture, prompt), self._read(picture, prompt + blank + answer)
        before = inputs["input_ids"].shape[1]
        if "qformer_input_ids" in inputs:  # the query former sees the instruction, never the answer
            whole |= {name: inputs[name] for name in ("qformer_input_ids", "qformer_attention_mask")}
        assert torch.equal(whole["input_ids"][:, :before], inputs["input_ids"])
        labels = whole["input_ids"].clone()
        labels[:, :before] = -100
        whole.pop("num_patches", None)
        return {**whole, "labels": labels}

    def _read(self, picture: Image.Image, text: str) -> dict[str, Any]:
        made = self.processor(images=[*self.shown, picture], text=[text], return_tensors="pt")
        return dict(made.to(self.model.dtype))  # Llama 4's processor gives bfloat16

    def _suffix(self, picture: Image.Image, question: str, answer: str) -> dict[str, Any]:
        return dict(self.processor(images=[picture], text=["<image>" + question], suffix=[answer], return_tensors="pt"))

    def _encoder_decoder(self, picture: Image.Image, question: str, answer: str) -> dict[str, Any]:
        inputs = dict(self.processor(images=[picture], text=[self.prompt(question)], return_tensors="pt"))
        return {**inputs, "labels": self.processor.tokenizer([answer], return_tensors="pt")["input_ids"]}

    def _captioner(self, picture: Image.Image, question: str, answer: str) -> dict[str, Any]:
        images = self.processor.image_processor([picture], return_tensors="pt")
        ids = self._bert(answer)
        return {"pixel_values": images["pixel_values"], "input_ids": ids, "labels": ids}

    def _answerer(self, picture: Image.Image, question: str, answer: str) -> dict[str, Any]:
        images = self.processor.image_processor([picture], return_tensors="pt")
        asked = self.processor.tokenizer([question], return_tensors="pt")
        ids = self._bert(answer)
        more = {"input_ids": asked["input_ids"], "attention_mask": asked["attention_mask"]}
        return {"pixel_values": images["pixel_values"], "decoder_input_ids": ids, "labels": ids, **more}

    def _bert(self, answer: str) -> Any:
        ids = self.processor.tokenizer([answer], return_tensors="pt")["input_ids"]
        ids[:, 0] = self.processor.tokenizer.bos_token_id
        return ids
