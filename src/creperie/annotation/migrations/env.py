"""How alembic runs our migrations: on the connection that `creperie.annotation.database` hands it."""

from alembic import context

# Alembic runs this file with a context; whoever merely imports it has none.
if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"])
    with context.begin_transaction():
        context.run_migrations()
