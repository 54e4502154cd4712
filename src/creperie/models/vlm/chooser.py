"""Choices of a generative model: the likelihoods of the labels, or an answer that it generates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import UsageError
from creperie.models.choice import ChoiceQuestion, Chooser, Chosen, QuestionWording, WordedChooser, read_form
from creperie.models.device import Place
from creperie.models.generated_choice import GeneratedChooser
from creperie.models.protocols import Fingerprint, Prompt
from creperie.models.vlm.causal import CausalEngine
from creperie.models.vlm.encdec import BlipCaptioner
from creperie.models.vlm.prefix import Seen
from creperie.models.vlm.reader import AnswerLine
from creperie.models.vlm.scorer import LikelihoodEngine
from creperie.models.vlm.tower import looking_once


def load_chooser(engine: Any, fingerprint: Fingerprint, options: Mapping[str, Any], place: Place) -> Chooser:
    if isinstance(engine, BlipCaptioner):
        raise UsageError("a captioner answers no questions", where=fingerprint.uri, hint="use score=visualgpt")
    form = read_form(options["prompt"], options["shots"], where=fingerprint.uri)
    if options["by"] == "generate":
        return GeneratedChooser(VlmGenerator(engine, fingerprint, place), form, options["order"])
    if form.shots and isinstance(engine, CausalEngine):
        for asks in form.asks:
            probe = ChoiceQuestion(Image.new("RGB", (8, 8)), ("a", "b"), asks)
            engine.reader.check(form.prompt(probe).offering(probe.options), fingerprint.uri, form.turns(probe))
    return LikelyChooser(engine, form, fingerprint, place, options["order"])


class LikelyChooser(WordedChooser):
    """Reads how likely each label is as the answer. The question is read once, whatever the number of labels."""

    def __init__(
        self, engine: LikelihoodEngine, form: QuestionWording, fingerprint: Fingerprint, place: Place, order: str
    ) -> None:
        self.engine, self.place = engine, place
        self._form, self._order = form, order
        used = {"score": "choice", "by": "likelihood", "order": order}
        if form.shots and engine.reader.chats:
            used["shots"] = "turns"  # before the image, where models that do not chat read them before the question
        self._fingerprint = replace(fingerprint, prompt=form.described(), options=used)

    def asked_with(self, form: QuestionWording) -> LikelyChooser:
        """The same model, asked in other words."""
        return LikelyChooser(self.engine, form, self.fingerprint, self.place, self.order)

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        """All questions about an image are read behind it, so that it is seen once."""
        images = {id(q.image): q.image for q in questions}
        at: dict[int, list[tuple[int, int]]] = {key: [] for key in images}  # the places of each question's lines
        lines: dict[int, list[AnswerLine]] = {key: [] for key in images}
        for q in questions:
            asked = self.form.prompt(q).offering(q.options)
            made = self.engine.lines([(asked, a) for a in self.form.answers(q)], turns=self.form.turns(q))
            own = lines[id(q.image)]
            at[id(q.image)].append((len(own), len(own) + len(made)))
            own += made
        found = self.engine.log_probabilities([self.engine.see(image) for image in images.values()], [*lines.values()])
        logs = dict(zip(images, found, strict=True))
        rest = {key: iter(places) for key, places in at.items()}
        answers = [logs[id(q.image)][slice(*next(rest[id(q.image)]))] for q in questions]
        return [
            Chosen(label_shares([float(own.sum()) for own in answer])[: len(q.options)])
            for q, answer in zip(questions, answers, strict=True)
        ]


def label_shares(logs: Sequence[float]) -> np.ndarray:
    """Log-probabilities as shares among themselves.

    >>> label_shares([np.log(0.1), np.log(0.3)]).tolist()
    [0.25, 0.75]
    """
    values = np.array(logs)
    shares = np.exp(values - values.max())
    scaled: np.ndarray = (shares / shares.sum()).astype(np.float32)
    return scaled


class VlmGenerator:
    """A generative model as a chat partner: one user turn with one image."""

    def __init__(self, engine: Any, fingerprint: Fingerprint, place: Place) -> None:
        self.engine, self.place = engine, place
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        """Answers in the order of the prompts; each image is looked at once, whatever is asked about it."""
        found = [""] * len(prompts)
        by_image: dict[int, list[int]] = {}
        for n, prompt in enumerate(prompts):
            if [role for role, _ in prompt.messages] != ["user"] or len(prompt.images) != 1:
                raise UsageError("takes one user turn with one image", where=self.fingerprint.uri)
            by_image.setdefault(id(prompt.images[0]), []).append(n)
        for group in by_image.values():
            seen = self.engine.see(prompts[group[0]].images[0])
            with looking_once(self.engine.model):
                for n in group:
                    found[n] = self._answer(prompts[n], seen)
        return found

    def _answer(self, prompt: Prompt, seen: Seen) -> str:
        import torch

        ((_, question),) = prompt.messages
        inputs = self.engine.question_inputs(seen, question)
        sampling: dict[str, Any] = {"do_sample": prompt.temperature > 0}
        if prompt.temperature > 0:
            sampling |= {"temperature": prompt.temperature, "top_p": 1.0, "top_k": 0}
        torch.manual_seed(prompt.seed)
        with torch.inference_mode():
            ids = self.engine.model.generate(**inputs, max_new_tokens=prompt.max_tokens, **sampling)[0]
        asked = inputs["input_ids"][0]
        if isinstance(self.engine, CausalEngine) and torch.equal(ids[: len(asked)], asked):
            ids = ids[len(asked) :]  # decoders give the prompt back with the answer
        return str(self.engine.reader.tokenizer.decode(ids, skip_special_tokens=True))
