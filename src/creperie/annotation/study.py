"""Studies: a benchmark and a task become questions, and questions become slots for answers."""

from __future__ import annotations

import random
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.schema import ATTENTION, DONE, FREE, MAIN, OPEN, PRACTICE, VOID, Question, Slot, StudyRow
from creperie.annotation.state import record, write_revision
from creperie.annotation.tasks import TASKS, task_named
from creperie.annotation.tasks.preference import BIAS, FOILS, by_kind
from creperie.annotation.tasks.task import Material, QuestionDraft, StudyTask
from creperie.annotation.web.pictures import MAX_PIXELS, store_at
from creperie.bench import Benchmark, ImageError, Item, items_of, open_image
from creperie.core import DataError, UsageError

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,47}")
#: The default number of practice questions: three, but at most a tenth of all questions.
PRACTICE_AT_MOST, PRACTICE_SHARE = 3, 10
#: Items beyond the sample that are looked at for practice and checks, so that fewer are taken out of it.
SPARE = 200
#: Words that say nothing about what is in a picture.
FUNCTION_WORDS = (
    "a an the this that these those of in on at to from by with without and or but is are was were be been being it "
    "its there some one for as near next into over under up down out off his her their who which while where has have"
)


@dataclass(frozen=True)
class StudyPlan:
    """The way a study is set up: task, answers per question, practice, checks, skips."""

    task: str
    overlap: int = 2  #: answers per question
    per_annotator: int | None = None  #: questions per annotator; None: as many as there are
    subsets: Sequence[str] = ()  #: ask about these only; all where empty
    sample: int | None = None  #: ask about that many items only
    practice: int | None = None  #: questions with feedback at the start; they are not part of the results
    attention: int = 0  #: questions with a known answer, at secret places, made of items of their own
    attention_every: int = 10  #: one check somewhere in each block of that many questions
    skips: int | None = None  #: skips per annotator; None: five, and one more for every five answers
    with_image: bool = True
    lease: float = 900.0  #: seconds after which an abandoned question is given to someone else
    seed: int = 0  #: of the sample of items; everything an annotator could exploit is drawn from a secret

    def __post_init__(self) -> None:
        task_named(self.task)
        for name in ("overlap", "attention_every", "per_annotator", "sample"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}")
        for name in ("attention", "practice", "skips"):
            if (getattr(self, name) or 0) < 0:
                raise UsageError(f"{name} must not be negative")
        if not 1 <= self.lease <= 30 * 86400:
            raise UsageError(f"lease must be between one second and thirty days, not {self.lease:g} seconds")

    def skips_allowed(self, answered: int) -> int:
        """Return how many questions an annotator may have skipped after this many answers.

        >>> StudyPlan("foil-check").skips_allowed(20), StudyPlan("foil-check", skips=3).skips_allowed(20)
        (9, 3)
        """
        return 5 + answered // 5 if self.skips is None else self.skips


def store_study(
    db: Database,
    name: str,
    bench: Benchmark,
    plan: StudyPlan,
    *,
    other: Benchmark | None = None,
    spec: str = "",
    actor: str = "cli",
    pictures: bool = True,
) -> StudyRow:
    """Store a study: its questions, in random but balanced order, and a slot for every answer that is wanted.

    `spec` is how the benchmark is loaded again when the answers are applied. Without `pictures` nobody checks that they
    can be shown: for programs that answer in place of people and look at none.
    """
    check_name(name)
    task = task_named(plan.task)
    # Whoever knows the code, the benchmark and the seed must not know which questions are checks.
    secret = secrets.token_hex(32)
    dice = random.Random(secret)
    apart = _set_apart(task, _drafts(task, bench, other, plan), _spare(task, bench, plan, dice), plan, dice)
    if pictures:
        _check_pictures(bench, [draft for drafts in apart for draft, *_ in drafts])
    with db.write() as session:
        if session.scalar(select(StudyRow.id).where(StudyRow.name == name)) is not None:
            raise UsageError(f"there is already a study {name!r}", where=db.place, hint="choose another name")
        study = StudyRow(
            name=name,
            task=plan.task,
            instructions=str(task.words["instructions"]).strip(),
            plan=asdict(plan),
            bench=_about(bench, other) | {"spec": spec},
            state=OPEN,
            created=time.time(),
            secret=secret,
            settings={},
            revision=1,
        )
        session.add(study)
        session.flush()
        write_revision(session, study, actor)
        _store_questions(session, study, apart, dice)
        record(session, actor, "create study", study, {"plan": asdict(plan), "questions": len(apart[0])})
    return study


def check_name(name: str) -> None:
    """Names of studies are parts of addresses and of file names."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name[:60]!r} is not a valid study name",
            hint="use up to 48 lowercase letters, digits, dots, dashes, underscores",
        )


def _about(bench: Benchmark, other: Benchmark | None) -> dict[str, Any]:
    """Which content the study is about, and where its images lie."""
    place = bench.images.location
    about = {"name": bench.name, "hash": bench.hash, "images": str(Path(place).resolve()) if place else ""}
    return about | ({"other": {"name": other.name, "hash": other.hash}} if other else {})


def _check_pictures(bench: Benchmark, drafts: Sequence[QuestionDraft]) -> None:
    """Refuse a study of which annotators could not see every picture as the server will open it."""
    wanted = sorted({reference for draft in drafts for reference in draft.payload["images"]})
    store = store_at(bench.images.location if wanted else "")
    missing = []
    for reference in wanted:
        try:
            open_image(store, reference, max_pixels=MAX_PIXELS)
        except (DataError, OSError) as e:
            missing.append((reference, e))
    if missing:
        reference, error = missing[0]
        why = error.what if isinstance(error, ImageError) else str(error)
        raise UsageError(
            f"{len(missing)} of {len(wanted)} pictures cannot be shown to annotators, {reference[:80]!r} first: {why}",
            where=bench.name,
            hint="pass the folder that holds the pictures themselves with `images=`; links must not lead out of it",
        )


# -- questions ---------------------------------------------------------------------------------------------------------


def _drafts(task: StudyTask, bench: Benchmark, other: Benchmark | None, plan: StudyPlan) -> list[QuestionDraft]:
    pairs = task.name == FOILS and other is not None  # these are drawn when they are found, by kind of foil
    items = _drawn(bench, replace(plan, sample=None) if pairs else plan)
    # Foils are matched with those of the first benchmark's items; for ratings both are sampled alike.
    others = [] if other is None else _drawn(other, plan) if task.name == BIAS else list(items_of(other.table))
    drafts = task.draft(Material(bench.name, items, other.name if other else "", others, plan.with_image))
    if not drafts:
        fitting = _fitting(bench.name, items)
        raise UsageError(
            f"none of the {len(items)} items fits the task {task.name!r}: it needs {task.words['needs']}",
            where=bench.name,
            hint=f"tasks that fit: {', '.join(fitting)}" if fitting else "no task fits items of this form",
        )
    return by_kind(drafts, plan.sample, plan.seed) if pairs and plan.sample else drafts


def _fitting(source: str, items: Sequence[Item]) -> list[str]:
    """The tasks that some of these items fit, and how many questions they would make."""
    counts = {name: len(task.draft(Material(source, items))) for name, task in TASKS.items()}
    return [f"{name} ({n} questions)" for name, n in counts.items() if n]


def _drawn(bench: Benchmark, plan: StudyPlan) -> list[Item]:
    wanted = bench.only(plan.subsets) if plan.subsets else bench
    return list(items_of((wanted if plan.sample is None else wanted.sample(plan.sample, plan.seed)).table))


def _spare(task: StudyTask, bench: Benchmark, plan: StudyPlan, dice: random.Random) -> list[QuestionDraft]:
    """Questions about items that the sample left out: they serve as practice and checks first."""
    if plan.sample is None or task.name == FOILS:
        return []
    asked = {(item.subset, item.id) for item in _drawn(bench, plan)}
    left = [item for item in _drawn(bench, replace(plan, sample=None)) if (item.subset, item.id) not in asked]
    items = dice.sample(left, min(SPARE, len(left)))
    return task.draft(Material(bench.name, items, with_image=plan.with_image))


#: A question, what it holds, and its known answer; the answer is None for the questions that people are to settle.
Prepared = tuple[QuestionDraft, dict[str, Any], Any]


def _set_apart(
    task: StudyTask, drafts: list[QuestionDraft], spare: list[QuestionDraft], plan: StudyPlan, dice: random.Random
) -> tuple[list[Prepared], list[Prepared], list[Prepared]]:
    """The questions proper, practice, and checks. Practice and checks have items of their own: no item comes twice."""
    wanted = plan.practice
    if wanted is None:
        wanted = min(PRACTICE_AT_MOST, len(drafts) // PRACTICE_SHARE)
    if wanted >= len(drafts):
        raise UsageError(
            f"practice={wanted} leaves none of the {len(drafts)} questions", hint="pass a smaller `practice=`"
        )
    pool = _pool(spare, dice) + _pool(drafts, dice)
    made = list(_known_questions(task, pool, wanted + plan.attention))
    if len(made) < wanted + plan.attention:
        raise UsageError(
            f"only {len(made)} questions with a known answer can be made of these items, practice={wanted} and "
            f"attention={plan.attention} ask for {wanted + plan.attention}",
            hint="pass smaller numbers",
        )
    used = {_key(draft) for _, drafts_used in made for draft in drafts_used}
    main: list[Prepared] = [(d, d.payload, None) for d in drafts if _key(d) not in used]
    if not main:
        raise UsageError("no question is left besides practice and checks", hint="pass smaller numbers")
    known = [one for one, _ in made]
    return main, known[:wanted], known[wanted:]


def _pool(drafts: Sequence[QuestionDraft], dice: random.Random) -> list[QuestionDraft]:
    """One question per item, in random order."""
    first: dict[tuple[str, str, str], QuestionDraft] = {}
    for draft in dice.sample(drafts, len(drafts)):
        first.setdefault(_key(draft), draft)
    return list(first.values())


def _known_questions(
    task: StudyTask, pool: list[QuestionDraft], wanted: int
) -> Iterator[tuple[Prepared, list[QuestionDraft]]]:
    """Questions with known answers, each answer as often as the others, and the items that each was made of."""
    left = list(pool)
    for n in range(wanted):
        prepared = next(_made_of(task, left, n), None)
        if prepared is None:
            return
        used = {_key(draft) for draft in prepared[1]}
        left = [draft for draft in left if _key(draft) not in used]
        yield prepared


def _made_of(task: StudyTask, left: Sequence[QuestionDraft], n: int) -> Iterator[tuple[Prepared, list[QuestionDraft]]]:
    """Ways to make the n-th question with a known answer: its answer is that of the turn."""
    for own in left:
        answers = len(task.known(own.payload, own.payload))
        if not answers:
            continue
        turn = n % answers
        alone = task.known(own.payload, None)
        if turn < len(alone):
            yield (own, *alone[turn]), [own]
            continue
        for other in left:
            both = task.known(own.payload, other.payload)
            if _key(other) != _key(own) and turn < len(both) and contradicts(own.payload, other.payload):
                yield (own, *both[turn]), [own, other]


def contradicts(own: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return True if the true captions of another item are false of an item's picture.

    They are where the benchmark itself lists them as false, and where they have no content word in common with the true
    captions of the picture.

    >>> [contradicts({"true": "a red circle"}, {"true": text}) for text in ("a blue square", "two circles")]
    [True, False]
    """
    theirs = _true_captions(other)
    if own.get("caption") in theirs or own.get("foil") in theirs:
        return True
    return not _content(_true_captions(own)) & _content(theirs)


def _true_captions(payload: dict[str, Any]) -> list[str]:
    if "match" in payload:
        return [c for c, fits in zip(payload["captions"], payload["match"]) if fits]
    return list(payload["captions"]) if "captions" in payload else [payload["true"] or ""]


def _content(captions: Iterable[str]) -> set[str]:
    words = {word for text in captions for word in re.findall(r"[^\W\d_]+", text.lower())}
    return {word.removesuffix("s") for word in words.difference(FUNCTION_WORDS.split())}


def _key(draft: QuestionDraft) -> tuple[str, str, str]:
    return draft.source, draft.subset, draft.item


def _store_questions(
    session: Session,
    study: StudyRow,
    apart: tuple[Sequence[Prepared], Sequence[Prepared], Sequence[Prepared]],
    dice: random.Random,
) -> None:
    """Store the questions, and a slot for every answer that is wanted; each copy of them has an order of its own."""
    kinds = zip((MAIN, PRACTICE, ATTENTION), apart, strict=True)
    drafted = enumerate((kind, *one) for kind, some in kinds for one in some)
    rows = [
        {**vars(draft), "study_id": study.id, "ordinal": n, "kind": kind, "payload": payload, "expected": expected}
        for n, (kind, draft, payload, expected) in drafted
    ]
    session.execute(insert(Question), rows)
    own = select(Question.id).where(Question.study_id == study.id, Question.kind == MAIN)
    asked = session.scalars(own.order_by(Question.ordinal)).all()
    subsets = [draft.subset for draft, *_ in apart[0]]
    slots = [
        {"study_id": study.id, "question_id": asked[n], "kind": MAIN, "copy": copy, "rank": rank, "state": FREE}
        for copy in range(study.plan["overlap"])
        for rank, n in enumerate(balanced_order(subsets, dice))
    ]
    session.execute(insert(Slot), slots)


def balanced_order(subsets: Sequence[str], dice: random.Random) -> list[int]:
    """A random order in which every stretch holds the subsets in their proportions.

    >>> order = balanced_order(["a"] * 4 + ["b"] * 4, random.Random(0))
    >>> sorted(order), [{"a" if n < 4 else "b" for n in order[i : i + 2]} == {"a", "b"} for i in (0, 2, 4, 6)]
    ([0, 1, 2, 3, 4, 5, 6, 7], [True, True, True, True])
    """
    members: dict[str, list[int]] = {}
    for n, subset in enumerate(subsets):
        members.setdefault(subset, []).append(n)
    placed = []
    for own in members.values():
        dice.shuffle(own)
        placed += [((k + dice.random()) / len(own), n) for k, n in enumerate(own)]
    return [n for _, n in sorted(placed)]


# -- studies -----------------------------------------------------------------------------------------------------------


def count_questions(session: Session, study: StudyRow) -> Counter[str]:
    """Return how many questions of each kind a study has."""
    own = select(Question.kind, func.count()).where(Question.study_id == study.id).group_by(Question.kind)
    return Counter(dict(session.execute(own).all()))


def all_studies(session: Session) -> list[dict[str, Any]]:
    """Every study with its number of answers, newest first."""
    done = func.count().filter(Slot.state == DONE)
    rows = session.execute(
        select(StudyRow, func.count(Slot.id), done)
        .join(Slot, (Slot.study_id == StudyRow.id) & (Slot.kind == MAIN) & (Slot.state != VOID))
        .group_by(StudyRow.id)
        .order_by(StudyRow.id.desc())
    )
    about = ("id", "task", "state")
    return [
        {"study": s.name, "benchmark": s.bench["name"], **{k: getattr(s, k) for k in about}, "slots": n, "done": count}
        for s, n, count in rows
    ]
