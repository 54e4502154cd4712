"""Parses as a table, for many captions: a stage of the engine that needs nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from creperie.lang.parser import default_parser, load_parser, parse

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
