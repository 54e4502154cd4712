"""A zoo: models × benchmarks as one file of data, with options for every row and column.

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
from typing import TYPE_CHECKING, Any

from creperie.bench import DrawOptions, PartOptions, load_part
from creperie.core import CreperieError, DataError, OptionField, options_in, unknown
from creperie.metrics import MetricSettings, task
from creperie.models import check_uri
from creperie.scoring import MatrixColumn, MatrixRow, ScoreOptions

if TYPE_CHECKING:
    from creperie.recipes.yaml_lines import Marked

#: options of models, of benchmarks, and of all: those of the command line
_SCORE = options_in(ScoreOptions)
MODEL_OPTIONS = {name: about for name, about in _SCORE.items() if name != "tasks"}
BENCH_OPTIONS = {**options_in(PartOptions), "tasks": _SCORE["tasks"]}
SHARED_OPTIONS = {**options_in(MetricSettings), "seed": options_in(DrawOptions)["seed"]}


@dataclass(frozen=True)
class ZooEntry:
    """A model or a benchmark of a zoo: its URI or spec, a short name, tags, and options of its own."""

    spec: str
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name or self.spec


@dataclass(frozen=True)
class Zoo:
    """Models × benchmarks. Options of an entry come before the defaults."""

    models: tuple[ZooEntry, ...]
    benches: tuple[ZooEntry, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def names(self) -> dict[str, str]:
        """Short names of models, by URI."""
        return {entry.spec: entry.name for entry in self.models if entry.name}


def is_zoo(text: str) -> bool:
    """Is this argument a zoo file rather than a benchmark?

    >>> is_zoo("zoo.yaml"), is_zoo("sugarcrepe"), is_zoo("csv:zoo.yml")
    (True, False, False)
    """
    return text.endswith((".yaml", ".yml")) and ":" not in text


def read_zoo(path: str | Path) -> Zoo:
    """A zoo from its YAML file. Mistakes name the line."""
    marked = _marked(Path(path))
    document = marked.value
    if not isinstance(document, dict):
        raise DataError("is not a zoo", where=str(path), hint="write `models:` and `benchmarks:` with a list each")
    for key in document:
        if key not in ("models", "benchmarks", "defaults"):
            raise unknown("key", key, ("models", "benchmarks", "defaults"), where=marked.where(key))
    models = _entries(marked, "models", "model", MODEL_OPTIONS)
    benches = _entries(marked, "benchmarks", "bench", BENCH_OPTIONS)
    known = {**MODEL_OPTIONS, **BENCH_OPTIONS, **SHARED_OPTIONS}
    defaults = document.get("defaults") or {}
    return Zoo(models, benches, _options(marked, ("defaults",), defaults, known))


def read_entries(path: str | Path, kind: str) -> tuple[ZooEntry, ...]:
    """Models or benchmarks from a file: a YAML list of entries, or plain text with one per line."""
    file = Path(path)
    options = MODEL_OPTIONS if kind == "model" else BENCH_OPTIONS
    if file.suffix in (".yaml", ".yml"):
        marked = _marked(file)
        return _entry_list(marked, (), marked.value, kind, options)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"cannot be read ({e})", where=str(path)) from None
    found = tuple(ZooEntry(line.strip()) for line in lines if line.strip() and not line.lstrip().startswith("#"))
    if not found:
        raise DataError(f"names no {kind}", where=str(path), hint="write one per line")
    return found


def _marked(file: Path) -> Marked:
    from creperie.recipes.yaml_lines import read_marked

    try:
        return read_marked(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"cannot be read ({e})", where=str(file)) from None


def _entries(marked: Marked, key: str, kind: str, options: Mapping[str, OptionField]) -> tuple[ZooEntry, ...]:
    if not marked.value.get(key):
        raise DataError(f"has no {key}", where=marked.file, hint=f"write `{key}:` with a list")
    return _entry_list(marked, (key,), marked.value[key], kind, options)


def _entry_list(
    marked: Marked, path: tuple[str, ...], found: object, kind: str, options: Mapping[str, OptionField]
) -> tuple[ZooEntry, ...]:
    if not isinstance(found, list):
        raise DataError("is not a list", where=marked.where(*path), hint="begin each entry with a dash")
    entries = tuple(_entry(marked, (*path, i), entry, kind, options) for i, entry in enumerate(found))
    seen: dict[str, int] = {}
    for i, entry in enumerate(entries):
        if entry.label in seen:
            hint = "leave one out, or give it another `name`"
            raise DataError(f"{entry.label!r} is named twice", where=marked.where(*path, i), hint=hint)
        seen[entry.label] = i
    return entries


def _entry(
    marked: Marked, path: tuple[str | int, ...], entry: object, kind: str, options: Mapping[str, OptionField]
) -> ZooEntry:
    if isinstance(entry, str):
        return ZooEntry(entry)
    if not isinstance(entry, dict) or not isinstance(entry.get(kind), str):
        hint = f"write its name, or a mapping with `{kind}:`"
        raise DataError(f"is not a {kind}", where=marked.where(*path), hint=hint)
    tags = entry.get("tags") or {}
    if not isinstance(tags, dict):
        raise DataError("tags are not a mapping", where=marked.where(*path, "tags"), hint="write tags: {family: clip}")
    own = {key: value for key, value in entry.items() if key not in (kind, "name", "tags")}
    return ZooEntry(
        str(entry[kind]),
        str(entry.get("name") or ""),
        {str(k): str(v) for k, v in tags.items()},
        _options(marked, path, own, options),
    )


def _options(
    marked: Marked, path: tuple[str | int, ...], found: object, known: Mapping[str, OptionField]
) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise DataError("is not a mapping", where=marked.where(*path))
    for key in found:
        if key not in known:
            raise unknown("option", key, known, where=marked.where(*path, key))
    return {key: known[key].checked(value, marked.where(*path, key)) for key, value in found.items()}


# -- rows and columns ------------------------------------------------------------------------------------------------


def matrix_rows(zoo: Zoo, options: ScoreOptions) -> list[MatrixRow]:
    """The models with their options. All are checked here, before the first is run; a wrong one keeps its fault."""
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
    """Why a model cannot be run, as far as that can be known without loading it; empty where nothing is wrong."""
    try:
        check_uri(uri)
    except CreperieError as e:
        return str(e)
    return ""


def matrix_columns(zoo: Zoo) -> list[MatrixColumn]:
    """The benchmarks, loaded. A benchmark that is not there stops everything: no model could be scored on it."""
    return [_column(entry, {**zoo.defaults, **entry.options}) for entry in zoo.benches]


def _column(entry: ZooEntry, options: Mapping[str, Any]) -> MatrixColumn:
    tasks = tuple(task(name).name for name in options.get("tasks", ()))
    part = PartOptions(**{name: options[name] for name in options_in(PartOptions) if name in options})
    bench = load_part(entry.spec, part, options.get("seed"))
    return MatrixColumn(replace(bench, name=entry.name) if entry.name else bench, tasks, entry.name)
