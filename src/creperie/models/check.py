"""Is this model fit to be scored? Load it, show it a few drawings and captions, and try what a score relies on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from creperie.models.protocols import (
    Fingerprint,
    Generator,
    ImageEncoder,
    Model,
    PairEncoder,
    PairScorer,
    Prompt,
    StagedImages,
    StagedTexts,
    TextEncoder,
    TextScorer,
)
from creperie.models.registry import load_model

CAPTIONS = (
    "a red square left of a blue circle",
    "A blue circle to the left of a red square.",
    "two green triangles",
    "The small yellow square is above the large purple circle, and nothing else can be seen in the picture. ",
)
#: how far a number may move with the batch it was computed in
TOLERANCE = {"float32": 1e-6, "bfloat16": 3e-2, "float16": 1e-2}
ROLES: dict[str, type] = {
    "image encoder": ImageEncoder,
    "text encoder": TextEncoder,
    "pair scorer": PairScorer,
    "pair encoder": PairEncoder,
    "text scorer": TextScorer,
    "generator": Generator,
}


@dataclass(frozen=True)
class Check:
    """One thing that was tried. `ok` is None where it does not apply."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True)
class ModelReport:
    """What a model is, what was tried on it, and how fast it was."""

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
    """Load a model and try everything that it says it can do."""
    start = time.perf_counter()
    model = load_model(uri, device=device, dtype=dtype)
    rates = {"seconds to load": time.perf_counter() - start}
    checks: list[Check] = []
    tolerance = TOLERANCE.get(model.fingerprint.dtype, 1e-6)
    for role in (_check_texts, _check_images, _check_pairs, _check_text_scores, _check_generation):
        checks += role(model, tolerance, rates)
    roles = [name for name, protocol in ROLES.items() if isinstance(model, protocol)]
    return ModelReport(model.fingerprint, roles, checks, rates)


def drawings() -> list[Image.Image]:
    """Four pictures of plain shapes, of different sizes."""
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


# -- by role ---------------------------------------------------------------------------------------------------------


def _check_texts(model: Model, tolerance: float, rates: dict[str, float]) -> list[Check]:
    if not isinstance(model, TextEncoder):
        return []
    together = model.encode_texts(CAPTIONS)
    checks = _vectors("captions", together, len(CAPTIONS))
    checks.append(
        _same("captions: batch of 1 = batch of 4", together, _singly(model.encode_texts, CAPTIONS), tolerance)
    )
    rates["captions/s"] = _rate(lambda: model.encode_texts(CAPTIONS * 8), len(CAPTIONS) * 8)
    if not isinstance(model, StagedTexts):
        return [*checks, Check("captions: trimmed = padded", None, "the model has no staged form")]
    prepared = model.prepare_texts(CAPTIONS)
    checks.append(_same("captions: prepared = encoded", together, model.forward_texts(prepared), tolerance))
    cut = sum(tokens.cut > 0 for tokens in prepared)
    checks.append(Check("captions: fit the context", None if cut else True, f"{cut} of {len(CAPTIONS)} are cut"))
    return [*checks, _trimming(model, prepared, tolerance)]


def _trimming(model: Any, prepared: Sequence[Any], tolerance: float) -> Check:
    name = "captions: trimmed = padded"
    context = model.fingerprint.context
    if not model.trims:
        return Check(name, None, "the model is not trimmed: every caption is padded to the full width")
    if not hasattr(model, "forward_padded") or not context:
        return Check(name, None, "the model cannot be asked for padded captions")
    width = min(context, 4 * max(len(tokens.ids) for tokens in prepared))
    return _same(name, model.forward_texts(prepared), model.forward_padded(prepared, width), tolerance)


def _check_images(model: Model, tolerance: float, rates: dict[str, float]) -> list[Check]:
    if not isinstance(model, ImageEncoder):
        return []
    pictures = drawings()
    together = model.encode_images(pictures)
    checks = _vectors("images", together, len(pictures))
    checks.append(_same("images: batch of 1 = batch of 4", together, _singly(model.encode_images, pictures), tolerance))
    if isinstance(model, StagedImages):
        staged = model.forward_images([model.prepare_image(p) for p in pictures])
        checks.append(_same("images: prepared = encoded", together, staged, tolerance))
    if isinstance(model, TextEncoder):
        width = model.encode_texts(CAPTIONS[:1]).shape[-1]
        same = width == together.shape[-1]
        checks.append(Check("one space", same, f"images {together.shape[-1]}, captions {width} dimensions"))
    rates["images/s"] = _rate(lambda: model.encode_images(pictures * 2), len(pictures) * 2)
    return checks


def _check_pairs(model: Model, tolerance: float, rates: dict[str, float]) -> list[Check]:
    picture = drawings()[0]
    if isinstance(model, PairEncoder):
        fused = model.encode_pairs(picture, CAPTIONS)
        return _vectors("pairs", fused, len(CAPTIONS))
    if not isinstance(model, PairScorer):
        return []
    together = model.score_pairs(picture, CAPTIONS)
    rates["pairs/s"] = _rate(lambda: model.score_pairs(picture, CAPTIONS), len(CAPTIONS))
    alone = _singly(lambda texts: model.score_pairs(picture, texts), CAPTIONS)
    scale = max(1.0, float(np.abs(together).max(initial=0)))
    return [
        *_numbers("pairs", together, len(CAPTIONS)),
        _same("pairs: batch of 1 = batch of 4", together, alone, 4 * tolerance * scale),
    ]


def _check_text_scores(model: Model, tolerance: float, rates: dict[str, float]) -> list[Check]:
    if not isinstance(model, TextScorer):
        return []
    together = model.score_texts(CAPTIONS)
    rates["scored captions/s"] = _rate(lambda: model.score_texts(CAPTIONS), len(CAPTIONS))
    scale = max(1.0, float(np.abs(together).max(initial=0)))
    alone = _singly(model.score_texts, CAPTIONS)
    return [
        *_numbers("scores", together, len(CAPTIONS)),
        _same("scores: batch of 1 = batch of 4", together, alone, 4 * tolerance * scale),
    ]


def _check_generation(model: Model, tolerance: float, rates: dict[str, float]) -> list[Check]:
    if not isinstance(model, Generator):
        return []
    start = time.perf_counter()
    answers = model.generate([Prompt((("user", "Say yes."),), max_tokens=8)])
    rates["seconds to answer"] = time.perf_counter() - start
    fine = len(answers) == 1 and isinstance(answers[0], str)
    return [Check("generates text", fine, repr(answers[0])[:60] if fine else f"{len(answers)} answers for 1 prompt")]


# -- what is tried ---------------------------------------------------------------------------------------------------


def _vectors(what: str, vectors: np.ndarray, count: int) -> list[Check]:
    """Shape, type, finite numbers, length one, and that different inputs are told apart."""
    finite = bool(np.isfinite(vectors).all())
    lengths = np.linalg.norm(vectors, axis=-1)
    off = float(np.abs(lengths - 1).max()) if finite else float("nan")
    apart = float(np.abs(vectors[0] - vectors[1:]).max()) if finite and count > 1 else 0.0
    shaped = vectors.dtype == np.float32 and vectors.shape[0] == count and vectors.ndim in (2, 3)
    return [
        Check(f"{what}: float32 vectors", shaped, f"{vectors.dtype} {vectors.shape}"),
        Check(f"{what}: finite", finite, f"{int((~np.isfinite(vectors)).sum())} are not"),
        Check(f"{what}: length one", finite and off <= 1e-5, f"off by at most {off:.1e}"),
        Check(f"{what}: told apart", apart > 1e-6, f"largest difference {apart:.1e}"),
    ]


def _numbers(what: str, scores: np.ndarray, count: int) -> list[Check]:
    finite = bool(np.isfinite(scores).all())
    shaped = scores.dtype == np.float32 and scores.shape == (count,)
    return [
        Check(f"{what}: float32 numbers", shaped, f"{scores.dtype} {scores.shape}"),
        Check(f"{what}: finite", finite, f"{int((~np.isfinite(scores)).sum())} are not"),
    ]


def _singly(function: Callable[[Any], np.ndarray], inputs: Sequence[Any]) -> np.ndarray:
    return np.concatenate([function([one]) for one in inputs])


def _same(name: str, one: np.ndarray, other: np.ndarray, tolerance: float) -> Check:
    if one.shape != other.shape:
        return Check(name, False, f"shapes {one.shape} and {other.shape}")
    difference = float(np.abs(one - other).max())
    return Check(name, difference <= tolerance, f"differ by at most {difference:.1e} (allowed {tolerance:.0e})")


def _rate(work: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    work()
    return count / max(time.perf_counter() - start, 1e-9)
