"""A folder of Parquet parts: each is there completely or not at all, and a manifest closes it.

.out.parts/               while the work goes on; renamed to out/ when all parts are there
  lock                    held by the one process that writes
  job.json                what is done: stage, settings, the source's digest
  part-000000.parquet     piece 0, with a checksum on every page
  manifest.json           at the end: the job, rows and SHA-256 of every part
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.core import DataError, UsageError, draft_of, locked, read_json, sha256_of, write_text

JOB, MANIFEST, LOCK = "job.json", "manifest.json", "lock"
VERSION = 1


@dataclass(frozen=True)
class Parts:
    """The parts of one job, on their way or finished."""

    folder: Path
    job: Mapping[str, Any]

    def path(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.parquet"

    def read(self, number: int) -> pa.Table:
        """Return a part; DataError where it is damaged, FileNotFoundError where it is not there."""
        import pyarrow.parquet as pq

        try:
            return pq.read_table(self.path(number), page_checksum_verification=True)
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as e:
            hint = "remove it and run the same command again"
            raise DataError(f"cannot be read ({str(e)[:120]})", where=str(self.path(number)), hint=hint) from None

    def write(self, number: int, table: pa.Table) -> None:
        """Keep a part: when this returns it outlives the process and a power cut; before, it is not there."""
        import pyarrow.parquet as pq

        with draft_of(self.path(number)) as draft:
            pq.write_table(table, draft, compression="zstd", write_page_checksum=True)

    def is_whole(self, number: int) -> bool:
        """Is the part there, and every page of it as it was written?"""
        try:
            self.read(number)
        except (DataError, FileNotFoundError):
            return False
        return True

    def tables(self) -> Iterator[pa.Table]:
        """Yield all parts, in order."""
        for number in range(int(self.job["pieces"])):
            yield self.read(number)


@contextmanager
def opened_parts(out: Path, job: Mapping[str, Any], *, force: bool) -> Iterator[Parts]:
    """The parts of this job, held by this process. Parts of another job are in the way unless forced."""
    folder = out.parent / f".{out.name}.parts"
    with locked(folder / LOCK, "another process is writing this", where=out):
        _claim(folder, out, job, force)
        yield Parts(folder, job)


def _claim(folder: Path, out: Path, job: Mapping[str, Any], force: bool) -> None:
    try:
        known = json.loads((folder / JOB).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = None
    if known == job:
        return
    if known is not None and not force:
        names = sorted(k for k in job if not isinstance(known, dict) or known.get(k) != job[k])
        what = f"interrupted work with another {', '.join(names) or 'job'} lies in {folder.name}"
        raise UsageError(what, where=str(out), hint="pass `force=True` to throw it away, or name another `out=`")
    for part in folder.glob("part-*"):
        part.unlink()
    write_text(folder / JOB, json.dumps(job, indent=2, ensure_ascii=False) + "\n")


def close_parts(parts: Parts, out: Path) -> Parts:
    """Write the manifest and give the folder its name."""
    numbers = range(int(parts.job["pieces"]))
    rows = [_row(parts.path(k)) for k in numbers]
    manifest = {"creperie": VERSION, "job": dict(parts.job), "rows": sum(r["rows"] for r in rows), "parts": rows}
    write_text(parts.folder / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    if out.exists():
        shutil.rmtree(out)
    for draft in parts.folder.glob(".part-*"):  # left by processes that were killed
        draft.unlink(missing_ok=True)
    parts.folder.replace(out)
    (out / JOB).unlink(missing_ok=True)
    (out / LOCK).unlink(missing_ok=True)
    return Parts(out, parts.job)


def _row(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    return {"file": path.name, "rows": pq.read_metadata(path).num_rows, "sha256": sha256_of(path)}


def load_parts(out: Path) -> Parts:
    """Return a finished folder, after a look at every part's size and checksum."""
    manifest = read_json(out / MANIFEST)
    try:
        job, listed = dict(manifest["job"]), [(str(p["file"]), str(p["sha256"])) for p in manifest["parts"]]
        complete = manifest["creperie"] == VERSION and len(listed) == int(job["pieces"])
    except (KeyError, TypeError, ValueError) as e:
        what = f"is not a manifest of parts ({type(e).__name__}: {e})"
        raise DataError(what, where=str(out / MANIFEST), hint="write the folder again") from None
    if not complete:
        raise DataError("does not list all of its parts", where=str(out / MANIFEST), hint="write the folder again")
    for name, digest in listed:
        path = out / Path(name).name
        if not path.is_file():
            raise DataError("is missing", where=str(path), hint="write the folder again with `force=True`")
        if sha256_of(path) != digest:
            raise DataError(
                "checksum mismatch: the file is damaged", where=str(path), hint="write it again with `force=True`"
            )
    return Parts(out, job)
