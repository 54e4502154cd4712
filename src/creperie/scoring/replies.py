"""Import the results of other tools as runs: logs of evaluation harnesses, tables of scores, published answers.

Scores are averaged over the orders in which the captions of an image were offered, as in `creperie score`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench import Benchmark, Item, ProvenanceStep, choice, from_items
from creperie.core import DataError, listing, parse_json, read_json, sha256_of_text
from creperie.metrics import MetricSettings
from creperie.models import CHOSE_OPTION, CUT, Fingerprint, Parsed, parse_choice
from creperie.scoring.answer_log import CUT_OFF, UNREAD
from creperie.scoring.findings import LISTED
from creperie.scoring.header import nothing_computed, run_header, uncovered_note
from creperie.scoring.logs import UnmatchedRow, check_matched, log_rows, read_log, stem_of
from creperie.scoring.matching import HarnessReply, Row, matched
from creperie.scoring.plan import layout_of_bench
from creperie.scoring.run import Run, score_table

#: From this share of ties on, a run says why.
MANY_TIES = 0.1


def import_replies(path: str | Path, bench: Benchmark, *, model: str = "", partial: bool = False) -> Run:
    """Return a run from another tool's results on this benchmark: the log of an evaluation harness, or a table of
    scores.

    Rows that match no item are listed in the run's `unmatched`. If they are more than a tenth of all rows, an
    `UnmatchedError` is raised, unless `partial` is set.
    """
    file = Path(path)
    if file.suffix in (".csv", ".jsonl"):
        rows = list(log_rows(file))
        if rows and not any(name in rows[0] for name in ("filtered_resps", "prediction", "hit")):
            source = (model or stem_of(file), "table", str(file))
            return replied_run(bench, _row(rows, bench, str(file)), source, len(rows), partial=partial)
    log = read_log(file)
    source = (model or _without_dataset(log.model, bench.name), "samples", str(file))
    run = replied_run(bench, matched(log.answers, bench), source, len(log.answers), partial=partial)
    if log.failed:
        run.document["notes"].append(f"{log.failed:,} samples ended with an error and have no answer")
    return run


def _without_dataset(model: str, bench: str) -> str:
    """Return the model's name without the name of the benchmark that VLMEvalKit appends to it.

    >>> _without_dataset("llava_v1.5_SugarCrepe50", "sugarcrepe"), _without_dataset("my_model", "sugarcrepe")
    ('llava_v1.5', 'my_model')
    """
    found = re.search(rf"(?i)(?<=.)_{re.escape(bench)}[^_/]*$", model)
    return model[: found.start()] if found else model


def _row(rows: Sequence[Row], bench: Benchmark, where: str) -> Iterator[HarnessReply | UnmatchedRow]:
    """Yield, for each row of a table of answers, the scores that it gives to an item, or the reason why it matches no
    item. `where` names the file in errors.

    The columns are `id`, `subset` and those with the answer. Without `id`, rows are in the order of the items. `subset`
    is needed only if ids repeat. The answer is either `scores` (a list), `choice` (the number of a caption), or
    `score_0`, `score_1` and so on.
    """
    subsets: dict[str, list[str]] = {}
    for item in bench:
        subsets.setdefault(item.id, []).append(item.subset)
    widths = {(item.subset, item.id): len(item.captions) for item in bench}
    first: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        placed = bench[number] if "id" not in row and number < len(bench) else None
        key = placed.id if placed else str(row.get("id", ""))
        own = [placed.subset] if placed else subsets.get(key, [""])
        if len(own) > 1 and not row.get("subset"):
            yield UnmatchedRow(f"row {number + 1}", f"{len(own)} items have the id {key!r}: add a column `subset`")
            continue
        subset = str(row.get("subset") or own[0])
        if (subset, key) not in widths:
            yield UnmatchedRow(f"row {number + 1}", f"no item is called {subset}/{key}")
            continue
        if (before := first.setdefault((subset, key), number)) != number:
            what = f"row {number + 1} answers the item {subset}/{key} again, after row {before + 1}"
            raise DataError(
                what, where=where, hint="give one row per item; if it has several answers, give their mean as `scores`"
            )
        named = sorted((n for n in row if re.fullmatch(r"score_\d+", n)), key=lambda n: int(n[6:]))
        try:
            scores = row.get("scores") or [row[name] for name in named if row[name] not in ("", None)]
            scores = parse_json(scores, where) if isinstance(scores, str) else scores
            if not scores:
                scores = [k == int(row["choice"]) for k in range(widths[subset, key])]
                if not any(scores):
                    raise ValueError(f"choice is {row['choice']}, but there are {widths[subset, key]} captions")
            values = np.array(scores, np.float32).ravel()
        except (KeyError, ValueError, TypeError, IndexError) as e:
            raise DataError(
                f"row {number + 1} has no scores ({type(e).__name__}: {e})",
                where=where,
                hint="each row needs `id` and one of these: `scores` (a list), the columns score_0 to score_n, or "
                "`choice` (the number of the chosen caption, from 0)",
            ) from None
        yield HarnessReply(subset, key, values)


def replied_run(
    bench: Benchmark,
    replies: Iterable[HarnessReply | UnmatchedRow],
    source: tuple[str, str, str],
    total: int,
    *,
    partial: bool = False,
) -> Run:
    """Return a run in which each score is the mean over the replies that give it. `source` names the model, the
    harness and the file, and `total` is the number of rows in the file.
    """
    layout = layout_of_bench(bench)
    rows = {key: number for number, key in enumerate(bench.item_keys)}
    widths, starts = layout.widths("image_text"), layout.starts("image_text")
    sums, asked = (np.zeros(int(widths.sum())) for _ in range(2))
    given: list[tuple[int, HarnessReply]] = []
    unmatched: list[UnmatchedRow] = []
    for reply in replies:
        if isinstance(reply, UnmatchedRow):
            unmatched.append(reply)
            continue
        number = rows[reply.subset, reply.item]
        width = int(widths[number])
        cells = np.array(reply.cells or range(width))
        if len(cells) != len(reply.values) or cells.max(initial=0) >= width:
            raise DataError(
                f"has {len(reply.values)} scores for item {reply.subset}/{reply.item}, which has {width} pairs",
                where=source[2],
                hint="give one score per pair of an image and a caption",
            )
        sums[int(starts[number]) + cells] += reply.values
        asked[int(starts[number]) + cells] += 1
        given.append((number, reply))
    scores = np.divide(sums, asked, out=np.full(len(sums), np.nan), where=asked > 0).astype(np.float32)
    notes = check_matched(unmatched, total, source[2], partial=partial)
    for number in _in_fewer_orders(given, notes):
        scores[starts[number] : starts[number] + widths[number]] = np.nan
    notes += _unlike_the_log(given)
    findings = [
        {"code": CUT_OFF if r.cut else UNREAD, "subset": r.subset, "item": r.item, "message": r.unread}
        for _, r in given
        if r.unread
    ]
    run = answered_run(bench, scores, f"{source[1]}:{source[0]}", findings=findings, notes=notes)
    run.document["unmatched"] = [asdict(row) for row in unmatched[:LISTED]]
    return run


def _in_fewer_orders(given: Iterable[tuple[int, HarnessReply]], notes: list[str]) -> set[int]:
    """Return the items that were asked with fewer orders of their captions than other items with equally many captions.
    Append a note on these items to `notes`.
    """
    # With a single order, a model that always picks the same position can score well.
    orders: dict[tuple[int, frozenset[int]], set[tuple[int, ...]]] = {}
    for number, reply in given:
        if reply.chosen and len(reply.cells) > 1:
            orders.setdefault((number, frozenset(reply.cells)), set()).add(tuple(reply.cells))
    most: Counter[int] = Counter()  # by the number of options
    for (_, cells), asked in orders.items():
        most[len(cells)] = max(most[len(cells)], len(asked))
    if most and max(most.values()) == 1:
        notes.append(
            "every question was asked in only one order of its captions, so answers that follow the order go unnoticed"
        )
    short = {number for (number, cells), asked in orders.items() if len(asked) < most[len(cells)]}
    if short:
        others = listing(sorted({most[len(cells)] for number, cells in orders if number in short}))
        notes.append(
            f"{len(short):,} items were asked in fewer orders of their captions than the others ({others}): no score"
        )
    return short


def _unlike_the_log(given: Sequence[tuple[int, HarnessReply]]) -> Iterator[str]:
    """Yield up to two notes: one if some questions were answered several times, and one if the log and this run
    disagree about which answers are right.
    """
    times = Counter((number, tuple(reply.cells)) for number, reply in given)
    if again := sum(n > 1 for n in times.values()):
        yield f"{again:,} of {len(times):,} questions were answered more than once: the mean of their answers counts"
    if other := sum(reply.regraded for _, reply in given):
        yield f"{other:,} of {len(given):,} answers are judged differently by the log"


def answered_run(
    bench: Benchmark, scores: np.ndarray, uri: str, *, findings: Sequence[Row] = (), notes: Sequence[str] = ()
) -> Run:
    """Return a run from image-text scores that were computed elsewhere."""
    digest = sha256_of_text(f"{bench.hash} {uri}".encode() + scores.tobytes())
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
        "unreadable": dict(Counter(f["subset"] for f in findings if f["code"] == UNREAD)),
        "notes": list(notes),
    }
    run = Run(document, table)
    document["results"] = [r.as_dict() for r in run.evaluate()]
    document["notes"] += uncovered_note(run)
    n, ties = next((r["n"], r["ties"]) for r in document["results"] if r["subset"] == "all")
    if ties > MANY_TIES * n:
        why = "an answer that follows the order of the options, or none at all, makes every caption equal"
        document["notes"].append(f"{ties:,} of {n:,} items are ties and count as wrong: {why}")
    return run


RECORDS = "give the file of answers that SugarCrepe released, or one of its form"
FIELDS = {"caption": str, "negative_caption": str, "filename": str, "answer": dict}


def import_answers(path: str | Path, *, model: str = "", order: str = "") -> Run:
    """Return a run from a file of answers to SugarCrepe's two-option questions (`gpt4v-swap_obj.json`).

    The published choice is used or, if it is empty, the free-text answer is parsed. An answer that cannot be parsed is
    a miss, and reported as a finding. `order` says which caption was offered first; by default, it is read from the
    file's path.
    """
    file = Path(path)
    records = _records(file)
    order = order or _order_of(file)
    parts = re.fullmatch(r"(.+)-(\w+)", file.stem)  # as in gpt4v-swap_obj
    name, subset = parts.groups() if parts else ("answers", file.stem)
    items, scores, findings = [], [], []
    disagree = 0
    for key, record in records.items():
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
    """Return the objects in a JSON file by key; values of other types, such as a stray number, are ignored."""
    document = read_json(file)
    if not isinstance(document, dict):
        raise DataError("is not a JSON object", where=file, hint=RECORDS)
    records = {key: value for key, value in document.items() if isinstance(value, dict)}
    if not records:
        raise DataError("contains no records", where=file, hint=RECORDS)
    for key, record in records.items():
        for name, kind in FIELDS.items():
            if not isinstance(record.get(name), kind):
                what = f"{name!r} is missing, or not {'text' if kind is str else 'an object'}"
                raise DataError(what, where=f"{file}: record {key!r}", hint=RECORDS)
    return records


def _chosen(answer: Mapping[str, Any], captions: tuple[str, str], order: str) -> Parsed:
    """Return which caption an answer chooses: option 0 is the true caption, option 1 the false one."""
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
        hint="pass `order='positive-first'` or `order='negative-first'`",
    )
