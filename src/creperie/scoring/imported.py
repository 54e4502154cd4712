"""Published answers as runs: what a model chose, item by item, recounted from its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench import Item, ProvenanceStep, choice, from_items
from creperie.core import DataError
from creperie.metrics import MetricSettings
from creperie.models import CHOSE_OPTION, Parsed, parse_choice
from creperie.scoring.replies import UNREAD, answered_run
from creperie.scoring.run import Run

FIELDS = ("caption", "negative_caption", "filename", "answer")


def import_answers(
    path: str | Path, *, model: str = "", order: str = "", settings: MetricSettings | None = None
) -> Run:
    """A run from a file of answers to SugarCrepe's two-option questions (`gpt4v-swap_obj.json`).

    The published choice counts; where it is empty, the free answer is read by the answer parser, and what that cannot
    read is a miss and a finding. `order` is which caption was offered first; by default the folder's name says it.
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
        scores += [float(read.option == 0), float(read.option == 1)]
        if read.option is None:
            said = str(record["answer"].get("free_form_answer", ""))[:120]
            message = f"{read.why or read.kind}: {said!r}"
            findings.append({"code": UNREAD, "subset": subset, "item": key, "message": message})
        disagree += "correct" in record and bool(record["correct"]) != (read.option == 0)
    bench = from_items("sugarcrepe", items, provenance=(ProvenanceStep("import answers", {"file": file.name}),))
    notes = [f"{disagree} answers are recounted otherwise than the file states"] if disagree else []
    uri = f"answers:{model or name}?order={order}"
    made = {"image_text": np.array(scores, np.float32)}
    return answered_run(bench, made, uri, ["itt"], findings=findings, notes=notes, settings=settings)


def _records(file: Path) -> dict[str, dict[str, Any]]:
    """The records of the file; keys that hold something else (a stray number) are no records."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as e:
        raise DataError(f"cannot be read ({e})", where=str(file), hint="give a JSON file of answers") from None
    if not isinstance(document, dict):
        raise DataError("is not a JSON object of records", where=str(file))
    records = {key: value for key, value in document.items() if isinstance(value, dict)}
    if not records:
        raise DataError("holds no records", where=str(file))
    return records


def _check(record: Mapping[str, Any], where: str) -> None:
    for name in FIELDS:
        if name not in record:
            raise DataError(f"has no {name!r}", where=where)
    for name in FIELDS[:3]:
        if not isinstance(record[name], str):
            raise DataError(f"{name!r} is not text", where=where)
    if not isinstance(record["answer"], dict):
        raise DataError("'answer' is not an object with free_form_answer and multiple_choice_answer", where=where)


def _chosen(answer: Mapping[str, Any], captions: tuple[str, str], order: str) -> Parsed:
    """Which caption was chosen: 0 the true one, 1 the false one."""
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
        where=str(file),
        hint="pass `order=` positive-first or negative-first",
    )


def _names(file: Path) -> tuple[str, str]:
    """The model and the subset that a file's name says: `gpt4v-swap_obj.json`."""
    found = re.fullmatch(r"(.+?)-(\w+)", file.stem)
    return (found[1], found[2]) if found else ("answers", file.stem)
