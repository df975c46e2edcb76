"""Exports: every row of a list, in its order, as values to be streamed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import orjson
from pydantic import Field
from sqlalchemy import JSON, ColumnElement, Date, Select, String, and_, bindparam, cast, func, or_, select, type_coerce
from sqlmodel import SQLModel

from app.catalog.column_types import UsdColumn, table_of
from app.catalog.fields import SHOWN_FIELDS, FieldKind
from app.catalog.models import Disk, DiskPrice, Fact, Gpu, LanguageModel, Offer, Region, Revision, Series, Size, Source
from app.catalog.projections import SIZE_JSON_FIELDS, usd_by
from app.catalog.providers import ProviderId
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.queries.pagination import LIST_COLUMNS
from app.catalog.queries.params import PlainText, QueryParams, SizeList, check_days
from app.catalog.queries.prices import (
    PRICE_COLUMNS,
    AllPricesFilter,
    normalize_prices,
    price_list_statement,
    to_price_statement_key,
)
from app.catalog.queries.provenance import conflicts_query, refused_prices_query
from app.catalog.queries.size_sets import list_query
from app.catalog.queries.sizes import STATUS_AND_OFFER_FIELDS, age_days, normalize, render_size
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.db.functions import usd_of
from app.db.statements import BoundStatement, Rows, Statement, cached_statement
from app.errors import BadQuery
from app.nearest import did_you_mean, nearest

_EXPORTED_KINDS: Mapping[str, FieldKind] = {
    **{name: spec.kind for name, spec in SHOWN_FIELDS.items()},
    **dict.fromkeys(("price_unusual", "price_disputed"), "boolean"),
    **dict.fromkeys((name for name in STATUS_AND_OFFER_FIELDS if name.endswith("_approximate_date")), "boolean"),
    **dict.fromkeys((name for name in STATUS_AND_OFFER_FIELDS if name.endswith("_as_of")), "date"),
    **dict.fromkeys((name for name in STATUS_AND_OFFER_FIELDS if "_per_" in name), "number"),
    "gpu_count": "number",
    "price_age_days": "integer",
}
"""Kinds of columns, some of which are exported as another kind; others are text."""

SIZE_EXPORT_COLUMNS: Mapping[str, FieldKind] = {
    name: _EXPORTED_KINDS.get(name, "text") for name in (*SIZE_JSON_FIELDS, *STATUS_AND_OFFER_FIELDS)
}
"""The columns of a size in the order of the list, each with its kind."""

ADJUSTMENT_COLUMNS: Mapping[str, FieldKind] = {"list_usd_per_hour": "number", "adjustments": "list"}
"""Further columns of sizes and prices: the list price, and the names of the rules that changed it.

They are exported where `fields` names them, and always where the catalog has rules.
"""

ESTIMATE_COLUMNS: Mapping[str, FieldKind] = {"estimate_formula": "text"}
"""Further columns of sizes and prices: what a price that no list states is computed from.

They are exported where `fields` names them, and always where the catalog has such prices.
"""

MAX_COLUMNS = 100
SIZE_BLOCK_ROWS = 100
"""Sizes have some seventy columns: the values of ten times as many do not fit into a processor's cache."""
_ORIGIN_COLUMNS = {**ADJUSTMENT_COLUMNS, **ESTIMATE_COLUMNS}
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A query to stream: its statement, its columns, and how rows, at least one, become their values by column."""

    query: BoundStatement
    columns: Mapping[str, FieldKind]
    values: Callable[[Rows], Sequence[Sequence[Any]]]
    block_rows: int = 1000

    def blocks(self, rows: Rows) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield the values of rows by column, in blocks of `block_rows`."""
        for start in range(0, len(rows), self.block_rows):
            yield self.values(rows[start : start + self.block_rows])


class ColumnParams(QueryParams):
    """Which columns an export has."""

    fields: tuple[PlainText, ...] = Field(
        default=(),
        max_length=MAX_COLUMNS,
        description="Columns to give, in this order: `name,vcpus`; default: all.",
        examples=[["region", "usd_per_hour"]],
    )


class SizeExport(ColumnParams, SizeList):
    """An export of sizes: filters and order as the list has them, and columns."""


class PriceExport(ColumnParams, AllPricesFilter):
    """An export of prices: filters as the list has them, and columns."""


def export_sizes(export: SizeExport, snapshot: CatalogSnapshot, today: date) -> Export:
    """Return the export of sizes; raises BadQuery for a filter, sort key or column that the catalog does not have."""
    check_days(export, today)
    columns = _with_origin(SIZE_EXPORT_COLUMNS, export.fields, snapshot)
    query = list_query(normalize(export, snapshot), today, snapshot.rules)
    values_of = partial(_size_values, tuple(columns), today)
    return Export(query=query, columns=columns, values=values_of, block_rows=SIZE_BLOCK_ROWS)


def _size_values(names: Sequence[str], today: date, rows: Rows) -> list[Sequence[Any]]:
    sizes = [orjson.loads(render_size(row, today)) for row in rows]
    listed = [name for name in names if name not in _ORIGIN_COLUMNS]
    columns = zip(*(map(size.__getitem__, listed) for size in sizes), strict=True)
    values: dict[str, Sequence[Any]] = dict(zip(listed, columns, strict=True))
    if len(values) < len(names):
        usd = [size["usd_per_hour"] for size in sizes]
        values |= _adjustment_values([size.get("adjustment", {}) for size in sizes], usd)
        values["estimate_formula"] = [size.get("estimate", {}).get("formula") for size in sizes]
    return [values[name] for name in names]


def export_prices(catalog: Catalog, export: PriceExport) -> Export:
    """Return the export of prices; raises BadQuery for a filter or column that the catalog does not have."""
    check_days(export, catalog.today)
    columns = _with_origin(PRICE_COLUMNS, export.fields, catalog.snapshot)
    normalized = normalize_prices(catalog, export)
    key, values = to_price_statement_key(normalized, catalog.today, catalog.snapshot.rules)

    read = tuple(dict.fromkeys(source for name in columns for source in _READ_FROM.get(name, (name,))))
    query = BoundStatement(price_list_statement(key, read), values)
    values_of = partial(_price_values, tuple(columns), read, catalog.snapshot.formulas, catalog.today)
    return Export(query=query, columns=columns, values=values_of)


_READ_FROM: Mapping[str, Sequence[str]] = {
    "price_age_days": ("seen_until",),
    "unusual": ("median_usd_per_hour",),
    "list_usd_per_hour": ("usd_per_hour", "adjustment"),
    "adjustments": ("usd_per_hour", "adjustment"),
    "estimate_formula": ("source_id",),
}
"""The columns of a row that those of an export are computed from, where they have other names."""


def _price_values(
    names: Sequence[str], read: Sequence[str], formulas: Mapping[str, str], today: date, rows: Rows
) -> list[Sequence[Any]]:
    values: dict[str, Sequence[Any]] = dict(zip(read, zip(*rows, strict=True), strict=True))
    if "adjustment" in values:
        adjustments = [orjson.loads(text) if text is not None else {} for text in values["adjustment"]]
        values |= _adjustment_values(adjustments, values["usd_per_hour"])
    if "price_age_days" in names:
        values["price_age_days"] = [age_days(day, today) for day in values["seen_until"]]
    if "estimate_formula" in names:
        values["estimate_formula"] = list(map(formulas.get, values["source_id"]))
    if "unusual" in names:
        values["unusual"] = [median is not None for median in values["median_usd_per_hour"]]
    values |= {name: list(map(bool, values[name])) for name in ("approximate_date", "disputed") if name in values}
    return [values[name] for name in names]


def _adjustment_values(adjustments: Sequence[Mapping[str, Any]], usd: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Return the values of ADJUSTMENT_COLUMNS; the list price of what no rule changed is its price."""
    list_prices = (terms.get("list_usd_per_hour", price) for terms, price in zip(adjustments, usd, strict=True))
    return {"list_usd_per_hour": list(list_prices), "adjustments": [terms.get("rules", []) for terms in adjustments]}


def _with_origin(
    columns: Mapping[str, FieldKind], names: Sequence[str], snapshot: CatalogSnapshot
) -> Mapping[str, FieldKind]:
    """Return the columns of these names, or all that the catalog has values of; raises BadQuery as `select_columns`."""
    adjusted = ADJUSTMENT_COLUMNS if names or snapshot.rules else {}
    estimated = ESTIMATE_COLUMNS if names or snapshot.formulas else {}
    return select_columns({**columns, **adjusted, **estimated}, names)


def select_columns(columns: Mapping[str, T], names: Sequence[str], noun: str = "column") -> Mapping[str, T]:
    """Return the columns of these names, or all without names; raises BadQuery for one unknown or named twice."""
    for number, name in enumerate(names):
        if name not in columns:
            hint = did_you_mean(nearest(name, columns)) or f"allowed are {', '.join(columns)}"
            raise BadQuery("fields", name, f"there is no such {noun}; {hint}")
        if name in names[:number]:
            raise BadQuery("fields", name, f"a {noun} is given once")
    return {name: columns[name] for name in names} if names else columns


_KINDS: Mapping[type, FieldKind] = {bool: "boolean", int: "integer", float: "number", Decimal: "number", date: "date"}


def _table(model: type[SQLModel]) -> Select[Any]:
    table = table_of(model)
    return select(table).order_by(*table.primary_key)


def _disk_prices() -> Select[Any]:
    price = table_of(DiskPrice)
    usd = type_coerce(usd_of(price.c.nano_usd), UsdColumn()).label("usd")
    columns = (usd if column.name == "nano_usd" else column for column in price.columns)
    return select(*columns).order_by(*price.primary_key)


def _refused_prices() -> Select[Any]:
    query = refused_prices_query()
    return query.with_only_columns(*(column for column in query.selected_columns if column.name != "size_key"))


EXPORTABLE_TABLES: Mapping[str, Callable[[], Select[Any]]] = {
    "facts": partial(_table, Fact),
    "conflicts": conflicts_query,
    "refused_prices": _refused_prices,
    "gpus": partial(_table, Gpu),
    "series": partial(_table, Series),
    "models": partial(_table, LanguageModel),
    "regions": partial(_table, Region),
    "disks": partial(_table, Disk),
    "disk_prices": _disk_prices,
    "sources": partial(_table, Source),
    "revisions": partial(_table, Revision),
}
"""The tables that can be exported besides sizes and prices."""


def export_table(name: str, params: ColumnParams) -> Export:
    """Return the export of one of EXPORTABLE_TABLES; raises BadQuery for a column that it does not have."""
    query = EXPORTABLE_TABLES[name]()
    of_table = {str(column.name): column for column in query.selected_columns}
    columns = select_columns({name: _kind(column) for name, column in of_table.items()}, params.fields)
    positions = {name: position for position, name in enumerate(of_table)}
    readers = [(positions[name], _reader(of_table[name])) for name in columns]

    def values_of(rows: Rows) -> list[Sequence[Any]]:
        of_rows = list(zip(*rows, strict=True))
        return [of_rows[position] if read is None else list(map(read, of_rows[position])) for position, read in readers]

    return Export(query=BoundStatement(Statement(lambda: query), {}), columns=columns, values=values_of)


def _kind(column: ColumnElement[Any]) -> FieldKind:
    if column.key in LIST_COLUMNS or column.key == "source_ids":
        return "list"
    return _KINDS.get(column.type.python_type, "text")


def _reader(column: ColumnElement[Any]) -> Callable[[Any], Any] | None:
    """Return the conversion of a column's values from the database to the export, if they need one."""
    if column.key in LIST_COLUMNS:
        return lambda text: text.split("; ") if text else []
    if isinstance(column.type, JSON) and column.key != "source_ids":
        return lambda value: orjson.dumps(value).decode()
    if column.type.python_type is Decimal:
        return lambda amount: None if amount is None else float(amount)
    if column.type.python_type in (date, datetime):
        return lambda day: None if day is None else day.isoformat()
    return None


def export_offers(provider: ProviderId, today: date) -> Export:
    """Return the export of the sizes that a provider sells today: a row for each size, region and operating system.

    Those of a size come together, and of these those of a region. A size without any price has a row without a region.
    """
    query = BoundStatement(_offers_statement(), {"provider": provider, "today": today})
    columns: dict[str, FieldKind] = dict.fromkeys(query.statement.names, "text")
    return Export(query=query, columns=columns, values=lambda rows: list(zip(*rows, strict=True)))


@cached_statement(1)
def _offers_statement() -> Select[Any]:
    size, offer, region, gpu = (table_of(model).c for model in (Size, Offer, Region, Gpu))
    other = table_of(Gpu).alias()
    smallest = select(func.min(other.c.memory_gib)).where(other.c.family == gpu.family).scalar_subquery()
    columns = (
        *(size.name, size.provider, size.series_id.label("series"), size.category, size.vcpus, size.memory_gib),
        *(size.arch, size.cpu_model, cast(size.retirement_date, String).label("retirement_date")),
        *(size.gpu_count, size.gpu_vendor, size.gpu_model, size.gpu_memory_gib, size.gpu_memory_gib_per_gpu),
        *(size.gpu_count_numerator, size.gpu_count_denominator),
        *(gpu.family.label("gpu_family"), smallest.label("smallest_gpu_memory_gib")),
        *(size.temp_disk_gib, size.temp_disk_count, size.nvme_disk_gib, size.nvme_disk_count),
        *(size.uncached_disk_iops, size.network_mbps, size.infiniband, size.premium_storage),
        *(size.accelerated_networking, size.trusted_launch, size.hibernation, size.confidential_computing),
        *(offer.region, region.name.label("region_name"), offer.os),
        *(offer[f"{purchase}_as_of"] for purchase in PURCHASE_MODELS),
        *(offer[f"{purchase}_formula"] for purchase in PURCHASE_MODELS),
        *(usd_by(offer, purchase).label(purchase) for purchase in PURCHASE_MODELS),
    )
    sold = or_(size.retirement_date.is_(None), size.retirement_date > bindparam("today", type_=Date))
    # Offers in the cheapest region are of no code of a region.
    of_size = and_(offer.size_key == size.key, *(offer.region != code for code in ANY_REGION.values()))
    tables = table_of(Size).outerjoin(table_of(Offer), of_size).outerjoin(table_of(Region), region.code == offer.region)
    return (
        select(*columns)
        .select_from(tables.outerjoin(table_of(Gpu), gpu.id == size.gpu_id))
        .where(size.provider == bindparam("provider"), size.withdrawn.is_not(True), sold)
        .order_by(size.key, offer.region, offer.os)
    )
