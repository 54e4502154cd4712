"""The web application: its routes, its guard, and its error responses for browsers and scripts."""

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
from creperie.annotation.plans import LOOPBACK
from creperie.annotation.state import StateError
from creperie.annotation.tasks.form import AnswerError
from creperie.annotation.web import annotator, entry, owner
from creperie.annotation.web.guard import HEADERS, Guard, busy
from creperie.annotation.web.site import Site, SiteHere, message
from creperie.core import CreperieError, __version__, render


def create_app(site: Site, hosts: Sequence[str] = LOOPBACK) -> FastAPI:
    """Return the server's application. `hosts` are the host names that it accepts; an empty sequence accepts any."""
    app = FastAPI(
        title="creperie people",
        version=__version__,
        docs_url=None,  # the default pages load scripts from other sites
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.site = site
    for routes in (annotator.router, entry.router, owner.router, router):
        app.include_router(routes)
    app.mount("/static", StaticFiles(packages=[("creperie.annotation", "static")]), name="static")
    app.add_middleware(Guard, hosts=tuple(hosts))
    _explain_errors(app)
    return app


NO_PAGE = (
    "There is no page at this address. If you followed a link, it may be incomplete: copy all of it, or ask the person "
    "who sent it for a new one."
)
#: The HTTP status of each error class; the first class that matches counts.
STATUS: dict[type[CreperieError], int] = {
    WorkError: 409,
    StateError: 409,
    AnswerError: 422,
    EntryError: 403,
    CreperieError: 400,
}


def _explain_errors(app: FastAPI) -> None:
    @app.exception_handler(CreperieError)
    def refused(request: Request, error: CreperieError) -> Response:
        status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
        if status == 422:
            return JSONResponse({"detail": [{"loc": ["body", "fields"], "msg": error.what, "type": "answer"}]}, 422)
        if isinstance(error, (WorkError, StateError)) and not _wants_page(request):
            return JSONResponse({"code": error.code, "message": error.what}, status)
        return _error_response(request, status, f"{str(error)[:1].upper()}{str(error)[1:]}.")

    @app.exception_handler(BusyError)
    @app.exception_handler(OperationalError)
    @app.exception_handler(InterfaceError)
    @app.exception_handler(PoolTimeoutError)
    def unavailable(request: Request, error: Exception) -> Response:
        return busy()

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        response = _error_response(
            request,
            500,
            "The server failed. The error has been logged, and nothing that you did is lost. Try again in a moment.",
        )
        response.headers.update(HEADERS)  # this response does not pass through the guard
        return response

    @app.exception_handler(StarletteHTTPException)
    def http(request: Request, error: StarletteHTTPException) -> Response:
        unknown = error.status_code == 404 and error.detail == "Not Found"  # no route, or no static file
        text = NO_PAGE if unknown and _wants_page(request) else str(error.detail)
        return _error_response(request, error.status_code, text, error.headers)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        wrong = error.errors()
        if _wants_page(request):
            if any(e["loc"][0] == "path" for e in wrong):
                return _error_response(request, 404, NO_PAGE)
            names = ", ".join(str(e["loc"][-1]) for e in wrong)
            return _error_response(
                request, 422, f"Something in the form is missing or not valid: {names}. Go back and correct it."
            )
        detail = [{k: e[k] for k in ("loc", "msg", "type")} for e in wrong]
        return JSONResponse({"detail": detail}, 422)  # without the input, which may itself be the problem


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")


def _error_response(request: Request, status: int, text: str, headers: Any = None) -> Response:
    """Return an error response: a page for browsers, or JSON for scripts."""
    if not _wants_page(request):
        return JSONResponse({"detail": text}, status, headers=headers)
    titles = {401: "Please open your link", 403: "Not allowed", 404: "Not found", 409: "Not possible now"}
    return message(request, titles.get(status, "Something went wrong"), text, status)


router = APIRouter(include_in_schema=False)


@router.get("/static/face.css")
@router.get("/static/mark.svg")
def shared_asset(request: Request) -> Response:
    """Return the style sheet or the logo that all of creperie's pages share."""
    name = request.url.path.rpartition("/")[2]
    kind = "text/css" if name.endswith("css") else "image/svg+xml"
    return Response(render("annotation", name), media_type=kind, headers={"Cache-Control": "max-age=3600"})


@router.get("/health")
def health(site: SiteHere) -> Response:
    """Respond with status 200 if the database answers a query."""
    with site.db.read() as session:
        session.execute(text("SELECT 1"))
    return JSONResponse({"status": "ok"})
