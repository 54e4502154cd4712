"""The annotators' pages in other languages: nothing is left untranslated, and every answer means the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.annotation.acting import change_settings

from creperie.annotation.links import invite
from creperie.annotation.settings import LANGUAGES
from creperie.annotation.study import StudyPlan, store_study
from creperie.annotation.tasks.task import speaking, texts
from creperie.annotation.web.language import direction, translator
from creperie.annotation.web.site import Site
from creperie.bench import Benchmark

OTHERS = [language for language in LANGUAGES if language != "en"]


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
    assert translator("de")("Links and notes about you are erased after %(days)s days.", days=3).endswith(
        "3 Tagen gelöscht."
    )
