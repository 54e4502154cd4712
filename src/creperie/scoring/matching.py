"""Match the answers in another harness's log to the items of a benchmark, by their ids or by the texts offered.

If a row of the log has an item's id, it matches that item. If the row also lists options, these must be the item's
captions. If no row can be matched, the rows are assumed to be in the order of the items, or of the questions of an
exported task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from creperie.bench import Benchmark, Item
from creperie.models import CUT, parse_choice, shares_of
from creperie.scoring.bridges import HarnessQuestion, questions_of
from creperie.scoring.logs import LETTERS, LoggedAnswer, UnmatchedRow, offered_in

Row = Mapping[str, Any]
OTHER_CAPTIONS = "its captions are not those of the item that it names"
OTHER_KEY = "its own key names another caption as the right answer"


@dataclass(frozen=True)
class HarnessReply:
    """The scores that an item gets from one row of an evaluation harness's log. `cells` lists the cells of the item's
    score matrix to which the scores belong; if it is empty, there is one score for each cell.
    """

    subset: str
    item: str
    values: np.ndarray
    cells: Sequence[int] = ()
    unread: str = ""
    cut: bool = False
    chosen: bool = False  #: options were offered in the order of `cells`, and one was chosen
    regraded: bool = False  #: the log counts the answer as right and we do not, or the other way round


class ItemFinder:
    """Finds the items that the rows of an evaluation harness's log are about. An item is found by its id, by its
    captions, or by the question that creperie exported for it.
    """

    def __init__(self, bench: Benchmark) -> None:
        self.items = list(bench)
        self.asked = list(questions_of(bench))
        self.questions = {q.id: q for q in self.asked}
        self.by_key: dict[str, list[Item]] = {}
        self.by_caption: dict[str, list[Item]] = {}
        for item in self.items:
            for key in (item.id, f"{item.subset}/{item.id}"):
                self.by_key.setdefault(key, []).append(item)
            for caption in {c.strip() for c in item.captions}:
                self.by_caption.setdefault(caption, []).append(item)

    def reply(self, answer: LoggedAnswer) -> HarnessReply | UnmatchedRow:
        """Return the scores that a row of the log gives to an item, or the reason why the row belongs to no item."""
        question = self._question(answer)
        if question and answer.answer is not None:
            if not _has_captions(question.about["options"], answer):
                return UnmatchedRow(answer.row, OTHER_CAPTIONS)
            return _answered(question.about, answer)
        named = [item for key in answer.keys for item in self.by_key.get(key, ())]
        offered = answer.options or tuple(c for c in offered_in(answer.about) if c in self.by_caption)
        fitting = [
            item
            for item in named
            if (_offers_exactly(item, offered) if offered else _has_captions(item.captions, answer, any))
        ]
        texts = self.by_caption.get(offered[0].strip(), []) if offered and not fitting else []
        fitting = fitting or [item for item in texts if _offers_exactly(item, offered)]
        cells = {(item.subset, item.id, row): item for item in fitting for row in range(len(item.match))}
        if len(cells) > 1:  # the same captions with several images
            shown = [k for k, item in cells.items() if item.images and PurePath(item.images[k[2]]).name in answer.about]
            cells = {key: cells[key] for key in shown}
            if len(cells) != 1:
                return UnmatchedRow(answer.row, f"fits {len(fitting)} items, and no image says which")
        if not cells:
            why = "no item has these captions" if offered else OTHER_CAPTIONS if named else "names no item"
            return UnmatchedRow(answer.row, why)
        ((_, _, row), item) = next(iter(cells.items()))
        return _of_item(item, row, offered, answer)

    def _question(self, answer: LoggedAnswer) -> HarnessQuestion | None:
        """Return the exported question that a row answers. The question is found by its id. Otherwise, it is the
        question at the row's position in the log, if the row has the same wording. Return None if neither is found.
        """
        known = next((self.questions[key] for key in answer.keys if key in self.questions), None)
        if known or answer.position is None or answer.position >= len(self.asked):
            return known
        placed = self.asked[answer.position]
        return placed if placed.question.strip() in answer.about else None

    def placed(self, answer: LoggedAnswer) -> HarnessReply | UnmatchedRow:
        """Return the scores that a row gives to an item, for a row that does not name its item. The item is found by
        the row's position in the log. If there is no item at that position, or if log and benchmark disagree about the
        right option, return the row with the reason.
        """
        number = answer.position
        known: Sequence[Any] = self.items if answer.scores else self.asked
        if number is None or number >= len(known):
            return UnmatchedRow(answer.row, f"there are {len(self.items)} items and {len(self.asked)} questions")
        if not answer.scores:
            return _answered(known[number].about, answer)
        item = known[number]
        if _disagrees(answer, item.captions, item.match[0]):
            return UnmatchedRow(answer.row, OTHER_KEY)
        return HarnessReply(item.subset, item.id, np.array(answer.scores, np.float32))


def matched(answers: Iterable[LoggedAnswer], bench: Benchmark) -> Iterator[HarnessReply | UnmatchedRow]:
    """Yield, for every row of a log, the scores that it gives to an item, or the reason why it belongs to no item."""
    matcher, rows = ItemFinder(bench), list(answers)
    found = [matcher.reply(answer) for answer in rows]
    if all(isinstance(reply, UnmatchedRow) and reply.why != OTHER_KEY for reply in found):
        found = [matcher.placed(a) if a.position is not None else f for a, f in zip(rows, found, strict=True)]
    yield from found


def _offers_exactly(item: Item, offered: Sequence[str]) -> bool:
    """Return whether the options offered are exactly the item's captions, in any order."""
    return sorted(c.strip() for c in item.captions) == sorted(text.strip() for text in offered)


def _has_captions(
    captions: Sequence[str], answer: LoggedAnswer, enough: Callable[[Iterable[bool]], bool] = all
) -> bool:
    """Return whether all captions occur both in a row's options and in its prompt. With `any` as `enough`, one of the
    captions is sufficient.

    If the log has no options, only the prompt is checked; if it has no prompt, only the options.
    """
    options = [option.strip() for option in answer.options]
    places = [place for place in (options, answer.prompt) if place]
    return all(enough(caption.strip() in place for caption in captions) for place in places)


def _of_item(item: Item, row: int, offered: Sequence[str], answer: LoggedAnswer) -> HarnessReply | UnmatchedRow:
    """Return the scores that a log's answer gives to one image of the item, or the reason why it gives none. `row` is
    the image's row in the item's match matrix, and `offered` are the options that the model was given.
    """
    match = np.array(item.match[row], np.float32)
    cells = [row * len(match) + k for k in range(len(match))]
    if offered and (answer.scores or answer.answer is not None):
        captions = [c.strip() for c in item.captions]
        order = [captions.index(text.strip()) for text in offered]
        about = {"subset": item.subset, "item": item.id, "row": row, "order": order, "options": offered}
        if match.sum() != 1 and not answer.scores:
            return UnmatchedRow(answer.row, f"{int(match.sum())} of its item's captions are true: what was asked?")
        if _disagrees(answer, offered, match[order]):
            return UnmatchedRow(answer.row, OTHER_KEY)
        if answer.scores and len(answer.scores) == len(order):
            return HarnessReply(item.subset, item.id, np.array(answer.scores, np.float32), [cells[k] for k in order])
        return _answered({**about, "asks": "match", "target": item.captions[int(match.argmax())]}, answer)
    if answer.right is not None:
        if answer.key not in LETTERS and _disagrees(answer, item.captions, match):
            return UnmatchedRow(answer.row, OTHER_KEY)
        return HarnessReply(item.subset, item.id, match if answer.right else 1 - match, cells)
    return UnmatchedRow(answer.row, "does not say which options were offered in which order")


def _disagrees(answer: LoggedAnswer, options: Sequence[str], rights: Iterable[object]) -> bool:
    """Return whether the log calls an option right that the benchmark calls wrong. `rights` says for each of `options`
    whether it is right according to the benchmark.
    """
    texts, key = [text.strip() for text in options], answer.key
    if key not in texts:
        number = LETTERS.find(key) if len(key) == 1 else -1
        number = int(key) if answer.scores and key.isdecimal() else number
        if not 0 <= number < len(texts):
            return False  # the key does not say which option it means
        key = texts[number]
    return not any(right for text, right in zip(texts, rights, strict=True) if text == key)


def _answered(about: Row, logged: LoggedAnswer) -> HarnessReply | UnmatchedRow:
    """Return the scores that a free-text answer gives to the options of the exported question `about`. If it gives
    none, return the row with the reason.
    """
    order, count, answer = about["order"], len(about["options"]), logged.answer or ""
    rights = [option.strip() == about["target"].strip() for option in about["options"]]
    if _disagrees(logged, about["options"], rights):
        return UnmatchedRow(logged.row, OTHER_KEY)
    parsed = parse_choice(answer, about["options"], asks=about["asks"])
    shares = shares_of(parsed, count) * (1 if about["asks"] == "match" else -1)
    shares = shares if parsed.kind == CUT else np.nan_to_num(shares)  # what was cut off is no answer, and no miss
    cells = [int(about["row"]) * len(order) + k for k in order]
    why = f"{parsed.why}: {answer[:120]!r}" if parsed.why else ""
    right = parsed.option is not None and rights[parsed.option]
    other = logged.right is not None and logged.right != right
    return HarnessReply(about["subset"], about["item"], shares, cells, why, parsed.kind == CUT, True, other)
