"""Pages in a real browser that need no second database: right to left, and the page of an account."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.annotation.conftest import PASSWORD

from creperie.annotation import settings
from creperie.annotation.database import Database
from creperie.annotation.invitations import invite
from creperie.annotation.study import StudyPlan, change_settings, store_study
from creperie.annotation.web import language
from creperie.bench import Benchmark

pytestmark = pytest.mark.slow

ALPHABET = str.maketrans(dict(zip("abcdefghijklmnopqrstuvwxyz", "ابتثجحخدذرزسشصضطظعغفقكلمنه", strict=True)))


def mirrored(text: str) -> str:
    """A text in Arabic letters and as long as it was, for a language that nobody has translated yet."""
    return "".join(part if n % 2 else part.lower().translate(ALPHABET) for n, part in enumerate(_KEPT.split(text)))


_KEPT = re.compile(r"(%\(\w+\)s)")


def test_pages_from_right_to_left_fit_a_desktop_and_a_phone(
    address: str,
    page_of: Callable[..., Any],
    db: Database,
    bench: Benchmark,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = {text: mirrored(text) for text in language.catalogue("de")}
    monkeypatch.setattr(language, "catalogue", lambda name: words if name == "ar" else {})
    monkeypatch.setattr(language, "LANGUAGES", ("ar",))
    monkeypatch.setattr(settings, "LANGUAGES", ("en", "ar"))
    store_study(db, "s", bench, StudyPlan("find-negative", subsets=("triplet",), practice=0, per_annotator=4))
    text = {"consent": "I agree to **all** of it.", "information": "Who sees what.", "contact": "ana@example.org"}
    change_settings(db, "s", "test", language="ar", pay=4.5, retention_days=30, **text)
    shots = os.environ.get("CREPERIE_SHOTS")
    for width, height in ((1280, 800), (390, 844)):
        page = page_of(width, height)

        def fits(name: str, page: Any = page, width: int = width) -> None:
            assert page.evaluate("() => document.documentElement.dir") == "rtl", name
            assert page.evaluate("() => getComputedStyle(document.body).direction") == "rtl", name
            out = page.evaluate(
                """() => [...document.querySelectorAll("main *, header *")].filter((e) => {
                  if (e.closest("table, pre, dialog") || getComputedStyle(e).position === "fixed") return false;
                  const box = e.getBoundingClientRect();
                  return box.width && (box.right > innerWidth + 1 || box.left < -1);
                }).map((e) => e.outerHTML.slice(0, 90))"""
            )
            if shots:
                page.screenshot(path=f"{shots}/{name}-{width}.png", full_page=True)
            assert out == [], f"{name} at {width}"
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"

        page.goto(f"{address}/owner/login")
        fits("login")
        page.locator("input[name=name]").fill("ana")
        page.locator("input[name=password]").fill(PASSWORD)
        page.locator("button.main").click()
        page.wait_for_url("**/owner")
        fits("studies")
        for part in ("studies/s", "studies/s/settings", "studies/s/preview", "studies/s/questions/1", "account"):
            page.goto(f"{address}/owner/{part}")
            fits(part.replace("/", "-"))
        page.goto(invite(db, "s", 1)[0].link(address))
        fits("enter")
        page.locator("input[name=consent]").check()
        page.locator("button.main").click()
        page.locator("#stage").wait_for()
        page.locator("#stage .option").first.wait_for()
        fits("work")
        # Captions keep the direction of their own language.
        sides = "() => [...document.querySelectorAll('.option .quote')].map((o) => getComputedStyle(o).direction)"
        assert page.evaluate(sides) == ["ltr"] * 3


def test_the_account_page_measures_and_shows_what_is_typed(address: str, page_of: Callable[..., Any]) -> None:
    page = page_of()
    page.goto(f"{address}/owner/login")
    page.get_by_label("Name").fill("ana")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/owner")
    page.goto(f"{address}/owner/account")
    field, meter = page.get_by_label("New password"), page.locator("#strength")
    measured = []
    for text in ("aaaaaaaaaaaaaaaa", "bold otter", "bold otter walks far away"):
        field.fill(text)
        measured.append(float(meter.evaluate("(m) => m.value")))
    assert measured == sorted(measured)
    assert measured[0] < 4 < 12 < measured[2]
    assert field.get_attribute("type") == "password"
    page.get_by_label("Show what I type").check()
    assert field.get_attribute("type") == "text"
