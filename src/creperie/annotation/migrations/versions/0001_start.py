"""The tables of the first version. New databases begin with the tables of the newest one and never run this."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    raise NotImplementedError("the tables of an empty database are created by creperie.annotation.database")
