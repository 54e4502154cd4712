"""What an account may do in the study that an address names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Path, Request
from sqlalchemy import select

from creperie.annotation.access import Visitor, role_in
from creperie.annotation.schema import OWNER, REVIEWER, VIEWER, StudyRow
from creperie.annotation.web.site import site_of, the_reader

Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,47}$")]
RANK = {"": 0, VIEWER: 1, REVIEWER: 2, OWNER: 3}


def _at_least(needed: str) -> Callable[[Request, str], Visitor]:
    def check(request: Request, name: Name) -> Visitor:
        who = the_reader(request)
        with site_of(request).db.read() as session:
            study = session.scalar(select(StudyRow.id).where(StudyRow.name == name))
            role = role_in(session, who, study) if study is not None else ""
        if not role:  # whether it exists is nobody's business who has no role in it
            raise HTTPException(404, "there is no such study")
        if RANK[role] < RANK[needed]:
            raise HTTPException(403, f"this needs the role of {needed}; yours is {role}")
        return who

    return check


ViewerHere = Annotated[Visitor, Depends(_at_least(VIEWER))]
ReviewerHere = Annotated[Visitor, Depends(_at_least(REVIEWER))]
OwnerHere = Annotated[Visitor, Depends(_at_least(OWNER))]


def may_change(request: Request, who: Visitor, study: StudyRow) -> bool:
    """Whether an account owns a study."""
    with site_of(request).db.read() as session:
        return role_in(session, who, study.id) == OWNER
