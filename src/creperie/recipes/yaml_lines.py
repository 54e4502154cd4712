"""Safe YAML parsing that remembers the line of every value. An error about a recipe can then name the line."""

from __future__ import annotations

import pathlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import yaml

from creperie.core import DataError, Json, check_name, compose_yaml

#: Maximum nesting of a document; no recipe is deeper.
DEEPEST = 20
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Marked:
    """A document, and the line of each value. A value is found by its path, such as `("stages", 0, "name")`."""

    file: str
    value: Any
    lines: dict[Path, int]

    def where(self, *path: str | int) -> str:
        """Return `file:line` of the value at a path, or of the nearest value that encloses it."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.file}:{self.lines.get(path, 1)}"

    def mapping(self, path: Path, known: Collection[str], what: str, kind: str = "key") -> Json:
        """Return the mapping at a path. If it is not a mapping, or has a key that is not in `known`, raise an error
        with the line.
        """
        value = self.value
        for part in path:
            value = value[part]
        if not isinstance(value, dict):
            raise DataError(what, where=self.where(*path), hint=f"expected: {', '.join(known)}")
        for key in value:
            check_name(kind, key, known, where=self.where(*path, key))
        return value


def read_marked_file(file: pathlib.Path) -> Marked:
    """Return the YAML document in a file, with the lines of its values."""
    try:
        return read_marked(file.read_bytes().decode("utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(
            f"cannot be read ({getattr(e, 'strerror', '') or 'not UTF-8 text'})",
            where=file,
            hint="check the path, or save it as UTF-8",
        ) from None


def read_marked(text: str, file: str) -> Marked:
    """Return a YAML document of plain mappings, lists, strings, numbers and booleans, with the lines of its values.

    >>> read_marked("a:\\n  b: 1\\n", "x.yaml").where("a", "b")
    'x.yaml:2'
    """
    lines: dict[Path, int] = {}
    loader, node = compose_yaml(text, file)
    return Marked(file, _value(loader, node, (), lines, file) if node is not None else None, lines)


def _value(loader: yaml.SafeLoader, node: yaml.Node, path: Path, lines: dict[Path, int], file: str) -> Any:
    line = node.start_mark.line + 1
    lines[path] = line
    if len(path) > DEEPEST:
        raise DataError("is nested too deeply", where=f"{file}:{line}", hint="use fewer levels")
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, lines, file)
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, child, (*path, i), lines, file) for i, child in enumerate(node.value)]
    try:
        return loader.construct_object(node, deep=True)
    except (ValueError, OverflowError) as e:
        raise DataError(
            f"holds a value that cannot be read ({e})", where=f"{file}:{line}", hint="quote it, if it is text"
        ) from None
    except yaml.MarkedYAMLError as e:
        raise DataError(
            f"is not YAML: {e.problem}", where=f"{file}:{line}", hint="check quotes and indentation there"
        ) from None


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode, path: Path, lines: dict[Path, int], file: str) -> Json:
    values = {}
    for key_node, child in node.value:
        where = f"{file}:{key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise DataError("has a key that is not text", where=where, hint="put the key in quotes")
        key = str(key_node.value)
        if key in values:
            raise DataError(f"has {key!r} twice", where=where, hint="leave one of them out")
        values[key] = _value(loader, child, (*path, key), lines, file)
        lines[(*path, key)] = key_node.start_mark.line + 1
    return values
