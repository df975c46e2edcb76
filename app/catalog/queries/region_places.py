"""Where regions are, and which of them the parameters `provider`, `country` and `continent` mean."""

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Region, Source
from app.catalog.queries.params import PlaceParams
from app.errors import BadQuery

_region, _source = table_of(Region).c, table_of(Source).c


class RegionPlace(NamedTuple):
    """Whose a region is, and where; None where it has no place."""

    provider: str
    country: str | None
    continent: str | None


def load_region_places(session: Session) -> dict[str, RegionPlace]:
    """Return the places of all regions by their codes."""
    rows = session.execute(select(_region.code, _region.provider, _region.country, _region.continent))
    return {code: RegionPlace(*place) for code, *place in rows}


def load_formulas(session: Session) -> dict[str, str]:
    """Return how prices were computed, by the sources that no list states the prices of."""
    rows = session.execute(select(_source.id, _source.formula).where(_source.formula.is_not(None)))
    return {id_: formula for id_, formula in rows}  # noqa: C416  # dict() of rows is not typed


ParamsT = TypeVar("ParamsT", bound=PlaceParams)


def place_regions(params: ParamsT, places: Mapping[str, RegionPlace], *, by_provider: bool = False) -> ParamsT:
    """Return parameters whose regions are those in the countries and continents that they name.

    Where they name regions, too, only these count; `by_provider` says that its provider is a condition on regions, as
    of prices, each of which is in a region of one. Raises BadQuery where no region is meant.
    """
    providers: Collection[str] = getattr(params, "provider", ())
    regions: Collection[str] = getattr(params, "region", ())
    wanted: tuple[Collection[str], ...] = (providers, params.country, params.continent)
    if not (params.country or params.continent or (by_provider and providers)):
        return params
    there = [
        code
        for code, place in sorted(places.items())
        if all(not values or name in values for name, values in zip(place, wanted, strict=True))
    ]
    field, values = next((name, given) for name, given in zip(_FIELDS, wanted[::-1], strict=True) if given)
    if not there:
        allowed = sorted({str(value) for place in places.values() if (value := getattr(place, field))})
        raise BadQuery(field, ",".join(values), f"no such region is known; {field} is one of {', '.join(allowed)}")
    matching = [code for code in there if not regions or code in regions]
    if not matching:
        raise BadQuery(
            "region", ",".join(regions), f"not in {field}={','.join(values)}; GET /regions says where each region is"
        )
    return params.model_copy(update={"region": tuple(matching)})


_FIELDS = ("continent", "country", "provider")
