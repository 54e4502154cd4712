"""Text encoders of the sentence-transformers library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from creperie.core import ModelError, UsageError, missing_extra, unknown
from creperie.models.captions import CaptionRule, caption_rule
from creperie.models.device import Place, exact_float32
from creperie.models.hf.dual import in_parts, unit_vectors
from creperie.models.hf.folder import quiet_libraries
from creperie.models.hub import model_folder
from creperie.models.protocols import Fingerprint, Model, Tokens
from creperie.models.st_onnx import read_onnx
from creperie.models.tokens import NO_LIMIT, CaptionTokenizer, describe_tokenizer
from creperie.models.uri import ModelURI
from creperie.models.weights import hash_files, weight_files

INSTRUCTOR = "hkunlp/instructor-"
PROBES = ("a dog", "A man in a red shirt gives the ball to the girl. ")


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    onnx = options["backend"] == "onnx"
    if options["file"] and not onnx:
        raise UsageError("option 'file' names an ONNX file", where=str(uri), hint="add &backend=onnx")
    folder = model_folder(uri.name, uri=str(uri), revision=options["revision"], onnx=onnx)
    if onnx:
        library, file = read_onnx(folder, options["file"], str(uri), place)
        weights = hash_files([file])
        inner = f"onnx {file.name}"
    else:
        library = _read(folder, str(uri), options, place)
        weights = hash_files(weight_files(folder))
        inner = ""
    _pool_prompt(library, uri.name, options["pool_prompt"])
    rule = caption_rule(options)
    prompt = rule.prefix or _stored_prompt(library, options["prompt_name"], str(uri))
    if options["max_length"]:
        library.max_seq_length = min(options["max_length"], _context(library) or options["max_length"])
    fingerprint = Fingerprint(
        uri=str(uri),
        architecture=" > ".join(filter(None, [inner, *[_describe_module(module) for module in library]])),
        weights=weights,
        preprocessing=_describe_tokenizer(library),
        dtype=place.dtype,
        context=_context(library),
        prompt=prompt,
        options=rule.described,
    )
    plain = SentenceEncoder(library, rule, prompt, fingerprint)
    return _staged(plain, place, check=not onnx) or plain


class SentenceEncoder:
    """Any sentence-transformers model, through the library's own `encode`."""

    def __init__(self, library: Any, rule: CaptionRule, prompt: str, fingerprint: Fingerprint) -> None:
        self.library = library
        self.rule = CaptionRule(rule.clean, rule.lower, rule.words)
        self.prompt = prompt
        self.fingerprint = fingerprint

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        shown = [self.rule(text) for text in texts]
        settings = {"convert_to_numpy": False, "convert_to_tensor": True, "show_progress_bar": False}
        with exact_float32():
            return unit_vectors(self.library.encode(shown, prompt=self.prompt or None, **settings))


class StagedSentenceEncoder(SentenceEncoder):
    """A model whose first module is a transformer: tokens are made once, batches are cut to their longest."""

    def __init__(
        self, plain: SentenceEncoder, tokenizer: CaptionTokenizer, features: Mapping[str, Any], place: Place
    ) -> None:
        super().__init__(plain.library, plain.rule, plain.prompt, plain.fingerprint)
        self.tokenizer = tokenizer
        self.features = features  #: what the library passes beside ids and mask, the same for all captions
        self.place = place

    @property
    def trims(self) -> bool:
        return True  # every module reads the attention mask

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.tokenizer(texts)

    def forward_texts(self, prepared: Sequence[Tokens]) -> np.ndarray:
        return self.forward_padded(prepared, None)

    def forward_padded(self, prepared: Sequence[Tokens], width: int | None) -> np.ndarray:
        import torch

        ids, mask = self.tokenizer.pad(prepared, width, self.place)
        inputs = {"input_ids": ids, "attention_mask": mask, **self.features}
        if "token_type_ids" in self.tokenizer.tokenizer.model_input_names:
            inputs["token_type_ids"] = torch.zeros_like(ids)
        with exact_float32():
            return unit_vectors(self.library(inputs)["sentence_embedding"])

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return in_parts(lambda part: self.forward_texts(self.prepare_texts(part)), texts)


def _read(folder: Path, uri: str, options: Mapping[str, Any], place: Place) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as e:
        raise missing_extra(e.name or "sentence_transformers", "models") from e
    try:
        with quiet_libraries():
            library = SentenceTransformer(
                str(folder),
                device=place.device,
                local_files_only=True,
                trust_remote_code=options["trust_remote_code"],
                model_kwargs={"dtype": place.torch_dtype},
            )
    except (OSError, ValueError, KeyError, RuntimeError) as e:
        line = " ".join(str(e).split())[:200]
        raise ModelError(f"sentence-transformers cannot read {folder}: {line}", where=uri) from e
    return library.eval()


def _stored_prompt(library: Any, name: str | None, uri: str) -> str:
    """A prompt that was saved with the model, by name, or the one it says is its default."""
    name = name or library.default_prompt_name
    if not name:
        return ""
    if name not in library.prompts:
        raise unknown("prompt of this model", name, library.prompts, where=uri)
    return str(library.prompts[name])


def _pool_prompt(library: Any, name: str, said: bool | None) -> None:
    """Whether the prompt's tokens count in the pooling. INSTRUCTOR models leave them out, which their folders do not
    say; the library knows them by name, and a folder has lost its name."""
    wanted = False if said is None and name.startswith(INSTRUCTOR) else said
    for module in library:
        if wanted is not None and hasattr(module, "include_prompt"):
            module.include_prompt = wanted


def _staged(plain: SentenceEncoder, place: Place, *, check: bool) -> StagedSentenceEncoder | None:
    """The staged form, where it gives what the library's `encode` gives."""
    library = plain.library
    try:
        tokenizer, context = library.tokenizer, _context(library)
        features = library.preprocess(list(PROBES), prompt=plain.prompt or None)
    except (AttributeError, TypeError, ValueError):
        return None
    if context is None or not hasattr(tokenizer, "model_input_names"):
        return None
    beside = {k: v for k, v in features.items() if k not in ("input_ids", "attention_mask", "token_type_ids")}
    if "input_ids" not in features or any(hasattr(v, "shape") for v in beside.values()):
        return None
    rule = CaptionRule(plain.rule.clean, plain.rule.lower, plain.rule.words, plain.prompt)
    staged = StagedSentenceEncoder(plain, CaptionTokenizer(tokenizer, rule, context), beside, place)
    if not check:
        return staged
    tolerance = 1e-5 if place.dtype == "float32" else 2e-2
    difference = np.abs(staged.encode_texts(PROBES) - plain.encode_texts(PROBES)).max()
    return staged if difference <= tolerance else None


def _context(library: Any) -> int | None:
    """How many tokens fit; None where any number does."""
    limit = library.max_seq_length
    return int(limit) if limit and limit < NO_LIMIT else None


def _describe_tokenizer(library: Any) -> dict[str, str]:
    tokenizer = getattr(library, "tokenizer", None)
    return describe_tokenizer(tokenizer) if hasattr(tokenizer, "get_vocab") else {}


def _describe_module(module: Any) -> str:
    """A module by its class, and the model inside it by its own class and activation."""
    inner = getattr(module, "auto_model", None)
    if inner is None:
        settings = module.get_config_dict() if hasattr(module, "get_config_dict") else {}
        return f"{type(module).__name__}{settings or ''}"
    act = getattr(getattr(inner, "config", None), "hidden_act", None)
    return f"{type(inner).__name__}({act})" if act else type(inner).__name__
