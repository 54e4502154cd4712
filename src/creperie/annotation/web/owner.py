"""The owner's side: log in, see all studies, make one; and the account's own password and second factor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field
from sqlalchemy import select

from creperie.annotation.access import (
    LONGEST_PASSWORD,
    OWNER_SESSION,
    DeniedError,
    TooManyError,
    change_password,
    end_sessions,
    enter_as_owner,
    give_role,
    has_news,
    leave,
    recent,
    role_in,
    set_second_factor,
)
from creperie.annotation.schema import MEMBER, OWNER, Login
from creperie.annotation.study import StudyPlan, all_studies, store_study
from creperie.annotation.tasks import TASKS
from creperie.annotation.totp import address_of, is_code, new_secret
from creperie.annotation.web import owner_people, owner_study
from creperie.annotation.web.site import (
    OWNED,
    MakerHere,
    ReaderHere,
    Site,
    SiteHere,
    Text,
    actor_of,
    check_csrf,
    client_address,
    cookie,
    current_visitor,
    drop_cookie,
    page,
    set_cookie,
    to,
)
from creperie.bench import MANIFEST_FILE, load
from creperie.core import CreperieError, UsageError

router = APIRouter(prefix="/owner", default_response_class=HTMLResponse)
router.include_router(owner_study.router)
router.include_router(owner_people.router)

#: How deep under the root benchmarks are looked for, and how many are listed.
DEPTH, LISTED = 4, 200

Csrf = Annotated[str, Form(max_length=200)]
Number = Annotated[str, Field(pattern=r"^[0-9]{0,6}$")]
_FORM: dict[int | str, dict[str, Any]] = {303: {}, 400: {}, 401: {}, 403: {}, 413: {}}


@router.get("/login", responses={400: {}})
def login_page(request: Request) -> Response:
    found = current_visitor(request, OWNED)
    return to("/owner") if found and found.owner else page(request, "login.html", problem="", name="")


@router.post("/login", responses={303: {}, 400: {}, 403: {}, 413: {}, 429: {}})
def login(
    request: Request,
    site: SiteHere,
    name: Annotated[Text, Form(max_length=64)],
    password: Annotated[Text, Form(max_length=LONGEST_PASSWORD)],
    code: Annotated[str, Form(max_length=10)] = "",
    csrf: Csrf = "",
) -> Response:
    """Enter with name and password, and a one-time code where the account uses them."""
    check_csrf(request, csrf)
    try:
        made = enter_as_owner(site.db, name, password, client_address(request), code)
    except DeniedError as e:
        status = 429 if isinstance(e, TooManyError) else 403
        return page(request, "login.html", status, problem=f"{e.what[:1].upper()}{e.what[1:]}.", name=name)
    response = to("/owner/account" if has_news(recent(site.db, name)) else "/owner")
    set_cookie(response, request, OWNED, made, OWNER_SESSION)
    return response


@router.post("/logout", responses={303: {}, 400: {}, 403: {}, 413: {}})
def logout(request: Request, site: SiteHere, csrf: Csrf = "") -> Response:
    """End the session."""
    check_csrf(request, csrf)
    leave(site.db, cookie(request, OWNED))
    response = to("/owner/login")
    drop_cookie(response, request, OWNED)
    return response


@router.get("", responses={401: {}, 400: {}})
def studies_page(request: Request, site: SiteHere, who: ReaderHere) -> Response:
    """All studies, and the form to make one."""
    return _studies_page(request, site, who)


def _studies_page(
    request: Request, site: Site, who: ReaderHere, problem: str = "", given: dict[str, Any] | None = None
) -> Response:
    assert who.owner is not None
    with site.db.read() as session:
        studies = [s for s in all_studies(session) if role_in(session, who, s["id"])]
        archived = [s for s in all_studies(session, archived=True) if role_in(session, who, s["id"]) == OWNER]
    return page(
        request,
        "studies.html",
        400 if problem else 200,
        who=who.owner,
        may_change=who.owner.role in (OWNER, MEMBER),
        studies=studies,
        archived=archived,
        titles={name: task.words["title"] for name, task in TASKS.items()},
        tasks=[{**task.words, "name": task.name} for task in TASKS.values()],
        benchmarks=benchmarks_under(site.root),
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


@router.post("/studies", responses=_FORM)
def make_study(request: Request, site: SiteHere, who: MakerHere, given: Annotated[StudyForm, Form()]) -> Response:
    """Make a study of a benchmark under the server's root."""
    check_csrf(request, given.csrf)
    try:
        spec = _under(site, given.bench)
        other = load(_under(site, given.other)) if given.other else None
        store_study(site.db, given.name, load(spec), given.plan(), other=other, spec=spec, actor=actor_of(who))
        give_role(site.db, given.name, actor_of(who).removeprefix("owner:"), OWNER, actor_of(who))
    except CreperieError as e:
        return _studies_page(request, site, who, str(e), given.model_dump())
    return to(f"/owner/studies/{given.name}")


def _under(site: Site, name: str) -> str:
    """The folder of a listed benchmark; whatever else a form says is not a benchmark."""
    if name not in benchmarks_under(site.root):
        raise UsageError(f"{name[:80]!r} is not a benchmark on this server", hint="choose one from the list")
    return str((site.root / name).resolve())


Password = Annotated[Text, Form(max_length=LONGEST_PASSWORD)]
_ACCOUNT_FORM = {**_FORM, 408: {}, 429: {}, 503: {}}


@router.get("/account", responses={400: {}, 401: {}, 503: {}})
def account_page(request: Request, site: SiteHere, who: ReaderHere) -> Response:
    return _account_page(request, site, who)


def _account_page(request: Request, site: SiteHere, who: ReaderHere, problem: str = "", secret: str = "") -> Response:
    assert who.owner is not None
    secret = secret or new_secret()
    uri = address_of(secret, who.owner.name)
    values = {"who": who.owner, "problem": problem, "secret": secret, "uri": uri, "used": who.owner.totp is not None}
    with site.db.read() as session:
        logins = session.scalars(select(Login).where(Login.owner_id == who.owner.id).order_by(Login.id.desc())).all()
    values |= {"events": recent(site.db, who.owner.name), "logins": logins, "here": who.login}
    return page(request, "account.html", 400 if problem else 200, **values)


def _after(
    request: Request, site: SiteHere, who: ReaderHere, place: str, change: Callable[..., None], *about: str | None
) -> Response:
    """Change something of the account, which asks for its password, and go on; or say why not."""
    assert who.owner is not None
    try:
        change(site.db, who.owner.name, *about, client_address(request))
    except CreperieError as e:  # a secret that stands in somebody's app already stays the same
        return _account_page(request, site, who, str(e), (about[-1] or "") if change is set_second_factor else "")
    return to(place)


@router.post("/account/password", responses=_ACCOUNT_FORM)
def new_password(
    request: Request, site: SiteHere, who: ReaderHere, old: Password, new: Password, csrf: Csrf = ""
) -> Response:
    """Change the password; all sessions of the account end."""
    check_csrf(request, csrf)
    return _after(request, site, who, "/owner/login", change_password, old, new)


@router.post("/account/sessions", responses=_ACCOUNT_FORM)
def log_out_everywhere(
    request: Request, site: SiteHere, who: ReaderHere, password: Password, csrf: Csrf = ""
) -> Response:
    """End all sessions of the account, this one too."""
    check_csrf(request, csrf)
    return _after(request, site, who, "/owner/login", end_sessions, password)


@router.post("/account/second-factor", responses=_ACCOUNT_FORM)
def second_factor(
    request: Request,
    site: SiteHere,
    who: ReaderHere,
    password: Password,
    secret: Annotated[str, Form(pattern="^[A-Z2-7]{0,64}$")] = "",
    code: Annotated[str, Form(max_length=10)] = "",
    csrf: Csrf = "",
) -> Response:
    """Use a second factor from now on, or, without a secret, no longer."""
    check_csrf(request, csrf)
    if secret and (len(secret) != 32 or not is_code(secret, code)):
        return _account_page(request, site, who, "the code is wrong: is the clock of your phone right?", secret)
    return _after(request, site, who, "/owner/account", set_second_factor, password, secret or None)
