"""Running a recipe. Each stage writes its own folder, and is skipped if nothing that it depends on has changed.

OUT/
  01-captions/ 02-make/ …    one folder per stage: its output, and stage.json: its key, options, inputs, summary
  .work/                     partial results of an interrupted stage

The key of a stage is a digest of everything that it depends on: its options, and the contents of its inputs, images,
models and files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from creperie.bench import AUDIT_FILE, MANIFEST_FILE, load
from creperie.core import (
    CreperieError,
    Json,
    Progress,
    UsageError,
    __version__,
    check_files,
    check_name,
    digest_of,
    locked,
    options_from,
    options_in,
    plugins_digest,
    read_checked,
    read_json,
    remembered_sha256,
    silent,
    write_json,
)
from creperie.engine import Engine, session
from creperie.models import named_content
from creperie.recipes.recipe import Recipe, RecipeStage
from creperie.recipes.steps import CONTENT_OPTIONS, DRAFT, StageJob, models_of, work_of
from creperie.scoring import RUN_FILE, benchmark_digest

RECORD = "stage.json"
TIME = "time.json"  #: apart from the record, which does not depend on when and where a stage is run
WORK = ".work"
LOCK = ".lock"
CARD = "recipe.json"
#: larger files hold no paths of the run's folder, and their digests are remembered
LARGE = 256 * 1024 * 1024

#: keys of a run's document that depend on the time and the machine; they are not part of the run's identity
PASSING = ("created", "command", "timings", "work", "merged")

State = Literal["cooked", "unchanged", "skipped", "given"]


@dataclass(frozen=True)
class StageResult:
    """The result of a stage: its state, the path of its output, and a summary."""

    name: str
    does: str
    state: State
    place: str  #: where its output is; for a skipped stage, that of its input
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
    """Run all stages and return their results. `use` maps the name of a stage to a folder or benchmark that replaces
    its output.
    """
    given = dict(use or {})
    check_given(recipe, given)
    check_claim(out, recipe)
    with ExitStack() as until_the_end:
        until_the_end.enter_context(locked(out / LOCK, "another recipe run is using this folder", where=out))
        _claim(out, recipe)
        stove = _Stove(recipe.name, out, given, engine, progress, tell, until_the_end)
        served: dict[str, StageResult] = {}
        for number, stage in enumerate(recipe.stages, 1):
            # a skipped stage without input has no output
            inputs = tuple(place for place in (served[name].place for name in stage.sources) if place)
            served[stage.name] = stove.serve(stage, number, inputs)
            if served[stage.name].place:
                stove.full.add(stage.name)
        shutil.rmtree(out / WORK, ignore_errors=True)
    return list(served.values())


def check_given(recipe: Recipe, given: Mapping[str, str]) -> None:
    """Raise an error if `given` names a stage that the recipe does not have."""
    names = [s.name for s in recipe.stages]
    for name in given:
        check_name("stage", name, names, where="--use")


def check_claim(out: Path, recipe: Recipe) -> None:
    """Raise a UsageError if the folder belongs to another recipe or profile. Also raise one if the folder is not empty
    and not a recipe run.
    """
    mine = {"recipe": recipe.name, "profile": recipe.profile}
    if (out / CARD).is_file():
        card = read_json(out / CARD)
        theirs = {k: str(card.get(k))[:60] for k in mine} if isinstance(card, dict) else dict.fromkeys(mine, "?")
        if theirs != mine:
            raise UsageError(
                f"already holds a run of the recipe {theirs['recipe']!r} in the profile {theirs['profile']!r}",
                where=out,
                hint="choose another `out=`",
            )
    elif out.is_dir() and any(p.name != LOCK and not p.name.startswith(f".{CARD}") for p in out.iterdir()):
        raise UsageError("the folder is not empty and is not a recipe run", where=out, hint="choose another `out=`")


def read_card(folder: Path) -> Json:
    """Return the content of recipe.json in the folder of a recipe run."""
    try:
        card = read_json(folder / CARD)
    except CreperieError:
        raise UsageError(
            "is not the folder of a recipe run", where=folder, hint="name one that `creperie cook` wrote"
        ) from None
    return card


def _claim(out: Path, recipe: Recipe) -> None:
    mine = {"recipe": recipe.name, "profile": recipe.profile, "title": recipe.title, "prompts": recipe.prompts}
    stages = [folder_of(out, number, stage).name for number, stage in enumerate(recipe.stages, 1)]
    earlier = read_json(out / CARD).get("places", ()) if (out / CARD).is_file() else ()
    home = str(Path(recipe.file).resolve().parent)
    # as the folders may be spelled in files of this run
    places = sorted({home, str(out), str(out.absolute()), *earlier})
    about = {"file": Path(recipe.file).name, "creperie": __version__, "stages": stages, "places": places}
    write_json(out / CARD, mine | about)


@dataclass(frozen=True)
class _Stove:
    """The state of a recipe run: its folder, the outputs that the user gave, the engine, and callbacks."""

    recipe: str
    out: Path
    given: Mapping[str, str]
    engine: Engine | None
    progress: Progress
    tell: Tell
    until_the_end: ExitStack  #: contexts that stay open until the run ends
    full: set[str] = field(default_factory=set)  #: stages that have an output

    def serve(self, stage: RecipeStage, number: int, inputs: tuple[str, ...]) -> StageResult:
        """Return the result of a stage. The stage does not run if the user gave its output, if it is skipped, or if its
        output is unchanged since an earlier run.
        """
        folder = folder_of(self.out, number, stage)
        way = route(stage, inputs, folder, self.given.get(stage.name), self.full)
        state, summary, place, why = way.state, way.summary, way.place, way.why
        if state == "given":
            summary = _summary_of_given(stage, place or "")
        elif state != "skipped":
            if state is None:
                self.tell(f"{stage.name}: {stage.about or stage.step.what}")
                summary, state = self._cooked(stage, inputs, folder, way.key), "cooked"
            empty = stage.options.get("optional") and not summary.get("items", 1)
            place, why = ("", "it made no items; left out") if empty else (str(folder), "")
        seconds = seconds_of(folder) if state in ("cooked", "unchanged") else 0.0
        return StageResult(stage.name, stage.does, state, place or "", summary, seconds, why)

    def _cooked(self, stage: RecipeStage, inputs: tuple[str, ...], folder: Path, key: str) -> Json:
        """Run a stage in a temporary folder and return the summary. If the stage succeeds, the temporary folder is
        renamed to `folder`.
        """
        draft, work = folder.with_name(f".{folder.name}{DRAFT}"), self.out / WORK / f"{stage.name}-{key[:12]}"
        shutil.rmtree(draft, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        engine = self.engine if stage.step.spread else None
        names = tuple(name for name in stage.sources if name in self.full)
        job = StageJob(stage.name, self.recipe, stage.options, inputs, draft, work, self.progress, engine, names)
        start, worked = time.monotonic(), processor_seconds()
        self.until_the_end.enter_context(session(engine))  # a cluster that is started here is used by all later stages
        summary = work_of(stage.does)(job)
        record = {
            "creperie": __version__,
            "stage": stage.name,
            "does": stage.does,
            "key": key,
            "options": dict(stage.options),
            # records do not depend on where the run's folder is
            "inputs": [
                {"place": place.removeprefix(f"{self.out}{os.sep}"), "digest": output_digest(place)} for place in inputs
            ],
            "summary": summary,
        }
        spent = {"seconds": time.monotonic() - start, "processor": processor_seconds() - worked}
        write_json(draft / RECORD, record)
        # with the checksums of all output, which may contain times as well
        write_json(draft / TIME, {name: round(value, 3) for name, value in spent.items()}, files=_checked_files(draft))
        if folder.exists():
            shutil.rmtree(folder)
        draft.replace(folder)
        shutil.rmtree(work, ignore_errors=True)
        return summary


def processor_seconds() -> float:
    """Return the processor time of this process and of its child processes (such as parsers) that have ended."""
    return sum(os.times()[:4])


class Route(NamedTuple):
    """What happens to a stage, and the path of its output; None if the output does not exist yet."""

    state: State | None  #: None: it is to run
    place: str | None
    why: str = ""
    key: str = ""
    summary: Mapping[str, Any] = MappingProxyType({})


def route(stage: RecipeStage, inputs: Sequence[str | None], folder: Path, given: str | None, full: Set[str]) -> Route:
    """Return what happens to a stage. `given` is the output that the user gave, and `full` are the names of the stages
    that have an output. An input is None if it does not exist yet.

    A skipped stage that would have produced a benchmark passes its first input on.
    """
    if given is not None:
        return Route("given", given, f"given: {given}")
    if stage.skip:
        return Route("skipped", inputs[0] if inputs and stage.step.gives == "benchmark" else "", stage.skip)
    if why := nothing_to_do(stage, full):
        return Route("skipped", "", why)
    known = tuple(place for place in inputs if place is not None)
    if len(known) < len(inputs):
        return Route(None, None)
    key = stage_key(stage, known)
    record = kept_record(folder, key)
    return Route("unchanged", str(folder), "", key, record["summary"]) if record else Route(None, None, "", key)


def nothing_to_do(stage: RecipeStage, full: Set[str]) -> str:
    """Return why a stage cannot run, such as an optional source that is missing or an input that was skipped. The text
    is empty if the stage can run. `full` are the names of the stages that have an output.
    """
    if stage.options.get("optional") and "source" in stage.options:
        if stage.step.gives != "benchmark":
            return "" if Path(stage.options["source"]).exists() else "the source is missing"
        try:
            load(stage.options["source"])
        except CreperieError as e:
            return f"the source is missing: {e.what}"
    if stage.sources and not stage.step.any_input and stage.sources[0] not in full:
        return f"{stage.sources[0]} is skipped"
    return "all its inputs are skipped" if stage.sources and not full & {*stage.sources} else ""


def folder_of(out: Path, number: int, stage: RecipeStage) -> Path:
    return out / f"{number:02d}-{stage.name}"


def kept_record(folder: Path, key: str) -> Json | None:
    """Return the record of a stage that was run with this key. Return None if there is no such record, or if a file of
    the stage's output is missing or damaged.
    """
    try:
        record = read_json(folder / RECORD)
        check_files(folder, read_checked(folder / TIME)[1] if (folder / TIME).is_file() else None)
    except CreperieError:
        return None
    whole = isinstance(record, dict) and record.get("key") == key and isinstance(record.get("summary"), dict)
    return record if whole else None


def _checked_files(folder: Path) -> list[str]:
    """Return the files that show whether a stage's output is intact. Markdown, large files, the audit, and the file
    with the stage's time are left out.
    """
    files = (p for p in folder.rglob("*") if p.is_file() and p.suffix != ".md" and p.name not in (AUDIT_FILE, TIME))
    return sorted(p.relative_to(folder).as_posix() for p in files if p.stat().st_size <= LARGE)


def seconds_of(folder: Path) -> float:
    """Return how many seconds a stage took in its last run; 0 if unknown."""
    try:
        return float(read_json(folder / TIME)["seconds"])
    except (CreperieError, KeyError, TypeError, ValueError):
        return 0.0


def stage_key(stage: RecipeStage, inputs: tuple[str, ...]) -> str:
    """Return a digest of everything that a stage depends on: its step and options, the files that the options name
    (models, captions, prompts), its inputs with their images, the available attackers and plug-ins, and creperie's
    version.
    """
    named = [*_texts(stage.options[name] for name in stage.step.files), *models_of(stage.options)]
    named += _texts(stage.options.get(name, "") for name in CONTENT_OPTIONS)
    content = {
        "does": stage.does,
        "options": dict(stage.options),
        "inputs": [output_digest(place) for place in inputs],
        "files": {spec: named_content(spec) for spec in dict.fromkeys(named) if spec},
        "images": _images_digest(stage, inputs),
        "attackers": _attackers(stage),
        "plugins": plugins_digest(),
        "creperie": __version__,
    }
    return digest_of(content)


def _attackers(stage: RecipeStage) -> Json:
    """Return what a stage's attackers depend on: the names of those that can run here, and digests of their models'
    files. The result is empty if the stage has no attackers.
    """
    from creperie.auditing import AttackerModels, attackers_origin

    if "auditing:AttackerModels" not in stage.step.settings:
        return {}
    own = {name: stage.options[name] for name in options_in(AttackerModels)}
    models = options_from(AttackerModels, own, where=f"stage {stage.name}")
    return attackers_origin(tuple(stage.options.get("attackers", ())), models)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from [value] if isinstance(value, str) else map(str, value or ())


def _images_digest(stage: RecipeStage, inputs: Sequence[str]) -> str:
    """Return a digest of the input benchmark with the images from the stage's option `images`. It is empty if the
    option is not set.
    """
    if not (images := stage.options.get("images")):
        return ""
    try:
        return benchmark_digest(load(stage.options.get("source") or inputs[0], images=images))
    except (CreperieError, IndexError):  # captions in a text file, or something missing, which the stage will report
        return named_content(str(images))


def output_digest(place: str, places: Sequence[str] = ()) -> str:
    """Return a digest of a stage's output. A benchmark is hashed with its images. Any other output is hashed with all
    its files, except the stage's records.

    The digest does not depend on the path of the run's folder, which is removed from the files' content before hashing.
    `places` are the forms in which the path may occur: relative, absolute, or from before the folder was moved.
    """
    folder = Path(place)
    if not folder.is_dir() or (folder / MANIFEST_FILE).is_file():
        return benchmark_digest(load(place))
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in (RECORD, TIME)):
        name, digest = path.relative_to(folder).as_posix(), _content_digest(path, places)
        whole.update(f"{name}\0{digest}\n".encode())
    return whole.hexdigest()


def without_folder(content: bytes, places: Sequence[str]) -> bytes:
    """Return the content without the path of a run's folder. `places` are the forms in which the path may occur. Paths
    quoted in a URI are recognised too.

    >>> without_folder(b"small:runs/a/08-student/model?shots=runs%2Fa%2Fs.toml, data/x", ["runs/a"])
    b'small:08-student/model?shots=s.toml, data/x'
    """
    for path in (spelling for place in places for spelling in (f"{place}/", quote(f"{place}/", safe=""))):
        content = re.sub(rb"(?<![\w/.-])" + re.escape(path.encode()), b"", content)
    return content


def _content_digest(path: Path, places: Sequence[str]) -> str:
    if path.stat().st_size > LARGE:
        return remembered_sha256(path)
    content = path.read_bytes()
    if path.suffix == ".json":  # without its checksums, which depend on the run's folder if the content names it
        document = read_json(path)
        if path.name == RUN_FILE and isinstance(document, dict):  # scoring again gives the same run
            document = {k: v for k, v in document.items() if k not in PASSING}
        content = json.dumps(document, sort_keys=True, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return hashlib.sha256(without_folder(content, places)).hexdigest()


def _summary_of_given(stage: RecipeStage, place: str) -> Json:
    """Return a summary of an output that the user gave. Raise an error if the stage would not produce such an
    output.
    """
    if stage.step.gives == "benchmark":
        bench = load(place)
        return {"items": len(bench), "subsets": bench.subsets}
    if not Path(place).is_dir():
        raise UsageError("there is no such folder", where=place, hint=f"name a folder for {stage.name!r} with `use=`")
    return {}
