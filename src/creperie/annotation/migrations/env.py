"""How alembic runs our migrations: on the connection that `creperie.annotation.database` hands it."""

from alembic import context
from sqlalchemy import text

from creperie.annotation.schema import SchemaTable


def migrate() -> None:
    connection = context.config.attributes["connection"]
    if connection.dialect.name == "postgresql":
        # Two servers that start at once migrate one after the other.
        connection.execute(text("SELECT pg_advisory_xact_lock(727274)"))
    context.configure(connection=connection, target_metadata=SchemaTable.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


# Alembic runs this file with a context; whoever merely imports it has none.
if hasattr(context, "config"):
    migrate()
