"""Score models in memory: models of transformers, open_clip or sentence-transformers, other objects, and functions.

Each time a wrapped model is scored, its weights are hashed, it is put on the requested device and in eval mode, and it
gets the same adapter as a model named by a URI. Afterwards its device, dtype and mode are restored.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from creperie.core import ModelError, UsageError, sha256_of_text
from creperie.models.abilities import ABILITIES
from creperie.models.content import Content, content_of, networks_of, own_place, ready_to_score
from creperie.models.device import DTYPES, Place, exact_float32, find_place
from creperie.models.hf.folder import InMemory
from creperie.models.kinds import KINDS
from creperie.models.protocols import Fingerprint, Model
from creperie.models.uri import read_options

ACCEPTED = (
    "pass a model URI, a model of transformers with its processor, (model, preprocess, tokenizer) of open_clip, a "
    "SentenceTransformer, an object with encode_image and encode_text, or a function of (images, captions), of one "
    "(image, caption), or of (captions)"
)
Answer = Callable[..., np.ndarray]
#: parts of the names of transformers classes that generate text, with an image (GENERATIVE) or without (LANGUAGE)
GENERATIVE = ("ForConditionalGeneration", "ForQuestionAnswering", "ForVision2Seq", "ForImageTextToText")
LANGUAGE = ("CausalLM", "LMHeadModel", "MaskedLM")
#: names of the parameters of a function that scores one pair at a time
SINGLE = [[image, text] for image in ("image", "img", "picture") for text in ("caption", "text", "sentence")]
#: the method names for encoding, in order of preference
ENCODE = {"encode_images": ("encode_images", "encode_image"), "encode_texts": ("encode_texts", "encode_text")}


@dataclass(frozen=True, eq=False, repr=False)
class WrappedModel:
    """A model in memory with its processor or tokenizer. `options` are those of the corresponding kind of model URI."""

    model: Any
    processor: Any = None
    preprocess: Any = None
    tokenizer: Any = None
    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    plugin: str = ""  #: the URI of the plug-in that returned it

    def __repr__(self) -> str:
        return f"WrappedModel({self.uri!r})"

    @property
    def uri(self) -> str:
        named = getattr(self.model, "__name__", type(self.model).__name__)
        return self.plugin or f"memory:{self.name or ('function' if named == '<lambda>' else named)}"

    @property
    def content(self) -> Content:
        """The hash of the model and of the parts that prepare its inputs."""
        return content_of(self.model, self.processor, self.preprocess, self.tokenizer)

    def read(self, kind: str) -> dict[str, Any]:
        """Return the values of all options of this kind of model URI, by name. Values that were given are checked; all
        others are the defaults.
        """
        return read_options(self.options, KINDS[kind].options, where=self.uri)

    @contextmanager
    def opened(
        self, device: str = "auto", dtype: str = "auto", cache: bool | str = True
    ) -> Iterator[tuple[Model, bool]]:
        """Yield the model's adapter, and a flag that is True if its results may be cached.

        The cache key is the hash of the model's content. If the content cannot be hashed with certainty, the key is the
        name given as `cache`. Without a name, the results are not cached.
        """
        networks = networks_of(self.model)
        own_device, own_dtype = own_place(networks)
        precision = (own_dtype if own_dtype in DTYPES else "float32") if dtype == "auto" else dtype
        place = find_place(own_device if device == "auto" else device, precision)
        content = self.content
        named = isinstance(cache, str) and not content.certain
        digest = sha256_of_text(f"cache {cache}") if named else content.digest
        with ready_to_score(networks, place):
            yield BUILDERS[_model_kind(self)](self, digest, place), cache is not False and (content.certain or named)


def wrap(
    model: Any,
    *,
    processor: Any = None,
    preprocess: Any = None,
    tokenizer: Any = None,
    name: str = "",
    options: Mapping[str, str] | None = None,
) -> WrappedModel:
    """Wrap a model in memory so that it can be scored.

    `processor` is a transformers processor. `preprocess` turns an image into a tensor, and `tokenizer` turns captions
    into ids. `name` is the model's name in tables. `options` are those of a model URI, such as {"score": "vqa"}.

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
    for attribute in ("_orig_mod", "module"):  # the module inside a compiled or parallel one
        if type(model).__name__ in ("OptimizedModule", "DistributedDataParallel", "DataParallel"):
            model = getattr(model, attribute, model)
    wrapped = WrappedModel(model, processor, preprocess, tokenizer, name, dict(options or {}))
    _model_kind(wrapped)
    return wrapped


def from_plugin(model: Any, uri: str) -> WrappedModel:
    """Wrap an object that a plug-in returned. Its name is the URI."""
    try:
        return replace(wrap(model), plugin=uri)
    except UsageError as e:
        raise UsageError(e.what, where=uri, hint=e.hint) from None


def as_model(model: Any, uri: str, place: Place) -> Model:
    """Return a `Model` unchanged. For any other object that a plug-in returned, move it to `place` and return an
    adapter to it.
    """
    if isinstance(model, Model):
        return model
    wrapped = from_plugin(model, uri)
    digest = wrapped.content.digest
    for network in networks_of(wrapped.model):
        network.eval().to(place.torch_device, place.torch_dtype)
    return BUILDERS[_model_kind(wrapped)](wrapped, digest, place)


def _model_kind(wrapped: WrappedModel) -> str:
    model = wrapped.model
    package = type(model).__module__.partition(".")[0]
    if package == "sentence_transformers":
        return "sentence"
    if package == "open_clip" and wrapped.preprocess is not None and wrapped.tokenizer is not None:
        return "open_clip"
    if hasattr(getattr(model, "config", None), "model_type"):
        return "transformers"
    methods = [ability.method for ability in ABILITIES.values()]
    if any(_own_method(model, method) for method in methods):
        return "object"
    if callable(model) and not isinstance(model, type):
        return "function"
    raise UsageError(f"{type(model).__name__} is not a model", hint=ACCEPTED)


def _own_method(model: Any, method: str) -> Callable[..., Any] | None:
    """Return the object's own method that does what `method` does, under this name or another common one. Return None
    if the object has no such method.
    """
    candidates = (getattr(model, name, None) for name in ENCODE.get(method, (method,)))
    return next((own for own in candidates if callable(own)), None)


# -- libraries -------------------------------------------------------------------------------------------------------


def _sentence(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    from creperie.models.st import encoder_of

    return encoder_of(wrapped.model, wrapped.uri, digest, wrapped.read("st"), place)


def _open_clip(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    from creperie.models.openclip import encoder_of

    architecture = f"open_clip {type(wrapped.model).__name__}"
    parts = (wrapped.model, wrapped.preprocess, wrapped.tokenizer)
    return encoder_of(*parts, wrapped.uri, architecture, digest, wrapped.read("open_clip"), place)


def _transformers(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    source = InMemory(
        wrapped.model, wrapped.uri, digest, wrapped.processor, wrapped.tokenizer, images=wrapped.preprocess
    )
    base = getattr(wrapped.model, "get_base_model", lambda: wrapped.model)()  # the model inside a peft adapter
    name = type(base).__name__
    sees = hasattr(wrapped.processor, "image_processor")
    if sees and any(part in name for part in (*GENERATIVE, *LANGUAGE)):
        from creperie.models.vlm.load import scorer_of

        return scorer_of(source, wrapped.options, wrapped.read("vlm"), place)
    if any(part in name for part in LANGUAGE):
        from creperie.models.lm.likelihood import likelihood_of

        return likelihood_of(source, wrapped.read("lm"), place)
    from creperie.models.hf.load import adapter_of

    return adapter_of(source, wrapped.options, wrapped.read("hf"), place)


# -- objects and functions -------------------------------------------------------------------------------------------


class ObjectModel:
    """The adapter to a function, or to an object with methods that score or encode. Scores and vectors become float32,
    and vectors get unit length.
    """

    def __init__(self, fingerprint: Fingerprint, place: Place, methods: Mapping[str, Answer]) -> None:
        self.fingerprint, self.place = fingerprint, place
        for name, method in methods.items():
            setattr(self, name, method)


def _object(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    methods: dict[str, Answer] = {}
    inputs = {"encode_images": _image_inputs, "encode_texts": _text_inputs}
    for method, gives in ((ability.method, ability.gives) for ability in ABILITIES.values()):
        own = _own_method(wrapped.model, method)
        if own is None or gives not in ("vectors", "numbers"):
            continue
        if method in inputs:
            methods[method] = _encoder(own, inputs[method](wrapped, place))
        else:
            methods[method] = _method(own, _unit if gives == "vectors" else _numbers)
    return _as_model(wrapped, digest, place, methods)


def _function(wrapped: WrappedModel, digest: str, place: Place) -> Model:
    function = wrapped.model
    signature = inspect.signature(getattr(function, "forward", function))
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in signature.parameters.values() if p.kind in kinds and p.default is p.empty]
    methods: dict[str, Answer]
    if len(needed) == 1:
        methods = {"score_texts": lambda texts: _one_each(wrapped, texts, list(texts))}
    elif [p.name.lower() for p in needed] in SINGLE:
        methods = {"score_pairs": lambda image, texts: _numbers([_number(function, image, text) for text in texts])}
    elif len(needed) == 2:
        methods = {"score_pairs": lambda image, texts: _one_each(wrapped, texts, [image] * len(texts), list(texts))}
    else:
        raise UsageError(
            f"expected a function of one or two arguments, got {len(needed)}",
            where=wrapped.uri,
            hint="pass a function of (captions) or of (images, captions)",
        )
    return _as_model(wrapped, digest, place, methods)


def _number(function: Callable[..., Any], image: Any, text: str) -> float:
    with _inference():
        return float(function(image, text))


def _one_each(wrapped: WrappedModel, texts: Sequence[str], *given: Any) -> np.ndarray:
    """Return one number per caption, computed by the wrapped function with the arguments `given`. Raise a ModelError if
    the function returns another number of results.
    """
    numbers = _method(wrapped.model, _numbers)(*given)
    if numbers.shape != (len(texts),):
        raise ModelError(
            f"the function returned {f'an array of shape {numbers.shape}' if numbers.shape else 'one number'} "
            f"for {len(texts)} captions",
            where=wrapped.uri,
            hint="return a list with one number per caption",
        )
    return numbers


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
    """Return a function that encodes a list of inputs. It calls `own` once for the whole list, or once per input if
    `own` takes only one. `inputs` prepares the list for `own`.
    """

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
    """Return one float32 number per input. An array with a single column is flattened."""
    numbers = _array(values)
    return numbers[:, 0] if numbers.ndim == 2 and numbers.shape[1] == 1 else numbers


def _unit(values: Any) -> np.ndarray:
    """Return the values as float32 vectors, each scaled to unit norm."""
    vectors = _array(values)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def _array(values: Any) -> np.ndarray:
    if isinstance(values, (list, tuple)):
        return np.asarray([_array(value) for value in values], np.float32)
    return np.asarray(values.detach().float().cpu() if hasattr(values, "detach") else values, np.float32)


@contextmanager
def _inference() -> Iterator[None]:
    """During the block, compute without gradients. If torch has not been imported, do nothing, and do not import it."""
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
