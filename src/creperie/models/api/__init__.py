"""Models behind an OpenAI-compatible endpoint: hosted, vLLM, Ollama, llama.cpp.

Every answer is kept on disk by the content of its request, so nothing is paid twice and a killed run goes on where it
stopped. Keys come from the environment alone and are written nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from creperie.models.place import Place
from creperie.models.protocols import Model
from creperie.models.uri import ModelURI


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    from creperie.models.api.adapter import ApiModel, endpoint_of

    return ApiModel(endpoint_of(uri, options))


__all__ = ["load"]
