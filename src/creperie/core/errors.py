"""The error classes of creperie. Each message says in one line what is wrong, where, and what to do about it.

Messages name arguments as Python does, in backticks: `out=`, `force=True`, `encoder='st:MODEL'`. The command line
prints them as its own options.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable


class CreperieError(Exception):
    """The base class of errors about a call or its data. The command line prints such an error as one line and exits
    with 2.

    >>> print(CreperieError("no such column 'foil'", where="my.csv", hint="choose one of: caption, negative"))
    my.csv: no such column 'foil'; choose one of: caption, negative
    """

    def __init__(self, what: str, *, where: object = "", hint: str = "") -> None:
        self.what = " ".join(what.split())
        self.where = " ".join(str(where).split())
        self.hint = " ".join(hint.split())
        super().__init__(str(self))

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line}; {self.hint}" if self.hint else line


class DataError(CreperieError):
    """Raised for a file or record that violates its format."""


class UsageError(CreperieError):
    """Raised for a call that cannot be carried out as written."""


class UnknownNameError(UsageError):
    """Raised for a name that is not among the known names."""


class ModelError(CreperieError):
    """Raised for a model that cannot be loaded, or whose output is not a valid score."""


class MissingExtraError(UsageError):
    """Raised when a call needs an optional dependency that is not installed."""


def unknown(kind: str, name: str, choices: Iterable[str], *, where: object = "") -> UnknownNameError:
    """Return the error for an unknown name, with the nearest known one as a suggestion.

    >>> print(unknown("format", "sugarcreep", ["sugarcrepe", "valse"]))
    unknown format 'sugarcreep'; did you mean 'sugarcrepe'? Known: sugarcrepe, valse
    """
    import difflib

    known = sorted(set(choices))
    lowered = {choice.lower(): choice for choice in known}
    near = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.6)
    hint = f"did you mean {lowered[near[0]]!r}? " if near else ""
    listed = ", ".join(known) if len(known) <= 40 else ", ".join(known[:40]) + ", …"
    return UnknownNameError(f"unknown {kind} {name!r}", where=where, hint=f"{hint}Known: {listed}")


def check_name(kind: str, name: str, choices: Collection[str], *, where: object = "") -> None:
    """Raise the error for an unknown name if `name` is not among the choices."""
    if name not in choices:
        raise unknown(kind, name, choices, where=where)


#: module → the extra of creperie that installs it; for any other module the hint names the package itself
EXTRAS = {
    **dict.fromkeys(("torch", "transformers", "safetensors", "sentence_transformers", "sentencepiece"), "models"),
    **dict.fromkeys(("huggingface_hub", "tokenizers", "num2words", "google"), "models"),
    **dict.fromkeys(("spacy", "nltk", "rapidfuzz", "wordfreq", "lemminflect", "pocketsphinx", "networkx"), "lang"),
    **dict.fromkeys(("sklearn", "threadpoolctl", "rensa"), "stats"),
    **dict.fromkeys(("matplotlib", "fastapi", "uvicorn", "starlette"), "report"),
    **dict.fromkeys(("sqlalchemy", "alembic", "psycopg", "multipart"), "people"),
    "accelerate": "train",
    "ray": "ray",
    **dict.fromkeys(("fsspec", "s3fs", "openpyxl"), "remote"),
    **dict.fromkeys(("open_clip", "timm"), "open-clip"),
    **dict.fromkeys(("onnxruntime", "onnx"), "onnx"),
    "gguf": "llm",
}


def missing_module(error: ImportError, extra: str = "") -> MissingExtraError:
    """Return the error for a failed import. It names the missing package and the extra of creperie that installs it.

    >>> print(missing_module(ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")))
    this needs the Python package 'torch', which is not installed; install it with: pip install 'creperie[models]'
    """
    package = (error.name or str(error)).partition(".")[0]
    if " " in package:  # transformers names no package when one of its own modules fails to import; the cause does
        problem = " ".join(str(error.__cause__ or error).split())[:240]
        return MissingExtraError(
            problem, hint="install versions of torch, torchvision and transformers that fit each other"
        )
    return missing_extra(package, EXTRAS.get(package, extra))


def missing_extra(module: str, extra: str) -> MissingExtraError:
    """Return the error for an optional dependency that is not installed. `extra` is empty if no extra installs it.

    >>> print(missing_extra("torch", "models"))
    this needs the Python package 'torch', which is not installed; install it with: pip install 'creperie[models]'
    """
    hint = f"install it with: pip install 'creperie[{extra}]'" if extra else f"pip install {module}"
    return MissingExtraError(f"this needs the Python package {module!r}, which is not installed", hint=hint)


#: argument → flag, where the two names differ
FLAGS = {"changes": "set"}


def as_flags(message: str) -> str:
    """Return an error message in which Python arguments are written as command-line flags.

    >>> as_flags("choose another `out=`, or pass `force=True`, or `clip_norm=1`, or `encoder='st:MODEL'`")
    'choose another --out, or pass --force, or --clip-norm 1, or --encoder st:MODEL'
    """

    def flag(argument: re.Match[str]) -> str:
        name, value = FLAGS.get(argument[1], argument[1]).replace("_", "-"), argument[2].strip("'\"")
        return f"--{name}" if value in ("", "True") else f"--{name} {value}"

    return re.sub(r"`([a-z][a-z_]*)=([^`]*)`", flag, message)
