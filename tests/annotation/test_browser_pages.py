"""Every page in a real browser: on a desktop, light, and on a phone, dark.

With $CREPERIE_SHOTS, a folder, the pages are also kept as pictures.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.annotation.acting import change_settings, work
from tests.annotation.test_browser import check_accessible

from creperie.annotation import Database, StudyPlan, invite, link_for, store_study
from creperie.bench import Benchmark

pytestmark = pytest.mark.slow

OUTSIDE = """() => [...document.querySelectorAll("main *, header *")].filter((e) => {
  if (e.closest("table, pre, dialog") || getComputedStyle(e).position === "fixed") return false;
  const box = e.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1);
}).map((e) => e.outerHTML.slice(0, 90))"""


def look(page: Any, name: str, mark: str) -> None:
    """A page fits its window, can be used by everybody, and is kept as a picture where that is wanted."""
    if shots := os.environ.get("CREPERIE_SHOTS"):
        page.screenshot(path=f"{shots}/{name}-{mark}.png", full_page=True)
    assert page.evaluate(OUTSIDE) == [], f"{name} {mark}"
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), f"{name} {mark} scrolls sideways"
    check_accessible(page)


def tour(page: Any, address: str, db: Database, mark: str) -> None:
    """All pages of an owner and of an annotator."""
    page.goto(f"{address}/join/{link_for(db, 'ana')}")
    page.wait_for_url("**/owner")
    look(page, "studies", mark)
    for name, path in (("study", ""), ("settings", "/settings"), ("question", "/questions/1")):
        page.goto(f"{address}/owner/studies/s{path}")
        assert page.locator("#annotators .problem li").count() == (2 if name == "study" else 0)  # who breaks a rule
        if name == "study":  # a table that is cut says so
            sign = "getComputedStyle(document.querySelector('.scroll.wide'), '::before').content"
            assert ("sideways" in page.evaluate(sign)) == mark.endswith("390")
        look(page, name, mark)
    for name, token in (("ended", "x" * 43), ("cut", "x" * 5)):
        page.goto(f"{address}/join/{token}")
        assert "incomplete" in page.locator("main").inner_text()
        look(page, name, mark)
    page.goto(invite(db, "s", 1)[0].link(address))
    look(page, "enter", mark)
    page.locator("input[name=consent]").check()
    page.locator("button.main").click()
    page.locator("#stage").wait_for()
    page.wait_for_function("() => [...document.images].every((i) => i.complete)")
    look(page, "work", mark)
    page.locator("#show-help").click()
    look(page, "help", mark)
    page.locator("#help-close").click()
    for done in range(4):
        page.wait_for_function("(n) => document.getElementById('count').textContent.startsWith(n)", arg=f"{done} ")
        page.keyboard.press("2")
        page.keyboard.press("Enter")
    page.locator("#done").wait_for()
    look(page, "done", mark)


def prepare(db: Database, bench: Benchmark, **more: Any) -> None:
    plan = StudyPlan("find-negative", subsets=("triplet",), practice=0, per_annotator=4, overlap=3)
    store_study(db, "s", bench, plan)
    invite(db, "s", 2)
    texts = {"consent": "I agree to **all** of it.", "information": "Who sees what.", "contact": "ana@example.org"}
    change_settings(
        db,
        "s",
        expected=1,
        pay=4.5,
        min_median_seconds=60,
        completion_url="https://app.example/?cc=X1",
        **texts,
        **more,
    )
    for who in (1, 2):
        work(db, who, 4, lambda desk, ticket: {"caption": "1"})


@pytest.mark.parametrize(("width", "height", "scheme"), [(1280, 800, "light"), (390, 844, "dark")])
def test_every_page_fits_and_is_accessible(
    address: str, page_of: Callable[..., Any], db: Database, bench: Benchmark, width: int, height: int, scheme: str
) -> None:
    prepare(db, bench)
    tour(page_of(width, height, scheme), address, db, f"{scheme}-{width}")
