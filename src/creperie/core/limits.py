"""Parsers for untrusted files. Each raises a one-line error for a file that would exhaust memory or time.

They limit the size and depth of JSON and YAML, the expansion of YAML aliases, and the columns and cells of tables.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from creperie.core.errors import CreperieError, DataError, UsageError

if TYPE_CHECKING:
    import yaml

#: maximum size in bytes of a text file that is read whole, and of a YAML file
MAX_BYTES = 4 * 2**30
MAX_YAML_BYTES = 4 * 2**20
#: maximum nesting of lists and objects
MAX_DEPTH = 100
#: maximum number of values in a YAML document, with its aliases expanded
MAX_YAML_VALUES = 100_000
#: maximum columns of a table. Cells may have as many characters as Python's csv module allows (131,072).
MAX_COLUMNS = 2_000
#: maximum number of files in an archive
MAX_MEMBERS = 2_000_000

BOM = "\ufeff"
FLATTER = f"nest at most {MAX_DEPTH} levels"
CORRECT = "correct the file there"


def unreadable(path: Path, error: OSError | ValueError) -> CreperieError:
    """Return the error to raise for a file that could not be opened. `error` is what Python raised: an OSError, or a
    ValueError if the path contains a NUL byte.
    """
    if isinstance(error, OSError):
        return DataError(f"cannot be read ({error.strerror})", where=path, hint="check the path and its permissions")
    return UsageError("is not a valid file path", where=repr(str(path)), hint="remove the NUL byte from the path")


def read_text(path: Path, *, max_bytes: int = MAX_BYTES) -> str:
    """Return the whole text of a UTF-8 file, with line endings and byte order mark as they are."""
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except (OSError, ValueError) as e:
        raise unreadable(path, e) from None
    if len(data) > max_bytes:
        raise DataError(f"has more than {max_bytes:,} bytes", where=str(path), hint="give a smaller file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        what = f"is not UTF-8 text (byte {data[e.start]:#04x})"
        raise DataError(what, where=f"{path}:{line}", hint="save the file as UTF-8") from None


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line) of a UTF-8 file, without line endings and byte order mark. Only a line feed ends
    a line.
    """
    number = 0
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, 1):
                yield number, data.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", where=f"{path}:{number}", hint="save the file as UTF-8") from None
    except OSError as e:
        raise unreadable(path, e) from None


# -- JSON ------------------------------------------------------------------------------------------------------------


class _RefusedError(Exception):
    """Raised in the JSON decoder for a repeated key, or for a value that Python accepts but JSON does not, such as
    NaN.
    """


def _no_constant(name: str) -> NoReturn:
    raise _RefusedError(f"contains {name}, which is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _RefusedError(f"contains the number {text[:20]}, which is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _RefusedError(f"contains the key {_repeated(name for name, _ in pairs)[0][:80]!r} twice")
    return made


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
_PLAIN = json.JSONDecoder()


def parse_json(text: str, where: str, *, strict: bool = False) -> Any:
    """Return the value of a JSON document. With `strict`, repeated keys, NaN and Infinity are errors."""
    try:
        value = (_STRICT if strict else _PLAIN).decode(text.removeprefix(BOM))
    except json.JSONDecodeError as e:
        what = f"is not JSON: {e.msg}" if text.removeprefix(BOM).strip() else "is empty"
        raise DataError(what, where=f"{where}:{e.lineno}:{e.colno}", hint=CORRECT) from None
    except _RefusedError as e:
        raise DataError(str(e), where=where, hint=CORRECT) from None
    except RecursionError:
        raise DataError("is nested too deeply", where=where, hint=FLATTER) from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise DataError("contains a number with too many digits", where=where, hint="write it as text") from None
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        containers = [v for v in level if isinstance(v, (dict, list))]
        if not containers:
            return value
        level = [v for c in containers for v in (c.values() if isinstance(c, dict) else c)]
    raise DataError(f"is nested too deeply: more than {MAX_DEPTH} levels", where=where, hint=FLATTER)


def parse_toml(text: str, where: object) -> dict[str, Any]:
    """Return the content of a TOML document."""
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise DataError(f"is not TOML: {e}", where=where, hint=CORRECT) from None


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (location, value) for each line of a JSON Lines file, parsed strictly. Blank lines are skipped."""
    for number, text in read_lines(path):
        if text.strip():
            where = f"{path}:{number}"
            try:
                yield where, parse_json(text, where, strict=True)
            except DataError as e:
                raise DataError(e.what, where=where, hint=e.hint) from None


def first_line(path: Path) -> str:
    """Return the first line of a text file that is not blank; empty if there is none."""
    return next((line for _, line in read_lines(path) if line.strip()), "")


# -- YAML ------------------------------------------------------------------------------------------------------------


def compose_yaml(text: str, where: str) -> tuple[yaml.SafeLoader, yaml.Node | None]:
    """Parse a YAML document, without building Python values yet. Return the loader and the root node of the document
    (None if it is empty). The loader can build the values. Raise a DataError if the document exceeds the limits.
    """
    import yaml

    if len(text) > MAX_YAML_BYTES:
        what = f"is YAML of {len(text):,} characters, but at most {MAX_YAML_BYTES:,} are read"
        raise DataError(what, where=where, hint="split the file")
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or count > MAX_YAML_VALUES:
                limits = f"at most {MAX_DEPTH} levels and {MAX_YAML_VALUES:,} values are read"
                raise DataError("is nested too deeply, or has too many values", where=where, hint=limits)
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is not None and _expanded(node, {}, where) > MAX_YAML_VALUES:
            what = f"has aliases that expand to more than {MAX_YAML_VALUES:,} values"
            raise DataError(what, where=where, hint="use fewer aliases")
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        place = f"{where}:{mark.line + 1}" if mark else where
        what = f"is not YAML: {e.problem or e.context or 'cannot be read'}"
        raise DataError(what, where=place, hint=CORRECT) from None
    except (yaml.YAMLError, RecursionError) as e:
        raise DataError(f"is not YAML: {str(e)[:120] or 'nested too deeply'}", where=where, hint=CORRECT) from None
    return loader, node


def _expanded(node: yaml.Node, sizes: dict[int, int], where: str) -> int:
    """Return how many values a YAML node has once its aliases are expanded. Raise a DataError if the node contains
    itself.
    """
    if id(node) not in sizes:
        sizes[id(node)] = 0  # not known yet: still 0 if the node contains itself
        value: list[Any] = node.value if isinstance(node.value, list) else []
        children = [child for entry in value for child in (entry if isinstance(entry, tuple) else (entry,))]
        sizes[id(node)] = 1 + sum(_expanded(child, sizes, where) for child in children)
    if not sizes[id(node)]:
        line = node.start_mark.line + 1
        what = "an alias refers to a value that contains it"
        raise DataError(what, where=f"{where}:{line}", hint="write the value out instead of the alias")
    return sizes[id(node)]


def parse_yaml(text: str, where: str) -> Any:
    """Return the value of a YAML document."""
    loader, node = compose_yaml(text, where)
    try:
        return None if node is None else loader.construct_document(node)
    except Exception as e:  # PyYAML raises many kinds of errors for malformed numbers and dates
        raise DataError(f"is not YAML: {' '.join(str(e).split())[:160]}", where=where, hint=CORRECT) from None


# -- tables ----------------------------------------------------------------------------------------------------------


def csv_rows(
    path: Path, delimiter: str = ",", *, quotes: bool = True, most: int = MAX_COLUMNS
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) for each row of a CSV file, the header first. Empty lines are skipped.

    The header must name at most `most` columns, each once. Every row must have the same number of cells as the header.
    Without `quotes`, a quotation mark is an ordinary character.
    """
    line, names = 1, 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rules: dict[str, Any] = {} if quotes else {"quoting": csv.QUOTE_NONE}
            reader = csv.reader(file, delimiter=delimiter, strict=True, **rules)
            for row in reader:
                if row and not names:
                    names = len(row)
                    _check_header(row, f"{path}:{line}", most)
                elif row and len(row) != names:
                    what = f"has {len(row)} cells, expected {names} as in the header"
                    raise DataError(what, where=f"{path}:{line}", hint="put a cell that contains a separator in quotes")
                if row:
                    yield line, row
                line = reader.line_num + 1
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", where=f"{path}:{line} or below", hint="save the file as UTF-8") from None
    except csv.Error as e:
        hint = "if quotation marks are ordinary characters, pass `no_quotes=True` (or ?quotes=no)" if quotes else ""
        raise DataError(f"is not a table that can be read ({e})", where=f"{path}:{line}", hint=hint) from None
    except (OSError, ValueError) as e:
        raise unreadable(path, e) from None
    if not names:
        raise DataError("is empty", where=str(path), hint="the first line must name the columns")


def csv_table(path: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the column names of a CSV file, and an iterator of (line number, cells by column) over its rows."""
    rows = csv_rows(path)
    _, names = next(rows)
    return names, ((line, dict(zip(names, row, strict=True))) for line, row in rows)


def _check_header(names: list[str], where: str, most: int) -> None:
    check_columns(len(names), where, most)
    for name in _repeated(names):
        raise DataError(f"names the column {name[:60]!r} twice", where=where, hint="rename or remove one")


def check_columns(count: int, where: str, most: int = MAX_COLUMNS) -> None:
    """Raise a DataError if a table has more than `most` columns."""
    if count > most:
        what = f"has {count:,} columns, but at most {most:,} are read"
        raise DataError(what, where=where, hint="leave out columns that are not needed")


# -- archives --------------------------------------------------------------------------------------------------------


def check_members(count: int, where: str) -> None:
    """Raise a DataError if an archive contains more than `MAX_MEMBERS` files."""
    if count > MAX_MEMBERS:
        raise DataError(f"has more than {MAX_MEMBERS:,} files", where=where, hint="unpack it and name the folder")
