"""What the commands of `creperie annotate` share: the database."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from creperie.core import missing_extra

if TYPE_CHECKING:
    from creperie.annotation import Database

DATABASE = "CREPERIE_PEOPLE_DB"
database = click.option(
    "--db", "place", metavar="FILE|URL", help=f"SQLite file or postgresql:// URL [${DATABASE}, creperie-people.db]."
)


def open_people(place: str | None) -> Database:
    try:
        from creperie.annotation import DEFAULT_DATABASE, open_database
    except ModuleNotFoundError as e:
        raise missing_extra(e.name or "sqlalchemy", "people") from None
    return open_database(place or os.environ.get(DATABASE) or DEFAULT_DATABASE)
