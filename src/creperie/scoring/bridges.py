"""Export a benchmark as a task of lmms-eval or Inspect, made from the files in `templates/`.

For each image of an item, there is one question per order of the captions. The questions are worded as in creperie's
own multiple choice. `replies.py` imports the results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from creperie.bench import Benchmark, check_images, new_folder, picture_file
from creperie.core import packaged
from creperie.models import ChoiceQuestion, orders_of, read_form
from creperie.scoring.choice import no_question

#: questions per row group of the Parquet file
ROW_GROUP = 256


@dataclass(frozen=True)
class HarnessQuestion:
    """An exported question about one image of an item, with its captions as options in one order."""

    id: str
    image: str
    question: str
    about: dict[str, Any]

    @property
    def row(self) -> dict[str, Any]:
        """The question without its image, as a row of the exported task."""
        return {"id": self.id, "question": self.question, **self.about}


def questions_of(bench: Benchmark) -> Iterator[HarnessQuestion]:
    """Yield all questions of a benchmark, in the order in which exported tasks list them."""
    wording = read_form(None, None, where=bench.name)
    for item in bench:
        for row, image in enumerate(item.images):
            match = item.match[row]
            asks = "match" if sum(match) == 1 else "odd" if sum(match) == len(match) - 1 else ""
            for number, order in enumerate(orders_of("all", match) if asks else ()):
                options = [item.captions[k] for k in order]
                shown = ChoiceQuestion(Image.new("RGB", (1, 1)), tuple(options), asks)
                question = wording.prompt(shown).offering(shown.options)
                about = {"subset": item.subset, "item": item.id, "row": row, "order": list(order)}
                id_ = f"{item.subset}/{item.id}/{row}/{number}"
                target = item.captions[match.index(asks == "match")]
                about |= {"options": options, "asks": asks, "target": target}
                yield HarnessQuestion(id_, image, question, about)


def export_lmms(bench: Benchmark, out: str | Path, *, force: bool = False) -> list[Path]:
    """Write a task folder for lmms-eval's `--include_path` and return its files.

    The files are a YAML file, its functions, and the data with images.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(out).resolve()
    name = f"creperie_{_identifier(bench.name)}"
    picture = pa.field("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    features = json.dumps({"info": {"features": {"image": {"_type": "Image"}}}})
    questions = _all_questions(bench)
    texts = [q.row for q in questions]
    rows = pa.Table.from_pylist(texts)
    schema = rows.schema.append(picture).with_metadata({"huggingface": features})
    encoded = lru_cache(ROW_GROUP)(lambda reference: picture_file(bench.images, reference)[1])
    with new_folder(folder, replace_old=force) as draft:
        draft.mkdir(parents=True, exist_ok=True)
        # an image that several questions of a row group share is stored once, in the dictionary of its pages
        with pq.ParquetWriter(draft / "test.parquet", schema, dictionary_pagesize_limit=2**30) as file:
            for start in range(0, len(questions), ROW_GROUP):
                part = [{"bytes": encoded(q.image), "path": None} for q in questions[start : start + ROW_GROUP]]
                group = rows.slice(start, ROW_GROUP).append_column(picture, pa.array(part, picture.type))
                file.write_table(group.cast(schema))
        data = json.dumps(str(folder / "test.parquet"))
        _fill(draft / f"{name}.yaml", "lmms_task.txt", name=name, folder=folder, data=data)
        _fill(draft / "utils.py", "lmms_utils.txt", name=name)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def export_inspect(bench: Benchmark, out: str | Path, *, force: bool = False) -> list[Path]:
    """Write a folder for `inspect eval` with a task, its samples and its images, and return the files written."""
    folder = Path(out).resolve()
    questions = _all_questions(bench)
    names: dict[str, str] = {}
    with new_folder(folder, replace_old=force) as draft:
        (draft / "images").mkdir()
        for number, image in enumerate(dict.fromkeys(q.image for q in questions)):
            ending, data = picture_file(bench.images, image)
            names[image] = f"images/{number}{ending}"
            (draft / names[image]).write_bytes(data)
        rows = [json.dumps({**q.row, "image": names[q.image]}, ensure_ascii=False) for q in questions]
        (draft / "samples.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        _fill(draft / "task.py", "inspect_task.txt", name=f"creperie_{_identifier(bench.name)}", folder=folder)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _all_questions(bench: Benchmark) -> list[HarnessQuestion]:
    check_images(bench)
    if questions := list(questions_of(bench)):
        return questions
    raise no_question(bench)


def _fill(path: Path, template: str, **values: object) -> None:
    text = packaged("creperie.scoring", "templates", template)
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    path.write_text(text, encoding="utf-8")


def _identifier(name: str) -> str:
    words = "".join(c if c.isalnum() and c.isascii() else " " for c in name).split()
    return "_".join(words).lower() or "benchmark"
