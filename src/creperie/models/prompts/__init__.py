"""Prompt texts: TOML files in this folder, and the user's own files, given by path.

    [[prompt]]
    id = "plain-question"
    kind = "yesno"                 # caption, vqa, yesno or choice
    text = 'Is this right: {caption}?'
    yes = ["yes"]
    no = ["no"]

`{caption}` is the caption; choice prompts have `{options}` (the labelled captions) and `{labels}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from creperie.core import DataError, parse_toml, read_text, unknown
from creperie.models.uri import ModelURI, parse_uri

KINDS = ("caption", "vqa", "yesno", "choice")
ASKS = ("match", "odd")
#: the fields that each kind needs beside its text
_NEEDS = {"caption": (), "vqa": ("answers",), "yesno": ("yes", "no"), "choice": ("asks", "labels")}
_PLACES = {"caption": (), "vqa": ("{caption}",), "yesno": ("{caption}",), "choice": ("{options}",)}


@dataclass(frozen=True)
class PromptText:
    """One prompt.

    `asks` is "match" (which caption fits?) or "odd" (which one does not?). `none` is the word for the answer that no
    option fits; it is empty if the prompt does not offer this answer. `labels` are the labels of the options, and
    `separator` is the text between options.
    """

    id: str
    kind: str
    text: str
    family: str = ""  #: prompts of one family are paraphrases of each other
    note: str = ""
    answers: tuple[str, ...] = ()
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    asks: str = ""
    none: str = ""
    labels: tuple[str, ...] = ()
    separator: str = "\n"

    @property
    def described(self) -> str:
        """All settings that affect the question or the parsing of its answer, as text for the fingerprint."""
        words = [*self.answers, *self.yes, *self.no, *self.labels, self.none]
        return f"{self.id}: {self.text}" + (f" {[self.separator, *words]}" if any(words) else "")

    def about(self, caption: str) -> str:
        """Return the question about one caption. Braces inside a caption have no special meaning.

        >>> PromptText("x", "yesno", "True or not: {caption}").about("a {red} cat")
        'True or not: a {red} cat'
        """
        return self.text.replace("{caption}", caption)

    def offering(self, options: tuple[str, ...]) -> str:
        """Return the question with these options, labelled."""
        labels = self.labels[: len(options)]
        listed = self.separator.join(f"{label} {option}" for label, option in zip(labels, options, strict=True))
        named = ", ".join([*labels, *([self.none] if self.none else [])])
        before, _, after = self.text.partition("{options}")
        return before.replace("{labels}", named) + listed + after.replace("{labels}", named)


_FIELDS = {field.name for field in fields(PromptText)}


@cache
def built_in() -> Mapping[str, PromptText]:
    """Return all prompts that come with creperie, by id."""
    prompts: dict[str, PromptText] = {}
    for file in sorted(files(__package__).iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            prompts |= _read(file.read_text(encoding="utf-8"), file.name)
    return prompts


def prompts_of(kind: str, asks: str = "") -> list[PromptText]:
    """Return the built-in prompts of a kind, in the order of their files. If `kind` is empty, return those of all
    kinds.

    >>> [p.id for p in prompts_of("choice", "odd")]
    ['odd-or-none', 'odd-or-none-reworded', 'odd-forced', 'odd-few-shot', 'odd-which']
    """
    return [p for p in built_in().values() if kind in ("", p.kind) and asks in ("", p.asks)]


def find_prompt(name: str | None, kind: str, *, default: str = "", where: str = "") -> PromptText:
    """Return the prompt that `name` selects. `name` is the id of a built-in prompt, a file (`my.toml`), or one prompt
    in a file (`my.toml#id`). Without `name`, return the prompt with the id `default`. Errors mention `where`.

    `name` may also be a folder with an id (`my/#id`), or only a folder (`my/`), which means the id `default`. A prompt
    with the id in one of the folder's files (caption.toml, choice.toml, vqa.toml and yesno.toml) replaces the built-in
    prompt. An empty `kind` accepts prompts of all kinds.
    """
    path, _, part = (name or default).partition("#")
    if path.endswith(".toml"):
        known: Mapping[str, PromptText] = read_prompts(path)
        prompt_id = part or next(iter(known))
    elif in_folder(name):
        own = [prompt for file in prompt_files(path) for prompt in read_prompts(file).values()]
        known, prompt_id = {**built_in(), **{p.id: p for p in own}}, part or default
    else:
        known, prompt_id = built_in(), path
    fitting = {p.id: p for p in known.values() if kind in ("", p.kind)}
    if prompt_id not in fitting:
        raise unknown(f"{kind} prompt".strip(), prompt_id, fitting, where=where or path)
    return fitting[prompt_id]


def in_folder(name: str | None) -> bool:
    """Return True if the option `prompt` of a URI names a folder of prompts, such as `my/` or `my/#id`."""
    path = (name or "").partition("#")[0]
    return "/" in path and Path(path).expanduser().is_dir()


def prompt_files(folder: str | Path) -> list[Path]:
    """Return the files in a folder that contain prompts for scoring."""
    files = [Path(folder).expanduser() / f"{kind}.toml" for kind in KINDS]
    return [file for file in files if file.is_file()]


def with_prompts(uri: str, folder: str | Path) -> str:
    """Return a model URI whose prompt is taken from a folder.

    The URI is returned unchanged if the model uses no prompt, if its prompt already comes from a file, or if the folder
    does not have the prompt that the URI names.
    """
    parsed = parse_uri(uri)
    prompt = parsed.options.get("prompt", "")
    if parsed.kind not in ("vlm", "api") or parsed.way in ("", "likelihood") or "/" in prompt or ".toml" in prompt:
        return uri
    if prompt and not any(prompt in read_prompts(file) for file in prompt_files(folder)):
        return uri
    place = f"{Path(folder).expanduser().absolute()}/" + (f"#{prompt}" if prompt else "")
    return str(ModelURI(parsed.kind, parsed.name, {**parsed.options, "prompt": place}))


def prompt_name(uri: ModelURI) -> tuple[str, bool]:
    """Return the name of a model's prompt (empty if the URI names no prompt), and whether the user supplied its text.

    >>> prompt_name(parse_uri("vlm:x?score=choice&prompt=%2Fmy%2F%23odd-forced"))
    ('odd-forced', True)
    """
    place, mark, name = uri.options.get("prompt", "").partition("#")
    own = bool(mark) or "/" in place or place.endswith(".toml")
    return (name if mark else place), own


def read_prompts(path: str | Path) -> dict[str, PromptText]:
    """Return the prompts in a file, by id."""
    return _read(read_text(Path(path).expanduser()), str(path))


def _read(text: str, where: str) -> dict[str, PromptText]:
    records = parse_toml(text, where).get("prompt")
    if not isinstance(records, list) or not records:
        raise DataError(
            "no [[prompt]] in this file", where=where, hint="add at least one; docs/generative.md shows an example"
        )
    prompts: dict[str, PromptText] = {}
    for number, record in enumerate(records, 1):
        prompt = _prompt(record, f"{where}: prompt {number}")
        if prompt.id in prompts:
            raise DataError(f"two prompts have the id {prompt.id!r}", where=where, hint="rename one")
        prompts[prompt.id] = prompt
    return prompts


def _prompt(record: Mapping[str, Any], where: str) -> PromptText:
    for name in record:
        if name not in _FIELDS:
            raise unknown("field", name, _FIELDS, where=where)
    for name in ("id", "kind", "text"):
        if not isinstance(record.get(name), str):
            raise DataError(f"{name!r} is missing or not text", where=where, hint=f'write {name} = "…"')
    if record["kind"] not in KINDS:
        raise unknown("kind of prompt", record["kind"], KINDS, where=where)
    for name in _NEEDS[record["kind"]]:
        if not record.get(name):
            raise DataError(f"a {record['kind']} prompt needs {name!r}", where=where)
    for place in _PLACES[record["kind"]]:
        if record["text"].count(place) != 1:
            raise DataError(f"the text must contain {place} exactly once", where=where)
    if record["kind"] == "choice" and record["asks"] not in ASKS:
        raise unknown("value of `asks`", str(record["asks"]), ASKS, where=where)
    return PromptText(**{name: _checked_value(name, value, where) for name, value in record.items()})


def _checked_value(name: str, value: Any, where: str) -> Any:
    if name in ("answers", "yes", "no", "labels"):
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise DataError(f"{name!r} is not a list of texts", where=where, hint=f'write {name} = ["…", "…"]')
        return tuple(value)
    if not isinstance(value, str):
        raise DataError(f"{name!r} is not text", where=where, hint="write it in quotes")
    return value
