"""Text generation by llama.cpp from a GGUF file. The file is used as it is, without dequantising.

The context is kept between prompts: only the part of a prompt that differs from the previous prompt is read.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from creperie.core import ModelError, remembered_sha256
from creperie.models.device import Place
from creperie.models.lm.gguf import gguf_file, no_llama_cpp
from creperie.models.protocols import Fingerprint, Prompt
from creperie.models.thoughts import reply_of
from creperie.models.uri import ModelURI, refuse_unused

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
