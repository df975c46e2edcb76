"""Sizes: from a typed search to one page of flat rows, each with the price that it was asked for."""

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.catalog.ask.conditions import Context, conditions, size, status
from app.catalog.ask.lookups import check_regions, series_ids, size_key_of
from app.catalog.ask.ordering import price_columns, sort_terms
from app.catalog.ask.paging import Item, Listing, take_page
from app.catalog.ask.search import SizeScope, SizeSearch
from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Gpu, Size, Source
from app.catalog.offers import OFFERED
from app.catalog.tables import table_of
from app.errors import BadQuestion, NotFound

_NOT_SHOWN = {"key", "search_text", "series_id", "source_id", "disputed_fields"}
_SHOWN = [column for column in table_of(Size).columns if column.name not in _NOT_SHOWN]

Scope = TypeVar("Scope", bound=SizeScope)


def find_sizes(session: Session, search: SizeSearch, *, today: date) -> Listing:
    """Find the sizes that a search asks for; raises BadQuestion for a region, series, order or cursor unknown here."""
    search = settle(session, search)
    context = Context.of(search, today)
    page = take_page(
        session,
        select_sizes(context).where(*conditions(search, context)),
        sort_terms(search.sort, context),
        question=search.model_dump_json(exclude={"limit", "cursor"}),
        limit=search.limit,
        cursor=search.cursor,
    )
    rows = [size_row(row) for row in page.items]
    return Listing(items=rows, next_cursor=page.next_cursor, total=page.total)


def get_size(session: Session, name: str, *, today: date) -> Item:
    """Get one size by any of its names, with its cheapest on-demand Linux price; raises NotFound."""
    query = select_sizes(Context.of(SizeScope(), today))
    row = session.execute(query.where(size.key == size_key_of(session, name))).mappings().one()
    return size_row(dict(row))


def settle(session: Session, scope: Scope) -> Scope:
    """Bring the regions and series that a question names to the catalog's own ids."""
    check_regions(session, "region", scope.region)
    check_regions(session, "available_in", scope.available_in)
    if not scope.series:
        return scope
    try:
        return scope.model_copy(update={"series": series_ids(session, scope.series)})
    except NotFound as unknown:
        raise BadQuestion("series", unknown.name, f"{unknown} GET /series lists them.") from None


@lru_cache(maxsize=512)
def select_sizes(context: Context) -> Select[Any]:
    """Select sizes, each with the one offer that it is shown with, or none; the same context gives the same query."""
    prices = [column.label(name) for name, column in price_columns(context).items()]
    source, gpu, offer = table_of(Source), table_of(Gpu), context.offers
    return (
        select(
            *_SHOWN,
            size.series_id.label("series"),
            size.disputed_fields,
            status(context.today).label("status"),
            source.c.url.label("source_url"),
            *(offer.c[name] for name in OFFERED),
            *prices,
        )
        .join_from(table_of(Size), offer, offer.c.size_key == size.key, isouter=True)
        .join(source, source.c.id == size.source_id, isouter=True)
        .join(gpu, gpu.c.id == size.gpu_id, isouter=True)
    )


def size_row(row: Mapping[str, Any]) -> Item:
    """Make the flat row that is shown: flags as a list, the exact fraction as text, the count to four digits."""
    shown = dict(row)
    numerator, denominator = shown.pop("gpu_count_numerator"), shown.pop("gpu_count_denominator")
    part = Fraction(numerator, denominator) if denominator else None
    shown["gpu_fraction"] = str(part) if part is not None and part.denominator > 1 else None
    shown["gpu_count"] = round(shown["gpu_count"], 4) if part is not None else None
    shown["flags"] = [name for name in SIZE_FLAGS if shown[name]]
    shown["disputed_fields"] = [name for name in shown["disputed_fields"].split("; ") if name]
    return shown
