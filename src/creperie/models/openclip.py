"""Models of the open_clip library."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from creperie.core import CreperieError, ModelError, UsageError, one_line, unknown
from creperie.models.captions import CaptionRule, caption_rule
from creperie.models.device import Place
from creperie.models.hf.dual import DualEncoder, Towers
from creperie.models.pixels import DirectPixels, Pixels, Preprocessing, ProcessorPixels, agreeing
from creperie.models.protocols import Fingerprint, Model, Tokens
from creperie.models.tokens import CaptionTokenizer, pad_tokens
from creperie.models.uri import ModelURI
from creperie.models.weights import hash_state

if TYPE_CHECKING:
    import torch

#: prefixes of names that say where a model is, instead of naming an architecture of the library
OPENCLIP_PLACES = ("hf-hub:", "local-dir:")
#: in place of a tag: random weights, to train an architecture from scratch
OPENCLIP_RANDOM = "random"
PROBES = ("a dog", "A man in a red shirt gives the ball to the girl. ")


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    try:
        import open_clip as library
    except RuntimeError as e:  # a torchvision that does not fit torch
        hint = "install a torchvision that fits the installed torch"
        raise ModelError(f"open_clip cannot be imported: {one_line(e)}", hint=hint) from e
    architecture, source = _architecture_and_weights(library, uri)
    with _loading(f"{architecture} with {source or 'its own weights'}", str(uri)):
        quick = _quick_gelu(library, architecture, source, options["activation"], str(uri))
        model, transform, own_tokenizer = _create(library, architecture, source, options["seed"])
    model = model.to(place.torch_device, place.torch_dtype).eval()
    named = f"open_clip {architecture} ({'quick_gelu' if quick else 'gelu'})"
    weights = hash_state(model.state_dict())
    return encoder_of(model, transform, own_tokenizer, str(uri), named, weights, options, place)


def encoder_of(
    model: Any,
    transform: Any,
    own_tokenizer: Any,
    uri: str,
    architecture: str,
    weights: str,
    options: Mapping[str, Any],
    place: Place,
) -> Model:
    """Return the adapter to an open_clip model. `transform` and `own_tokenizer` are the library's image transform and
    tokenizer for this model. `architecture` and `weights` (a digest) are recorded in the fingerprint.
    """
    context = int(getattr(model, "context_length", None) or model.text.context_length)
    tokenizer = OpenClipTokenizer(own_tokenizer, caption_rule(options), context)
    towers = Towers(lambda model, ids, mask: model.encode_text(ids), _image_features, trims="never")
    fingerprint = Fingerprint(
        uri=uri,
        architecture=architecture,
        weights=weights,
        preprocessing={**getattr(model.visual, "preprocess_cfg", {}), **tokenizer.described},
        dtype=place.dtype,
        context=tokenizer.context,
        prompt=tokenizer.rule.prefix,
        options=tokenizer.rule.described,
    )
    padded = DualEncoder(model, towers, tokenizer, _pixels(transform), place, fingerprint)
    return _trimmed(padded) or padded


class OpenClipTokenizer(CaptionTokenizer):
    """A tokenizer of open_clip.

    The library's own byte-pair tokenizer prepares captions without padding. Other tokenizers pad captions in their own
    way, so their padding is kept.
    """

    def __init__(self, tokenizer: Any, rule: CaptionRule, context: int) -> None:
        self.tokenizer = tokenizer
        self.rule = rule
        self.context = context
        self.masks = False
        self.end = getattr(tokenizer, "eot_token_id", None)
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        shown = [self.rule(text) for text in texts]
        if self.end is not None:
            return [self._cut_to_context(text) for text in shown]
        with self._lock:
            rows = self.tokenizer(shown, context_length=self.context).numpy() if shown else []
        return [Tokens(np.asarray(row, np.int64)) for row in rows]

    def _cut_to_context(self, text: str) -> Tokens:
        ids = [self.tokenizer.sot_token_id, *self.tokenizer.encode(text), self.end]
        cut = max(0, len(ids) - self.context)
        return Tokens(np.array([*ids[: self.context - 1], self.end] if cut else ids, np.int64), cut)

    def pad(
        self, prepared: Sequence[Tokens], width: int | None, place: Place
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        ids, _ = pad_tokens(prepared, pad_id=0, width=width)
        return ids.to(place.torch_device), None

    @property
    def described(self) -> dict[str, str]:
        inner = getattr(self.tokenizer, "tokenizer", self.tokenizer)
        return {"tokenizer": type(inner).__name__, "vocabulary": str(getattr(inner, "vocab_size", ""))}


# -- what the URI names ----------------------------------------------------------------------------------------------


def _architecture_and_weights(library: Any, uri: ModelURI) -> tuple[str, str | None]:
    """Return the architecture and the source of the weights. The source is a tag, a path, or None if the name of the
    model implies it.
    """
    if uri.name.startswith(OPENCLIP_PLACES):
        return uri.name, None
    architecture, _, source = uri.name.partition("/")
    if architecture not in library.list_models():
        raise unknown("open_clip architecture", architecture, library.list_models(), where=uri)
    if not source:
        tags = library.list_pretrained_tags_by_model(architecture)
        tagged = f"open_clip:{architecture}/TAG, where TAG is one of {', '.join(tags)}; or " if tags else ""
        raise UsageError(
            "the URI names no weights",
            where=uri,
            hint=f"write {tagged}open_clip:{architecture}//path/to/checkpoint",
        )
    if source == OPENCLIP_RANDOM or _is_tag(library, architecture, source):
        return architecture, source
    path = Path(source).expanduser()
    if path.is_file():
        return architecture, str(path)
    if "/" in source or path.suffix:
        raise ModelError(f"there is no file {source!r}", where=uri, hint="check the path")
    raise unknown(f"tag of {architecture}", source, library.list_pretrained_tags_by_model(architecture), where=uri)


def _is_tag(library: Any, architecture: str, source: str) -> bool:
    return bool(library.get_pretrained_cfg(architecture, source))


def _quick_gelu(library: Any, architecture: str, source: str | None, activation: str | None, uri: str) -> bool:
    """Return True if the architecture uses QuickGELU. Raise an error if the weights were trained with another
    activation.
    """
    has = bool((library.get_model_config(architecture) or {}).get("quick_gelu", False))
    if source in (None, OPENCLIP_RANDOM):
        return has
    assert source
    if _is_tag(library, architecture, source):
        needs = bool(library.get_pretrained_cfg(architecture, source).get("quick_gelu", False))
    elif activation:
        needs = activation == "quick_gelu"
    else:
        raise UsageError(
            "a checkpoint does not say which activation it was trained with",
            where=uri,
            hint="add ?activation=quick_gelu for OpenAI's CLIP and models fine-tuned from it, such as NegCLIP; "
            "add ?activation=gelu for others",
        )
    plain = architecture.removesuffix("-quickgelu")
    right = f"{plain}-quickgelu" if needs else plain
    # one tag does not state the activation of its only architecture: then trust the architecture
    if needs != has and right != architecture and right in library.list_models():
        trained, own = ("QuickGELU" if quick else "GELU" for quick in (needs, has))
        what = f"these weights were trained with {trained} and {architecture} has {own}"
        raise ModelError(what, where=uri, hint=f"write open_clip:{right}/…")
    return has


def _create(library: Any, architecture: str, source: str | None, seed: int) -> tuple[Any, Any, Any]:
    """Return the model, its validation transform and its tokenizer."""
    import torch

    fresh = source == OPENCLIP_RANDOM
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        model, _, transform = library.create_model_and_transforms(
            architecture, pretrained=None if fresh else source, require_pretrained=not fresh, weights_only=True
        )
        return model, transform, library.get_tokenizer(architecture)


@contextmanager
def _loading(what: str, uri: str) -> Iterator[None]:
    """During the block, turn any error of the library or its downloads into a ModelError."""
    try:
        yield
    except CreperieError:
        raise
    except Exception as e:
        raise ModelError(
            f"open_clip cannot load {what}: {one_line(e) or type(e).__name__}",
            where=uri,
            hint="without a connection give a file: open_clip:ARCHITECTURE//path/to/checkpoint",
        ) from e


# -- embeddings ------------------------------------------------------------------------------------------------------


def _image_features(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return model.encode_image(inputs["pixel_values"])


def _trimmed(padded: DualEncoder) -> DualEncoder | None:
    """Return the model with batches padded only to their longest caption. Return None if that would change the
    vectors.
    """
    # The vectors can stay the same only if the text tower is causal and its output is taken at the end token. The
    # library always pads to the full context, so the parts of the text tower are called one by one here. As a check,
    # the vectors of two test captions are compared with those of the library.
    tower = getattr(padded.model, "text", padded.model)
    if not _is_causal(tower):
        return None
    towers = Towers(_causal_text, _image_features, trims="always")
    cut = DualEncoder(padded.model, towers, padded.tokenizer, padded.pixels, padded.place, padded.fingerprint)
    tolerance = 1e-5 if padded.place.dtype == "float32" else 2e-2
    difference = np.abs(cut.encode_texts(PROBES) - padded.encode_texts(PROBES)).max()
    return cut if difference <= tolerance else None


def _is_causal(tower: Any) -> bool:
    pool = getattr(tower, "text_pool_type", None) or getattr(tower, "pool_type", None)
    parts = ("token_embedding", "positional_embedding", "transformer", "ln_final", "text_projection")
    return (
        all(hasattr(tower, part) for part in parts)
        and getattr(tower, "attn_mask", None) is not None
        and getattr(tower, "cls_emb", None) is None
        and not getattr(tower, "use_pad_mask", False)
        and pool in ("argmax", "eos")
    )


def _causal_text(model: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    import torch

    tower = getattr(model, "text", model)
    length = ids.shape[1]
    dtype = tower.transformer.get_cast_dtype()
    states = tower.token_embedding(ids).to(dtype) + tower.positional_embedding[:length].to(dtype)
    states = tower.ln_final(tower.transformer(states, attn_mask=tower.attn_mask[:length, :length]))
    pool = getattr(tower, "text_pool_type", None) or tower.pool_type
    end: Any = getattr(tower, "text_eos_id", None) or getattr(tower, "eos_id", None)
    at = ids.argmax(dim=-1) if pool == "argmax" else ids.eq(end).int().argmax(dim=-1)
    vectors: torch.Tensor = states[torch.arange(len(ids), device=ids.device), at]
    if tower.text_projection is None:
        return vectors
    if isinstance(tower.text_projection, torch.nn.Linear):
        return torch.nn.functional.linear(vectors, tower.text_projection.weight, tower.text_projection.bias)
    return vectors @ tower.text_projection


# -- pixels ----------------------------------------------------------------------------------------------------------


class TransformPixels(ProcessorPixels):
    """Preprocessing by open_clip's image transform."""

    def prepare(self, image: Image.Image) -> np.ndarray:
        return self.processor(image).numpy()


def _pixels(transform: Any) -> Pixels:
    slow = TransformPixels(transform)
    steps = list(getattr(transform, "transforms", ()))
    recipe = _recipe(steps)
    if recipe is None:
        return slow

    def odd(image: Image.Image) -> np.ndarray:
        """Return the pixels of an image that has a palette or transparency."""
        # They are computed by the steps of the transform, except for the last two (conversion to a tensor and
        # normalisation).
        for step in steps[:-2]:
            image = step(image)
        return np.asarray(image)

    return agreeing(DirectPixels(recipe, odd), slow)


def _recipe(steps: Sequence[Any]) -> Preprocessing | None:
    """Return settings equivalent to the steps of a transform. Return None unless the steps are the usual ones: Resize,
    CenterCrop (optional), conversion to RGB, conversion to a tensor, Normalize.
    """
    names = [type(step).__name__ if hasattr(step, "forward") else getattr(step, "__name__", "") for step in steps]
    if not names or names[0] != "Resize" or names[-1] != "Normalize":
        return None
    resize, normalise = steps[0], steps[-1]
    crop = next((step.size for step in steps if type(step).__name__ == "CenterCrop"), None)
    size = resize.size if isinstance(resize.size, int) else tuple(resize.size)
    if isinstance(size, tuple) and len(size) == 1:
        size = size[0]
    resample = {"bicubic": 3, "bilinear": 2}.get(resize.interpolation.value)
    if resample is None:
        return None
    return Preprocessing(
        size=size,
        crop=tuple(crop) if crop else None,
        resample=resample,
        scale=1 / 255,
        mean=tuple(float(v) for v in normalise.mean),
        std=tuple(float(v) for v in normalise.std),
        round_centre=True,
    )
