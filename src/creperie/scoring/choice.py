"""Scores from multiple choice: every item's captions are offered in all requested orders, and the results averaged.

The demonstrations in a few-shot question come from the subset of the question's item, and are not themselves tested.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.bench import Benchmark, ImageError, Item, open_image, save
from creperie.core import Progress, UsageError, silent, write_text
from creperie.models import ChoiceQuestion, Chooser, Chosen, Rewordable, orders_of
from creperie.scoring.answer_log import CUT_OFF, UNREAD, Written, code_of, gather_first, reason, written
from creperie.scoring.filler import Filler, StoredSheet
from creperie.scoring.plan import BenchmarkPart, ScoringPlan
from creperie.scoring.sheet import Fault, Sheet

if TYPE_CHECKING:
    from PIL import Image

#: questions per call of the model
TOGETHER = 64
NO_ANSWER = "no-single-answer"


@dataclass(frozen=True)
class Case:
    """One image of an item: its captions in the item's order, and which of them are true.

    `subset` is empty if the question is the same in all subsets.
    """

    image: int
    captions: tuple[int, ...]
    match: tuple[bool, ...]
    subset: str = ""

    def asks(self, able: Sequence[str]) -> str:
        """Return the kind of question to ask about this case, or "" if no kind suits the case. `able` lists the kinds
        that the model can answer; the first that suits the case is returned. The kind "match" requires exactly one true
        caption, "odd" exactly one false caption.
        """
        fitting = {"match": sum(self.match) == 1, "odd": sum(self.match) == len(self.match) - 1}
        return next((a for a in able if fitting[a]), "")

    def key(self, plan: ScoringPlan) -> bytes:
        content = plan.image_keys[self.image].tobytes() + plan.text_keys[list(self.captions)].tobytes()
        return hashlib.sha256(content + bytes(self.match) + self.subset.encode()).digest()


@dataclass
class Asked:
    """The answers to a question about a case: the kind of question, the orders in which the captions were offered, and
    one answer per order.
    """

    asks: str
    orders: list[tuple[int, ...]]
    answers: list[Chosen] = field(default_factory=list)

    def scores(self) -> np.ndarray:
        """Return one score per caption, in the item's order. The score is the caption's mean probability over the
        orders; for the kind "odd", its sign is reversed.

        If an answer cannot be parsed, every caption gets probability 0. The result is a tie, not a hit.
        """
        total = np.zeros(len(self.orders[0]))
        for order, chosen in zip(self.orders, self.answers, strict=True):
            total[list(order)] += np.nan_to_num(chosen.shares)
        mean = total / len(self.orders)
        return (mean if self.asks == "match" else -mean).astype(np.float32)

    def void(self, code: str) -> list[str]:
        """Return one reason for each answer with this code. The code `CUT_OFF` means that the answer was cut off,
        `UNREAD` that it cannot be parsed.
        """
        return [reason(c) for c in self.answers if code_of(c) == code]

    def written(self) -> list[Written]:
        """Return the records of what the model wrote; empty if its answers were read from likelihoods."""
        shown = zip(self.orders, self.answers, strict=True)
        return [written(" ".join(str(k + 1) for k in order), one) for order, one in shown if one.parsed or one.answer]


def fill_by_choice(filler: Filler) -> None:
    """Fill the column of image-text scores with the answers of a model that chooses among captions.

    Answers that cannot be parsed are not cached, so the next run asks these questions again. If the answer to a
    question was cut off in any order of the captions, the image and its captions get no scores.
    """
    by_subset = "demonstrations" in filler.handle.fingerprint.options
    owned = [list(cases_of(part, by_subset=by_subset)) for part in filler.plan.parts]
    cases = list(dict.fromkeys(case for own in owned for *_, case in own))
    starts = np.append(0, np.cumsum([len(c.captions) for c in cases])).astype(np.int64)
    sheet, unread = _answered(filler, cases, starts)
    first_row = dict(zip(cases, starts.tolist()))
    for i, (part, own) in enumerate(zip(filler.plan.parts, owned, strict=True)):
        places = np.full(int(part.layout.widths("image_text").sum()), -1, np.int64)
        answers: dict[int, list[Written]] = {}
        for item, begin, case in own:
            width = len(case.captions)
            places[begin : begin + width] = first_row[case] + np.arange(width)
            answers.setdefault(item, []).extend(filler.log.of([case.key(filler.plan).hex()]))
        filler.columns[i]["image_text"] = sheet.numbers(places)
        starts = part.layout.starts("image_text")
        filler.findings[i].add_faults(part, [*sheet.faults, *unread], places, starts)
        if filler.log.answers:
            filler.keep_answers(i, answers)


def _answered(filler: Filler, cases: Sequence[Case], starts: np.ndarray) -> tuple[Sheet, list[Fault]]:
    keys = [c.key(filler.plan) + bytes([k]) for c in cases for k in range(len(c.captions))]
    digests = np.frombuffer(b"".join(hashlib.sha256(k).digest() for k in keys), np.uint8).reshape(len(keys), -1)
    sheet = StoredSheet(filler, "pair", digests)
    broken = {f.row: f for f in filler.plan.broken}
    done = {int(starts[i]): i for i in range(len(cases)) if sheet.done[starts[i] : starts[i + 1]].all()}

    def again(model: Any, row: int) -> Any:
        """Ask the model about an image again, and return the new score for row `row` of the sheet (the table of
        computed scores). The caller compares the new score with the stored one.
        """
        at = max(first for first in done if first <= row)
        case = cases[done[at]]
        (answer,) = ask(model, filler.plan, [(case, filler.plan.open(case.image))])
        return answer.scores()[row - at] if isinstance(answer, Asked) else np.nan

    filler.probe(sheet, again)
    missing = [i for i in range(len(cases)) if not sheet.done[starts[i] : starts[i + 1]].all()]
    unread: list[Fault] = []
    if missing:
        with filler.timings.stage("load model"):
            model: Any = filler.handle.model
        _check_shots(model, filler.plan, cases)
        with filler.timed("pairs", int(sum(len(cases[i].captions) for i in missing))) as advance:
            groups = [missing[at : at + TOGETHER] for at in range(0, len(missing), TOGETHER)]

            def answers_to(group: Sequence[int]) -> list[Asked | Fault]:
                opened = [(cases[i], broken.get(cases[i].image) or open_case(filler.plan, cases[i])) for i in group]
                return ask(model, filler.plan, opened)

            gather_first(model, answers_to, groups)
            for group in groups:
                asked = answers_to(group)
                found = {cases[i].key(filler.plan).hex(): one for i, one in zip(group, asked, strict=True)}
                filler.log.add(
                    {k: texts for k, one in found.items() if isinstance(one, Asked) and (texts := one.written())}
                )
                for i, answered in zip(group, asked, strict=True):
                    rows = np.arange(starts[i], starts[i + 1])
                    unread += _write(sheet, rows, answered)
                    advance(len(rows))
    sheet.close()
    return sheet, unread


def _write(sheet: Sheet, rows: np.ndarray, answer: Asked | Fault) -> list[Fault]:
    """Write the scores from an answer into these rows of the sheet (the table of computed scores). Return a fault for
    each answer that cannot be parsed.
    """
    if isinstance(answer, Asked) and (cut := answer.void(CUT_OFF)):
        answer = Fault(0, CUT_OFF, cut[0])
    if isinstance(answer, Fault):
        sheet.give_up(answer.at(*rows))
        return []
    done = sheet.put(rows, answer.scores())
    unread = answer.void(UNREAD)
    if not unread:
        sheet.keep(done)
    return [Fault(int(rows[0]), UNREAD, message) for message in unread]


def ask(
    model: Chooser, plan: ScoringPlan, cases: Sequence[tuple[Case, Image.Image | Fault]], order: str = ""
) -> list[Asked | Fault]:
    """Ask a model about several cases in one call; return one answer or fault per case. `order` says in which order the
    captions are offered; if it is empty, the model's setting is used.
    """
    replies: list[Asked | Fault] = []
    questions: list[ChoiceQuestion] = []
    for case, image in cases:
        asks = case.asks(model.asks)
        if isinstance(image, Fault) or not asks:
            true = sum(case.match)
            message = f"{true} of {len(case.match)} captions fit the image: no single one can be chosen"
            replies.append(image if isinstance(image, Fault) else Fault(0, NO_ANSWER, message))
            continue
        orders = orders_of(order or model.order, case.match)
        replies.append(Asked(asks, orders))
        texts = [plan.texts[c] for c in case.captions]
        questions += [ChoiceQuestion(image, tuple(texts[i] for i in order), asks, case.subset) for order in orders]
    answers = iter(model.choose(questions) if questions else [])
    for one in replies:
        if isinstance(one, Asked):
            one.answers = [next(answers) for _ in one.orders]
    return replies


def no_question(bench: Benchmark) -> UsageError:
    """Return the error for a benchmark in which no item can become a multiple-choice question."""
    what = "no item has exactly one true or exactly one false caption"
    return UsageError(what, where=bench.name, hint="give a benchmark with one foil, or one true caption, per item")


def open_case(plan: ScoringPlan, case: Case) -> Image.Image | Fault:
    """Return the image of a case, or a fault with the reason why it cannot be read."""
    try:
        return plan.open(case.image)
    except ImageError as e:
        return Fault(0, e.code, str(e))


def _check_shots(model: Any, plan: ScoringPlan, cases: Sequence[Case]) -> None:
    """Raise a UsageError if any of the model's few-shot demonstrations is among the tested items."""
    shown = {tuple(sorted(shot.captions)) for shot in (model.form.shots if isinstance(model, Rewordable) else ())}
    asked = {tuple(sorted(plan.texts[c] for c in case.captions)) for case in cases} if shown else set()
    if both := shown & asked:
        raise UsageError(
            f"{len(both)} demonstrations are among the items that are tested",
            where=model.fingerprint.uri,
            hint="score the benchmark that `creperie data shots` wrote beside them",
        )


def cases_of(part: BenchmarkPart, *, by_subset: bool = False) -> Iterator[tuple[int, int, Case]]:
    """Yield one case per image of every item, after the index of the item and that of the case's first score among the
    part's image-text scores. With `by_subset`, each case also names its subset, because a model may use different
    demonstrations in each subset.
    """
    layout = part.layout
    subsets = part.bench.column("subset").to_pylist() if by_subset else [""] * len(layout)
    cells = layout.starts("image_text")
    for item in range(len(layout)):
        captions = tuple(part.captions[part.caption_starts[item] : part.caption_starts[item + 1]].tolist())
        for row, image in enumerate(part.images[part.image_starts[item] : part.image_starts[item + 1]].tolist()):
            begin = int(cells[item]) + row * len(captions)
            match = tuple(layout.match[begin : begin + len(captions)].tolist())
            yield item, begin, Case(image, captions, match, subsets[item])


SHOTS_FILE = "shots.toml"


def draw_shots(
    bench: Benchmark, count: int, out: str | Path, *, seed: int = 0, progress: Progress = silent
) -> Benchmark:
    """Draw `count` demonstrations per subset, and return a benchmark of the items that were not drawn.

    The demonstrations are written to `out`/shots.toml, a file for the option `shots` of model URIs. Each demonstration
    has its image, and its captions in random order. The returned benchmark is also saved in `out`.
    """
    folder, keep = Path(out), np.ones(len(bench), bool)
    drawn: list[tuple[Item, list[int]]] = []
    items = list(bench)
    for subset in bench.subsets:
        dice = random.Random(f"{seed} {subset}")
        mine = (i for i, item in enumerate(items) if item.subset == subset and len(item.images) == 1)
        able = [i for i in mine if sum(items[i].match[0]) in (1, len(items[i].captions) - 1)]
        if len(able) <= count:
            raise UsageError(
                f"subset {subset!r} has only {len(able)} items with one image and one answer, but {count} "
                "demonstrations and at least one item to test are needed",
                where=bench.name,
                hint="draw fewer demonstrations per subset",
            )
        for i in dice.sample(able, count):
            keep[i] = False
            drawn.append((items[i], dice.sample(range(len(items[i].captions)), len(items[i].captions))))
    rest = save(bench.filter(keep, why=f"{count} demonstrations per subset, seed {seed}"), folder, progress=progress)
    (folder / "shots").mkdir()
    records = []
    for number, (item, order) in enumerate(drawn, 1):
        image = f"shots/{number}.png"
        open_image(bench.images, item.images[0]).convert("RGB").save(folder / image)
        shot = {"subset": item.subset, "id": item.id, "image": image, "captions": [item.captions[k] for k in order]}
        fits = [place for place, k in enumerate(order, 1) if item.match[0][k]]
        lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in {**shot, "fits": fits}.items())
        records.append("\n".join(["[[demonstration]]", *lines, ""]))
    write_text(folder / SHOTS_FILE, "\n".join(records))
    return rest
