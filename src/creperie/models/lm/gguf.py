"""GGUF files, converted to ordinary model folders. They are dequantised once, saved as safetensors, and cached by the
file's hash.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from contextlib import redirect_stderr
from importlib.util import find_spec
from pathlib import Path

from creperie.core import ModelError, UsageError, cache_home, remembered_sha256
from creperie.models.hf.folder import quiet_libraries
from creperie.models.hub import model_folder, no_package


def language_model_folder(name: str, *, uri: str, revision: str | None = None) -> Path:
    """Return the folder of a language model. `name` is a folder, the name of a repository on the hub, a GGUF file, or
    `pkg:MODULE` for a package that contains a GGUF file. A GGUF file is converted into a folder.
    """
    if name.startswith("pkg:") or name.endswith(".gguf"):
        return converted(gguf_file(name, uri), uri)
    return model_folder(name, uri=uri, revision=revision)


def gguf_file(name: str, uri: str) -> Path:
    """Return the path of a GGUF file. `name` is this path or `pkg:MODULE`, where MODULE is the package that contains
    the file. The package is not imported.
    """
    if not name.startswith("pkg:"):
        if not (file := Path(name).expanduser()).is_file():
            raise ModelError(f"there is no file {file}", where=uri, hint="check the path")
        return file
    module = name.removeprefix("pkg:")
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise no_package(module, uri)
    files = sorted(p for place in spec.submodule_search_locations for p in Path(place).rglob("*.gguf"))
    if len(files) != 1:
        what = f"package {module!r} has {len(files)} GGUF files, expected one"
        raise ModelError(what, where=uri, hint="give the path of the file instead")
    return files[0]


def no_llama_cpp(uri: str) -> UsageError:
    """Return the error for `engine=llama.cpp` if its library is missing. No extra of creperie installs it."""
    return UsageError(
        "this engine needs the package llama-cpp-python, which is not installed",
        where=uri,
        hint="pip install llama-cpp-python",
    )


def converted(file: Path, uri: str) -> Path:
    """Return the folder made from a GGUF file. It is made on first use, in a minute or two per billion weights, and
    cached.
    """
    # The weights are float32 safetensors, which are memory-mapped in seconds.
    folder = cache_home() / "gguf" / remembered_sha256(file)[:32]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"preparing the weights of {uri}: this happens once, and may take a minute or two", file=sys.stderr)
    draft = Path(tempfile.mkdtemp(prefix=".gguf.", dir=folder.parent))
    try:
        _convert(file, draft, uri)
        try:
            draft.replace(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _convert(file: Path, folder: Path, uri: str) -> None:
    """Convert a GGUF file to a folder."""
    # transformers does not save a model that was read from GGUF, so the weights are moved into a new model of the same
    # class.
    import gguf  # noqa: F401  (transformers needs it and says so less clearly)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with quiet_libraries(), redirect_stderr(io.StringIO()):  # these progress bars are not transformers' own
            read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype="float32")
            tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as e:
        what = f"cannot be read as a GGUF model ({' '.join(str(e).split())[:160]})"
        raise ModelError(what, where=uri, hint="download it again, or name another model") from e
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.device("meta"):  # a second copy of the weights would double the memory
        fresh = type(read)(config)
    fresh.load_state_dict(read.state_dict(), assign=True)
    fresh.tie_weights()
    with quiet_libraries():
        fresh.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
