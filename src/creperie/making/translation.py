"""The model kind `mt:`, back-translation by two MarianMT models, into another language and back.

`mt:Helsinki-NLP/opus-mt-en-fr?back=Helsinki-NLP/opus-mt-fr-en`; both are names on the hub or folders.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from creperie.core import UsageError
from creperie.models import Fingerprint, ModelURI, Place, Prompt, hash_state, model_folder, quiet_libraries

#: Number of sentences per batch, and maximum tokens of a translation.
ROWS, LONGEST = 16, 96


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> BackTranslator:
    """Return the back-translator at a URI, on the device and with the precision of `place`. The option `back` names the
    model that translates back.
    """
    if "back" not in options:
        hint = "write mt:Helsinki-NLP/opus-mt-en-fr?back=Helsinki-NLP/opus-mt-fr-en"
        raise UsageError("the model that translates back is missing", where=str(uri), hint=hint)
    folders = [model_folder(name, uri=str(uri)) for name in (uri.name, str(options["back"]))]
    return BackTranslator(str(uri), folders, place)


class BackTranslator:
    """A model that rewrites sentences. As a generator, it back-translates the last message of a prompt."""

    def __init__(self, uri: str, folders: Sequence[Path], place: Place) -> None:
        from transformers import MarianMTModel, MarianTokenizer

        with quiet_libraries(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
            self.tokenizers = [MarianTokenizer.from_pretrained(folder) for folder in folders]
            models = [MarianMTModel.from_pretrained(folder, dtype=place.dtype) for folder in folders]
        self.models = [model.to(place.device).eval() for model in models]
        weights = "+".join(hash_state(model.state_dict()) for model in self.models)
        self.fingerprint = Fingerprint(uri, "MarianMTModel", weights, options={"beams": 4})

    def rewritten(self, texts: Sequence[str], count: int = 1) -> list[list[str]]:
        """Return, for each text, up to `count` back-translations of its best translation, the most likely first."""
        across = [texts_of_one[0] for texts_of_one in self._translated(0, texts, 1)]
        return self._translated(1, across, count)

    def generate(self, prompts: Sequence[Prompt]) -> list[str]:
        return [texts_of_one[0] for texts_of_one in self.rewritten([prompt.messages[-1][1] for prompt in prompts])]

    def _translated(self, which: int, texts: Sequence[str], count: int) -> list[list[str]]:
        import torch

        model, tokenizer = self.models[which], self.tokenizers[which]
        made: list[str] = []
        for k in range(0, len(texts), ROWS):
            batch = tokenizer(list(texts[k : k + ROWS]), return_tensors="pt", padding=True).to(model.device)
            with torch.inference_mode():
                ids = model.generate(
                    **batch, num_beams=4, num_return_sequences=count, max_length=None, max_new_tokens=LONGEST
                )
            made += tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [made[k : k + count] for k in range(0, len(made), count)]
