"""sentence-transformers folders whose transformer runs in onnxruntime: the library's own way needs another package
and an older transformers, so the session is called here and the library's pooling follows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core import ModelError, missing_extra
from creperie.models.device import Place
from creperie.models.tokens import fitting_context

if TYPE_CHECKING:
    import torch

#: onnxruntime's names for our devices, best first
PROVIDERS = {"cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"], "cpu": ["CPUExecutionProvider"]}


class OnnxSentences:
    """What a `SentenceTransformer` is to the adapter: features in, `sentence_embedding` out."""

    def __init__(self, session: Any, modules: list[Any], tokenizer: Any, settings: Mapping[str, Any]) -> None:
        self.session = session
        self.modules = modules
        self.tokenizer = tokenizer
        self.max_seq_length: int = settings["max_seq_length"]
        self.prompts: dict[str, str] = settings["prompts"]
        self.default_prompt_name: str | None = settings["default_prompt_name"]
        self._takes = {given.name for given in session.get_inputs()}

    def __iter__(self) -> Any:
        return iter(self.modules)

    def __call__(self, features: dict[str, Any]) -> dict[str, Any]:
        import torch

        ids: torch.Tensor = features["input_ids"]
        inputs = {"token_type_ids": torch.zeros_like(ids), **features}
        given = {name: inputs[name].cpu().numpy() for name in self._takes}
        states = self.session.run(None, given)[0]
        features = {**features, "token_embeddings": torch.from_numpy(states).to(ids.device)}
        for module in self.modules:
            features = module(features)
        return features

    def preprocess(self, texts: list[str], prompt: str | None = None) -> dict[str, Any]:
        """What goes beside the ids, as the library computes it: how long the prompt is, for pooling without it."""
        encoded = self.tokenizer([(prompt or "") + text for text in texts], padding=True, return_tensors="pt")
        features: dict[str, Any] = {**encoded, "modality": "text"}
        if prompt:
            ids = self.tokenizer([prompt])["input_ids"][0]
            features["prompt_length"] = len(ids) - (ids[-1] in self.tokenizer.all_special_ids)
        return features


def read_onnx(folder: Path, file: str | None, uri: str, place: Place) -> tuple[OnnxSentences, Path]:
    """The model of a folder and the file that its transformer came from."""
    try:
        import onnxruntime
    except ImportError as e:
        raise missing_extra("onnxruntime", "onnx") from e
    from creperie.models.hf.folder import Folder

    path = onnx_file(folder, file, uri)
    session = onnxruntime.InferenceSession(str(path), providers=PROVIDERS.get(place.device, PROVIDERS["cpu"]))
    listed = json.loads((folder / "modules.json").read_text()) if (folder / "modules.json").is_file() else []
    modules = [_module(folder, entry).to(place.torch_device) for entry in listed[1:]]
    if not modules:
        raise ModelError("the folder has no modules.json that says how tokens are pooled", where=uri)
    tokenizer = Folder(folder, uri).tokenizer()
    return OnnxSentences(session, modules, tokenizer, _settings(folder, tokenizer)), path


def onnx_file(folder: Path, name: str | None, uri: str) -> Path:
    """The file that was named, or the usual one, or the only one."""
    candidates = [folder / name] if name else [folder / "onnx" / "model.onnx", folder / "model.onnx"]
    for path in candidates:
        if path.is_file():
            return path
    found = sorted(folder.rglob("*.onnx"))
    if len(found) == 1 and not name:
        return found[0]
    listed = ", ".join(p.relative_to(folder).as_posix() for p in found) or "none"
    raise ModelError(
        f"the folder has no {candidates[0].relative_to(folder).as_posix()}",
        where=uri,
        hint=f"name one by ?file=; it has: {listed}",
    )


def _module(folder: Path, entry: Mapping[str, Any]) -> Any:
    """A pooling, dense or normalising module, by the class that modules.json names."""
    package, _, name = str(entry["type"]).rpartition(".")
    if not package.startswith("sentence_transformers."):
        raise ModelError(f"module {entry['type']!r} is not one of sentence-transformers' own", where=str(folder))
    return getattr(import_module(package), name).load(str(folder / entry["path"]))


def _settings(folder: Path, tokenizer: Any) -> dict[str, Any]:
    def read(name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((folder / name).read_text()) if (folder / name).is_file() else {}
        return content

    own, whole = read("sentence_bert_config.json"), read("config_sentence_transformers.json")
    limit = own.get("max_seq_length") or fitting_context(
        tokenizer, read("config.json").get("max_position_embeddings"), None
    )
    return {
        "max_seq_length": int(limit),
        "prompts": whole.get("prompts") or {},
        "default_prompt_name": whole.get("default_prompt_name"),
    }
