"""The tables of the first version. New databases start with the tables of the newest version and never run this."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    raise NotImplementedError("the tables of an empty database are created by creperie.annotation.database")
