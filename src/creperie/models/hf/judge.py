"""Networks that judge captions. Each consists of a transformers model and its tokenizer, and gives one number per
caption.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creperie.core import missing_extra
from creperie.models.device import Place, exact_float32, find_place
from creperie.models.hf.folder import Folder
from creperie.models.hub import model_folder
from creperie.models.protocols import Fingerprint
from creperie.models.uri import parse_uri


@dataclass(frozen=True)
class LoadedNetwork:
    """A network with its tokenizer, its device and precision, and the folder it was loaded from."""

    model: Any
    tokenizer: Any
    place: Place
    folder: Folder

    def read(self, *texts: Sequence[str], longest: int | None = None) -> Any:
        """Return texts, or pairs of texts, as padded inputs for the network, cut to `longest` tokens."""
        tokens = self.tokenizer(
            *map(list, texts), return_tensors="pt", padding=True, truncation=True, max_length=longest
        )
        return tokens.to(self.place.torch_device)

    def __call__(self, tokens: Any) -> Any:
        with exact_float32():
            return self.model(**tokens)

    def described(self, architecture: str, context: int | None) -> Fingerprint:
        return Fingerprint(
            uri=self.folder.uri,
            architecture=architecture,
            weights=self.folder.weights(),
            dtype=self.place.dtype,
            context=context,
        )


def read_network(uri: str, model_class: str) -> LoadedNetwork:
    """Load a network of the transformers class `model_class`; `uri` is `hf:owner/name` or `hf:/folder`."""
    try:
        import transformers
    except ImportError as e:
        raise missing_extra(e.name or "transformers", "models") from e
    place = find_place()
    folder = Folder(model_folder(parse_uri(uri).name, uri=uri), uri)
    tokenizer = folder.tokenizer()
    return LoadedNetwork(folder.model(getattr(transformers, model_class), place), tokenizer, place, folder)


@dataclass(frozen=True)
class Judge:
    """A `TextScorer` that computes one number per caption, batch by batch."""

    network: LoadedNetwork
    fingerprint: Fingerprint
    of_batch: Callable[[LoadedNetwork, Sequence[str]], Any]
    batch: int = 64

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        pieces = (texts[i : i + self.batch] for i in range(0, len(texts), self.batch))
        parts = [self.of_batch(self.network, piece).float().cpu().numpy() for piece in pieces]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)
