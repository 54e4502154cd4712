"""Encoders with decoders: image and prompt are encoded once, and every answer is decoded against that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.hf.folder import quiet
from creperie.models.place import Place
from creperie.models.vlm.causal import Seen, chosen_logs, row_chunks
from creperie.models.vlm.reader import Line, Reader

if TYPE_CHECKING:
    import torch


class EncoderDecoderEngine:
    """What T5-based BLIP-2 and InstructBLIP and the two BLIP models share. Subclasses say how image and prompt are
    encoded, what the decoder starts with, and how it reads."""

    def __init__(self, model: Any, reader: Reader, place: Place) -> None:
        self.model, self.reader, self.place = model, reader, place

    def see(self, image: Any) -> Seen:
        with quiet():
            made = self.reader.processor.image_processor([image.convert("RGB")], return_tensors="np")
        return {"pixel_values": np.asarray(made["pixel_values"], dtype=np.float32)}

    def lines(self, pairs: Sequence[tuple[str, str]], *, end: bool = True) -> list[Line]:
        """Lines hold what the decoder reads: its start, then the answer and, with `end`, the end token."""
        made = []
        for question, answer in pairs:
            prompt = self.reader.frame(question).tail
            ids: list[int] = self.reader.tokenizer(answer, add_special_tokens=False, verbose=False)["input_ids"]
            made.append(self.reader.cut(self.start(prompt), ids + ([self.end_id] if end else []), prompt))
        return made

    def log_probabilities(self, seen: Sequence[Seen], lines: Sequence[Sequence[Line]]) -> list[list[np.ndarray]]:
        """For each image, for each of its lines, the log-probability of each token of the answer."""
        import torch

        found: list[list[np.ndarray]] = [[np.zeros(0, np.float32)] * len(own) for own in lines]
        with torch.inference_mode():
            for i, own in enumerate(lines):
                pixels = self._pixels(seen[i])
                groups: dict[str, list[int]] = {}
                for k, line in enumerate(own):
                    groups.setdefault(self.encoded_with(line), []).append(k)
                for prompt, group in groups.items():
                    state, mask = self.encode(pixels, prompt)
                    for chunk in row_chunks([len(own[k].ids) for k in group]):
                        picked = [group[c] for c in chunk]
                        for k, logs in zip(picked, self._decoded(state, mask, [own[k] for k in picked]), strict=True):
                            found[i][k] = logs
        return found

    def _decoded(self, state: torch.Tensor, mask: torch.Tensor, lines: Sequence[Line]) -> list[np.ndarray]:
        import torch

        width = max(len(line.ids) for line in lines)
        ids = torch.full((len(lines), width), self.reader.tokenizer.pad_token_id or 0)
        for row, line in enumerate(lines):
            ids[row, : len(line.ids)] = torch.from_numpy(line.ids)
        ids = ids.to(self.place.torch_device)
        logits = self.decode(state.expand(len(lines), -1, -1), mask.expand(len(lines), -1), ids[:, :-1])
        logs = chosen_logs(logits, ids[:, 1:]).cpu().numpy()
        return [logs[row, line.start - 1 : len(line.ids) - 1] for row, line in enumerate(lines)]

    def _pixels(self, seen: Seen) -> torch.Tensor:
        import torch

        return torch.from_numpy(seen["pixel_values"]).to(self.place.torch_device).to(self.place.torch_dtype)

    def _tokens(self, tokenizer: Any, text: str, **settings: Any) -> dict[str, torch.Tensor]:
        made = tokenizer([text], return_tensors="pt", **settings)
        return {name: made[name].to(self.place.torch_device) for name in ("input_ids", "attention_mask")}

    def question_inputs(self, seen: Seen, question: str) -> dict[str, torch.Tensor]:
        """The model's inputs for a question without an answer, for generation."""
        return {"pixel_values": self._pixels(seen), **self.prompt_inputs(self.reader.frame(question).tail)}

    # -- what differs --------------------------------------------------------------------------------------------

    def start(self, prompt: str) -> list[int]:
        raise NotImplementedError

    @property
    def end_id(self) -> int:
        return int(self.reader.tokenizer.eos_token_id)

    def encoded_with(self, line: Line) -> str:
        """The prompt that the encoder sees with the image."""
        return line.context

    def prompt_inputs(self, prompt: str) -> dict[str, torch.Tensor]:
        """The prompt as the encoder reads it."""
        return self._tokens(self.reader.tokenizer, prompt, truncation=True)

    def encode(self, pixels: torch.Tensor, prompt: str) -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError

    def decode(self, state: torch.Tensor, mask: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class QueryFormerT5(EncoderDecoderEngine):
    """BLIP-2 and InstructBLIP with T5."""

    def start(self, prompt: str) -> list[int]:
        return [int(self.model.config.text_config.decoder_start_token_id)]

    def encode(self, pixels: torch.Tensor, prompt: str) -> tuple[torch.Tensor, torch.Tensor]:
        """One pass of the whole model with the decoder's start alone: its encoder's output is what is wanted."""
        import torch

        inputs = self.prompt_inputs(prompt)
        begin = torch.tensor([self.start(prompt)], device=pixels.device)
        output = self.model(pixel_values=pixels, **inputs, decoder_input_ids=begin)
        return output.language_model_outputs.encoder_last_hidden_state, inputs["attention_mask"]

    def prompt_inputs(self, prompt: str) -> dict[str, torch.Tensor]:
        """Image tokens, then the prompt; InstructBLIP also shows the prompt to its query former."""
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
        output = self.model.language_model(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=ids)
        logits: torch.Tensor = output.logits
        return logits


class Blip(EncoderDecoderEngine):
    """What BLIP's captioner and its VQA model share: a BERT-like decoder that looks at states of an encoder."""

    @property
    def begin_id(self) -> int:
        return int(self.model.config.text_config.bos_token_id)

    @property
    def end_id(self) -> int:
        return int(self.model.config.text_config.sep_token_id)

    def decode(self, state: torch.Tensor, mask: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        output = self.model.text_decoder(input_ids=ids, encoder_hidden_states=state, encoder_attention_mask=mask)
        logits: torch.Tensor = output.logits
        return logits

    def _see(self, pixels: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.model.vision_model(pixel_values=pixels).last_hidden_state
        return states

    def _ones(self, states: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.ones(states.shape[:-1], dtype=torch.long, device=states.device)


class BlipCaptioner(Blip):
    """The decoder goes on from the prompt."""

    def start(self, prompt: str) -> list[int]:
        ids: list[int] = self.reader.tokenizer(prompt, add_special_tokens=False)["input_ids"] if prompt else []
        return [self.begin_id, *ids]

    def encoded_with(self, line: Line) -> str:
        return ""

    def encode(self, pixels: torch.Tensor, prompt: str) -> tuple[torch.Tensor, torch.Tensor]:
        states = self._see(pixels)
        return states, self._ones(states)


class BlipAnswerer(Blip):
    """An encoder reads the question with the image, the decoder the answer."""

    def start(self, prompt: str) -> list[int]:
        return [self.begin_id]

    def encode(self, pixels: torch.Tensor, prompt: str) -> tuple[torch.Tensor, torch.Tensor]:
        states = self._see(pixels)
        question = self.prompt_inputs(prompt)
        encoded = self.model.text_encoder(
            **question, encoder_hidden_states=states, encoder_attention_mask=self._ones(states)
        ).last_hidden_state
        return encoded, question["attention_mask"]
