"""Whether the server works, and how it does: for a load balancer, and for Prometheus on the same machine."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from sqlalchemy import func, select, text

from creperie.annotation.schema import Answer, Slot
from creperie.annotation.web.site import SiteHere

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
