"""Streaming of items and candidates to Parquet, with at most one row group in memory.

The columns for items' tags are known only after the last item. So items are first stored in a spool of tables, each
with the tags of its own items, and written at the end.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from array import array
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
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
    check_keys,
    table_of,
    tag_array,
)
from creperie.core import TableWriter, check_files, open_parquet, read_checked
from creperie.making.candidate import Candidate
from creperie.making.pipeline import CandidateVerdict, SourceOutcome
from creperie.making.source import SourceCaption

REPORT_FILE = "making.json"
CANDIDATES_FILE = "candidates.parquet"
#: Number of items per table of the spool.
SPOOLED = 8192
COLUMNS = ("source", "source_text", "text", "role", "kind", "group", "maker", "edit", "tags", "status", "reason")
FIELDS = ("source", "text", "role", "kind", "maker", "edit", "group")
SCHEMA = pa.schema([(name, pa.string()) for name in COLUMNS])


class ItemSpool:
    """A temporary store of items on disk, which keeps them in order until all items are known."""

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
        """Write all items as the Parquet file of a benchmark; raise a DataError if two items have the same key."""
        if self._waiting or not self._tables:
            self._spool()
        whole = self._read()
        hashing, writer = ContentHash(whole.column_names), TableWriter(path, whole.schema)
        for start in range(0, whole.num_rows, HASH_CHUNK):
            piece = whole.slice(start, HASH_CHUNK).combine_chunks()
            hashing.feed(piece)
            writer.write(piece)
        writer.close()
        shutil.rmtree(self.folder)
        items = Parquet((path,), hashing.hexdigest())
        if len(np.unique(self._keys)) < len(self._keys):  # a repeated key or a hash collision: check exactly
            check_keys(Benchmark(name, items))
        return items

    def _read(self) -> pa.Table:
        """Return all items, memory-mapped. A tag whose values differ in type between the stored tables becomes text,
        just as it would in a single table of all items.
        """
        mixed = [name for name, kinds in self._kinds.items() if len(kinds) > 1]
        tables = []
        for number in range(self._tables):
            table = pa.ipc.open_file(pa.memory_map(str(self._path(number)))).read_all()
            for name in set(mixed) & set(table.column_names):
                texts = tag_array([*table.column(name).to_pylist(), "text"])[:-1]
                table = table.set_column(table.column_names.index(name), name, texts)
            tables.append(table)
        core = CORE_COLUMNS.names
        return pa.concat_tables(tables, promote_options="default").select([*core, *sorted({*self._kinds} - {*core})])


class CandidateFile:
    """The file of all candidates, accepted or not, one row each. If a source has no candidates, or none for some kind
    of foil, there is a row with the reason.
    """

    def __init__(self, path: Path) -> None:
        self._writer = TableWriter(path, SCHEMA)
        self._rows: list[dict[str, str | None]] = []

    def add(self, source: SourceCaption, outcome: SourceOutcome) -> None:
        self._rows += candidate_rows(source, outcome)
        if len(self._rows) >= SPOOLED:
            self._flush()

    def _flush(self) -> None:
        self._writer.write(pa.Table.from_pylist(self._rows, SCHEMA))
        self._rows = []

    def close(self) -> None:
        self._flush()
        self._writer.close()


def candidate_rows(source: SourceCaption, outcome: SourceOutcome) -> Iterator[dict[str, str | None]]:
    own: dict[str, str | None] = {"source": source.id, "source_text": source.text}
    if not outcome.verdicts:
        yield own | {"status": "skipped", "reason": outcome.skipped}
    for v in outcome.verdicts:
        c = v.candidate
        tags = json.dumps(dict(c.tags), ensure_ascii=False) if c.tags else None
        status = "rejected" if v.reason else "made"
        yield own | asdict(c) | {"group": c.subset, "tags": tags, "status": status, "reason": v.reason}
    for kind, why in outcome.missing.items():
        yield own | {"kind": kind, "status": "missing", "reason": why}


def read_candidates(folder: Path) -> Iterator[SourceOutcome]:
    """Yield the outcomes of a finished generation job, one per source. The number of model calls (`calls`) is not
    stored and stays 0.
    """
    path, again = folder / CANDIDATES_FILE, "make it again with `creperie make`"
    check_files(folder, read_checked(folder / REPORT_FILE, again)[1], again)
    rows = (row for batch in open_parquet(path).iter_batches(SPOOLED) for row in batch.to_pylist())
    for source, group in groupby(rows, lambda row: row["source"]):
        every = list(group)
        missing = {r["kind"]: r["reason"] for r in every if r["status"] == "missing"}
        skipped = next((r["reason"] for r in every if r["status"] == "skipped"), "")
        own = [r for r in every if r["status"] in ("made", "rejected")]
        candidates = [Candidate(**{n: r[n] for n in FIELDS}, tags=json.loads(r["tags"] or "{}")) for r in own]
        verdicts = tuple(CandidateVerdict(c, r["reason"]) for c, r in zip(candidates, own))
        yield SourceOutcome(source, skipped, verdicts, missing=missing)
