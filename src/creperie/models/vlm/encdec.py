"""Encoder-decoder models. Image and prompt are encoded once, and every answer is decoded from that encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.choice import Turns
from creperie.models.device import Place, exact_float32
from creperie.models.hf.dual import all_seen
from creperie.models.hf.folder import quiet_libraries
from creperie.models.vlm.prefix import Seen
from creperie.models.vlm.reader import AnswerLine, Reader
from creperie.models.vlm.rows import Rest, read_rests
from creperie.models.vlm.tower import having_seen, look

if TYPE_CHECKING:
    import torch

    Inputs = Mapping[str, torch.Tensor]
    Encoded = tuple[torch.Tensor, torch.Tensor]  #: the states that the decoder attends to, and their mask


#: images with prompts per encoder batch
TOGETHER = 32


@dataclass(frozen=True)
class DecodeTask:
    """An image with one encoded prompt, and the indices of the lines to decode from it."""

    image: int
    prompt: Inputs
    lines: Sequence[int]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the inputs. Tasks with the same shape can be encoded in one batch, without padding."""
        return tuple((name, value.shape[1:]) for name, value in sorted(self.prompt.items()))


@dataclass(eq=False)
class EncoderDecoderEngine:
    """The base class of engines for encoder-decoder models: BLIP-2 and InstructBLIP with T5, BLIP's captioner and its
    VQA model.

    Subclasses define how image and prompt are encoded, which tokens the decoder starts with, and how it decodes.
    """

    model: Any
    reader: Reader
    place: Place

    def see(self, image: Any, turns: Turns = ()) -> Seen:
        with quiet_libraries():
            made = self.reader.processor.image_processor([image.convert("RGB")], return_tensors="np")
        return {"pixel_values": np.asarray(made["pixel_values"], np.float32)}

    def lines(self, pairs: Sequence[tuple[str, str]], *, end: bool = True, turns: Turns = ()) -> list[AnswerLine]:
        """Return the decoder's input for each (question, answer) pair: start tokens and the answer. With `end`, the end
        token is included.
        """
        made = []
        for question, answer in pairs:
            prompt = self.reader.frame(question, turns).tail
            ids: list[int] = self.reader.tokenizer(answer, add_special_tokens=False, verbose=False)["input_ids"]
            made.append(self.reader.cut(self.start(prompt), ids + ([self.end_id] if end else []), prompt))
        return made

    def log_probabilities(self, seen: Sequence[Seen], lines: Sequence[Sequence[AnswerLine]]) -> list[list[np.ndarray]]:
        """Return the log-probability of each token of the answer, for each line (prompt and answer) of each image."""
        results: list[list[np.ndarray]] = [[np.zeros(0, np.float32)] * len(own) for own in lines]
        with exact_float32():
            pixels = [self._pixels(one) for one in seen]
            states = look(self.model, pixels)
            for batch in self._batches(lines):
                shown = [(pixels[task.image], states[task.image]) for task in batch]
                for place, logs in self._read(batch, shown, lines):
                    results[place[0]][place[1]] = logs
        return results

    def _batches(self, lines: Sequence[Sequence[AnswerLine]]) -> Iterator[list[DecodeTask]]:
        prompts: dict[str, dict[str, torch.Tensor]] = {}
        alike: dict[tuple[Any, ...], list[DecodeTask]] = {}
        for i, own in enumerate(lines):
            groups: dict[str, list[int]] = {}
            for k, line in enumerate(own):
                if len(line.ids) > line.start:  # an empty answer has no tokens to score
                    groups.setdefault(self.encoded_with(line), []).append(k)
            for prompt, group in groups.items():
                if prompt not in prompts:
                    prompts[prompt] = self.prompt_inputs(prompt)
                task = DecodeTask(i, prompts[prompt], group)
                alike.setdefault(task.shape, []).append(task)
        for tasks in alike.values():
            for at in range(0, len(tasks), TOGETHER):
                yield tasks[at : at + TOGETHER]

    def _read(
        self,
        tasks: Sequence[DecodeTask],
        shown: Sequence[tuple[torch.Tensor, torch.Tensor]],
        lines: Sequence[Sequence[AnswerLine]],
    ) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
        """Encode a batch of images with their prompts. Yield each line's index and log-probabilities."""
        import torch

        prompts = {name: torch.cat([task.prompt[name] for task in tasks]) for name in tasks[0].prompt}
        pixels, states = (torch.cat(parts) for parts in zip(*shown, strict=True))
        with having_seen(self.model, states):
            encoded, mask = self.encode(pixels, prompts)
        places = [(j, task.image, k) for j, task in enumerate(tasks) for k in task.lines]
        rests = [Rest(j, lines[i][k].ids, lines[i][k].start) for j, i, k in places]

        def logits_of(owners: list[int], ids: torch.Tensor, _: bool) -> torch.Tensor:
            owner = torch.tensor(owners, device=encoded.device)
            return self.decode(encoded[owner], mask[owner], ids.to(encoded.device))

        for m, logs in read_rests(rests, self.reader.tokenizer.pad_token_id or 0, logits_of):
            yield places[m][1:], logs

    def _pixels(self, seen: Seen) -> torch.Tensor:
        import torch

        return torch.from_numpy(seen["pixel_values"]).to(self.place.torch_device, self.place.torch_dtype)

    def _tokens(self, tokenizer: Any, text: str, **settings: Any) -> dict[str, torch.Tensor]:
        made = tokenizer([text], return_tensors="pt", **settings)
        return {name: made[name].to(self.place.torch_device) for name in ("input_ids", "attention_mask")}

    def question_inputs(self, seen: Seen, question: str, turns: Turns = ()) -> dict[str, torch.Tensor]:
        """Return the model's inputs for a question without an answer, for generation."""
        return {"pixel_values": self._pixels(seen), **self.prompt_inputs(self.reader.frame(question, turns).tail)}

    # -- defined by subclasses -----------------------------------------------------------------------------------

    def start(self, prompt: str) -> list[int]:
        raise NotImplementedError

    @property
    def end_id(self) -> int:
        return int(self.reader.tokenizer.eos_token_id)

    def encoded_with(self, line: AnswerLine) -> str:
        """Return the prompt that the encoder reads with the image."""
        return line.context

    def prompt_inputs(self, prompt: str) -> dict[str, torch.Tensor]:
        """Return the encoder's inputs for a prompt."""
        return self._tokens(self.reader.tokenizer, prompt, truncation=True)

    def encode(self, pixels: torch.Tensor, prompts: Inputs) -> Encoded:
        """Return the states that the decoder attends to, and their mask. The input is a batch of images with their
        prompts.
        """
        # The vision tower is not run again: the caller provides its cached output (`having_seen`, tower.py).
        raise NotImplementedError

    def decode(self, state: torch.Tensor, mask: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class QueryFormerT5(EncoderDecoderEngine):
    """The engine for BLIP-2 and InstructBLIP with T5."""

    def start(self, prompt: str) -> list[int]:
        return [int(self.model.config.text_config.decoder_start_token_id)]

    def encode(self, pixels: torch.Tensor, prompts: Inputs) -> Encoded:
        """Return the encoder's output and its mask."""
        # The whole model is run with only a start token to decode.
        import torch

        begin = torch.tensor([self.start("")], device=pixels.device).expand(len(pixels), -1)
        output = self.model(pixel_values=pixels, **prompts, decoder_input_ids=begin)
        return output.language_model_outputs.encoder_last_hidden_state, prompts["attention_mask"]

    def prompt_inputs(self, prompt: str) -> dict[str, torch.Tensor]:
        """Return the image tokens followed by the prompt. For InstructBLIP, the input of its query former is
        included.
        """
        import torch

        processor = self.reader.processor
        text = self._tokens(self.reader.tokenizer, prompt)["input_ids"]
        images = torch.full((1, processor.num_query_tokens), self.model.config.image_token_id, device=text.device)
        ids = torch.cat([images, text], dim=1)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if hasattr(processor, "qformer_tokenizer"):
            queries = self._tokens(processor.qformer_tokenizer, prompt)
            inputs |= {f"qformer_{name}": value for name, value in queries.items()}
        return inputs

    def decode(self, state: torch.Tensor, mask: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        from transformers.modeling_outputs import BaseModelOutput

        encoded = BaseModelOutput(last_hidden_state=state)
        output = self.model.language_model(
            encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=ids, use_cache=False
        )
        return output.logits


class Blip(EncoderDecoderEngine):
    """The base class for BLIP's captioner and VQA model. Their decoder is like BERT, with cross-attention."""

    @property
    def begin_id(self) -> int:
        return int(self.model.config.text_config.bos_token_id)

    @property
    def end_id(self) -> int:
        return int(self.model.config.text_config.sep_token_id)

    def decode(self, state: torch.Tensor, mask: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        output = self.model.text_decoder(input_ids=ids, encoder_hidden_states=state, encoder_attention_mask=mask)
        return output.logits

    def _see(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model.vision_model(pixel_values=pixels).last_hidden_state


class BlipCaptioner(Blip):
    """BLIP's captioner: the decoder continues the prompt."""

    def start(self, prompt: str) -> list[int]:
        ids: list[int] = self.reader.tokenizer(prompt, add_special_tokens=False)["input_ids"] if prompt else []
        return [self.begin_id, *ids]

    def encoded_with(self, line: AnswerLine) -> str:
        return ""

    def prompt_inputs(self, prompt: str) -> dict[str, torch.Tensor]:
        return super().prompt_inputs(prompt) if prompt else {}

    def encode(self, pixels: torch.Tensor, prompts: Inputs) -> Encoded:
        states = self._see(pixels)
        return states, all_seen(states)


class BlipAnswerer(Blip):
    """BLIP's VQA model: the encoder reads the question with the image, and the decoder generates the answer."""

    def start(self, prompt: str) -> list[int]:
        return [self.begin_id]

    def encode(self, pixels: torch.Tensor, prompts: Inputs) -> Encoded:
        states = self._see(pixels)
        encoded = self.model.text_encoder(
            **prompts, encoder_hidden_states=states, encoder_attention_mask=all_seen(states)
        ).last_hidden_state
        return encoded, prompts["attention_mask"]
