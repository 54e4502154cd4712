"""The papers that travel with a saved benchmark: README.md, DATASHEET.md, croissant.json.

README.md has the YAML head by which `datasets.load_dataset(folder)` finds the items; DATASHEET.md is a datasheet with
what creperie knows filled in and the rest left as questions to its authors; croissant.json is Croissant 1.0 metadata.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench.benchmark import Benchmark, ProvenanceStep, SkippedRecord
from creperie.bench.croissant import croissant
from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX
from creperie.bench.shapes import MatchShape, match_chance, match_shapes

COLUMNS = {
    "id": "The item's id, unique within its subset.",
    "subset": "The part of the benchmark that the item belongs to.",
    "images": "References to images: a key, with `#xywh=x,y,w,h` where only a part of the picture is meant.",
    "captions": "The captions, exactly as published.",
    "match": "Which caption is true of which image: row-major, one row per image (a single row without images), "
    "one column per caption.",
}

#: Licences as people write them → the short names that data set cards use.
LICENCES = {
    "mit": "mit",
    "apache20": "apache-2.0",
    "apachelicense20": "apache-2.0",
    "bsd3clause": "bsd-3-clause",
    "ccby40": "cc-by-4.0",
    "ccbysa40": "cc-by-sa-4.0",
    "ccbync40": "cc-by-nc-4.0",
    "ccbyncsa40": "cc-by-nc-sa-4.0",
    "ccbyncnd40": "cc-by-nc-nd-4.0",
    "cc010": "cc0-1.0",
    "cc0": "cc0-1.0",
}
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


def write_cards(bench: Benchmark, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the three papers beside the saved items."""
    kinds = match_shapes(bench)
    (folder / "README.md").write_text(readme(bench, manifest, kinds), encoding="utf-8")
    (folder / "DATASHEET.md").write_text(datasheet(bench, manifest, kinds), encoding="utf-8")
    files = {f.relative_to(folder).as_posix(): _sha256(f) for f in sorted((folder / "data").glob("*.parquet"))}
    document = croissant(bench, files, COLUMNS, licence_id(bench.info.licence))
    (folder / "croissant.json").write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def licence_id(licence: str) -> str:
    """The short name of a licence.

    >>> licence_id("CC BY 4.0"), licence_id("ask the authors"), licence_id("")
    ('cc-by-4.0', 'other', 'unknown')
    """
    if not licence:
        return "unknown"
    return LICENCES.get(re.sub(r"[^a-z0-9]", "", licence.lower()), "other")


def size_category(items: int) -> str:
    """
    >>> size_category(7511)
    '1K<n<10K'
    """
    return next((name for limit, name in SIZES if items < limit), "n>10M")


# -- README.md -------------------------------------------------------------------------------------------------------


def readme(bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape]) -> str:
    import yaml

    head = yaml.safe_dump(_head(bench, kinds), allow_unicode=True, sort_keys=False)
    parts = [
        f"---\n{head}---\n",
        f"# {_line(bench.info.title or bench.name)}\n",
        (bench.info.description or f"A vision-language compositionality benchmark of {len(bench):,} items.") + "\n",
        "## Items\n",
        f"{_counts(bench, kinds)}\n",
        _subset_table(bench),
        "## Columns\n",
        "\n".join(f"- `{name}`: {_column_text(name)}" for name in bench.columns) + "\n",
        "## Reading it\n",
        _reading(any(s.images for s in kinds), str(manifest["images"])),
        "## Where it comes from\n",
        _origin(bench, manifest),
    ]
    return "\n".join(parts)


def _head(bench: Benchmark, kinds: list[MatchShape]) -> dict[str, Any]:
    licence = licence_id(bench.info.licence)
    paraphrases = any(sum(row) > 1 for s in kinds for row in s.match)
    pictures = any(s.images for s in kinds)
    head: dict[str, Any] = {"license": licence}
    if licence == "other":
        head["license_name"] = _line(bench.info.licence)
    tasks = (["zero-shot-image-classification"] if pictures else []) + (["sentence-similarity"] if paraphrases else [])
    return head | {
        "pretty_name": _line(bench.info.title or bench.name),
        "task_categories": tasks or ["other"],
        "size_categories": [size_category(len(bench))],
        "tags": ["compositionality", "vision-language", "hard-negatives", "creperie"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "test", "path": "data/test-*.parquet"}],
                "default": True,
            }
        ],
    }


def _counts(bench: Benchmark, kinds: list[MatchShape]) -> str:
    lines = [f"{len(bench):,} items in {len(bench.subsets)} subset{'s' if len(bench.subsets) != 1 else ''}."]
    for shape in kinds[:6]:
        lines.append(f"{shape.items:,} with {_shape_text(shape)}.")
    if len(kinds) > 6:
        lines.append(f"{sum(s.items for s in kinds[6:]):,} of {len(kinds) - 6} other shapes.")
    if bench.skipped:
        lines.append(f"{len(bench.skipped):,} published records are no items and were left out.")
    return "\n".join(f"- {line}" for line in lines)


def _shape_text(shape: MatchShape) -> str:
    """
    >>> _shape_text(MatchShape(1, 3, ((True, True, False),), 5))
    '1 image, 3 captions, match `[[1,1,0]]`'
    """
    pictures = f"{shape.images or 'no'} image{'' if shape.images == 1 else 's'}"
    matrix = f", match `{shape.text}`" if len(shape.text) <= 60 else ""
    return f"{pictures}, {shape.captions} caption{'' if shape.captions == 1 else 's'}{matrix}"


def _subset_table(bench: Benchmark) -> str:
    levels = match_chance(bench)
    names = list(bench.subsets.items())
    rows = [f"| {_cell(name)} | {n:,} | {levels[name]:.1%} |" for name, n in names[:100]]
    more = f"\n… and {len(names) - 100} more subsets.\n" if len(names) > 100 else ""
    return "| subset | items | guessing scores |\n|---|---:|---:|\n" + "\n".join(rows) + "\n" + more


def _reading(pictured: bool, images: str) -> str:
    if images == "images":
        where = "The images are in `images/`; the column `images` holds their paths there."
    elif pictured:
        where = "The images are not part of this folder; give their place with `--images DIR`."
    else:
        where = "The items have no images."
    code = 'from datasets import load_dataset\n\nitems = load_dataset("path/to/this/folder", split="test")'
    return f"```python\n{code}\n```\n\nor `creperie data show path/to/this/folder`. {where}\n"


def _origin(bench: Benchmark, manifest: Mapping[str, Any]) -> str:
    lines = [f"Content hash: `{manifest['hash']}`. Written by {manifest['written_by']}.\n"]
    if bench.info.source:
        lines.append(f"Source: {bench.info.source}\n")
    if bench.info.licence:
        lines.append(f"Licence: {bench.info.licence}\n")
    if bench.info.citation:
        lines.append(f"Please cite:\n\n```\n{bench.info.citation}\n```\n")
    if bench.provenance:
        lines.append("Steps:\n\n" + "\n".join(f"{i}. {step_text(s)}" for i, s in enumerate(bench.provenance, 1)) + "\n")
    return "\n".join(lines)


def step_text(step: ProvenanceStep) -> str:
    """One step of the provenance in a line.

    >>> step_text(ProvenanceStep("sample", {"n": 100, "seed": 0}, ("ab12" * 16,)))
    'sample (n=100, seed=0) of ab12ab12ab12'
    """
    shown = ", ".join(f"{k}={_short(v)}" for k, v in step.args.items() if v not in ("", None) and k != "history")
    inputs = " and ".join(h[:12] for h in step.inputs)
    return step.op + (f" ({shown})" if shown else "") + (f" of {inputs}" if inputs else "")


def _short(value: Any) -> str:
    if isinstance(value, Mapping):  # checksums of files, say: the names will do
        names = list(map(str, value))
        value = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    text = _line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 120 else text[:117] + "…"


def _column_text(name: str) -> str:
    return COLUMNS.get(name) or f"Tag `{name.removeprefix(TAG_PREFIX)}` of the item; empty where it has none."


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|") or "(no name)"


def _sha256(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


# -- DATASHEET.md ----------------------------------------------------------------------------------------------------

OPEN = "*(to be answered by the authors)*"


def datasheet(bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape]) -> str:
    """Questions and answers; what creperie cannot know stays a question."""
    title = _line(bench.info.title or bench.name)
    intro = (
        f"What somebody should know before using **{title}**. Answers that follow from the data are filled in; "
        f"the others are marked {OPEN}."
    )
    sections = _sections(bench, manifest, kinds)
    body = "\n\n".join(
        f"## {name}\n\n" + "\n\n".join(f"**{question}**\n\n{answer or OPEN}" for question, answer in entries)
        for name, entries in sections.items()
    )
    return f"# Datasheet: {title}\n\n{intro}\n\n{body}\n"


def _sections(
    bench: Benchmark, manifest: Mapping[str, Any], kinds: list[MatchShape]
) -> dict[str, list[tuple[str, str]]]:
    info = bench.info
    steps = "\n".join(f"- {step_text(s)}" for s in bench.provenance)
    return {
        "Motivation": [
            ("What question was this benchmark made to answer?", info.description),
            ("Who made it, and who paid for it?", ""),
        ],
        "Composition": [
            ("What is one item, and how many are there?", _counts(bench, kinds)),
            ("How are the items divided?", _subset_table(bench).strip()),
            ("What else is known of an item?", _tags_text(bench)),
            ("What was left out, and why?", _skipped_text(bench.skipped)),
            ("Which mistakes, repetitions or unsolvable items are known?", "Run `creperie data check` on this folder."),
            ("Can the right caption be guessed without the image?", "Run `creperie audit` on this folder."),
            ("Do pictures or captions show or name people, or may they offend?", ""),
        ],
        "Collection": [
            ("Where do the images and the captions come from?", info.source),
            (
                "Were captions written by people, by rules or by a language model? With which instructions?",
                _writers_text(_all_steps(bench.provenance)),
            ),
            (
                "Who confirmed that true captions are true and false ones false? How far did they agree?",
                _judges_text(_all_steps(bench.provenance)),
            ),
        ],
        "Preprocessing": [
            ("What was done to the data before it took this form?", steps),
            ("Is the text as published?", "Yes: captions are kept byte for byte, blanks at their ends included."),
        ],
        "Uses": [
            ("What may it be used for?", "To measure whether a model tells true captions from similar false ones."),
            ("What should it not be used for?", "To train a model that is then tested on it."),
        ],
        "Distribution": [
            ("Under which licence may it be used?", info.licence),
            ("How is it cited?", f"```\n{info.citation}\n```" if info.citation else ""),
        ],
        "Maintenance": [
            ("Which version is this?", f"Content hash `{manifest['hash']}`, written by {manifest['written_by']}."),
            ("Who answers questions and corrects mistakes?", ""),
        ],
    }


def _all_steps(steps: Iterable[ProvenanceStep]) -> list[ProvenanceStep]:
    """The steps in order, with those of benchmarks that were joined on the way."""
    found: list[ProvenanceStep] = []
    for step in steps:
        for part in step.args.get("history", ()):
            found += _all_steps(ProvenanceStep(s["op"], s["args"], tuple(s["inputs"])) for s in part)
        found.append(step)
    return found


def _writers_text(steps: list[ProvenanceStep]) -> str:
    """Who wrote captions, by the steps that made some; empty where none did."""
    lines = []
    for step in steps:
        if step.op == "world":
            lines.append("- by the grammar of creperie's built-in world, which certifies what is true of a picture")
        if step.op == "make":
            settings = step.args.get("settings") or {}
            maker, model = str(step.args.get("maker", "")), str(settings.get("model", ""))
            who = f"the language model `{model}`" if model else "rules"
            told = ", ".join(f"{k} {_short(v)}" for k, v in settings.items() if k != "model" and v not in ("", None))
            counts = f"{step.args.get('made', 0):,} made, {step.args.get('rejected', 0):,} rejected"
            lines.append(f"- by {who}, with the instructions of maker `{maker}`" + (f" ({told})" if told else ""))
            lines[-1] += f": {counts}"
    return "\n".join(dict.fromkeys(lines))


def _judges_text(steps: list[ProvenanceStep]) -> str:
    """Who looked at the items, by the steps in which people or models did."""
    lines = []
    for step in steps:
        if step.op == "annotate":
            n = len(step.args.get("annotators") or ())
            who = f"{n} scripted annotators, not people" if step.args.get("scripted") else f"{n} people"
            alpha = step.args.get("alpha")
            agreed = f"Krippendorff's alpha {alpha:.2f}" if isinstance(alpha, (int, float)) else "agreement not known"
            answers = f"{step.args.get('answers', 0):,} answers"
            lines.append(f"- {who} in the task `{step.args.get('task')}`: {answers}, {agreed}")
        if step.op == "filter" and step.args.get("why") in ("check", "validate", "people"):
            by = {"check": "creperie's checks", "validate": "a validator model", "people": "people"}[step.args["why"]]
            lines.append(f"- {by} left items out")
    return "\n".join(dict.fromkeys(lines))


def _tags_text(bench: Benchmark) -> str:
    schema = bench.schema
    names = [n for n in schema.names if n not in CORE_COLUMNS.names]
    kinds = {pa.string(): "text", pa.float64(): "a number", pa.bool_(): "yes or no"}
    lines = [
        f"- `{n.removeprefix(TAG_PREFIX)}`: {kinds.get(schema.field(n).type, str(schema.field(n).type))}" for n in names
    ]
    return "\n".join(lines) or "Nothing: the items carry no tags."


def _skipped_text(skipped: tuple[SkippedRecord, ...]) -> str:
    if not skipped:
        return "Nothing that creperie knows of."
    reasons: dict[str, int] = {}
    for record in skipped:
        reasons[record.reason] = reasons.get(record.reason, 0) + 1
    return "\n".join(f"- {n:,} records: {_line(reason)}" for reason, n in sorted(reasons.items(), key=lambda r: -r[1]))
