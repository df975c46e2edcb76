"""The page and the export of prices that every side sends, as hand-written SQL over the same tables.

It shares no code with the service's queries, and knows of the synthetic catalogs that they have no complete lists and
no two prices of an offer that were observed on the same day.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

PRICES_TARGET = "/prices?region=eastus&limit=50"
HISTORY_CSV = "/prices.csv?history=true"

_COLUMNS = {
    "size": "size.name",
    "usd_per_hour": "cast(price.nano_usd_per_hour as double precision) / 1e9",
    "price_age_days": "price.seen_until",
    "unusual": "price.median_nano_usd is not null",
    "median_usd_per_hour": "cast(price.median_nano_usd as double precision) / 1e9",
    "disputed": "coalesce(price.disputed, false)",
}
"""Fields of a response that are not a column of `price` with the same name."""

_CSV_COLUMNS = {
    "approximate_date": "case when price.approximate_date then 'true' else 'false' end",
    "price_age_days": "cast(julianday(:today) - julianday(price.seen_until) as integer)",
    "unusual": "case when price.median_nano_usd is not null then 'true' else 'false' end",
    "disputed": "case when price.disputed then 'true' else 'false' end",
}
"""Cells of an export that SQLite writes as the service does."""

_FROM = "from price join size on size.key = price.size_key"
_ORDER = """order by price.size_key, price.region, price.os, price.purchase, price.valid_from, price.source_id,
price.known_from"""
_NEWEST_IN_REGION = """price.region = :region and price.valid_from <= :today and not exists (
select 1 from price later where later.size_key = price.size_key and later.region = price.region
and later.os = price.os and later.purchase = price.purchase and later.valid_from <= :today
and later.valid_from > price.seen_until)"""


def prices_sql(names: Sequence[str]) -> str:
    """Return the query of a page of prices whose rows have these columns, with named parameters `:name`."""
    columns = ", ".join(_COLUMNS.get(name, f"price.{name}") for name in names)
    return f"select {columns} {_FROM} where {_NEWEST_IN_REGION} {_ORDER} limit 50"


def price_parameters(target: str) -> dict[str, Any]:
    """Return the query's parameters from a target like PRICES_TARGET."""
    asked = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
    return {"region": asked["region"], "today": datetime.now(UTC).date().isoformat()}


def history_sql(names: Sequence[str]) -> str:
    """Return the query of the cells of all prices in SQLite, with these columns and the parameter `:today`."""
    columns = _COLUMNS | _CSV_COLUMNS
    return f"select {', '.join(columns.get(name, f'price.{name}') for name in names)} {_FROM} {_ORDER}"


class PriceRows:
    """Maps the database's tuples to the items of the response."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._today = names, datetime.now(UTC).date()
        self._flags = [names.index(name) for name in ("approximate_date", "unusual", "disputed")]
        self._age = names.index("price_age_days")
        self._ages: dict[Any, int] = {}

    def row(self, values: Sequence[Any]) -> dict[str, Any]:
        """Map one row: the booleans, which SQLite stores as integers, and the days since it was observed."""
        kept = list(values)
        for flag in self._flags:
            kept[flag] = kept[flag] != 0
        seen = kept[self._age]
        if seen not in self._ages:
            self._ages[seen] = (self._today - date.fromisoformat(str(seen))).days
        kept[self._age] = self._ages[seen]
        return dict(zip(self._names, kept, strict=True))
