"""Cooking: stage after stage, each into a folder of its own, skipped where nothing it depends on has changed.

OUT/
  01-captions/ 02-make/ …    a stage each: what it made, and stage.json: its key, options, inputs, numbers, seconds
  .work/                     what an interrupted stage has done so far

The key of a stage is a hash of its options, of the content of its inputs and files, and of creperie's version.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from creperie import __version__
from creperie.bench import load
from creperie.bench.storage import MANIFEST, read_json, write_json
from creperie.errors import UsageError, unknown
from creperie.progress import Progress, silent
from creperie.recipes.recipe import Recipe, Stage
from creperie.recipes.steps import Job, work_of

RECORD = "stage.json"
WORK = ".work"
LOCK = ".lock"
#: files above this size count by name, size and time of change, not by content
LARGE = 256 * 1024 * 1024

State = Literal["cooked", "unchanged", "skipped", "given"]


@dataclass(frozen=True)
class Served:
    """What became of a stage."""

    name: str
    does: str
    state: State
    place: str  #: where its output is; a skipped stage hands on its input's
    summary: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    why: str = ""

    def document(self) -> dict[str, Any]:
        return {
            "stage": self.name,
            "does": self.does,
            "state": self.state,
            "folder": self.place,
            "seconds": round(self.seconds, 2),
            "summary": dict(self.summary),
            **({"why": self.why} if self.why else {}),
        }


Tell = Callable[[str], None]


def cook(
    recipe: Recipe,
    out: Path,
    *,
    use: Mapping[str, str] | None = None,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
) -> list[Served]:
    """Cook all stages. `use` gives the output of a stage from elsewhere: a folder or a benchmark spec."""
    given = dict(use or {})
    check_given(recipe, given)
    _claim(out, recipe)
    stove = _Stove(recipe.name, out, given, progress, tell)
    served: dict[str, Served] = {}
    with _alone(out):
        for number, stage in enumerate(recipe.stages, 1):
            # a stage that is passed over and has no input has nothing to hand on
            inputs = tuple(place for place in (served[name].place for name in stage.sources) if place)
            served[stage.name] = stove.serve(stage, number, inputs)
        shutil.rmtree(out / WORK, ignore_errors=True)
    return list(served.values())


def check_given(recipe: Recipe, given: Mapping[str, str]) -> None:
    """Outputs can be given for stages that there are."""
    names = [s.name for s in recipe.stages]
    for name in given:
        if name not in names:
            raise unknown("stage", name, names, where="--use")


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """One cooking at a time in a folder."""
    lock = out / LOCK
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            what = "another cooking is at work in this folder"
            raise UsageError(what, where=str(out), mend="wait for it, or choose another --out") from None
        yield
        lock.unlink(missing_ok=True)


def _claim(out: Path, recipe: Recipe) -> None:
    """A folder belongs to one recipe and profile; another's stages are not mixed in."""
    card = out / "recipe.json"
    mine = {"recipe": recipe.name, "profile": recipe.profile}
    if card.is_file():
        theirs = read_json(card)
        if {k: theirs.get(k) for k in mine} != mine:
            what = f"holds the recipe {theirs.get('recipe')} ({theirs.get('profile')})"
            raise UsageError(what, where=str(out), mend="choose another --out")
    elif out.is_dir() and any(out.iterdir()):
        raise UsageError("this folder holds something else", where=str(out), mend="choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    write_json(card, mine | {"title": recipe.title, "file": Path(recipe.file).name, "creperie": __version__})


@dataclass(frozen=True)
class _Stove:
    """Where stages are cooked, and who is told."""

    recipe: str
    out: Path
    given: Mapping[str, str]
    progress: Progress
    tell: Tell

    def serve(self, stage: Stage, number: int, inputs: tuple[str, ...]) -> Served:
        """A stage's output: given, handed on, kept from before, or cooked."""
        place = self.given.get(stage.name)
        if place is not None:
            return Served(stage.name, stage.does, "given", place, _look(stage, place), why=f"given: {place}")
        if stage.skip:
            return Served(stage.name, stage.does, "skipped", inputs[0] if inputs else "", why=stage.skip)
        folder = folder_of(self.out, number, stage)
        key = stage_key(stage, inputs)
        kept = kept_record(folder, key)
        if kept is not None:
            return Served(stage.name, stage.does, "unchanged", str(folder), kept["summary"], kept["seconds"])
        self.tell(f"{stage.name}: {stage.about or stage.step.what}")
        start = time.monotonic()
        summary = self._cooked(stage, inputs, folder, key)
        return Served(stage.name, stage.does, "cooked", str(folder), summary, time.monotonic() - start)

    def _cooked(self, stage: Stage, inputs: tuple[str, ...], folder: Path, key: str) -> dict[str, Any]:
        """Do the work beside the folder, and put it there when it is whole."""
        draft, work = folder.with_name(f".{folder.name}.draft"), self.out / WORK / f"{stage.name}-{key[:12]}"
        shutil.rmtree(draft, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        summary = work_of(stage.does)(Job(stage.name, self.recipe, stage.options, inputs, draft, work, self.progress))
        record = {
            "creperie": __version__,
            "stage": stage.name,
            "does": stage.does,
            "key": key,
            "options": dict(stage.options),
            "inputs": [{"place": place, "digest": digest_of(place)} for place in inputs],
            "summary": summary,
            "seconds": round(time.monotonic() - start, 3),
        }
        write_json(draft / RECORD, record)
        if folder.exists():
            shutil.rmtree(folder)
        draft.replace(folder)
        shutil.rmtree(work, ignore_errors=True)
        return summary


def folder_of(out: Path, number: int, stage: Stage) -> Path:
    return out / f"{number:02d}-{stage.name}"


def kept_record(folder: Path, key: str) -> dict[str, Any] | None:
    """The record of a stage that was cooked before with the same key."""
    if not (folder / RECORD).is_file():
        return None
    record: dict[str, Any] = read_json(folder / RECORD)
    return record if record.get("key") == key else None


def stage_key(stage: Stage, inputs: tuple[str, ...]) -> str:
    """The same for the same work: step, options, the content of inputs and files, and creperie's version."""
    files = {name: _file_digest(str(stage.options[name])) for name in stage.step.files}
    content = {
        "does": stage.does,
        "options": dict(stage.options),
        "inputs": [digest_of(place) for place in inputs],
        "files": files,
        "creperie": __version__,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def digest_of(place: str) -> str:
    """The content of a stage's output: a benchmark's hash, or that of all files but the record."""
    path = Path(place)
    if (path / MANIFEST).is_file():
        return str(read_json(path / MANIFEST)["hash"])
    if path.is_dir():
        return _folder_digest(path)
    return load(place).hash


def _folder_digest(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != RECORD):
        whole.update(path.relative_to(folder).as_posix().encode() + b"\0" + _one(path).encode() + b"\n")
    return whole.hexdigest()


def _file_digest(spec: str) -> str:
    """The content behind a path or `format:path`; empty for anything else (a catalog's name)."""
    for text in (spec, re.sub(r"^[\w+.-]{2,}:", "", spec)):
        path = Path(text)
        if text and path.is_file():
            return _one(path)
        if text and path.is_dir():
            return _folder_digest(path)
    return ""


def _one(path: Path) -> str:
    stat = path.stat()
    if stat.st_size > LARGE:
        return f"{stat.st_size} {stat.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _look(stage: Stage, place: str) -> dict[str, Any]:
    """What a given output holds; an error where it is not what the stage gives."""
    if stage.step.gives == "benchmark":
        bench = load(place)
        return {"items": len(bench), "subsets": bench.subsets}
    if not Path(place).is_dir():
        raise UsageError("there is no such folder", where=place, mend=f"--use {stage.name}=FOLDER")
    return {}
