"""The studio's server. It shows the pages about one folder to everybody who has the link with the token."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.middleware.trustedhost import TrustedHostMiddleware

from creperie.core import CreperieError, UsageError, as_flags, policy_of, render
from creperie.reporting.studio.importing import keep_picture
from creperie.reporting.studio.pages import Studio
from creperie.reporting.studio.query import StudioQuery

MOST_SENT = 32 * 2**20  #: largest form in bytes
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
#: static files of pages, by name: template and content type
STATIC = {
    "page.css": ("page.css", "text/css"),
    "page.js": ("page.js", "text/javascript"),
    "studio.js": ("studio/studio.js", "text/javascript"),
}
#: methods of `Studio` that show a page; those of forms begin with `post_`
PAGES = [
    "benchmarks",
    "search",
    "items",
    "item",
    "audit",
    "jobs",
    "make",
    "runs",
    "compare",
    "robust",
    "plot",
    "studies",
]
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


def make_studio(
    folder: str | Path, token: str = "", *, hosts: tuple[str, ...] = LOOPBACK, images: Sequence[str | Path] = ()
) -> FastAPI:
    """Return the web application for a folder. Every request must carry the token, or the cookie that contains it.

    `images` are folders outside this one whose images may be shown.
    """
    token = token or secrets.token_urlsafe(24)
    studio = Studio(Path(folder), images)
    app = FastAPI(title="creperie studio", docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def guarded(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        answer = _refused(request, token) or await call_next(request)
        answer.headers.setdefault("Content-Security-Policy", POLICY)
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "same-origin"  # under "no-referrer" browsers send forms with Origin: null
        answer.headers.setdefault("Cache-Control", "no-store")
        return answer

    # DNS rebinding: requests with another host name are not answered.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))

    _explain_errors(app, studio)

    @app.get("/")
    def entered(request: Request) -> Response:
        answer = RedirectResponse("/benchmarks", 303)
        answer.set_cookie(_cookie(request), token, httponly=True, samesite="lax")
        return answer

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            raise UsageError("There is no such file", hint="go back to the start page")
        template, kind = STATIC[name]
        return Response(render("reporting", template), media_type=kind)

    @app.get("/picture")
    def picture(name: str = "", image: str = "") -> Response:
        data = studio.shelf.picture(name, image)
        return Response(data, media_type="image/webp", headers={"Cache-Control": "private, max-age=3600"})

    @app.post("/picture")
    async def take_picture(request: Request, name: str = "", image: str = "") -> Response:
        keep_picture(studio.shelf.folder, name, image, await _sent(request))
        return Response()

    @app.get("/report")
    @app.get("/share")
    def report(request: Request, run: str = "", bench: str = "") -> HTMLResponse:
        """Send a self-contained page: at /share the audit of a benchmark, at /report the report on one run, or on all
        runs on a benchmark. The page has its own content security policy.
        """
        shared = request.url.path == "/share"
        page = studio.share(StudioQuery(request.query_params)) if shared else studio.report(run, bench)
        return HTMLResponse(page, headers={"Content-Security-Policy": policy_of(page)})

    _add_pages(app, studio)
    return app


def _add_pages(app: FastAPI, studio: Studio) -> None:
    """Add the routes of pages and forms. A form responds with a page or a redirect."""
    shown: dict[str, Callable[[StudioQuery], str]] = {name: getattr(studio, name) for name in PAGES}
    sent = {name.removeprefix("post_"): getattr(studio, name) for name in vars(Studio) if name.startswith("post_")}

    @app.get("/{page}")
    def show(page: str, request: Request) -> HTMLResponse:
        if page not in shown:
            raise UsageError("There is no such page", hint="go back to the start page")
        return HTMLResponse(shown[page](StudioQuery(request.query_params)))

    @app.post("/{page}")
    async def take(page: str, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        if page not in sent:
            raise UsageError("There is no such form", hint="go back to the start page")
        body = (await _sent(request)).decode("utf-8", "replace")
        form = StudioQuery(parse_qsl(body, keep_blank_values=True))
        answer = await run_in_threadpool(sent[page], form)
        return RedirectResponse(answer, 303) if answer.startswith("/") else HTMLResponse(answer)


async def _sent(request: Request) -> bytes:
    body = await request.body()
    if len(body) > MOST_SENT:
        raise UsageError("the form is too large", hint="import large tables with `creperie data import`")
    return body


def _explain_errors(app: FastAPI, studio: Studio) -> None:
    """Show errors as pages that say what to do, whether a request was wrong, a file changed meanwhile, or the studio
    has a defect.
    """

    def page(title: str, words: str) -> str:
        with suppress(CreperieError, OSError):
            return studio.message(title, words)
        return _message(title, words)

    @app.exception_handler(CreperieError)
    async def mistaken(request: Request, error: CreperieError) -> HTMLResponse:
        message = as_flags(str(error)) if isinstance(error, UsageError) else str(error)
        if request.method == "GET":
            return HTMLResponse(page("This page cannot be shown", message), 404)
        return HTMLResponse(page("This did not work", message), 400)

    @app.exception_handler(OSError)
    async def changed(request: Request, error: OSError) -> HTMLResponse:
        words = f"A file cannot be read or written ({error.strerror}). If something is being written there, try again."
        return HTMLResponse(page("The folder has changed", words), 409)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> HTMLResponse:
        return HTMLResponse(page("This did not work", "The address is not complete."), 400)


def _cookie(request: Request) -> str:
    """Return the name of the cookie. It contains the port."""
    # A browser shares cookies among all ports of a host.
    return f"creperie-studio-{request.url.port or 80}"


def _refused(request: Request, token: str) -> Response | None:
    """Return a response that refuses a request without the token, or a form sent from another site. Return None if the
    request is allowed.
    """
    given = request.query_params.get("token") if request.url.path == "/" else None
    known = given or request.cookies.get(_cookie(request)) or ""
    if not compare_digest(known.encode(), token.encode()):
        words = "Open the link that `creperie studio` printed: it contains the token for this browser."
        return HTMLResponse(_message("The link is needed", words), 403)
    if request.method not in ("GET", "HEAD"):
        origin = request.headers.get("origin", "")
        if urlsplit(origin).netloc != request.headers.get("host", ""):
            return HTMLResponse(_message("Refused", "The form was sent by another site."), 403)
    return None


def _message(title: str, words: str) -> str:
    return render("reporting", "studio/message.html", title=title, said=words, words="", page="", rail=(), folder="")


def listen(port: int) -> socket.socket:
    """Return a socket bound to this machine's own address, before the server starts. If `port` is 0, the system chooses
    a port.
    """
    # The caller can then read the port from the socket to print the link.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK[0], port))
    except (OSError, OverflowError) as e:
        made.close()
        what, hint = f"cannot listen on this address ({e})", "choose another `port=`"
        raise UsageError(what, where=f"{LOOPBACK[0]}:{port}", hint=hint) from None
    return made
