"""Find the regions and zones in which a size is offered."""

from pydantic import Field
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Availability, Source
from app.catalog.queries.lookups import check_regions, get_size_key, load_region_codes
from app.catalog.queries.pagination import Listing, SortKey, fetch_page
from app.catalog.queries.params import PageParams, RegionSet

_availability, _source = table_of(Availability), table_of(Source)


class AvailabilitySearch(PageParams):
    """Which regions of a size."""

    region: RegionSet = Field(default=(), description="This region; any of several.", examples=[["eastus"]])


def find_availability(session: Session, name: str, search: AvailabilitySearch) -> Listing:
    """Find one page of the regions that have a size; raises NotFound for the size, BadQuery for a region."""
    key = get_size_key(session, name)
    check_regions(load_region_codes(session), "region", search.region)
    table = _availability.c
    query = (
        select(table.region, table.zones, _source.c.published_on.label("as_of"), table.source_id)
        .join_from(_availability, _source, _source.c.id == table.source_id)
        .where(table.size_key == key)
    )
    if search.region:
        query = query.where(or_(*(table.region == region for region in search.region)))
    order = [SortKey(name=column.name, expression=column, nullable=False) for column in (table.region, table.source_id)]
    identity = f"{key} {search.model_dump_json(exclude=search.page_param_names())}"
    found = fetch_page(session, query, order, identity=identity, limit=search.limit, cursor=search.cursor)
    items = [{**item, "zones": item["zones"].split()} for item in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)
