"""Records of what generative models answered, with their reasoning in a separate field. The cache stores the answers by
question; a run stores them by item.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from creperie.core import one_line
from creperie.models import CUT, UNPARSABLE, Chosen, GatheredOnly, reply_of

T = TypeVar("T")

#: one answer: what was asked (which caption, or the order of the options), the answer, the thought, whether it was cut
Written = dict[str, Any]
WRITTEN = pa.struct([("asked", pa.string()), ("answer", pa.string()), ("thought", pa.string()), ("cut", pa.bool_())])
CUT_OFF, UNREAD = "cut-off-answer", "unparsable-answer"
#: the column of a run with the answers of each item
COLUMN = "answers"
#: a larger share of items with cut-off answers makes `creperie score` exit with code 3
MOST_CUT = 0.05


def written(asked: str, chosen: Chosen) -> Written:
    """Return an answer as a record for the log. `asked` is the order in which the options were offered, and `chosen` is
    the parsed answer.
    """
    reply = reply_of(chosen.answer)
    return {"asked": asked, "answer": str(reply), "thought": reply.thought, "cut": reply.cut}


def code_of(chosen: Chosen) -> str:
    """Return `CUT_OFF` if an answer was cut off, `UNREAD` if it cannot be parsed, and otherwise an empty string."""
    kinds = {CUT: CUT_OFF, UNPARSABLE: UNREAD}
    return kinds.get(chosen.parsed.kind, "") if chosen.parsed is not None else ""


def reason(chosen: Chosen) -> str:
    """Return the reason why an answer gives no score, followed by the text of the answer. If the model wrote only its
    reasoning, the end of the reasoning is quoted instead.
    """
    reply = reply_of(chosen.answer)
    text = one_line(reply, 120) if reply or not reply.thought else "…" + one_line(reply.thought[-120:], 120)
    return f"{chosen.parsed.why}: {text!r}" if chosen.parsed is not None else ""


def gather_first(model: Any, ask: Callable[[T], object], groups: Iterable[T]) -> None:
    """Send the requests of all groups in one batch and wait for the answers. Do nothing if the model uses no batch
    endpoint.

    `ask` is called on each group only to collect its requests. When the caller later asks the model the same questions,
    the answers come from the cache.
    """
    batches = getattr(getattr(model, "generator", None), "batches", None)
    if batches is None:
        return
    with batches.gathered():
        for group in groups:
            with suppress(GatheredOnly):
                ask(group)


@dataclass
class AnswerLog:
    """The answers of one model: a mapping from keys of questions to lists of answers. Each line of the file `path` is
    one key with its answers, as JSON.
    """

    path: Path | None  #: None: nothing is stored
    answers: dict[str, list[Written]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is None or not self.path.is_file():
            return
        for line in self.path.read_bytes().splitlines():
            try:
                key, records = json.loads(line)
                self.answers[key] = records
            except (ValueError, TypeError):  # a process died while it wrote the line
                continue

    def add(self, new: Mapping[str, list[Written]]) -> None:
        """Add the answers to this log, and append the changed ones to its file."""
        changed = {key: records for key, records in new.items() if self.answers.get(key) != records}
        self.answers |= changed
        if self.path is None or not changed:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                file.write(b"".join(b"\n" + json.dumps(entry).encode() for entry in changed.items()) + b"\n")
        except OSError:  # a full or read-only disk: the answers are still in the run
            self.path = None

    def of(self, keys: Iterable[str]) -> Iterator[Written]:
        """Yield the stored answers to the questions with these keys."""
        for key in keys:
            yield from self.answers.get(key, ())


def answer_column(answers: Mapping[int, Sequence[Written]], items: int) -> pa.Array:
    """Return the answers of all items as a column of a run's table."""
    return pa.array([list(answers.get(i, ())) for i in range(items)], pa.list_(WRITTEN))


def cut_items(answers: Mapping[int, Sequence[Written]]) -> list[int]:
    """Return the items that have at least one answer that was cut off."""
    return [item for item, records in answers.items() if any(record["cut"] for record in records)]


def cut_note(cut: int, items: int, room: Any) -> str:
    """Return a note that says how many items have a cut-off answer and how to raise the limit of `room` tokens. The
    note is empty if `cut` is 0.
    """
    more = f"?max_tokens={4 * int(room)} (now {room})" if room else "?max_tokens="
    what = f"{cut:,} of {items:,} items ({cut / max(1, items):.1%}) have a cut-off answer".replace("%", " %")
    return f"{what}: they have no score and are not in the accuracy; give answers more room with {more}" if cut else ""
