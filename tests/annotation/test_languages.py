"""The annotators' pages in other languages: nothing is left untranslated, and every answer means the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest
from tests.annotation.acting import change_settings
from tests.annotation.test_results import ITEMS

from creperie.annotation.links import invite
from creperie.annotation.outcome import ADJUDICATED, MAJORITY, SPLIT, TOO_FEW, UNANIMOUS, UNANSWERED, WEIGHTED
from creperie.annotation.schema import COMPLETED
from creperie.annotation.settings import LANGUAGES
from creperie.annotation.state import STUDY_MOVES
from creperie.annotation.study import StudyPlan, store_study
from creperie.annotation.tasks import TASKS
from creperie.annotation.tasks.task import Material, speaking, texts
from creperie.annotation.web.language import catalogue, direction, translator
from creperie.annotation.web.site import Site
from creperie.bench import Benchmark

OTHERS = [language for language in LANGUAGES if language != "en"]


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_of_the_pages_has_a_translation_and_no_other_has(language: str) -> None:
    folder = resources.files("creperie.annotation") / "templates"
    html = "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    texts_of_pages = set(re.findall(r'_\("([^"]+)"', html))
    texts_of_pages |= {
        text for pair in re.findall(r'(?:number|area)\("\w+", "([^"]+)", "([^"]+)"', html) for text in pair
    }
    labels = {*STUDY_MOVES, ADJUDICATED, UNANIMOUS, MAJORITY, SPLIT, WEIGHTED, TOO_FEW, UNANSWERED, COMPLETED}
    for task in TASKS.values():
        for draft in task.draft(Material("x", ITEMS)):
            form = task.show(draft.payload, range(task.shuffled(draft.payload)))
            labels |= {f.label for f in form.fields} | {label for label, _ in form.texts} | set(form.pictures)
            labels |= {end for f in form.fields for end in f.ends if end}
    labels -= set(texts()["better-foil"]["fields"].values())  # these stand with the task
    known = set(catalogue(language))
    assert (texts_of_pages | labels) - known == set()
    assert len(known - texts_of_pages - labels) < 16  # titles and sentences that Python gives to pages


@pytest.mark.parametrize("language", OTHERS)
def test_tasks_have_the_same_keys_and_values(language: str) -> None:
    def shape(found: Any) -> Any:
        return {
            task: {k: [o["value"] for o in v] if isinstance(v, list) else None for k, v in words.items()}
            for task, words in found.items()
        }

    plain = shape(texts())
    with speaking(language):
        assert shape(texts()) == plain


def test_a_page_speaks_the_language_of_its_study(browser: Callable[..., Any], site: Site, bench: Benchmark) -> None:
    store_study(site.db, "s", bench.only(["pair"]), StudyPlan("foil-check", practice=0))
    change_settings(site.db, "s", "test", language="de")
    link = invite(site.db, "s", 1)[0]
    page = browser().get(f"/join/{link.token}").text
    assert '<html lang="de" dir="ltr"' in page
    assert "Beginnen" in page
    who = browser().join(link.token)
    assert "Überspringen" in who.get("/work").text
    question = who.api("next").json()["question"]
    assert question["ask"] == "Ist diese Bildunterschrift für das Bild falsch?"
    assert [o["value"] for o in question["fields"][0]["options"]] == ["false", "true", "unsure"]
    assert question["fields"][0]["label"] == "Ihr Urteil"


def test_right_to_left_and_unknown_languages_are_safe() -> None:
    assert (direction("ar"), direction("de")) == ("rtl", "ltr")
    assert translator("xx")("Start") == "Start"
    assert translator("de")("%(n)s left to decide", n=3).startswith("noch 3")
