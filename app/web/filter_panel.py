"""The panel of filters beside a list of sizes: every filter of `GET /sizes`, in groups, with counts and ranges."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from app.catalog.fields import SIZE_FLAGS, short_title
from app.catalog.queries.facets import FacetRange, Facets
from app.catalog.queries.relaxations import Relaxation
from app.http.canonical import to_query_text
from app.web.sizes_view import PURCHASE_TITLES


@dataclass(frozen=True, slots=True)
class Bounds:
    """A pair of bounds, either may be missing, of a figure of which the facets have the range."""

    least: str
    most: str
    title: str
    unit: str
    range: str


GPU_BOUNDS = (
    Bounds("min_gpus", "max_gpus", "GPUs", "", "gpu_count"),
    Bounds("min_gpu_mem", "max_gpu_mem", "GPU memory of the VM", "GiB", "gpu_memory_gib"),
    Bounds("min_gpu_mem_per_gpu", "max_gpu_mem_per_gpu", "GPU memory on one GPU", "GiB", "gpu_memory_gib_per_gpu"),
)
CPU_BOUNDS = (
    Bounds("min_vcpus", "max_vcpus", "vCPUs", "", "vcpus"),
    Bounds("min_memory", "max_memory", "Memory", "GiB", "memory_gib"),
    Bounds("min_local_disk", "", "Local disks", "GiB", "local_disk_gib"),
)
PRICE_BOUNDS = (Bounds("min_usd_per_hour", "max_usd_per_hour", "Price of the VM", "USD an hour", "usd_per_hour"),)
NETWORK_BOUNDS = (
    Bounds("min_network_gbps", "", "Network", "Gbps", "network_gbps"),
    Bounds("min_infiniband_gbps", "", "InfiniBand", "Gbps", "infiniband_gbps"),
)
NETWORK_FLAGS = ("infiniband", "accelerated_networking", "gpudirect_rdma")
FLAGS = tuple(flag for flag in SIZE_FLAGS if flag not in NETWORK_FLAGS)

TITLES: Mapping[str, str] = {
    **{bounds.least: f"{bounds.title} ≥" for bounds in (*GPU_BOUNDS, *CPU_BOUNDS, *PRICE_BOUNDS, *NETWORK_BOUNDS)},
    **{bounds.most: f"{bounds.title} ≤" for bounds in (*GPU_BOUNDS, *CPU_BOUNDS, *PRICE_BOUNDS) if bounds.most},
    "q": "Text",
    "gpu": "GPU",
    "os": "System",
    "purchase": "Price",
    "region": "Price in",
    "available_in": "Available in",
    "as_of": "Prices of",
    "known_at": "As known on",
}
"""What a chip says a filter is about; other filters have the name of their field."""

UNITS: Mapping[str, str] = {
    name: bounds.unit
    for bounds in (*GPU_BOUNDS, *CPU_BOUNDS, *PRICE_BOUNDS, *NETWORK_BOUNDS)
    for name in (bounds.least, bounds.most)
    if name
}

GROUPS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("gpu", "gpu_vendor", "nvlink", *(name for bounds in GPU_BOUNDS for name in (bounds.least, bounds.most))),
    "cpu": ("arch", *(name for bounds in CPU_BOUNDS for name in (bounds.least, bounds.most) if name)),
    "price": ("os", "purchase", "min_usd_per_hour", "max_usd_per_hour", "as_of", "known_at"),
    "region": ("region", "available_in"),
    "kind": ("category", "series", "name"),
    "network": (*NETWORK_FLAGS, "min_network_gbps", "min_infiniband_gbps"),
    "features": FLAGS,
    "status": ("status", "verified", "disputed"),
}
"""The filters of each group of the panel."""

FILTER_NAMES = ("q", *(name for names in GROUPS.values() for name in names))
"""Every filter of the page, in the order of the panel."""


def title_of(name: str) -> str:
    """Return what a filter is called."""
    return TITLES.get(name) or short_title(name)


def value_of(name: str, value: Any) -> str:
    """Return the value of a filter as people read it, with its unit."""
    if name == "purchase":
        return PURCHASE_TITLES[value]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("min_gpus", "max_gpus") and float(Fraction(value).limit_denominator(8)) == value:
        return str(Fraction(value).limit_denominator(8))
    text = (
        f"{value:,.10g}"
        if isinstance(value, int | float)
        else to_query_text(value).replace(",", " or ").replace("_", " ")
    )
    return f"{text} {UNITS[name]}" if UNITS.get(name) else text


def active_names(params: Any) -> list[str]:
    """Return the filters that a view sets to something else than their default."""
    fields = type(params).model_fields
    return [name for name in FILTER_NAMES if getattr(params, name) != fields[name].default]


def chips(request: Any) -> list[tuple[str, str, str]]:
    """Return a chip for each active filter: what, value, and the URL without it; one for each value of a list."""
    params, made = request.params, []
    for name in active_names(params):
        value = getattr(params, name)
        if isinstance(value, tuple):
            joined = "and" if name == "available_in" else "or"
            for index, one in enumerate(value):
                left = tuple(other for other in value if other != one)
                title = title_of(name) if index == 0 else joined
                made.append((title, value_of(name, str(one)), request.url(page=None, **{name: left})))
        else:
            made.append((title_of(name), value_of(name, value), request.url(page=None, **{name: None})))
    return made


def relaxation_text(params: Any, relaxation: Relaxation) -> str:
    """Return what a relaxation changes: `vCPUs ≥ 96 instead of 1000`, `without GPU h100`."""
    (name, *_) = relaxation.names
    if relaxation.nearest is not None:
        was, nearest = value_of(name, getattr(params, name)), relaxation.nearest
        number = str(nearest) if isinstance(nearest, Fraction) else f"{nearest:,.10g}"
        unit = f" {UNITS[name]}" if UNITS.get(name) else ""
        return f"{title_of(name)} {number}{unit} instead of {was}"
    if relaxation.instead.get("status") == ("any",):
        return "with retired and withdrawn sizes"
    return "without " + " and ".join(
        f"{title_of(one)} {value_of(one, getattr(params, one))}" for one in relaxation.names
    )


def opened_groups(request: Any) -> set[str]:
    """Return the groups that have an active filter or an error, and those that most people begin with."""
    active = {*active_names(request.params), *request.errors}
    return {group for group, names in GROUPS.items() if active & set(names)} | {"gpu", "cpu"}


def active_counts(params: Any) -> Mapping[str, int]:
    """Return how many filters of each group are active."""
    active = set(active_names(params))
    return {group: len(active & set(names)) for group, names in GROUPS.items()}


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of a filter: as the URL has it, as people read it, how many sizes have it, whether it is chosen."""

    value: str
    title: str
    count: int | None
    checked: bool


def choices(facets: Facets, facet: str, chosen: Iterable[str], titles: Mapping[str, str]) -> list[Choice]:
    """Return the values of a counted facet; before them what else is chosen, such as a family of GPUs, uncounted."""
    counts = {one.value: one.count for one in facets.counts[facet] if one.value is not None}
    wanted = {value.lower(): value for value in chosen}
    known = {value.lower() for value in counts}
    others = [Choice(value, titles.get(value, value), None, True) for low, value in wanted.items() if low not in known]
    counted = [Choice(name, titles.get(name, name), count, name.lower() in wanted) for name, count in counts.items()]
    return [*others, *sorted(counted, key=lambda one: not one.checked)]


def ranges(facets: Facets) -> dict[str, FacetRange]:
    """Return the ranges by name; the network's in Gbps, as its filter is."""
    mbps = facets.ranges["network_mbps"]
    low, high = (value / 1000 if value is not None else None for value in (mbps.min, mbps.max))
    return {**facets.ranges, "network_gbps": FacetRange(min=low, max=high, unknown=mbps.unknown)}


def flag_counts(facets: Facets) -> Mapping[str, int]:
    """Return how many sizes have each flag."""
    return {one.value or "": one.count for one in facets.counts["flags"]}


def tri_state(count: int) -> Sequence[tuple[str, str]]:
    """Return the options of a filter that is true, false or not given."""
    return (("", "any"), ("true", f"yes ({count:,})"), ("false", "no"))
