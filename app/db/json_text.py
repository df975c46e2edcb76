"""JSON text that a database writes: the same text on SQLite, by a function of ours, and on PostgreSQL."""

import sqlite3
from typing import Any

import orjson
from sqlalchemy import Double, String
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


class json_text(GenericFunction[str]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """A number, a text or a day as JSON text: `5.0`, `"eastus"`, `"2026-09-01"`; `null` for null."""

    type = String()
    inherit_cache = True


@compiles(json_text, "postgresql")
def _json_text_of_postgresql(element: json_text, compiler: SQLCompiler, **how: Any) -> str:
    """PostgreSQL writes the shortest text that gives a double back, and a whole one without a point."""
    (value,) = element.clauses
    text = f"to_json({compiler.process(value, **how)})::text"
    if isinstance(value.type, Double):
        text = f"regexp_replace({text}, '^(-?[0-9]+)$', '\\1.0')"
    return f"coalesce({text}, 'null')"


def teach_json_text(connection: sqlite3.Connection) -> None:
    """Make the function known to a connection of SQLite, whose own would round a double to 15 digits."""
    connection.create_function("json_text", 1, lambda value: orjson.dumps(value).decode(), deterministic=True)
