"""Exports: every row that a list has on all its pages, as values in the order of their columns, to be streamed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any, TypeVar

import orjson
from pydantic import Field
from sqlalchemy import JSON, ColumnElement, Select, select
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FIELDS, Kind
from app.catalog.models import Fact, Gpu, Model, Region, Revision, Series, Source
from app.catalog.projections import PURCHASES, SIZE_JSON_FIELDS
from app.catalog.queries.params import Question as Asked
from app.catalog.queries.params import SizeList, Text
from app.catalog.queries.prices import PRICE_COLUMNS, PriceScope, price_list, price_shape, settle_prices, shown_price
from app.catalog.queries.provenance import LISTS, all_conflicts
from app.catalog.queries.sizes import TAIL, list_statement, render_size, settle, shape_of
from app.catalog.queries.snapshot import Known
from app.db.statements import Ask, Question, Row, Statement
from app.errors import BadQuestion
from app.nearest import did_you_mean, nearest

_OTHER_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("verified", "disputed", *(f"{one}_approximate_date" for one in PURCHASES)), "boolean"),
    **dict.fromkeys(("disputed_fields", "flags"), "list"),
    **dict.fromkeys(("price_as_of", *(f"{one}_as_of" for one in PURCHASES)), "date"),
    **dict.fromkeys((name for name in TAIL if "_per_" in name), "number"),
    "gpu_count": "number",
    "price_age_days": "integer",
}
"""Kinds of columns that are no field of a size, or are shown otherwise; what is not here either is text."""

SIZE_COLUMNS: Mapping[str, Kind] = {
    name: _OTHER_KINDS.get(name) or (SIZE_FIELDS[name].kind if name in SIZE_FIELDS else "text")
    for name in (*SIZE_JSON_FIELDS, *TAIL)
}
"""The columns of a size in the order of the list, each with its kind."""

MOST_COLUMNS = 100
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Rows that are not asked for yet: the statement, the columns, and how a row becomes their values."""

    asked: Ask
    columns: Mapping[str, Kind]
    values: Callable[[Row], Sequence[Any]]


class Columns(Asked):
    """Which columns an export has."""

    fields: tuple[Text, ...] = Field(
        default=(),
        max_length=MOST_COLUMNS,
        description="Columns to give, in this order: `name,vcpus`; default: all.",
        examples=[["region", "usd_per_hour"]],
    )


class SizeExport(Columns, SizeList):
    """An export of sizes: filters and order as the list has them, and columns."""


class PriceExport(Columns, PriceScope):
    """An export of prices: filters as the list has them, and columns."""


def export_sizes(export: SizeExport, known: Known, today: date) -> Export:
    """Say how to export sizes; raises BadQuestion for a region, series, order or column unknown here."""
    columns = chosen(SIZE_COLUMNS, export.fields)
    shape, values = shape_of(settle(export, known))
    asked = Ask(list_statement(shape), values | {"today": today.isoformat()})

    def values_of(row: Row) -> Sequence[Any]:
        shown = orjson.loads(render_size(row, today))
        return [shown[name] for name in columns]

    return Export(asked=asked, columns=columns, values=values_of)


def export_prices(export: PriceExport, known: Known, today: date) -> Question[Export]:
    """Say how to export prices; raises BadQuestion for a size, series, region or column unknown here."""
    columns = chosen(PRICE_COLUMNS, export.fields)
    settled = yield from settle_prices(export, known)
    shape, values = price_shape(settled, today)

    def values_of(row: Row) -> Sequence[Any]:
        shown = shown_price(row, today)
        return [shown[name] for name in columns]

    return Export(
        asked=Ask(price_list(shape), values),
        columns=columns,
        values=values_of,
    )


def chosen(columns: Mapping[str, T], names: Sequence[str]) -> Mapping[str, T]:
    """The columns that were asked for, else all; raises BadQuestion for one that is not there, or is named twice."""
    for number, name in enumerate(names):
        if name not in columns:
            hint = did_you_mean(nearest(name, columns)) or f"allowed are {', '.join(columns)}"
            raise BadQuestion("fields", name, f"there is no such column; {hint}")
        if name in names[:number]:
            raise BadQuestion("fields", name, "a column is given once")
    return {name: columns[name] for name in names} if names else columns


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
