"""A model without its weights: whether its name, architecture and options fit, before anything is downloaded."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from creperie.core import CreperieError, ModelError, packaged_toml, write_json
from creperie.models.hf.folder import quiet_libraries
from creperie.models.registry import KINDS
from creperie.models.uri import ModelURI, parse_uri, read_options

#: the class of a kind, where the architecture does not decide
CLASSES = {"vlm": "AutoModelForImageTextToText", "lm": "AutoModelForCausalLM", "st": "AutoModel"}


def build_empty(uri: str) -> str:
    """Build the model that a URI names without memory for its weights, by the library's default configuration of its
    architecture; wrong names raise. Returns why that could not be tried, and nothing where it was or need not be."""
    parsed = parse_uri(uri)
    if parsed.kind == "open_clip":
        return _open_clip(parsed)
    if parsed.kind not in ("hf", *CLASSES) or parsed.name.startswith("pkg:"):
        return ""
    known = _known()
    model_type = next((kind for kind, names in known["types"].items() if parsed.name in names), "")
    if not model_type:
        return "its configuration is not here, so its architecture could not be checked"
    import torch
    import transformers

    name = known["classes"].get(parsed.name) or CLASSES.get(parsed.kind) or _class_of(parsed, model_type)
    kind: Any = getattr(transformers, name)
    config = transformers.AutoConfig.for_model(model_type)
    with quiet_libraries(), torch.device("meta"):
        try:
            _ = kind.from_config(config) if name.startswith("Auto") else kind(config)
        except Exception as e:
            reason = " ".join(str(e).split())[:160]
            raise ModelError(f"{name} cannot be built for {model_type} ({reason})", where=uri) from e
    return ""


def _class_of(uri: ModelURI, model_type: str) -> str:
    """Return the class that the adapter of an `hf:` model uses."""
    from creperie.models.hf.families import FAMILIES
    from creperie.models.hf.load import _choose
    from creperie.models.hf.matching import FUSERS, MATCHERS
    from creperie.models.hf.text import encoder_class

    score = uri.options.get("score")
    _choose(model_type, score, str(uri))
    if score in ("itm", "fused"):
        return str((FUSERS if score == "fused" else MATCHERS)[model_type].model_class)
    if model_type in FAMILIES:
        return str(FAMILIES[model_type].model_class)
    return str(encoder_class(model_type).__name__)


def _open_clip(uri: ModelURI) -> str:
    import torch

    from creperie.models.openclip import _library, _named, _quick_gelu

    library = _library()
    options = read_options(uri.options, KINDS["open_clip"].options, where=str(uri))
    architecture, source = _named(library, uri, options)
    _quick_gelu(library, architecture, source, options["activation"], str(uri))
    text = (library.get_model_config(architecture) or {}).get("text_cfg", {})
    tower, own = text.get("hf_model_name"), {}
    if tower and tower not in _known()["text_towers"]:
        return f"its text tower's configuration ({tower}) is not here, so only its name was checked"
    try:
        with torch.device("meta"), TemporaryDirectory() as folder, quiet_libraries():
            if tower:  # transformers asks the hub for the configuration of a name, but reads that of a folder
                write_json(Path(folder) / "config.json", _known()["text_towers"][tower])
                own = {"text_cfg": {**text, "hf_model_name": folder, "hf_model_pretrained": False}}
            library.create_model(architecture, pretrained=None, device="meta", **own)
    except CreperieError:
        raise
    except Exception as e:
        raise ModelError(f"open_clip cannot build {architecture} ({' '.join(str(e).split())[:160]})") from e
    return ""


@cache
def _known() -> dict[str, Any]:
    return packaged_toml("creperie.models", "architectures.toml")
