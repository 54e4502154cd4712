"""Separate a model's reasoning (its thoughts) from its answer. Tell complete answers from those that were cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from creperie.core import packaged_toml

_MARKS = packaged_toml("creperie.models", "marks.toml")
#: the marks around a thought, and those around a final answer
THOUGHTS = [[re.compile(re.escape(mark), re.IGNORECASE) for mark in known["marks"]] for known in _MARKS["thought"]]
_ANSWERS = [
    re.compile(re.escape(begin) + "(.*?)(?:" + re.escape(end) + "|$)", re.IGNORECASE | re.DOTALL)
    for begin, end in _MARKS["answer"]["marks"]
]
_ALL = [
    mark for pair in (*(known["marks"] for known in _MARKS["thought"]), *_MARKS["answer"]["marks"]) for mark in pair
]
_ENDS = re.compile("(?:" + "|".join(map(re.escape, _MARKS["answer"]["ends"])) + r"|\s)+$")
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_INNER = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}")


class GeneratedText(str):
    """A generated answer, without the thoughts before it.

    `cut` is True if the text reached the token limit or ended inside a thought. Such a text does not count as an
    answer. `top` holds, on request, the log-probabilities of each token and of the likeliest alternatives.
    """

    thought: str = ""
    cut: bool = False
    top: tuple[dict[str, float], ...] = ()


def reply_of(text: str, *, thought: str = "", cut: bool = False, asked: str = "") -> GeneratedText:
    """Return the answer in a model's text, separated from its thoughts.

    `thought` is the model's thought if a server sent it separately. `asked` is the end of the prompt; a chat template
    may already begin a thought there.

    >>> reply = reply_of("<think>A cat or a dog? A dog.</think> B")
    >>> reply, reply.thought, reply.cut
    ('B', 'A cat or a dog? A dog.', False)
    >>> reply_of("<think>There is no doubt that").cut
    True
    """
    if isinstance(text, GeneratedText):
        return text
    written, answer, open_end = _split(text, asked)
    reply = GeneratedText(_ENDS.sub("", answer) if written or answer != text else text)
    reply.thought = "\n".join(part for part in (thought, written) if part)
    reply.cut = cut or open_end
    return reply


def joined(replies: Sequence[GeneratedText]) -> GeneratedText:
    """Return several samples of an answer as one text. It is marked as cut off if any sample is cut off."""
    if len(replies) == 1:
        return replies[0]
    whole = GeneratedText(" | ".join(replies))
    whole.thought, whole.cut = " | ".join(r.thought for r in replies).strip(" |"), any(r.cut for r in replies)
    return whole


def decoded_reply(tokenizer: Any, ids: Any, *, ended: bool, asked: Any = ()) -> GeneratedText:
    """Decode the tokens that a local model wrote and return them as a reply. `ended` is False if the token limit cut
    them off, and `asked` are the tokens of the prompt.
    """
    # Special tokens that mark thoughts or final answers, which decoding would drop, are kept.
    text, whole = (str(tokenizer.decode(ids, skip_special_tokens=skip)) for skip in (True, False))
    before = str(tokenizer.decode(asked[-8:], skip_special_tokens=False)) if len(asked) else ""
    marks = [mark for mark in _ALL if mark in whole and mark not in text]
    if marks:
        for token in {*tokenizer.all_special_tokens} - {*marks}:
            whole = whole.replace(token, "")
    return reply_of(whole if marks else text, cut=not ended, asked=before)


def _split(text: str, asked: str) -> tuple[str, str, bool]:
    """Return the thought, the answer, and a flag that is True if the text ends inside the thought."""
    for begin, end in THOUGHTS:
        opening, closings = begin.search(text), list(end.finditer(text))
        if closings:
            inside, after = text[: closings[-1].start()], text[closings[-1].end() :]
            first, inside = ("", inside) if opening is None else (inside[: opening.start()], inside[opening.end() :])
            if again := begin.search(after):
                return text, after[: again.start()].strip(), True
            if after.strip():
                return (first + inside).strip(), after.strip(), False
            return inside.strip(), first.strip(), False
        if opening:
            return text[opening.end() :].strip(), text[: opening.start()].strip(), True
        if re.search(f"(?:{begin.pattern})$", asked.rstrip(), re.IGNORECASE):
            return text.strip(), "", True
    return "", text, False


def final_answer(text: str) -> str:
    """Return the final answer in a text: the part between marks, in a box, or in JSON. Without any of these, return the
    whole text.

    >>> [final_answer(t) for t in ("Sure. <answer>A</answer>", "so $\\\\boxed{\\\\text{B}}$", '{"answer": "(2)"}', "C")]
    ['A', 'B', '(2)', 'C']
    """
    text = _ENDS.sub("", text)
    for pattern in _ANSWERS:
        if (between := pattern.findall(text)) and between[-1].strip():
            text = between[-1].strip()
            break
    if boxes := _BOXED.findall(text):
        text = _INNER.sub(r"\1", boxes[-1]).strip()
    return _from_json(text)


def _from_json(text: str) -> str:
    """Return the answer in the last JSON object of a text. Return the whole text if it has no JSON object, or if the
    last one has no answer.
    """
    at, value = text.find("{"), None
    while at >= 0:
        try:
            document, end = json.JSONDecoder().raw_decode(text, at)
            value = _value(document)
        except ValueError:
            end = at + 1
        at = text.find("{", end)
    return text if value is None else value


def _value(document: Mapping[str, Any]) -> str | None:
    lower = {str(key).lower().replace(" ", "_"): value for key, value in document.items()}
    named = [key for key in _MARKS["answer"]["keys"] if key in lower]
    value = lower[named[0]] if named else next(iter(lower.values())) if len(lower) == 1 else None
    if isinstance(value, Mapping):
        return _value(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, (str, int)) else None
