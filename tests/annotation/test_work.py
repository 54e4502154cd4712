"""Work distribution: slots, leases, order, skip, undo, retries, and answers that stay."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from sqlalchemy import delete, event, func, select, update
from tests.annotation.acting import begin, change_settings, desk_for, set_state, work
from tests.annotation.conftest import Browser

from creperie.annotation import Database, StudyPlan, invite, store_study, study_named
from creperie.annotation.answers import WorkError, answer, skip, undo
from creperie.annotation.schema import ATTENTION, DONE, MAIN, PRACTICE, Annotator, Answer, Question, SchemaTable, Slot
from creperie.annotation.state import StateError
from creperie.annotation.tasks.form import AnswerError
from creperie.annotation.view import StudyTerms, terms_of
from creperie.bench import Benchmark
from creperie.core import UsageError

both_databases = pytest.mark.parametrize(
    "place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)


def take(db: Database, who: int, now: float | None = None) -> Slot | None:
    with db.write() as session:
        return desk_for(session, who, now).take()


def reply(db: Database, who: int, ticket: Slot, key: str, verdict: str = "false") -> None:
    with db.write() as session:
        answer(desk_for(session, who), ticket.token or "", key, {"verdict": verdict}, "")


def count(db: Database, **where: object) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).select_from(Answer).filter_by(**where)) or 0


@both_databases
def test_everybody_answers_each_question_at_most_once_and_all_slots_are_filled(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, people=3, overlap=2)
    done: Counter[int] = Counter()
    while sum(_one(db, who, done) for who in people):
        pass
    assert set(done.values()) == {2}
    assert len(done) == 16
    with db.read() as session:
        pairs = session.execute(select(Answer.question_id, Answer.annotator_id)).all()
        assert len(pairs) == len(set(pairs)) == 32
        assert set(session.scalars(select(Slot.state))) == {DONE}
    assert [take(db, who) for who in people] == [None] * 3


def _one(db: Database, who: int, done: Counter[int]) -> bool:
    ticket = take(db, who)
    if ticket is None:
        return False
    reply(db, who, ticket, f"{who}-{ticket.question.id}")
    done[ticket.question.id] += 1
    return True


@both_databases
def test_two_annotators_at_once_never_hold_the_same_slot(
    db: Database, bench: Benchmark, another: Callable[[], Database]
) -> None:
    people = begin(db, bench, people=8, overlap=1)
    second = another()
    tickets = _at_once(*(partial(take, (db, second)[n % 2], who) for n, who in enumerate(people)))
    assert len({ticket.id for ticket in tickets}) == len(people)


@both_databases
def test_an_abandoned_slot_returns_and_the_late_answer_is_refused(db: Database, bench: Benchmark) -> None:
    late, next_one = begin(db, bench, overlap=1, lease=60.0)
    ticket = take(db, late, now=1000.0)
    early = take(db, next_one, now=1059.0)
    assert early.id != ticket.id
    reply(db, next_one, early, "k")
    taken = take(db, next_one, now=1061.0)
    assert taken.id == ticket.id
    assert taken.token != ticket.token
    with pytest.raises(WorkError, match="no longer yours"):
        reply(db, late, ticket, "late")
    reply(db, next_one, taken, "mine")
    assert count(db, slot_id=ticket.id) == 1


@both_databases
def test_a_late_answer_and_the_next_annotator_never_both_win(
    db: Database, bench: Benchmark, another: Callable[[], Database]
) -> None:
    """The slot's time is over; its holder answers in the very moment in which another one is to get it."""
    late, next_one = begin(db, bench, overlap=1, lease=60.0)
    second = another()
    for n in range(6):
        ticket = take(db, late, now=1000.0)
        answered, taken = _at_once(
            partial(_tries_to_answer, db, late, ticket, f"late-{n}"), partial(take, second, next_one, now=2000.0)
        )
        assert isinstance(taken, Slot)
        assert (taken.id == ticket.id) != answered
        assert count(db, slot_id=ticket.id) == int(answered)
        reply(db, next_one, taken, f"next-{n}")
        assert count(db, slot_id=taken.id) == 1


def _tries_to_answer(db: Database, who: int, ticket: Slot, key: str) -> bool:
    try:
        reply(db, who, ticket, key)
    except WorkError:
        return False
    return True


def _at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What calls give that begin in the same moment."""
    gate = threading.Barrier(len(calls))

    def wait_and(call: Callable[[], Any]) -> Any:
        gate.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [f.result(60) for f in [pool.submit(wait_and, call) for call in calls]]


def test_a_late_answer_counts_while_nobody_else_took_the_slot(db: Database, bench: Benchmark) -> None:
    late, _ = begin(db, bench, lease=60.0)
    ticket = take(db, late, now=1000.0)
    assert ticket is not None
    reply(db, late, ticket, "k")
    assert count(db) == 1


@both_databases
def test_a_request_that_is_sent_twice_is_stored_once(db: Database, bench: Benchmark) -> None:
    who, _ = begin(db, bench)
    ticket = take(db, who)
    assert ticket is not None
    for _ in range(3):
        reply(db, who, ticket, "same-key")
    assert count(db) == 1
    with pytest.raises(WorkError, match="no longer yours"):
        reply(db, who, ticket, "another-key")
    with pytest.raises(WorkError, match="as part of another action"), db.write() as session:
        undo(desk_for(session, who), "same-key")


def _terms(db: Database, who: int) -> StudyTerms:
    with db.read() as session:
        return terms_of(session, study_named(session, "s"), session.get_one(Annotator, who))


@both_databases
def test_one_person_in_a_hurry_does_not_shorten_the_promised_time(db: Database, bench: Benchmark) -> None:
    promised = []
    for who in begin(db, bench, people=4, overlap=4):
        promised.append(dict(_terms(db, who).rows)["Time"])
        work(db, who)
        with db.write() as session:
            session.execute(update(Answer).values(seconds=0.5))
    assert promised == ["about 4 min"] * 3 + ["about 1 min"]


@both_databases
def test_practice_is_promised_whether_the_plan_names_its_number_or_not(db: Database, bench: Benchmark) -> None:
    who, _ = begin(db, bench, practice=None, per_annotator=5)
    assert dict(_terms(db, who).rows)["Questions"] == "5 and 1 for practice"


@both_databases
def test_questions_that_suffice_for_everybody_are_promised_in_full(db: Database, bench: Benchmark) -> None:
    """Four of sixteen questions, each asked twice, are enough for eight people; the page said "up to 4" to three."""
    who, *_ = begin(db, bench, people=8, overlap=2, per_annotator=4)
    promised = [_terms(db, who)]
    invite(db, "s", 1)
    promised.append(_terms(db, who))
    assert [(one.fewer, dict(one.rows)["Questions"]) for one in promised] == [(False, "4"), (True, "up to 4")]


@both_databases
def test_the_first_page_promises_what_is_left_for_the_person_who_reads_it(db: Database, bench: Benchmark) -> None:
    """The first page promised all questions to the third person, too, whom others had left only two."""
    people, promised, given = begin(db, bench, people=3, overlap=2), [], []
    change_settings(db, "s", pay=4.5)
    for who in people:
        promised.append(_terms(db, who))
        given.append(work(db, who))
    numbers = [dict(one.rows)["Questions"] for one in promised]
    assert (given, numbers) == ([16, 14, 2], ["up to 16", "up to 16", "up to 2"])
    assert all(one.fewer and "It is owed once none is left for you" in one.paid for one in promised)
    assert dict(promised[0].rows)["Time"] == "up to about 4 min"
    assert [_terms(db, who).rows for who in people[:1]] == [[("Questions", "none at the moment"), ("Pay", "4.50")]]


def test_undo_gives_the_slot_back_and_keeps_the_answer_on_record(db: Database, bench: Benchmark) -> None:
    who, _ = begin(db, bench)
    first = take(db, who)
    reply(db, who, first, "1", "true")
    second = take(db, who)
    for _ in range(2):  # the second time it is the same request again
        with db.write() as session:
            undo(desk_for(session, who), "u")
    again = take(db, who)
    assert again.id == first.id != second.id
    reply(db, who, again, "2", "false")
    with db.read() as session:
        rows = session.scalars(select(Answer).order_by(Answer.turn)).all()
    assert [(r.kind, (r.value or {}).get("verdict")) for r in rows] == [
        ("answer", "true"),
        ("undo", None),
        ("answer", "false"),
    ]
    back = take(db, who)
    assert back.id == second.id


@both_databases
def test_a_skipped_question_goes_to_somebody_else_only(db: Database, bench: Benchmark) -> None:
    who, other = begin(db, bench, overlap=1)
    ticket = take(db, who)
    with db.write() as session:
        skip(desk_for(session, who), ticket.token or "", "s", "too small")
    seen = set()
    while (mine := take(db, who)) is not None:
        seen.add(mine.question.id)
        reply(db, who, mine, f"k{len(seen)}")
    assert len(seen) == 15
    assert ticket.question.id not in seen
    theirs = take(db, other)
    assert theirs.question.id == ticket.question.id


def test_the_quota_ends_the_work(db: Database, bench: Benchmark) -> None:
    who, _ = begin(db, bench, per_annotator=3)
    answered = 0
    while (ticket := take(db, who)) is not None:
        answered += 1
        reply(db, who, ticket, str(answered))
    assert answered == 3


def test_practice_comes_first_and_attention_checks_come_in_between(db: Database, bench: Benchmark) -> None:
    who, _ = begin(db, bench, practice=2, attention=2, attention_every=4, per_annotator=8)
    kinds = []
    while (ticket := take(db, who)) is not None:
        kinds.append(ticket.kind)
        reply(db, who, ticket, str(len(kinds)))
    assert kinds[:2] == [PRACTICE] * 2
    assert (kinds.count(MAIN), kinds.count(ATTENTION)) == (8, 2)
    with db.write() as session:
        progress = desk_for(session, who).progress()
    assert (progress.done, progress.total) == (len(kinds) - 2, 10)


@pytest.mark.parametrize(
    "plan",
    [
        {"per_annotator": 6, "attention": 1},
        {"per_annotator": 5, "attention": 5},
        {"per_annotator": 7, "attention": 3},
        {"attention": 3, "overlap": 2},  # about ten questions for each of three people
        {"attention": 3, "overlap": 1},  # the questions run out before the second check is due
    ],
    ids=str,
)
def test_everybody_gets_the_promised_checks(db: Database, bench: Benchmark, plan: dict[str, Any]) -> None:
    people = begin(db, bench, people=3, **plan)
    for turn in range(3):  # one after the other, and again for what opened meanwhile
        for who in people:
            _answer_all(db, who, f"{turn}-")
    with db.read() as session:
        own = select(Slot.annotator_id, func.count()).where(Slot.kind == ATTENTION, Slot.state == DONE)
        assert dict(session.execute(own.group_by(Slot.annotator_id)).all()) == dict.fromkeys(people, plan["attention"])
        assert all(one.outcome for one in session.scalars(select(Annotator)))


def test_more_checks_than_questions_are_refused(db: Database, bench: Benchmark) -> None:
    for plan in ({"per_annotator": 2, "attention": 3}, {"attention": 7}):
        with pytest.raises(UsageError, match="too few for attention"):
            begin(db, bench, **plan)


def test_checks_go_on_for_those_who_began_under_an_earlier_version(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, people=1, overlap=1, attention=4, attention_every=2)
    for n in range(4):
        reply(db, who, take(db, who) or Slot(), f"before-{n}")
    with db.write() as session:  # as the migration leaves it: earlier versions made a check when it was due
        before = session.scalar(select(func.count()).where(Slot.kind == ATTENTION, Slot.state == DONE)) or 0
        session.execute(delete(Slot).where(Slot.kind == ATTENTION, Slot.state != DONE))
    assert 0 < before < 4
    _answer_all(db, who)
    with db.read() as session:
        own = select(Answer.question_id).join(Question).where(Question.kind == ATTENTION).order_by(Answer.turn)
        assert len(set(session.scalars(own))) == 4


def test_practice_items_are_not_asked_for_results(db: Database, bench: Benchmark) -> None:
    begin(db, bench, practice=4)
    with db.read() as session:
        by_kind = {kind: set() for kind in (MAIN, PRACTICE)}
        for q in session.scalars(select(Question)):
            by_kind[q.kind].add((q.subset, q.item))
    assert len(by_kind[PRACTICE]) == 4
    assert not by_kind[PRACTICE] & by_kind[MAIN]


def _answer_all(db: Database, who: int, key: str = "a") -> int:
    n = 0
    while (ticket := take(db, who)) is not None:
        n += 1
        reply(db, who, ticket, f"{key}{n}")
    return n


def test_a_stopped_study_gives_nothing_out_and_goes_on_later(db: Database, bench: Benchmark) -> None:
    who, _ = begin(db, bench)
    set_state(db, "s", "paused", "test")
    assert take(db, who) is None
    set_state(db, "s", "open", "test")
    assert take(db, who) is not None


@both_databases
def test_answers_are_never_changed_or_deleted(db: Database, bench: Benchmark) -> None:
    who, _ = begin(db, bench)
    ticket = take(db, who)
    assert ticket is not None
    reply(db, who, ticket, "k")
    with pytest.raises(StateError, match="cannot be changed"), db.write() as session:
        session.scalars(select(Answer)).one().comment = "x"
    with pytest.raises(StateError, match=r"cannot be deleted; to erase .* `annotate withdraw`"), db.write() as session:
        session.delete(session.scalars(select(Answer)).one())
    assert count(db, comment="") == 1


@pytest.mark.parametrize(
    "given", [{}, {"verdict": "maybe"}, {"verdict": None}, {"verdict": "false", "x": 1}, {"verdict": ["false"]}]
)
def test_an_answer_that_does_not_fit_is_refused_and_the_slot_stays(
    db: Database, bench: Benchmark, given: dict[str, object]
) -> None:
    who, _ = begin(db, bench)
    ticket = take(db, who)
    with pytest.raises(AnswerError), db.write() as session:
        answer(desk_for(session, who), ticket.token or "", "k", given, "")
    assert count(db) == 0
    same = take(db, who)
    assert same.id == ticket.id


def test_the_order_is_random_but_balanced_over_subsets(db: Database, bench: Benchmark) -> None:
    store_study(db, "s", bench.only(["pair", "several"]), StudyPlan("foil-check", overlap=2, practice=0))
    with db.read() as session:
        rows = session.execute(
            select(Slot.copy, Question.subset, Slot.question_id)
            .join(Question, Question.id == Slot.question_id)
            .order_by(Slot.rank)
        ).all()
    first, second = ([r for r in rows if r.copy == copy] for copy in (0, 1))
    assert [r.question_id for r in first] != [r.question_id for r in second]
    for start_at in range(0, 40, 10):  # 16 pairs, 32 foils of several: a third and two thirds of every block
        assert 2 <= sum(r.subset == "pair" for r in first[start_at : start_at + 10]) <= 4


@both_databases
def test_migrations_give_exactly_the_tables_of_the_schema(db: Database) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with db.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), SchemaTable.metadata) == []


def test_studies_that_cannot_be_are_refused_with_a_reason(db: Database, bench: Benchmark) -> None:
    begin(db, bench)
    for name, subset, plan, message in (
        ("s", "pair", {}, "already"),
        ("Not A Name", "pair", {}, "not a valid study name"),
        ("t", "pair", {"task": "positive-check"}, "none of the 16 items fits"),
        ("t", "pair", {"task": "foil-chek"}, "did you mean 'foil-check'"),
        ("t", "pair", {"practice": 16}, "known answer"),
        ("t", "two", {"task": "choose-caption", "attention": 30}, "only 8 questions with a known answer"),
        ("t", "pair", {"overlap": 0}, "at least 1"),
    ):
        with pytest.raises(UsageError, match=message):
            store_study(db, name, bench.only([subset]), StudyPlan(**({"task": "foil-check"} | plan)))  # type: ignore[arg-type]


@both_databases
def test_one_request_from_eight_connections_at_once_is_stored_once(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, people=1, overlap=1)
    for n in range(6):
        ticket = take(db, who)
        token, key, barrier = ticket.token or "", f"key-{n}", threading.Barrier(8)

        def send(_: int, token: str = token, key: str = key, barrier: threading.Barrier = barrier) -> Any:
            barrier.wait(60)
            with db.write() as session:
                desk = desk_for(session, who)
                return answer(desk, token, key, {"verdict": "false"}, "").key, desk.take() is not None

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(send, range(8))) == [(key, True)] * 8
    assert count(db) == 6


@both_databases
def test_an_answer_and_the_next_question_take_a_dozen_statements(
    db: Database, bench: Benchmark, browser: Callable[..., Browser]
) -> None:
    store_study(db, "s", bench.only(["pair"]), StudyPlan("foil-check", practice=0, overlap=2))
    page = browser()
    page.join(invite(db, "s", 3)[0].token)
    question = page.question()
    statements: list[str] = []
    event.listen(db.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    for n in range(5):
        sent = {"slot": question["slot"], "key": f"statements-{n}", "fields": {"verdict": "true"}}
        question = page.api("answer", sent).json()["question"]
    assert len(statements) <= 5 * 12, statements


@pytest.mark.slow
@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_nobody_waits_for_a_slot_that_somebody_else_is_about_to_take(db: Database, bench: Benchmark) -> None:
    first, second = begin(db, bench, overlap=2)
    with db.write() as session:
        ticket = desk_for(session, first).take()
        with ThreadPoolExecutor(1) as pool:  # the first transaction is still open
            other = pool.submit(take, db, second).result(timeout=5)
    assert getattr(ticket, "id", None) != getattr(other, "id", None)
