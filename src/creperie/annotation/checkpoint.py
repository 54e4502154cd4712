"""Signed checkpoints: a copy of where all chains of a study ended, which nobody with the database alone can forge.

The key is in a file outside the database, readable by its owner only: `$CREPERIE_PEOPLE_KEY`, or beside a SQLite
database under its name with `.key` at the end, or `creperie-people.key` in the working folder. Of several lines the
first one signs, and all of them verify: a new key is put on top.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creperie.annotation.chain import questions_digest
from creperie.annotation.database import Database
from creperie.annotation.schema import Annotator, StudyRow
from creperie.core import DataError, read_json

KEY_FILE = "CREPERIE_PEOPLE_KEY"


def checkpoint_of(session: Session, study: StudyRow) -> dict[str, Any]:
    """Where the chains of a study end now."""
    everybody = select(Annotator).where(Annotator.study_id == study.id).order_by(Annotator.id)
    return {
        "study": study.name,
        "at": time.time(),
        "questions": questions_digest(session, study),
        "events": {"count": study.events, "head": study.head},
        "annotators": {a.pseudonym: {"turns": a.turns, "head": a.head} for a in session.scalars(everybody)},
    }


def sign(document: Mapping[str, Any], db: Database) -> dict[str, Any]:
    """A document with its signature (HMAC-SHA256)."""
    return {**document, "signature": _signature(document, signing_keys(db)[0])}


def read_checkpoint(path: Path, db: Database) -> dict[str, Any]:
    """A checkpoint from a file; DataError where its signature is not ours."""
    document = read_json(path)
    if not isinstance(document, dict) or not {"annotators", "events", "questions", "signature"} <= set(document):
        raise DataError("not a checkpoint", where=str(path))
    signature = str(document.pop("signature"))
    made = [_signature(document, key).encode() for key in signing_keys(db)]
    if not any(hmac.compare_digest(signature.encode(), one) for one in made):
        raise DataError("the signature is not valid", where=str(path), hint=f"was another ${KEY_FILE} in use?")
    return document


def _signature(document: Mapping[str, Any], key: bytes) -> str:
    return hmac.new(key, json.dumps(document, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def signing_keys(db: Database) -> list[bytes]:
    """The key, and those before it; one is made when it is first needed."""
    database = db.engine.url.database or ""
    beside = Path(f"{database}.key") if db.engine.dialect.name == "sqlite" else Path("creperie-people.key")
    path = Path(os.environ.get(KEY_FILE) or beside)
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        pass
    return [bytes.fromhex(line) for line in path.read_text(encoding="ascii").split()]
