"""The tables of the first version. New databases begin with the tables of the newest one and never run this."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    raise NotImplementedError("a database that is empty is filled by creperie.annotation.database, not by a migration")
