"""Grammaticality and constituency trees by link-grammar (Debian's `python3-link-grammar`).

Debian installs the Python binding in the system's dist-packages; there is no wheel. Only the binding is imported from
there, so that nothing else of the system's Python gets into a virtual environment.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from creperie.core import MissingExtraError

PACKAGES = (Path("/usr/lib/python3/dist-packages"), Path("/usr/local/lib/python3/dist-packages"))
LINKAGES = 50
SECONDS = 2  #: time limit per sentence
MOST_NULLS = 250
#: Fewer texts than this are parsed in this process.
FEW = 400


@dataclass(frozen=True)
class Parse:
    """The result of link-grammar for a text. `nulls` is the number of words that it cannot link; None if there is no
    parse.
    """

    nulls: int | None
    cost: float
    tree: str  #: constituents of the best linkage in brackets; empty if there is none


def available() -> bool:
    """Return whether link-grammar and its English dictionary are installed."""
    try:
        _english()
    except MissingExtraError:
        return False
    return True


def parse_linkage(text: str) -> Parse:
    """Parse one text and return the result."""
    library, dictionary = _english()
    shown = "".join(c if c.isprintable() else " " for c in text).strip()
    if not shown:  # the library aborts the process on an empty text
        return Parse(None, 0.0, "")
    options = library.ParseOptions(
        linkage_limit=LINKAGES, max_null_count=MOST_NULLS, max_parse_time=SECONDS, verbosity=0
    )
    sentence = library.Sentence(shown, dictionary, options)
    try:
        linkages = sentence.parse()
        best = next(iter(linkages), None)
    except Exception:  # a timeout, or a text that it cannot tokenise: no parse
        return Parse(None, 0.0, "")
    if best is None:
        return Parse(None, 0.0, "")
    return Parse(int(sentence.null_count()), float(best.disjunct_cost()), " ".join(best.constituent_tree().split()))


def parse_many(texts: Sequence[str], *, workers: int | None = None) -> list[Parse]:
    """Parse texts, in parallel if there are many, and return the results in order."""
    _english()
    count = workers if workers is not None else os.cpu_count() or 1
    if count < 2 or len(texts) < FEW:
        return [parse_linkage(text) for text in texts]
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        return list(pool.map(parse_linkage, texts, chunksize=64))


def grammaticality(parse: Parse, words: int) -> float:
    """Return a score: minus the number of words that cannot be linked, minus the cost of the best linkage. Higher is
    better.

    The cost is scaled to less than 1, so it never counts as much as a word that cannot be linked. If a text has no
    parse, its score is one lower than if none of its words could be linked.

    >>> good, costly, bad, none = Parse(0, 0.0, ""), Parse(0, 5.0, ""), Parse(1, 0.0, ""), Parse(None, 0.0, "")
    >>> [grammaticality(parse, words=4) for parse in (good, costly, bad, none)]
    [-0.0, -0.25, -1.0, -5.0]
    """
    if parse.nulls is None:
        return -float(words + 1)
    return -(parse.nulls + 0.5 * parse.cost / (5.0 + abs(parse.cost)))


def grammaticalities(texts: Sequence[str]) -> np.ndarray:
    """Return one grammaticality score (float32) per text. Higher is better."""
    pairs = zip(parse_many(texts), texts)
    return np.array([grammaticality(parse, len(text.split())) for parse, text in pairs], dtype=np.float32)


@cache
def _english() -> tuple[Any, Any]:
    library = _binding()
    with _quiet():
        library.LG_Error.set_handler(None)  # it would print errors that `parse_linkage` reports as None
        try:
            dictionary = library.Dictionary("en")
        except Exception as e:
            raise _missing(f"link-grammar's English dictionary cannot be opened ({e})") from e
    atexit.register(_english.cache_clear)  # the dictionary must be freed before its library is unloaded
    return library, dictionary


def _binding() -> Any:
    if "linkgrammar" in sys.modules or importlib.util.find_spec("linkgrammar"):
        return importlib.import_module("linkgrammar")
    for packages in PACKAGES:
        folder = packages / "linkgrammar"
        if not (folder / "__init__.py").is_file():
            continue
        spec = importlib.util.spec_from_file_location(
            "linkgrammar", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["linkgrammar"] = module
        try:
            spec.loader.exec_module(module)
        except ImportError as e:
            del sys.modules["linkgrammar"]
            raise _missing(f"link-grammar's binding is for another Python ({e})") from e
        return module
    raise _missing("this needs link-grammar, which is not installed")


def _missing(what: str) -> MissingExtraError:
    packages = "link-grammar-dictionaries-en python3-link-grammar"
    return MissingExtraError(what, hint=f"on Debian: apt-get install {packages}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence stdout and stderr within the block: the C library prints messages when it loads its dictionary."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (*kept, nowhere):
            os.close(descriptor)
