"""Items and candidates on their way to Parquet, as many as there are: no more than a row group is held.

What the columns of items' tags are is known when the last item has passed, so items wait in a spool of tables, each
with the tags of its own items, and are written when all have been seen.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from creperie.bench import (
    CORE_COLUMNS,
    HASH_CHUNK,
    Benchmark,
    ContentHash,
    Item,
    Parquet,
    TableWriter,
    check_keys,
    table_of,
    tag_array,
)
from creperie.making.candidate import Candidate
from creperie.making.pipeline import CandidateVerdict, SourceOutcome
from creperie.making.source import SourceCaption

#: Items of one table of the spool.
SPOOLED = 8192
COLUMNS = ("source", "source_text", "text", "role", "kind", "group", "maker", "edit", "tags", "status", "reason")
SCHEMA = pa.schema([(name, pa.string()) for name in COLUMNS])


class ItemSpool:
    """Items in order, kept in a folder until all are known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._waiting: list[Item] = []
        self._kinds: dict[str, set[pa.DataType]] = {}
        self._keys = array("q")
        self._tables = 0

    def add(self, item: Item) -> None:
        key = hashlib.blake2b(f"{item.subset}\0{item.id}".encode("utf-8", "surrogatepass"), digest_size=8)
        self._keys.append(int.from_bytes(key.digest(), "little", signed=True))
        self._waiting.append(item)
        if len(self._waiting) == SPOOLED:
            self._spool()

    def _spool(self) -> None:
        table = table_of(self._waiting)
        for column in table.schema:
            self._kinds.setdefault(column.name, set()).add(column.type)
        with pa.OSFile(str(self._path(self._tables)), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        self._tables += 1
        self._waiting = []

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.arrow"

    def write(self, path: Path, name: str) -> Parquet:
        """All items as one Parquet file, that of a benchmark; DataError where two have one key."""
        if self._waiting or not self._tables:
            self._spool()
        schema = self._schema()
        hashing, writer = ContentHash(schema.names), TableWriter(path, schema)
        for piece in _evenly(self._read(schema), HASH_CHUNK):
            hashing.feed(piece)
            writer.write(piece)
        writer.close()
        shutil.rmtree(self.folder)
        found = Parquet((path,), hashing.hexdigest())
        keys = np.frombuffer(self._keys, np.int64) if self._keys else np.zeros(0, np.int64)
        if len(np.unique(keys)) < len(keys):  # a key twice, or two keys with one digest: look closely
            check_keys(Benchmark(name, found))
        return found

    def _schema(self) -> pa.Schema:
        """The columns of all items; a tag of several kinds is text, as within one table."""
        fields = list(CORE_COLUMNS)
        for name in sorted(n for n in self._kinds if n not in CORE_COLUMNS.names):
            kinds = self._kinds[name]
            fields.append(pa.field(name, next(iter(kinds)) if len(kinds) == 1 else pa.string()))
        return pa.schema(fields)

    def _read(self, schema: pa.Schema) -> Iterator[pa.Table]:
        for number in range(self._tables):
            with pa.memory_map(str(self._path(number))) as file, pa.ipc.open_file(file) as reader:
                table = reader.read_all()
                yield pa.table([_column(table, wanted) for wanted in schema], schema=schema)


def _column(table: pa.Table, wanted: pa.Field) -> pa.ChunkedArray | pa.Array:
    if wanted.name not in table.column_names:
        return pa.nulls(table.num_rows, wanted.type)
    column = table.column(wanted.name)
    if column.type == wanted.type:
        return column
    values = column.to_pylist()  # numbers and truths among texts are written as texts are
    return tag_array(wanted.name, [*values, "text"])[:-1]


def _evenly(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of one size; the last has what is left."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        while sum(t.num_rows for t in waiting) >= rows:
            whole = pa.concat_tables(waiting).combine_chunks()
            yield whole.slice(0, rows)
            waiting = [whole.slice(rows)]
    if any(t.num_rows for t in waiting):
        yield pa.concat_tables(waiting).combine_chunks()


class CandidateFile:
    """Every candidate, accepted or not, one row each; sources without candidates have a row that says why."""

    def __init__(self, path: Path) -> None:
        self._writer = TableWriter(path, SCHEMA)
        self._rows: list[tuple[str | None, ...]] = []

    def add(self, source: SourceCaption, outcome: SourceOutcome) -> None:
        self._rows += candidate_rows(source, outcome)
        if len(self._rows) >= SPOOLED:
            self._pass_on()

    def _pass_on(self) -> None:
        columns = [pa.array([row[k] for row in self._rows], pa.string()) for k in range(len(COLUMNS))]
        self._writer.write(pa.table(columns, schema=SCHEMA))
        self._rows = []

    def close(self) -> None:
        self._pass_on()
        self._writer.close()


def candidate_rows(source: SourceCaption, outcome: SourceOutcome) -> Iterator[tuple[str | None, ...]]:
    s = source
    if not outcome.verdicts:
        yield (s.id, s.text, None, None, None, None, None, None, None, "skipped", outcome.skipped)
    for v in outcome.verdicts:
        c = v.candidate
        tags = json.dumps(dict(c.tags), ensure_ascii=False) if c.tags else None
        status = "rejected" if v.reason else "made"
        yield (s.id, s.text, c.text, c.role, c.kind, c.subset, c.maker, c.edit, tags, status, v.reason)


def read_candidates(path: Path) -> Iterator[SourceOutcome]:
    """The outcomes of a finished generation job, one per source; their cost is not included."""
    import pyarrow.parquet as pq

    last: tuple[str, str, list[CandidateVerdict]] | None = None
    for batch in pq.ParquetFile(path).iter_batches(SPOOLED):
        for row in batch.to_pylist():
            if last is None or last[0] != row["source"]:
                if last is not None:
                    yield SourceOutcome(last[0], last[1], tuple(last[2]))
                last = (row["source"], row["reason"] if row["status"] == "skipped" else "", [])
            if row["status"] != "skipped":
                tags = json.loads(row["tags"]) if row["tags"] else {}
                fields = {name: row[name] for name in ("source", "text", "role", "kind", "maker", "edit", "group")}
                last[2].append(CandidateVerdict(Candidate(**fields, tags=tags), row["reason"]))
    if last is not None:
        yield SourceOutcome(last[0], last[1], tuple(last[2]))
