"""Multiple choice with a generative model, by the likelihoods of the options' labels or by a generated answer."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from creperie.core import UsageError
from creperie.models.answering import AnswerSettings
from creperie.models.choice import ChoiceQuestion, Chooser, Chosen, QuestionWording, Turn, WordedChooser, read_form
from creperie.models.device import Place
from creperie.models.generated_choice import GeneratedChooser
from creperie.models.prompts import find_prompt
from creperie.models.protocols import Fingerprint, Generator, Prompt
from creperie.models.thoughts import decoded_reply
from creperie.models.uri import refuse_unused
from creperie.models.vlm.causal import CausalEngine
from creperie.models.vlm.encdec import Blip, BlipCaptioner, EncoderDecoderEngine
from creperie.models.vlm.prefix import Seen
from creperie.models.vlm.reader import SEQUENCES
from creperie.models.vlm.scorer import LikelihoodEngine
from creperie.models.vlm.tower import looking_once
from creperie.models.writing import batches_by_size, can_pad, end_tokens, stopping, write

if TYPE_CHECKING:
    import torch


def load_chooser(engine: Any, fingerprint: Fingerprint, options: Mapping[str, Any], place: Place) -> Chooser:
    if isinstance(engine, BlipCaptioner):
        raise UsageError(
            "a captioning model cannot answer questions", where=fingerprint.uri, hint="use score=visualgpt"
        )
    form = read_form(options["prompt"], options["shots"], where=fingerprint.uri)
    if any(shot.picture for shot in form.shots) and not engine.reader.family.interleaves:
        raise UsageError(
            "the model reads one image at a time, but the demonstrations have images",
            where=fingerprint.uri,
            hint="leave out ?shots=, or describe each image in words in the key `scene` of its demonstration",
        )
    settings = AnswerSettings.of(options, where=fingerprint.uri)
    if options["by"] == "generate":
        return GeneratedChooser(VlmGenerator(engine, fingerprint, place, settings), form, options["order"])
    refuse_unused(settings.marks, (), where=fingerprint.uri, what="by=likelihood")
    if form.shots and isinstance(engine, CausalEngine):
        for asks, subset in itertools.product(form.asks, dict.fromkeys(shot.subset for shot in form.shots)):
            probe = ChoiceQuestion(Image.new("RGB", (8, 8)), ("a", "b"), asks, subset)
            if turns := form.turns(probe):
                engine.reader.check(form.prompt(probe).offering(probe.options), fingerprint.uri, turns)
    return LikelyChooser(engine, form, fingerprint, place, options["order"])


class LikelyChooser(WordedChooser):
    """A chooser that computes how likely each label is as the answer. It needs one pass per question."""

    def __init__(
        self, engine: LikelihoodEngine, form: QuestionWording, fingerprint: Fingerprint, place: Place, order: str
    ) -> None:
        self.engine, self.place = engine, place
        self.form, self.order = form, order
        used = {"score": "choice", "by": "likelihood", "order": order, **form.marks}
        if form.shots and engine.reader.chats:
            used["shots"] = "turns"  # before the image; models without chat template read them before the question
        self.fingerprint = replace(fingerprint, prompt=form.described(), options=used)

    def asked_with(self, form: QuestionWording) -> LikelyChooser:
        """Return the same model with another wording of the questions."""
        return LikelyChooser(self.engine, form, self.fingerprint, self.place, self.order)

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        """Return one answer per question."""
        # An image is processed once for all questions about it that have the same demonstration images.
        groups: dict[tuple[int, ...], list[int]] = {}
        lines = []
        for n, q in enumerate(questions):
            turns, asked = self.form.turns(q), self.form.prompt(q).offering(q.options)
            groups.setdefault((id(q.image), *(id(t.image) for t in turns if t.image)), []).append(n)
            lines.append(self.engine.lines([(asked, a) for a in self.form.answers(q)], turns=turns))
        firsts = [questions[group[0]] for group in groups.values()]
        seen = [self.engine.see(q.image, self.form.turns(q)) for q in firsts]
        of_groups = [[line for n in group for line in lines[n]] for group in groups.values()]
        chosen: dict[int, Chosen] = {}
        for group, logs in zip(groups.values(), self.engine.log_probabilities(seen, of_groups), strict=True):
            rest = iter(logs)
            for n in group:
                shares = label_shares([float(next(rest).sum()) for _ in lines[n]])
                chosen[n] = Chosen(shares[: len(questions[n].options)])
        return [chosen[n] for n in range(len(questions))]


def label_shares(logs: Sequence[float]) -> np.ndarray:
    """Return the probabilities of the labels, given their log-probabilities. They are scaled to sum to one.

    >>> label_shares([np.log(0.1), np.log(0.3)]).tolist()
    [0.25, 0.75]
    """
    values = np.array(logs)
    shares = np.exp(values - values.max())
    return (shares / shares.sum()).astype(np.float32)


@dataclass(eq=False)
class VlmGenerator:
    """A generator that answers questions about one image, with demonstrations before them."""

    engine: Any
    fingerprint: Fingerprint
    place: Place
    settings: AnswerSettings = field(default_factory=AnswerSettings)

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        """Return one answer per prompt, in order. Prompts of similar length are answered in one batch."""
        prompts = [self.settings.applied(prompt) for prompt in prompts]
        inputs = self._inputs(prompts)
        shown = [tuple(map(id, prompt.images)) for prompt in prompts]
        longest: dict[tuple[int, ...], int] = {}  # per image, so that prompts about the same image stay together
        for images, prompt, own in zip(shown, prompts, inputs, strict=True):
            size = own["input_ids"].shape[1] + prompt.max_tokens if "input_ids" in own else prompt.max_tokens
            longest[images] = max(size, longest.get(images, 0))
        alike: dict[tuple[Any, ...], dict[int, int]] = {}
        for n in sorted(range(len(prompts)), key=lambda n: shown.index(shown[n])):
            own = inputs[n]
            fixed = own.keys() - SEQUENCES if self._pads else own.keys()
            shape = tuple((name, own[name].shape) for name in sorted(fixed))  # tiles and patches are counted first
            alike.setdefault(shape, {})[n] = longest[shown[n]]
        answers = [""] * len(prompts)
        for group in alike.values():
            for batch in batches_by_size(group, self.place.device):
                written = self._write([prompts[n] for n in batch], [inputs[n] for n in batch])
                for n, (ids, ended) in zip(batch, written, strict=True):
                    asked = inputs[n]["input_ids"][0] if "input_ids" in inputs[n] else ()
                    answers[n] = decoded_reply(self.engine.reader.tokenizer, ids, ended=ended, asked=asked)
        return answers

    @property
    def _pads(self) -> bool:
        """True if shorter prompts in a batch can be padded. Otherwise, all prompts of a batch must have the same
        length.
        """
        return self.engine.reader.family.interleaves and can_pad(self.engine.model)

    def _inputs(self, prompts: Sequence[Prompt]) -> list[dict[str, torch.Tensor]]:
        """Return the model's inputs for each prompt. Images are processed once for all prompts that share them."""
        seen: dict[tuple[int, ...], Seen] = {}
        inputs = []
        for prompt in prompts:
            turns, key = self._turns(prompt), tuple(map(id, prompt.images))
            if key not in seen:
                seen[key] = self.engine.see(prompt.images[-1], turns)
            inputs.append(self.engine.question_inputs(seen[key], prompt.messages[-1][1], turns))
        return inputs

    def _write(
        self, prompts: Sequence[Prompt], inputs: Sequence[Mapping[str, torch.Tensor]]
    ) -> list[tuple[list[int], bool]]:
        import torch

        model, rows = self.engine.model, [left_padded(own, inputs) for own in inputs]
        merged = {name: torch.cat([own[name] for own in rows]) for name in rows[0]}
        shown = [tuple(map(id, prompt.images)) for prompt in prompts]
        eagerly = self.engine.eagerly() if isinstance(self.engine, CausalEngine) else nullcontext()
        with eagerly, looking_once(model, [shown.index(images) for images in shown]):
            if isinstance(self.engine, Blip):  # its `generate` sets the end token itself
                return write(model, merged, prompts, [self.engine.end_id], start=1)
            ends = end_tokens(model, self.engine.reader.tokenizer)
            if isinstance(self.engine, EncoderDecoderEngine):
                return write(model, merged, prompts, ends, start=1, **stopping(ends))
            count = len(prompts) if self._pads else 1
            return write(model, merged, prompts, ends, **stopping(ends, count, self.place.device))

    def _turns(self, prompt: Prompt) -> list[Turn]:
        """Return the demonstrations before the question. Raise a UsageError unless the question has exactly one
        image.
        """
        roles, texts = zip(*prompt.messages, strict=True)
        shows = prompt.shows or (len(prompt.images),)
        if roles != ("user", *("assistant", "user") * (len(roles) // 2)) or max(shows) > 1 or shows[-1:] != (1,):
            raise UsageError(
                "the messages of a prompt do not alternate between user and assistant, or the last one lacks its image",
                where=self.fingerprint.uri,
                hint="begin and end with a user message, and give the last one exactly one image",
            )
        images = iter(prompt.images)
        return [
            Turn(asked, answered, next(images) if shown else None)
            for asked, answered, shown in zip(texts[:-1:2], texts[1::2], shows[:-1], strict=True)
        ]


def left_padded(
    inputs: Mapping[str, torch.Tensor], batch: Sequence[Mapping[str, torch.Tensor]]
) -> dict[str, torch.Tensor]:
    """Return the `inputs` of a prompt, padded on the left to the length of the longest prompt in `batch`. The padding
    is masked.
    """
    # The padding repeats the first token of the prompt, because a repetition penalty applies to every token of the
    # input, including padding: any other token would be penalised without occurring in the prompt.
    import torch

    padded = dict(inputs)
    for name in SEQUENCES & inputs.keys():
        width = max(other[name].shape[1] for other in batch) - inputs[name].shape[1]
        first = inputs[name][:, :1] if name == "input_ids" else torch.zeros_like(inputs[name][:, :1])
        padded[name] = torch.cat([first.expand(-1, width), inputs[name]], dim=1)
    return padded


CAPTION_TOKENS = 48


def caption_images(model: Any, images: Sequence[Image.Image]) -> list[str]:
    """Return a one-sentence description of each image, generated without sampling by a `vlm:` or `api:` model."""
    describes = "one-sentence"
    if not isinstance(model, Generator):
        engine = getattr(model, "engine", None)
        if engine is None:
            raise UsageError(
                "the model cannot describe images", where=model.fingerprint.uri, hint="name a vlm: or api: model"
            )
        describes = engine.reader.family.describes
        model = VlmGenerator(engine, model.fingerprint, model.place)
    asked = find_prompt(describes, "caption").text
    prompts = [Prompt((("user", asked),), images=(image,), max_tokens=CAPTION_TOKENS) for image in images]
    return [" ".join(answer.split()) for answer in model.generate(prompts)]
