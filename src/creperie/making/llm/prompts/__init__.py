"""Prompts of the LLM makers: a TOML file each, with a role, rules, steps and demonstrations.

    role = "You write captions."
    rules = ["…"]

    [[step]]
    name = "locate"
    temperature = 0.0
    max_tokens = 120
    instruction = "…"
    given = ["caption"]                 # what the model is told
    answer = { concepts = "texts" }     # what it must answer: text, texts, text-or-na, yesno

    [[demonstration]]
    caption = "…"
    concepts = ["…"]

A demonstration serves every step whose fields it has.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from creperie.core import DataError, UsageError, unknown
from creperie.making.llm.parse import KINDS, schema_of

LEAST_DEMONSTRATIONS = 7


@dataclass(frozen=True)
class PromptStep:
    """One question of a workflow. `demonstrations` are pairs of what is given and what is answered."""

    name: str
    temperature: float
    max_tokens: int
    head: str  #: everything before the demonstrations
    given: tuple[str, ...]
    answer: Mapping[str, str]  #: field → kind
    demonstrations: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...]

    def text(self, given: Mapping[str, Any]) -> str:
        """The whole question. What changes stands last, so that servers can keep what they read before it."""
        shown = [f"Input: {_json(i)}\nOutput: {_json(o)}" for i, o in self.demonstrations]
        asked = _json({name: given[name] for name in self.given})
        return "\n\n".join([self.head, "Examples:", *shown, f"Now yours.\n\nInput: {asked}\nOutput:"])

    def schema(self) -> str:
        """Return the JSON schema of the answer, as JSON text."""
        return json.dumps({"name": self.name, "strict": True, "schema": schema_of(self.answer)})


@dataclass(frozen=True)
class Template:
    """The steps of one workflow by name, and a hash of all their words."""

    id: str
    steps: Mapping[str, PromptStep]
    digest: str

    def __getitem__(self, name: str) -> PromptStep:
        if name not in self.steps:
            raise DataError(f"has no step {name!r}", where=f"{self.id}.toml", hint="see docs/llm-making.md")
        return self.steps[name]


def template_names() -> list[str]:
    return sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml"))


@cache
def written_prompts(name: str, caption: str, folder: str = "") -> list[dict[str, Any]]:
    """Every question of a prompt file about a caption; what earlier answers would give stands in angle brackets."""
    questions = []
    for step in read_template(name, folder).steps.values():
        given = {field: caption if field in ("caption", "first") else f"<{field}>" for field in step.given}
        questions.append({"step": step.name, "text": step.text(given), "temperature": step.temperature})
    return questions


def read_template(name: str, folder: str = "") -> Template:
    """A prompt file by name, from a folder of your own where it has one of that name.

    >>> sorted(read_template("replace-object").steps)
    ['compose', 'locate', 'propose']
    """
    if name not in template_names():
        raise unknown("prompt file", name, template_names())
    own = Path(folder) / f"{name}.toml"
    if folder and not Path(folder).is_dir():
        raise UsageError("expected a folder of prompt files", where=folder, hint="see docs/llm-making.md")
    place = own if folder and own.is_file() else files(__name__) / f"{name}.toml"
    return parse_template(name, place.read_text(encoding="utf-8"), where=str(own) if place is own else "")


def parse_template(name: str, text: str, where: str = "") -> Template:
    """A prompt file's text; a DataError says what it lacks."""
    where = where or f"{name}.toml"
    try:
        document = tomllib.loads(text)
        steps = {s["name"]: _step(s, document, where) for s in document["step"]}
    except tomllib.TOMLDecodeError as e:
        raise DataError(f"is not TOML: {e}", where=where) from None
    except KeyError as e:
        raise DataError(f"lacks {e.args[0]!r}", where=where, hint="see docs/llm-making.md") from None
    return Template(name, steps, hashlib.sha256(text.encode()).hexdigest()[:16])


def _step(step: Mapping[str, Any], document: Mapping[str, Any], where: str) -> PromptStep:
    given, answer = tuple(step["given"]), dict(step["answer"])
    for kind in answer.values():
        if kind not in KINDS:
            raise unknown("kind of answer", kind, KINDS, where=f"{where}: step {step['name']}")
    needed = {*given, *answer}
    demonstrations = tuple(
        ({name: d[name] for name in given}, {name: d[name] for name in answer})
        for d in document["demonstration"]
        if needed <= set(d)
    )
    if len(demonstrations) < LEAST_DEMONSTRATIONS:
        what = f"step {step['name']} has {len(demonstrations)} demonstrations, needs {LEAST_DEMONSTRATIONS}"
        raise DataError(what, where=where, hint=f"write more, each with {', '.join(sorted(needed))}")
    rules = [f"{n}. {rule}" for n, rule in enumerate([*document["rules"], *step.get("rules", [])], 1)]
    last = "Answer with one JSON object, written as in the examples, and nothing else."
    head = "\n".join([document["role"], "", step["instruction"].strip(), "", "Rules:", *rules, "", last])
    temperature, most = float(step["temperature"]), int(step["max_tokens"])
    return PromptStep(step["name"], temperature, most, head, given, answer, demonstrations)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
