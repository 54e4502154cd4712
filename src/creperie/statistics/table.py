"""The long table: one row for every comparison that a model made, with everything that may have influenced it.

    run, model, size            which model, and how many parameters it has (null if unknown)
    benchmark, subset, item     where the comparison comes from; the column `image` names its image, without the crop
    comparison                  which caption against which foil: "1-1", "2-1", … in the item's order
    caption, foil               the text of the caption, the text of the foil
    chosen, gap, tie            the outcome: 1 where the caption's score is higher, and by how much
    length, longer              number of words in the caption; which text has more words: caption, foil, equal
    grammaticality              which text a text scorer prefers: caption, foil, equal
    source, type                where the caption comes from; its construction, such as active or passive
    order                       whether caption and foil mention the participants in the same order: alike, different
    tag.…                       every tag of the item

Columns from captions and tags need the benchmark: a run stores scores only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import TAG_PREFIX, Benchmark
from creperie.core import (
    DataError,
    Progress,
    UsageError,
    check_columns,
    csv_rows,
    draft_of,
    read_parquet,
    silent,
    write_parquet,
)
from creperie.metrics import HIT, TIE, VOID, margins
from creperie.scoring import Run, item_keys
from creperie.statistics.wording import WordingPreference, construction_columns, preferred, words_of

SUFFIXES = (".parquet", ".csv", ".tsv")


def read_table(path: str | Path) -> pa.Table:
    """Return the table in a file. The file's extension determines the format."""
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    file = Path(path)
    _check_suffix(file)
    if not file.is_file():
        raise UsageError("there is no such file", where=file, hint="check the path")
    try:
        if file.suffix == ".parquet":
            check_columns(len(pq.read_schema(file).names), str(file))
            return read_parquet(file)
        separator = "\t" if file.suffix == ".tsv" else ","
        next(csv_rows(file, separator))  # refuses a header with too many or duplicate columns
        # R writes NA for missing values; in quotes it is text
        convert = csv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=["", "NA", "NaN", "nan"]
        )
        parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
        return csv.read_csv(file, parse_options=parse, convert_options=convert)
    except (OSError, pa.ArrowException) as e:
        raise DataError(
            f"cannot be read as a table ({' '.join(str(e).split())[:160]})",
            where=file,
            hint="give a CSV, TSV or Parquet file with one header row",
        ) from None


def write_table(table: pa.Table, path: str | Path) -> Path:
    """Write a table to a file, in the format that the file's extension names, and return the path. An existing file is
    replaced only when the new one is complete.
    """
    import pyarrow.csv as csv

    file = Path(path)
    _check_suffix(file)
    with draft_of(file) as draft:
        if file.suffix == ".parquet":
            write_parquet(table, draft)
        else:
            options = csv.WriteOptions(delimiter="\t" if file.suffix == ".tsv" else ",")
            csv.write_csv(table, draft, options)
    return file


def _check_suffix(file: Path) -> None:
    if file.suffix not in SUFFIXES:
        raise UsageError(
            "does not end in a suffix of a table file", where=file, hint="end it in " + ", ".join(SUFFIXES)
        )


WORTH = {"wrong": 0.0, "half": 0.5, "right": 1.0}


@dataclass(frozen=True)
class TableReading:
    """How runs become rows. With `task`, there is one row per item, with its result on that task. Without it, there is
    one row per pair of caption and foil.
    """

    task: str = ""
    ties: str = "wrong"
    grammar: WordingPreference | None = None
    sizes: Mapping[str, float] = field(default_factory=dict)  #: parameters, by model URI


@dataclass(frozen=True)
class LongTable:
    """A long table, and notes about how it was made."""

    table: pa.Table
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _RunRows:
    """The comparisons of a run, as columns with one value per comparison. `gap` is the score of the caption minus that
    of the foil.

    Image, caption and foil are positions in the item's match matrix. Caption and foil are −1 if the first image of the
    item does not have both a true and a false caption.
    """

    item: np.ndarray
    row: np.ndarray
    caption: np.ndarray
    foil: np.ndarray
    gap: np.ndarray
    chosen: np.ndarray
    tie: np.ndarray


def long_table(
    runs: Sequence[Run],
    benches: Sequence[Benchmark] = (),
    reading: TableReading | None = None,
    progress: Progress = silent,
) -> LongTable:
    """Return the comparisons of all runs in one long table, with notes. Columns are added from the benchmarks that were
    scored.
    """
    if not runs:
        raise UsageError("no run given", hint="name at least one run")
    reading = reading or TableReading()
    _check_distinct(runs)
    parts = []
    notes = []
    for run in runs:
        bench = bench_of(run, benches) if benches else None
        rows = _task_rows(run, reading) if reading.task else _pair_rows(run, reading)
        parts.append(_columns(run, bench, rows, reading))
        void = int(np.isnan(rows.chosen).sum())
        notes += [f"{run.name}: {void:,} comparisons without a score"] if void else []
        notes += [f"{run.name}: {int(rows.tie.sum()):,} ties count as {reading.ties}"] if rows.tie.any() else []
    if not benches:
        notes.append("no benchmark was given: the table has no captions and no tags")
    table = pa.concat_tables(parts, promote_options="permissive")
    return LongTable(judged(table, reading.grammar, progress), tuple(notes))


def judged(table: pa.Table, grammar: WordingPreference | None, progress: Progress = silent) -> pa.Table:
    """Return the table with the column `grammaticality` added. It says what the scorer `grammar` prefers: "caption",
    "foil" or "equal". Without a scorer, return the table unchanged.
    """
    if grammar is None:
        return table
    if not {"caption", "foil"} <= set(table.column_names):
        raise UsageError("grammaticality needs the captions and the foils", hint="give the benchmark with `bench=`")
    answer = preferred(table.column("caption"), table.column("foil"), grammar, progress)
    others = [name for name in table.column_names if name != "grammaticality"]
    return table.select(others).append_column("grammaticality", answer)


def _check_distinct(runs: Sequence[Run]) -> None:
    """Raise an error if a model has several runs on the same benchmark, because its rows would count twice."""
    seen: dict[tuple[str, str], str] = {}
    for run in runs:
        if (run.model, run.hash) in seen:
            raise UsageError(
                f"{run.name} and {seen[run.model, run.hash]} are runs of the same model on the same benchmark",
                hint="leave out one of them",
            )
        seen[run.model, run.hash] = run.name


def bench_of(run: Run, benches: Sequence[Benchmark]) -> Benchmark:
    """Return the benchmark that a run scored, reduced to the items that were scored."""
    for bench in benches:
        if bench.hash == run.hash:
            return bench
    scored_items = item_keys(run.table)
    for bench in benches:
        place = {key: k for k, key in enumerate(item_keys(bench.table))}
        if all(key in place for key in scored_items):
            return bench.with_table(bench.table.take(pa.array([place[key] for key in scored_items])), "scored items")
    raise UsageError(
        f"the run {run.name} is on {run.benchmark} {run.hash[:8]}, whose items are in none of the benchmarks given",
        hint="give the benchmark that was scored with `bench=`",
    )


# -- outcomes --------------------------------------------------------------------------------------------------------


def _pair_rows(run: Run, reading: TableReading) -> _RunRows:
    """Return one row for each pair of a true and a false caption of an image."""
    needs = "image_text" if "image_text" in run.inputs else "text"
    if needs not in run.inputs:
        raise UsageError(
            f"the run {run.name} has no image-text scores", hint="name a task that it has: `task=` " + run.tasks[0]
        )
    parts = []
    for group, cells in run.layout.blocks(needs, run.scores(needs)):
        width = group.match.shape[1]
        for r, line in enumerate(group.match):
            base = r * width if needs == "image_text" else 0
            for a in np.flatnonzero(line):
                for b in np.flatnonzero(~line):
                    one, other = cells[base + a], cells[base + b]
                    same = [np.full(len(group.items), v) for v in (r, a, b)]
                    # outcomes are decided in float32; the difference is for display only
                    parts.append((group.items, *same, one.astype(float) - other, one > other, one == other))
    if not parts:
        raise DataError(
            "no item has both a true and a false caption for an image",
            where=run.name,
            hint="name a task to get one row per item: `task=`",
        )
    item, row, caption, foil, gap, won, tie = (np.concatenate(p) for p in zip(*parts))
    chosen = np.where(tie, WORTH[reading.ties], won.astype(float))
    chosen[np.isnan(gap)] = np.nan
    order = np.lexsort((foil, caption, row, item))
    return _RunRows(*(v[order] for v in (item, row, caption, foil, gap, chosen, tie)))


def _task_rows(run: Run, reading: TableReading) -> _RunRows:
    """Return one row per item, with its outcome on a task and its margin."""
    chosen_task = run.scored_task(reading.task)
    outcome = run.outcomes(reading.task)
    n = len(run)
    scored = chosen_task.has_margins
    lead = margins(reading.task, run.layout, run.scores(chosen_task.needs)) if scored else np.full(n, np.nan)
    first, false = np.full(n, -1), np.full(n, -1)
    for group in run.layout.groups:
        line = group.match[0]
        if line.any() and not line.all():
            first[group.items], false[group.items] = int(np.argmax(line)), int(np.argmin(line))
    tie = outcome == TIE
    chosen = np.where(outcome == VOID, np.nan, np.where(tie, WORTH[reading.ties], (outcome == HIT).astype(float)))
    return _RunRows(np.arange(n), np.zeros(n, int), first, false, lead, chosen, tie)


# -- what may have influenced them ----------------------------------------------------------------------------------


def _columns(run: Run, bench: Benchmark | None, rows: _RunRows, reading: TableReading) -> pa.Table:
    n = len(rows.item)
    take = pa.array(rows.item)
    subset, id_ = (run.table.column(name).take(take) for name in ("subset", "id"))
    size = reading.sizes.get(run.model, run.document["model"].get("parameters"))
    columns = {
        "run": pa.repeat(run.name, n),
        "model": pa.repeat(run.model, n),
        "size": pa.array(np.full(n, np.nan if size is None else float(size)), from_pandas=True),
        "benchmark": pa.repeat(run.benchmark, n),
        "subset": subset,
        "item": pc.binary_join_element_wise(subset, id_, "/"),
        "image": _images(run, rows),
        "chosen": pa.array(rows.chosen, from_pandas=True),
        "gap": pa.array(rows.gap, from_pandas=True),
        "tie": pa.array(rows.tie),
    }
    if not reading.task:
        columns["comparison"] = pa.array([f"{a + 1}-{b + 1}" for a, b in zip(*_slots(run, rows))])
    if bench is not None:
        columns |= _of_benchmark(bench, run, rows, reading)
    return pa.table(columns)


def _images(run: Run, rows: _RunRows) -> pa.Array:
    """Return the image of every row (for a crop, the whole image); null if the item has no image."""
    lists = run.table.column("images").combine_chunks()
    counts = pc.list_value_length(lists).to_numpy()
    starts = np.cumsum(counts) - counts
    flat = pc.list_flatten(lists).cast(pa.string())
    where = np.where(counts[rows.item] > rows.row, starts[rows.item] + rows.row, -1)
    picked = flat.take(pa.array(where, mask=where < 0)) if len(flat) else pa.nulls(len(where), pa.string())
    return pc.replace_substring_regex(picked, r"#xywh=[-0-9.,]+$", "")


def _slots(run: Run, rows: _RunRows) -> tuple[np.ndarray, np.ndarray]:
    """Return two numbers for each row: the position of its caption among the image's true captions, and the position of
    its foil among the image's false captions.
    """
    first, second = np.zeros(len(rows.item), int), np.zeros(len(rows.item), int)
    for group in run.layout.groups:
        own = np.isin(rows.item, group.items)
        true, false = (match.cumsum(axis=1) - 1 for match in (group.match, ~group.match))
        first[own] = true[rows.row[own], rows.caption[own]]
        second[own] = false[rows.row[own], rows.foil[own]]
    return first, second


def _of_benchmark(bench: Benchmark, run: Run, rows: _RunRows, reading: TableReading) -> dict[str, Any]:
    offsets, texts = bench.ragged("captions")
    there = (rows.caption >= 0) & (rows.foil >= 0)
    caption = texts.take(pa.array(offsets[rows.item] + rows.caption, mask=~there))
    foil = texts.take(pa.array(offsets[rows.item] + rows.foil, mask=~there))
    words, others = words_of(caption), words_of(foil)
    longer = np.where(words > others, "caption", np.where(words < others, "foil", "equal"))
    columns = {"caption": caption, "foil": foil, "length": pa.array(words), "longer": pa.array(longer)}
    take = pa.array(rows.item)
    tags = {name: bench.column(name).take(take) for name in bench.columns if name.startswith(TAG_PREFIX)}
    source = tags.get(f"{TAG_PREFIX}source")
    columns["source"] = source.cast(pa.string()) if source is not None else pa.repeat(bench.name, len(rows.item))
    construction = tags.get(f"{TAG_PREFIX}construction")
    if construction is not None:
        slots = _slots(run, rows) if not reading.task else None
        columns |= construction_columns(construction.cast(pa.string()).to_pylist(), slots)
    return columns | tags
