"""Studies: the items of a benchmark become questions, as the task defines, and questions get slots for answers."""

from __future__ import annotations

import random
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from creperie.annotation.database import Database
from creperie.annotation.plans import StudyPlan
from creperie.annotation.schema import ATTENTION, DONE, FREE, MAIN, OPEN, PRACTICE, VOID, Question, Slot, StudyRow
from creperie.annotation.state import log, write_revision
from creperie.annotation.tasks import TASKS, task_named
from creperie.annotation.tasks.preference import BIAS, FOILS, by_kind, foil_pairs
from creperie.annotation.tasks.task import QuestionDraft, StudyTask
from creperie.annotation.web.pictures import MAX_PIXELS, store_at
from creperie.bench import Benchmark, Item, items_of, open_image
from creperie.core import DataError, Json, UsageError

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,47}")
#: The default number of practice questions: three, but at most a tenth of all questions.
PRACTICE_AT_MOST, PRACTICE_SHARE = 3, 10
#: Most items outside the sample to consider for practice and checks, so that fewer are taken from it.
SPARE = 200
#: Words that say nothing about the content of a picture.
FUNCTION_WORDS = (
    "a an the this that these those of in on at to from by with without and or but is are was were be been being it "
    "its there some one for as near next into over under up down out off his her their who which while where has have"
)


def study_name(title: str) -> str:
    """Return a valid study name made from any title.

    >>> study_name("Forty captions"), study_name("عربي")
    ('forty-captions', 'study')
    """
    return re.sub(r"[^a-z0-9._-]+", "-", title.lower())[:40].strip("-._") or "study"


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
    """Create a study in the database: its questions, in random but balanced order, and one slot per requested answer.

    `other` is the second benchmark of a task that compares two. `spec` names the benchmark, so that it can be loaded
    again when the answers are applied. With `pictures=False`, images are not checked; this is for studies that programs
    answer in place of people.
    """
    if not NAME.fullmatch(name):  # it is part of URLs and file names
        raise UsageError(
            f"{name[:60]!r} is not a valid study name",
            hint="use up to 48 lowercase letters, digits, dots, dashes, underscores",
        )
    task = task_named(plan.task)
    # Knowing the code, the benchmark and the seed must not reveal which questions are checks.
    secret = secrets.token_hex(32)
    dice = random.Random(secret)
    drafts = _split_questions(
        task, _drafts(task, bench, other, plan), _unsampled_drafts(task, bench, plan, dice), plan, dice
    )
    if pictures:
        _check_pictures(bench, drafts)
    with db.write() as session:
        if session.scalar(select(StudyRow.id).where(StudyRow.name == name)) is not None:
            raise UsageError(f"there is already a study {name!r}", where=db.place, hint="choose another name")
        study = StudyRow(
            name=name,
            task=plan.task,
            instructions=task.instructions([draft.payload for draft in drafts]),
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
        _store_questions(session, study, drafts, dice)
        log(session, actor, "create study", study, plan=asdict(plan))
    return study


def _about(bench: Benchmark, other: Benchmark | None) -> Json:
    """Return the name and content hash of a study's benchmark (and of `other`), and the location of its images."""
    place = bench.images.location
    about = {"name": bench.name, "hash": bench.hash, "images": str(Path(place).resolve()) if place else ""}
    return about | ({"other": {"name": other.name, "hash": other.hash}} if other else {})


def _check_pictures(bench: Benchmark, drafts: Sequence[QuestionDraft]) -> None:
    """Raise an error unless every picture can be shown; pictures are opened as the server will open them."""
    references = sorted({reference for draft in drafts for reference in draft.payload["images"]})
    store = store_at(bench.images.location if references else "")
    missing = []
    for reference in references:
        try:
            open_image(store, reference, max_pixels=MAX_PIXELS)
        except (DataError, OSError) as e:
            missing.append((reference, e))
    if missing:
        reference, error = missing[0]
        why = getattr(error, "what", error)
        raise UsageError(
            f"{len(missing)} of {len(references)} pictures cannot be shown to people; "
            f"the first, {reference[:80]!r}: {why}",
            where=bench.name,
            hint="pass the folder of the pictures as `images=`; replace links to files outside the folder by copies",
        )


# -- questions ---------------------------------------------------------------------------------------------------------


def _drafts(task: StudyTask, bench: Benchmark, other: Benchmark | None, plan: StudyPlan) -> list[QuestionDraft]:
    if other is not None and other.name == bench.name:
        raise UsageError(f"both benchmarks are called {bench.name!r}", hint="rename one of them")
    if other is not None and task.name == FOILS:
        items = _sampled_items(bench, replace(plan, sample=None))  # pairs are sampled by kind of foil
        drafts = list(foil_pairs(bench.name, items, other.name, list(items_of(other.table))))
        drafts = by_kind(drafts, plan.sample or len(drafts), plan.seed)
    else:
        items = _sampled_items(bench, plan)
        drafts = task.draft(bench.name, items, plan.with_image)
        if other is not None and task.name == BIAS:
            drafts += task.draft(other.name, _sampled_items(other, plan))
    if not drafts:
        counts = {name: len(one.draft(bench.name, items)) for name, one in TASKS.items()}
        fitting = ", ".join(f"{name} ({n} questions)" for name, n in counts.items() if n)
        raise UsageError(
            f"none of the {len(items)} items fits the task {task.name!r}: the task needs {task.words['needs']}",
            where=bench.name,
            hint=f"choose a task that fits: {fitting}" if fitting else "use other items: no task fits these",
        )
    return drafts


def _sampled_items(bench: Benchmark, plan: StudyPlan) -> list[Item]:
    candidates = bench.only(plan.subsets) if plan.subsets else bench
    return list(items_of((candidates if plan.sample is None else candidates.sample(plan.sample, plan.seed)).table))


def _unsampled_drafts(task: StudyTask, bench: Benchmark, plan: StudyPlan, dice: random.Random) -> list[QuestionDraft]:
    """Return questions about items that are not in the study's sample, as the first choice for practice questions and
    attention checks. The list is empty if there is no sample.
    """
    if plan.sample is None or task.name == FOILS:
        return []
    asked = {(item.subset, item.id) for item in _sampled_items(bench, plan)}
    left = [item for item in _sampled_items(bench, replace(plan, sample=None)) if (item.subset, item.id) not in asked]
    return task.draft(bench.name, dice.sample(left, min(SPARE, len(left))), plan.with_image)


def _split_questions(
    task: StudyTask, drafts: list[QuestionDraft], spare: list[QuestionDraft], plan: StudyPlan, dice: random.Random
) -> list[QuestionDraft]:
    """Return one list: the main questions, then the practice questions, then the attention checks.

    Practice questions and checks are made from `spare` and, if these are too few, from `drafts`. The main questions are
    the drafts of all items that were not used in this way.
    """
    practice = plan.practice
    if practice is None:
        practice = min(PRACTICE_AT_MOST, len(drafts) // PRACTICE_SHARE)
    pool = _one_per_item(spare, dice) + _one_per_item(drafts, dice)
    made: list[Made] = []
    while len(made) < practice + plan.attention and (known := next(_candidates(task, pool, len(made)), None)):
        made.append(known)
        pool = [draft for draft in pool if draft not in known[1]]
    if len(made) < practice + plan.attention:
        raise UsageError(
            f"only {len(made)} questions with a known answer can be made of these items, but practice={practice} and "
            f"attention={plan.attention} need {practice + plan.attention}",
            hint="lower practice or attention, or use more items",
        )
    used = {draft.key for _, drafts_used in made for draft in drafts_used}
    main = [draft for draft in drafts if draft.key not in used]
    asked = min(len(main), plan.per_annotator or len(main))
    if asked < max(1, plan.attention):
        raise UsageError(
            f"practice={practice} leaves {asked} questions for each annotator, too few for attention={plan.attention}",
            hint="lower practice or attention",
        )
    kinds = [PRACTICE] * practice + [ATTENTION] * plan.attention
    return main + [replace(one, kind=kind) for (one, _), kind in zip(made, kinds, strict=True)]


#: A question with a known answer, and the drafts from which it was made.
Made = tuple[QuestionDraft, list[QuestionDraft]]


def _one_per_item(drafts: Sequence[QuestionDraft], dice: random.Random) -> list[QuestionDraft]:
    """Return one draft per item, in random order."""
    return list({draft.key: draft for draft in dice.sample(drafts, len(drafts))}.values())


def _candidates(task: StudyTask, left: Sequence[QuestionDraft], n: int) -> Iterator[Made]:
    """Yield candidates for the n-th question with a known answer. Each comes with the drafts from which it was made."""
    # Which answer is right depends on n, so that over all questions every answer is right equally often.
    for own in left:
        turn = n % (len(task.known(own.payload, own.payload)) or 1)
        for other in (None, *left):
            known = task.known(own.payload, other.payload if other else None)
            if other is own or turn >= len(known):
                continue
            if other is None or contradicts(own.payload, other.payload):
                payload, expected = known[turn]
                yield replace(own, payload=payload, expected=expected), [own, *([other] if other else [])]


def contradicts(own: Json, other: Json) -> bool:
    """Return True if the true captions of the item `other` are false for the picture of the item `own`.

    This is assumed if one of these captions is a foil of `own`, or if they share no content word with the true captions
    of `own`.

    >>> [contradicts({"true": "a red circle"}, {"true": text}) for text in ("a blue square", "two circles")]
    [True, False]
    """
    theirs = _true_captions(other)
    if own.get("caption") in theirs or own.get("foil") in theirs:
        return True
    return not _content_words(_true_captions(own)) & _content_words(theirs)


def _true_captions(payload: Json) -> list[str]:
    if "match" in payload:
        return [c for c, fits in zip(payload["captions"], payload["match"]) if fits]
    return list(payload["captions"]) if "captions" in payload else [payload["true"] or ""]


def _content_words(captions: Iterable[str]) -> set[str]:
    words = {word for text in captions for word in re.findall(r"[^\W\d_]+", text.lower())}
    return {word.removesuffix("s") for word in words.difference(FUNCTION_WORDS.split())}


def _store_questions(session: Session, study: StudyRow, drafts: Sequence[QuestionDraft], dice: random.Random) -> None:
    """Store the questions, and one slot per requested answer."""
    # The slots for the first answers are in one random order, those for the second answers in another, and so on.
    rows = [{**vars(draft), "study_id": study.id, "ordinal": n} for n, draft in enumerate(drafts)]
    session.execute(insert(Question), rows)
    own = select(Question.id).where(Question.study_id == study.id, Question.kind == MAIN)
    asked = session.scalars(own.order_by(Question.ordinal)).all()
    subsets = [draft.subset for draft in drafts if draft.kind == MAIN]
    slots = [
        {"study_id": study.id, "question_id": asked[n], "kind": MAIN, "copy": copy, "rank": rank, "state": FREE}
        for copy in range(study.plan["overlap"])
        for rank, n in enumerate(balanced_order(subsets, dice))
    ]
    session.execute(insert(Slot), slots)


def balanced_order(subsets: Sequence[str], dice: random.Random) -> list[int]:
    """Return the indices of items in a random but balanced order: each subset has about the same share in any section
    of the order as in the whole. `subsets` holds the subset of each item.

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


def all_studies(session: Session) -> list[Json]:
    """Return one row per study, newest first, with the number of its answers. In a row, `place` is the benchmark as the
    user named it.
    """
    done = func.count().filter(Slot.state == DONE)
    rows = session.execute(
        select(StudyRow, func.count(Slot.id), done)
        .join(Slot, (Slot.study_id == StudyRow.id) & (Slot.kind == MAIN) & (Slot.state != VOID))
        .group_by(StudyRow.id)
        .order_by(StudyRow.id.desc())
    )
    return [
        {
            **s.part("id", "task", "state"),
            "study": s.name,
            "benchmark": s.bench["name"],
            "place": s.bench.get("spec", ""),
            "hash": s.bench["hash"],
            "slots": n,
            "done": count,
        }
        for s, n, count in rows
    ]
