"""The panel of filters beside a list of sizes: every filter of `GET /sizes`, in groups, with counts and ranges."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from app.catalog.fields import SHOWN_FIELDS, SIZE_GROUPS, field_title, short_title
from app.catalog.providers import PROVIDERS
from app.catalog.queries.facets import COUNTED_FACETS, FLAG_FACETS, RANGE_FACETS, FacetRange, Facets, Relaxation
from app.http.canonical import to_query_text
from app.web.rendering import PURCHASE_TITLES
from app.web.size_fields import shown_amount, shown_unit
from app.web.sizes_view import Column, SizesView


@dataclass(frozen=True, slots=True)
class Bounds:
    """A pair of bounds, either may be missing, of a figure, which is the name of a range of the facets."""

    least: str
    most: str
    title: str
    unit: str
    figure: str


_GROUP_OF: Mapping[str, str] = {
    "Price": "price",
    "GPU": "gpu",
    "Processor and memory": "cpu",
    "Disks": "cpu",
    "Network": "network",
}
"""The group of the panel that has the figures of a group of fields; any other figure is among the features."""
_FIGURE_TITLES = {
    "usd_per_hour": "Price of the VM",
    "gpu_memory_gib": "GPU memory of the VM",
    "infiniband_gbps": "InfiniBand",
}
"""Figures that the panel calls otherwise."""


def _bounds_of(figure: str) -> Bounds:
    names = {name[:3]: name for name in RANGE_FACETS[figure]}
    title = _FIGURE_TITLES.get(figure) or field_title(figure)
    return Bounds(names.get("min", ""), names.get("max", ""), title, shown_unit(SHOWN_FIELDS[figure].unit), figure)


BOUNDS: Mapping[str, list[Bounds]] = {group: [] for group in (*_GROUP_OF.values(), "features")}
"""The figures with bounds by group of the panel."""
for _group, _fields in SIZE_GROUPS.items():
    BOUNDS[_GROUP_OF.get(_group, "features")].extend(_bounds_of(name) for name in _fields if name in RANGE_FACETS)

NETWORK_FLAGS = ("infiniband", "accelerated_networking", "gpudirect_rdma")
FLAGS = tuple(flag for flag in FLAG_FACETS if flag not in (*NETWORK_FLAGS, "nvlink", "verified", "disputed"))
_WITH_A_PLACE = ("gpu_model", "gpu_vendor", "series", "category", "status", "arch", "cpu_vendor", "provider")
TEXTS = tuple(name for name in COUNTED_FACETS if name not in _WITH_A_PLACE)
"""Filters by a text for which the panel has no place of its own: a choice of one of its values."""
_BOUNDS = {
    name: bounds for group in BOUNDS.values() for bounds in group for name in (bounds.least, bounds.most) if name
}

_MAX_TEXT = 60
"""Of a value on a chip; its field has the whole."""

TITLES: Mapping[str, str] = {
    "q": "Text",
    "provider": "Cloud",
    "gpu": "GPU",
    "cpu": "Processor",
    "os": "System",
    "purchase": "Price",
    "region": "Price in",
    "country": "Price in",
    "continent": "Price in",
    "available_in": "Available in",
    "as_of": "Prices on",
    "known_at": "As known on",
}
"""What a chip says a filter is about; other filters have the name of their field."""


def _bound_names(group: str) -> tuple[str, ...]:
    return tuple(name for name, bounds in _BOUNDS.items() if bounds in BOUNDS[group])


GROUPS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("gpu", "gpu_vendor", "nvlink", *_bound_names("gpu")),
    "cpu": ("cpu", "cpu_vendor", "arch", *_bound_names("cpu")),
    "bar": ("region", "os", "purchase"),
    "price": (*_bound_names("price"), "as_of", "known_at"),
    "place": ("available_in", "country", "continent"),
    "kind": ("provider", "category", "series", "name"),
    "network": (*NETWORK_FLAGS, *_bound_names("network")),
    "features": (*FLAGS, *TEXTS, *_bound_names("features")),
    "status": ("status", "verified", "disputed"),
}
"""The filters of each group of the panel."""

FILTER_NAMES = ("q", *(name for names in GROUPS.values() for name in names))
"""Every filter of the page, in the order of the panel."""


def title_of(name: str) -> str:
    """Return what a filter is called."""
    if name in _BOUNDS:
        return f"{_BOUNDS[name].title} {'≥' if name == _BOUNDS[name].least else '≤'}"
    return TITLES.get(name) or short_title(name)


def value_of(name: str, value: Any) -> str:
    """Return the value of a filter as people read it, with its unit."""
    if name == "purchase":
        return PURCHASE_TITLES[value]
    if name == "os":
        return str(value).capitalize()
    if name == "provider":
        return " or ".join(PROVIDERS[id_].name if id_ in PROVIDERS else id_ for id_ in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("min_gpus", "max_gpus") and float(Fraction(value).limit_denominator(8)) == value:
        return str(Fraction(value).limit_denominator(8))
    text = (
        f"{value:,.10g}"
        if isinstance(value, int | float)
        else to_query_text(value).replace(",", " or ").replace("_", "_" if name == "name" else " ")
    )
    text = text.replace("gpu", "GPU") if name == "category" else text
    text = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
    return f"{text}{_unit_after(name)}"


def _unit_after(name: str) -> str:
    """Return a blank and the unit of a bound; empty for other filters, and for counts."""
    return f" {_BOUNDS[name].unit}" if name in _BOUNDS and _BOUNDS[name].unit else ""


def active_names(params: Any) -> list[str]:
    """Return the filters that a view sets to something else than their default."""
    fields = type(params).model_fields
    return [name for name in FILTER_NAMES if getattr(params, name) != fields[name].default]


def chips(request: Any, titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return a chip for each active filter: what, value, and the URL without it; one for each value of a list.

    `titles` are those of regions by code.
    """
    params, made = request.params, []
    for name in active_names(params):
        value = getattr(params, name)
        if isinstance(value, tuple):
            joined = "and" if name == "available_in" else "or"
            for index, item in enumerate(value):
                left = tuple(other for other in value if other != item)
                title = title_of(name) if index == 0 else joined
                region = titles.get(item) if name in ("region", "available_in") else None
                shown = region or value_of(name, item.upper() if name == "gpu" else (item,))
                made.append((title, shown, request.url(page=None, **{name: left})))
        else:
            made.append((title_of(name), value_of(name, value), request.url(page=None, **{name: None})))
    return made


def summary(chips: Iterable[tuple[str, str, str]]) -> str:
    """Return what is filtered by, in a line: `H100, West Europe, vCPUs ≥ 16`."""
    return ", ".join(value if what in _SAID_BY_VALUE else f"{what} {value}" for what, value, _ in chips)


_SAID_BY_VALUE = frozenset({*TITLES.values(), "and", "or"} - {TITLES["as_of"], TITLES["known_at"]})


def relaxation_text(params: Any, relaxation: Relaxation, titles: Mapping[str, str]) -> str:
    """Return what a relaxation changes: `vCPUs ≥ 96 instead of 1000`, `without GPU h100`.

    `titles` are those of regions by code.
    """
    (name, *_) = relaxation.names
    if relaxation.nearest is not None:
        was, nearest = value_of(name, getattr(params, name)), relaxation.nearest
        number = str(nearest) if isinstance(nearest, Fraction) else f"{nearest:,.10g}"
        return f"{title_of(name)} {number}{_unit_after(name)} instead of {was}"
    given = set(active_names(params))  # of `status` the default leaves out sizes, too
    dropped = [f"{title_of(name)} {_said(name, params, titles)}" for name in relaxation.names if name in given]
    without = [f"without {' and '.join(dropped)}"] if dropped else []
    return ", ".join(
        [*without, *(["with retired and withdrawn sizes"] if len(dropped) < len(relaxation.names) else [])]
    )


def _said(name: str, params: Any, titles: Mapping[str, str]) -> str:
    """Return the value of a filter as its chips have it: regions by their titles."""
    value = getattr(params, name)
    if name in ("region", "available_in"):
        return f" {'and' if name == 'available_in' else 'or'} ".join(titles.get(code, code) for code in value)
    return value_of(name, value)


def opened_groups(request: Any) -> set[str]:
    """Return the groups that have an active filter or an error, and those that most people begin with."""
    active = {*active_names(request.params), *request.errors}
    return {group for group, names in GROUPS.items() if active & set(names)} | {"gpu", "cpu"}


def active_counts(params: Any) -> Mapping[str, int]:
    """Return how many filters of each group are active."""
    active = set(active_names(params))
    return {group: len(active & set(names)) for group, names in GROUPS.items()}


class Choice(NamedTuple):
    """A value of a filter: as the URL has it, as people read it, how many sizes have it, whether it is chosen.

    `of_family` is a kind of the GPU before it.
    """

    value: str
    title: str
    sizes: int | None
    checked: bool
    of_family: bool = False


def choices(facets: Facets, facet: str, chosen: Iterable[str], titles: Mapping[str, str]) -> list[Choice]:
    """Return the values of a counted facet; before them what else is chosen, such as a family of GPUs, uncounted."""
    counts = {bucket.value: bucket.count for bucket in facets.counts[facet] if bucket.value is not None}
    wanted = {value.lower(): value for value in chosen}
    offered = {value.lower() for value in counts}
    others = [
        Choice(value, titles.get(value, value), None, True) for low, value in wanted.items() if low not in offered
    ]
    counted = [Choice(name, titles.get(name, name), count, name.lower() in wanted) for name, count in counts.items()]
    return [*others, *sorted(counted, key=lambda choice: not choice.checked)]


def gpu_choices(facets: Facets, chosen: Iterable[str], families: Mapping[str, str]) -> list[Choice]:
    """Return the GPUs, each family with all its sizes before its kinds; `families` are those of models."""
    models = choices(facets, "gpu_model", chosen, {})
    kinds: dict[str, list[Choice]] = {}
    for model in models:
        kinds.setdefault(families.get(model.title, model.title), []).append(model)
    made = []
    for family, listed in kinds.items():
        if len(listed) == 1:
            made.append((listed[0].sizes or 0, listed))
            continue
        itself = next((model for model in listed if model.title == family), None)
        count = sum(model.sizes or 0 for model in listed)
        is_chosen = itself is not None and itself.checked
        others = [model._replace(of_family=True) for model in listed if model is not itself]
        made.append((count, [Choice(itself.value if itself else family, family, count, is_chosen), *others]))
    made.sort(key=lambda group: (not any(choice.checked for choice in group[1]), -group[0]))
    return [choice for _, listed in made for choice in listed]


def values_of(facets: Facets, facet: str) -> Sequence[tuple[str, str]]:
    """Return the options of a filter by a text."""
    values = [bucket for bucket in facets.counts[facet] if bucket.value is not None]
    return (("", "any"), *((f"{bucket.value}".lower(), f"{bucket.value} ({bucket.count:,})") for bucket in values))


def ranges(facets: Facets) -> dict[str, FacetRange]:
    """Return the ranges by figure, in the units that are shown."""
    shown = {}
    for figure, bounds in facets.ranges.items():
        amounts = (shown_amount(value, SHOWN_FIELDS[figure].unit) for value in (bounds.min, bounds.max))
        low, high = (None if amount is None else float(amount) for amount in amounts)
        shown[figure] = FacetRange(min=low, max=high, unknown=bounds.unknown)
    return shown


def tri_state(count: int) -> Sequence[tuple[str, str]]:
    """Return the options of a filter that is true, false or not given."""
    return (("", "any"), ("true", f"yes ({count:,})"), ("false", "no"))


_TEXT_FILTERS = {"cpu_model": "cpu", "region": "region", "series": "series", "gpu_model": "q", "provider": "q"}
"""The fields of the form that a column of texts is filtered by."""


def head_filter(request: Any, column: Column) -> tuple[Sequence[str], str] | None:
    """Return the filter in the head of a column: the fields of the form that it sets, and what it says now.

    It is by bounds (`>=8`, `8..64`) or a text; None where there is none.
    An invalid bound stays as it was sent. Bounds of prices are in USD an hour, so the column has none in other units.
    """
    view: SizesView = request.params
    if column.field in _TEXT_FILTERS:
        name = _TEXT_FILTERS[column.field]
        return [name], to_query_text(getattr(view, name) or "")
    figure = "usd_per_hour" if column.kind == "price" else column.field
    names = {name[:3]: name for name in RANGE_FACETS.get(figure, ())}
    if len(names) < len(("min", "max")) or (column.kind == "price" and view.price_title() != "USD an hour"):
        return None
    least, most = texts = [request.text(names[end]) for end in ("min", "max")]
    if least == most or not (most or least[:1].isdigit()):
        text = least
    else:
        text = "..".join(texts) if all(texts) else f">={least}" if least else f"<={most}"
    return [names["min"], names["max"]], text
