"""The parameters that a server does not accept. They are learned from its error messages, once per server and model,
and cached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from creperie.core import write_text

#: parameters that a request can do without or that have another name; None: the server's own value is used instead
OTHER_FORMS = {
    "max_tokens": "max_completion_tokens",
    "response_format": "json_object",
    "top_p": None,
    "min_p": None,
    "temperature": None,
    "seed": None,
}
#: how servers say that they do not take a parameter, or not with this model
_REFUSES = re.compile(
    r"unsupported|not supported|not support|unrecogni[sz]ed|unknown (?:name|parameter|field|argument)|not permitted"
    r"|extra.?forbidden|incompatible|not allowed|deprecated|cannot both|only be set|unexpected|json_object"
)


class AcceptedForms:
    """The form in which a server accepts requests for a model. `refused` maps each rejected parameter to the form that
    replaces it, or to "" if it must be left out.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.path, self.model = folder / "refused.json", model
        self.refused: dict[str, str] = self._read().get(model, {})

    def _read(self) -> dict[str, dict[str, str]]:
        with suppress(OSError, ValueError):
            known = json.loads(self.path.read_text(encoding="utf-8"))
            return known if isinstance(known, dict) else {}
        return {}

    def learn(self, refusal: str, sent: Mapping[str, Any]) -> bool:
        """Record the parameter that an error message rejects, so that later requests avoid it. `sent` is the request.

        Return False if the message rejects no parameter that can be replaced or left out.
        """
        text = refusal.replace("_", "").lower()  # some servers write maxTokens
        if not _REFUSES.search(text.replace("jsonobject", "json_object")):
            return False
        for name, other in OTHER_FORMS.items():
            names = [name, *([other] if other else [])]
            if name in sent and any(re.search(rf"(?<![a-z]){n.replace('_', '')}(?![a-z])", text) for n in names):
                instead = other if other and other.replace("_", "") in text else ""
                if self.refused.get(name) in (instead, ""):
                    continue  # it is sent in that form already, or not at all
                self.refused[name] = instead
                with suppress(OSError):
                    write_text(self.path, json.dumps(self._read() | {self.model: self.refused}))
                return True
        return False

    def form(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request in the form that its server accepts."""
        sent = dict(request)
        for name in self.refused.keys() & sent.keys():
            instead, value = self.refused[name], sent.pop(name)
            if name == "response_format" and instead:
                sent[name] = {"type": instead, "schema": value["json_schema"]["schema"]}
            elif instead:
                sent[instead] = value
        return sent

    @property
    def notes(self) -> list[str]:
        """Sentences that name the parameters that were left out because the server refuses them."""
        own = sorted(name for name, instead in self.refused.items() if not instead)
        return [f"the server does not accept {', '.join(own)}: its own choice is used"] if own else []
