"""Make a benchmark from captions in one call. If the call is interrupted, repeat it: it resumes where it stopped.

Captions are processed in batches: outcomes are stored on disk, and the benchmark is written from there. Memory holds
only eight bytes per item, to check that no two items have the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench import (
    ITEMS_FILE,
    WRITTEN,
    Benchmark,
    Info,
    Item,
    Parquet,
    ProvenanceStep,
    describe_benchmark,
    from_items,
    load,
    new_folder,
    relative_place,
    tag_array,
)
from creperie.core import (
    DataError,
    Framed,
    Progress,
    __version__,
    check_target,
    counted,
    html_table,
    plugins_digest,
    read_json,
    silent,
    write_json,
)
from creperie.engine import Engine, Local, write_parts
from creperie.lang import tidy_together
from creperie.making.choice import choose
from creperie.making.judges import what_a_judge_would_add
from creperie.making.options import NAMES_FILES
from creperie.making.parts import (
    MakeStage,
    SourcePieces,
    opened,
    remove_parts,
    stored_outcomes,
)
from creperie.making.pipeline import Maker, SourceOutcome, Tally, is_sound, work
from creperie.making.source import Captions, SourceCaption
from creperie.making.written import CANDIDATES_FILE, REPORT_FILE, CandidateFile, ItemSpool, read_candidates
from creperie.models import named_content

#: Maximum number of candidates that a notebook shows.
MOST_SHOWN = 12


@dataclass(frozen=True)
class Made(Framed):
    """The result of a generation job. If there is a folder, outcomes and items are read from it on demand."""

    report: Mapping[str, Any]
    folder: Path | None = None
    read_outcomes: Callable[[], Iterable[SourceOutcome]] = tuple
    items_in_memory: tuple[Item, ...] = ()
    sources: Sequence[SourceCaption] = ()
    maker: str = ""

    @property
    def outcomes(self) -> tuple[SourceOutcome, ...]:
        return tuple(self.read_outcomes())

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(load(self.folder)) if self.folder else self.items_in_memory

    @cached_property
    def bench(self) -> Benchmark:
        """The items as a benchmark."""
        return load(self.folder) if self.folder else from_items(self.maker or "made", self.items_in_memory)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.bench)

    def save(self, folder: str | Path, *, force: bool = False) -> Benchmark:
        """Write the items as a benchmark to a folder, and return it as loaded from there."""
        return self.bench.save(folder, force=force)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The candidates, one row each, with source, text, verdict and tags."""
        rows = []
        for source, outcome in zip(self.sources, self.read_outcomes()):
            for v in outcome.verdicts:
                c = v.candidate
                known = {"id": c.source, "source": source.text, "text": c.text, "role": c.role, "kind": c.kind}
                rows.append(known | {"edit": c.edit, "accepted": not v.reason, "reason": v.reason} | dict(c.tags))
        return rows

    def frame(self) -> pa.Table:
        """Return the candidates as an Arrow table, one row each."""
        texts = ("id", "source", "text", "role", "kind", "edit", "reason")
        rows = self.rows
        tags = list(dict.fromkeys(name for row in rows for name in row if name not in (*texts, "accepted")))
        columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in texts}
        columns["accepted"] = pa.array([row["accepted"] for row in rows], pa.bool_())
        return pa.table(columns | {name: tag_array([row.get(name) for row in rows]) for name in tags})

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
    """Make candidates and items in memory and return them. Nothing is written."""
    pieces = SourcePieces(captions.sources, maker.chunk)
    proposed = [o for k in range(len(pieces)) for o in work(maker, pieces.chunk(k))]
    outcomes = list(choose(maker, lambda: proposed))
    tally = Tally()
    items = tuple(i for *_, own in _tallied(maker, captions, outcomes, tally) for i in own)
    return Made(_noted(tally.report, maker), None, lambda: outcomes, items, captions.sources, maker.name)


def make_folder(
    maker: Maker,
    captions: Captions,
    out: str | Path,
    *,
    engine: Engine | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Made:
    """Make a benchmark folder from captions. If the call is interrupted, repeat it: it resumes with the next batch."""
    folder, job = Path(out), job_of(maker, captions)
    with proposed(maker, captions.sources, job, folder, engine=engine, force=force, progress=progress) as outcomes:
        return finish(maker, captions, choose(maker, outcomes), folder)


def job_of(maker: Maker, captions: Captions) -> dict[str, Any]:
    """Return the description of a job: everything on which its outcomes depend, with the contents of the files that its
    options name.
    """
    named = {name: str(getattr(maker.options, name, "")) for name in NAMES_FILES}
    return {
        "maker": maker.name,
        "settings": dict(maker.settings),
        "captions": captions.digest,
        "chunk": maker.chunk,
        "files": {name: named_content(spec) for name, spec in named.items() if spec},
        "plugins": plugins_digest(),
        "creperie": __version__,
    }


def _is_empty(folder: Path) -> bool:
    """Return True if an earlier job made no items in this folder, so that another job may write there."""
    report = folder / REPORT_FILE
    return report.is_file() and not read_json(report).get("made")


@contextmanager
def proposed(
    maker: Maker,
    sources: Sequence[SourceCaption],
    job: Mapping[str, Any],
    folder: Path,
    *,
    engine: Engine | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> Iterator[Callable[[], Iterator[SourceOutcome]]]:
    """Make the candidates for all sources, or continue an interrupted job. Use this as a context manager: it provides
    a function that reads the outcomes from disk at each call.

    The outcomes contain all proposed foils, before the final choice. They are stored in a folder beside `folder`;
    this folder of outcomes is deleted when the `with` block ends. With `force`, what is in `folder` may be replaced,
    and an interrupted job with other settings is discarded.
    """
    check_target(folder, force or _is_empty(folder), WRITTEN)
    with opened(folder, job, force=force) as parts:
        maker.keep_ledger(parts, job)
        make_parts(maker, sources, parts, engine or Local(), progress)
        yield partial(outcomes_in, parts, maker, sources)
        remove_parts(folder)


def make_parts(maker: Maker, sources: Sequence[SourceCaption], parts: Path, engine: Engine, progress: Progress) -> None:
    """Write the outcomes for all sources to the folder `parts`, batch by batch. Batches stored there are not made
    again.
    """
    pieces = SourcePieces(sources, maker.chunk)
    begun = any(parts.glob("part-*"))
    kept = {k for k in range(len(pieces)) if begun and stored_outcomes(parts, k, pieces.ids(k)) is not None}
    with progress(f"make {maker.name}", len(sources), "captions") as advance:
        advance(sum(pieces.counts[k] for k in kept))
        todo = [k for k in range(len(pieces)) if k not in kept]
        chosen = engine if maker.parallel or not isinstance(engine, Local) else Local()
        for _, rows in write_parts(MakeStage(maker), pieces, todo, parts, engine=chosen):
            advance(rows)


def outcomes_in(parts: Path, maker: Maker, sources: Sequence[SourceCaption]) -> Iterator[SourceOutcome]:
    """Yield the outcomes stored in the folder `parts`, in the order of the sources."""
    pieces = SourcePieces(sources, maker.chunk)
    for number in range(len(pieces)):
        outcomes = stored_outcomes(parts, number, pieces.ids(number))
        if outcomes is None:
            what = f"part {number} was damaged after it was written"
            raise DataError(what, where=str(parts), hint="repeat the command, which makes the part again")
        yield from outcomes


def finish(
    maker: Maker,
    captions: Captions,
    outcomes: Iterable[SourceOutcome],
    out: Path,
    ledger: Mapping[str, Any] | None = None,
) -> Made:
    """Write the benchmark folder from the outcomes for all captions, and return the result. `ledger` holds the cost of
    the calls to a model, if other processes made these calls; by default it is the maker's own ledger.
    """
    paid = maker.ledger if ledger is None else ledger
    cost = {"ledger": dict(paid)} if paid else {}
    with new_folder(out, replace_old=True) as draft:
        report = _fill(maker, captions, outcomes, draft, out.name)
        document = {"maker": maker.name, "settings": dict(maker.settings), **report, **cost}
        write_json(draft / REPORT_FILE, document, files=[CANDIDATES_FILE])
    outcomes_again = partial(read_candidates, out)
    return Made(report, out, outcomes_again, sources=captions.sources, maker=maker.name)


def _fill(
    maker: Maker, captions: Captions, outcomes: Iterable[SourceOutcome], draft: Path, name: str
) -> dict[str, Any]:
    """Write the items, the candidates and the files that describe the benchmark, in one pass over the outcomes; return
    the report.
    """
    spool, tally = ItemSpool(draft / "spool"), Tally()
    candidates = CandidateFile(draft / CANDIDATES_FILE)
    for source, outcome, own in _tallied(maker, captions, outcomes, tally):
        candidates.add(source, outcome)
        for item in own:
            spool.add(item)
    candidates.close()
    items = spool.write(draft / ITEMS_FILE, name)
    bench = _benchmark(maker, captions, items, tally.report, name)
    describe_benchmark(bench, draft, relative_place(captions.images.location, draft))
    return _noted(tally.report, maker)


def _noted(report: dict[str, Any], maker: Maker) -> dict[str, Any]:
    """Return the report with the maker's note and a note on what a judge would add, if there are such notes."""
    added = "" if maker.options.judge else what_a_judge_would_add(report["missing"])
    note = "\n".join(filter(None, (getattr(maker, "note", ""), added)))
    return {**report, "note": note} if note else report


def _tallied(
    maker: Maker, captions: Captions, outcomes: Iterable[SourceOutcome], tally: Tally
) -> Iterator[tuple[SourceCaption, SourceOutcome, list[Item]]]:
    """Yield every source with its outcome and its items, and count these in `tally`."""
    for source, outcome in zip(captions.sources, outcomes, strict=True):
        accepted = outcome.accepted
        made = maker.items(source, accepted) if accepted else []
        if maker.tidies:
            made = [replace(i, captions=tuple(tidy_together(i.captions))) for i in made]
        items = [i for i in made if is_sound(i)]
        tally.add(outcome, items)
        yield source, outcome, items


def _benchmark(maker: Maker, captions: Captions, items: Parquet, report: Mapping[str, Any], name: str) -> Benchmark:
    source = captions.bench
    taken = sum(count["made"] for kind, count in report["kinds"].items() if maker.takes(kind))
    args: Mapping[str, Any] = {
        "maker": maker.name,
        "settings": dict(maker.settings),
        "captions": captions.name,
        "captions_sha256": captions.digest,
        "tidied": maker.tidies,
        **{key: report[key] for key in ("sources", "made", "rejected", "reasons", "skipped", "calls")},
        **({"taken": taken} if taken else {}),
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
