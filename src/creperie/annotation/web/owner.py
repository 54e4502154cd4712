"""The owner's side: see all studies, make one, and give links to other owners and adjudicators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field

from creperie.annotation.links import DAYS, Invitation, leave, link_for, list_links, revoke_link
from creperie.annotation.schema import ADJUDICATOR, OWNER
from creperie.annotation.study import StudyPlan, all_studies, store_study
from creperie.annotation.tasks import TASKS
from creperie.annotation.web import owner_people, owner_study
from creperie.annotation.web.site import (
    OWNED,
    AnyOwnerHere,
    Csrf,
    ReaderHere,
    Site,
    SiteHere,
    Text,
    actor_of,
    check_csrf,
    cookie,
    drop_cookie,
    page,
    to,
)
from creperie.bench import MANIFEST_FILE, load
from creperie.core import CreperieError, UsageError

router = APIRouter(prefix="/owner", default_response_class=HTMLResponse, include_in_schema=False)
router.include_router(owner_study.router)
router.include_router(owner_people.router)

#: How deep under the root benchmarks are looked for, and how many are listed.
DEPTH, LISTED = 4, 200

Number = Annotated[str, Field(pattern=r"^[0-9]{0,6}$")]


@router.post("/logout")
def logout(request: Request, site: SiteHere, csrf: Csrf = "") -> Response:
    """End the visit of this browser; the link opens it again."""
    check_csrf(request, csrf)
    leave(site.db, cookie(request, OWNED))
    response = to("/")
    drop_cookie(response, request, OWNED)
    return response


@router.get("")
def studies_page(request: Request, site: SiteHere, who: ReaderHere) -> Response:
    """All studies, and the form to make one."""
    return _studies_page(request, site, who)


def _studies_page(
    request: Request, site: Site, who: ReaderHere, problem: str = "", given: dict[str, Any] | None = None
) -> Response:
    with site.db.read() as session:
        studies = [s for s in all_studies(session) if who.may(ADJUDICATOR, s["id"])]
        archived = all_studies(session, archived=True) if who.may(OWNER) else []
    return page(
        request,
        "studies.html",
        400 if problem else 200,
        who=who.link,
        may_change=who.may(OWNER),
        studies=studies,
        archived=archived,
        titles={name: task.words["title"] for name, task in TASKS.items()},
        tasks=[{**task.words, "name": task.name} for task in TASKS.values()],
        benchmarks=benchmarks_under(site.root) if who.may(OWNER) else [],
        problem=problem,
        given=given or dict.fromkeys(StudyForm.model_fields, ""),
    )


def benchmarks_under(root: Path) -> list[str]:
    """The benchmark folders under the root, as paths relative to it. Links are not followed."""
    found: list[str] = []
    level = [root]
    for _ in range(DEPTH):
        deeper: list[Path] = []
        for folder in level:
            try:
                children = sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())
            except OSError:
                continue
            if (folder / MANIFEST_FILE).is_file():
                found.append(folder.relative_to(root).as_posix())
            else:
                deeper += [p for p in children if not p.name.startswith(".")]
        level = deeper
    return found[:LISTED]


class StudyForm(BaseModel):
    """The form that makes a study. Numbers may be left empty."""

    name: Annotated[Text, Field(max_length=64)]
    bench: Annotated[Text, Field(max_length=300)]
    task: Annotated[Text, Field(max_length=32)]
    other: Annotated[Text, Field(max_length=300)] = ""
    overlap: Number = "2"
    per_annotator: Number = ""
    sample: Number = ""
    pilot: Number = ""
    practice: Number = ""
    attention: Number = ""
    with_image: Annotated[str, Field(pattern="^(yes|no)$")] = "yes"
    csrf: Annotated[str, Field(max_length=200)] = ""

    def plan(self) -> StudyPlan:
        return StudyPlan(
            self.task,
            overlap=int(self.overlap or 2),
            per_annotator=int(self.per_annotator) if self.per_annotator else None,
            sample=int(self.sample) if self.sample else None,
            pilot=int(self.pilot or 0),
            practice=int(self.practice) if self.practice else None,
            attention=int(self.attention or 0),
            with_image=self.with_image == "yes",
        )


@router.post("/studies")
def make_study(request: Request, site: SiteHere, who: AnyOwnerHere, given: Annotated[StudyForm, Form()]) -> Response:
    """Make a study of a benchmark under the server's root."""
    check_csrf(request, given.csrf)
    try:
        spec = _under(site, given.bench)
        other = load(_under(site, given.other)) if given.other else None
        store_study(site.db, given.name, load(spec), given.plan(), other=other, spec=spec, actor=actor_of(who))
    except CreperieError as e:
        return _studies_page(request, site, who, str(e), given.model_dump())
    return to(f"/owner/studies/{given.name}")


def _under(site: Site, name: str) -> str:
    """The folder of a listed benchmark; whatever else a form says is not a benchmark."""
    if name not in benchmarks_under(site.root):
        raise UsageError(f"{name[:80]!r} is not a benchmark on this server", hint="choose one from the list")
    return str((site.root / name).resolve())


# -- links -------------------------------------------------------------------------------------------------------------


@router.get("/links")
def links_page(request: Request, site: SiteHere, who: AnyOwnerHere) -> Response:
    """The links of owners and adjudicators."""
    return _links_page(request, site, who)


def _links_page(request: Request, site: Site, who: AnyOwnerHere, made: tuple[str, str] | None = None) -> Response:
    with site.db.read() as session:
        rows, studies = list_links(session), [s["study"] for s in all_studies(session)]
    return page(request, "links.html", who=who.link, rows=rows, studies=studies, made=made, days=DAYS)


@router.post("/links")
def change_links(
    request: Request,
    site: SiteHere,
    who: AnyOwnerHere,
    name: Annotated[Text, Form(min_length=1, max_length=128)],
    action: Annotated[str, Form(pattern="^(owner|adjudicator|revoke)$")],
    study: Annotated[Text, Form(max_length=64)] = "",
    days: Annotated[float, Form(gt=0, le=3650, allow_inf_nan=False)] = DAYS,
    csrf: Csrf = "",
) -> Response:
    """Give somebody a link, or end all of theirs."""
    check_csrf(request, csrf)
    if action == "revoke":
        revoke_link(site.db, name, actor_of(who))
        return to("/owner/links")
    token = link_for(site.db, name, action, study if action == ADJUDICATOR else "", days, actor_of(who))
    link = Invitation(name, token).link(site.url or str(request.base_url))
    return _links_page(request, site, who, (name, link))
