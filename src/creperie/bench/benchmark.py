"""The class `Benchmark`: a table of items, an image store, and a record of how the benchmark was made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench.columns import table_of
from creperie.bench.hashing import content_hash, hash_pieces
from creperie.bench.images import NO_IMAGES, REFERENCE_ENDING, ImageStore, open_image
from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX, Item, items_of
from creperie.bench.rows import ordinals, value_codes
from creperie.core import (
    DataError,
    Framed,
    UsageError,
    check_files,
    counted,
    explained,
    html_table,
    late,
    listing,
    open_parquet,
    reading_parquet,
    seeded,
    unknown,
)

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True)
class Info:
    """A description of a benchmark for readers. A field is empty if its value is not known."""

    title: str = ""
    description: str = ""
    licence: str = ""
    source: str = ""
    citation: str = ""


@dataclass(frozen=True)
class ProvenanceStep:
    """A step in a benchmark's history: the operation, its arguments, and the content hashes of its inputs."""

    op: str
    args: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class SkippedRecord:
    """A record in the published files from which no item could be made, and the reason."""

    subset: str
    id: str
    reason: str


@dataclass(frozen=True)
class Parquet:
    """A table in Parquet files, read on demand. `digest` is the content hash that the benchmark's manifest states.

    The files are checked once, before they are first read. `checksums` is None if the manifest has no checksums, as in
    older versions of creperie. The files are then not checked.
    """

    files: tuple[Path, ...]
    digest: str
    checksums: Mapping[str, str] | None = None  #: of the files, by their paths in the benchmark's folder
    again: str = ""  #: how they are made again

    @cached_property
    def _checked(self) -> None:
        """Raise a DataError if a file is damaged. The files are checked only on first access."""
        if self.checksums is None:
            return
        folder = self.files[0].parent.parent
        check_files(folder, self.checksums, self.again)
        for path in self.files:
            if path.relative_to(folder).as_posix() not in self.checksums:
                raise DataError("is not a file of this benchmark", where=path, hint="move it elsewhere")

    @cached_property
    def dataset(self) -> Any:
        import pyarrow.dataset as ds  # imports pandas if it is installed, which is slow

        _ = self._checked
        # Page checksums notice what is damaged later, and in files of older versions.
        checked = ds.ParquetFileFormat(
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        )
        return ds.dataset([str(f) for f in self.files], format=checked)

    @cached_property
    def rows(self) -> int:
        return int(self.dataset.count_rows())

    def pieces(self, columns: list[str], rows: int) -> Iterator[pa.Table]:
        """Yield the given columns, at most `rows` rows at a time; raise a DataError if a file is damaged."""
        _ = self._checked
        for path in self.files:
            with reading_parquet(path, self.again), open_parquet(path) as file:
                for batch in file.iter_batches(rows, columns=columns):
                    yield pa.Table.from_batches([batch]).select(columns)

    def read(self, columns: list[str] | None = None, condition: pc.Expression | None = None) -> pa.Table:
        """Return the table, or only the named columns and the rows that meet a condition. Raise a DataError if a file
        is damaged.
        """
        with reading_parquet(self.files[0].parent, self.again):
            return self.dataset.to_table(columns=columns, filter=condition)


@dataclass(frozen=True)
class KeptRows(Parquet):
    """The rows of Parquet files that a mask selects. They are read on demand, a piece at a time."""

    keep: np.ndarray = field(default_factory=lambda: np.zeros(0, bool), compare=False)

    @cached_property
    def rows(self) -> int:
        return int(self.keep.sum())

    def pieces(self, columns: list[str], rows: int) -> Iterator[pa.Table]:
        first = 0
        for piece in super().pieces(columns, rows):
            mask = self.keep[first : first + piece.num_rows]
            first += piece.num_rows
            if mask.any():
                yield piece.filter(pa.array(mask))

    def read(self, columns: list[str] | None = None, condition: pc.Expression | None = None) -> pa.Table:
        schema = self.dataset.schema
        names = columns or schema.names
        empty = schema.empty_table().select(names)
        table = pa.concat_tables([empty, *self.pieces(names, PIECE)])
        return table if condition is None else table.filter(condition)


#: Rows that are read at a time.
PIECE = 65_536
#: A part of a benchmark with more items than this stays on disk.
HELD = 250_000


@dataclass(frozen=True)
class Benchmark(Framed):
    """A named set of items, with images and a record of its history. A benchmark on disk is read only as needed."""

    name: str
    source: pa.Table | Parquet
    images: ImageStore = NO_IMAGES
    info: Info = Info()
    provenance: tuple[ProvenanceStep, ...] = ()
    skipped: tuple[SkippedRecord, ...] = ()
    unchecked: bool = field(default=False, compare=False)  #: read from files of an older version, without checksums

    def __post_init__(self) -> None:
        if not isinstance(self.source, (pa.Table, Parquet)):
            raise UsageError(
                f"a benchmark is made from an Arrow table, not from {type(self.source).__name__}",
                where=self.name,
                hint="write `creperie.from_pandas(items, name=…)`",
            )

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def _on_disk(self) -> Parquet | None:
        """The files of the items; None if the items are in memory."""
        return self.source if isinstance(self.source, Parquet) and "table" not in self.__dict__ else None

    @cached_property
    def table(self) -> pa.Table:
        """The whole table; it is read on first use and then stays in memory."""
        if not isinstance(self.source, Parquet):
            return self.source
        table = self.source.read()
        check_shapes(table, str(self.source.files[0].parent))
        return table

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column. If the benchmark is on disk, only this column is read."""
        return self.table.column(name) if self._on_disk is None else self._on_disk.read([name]).column(0)

    def pieces(self, columns: list[str], rows: int = PIECE) -> Iterator[pa.Table]:
        """Yield tables of the given columns, with at most `rows` rows each.

        A benchmark on disk is never read as a whole.
        """
        if self._on_disk is not None:
            yield from self._on_disk.pieces(columns, rows)
            return
        for start in range(0, len(self), rows):
            yield self.table.select(columns).slice(start, rows)

    @cached_property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns. They are known without reading any items."""
        return self.source.dataset.schema if isinstance(self.source, Parquet) else self.source.schema

    @cached_property
    def hash(self) -> str:
        """The content hash of the items. A run records it to identify its benchmark."""
        if not isinstance(self.source, Parquet):
            return content_hash(self.source)
        return self.source.digest or hash_pieces(self.columns, self.pieces(self.columns))

    @cached_property
    def checked_hash(self) -> str:
        """The content hash, computed from the items; raise a DataError if the hash in the manifest is different."""
        if isinstance(self.source, Parquet) and hash_pieces(self.columns, self.pieces(self.columns)) != self.hash:
            place = self.source.files[0].parent.parent
            hint = "save the benchmark again"
            raise DataError("the items do not match the hash in the manifest", where=place, hint=hint)
        return self.hash

    @cached_property
    def subsets(self) -> dict[str, int]:
        """The number of items of each subset, in order of first appearance."""
        counts = pc.value_counts(self.column("subset").combine_chunks())
        return {row["values"]: row["counts"] for row in counts.to_pylist()}

    def __repr__(self) -> str:
        return f"Benchmark({self.name!r}, {counted(len(self), 'item')}: {listing(self.subsets, 4) or 'no subset'})"

    def _repr_html_(self) -> str:
        rows = []
        for subset, items in self.subsets.items():
            first = self.only(subset)[0]
            true = "; ".join(first.positives)
            false = "; ".join(c for i, c in enumerate(first.captions) if not all(row[i] for row in first.match))
            rows.append((subset, f"{items:,}", true, false))
        columns = ("subset", "items", "a true caption", "a false one")
        return html_table(f"{self.name}: {len(self):,} items", columns, rows)

    def frame(self) -> pa.Table:
        """Return the items as an Arrow table, one row per item."""
        return self.table

    def open(self, item: Item | int | str) -> list[Image.Image]:
        """Return the images of an item. `item` is the item itself, its index or its id.

        The images are decoded, in RGB and upright, and cropped if the item refers to a region of them.
        """
        own = item if isinstance(item, Item) else self[item]
        return [open_image(self.images, reference) for reference in own.images]

    def __len__(self) -> int:
        return self.source.rows if isinstance(self.source, Parquet) else int(self.source.num_rows)

    def __iter__(self) -> Iterator[Item]:
        return iter(items_of(self.table))

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Benchmark: ...
    @overload
    def __getitem__(self, index: str) -> Any: ...
    @explained
    def __getitem__(self, index: int | str | slice) -> Item | Benchmark:
        """Return the item at an index or with an id. For a slice or the name of a subset, return a benchmark of these
        items.
        """
        if isinstance(index, slice):
            rows = pa.array(range(*index.indices(len(self))), pa.int64())
            return self.with_table(self.table.take(rows), "slice", rows=f"{index.start}:{index.stop}:{index.step}")
        if isinstance(index, str) and index in self.subsets:
            return self.only(index)
        if isinstance(index, str):
            own = self.table.column("subset").filter(pc.equal(self.table.column("id"), index)).to_pylist()
            if len(own) != 1:
                raise UsageError(
                    f"{len(own) or 'no'} items have the id {index!r}",
                    where=self.name,
                    hint=f"name the subset too: `bench.item({own[0]!r}, {index!r})`"
                    if own
                    else f"check the id; the subsets are {listing(self.subsets, 8)}",
                )
            return self.item(own[0], index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name} has {len(self)} items, no item {index}")
        return next(iter(items_of(self.table.slice(index % len(self), 1))))

    @property
    def item_keys(self) -> list[tuple[str, str]]:
        """The (subset, id) of every item, in order."""
        return list(zip(self.column("subset").to_pylist(), self.column("id").to_pylist(), strict=True))

    @explained
    def item(self, subset: str, id: str) -> Item:
        """Return the item with this subset and id; raise a UsageError if there is none."""
        rows = self.table.filter((pc.field("subset") == subset) & (pc.field("id") == id))
        if rows.num_rows == 0:
            raise UsageError(
                f"no item {id!r} in subset {subset!r}", where=self.name, hint="check the subset and the id"
            )
        return next(iter(items_of(rows)))

    # -- columnar views of ragged lists -------------------------------------------------------------------------

    def ragged(self, column: str) -> tuple[np.ndarray, pa.Array]:
        """Return a list column as offsets and flat values: list i is `values[offsets[i]:offsets[i + 1]]`."""
        array = self.column(column)
        lengths = pc.list_value_length(array).to_numpy()
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        flat = pc.list_flatten(array)
        flat = flat.chunk(0) if flat.num_chunks == 1 else flat.combine_chunks()  # combine_chunks copies
        del array  # release the memory of the column that was read
        _release_memory()
        return offsets, flat

    # -- changing: each step returns a new benchmark whose provenance says what was done -------------------------

    def keeping(self, keep: np.ndarray, op: str, **args: Any) -> Benchmark:
        """Return a benchmark of the items for which the mask `keep` is True. `op` and `args` become a provenance step.

        A large benchmark on disk is not loaded into memory.
        """
        if (source := self._on_disk) is not None and len(self) > HELD:
            if isinstance(source, KeptRows):
                own, keep = keep, source.keep.copy()
                keep[keep] = own
            return self.with_table(KeptRows(source.files, "", source.checksums, source.again, keep), op, **args)
        return self.with_table(self.table.filter(pa.array(keep)), op, **args)

    def with_table(self, table: pa.Table | Parquet, op: str, **args: Any) -> Benchmark:
        """Return a copy of the benchmark with the items in `table`. `op` and `args` become a provenance step.

        If the copy has fewer items than the benchmark, the step also says how many items are left.
        """
        changed = replace(self, source=table)
        left = {"leaves": f"{len(changed):,} of {len(self):,}"} if len(changed) < len(self) else {}
        return replace(changed, provenance=(*self.provenance, ProvenanceStep(op, args | left, (self.hash,))))

    def filter(
        self, condition: pc.Expression | Sequence[bool] | np.ndarray | Callable[[Item], bool], why: str = ""
    ) -> Benchmark:
        """Return a benchmark of the items that meet a condition: an Arrow expression over the columns, a boolean mask,
        or a function that takes an item. `why` is recorded as the reason.

        Arrow evaluates expressions such as `pc.field("tag.n") > 4`. If the benchmark is on disk, this happens while it
        is read.
        """
        if isinstance(condition, pc.Expression):
            return self.with_table(self._where(condition), "filter", condition=str(condition), why=why)
        mask = np.asarray([condition(item) for item in self] if callable(condition) else condition, bool)
        if len(mask) != len(self):
            what = f"expected a mask of {len(self)} values, found {len(mask)}"
            raise UsageError(what, where=self.name, hint="give a mask with one boolean per item")
        return self.keeping(mask, "filter", condition=f"mask of {len(mask)}", why=why)

    def _where(self, condition: pc.Expression) -> pa.Table:
        try:
            self.schema.empty_table().filter(condition)  # distinguishes a wrong condition from a damaged file
        except pa.ArrowException as e:
            raise UsageError(
                f"the condition {condition} cannot be applied to the columns ({str(e).splitlines()[0][:120]})",
                where=self.name,
                hint=f"use only these columns: {', '.join(self.columns)}",
            ) from None
        return self.table.filter(condition) if self._on_disk is None else self._on_disk.read(condition=condition)

    def save(self, folder: str | Path, *, copy_images: bool = False, force: bool = False) -> Benchmark:
        """Write the benchmark into a folder, as `creperie.save` does, and return it as loaded from there."""
        return late("creperie.bench", "save")(self, folder, copy_images=copy_images, force=force)

    @explained
    def only(self, *subsets: str | Iterable[str]) -> Benchmark:
        """Return a benchmark of the items in these subsets. Subsets are given as separate arguments or as a list."""
        names = [name for one in subsets for name in ([one] if isinstance(one, str) else one)]
        for name in names:
            if not isinstance(name, str) or name not in self.subsets:
                raise unknown("subset", str(name), self.subsets, where=self.name)
        condition = pc.field("subset").isin(names)
        if self._on_disk is not None:
            chosen = self.filter(condition, why=f"only {', '.join(names)}")
        else:  # a mask avoids importing pyarrow's acero and dataset modules
            rows = self.table.filter(pc.is_in(self.table["subset"], value_set=pa.array(names, pa.string())))
            chosen = self.with_table(rows, "filter", condition=str(condition), why=f"only {', '.join(names)}")
        return replace(chosen, skipped=tuple(s for s in self.skipped if s.subset in names))

    @explained
    def sample(self, n: int, seed: int = 0) -> Benchmark:
        """Return a benchmark of `n` items, or all if there are fewer. They are drawn without replacement and stay in
        their original order.
        """
        if n < 0:
            raise UsageError(f"cannot sample {n} items", where=self.name, hint="choose 0 or more")
        rng = seeded(seed)
        keep = np.zeros(len(self), bool)
        keep[rng.permutation(len(self))[:n]] = True
        return self.keeping(keep, "sample", n=n, seed=seed)

    def head(self, n: int) -> Benchmark:
        """Return a benchmark of the first `n` items of every subset."""
        keep = ordinals(value_codes(self.column("subset"))) < n
        return self.keeping(keep, "head", n=n)


def check_shapes(table: pa.Table, where: str) -> None:
    """Raise a DataError if a table has invalid UTF-8, empty cells, or a match matrix of the wrong size. The right size
    is images × captions.
    """
    try:
        table.validate(full=True)
    except pa.ArrowException as e:
        what = f"contains bytes that are not text ({str(e)[:120]})"
        raise DataError(what, where=where, hint="write the file again as UTF-8") from None
    for name in CORE_COLUMNS.names:
        column = table.column(name)
        leaves = pc.list_flatten(column) if pa.types.is_list(column.type) else column
        if column.null_count or leaves.null_count:
            raise DataError(f"the column {name!r} has empty cells", where=where, hint="fill them, or drop their rows")
    images, captions, match = (
        pc.list_value_length(table.column(n)).to_numpy() for n in ("images", "captions", "match")
    )
    wrong = np.flatnonzero(match != np.maximum(images, 1) * captions)
    if len(wrong):
        row = table.slice(int(wrong[0]), 1)
        key = f"item {row.column('subset')[0]}/{row.column('id')[0]}"
        shape = f"{max(1, int(images[wrong[0]]))} × {int(captions[wrong[0]])}"
        what = f"{key} has {int(match[wrong[0]])} match cells, expected {shape}"
        raise DataError(what, where=where, hint="give one cell per pair of an image and a caption")


def contained_benchmark(given: Any) -> Benchmark | None:
    """Return `given` if it is a benchmark. If it is a result that holds one, such as `Refined`, return that benchmark.
    For anything else, return None.
    """
    bench = given if isinstance(given, Benchmark) else getattr(given, "bench", None)
    return bench if isinstance(bench, Benchmark) else None


def from_items(name: str, items: Iterable[Item], **parts: Any) -> Benchmark:
    """Return a benchmark made of items in memory. `parts` are other fields of the `Benchmark`, such as `images`. Raise
    a DataError if two items have the same subset and id.
    """
    bench = Benchmark(name, table_of(items), **parts)
    check_keys(bench)
    return bench


def check_keys(bench: Benchmark, hint: str = "give every item of a subset its own id") -> None:
    """Raise a DataError if an id appears more than once within a subset."""
    if pc.count_distinct(bench.table.column("id")).as_py() == len(bench):
        return  # the usual case; the grouping below takes longer to import than this takes to run
    counted = bench.table.select(["subset", "id"]).group_by(["subset", "id"]).aggregate([([], "count_all")])
    double = counted.filter(pc.field("count_all") > 1)
    if double.num_rows:
        row = double.slice(0, 1).to_pylist()[0]
        raise DataError(
            f"item id {row['id']!r} appears {row['count_all']} times in subset {row['subset']!r}",
            where=bench.name,
            hint=hint,
        )


# -- several benchmarks as one ---------------------------------------------------------------------------------------


def concatenate(name: str, parts: Sequence[Benchmark], *, prefix: bool = False) -> Benchmark:
    """Return one benchmark with the items of several. The images of all of them must be in the same store, and no two
    items may have the same subset and id.

    With `prefix`, subsets are renamed to `<benchmark>/<subset>`, so that equal names of subsets do not collide.
    """
    if not parts:
        raise UsageError("no benchmarks to concatenate were given", where=name, hint="give at least one benchmark")
    given = [b.images for b in parts if b.images is not NO_IMAGES]
    stores = {str(Path(s.location).resolve()) if s.location else f"store {id(s)}": s for s in given}
    if len(stores) > 1:
        raise UsageError(
            f"the benchmarks keep their images in different places: {', '.join(sorted(stores))}",
            where=name,
            hint="load them with one images folder (`images=`) that holds all of them",
        )
    parts = [_prefixed(b) for b in parts] if prefix else parts
    table = pa.concat_tables(_same_kinds([b.table for b in parts]), promote_options="default")
    columns = list(CORE_COLUMNS.names) + sorted(n for n in table.column_names if n not in CORE_COLUMNS.names)
    history = {"names": [b.name for b in parts], "history": [[asdict(step) for step in b.provenance] for b in parts]}
    joined = Benchmark(
        name,
        table.select(columns),
        images=next(iter(stores.values()), NO_IMAGES),
        info=parts[0].info if len({b.info for b in parts}) == 1 else Info(),
        provenance=(ProvenanceStep("concatenate", history, tuple(b.hash for b in parts)),),
        skipped=tuple(s for b in parts for s in b.skipped),
        unchecked=any(b.unchecked for b in parts),
    )
    check_keys(joined, hint="name subsets after their benchmark (`prefix=`)")
    return joined


def _same_kinds(tables: list[pa.Table]) -> list[pa.Table]:
    """Return the tables. A tag with different types in different tables is converted to text in all of them."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    mixed = {name for name, types in kinds.items() if name.startswith(TAG_PREFIX) and len(types - {pa.null()}) > 1}
    for name in mixed:
        for i, table in enumerate(tables):
            if name in table.column_names:
                column = table.column(name).cast(pa.string())
                tables[i] = table.set_column(table.column_names.index(name), name, column)
    return tables


def _prefixed(bench: Benchmark) -> Benchmark:
    column = bench.table.column("subset")
    renamed = pc.binary_join_element_wise(bench.name, column, "/")
    table = bench.table.set_column(CORE_COLUMNS.names.index("subset"), CORE_COLUMNS.field("subset"), renamed)
    skipped = tuple(replace(s, subset=f"{bench.name}/{s.subset}") for s in bench.skipped)
    return replace(bench, source=table, skipped=skipped)


def image_keys(bench: Benchmark) -> list[str]:
    """Return the keys of all images that items refer to, in the order of first use. Crop boxes and duplicates are left
    out.
    """
    references = pc.unique(bench.ragged("images")[1])
    return pc.unique(pc.replace_substring_regex(references, REFERENCE_ENDING, "")).to_pylist()


def _release_memory() -> None:
    """Return freed memory to the operating system."""
    # Otherwise, Arrow and glibc keep some of it, even of large arrays.
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        from ctypes import CDLL

        with suppress(AttributeError, OSError):  # other C libraries have no such function
            CDLL(None).malloc_trim(0)
