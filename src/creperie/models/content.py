"""What a model in memory is made of, as one hash: weights, buffers, settings and preprocessing.

It is computed anew whenever a model is scored. Version counters would be faster and miss what is written through
`.data` or in inference mode.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.core import ModelError
from creperie.models.weights import hash_state

if TYPE_CHECKING:
    import torch

    from creperie.models.device import Place

#: how far into an object's attributes weights are looked for, and in how many objects
DEPTH, OBJECTS = 5, 20_000
#: of a configuration: where the weights came from and who wrote them, which change nothing
NAMES = ("_name_or_path", "transformers_version", "_commit_hash", "dtype", "torch_dtype", "processor_class")


def networks_of(holder: object) -> list[torch.nn.Module]:
    """Return the PyTorch modules that an object is or holds; none inside another."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    return [part for part in _parts(holder, torch.nn.Module) if isinstance(part, torch.nn.Module)]


def count_weights(model: object) -> int | None:
    """Return how many weights a loaded model has; None where they cannot be seen (a server, an ONNX session). A model
    that knows better has a number `parameters`."""
    parameters = getattr(model, "parameters", None)
    if isinstance(parameters, int):
        return parameters
    weights = {id(w): w.numel() for network in networks_of(model) for w in network.parameters()}
    return sum(weights.values()) or None


def content_of(*holders: object) -> str:
    """Return one hash over the weights and settings of networks, arrays and preprocessing; empty where there are no
    weights.

    >>> import numpy as np
    >>> content_of({"weights": np.zeros(3)}) == content_of({"weights": np.ones(3)}), content_of(print)
    (False, '')
    """
    torch = sys.modules.get("torch")
    kinds = (np.ndarray,) if torch is None else (np.ndarray, torch.nn.Module, torch.Tensor)
    total, weights = hashlib.sha256(), False
    for holder in holders:
        for part in _parts(holder, kinds):
            weights = True
            total.update(_hash_part(part).encode())
    return total.hexdigest() if weights else ""


def _parts(holder: object, kinds: Any) -> Iterator[Any]:
    """Everything of these kinds among an object's attributes, and theirs. Of creperie's own adapters only networks
    count: their arrays are caches."""
    known: set[int] = set()

    def look(value: Any, depth: int, ours: bool) -> Iterator[Any]:
        if id(value) in known or len(known) > OBJECTS:
            return
        known.add(id(value))
        if isinstance(value, kinds):
            if not ours or hasattr(value, "named_modules"):
                yield value
        elif depth and not isinstance(value, (str, bytes, int, float, type, ModuleType, FunctionType)):
            ours = type(value).__module__.startswith("creperie.")
            for inner in _inside(value):
                yield from look(inner, depth - 1, ours)

    return look(holder, DEPTH, False)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple, set)):
        return list(value)
    if isinstance(value, MethodType):
        return [value.__self__]
    return list(getattr(value, "__dict__", {}).values())


def _hash_part(part: Any) -> str:
    if isinstance(part, np.ndarray):
        content = repr(part.tolist()).encode() if part.dtype.hasobject else np.ascontiguousarray(part).tobytes()
        return hashlib.sha256(f"{part.dtype} {part.shape}\n".encode() + content).hexdigest()
    return hash_network(part) if hasattr(part, "named_modules") else hash_state({"": part})


def hash_network(network: torch.nn.Module) -> str:
    """Return one hash of every parameter and buffer of every layer (also those that are not saved), of tensors that are
    plain attributes, and of the settings of the layers."""
    import torch

    tensors: dict[str, torch.Tensor] = {}
    settings: dict[str, Any] = {}
    for place, layer in network.named_modules():
        settings[place] = [type(layer).__qualname__]
        registered = {**layer._parameters, **layer._buffers}
        for name, value in {**registered, **vars(layer)}.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{place}.{name}"] = value
            elif name == "config" and hasattr(value, "to_dict"):
                settings[f"{place}.config"] = plain_settings(value.to_dict())
            elif name != "training" and not name.startswith("_") and _is_plain(value):
                settings[f"{place}.{name}"] = repr(value)
    if any(tensor.is_meta for tensor in tensors.values()):
        raise ModelError(f"{type(network).__name__} has no weights yet: they are on the meta device")
    written = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(f"{hash_state(tensors)}\n{written}".encode()).hexdigest()


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str))


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that decide what is computed."""
    return {k: plain_settings(v) if isinstance(v, Mapping) else v for k, v in settings.items() if str(k) not in NAMES}


def describe_part(part: Any) -> str:
    """Return a processor, tokenizer, transform or function by what it does, as text."""
    if part is None:
        return ""
    backend = getattr(part, "backend_tokenizer", None)
    if backend is not None:  # its truncation and padding are those of the last call
        settings = {k: v for k, v in json.loads(backend.to_str()).items() if k not in ("truncation", "padding")}
        return f"{type(part).__name__} {part.model_max_length} {json.dumps(settings, sort_keys=True)}"
    if hasattr(part, "get_vocab"):
        return f"{type(part).__name__} {part.model_max_length} {sorted(part.get_vocab().items())}"
    if hasattr(part, "image_processor") or hasattr(part, "tokenizer"):
        inner = [describe_part(getattr(part, name, None)) for name in ("image_processor", "tokenizer")]
        return "\n".join([type(part).__name__, str(getattr(part, "chat_template", "")), *inner])
    if hasattr(part, "to_dict"):
        written = json.dumps(plain_settings(part.to_dict()), sort_keys=True, default=str)
        return f"{type(part).__name__} {written}"
    code = getattr(part, "__code__", None)
    if code is not None:
        cells = [describe_part(cell.cell_contents) for cell in getattr(part, "__closure__", None) or ()]
        return "\n".join([_code_text(code), repr(getattr(part, "__defaults__", None)), *cells])
    steps = getattr(part, "transforms", None)
    if isinstance(steps, (list, tuple)):
        return "\n".join(describe_part(step) for step in steps)
    return content_of(part) or type(part).__qualname__ + (repr(part) if "__repr__" in vars(type(part)) else "")


def _code_text(code: CodeType) -> str:
    constants = [_code_text(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


# -- while a model is scored -----------------------------------------------------------------------------------------


@contextmanager
def ready_to_score(networks: Iterable[torch.nn.Module], place: Place | None = None) -> Iterator[None]:
    """Networks in eval mode, at a place; afterwards every layer's mode and every tensor is the one it was before."""
    with ExitStack() as stack:
        for network in networks:
            stack.callback(_restore, network, *_state(network))
            network.eval()
            if place is not None and _place_of(network) != (place.torch_device.type, place.torch_dtype):
                network.to(place.torch_device, place.torch_dtype)
        yield


def _state(network: Any) -> tuple[list[tuple[Any, bool]], list[tuple[Any, Any]], list[tuple[Any, str, Any]]]:
    layers = list(network.modules())
    buffers = [(layer, name, value) for layer in layers for name, value in layer._buffers.items()]
    return [(layer, layer.training) for layer in layers], [(w, w.data) for w in network.parameters()], buffers


def _restore(_: Any, modes: Any, weights: Any, buffers: Any) -> None:
    for layer, training in modes:
        layer.training = training
    for weight, data in weights:
        if weight.data is not data:
            weight.data = data
    for layer, name, value in buffers:
        layer._buffers[name] = value


def _place_of(network: Any) -> tuple[str, Any]:
    first = next(network.parameters(), None)
    return ("cpu", None) if first is None else (first.device.type, first.dtype)


def own_place(networks: Iterable[torch.nn.Module]) -> tuple[str, str]:
    """Return the device and the precision that networks have; those of an empty one are the CPU and float32."""
    for network in networks:
        for weight in network.parameters():
            if weight.is_floating_point():
                return str(weight.device), str(weight.dtype).removeprefix("torch.")
    return "cpu", "float32"
