"""Conditions as users write them, for filtering: `tag.n > 4 and subset in ("swap_obj", "swap_att")`.

The text is parsed as a Python expression and turned, piece by piece, into an Arrow expression; it is never run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench.item import TAG_PREFIX
from creperie.core import UsageError, unknown

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
