"""Models behind an OpenAI-compatible endpoint: hosted, vLLM, Ollama, llama.cpp.

Every answer is kept on disk by the content of its request, so nothing is paid twice and a killed run goes on where it
stopped. Keys come from the environment alone and are written nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from creperie.models.device import Place
from creperie.models.protocols import Model
from creperie.models.uri import ModelURI, refuse_unused


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    from creperie.models.api.adapter import ApiModel
    from creperie.models.api.endpoint import endpoint_of

    model = ApiModel(endpoint_of(uri, options))
    if options["score"] is None:
        refuse_unused(
            uri.options,
            set(options) - {"prompt", "by", "order", "shots"},
            where=str(uri),
            what="a model without ?score=",
        )
        return model
    from creperie.models.generated_choice import asking

    scorer: Model = asking(model, options, str(uri))
    return scorer


__all__ = ["load"]
