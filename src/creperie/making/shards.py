"""Generation in shards: each job processes its share of the captions, and `merge_making` writes one benchmark from
all shards.

out-3/
  shard.json       the shard and its job: maker, options, place and digest of the captions
  outcomes.jsonl   one line per caption, in order
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

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
from creperie.engine import Engine, Shard, check_complete, parse_shard
from creperie.making.choice import choose
from creperie.making.options import JobOptions, MakerOptions
from creperie.making.parts import outcome_of, outcome_text
from creperie.making.pipeline import Maker, SourceOutcome, Tally
from creperie.making.registry import build_maker
from creperie.making.run import Made, finish, job_of, proposed
from creperie.making.source import Captions, first_or_drawn, read_captions

SHARD, OUTCOMES, VERSION = "shard.json", "outcomes.jsonl", 1
AGAIN = "make the shard again"


@dataclass(frozen=True)
class MakeRequest:
    """A request for a generation job, with everything that is needed to build its maker and read its captions again."""

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
    """Process one shard of the captions and return the result. If the call is interrupted, repeat it: it resumes at the
    next batch.
    """
    folder, own = Path(out), shard.of(captions.sources)
    maker = build_maker(request.maker, request.options, captions)  # from all captions: some makers search among them
    job = {**job_of(maker, captions), "shard": str(shard)}
    with proposed(maker, own, job, folder, engine=engine, force=force, progress=progress) as outcomes:
        tally = _write_shard(maker, request, job, outcomes(), folder)
    return Made(tally.report, read_outcomes=lambda: _lines_of(folder / OUTCOMES))


def _write_shard(
    maker: Maker, request: MakeRequest, job: Mapping[str, Any], outcomes: Iterable[SourceOutcome], folder: Path
) -> Tally:
    tally, digest, place = Tally(), hashlib.sha256(), Path(request.captions)  # a path, or a catalog's name
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
            "request": {**asdict(request), "captions": str(place.resolve()) if place.exists() else request.captions},
            "outcomes": {"rows": tally.sources, "sha256": digest.hexdigest()},
            "ledger": dict(maker.ledger),
        }
        write_json(draft / SHARD, document)
    return tally


def merge_making(
    folders: Sequence[str | Path], out: str | Path, *, captions: Captions | None = None, force: bool = False
) -> Made:
    """Merge all shards into one benchmark, write it, and return the result. The benchmark equals that of a single job
    without shards.

    Unless captions are given, they are read from the place that the shards record.
    """
    target = Path(out)
    check_target(target, force, WRITTEN)
    shards = sorted((_read_shard(Path(f)) for f in folders), key=lambda s: s.shard)
    check_complete((s.shard, str(s.folder), {**s.job, "shard": ""}) for s in shards)
    first = shards[0]
    captions = captions or first.request.read()
    if captions.digest != first.job["captions"]:
        what = "the captions are no longer those that the shards were made from"
        raise DataError(what, where=first.request.captions, hint="restore them, or make the shards again")
    maker = build_maker(first.request.maker, first.request.options, captions)
    files = [_checked(shard) for shard in shards]
    outcomes = choose(maker, lambda: _of_captions(captions, chain.from_iterable(map(_lines_of, files))))
    ledger: Counter[str] = Counter()
    for shard in shards:
        ledger.update({k: v for k, v in shard.ledger.items() if isinstance(v, (int, float))})
    return finish(maker, captions, outcomes, target, ledger)


def _of_captions(captions: Captions, outcomes: Iterator[SourceOutcome]) -> Iterator[SourceOutcome]:
    """Yield the outcomes, one per caption and in the order of the captions; raise a DataError if they do not match the
    captions.
    """
    for source, outcome in zip_longest(captions.sources, outcomes):
        if source is None or outcome is None or outcome.source != source.id:
            raise DataError("the shards do not contain every caption exactly once", hint="make the shards again")
        yield outcome


def _lines_of(path: Path) -> Iterator[SourceOutcome]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield outcome_of(line)


class ShardOnDisk(NamedTuple):
    """A finished shard: its folder, and the content of its `shard.json`."""

    folder: Path
    shard: Shard
    job: dict[str, Any]
    request: MakeRequest
    digest: str
    ledger: Mapping[str, Any]


def _checked(shard: ShardOnDisk) -> Path:
    """Return the path of a shard's outcomes; raise a DataError if the file is missing, or if its checksum differs
    from the one in `shard.json`.
    """
    path = shard.folder / OUTCOMES
    try:
        damaged = "checksum mismatch: the file is damaged" if sha256_of(path) != shard.digest else ""
    except OSError as e:
        damaged = f"cannot be read ({e.strerror})"
    if damaged:
        raise DataError(damaged, where=str(path), hint=AGAIN)
    return path


def _read_shard(folder: Path) -> ShardOnDisk:
    path = folder / SHARD
    if not path.is_file():
        raise UsageError(
            "is not a shard: it has no shard.json", where=str(folder), hint="name folders made with `shard=`"
        )
    document = read_json(path, again=AGAIN)
    try:
        job, asked = dict(document["job"]), dict(document["request"])
        options, of_job = options_from(MakerOptions, asked["options"]), options_from(JobOptions, asked["job"])
        request = MakeRequest(str(asked["maker"]), str(asked["captions"]), options, of_job)
        shard, digest = parse_shard(job["shard"]), str(document["outcomes"]["sha256"])
        ledger = dict(document.get("ledger", {}))
    except (CreperieError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as e:
        what = f"is not the record of a shard ({type(e).__name__}: {e})"
        raise DataError(what, where=str(path), hint=AGAIN) from None
    return ShardOnDisk(folder, shard, job, request, digest, ledger)
