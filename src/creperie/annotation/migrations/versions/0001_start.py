"""The tables of the first version. New databases never run this: they begin with the newest tables."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    raise NotImplementedError("the tables of an empty database are created by creperie.annotation.database")
