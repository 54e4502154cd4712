"""Serve a model from another Python environment. A `process:` model URI starts this file with the Python of that
environment.

This file needs Python 3.8, numpy and Pillow, and nothing of creperie. It reads requests from standard input and writes
results to standard output; images come through a file that both processes map into memory. It opens no port, and
nothing is pickled. A message is a line of JSON, followed by the bytes of an array if the line has the key `shape`.

The module that is served has a function `load()`, which returns an object with any of these methods:

- `encode_image(images)`, `encode_text(captions)`: one vector per item
- `score(image, captions)`: one number per caption; `score_texts(captions)`: the same without an image
- `generate(prompts)`: one text per prompt; a prompt is a dict with `messages`, `images`, `temperature`, `max_tokens`
  and `seed`

The object may have a text attribute `fingerprint` that identifies its weights. Without it, the object's arrays and
those of its torch modules are hashed. If the object holds anything besides these and plain values, its results are
never taken from the store.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import mmap
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
from PIL import Image

#: what is asked for → the methods that answer it
METHODS = {
    "encode_images": ("encode_images", "encode_image"),
    "encode_texts": ("encode_texts", "encode_text"),
    "score_pairs": ("score_pairs", "score"),
    "score_texts": ("score_texts",),
    "generate": ("generate",),
}
MAPPED: dict[int, mmap.mmap] = {}  #: the file of images in memory, by its size
VERSIONS = ("numpy", "PIL", "torch", "transformers")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Serve a model over standard input and output.")
    parser.add_argument("--module", required=True, help="a module or a Python file")
    parser.add_argument("--object", default="load", help="the function in it that returns the model")
    parser.add_argument("--images", required=True, help="the file through which images come")
    asked = parser.parse_args(arguments)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the model prints goes to standard error
    sys.path[0] = str(Path.cwd())  # instead of the folder of this file
    try:
        module = find_module(asked.module)
        model = getattr(module, asked.object)()
        send(replies, hello(model, module))
    except Exception as e:
        send(replies, failure(e))
        return
    for line in iter(sys.stdin.buffer.readline, b""):
        try:
            answer(replies, model, json.loads(line.decode()), asked.images)
        except Exception as e:
            send(replies, failure(e))


def find_module(name: str) -> ModuleType:
    """Return the module with this name, or the module in the file with this path."""
    if not name.endswith(".py"):
        return importlib.import_module(name)
    sys.path.insert(1, str(Path(name).resolve().parent))
    return importlib.import_module(Path(name).stem)


def hello(model: Any, module: ModuleType) -> dict[str, Any]:
    """Return what the model can do, a hash of its code and weights, and the versions of the packages that it uses."""
    digest = hashlib.sha256(f"{type(model).__qualname__} {getattr(model, 'fingerprint', '')}".encode())
    digest.update(Path(str(module.__file__)).read_bytes())
    if not hasattr(model, "fingerprint"):
        for own, part in [("", model)] + sorted(getattr(model, "__dict__", {}).items()):
            if callable(getattr(part, "state_dict", None)):
                for name, value in sorted(part.state_dict().items()):
                    digest.update(name.encode() + np.ascontiguousarray(as_array(value)).tobytes())
            elif isinstance(part, np.ndarray) or hasattr(part, "detach"):
                digest.update(own.encode() + np.ascontiguousarray(as_array(part)).tobytes())
            elif part is None or isinstance(part, (str, int, float)):
                digest.update(f"{own}={part!r}".encode())
            elif own:  # it may hold weights that cannot be seen
                digest.update(os.urandom(16))
    loaded = {name: str(getattr(sys.modules.get(name), "__version__", "")) for name in VERSIONS if name in sys.modules}
    can = [name for name, own in METHODS.items() if any(callable(getattr(model, m, None)) for m in own)]
    return {"methods": can, "weights": digest.hexdigest(), "versions": {"python": platform.python_version(), **loaded}}


def answer(replies: IO[bytes], model: Any, request: dict[str, Any], path: str) -> None:
    """Call the method of the model that the request names, and write the result to `replies`. `path` is the file that
    holds the pixels of the request's images.
    """
    names = METHODS[request["do"]]
    method = next(getattr(model, name) for name in names if callable(getattr(model, name, None)))
    images = read_images(path, request.get("images", []))
    if request["do"] == "generate":
        rest = iter(images)
        prompts = [dict(p, images=[next(rest) for _ in range(p["images"])]) for p in request["prompts"]]
        send(replies, {"texts": [str(text) for text in method(prompts)]})
        return
    if request["do"] == "encode_images":
        result = in_one_call(method, images)
    elif request["do"] == "encode_texts":
        result = in_one_call(method, request["texts"])
    elif request["do"] == "score_texts":
        result = as_array(method(request["texts"]))
    else:
        result = as_array(method(images[0], request["texts"]))
    result = np.ascontiguousarray(result, "<f4")
    send(replies, {"shape": list(result.shape)}, result.tobytes())


def in_one_call(method: Callable[[Any], Any], items: Sequence[Any]) -> np.ndarray:
    """Return one vector per item. If the method accepts several items, it is called once with all of them; otherwise it
    is called once per item.
    """
    try:
        vectors = as_array(method(items))
        if vectors.ndim > 1 and len(vectors) == len(items):
            return vectors
    except (AttributeError, TypeError, ValueError):
        if not items:
            raise
    return np.stack([as_array(method(item)).reshape(-1) for item in items])


def read_images(path: str, sizes: Iterable[tuple[int, int]]) -> list[Image.Image]:
    """Return copies of the images that are stored one after another in a file. `sizes` holds the (width, height) of
    each.
    """
    images: list[Image.Image] = []
    if not sizes:
        return images
    at, size = 0, Path(path).stat().st_size
    if size not in MAPPED:  # it grew
        with Path(path).open("rb") as file:
            MAPPED[size] = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    for width, height in sizes:
        end = at + 3 * width * height
        images.append(Image.frombytes("RGB", (width, height), MAPPED[size][at:end]))
        at = end
    return images


def as_array(values: Any) -> np.ndarray:
    """Return `values` as an array. They may be numbers, tensors or lists of either."""
    if isinstance(values, (list, tuple)):
        return np.asarray([as_array(value) for value in values])
    return np.asarray(values.detach().float().cpu() if hasattr(values, "detach") else values)


def failure(error: Exception) -> dict[str, str]:
    return {"error": f"{type(error).__name__}: {error}"}


def send(replies: IO[bytes], message: dict[str, Any], payload: bytes = b"") -> None:
    replies.write(json.dumps(message).encode() + b"\n" + payload)
    replies.flush()


if __name__ == "__main__":
    main()
