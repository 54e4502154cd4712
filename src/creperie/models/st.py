"""Text encoders of the sentence-transformers library.

Models in ONNX format are run by onnxruntime, followed by the library's pooling. The library's own ONNX support is not
used, because it needs another package and an older version of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.core import ModelError, UsageError, one_line, read_json, unknown
from creperie.models.captions import CaptionRule, caption_rule
from creperie.models.device import Place, exact_float32
from creperie.models.hf.dual import HfTextTower, unit_vectors
from creperie.models.hf.folder import quiet_libraries
from creperie.models.hub import model_folder
from creperie.models.protocols import Fingerprint, Model
from creperie.models.tokens import NO_LIMIT, CaptionTokenizer, describe_tokenizer, fitting_context
from creperie.models.uri import ModelURI
from creperie.models.weights import hash_files, weight_files

if TYPE_CHECKING:
    import torch

INSTRUCTOR = "hkunlp/instructor-"
PROBES = ("a dog", "A man in a red shirt gives the ball to the girl. ")


def load(uri: ModelURI, options: Mapping[str, Any], place: Place) -> Model:
    onnx = options["backend"] == "onnx"
    if options["file"] and not onnx:
        raise UsageError("option 'file' needs the ONNX backend", where=uri, hint="add &backend=onnx")
    folder = model_folder(uri.name, uri=str(uri), revision=options["revision"], onnx=onnx)
    if onnx:
        library, file = read_onnx(folder, options["file"], str(uri), place)
        weights = hash_files([file])
        inner = f"onnx {file.name}"
    else:
        library = _read(folder, str(uri), options, place)
        weights = hash_files(weight_files(folder))
        inner = ""
    # INSTRUCTOR models leave the tokens of the prompt out of pooling, but that is not stored in their folders: the
    # library recognises the models by their names on the hub, which a local folder does not have.
    include = options["pool_prompt"]
    if include is None and uri.name.startswith(INSTRUCTOR):
        include = False
    for module in library:
        if include is not None and hasattr(module, "include_prompt"):
            module.include_prompt = include
    return encoder_of(library, str(uri), weights, options, place, inner=inner)


def encoder_of(
    library: Any, uri: str, weights: str, options: Mapping[str, Any], place: Place, *, inner: str = ""
) -> Model:
    """Return a text encoder for `library`, which is a `SentenceTransformer` or an `OnnxSentences`.

    `weights` is a digest of the weights. `inner` is the name of the ONNX file that runs the transformer, or "" for
    PyTorch. Both are recorded in the fingerprint.
    """
    rule = caption_rule(options)
    prompt = rule.prefix or _stored_prompt(library, options["prompt_name"], uri)
    if options["max_length"]:
        library.max_seq_length = min(options["max_length"], _context(library) or options["max_length"])
    tokenizer = getattr(library, "tokenizer", None)
    fingerprint = Fingerprint(
        uri=uri,
        architecture=" > ".join(filter(None, [inner, *map(_describe_module, library)])),
        weights=weights,
        preprocessing=describe_tokenizer(tokenizer) if hasattr(tokenizer, "get_vocab") else {},
        dtype=place.dtype,
        context=_context(library),
        prompt=prompt,
        options=rule.described,
    )
    plain = SentenceEncoder(library, replace(rule, prefix=""), prompt, fingerprint)
    return _staged(plain, place, check=not inner) or plain


@dataclass(eq=False)
class SentenceEncoder:
    """A text encoder for any sentence-transformers model. It calls the library's `encode`."""

    library: Any
    rule: CaptionRule
    prompt: str
    fingerprint: Fingerprint

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, 0), np.float32)
        shown = [self.rule(text) for text in texts]
        settings = {"convert_to_numpy": False, "convert_to_tensor": True, "show_progress_bar": False}
        with exact_float32():
            return unit_vectors(self.library.encode(shown, prompt=self.prompt or None, **settings))


def _read(folder: Path, uri: str, options: Mapping[str, Any], place: Place) -> Any:
    from sentence_transformers import SentenceTransformer

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
        what = f"sentence-transformers cannot read {folder}: {one_line(e)}"
        raise ModelError(what, where=uri, hint="check that the folder is complete") from e
    return library.eval()


def _stored_prompt(library: Any, name: str | None, uri: str) -> str:
    """Return the prompt with this name, as stored with the model. Without a name, return the model's default prompt.
    The text is empty if the model has no default prompt.
    """
    name = name or library.default_prompt_name
    if not name:
        return ""
    if name not in library.prompts:
        raise unknown("prompt of this model", name, library.prompts, where=uri)
    return str(library.prompts[name])


def _staged(plain: SentenceEncoder, place: Place, *, check: bool) -> HfTextTower | None:
    """Return an encoder that separates tokenising from encoding. Return None if the library's tokenizer does not allow
    this. With `check`, also return None if the vectors differ from those of the library's `encode`.

    Batches are padded only to their longest caption, because every module reads the attention mask.
    """
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
    captions = CaptionTokenizer(tokenizer, replace(plain.rule, prefix=plain.prompt), context)

    def embed(library: Any, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        inputs = {"input_ids": ids, "attention_mask": mask, **beside}
        if "token_type_ids" in tokenizer.model_input_names:
            inputs["token_type_ids"] = ids * 0
        return library(inputs)["sentence_embedding"]

    staged = HfTextTower(library, embed, captions, place, plain.fingerprint, width=None)
    if not check:
        return staged
    tolerance = 1e-5 if place.dtype == "float32" else 2e-2
    difference = np.abs(staged.encode_texts(PROBES) - plain.encode_texts(PROBES)).max()
    return staged if difference <= tolerance else None


def _context(library: Any) -> int | None:
    """Return the maximum number of tokens; None if there is no limit."""
    limit = library.max_seq_length
    return int(limit) if limit and limit < NO_LIMIT else None


def _describe_module(module: Any) -> str:
    """Return the class of a module with its settings. For a module that contains a model, return the model's class and
    activation.
    """
    inner = getattr(module, "auto_model", None)
    if inner is None:
        settings = module.get_config_dict() if hasattr(module, "get_config_dict") else {}
        return f"{type(module).__name__}{settings or ''}"
    act = getattr(getattr(inner, "config", None), "hidden_act", None)
    return f"{type(inner).__name__}({act})" if act else type(inner).__name__


#: device → the providers of onnxruntime, best first
PROVIDERS = {"cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"], "cpu": ["CPUExecutionProvider"]}


@dataclass(eq=False)
class OnnxSentences:
    """A replacement for `SentenceTransformer` with the same interface, for models in ONNX format."""

    session: Any
    modules: list[Any]
    tokenizer: Any
    max_seq_length: int
    prompts: dict[str, str]
    default_prompt_name: str | None

    def __iter__(self) -> Any:
        return iter(self.modules)

    def __call__(self, features: dict[str, Any]) -> dict[str, Any]:
        import torch

        ids: torch.Tensor = features["input_ids"]
        inputs = {"token_type_ids": torch.zeros_like(ids), **features}
        given = {one.name: inputs[one.name].cpu().numpy() for one in self.session.get_inputs()}
        states = self.session.run(None, given)[0]
        features = {**features, "token_embeddings": torch.from_numpy(states).to(ids.device)}
        for module in self.modules:
            features = module(features)
        return features

    def preprocess(self, texts: list[str], prompt: str | None = None) -> dict[str, Any]:
        """Return the input features that the library expects. If there is a prompt, the feature `prompt_length` is the
        number of its tokens.
        """
        # The library uses it to leave these tokens out of pooling.
        encoded = self.tokenizer([(prompt or "") + text for text in texts], padding=True, return_tensors="pt")
        features: dict[str, Any] = {**encoded, "modality": "text"}
        if prompt:
            ids = self.tokenizer([prompt])["input_ids"][0]
            features["prompt_length"] = len(ids) - (ids[-1] in self.tokenizer.all_special_ids)
        return features


def read_onnx(folder: Path, file: str | None, uri: str, place: Place) -> tuple[OnnxSentences, Path]:
    """Return the model in a folder, and the ONNX file of its transformer."""
    import onnxruntime

    from creperie.models.hf.folder import Folder

    path = onnx_file(folder, file, uri)
    session = onnxruntime.InferenceSession(str(path), providers=PROVIDERS.get(place.device, PROVIDERS["cpu"]))
    listed = read_json(folder / "modules.json") if (folder / "modules.json").is_file() else []
    modules = [_module(folder, entry).to(place.torch_device) for entry in listed[1:]]
    if not modules:
        what = "the folder has no modules.json, which describes the pooling"
        raise ModelError(what, where=uri, hint="leave out backend=onnx")
    tokenizer = Folder(folder, uri).tokenizer()
    own, whole, config = (
        read_json(folder / name) if (folder / name).is_file() else {}
        for name in ("sentence_bert_config.json", "config_sentence_transformers.json", "config.json")
    )
    limit = own.get("max_seq_length") or fitting_context(tokenizer, config.get("max_position_embeddings"), None)
    prompts, default = whole.get("prompts") or {}, whole.get("default_prompt_name")
    return OnnxSentences(session, modules, tokenizer, int(limit), prompts, default), path


def onnx_file(folder: Path, name: str | None, uri: str) -> Path:
    """Return the ONNX file with this name in the folder. Without a name, return the file with the usual name, or else
    the only ONNX file.
    """
    candidates = [folder / name] if name else [folder / "onnx" / "model.onnx", folder / "model.onnx"]
    for path in candidates:
        if path.is_file():
            return path
    files = sorted(folder.rglob("*.onnx"))
    if len(files) == 1 and not name:
        return files[0]
    listed = ", ".join(p.relative_to(folder).as_posix() for p in files) or "none"
    raise ModelError(
        f"the folder has no {candidates[0].relative_to(folder).as_posix()}",
        where=uri,
        hint=f"name one with ?file=; the folder has: {listed}",
    )


def _module(folder: Path, entry: Mapping[str, Any]) -> Any:
    """Load a pooling, dense or normalising module, of the class that modules.json names."""
    package, _, name = str(entry["type"]).rpartition(".")
    if not package.startswith("sentence_transformers."):
        what = f"module {entry['type']!r} is not part of sentence-transformers"
        raise ModelError(what, where=folder, hint="leave out backend=onnx")
    return getattr(import_module(package), name).load(str(folder / entry["path"]))
