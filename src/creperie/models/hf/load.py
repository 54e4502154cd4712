"""From a `hf:` URI to a model: look at the configuration, choose the adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from creperie.errors import ModelError
from creperie.models.captions import caption_rule
from creperie.models.hf.dual import DualEncoder
from creperie.models.hf.families import FAMILIES, Family
from creperie.models.hf.folder import Folder
from creperie.models.hub import model_folder
from creperie.models.pixels import pixels_of
from creperie.models.place import Place
from creperie.models.protocols import Fingerprint, Model
from creperie.models.tokens import CaptionTokenizer
from creperie.models.uri import ModelURI
from creperie.models.weights import hash_files, weight_files


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    path = model_folder(uri.name, uri=str(uri), revision=options["revision"])
    folder = Folder(path, str(uri), options["trust_remote_code"])
    config = folder.config()
    if config.model_type in FAMILIES:
        return load_dual(folder, config, options, place)
    raise ModelError(
        f"no adapter for architecture {config.model_type!r}",
        where=str(uri),
        mend=f"known: {', '.join(sorted(FAMILIES))}; or write a plug-in (docs/plugin.md)",
    )


def load_dual(folder: Folder, config: Any, options: Mapping[str, Any], place: Place) -> DualEncoder:
    import transformers

    family = FAMILIES[config.model_type]
    model = folder.model(getattr(transformers, family.model_class), place)
    processor = folder.image_processor()
    context = min(family.context(config), options["max_length"] or family.context(config))
    tokenizer = CaptionTokenizer(folder.tokenizer(), caption_rule(options), context)
    fingerprint = describe(folder, config, family, tokenizer, processor.to_dict(), place)
    return DualEncoder(model, family.towers, tokenizer, pixels_of(processor), place, fingerprint)


def describe(
    folder: Folder, config: Any, family: Family, tokenizer: CaptionTokenizer, preprocessing: Any, place: Place
) -> Fingerprint:
    """The fingerprint of a model that lies in a folder."""
    return Fingerprint(
        uri=folder.uri,
        architecture=architecture(family.model_class, config),
        weights=hash_files(weight_files(folder.path)),
        preprocessing={k: v for k, v in preprocessing.items() if not k.startswith("_")},
        dtype=place.dtype,
        context=tokenizer.context,
        prompt=tokenizer.rule.prefix,
        options=tokenizer.rule.described,
    )


def architecture(name: str, config: Any) -> str:
    """The class and the activations, which decide the function as much as the weights do.

    >>> from types import SimpleNamespace as N
    >>> architecture("CLIPModel", N(text_config=N(hidden_act="gelu"), vision_config=N(hidden_act="quick_gelu")))
    'CLIPModel(text: gelu, vision: quick_gelu)'
    """
    parts = {"text": "text_config", "vision": "vision_config", "queries": "qformer_config"}
    found = {label: getattr(config, key, None) for label, key in parts.items()}
    acts = {label: getattr(sub, "hidden_act", None) for label, sub in found.items()}
    acts["self"] = getattr(config, "hidden_act", None)
    listed = ", ".join(f"{label}: {act}" for label, act in acts.items() if act)
    return f"{name}({listed})"
