"""How alembic runs our migrations: on the connection that `creperie.annotation.database` passes to it."""

from alembic import context

# Alembic runs this file with a context; a plain import has none.
if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"])
    with context.begin_transaction():
        context.run_migrations()
