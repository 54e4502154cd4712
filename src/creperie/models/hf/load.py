"""Load the model of a `hf:` URI: read the configuration and choose the adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from creperie.core import ModelError, unknown
from creperie.models.captions import OPTIONS as CAPTION_OPTIONS
from creperie.models.captions import caption_rule
from creperie.models.device import Place
from creperie.models.hf.bertscore import BertScore
from creperie.models.hf.dual import FAMILIES, DualEncoder, HfTextTower, first_query
from creperie.models.hf.folder import Folder, ModelSource, no_adapter
from creperie.models.hf.matching import FUSERS, MATCHERS, FusedEncoder, MatchingHead
from creperie.models.hf.text import DECODERS, ENCODERS, encoder_class, pooling, positions
from creperie.models.hub import model_folder
from creperie.models.pixels import pixels_of
from creperie.models.protocols import Fingerprint, Model
from creperie.models.tokens import CaptionTokenizer, fitting_context
from creperie.models.uri import ModelURI, refuse_unused

LoadFolder = Callable[[ModelSource, Any, Mapping[str, Any], Place], Model]
#: the options that every adapter of this kind takes
SHARED = ("revision", "trust_remote_code", "max_length", *(option.name for option in CAPTION_OPTIONS))


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    path = model_folder(uri.name, uri=str(uri), revision=options["revision"])
    return adapter_of(Folder(path, str(uri), options["trust_remote_code"]), uri.options, options, place)


def adapter_of(source: ModelSource, given: Iterable[str], options: Mapping[str, Any], place: Place) -> Model:
    """Return the adapter for a transformers model that is in a folder or in memory.

    `options` has the values of all options, and `given` the names of those that the user set. Raise a UsageError if one
    of these has no effect on this model.
    """
    config = source.config()
    loader, takes = _choose(config.model_type, options["score"], source.uri)
    refuse_unused(given, (*SHARED, *takes), where=source.uri, what=f"{config.model_type} models used this way")
    return loader(source, config, options, place)


def _choose(model_type: str, score: str | None, uri: str) -> tuple[LoadFolder, tuple[str, ...]]:
    """Return the function that loads models of an architecture, and the options that it uses. `score` names the scoring
    method, such as "itm". If it is None, the architecture's usual method is used.
    """
    joint = {"itm": MATCHERS, "fused": FUSERS}
    ways: dict[str, tuple[LoadFolder, tuple[str, ...]]] = {}
    if model_type in FAMILIES:
        ways["contrastive"] = (load_dual, ("score", "pad_to", *FAMILIES[model_type].options))
    ways |= {way: (load_joint, ("score", "value")) for way, table in joint.items() if model_type in table}
    if model_type in (*ENCODERS, *DECODERS):
        ways["text"] = (load_text, ("score", "pool", "eos"))
        ways["bertscore"] = (load_text, ("score", "layer", "eos"))
    if not ways:
        raise no_adapter(model_type, "has no adapter", sorted({*FAMILIES, *MATCHERS, *ENCODERS, *DECODERS}), uri)
    if score and score not in ways:
        raise unknown(f"way to score {model_type} models", score, ways, where=uri)
    return ways[score or next(iter(ways))]


def load_dual(folder: ModelSource, config: Any, options: Mapping[str, Any], place: Place) -> DualEncoder:
    import transformers

    family = FAMILIES[config.model_type]
    tokenizer = read_tokenizer(folder, family.context(config), options)
    processor = folder.image_processor()
    towers = family.towers
    if towers.trims == "always":
        _require_end_token(config, tokenizer, folder.uri)
    model = folder.model(getattr(transformers, family.model_class), place)
    if options["query"] == "first":
        towers = replace(towers, embed_images=first_query)
    used = {name: options[name] for name in ("query", "pad_to") if options[name] not in (None, "best")}
    fingerprint = describe(folder, family.model_class, config, tokenizer, place, processor=processor, options=used)
    pixels = pixels_of(processor)
    return DualEncoder(model, towers, tokenizer, pixels, place, fingerprint, width=options["pad_to"])


def _require_end_token(config: Any, tokenizer: CaptionTokenizer, uri: str) -> None:
    """Raise a ModelError if the model's end token differs from the token that its tokenizer puts after captions."""
    # The vector of a causal tower is taken at the end token. If the model's end token were not in the caption, the
    # vector at the first token would be taken instead, the same for every caption. (In old configurations, the id 2
    # stands for the highest id.)
    expected, written = config.text_config.eos_token_id, tokenizer.tokenizer.eos_token_id
    if expected not in (2, written):
        raise ModelError(
            f"the model reads a caption's vector at token {expected}, but its tokenizer ends captions with {written}",
            where=uri,
            hint="use a folder whose config.json and tokenizer belong together",
        )


def load_joint(folder: ModelSource, config: Any, options: Mapping[str, Any], place: Place) -> Model:
    import transformers

    fused = options["score"] == "fused"
    matcher = (FUSERS if fused else MATCHERS)[config.model_type]
    tokenizer = read_tokenizer(folder, matcher.context(config), options)
    processor = folder.image_processor()
    if config.model_type == "flava":
        config.init_codebook = False  # the codebook is needed for pre-training only
    model = folder.model(getattr(transformers, matcher.model_class), place, config=config)
    used = {"score": "fused"} if fused else {"score": "itm", "value": options["value"]}
    fingerprint = describe(folder, matcher.model_class, config, tokenizer, place, processor=processor, options=used)
    parts = (model, matcher, tokenizer, pixels_of(processor), place, fingerprint)
    return FusedEncoder(*parts) if fused else MatchingHead(*parts, options["value"])


def load_text(folder: ModelSource, config: Any, options: Mapping[str, Any], place: Place) -> Model:
    pool = options["pool"] or ("last" if config.model_type in DECODERS else "mean")
    used = {"pool": pool, **({"eos": True} if options["eos"] else {})}
    bertscore = options["score"] == "bertscore"
    if bertscore:
        layer, layers = options["layer"], int(config.num_hidden_layers)
        used = {"score": "bertscore", "layer": "last" if layer is None else layer}
        if layer is not None and not 0 <= layer <= layers:
            what = f"there is no layer {layer}: the model has {layers} layers"
            raise ModelError(what, where=folder.uri, hint="choose another ?layer=")
    raw = folder.tokenizer()
    context = fitting_context(raw, positions(config), options["max_length"])
    if raw.pad_token_id is None:
        raw.pad_token = raw.eos_token
    tokenizer = CaptionTokenizer(raw, caption_rule(options), context, append_end=options["eos"], pad_left=False)
    model = folder.model(encoder_class(config.model_type), place)
    fingerprint = describe(folder, type(model).__name__, config, tokenizer, place, options=used)
    if bertscore:
        return BertScore(model, tokenizer, place, fingerprint, layer)
    return HfTextTower(model, pooling(pool), tokenizer, place, fingerprint, width=None)


def read_tokenizer(folder: ModelSource, positions: int | None, options: Mapping[str, Any]) -> CaptionTokenizer:
    tokenizer = folder.tokenizer()
    context = fitting_context(tokenizer, positions, options["max_length"])
    return CaptionTokenizer(tokenizer, caption_rule(options), context)


def describe(
    folder: ModelSource,
    model_class: str,
    config: Any,
    tokenizer: CaptionTokenizer,
    place: Place,
    *,
    processor: Any = None,
    options: Mapping[str, Any],
) -> Fingerprint:
    """Return the fingerprint of a transformers model."""
    settings = {} if processor is None else processor.to_dict()
    return Fingerprint(
        uri=folder.uri,
        architecture=architecture(model_class, config),
        weights=folder.weights(),
        preprocessing={**{k: v for k, v in settings.items() if not k.startswith("_")}, **tokenizer.described},
        dtype=place.dtype,
        context=tokenizer.context,
        prompt=tokenizer.rule.prefix,
        options={**tokenizer.rule.described, **options},
    )


def architecture(name: str, config: Any) -> str:
    """Return the model class with its activations. They change the output as much as the weights do.

    >>> from types import SimpleNamespace as N
    >>> architecture("CLIPModel", N(text_config=N(hidden_act="gelu"), vision_config=N(hidden_act="quick_gelu")))
    'CLIPModel(text: gelu, vision: quick_gelu)'
    """
    parts = {"text": "text_config", "vision": "vision_config", "image": "image_config", "queries": "qformer_config"}
    acts = {label: getattr(getattr(config, key, None), "hidden_act", None) for label, key in parts.items()}
    acts["self"] = getattr(config, "hidden_act", None)
    listed = ", ".join(f"{label}: {act}" for label, act in acts.items() if act)
    return f"{name}({listed})"
