"""Normalize names to keys: two spellings with the same key are one name; find regions that an unknown code may mean.

`ND40rs_v2`, `standard_nd40rs_v2` and `Standard_ND40rs_v2` are one size.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import ClassVar, Literal, Self, get_args

from app.catalog.providers import DEFAULT_PROVIDER, Provider, provider_of_region
from app.nearest import closest_spellings, did_you_mean


def size_key(name: str, provider: Provider = DEFAULT_PROVIDER) -> str:
    """Return the key of a size's name: lower case, without the prefix of the provider's names."""
    return name.strip().lower().removeprefix(provider.size_prefix.lower())


UNKNOWN_ZONES = "?"
"""What stands for the zones of a size in a region where the source does not name them."""

MAX_BLANKS = 4
"""The most words of a display name."""


def display_keys(name: str) -> tuple[str, ...]:
    """Return the keys that a display name may mean: its blanks stand for `_` or for nothing.

    `D8s v5`, `D8 s v5` and `Standard D8s v5` are `Standard_D8s_v5`. The last key is that of the name as it is, which
    an alias may have; a name without blanks has no other.
    """
    words = name.split()
    if not 1 < len(words) <= MAX_BLANKS + 1:
        return (size_key(name),)
    forms = words[:1]
    for word in words[1:]:
        forms = [f"{form}{separator}{word}" for form in forms for separator in ("_", "")]
    return (*map(size_key, forms), size_key(name))


def series_key(name: str) -> str:
    """Return the key of a series' name, its letters and digits: `ND A100 v4-series` and `ND_A100_v4` are one."""
    bare = re.sub(r"\b(sizes?|vm|virtual machines?)?[\s-]*series\b", " ", name, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9+]", "", bare.lower())


def region_key(name: str, provider: Provider | None = None) -> str:
    """Return the code of a region in any spelling that the rules of its provider allow.

    Azure's `West Europe` and `west-europe` are `westeurope`; `us-east-1` is AWS's and `us-east1` Google's.
    """
    provider = provider or provider_of_region(name)
    return provider.region_separators.sub("", name).lower()


class LowerName(str):
    """A name in lower case that remembers how it was written, so that an error can quote that."""

    __slots__ = ("written",)
    written: str
    normalize: ClassVar[Callable[[str], str]] = str.lower

    def __new__(cls, written: str) -> Self:
        """Normalize a name."""
        name = super().__new__(cls, cls.normalize(written))
        name.written = written
        return name


class RegionCode(LowerName):
    """The code of a region; it equals the plain code, and so do all spellings, whose form says whose region it is."""

    __slots__ = ()
    normalize = region_key


def as_written(name: str) -> str:
    """Return a region code or name in the client's spelling, if known."""
    return name.written if isinstance(name, LowerName) else name


def model_key(name: str) -> str:
    """Return the key of a language model's name: `Llama 3.1 70B`, `llama3.1:70b` and `llama-3.1-70b` are one."""
    return re.sub(r"[^a-z0-9./]+", "", name.lower())


def model_keys(names: Iterable[str]) -> dict[str, None]:
    """Return the keys of a model's names, in order; a repository also has that of its name without the owner."""
    return dict.fromkeys(model_key(form) for name in names for form in (name, name.rpartition("/")[2]) if form)


def escape_like(text: str) -> str:
    """Return the LIKE pattern, with a backslash as its escape, that matches a text itself."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def glob_to_like(glob: str) -> str:
    """Return the LIKE pattern, with a backslash as its escape, of a glob with `*` and `?`."""
    return escape_like(glob).replace("*", "%").replace("?", "_")


def word_start(word: str) -> str:
    """Return the pattern of what is before letters or a number: `nd` is in `nd96` and `d2nds`, not in `standard`."""
    return "[^a-z]" if word[:1].isalpha() else "[^0-9]" if word[:1].isdigit() else ""


def word_pattern(word: str) -> str:
    """Return the pattern, for GLOB and POSIX expressions alike, of a word with what is before it."""
    # No set can be of these two, which no name has, nor a control character.
    plain = word.translate({ord(character): "\x01" for character in "^\\"})
    return word_start(word) + "".join(
        character if character.isalnum() or character in "_-" else f"[{character}]" for character in plain
    )


Continent = Literal["africa", "asia", "europe", "north_america", "oceania", "south_america"]
CONTINENTS: tuple[Continent, ...] = get_args(Continent)
Category = Literal[
    "general_purpose",
    "compute_optimized",
    "memory_optimized",
    "storage_optimized",
    "gpu_accelerated",
    "fpga_accelerated",
    "high_performance_compute",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)

_DIRECTION = re.compile("north|south|east|west|central")
MAX_REGIONS = 3
"""The most regions to suggest; if a place has more, none is suggested."""


def closest_regions(code: str, regions: Collection[str]) -> Sequence[str]:
    """Return the regions an unknown code may mean: the same place and directions, in any order.

    `us-east` is `eastus`, never `ukeast`: with the place misspelled a code counts that is a few typos away as a whole
    and in its place. Where a place has no region of the directions, a few others of it are meant.
    Codes of the provider that writes its regions so are meant, if the catalog has any; before all of them those that
    differ in hyphens alone.
    """
    written = code.replace("-", "")
    if same := [region for region in regions if region.replace("-", "") == written]:
        return same
    provider = provider_of_region(code)
    every, regions = regions, [region for region in regions if provider_of_region(region) is provider] or regions
    place, directions, number = _parse_region(code)
    there = sorted(
        (region for region in regions if _parse_region(region)[0] == place), key=lambda region: (len(region), region)
    )
    if not there:
        of_provider = _closest_spelling(code, regions, place)
        return of_provider or _closest_spelling(code, every, place)  # a typo may hide whose the form is
    same = [region for region in there if _parse_region(region)[1] == directions]
    exact = [region for region in same if _parse_region(region)[2] == number]
    more = [region for region in there if set(directions) <= set(_parse_region(region)[1])]
    meant = exact or (same[:1] if number else ()) or more or there
    return meant if len(meant) <= MAX_REGIONS else ()


def _closest_spelling(code: str, regions: Collection[str], place: str) -> Sequence[str]:
    """Return the region that is a few typos away, and has the place; all of them if they differ in hyphens alone."""
    near = closest_spellings(code, regions, MAX_REGIONS)
    alike = (region.replace("-", "") for region in near if _is_place_of(region, code, place))
    letters = next(alike, None)
    return [region for region in regions if region.replace("-", "") == letters]


def codes_by_spelling(regions: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the codes of regions, each by itself and by the key of its name if no other has that; takes both."""
    by_name: dict[str, list[str]] = {}
    for code, name in regions:
        by_name.setdefault(region_key(name), []).append(code)
    codes = {code: code for of_name in by_name.values() for code in of_name}
    return {name: of_name[0] for name, of_name in by_name.items() if len(of_name) == 1} | codes


def _parse_region(code: str) -> tuple[str, Sequence[str], str]:
    """Split a code into its place, its directions in alphabetical order, and its number; hyphens do not count."""
    code = code.replace("-", "")
    letters = code.rstrip("0123456789")
    place = _DIRECTION.sub("", letters)
    full = DEFAULT_PROVIDER.region_abbreviations.get(place, place)
    directions = sorted([*_DIRECTION.findall(letters), *(_DIRECTION.findall(full) if full != place else ())])
    return _DIRECTION.sub("", full), directions, code[len(letters) :]


def _is_place_of(region: str, code: str, written: str) -> bool:
    """Return whether a code has the place of a region, also as that abbreviates it, or one much like it."""
    places = {_parse_region(region)[0], _DIRECTION.sub("", re.sub(r"[-\d]", "", region))}
    alike = (place in code.replace("-", "") or sorted(place) == sorted(written) for place in places)
    return any(alike) or bool(closest_spellings(written, places))


def explain_unknown_region(code: str, regions: Collection[str]) -> str:
    """Return what is wrong with the region of an ingested row: the nearest codes, or that it is ingested first."""
    hint = did_you_mean(closest_regions(code, regions), " Else ")
    return f"unknown region {as_written(code)!r}; {hint}ingest it first"


def explain_unknown_size(name: str, sizes: Mapping[str, str], needed: str) -> str:
    """Return what is wrong with the size of an ingested row: the nearest of the known names by key, what is needed."""
    near = get_close_matches(size_key(name), sizes, 1)
    return f"{name!r}: there is no such size; {did_you_mean((sizes[key] for key in near), ' ')}{needed}"
