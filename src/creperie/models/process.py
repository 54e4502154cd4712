"""`process:PYTHON?module=…`: a model that runs in another Python environment, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import mmap
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import ModelError, UsageError, one_line
from creperie.models.device import Place
from creperie.models.protocols import Model, Prompt
from creperie.models.uri import ModelURI
from creperie.models.wrapping import BUILDERS, WrappedModel

TRIES = 3  #: times that a request is sent; the process is started again if it dies
SHARED_MEMORY = Path("/dev/shm")


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    """Start the process and return its model."""
    if not options["module"]:
        raise UsageError("no module given", where=uri, hint="add ?module=FILE.py, a file with a function load()")
    served = ProcessModel(uri.name, options["module"], options["object"] or "load", str(uri))
    hello = served.start()
    model: Any = BUILDERS["object"](WrappedModel(served, plugin=str(uri)), hello["weights"], place)
    model.fingerprint = replace(model.fingerprint, preprocessing={"versions": hello["versions"]})
    if "generate" in hello["methods"]:
        model.generate = served.generated
    return model


class ProcessModel:
    """A model that runs in another process. It has the same methods as the model there. Requests are sent one at a
    time.
    """

    def __init__(self, python: str, module: str, function: str, uri: str) -> None:
        self.uri = uri
        folder = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        self.images = tempfile.NamedTemporaryFile(prefix="creperie-", dir=folder)  # noqa: SIM115
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        serve = str(Path(__file__).parents[1] / "serve.py")
        self.command = [python, serve, "--module", module, "--object", function, "--images", self.images.name]
        self.lock = threading.Lock()
        self.memory: Any = b""

    def start(self) -> dict[str, Any]:
        """Start the process and return its first message."""
        try:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=self.errors)
        except OSError as e:
            what = f"{self.command[0]} cannot be started: {e.strerror}"
            raise ModelError(what, where=self.uri, hint="check the path of the Python interpreter in the URI") from e
        assert self.process.stdin
        assert self.process.stdout
        self.requests, self.replies = self.process.stdin, self.process.stdout
        weakref.finalize(self, _end, self.process)
        try:
            hello, _ = self._reply()
        except EOFError as e:
            raise self._died() from e
        methods = {
            "encode_images": lambda images: self._results("encode_images", len(images), (), images),
            "encode_texts": lambda texts: self._results("encode_texts", len(texts), texts),
            "score_pairs": lambda image, texts: self._results("score_pairs", len(texts), texts, [image]),
            "score_texts": lambda texts: self._results("score_texts", len(texts), texts),
        }
        for name in methods.keys() & hello["methods"]:
            setattr(self, name, methods[name])
        return hello

    def generated(self, prompts: Sequence[Prompt]) -> list[str]:
        """Return one answer per prompt."""
        asked = [
            {"messages": p.messages, "images": len(p.images), "temperature": p.temperature}
            | {"max_tokens": p.max_tokens, "seed": p.seed}
            for p in prompts
        ]
        reply, _ = self._ask({"do": "generate", "prompts": asked}, [i for p in prompts for i in p.images])
        return self._one_each(reply["texts"], len(prompts))

    def _results(self, do: str, count: int, texts: Sequence[str], images: Sequence[Image.Image] = ()) -> Any:
        """Return the `count` results of the method `do` of the model."""
        return self._one_each(self._ask({"do": do, "texts": list(texts)}, images)[1], count)

    def _one_each(self, results: Any, count: int) -> Any:
        if len(results) != count:
            what = f"the model returned {len(results)} results for {count} inputs"
            raise ModelError(what, where=self.uri, hint="return one result per input")
        return results

    def _ask(self, request: dict[str, Any], images: Sequence[Image.Image] = ()) -> tuple[dict[str, Any], np.ndarray]:
        """Return the reply to a request. If the process has died, start it again and repeat the request."""
        with self.lock:
            request["images"] = self._share(images)
            for left in reversed(range(TRIES)):
                try:
                    self.requests.write(json.dumps(request).encode() + b"\n")
                    self.requests.flush()
                    return self._reply()
                except (BrokenPipeError, EOFError) as e:
                    if not left:
                        raise self._died() from e
                    self.start()
        raise AssertionError

    def _share(self, images: Sequence[Image.Image]) -> list[tuple[int, int]]:
        """Write the pixels of images into the file that both processes memory-map. Return the sizes of the images."""
        size = sum(3 * image.width * image.height for image in images)
        if size > len(self.memory):
            self.images.truncate(size)
            self.memory = mmap.mmap(self.images.fileno(), size)
        at = 0
        for image in images:
            data = (image if image.mode == "RGB" else image.convert("RGB")).tobytes()
            self.memory[at : at + len(data)] = data
            at += len(data)
        return [image.size for image in images]

    def _reply(self) -> tuple[dict[str, Any], np.ndarray]:
        line = self.replies.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        reply = json.loads(line)
        if "error" in reply:
            what = f"the model fails in its own process: {one_line(reply['error'])}"
            raise ModelError(what, where=self.uri, hint="run its module by hand to see where it fails")
        shape = reply.get("shape", [0])
        size = 4 * int(np.prod(shape))
        payload = self.replies.read(size)
        if len(payload) < size:
            raise EOFError
        return reply, np.frombuffer(payload, "<f4").reshape(shape)

    def _died(self) -> ModelError:
        code = self.process.wait()
        self.errors.seek(0)
        last = self.errors.read().decode(errors="replace").strip().splitlines()[-1:]
        what = f"the model's process ended with code {code}: {' '.join(last)}"
        return ModelError(what, where=self.uri, hint="run its module by hand to see where it fails")


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        process.kill()
