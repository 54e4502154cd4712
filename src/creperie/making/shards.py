"""Generation in shards: each job makes its share of the captions, `merge_making` makes the benchmark of all.

out-3/
  shard.json       which shard of what: maker, options, where the captions are and their digest
  outcomes.jsonl   one line per caption, in order
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from creperie.bench import WRITTEN, new_folder
from creperie.core import (
    CreperieError,
    DataError,
    Progress,
    UsageError,
    check_target,
    options_from,
    read_json,
    sha256_of,
    silent,
    write_json,
)
from creperie.engine import Engine, Local, Shard, check_complete
from creperie.making.candidate import Maker, Metered
from creperie.making.choice import choose
from creperie.making.options import JobOptions, MakerOptions
from creperie.making.parts import opened, outcome_of, outcome_text, remove_parts
from creperie.making.pipeline import SourceOutcome, Tally
from creperie.making.registry import build_maker
from creperie.making.run import Made, finish, job_of, make_parts, proposed_outcomes
from creperie.making.source import Captions, first_or_drawn, read_captions

SHARD, OUTCOMES, VERSION = "shard.json", "outcomes.jsonl", 1


@dataclass(frozen=True)
class MakeRequest:
    """All that a generation job is asked for; enough to build its maker and read its captions again."""

    maker: str
    captions: str
    options: MakerOptions
    job: JobOptions = field(default_factory=JobOptions)

    def read(self) -> Captions:
        whole = read_captions(self.captions, images=self.job.images)
        return first_or_drawn(whole, self.job.limit, self.job.sample, self.options.seed)


def make_shard(
    request: MakeRequest,
    captions: Captions,
    shard: Shard,
    out: str | Path,
    *,
    engine: Engine | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Made:
    """Make one share of the captions. If it is killed, the same call resumes with the next chunk."""
    folder = Path(out)
    maker = build_maker(request.maker, request.options, captions)  # of all captions: some makers look around
    own = shard.of(captions.sources)
    check_target(folder, force, WRITTEN)
    job = {**job_of(maker, captions), "shard": str(shard)}
    with opened(folder, job, force=force) as parts:
        make_parts(maker, own, parts, engine or Local(), progress)
        tally = _write_shard(maker, request, job, proposed_outcomes(maker, own, parts), folder)
        remove_parts(folder)
    return Made(tally.report, told=lambda: _lines_of(folder / OUTCOMES))


def _write_shard(
    maker: Maker, request: MakeRequest, job: Mapping[str, Any], outcomes: Iterable[SourceOutcome], folder: Path
) -> Tally:
    tally, digest = Tally(), hashlib.sha256()
    with new_folder(folder, replace_old=True) as draft:
        with (draft / OUTCOMES).open("wb") as file:
            for outcome in outcomes:
                line = outcome_text(outcome).encode() + b"\n"
                file.write(line)
                digest.update(line)
                tally.add(outcome)
        document = {
            "creperie": VERSION,
            "kind": "making",
            "job": dict(job),
            "request": {**asdict(request), "captions": _absolute(request.captions)},
            "outcomes": {"rows": tally.sources, "sha256": digest.hexdigest()},
        }
        if isinstance(maker, Metered):
            document["ledger"] = dict(maker.ledger)
        write_json(draft / SHARD, document)
    return tally


def _absolute(spec: str) -> str:
    """A path as it is found from anywhere; names of catalogs and formats as they are."""
    return str(Path(spec).resolve()) if Path(spec).exists() else spec


def merge_making(
    folders: Sequence[str | Path], out: str | Path, *, captions: Captions | None = None, force: bool = False
) -> Made:
    """The benchmark of all shards: the one that a job without shards would have written.

    The captions are read from where the shards say that they are, unless they are given.
    """
    target = Path(out)
    check_target(target, force, WRITTEN)
    found = sorted((_read_shard(Path(f)) for f in folders), key=lambda s: s.shard)
    check_complete((s.shard, str(s.folder), {**s.job, "shard": ""}) for s in found)
    first = found[0]
    captions = captions or first.request.read()
    if captions.digest != first.job["captions"]:
        what = "the captions are no longer those that the shards were made from"
        raise DataError(what, where=first.request.captions, hint="bring them back, or make the shards again")
    maker = build_maker(first.request.maker, first.request.options, captions)
    for shard in found:
        shard.check()
    outcomes = choose(maker, lambda: _of_captions(captions, (o for s in found for o in s.outcomes())))
    ledgers = [s.ledger for s in found if s.ledger is not None]
    return finish(maker, captions, outcomes, target, _summed(ledgers) if ledgers else None)


def _of_captions(captions: Captions, outcomes: Iterator[SourceOutcome]) -> Iterator[SourceOutcome]:
    """The outcomes, one per caption in their order; an error where that is not so."""
    for source, outcome in zip_longest(captions.sources, outcomes):
        if source is None or outcome is None or outcome.source != source.id:
            raise DataError("the shards do not hold every caption once", hint="make the shards again")
        yield outcome


def _lines_of(path: Path) -> Iterator[SourceOutcome]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield outcome_of(line)


def _summed(ledgers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for ledger in ledgers:
        total.update({k: v for k, v in ledger.items() if isinstance(v, (int, float))})
    return dict(total)


@dataclass(frozen=True)
class _Made:
    """A shard on disk."""

    folder: Path
    shard: Shard
    job: dict[str, Any]
    request: MakeRequest
    digest: str
    ledger: Mapping[str, Any] | None

    def check(self) -> None:
        """DataError where the outcomes are not those that were written."""
        path = self.folder / OUTCOMES
        try:
            digest = sha256_of(path)
        except OSError as e:
            raise DataError(f"cannot be read ({e.strerror})", where=str(path), hint="make the shard again") from None
        if digest != self.digest:
            raise DataError("checksum mismatch: the file is damaged", where=str(path), hint="make the shard again")

    def outcomes(self) -> Iterator[SourceOutcome]:
        path = self.folder / OUTCOMES
        try:
            yield from _lines_of(path)
        except ValueError:
            raise DataError(
                "holds a line that is not an outcome", where=str(path), hint="make the shard again"
            ) from None


def _read_shard(folder: Path) -> _Made:
    from creperie.engine import parse_shard

    path = folder / SHARD
    if not path.is_file():
        raise UsageError(
            "is not a shard: it has no shard.json", where=str(folder), hint="name folders made with `shard=`"
        )
    document = read_json(path)
    try:
        job, asked = dict(document["job"]), dict(document["request"])
        options, of_job = options_from(MakerOptions, asked["options"]), options_from(JobOptions, asked["job"])
        request = MakeRequest(str(asked["maker"]), str(asked["captions"]), options, of_job)
        shard, digest = parse_shard(job["shard"]), str(document["outcomes"]["sha256"])
        ledger = document.get("ledger")
    except (CreperieError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise DataError(f"is not the record of a shard ({type(e).__name__}: {e})", where=str(path)) from None
    return _Made(folder, shard, job, request, digest, ledger)
