"""Names the continents of regions, and finds the regions that an unknown code may mean."""

import re
from collections.abc import Collection, Sequence
from typing import Literal, get_args

from app.catalog.providers import DEFAULT_PROVIDER, provider_of_region
from app.nearest import closest_spellings, did_you_mean

Continent = Literal["africa", "asia", "europe", "north_america", "oceania", "south_america"]
CONTINENTS: tuple[Continent, ...] = get_args(Continent)

_DIRECTION = re.compile("north|south|east|west|central")
MAX_REGIONS = 3
"""The most regions to suggest; if a place has more, none is suggested."""


def closest_regions(code: str, regions: Collection[str]) -> Sequence[str]:
    """Return the regions an unknown code may mean: the same place and directions, in any order.

    `us-east` is `eastus`, never `ukeast`: with the place misspelled a code counts that is a few typos away as a whole
    and in its place. Where a place has no region of the directions, a few others of it are meant.
    Codes of the provider that writes its regions so are meant, if the catalog has any.
    """
    provider = provider_of_region(code)
    regions = [region for region in regions if provider_of_region(region) is provider] or regions
    place, directions, number = _parse_region(code)
    there = sorted(
        (region for region in regions if _parse_region(region)[0] == place), key=lambda region: (len(region), region)
    )
    if not there:
        near = closest_spellings(code, regions, MAX_REGIONS)
        return [region for region in near if _is_place_of(_parse_region(region)[0], code, place)][:1]
    same = [region for region in there if _parse_region(region)[1] == directions]
    exact = [region for region in same if _parse_region(region)[2] == number]
    more = [region for region in there if set(directions) <= set(_parse_region(region)[1])]
    meant = exact or (same[:1] if number else ()) or more or there
    return meant if len(meant) <= MAX_REGIONS else ()


def _parse_region(code: str) -> tuple[str, Sequence[str], str]:
    """Split a code into its place, its directions in alphabetical order, and its number; hyphens do not count."""
    code = code.replace("-", "")
    letters = code.rstrip("0123456789")
    place = _DIRECTION.sub("", letters)
    full = DEFAULT_PROVIDER.region_abbreviations.get(place, place)
    directions = sorted([*_DIRECTION.findall(letters), *(_DIRECTION.findall(full) if full != place else ())])
    return _DIRECTION.sub("", full), directions, code[len(letters) :]


def _is_place_of(place: str, code: str, written: str) -> bool:
    return (
        place in code.replace("-", "") or sorted(place) == sorted(written) or bool(closest_spellings(written, [place]))
    )


def explain_unknown_region(code: str, regions: Collection[str]) -> str:
    """Return what is wrong with the region of an ingested row: the nearest codes, or that it is ingested first."""
    hint = did_you_mean(closest_regions(code, regions), " Else ")
    return f"unknown region {code!r}; {hint}ingest it first"
