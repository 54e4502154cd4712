"""Make a benchmark from captions: one call that can be killed and called again.

Captions pass through in chunks: what is made of them is kept on disk, and read from there into the benchmark. Only
eight bytes per item are held in memory, to check that no two items have the same key.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from creperie.bench import (
    ITEMS_FILE,
    WRITTEN,
    Benchmark,
    Info,
    Item,
    Parquet,
    ProvenanceStep,
    describe_benchmark,
    load,
    relative_place,
)
from creperie.core import DataError, Progress, check_target, counted, html_table, silent, write_json
from creperie.engine import Engine, Held, Local, Pieces
from creperie.making.candidate import Maker, Metered
from creperie.making.choice import choose
from creperie.making.parts import opened, part_count, read_part, remove_parts, write_part
from creperie.making.pipeline import SourceOutcome, Tally, chunks, is_sound, tidied, work
from creperie.making.source import Captions, SourceCaption
from creperie.making.stage import MakeStage, SourcePieces, source_table
from creperie.making.written import CandidateFile, ItemSpool, read_candidates

REPORT_FILE = "making.json"
CANDIDATES_FILE = "candidates.parquet"
#: Candidates that a notebook shows.
MOST_SHOWN = 12


@dataclass(frozen=True)
class Made:
    """The result of a generation job. With a folder, outcomes and items are read from it when they are asked for."""

    report: Mapping[str, Any]
    folder: Path | None = None
    told: Callable[[], Iterable[SourceOutcome]] = tuple
    held: tuple[Item, ...] = ()
    sources: Sequence[SourceCaption] = ()
    maker: str = ""

    @property
    def outcomes(self) -> tuple[SourceOutcome, ...]:
        return tuple(self.told())

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(load(self.folder)) if self.folder and not self.held else self.held

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per candidate: its source, its text, what became of it, and its tags."""
        found = []
        for source, outcome in zip(self.sources, self.told()):
            for v in outcome.verdicts:
                c = v.candidate
                known = {"id": c.source, "source": source.text, "text": c.text, "role": c.role, "kind": c.kind}
                found.append(known | {"edit": c.edit, "accepted": not v.reason, "reason": v.reason} | dict(c.tags))
        return found

    def to_pandas(self) -> Any:
        """The candidates, one row each, as a pandas data frame."""
        import pandas as pd

        first = ("id", "source", "text", "role", "kind", "edit", "accepted", "reason")
        rows = self.rows
        return pd.DataFrame(rows, columns=None if rows else list(first))

    def __repr__(self) -> str:
        report = self.report
        made = ", ".join(f"{n:,} {name}" for name, n in report.get("subsets", {}).items()) or "no items"
        size = f"{counted(report['sources'], 'caption')}, {counted(report['made'], 'candidate')}"
        return f"Made({self.maker!r}: {size}, {made})"

    def _repr_html_(self) -> str:
        columns = ("source", "text", "role", "kind", "edit")
        rows = [[str(row[c]) for c in columns] for row in islice((r for r in self.rows if r["accepted"]), MOST_SHOWN)]
        return html_table(repr(self), columns, rows)


def preview(maker: Maker, captions: Captions) -> Made:
    """Make in memory; nothing is written."""
    proposed = [o for part in chunks(captions.sources, maker.chunk) for o in work(maker, part)]
    outcomes = list(choose(maker, lambda: proposed))
    tally = Tally()
    items = []
    for source, outcome in zip(captions.sources, outcomes, strict=True):
        tally.add(outcome)
        for item in _items(maker, source, outcome):
            tally.add_item(item)
            items.append(item)
    held = tuple(items)
    return Made(
        _noted(tally.report, maker), told=lambda: outcomes, held=held, sources=captions.sources, maker=maker.name
    )


def make_folder(
    maker: Maker,
    captions: Captions,
    out: str | Path,
    *,
    engine: Engine | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Made:
    """Make a benchmark folder from captions. If it is killed, the same call resumes with the next chunk."""
    folder = Path(out)
    check_target(folder, force, WRITTEN)
    job = job_of(maker, captions)
    with opened(folder, job, force=force) as parts:
        if isinstance(maker, Metered):
            maker.keep_books(parts, job)
        make_parts(maker, captions.sources, parts, engine or Local(), progress)
        made = finish(maker, captions, kept_outcomes(maker, captions.sources, parts), folder)
        remove_parts(folder)
    return made


def job_of(maker: Maker, captions: Captions) -> dict[str, Any]:
    """What is made, as far as its outcomes depend on it."""
    return {"maker": maker.name, "settings": dict(maker.settings), "captions": captions.digest, "chunk": maker.chunk}


def make_parts(maker: Maker, sources: Sequence[SourceCaption], parts: Path, engine: Engine, progress: Progress) -> None:
    """The outcomes of all sources, chunk by chunk, into `parts`; chunks that are kept there are not made again."""
    pieces = SourcePieces(sources, maker.chunk)
    begun = part_count(parts) > 0
    kept = {k for k in range(len(pieces)) if begun and read_part(parts, k, pieces.ids(k)) is not None}
    with progress(f"make {maker.name}", len(sources), "captions") as advance:
        advance(sum(pieces.counts[k] for k in kept))
        todo = [k for k in range(len(pieces)) if k not in kept]
        chosen = engine if maker.parallel or not isinstance(engine, Local) else Local()
        for number, table in chosen.run(MakeStage(maker), _sent(pieces, chosen), todo):
            write_part(parts, number, table.column("outcome").to_pylist())
            advance(table.num_rows)


def _sent(pieces: SourcePieces, engine: Engine) -> Pieces:
    """Sources for an engine. Workers elsewhere do not see the files of this machine: they are sent the captions."""
    if isinstance(engine, Local):
        return pieces
    return Held(source_table(pieces.sources), pieces.size)


def kept_outcomes(maker: Maker, sources: Sequence[SourceCaption], parts: Path) -> Iterator[SourceOutcome]:
    """The outcomes that `make_parts` wrote, in order, with the foils that were chosen."""
    return choose(maker, lambda: proposed_outcomes(maker, sources, parts))


def proposed_outcomes(maker: Maker, sources: Sequence[SourceCaption], parts: Path) -> Iterator[SourceOutcome]:
    """The outcomes that `make_parts` wrote, in order, before the choice over all captions."""
    pieces = SourcePieces(sources, maker.chunk)
    for number in range(len(pieces)):
        found = read_part(parts, number, pieces.ids(number))
        if found is None:
            what = f"part {number} was damaged after it was written"
            raise DataError(what, where=str(parts), hint="the same command makes it again")
        yield from found


def finish(
    maker: Maker,
    captions: Captions,
    outcomes: Iterable[SourceOutcome],
    out: Path,
    ledger: Mapping[str, Any] | None = None,
) -> Made:
    """The benchmark folder from the outcomes of all captions. `ledger`: what it cost, where others have paid.

    Whole or not at all: filled beside its place, renamed at the end.
    """
    draft, old = (out.parent / f".{out.name}.{name}" for name in ("finished", "old"))
    shutil.rmtree(draft, ignore_errors=True)
    try:
        report = _fill(maker, captions, outcomes, draft, out.name)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    if ledger is None and isinstance(maker, Metered):
        ledger = dict(maker.ledger)
    cost = {} if ledger is None else {"ledger": dict(ledger)}
    write_json(draft / REPORT_FILE, {"maker": maker.name, "settings": dict(maker.settings), **report, **cost})
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.replace(old)
    draft.replace(out)
    shutil.rmtree(old, ignore_errors=True)
    told = partial(read_candidates, out / CANDIDATES_FILE)
    return Made(report, out, told=told, sources=captions.sources, maker=maker.name)


def _fill(
    maker: Maker, captions: Captions, outcomes: Iterable[SourceOutcome], draft: Path, name: str
) -> dict[str, Any]:
    """Items, candidates and all that stands beside them, in one pass over the outcomes."""
    spool, tally = ItemSpool(draft / "spool"), Tally()
    candidates = CandidateFile(draft / CANDIDATES_FILE)
    for source, outcome in zip(captions.sources, outcomes, strict=True):
        tally.add(outcome)
        candidates.add(source, outcome)
        for item in _items(maker, source, outcome):
            tally.add_item(item)
            spool.add(item)
    candidates.close()
    items = spool.write(draft / ITEMS_FILE, name)
    bench = _benchmark(maker, captions, items, tally.report, name)
    describe_benchmark(bench, draft, relative_place(captions.images.location, draft))
    return _noted(tally.report, maker)


def _noted(report: dict[str, Any], maker: Maker) -> dict[str, Any]:
    """The report with what the maker wants to be known."""
    note = getattr(maker, "note", "")
    return {**report, "note": note} if note else report


def _items(maker: Maker, source: SourceCaption, outcome: SourceOutcome) -> Iterator[Item]:
    accepted = outcome.accepted
    for item in maker.items(source, accepted) if accepted else ():
        styled = tidied(item) if maker.tidies else item
        if is_sound(styled):
            yield styled


def _benchmark(maker: Maker, captions: Captions, items: Parquet, report: Mapping[str, Any], name: str) -> Benchmark:
    source = captions.bench
    args: Mapping[str, Any] = {
        "maker": maker.name,
        "settings": dict(maker.settings),
        "captions": captions.name,
        "captions_sha256": captions.digest,
        "tidied": maker.tidies,
        **{key: report[key] for key in ("sources", "made", "rejected", "reasons", "skipped", "calls")},
    }
    step = ProvenanceStep("make", args, (source.hash,) if source else ())
    info = Info(
        title=f"{maker.name} on {captions.name}",
        description=f"Made by creperie's {maker.name} from the captions of {captions.name}.",
        licence=source.info.licence if source else "",
        source=source.info.source if source else "",
    )
    history = (*(source.provenance if source else ()), step)
    return Benchmark(name, items, images=captions.images, info=info, provenance=history)
