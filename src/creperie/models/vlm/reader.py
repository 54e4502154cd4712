"""Turn a question and an answer into the tokens that a model reads, and locate the answer's tokens in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import ModelError
from creperie.models.choice import Turns
from creperie.models.hf.folder import quiet_libraries
from creperie.models.protocols import Tokens
from creperie.models.vlm.families import VlmFamily


@dataclass(frozen=True, slots=True)
class AnswerLine(Tokens):
    """The tokens after the image: the rest of the prompt, then the answer. Only the tokens of the answer,
    `ids[start:]`, are scored.
    """

    start: int = 0
    context: str = ""  #: the prompt as text, for models whose query former reads it
    opening: np.ndarray | None = None  #: the tokens of the text before the image, if it is not the default


@dataclass(frozen=True)
class Frame:
    """A prompt as text, split after the image.

    `head` is the text up to and including the image's placeholder; it is empty if the model has no placeholder.
    `tail` is the text between image and answer, and `gap` is the whitespace that the template puts before an answer.
    """

    head: str
    tail: str
    gap: str = ""


class Reader:
    """Renders prompts with the model's chat template and locates the answer's tokens. `system` is a system message."""

    def __init__(self, processor: Any, family: VlmFamily, context: int, system: str = "") -> None:
        self.processor = processor
        self.system = system
        self.tokenizer = processor.tokenizer
        self.family = family
        self.context = context
        token = getattr(processor, "image_token", "") if family.placeholder else ""
        self.placeholder = str(getattr(token, "content", token))
        self.chats = bool(getattr(processor, "chat_template", None))
        self.gap = self._gap()

    # -- prompts -------------------------------------------------------------------------------------------------

    def frame(self, question: str, turns: Turns = ()) -> Frame:
        """Return the prompt for a question about the image. An empty question asks for a description."""
        text, gap = self._rendered(question, turns), self.gap
        if not self.chats and text.endswith(":"):
            gap = " "
        while text.endswith(" "):  # a blank before a word belongs to the word's token, not to the prompt
            text, gap = text[:-1], " " + gap
        if not self.placeholder:
            return Frame("", text, gap)
        at = text.rfind(self.placeholder)  # earlier placeholders belong to demonstrations
        if at < 0:
            what = f"the chat template does not show where the image goes ({self.placeholder} is missing)"
            raise ModelError(what, hint="name a checkpoint whose chat template has a place for the image")
        end = at + len(self.placeholder)
        head, tail = text[:end], text[end:]
        if self.family.spaced and tail[:1].strip() and not tail.startswith("<"):
            tail = " " + tail
        return Frame(head, tail, gap)

    def check(self, question: str, uri: str, turns: Turns = ()) -> None:
        """Raise a ModelError if splitting a prompt after the image changes its tokens."""
        frame = self.frame(question, turns)
        probe = Image.new("RGB", (64, 48), (90, 120, 200))
        shown = images_of(turns)
        head = frame.head if shown else self.frame("").head
        apart = [*self.see(probe, head, shown)["input_ids"][0], *self._behind_image(frame.tail)]
        if turns and self.chats and not shown:
            apart = [*self.opening_ids(frame.head), *apart[len(self.default_opening) :]]
        whole = self._read([*shown, probe], (frame.head + frame.tail).removesuffix(self.family.appends))
        if [int(i) for i in apart] != whole["input_ids"][0].tolist():
            raise ModelError(
                "the processor tokenises this prompt differently when it is split after the image",
                where=uri,
                hint="choose another ?prompt=, or report the model's architecture",
            )

    def _rendered(self, question: str, turns: Turns) -> str:
        if self.chats:
            parts: list[dict[str, str]] = [{"type": "image"}, *([_text(question)] if question else [])]
            before: list[dict[str, Any]] = [{"role": "system", "content": [_text(self.system)]}] if self.system else []
            for asked, answered, image in turns:
                shown = [{"type": "image"}] if image else []
                before.append({"role": "user", "content": [*shown, _text(asked)]})
                before.append({"role": "assistant", "content": [_text(answered)]})
            return self._chat([*before, {"role": "user", "content": parts}], opens=True)
        plain = [f"{turn.asked}\n{turn.answered}" for turn in turns if turn.image is None]
        shown_first = "".join(f"{self._unchatted(t.asked)} {t.answered}\n" for t in turns if t.image is not None)
        return shown_first + self._unchatted("\n\n".join([*plain, *([question] if question else [])]))

    def _unchatted(self, question: str) -> str:
        """Return the prompt for a question, with the image's placeholder, for models without a chat template."""
        form = self.family.fallback if question else self.family.plain
        # not `str.format`, since captions may contain braces
        return form.replace("{image}", self.placeholder).replace("{question}", question)

    def _chat(self, messages: list[dict[str, Any]], *, opens: bool) -> str:
        from transformers import ProcessorMixin

        # SmolVLM's override asks its video processor first and then calls this base method
        rendered = ProcessorMixin.apply_chat_template(
            self.processor, messages, add_generation_prompt=opens, tokenize=False
        )
        return str(rendered)

    def _gap(self) -> str:
        """Return the whitespace that the chat template puts before the assistant's text."""
        if not self.chats:
            return ""
        asked = [{"role": "user", "content": [{"type": "image"}, _text("Q")]}]
        answered = [*asked, {"role": "assistant", "content": [_text("ANSWER")]}]
        opening, whole = self._chat(asked, opens=True), self._chat(answered, opens=False)
        between, answer, _ = whole[len(opening) :].partition("ANSWER")
        return between if answer and whole.startswith(opening) and not between.strip() else ""

    # -- tokens --------------------------------------------------------------------------------------------------

    def lines(self, pairs: Sequence[tuple[str, str]], *, end: bool = False, turns: Turns = ()) -> list[AnswerLine]:
        """Return the tokens that follow the image for each (question, answer) pair. With `end`, the end token is scored
        as well.

        `turns` are demonstrations. If they have images, `see` processes these together with the image of the question.
        Demonstrations without images come before the image if there is a chat template, otherwise before the question.
        """
        frames = {question: self.frame(question, turns) for question, _ in pairs}
        opening = None
        if turns and self.chats and self.placeholder and not images_of(turns):
            opening = np.array(self.opening_ids(frames[pairs[0][0]].head), np.int64)
        return [self._line(frames[question], answer, end, opening) for question, answer in pairs]

    def _line(self, frame: Frame, answer: str, end: bool, opening: np.ndarray | None) -> AnswerLine:
        context = self._behind_image(frame.tail)
        answer_ids = self.answer_ids(frame, context, answer)
        if end and self.tokenizer.eos_token_id is not None:
            answer_ids = [*answer_ids, self.tokenizer.eos_token_id]
        return self.cut(context, answer_ids, frame.tail, opening)

    @cached_property
    def default_opening(self) -> list[int]:
        """The tokens that come before the image in the default prompt."""
        return self.opening_ids(self.frame("").head)

    def opening_ids(self, head: str) -> list[int]:
        """Return the tokens of the text before the image, including the tokenizer's start tokens."""
        ids: list[int] = self.tokenizer(head, verbose=False)["input_ids"]
        first = self.tokenizer(self.placeholder, add_special_tokens=False)["input_ids"][0]
        return ids[: ids.index(first)]

    def answer_ids(self, frame: Frame, context: list[int], answer: str) -> list[int]:
        """Return the tokens of the answer."""
        # If the tokenizer would merge the end of the prompt with the beginning of the answer, both are tokenised
        # separately, as in generation.
        whole = self._behind_image(frame.tail + frame.gap + answer)
        if whole[: len(context)] == context:
            return whole[len(context) :]
        return self.tokenizer(frame.gap + answer, add_special_tokens=False)["input_ids"]

    def _behind_image(self, text: str) -> list[int]:
        """Return the tokens of a text that comes after the image."""
        ids: list[int] = self.tokenizer(self.placeholder + text, add_special_tokens=False, verbose=False)["input_ids"]
        image = self.tokenizer(self.placeholder, add_special_tokens=False)["input_ids"] if self.placeholder else []
        return ids[len(image) :]

    def cut(self, context: list[int], answer: list[int], text: str, opening: np.ndarray | None = None) -> AnswerLine:
        room = max(1, self.context - len(context) - (0 if opening is None else len(opening)))
        ids = np.array(context + answer[:room], np.int64)
        return AnswerLine(ids, max(0, len(answer) - room), len(context), text, opening)

    # -- images --------------------------------------------------------------------------------------------------

    def see(self, image: Image.Image, head: str, before: Sequence[Image.Image] = ()) -> dict[str, np.ndarray]:
        """Return the processor's arrays, by name, for the text `head` and its images. These are the images in `before`,
        then `image`, whose placeholder is at the end of `head`.
        """
        arrays = self._read([*before, image.convert("RGB")], head)
        appended = len(self._behind_image(self.family.appends)) if self.family.appends else 0
        keep = arrays["input_ids"].shape[1] - appended
        for name in SEQUENCES & arrays.keys():
            arrays[name] = arrays[name][:, :keep]
        return arrays

    def _read(self, images: Sequence[Image.Image], text: str) -> dict[str, np.ndarray]:
        """Return the processor's arrays by name. bfloat16 becomes float32, because NumPy has no bfloat16."""
        import torch

        with quiet_libraries():
            made = self.processor(images=[*images], text=[text], return_tensors="pt")
        given = {name: torch.as_tensor(value) for name, value in made.items() if name not in NOT_READ}
        return {name: (v.float() if v.dtype == torch.bfloat16 else v).numpy() for name, v in given.items()}


def images_of(turns: Turns) -> list[Image.Image]:
    """Return the images of demonstrations."""
    return [turn.image for turn in turns if turn.image is not None]


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


NOT_READ = ("labels", "num_patches")
#: inputs with one value per token of the text
SEQUENCES = {"input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids"}
