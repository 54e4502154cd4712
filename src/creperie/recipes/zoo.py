"""A zoo: models × benchmarks in one YAML file, with options for every row and column.

defaults: {limit: 200, ties: wrong}
models:
  - hf:openai/clip-vit-base-patch32
  - {model: "vlm:llava-hf/llava-1.5-7b-hf?score=vqa", name: LLaVA, dtype: bfloat16, tags: {family: llava}}
benchmarks:
  - sugarcrepe
  - {bench: "sugarcrepe++:data/scpp", name: SC++, images: data/coco, tasks: [tot]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from creperie.bench import DrawOptions, PartOptions, load_part
from creperie.core import CreperieError, DataError, OptionField, options_in
from creperie.metrics import MetricSettings, task
from creperie.models import check_uri
from creperie.recipes.yaml_lines import Marked, read_marked_file
from creperie.scoring import MatrixColumn, MatrixRow, ScoreOptions

#: options of models, of benchmarks, and of both; they are those of the command line
_SCORE = options_in(ScoreOptions)
MODEL_OPTIONS = {name: about for name, about in _SCORE.items() if name != "tasks"}
BENCH_OPTIONS = {**options_in(PartOptions), "tasks": _SCORE["tasks"]}
SHARED_OPTIONS = {**options_in(MetricSettings), "seed": options_in(DrawOptions)["seed"]}


@dataclass(frozen=True)
class ZooEntry:
    """A model or a benchmark of a zoo: its URI or name, a short label, tags, and options that apply only to it."""

    spec: str
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name or self.spec


@dataclass(frozen=True)
class Zoo:
    """A matrix of models × benchmarks. The options of an entry take precedence over `defaults`."""

    models: tuple[ZooEntry, ...]
    benches: tuple[ZooEntry, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def names(self) -> dict[str, str]:
        """Return the short names of models by their URIs."""
        return {entry.spec: entry.name for entry in self.models if entry.name}


def is_zoo(text: str) -> bool:
    """Return True if the argument is a zoo file, not a benchmark.

    >>> is_zoo("zoo.yaml"), is_zoo("sugarcrepe"), is_zoo("csv:zoo.yml")
    (True, False, False)
    """
    return text.endswith((".yaml", ".yml")) and ":" not in text


def read_zoo(path: str | Path) -> Zoo:
    """Read a zoo from its YAML file. Errors name the line."""
    marked = read_marked_file(Path(path))
    document = marked.mapping((), ("models", "benchmarks", "defaults"), "is not a zoo")
    models = _entries(marked, "models", "model", MODEL_OPTIONS)
    benches = _entries(marked, "benchmarks", "bench", BENCH_OPTIONS)
    known = {**MODEL_OPTIONS, **BENCH_OPTIONS, **SHARED_OPTIONS}
    return Zoo(models, benches, _options(marked, ("defaults",), known) if document.get("defaults") else {})


def _entries(marked: Marked, key: str, kind: str, known: Mapping[str, OptionField]) -> tuple[ZooEntry, ...]:
    """Return the entries of the list under `key`. Raise a DataError if two have the same name."""
    listed = marked.value.get(key)
    if not listed:
        raise DataError(f"has no {key}", where=marked.file, hint=f"write `{key}:` with a list")
    if not isinstance(listed, list):
        raise DataError("is not a list", where=marked.where(key), hint="begin each entry with a dash")
    entries = {}
    for i, record in enumerate(listed):
        entry = _entry(marked, (key, i), record, kind, known)
        if entry.label in entries:
            raise DataError(
                f"{entry.label!r} is named twice",
                where=marked.where(key, i),
                hint="leave one out, or give it another `name`",
            )
        entries[entry.label] = entry
    return tuple(entries.values())


def _entry(
    marked: Marked, path: tuple[str | int, ...], record: object, kind: str, known: Mapping[str, OptionField]
) -> ZooEntry:
    if isinstance(record, str):
        return ZooEntry(record)
    if not isinstance(record, dict) or not isinstance(record.get(kind), str):
        raise DataError(
            f"this entry is not a {kind}",
            where=marked.where(*path),
            hint=f"write its name, or a mapping with `{kind}:`",
        )
    tags = record.get("tags") or {}
    if not isinstance(tags, dict):
        raise DataError("tags are not a mapping", where=marked.where(*path, "tags"), hint="write tags: {family: clip}")
    options = _options(marked, path, known, beside=(kind, "name", "tags"))
    texts = {str(k): str(v) for k, v in tags.items()}
    return ZooEntry(record[kind], str(record.get("name") or ""), texts, options)


def _options(
    marked: Marked, path: tuple[str | int, ...], known: Mapping[str, OptionField], beside: tuple[str, ...] = ()
) -> dict[str, Any]:
    values = marked.mapping(path, (*known, *beside), "is not a mapping", "option")
    return {k: known[k].checked(v, marked.where(*path, k)) for k, v in values.items() if k not in beside}


# -- rows and columns ------------------------------------------------------------------------------------------------


def matrix_rows(zoo: Zoo, options: ScoreOptions) -> list[MatrixRow]:
    """Return the models with their options. All are checked before any model runs. If a model is invalid, its row holds
    the error message.
    """
    settings = MetricSettings(
        ties=zoo.defaults.get("ties", options.settings.ties), seed=zoo.defaults.get("seed", options.settings.seed)
    )
    rows = []
    for entry in zoo.models:
        own = {k: v for k, v in {**zoo.defaults, **entry.options}.items() if k in MODEL_OPTIONS}
        chosen = replace(options, settings=settings, **own)
        rows.append(MatrixRow(entry.spec, chosen, model_fault(entry.spec)))
    return rows


def model_fault(uri: str) -> str:
    """Return why a model cannot be run, as far as this can be found out without loading the model. The text is empty if
    no problem is found.
    """
    try:
        check_uri(uri)
    except CreperieError as e:
        return str(e)
    return ""


def matrix_columns(zoo: Zoo) -> tuple[list[MatrixColumn], dict[str, str]]:
    """Return two values: the benchmarks that could be loaded, and the reasons for the others, by name. If none could be
    loaded, raise the error of the last one.
    """
    columns = []
    faults: dict[str, str] = {}
    for entry in zoo.benches:
        try:
            columns.append(_column(entry, {**zoo.defaults, **entry.options}))
        except CreperieError as e:
            if len(faults) + 1 == len(zoo.benches):
                raise
            faults[entry.name or entry.spec] = str(e)
    return columns, faults


def _column(entry: ZooEntry, options: Mapping[str, Any]) -> MatrixColumn:
    tasks = tuple(task(name).name for name in options.get("tasks", ()))
    part = PartOptions(**{name: options[name] for name in options_in(PartOptions) if name in options})
    bench = load_part(entry.spec, part, options.get("seed"))
    return MatrixColumn(replace(bench, name=entry.name) if entry.name else bench, tasks, entry.name)
