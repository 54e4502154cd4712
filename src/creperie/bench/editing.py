"""Several changes to a benchmark in one go, in a fixed order, each of them a step of its provenance.

Conditions for filtering are as users write them: `tag.n > 4 and subset in ("swap_obj", "swap_att")`. They are parsed as
a Python expression and turned, piece by piece, into an Arrow expression; they are never run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench.benchmark import Benchmark, from_items
from creperie.bench.checks import CODES, check
from creperie.bench.formats.columns import typed_cells
from creperie.bench.formats.record import tag_of
from creperie.bench.formats.tablefile import open_table
from creperie.bench.formats.tables import kind_of_file
from creperie.bench.item import TAG_PREFIX, tag_array
from creperie.core import DataError, Progress, UsageError, option, silent, unknown

EXAMPLE = 'write for example: tag.n > 4 and subset in ("swap_obj", "swap_att") and not contains(id, "x")'

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], pc.Expression]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.In: lambda a, b: a.isin(b),
    ast.NotIn: lambda a, b: ~a.isin(b),
    ast.Is: lambda a, b: a.is_null(),
    ast.IsNot: lambda a, b: a.is_valid(),
}


def where(text: str, columns: Sequence[str]) -> pc.Expression:
    """A condition over a benchmark's columns.

    >>> str(where("tag.n > 4 and subset == 'swap_obj'", ["id", "subset", "tag.n"]))
    '((tag.n > 4) and (subset == "swap_obj"))'

    Columns are written as they are named; `tag["odd name"]` for odd ones. There are comparisons, `and`, `or`, `not`,
    `in`, `is None`, `len(captions)` and `contains(column, "text")`.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _condition(tree, text, columns)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        reason = e.msg if isinstance(e, SyntaxError) else str(e) or type(e).__name__
        raise UsageError(f"cannot read the condition {text[:80]!r} ({reason})", hint=EXAMPLE) from None


def _condition(node: ast.expr, text: str, columns: Sequence[str]) -> pc.Expression:
    match node:
        case ast.BoolOp(op=op, values=values):
            first, *rest = (_condition(v, text, columns) for v in values)
            for part in rest:
                first = first & part if isinstance(op, ast.And) else first | part
            return first
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~_condition(operand, text, columns)
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _comparison([left, *others], ops, text, columns)
        case ast.Call(func=ast.Name(id="contains"), args=[column, ast.Constant(value=str(part))], keywords=[]):
            return pc.match_substring(_operand(column, text, columns), part)
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return _operand(node, text, columns)
    raise _odd(node, text)


def _comparison(operands: list[ast.expr], ops: list[ast.cmpop], text: str, columns: Sequence[str]) -> pc.Expression:
    """One comparison, or a chain such as `1 < tag.n < 5`."""
    whole: pc.Expression | None = None
    for left, op, right in zip(operands, ops, operands[1:]):
        listed = isinstance(op, ast.In | ast.NotIn)
        nothing = isinstance(op, ast.Is | ast.IsNot)
        if nothing and not (isinstance(right, ast.Constant) and right.value is None):
            raise _odd(right, text)
        value = _values(right, text) if listed else None if nothing else _operand(right, text, columns)
        first = _operand(left, text, columns)
        part = _COMPARISONS[type(op)](first if isinstance(first, pc.Expression) else pc.scalar(first), value)
        whole = part if whole is None else whole & part
    assert whole is not None
    return whole


def _operand(node: ast.expr, text: str, columns: Sequence[str]) -> Any:
    """A column, a constant, or the length of a list column."""
    match node:
        case ast.Constant(value=str() | int() | float() | bool() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Call(func=ast.Name(id="len"), args=[column], keywords=[]):
            return pc.list_value_length(_operand(column, text, columns))
        case ast.Name(id=name):
            return _column(name, columns)
        case ast.Attribute(value=ast.Name(id="tag"), attr=name):
            return _column(TAG_PREFIX + name, columns)
        case ast.Subscript(value=ast.Name(id="tag"), slice=ast.Constant(value=str(name))):
            return _column(TAG_PREFIX + name, columns)
    raise _odd(node, text)


def _column(name: str, columns: Sequence[str]) -> pc.Expression:
    for known in (name, TAG_PREFIX + name):
        if known in columns:
            return pc.field(known)
    raise unknown("column", name, columns)


def _values(node: ast.expr, text: str) -> pa.Array:
    try:
        return pa.array(list(ast.literal_eval(node)))
    except (ValueError, TypeError, pa.ArrowException):
        raise _odd(node, text) from None


def _odd(node: ast.expr, text: str) -> UsageError:
    piece = ast.get_source_segment(text.strip(), node) or text
    return UsageError(f"cannot use {piece[:80]!r} in a condition", hint=EXAMPLE)


@dataclass(frozen=True)
class Edit:
    """What to change; done in this order."""

    join: Path | None = option(
        None,
        "Add tags from a table (CSV, TSV, JSONL, Parquet) with columns subset, id and more.",
        metavar="FILE",
    )
    subset: tuple[str, ...] = option((), "Keep these subsets, by comma or repeated.")
    where: str = option("", "Keep items for which this holds: 'tag.n > 4'.", metavar="CONDITION")
    without: tuple[str, ...] = option((), "Drop items with this finding of `data check`.", metavar="CODES")
    drop_duplicates: bool = option(False, "Drop items that repeat an earlier one of their subset.")
    head: int | None = option(None, "Keep the first N items of every subset.")
    sample: int | None = option(None, "Keep N items drawn at random, in their order.")
    seed: int = option(0, "Seed of `sample=`.")


def edit(bench: Benchmark, change: Edit, *, progress: Progress = silent) -> Benchmark:
    """A benchmark with the changes made."""
    if change.join is not None:
        bench = bench.join(read_tags(change.join), why=change.join.name)
    if change.subset:
        bench = bench.only(change.subset)
    if change.where:
        bench = bench.filter(where(change.where, bench.columns), why=change.where)
    if change.without:
        bench = without(bench, change.without, progress=progress)
    if change.drop_duplicates:
        bench = bench.drop_duplicates()
    if change.head is not None:
        bench = bench.head(change.head)
    if change.sample is not None:
        bench = bench.sample(change.sample, change.seed)
    return bench


def without(bench: Benchmark, codes: Sequence[str], *, progress: Progress = silent) -> Benchmark:
    """The items that have no finding of these codes."""
    for code in codes:
        if code not in CODES:
            raise unknown("finding", code, CODES)
    images = any("image" in code or "crop" in code for code in codes)
    bad = {(f.subset, f.item) for f in check(bench, images=images, progress=progress) if f.code in codes and f.item}
    keys = zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True)
    keep = np.fromiter((key not in bad for key in keys), dtype=bool, count=len(bench))
    return bench.filter(keep, why=f"without {', '.join(codes)}")


#: how sure it is that a twin's captions are false of the other image, in the tag `evidence`
LEVELS = ("certain", "likely", "unchecked")
Keys = Collection[tuple[str, str]]  #: subset and id of items


def reweighed(bench: Benchmark, by: str, doubted: Keys, agreed: Keys = ()) -> Benchmark | None:
    """A benchmark whose items say on what evidence they rest, after a model's verdicts; None for others.

    Doubt takes an item one level down; an item with whose cells the model agrees is `likely` at least, never `certain`.
    """
    items = []
    for item in bench:
        level, key = item.tags.get("evidence"), (item.subset, item.id)
        if level in LEVELS and (key in doubted or key in agreed):
            at = LEVELS.index(level)
            level = LEVELS[min(at + 1, 2) if key in doubted else min(at, 1)]
            basis = f"{item.tags.get('basis', '')}; {by} {'doubts it' if key in doubted else 'sees it so'}"
            item = replace(item, tags={**item.tags, "evidence": level, "basis": basis})
        items.append(item)
    weighed = any("evidence" in item.tags for item in items)
    return from_items(bench.name, items, images=bench.images) if weighed else None


def read_tags(path: Path) -> pa.Table:
    """A table of tags for items: columns subset, id, and one for each tag."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    table = open_table(path, kind_of_file(path))
    keyed = ("subset", "id")
    rows = [values for _, values in table.rows(table.names)]
    columns: dict[str, pa.Array] = {}
    for k, name in enumerate(table.names):
        values = [row[k] for row in rows]
        if name in keyed:
            columns[name] = pa.array([None if v is None else str(v) for v in values], pa.string())
            continue
        if any(isinstance(v, (list, dict)) for v in values):
            raise DataError(f"the column {name!r} holds lists or objects, which are not tags", where=str(path))
        own = name if name.startswith(TAG_PREFIX) else TAG_PREFIX + name
        columns[own] = tag_array(name, typed_cells(values) if table.text else [tag_of(v) for v in values])
    return pa.table(columns)
