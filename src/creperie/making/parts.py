"""A generation job on its way: parts in a folder beside the result, each whole or not there, so that it can go on.

.out.making/
  job.json          what is made: maker, settings, seed, the captions' digest
  part-00000.jsonl  the outcomes of one chunk of sources, one line per source
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from creperie.core import UsageError, locked, write_text
from creperie.making.candidate import Candidate
from creperie.making.pipeline import CandidateVerdict, SourceOutcome

JOB = "job.json"


def parts_folder(out: Path) -> Path:
    return out.parent / f".{out.name}.making"


@contextmanager
def opened(out: Path, job: Mapping[str, Any], *, force: bool) -> Iterator[Path]:
    """The folder of parts for this job, held by this process. Parts of another job are in the way unless forced."""
    folder = parts_folder(out)
    with locked(folder / "lock", "another process is making this", where=out):
        _claim(folder, out, job, force)
        yield folder


def _claim(folder: Path, out: Path, job: Mapping[str, Any], force: bool) -> None:
    wanted = json.loads(json.dumps(job, default=str))
    path = folder / JOB
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = None
    if known is not None and known != wanted and not force:
        different = sorted(k for k in wanted if known.get(k) != wanted[k])
        what = f"an interrupted generation job with another {', '.join(different) or 'job'} lies in {folder.name}"
        raise UsageError(what, where=str(out), hint="pass `force=True` to throw it away, or name another `out=`")
    if known != wanted:
        for part in folder.glob("part-*"):
            part.unlink()
        write_text(path, json.dumps(wanted, indent=2, ensure_ascii=False))


def write_part(folder: Path, number: int, lines: Sequence[str]) -> None:
    """Keep a chunk's outcomes, one per line: all of them, or, where the process dies, none."""
    write_text(_part(folder, number), "".join(line + "\n" for line in lines))


def part_count(folder: Path) -> int:
    """How many chunks are kept."""
    return sum(1 for _ in folder.glob("part-*.jsonl"))


def read_part(folder: Path, number: int, sources: Sequence[str]) -> list[SourceOutcome] | None:
    """A kept chunk; None where it is not there or not of these sources."""
    try:
        lines = _part(folder, number).read_text(encoding="utf-8").splitlines()
        outcomes = [outcome_of(line) for line in lines]
    except (OSError, ValueError):
        return None
    return outcomes if [o.source for o in outcomes] == list(sources) else None


def remove_parts(out: Path) -> None:
    shutil.rmtree(parts_folder(out), ignore_errors=True)


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:06d}.jsonl"


def outcome_text(outcome: SourceOutcome) -> str:
    """An outcome as a line of JSON."""
    verdicts = [{**asdict(v.candidate), "reason": v.reason} for v in outcome.verdicts]
    plain = {"source": outcome.source, "skipped": outcome.skipped, "calls": outcome.calls, "candidates": verdicts}
    plain["missing"] = dict(outcome.missing)
    return json.dumps(plain, ensure_ascii=True)


def outcome_of(text: str) -> SourceOutcome:
    """An outcome from its line; ValueError where it is not valid."""
    try:
        line = json.loads(text)
        verdicts = tuple(
            CandidateVerdict(Candidate(**{k: v for k, v in c.items() if k != "reason"}), c["reason"])
            for c in line["candidates"]
        )
        return SourceOutcome(line["source"], line["skipped"], verdicts, line["calls"], line["missing"])
    except (KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(f"is not an outcome ({type(e).__name__})") from None
