"""Exports: every row of a list, in its order, as values to be streamed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, TypeVar, get_type_hints

import orjson
from pydantic import Field

from app.catalog.fields import GPU_FIELDS, SERIES_FIELDS, SHOWN_FIELDS, FieldKind
from app.catalog.presets import Preset
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
from app.catalog.queries.provenance import conflicts_query
from app.catalog.queries.size_sets import list_query
from app.catalog.queries.sizes import STATUS_AND_OFFER_FIELDS, age_days, normalize, render_size
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.catalog.statements import COLUMN_KINDS, Statement
from app.catalog.tables import TABLE_COLUMNS
from app.db.dialects import Dialect, quote_all
from app.db.statements import BoundStatement, Rows
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


@dataclass(frozen=True, slots=True)
class _Table:
    """A table that can be exported: its columns, each with its kind, and its rows in their order as SQL."""

    columns: Mapping[str, FieldKind]
    query: Callable[[Dialect], str]


_TABLE_KINDS: Mapping[str, FieldKind] = {
    **{name: "date" if kind == "day" else "boolean" for name, kind in COLUMN_KINDS.items() if kind in ("day", "flag")},
    **{name: field.kind for fields in (GPU_FIELDS, SERIES_FIELDS) for name, field in fields.items()},
    **{name: "integer" for name, hint in get_type_hints(Preset).items() if hint in (int, int | None)},
    **dict.fromkeys(("burst_iops", "burst_mbps", "included_iops", "included_mbps", "iops_per_gib"), "integer"),
    **dict.fromkeys(("min_gib", "max_gib", "max_iops", "max_mbps", "max_shares"), "integer"),
    **dict.fromkeys(("line", "number", "changes"), "integer"),
    **dict.fromkeys(("latitude", "longitude", "mbps_per_iops", "usd", "usd_per_hour"), "number"),
    "source_ids": "list",
}
"""Kinds of columns of tables; others are text."""


def _columns(names: Sequence[str]) -> Mapping[str, FieldKind]:
    return {name: _TABLE_KINDS.get(name, "text") for name in names}


def _table(name: str, key: str, columns: str = "", **written: str) -> _Table:
    """Return the export of all rows in the order of a key; some columns are `written` as SQL, and prices as dollars.

    The columns are those of TABLE_COLUMNS by default.
    """
    names = columns.split() or TABLE_COLUMNS[name]

    def query(sql: Dialect) -> str:
        usd = (column for column in names if column.startswith("usd"))
        as_sql = written | {column: f"cast({sql.usd_of(f'nano_{column}')} as double precision)" for column in usd}
        shown = ", ".join(f"{as_sql.get(column, column)} as {column}" for column in names)
        return f"select {shown} from {name} order by {key}"

    return _Table(_columns(names), query)


EXPORTABLE_TABLES: Mapping[str, _Table] = {
    "facts": _table(
        "fact",
        "kind, subject, field, source_id",
        "kind subject field source_id written_as value unit raw file line note corrected_value verdict reason",
    ),
    "conflicts": _Table(
        _columns(
            (
                *("kind", "subject", "field", "region", "os", "purchase", "unit", "name", "accepted_value"),
                *("accepted_source_id", "value", "raw", "reason", "file", "line", "source_id", "source_title"),
                *("source_kind", "source_url", "source_published_on"),
            )
        ),
        conflicts_query,
    ),
    "refused_prices": _table(
        "refused_price",
        "size_key, region, os, purchase, valid_from, source_id, known_from",
        "size region os purchase valid_from source_id known_from seen_until rule evidence usd_per_hour",
        size="(select name from size where size.key = refused_price.size_key)",
    ),
    "gpus": _table("gpu", "id"),
    "series": _table("series", "id"),
    "models": _table("model", "id"),
    "regions": _table("region", "code"),
    "disks": _table("disk", "id"),
    "disk_prices": _table(
        "disk_price",
        "region, disk_id, per, valid_from, source_id",
        "region disk_id per valid_from source_id usd",
    ),
    "sources": _table("source", "id"),
    "revisions": _table("revision", "number"),
}
"""The tables that can be exported besides sizes and prices."""


def export_table(name: str, params: ColumnParams) -> Export:
    """Return the export of one of EXPORTABLE_TABLES; raises BadQuery for a column that it does not have."""
    table = EXPORTABLE_TABLES[name]
    columns = select_columns(table.columns, params.fields)
    positions = {name: position for position, name in enumerate(table.columns)}
    readers = [(positions[name], _reader(name, kind)) for name, kind in columns.items()]

    def values_of(rows: Rows) -> list[Sequence[Any]]:
        of_rows = list(zip(*rows, strict=True))
        return [of_rows[position] if read is None else list(map(read, of_rows[position])) for position, read in readers]

    return Export(query=BoundStatement(Statement(table.query)), columns=columns, values=values_of)


def _reader(name: str, kind: FieldKind) -> Callable[[Any], Any] | None:
    """Return the conversion of a column's values from the database to the export, if they need one."""
    if name in LIST_COLUMNS:
        return lambda text: text.split("; ") if text else []
    if name == "counts":
        return lambda counts: orjson.dumps(counts).decode()
    if kind == "date" or name == "created_at":
        return lambda day: None if day is None else day.isoformat()
    return None


_SIZE_COLUMNS = (
    *("name", "provider", "category", "vcpus", "memory_gib", "arch", "cpu_model", "retirement_date", "gpu_count"),
    *("gpu_vendor", "gpu_model", "gpu_memory_gib", "gpu_memory_gib_per_gpu", "gpu_count_numerator"),
    *("gpu_count_denominator", "temp_disk_gib", "temp_disk_count", "nvme_disk_gib", "nvme_disk_count"),
    *("uncached_disk_iops", "network_mbps", "infiniband", "premium_storage", "accelerated_networking"),
    *("trusted_launch", "hibernation", "confidential_computing"),
)
_OFFER_COLUMNS: Mapping[str, str] = {
    **{name: f"size.{name}" for name in _SIZE_COLUMNS},
    "series": "size.series_id",
    "gpu_family": "gpu.family",
    "smallest_gpu_memory_gib": "(select min(other.memory_gib) from gpu as other where other.family = gpu.family)",
    "region": "offer.region",
    "region_name": "region.name",
    "os": "offer.os",
    **{f"{model}_{what}": f"offer.{model}_{what}" for what in ("as_of", "formula") for model in PURCHASE_MODELS},
}
"""The columns of `export_offers` as SQL, without the prices, whose names are those of purchase models."""


def export_offers(provider: ProviderId, today: date) -> Export:
    """Return the export of the sizes that a provider sells today: a row for each size, region and operating system.

    Those of a size come together, and of these those of a region. A size without any price has a row without a region.
    Days are as the driver returns them.
    """
    query = BoundStatement(_OFFERS, {"provider": provider, "today": today.isoformat()})
    columns: dict[str, FieldKind] = dict.fromkeys((*_OFFER_COLUMNS, *PURCHASE_MODELS), "text")
    return Export(query=query, columns=columns, values=lambda rows: list(zip(*rows, strict=True)))


def _offers(sql: Dialect) -> str:
    columns = [*_OFFER_COLUMNS.items(), *((model, usd_by(sql, "offer", model)) for model in PURCHASE_MODELS)]
    # Offers in the cheapest region are of no code of a region.
    return f"""
        select {", ".join(f"{column} as {name}" for name, column in columns)}
        from size
        left join offer on offer.size_key = size.key and offer.region not in ({quote_all(ANY_REGION.values())})
        left join region on region.code = offer.region
        left join gpu on gpu.id = size.gpu_id
        where size.provider = :provider and size.withdrawn is not true
            and (size.retirement_date is null or size.retirement_date > {sql.day("today")})
        order by size.key, offer.region, offer.os
    """


_OFFERS = Statement(_offers, kinds={name: kind for name, kind in COLUMN_KINDS.items() if kind == "flag"})
