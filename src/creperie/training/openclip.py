"""Training of open_clip models. They are saved as folders that `open_clip:local-dir:FOLDER` loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from creperie.core import UsageError, write_json
from creperie.models import OPENCLIP_PLACES, OPENCLIP_RANDOM, DualEncoder, parse_uri
from creperie.training.architecture import save_weights
from creperie.training.dual import DualStudent

CONFIG, WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"
#: tokenizers that such a folder can restore: open_clip's own, and those of transformers, saved beside the weights
TOKENIZERS = ("SimpleTokenizer", "HFTokenizer")


class OpenClipStudent(DualStudent):
    """An open_clip model in training. The library's own modules are trained, without conversion."""

    kind = "open_clip:local-dir"

    def __init__(self, encoder: DualEncoder, config: dict[str, Any]) -> None:
        super().__init__(encoder)
        self._config = config

    def is_text(self, name: str) -> bool:
        """Return whether a weight belongs to the text tower. All weights do, except the image tower's and the
        temperature.
        """
        return not name.startswith(("model.visual.", "model.logit_"))

    def save(self, folder: Path) -> None:
        model = self.network.merged()
        save_weights(model, folder / WEIGHTS)
        write_json(
            folder / CONFIG,
            {"model_cfg": self._config, "preprocess_cfg": dict(model.visual.preprocess_cfg)},
            plain=True,
        )
        tokenizer = self.encoder.tokenizer.tokenizer
        if hasattr(tokenizer, "save_pretrained"):
            tokenizer.save_pretrained(str(folder))


def is_untrained(uri: str) -> bool:
    """Return whether a URI names an architecture with random weights.

    >>> is_untrained("open_clip:RN50/random?seed=3"), is_untrained("open_clip:RN50-quickgelu/openai")
    (True, False)
    """
    return uri.startswith("open_clip:") and parse_uri(uri).name.endswith(f"/{OPENCLIP_RANDOM}")


def open_open_clip(uri: str, seed: int) -> OpenClipStudent:
    """Return the model of an `open_clip:` URI, ready to be trained; `seed` determines random weights."""
    from creperie.models import load_model

    parsed = parse_uri(uri)
    if is_untrained(uri) and "seed" not in parsed.options:
        uri += f"{'&' if parsed.options else '?'}seed={seed}"
    encoder = load_model(uri, device="cpu")
    assert isinstance(encoder, DualEncoder)
    import open_clip

    name = parsed.name
    architecture = name if name.startswith(OPENCLIP_PLACES) else name.partition("/")[0]
    tokenizer = type(encoder.tokenizer.tokenizer).__name__
    if tokenizer not in TOKENIZERS:
        raise UsageError(
            f"a {tokenizer} cannot be saved beside the weights, so the trained model could not be read again",
            where=uri,
            hint="name the same model as hf:FOLDER, or one with another tokenizer",
        )
    encoder.model.requires_grad_(True)
    return OpenClipStudent(encoder, dict(open_clip.get_model_config(architecture)))
