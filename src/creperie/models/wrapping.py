"""Models that the caller holds: of transformers, open_clip or sentence-transformers, a module, an object, a function.

What a URI would load is already there, so the same adapters are built around it, anew for every scoring: the content
of the weights is hashed, the model is put into eval mode at the place that is asked for, and put back afterwards.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from creperie.core import UsageError
from creperie.models.abilities import ABILITIES
from creperie.models.content import content_of, describe_part, networks_of, own_place, ready_to_score
from creperie.models.device import DTYPES, Place, exact_float32, find_place
from creperie.models.hf.folder import InMemory
from creperie.models.protocols import Fingerprint, Model
from creperie.models.registry import KINDS
from creperie.models.uri import read_options

ACCEPTED = (
    "pass a model URI, a model of transformers with its processor, (model, preprocess, tokenizer) of open_clip, a "
    "SentenceTransformer, an object with encode_image and encode_text, or a function of (images, captions) or of "
    "(captions)"
)
Answer = Callable[..., np.ndarray]
#: of the classes of transformers: what generates text, with or without an image
GENERATIVE = ("ForConditionalGeneration", "ForQuestionAnswering", "ForVision2Seq", "ForImageTextToText")
LANGUAGE = ("CausalLM", "LMHeadModel", "MaskedLM")
#: the methods by which an object encodes, in the order in which they are looked for
ENCODE = {"encode_images": ("encode_images", "encode_image"), "encode_texts": ("encode_texts", "encode_text")}


@dataclass(frozen=True, eq=False, repr=False)
class WrappedModel:
    """A model in memory, and what has to be known beside it. `options` are those of the URI kind that it stands for."""

    model: Any
    processor: Any = None
    preprocess: Any = None
    tokenizer: Any = None
    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"WrappedModel({self.uri!r})"

    @property
    def uri(self) -> str:
        named = getattr(self.model, "__name__", type(self.model).__name__)
        return f"memory:{self.name or ('function' if named == '<lambda>' else named)}"

    @contextmanager
    def opened(
        self, device: str = "auto", dtype: str = "auto", cache: bool | str = True
    ) -> Iterator[tuple[Model, bool]]:
        """The adapter, and whether its results may be stored: by the content of its weights, or, where there are none
        to see, under the name that `cache` gives."""
        networks = networks_of(self.model)
        own_device, own_dtype = own_place(networks)
        precision = (own_dtype if own_dtype in DTYPES else "float32") if dtype == "auto" else dtype
        place = find_place(own_device if device == "auto" else device, precision)
        content = content_of(self.model)
        parts = [describe_part(part) for part in (self.processor, self.preprocess, self.tokenizer)]
        named = "" if content or not isinstance(cache, str) else f"cache {cache}"
        first = content or named or describe_part(self.model)
        digest = hashlib.sha256("\n".join([first, *parts]).encode()).hexdigest()
        with ready_to_score(networks, place):
            yield BUILDERS[_kind(self)](self, digest, place), cache is not False and bool(content or named)


def wrap(
    model: Any,
    *,
    processor: Any = None,
    preprocess: Any = None,
    tokenizer: Any = None,
    name: str = "",
    options: Mapping[str, str] | None = None,
) -> WrappedModel:
    """Return a model in memory, ready to be scored.

    `processor` is one of transformers; `preprocess` makes a tensor of an image and `tokenizer` ids of captions;
    `name` is what tables call the model. `options` are those of a model URI, such as {"score": "vqa"}.

    >>> wrap(lambda captions: [len(c) for c in captions], name="length").uri
    'memory:length'
    """
    if isinstance(model, WrappedModel):
        return model
    if isinstance(model, tuple) and len(model) in (2, 3):
        model, *parts = model
        if len(parts) == 2:
            preprocess, tokenizer = preprocess or parts[0], tokenizer or parts[1]
        else:
            processor = processor or parts[0]
    wrapped = WrappedModel(_unwrapped(model), processor, preprocess, tokenizer, name, dict(options or {}))
    _kind(wrapped)
    return wrapped


def _unwrapped(model: Any) -> Any:
    """Return the module inside a compiled or a parallel one."""
    for attribute in ("_orig_mod", "module"):
        if type(model).__name__ in ("OptimizedModule", "DistributedDataParallel", "DataParallel"):
            model = getattr(model, attribute, model)
    return model


def _kind(wrapped: WrappedModel) -> str:
    model = wrapped.model
    package = type(model).__module__.partition(".")[0]
    if package == "sentence_transformers":
        return "sentence"
    if package == "open_clip" and wrapped.preprocess is not None and wrapped.tokenizer is not None:
        return "open_clip"
    if hasattr(getattr(model, "config", None), "model_type"):
        return "transformers"
    methods = [ability.method for ability in ABILITIES.values()]
    if any(
        callable(getattr(model, name, None)) for name in (*ENCODE["encode_images"], *ENCODE["encode_texts"], *methods)
    ):
        return "object"
    if callable(model) and not isinstance(model, type):
        return "function"
    raise UsageError(f"{type(model).__name__} is not a model", hint=ACCEPTED)


def _own_method(model: Any, method: str) -> Callable[..., Any] | None:
    """Return the object's own method for an ability."""
    candidates = (getattr(model, name, None) for name in ENCODE.get(method, (method,)))
    return next((own for own in candidates if callable(own)), None)


# -- libraries -------------------------------------------------------------------------------------------------------


def _sentence(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    from creperie.models.st import encoder_of

    options = read_options(wrapped.options, KINDS["st"].options, where=wrapped.uri)
    return encoder_of(wrapped.model, wrapped.uri, digest, options, place)


def _open_clip(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    from creperie.models.openclip import encoder_of

    options = read_options(wrapped.options, KINDS["open_clip"].options, where=wrapped.uri)
    architecture = f"open_clip {type(wrapped.model).__name__}"
    parts = (wrapped.model, wrapped.preprocess, wrapped.tokenizer)
    return encoder_of(*parts, wrapped.uri, architecture, digest, options, place)


def _transformers(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    source = InMemory(
        wrapped.model, wrapped.uri, digest, wrapped.processor, wrapped.tokenizer, images=wrapped.preprocess
    )
    base = getattr(wrapped.model, "get_base_model", lambda: wrapped.model)()  # inside an adapter of peft
    name = type(base).__name__
    sees = hasattr(wrapped.processor, "image_processor")
    if sees and any(part in name for part in (*GENERATIVE, *LANGUAGE)):
        from creperie.models.vlm.load import scorer_of

        options = read_options(wrapped.options, KINDS["vlm"].options, where=wrapped.uri)
        return scorer_of(source, wrapped.options, options, place)
    if any(part in name for part in LANGUAGE):
        from creperie.models.lm.likelihood import likelihood_of

        return likelihood_of(source, read_options(wrapped.options, KINDS["lm"].options, where=wrapped.uri), place)
    from creperie.models.hf.load import adapter_of

    options = read_options(wrapped.options, KINDS["hf"].options, where=wrapped.uri)
    return adapter_of(source, wrapped.options, options, place)


# -- anything else ---------------------------------------------------------------------------------------------------


class ObjectModel:
    """The methods of an object, or a function, as methods of a model: numbers in float32, vectors of length one."""

    def __init__(self, fingerprint: Fingerprint, place: Place, methods: Mapping[str, Answer]) -> None:
        self.fingerprint, self.place = fingerprint, place
        for name, method in methods.items():
            setattr(self, name, method)


def _object(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    methods: dict[str, Answer] = {}
    for ability in ABILITIES.values():
        own = _own_method(wrapped.model, ability.method)
        if own is None or ability.gives not in ("vectors", "numbers"):
            continue
        finish = _unit if ability.gives == "vectors" else _numbers
        if ability.method == "encode_images":
            methods[ability.method] = _encoder(own, _image_inputs(wrapped, place))
        elif ability.method == "encode_texts":
            methods[ability.method] = _encoder(own, _text_inputs(wrapped, place))
        else:
            methods[ability.method] = _method(own, finish)
    return _as_model(wrapped, digest, place, methods)


def _function(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    function = wrapped.model
    signature = inspect.signature(getattr(function, "forward", function))
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in signature.parameters.values() if p.kind in kinds and p.default is p.empty]
    if len(needed) == 1:
        methods = {"score_texts": _method(lambda texts: function(list(texts)), _numbers)}
    elif len(needed) == 2:
        methods = {"score_pairs": _method(lambda image, texts: function([image] * len(texts), list(texts)), _numbers)}
    else:
        what = f"the function takes {len(needed)} arguments"
        raise UsageError(what, where=wrapped.uri, hint="write one of (images, captions) or of (captions)")
    return _as_model(wrapped, digest, place, methods)


def _as_model(wrapped: WrappedModel, digest: str, place: Place, methods: Mapping[str, Answer]) -> Model:
    named = type(wrapped.model).__qualname__
    fingerprint = Fingerprint(wrapped.uri, f"{named}: {', '.join(sorted(methods))}", digest, dtype=place.dtype)
    return ObjectModel(fingerprint, place, methods)


def _method(own: Callable[..., Any], finish: Callable[[Any], np.ndarray]) -> Answer:
    def call(*given: Any) -> np.ndarray:
        with _inference():
            return finish(own(*given))

    return call


def _encoder(own: Callable[..., Any], inputs: Callable[[Sequence[Any]], Any]) -> Answer:
    """Return a function from a list to vectors: by one call, or one by one where the method takes a single input."""

    def encode(given: Sequence[Any]) -> np.ndarray:
        with _inference():
            try:
                prepared = inputs(given)
                vectors = _unit(own(**prepared) if isinstance(prepared, dict) else own(prepared))
                if vectors.shape[:1] == (len(given),) and vectors.ndim > 1:
                    return vectors
            except (AttributeError, TypeError, ValueError):
                if len(given) == 0 or not isinstance(inputs(given), list):
                    raise
            return np.stack([_unit(own(one)).reshape(-1) for one in given])

    return encode


def _image_inputs(wrapped: WrappedModel, place: Place) -> Callable[[Sequence[Any]], Any]:
    preprocess, processor = wrapped.preprocess, getattr(wrapped.processor, "image_processor", wrapped.processor)
    if preprocess is not None:
        return lambda images: _stacked([preprocess(image) for image in images], place)
    if processor is not None:
        return lambda images: _tensors(processor(list(images), return_tensors="pt"), place)
    return list


def _text_inputs(wrapped: WrappedModel, place: Place) -> Callable[[Sequence[Any]], Any]:
    tokenizer = wrapped.tokenizer or getattr(wrapped.processor, "tokenizer", None)
    if tokenizer is None:
        return list
    if hasattr(tokenizer, "model_input_names"):
        how = {"padding": True, "truncation": True, "return_tensors": "pt"}
        return lambda texts: _tensors(tokenizer(list(texts), **how), place)
    return lambda texts: tokenizer(list(texts)).to(place.torch_device)


def _tensors(batch: Mapping[str, Any], place: Place) -> dict[str, Any]:
    return {name: value.to(place.torch_device) for name, value in batch.items()}


def _stacked(prepared: Sequence[Any], place: Place) -> Any:
    import torch

    return torch.stack([torch.as_tensor(one) for one in prepared]).to(place.torch_device, place.torch_dtype)


def _numbers(values: Any) -> np.ndarray:
    """Return one float32 number per input; a column counts as numbers."""
    numbers = _array(values)
    return numbers[:, 0] if numbers.ndim == 2 and numbers.shape[1] == 1 else numbers


def _unit(values: Any) -> np.ndarray:
    """Return float32 vectors of length one."""
    vectors = _array(values)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def _array(values: Any) -> np.ndarray:
    if isinstance(values, (list, tuple)):
        return np.asarray([_array(value) for value in values], np.float32)
    return np.asarray(values.detach().float().cpu() if hasattr(values, "detach") else values, np.float32)


@contextmanager
def _inference() -> Iterator[None]:
    """Without gradients where torch is loaded; a function without it does not load it."""
    if "torch" not in sys.modules:
        yield
        return
    with exact_float32():
        yield


BUILDERS: dict[str, Callable[[WrappedModel, str, Place], Model]] = {
    "sentence": _sentence,
    "open_clip": _open_clip,
    "transformers": _transformers,
    "object": _object,
    "function": _function,
}
