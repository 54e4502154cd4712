"""Recipes: a sequence of stages with options for each profile, read from YAML and checked line by line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from creperie.core import DataError, Json, UsageError, check_name, option, unknown
from creperie.recipes.steps import STEPS, StageKind
from creperie.recipes.yaml_lines import Marked, read_marked, read_marked_file

PROFILES = ("small", "local", "paper")
#: other names of recipes, as the papers write them → file names
PAPER_NAMES = {"sugarcrepe++": "sugarcrepe-pp", "scpp": "sugarcrepe-pp", "hit or be hit": "hit-or-be-hit"}
HERE = "{recipe}"  #: in options: stands for the folder of the recipe's file
DATA = "{data}"  #: in options: stands for the folder of released files, which the user names
BY_SCRIPTS = " (answered by scripts, not by people)"  #: what is said of stages whose annotators are programs
_TOP = ("recipe", "title", "about", "stages")
_STAGE = ("name", "does", "about", "from", "with", *PROFILES)


@dataclass(frozen=True)
class CookOptions:
    """The options for running a recipe: its profile, and changes to its stages."""

    profile: str = option(
        "small", "Parameters: small (built-in world), local (released files) or paper.", choices=PROFILES
    )
    data: str = option("", "Folder of released files, which the profile local reads.", metavar="DIR")
    changes: tuple[str, ...] = option(
        (), "Change one option of a stage.", flags="--set", metavar="STAGE.OPTION=VALUE", whole=True
    )
    use: tuple[str, ...] = option(
        (), "Take a stage's output from a folder or BENCH.", metavar="STAGE=PLACE", whole=True
    )
    prompts: str = option(
        "", "Prompts of your own: a folder of prompt files, or one file of the papers' prompts.", metavar="DIR|FILE"
    )


@dataclass(frozen=True)
class RecipeStage:
    """One stage of a recipe in one profile. `skip` is the reason for skipping the stage. Later stages then use the
    skipped stage's input in place of its output.
    """

    name: str
    does: str
    options: Mapping[str, Any]
    sources: tuple[str, ...]
    about: str = ""
    skip: str = ""

    @property
    def step(self) -> StageKind:
        return STEPS[self.does]


@dataclass(frozen=True)
class Recipe:
    """A recipe in one profile, with its stages."""

    name: str
    title: str
    profile: str
    file: str
    stages: tuple[RecipeStage, ...]
    about: str = ""
    prompts: tuple[str, ...] = ()  #: names of the papers' prompts whose wording the user gave


def list_recipes() -> dict[str, Path]:
    """Return the file of each recipe that comes with creperie, by name."""
    folder = Path(str(resources.files("creperie.recipes").joinpath("cookbook")))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"), key=lambda p: p.stem)}


def find_recipe(name: str) -> Path:
    """Return the file of a recipe. `name` is a path, or the name of a recipe that comes with creperie or of its
    paper.
    """
    known = list_recipes()
    if (paper := PAPER_NAMES.get(name.lower(), name)) in known:
        return known[paper]
    path = Path(name)
    if path.is_file():
        return path
    if path.suffix in (".yaml", ".yml") or path.parent != Path():
        raise UsageError("there is no such recipe", where=name, hint=f"the cookbook has: {', '.join(known)}")
    raise unknown("recipe", name, [*known, *PAPER_NAMES])


def chosen_recipe(name: str, options: CookOptions) -> Recipe:
    """Return the recipe with this name or file. `options` give its profile and the changes to its stages."""
    file, changes = find_recipe(name), parse_changes(options.changes)
    if options.data and not Path(options.data).is_dir():
        raise UsageError("there is no such folder", where=f"--data {options.data}", hint="check the path")
    data = options.data and Path(options.data).absolute()
    recipe = read_recipe(file, options.profile, changes, data)
    if not options.prompts:
        return recipe
    from creperie.recipes.figure_prompts import prompt_folder

    folder, given = prompt_folder(options.prompts)
    own = {f"{s.name}.prompts": str(folder.absolute()) for s in recipe.stages if "prompts" in s.options}
    return replace(read_recipe(file, options.profile, own | changes, data), prompts=given)


def read_recipe(
    path: Path, profile: str = "small", changes: Mapping[str, Any] | None = None, data: str | Path = ""
) -> Recipe:
    """Read a recipe from its file. `changes` (`{"stage.option": value}`) override single options of the file; `data` is
    the folder of released files that the profile `local` reads.
    """
    check_name("profile", profile, PROFILES)
    doc = read_marked_file(path)
    top = doc.mapping((), _TOP, "is not a recipe")
    name, stages = _text(doc, top, "recipe"), top.get("stages")
    if not isinstance(stages, list) or not stages:
        raise DataError("has no stages", where=doc.where("stages"), hint="write a list of stages, each with a name")
    if profile == "local" and not any(isinstance(stage, dict) and profile in stage for stage in stages):
        raise UsageError("this recipe has no profile `local`", where=path, hint="choose another profile")
    own = _split(changes or {})
    places = {HERE: str(path.resolve().parent), DATA: str(data)}
    made: list[RecipeStage] = []
    for i in range(len(stages)):
        made.append(_stage(doc, i, profile, places, made, own))
    for stage in own:
        check_name("stage", stage, [s.name for s in made], where="--set")
    return Recipe(name, str(top.get("title", name)), profile, str(path), tuple(made), str(top.get("about", "")))


def _stage(
    doc: Marked,
    i: int,
    profile: str,
    places: Mapping[str, str],
    before: list[RecipeStage],
    changes: Mapping[str, Mapping[str, Any]],
) -> RecipeStage:
    at = ("stages", i)
    entry = doc.mapping(at, _STAGE, "is not a stage")
    name = _text(doc, entry, *at, "name")
    if name in {s.name for s in before}:
        raise DataError(f"two stages are called {name!r}", where=doc.where(*at, "name"), hint="rename one")
    given: dict[str, tuple[Any, str]] = {}  # option → value, and its position in the file
    if profile == "local" and profile not in entry and any(other in entry for other in PROFILES):
        given["skip"] = ("not part of the local profile", doc.where(*at))
    for block in ("with", profile):
        values = entry.get(block) or {}
        if not isinstance(values, dict):
            raise DataError(
                f"{block!r} is not a mapping of options",
                where=doc.where(*at, block),
                hint="write `option: value` lines below it",
            )
        given |= {k: (v, doc.where(*at, block, k)) for k, v in values.items()}
    given |= {k: (v, f"--set {name}.{k}") for k, v in changes.get(name, {}).items()}
    does, at_does = given.pop("does", (entry.get("does"), doc.where(*at, "does")))
    check_name("step", str(does), STEPS, where=at_does)
    skip, at_skip = given.pop("skip", ("", ""))
    stated_about, _ = given.pop("about", (entry.get("about", ""), ""))
    value, at_from = given.pop("from", (entry.get("from"), doc.where(*at, "from")))
    sources = _sources(STEPS[does], [s.name for s in before], value, at_from)
    options = _options(STEPS[does], given, doc.where(*at), places, skipped=bool(skip))
    if not isinstance(skip, (str, bool)):
        raise DataError("'skip' must be true, or the reason for skipping as text", where=at_skip)
    about = str(stated_about) + (BY_SCRIPTS if options.get("scripted") else "")
    return RecipeStage(name, does, options, sources, about, "as requested" if skip is True else str(skip or ""))


def _sources(step: StageKind, names: list[str], value: Any, where: str) -> tuple[str, ...]:
    """Return the names of the stages whose outputs a stage takes as input. By default, a stage takes only the output of
    the stage before it.
    """
    if value is None:
        return (names[-1],) if step.takes and names else ()
    names_given = [value] if isinstance(value, str) else value
    if not isinstance(names_given, list) or not all(isinstance(w, str) for w in names_given):
        raise DataError("'from' must be the name of a stage, or a list of such names", where=where)
    for name in names_given:
        check_name("earlier stage", name, names, where=where)
    if len(names_given) > 1 and step.takes < 2:
        raise DataError("this step takes only one input", where=where, hint="put a stage that does `join` before it")
    return tuple(names_given) if step.takes else ()


def _options(
    step: StageKind, given: Mapping[str, tuple[Any, str]], where: str, places: Mapping[str, str], *, skipped: bool
) -> Json:
    options = dict(step.options)
    for name, (value, at) in given.items():
        if name not in step.options:
            raise unknown("option", name, [*step.options, "skip", "does", "from"], where=at)
        value = _placed(value, places, at)
        if about := step.declared.get(name):
            typed = about.checked(value, at)
            options[name] = (
                list(typed) if isinstance(typed, tuple) else str(typed) if isinstance(typed, Path) else typed
            )
        elif isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            options[name] = value
        else:
            raise DataError(
                f"{name!r} is {str(value)[:40]!r}, expected keys with texts", where=at, hint="write `KEY: TEXT` lines"
            )
    missing = [name for name in step.required if not options[name]]
    if missing and not skipped:
        raise DataError(
            f"option {missing[0]!r} is missing",
            where=where,
            hint=f"add `{missing[0]}: VALUE` to the stage ({step.what})",
        )
    return options


def _placed(value: Any, places: Mapping[str, str], where: str) -> Any:
    """Return an option's value with placeholders such as `{recipe}` and `{data}` replaced by folders."""
    if isinstance(value, list):
        return [_placed(part, places, where) for part in value]
    if not isinstance(value, str):
        return value
    for name, folder in places.items():
        if name in value and not folder:
            raise UsageError(
                "this profile needs the files that the authors released",
                where=where,
                hint="give the folder that holds them: --data DIR",
            )
        value = value.replace(name, folder)
    return value


def _text(doc: Marked, entry: Mapping[str, Any], *path: str | int) -> str:
    """Return the value of `entry` under the last key of `path`. If the value is missing or not a valid name, raise a
    DataError that names the line of `path` in the document.
    """
    value = entry.get(str(path[-1]))
    if not isinstance(value, str) or not value or "/" in value or value.startswith("."):
        raise DataError(f"{path[-1]!r} is missing or not a name", where=doc.where(*path), hint="write a short name")
    return value


def _split(changes: Mapping[str, Any]) -> dict[str, Json]:
    own: dict[str, Json] = {}
    for key, value in changes.items():
        stage, dot, option = key.partition(".")
        if not dot or not stage or not option:
            raise UsageError(f"`changes={key}` names no option of a stage", hint="write stage.option")
        own.setdefault(stage, {})[option] = value
    return own


def parse_changes(texts: tuple[str, ...]) -> Json:
    """Parse changes of the form `stage.option=value`, whose values are YAML.

    >>> parse_changes(("make.seed=3", "score.tasks=[tot]"))
    {'make.seed': 3, 'score.tasks': ['tot']}
    """
    changes = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text!r} has no value", hint="write --set stage.option=value")
        try:
            changes[key.strip()] = read_marked(value, "--set").value if value else ""
        except DataError:
            changes[key.strip()] = value
    return changes
