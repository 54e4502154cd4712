"""A real browser goes through every task as an annotator; what is stored is looked at on both databases.

Accessibility is judged by axe-core, which comes with `axe-playwright-python`: a page has no violation at all. Labels,
names and focus are checked in any case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.annotation.acting import work

from creperie.annotation import (
    Database,
    StudyPlan,
    change_settings,
    invite,
    judged,
    store_study,
    study_named,
    study_record,
)
from creperie.annotation.schema import ANSWER, SKIP, UNDO, Answer, Question
from creperie.bench import Benchmark

pytestmark = pytest.mark.slow
both_databases = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)


def check_accessible(page: Any) -> None:
    """Every control has a name, every picture an alternative, and axe-core finds no violation."""
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, a, input:not([type=hidden]), select, textarea')]
        .filter((e) => !(e.innerText || '').trim() && !e.getAttribute('aria-label') && !(e.labels && e.labels.length)
                       && !e.querySelector('img'))
        .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert page.evaluate("() => [...document.images].filter((i) => !i.hasAttribute('alt')).length") == 0
    assert page.evaluate("() => document.documentElement.lang") == "en"
    if package := find_spec("axe_playwright_python"):
        page.evaluate(Path(str(package.origin)).with_name("axe.min.js").read_text(encoding="utf-8"))
        violations = page.evaluate("() => axe.run(document)")["violations"]
        assert [(v["id"], v["impact"], v["nodes"][0]["html"][:120]) for v in violations] == []


def enter(page: Any, address: str, db: Database, study: str) -> str:
    """Open a new invitation; the pseudonym."""
    made = invite(db, study, 1)[0]
    page.goto(made.link(address))
    page.get_by_role("button", name="Start").click()
    page.locator("#stage").wait_for()
    return made.pseudonym


def wait_for_count(page: Any, done: int) -> None:
    page.wait_for_function("(n) => document.getElementById('count').textContent.startsWith(n + ' ')", arg=str(done))


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def hint(page: Any) -> None:
    """Mend a caption by hand, say what was wrong, send."""
    press(page, "2")
    page.get_by_label("The second caption, corrected").fill("quite another caption")
    press(page, "Escape", "2", "Enter")


KEYS: dict[str, Callable[[Any], None]] = {
    "foil-check": lambda page: press(page, "1", "Enter"),
    "positive-check": hint,
    "triplet-check": lambda page: press(page, "3", "Enter"),
    "find-negative": lambda page: press(page, "2", "Enter"),
    "choose-caption": lambda page: press(page, "1", "2", "Enter"),
    "better-foil": lambda page: press(page, "1", "3", "Enter"),
    "bias-rating": lambda page: press(page, "ArrowRight", "ArrowRight", "Enter"),
}
SUBSETS = {
    "foil-check": "pair",
    "positive-check": "triplet",
    "triplet-check": "triplet",
    "find-negative": "triplet",
    "choose-caption": "two",
    "better-foil": "several",
    "bias-rating": "pair",
}


def expected(task: str, value: dict[str, Any]) -> bool:
    """Whether a stored value is one that these keys can mean, in some order of the options."""
    return {
        "foil-check": value == {"verdict": "false"},
        "positive-check": value == {"verdict": "edit", "text": "quite another caption", "error": "hallucination"},
        "triplet-check": value == {"verdict": "unsure"},
        "find-negative": value.get("caption") in (0, 1, 2),
        "choose-caption": sorted(value.get("captions", [])) == [0, 1],
        "better-foil": value.get("sense") in ("0", "1") and value.get("grammar") == "tie",
        "bias-rating": abs(value.get("rating", 0)) == 2,
    }[task]


def test_every_task_by_keyboard(address: str, page_of: Callable[..., Any], db: Database, bench: Benchmark) -> None:
    for n, task in enumerate(KEYS):
        plan = StudyPlan(task, subsets=(SUBSETS[task],), practice=0, per_annotator=2, overlap=1)
        store_study(db, task, bench, plan)
        page = page_of(*((1280, 800, "light") if n % 2 else (390, 844, "dark")))
        enter(page, address, db, task)
        check_accessible(page)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), f"{task} scrolls sideways"
        for done in (1, 2):
            KEYS[task](page)
            wait_for_count(page, done)
        page.get_by_role("heading", name="Thank you, that is all").wait_for()
        with db.read() as session:
            said = [s.value for one in judged(study_record(session, study_named(session, task))) for s in one.answers]
        assert len(said) == 2
        assert all(expected(task, value) for value in said), said


@both_databases
def test_what_is_seen_is_what_is_stored(
    address: str, page_of: Callable[..., Any], db: Database, bench: Benchmark
) -> None:
    """The caption on the chosen card is the caption of the stored answer, whatever the order."""
    store_study(
        db, "s", bench, StudyPlan("find-negative", subsets=("triplet",), practice=0, per_annotator=4, with_image=False)
    )
    page = page_of()
    enter(page, address, db, "s")
    chosen = []
    for done in range(1, 5):
        card = page.locator(".option").nth(done % 3)
        chosen.append(card.locator(".words").inner_text())
        card.click()
        page.get_by_role("button", name="Next").click()
        wait_for_count(page, done)
    with db.read() as session:
        rows = session.execute(
            select(Answer, Question).join(Question, Question.id == Answer.question_id).order_by(Answer.turn)
        ).all()
    assert [q.payload["captions"][a.value["caption"]].strip() for a, q in rows] == [c.strip() for c in chosen]


@both_databases
def test_practice_undo_skip_comment_zoom_and_help(
    address: str, page_of: Callable[..., Any], db: Database, bench: Benchmark
) -> None:
    store_study(db, "s", bench, StudyPlan("foil-check", subsets=("pair",), practice=2, per_annotator=5))
    page = page_of()
    enter(page, address, db, "s")
    for _ in range(2):
        page.get_by_text("Practice: this one does not count").wait_for()
        press(page, "Enter")
        assert "Please answer" in page.locator("#problem").inner_text()
        press(page, "1")
        assert page.locator("#problem").inner_text() == ""
        press(page, "Enter")
        page.get_by_role("heading", name=re.compile("Right|Not quite")).wait_for()
        check_accessible(page)
        press(page, "Enter")
        page.locator("#stage").wait_for()
    press(page, "?")
    assert page.get_by_role("dialog").get_by_text("undo the last answer").is_visible()
    page.get_by_role("button", name="Close").last.click()
    press(page, "z")
    page.locator("#zoom[open] img").wait_for()
    press(page, "z")
    page.locator("#zoom[open]").wait_for(state="hidden")
    press(page, "Enter")
    assert "Please answer" in page.locator("#problem").inner_text()
    caption = page.locator(".caption p").inner_text()
    press(page, "2", "c")
    page.get_by_label("Comment").fill("look <b>closer</b>")
    press(page, "Enter")
    wait_for_count(page, 1)
    press(page, "u")
    wait_for_count(page, 0)
    page.wait_for_function("(c) => document.querySelector('.caption p').innerText === c", arg=caption)
    assert page.locator("input[value=true]").is_checked()
    assert page.get_by_label("Comment").input_value() == "look <b>closer</b>"
    page.locator("label.option", has_text="Unsure").click()
    press(page, "Enter")
    wait_for_count(page, 1)
    shown = page.locator(".caption p").inner_text()
    press(page, "s")
    page.wait_for_function("(c) => document.querySelector('.caption p').innerText !== c", arg=shown)
    with db.read() as session:
        kinds = session.scalars(select(Answer.kind).order_by(Answer.turn)).all()
        last = session.scalars(select(Answer).where(Answer.kind == ANSWER).order_by(Answer.turn.desc())).first()
    assert kinds == [ANSWER, ANSWER, ANSWER, UNDO, ANSWER, SKIP]
    assert (last.value, last.comment) == ({"verdict": "unsure"}, "look <b>closer</b>")


def test_a_phone_shows_question_and_answers_without_scrolling(
    address: str, chromium: Any, db: Database, bench: Benchmark
) -> None:
    plan = StudyPlan("foil-check", subsets=("pair",), practice=1, per_annotator=9)
    store_study(db, "s", bench, plan)
    with db.write() as session:
        change_settings(session, study_named(session, "s"), "test", {"pay": 2.5, "currency": "EUR"})
    context = chromium.new_context(viewport={"width": 375, "height": 667}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(invite(db, "s", 1)[0].link(address))
    assert page.locator(".terms dd").all_inner_texts() == ["9 and 1 for practice", "about 3 min", "2.50 EUR"]
    assert page.evaluate("() => scrollY") == 0
    page.get_by_role("button", name="Start").click()
    page.locator("#stage").wait_for()
    for button in ("#send", "#go-on"):
        page.locator("#pictures img").evaluate("(image) => image.decode()")
        assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight"), button
        ends = page.locator(f"#pictures img, .caption, .option:visible, {button}").evaluate_all(
            "(all) => all.map((one) => [one.getBoundingClientRect().height, one.getBoundingClientRect().bottom])"
        )
        assert all(height > 30 and bottom <= 667 for height, bottom in ends), ends
        tops = "document.querySelector('.caption').getBoundingClientRect().bottom <= ask.getBoundingClientRect().top"
        assert page.evaluate(tops), "the question covers the caption"
        assert page.locator("kbd:visible").count() == 0
        if button == "#send":
            page.locator(".option").first.click()
            page.locator("#send").click()
            page.locator("#feedback").wait_for()
    assert page.locator(".option:has(:checked)").is_visible()  # beside the right answer
    check_accessible(page)
    context.close()


def test_a_long_form_on_a_phone_covers_nothing(address: str, chromium: Any, db: Database, bench: Benchmark) -> None:
    """The fields of a correction lay over the picture and the captions."""
    store_study(db, "s", bench, StudyPlan("positive-check", subsets=(SUBSETS["positive-check"],), practice=0))
    context = chromium.new_context(viewport={"width": 375, "height": 667}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(invite(db, "s", 1)[0].link(address))
    page.get_by_role("button", name="Start").click()
    page.locator(".option", has_text="Correct it").click()
    page.locator("#pictures img").evaluate("(image) => image.decode()")
    tops = "(all) => all.map((one) => [one.getBoundingClientRect().top, one.getBoundingClientRect().bottom])"
    places = page.locator("#pictures img, .caption, #ask, .option:visible, #send").evaluate_all(tops)
    assert all(first[1] <= second[0] and first[1] - first[0] > 25 for first, second in pairwise(places)), places
    context.close()


def test_whoever_has_to_wait_is_told_how_much_may_come_and_when_the_pay_is_owed(
    address: str, page_of: Callable[..., Any], db: Database, bench: Benchmark
) -> None:
    store_study(db, "s", bench, StudyPlan("foil-check", subsets=("pair",), practice=0, overlap=2))
    with db.write() as session:
        change_settings(session, study_named(session, "s"), "test", {"pay": 4.5})
    first, second, _ = invite(db, "s", 3)
    page = page_of()
    page.goto(first.link(address))
    assert page.locator(".terms dd").all_inner_texts() == ["up to 16", "up to about 4 min", "4.50"]
    assert page.get_by_text("You may be given fewer questions, as others answer too.").is_visible()
    page.get_by_role("button", name="Start").click()
    page.get_by_text("0 done, at most 16 more").wait_for()
    work(db, 1)
    page.reload()
    page.get_by_text("16 done", exact=True).wait_for()
    work(db, 2)
    page = page_of()
    page.goto(second.link(address))
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="That is all for now").wait_for()
    assert page.get_by_text("4.50 is owed once no question is left for you.").is_visible()
    assert not page.locator("#pay").is_visible()


LOSE_TWO = """() => {
  // The first answer never leaves; the second arrives, but the page does not hear of it. Later ones come through.
  const real = window.fetch;
  window.sent = [];
  window.fetch = async (path, request) => {
    if (path !== "/api/answer") return real(path, request);
    window.sent.push(JSON.parse(request.body).key);
    if (window.sent.length === 2) await real(path, request);
    if (window.sent.length <= 2) throw new TypeError("lost");
    return real(path, request);
  };
}"""


@both_databases
def test_an_answer_whose_receipt_is_lost_is_sent_again_and_stored_once(
    address: str, page_of: Callable[..., Any], db: Database, bench: Benchmark
) -> None:
    store_study(db, "s", bench, StudyPlan("foil-check", subsets=("pair",), practice=0, per_annotator=3))
    page = page_of()
    enter(page, address, db, "s")
    page.evaluate(LOSE_TWO)
    press(page, "1", "Enter")
    page.get_by_text("The server cannot be reached.").wait_for()
    page.evaluate("() => { for (let i = 0; i < 5; i++) document.getElementById('again').click(); }")
    wait_for_count(page, 1)  # it tries again by itself
    sent = page.evaluate("() => window.sent")
    assert len(sent) == 3
    assert len(set(sent)) == 1
    with db.read() as session:
        assert session.scalar(select(func.count()).select_from(Answer)) == 1
