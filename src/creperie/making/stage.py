"""Making as a stage of the engine: sources in, outcomes out, one row each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from creperie.engine import even_counts
from creperie.making.candidate import Maker
from creperie.making.parts import outcome_text
from creperie.making.pipeline import work
from creperie.making.source import SourceCaption

SOURCES = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("images", pa.list_(pa.string())),
        ("others", pa.list_(pa.string())),
        ("subset", pa.string()),
        ("tags", pa.string()),
    ]
)


@dataclass(frozen=True)
class MakeStage:
    """A maker with its checks. Its parser or model is loaded once per worker, when the first source comes."""

    maker: Maker

    def __call__(self, batch: pa.Table) -> pa.Table:
        outcomes = work(self.maker, sources_of(batch))
        return pa.table({"id": [o.source for o in outcomes], "outcome": [outcome_text(o) for o in outcomes]})


@dataclass(frozen=True)
class SourcePieces:
    """Sources in chunks. Each is turned into a table when it is asked for."""

    sources: Sequence[SourceCaption]
    size: int

    @property
    def rows(self) -> int:
        return len(self.sources)

    @property
    def counts(self) -> Sequence[int]:
        return even_counts(self.rows, self.size)

    def __len__(self) -> int:
        return -(-self.rows // self.size)

    def chunk(self, number: int) -> Sequence[SourceCaption]:
        return self.sources[number * self.size : (number + 1) * self.size]

    def ids(self, number: int) -> list[str]:
        return [s.id for s in self.chunk(number)]

    def piece(self, number: int) -> pa.Table:
        return source_table(self.chunk(number))


def source_table(sources: Sequence[SourceCaption]) -> pa.Table:
    """Sources as a table."""
    columns = [
        [s.id for s in sources],
        [s.text for s in sources],
        [s.images for s in sources],
        [s.others for s in sources],
        [s.subset for s in sources],
        [json.dumps(dict(s.tags), ensure_ascii=True) for s in sources],
    ]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SOURCES, strict=True)], schema=SOURCES)


def sources_of(table: pa.Table) -> list[SourceCaption]:
    """Sources from a table.

    >>> dog = SourceCaption("1", "a dog", ("a.jpg",), ("one dog",), "swap", {"n": 2.0})
    >>> sources_of(source_table([dog])) == [dog]
    True
    """
    return [
        SourceCaption(r["id"], r["text"], tuple(r["images"]), tuple(r["others"]), r["subset"], json.loads(r["tags"]))
        for r in table.to_pylist()
    ]
