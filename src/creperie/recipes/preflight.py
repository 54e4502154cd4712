"""Run a recipe by name, after checking its requirements: packages, model names, data, keys and disk space."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from creperie.core import CreperieError, MissingExtraError, Progress, UsageError, silent
from creperie.engine import Engine
from creperie.recipes.forecast import PlanLine, plan_recipe
from creperie.recipes.kitchen import StageResult, Tell, run_stages
from creperie.recipes.recipe import Recipe, RecipeStage, find_recipe, read_recipe
from creperie.recipes.steps import models_of

#: packages of makers that parse captions
PARSING = ("spacy", "lemminflect", "wordfreq", "rapidfuzz", "networkx", "nltk")
ITEM_BYTES = 4_000  #: bytes on disk per item, with its scores and candidates
SMALL = 64 << 20  #: bytes below which disk space is not checked
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Shortfall:
    """Something that a stage needs and that is missing. If `blocks` is False, the stage can run anyway and downloads
    what is missing.
    """

    stage: str
    kind: str
    message: str
    hint: str = ""
    blocks: bool = True


def check_plan(lines: Sequence[PlanLine], out: Path) -> list[Shortfall]:
    """Return the missing requirements of all stages that are yet to run, without duplicates."""
    gaps = [short for line in lines if line.state == "to do" for short in _of_stage(line)]
    gaps += _of_machine(lines, out)
    return list({(s.kind, s.message): s for s in reversed(gaps)}.values())[::-1]


def _of_stage(line: PlanLine) -> Iterator[Shortfall]:
    stage = line.stage
    if line.expected.note.startswith("not here yet"):
        hint = f"--set {stage.name}.source=PLACE, `creperie data get NAME`, or --use {stage.name}=BENCH"
        yield Shortfall(stage.name, "data", f"{stage.options['source']}: {line.expected.note}", hint)
    elif (images := stage.options.get("images")) and not Path(images).exists():
        hint = f"--set {stage.name}.images=FOLDER"
        yield Shortfall(stage.name, "data", f"{images}: there is no such images folder or file", hint)
    for uri in models_of(stage.options):
        yield from _of_model(stage.name, uri)
    for module in _modules(stage):
        if find_spec(module) is None:
            yield _absent(stage.name, module)
    for work in _tools(stage):
        try:
            work()
        except CreperieError as e:
            yield Shortfall(stage.name, "package", e.what, e.hint)


def _absent(stage: str, module: str, extra: str = "all") -> Shortfall:
    return Shortfall(
        stage, "package", f"the Python package {module!r} is not installed", f"pip install 'creperie[{extra}]'"
    )


def _modules(stage: RecipeStage) -> Iterator[str]:
    """Yield the Python packages that a stage imports, other than those of its models."""
    from creperie.auditing import entry_of

    yield from stage.step.packages
    if any("parser" in needs for needs in _makers_need(stage)):
        yield from PARSING
    if stage.options.get("scripted"):
        yield "httpx"
    if "lora" in stage.options.get("ways", ()):
        yield "peft"
    for name in (*stage.options.get("attackers", ()), *stage.options.get("held_out", ())):
        entry = entry_of(name)
        if entry.needs and not entry.model:  # a model of its own is checked as a model
            yield entry.needs.partition("|")[0]


def _makers_need(stage: RecipeStage) -> list[str]:
    from creperie.making import MAKERS

    return [MAKERS[maker].needs for maker in stage.options.get("makers", ()) if maker in MAKERS]


def _tools(stage: RecipeStage) -> Iterator[Callable[[], object]]:
    """Yield functions that open the tools and data that a stage needs; each raises an error if its tool is missing."""
    from creperie.lang import default_parser, open_wordnet, parse_linkage

    needs = " ".join(_makers_need(stage))
    if "parser" in needs and not stage.options.get("parser") and find_spec("spacy"):
        yield default_parser
    if "WordNet" in needs:
        yield open_wordnet
    checked = (*stage.options.get("attackers", ()), *stage.options.get("held_out", ()))
    if "blind:grammar" in models_of(stage.options) or ("grammar" in checked and not stage.options.get("grammar")):
        yield lambda: parse_linkage("")


def _of_model(stage: str, uri: str) -> Iterator[Shortfall]:
    """Yield what a model lacks: a valid name, packages, an API key or weights. The model is not loaded."""
    from creperie.models import check_uri, missing_packages, parse_uri

    try:
        check_uri(uri)
    except MissingExtraError as e:
        absent = missing_packages(parse_uri(uri))
        yield from (_absent(stage, package, extra) for package, extra in absent)
        if not absent:
            yield Shortfall(stage, "package", e.what, e.hint)
    except CreperieError as e:
        yield Shortfall(stage, "model", f"{e.where}: {e.what}" if e.where else e.what, e.hint)
        return
    parsed = parse_uri(uri)
    if parsed.name.startswith("pkg:"):
        return
    if parsed.kind == "api":
        key = parsed.options.get("key_env", "OPENAI_API_KEY")
        if "base_url" not in parsed.options and not os.environ.get(key):
            yield Shortfall(stage, "key", f"{uri}: no key in the environment variable {key}", f"export {key}=…")
    elif HUB_NAME.fullmatch(parsed.name) and not Path(parsed.name).exists() and not _cached(parsed.name):
        yield Shortfall(stage, "weights", f"{uri}: not in the local cache, will be downloaded", blocks=False)


def _cached(name: str) -> bool:
    from creperie.models import OPENCLIP_RANDOM

    if name.endswith(f"/{OPENCLIP_RANDOM}"):
        return True  # nothing to download
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return False
    files = ("config.json", "open_clip_config.json", "modules.json")
    return any(isinstance(try_to_load_from_cache(name, file), str) for file in files)


def _of_machine(lines: Sequence[PlanLine], out: Path) -> Iterator[Shortfall]:
    """Yield a Shortfall if the disk has too little space for the output of all stages."""
    needed = sum(line.expected.items or 0 for line in lines if line.state == "to do") * ITEM_BYTES
    place = next(p for p in (out.absolute(), *out.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free
    if needed > max(free, SMALL):  # a small job fails by itself when the disk is full
        text = f"about {needed >> 20:,} MB are needed under {place}, {free >> 20:,} MB are free"
        yield Shortfall("", "disk", text, "choose another --out")


NAMED = 4  #: number of missing requirements, besides packages, that an error names before it counts the rest


def cook(
    recipe: str | Path | Recipe,
    out: str | Path | None = None,
    *,
    profile: str = "small",
    changes: Mapping[str, Any] | None = None,
    use: Mapping[str, str] | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
    tell: Tell = lambda line: None,
) -> list[StageResult]:
    """Run a recipe and return one result per stage. `recipe` is the name of one that comes with creperie, a YAML file,
    or a `Recipe`.

    `changes` override single options (`{"score.models": ["blind:length"]}`). `use` maps the name of a stage to a folder
    or benchmark that replaces its output. `out` is `out/cook/RECIPE-PROFILE` by default. Stages in it are not run again
    if nothing has changed.
    """
    read = recipe if isinstance(recipe, Recipe) else read_recipe(find_recipe(str(recipe)), profile, changes)
    folder = Path(out) if out is not None else default_folder(read)
    refuse_gaps(check_plan(plan_recipe(read, folder, use), folder), read)
    return run_stages(read, folder, use=use, engine=engine, progress=progress, tell=tell)


def default_folder(recipe: Recipe) -> Path:
    return Path("out/cook") / f"{recipe.name}-{recipe.profile}"


def refuse_gaps(shortfalls: list[Shortfall], recipe: Recipe) -> None:
    """Raise one error that names all missing requirements of stages that cannot run without them."""
    gaps = [short for short in shortfalls if short.blocks]
    if not gaps:
        return
    packages = [short for short in gaps if short.kind == "package"]  # all of them are named
    others = [short for short in gaps if short.kind != "package"]
    named = [f"{s.stage + ': ' if s.stage else ''}{s.message}" for s in (*packages, *others[:NAMED])]
    more = f"; and {len(others) - NAMED} more (--plan lists them)" if len(others) > NAMED else ""
    hint = (packages or gaps)[0].hint or "see `creperie cook RECIPE --plan`"
    raise UsageError(
        f"{len(gaps)} {'requirement is' if len(gaps) == 1 else 'requirements are'} missing: {'; '.join(named)}{more}",
        where=f"{recipe.name}, profile {recipe.profile}",
        hint=hint,
    )
