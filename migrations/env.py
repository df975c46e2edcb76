"""Run the migrations on the connection that `app.db.migrations` passes in, else on the database of the settings."""

from typing import Literal

from alembic import context
from sqlalchemy import Connection, String

import app.catalog.models.webhooks  # noqa: F401  # their tables are no content of the catalog
from app.catalog.column_types import UsdColumn, UtcDateTime
from app.catalog.models import Size
from app.db.engines import make_engine
from app.settings import Settings

TABLES = Size.metadata


def type_by_name(kind: str, column_type: object, _context: object) -> str | Literal[False]:
    """Render the project's column types by name in generated migrations."""
    if kind != "type":
        return False
    if isinstance(column_type, UsdColumn | UtcDateTime):
        return f"{type(column_type).__name__}()"
    return "BYTEWISE" if isinstance(column_type, String) else False


def migrate(connection: Connection) -> None:
    """Migrate on an open connection, in batch mode: SQLite alters a table by rebuilding it."""
    context.configure(
        connection=connection,
        target_metadata=TABLES,
        render_as_batch=True,
        compare_type=True,
        render_item=type_by_name,
    )
    with context.begin_transaction():
        context.run_migrations()


passed_in = context.config.attributes.get("connection")
if passed_in is not None:
    migrate(passed_in)
else:
    with make_engine(Settings().database_url).begin() as own:
        migrate(own)
