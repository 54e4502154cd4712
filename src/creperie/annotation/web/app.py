"""The application: routes, guard, and what an error looks like to a browser or a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy import text
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.staticfiles import StaticFiles

from creperie.annotation.answers import WorkError
from creperie.annotation.crowd import EntryError
from creperie.annotation.database import BusyError
from creperie.annotation.links import DeniedError, TooManyError
from creperie.annotation.state import StateError
from creperie.annotation.tasks.form import AnswerError
from creperie.annotation.web import annotator, entry, owner
from creperie.annotation.web.guard import HEADERS, Guard, busy
from creperie.annotation.web.site import Site, SiteHere, message, static_folder
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
    for routes in (annotator.router, entry.router, owner.router, router):
        app.include_router(routes)
    app.mount("/static", StaticFiles(directory=static_folder()), name="static")
    app.add_middleware(Guard, hosts=tuple(hosts))
    _explain_errors(app)
    return app


#: The status that says an error to a browser; the first class that fits counts.
STATUS: dict[type[CreperieError], int] = {
    WorkError: 409,
    StateError: 409,
    AnswerError: 422,
    TooManyError: 429,
    DeniedError: 404,
    EntryError: 403,
    BusyError: 503,
    CreperieError: 400,
}


def _explain_errors(app: FastAPI) -> None:
    @app.exception_handler(CreperieError)
    def refused(request: Request, error: CreperieError) -> Response:
        status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
        if status == 503:
            return busy()
        if status == 422:
            return JSONResponse({"detail": [{"loc": ["body", "fields"], "msg": error.what, "type": "answer"}]}, 422)
        if isinstance(error, (WorkError, StateError)) and not _wants_page(request):
            return JSONResponse({"code": error.code, "message": error.what}, status)
        return _say(request, status, f"{str(error)[:1].upper()}{str(error)[1:]}.")

    @app.exception_handler(OperationalError)
    @app.exception_handler(InterfaceError)
    @app.exception_handler(PoolTimeoutError)
    def unavailable(request: Request, error: Exception) -> Response:
        return busy()

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        response = _say(request, 500, "The server made a mistake. It has been logged; nothing that you did is lost.")
        response.headers.update(HEADERS)  # this answer does not pass the guard
        return response

    @app.exception_handler(StarletteHTTPException)
    def http(request: Request, error: StarletteHTTPException) -> Response:
        return _say(request, error.status_code, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        detail = [{"loc": list(e["loc"]), "msg": e["msg"], "type": e["type"]} for e in error.errors()]
        return JSONResponse({"detail": detail}, 422)  # without the input, which may be what was wrong with it


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")


def _say(request: Request, status: int, text: str, headers: Any = None) -> Response:
    """An error as a page for people, as JSON for scripts."""
    if not _wants_page(request):
        return JSONResponse({"detail": text}, status, headers=headers)
    titles = {401: "Please open your link", 403: "Not allowed", 404: "Not found", 409: "Not possible now"}
    return message(request, titles.get(status, "Something went wrong"), text, status)


router = APIRouter(include_in_schema=False)


@router.get("/health")
def health(site: SiteHere) -> Response:
    """200 while the database answers."""
    with site.db.read() as session:
        session.execute(text("SELECT 1"))
    return JSONResponse({"status": "ok"})
