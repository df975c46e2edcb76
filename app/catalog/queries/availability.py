"""Find the regions and zones in which a size is offered."""

from dataclasses import replace
from functools import cache
from typing import Any

import orjson
from pydantic import Field
from sqlalchemy import Select, String, bindparam, select

from app.catalog.column_types import table_of
from app.catalog.models import Availability, Source
from app.catalog.queries.lookups import check_regions, get_size_keys
from app.catalog.queries.pagination import Listing, ListStatements, SortKey, read_list
from app.catalog.queries.params import PageParams, RegionSet
from app.catalog.queries.snapshot import Catalog, short
from app.db.functions import is_listed

_availability, _source = table_of(Availability), table_of(Source)


class AvailabilitySearch(PageParams):
    """Which regions of a size."""

    region: RegionSet = Field(default=(), description="This region; any of several.", examples=[["eastus"]])


@short
def find_availability(catalog: Catalog, name: str, search: AvailabilitySearch) -> Listing:
    """Find one page of the regions that have a size; raises NotFound for the size, BadQuery for a region."""
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    check_regions(catalog.snapshot.regions, "region", search.region)
    values = {"size": key} | ({"regions": orjson.dumps(search.region).decode()} if search.region else {})
    identity = f"{key} {search.model_dump_json(exclude=search.page_param_names())}"
    found = read_list(catalog, _regions_of(some=bool(search.region)), values, search, identity=identity)
    return replace(found, items=[{**item, "zones": item["zones"].split()} for item in found.items])


@cache
def _regions_of(*, some: bool) -> ListStatements:
    """Return the list of the regions that have the size `size`, or of those among `regions`."""
    table = _availability.c

    def build() -> Select[Any]:
        query = (
            select(table.region, table.zones, _source.c.published_on.label("as_of"), table.source_id)
            .join_from(_availability, _source, _source.c.id == table.source_id)
            .where(table.size_key == bindparam("size", type_=String))
        )
        return query.where(is_listed(table.region, bindparam("regions", type_=String))) if some else query

    order = [SortKey(name=column.name, expression=column, nullable=False) for column in (table.region, table.source_id)]
    return ListStatements(build, order, short=True)
