"""A run: the raw scores of one model on one benchmark, with everything needed to interpret them.

    runs/sugarcrepe++.st-all-MiniLM-L6-v2.1f0c2a9b/
      run.json          what was run, with which fingerprints, versions, seed, timings, findings, results
      scores.parquet    one row per item: subset, id, image_text, text_text, text, and its match matrix and images

Results are computed from the scores alone, so they can be recomputed without the model, for instance with another tie
rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import Benchmark, new_folder
from creperie.core import (
    DataError,
    Framed,
    UsageError,
    check_files,
    counted,
    how_again,
    html_table,
    percent,
    read_checked,
    read_parquet,
    split_names,
    write_json,
    write_parquet,
)
from creperie.metrics import (
    INPUTS,
    TIE,
    VOID,
    Input,
    Judge,
    Layout,
    MetricSettings,
    Result,
    Task,
    clusters_of,
    evaluate,
    margins,
    outcomes,
    own_task,
    task,
)
from creperie.scoring.answer_log import COLUMN, Written, answer_column, cut_items

RUN_FILE = "run.json"
SCORES_FILE = "scores.parquet"
VERSION = 1
AGAIN = "make it again with the command that wrote it (`creperie score …`)"
#: codes of findings → words for users
GAPS = {"not-a-number": "NaN"}
#: provenance steps that only remove items
_PARTS = ("filter", "head", "sample", "drop_duplicates")
#: What blind twins are shown in place of their images.
KINDS = ("noise", "gaussian", "mean", "shuffled")
NO_IMAGE = "none"  #: the mark of imported answers to questions that were asked without their images
_CROP = r"#xywh=[-0-9.,]+$"


class RunHeader:
    """A mixin with properties that are read from a run's document."""

    document: dict[str, Any]

    @property
    def model(self) -> str:
        """The model's URI."""
        return str(self.document["model"]["uri"])

    @property
    def benchmark(self) -> str:
        return str(self.document["benchmark"]["name"])

    @property
    def hash(self) -> str:
        """The content hash of the benchmark that was scored."""
        return str(self.document["benchmark"]["hash"])

    @property
    def blinded(self) -> str:
        """The name of the replacement images, such as `noise`, if the benchmark was a blind twin (a copy with replaced
        images). It is empty for other runs.
        """
        _, mark, shown = self.benchmark.rpartition("~")
        return shown if mark and shown.partition("-")[0] in (*KINDS, NO_IMAGE) else ""

    @property
    def content(self) -> str:
        """The content hash of the benchmark. If its images were replaced (see `blinded`), the name of the replacement
        is appended: HASH~noise. Only runs with the same value are ranked together.
        """
        return f"{self.hash}~{self.blinded}" if self.blinded else self.hash


def unblinded(runs: Sequence[AnyRun]) -> list[AnyRun]:
    """Return the runs, leaving out those on blind twins (benchmarks with replaced images). A run on a blind twin is
    kept only if no run in the list saw the benchmark's real images.
    """
    seen = {run.content for run in runs}
    return [run for run in runs if not run.blinded or run.hash not in seen]


AnyRun = TypeVar("AnyRun", bound=RunHeader)


@dataclass(frozen=True)
class Run(RunHeader, Framed):
    """The scores of a run and the document that describes it. `path` is None until the run is saved."""

    document: dict[str, Any]
    table: pa.Table
    path: Path | None = None
    bench: Benchmark | None = field(default=None, repr=False, compare=False)  #: the benchmark, if available
    unchecked: bool = field(default=False, compare=False)  #: read from files of an older version, without checksums

    # -- description ---------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return str(self.document["name"])

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.document["tasks"])

    @property
    def settings(self) -> MetricSettings:
        """The tie rule, confidence level and seed with which the stored results were computed."""
        try:
            stored = self.document["settings"]  # of any version: earlier ones had more settings
            return MetricSettings(**{f.name: stored[f.name] for f in fields(MetricSettings) if f.name in stored})
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise DataError(
                f"has no valid settings ({type(e).__name__}: {e})",
                where=str(self.path or self.name),
                hint="score it again",
            ) from None

    @property
    def findings(self) -> list[dict[str, Any]]:
        return list(self.document["findings"])

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results stored in the document."""
        return list(self.document["results"])

    @property
    def _first(self) -> dict[str, Any]:
        """The result of the first task on all items; empty if the run has no task."""
        return next((r for r in self.results if r.get("subset") == "all"), {})

    @property
    def accuracy(self) -> float:
        """The accuracy of the first task on all items, from 0 to 1; NaN if the run has no task."""
        shown = self._first.get("accuracy")
        return float("nan") if shown is None else float(shown)

    def summary(self) -> str:
        """Return the results as lines of text: task, subset, items, accuracy and its interval in percent."""
        heads = ("task", "subset", "items", "accuracy", "95 %" if self.settings.level == 0.95 else "interval")
        rows = [
            (r["task"], r["subset"], f"{r['n']:,}", percent(r["accuracy"]), f"{percent(r['low'])}–{percent(r['high'])}")
            for r in self.results
        ]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        sides = ("<", "<", ">", ">", ">")
        lines = ["  ".join(f"{cell:{s}{w}}" for cell, s, w in zip(row, sides, widths)) for row in (heads, *rows)]
        return "\n".join([repr(self), *(line.rstrip() for line in lines)])

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        accuracy = f", {self._first['task']} {percent(self._first['accuracy'])} %" if self._first else ""
        scored = f"{self.scored:,} of " if self.scored < len(self) else ""
        gaps = f"; {self.gaps}" if scored else ""
        mark = "; unchecked" if self.unchecked else ""
        return f"Run({self.model!r} on {self.benchmark!r}, {scored}{counted(len(self), 'item')}{accuracy}{gaps}{mark})"

    @cached_property
    def scored(self) -> int:
        """The number of items that have all the scores that the run's tasks need."""
        return len(self) - max((self._unscored(name) for name in self.tasks), default=0)

    def _unscored(self, name: str) -> int:
        """Return how many items have no result in a task because scores are missing. Items to which the task does not
        apply are not counted.
        """
        chosen = task(name)
        if not chosen.by_item:
            return int(self.table.column(chosen.needs).null_count)
        filled = outcomes(chosen, self.layout, np.nan_to_num(self.scores(chosen.needs)), self.swap)
        return int(np.count_nonzero((self.outcomes(name) == VOID) & (filled != VOID)))

    @property
    def gaps(self) -> str:
        """A sentence on how many items lack a score, and why; empty if no score is missing."""
        if self.scored == len(self):
            return ""
        counts = {GAPS.get(code, code): n for code, n in self.document.get("finding_counts", {}).items()}
        without = pc.sum(pc.equal(pc.list_value_length(self.table.column("images")), 0)).as_py() or 0
        if without and any(task(name).needs == "image_text" for name in self.tasks):
            counts["no image"] = without
        counts.pop("caption-cut", None)
        several = ", ".join(f"{count:,} × {reason}" for reason, count in counts.items())
        why = several if len(counts) > 1 else "".join(counts)
        what = f"{len(self) - self.scored:,} of {len(self):,} items have no score"
        return f"{what} ({why})" if why else what

    def _repr_html_(self) -> str:
        shares = ("accuracy", "low", "high")
        rows = [
            (r["task"], r["subset"], f"{r['n']:,}", *(percent(r[share]) for share in shares), r["ties"])
            for r in self.results
        ]
        columns = ("task", "subset", "items", "accuracy, %", "low", "high", "ties")
        return html_table(f"{self.model} on {self.benchmark}", columns, rows)

    # -- as a data frame -----------------------------------------------------------------------------------------

    def frame(self, bench: Benchmark | None = None) -> pa.Table:
        """Return one row per task and item, as an Arrow table that any data frame library reads.

        The columns are task, subset, id, captions, images, scores, margin, correct and tie. `captions` are null if the
        benchmark is not known: a run that was loaded from its folder does not include the benchmark, so pass the
        benchmark as `bench=`. `correct` and `tie` are null for items without scores. `margin` is the smallest lead of a
        true candidate over a false one.
        """
        known = bench or self.bench
        if known is not None and known.hash != self.hash:
            raise UsageError(
                "is not the benchmark that was scored",
                where=known.name,
                hint=f"pass the version of {self.benchmark!r} that was scored",
            )
        captions = pa.nulls(len(self), pa.list_(pa.string())) if known is None else known.column("captions")
        shared = {key: self.table.column(key) for key in ("subset", "id")}
        shared |= {"captions": captions, "images": self.table.column("images")}
        tables = [
            pa.table({"task": pa.array([name] * len(self), pa.string()), **shared, **self._judged(name)})
            for name in self.tasks
        ]
        return pa.concat_tables(tables, promote_options="permissive")

    def _judged(self, name: str) -> dict[str, Any]:
        """Return the columns scores, margin, correct and tie for a task, with one value per item."""
        chosen = task(name)
        empty = {"margin": pa.nulls(len(self), pa.float64())}
        empty |= {key: pa.nulls(len(self), pa.bool_()) for key in ("correct", "tie")}
        columns = {"scores": self.table.column(chosen.needs), **empty}
        if not chosen.by_item or chosen.needs not in self.inputs:
            return columns
        judged = self.outcomes(name)
        void = judged == VOID
        columns["correct"] = pa.array(self.settings.worth(judged) == 1, mask=void)
        columns["tie"] = pa.array(judged == TIE, mask=void)
        if chosen.has_margins:
            leads = margins(chosen, self.layout, self.scores(chosen.needs))
            columns["margin"] = pa.array(leads, mask=np.isnan(leads))
        return columns

    # -- the two matrices ----------------------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        """The match matrices of the items (which captions are true of which images), in the form that the metrics
        take.
        """
        match = self.table.column("match")
        cells = pc.list_value_length(match).to_numpy().astype(np.int64)
        rows = np.maximum(1, pc.list_value_length(self.table.column("images")).to_numpy()).astype(np.int64)
        flat = np.asarray(_flat(match).to_numpy(zero_copy_only=False), bool)
        return Layout(rows, cells // rows, flat)

    def scores(self, needs: Input) -> np.ndarray:
        """Return a score column (`needs`) as a flat array, with NaN for items without scores."""
        column = self.table.column(needs)
        present = column.is_valid().to_numpy()
        values = np.asarray(_flat(column.drop_null()).to_numpy(zero_copy_only=False), np.float32)
        return self.layout.fill(needs, present, values)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The names of the columns that hold scores."""
        return tuple(i for i in INPUTS if self.table.column(i).null_count < len(self))

    @cached_property
    def subsets(self) -> list[str]:
        return self.table.column("subset").to_pylist()

    @cached_property
    def clusters(self) -> np.ndarray:
        """The cluster number of each item. Items that share an image, even with different crops, are in the same
        cluster.
        """
        return image_clusters(self.table.column("images"))

    @cached_property
    def answers(self) -> dict[int, list[Written]]:
        """The texts that a generative model wrote, by item number, with its reasoning in a separate field. Empty for
        other models.
        """
        column = self.table.column(COLUMN).to_pylist() if COLUMN in self.table.column_names else []
        return {item: records for item, records in enumerate(column) if records}

    @property
    def cut_off(self) -> int:
        """The number of items that have no score because an answer was cut off."""
        return len(cut_items(self.answers))

    @property
    def swap(self) -> np.ndarray | None:
        """A boolean array: True for the items whose true captions P1 and P2 are swapped, following VISLA; None if no
        task uses this.
        """
        if "swap" not in self.table.column_names:
            return None
        return np.asarray(self.table.column("swap").to_numpy(zero_copy_only=False), bool)

    def fits(self, bench: Benchmark) -> bool:
        """Return whether the run was computed on this benchmark or on a part of it."""
        steps = self.document["benchmark"].get("provenance", [])
        parents = {digest for step in steps for digest in step.get("inputs", ()) if step.get("op") in _PARTS}
        return bench.hash == self.hash or bench.hash in parents

    # -- results -------------------------------------------------------------------------------------------------

    def outcomes(self, which: str) -> np.ndarray:
        """Return the outcome of the task `which` for every item: HIT, MISS, TIE or VOID. VOID means that a score is
        missing or that there is nothing to compare.
        """
        chosen = task(which)
        return outcomes(chosen, self.layout, self.scores(chosen.needs), self.swap)

    def scored_task(self, name: str) -> Task:
        """Return a task; raise a UsageError if the run lacks the scores that it needs."""
        chosen = task(name)
        if chosen.needs not in self.inputs:
            raise UsageError(
                f"the run has no {chosen.needs} scores, which task {chosen.name!r} needs",
                where=str(self.path or self.name),
                hint="score the benchmark with a model that gives them",
            )
        return chosen

    def evaluate(
        self, tasks: str | Judge | Iterable[str | Judge] | None = None, settings: MetricSettings | None = None
    ) -> list[Result]:
        """Return results recomputed from the stored scores. `settings` and `tasks` (names or functions) may differ from
        those of the run.
        """
        results: list[Result] = []
        for chosen in map(self.scored_task, task_names(tasks or self.tasks)):
            results += evaluate(
                chosen,
                self.layout,
                self.scores(chosen.needs),
                subsets=self.subsets,
                clusters=self.clusters,
                swap=self.swap,
                settings=settings or self.settings,
            )
        return results

    # -- on disk -------------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Run:
        """Write the run atomically to `folder/<name>`, replacing an older run of that name; return the saved run."""
        path = Path(folder) / self.name
        if path.exists() and not (path / RUN_FILE).exists() and any(path.iterdir()):
            raise UsageError("this folder holds something other than a run", where=path, hint="choose another `out=`")
        with new_folder(path, replace_old=True) as draft:
            write_parquet(_with_plain_lists(self.table), draft / SCORES_FILE)
            write_json(draft / RUN_FILE, self.document, files=[SCORES_FILE])
        return Run(self.document, self.table, path, self.bench)


def task_names(tasks: str | Judge | Iterable[str | Judge]) -> tuple[str, ...]:
    """Return the names of tasks; a function is first registered as a task."""
    several = [tasks] if isinstance(tasks, str) or callable(tasks) else tasks
    return tuple(n for one in several for n in ([own_task(one)] if callable(one) else split_names(one)))


def _with_plain_lists(table: pa.Table) -> pa.Table:
    """Return the table with Arrow's default name for the elements of lists.

    Tables that were read from Parquet have another name there. Without this change, the bytes of a file would depend on
    whether its table was read or computed.
    """
    schema = table.schema
    for k, column in enumerate(schema):
        if pa.types.is_list(column.type):
            schema = schema.set(k, pa.field(column.name, pa.list_(column.type.value_type)))
    return table.cast(schema).combine_chunks()


def load_run(path: str | Path) -> Run:
    """Load a run from its folder, as written by `Run.save`, or from a folder that contains a single run."""
    folder = Path(path)
    if folder.name == RUN_FILE:
        folder = folder.parent
    if not (folder / RUN_FILE).is_file():
        inside = sorted(file.parent for file in folder.glob(f"*/{RUN_FILE}"))
        if len(inside) != 1:
            raise UsageError(
                f"contains {len(inside)} runs, expected one" if inside else "is not a run: it has no run.json",
                where=folder,
                hint=f"give the folder of one run: {', '.join(p.name for p in inside[:5])}"
                if inside
                else "give a folder that `score` wrote",
            )
        folder = inside[0]
    document, checksums = read_checked(folder / RUN_FILE, AGAIN)
    try:
        version = document["creperie"]
        _ = document["name"], document["model"]["uri"], document["benchmark"]["hash"], document["tasks"]
        check_files(folder, checksums, how_again(document, AGAIN))
        table = read_parquet(folder / SCORES_FILE)
        missing = {"subset", "id", "match", "images", *INPUTS} - set(table.column_names)
    except (KeyError, TypeError) as e:
        what = f"is not a complete run ({type(e).__name__}: {e})"
        raise DataError(what, where=str(folder / RUN_FILE), hint=AGAIN) from None
    except (OSError, pa.ArrowException, UnicodeDecodeError) as e:
        what = f"cannot be read ({str(e)[:120]})"
        raise DataError(what, where=str(folder / SCORES_FILE), hint=AGAIN) from None
    if version != VERSION:
        raise DataError(
            f"is a run of version {version}, but this creperie reads version {VERSION}",
            where=folder,
            hint="score it again, or read it with the release that wrote it",
        )
    if missing:
        raise DataError(f"has no column {sorted(missing)[0]!r}", where=str(folder / SCORES_FILE), hint=AGAIN)
    return Run(document, table, folder, unchecked=checksums is None)


def score_table(
    bench: Benchmark,
    layout: Layout,
    columns: Mapping[Input, np.ndarray],
    swap: np.ndarray | None = None,
    answers: Mapping[int, Sequence[Written]] | None = None,
) -> pa.Table:
    """Return a run's table, with one row per item. In a column of scores, an item without any score is null; if only
    some of its scores are missing, these are NaN.
    """
    arrays = {name: bench.column(name) for name in ("subset", "id")}
    for needs in INPUTS:
        arrays[needs] = _score_column(layout, needs, columns.get(needs))
    arrays["match"] = bench.column("match")
    arrays["images"] = bench.column("images")
    if swap is not None:
        arrays["swap"] = pa.array(swap, pa.bool_())
    if answers:
        arrays[COLUMN] = answer_column(answers, len(layout))
    return pa.table(arrays)


def _score_column(layout: Layout, needs: Input, flat: np.ndarray | None) -> pa.Array:
    kind = pa.list_(pa.float32())
    if flat is None:
        return pa.nulls(len(layout), kind)
    widths = layout.widths(needs)
    owner = np.repeat(np.arange(len(layout)), widths)
    scored = np.bincount(owner[np.isfinite(flat)], minlength=len(layout)) > 0
    sizes = np.where(scored, widths, 0)
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    values = pa.array(flat[scored[owner]], pa.float32())
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(~scored, pa.bool_()))


def image_clusters(images: pa.ChunkedArray) -> np.ndarray:
    """Return one cluster number per item. Items have the same number if they share an image, directly or through other
    items.
    """
    counts = pc.list_value_length(images).to_numpy()
    files = pc.replace_substring_regex(_flat(images).cast(pa.string()), _CROP, "")
    codes = files.dictionary_encode().indices.to_numpy() if len(files) else np.zeros(0, np.int64)
    return clusters_of(counts, codes)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    flat = pc.list_flatten(column)
    return flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
