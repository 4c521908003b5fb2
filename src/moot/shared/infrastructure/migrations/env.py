"""What Alembic runs. The connection, its lock and its transaction are those of `Database`."""

from alembic import context

# SQLite cannot alter a column in place: batch mode rebuilds the table.
context.configure(connection=context.config.attributes["connection"], render_as_batch=True)

with context.begin_transaction():
    context.run_migrations()
