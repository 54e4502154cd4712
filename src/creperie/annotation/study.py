"""Studies: a benchmark and a task become questions, and questions become slots for answers."""

from __future__ import annotations

import json
import random
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from creperie.annotation import schema
from creperie.annotation.chain import event_digest, questions_digest
from creperie.annotation.database import Database
from creperie.annotation.schema import ATTENTION, FREE, MAIN, OPEN, PRACTICE, START, Event, Question, Slot, StudyRow
from creperie.annotation.settings import changed
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.preference import BIAS, FOILS, by_kind
from creperie.annotation.tasks.task import Material, QuestionDraft, StudyTask
from creperie.annotation.web.pictures import MAX_PIXELS, encode
from creperie.bench import NO_IMAGES, Benchmark, Item, items_of, open_image, open_store
from creperie.core import UsageError, unknown

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,47}")
_PICTURE = re.compile(r"\]\(image:([^)\n]{1,300})\)")
#: The default number of practice questions: three, but at most a tenth of all questions.
PRACTICE_AT_MOST, PRACTICE_SHARE = 3, 10
#: So many questions get all their answers before the next ones are given out.
BLOCK = 10


@dataclass(frozen=True)
class StudyPlan:
    """How a study is set up."""

    task: str
    overlap: int = 2  #: answers per question
    per_annotator: int | None = None  #: questions per annotator; None: as many as there are
    subsets: Sequence[str] = ()  #: ask about these only; all where empty
    sample: int | None = None  #: ask about that many items only
    pilot: int = 0  #: questions of a first phase; the others wait until the pilot ends
    practice: int | None = None  #: questions with feedback at the start; they are not part of the results
    attention: int = 0  #: questions with a known answer, placed at random
    attention_every: int = 10  #: one check somewhere in each block of that many questions
    skips: int | None = None  #: skips per annotator; None: five, and one more for every five answers
    with_image: bool = True
    lease: float = 900.0  #: seconds after which an abandoned question is given to someone else
    seed: int = 0  #: of the sample of items; everything an annotator could exploit is drawn from a secret

    def __post_init__(self) -> None:
        task_named(self.task)
        for name in ("overlap", "attention_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("pilot", "attention", "practice", "skips"):
            if (getattr(self, name) or 0) < 0:
                raise UsageError(f"{name} must not be negative")
        for name in ("per_annotator", "sample"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 1 <= self.lease <= 30 * 86400:
            raise UsageError(f"lease must be between one second and thirty days, not {self.lease:g} seconds")

    def skips_allowed(self, answered: int) -> int:
        """How many questions an annotator may have skipped after this many answers.

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
) -> StudyRow:
    """Store a study: its questions, in random but balanced order, and a slot for every answer that is wanted.

    `spec` is how the benchmark is loaded again when the answers are applied.
    """
    check_name(name)
    task = task_named(plan.task)
    # Whoever knows the code, the benchmark and the seed must not know which questions are checks.
    secret = secrets.token_hex(32)
    dice = random.Random(secret)
    drafts = _drafts(task, bench, other, plan)
    practice, main = _set_apart(drafts, plan, dice)
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
            phase=0 if plan.pilot else 1,
            created=time.time(),
            secret=secret,
            settings={},
            events=0,
            head=START,
        )
        session.add(study)
        session.flush()
        _store_questions(session, study, task, practice, main, dice)
        record(session, actor, "create study", study, {"plan": asdict(plan), "questions": len(main)})
        record(session, actor, "store questions", study, {"questions_digest": questions_digest(session, study)})
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
    about: dict[str, Any] = {"name": bench.name, "hash": bench.hash, "images": _place(bench)}
    # The server follows links out of the images folder only where loading the benchmark does.
    about["follow_links"] = bool(getattr(bench.images, "follow_links", True))
    return about | ({"other": {"name": other.name, "hash": other.hash}} if other else {})


def _place(bench: Benchmark) -> str:
    return str(Path(bench.images.location).resolve()) if bench.images.location else ""


def _drafts(task: StudyTask, bench: Benchmark, other: Benchmark | None, plan: StudyPlan) -> list[QuestionDraft]:
    pairs = task.name == FOILS and other is not None  # these are drawn when they are found, by kind of foil
    items = _drawn(bench, replace(plan, sample=None) if pairs else plan)
    # Foils are matched with those of the first benchmark's items; for ratings both are sampled alike.
    others = [] if other is None else _drawn(other, plan) if task.name == BIAS else list(items_of(other.table))
    drafts = task.draft(Material(bench.name, items, other.name if other else "", others, plan.with_image))
    if not drafts:
        raise UsageError(
            f"none of the {len(items)} items fits the task {task.name!r} ({task.words['about']})", where=bench.name
        )
    return by_kind(drafts, plan.sample, plan.seed) if pairs and plan.sample else drafts


def _drawn(bench: Benchmark, plan: StudyPlan) -> list[Item]:
    wanted = bench.only(plan.subsets) if plan.subsets else bench
    return list(items_of((wanted if plan.sample is None else wanted.sample(plan.sample, plan.seed)).table))


def _set_apart(
    drafts: list[QuestionDraft], plan: StudyPlan, dice: random.Random
) -> tuple[list[QuestionDraft], list[QuestionDraft]]:
    """Practice questions are taken from the others: their answers are told."""
    wanted = plan.practice
    if wanted is None:
        wanted = min(PRACTICE_AT_MOST, len(drafts) // PRACTICE_SHARE)
    if wanted >= len(drafts):
        raise UsageError(
            f"practice={wanted} leaves none of the {len(drafts)} questions", hint="pass a smaller `practice=`"
        )
    chosen = set(dice.sample(range(len(drafts)), wanted))
    # All questions of a practice item go: telling about one tells about the others.
    told = {_key(drafts[n]) for n in chosen}
    main = [d for d in drafts if _key(d) not in told]
    if not main:
        raise UsageError("no question is left besides the practice questions", hint="pass a smaller `practice=`")
    return [drafts[n] for n in sorted(chosen)], main


def _key(draft: QuestionDraft) -> tuple[str, str, str]:
    return draft.source, draft.subset, draft.item


def _store_questions(
    session: Session,
    study: StudyRow,
    task: StudyTask,
    practice: Sequence[QuestionDraft],
    main: Sequence[QuestionDraft],
    dice: random.Random,
) -> None:
    plan = StudyPlan(**study.plan)
    rows = [_row(study, MAIN, draft, draft.payload, None) for draft in main]
    rows += [_row(study, PRACTICE, d, *_with_answer(task, n, d, main, dice)) for n, d in enumerate(practice)]
    rows += [_row(study, ATTENTION, d, p, known) for d, p, known in _traps(task, main, plan.attention, dice)]
    for ordinal, row in enumerate(rows):
        row["ordinal"] = ordinal
    session.execute(insert(Question), rows)
    asked = session.execute(
        select(Question.id, Question.subset)
        .where(Question.study_id == study.id, Question.kind == MAIN)
        .order_by(Question.ordinal)
    ).all()
    first = set(balanced_order([row.subset for row in asked], dice)[: plan.pilot])
    slots = [
        {
            "study_id": study.id,
            "question_id": asked[n].id,
            "kind": MAIN,
            "copy": copy,
            "rank": rank,
            "phase": 0 if n in first else 1,
            "state": FREE,
        }
        for rank, (n, copy) in enumerate(queue([row.subset for row in asked], plan.overlap, dice))
    ]
    session.execute(insert(Slot), slots)


def queue(subsets: Sequence[str], overlap: int, dice: random.Random) -> Iterable[tuple[int, int]]:
    """The order in which slots are given out: question and copy.

    Block by block, so that questions get all their answers early and agreement shows soon; within a block every copy
    comes in an order of its own.
    """
    order = balanced_order(subsets, dice)
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        for copy in range(overlap):
            dice.shuffle(block)
            yield from ((n, copy) for n in block)


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


def _row(study: StudyRow, kind: str, draft: QuestionDraft, payload: dict[str, Any], expected: Any) -> dict[str, Any]:
    return {
        "study_id": study.id,
        "kind": kind,
        "source": draft.source,
        "subset": draft.subset,
        "item": draft.item,
        "payload": payload,
        "expected": expected,
    }


def _with_answer(
    task: StudyTask, n: int, draft: QuestionDraft, main: Sequence[QuestionDraft], dice: random.Random
) -> tuple[dict[str, Any], Any]:
    """A practice question and its answer; every other one is a trap, so that other answers are practised, too."""
    trap = task.trap(draft.payload, stranger_to(draft, main, dice)) if task.makes != "run" and n % 2 else None
    return trap or (draft.payload, task.truth(draft.payload))


def _traps(
    task: StudyTask, main: Sequence[QuestionDraft], wanted: int, dice: random.Random
) -> Iterable[tuple[QuestionDraft, dict[str, Any], Any]]:
    """Attention checks made of the study's own items."""
    made = 0
    for n in dice.sample(range(len(main)), len(main)):
        if made == wanted:
            return
        if trap := task.trap(main[n].payload, stranger_to(main[n], main, dice)):
            made += 1
            yield main[n], *trap
    if made < wanted:
        raise UsageError(f"attention={wanted}, but only {made} checks can be made of these items")


def stranger_to(draft: QuestionDraft, drafts: Sequence[QuestionDraft], dice: random.Random) -> str:
    """A caption of another item, the least like this one of some that are drawn."""
    own = {word for text in _captions(draft.payload) for word in text.lower().split()}
    drawn = [text for _ in range(8) for text in _captions(drafts[dice.randrange(len(drafts))].payload)]
    return min(drawn, key=lambda text: len(own & set(text.lower().split())) / max(1, len(text.split())))


def _captions(payload: dict[str, Any]) -> list[str]:
    found = payload.get("captions") or payload.get("foils") or [payload["caption"]]
    return list(found)


# -- later -----------------------------------------------------------------------------------------------------------


def study_named(session: Session, name: str) -> StudyRow:
    """A stored study; an error that lists the names where there is none."""
    study = session.scalar(select(StudyRow).where(StudyRow.name == name))
    if study is None:
        raise unknown("study", name, session.scalars(select(StudyRow.name)).all())
    return study


def set_state(db: Database, name: str, state: str, actor: str) -> None:
    """Pause, reopen or close a study."""
    if state not in (schema.OPEN, schema.PAUSED, schema.CLOSED):
        raise unknown("state", state, (schema.OPEN, schema.PAUSED, schema.CLOSED))
    with db.write() as session:
        study = study_named(session, name)
        study.state = state
        record(session, actor, f"{state} study", study, {})


def end_pilot(db: Database, name: str, actor: str) -> None:
    """Give out the questions that are not part of the pilot, too."""
    with db.write() as session:
        study = study_named(session, name)
        study.phase = 1
        record(session, actor, "end pilot", study, {})


def set_instructions(db: Database, name: str, text: str, actor: str, pictures: str = "") -> None:
    """What annotators read before they start, in Markdown.

    A picture `![words](image:NAME)` is taken from the folder `pictures`, or else from the benchmark's images, and kept
    with the study, re-encoded.
    """
    with db.write() as session:
        study = study_named(session, name)
        record(session, actor, "edit instructions", study, {"before": study.instructions})
        store = open_store(pictures or study.bench["images"]) if _PICTURE.search(text) else NO_IMAGES

        def attach(found: re.Match[str]) -> str:
            made = encode(open_image(store, found[1], max_pixels=MAX_PIXELS))
            kept = {"study_id": study.id, "name": secrets.token_urlsafe(16), "media_type": made.media_type}
            session.add(schema.Attachment(**kept, data=made.data))
            return f"](attachment:{kept['name']})"

        study.instructions = _PICTURE.sub(attach, text)


def change_settings(db: Database, name: str, actor: str, **changes: Any) -> None:
    """Change the settings of a study; see `StudySettings` for their names."""
    with db.write() as session:
        study = study_named(session, name)
        study.settings = changed(study.settings, changes)
        record(session, actor, "change settings", study, {"changes": changes})


def record(session: Session, actor: str, what: str, study: StudyRow | None, detail: dict[str, Any]) -> None:
    """A line of the audit trail; the events of a study form a chain."""
    plain = json.loads(json.dumps(detail, default=str))
    event = Event(study_id=study.id if study else None, at=time.time(), actor=actor[:80], what=what, detail=plain)
    if study is not None:
        if session.get_bind().dialect.name != "sqlite":
            # Two events at once form one chain; answers, which only refer to the study, do not wait for this lock.
            locked = (
                select(StudyRow.events, StudyRow.head).where(StudyRow.id == study.id).with_for_update(key_share=True)
            )
            study.events, study.head = session.execute(locked).one()
        event.digest = event_digest(study.head, event)
        study.events, study.head = study.events + 1, event.digest
    session.add(event)
    session.flush()


def count_questions(session: Session, study: StudyRow, kind: str = MAIN) -> int:
    """How many questions of a kind a study has."""
    found = session.scalar(
        select(func.count()).select_from(Question).where(Question.study_id == study.id, Question.kind == kind)
    )
    return int(found or 0)


def all_studies(session: Session, *, archived: bool = False) -> list[dict[str, Any]]:
    """Every study that is not archived, or every one that is, with its number of answers, newest first."""
    shown = StudyRow.archived.is_not(None) & ~StudyRow.name.startswith("~") if archived else StudyRow.archived.is_(None)
    counted: dict[tuple[int, str], int] = {
        (study, state): n
        for study, state, n in session.execute(
            select(Slot.study_id, Slot.state, func.count()).where(Slot.kind == MAIN).group_by(Slot.study_id, Slot.state)
        )
    }
    return [
        {
            "id": study.id,
            "study": study.name,
            "task": study.task,
            "benchmark": study.bench["name"],
            "state": study.state,
            "slots": sum(n for (own, state), n in counted.items() if own == study.id and state != schema.VOID),
            "done": counted.get((study.id, schema.DONE), 0),
        }
        for study in session.scalars(select(StudyRow).where(shown).order_by(StudyRow.id.desc()))
    ]
