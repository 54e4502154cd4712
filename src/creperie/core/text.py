"""Numbers, names and tables formatted for people."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence

#: Characters per line of text in files and logs, independent of the terminal.
WIDE = 160


def percent(value: float | None, digits: int = 1, missing: str = "–") -> str:
    """Return a fraction as a percentage without the percent sign; `missing` if it is None or NaN.

    >>> percent(0.4567), percent(None), percent(float("nan"), missing=""), percent(1.0, 0)
    ('45.7', '–', '', '100')
    """
    return missing if value is None or math.isnan(value) else f"{100 * value:z.{digits}f}"


def with_interval(
    value: float | None,
    low: float | None,
    high: float | None,
    form: Callable[[float | None], str] = percent,
) -> str:
    """Return a fraction as a percentage, followed by its interval. The interval is left out if a bound is missing or
    NaN; without a value, the result is a dash. Values that are not fractions need another function as `form`.

    >>> with_interval(0.5, 0.4, 0.6), with_interval(0.5, float("nan"), 0.6), with_interval(None, 0.4, 0.6)
    ('50.0 [40.0, 60.0]', '50.0', '–')
    """
    shown, lower, upper = (form(x) for x in (value, low, high))
    return shown if "–" in (shown, lower, upper) else f"{shown} [{lower}, {upper}]"


def points(value: float, low: float, high: float, form: str = "{} [{}, {}]") -> str:
    """Return a difference of two fractions in percentage points, with its interval. The interval is left out if it is
    NaN. `form` formats the three numbers.

    >>> points(-0.0001, -0.05, 0.25), points(0.1, float("nan"), float("nan"))
    ('+0.0 [-5.0, +25.0]', '+10.0')
    """
    if math.isnan(value):
        return "–"
    shown = [f"{100 * x:+z.1f}" for x in (value, low, high)]
    return shown[0] if math.isnan(low) or math.isnan(high) else form.format(*shown)


def decimal(value: float | None, digits: int = 3) -> str:
    """Return a number with `digits` decimals; a dash if it is None or NaN.

    >>> decimal(0.12345), decimal(None), decimal(float("nan"), 1)
    ('0.123', '–', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{value:z.{digits}f}"


#: control characters except tab and line feed, and marks that change the direction of text
_UNPRINTABLE = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


def printable(text: str, *, escaped: bool = False) -> str:
    """Return the text without characters that move a terminal's cursor, change its colours or reverse the text
    direction. Each of them is replaced by U+FFFD or, if `escaped` is True, by a JSON escape.

    >>> printable("a\\x1b[31mred", escaped=True), len(printable("\\r\\x9b"))
    ('a\\\\u001b[31mred', 2)
    """
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}" if escaped else "\N{REPLACEMENT CHARACTER}", text)


def counted(n: int, noun: str) -> str:
    """Return a number and a noun, in the singular or the plural.

    >>> counted(1, "item"), counted(2000, "item"), counted(2, "study"), counted(2, "day")
    ('1 item', '2,000 items', '2 studies', '2 days')
    """
    return f"{n:,} {noun if n == 1 else re.sub('(?<![aeou])y$', 'ie', noun) + 's'}"


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters. If it had to be cut, it ends in an ellipsis.

    >>> cut("a dog", 5), cut("a dog runs", 5)
    ('a dog', 'a do…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def one_line(text: object, most: int = 200) -> str:
    """Return a text, such as an error message, as one line of at most `most` characters."""
    return cut(" ".join(str(text).split()), most)


def listing(names: Iterable[object], most: int = 3) -> str:
    """Return the first `most` names, separated by commas, followed by the number of further names.

    >>> listing(["a", "b"]), listing("abcdef")
    ('a, b', 'a, b, c and 3 more')
    """
    shown = [str(name) for name in names]
    more = len(shown) - most
    return ", ".join(shown) if more <= 0 else f"{', '.join(shown[:most])} and {more:,} more"


def called(place: str, name: str) -> str:
    """Return the name to show for a benchmark. This is its `place` (its folder, or the user's word for it). Unless the
    place ends with the benchmark's own `name`, the name follows in brackets. Absolute paths are cut down to their last
    part, because the rest differs between machines.

    >>> called("out/biased", "world-test"), called("/home/ana/mine", "mine"), called("", "mine")
    ('out/biased (world-test)', 'mine', 'mine')
    """
    path = place.rstrip("/")
    last = path.rpartition("/")[2]
    shown = last if re.match(r"(\w+:)?/", path) else path
    return f"{shown} ({name})" if shown and last != name else shown or name


_WORDS = re.compile(r"\w+(?:['’-]\w+)*|\s+|[^\w\s]")


def word_differences(text: str, other: str) -> list[tuple[str, bool]]:
    """Return `text` in pieces, as (piece, differs). `differs` is True for words that differ from those of `other`.

    >>> word_differences("a dog chases a cat", "a cat chases a dog")
    [('a ', False), ('dog', True), (' chases a ', False), ('cat', True)]
    """
    from difflib import SequenceMatcher

    mine, theirs = _WORDS.findall(text), _WORDS.findall(other)
    matcher = SequenceMatcher(None, [w.casefold() for w in mine], [w.casefold() for w in theirs], autojunk=False)
    pieces: list[tuple[str, bool]] = []
    for kind, start, end, *_ in matcher.get_opcodes():
        if start == end:
            continue
        piece, differs = "".join(mine[start:end]), kind != "equal"
        if len(pieces) > 1 and differs and pieces[-1][0].isspace():  # adjacent differing words become one piece
            piece = pieces.pop(-2)[0] + pieces.pop()[0] + piece
        if differs and pieces and piece[0].isspace():  # leading space belongs to the piece before
            blank = piece[: len(piece) - len(piece.lstrip())]
            pieces[-1], piece = (pieces[-1][0] + blank, pieces[-1][1]), piece.lstrip()
        pieces.append((piece, differs))
    return [piece for piece in pieces if piece[0]]


def split_names(values: str | Iterable[str]) -> list[str]:
    """Return the names in the values of an option. Each value may hold several names, separated by commas.

    >>> split_names(["length-words, surface", "learned"]), split_names("length-words")
    (['length-words', 'surface', 'learned'], ['length-words'])
    """
    options = [values] if isinstance(values, str) else values
    return [name.strip() for option in options for name in option.split(",") if name.strip()]


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a small HTML table to show in a notebook. Markup in cells is escaped.

    >>> html_table("2 < 3", ["n"], [[1]])
    '<p><b>2 &lt; 3</b></p><table><thead><tr><th>n</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>'
    """

    from html import escape

    def line(cells: Iterable[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    head = f"<thead>{line(columns, 'th')}</thead>"
    return f"<p><b>{escape(title)}</b></p><table>{head}<tbody>{body}</tbody></table>"


#: The beginning of a cell that a spreadsheet takes for a formula; signed numbers and intervals are excluded.
_FORMULA = re.compile(r"(?![+-][\d., \[\]+-]*\Z)[=+\-@\t\r\n'|%]")


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV. Lists and objects become JSON, and line breaks become spaces. A cell that a spreadsheet would
    run as a formula gets an apostrophe in front.

    >>> csv_text("abc", [["=1+1", "+1.5 [0.2]", "x\\r=2+2"]])
    "a,b,c\\n'=1+1,+1.5 [0.2],x =2+2\\n"
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_csv_cell, row) for row in (columns, *rows))
    return out.getvalue()


def _csv_cell(value: object) -> object:
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return value
    # A carriage return ends a row for some readers, whatever the quotes say.
    return " ".join((f"'{value}" if _FORMULA.match(value) else value).splitlines())
