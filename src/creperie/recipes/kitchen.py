"""Cooking: stage after stage, each into a folder of its own, skipped where nothing it depends on has changed.

OUT/
  01-captions/ 02-make/ …    one folder per stage: what it made, and stage.json: its key, options, inputs, numbers
  .work/                     what an interrupted stage has done so far

The key of a stage is a hash of its options, of the content of its inputs and files, and of creperie's version.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from creperie.bench import MANIFEST_FILE, load
from creperie.core import (
    CreperieError,
    Progress,
    UsageError,
    __version__,
    locked,
    read_json,
    silent,
    unknown,
    write_json,
)
from creperie.engine import Engine, session
from creperie.recipes.recipe import Recipe, RecipeStage
from creperie.recipes.steps import StageJob, work_of
from creperie.scoring import RUN_FILE

RECORD = "stage.json"
TIME = "time.json"  #: apart from the record, which is the same whenever and wherever a stage is cooked
WORK = ".work"
LOCK = ".lock"
CARD = "recipe.json"
#: files above this size count by name, size and time of change, not by content
LARGE = 256 * 1024 * 1024

#: what the document of a run says about the hour and the machine; the run is the same without it
PASSING = ("created", "command", "timings", "work", "merged")

State = Literal["cooked", "unchanged", "skipped", "given"]


@dataclass(frozen=True)
class StageResult:
    """What became of a stage."""

    name: str
    does: str
    state: State
    place: str  #: where its output is; a skipped stage hands on its input's
    summary: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    why: str = ""

    def document(self) -> dict[str, Any]:
        about = {"stage": self.name, "does": self.does, "state": self.state, "folder": self.place}
        numbers = {"seconds": round(self.seconds, 2), "summary": dict(self.summary)}
        return about | numbers | ({"why": self.why} if self.why else {})


Tell = Callable[[str], None]


def run_stages(
    recipe: Recipe,
    out: Path,
    *,
    use: Mapping[str, str] | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
) -> list[StageResult]:
    """Run all stages. `use` gives the output of a stage from elsewhere: a folder or a benchmark spec."""
    given = dict(use or {})
    check_given(recipe, given)
    check_claim(out, recipe)
    with ExitStack() as until_the_end:
        until_the_end.enter_context(locked(out / LOCK, "another cooking is at work in this folder", where=out))
        _claim(out, recipe)
        stove = _Stove(recipe.name, out, given, engine, progress, tell, until_the_end)
        served: dict[str, StageResult] = {}
        for number, stage in enumerate(recipe.stages, 1):
            # a stage that is passed over and has no input has nothing to hand on
            inputs = tuple(place for place in (served[name].place for name in stage.sources) if place)
            served[stage.name] = stove.serve(stage, number, inputs)
            if served[stage.name].place:
                stove.full.add(stage.name)
        shutil.rmtree(out / WORK, ignore_errors=True)
    return list(served.values())


def check_given(recipe: Recipe, given: Mapping[str, str]) -> None:
    """Refuse outputs of stages that the recipe does not have."""
    names = [s.name for s in recipe.stages]
    for name in given:
        if name not in names:
            raise unknown("stage", name, names, where="--use")


def check_claim(out: Path, recipe: Recipe) -> None:
    """Refuse a folder of another recipe or profile, whose stages would be mixed with these."""
    mine = {"recipe": recipe.name, "profile": recipe.profile}
    if (out / CARD).is_file():
        card = read_json(out / CARD)
        theirs = {k: str(card.get(k))[:60] for k in mine} if isinstance(card, dict) else dict.fromkeys(mine, "?")
        if theirs != mine:
            what = f"holds the recipe {theirs['recipe']!r} ({theirs['profile']})"
            raise UsageError(what, where=str(out), hint="choose another `out=`")
    elif out.is_dir() and any(p.name != LOCK and not p.name.startswith(f".{CARD}") for p in out.iterdir()):
        raise UsageError("this folder holds something else", where=str(out), hint="choose another `out=`")


def read_card(folder: Path) -> dict[str, Any]:
    """Return what a run's folder says of its recipe."""
    try:
        card: dict[str, Any] = read_json(folder / CARD)
    except CreperieError:
        raise UsageError("is not the folder of a recipe run", where=str(folder)) from None
    return card


def _claim(out: Path, recipe: Recipe) -> None:
    mine = {"recipe": recipe.name, "profile": recipe.profile, "title": recipe.title, "figures": recipe.figures}
    stages = [folder_of(out, number, stage).name for number, stage in enumerate(recipe.stages, 1)]
    write_json(out / CARD, mine | {"file": Path(recipe.file).name, "creperie": __version__, "stages": stages})


@dataclass(frozen=True)
class _Stove:
    """Where stages are cooked, and who is told."""

    recipe: str
    out: Path
    given: Mapping[str, str]
    engine: Engine | None
    progress: Progress
    tell: Tell
    until_the_end: ExitStack  #: what lasts as long as the run
    full: set[str] = field(default_factory=set)  #: stages that have an output to hand on

    def serve(self, stage: RecipeStage, number: int, inputs: tuple[str, ...]) -> StageResult:
        """Return a stage's output: given, handed on, kept from before, or cooked."""
        result = partial(StageResult, stage.name, stage.does)
        if (place := self.given.get(stage.name)) is not None:
            return result("given", place, _look(stage, place), why=f"given: {place}")
        if stage.skip:
            return result("skipped", handed_on(stage, inputs), why=stage.skip)
        if why := nothing_to_do(stage, self.full):
            return result("skipped", "", why=why)
        folder = folder_of(self.out, number, stage)
        key = stage_key(stage, inputs)
        record = kept_record(folder, key)
        if record is None:
            self.tell(f"{stage.name}: {stage.about or stage.step.what}")
        summary = self._cooked(stage, inputs, folder, key) if record is None else record["summary"]
        why = "" if summary.get("items", 1) or not stage.options.get("optional") else "nothing came of it; left out"
        state: State = "cooked" if record is None else "unchanged"
        return result(state, "" if why else str(folder), summary, seconds_of(folder), why)

    def _cooked(self, stage: RecipeStage, inputs: tuple[str, ...], folder: Path, key: str) -> dict[str, Any]:
        """Do the work beside the folder, and put it there when it is whole."""
        draft, work = folder.with_name(f".{folder.name}.draft"), self.out / WORK / f"{stage.name}-{key[:12]}"
        shutil.rmtree(draft, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        engine = self.engine if stage.step.spread else None
        names = tuple(name for name in stage.sources if name in self.full)
        job = StageJob(stage.name, self.recipe, stage.options, inputs, draft, work, self.progress, engine, names)
        start = time.monotonic()
        self.until_the_end.enter_context(session(engine))  # a cluster that is started here serves all stages
        summary = work_of(stage.does)(job)
        record = {
            "creperie": __version__,
            "stage": stage.name,
            "does": stage.does,
            "key": key,
            "options": dict(stage.options),
            "inputs": [{"place": self._from_out(place), "digest": digest_of(place)} for place in inputs],
            "summary": summary,
        }
        write_json(draft / TIME, {"seconds": round(time.monotonic() - start, 3)})
        write_json(draft / RECORD, record)
        if folder.exists():
            shutil.rmtree(folder)
        draft.replace(folder)
        shutil.rmtree(work, ignore_errors=True)
        return summary

    def _from_out(self, place: str) -> str:
        """Return a place relative to the folder of the run: the record is the same wherever that is."""
        path = Path(place)
        return path.relative_to(self.out).as_posix() if path.is_relative_to(self.out) else place


def handed_on(stage: RecipeStage, inputs: Sequence[str]) -> str:
    """Return what a stage that is passed over gives to the next: its input, if both are benchmarks; else nothing."""
    return inputs[0] if inputs and stage.step.gives == "benchmark" else ""


def nothing_to_do(stage: RecipeStage, full: Collection[str]) -> str:
    """Return why a stage has nothing to work on: an optional benchmark is not here, or its input was skipped."""
    if stage.options.get("optional") and "source" in stage.options:
        if stage.step.gives != "benchmark":
            return "" if Path(stage.options["source"]).exists() else "not here"
        try:
            load(stage.options["source"])
        except CreperieError as e:
            return f"not here: {e.what}"
    if stage.sources and not stage.step.any_input and stage.sources[0] not in full:
        return f"{stage.sources[0]} is skipped"
    return ""


def folder_of(out: Path, number: int, stage: RecipeStage) -> Path:
    return out / f"{number:02d}-{stage.name}"


def kept_record(folder: Path, key: str) -> dict[str, Any] | None:
    """Return the record of a stage that was cooked with the same key; None where there is none, or a damaged one."""
    try:
        record = read_json(folder / RECORD)
    except CreperieError:
        return None
    whole = isinstance(record, dict) and record.get("key") == key and isinstance(record.get("summary"), dict)
    return record if whole else None


def seconds_of(folder: Path) -> float:
    """Return how long a stage took when it was cooked; 0 where that is not known."""
    try:
        return float(read_json(folder / TIME)["seconds"])
    except (CreperieError, KeyError, TypeError, ValueError):
        return 0.0


def stage_key(stage: RecipeStage, inputs: tuple[str, ...]) -> str:
    """Return a hash of a stage's work: its step, options, the content of inputs and files, and creperie's version."""
    files = {name: _file_digest(str(stage.options[name])) for name in stage.step.files}
    content = {
        "does": stage.does,
        "options": dict(stage.options),
        "inputs": [digest_of(place) for place in inputs],
        "files": files,
        "creperie": __version__,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def digest_of(place: str, out: Path | None = None) -> str:
    """Return a hash of a stage's output: the benchmark's, or that of all files but its records.

    With `out`, the folder of the run, files that name this folder count as if they named none.
    """
    path = Path(place)
    if (path / MANIFEST_FILE).is_file():
        return str(read_json(path / MANIFEST_FILE)["hash"])
    if path.is_dir():
        return _folder_digest(path, out)
    return load(place).hash


def _folder_digest(folder: Path, out: Path | None = None) -> str:
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in (RECORD, TIME)):
        whole.update(path.relative_to(folder).as_posix().encode() + b"\0" + _one(path, out).encode() + b"\n")
    return whole.hexdigest()


def without_folder(content: bytes, out: Path | None) -> bytes:
    """Return the content without the places of a run's folder, as they are written in it.

    >>> without_folder(b"small:runs/a/08-student/model, data/x", Path("runs/a"))
    b'small:08-student/model, data/x'
    """
    for place in {str(out), str(out.absolute())} if out else ():
        content = re.sub(rb"(?<![\w/.-])" + re.escape(place.encode()) + b"/", b"", content)
    return content


def _file_digest(spec: str) -> str:
    """Return a hash of the content behind a path or `format:path`; empty for anything else (a catalog's name)."""
    for text in (spec, re.sub(r"^[\w+.-]{2,}:", "", spec)):
        path = Path(text)
        if text and path.is_file():
            return _one(path)
        if text and path.is_dir():
            return _folder_digest(path)
    return ""


def _one(path: Path, out: Path | None = None) -> str:
    stat = path.stat()
    if stat.st_size > LARGE:
        return f"{stat.st_size} {stat.st_mtime_ns}"
    content = path.read_bytes()
    if path.name == RUN_FILE:  # a run that is scored again is the same run
        document = read_json(path)
        lasting = {k: v for k, v in document.items() if k not in PASSING} if isinstance(document, dict) else document
        content = json.dumps(lasting, sort_keys=True).encode()
    return hashlib.sha256(without_folder(content, out)).hexdigest()


def _look(stage: RecipeStage, place: str) -> dict[str, Any]:
    """Return what a given output holds; refuse one that is not what the stage gives."""
    if stage.step.gives == "benchmark":
        bench = load(place)
        return {"items": len(bench), "subsets": bench.subsets}
    if not Path(place).is_dir():
        raise UsageError("there is no such folder", where=place, hint=f"name a folder for {stage.name!r} with `use=`")
    return {}
