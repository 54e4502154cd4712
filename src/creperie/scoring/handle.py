"""A handle to a model. The model is loaded only when something must be computed.

Only the model's fingerprint is needed to look up scores in the store. The fingerprint of a model in files is cached
until one of the files changes. If all results of a run are stored, neither the weights nor the libraries are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from creperie.core import (
    CreperieError,
    ModelError,
    __version__,
    cache_home,
    file_state,
    json_value,
    read_json,
    sha256_of_text,
    write_json,
)
from creperie.metrics import Input
from creperie.models import (
    ABILITIES,
    Fingerprint,
    Model,
    ObjectModel,
    abilities_of,
    columns_of,
    content_of,
    count_weights,
    find_place,
    from_plugin,
    in_words,
    load_model,
    load_plain,
    model_folder,
    networks_of,
    parse_uri,
    ready_to_score,
    wrap,
)

#: kinds of models that consist of exactly one folder
FOLDER_KINDS = ("hf", "st")


@dataclass
class Handle:
    """A model that is loaded when `model` is first accessed. `close` restores the state of a model that was given in
    memory.
    """

    fingerprint: Fingerprint
    abilities: frozenset[str]
    load: Callable[[], Model] = field(repr=False)
    parameters: int | None = None  #: number of weights, if known
    stored: bool = True  #: whether results may be read from and written to the store
    probed: bool = False  #: whether a few stored results are recomputed before the store is used
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
        """The score columns that the model can fill: the inputs of the metrics."""
        return columns_of(self.abilities)  # type: ignore[return-value]

    def routes(self, columns: Iterable[Input]) -> dict[Input, str]:
        """Return, for each of these score columns, how the model fills it. The column image_text is filled by `towers`
        (vectors of images and captions), by `choice` (multiple choice) or by `pair` (one score per pair). The column
        text_text is filled by `text` (vectors of captions), by `between` (one score per two captions) or by `joint`
        (vectors of captions together with the image). The column text is filled by `blind` (one score per caption).

        If the model can fill a column in several ways, the first of these is used.
        """
        preferred: dict[Input, tuple[str, ...]] = {
            "image_text": ("towers", "choice", "pair"),
            "text_text": ("text", "between", "joint"),
            "text": ("blind",),
        }
        able = self.abilities | ({"towers"} if {"image", "text"} <= self.abilities else set())
        return {column: next(name for name in preferred[column] if name in able) for column in columns}

    @property
    def compares_captions(self) -> bool:
        """True if the model can compare two captions without an image."""
        able = [ABILITIES[name] for name in self.abilities]
        return any(a.column == "text_text" and not a.needs_image for a in able)


def open_model(model: Any, *, device: str = "auto", dtype: str = "auto", cache: bool | str = True) -> Handle:
    """Return a handle to `model`, which is a URI or a model in memory. A model in memory is used in its
    present state.
    """
    if isinstance(model, Handle):
        return model
    if not isinstance(model, str):
        return _open_object(model, device, dtype, cache)
    handle = _open_uri(model, device, "float32" if dtype == "auto" else dtype, cache)
    handle.stored &= cache is not False
    return handle


def _open_uri(model: str, device: str, dtype: str, cache: bool | str) -> Handle:
    files = _file_states(model)
    remembered = _recall(model, dtype, files)
    if remembered is None:
        loaded = load_plain(model, find_place(device, dtype))
        if not isinstance(loaded, Model):
            return _open_object(from_plugin(loaded, model), device, dtype, cache)
        handle = handle_of(loaded)
        if files == _file_states(model):  # nothing changed while it was loaded
            _remember(model, dtype, files, handle)
        return handle
    fingerprint, abilities, parameters = remembered

    def load() -> Model:
        loaded = load_model(model, device=device, dtype=dtype)
        if loaded.fingerprint.key != fingerprint.key:
            _memo_path(model, dtype).unlink(missing_ok=True)
            raise ModelError("the model changed while it was being used", where=model, hint="run the command again")
        return loaded

    return Handle(fingerprint, abilities, load, parameters)


def _open_object(model: Any, device: str, dtype: str, cache: bool | str) -> Handle:
    """Return a handle to a model in memory.

    Its results are stored under the hash of its content, not under its own fingerprint, which a user may have set by
    hand. A few stored results are recomputed as a check. If the content cannot be hashed with certainty, results are
    stored only if `cache` is a name, or if the adapter is one of creperie's.
    """
    with ExitStack() as stack:
        if isinstance(getattr(model, "fingerprint", None), Fingerprint):
            content = content_of(model)
            stack.enter_context(ready_to_score(networks_of(model)))
            handle = handle_of(model)
            if content.certain:
                known = {"content": content.digest}
            else:
                known = {"cache": cache} if isinstance(cache, str) else {}
            handle.fingerprint = replace(handle.fingerprint, options={**handle.fingerprint.options, **known})
            ours = type(model).__module__.startswith("creperie.") and not isinstance(model, ObjectModel)
            handle.stored = cache is not False and bool(known or ours)
        else:
            adapter, stored = stack.enter_context(wrap(model).opened(device, dtype, cache))
            handle = handle_of(adapter)
            handle.stored = stored
        handle.probed = True
        handle.close = stack.pop_all().close
    return handle


def handle_of(model: Model) -> Handle:
    """Return a handle to a loaded adapter whose fingerprint can be trusted."""
    abilities = frozenset(name for name in abilities_of(model) if ABILITIES[name].column)
    if not abilities:
        able = in_words(abilities_of(model)) or "do nothing that creperie uses"
        what = f"this model gives no scores: it can {able}"
        raise ModelError(what, where=model.fingerprint.uri, hint="name one that encodes or scores captions")
    handle = Handle(model.fingerprint, abilities, lambda: model, count_weights(model))
    _ = handle.model
    return handle


def name_of(model: Any) -> str:
    """Return the name of a model, without loading it. It is the URI or, for a model in memory, a name made from its own
    name or its class.
    """
    if isinstance(model, str):
        return model
    if isinstance(model, Handle) or isinstance(getattr(model, "fingerprint", None), Fingerprint):
        return str(model.fingerprint.uri)
    return wrap(model).uri


# -- cached fingerprints ---------------------------------------------------------------------------------------------


def _memo_path(uri: str, dtype: str) -> Path:
    name = sha256_of_text(f"{uri}\n{dtype}")[:24]
    return cache_home() / "models" / f"{name}.json"


def _recall(uri: str, dtype: str, files: list[str]) -> tuple[Fingerprint, frozenset[str], int | None] | None:
    """Return the cached fingerprint, abilities and parameter count; None if the model's files or creperie's code
    changed.
    """
    try:
        document = read_json(_memo_path(uri, dtype))
        if not files or document["code"] != _code_state() or document["files"] != files:
            return None
        return Fingerprint(**document["fingerprint"]), frozenset(document["abilities"]), document["parameters"]
    except (CreperieError, ValueError, KeyError, TypeError):
        return None


def _remember(uri: str, dtype: str, files: list[str], handle: Handle) -> None:
    if not files:
        return
    known = {"abilities": sorted(handle.abilities), "parameters": handle.parameters, "files": files}
    document = json_value({"code": _code_state(), "fingerprint": asdict(handle.fingerprint), **known})
    if Fingerprint(**document["fingerprint"]).key != handle.fingerprint.key:
        return  # the fingerprint cannot be restored from JSON: it is computed every time
    try:
        write_json(_memo_path(uri, dtype), document)
    except OSError:
        return  # without the cache the next run is slower, but nothing is wrong


def _file_states(uri: str) -> list[str]:
    """Return one string per file of a model. The string changes whenever the file does. The list is empty if the model
    is not a single folder. It is also empty if a file changed a moment ago, because another change might then go
    unnoticed.
    """
    try:
        folder = _folder_of(uri)
    except CreperieError:
        return []
    states = [file_state(p) for p in sorted(folder.rglob("*")) if p.is_file()] if folder else []
    return states if all(states) else []


def _folder_of(uri: str) -> Path | None:
    """Return the folder that contains the whole model. Return None unless the URI names a folder, a package or a
    repository on the hub.

    For other URIs, the model may depend on files that its options name, so its fingerprint is not cached.
    """
    parsed = parse_uri(uri)
    if parsed.kind not in FOLDER_KINDS:
        return None
    local = Path(parsed.name).expanduser()
    if local.is_dir():
        return local
    onnx = parsed.options.get("backend") == "onnx"
    return model_folder(parsed.name, uri=uri, revision=parsed.options.get("revision"), onnx=onnx)


def _code_state() -> str:
    """Return a string made from creperie's version and the newest modification time of the adapters' code. Cached
    fingerprints are valid only while this string stays the same.
    """
    import creperie.models

    root = Path(creperie.models.__file__).parent
    return f"{__version__} {max(p.stat().st_mtime_ns for p in root.rglob('*.py'))}"
