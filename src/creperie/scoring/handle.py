"""A model that is loaded only when something must be computed.

Which scores the store already holds depends on the fingerprint alone. So the fingerprint of a model that lies in files
is remembered by the files' sizes and times of change, and a run that finds everything in the store loads no weights,
not even the libraries that would.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from creperie.core import CreperieError, ModelError, __version__, cache_home, write_text
from creperie.metrics import Input
from creperie.models import (
    ABILITIES,
    Fingerprint,
    Model,
    abilities_of,
    columns_of,
    content_of,
    count_weights,
    in_words,
    networks_of,
    parse_uri,
    ready_to_score,
    wrap,
)

#: kinds of models that are one folder and nothing else
FOLDER_KINDS = ("hf", "st")


@dataclass
class Handle:
    """What is known of a model before it is loaded; `model` loads it. `close` puts a model in memory back as it was."""

    fingerprint: Fingerprint
    abilities: frozenset[str]
    load: Callable[[], Model] = field(repr=False)
    parameters: int | None = None  #: how many weights, where that can be known
    stored: bool = True  #: may results be kept in the store, and taken from it?
    probed: bool = False  #: are a few stored results computed again before the others are used?
    close: Callable[[], None] = field(default=lambda: None, repr=False)

    @property
    def uri(self) -> str:
        return self.fingerprint.uri

    @cached_property
    def model(self) -> Model:
        return self.load()

    @property
    def loaded(self) -> bool:
        return "model" in self.__dict__

    @property
    def inputs(self) -> frozenset[Input]:
        """Which score columns the model can fill."""
        return columns_of(self.abilities)  # type: ignore[return-value]

    def routes(self, columns: Iterable[Input]) -> dict[Input, str]:
        """Return how each column is filled: by `towers` (vectors of images and captions), or by the ability of that
        name."""
        preferred: dict[Input, tuple[str, ...]] = {
            "image_text": ("towers", "choice", "pair"),
            "text_text": ("text", "between", "joint"),
            "text": ("blind",),
        }
        able = self.abilities | ({"towers"} if {"image", "text"} <= self.abilities else set())
        return {column: next(name for name in preferred[column] if name in able) for column in columns}

    @property
    def compares_captions(self) -> bool:
        """Can it compare two captions without looking at an image?"""
        able = [ABILITIES[name] for name in self.abilities]
        return any(a.column == "text_text" and not a.looks for a in able)


def open_model(model: Any, *, device: str = "auto", dtype: str = "auto", cache: bool | str = True) -> Handle:
    """Return a handle to the model that a URI names, or to one in memory, as it is now."""
    if isinstance(model, Handle):
        return model
    if not isinstance(model, str):
        return _open_object(model, device, dtype, cache)
    handle = _open_uri(model, device, "float32" if dtype == "auto" else dtype)
    handle.stored = cache is not False
    return handle


def _open_uri(model: str, device: str, dtype: str) -> Handle:
    remembered = _recall(model, dtype)
    if remembered is None:
        handle = handle_of(_load(model, device, dtype))
        _remember(model, dtype, handle)
        return handle
    fingerprint, abilities, parameters = remembered

    def load() -> Model:
        loaded = _load(model, device, dtype)
        if loaded.fingerprint.key != fingerprint.key:
            _memo_path(model, dtype).unlink(missing_ok=True)
            raise ModelError("the model changed while it was being used", where=model, hint="run the command again")
        return loaded

    return Handle(fingerprint, abilities, load, parameters)


def _open_object(model: Any, device: str, dtype: str, cache: bool | str) -> Handle:
    """Return a model in memory. Its results are stored by the content of its weights, whatever its own fingerprint
    says, and stored ones are probed; a fingerprint without weights behind it is no more than a name."""
    with ExitStack() as stack:
        if isinstance(getattr(model, "fingerprint", None), Fingerprint):
            content = content_of(model)
            stack.enter_context(ready_to_score(networks_of(model)))
            handle = handle_of(model)
            if content:
                named = {**handle.fingerprint.options, "content": content}
                handle.fingerprint = replace(handle.fingerprint, options=named)
            handle.stored = cache is not False
        else:
            adapter, stored = stack.enter_context(wrap(model).opened(device, dtype, cache))
            handle = handle_of(adapter)
            handle.stored = stored
        handle.probed = True
        handle.close = stack.pop_all().close
    return handle


def handle_of(model: Model) -> Handle:
    """Return a handle to an adapter that is what its fingerprint says."""
    abilities = frozenset(name for name in abilities_of(model) if ABILITIES[name].column)
    if not abilities:
        able = in_words(abilities_of(model)) or "nothing"
        raise ModelError(f"this model fills no scores: it can {able}", where=model.fingerprint.uri)
    handle = Handle(model.fingerprint, abilities, lambda: model, count_weights(model))
    _ = handle.model
    return handle


def name_of(model: Any) -> str:
    """Return what a model is called before it is opened: its URI, or one made of its name or class."""
    if isinstance(model, str):
        return model
    if isinstance(model, Handle) or isinstance(getattr(model, "fingerprint", None), Fingerprint):
        return str(model.fingerprint.uri)
    return wrap(model).uri


def _load(uri: str, device: str, dtype: str) -> Model:
    from creperie.models import load_model

    return load_model(uri, device=device, dtype=dtype)


# -- remembering fingerprints ----------------------------------------------------------------------------------------


def _memo_path(uri: str, dtype: str) -> Path:
    name = hashlib.sha256(f"{uri}\n{dtype}".encode()).hexdigest()[:24]
    return cache_home() / "models" / f"{name}.json"


def _recall(uri: str, dtype: str) -> tuple[Fingerprint, frozenset[str], int | None] | None:
    """Return what was known last time, if every file of the model is as it was then."""
    try:
        document = json.loads(_memo_path(uri, dtype).read_text(encoding="utf-8"))
        if document["code"] != _code_state() or document["files"] != _file_states(uri):
            return None
        return Fingerprint(**document["fingerprint"]), frozenset(document["abilities"]), document["parameters"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(uri: str, dtype: str, handle: Handle) -> None:
    files = _file_states(uri)
    if not files:
        return
    document = {
        "code": _code_state(),
        "files": files,
        "fingerprint": asdict(handle.fingerprint),
        "abilities": sorted(handle.abilities),
        "parameters": handle.parameters,
    }
    text = json.dumps(document, default=str, indent=1)
    if Fingerprint(**json.loads(text)["fingerprint"]).key != handle.fingerprint.key:
        return  # something in it does not survive being written down: then it is computed each time
    try:
        write_text(_memo_path(uri, dtype), text)
    except OSError:
        return  # a cache that cannot be written makes the next run slower, not this one wrong


def _file_states(uri: str) -> dict[str, Any]:
    """Return every file of a model with size and time of change; empty where the model is not one folder."""
    try:
        folder = _folder_of(uri)
    except CreperieError:
        return {}
    if folder is None:
        return {}
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p): [(s := p.stat()).st_size, s.st_mtime_ns] for p in files}


def _folder_of(uri: str) -> Path | None:
    """Return where the files of a model lie, if the name is one of a folder, a package or a hub's repository.

    Other kinds may depend on files that their options name, so they are loaded to be known.
    """
    from creperie.models import model_folder

    parsed = parse_uri(uri)
    if parsed.kind not in FOLDER_KINDS:
        return None
    local = Path(parsed.name).expanduser()
    if local.is_dir():
        return local
    onnx = parsed.options.get("backend") == "onnx"
    return model_folder(parsed.name, uri=uri, revision=parsed.options.get("revision"), onnx=onnx)


def _code_state() -> str:
    """Return the state of the adapters' code, which decides what a fingerprint says: a change forgets what was
    stored."""
    import creperie.models

    root = Path(creperie.models.__file__).parent
    return f"{__version__} {max(p.stat().st_mtime_ns for p in root.rglob('*.py'))}"
