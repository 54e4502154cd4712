"""GGUF files. They are converted to ordinary model folders (dequantised once, saved as safetensors, and cached by the
file's hash) or used as they are by llama.cpp, which generates text.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from creperie.core import ModelError, UsageError, cache_home, remembered_sha256
from creperie.models.device import Place
from creperie.models.hf.folder import quiet_libraries
from creperie.models.hub import model_folder, no_package
from creperie.models.protocols import Fingerprint, Prompt
from creperie.models.thoughts import reply_of
from creperie.models.uri import ModelURI, refuse_unused


def language_model_folder(name: str, *, uri: str, revision: str | None = None) -> Path:
    """Return the folder of a language model. `name` is a folder, the name of a repository on the hub, a GGUF file, or
    `pkg:MODULE` for a package that contains a GGUF file. A GGUF file is converted into a folder.
    """
    if name.startswith("pkg:") or name.endswith(".gguf"):
        return converted(gguf_file(name, uri), uri)
    return model_folder(name, uri=uri, revision=revision)


def gguf_file(name: str, uri: str) -> Path:
    """Return the path of a GGUF file. `name` is this path or `pkg:MODULE`, where MODULE is the package that contains
    the file. The package is not imported.
    """
    if not name.startswith("pkg:"):
        if not (file := Path(name).expanduser()).is_file():
            raise ModelError(f"there is no file {file}", where=uri, hint="check the path")
        return file
    module = name.removeprefix("pkg:")
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise no_package(module, uri)
    files = sorted(p for place in spec.submodule_search_locations for p in Path(place).rglob("*.gguf"))
    if len(files) != 1:
        what = f"package {module!r} has {len(files)} GGUF files, expected one"
        raise ModelError(what, where=uri, hint="give the path of the file instead")
    return files[0]


def no_llama_cpp(uri: str) -> UsageError:
    """Return the error for `engine=llama.cpp` if its library is missing. No extra of creperie installs it."""
    return UsageError(
        "this engine needs the package llama-cpp-python, which is not installed",
        where=uri,
        hint="pip install llama-cpp-python",
    )


def converted(file: Path, uri: str) -> Path:
    """Return the folder made from a GGUF file. It is made on first use, in a minute or two per billion weights, and
    cached.
    """
    # The weights are float32 safetensors, which are memory-mapped in seconds.
    folder = cache_home() / "gguf" / remembered_sha256(file)[:32]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"preparing the weights of {uri}: this happens once, and may take a minute or two", file=sys.stderr)
    draft = Path(tempfile.mkdtemp(prefix=".gguf.", dir=folder.parent))
    try:
        _convert(file, draft, uri)
        try:
            draft.replace(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _convert(file: Path, folder: Path, uri: str) -> None:
    """Convert a GGUF file to a folder."""
    # transformers does not save a model that was read from GGUF, so the weights are moved into a new model of the same
    # class.
    import gguf  # noqa: F401  (transformers needs it and says so less clearly)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with quiet_libraries(), redirect_stderr(io.StringIO()):  # these progress bars are not transformers' own
            read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype="float32")
            tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as e:
        what = f"cannot be read as a GGUF model ({' '.join(str(e).split())[:160]})"
        raise ModelError(what, where=uri, hint="download it again, or name another model") from e
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.device("meta"):  # a second copy of the weights would double the memory
        fresh = type(read)(config)
    fresh.load_state_dict(read.state_dict(), assign=True)
    fresh.tie_weights()
    with quiet_libraries():
        fresh.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


# -- llama.cpp ---------------------------------------------------------------------------------------------------------
#
# The context is kept between prompts: only the part of a prompt that differs from the previous prompt is read.

CONTEXT = 8192  #: tokens of prompt and answer, unless `max_length` says otherwise


@dataclass(eq=False)
class LlamaCpp:
    """A generator that runs llama.cpp. A grammar enforces the schema of an answer, if there is one."""

    model: Any
    fingerprint: Fingerprint

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return [self._generate_one(prompt) for prompt in prompts]

    def _generate_one(self, prompt: Prompt) -> str:
        schema = {"type": "json_object", "schema": json.loads(prompt.schema)["schema"]} if prompt.schema else None
        try:
            answer = self.model.create_chat_completion(
                [{"role": role, "content": text} for role, text in prompt.messages],
                temperature=prompt.temperature,
                top_p=prompt.top_p,
                min_p=prompt.min_p,
                top_k=0,
                seed=prompt.seed,
                max_tokens=prompt.max_tokens,
                response_format=schema,
            )
        except ValueError as e:  # the prompt is longer than the context, or there is no chat template
            raise ModelError(
                f"llama.cpp cannot answer this prompt: {e}",
                where=self.fingerprint.uri,
                hint="shorten the prompt, or name a chat model",
            ) from e
        choice = answer["choices"][0]
        return reply_of(choice["message"]["content"] or "", cut=choice["finish_reason"] == "length")


def load_llama(uri: ModelURI, options: Mapping[str, Any], place: Place) -> LlamaCpp:
    text = str(uri)
    refuse_unused(uri.options, ("engine", "max_length"), where=text, what="engine=llama.cpp")
    file = gguf_file(uri.name, text)
    context, layers = options["max_length"] or CONTEXT, 0 if place.device == "cpu" else -1
    threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    settings = {"n_ctx": context, "n_gpu_layers": layers, "n_threads": threads, "n_threads_batch": threads}
    try:
        library = import_module("llama_cpp")
        model = library.Llama(str(file), **settings, verbose=False)
    except ModuleNotFoundError as e:
        raise no_llama_cpp(text) from e
    except ValueError as e:
        raise ModelError(
            f"llama.cpp cannot read this file ({e})", where=text, hint="download the file again, or update llama.cpp"
        ) from e
    adapter = LlamaCpp(
        model,
        Fingerprint(
            uri=text,
            architecture=f"llama.cpp {library.__version__}",
            weights=remembered_sha256(file),
            dtype="gguf",
            context=context,
        ),
    )
    weakref.finalize(adapter, model.close)  # also at exit, before modules are gone, which the library's own way needs
    return adapter
