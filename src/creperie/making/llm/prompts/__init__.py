"""The prompts of the LLM makers: one TOML file each, with a role, rules, steps and demonstrations.

    role = "You write captions."
    rules = ["…"]

    [[step]]
    name = "locate"
    temperature = 0.0
    max_tokens = 120
    instruction = "…"
    given = ["caption"]                 # the fields of the input
    answer = { concepts = "texts" }     # the fields of the answer and their kinds: text, texts, text-or-na, yesno

    [[demonstration]]
    caption = "…"
    concepts = ["…"]

A demonstration is used in every step whose fields it has.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from creperie.core import DataError, Document, Json, UsageError, check_name

MOST_CHARACTERS = 2_000
#: Kinds of fields: a text of one line, a list of such texts (may be empty), a text or NA, yes or no.
KINDS = ("text", "texts", "text-or-na", "yesno")

Fields = dict[str, Any]


class MalformedError(Exception):
    """Raised for an answer that cannot be parsed. The message says why in a few words."""


def read_answer(text: str, wanted: Mapping[str, str]) -> Fields:
    """Return the fields of an answer, which must contain exactly one JSON object with exactly the wanted fields.

    A code fence or a sentence around the object is accepted, because the answer is unambiguous all the same.

    >>> read_answer('Here you are: {"new": "owl"}', {"new": "text"})
    {'new': 'owl'}
    >>> read_answer('{"new": "owl"} {"new": "cat"}', {"new": "text"})
    Traceback (most recent call last):
    creperie.making.llm.prompts.MalformedError: more than one JSON object
    """
    fields = _one_object(text.strip())
    missing, extra = [n for n in wanted if n not in fields], [n for n in fields if n not in wanted]
    if missing:
        raise MalformedError(f"lacks the field {missing[0]!r}")
    if extra:
        raise MalformedError(f"has the field {extra[0][:40]!r}, which was not asked for")
    return {name: _value(name, fields[name], kind) for name, kind in wanted.items()}


def _one_object(text: str) -> Json:
    start = text.find("{")
    if start < 0:
        raise MalformedError("no JSON object")
    decoder = json.JSONDecoder(object_pairs_hook=_once_each)
    try:
        fields, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        raise MalformedError("broken JSON") from None
    if "{" in text[end:] or "}" in text[end:]:
        raise MalformedError("more than one JSON object")
    assert isinstance(fields, dict)
    return fields


def _once_each(pairs: list[tuple[str, Any]]) -> Json:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise MalformedError(f"gives the field {twice[:40]!r} twice")
    return fields


def _value(name: str, value: Any, kind: str) -> Any:
    if kind == "texts":
        if not isinstance(value, list):
            raise MalformedError(f"the field {name!r} is not a list")
        return [_text(name, v) for v in value]
    text = _text(name, value)
    if kind == "yesno":
        if begins := re.match(r"(yes|no)\b", text.strip().casefold()):  # as published: what begins with yes accepts
            return begins[1]
        raise MalformedError(f"the field {name!r} is neither yes nor no")
    if is_na(text) and kind != "text-or-na":
        raise MalformedError(f"the field {name!r} is NA")
    return text


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise MalformedError(f"the field {name!r} is not text")
    if not value.strip():
        raise MalformedError(f"the field {name!r} is empty")
    if len(value) > MOST_CHARACTERS:
        raise MalformedError(f"the field {name!r} is too long")
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in value):
        raise MalformedError(f"the field {name!r} has line breaks or control characters")
    return value


def is_na(text: str) -> bool:
    """Return True if a text is NA or n/a.

    >>> is_na("NA"), is_na("n/a"), is_na("a nap")
    (True, True, False)
    """
    return text.strip().rstrip(".").casefold() in ("na", "n/a")


def schema_of(wanted: Mapping[str, str]) -> Json:
    """Return a JSON schema for the wanted fields, for servers that enforce schemas."""
    text = {"type": "string"}
    types = {
        "text": text,
        "text-or-na": text,
        "texts": {"type": "array", "items": text},
        "yesno": {"type": "string", "enum": ["yes", "no"]},
    }
    properties = {name: types[kind] for name, kind in wanted.items()}
    return {"type": "object", "properties": properties, "required": list(wanted), "additionalProperties": False}


LEAST_DEMONSTRATIONS = 7


@dataclass(frozen=True)
class PromptStep:
    """One question of a workflow. `demonstrations` are pairs of an input and its answer."""

    name: str
    temperature: float
    max_tokens: int
    head: str  #: everything before the demonstrations
    given: tuple[str, ...]
    answer: Mapping[str, str]  #: field → kind
    demonstrations: tuple[tuple[Document, Document], ...]

    def text(self, given: Document) -> str:
        """Return the whole question. What differs between captions comes last, so that servers can cache the part
        before it.
        """
        shown = [f"Input: {_json(i)}\nOutput: {_json(o)}" for i, o in self.demonstrations]
        asked = _json({name: given[name] for name in self.given})
        return "\n\n".join([self.head, "Examples:", *shown, f"Now yours.\n\nInput: {asked}\nOutput:"])

    def schema(self) -> str:
        """Return the JSON schema of the answer, as JSON text."""
        return json.dumps({"name": self.name, "strict": True, "schema": schema_of(self.answer)})


@dataclass(frozen=True)
class Template:
    """The steps of one workflow by name, and a hash of the prompt file. `again` is the text to send after an answer
    that only repeats the caption.
    """

    id: str
    steps: Mapping[str, PromptStep]
    digest: str
    again: str = ""

    def __getitem__(self, name: str) -> PromptStep:
        if name not in self.steps:
            raise DataError(f"has no step {name!r}", where=f"{self.id}.toml", hint="see docs/llm-making.md")
        return self.steps[name]


def template_names() -> list[str]:
    return sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml"))


def written_prompts(name: str, caption: str, folder: str) -> list[Json]:
    """Return every question of a prompt file about a caption. Values that come from earlier answers are in angle
    brackets.
    """
    questions = []
    for step in read_template(name, folder).steps.values():
        given = {field: caption if field in ("caption", "first") else f"<{field}>" for field in step.given}
        questions.append({"step": step.name, "text": step.text(given), "temperature": step.temperature})
    return questions


def read_template(name: str, folder: str = "") -> Template:
    """Return the prompt file with this name, from the user's folder if it has one, else from creperie's.

    >>> sorted(read_template("replace-object").steps)
    ['compose', 'locate', 'propose']
    """
    check_name("prompt file", name, template_names())
    own = Path(folder) / f"{name}.toml"
    if folder and not Path(folder).is_dir():
        raise UsageError("expected a folder of prompt files", where=folder, hint="see docs/llm-making.md")
    place = own if folder and own.is_file() else files(__name__) / f"{name}.toml"
    return parse_template(name, place.read_text(encoding="utf-8"), where=str(own) if place is own else "")


def parse_template(name: str, text: str, where: str = "") -> Template:
    """Return the template that a prompt file's text describes; raise a DataError that says what is missing."""
    where = where or f"{name}.toml"
    try:
        document = tomllib.loads(text)
        steps = {s["name"]: _step(s, document, where) for s in document["step"]}
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise DataError(f"is not TOML: {e}", where=where, hint="correct the file there") from None
    except KeyError as e:
        raise DataError(f"lacks {e.args[0]!r}", where=where, hint="see docs/llm-making.md") from None
    return Template(name, steps, hashlib.sha256(text.encode()).hexdigest()[:16], str(document.get("again", "")))


def _step(step: Document, document: Document, where: str) -> PromptStep:
    given, answer = tuple(step["given"]), dict(step["answer"])
    for kind in answer.values():
        check_name("kind of answer", kind, KINDS, where=f"{where}: step {step['name']}")
    needed = {*given, *answer}
    demonstrations = tuple(
        ({name: d[name] for name in given}, {name: d[name] for name in answer})
        for d in document["demonstration"]
        if needed <= set(d)
    )
    if len(demonstrations) < LEAST_DEMONSTRATIONS:
        raise DataError(
            f"step {step['name']} has {len(demonstrations)} demonstrations, needs {LEAST_DEMONSTRATIONS}",
            where=where,
            hint=f"add demonstrations, each with the fields {', '.join(sorted(needed))}",
        )
    rules = [f"{n}. {rule}" for n, rule in enumerate([*document["rules"], *step.get("rules", [])], 1)]
    last = "Answer with one JSON object, written as in the examples, and nothing else."
    head = "\n".join([document["role"], "", step["instruction"].strip(), "", "Rules:", *rules, "", last])
    limits = float(step["temperature"]), int(step["max_tokens"])
    return PromptStep(step["name"], *limits, head, given, answer, demonstrations)


def _json(value: Document) -> str:
    return json.dumps(value, ensure_ascii=False)
