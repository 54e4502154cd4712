"""The application: routes, guard, and what an error looks like to a browser or a script.

Whether the server works, and how it does, is told to a load balancer, and to Prometheus on the same machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.staticfiles import StaticFiles

from creperie.annotation.access import DeniedError, TooManyError
from creperie.annotation.database import BusyError
from creperie.annotation.desk import WorkError
from creperie.annotation.schema import Answer, Slot
from creperie.annotation.tasks.form import AnswerError
from creperie.annotation.web import annotator, entry, owner
from creperie.annotation.web.guard import HEADERS, Guard, busy
from creperie.annotation.web.site import Site, SiteHere, page, static_folder, to
from creperie.core import CreperieError, __version__

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def create_app(site: Site, hosts: Sequence[str] = LOOPBACK) -> FastAPI:
    """The server's application. `hosts` are the names it answers to; none means any."""
    app = FastAPI(
        title="creperie people",
        version=__version__,
        docs_url=None,  # the usual pages load scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.site = site
    app.include_router(annotator.router)
    app.include_router(entry.router)
    app.include_router(owner.router)
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=static_folder()), name="static")
    app.add_middleware(Guard, hosts=tuple(hosts), prefix=site.prefix, replies=site.replies)
    _explain_errors(app)
    return app


def _explain_errors(app: FastAPI) -> None:
    @app.exception_handler(WorkError)
    def work(request: Request, error: WorkError) -> Response:
        return JSONResponse({"code": error.code, "message": error.what}, 409)

    @app.exception_handler(AnswerError)
    def answer(request: Request, error: AnswerError) -> Response:
        detail = [{"loc": ["body", "fields"], "msg": error.what, "type": "answer"}]
        return JSONResponse({"detail": detail}, 422)

    @app.exception_handler(DeniedError)
    def denied(request: Request, error: DeniedError) -> Response:
        return _say(request, 429 if isinstance(error, TooManyError) else 403, error.what)

    @app.exception_handler(BusyError)
    @app.exception_handler(OperationalError)
    @app.exception_handler(PoolTimeoutError)
    def unavailable(request: Request, error: Exception) -> Response:
        return busy()

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        response = _say(request, 500, "The server made a mistake. It has been logged; nothing that you did is lost.")
        response.headers.update(HEADERS)  # this answer does not pass the guard
        return response

    @app.exception_handler(CreperieError)
    def mistake(request: Request, error: CreperieError) -> Response:
        return _say(request, 400, str(error))

    @app.exception_handler(StarletteHTTPException)
    def http(request: Request, error: StarletteHTTPException) -> Response:
        return _say(request, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        detail = [{"loc": list(e["loc"]), "msg": e["msg"], "type": e["type"]} for e in error.errors()]
        return JSONResponse({"detail": detail}, 422)  # without the input, which may be what was wrong with it


def _say(request: Request, status: int, text: str, headers: Any = None) -> Response:
    """An error as a page for people, as JSON for scripts."""
    wants_page = "text/html" in request.headers.get("accept", "")
    if status == 401 and wants_page and request.url.path.startswith("/owner"):
        return to("/owner/login")
    if not wants_page or request.url.path.startswith("/api/"):
        return JSONResponse({"detail": text}, status, headers=headers)
    titles = {401: "Please log in", 403: "Not allowed", 404: "Not found", 429: "Too many attempts"}
    title = titles.get(status, "Something went wrong")
    return page(request, "message.html", status, title=title, text=text)


router = APIRouter(include_in_schema=False)


@router.get("/health")
def health(site: SiteHere) -> Response:
    """200 while the database answers."""
    with site.db.read() as session:
        session.execute(text("SELECT 1"))
    return JSONResponse({"status": "ok"})


@router.get("/metrics")
def metrics(request: Request, site: SiteHere) -> Response:
    """Counts in Prometheus' text format, for callers on this machine only."""
    if request.client is None or request.client.host not in ("127.0.0.1", "::1"):
        raise HTTPException(404, "not found")
    with site.db.read() as session:
        rows = session.scalar(select(func.count()).select_from(Answer))
        slots = session.execute(select(Slot.state, func.count()).group_by(Slot.state)).all()
    lines = ["# TYPE creperie_replies_total counter"]
    lines += [f'creperie_replies_total{{status="{code}"}} {n}' for code, n in sorted(site.replies.items())]
    lines += ["# TYPE creperie_answer_rows gauge", f"creperie_answer_rows {rows or 0}", "# TYPE creperie_slots gauge"]
    lines += [f'creperie_slots{{state="{state}"}} {n}' for state, n in slots]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")
