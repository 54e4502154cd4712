"""A benchmark as a task of Inspect (`inspect_ai`), and its logs as runs.

The exported folder holds `task.py`, `samples.jsonl` and the images. Every image of every item is asked about in all
orders of its captions, in the words of creperie's own multiple choice. A log read back becomes a run whose scores are
the mean over the orders, as `creperie score` computes them.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from creperie.bench import Benchmark, Item, new_folder, open_image
from creperie.core import DataError, UsageError, missing_module
from creperie.metrics import MetricSettings
from creperie.models import ChoiceQuestion, Fingerprint, orders_of, parse_choice, read_form, shares_of
from creperie.scoring.header import nothing_computed, run_header
from creperie.scoring.plan import layout_of_bench
from creperie.scoring.run import Run, score_table


def export_inspect(bench: Benchmark, out: str | Path, *, force: bool = False) -> list[Path]:
    """Write an Inspect task; the files that it consists of."""
    folder = Path(out)
    if not bench.images.location:
        raise UsageError("the task needs the images", where=bench.name, hint="load it with images=")
    with new_folder(folder, replace_old=force) as draft:
        (draft / "images").mkdir(parents=True)
        names: dict[str, str] = {}
        records = [json.dumps(r, ensure_ascii=False) for item in bench for r in _records(bench, item, names, draft)]
        if not records:
            raise UsageError("no item has exactly one caption that fits, or one that does not", where=bench.name)
        (draft / "samples.jsonl").write_text("\n".join(records) + "\n", encoding="utf-8")
        plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in bench.name).strip("_").lower()
        task = (files("creperie.scoring") / "templates" / "inspect_task.txt").read_text("utf-8")
        text = task.replace("{name}", plain or "benchmark").replace("{function}", f"creperie_{plain or 'benchmark'}")
        (draft / "task.py").write_text(text, encoding="utf-8")
        about = {"benchmark": bench.name, "hash": bench.hash, "samples": len(records)}
        (draft / "creperie.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _records(bench: Benchmark, item: Item, names: dict[str, str], draft: Path) -> Iterator[dict[str, Any]]:
    """One record per image of the item and order of its captions."""
    wording = read_form(None, None, where=bench.name)
    for row, reference in enumerate(item.images):
        match = item.match[row]
        asks = "match" if sum(match) == 1 else "odd" if sum(match) == len(match) - 1 else ""
        if not asks:
            continue
        if reference not in names:
            names[reference] = f"images/{len(names)}.png"
            data = io.BytesIO()
            open_image(bench.images, reference).save(data, "PNG")
            (draft / names[reference]).write_bytes(data.getvalue())
        answer = match.index(asks == "match")
        for number, order in enumerate(orders_of("all", match)):
            options = [item.captions[k] for k in order]
            shown = ChoiceQuestion(Image.new("RGB", (1, 1)), tuple(options), asks)
            question = wording.prompt(shown).offering(shown.options)
            about = {"subset": item.subset, "item": item.id, "row": row, "order": list(order)}
            yield {
                "id": f"{item.subset}/{item.id}/{row}/{number}",
                "image": names[reference],
                "question": question,
                "target": item.captions[answer],
                "metadata": {**about, "options": options, "asks": asks},
            }


def import_inspect(path: str | Path, bench: Benchmark, *, settings: MetricSettings | None = None) -> Run:
    """A run from an Inspect log (`.eval` or `.json`) of an exported task."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as e:
        raise missing_module(e) from e
    log = read_eval_log(str(path))
    if not log.samples:
        raise DataError("holds no samples", where=str(path), hint=f"the evaluation ended as {log.status!r}")
    layout = layout_of_bench(bench)
    keys = zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True)
    rows = {key: number for number, key in enumerate(keys)}
    starts = layout.starts("image_text")
    total, asked = (np.zeros(int(layout.widths("image_text").sum())) for _ in range(2))
    findings = []
    for sample in log.samples:
        about = sample.metadata
        key = (str(about.get("subset")), str(about.get("item")))
        if key not in rows:
            raise DataError(f"has a sample of item {'/'.join(key)}, which {bench.name} has not", where=str(path))
        parsed = parse_choice(sample.output.completion, about["options"], asks=about["asks"])
        shares = np.nan_to_num(shares_of(parsed, len(about["options"])))
        if parsed.why:
            message = f"{parsed.why}: {sample.output.completion[:120]!r}"
            findings.append({"code": "unparsable-answer", "subset": key[0], "item": key[1], "message": message})
        begin = int(starts[rows[key]]) + int(about["row"]) * len(about["order"])
        cells = begin + np.array(about["order"])
        total[cells] += shares if about["asks"] == "match" else -shares
        asked[cells] += 1
    scores = np.divide(total, asked, out=np.full(len(total), np.nan), where=asked > 0).astype(np.float32)
    return _run(bench, scores, str(log.eval.model), findings, settings or MetricSettings())


def _run(
    bench: Benchmark, scores: np.ndarray, model: str, findings: list[dict[str, Any]], settings: MetricSettings
) -> Run:
    digest = hashlib.sha256(scores.tobytes()).hexdigest()
    mark = Fingerprint(f"inspect:{model}", "Inspect log", digest, dtype="answers")
    table = score_table(bench, layout_of_bench(bench), {"image_text": scores})
    covered = len(bench) - table.column("image_text").null_count
    document = {
        **run_header(f"{bench.name}.inspect-{model.replace('/', '-')}.{digest[:8]}", bench, mark, settings),
        **nothing_computed(),
        "tasks": ["itt"],
        "coverage": {"items": len(bench), "image_text": covered},
        "findings": findings[:100],
        "finding_counts": dict(Counter(f["code"] for f in findings)),
        "notes": [],
    }
    document["results"] = [r.as_dict() for r in Run(document, table).evaluate()]
    return Run(document, table)
