"""How each thing that may be asked of sizes becomes SQL: one table, and a test says that it is whole."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, case, exists, func, literal, or_, select, true

from app.catalog.ask.search import ORDERABLE, SizeScope
from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Gpu, Offer, Size
from app.catalog.names import size_key
from app.catalog.offers import offers_for
from app.catalog.tables import table_of

Condition = ColumnElement[bool]
size, gpu = table_of(Size).c, table_of(Gpu).c


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What conditions need besides their own value: the day, and the offers that the sizes are shown with."""

    today: date
    os: str
    purchase: str
    offers: FromClause

    @staticmethod
    def of(scope: SizeScope, today: date) -> "Context":
        """Take from a question whose prices in which regions it means."""
        return _context(scope.os, scope.purchase, scope.region, today)

    @property
    def price(self) -> ColumnElement[Any]:
        """The price column of the purchase model that is meant."""
        return self.offers.c[f"{self.purchase}_usd_per_hour"]


@lru_cache(maxsize=512)
def _context(os: str, purchase: str, regions: tuple[str, ...], today: date) -> Context:
    """Build once what many questions share: building SQL takes longer than the database does."""
    return Context(today=today, os=os, purchase=purchase, offers=offers_for(os, purchase, regions))


def status(today: date) -> ColumnElement[str]:
    """A size's standing on a day: retired from its date on, retiring while a date is announced, preview, current."""
    return case(
        (size.retirement_date <= today, literal("retired")),
        (size.retirement_date.is_not(None), literal("retiring")),
        (size.preview.is_(True), literal("preview")),
        else_=literal("current"),
    )


def local_disk() -> ColumnElement[float]:
    """Temporary and NVMe disks together, GiB; unknown only where both are."""
    some = func.coalesce(size.temp_disk_gib, 0.0) + func.coalesce(size.nvme_disk_gib, 0.0)
    return case((or_(size.temp_disk_gib.is_not(None), size.nvme_disk_gib.is_not(None)), some))


def on_one_gpu() -> ColumnElement[float]:
    """GPU memory that one GPU gives the VM, GiB: a fraction of a GPU gives its slice."""
    slice_of_one = size.gpu_count < 1
    return case((slice_of_one, size.gpu_memory_gib), else_=size.gpu_memory_gib_per_gpu)


def _glob(column: ColumnElement[Any], pattern: str) -> Condition:
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return column.like(escaped.replace("*", "%").replace("?", "_"), escape="\\")


def _globs_on_name(patterns: Iterable[str]) -> Condition:
    """A pattern may begin with `Standard_` or leave it out."""
    return or_(*(_glob(size.key, size_key(p)) | _glob(func.lower(size.name), p.lower()) for p in patterns))


def _globs_on_gpu(patterns: Iterable[str]) -> Condition:
    columns = (func.lower(size.gpu_model), func.lower(gpu.family), size.gpu_id)
    return or_(*(_glob(column, pattern.lower()) for pattern in patterns for column in columns))


def _words(text: str) -> Condition:
    return and_(*(size.search_text.contains(word, autoescape=True) for word in text.lower().split()))


def _statuses(statuses: tuple[str, ...], context: Context) -> Condition:
    return true() if "any" in statuses else status(context.today).in_(statuses or ORDERABLE)


def _priced_in(regions: Iterable[str], context: Context) -> Condition:
    """Priced in every one of the regions, whatever the purchase model that is meant costs."""
    priced = table_of(Offer).alias("priced").c
    return and_(
        *(
            exists(
                select(literal(1)).where(
                    priced.size_key == size.key,
                    priced.region == region,
                    priced.os == context.os,
                    priced[f"{context.purchase}_usd_per_hour"].is_not(None),
                )
            )
            for region in regions
        )
    )


def _is(column: ColumnElement[Any]) -> Callable[[Any, Context], Condition]:
    return lambda value, _context: column.is_(value)


def _at_least(column: ColumnElement[Any]) -> Callable[[Any, Context], Condition]:
    return lambda value, _context: column >= value


def _at_most(column: ColumnElement[Any]) -> Callable[[Any, Context], Condition]:
    return lambda value, _context: column <= value


CONDITIONS: dict[str, Callable[[Any, Context], Condition]] = {
    "q": lambda text, _: _words(text),
    "name": lambda patterns, _: _globs_on_name(patterns),
    "series": lambda ids, _: size.series_id.in_(ids),
    "gpu": lambda patterns, _: _globs_on_gpu(patterns),
    "gpu_vendor": lambda vendor, _: func.lower(size.gpu_vendor) == vendor.lower(),
    "verified": _is(size.verified),
    "disputed": _is(size.disputed),
    "status": _statuses,
    "os": lambda *_: true(),
    "purchase": lambda *_: true(),
    "region": lambda _, context: context.offers.c.size_key.is_not(None),
    "available_in": _priced_in,
    "min_gpu_mem": _at_least(size.gpu_memory_gib),
    "max_gpu_mem": _at_most(size.gpu_memory_gib),
    "min_gpu_mem_per_gpu": _at_least(on_one_gpu()),
    "max_gpu_mem_per_gpu": _at_most(size.gpu_memory_gib_per_gpu),
    "min_gpus": _at_least(size.gpu_count),
    "max_gpus": _at_most(size.gpu_count),
    "min_vcpus": _at_least(size.vcpus),
    "max_vcpus": _at_most(size.vcpus),
    "min_memory": _at_least(size.memory_gib),
    "max_memory": _at_most(size.memory_gib),
    "min_local_disk": _at_least(local_disk()),
    "min_network_gbps": lambda gbps, _: size.network_mbps >= gbps * 1000,
    "infiniband": _is(size.infiniband),
    "min_infiniband_gbps": _at_least(size.infiniband_gbps),
    "nvlink": _is(size.nvlink),
    "arch": lambda arch, _: size.arch == arch,
    "min_usd_per_hour": lambda usd, context: context.price >= usd,
    "max_usd_per_hour": lambda usd, context: context.price <= usd,
    **{name: _is(size[name]) for name in SIZE_FLAGS},
}
"""Every filter of a search by its name; `os` and `purchase` choose prices, which the query's joins see to."""

ALWAYS = ("status",)
"""Filters that hold even where nobody asks: retired sizes are left out."""


def conditions(search: SizeScope, context: Context, names: Iterable[str] = tuple(CONDITIONS)) -> list[Condition]:
    """The conditions of a question that were asked for, or that always hold; `names` narrows it to some filters."""
    asked = {name: getattr(search, name) for name in names}
    return [
        CONDITIONS[name](value, context)
        for name, value in asked.items()
        if name in ALWAYS or (value is not None and value != ())
    ]
