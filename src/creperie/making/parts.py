"""Generation in batches: the work that runs on an engine, and its partial results, from which a job can resume.

.out.making/
  job.json             the job: maker, settings, digest of the captions, batch size
  part-000000.parquet  the outcomes of one batch of sources, in order; workers write it
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.core import CreperieError, UsageError, locked, read_json, write_json
from creperie.engine import even_counts, read_part
from creperie.making.candidate import Candidate
from creperie.making.pipeline import CandidateVerdict, Maker, SourceOutcome, work
from creperie.making.source import SourceCaption


def parts_folder(out: Path) -> Path:
    return out.parent / f".{out.name}.making"


@contextmanager
def opened(out: Path, job: Mapping[str, Any], *, force: bool) -> Iterator[Path]:
    """Lock the folder with the partial results of this job and yield it. If the folder has the partial results of
    another job, raise a UsageError; with `force`, delete them instead.
    """
    folder = parts_folder(out)
    with locked(folder / "lock", "another process is making this", where=out):
        wanted, path = json.loads(json.dumps(job, default=str)), folder / "job.json"
        try:
            known = read_json(path)
        except CreperieError:
            known = None
        if known is not None and known != wanted and not force:
            different = sorted(k for k in wanted if known.get(k) != wanted[k])
            what = f"{folder.name} has an interrupted generation job with other {', '.join(different) or 'fields'}"
            raise UsageError(what, where=str(out), hint="pass `force=True` to discard it, or another folder as `out=`")
        if known != wanted:
            for part in folder.glob("part-*"):
                part.unlink()
            write_json(path, wanted)
        yield folder


def stored_outcomes(folder: Path, number: int, sources: Sequence[str]) -> list[SourceOutcome] | None:
    """Return the outcomes of a stored batch; None if the batch is missing, damaged, or made from other sources."""
    table = read_part(folder, number)
    try:
        outcomes = [outcome_of(line) for line in table.column("outcome").to_pylist()] if table is not None else []
    except (ValueError, KeyError, TypeError):
        return None
    return outcomes if [o.source for o in outcomes] == list(sources) else None


def remove_parts(out: Path) -> None:
    shutil.rmtree(parts_folder(out), ignore_errors=True)


def outcome_text(outcome: SourceOutcome) -> str:
    """Return an outcome as a line of JSON."""
    return json.dumps(asdict(outcome))


def outcome_of(text: str) -> SourceOutcome:
    """Return the outcome that a line of JSON describes; raise a ValueError if the line is not valid."""
    try:
        line = json.loads(text)
        verdicts = (CandidateVerdict(Candidate(**v["candidate"]), v["reason"]) for v in line["verdicts"])
        return SourceOutcome(**{**line, "verdicts": tuple(verdicts)})
    except (KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(f"is not a stored result of a maker ({type(e).__name__})") from None


@dataclass(frozen=True)
class MakeStage:
    """A stage of work for an engine: it runs a maker and its checks. Every worker loads the parser or model once, for
    its first source.
    """

    maker: Maker

    def __call__(self, batch: pa.Table) -> pa.Table:
        return pa.table({"outcome": [outcome_text(o) for o in work(self.maker, sources_of(batch))]})


@dataclass(frozen=True)
class SourcePieces:
    """Source captions in batches, each of which is converted to a table on demand."""

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
    """Return the sources as a table, with one line of JSON per source."""
    return pa.table({"source": pa.array([json.dumps(asdict(s)) for s in sources], pa.string())})


def sources_of(table: pa.Table) -> list[SourceCaption]:
    """Return the sources that a table holds.

    >>> dog = SourceCaption("1", "a dog", ("a.jpg",), ("one dog",), "swap", {"n": 2.0})
    >>> sources_of(source_table([dog])) == [dog]
    True
    """
    rows = map(json.loads, table.column("source").to_pylist())
    return [SourceCaption(**{**row, "images": tuple(row["images"]), "others": tuple(row["others"])}) for row in rows]
