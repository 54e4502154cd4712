"""Check whether a model can be scored: load it, and test its methods on a few drawings and captions."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from creperie.models.abilities import ABILITIES, Ability, abilities_of
from creperie.models.choice import ChoiceQuestion, Chosen
from creperie.models.protocols import Fingerprint, Model, Prompt, StagedImages, StagedTexts, TextEncoder
from creperie.models.registry import load_model

CAPTIONS = (
    "a red square left of a blue circle",
    "A blue circle to the left of a red square.",
    "two green triangles",
    "The small yellow square is above the large purple circle, and nothing else can be seen in the picture. ",
)
#: dtype → how much a number may change with its batch
TOLERANCE = {"float32": 1e-6, "bfloat16": 3e-2, "float16": 1e-2}


@dataclass(frozen=True)
class Check:
    """The result of one test. `ok` is None if the test does not apply."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True)
class ModelReport:
    """The result of `check_model`: the model's fingerprint and abilities, the tests, and its speed."""

    fingerprint: Fingerprint
    roles: list[str]
    checks: list[Check]
    rates: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return all(check.ok is not False for check in self.checks)

    @property
    def document(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "key": self.fingerprint.key,
            "fingerprint": asdict(self.fingerprint),
            "roles": self.roles,
            "checks": [asdict(check) for check in self.checks],
            "rates": self.rates,
        }


def check_model(uri: str, *, device: str = "auto", dtype: str = "float32") -> ModelReport:
    """Load a model, test each of its abilities, and return the report."""
    start = time.perf_counter()
    model = load_model(uri, device=device, dtype=dtype)
    rates = {"seconds to load": time.perf_counter() - start}
    able = [ability for name, ability in ABILITIES.items() if name in abilities_of(model)]
    checks = [check for ability in able for check in _ability_checks(model, ability, rates)]
    return ModelReport(model.fingerprint, [ability.label for ability in able], checks, rates)


def drawings() -> list[Image.Image]:
    """Return four pictures of plain shapes, of different sizes."""
    shapes = [((320, 240), "red", "blue"), ((240, 320), "green", "green"), ((200, 200), "yellow", "purple")]
    pictures = []
    for size, left, right in [*shapes, ((401, 299), "blue", "red")]:
        picture = Image.new("RGB", size, "white")
        pen = ImageDraw.Draw(picture)
        width, height = size
        pen.rectangle((width // 10, height // 4, width * 4 // 10, height * 3 // 4), fill=left)
        pen.ellipse((width * 6 // 10, height // 4, width * 9 // 10, height * 3 // 4), fill=right)
        pictures.append(picture)
    return pictures


# -- by ability ------------------------------------------------------------------------------------------------------


def _ability_checks(model: Any, ability: Ability, rates: dict[str, float]) -> list[Check]:
    """Test one ability and return the results. The measured speed is added to `rates`."""
    work = functools.partial(_results, getattr(model, ability.method), ability.takes, getattr(model, "asks", ()))
    every = range(len(CAPTIONS))
    measured = ability.gives in ("vectors", "numbers")
    for _ in range(2 if measured else 1):  # the first call is the warm-up
        start = time.perf_counter()
        together = work(every)
        rates[f"{ability.words}, per second"] = len(CAPTIONS) / max(time.perf_counter() - start, 1e-9)
    if not measured:
        return [_check_generation(together)] if ability.gives == "text" else _choices(together)
    tolerance = TOLERANCE.get(model.fingerprint.dtype, 1e-6)
    if ability.gives == "numbers":
        tolerance *= 4 * max(1.0, float(np.abs(together).max(initial=0)))
    alone = np.concatenate([work([k]) for k in every])
    checks = _outputs(ability, together)
    checks.append(_same(f"{ability.takes}: batch of 1 = batch of 4", together, alone, tolerance))
    if ability.takes == "images":
        checks += _image_checks(model, together, tolerance)
    elif ability.method == "encode_texts":
        checks += _caption_checks(model, together, tolerance)
    elif ability.takes == "caption pairs":
        back = model.score_text_pairs([CAPTIONS[k - 1] for k in every], CAPTIONS)
        checks.append(_same("caption pairs: the same in both directions", together, back, tolerance))
    return checks


def _results(method: Callable[..., Any], takes: str, asks: Sequence[str], places: Sequence[int]) -> Any:
    """Call a method once with some of the test inputs, and return its result. `places` are the indices of these inputs.

    `takes` is the kind of input that the method needs, and `asks` are the questions that the model can answer.
    """
    pictures = drawings()
    texts, shown = [CAPTIONS[k] for k in places], [pictures[k] for k in places]
    inputs: dict[str, tuple[Any, ...]] = {
        "captions": (texts,),
        "images": (shown,),
        "pairs": (pictures[0], texts),
        "caption pairs": (texts, [CAPTIONS[k - 1] for k in places]),
        "questions": ([ChoiceQuestion(picture, CAPTIONS[:3], "".join(asks[:1])) for picture in shown],),
        "prompts": ([Prompt((("user", "Say yes."),), max_tokens=8) for _ in places],),
    }
    return method(*inputs[takes])


def _caption_checks(model: Any, together: np.ndarray, tolerance: float) -> list[Check]:
    if not isinstance(model, StagedTexts):
        return [Check("captions: trimmed = padded", None, "the model has no prepare_texts and forward_texts")]
    prepared = model.prepare_texts(CAPTIONS)
    cut = sum(tokens.cut > 0 for tokens in prepared)
    return [
        _same("captions: prepared = encoded", together, model.forward_texts(prepared), tolerance),
        Check("captions: fit the context", None if cut else True, f"{cut} of {len(CAPTIONS)} are cut"),
        _trimming(model, prepared, tolerance),
    ]


def _trimming(model: Any, prepared: Sequence[Any], tolerance: float) -> Check:
    name = "captions: trimmed = padded"
    context = model.fingerprint.context
    if not model.trims:
        return Check(name, None, "not trimmed: every caption is padded to the full width")
    if not hasattr(model, "forward_padded") or not context:
        return Check(name, None, "the model has no forward_padded, or no limit on its context")
    width = min(context, 4 * max(len(tokens.ids) for tokens in prepared))
    return _same(name, model.forward_texts(prepared), model.forward_padded(prepared, width), tolerance)


def _image_checks(model: Model, together: np.ndarray, tolerance: float) -> list[Check]:
    checks = []
    if isinstance(model, StagedImages):
        staged = model.forward_images([model.prepare_image(p) for p in drawings()])
        checks.append(_same("images: prepared = encoded", together, staged, tolerance))
    if isinstance(model, TextEncoder):
        width = model.encode_texts(CAPTIONS[:1]).shape[-1]
        same = width == together.shape[-1]
        checks.append(
            Check("images and captions: one space", same, f"images {together.shape[-1]}, captions {width} dimensions")
        )
    return checks


def _choices(chosen: Sequence[Chosen]) -> list[Check]:
    """Check that every question has an answer with one probability per option."""
    shaped = len(chosen) == len(CAPTIONS) and all(np.shape(c.shares) == (3,) for c in chosen)
    shares = np.array([c.shares for c in chosen], float) if shaped else np.full((1, 3), np.nan)
    read = np.isfinite(shares).all(axis=1)
    fine = bool((shares[read] >= -1e-6).all() and (shares[read].sum(axis=1) <= 1 + 1e-4).all())
    return [
        Check("questions: one share per option", shaped, f"{len(chosen)} answers for {len(CAPTIONS)} questions"),
        Check("questions: shares are probabilities", fine and shaped, f"{shares.min():.3g} to {shares.max():.3g}"),
        Check("questions: answers can be read", bool(read.all()) or None, f"{int(read.sum())} of {len(read)} read"),
    ]


def _check_generation(answers: Sequence[str]) -> Check:
    fine = len(answers) == len(CAPTIONS) and all(isinstance(answer, str) for answer in answers)
    detail = repr(answers[0])[:60] if fine else f"{len(answers)} answers for {len(CAPTIONS)} prompts"
    return Check("generates text", fine, detail)


# -- single checks ---------------------------------------------------------------------------------------------------


def _outputs(ability: Ability, outputs: np.ndarray) -> list[Check]:
    """Test the vectors or numbers for all test inputs. They must be float32 and finite. Vectors must also have the
    length one, and different inputs must have different vectors.
    """
    what, vectors = ability.takes, ability.gives == "vectors"
    finite = bool(np.isfinite(outputs).all())
    shaped = outputs.shape[:1] == (len(CAPTIONS),) and outputs.ndim in ((2, 3) if vectors else (1,))
    described = f"{outputs.dtype} {outputs.shape}"
    checks = [
        Check(f"{what}: float32 {ability.gives}", shaped and outputs.dtype == np.float32, described),
        Check(f"{what}: finite", finite, f"{int((~np.isfinite(outputs)).sum())} are not"),
    ]
    if vectors:
        off = float(np.abs(np.linalg.norm(outputs, axis=-1) - 1).max()) if finite else float("nan")
        apart = float(np.abs(outputs[0] - outputs[1:]).max(initial=0)) if finite else 0.0
        checks.append(Check(f"{what}: length one", finite and off <= 1e-5, f"off by at most {off:.1e}"))
        checks.append(Check(f"{what}: different inputs differ", apart > 1e-6, f"largest difference {apart:.1e}"))
    return checks


def _same(name: str, one: np.ndarray, other: np.ndarray, tolerance: float) -> Check:
    if one.shape != other.shape:
        return Check(name, False, f"shapes {one.shape} and {other.shape}")
    difference = float(np.abs(one - other).max())
    return Check(name, difference <= tolerance, f"differ by at most {difference:.1e} (allowed {tolerance:.0e})")
