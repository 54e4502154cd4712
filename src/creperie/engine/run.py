"""`map_batches`: a stage over all pieces of a source, kept part by part; if it is killed, the same call resumes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.core import Progress, UsageError, check_target, silent
from creperie.engine.engines import Engine, Local
from creperie.engine.parts import MANIFEST, Parts, close_parts, load_parts, opened_parts
from creperie.engine.pieces import Held, Pieces, Stage


@dataclass(frozen=True)
class Done:
    """Finished work: its parts, how many pieces were computed now, and how many were there already."""

    parts: Parts
    computed: int
    kept: int

    @property
    def table(self) -> pa.Table:
        """All rows, in the order of the source."""
        tables = list(self.parts.tables())
        return pa.concat_tables(tables) if tables else pa.table({})


def map_batches(
    stage: Stage,
    source: Pieces | pa.Table,
    out: str | Path,
    *,
    engine: Engine | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Done:
    """Apply a stage to every piece of a source and write the results to `out`, a folder of Parquet parts."""
    pieces = _pieces(source)
    folder = Path(out)
    job = job_of(stage, pieces)
    if not force and (finished := _finished(folder, job)):
        return Done(finished, 0, len(pieces))
    check_target(folder, True, (MANIFEST,))
    with opened_parts(folder, job, force=force) as parts:
        whole = {k for k in range(len(pieces)) if parts.is_whole(k)}
        todo = [k for k in range(len(pieces)) if k not in whole]
        with progress(stage.name, len(pieces), "pieces") as advance:
            advance(len(whole))
            for number, table in (engine or Local()).run(stage, pieces, todo):
                parts.write(number, table)
                advance(1)
        return Done(close_parts(parts, folder), len(todo), len(whole))


def gather(stage: Stage, source: Pieces | pa.Table, *, engine: Engine | None = None) -> pa.Table:
    """Apply a stage to every piece in memory; the rows in the order of the source."""
    pieces = _pieces(source)
    tables = dict((engine or Local()).run(stage, pieces, range(len(pieces))))
    return pa.concat_tables([tables[k] for k in range(len(pieces))]) if tables else pa.table({})


def job_of(stage: Stage, pieces: Pieces) -> Mapping[str, Any]:
    """Return what is done, as JSON holds it."""
    settings = json.loads(json.dumps(dict(stage.settings), default=str, sort_keys=True))
    return {
        "stage": stage.name,
        "settings": settings,
        "source": pieces.digest,
        "rows": pieces.rows,
        "pieces": len(pieces),
    }


def _pieces(source: Pieces | pa.Table) -> Pieces:
    return Held(source) if isinstance(source, pa.Table) else source


def _finished(folder: Path, job: Mapping[str, Any]) -> Parts | None:
    """Return the work, where it was finished before."""
    if not (folder / MANIFEST).is_file():
        return None
    parts = load_parts(folder)
    if parts.job != job:
        different = ", ".join(k for k in job if parts.job.get(k) != job[k])
        what = f"this folder holds finished work with another {different}"
        raise UsageError(what, where=str(folder), hint="choose another, or pass `force=True`")
    return parts
