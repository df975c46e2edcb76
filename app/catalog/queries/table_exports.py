"""Exports of the small tables and of conflicts: every row, in the order of the list."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

import orjson
from sqlalchemy import JSON, ColumnElement, Select, select
from sqlmodel import SQLModel

from app.catalog.fields import Kind
from app.catalog.models import Fact, Gpu, Model, Region, Revision, Series, Source
from app.catalog.queries.exports import Columns, Export, chosen
from app.catalog.queries.lists import LISTS
from app.catalog.queries.provenance import all_conflicts
from app.catalog.tables import table_of
from app.db.statements import Ask, Row, Statement

_KINDS: Mapping[type, Kind] = {bool: "boolean", int: "integer", float: "number", date: "date"}


def _table(model: type[SQLModel]) -> Select[Any]:
    table = table_of(model)
    return select(table).order_by(*table.primary_key)


TABLES: Mapping[str, Callable[[], Select[Any]]] = {
    "facts": partial(_table, Fact),
    "conflicts": all_conflicts,
    "gpus": partial(_table, Gpu),
    "series": partial(_table, Series),
    "models": partial(_table, Model),
    "regions": partial(_table, Region),
    "sources": partial(_table, Source),
    "revisions": partial(_table, Revision),
}
"""What can be exported beside sizes and prices."""


def export_table(name: str, asked: Columns) -> Export:
    """Say how to export one of TABLES; raises BadQuestion for a column that it does not have."""
    query = TABLES[name]()
    found = list(query.selected_columns)
    columns = chosen({column.name: _kind(column) for column in found}, asked.fields)
    places = [(place, _reader(column)) for name in columns for place, column in enumerate(found) if column.name == name]

    def values_of(row: Row) -> Sequence[Any]:
        return [read(row[place]) for place, read in places]

    return Export(asked=Ask(Statement(query), {}), columns=columns, values=values_of)


def _kind(column: ColumnElement[Any]) -> Kind:
    if column.key in LISTS or column.key == "source_ids":
        return "list"
    return _KINDS.get(column.type.python_type, "text")


def _reader(column: ColumnElement[Any]) -> Callable[[Any], Any]:
    """What makes the value that is shown of that of the database."""
    if column.key in LISTS:
        return lambda text: text.split("; ") if text else []
    if isinstance(column.type, JSON) and column.key != "source_ids":
        return lambda value: orjson.dumps(value).decode()
    if column.type.python_type in (date, datetime):
        return lambda day: None if day is None else day.isoformat()
    return lambda value: value
