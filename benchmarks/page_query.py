"""The priced page that every side sends, as hand-written SQL over the same tables.

It shares no code with the service's queries; the columns are those of the response that the service sent.
"""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import psycopg
from sqlalchemy import Boolean, make_url

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Offer, Size
from app.catalog.names import size_key
from app.catalog.projections import OFFER_JSON_FIELDS
from app.catalog.purchases import PURCHASE_MODELS

PAGE = 50
PRICED_TARGET = f"/sizes?region=eastus&min_gpu_mem=80&sort=usd_per_hour&limit={PAGE}"


def _usd(purchase: str) -> str:
    return f"case when offer.{purchase}_rank_usd < 1e300 then offer.{purchase}_rank_usd end"


def _per(divisor: str, factor: str = "1") -> str:
    """Divide the price by a figure, as both databases round: to nine decimals."""
    quotient = f"offer.on_demand_rank_usd * {factor} / {divisor}"
    rounded = f"cast(round(cast({quotient} as numeric), 9) as double precision)"
    return f"case when offer.on_demand_rank_usd < 1e300 and {divisor} > 0 then {rounded} end"


COLUMNS = {
    "series": "size.series_id",
    "status": "case when size.retirement_date is not null then 'retiring' when size.preview then 'preview' "
    "else 'current' end",
    "flags": "null",
    "gpu_fraction": "case when size.gpu_count_denominator > 1 "
    "then size.gpu_count_numerator || '/' || size.gpu_count_denominator end",
    "source_url": "source.url",
    "region": "offer.priced_in",
    "usd_per_hour": _usd("on_demand"),
    **{f"{purchase}_usd_per_hour": _usd(purchase) for purchase in PURCHASE_MODELS},
    "usd_per_vcpu_hour": _per("offer.vcpus"),
    "usd_per_1000_coremark_hour": _per("offer.coremark", "1000"),
    "usd_per_memory_gib_hour": _per("offer.memory_gib"),
    "usd_per_gpu_hour": _per("offer.gpu_count_numerator", "offer.gpu_count_denominator"),
    "usd_per_gpu_gib_hour": _per("offer.gpu_memory_gib"),
    **{
        name: f"offer.{name}"
        for name in ("on_demand_as_of", "spot_as_of", "on_demand_approximate_date", "spot_approximate_date")
    },
    "price_unusual": "offer.on_demand_median_usd is not null",
    "median_usd_per_hour": "offer.on_demand_median_usd",
    "price_disputed": "offer.on_demand_disputed is true",
    "price_as_of": "offer.on_demand_as_of",
    "price_age_days": "offer.on_demand_as_of",
}
"""Fields of a response that are not a column of `size` with the same name."""

FROM = """from offer join size on size.key = offer.size_key left join source on source.id = size.source_id
where offer.region = :region and offer.os = 'linux'
and offer.gpu_memory_gib >= :min_gpu_mem and (offer.retirement_date is null or offer.retirement_date > :today)
order by offer.on_demand_rank_usd, offer.size_key limit 50"""

STORED = f"""select size_doc.doc, {COLUMNS["status"]}, offer_doc.doc
{
    FROM.replace(
        "join size on size.key = offer.size_key left join source on source.id = size.source_id",
        "join size_doc on size_doc.size_key = offer.size_key join offer_doc on offer_doc.size_key = offer.size_key",
    )
}""".replace("size.", "offer.")
"""The same page from the stored documents of sizes, and those of offers that `store_offers` has written."""

_TRUTHS = {
    column.name for model in (Size, Offer) for column in table_of(model).columns if isinstance(column.type, Boolean)
} | {"price_unusual", "price_disputed"}


def page_sql(names: Sequence[str]) -> str:
    """Return the query of a page whose rows have these columns, with named parameters `:name`."""
    return f"select {', '.join(COLUMNS.get(name, f'size.{name}') for name in names)} {FROM}"


def parameters(target: str) -> dict[str, Any]:
    """Return the query's parameters from a target like PRICED_TARGET."""
    asked = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
    today = datetime.now(UTC).date().isoformat()
    return {"region": asked["region"], "min_gpu_mem": float(asked["min_gpu_mem"]), "today": today}


class Rows:
    """Maps the database's tuples to the items of the response."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._ages: dict[Any, int | None] = {None: None}
        self._truths = [index for index, name in enumerate(names) if name in _TRUTHS]
        self._set = [(index, name) for index, name in enumerate(names) if name in SIZE_FLAGS]
        self._flags, self._count, self._fields = map(names.index, ("flags", "gpu_count", "disputed_fields"))
        self._age, self._today = names.index("price_age_days"), datetime.now(UTC).date()

    def row(self, values: Sequence[Any]) -> dict[str, Any]:
        """Map one row: booleans, which SQLite stores as integers, the list of flags, the count to four digits."""
        kept = list(values)
        for index in self._truths:
            if kept[index] is not None:
                kept[index] = kept[index] != 0
        kept[self._age] = self._days_since(kept[self._age])
        kept[self._flags] = [name for index, name in self._set if kept[index]]
        kept[self._count] = round(kept[self._count], 4)
        kept[self._fields] = [name for name in kept[self._fields].split("; ") if name]
        return dict(zip(self._names, kept, strict=True))

    def _days_since(self, day: Any) -> int | None:
        """Return the days since a date, which SQLite stores as text."""
        if day not in self._ages:
            self._ages[day] = (self._today - date.fromisoformat(str(day))).days
        return self._ages[day]


def open_sqlite(url: str) -> sqlite3.Connection:
    """Open a catalog read-only, with the fastest settings."""
    connection = sqlite3.connect(f"file:{make_url(url).database}?mode=ro", uri=True, check_same_thread=False)
    for pragma in ("query_only = on", "mmap_size = 268435456", "cache_size = -65536"):
        connection.execute(f"pragma {pragma}")
    return connection


def store_offers(connection: sqlite3.Connection, items: Sequence[dict[str, Any]]) -> None:
    """Write the JSON of offers into a temporary table, from the items of a response."""
    connection.execute("pragma query_only = off")
    connection.execute("create temporary table offer_doc (size_key text primary key, doc text not null)")
    docs = ({name: item[name] for name in OFFER_JSON_FIELDS} for item in items)
    rows = ((size_key(item["name"]), orjson.dumps(doc).decode()) for item, doc in zip(items, docs, strict=True))
    connection.executemany("insert into offer_doc values (?, ?)", rows)
    connection.commit()


async def open_postgres(url: str) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    """Open a catalog in autocommit mode."""
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return await psycopg.AsyncConnection.connect(address, autocommit=True)
