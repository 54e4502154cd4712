"""Read the logs of other evaluation harnesses, row by row: Inspect, lm-eval, lmms-eval, VLMEvalKit, and plain tables.

The formats read are those of inspect_ai 0.3.285, lm-eval 0.4, lmms-eval 0.5 and VLMEvalKit of August 2026.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import DataError, csv_rows, parse_json, read_json, read_lines

#: Largest share of rows that may match no item.
MOST_UNMATCHED = 0.1
ZSTD = 93  #: the number of Zstandard among the compression methods of zip files
LETTERS = "ABCDEFGH"
_LABEL = re.compile(r"^\s*[(\[]?[A-Ha-h1-9][).\]:]\s+")
Record = Mapping[str, Any]


@dataclass(frozen=True)
class UnmatchedRow:
    """A row of a log that matches no item of the benchmark, and the reason."""

    row: str
    why: str


class UnmatchedError(DataError):
    """Raised if too many rows of a log match no item of the benchmark."""

    def __init__(self, rows: Sequence[UnmatchedRow], total: int, where: str) -> None:
        self.rows, self.total = tuple(rows), total
        what = f"{len(rows):,} of {total:,} rows match no item ({rows[0].row}: {rows[0].why})"
        others = ", or pass `partial=True` to import the others" if len(rows) < total else ""
        super().__init__(what, where=where, hint=f"check the benchmark{others}")


def check_matched(rows: Sequence[UnmatchedRow], total: int, where: str, *, partial: bool) -> list[str]:
    """Return a list with a note on the unmatched rows. The list is empty if every row matches an item. `where` names
    the log in errors.

    Raise an UnmatchedError if no row matches an item or, without `partial`, if more than 10 % of the rows match none.
    """
    if len(rows) > MOST_UNMATCHED * total and (not partial or len(rows) == total):
        raise UnmatchedError(rows, total, where)
    return [f"{len(rows):,} of {total:,} rows match no item and were left out"] if rows else []


@dataclass(frozen=True)
class LoggedAnswer:
    """One row of a log: the ids that may name its item, the options in the order offered, and the answer."""

    row: str
    keys: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    answer: str | None = None
    scores: tuple[float, ...] = ()  #: one per option
    right: bool | None = None  #: whether the harness counted the answer as right
    key: str = ""  #: the right answer by the log itself: an option, its letter or, beside scores, its number from 0
    about: str = ""  #: the other text of the row: prompt, name of the image
    prompt: str = ""  #: empty if the log leaves it out
    position: int | None = None  #: the number of the document in the task


@dataclass(frozen=True)
class HarnessLog:
    """The answers in a log, the model that gave them, and how many samples ended with an error."""

    model: str
    answers: tuple[LoggedAnswer, ...]
    failed: int = 0


def read_log(path: str | Path) -> HarnessLog:
    """Return the answers in a log: an Inspect log, samples of lm-eval or lmms-eval, or a table of VLMEvalKit."""
    file = Path(path)
    if file.suffix == ".eval":
        return _inspect(_members(file), file)
    if file.suffix == ".json":
        document = read_json(file)
        if isinstance(document, dict) and isinstance(document.get("samples"), list):
            return _inspect(document, file)
        rows = document
    else:
        rows = list(log_rows(file))
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError("has no rows", where=file, hint="give one JSON object per line, or a table with a header")
    known = _sample if "filtered_resps" in rows[0] else _vlmeval
    return HarnessLog(stem_of(file), tuple(known(row, number) for number, row in enumerate(rows)))


def stem_of(file: Path) -> str:
    """Return the file name of a log without its suffix and its date."""
    return re.sub(r"_\d{4}-?\d{2}.*$", "", file.stem)


def table_separator(file: Path) -> str:
    """Return the character that separates the cells of a text table; empty if the file is not a text table."""
    return {".csv": ",", ".tsv": "\t"}.get(file.suffix, "")


def log_rows(file: Path) -> Iterator[Record]:
    """Yield the rows of a table (CSV, TSV, XLSX) or the objects of JSON lines."""
    if separator := table_separator(file):
        rows = (row for _, row in csv_rows(file, separator))
    elif file.suffix == ".xlsx":
        import openpyxl

        rows = (list(r) for r in openpyxl.load_workbook(file, read_only=True).active.iter_rows(values_only=True))
    else:
        yield from (parse_json(text, f"{file}:{number}") for number, text in read_lines(file) if text.strip())
        return
    names = [str(name) for name in next(rows)]
    yield from (dict(zip(names, row, strict=True)) for row in rows)


# -- Inspect ---------------------------------------------------------------------------------------------------------


def _members(file: Path) -> dict[str, Any]:
    """Return the header and the samples of an .eval file: a zip of JSON documents, some compressed with Zstandard."""
    try:
        with zipfile.ZipFile(file) as archive, file.open("rb") as raw:
            names = archive.namelist()
            header = next((n for n in ("header.json", "_journal/start.json") if n in names), "")
            own = [n for n in names if re.search(r"^samples/.*_epoch_\d+(/sample)?\.json$", n)]
            read = {n: parse_json(_unpacked(archive, raw, n), f"{file}:{n}") for n in (header, *own) if n}
    except (zipfile.BadZipFile, OSError) as e:
        raise DataError(f"is not a complete Inspect log ({e})", where=file, hint="copy the file again") from None
    return {**read.pop(header, {}), "samples": list(read.values())}


def _unpacked(archive: zipfile.ZipFile, raw: Any, name: str) -> str:
    info = archive.getinfo(name)
    if info.compress_type != ZSTD:
        return archive.read(info).decode("utf-8")
    import pyarrow as pa  # Python's zipfile reads Zstandard from 3.14 on

    raw.seek(info.header_offset + 26)
    lengths = int.from_bytes(raw.read(2), "little") + int.from_bytes(raw.read(2), "little")
    raw.seek(lengths, 1)
    packed = raw.read(info.compress_size)
    return bytes(pa.Codec("zstd").decompress(packed, decompressed_size=info.file_size)).decode("utf-8")


def _inspect(document: Record, file: Path) -> HarnessLog:
    samples = document["samples"]
    done = [s for s in samples if not s.get("error")]
    if not done:
        what = f"has no answers: all {len(samples)} samples ended with an error"
        raise DataError(what, where=file, hint="look at the errors in the log, and run the evaluation again")
    model = str(document.get("eval", {}).get("model", file.stem))
    return HarnessLog(model, tuple(map(_inspect_row, done)), len(samples) - len(done))


def _inspect_row(sample: Record) -> LoggedAnswer:
    given: Record = next(iter((sample.get("scores") or {}).values()), {})
    value = given.get("value")
    right = {"C": True, "I": False, 1: True, 0: False}.get(value) if isinstance(value, (str, int, float)) else None
    name, metadata, attached = str(sample.get("id")), sample.get("metadata") or {}, sample.get("attachments") or {}
    prompt = "\n".join(attached.get(t.removeprefix("attachment://"), t) for t in _texts(sample.get("input")))
    return LoggedAnswer(
        f"sample {name}",
        (name, *_keys(metadata)),
        tuple(sample.get("choices") or metadata.get("options") or ()),
        str(given.get("answer") or (sample.get("output") or {}).get("completion") or ""),
        right=right,
        key=_key(sample.get("target")),
        about="\n".join([prompt, *_texts(metadata)]),
        prompt=prompt,
    )


# -- lm-eval, lmms-eval, VLMEvalKit ----------------------------------------------------------------------------------


def _sample(row: Record, number: int) -> LoggedAnswer:
    """Return the answer in a sample of lm-eval or lmms-eval: one likelihood per option, or free text."""
    doc, reply = row.get("doc") or {}, row["filtered_resps"]
    scores = likelihoods(reply)
    while isinstance(reply, list):
        reply = reply[0] if reply else ""
    asked = row.get("arguments") or row.get("input")
    parts = asked.values() if isinstance(asked, dict) else asked if isinstance(asked, list) else ()
    continued = tuple(str(p["arg_1"]).strip() for p in parts if isinstance(p, dict) and "arg_1" in p)
    options = continued if scores else tuple(doc.get("choices") or doc.get("options") or ())
    about = "\n".join(_texts([doc, asked]))
    return LoggedAnswer(
        f"doc_id {row.get('doc_id', number)}",
        _keys(doc),
        tuple(map(str, options)),
        None if scores else str(reply),
        scores,
        key=_key(row.get("target")),
        about=about,
        prompt="\n".join(_texts(asked)),
        position=int(row.get("doc_id", number)),
    )


def _vlmeval(row: Record, number: int) -> LoggedAnswer:
    options = tuple(str(row[letter]) for letter in LETTERS if row.get(letter) not in (None, ""))
    hit = row.get("hit")
    return LoggedAnswer(
        f"row {number + 1}",
        _keys(row),
        options,
        None if row.get("prediction") is None else str(row["prediction"]),
        right=None if hit in (None, "") else float(hit) > 0.5,
        key=_key(row.get("answer")),
        about="\n".join(_texts(row)),
    )


def _key(target: Any) -> str:
    """Return the right answer according to a log (its `target`). The text is empty if the target names no answer or
    several.
    """
    (one,) = target if isinstance(target, list) and len(target) == 1 else (target,)
    return "" if one is None or isinstance(one, (list, dict)) else str(one).strip()


def likelihoods(pairs: Any) -> tuple[float, ...]:
    """Return the log-likelihoods from a list of pairs [log-likelihood, is greedy]. Numbers may also be given as text.
    Return an empty tuple if `pairs` is something else, such as a free-text answer.
    """
    try:
        return tuple(float(pair[0]) for pair in pairs if len(pair) == 2)
    except (TypeError, ValueError, KeyError):
        return ()


def _keys(record: Record) -> tuple[str, ...]:
    """Return all ids in a record by which its item may be found."""
    names = [str(record[k]) for k in ("id", "item", "question_id", "index") if record.get(k) is not None]
    subset = record.get("subset") or record.get("category")
    return (*(f"{subset}/{name}" for name in names if subset), *names)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list)):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)


def offered_in(prompt: str) -> list[str]:
    """Return the lines of a prompt without the labels of its options.

    >>> offered_in("Which fits?\\n(A) a cat\\nB. a dog")
    ['Which fits?', 'a cat', 'a dog']
    """
    return [_LABEL.sub("", line).strip() for line in prompt.splitlines() if line.strip()]
