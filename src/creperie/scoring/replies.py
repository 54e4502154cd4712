"""Import results from elsewhere as runs: samples of lm-eval and lmms-eval, tables of scores, published answers.

A run's scores are the mean over the orders in which an image was asked about, as in `creperie score`. Rows that name no
item (`doc_id` only) refer to the items, or to the questions of an exported task, by position.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench import Benchmark, Item, ProvenanceStep, choice, from_items
from creperie.core import DataError, csv_table, parse_json, read_json, read_lines
from creperie.metrics import MetricSettings
from creperie.models import CHOSE_OPTION, CUT, Fingerprint, Parsed, parse_choice, shares_of
from creperie.scoring.answer_log import CUT_OFF, UNREAD
from creperie.scoring.bridges import questions_of
from creperie.scoring.findings import LISTED
from creperie.scoring.header import nothing_computed, run_header
from creperie.scoring.plan import layout_of_bench
from creperie.scoring.run import Run, score_table

Row = Mapping[str, Any]


@dataclass(frozen=True)
class HarnessReply:
    """Scores for cells of an item, by default for all of its cells."""

    subset: str
    item: str
    values: np.ndarray
    cells: Sequence[int] = ()
    unread: str = ""
    cut: bool = False


def import_replies(path: str | Path, bench: Benchmark, *, model: str = "") -> Run:
    """Return a run from another tool's results on this benchmark: samples of lm-eval or lmms-eval, or a table."""
    file = Path(path)
    rows = list(_rows(file))
    samples = any("filtered_resps" in row for row in rows)
    stem = re.sub(r"_\d{4}-?\d{2}.*$", "", file.stem)
    source = "samples" if samples else "table"
    replies = (_sample if samples else _row)(rows, bench, str(file))
    return replied_run(bench, replies, (model or stem, source, str(file)))


def _answer(about: Row, answer: str) -> HarnessReply:
    """Return the reply that a free-text answer to a question of an exported task gives."""
    order, count = about["order"], len(about["options"])
    parsed = parse_choice(answer, about["options"], asks=about["asks"])
    shares = shares_of(parsed, count) * (1 if about["asks"] == "match" else -1)
    shares = shares if parsed.kind == CUT else np.nan_to_num(shares)  # what was cut off is no answer, and no miss
    cells = [int(about["row"]) * len(order) + k for k in order]
    why = f"{parsed.why}: {answer[:120]!r}" if parsed.why else ""
    return HarnessReply(
        str(about.get("subset")), str(about.get("item")), shares, cells, unread=why, cut=parsed.kind == CUT
    )


def _rows(file: Path) -> Iterator[Row]:
    rows: list[Any]
    if file.suffix == ".csv":
        rows = [row for _, row in csv_table(file)[1]]
    else:
        rows = [parse_json(text, f"{file}:{number}") for number, text in read_lines(file) if text.strip()]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError("has no rows", where=file, hint="give one JSON object per line, or a CSV file with a header")
    yield from rows


def _sample(rows: Sequence[Row], bench: Benchmark, where: str) -> Iterator[HarnessReply]:
    """Yield the replies in samples of lm-eval and lmms-eval: likelihoods per option, or a free-text answer."""
    asked = list(questions_of(bench))
    for row in rows:
        number, reply = int(row["doc_id"]), row["filtered_resps"]
        likelihoods = _likelihoods(reply)
        if likelihoods is not None and number < len(bench):
            item = bench[number]
            yield HarnessReply(item.subset, item.id, likelihoods)
        elif likelihoods is None and number < len(asked):
            while isinstance(reply, list):
                reply = reply[0] if reply else ""
            yield _answer(asked[number].about, str(reply))
        else:
            raise DataError(
                f"has doc_id {number}, but {bench.name} has {len(bench)} items and {len(asked)} questions",
                where=where,
                hint="give the benchmark that the task was exported from",
            )


def _likelihoods(pairs: Any) -> np.ndarray | None:
    """Return the numbers of [[log-likelihood, is greedy], …], also if given as text; None for a free-text answer."""
    try:
        return np.array([float(pair[0]) for pair in pairs if len(pair) == 2] or [float("x")], np.float32)
    except (TypeError, ValueError, KeyError):
        return None


def _row(rows: Sequence[Row], bench: Benchmark, where: str) -> Iterator[HarnessReply]:
    """Yield the replies in a table.

    Its columns are id, subset (if ids repeat), and `scores` (a list), `score_0 …`, or `choice` (a number).
    """
    subsets = {item.id: item.subset for item in bench}
    widths = {(item.subset, item.id): len(item.captions) for item in bench}
    for number, row in enumerate(rows):
        key = str(row.get("id", bench[number].id if number < len(bench) else ""))
        subset = str(row.get("subset") or subsets.get(key, ""))
        named = sorted((n for n in row if re.fullmatch(r"score_\d+", n)), key=lambda n: int(n[6:]))
        try:
            scores = row.get("scores") or [row[name] for name in named if row[name] not in ("", None)]
            scores = parse_json(scores, where) if isinstance(scores, str) else scores
            if not scores:
                scores = [k == int(row["choice"]) for k in range(widths[subset, key])]
                scores.index(True)  # raises an error unless the choice is one of the captions
            values = np.array(scores, np.float32).ravel()
        except (KeyError, ValueError, TypeError, IndexError) as e:
            raise DataError(
                f"row {number + 1} has no scores ({type(e).__name__}: {e})",
                where=where,
                hint="give id, and scores, score_0 … score_n or choice (the number of the chosen caption, from 0)",
            ) from None
        yield HarnessReply(subset, key, values)


def replied_run(bench: Benchmark, replies: Iterable[HarnessReply], source: tuple[str, str, str]) -> Run:
    """Return a run with the mean reply per cell. `source` is the model, the harness, and the file."""
    layout = layout_of_bench(bench)
    rows = {key: number for number, key in enumerate(bench.item_keys)}
    widths, starts = layout.widths("image_text"), layout.starts("image_text")
    total, asked = (np.zeros(int(widths.sum())) for _ in range(2))
    findings = []
    for reply in replies:
        number = rows.get((reply.subset, reply.item))
        if number is None:
            raise DataError(
                f"has an answer to item {reply.subset}/{reply.item}, which {bench.name} does not have", where=source[2]
            )
        width = int(widths[number])
        cells = np.array(reply.cells or range(width))
        if len(cells) != len(reply.values) or cells.max(initial=0) >= width:
            raise DataError(
                f"has {len(reply.values)} scores for item {reply.subset}/{reply.item}, which has {width} pairs",
                where=source[2],
            )
        total[int(starts[number]) + cells] += reply.values
        asked[int(starts[number]) + cells] += 1
        if reply.unread:
            code = CUT_OFF if reply.cut else UNREAD
            findings.append({"code": code, "subset": reply.subset, "item": reply.item, "message": reply.unread})
    scores = np.divide(total, asked, out=np.full(len(total), np.nan), where=asked > 0).astype(np.float32)
    return answered_run(bench, scores, f"{source[1]}:{source[0]}", findings=findings)


def answered_run(
    bench: Benchmark, scores: np.ndarray, uri: str, *, findings: Sequence[Row] = (), notes: Sequence[str] = ()
) -> Run:
    """Return a run from image-text scores that were not computed here."""
    digest = hashlib.sha256(scores.tobytes()).hexdigest()
    mark = Fingerprint(uri, f"{uri.partition(':')[0]} answers", digest, dtype="answers")
    table = score_table(bench, layout_of_bench(bench), {"image_text": scores})
    name = re.sub(r"[^\w.=-]+", "-", f"{bench.name}.{uri}").strip("-")
    document = {
        **run_header(f"{name}.{digest[:8]}", bench, mark, MetricSettings()),
        **nothing_computed(),
        "tasks": ["itt"],
        "coverage": {"items": len(bench), "image_text": len(bench) - table.column("image_text").null_count},
        "findings": list(findings[:LISTED]),
        "finding_counts": dict(Counter(f["code"] for f in findings)),
        "notes": list(notes),
    }
    document["results"] = [r.as_dict() for r in Run(document, table).evaluate()]
    return Run(document, table)


FIELDS = {"caption": str, "negative_caption": str, "filename": str, "answer": dict}


def import_answers(path: str | Path, *, model: str = "", order: str = "") -> Run:
    """Return a run from a file of answers to SugarCrepe's two-option questions (`gpt4v-swap_obj.json`).

    The published choice counts. If it is empty, the free answer is parsed; an unparsable answer is a miss and a
    finding. `order` says which caption was offered first; by default it is read from the path of the file.
    """
    file = Path(path)
    records = _records(file)
    order = order or _order_of(file)
    name, subset = _names(file)
    items, scores, findings = [], [], []
    disagree = 0
    for key, record in records.items():
        _check(record, f"{file}: record {key!r}")
        captions = (record["caption"], record["negative_caption"])
        items.append(Item(key, subset, (record["filename"],), captions, choice(1, 1), {}))
        read = _chosen(record["answer"], captions, order)
        void = np.nan if read.kind == CUT else 0
        scores += [float(read.option == 0) + void, float(read.option == 1) + void]
        if read.option is None:
            reply = str(record["answer"].get("free_form_answer", ""))[:120]
            message = f"{read.why or read.kind}: {reply!r}"
            code = CUT_OFF if read.kind == CUT else UNREAD
            findings.append({"code": code, "subset": subset, "item": key, "message": message})
        disagree += "correct" in record and bool(record["correct"]) != (read.option == 0)
    bench = from_items("sugarcrepe", items, provenance=(ProvenanceStep("import answers", {"file": file.name}),))
    notes = [f"{disagree} answers are judged differently from the file's field 'correct'"] if disagree else []
    uri = f"answers:{model or name}?order={order}"
    return answered_run(bench, np.array(scores, np.float32), uri, findings=findings, notes=notes)


def _records(file: Path) -> dict[str, dict[str, Any]]:
    """Return the records of the file; keys with other values (a stray number) are ignored."""
    document = read_json(file)
    if not isinstance(document, dict):
        raise DataError("is not a JSON object of records", where=file)
    records = {key: value for key, value in document.items() if isinstance(value, dict)}
    if not records:
        raise DataError("holds no records", where=file)
    return records


def _check(record: Mapping[str, Any], where: str) -> None:
    for name, kind in FIELDS.items():
        if not isinstance(record.get(name), kind):
            raise DataError(f"{name!r} is missing, or not {'text' if kind is str else 'an object'}", where=where)


def _chosen(answer: Mapping[str, Any], captions: tuple[str, str], order: str) -> Parsed:
    """Return the chosen caption: 0 for the true one, 1 for the false one."""
    picked = answer.get("multiple_choice_answer")
    if picked in captions and captions[0] != captions[1]:
        return Parsed(CHOSE_OPTION, captions.index(picked))
    turned = order == "negative-first"
    offered = captions[::-1] if turned else captions
    read = parse_choice(str(answer.get("free_form_answer") or ""), offered)
    return Parsed(CHOSE_OPTION, 1 - read.option) if turned and read.option is not None else read


def _order_of(file: Path) -> str:
    for name in ("positive-first", "negative-first"):
        if name in file.resolve().parts or name in file.stem:
            return name
    raise DataError(
        "does not say which caption was offered first",
        where=file,
        hint="pass `order=` positive-first or negative-first",
    )


def _names(file: Path) -> tuple[str, str]:
    """Return the model and the subset from a file name such as `gpt4v-swap_obj.json`."""
    parts = re.fullmatch(r"(.+?)-(\w+)", file.stem)
    return (parts[1], parts[2]) if parts else ("answers", file.stem)
