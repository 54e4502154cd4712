"""Whatever is sent to the API, it never answers with a server error, and its answers have the documented form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from creperie.annotation import Site, create_app
from creperie.annotation.web.site import OWNED, SESSION

pytestmark = pytest.mark.slow
EXAMPLES = 12
#: Besides success: not JSON, no visit, no CSRF token, no such picture, not possible now, too large, not an answer.
ANSWERS = {200, 400, 401, 403, 404, 409, 413, 422}


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("who", ["annotator", "owner"])
def test_no_request_makes_the_server_fail(
    site: Site, study: Callable[..., list[str]], browser: Callable[..., Any], who: str
) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import response_schema_conformance

    tokens = study(people=3, overlap=3, practice=1)
    app = create_app(site)
    visitor = browser().join(tokens[0]) if who == "annotator" else browser().log_in()
    cookie = SESSION if who == "annotator" else OWNED
    headers = {
        "Cookie": f"{cookie}={visitor.client.cookies[cookie]}",
        "X-CSRF-Token": visitor.csrf,
        "Host": "127.0.0.1",
        "Accept": "text/html" if who == "owner" else "application/json",
    }
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app, headers=headers)
    replies: dict[str, set[int]] = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in ("/leave", "/owner/logout"):
            continue  # they would end the session of the requests that follow
        codes = replies.setdefault(f"{operation.method} {operation.path}", set())

        def call(case: Any, codes: set[int] = codes) -> None:
            if isinstance(case.body, dict) and "csrf" in case.body:
                case.body["csrf"] = visitor.csrf
            if "token" in (case.path_parameters or {}) and case.path.startswith("/join"):
                case.path_parameters["token"] = tokens[1]
            if "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = "s"
            reply = case.call(headers=headers)
            codes.add(reply.status_code)
            assert reply.status_code in ANSWERS
            checks = [not_a_server_error]
            if case.path.startswith("/api/"):
                checks.append(response_schema_conformance)
            case.validate_response(reply, checks=checks)

        bounded = settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        _run(operation, call, bounded)
    assert len(replies) >= 5
    # The annotator got past the doors: what came back is not only refusals. An owner is no annotator.
    assert replies["post /api/next"] == ({200} if who == "annotator" else {403}), replies


def _run(operation: Any, call: Callable[[Any], None], bounded: Any) -> None:
    from hypothesis import given

    @bounded
    @given(case=operation.as_strategy())
    def each(case: Any) -> None:
        call(case)

    each()
