"""The owner's pages: German, live progress, roles, archive and delete, pictures in the instructions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from tests.annotation.test_strangers import work

from creperie.annotation.database import Database
from creperie.annotation.schema import Annotator, Answer, Attachment
from creperie.annotation.study import set_instructions, study_named
from creperie.annotation.web.site import Site
from creperie.bench import ImageError

GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}


def test_owners_who_prefer_german_get_german(browser: Callable[..., Any], study: Any, site: Site) -> None:
    study("s", people=1)
    ana, german = browser().log_in(), browser().log_in()
    german.client.headers.update(GERMAN)
    pages = {
        "/owner": ["Neue Studie", "Antworten je Frage", "Falsche Bildunterschriften prüfen", "offen"],
        "/owner/studies/s": ["Teilnehmende", "Fortschritt", "Anhalten", "Protokoll"],
        "/owner/studies/s/settings": ["Einwilligungstext", "Ausschlussregeln"],
        "/owner/studies/s/preview": ["Vorschau", "Ihr Urteil"],
        "/owner/studies/s/questions/0": ["Was gesagt wurde", "Entscheiden"],
        "/owner/account": ["Neues Passwort", "Zweiter Faktor"],
    }
    for path, words in pages.items():
        page = german.get(path).text
        assert '<html lang="de"' in page
        assert [word for word in words if word not in page] == [], path
        assert '<html lang="en"' in ana.get(path).text


def test_progress_is_followed_without_a_reload(browser: Callable[..., Any], study: Any, db: Database) -> None:
    study("s", people=1, overlap=1)
    ana = browser().log_in()
    assert 'data-live="/owner/studies/s/progress.json"' in ana.get("/owner/studies/s").text
    before = ana.get("/owner/studies/s/progress.json", "application/json").json()
    work(db, 1, 3)
    after = ana.get("/owner/studies/s/progress.json", "application/json").json()
    assert (before["done"], after["done"], after["slots"]) == (0, 3, before["slots"])
    assert sum(row["done"] for row in after["subsets"]) == 3
    assert browser().get("/owner/studies/s/progress.json", "application/json").status_code == 401


def test_roles_archive_and_delete_on_the_page(browser: Callable[..., Any], study: Any, db: Database) -> None:
    study("s", people=1, overlap=1)
    work(db, 1, 2)
    ana, rob = browser().log_in(), browser().log_in("rob")

    def manage(who: Any, **data: str) -> int:
        return int(who.post("/owner/studies/s/manage", data).status_code)

    assert manage(rob, action="archive") == 403
    assert manage(ana, action="role", value="rob", role="owner") == 303
    assert re.search(r"<b>rob</b> owner", ana.get("/owner/studies/s").text)
    assert manage(rob, action="archive") == 303
    assert "Archived" in ana.get("/owner").text
    assert manage(ana, action="unarchive") == 303
    assert "Archived" not in ana.get("/owner").text
    assert manage(ana, action="role", value="rob", role="") == 303
    assert manage(rob, action="archive") == 403
    assert manage(ana, action="delete", value="") == 400  # it has answers
    assert manage(ana, action="delete", value="s") == 303
    assert ana.get("/owner/studies/s").status_code == 404
    with db.read() as session:
        assert [a.value for a in session.scalars(select(Answer))] == [None, None]
        assert session.scalars(select(Annotator.worker)).all() == [None]


def test_instructions_show_pictures_of_the_benchmark_encoded_anew(
    browser: Callable[..., Any], study: Any, db: Database, bench: Any
) -> None:
    (token,) = study("s", people=1)
    name = bench.column("images").to_pylist()[0][0]
    ana = browser().log_in()
    text = f"Look at this:\n\n![a shape](image:{name})\n\n![elsewhere](https://elsewhere.example/x.png)"
    assert ana.post("/owner/studies/s/instructions", {"text": text}).status_code == 303
    page = browser().get(f"/join/{token}").text
    source = re.findall(r'<img src="(/attachment/[^"]+)" alt="a shape">', page)
    assert len(source) == 1
    assert "elsewhere.example" not in page
    assert name not in page
    picture = browser().get(source[0])
    assert (picture.status_code, picture.content[:4]) == (200, b"\x89PNG")
    assert "img-src 'self'" in picture.headers["content-security-policy"]
    with pytest.raises(ImageError):
        set_instructions(db, "s", "![x](image:../../../etc/passwd)", "test")
    with db.read() as session:
        assert len(session.scalars(select(Attachment)).all()) == 1
        assert "Look at this" in study_named(session, "s").instructions
