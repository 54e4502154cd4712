"""The source of creperie, parsed once in a process for all tests that look at it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import creperie

ROOT = Path(creperie.__file__).parent


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return everything in a file of Python, the module first."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def dotted(node: ast.expr) -> str:
    """Return a name with its dots; what is no name, a call say, has none: `f(x).g` is `.g`."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@cache
def calls() -> tuple[tuple[str, str, ast.Call], ...]:
    """Return every call in creperie: its file, the name of what is called, and the node."""
    return tuple(
        (path.relative_to(ROOT).as_posix(), dotted(node.func), node)
        for path in sorted(ROOT.rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.Call)
    )
