"""Make a benchmark from captions: one call that can be killed and called again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.bench import Benchmark, Info, Item, Step, from_items, save
from creperie.bench.storage import WRITTEN, write_json, write_table
from creperie.engine import Engine, Held, Local
from creperie.errors import UsageError
from creperie.make.candidate import Maker, Metered
from creperie.make.items import is_sound, tidied
from creperie.make.parts import opened, read_part, remove_parts, write_part
from creperie.make.pipeline import Outcome, chunks, work
from creperie.make.source import Captions, Source
from creperie.make.stage import MakeStage, outcomes_of, source_table
from creperie.progress import Progress, silent

REPORT = "making.json"
CANDIDATES = "candidates.parquet"


@dataclass(frozen=True)
class Made:
    """What came of a making."""

    outcomes: tuple[Outcome, ...]
    items: tuple[Item, ...]
    folder: Path | None = None

    @property
    def report(self) -> dict[str, Any]:
        """Yields by stage: sources, why they were skipped, candidates, why they were rejected, items by subset."""
        verdicts = [v for o in self.outcomes for v in o.verdicts]
        rejected = Counter(v.reason for v in verdicts if v.reason)
        by_kind: dict[str, dict[str, int]] = {}
        for v in verdicts:
            stage = by_kind.setdefault(v.candidate.kind, {"proposed": 0, "made": 0})
            stage["proposed"] += 1
            stage["made"] += not v.reason
        return {
            "sources": len(self.outcomes),
            "skipped": dict(Counter(o.skipped for o in self.outcomes if o.skipped).most_common()),
            "made": len(verdicts) - rejected.total(),
            "rejected": rejected.total(),
            "reasons": dict(rejected.most_common()),
            "calls": sum(o.calls for o in self.outcomes),
            "items": len(self.items),
            "subsets": dict(Counter(item.subset for item in self.items)),
            "kinds": by_kind,
        }


def preview(maker: Maker, captions: Captions) -> Made:
    """Make in memory; nothing is written."""
    outcomes = [o for part in chunks(captions.sources, maker.chunk) for o in work(maker, part)]
    return Made(tuple(outcomes), tuple(_items(maker, captions.sources, outcomes)))


def make(
    maker: Maker,
    captions: Captions,
    out: str | Path,
    *,
    engine: Engine | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Made:
    """Make a benchmark folder from captions. Killed and called again it goes on with the next chunk."""
    folder = Path(out)
    check_target(folder, force)
    with opened(folder, job_of(maker, captions), force=force) as parts:
        outcomes = all_outcomes(maker, captions.sources, parts, engine or Local(), progress)
        made = finish(maker, captions, outcomes, folder)
        remove_parts(folder)
    return made


def job_of(maker: Maker, captions: Captions) -> dict[str, Any]:
    """What is made, as far as its outcomes depend on it."""
    return {"maker": maker.name, "settings": dict(maker.settings), "captions": captions.digest, "chunk": maker.chunk}


def finish(
    maker: Maker, captions: Captions, outcomes: Sequence[Outcome], out: Path, ledger: Mapping[str, Any] | None = None
) -> Made:
    """The benchmark folder from the outcomes of all captions. `ledger`: what it cost, where others have paid."""
    made = Made(tuple(outcomes), tuple(_items(maker, captions.sources, outcomes)), out)
    if ledger is None and isinstance(maker, Metered):
        ledger = dict(maker.ledger)
    _write(maker, captions, made, out, ledger)
    return made


def all_outcomes(
    maker: Maker, sources: Sequence[Source], parts: Path, engine: Engine, progress: Progress
) -> list[Outcome]:
    """The outcomes of all sources, in order; chunks that are kept in `parts` are not made again."""
    pieces = chunks(sources, maker.chunk)
    done = {k: kept for k, piece in enumerate(pieces) if (kept := read_part(parts, k, [s.id for s in piece]))}
    with progress(f"make {maker.name}", len(sources), "captions") as advance:
        advance(sum(map(len, done.values())))
        todo = [k for k in range(len(pieces)) if k not in done]
        chosen = engine if maker.parallel or not isinstance(engine, Local) else Local()
        for number, table in chosen.run(MakeStage(maker), Held(source_table(sources), maker.chunk), todo):
            done[number] = outcomes_of(table)
            write_part(parts, number, done[number])
            advance(len(done[number]))
    return [o for k in range(len(pieces)) for o in done[k]]


def _items(maker: Maker, sources: Sequence[Source], outcomes: Sequence[Outcome]) -> list[Item]:
    items = []
    for source, outcome in zip(sources, outcomes, strict=True):
        accepted = outcome.accepted
        for item in maker.items(source, accepted) if accepted else ():
            styled = tidied(item) if maker.tidies else item
            if is_sound(styled):
                items.append(styled)
    return items


def check_target(out: Path, force: bool) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError("this is a file, a folder is to be written", where=str(out), mend="choose another name")
    if not out.exists() or not any(out.iterdir()):
        return
    if not force:
        raise UsageError("this folder exists and is not empty", where=str(out), mend="choose another, or pass --force")
    if not any((out / name).exists() for name in WRITTEN):
        what = "this folder holds something that creperie did not write, so it is not replaced"
        raise UsageError(what, where=str(out), mend="choose another, or empty it yourself")


def _write(maker: Maker, captions: Captions, made: Made, out: Path, ledger: Mapping[str, Any] | None) -> None:
    """The benchmark with its candidates, whole or not at all: filled beside its place, renamed at the end."""
    import shutil

    draft = out.parent / f".{out.name}.finished"
    shutil.rmtree(draft, ignore_errors=True)
    save(_benchmark(maker, captions, made, out.name), draft)
    write_table(_candidate_table(captions.sources, made.outcomes), draft / CANDIDATES)
    cost = {} if ledger is None else {"ledger": dict(ledger)}
    write_json(draft / REPORT, {"maker": maker.name, "settings": dict(maker.settings), **made.report, **cost})
    old = out.parent / f".{out.name}.old"
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.replace(old)
    draft.replace(out)
    shutil.rmtree(old, ignore_errors=True)


def _benchmark(maker: Maker, captions: Captions, made: Made, name: str) -> Benchmark:
    source = captions.bench
    report = made.report
    args: Mapping[str, Any] = {
        "maker": maker.name,
        "settings": dict(maker.settings),
        "captions": captions.name,
        "captions_sha256": captions.digest,
        "tidied": maker.tidies,
        **{key: report[key] for key in ("sources", "made", "rejected", "reasons", "skipped", "calls")},
    }
    step = Step("make", args, (source.hash,) if source else ())
    info = Info(
        title=f"{maker.name} on {captions.name}",
        description=f"Made by creperie's {maker.name} from the captions of {captions.name}.",
        licence=source.info.licence if source else "",
        source=source.info.source if source else "",
    )
    history = (*(source.provenance if source else ()), step)
    return from_items(name, made.items, images=captions.images, info=info, provenance=history)


def _candidate_table(sources: Sequence[Source], outcomes: Sequence[Outcome]) -> Any:
    """Every candidate, accepted or not, a row each; sources without candidates have a row that says why."""
    import pyarrow as pa

    names = ("source", "source_text", "text", "role", "kind", "group", "maker", "edit", "tags", "status", "reason")
    rows: list[tuple[str | None, ...]] = []
    for s, o in zip(sources, outcomes, strict=True):
        if not o.verdicts:
            rows.append((s.id, s.text, None, None, None, None, None, None, None, "skipped", o.skipped))
        for v in o.verdicts:
            c = v.candidate
            tags = json.dumps(dict(c.tags), ensure_ascii=False) if c.tags else None
            status = "rejected" if v.reason else "made"
            rows.append((s.id, s.text, c.text, c.role, c.kind, c.subset, c.maker, c.edit, tags, status, v.reason))
    columns = {name: pa.array([row[k] for row in rows], pa.string()) for k, name in enumerate(names)}
    return pa.table(columns)
