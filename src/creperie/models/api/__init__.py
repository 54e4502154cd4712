"""Models behind an OpenAI-compatible endpoint: a hosted service, vLLM, Ollama or llama.cpp.

Every answer is cached on disk under a hash of its request, so that nothing is paid for twice and an interrupted run can
be resumed. API keys are read from the environment only and are never written anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from creperie.models.answering import AnswerSettings
from creperie.models.device import Place
from creperie.models.protocols import Model
from creperie.models.uri import ModelURI, refuse_unused


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    from creperie.models.api.adapter import ApiModel
    from creperie.models.api.endpoint import endpoint_of

    model = ApiModel(endpoint_of(uri, options), AnswerSettings.of(options, where=str(uri)))
    if options["score"] is None:
        used = set(options) - {"prompt", "by", "order", "shots", "samples", "combine"}
        refuse_unused(uri.options, used, where=str(uri), what="a model without ?score=")
        return model
    if options["by"] == "likelihood" or options["score"] in ("vqa", "visualgpt", "likelihood"):
        from creperie.models.api.likely import by_likelihood

        refuse_unused(
            [n for n in ("samples", "combine", "max_tokens") if n in uri.options],
            (),
            where=str(uri),
            what="likelihoods",
        )
        return by_likelihood(model, options, str(uri))
    from creperie.models.generated_choice import asking

    return asking(model, options, str(uri))


__all__ = ["load"]
