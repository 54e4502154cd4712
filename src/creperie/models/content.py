"""Hash everything on which the output of a model in memory depends: its weights, buffers, code and all other data.

The hash is computed anew whenever a model is scored. Version counters would be faster but miss changes made through
`.data` or in inference mode.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import json
import logging
import sys
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.core import ModelError
from creperie.models.protocols import Fingerprint
from creperie.models.weights import hash_state

if TYPE_CHECKING:
    import torch

    from creperie.models.device import Place

#: how deep an object's attributes are searched for networks
DEPTH = 5
#: objects with more parts than this are not hashed completely
OBJECTS = 2_000_000
#: attributes of modules that are left out: hooks for gradients and files, and the mode, which scoring sets
MODULE = (
    *("training", "_backward_hooks", "_backward_pre_hooks", "_is_full_backward_hook", "_state_dict_hooks"),
    *("_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)
#: attributes of library objects that are left out: the origin of the weights
ORIGIN = (
    *("_name_or_path", "name_or_path", "transformers_version", "_commit_hash", "dtype", "torch_dtype"),
    *("processor_class", "_is_hf_initialized"),
)
#: attributes of a tokenizer that determine its tokens; its other attributes belong to the last call
TOKENIZER = ("model_max_length", "chat_template", "padding_side", "truncation_side", "special_tokens_map")
#: packages whose functions are hashed by their own code only, without what they call
LIBRARIES = sys.stdlib_module_names | {
    *("PIL", "accelerate", "creperie", "huggingface_hub", "numpy", "open_clip", "pandas", "peft", "pyarrow", "scipy"),
    *("safetensors", "sentence_transformers", "sklearn", "timm", "tokenizers", "torch", "torchvision", "transformers"),
}
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, functools.partial)


@dataclass(frozen=True)
class Content:
    """The hash of an object.

    `certain` is True if the object has weights and all its parts were hashed. Models with equal digests then have equal
    outputs.
    """

    digest: str
    certain: bool


def networks_of(holder: object) -> list[torch.nn.Module]:
    """Return the outermost PyTorch modules of an object: the object itself, or the modules among its attributes."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    known: set[int] = set()

    def look(value: Any, depth: int) -> Iterator[Any]:
        if id(value) in known:
            return
        known.add(id(value))
        if isinstance(value, torch.nn.Module):
            yield value
        elif depth and not isinstance(value, (str, bytes, int, float, type, types.ModuleType, types.FunctionType)):
            inner = [value.__self__] if isinstance(value, types.MethodType) else getattr(value, "__dict__", {})
            inner = value if isinstance(value, (Mapping, list, tuple, set)) else inner
            for one in list(inner.values() if isinstance(inner, Mapping) else inner):
                yield from look(one, depth - 1)

    return list(look(holder, DEPTH))


def count_weights(model: object) -> int | None:
    """Return the number of weights of a loaded model. Return None if they cannot be counted (a server, an ONNX
    session).

    An integer attribute `parameters` takes precedence.
    """
    parameters = getattr(model, "parameters", None)
    if isinstance(parameters, int):
        return parameters
    weights = {id(w): w.numel() for network in networks_of(model) for w in network.parameters()}
    return sum(weights.values()) or None


def content_of(model: object, *parts: object) -> Content:
    """Return the hash of a model and of the `parts` that prepare its inputs. The hash of a function is never `certain`,
    because a function has no weights.

    >>> import numpy as np
    >>> zeros, ones = (content_of({"weights": np.full(3, value)}) for value in (0.0, 1.0))
    >>> zeros.digest == ones.digest, zeros.certain, content_of(print).certain
    (False, True, False)
    """
    hasher = _Hasher()
    try:
        hasher.add(model)
        weights = hasher.weights
        for part in parts:
            hasher.add(part)
    except RecursionError:
        hasher.complete = weights = False
    certain = weights and hasher.complete and not isinstance(model, FUNCTIONS)
    return Content(hasher.total.hexdigest(), certain)


class _Hasher:
    """Hashes everything that can be reached from the added objects. `complete` is False if something could not be
    hashed.
    """

    def __init__(self) -> None:
        self.total = hashlib.sha256()
        self.weights, self.complete = False, True
        self._seen: dict[int, tuple[int, Any]] = {}  # with the object itself, so that its id is not reused
        self._named: set[tuple[int, str]] = set()

    def _put(self, *texts: object) -> None:
        self.total.update("\x1f".join([*map(str, texts), "\n"]).encode("utf-8", "surrogatepass"))

    def _unknown(self, value: object) -> None:
        self._put("unknown", type(value).__qualname__)
        self.complete = False

    def add(self, value: Any) -> None:
        """Hash a value with everything that it contains. If the value was hashed before, the number of its first
        occurrence is hashed instead.
        """
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, type(...))):
            self._put(type(value).__name__, len(repr(value)), repr(value))
            return
        if id(value) in self._seen or len(self._seen) > OBJECTS:
            self._put("again", self._seen.get(id(value), ("too many",))[0])
            self.complete &= len(self._seen) <= OBJECTS
            return
        self._seen[id(value)] = (len(self._seen), value)
        torch = sys.modules.get("torch")
        if isinstance(value, types.ModuleType):
            self._put(value.__name__)
            self.complete &= _is_library(value)
        elif isinstance(value, (logging.Logger, PurePath)):
            self._put(type(value).__name__, value)
        elif isinstance(value, type):
            self._class(value)
        elif torch is not None and isinstance(value, torch.Tensor):
            self._tensor(value)
        elif hasattr(type(value), "__array_interface__"):
            self._array(np.asarray(value))
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif (inner := _wrapped_in(value)) is not None:
            self._put(type(value).__name__)
            self._each(inner)
        else:
            self._object(value)

    def _each(self, values: Iterable[Any]) -> None:
        values = list(values)
        self._put(len(values))
        for value in values:
            self.add(value)

    # -- data ----------------------------------------------------------------------------------------------------

    def _tensor(self, tensor: torch.Tensor) -> None:
        if tensor.is_meta:
            raise ModelError("the model's weights are on the meta device: load them first")
        self.weights = True
        try:
            self._put(hash_state({"": tensor}))
        except (RuntimeError, TypeError):  # sparse, quantised, on several machines
            self._unknown(tensor)
        self._state(tensor)

    def _array(self, array: np.ndarray) -> None:
        self.weights |= array.ndim > 0
        self._put("array", array.dtype, array.shape)
        if array.dtype.hasobject:
            self._each(array.ravel())
        else:
            self.total.update(np.ascontiguousarray(array).tobytes())

    def _object(self, value: Any) -> None:
        kind = type(value)
        self.add(kind)
        if kind.__module__.startswith("creperie.") and isinstance(getattr(value, "fingerprint", None), Fingerprint):
            self._put(value.fingerprint.key)  # one of our adapters: it holds nothing else but caches
            self._each(networks_of(value))
        elif kind.__module__.startswith(("transformers.", "tokenizers")) and (settings := _settings(value)):
            self._put(json.dumps(settings, sort_keys=True, default=str))
        elif isinstance(value, Mapping):
            self._each(value)
            self._each(value.values())
            self._state(value, hidden=isinstance(value, dict) and kind is not dict)
        elif isinstance(value, (set, frozenset)):
            self._members(value)
        elif isinstance(value, (list, tuple)):
            self._each(value)
            self._state(value)
        elif isinstance(value, weakref.ref):
            self.add(value())
        else:
            self._state(value, hidden=True)

    def _members(self, values: Iterable[Any]) -> None:
        """Hash the members of a set separately and sort the hashes."""
        members = []
        for value in values:
            members.append(hasher := _Hasher())
            hasher.add(value)
            self.weights, self.complete = self.weights or hasher.weights, self.complete and hasher.complete
        self._put(*sorted(hasher.total.hexdigest() for hasher in members))

    def _state(self, value: Any, hidden: bool = False) -> None:
        """Hash an object's attributes. With `hidden`, also hash the state that pickle stores for types written in C."""
        own = {name: getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)}
        own |= getattr(value, "__dict__", {})
        skipped = {*(ORIGIN if _is_library(type(value)) else ()), *(MODULE if "_parameters" in own else ())}
        if type(value).__name__ == "SimpleTokenizer":  # of open_clip and clip: its cache holds the words seen so far
            skipped.add("cache")
        for name in sorted(own.keys() - skipped):
            self._put(name)
            self.add(own[name])
        if hidden and _has_hidden_state(type(value)):
            try:
                reduced = value.__reduce_ex__(4)
                pickled = [reduced] if isinstance(reduced, str) else list(reduced)
                pickled[3:5] = [list(one or ()) for one in pickled[3:5]]
            except Exception:  # an open file, a generator, a lock: each library raises its own error
                self._unknown(value)
            else:
                self._each(pickled)

    # -- code ----------------------------------------------------------------------------------------------------

    def _class(self, kind: type) -> None:
        """Hash a class's methods and bases. For a class that is not from a library, also hash its other attributes."""
        library = _is_library(kind)
        self._put("class", kind.__module__ if library else "", kind.__qualname__)
        for name, member in sorted(vars(kind).items()):
            special = name.startswith(("__", "_abc_")) or isinstance(member, _DESCRIPTORS)
            if isinstance(member, types.FunctionType) or not (library or special):
                self._put(name)
                self.add(member)
        if kind.__module__ != "builtins":
            self._each(base for base in kind.__bases__ if base is not object)

    def _code(self, code: types.CodeType) -> None:
        self._put(code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars)
        self._each(code.co_consts)

    def _function(self, function: types.FunctionType) -> None:
        """Hash a function's code. For a function that is not from a library, also hash its defaults, its closure and
        the globals it uses.
        """
        self._code(function.__code__)
        library = _is_library(function)
        for cell in function.__closure__ or ():
            try:
                if not library or isinstance(cell.cell_contents, types.FunctionType):  # a decorated function
                    self.add(cell.cell_contents)
            except ValueError:
                self._put("not filled yet")
        if not library:
            self._each([function.__defaults__, function.__kwdefaults__, vars(function)])
            code = list(_codes(function.__code__))
            loaded = {i.argval for one in code for i in dis.get_instructions(one) if i.opname == "LOAD_GLOBAL"}
            self._names(function.__globals__, loaded, {name for one in code for name in one.co_names})

    def _names(self, space: Mapping[str, Any], names: set[str], attributes: set[str]) -> None:
        """Hash the values of `names` in the namespace `space`. Modules that are not from a library are hashed only in
        part: the members whose names occur in a function's code (`attributes`).
        """
        for name in sorted(names & space.keys()):
            if (id(space), name) in self._named:
                continue
            self._named.add((id(space), name))
            self._put(name)
            if isinstance(space[name], types.ModuleType) and not _is_library(space[name]):
                self._names(vars(space[name]), attributes, attributes)
            else:
                self.add(space[name])


#: the types that Python puts into a class for slots and attributes
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def _is_library(thing: Any) -> bool:
    if isinstance(thing, types.FunctionType):  # a decorated function may carry the `__module__` of another
        name = thing.__globals__.get("__name__", "")
    else:
        name = thing.__name__ if isinstance(thing, types.ModuleType) else thing.__module__
    return str(name).partition(".")[0] in LIBRARIES


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of a function and of the functions nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _wrapped_in(value: Any) -> list[Any] | None:
    """Return the functions and values inside a method, a partial function, a property or a cached function. Return None
    for any other value.
    """
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        owner = getattr(value, "__self__", None)
        return [value.__qualname__, None if isinstance(owner, types.ModuleType) else owner]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if isinstance(value, (staticmethod, classmethod)) or type(value).__name__ == "_lru_cache_wrapper":
        return [value.__wrapped__]
    return None


def _slots(kind: type) -> list[str]:
    """Return the names of the attributes that objects of a class store in slots, outside of `__dict__`."""
    own = [vars(base) for base in kind.__mro__ if "__slots__" in vars(base)]
    return [name for space in own for name, member in space.items() if isinstance(member, types.MemberDescriptorType)]


def _has_hidden_state(kind: type) -> bool:
    """Return True if objects of a type contain more than their attributes, such as objects of types written in C."""
    pointers = len(_slots(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return bool(kind.__itemsize__) or kind.__basicsize__ > object.__basicsize__ + pointers * tuple.__itemsize__


def _settings(part: Any) -> dict[str, Any]:
    """Return the settings of a transformers tokenizer, configuration or image processor; empty for other objects."""
    backend = part if hasattr(part, "to_str") else getattr(part, "backend_tokenizer", None)
    if backend is not None or hasattr(part, "get_vocab"):
        settings = part.get_vocab() if backend is None else json.loads(backend.to_str())
        own = {name: getattr(part, name, None) for name in TOKENIZER}
        return {"own": own, **{k: v for k, v in settings.items() if k not in ("truncation", "padding")}}
    return plain_settings(part.to_dict()) if hasattr(part, "to_dict") else {}


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the entries in `ORIGIN`, which only say where the settings were loaded from."""
    return {k: plain_settings(v) if isinstance(v, Mapping) else v for k, v in settings.items() if str(k) not in ORIGIN}


# -- while a model is scored -----------------------------------------------------------------------------------------


@contextmanager
def ready_to_score(networks: Sequence[torch.nn.Module], place: Place | None = None) -> Iterator[None]:
    """During the block, put networks in eval mode and, if given, on the device `place`. Afterwards, restore their
    modes, weights and buffers.
    """
    layers = [layer for network in networks for layer in network.modules()]
    modes = [(layer, layer.training) for layer in layers]
    buffers = [(layer, name, value) for layer in layers for name, value in layer._buffers.items()]
    weights = [(weight, weight.data) for network in networks for weight in network.parameters()]
    try:
        for network in networks:
            network.eval()
            first = next(network.parameters(), None)
            here = ("cpu", None) if first is None else (first.device.type, first.dtype)
            if place is not None and here != (place.torch_device.type, place.torch_dtype):
                network.to(place.torch_device, place.torch_dtype)
        yield
    finally:
        for layer, training in modes:
            layer.training = training
        for weight, data in weights:
            if weight.data is not data:
                weight.data = data
        for layer, name, value in buffers:
            layer._buffers[name] = value


def own_place(networks: Iterable[torch.nn.Module]) -> tuple[str, str]:
    """Return the device and dtype of the first weights found. Without weights, return CPU and float32."""
    for network in networks:
        for weight in network.parameters():
            if weight.is_floating_point():
                return str(weight.device), str(weight.dtype).removeprefix("torch.")
    return "cpu", "float32"
