"""A stand-in for a language model. It answers only prompts for richer captions (`llm:enrich`).

A recipe can name it as `lm:pkg:creperie.testing.scripted_writer` and can then be tried without a language model. The
stand-in understands no language: every caption gets the same details, which are true of all images of the built-in
world.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from creperie.plugin import Fingerprint, Prompt, UsageError

DETAILS = ", drawn in flat colours with clean edges on one plain background"


class ScriptedWriter:
    """A text generator that answers only the prompts of `llm:enrich`."""

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint("lm:pkg:creperie.testing.scripted_writer", "scripted, no language model", DETAILS)

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return [self._answer(prompt.messages[-1][1]) for prompt in prompts]

    def _answer(self, asked: str) -> str:
        given = asked.rpartition("Input: ")[2].partition("\n")[0]
        if '"enriched"' not in asked or not given.startswith('{"caption"'):
            raise UsageError("the scripted writer only enriches captions", hint="name a language model")
        caption = str(json.loads(given)["caption"])
        end = "." if caption.endswith(".") else ""
        return json.dumps({"enriched": caption.removesuffix(".") + DETAILS + end})


def language_model() -> ScriptedWriter:
    """Return the scripted model. A model URI `lm:pkg:MODULE` calls the function with this name if MODULE has no
    weights.
    """
    return ScriptedWriter()
