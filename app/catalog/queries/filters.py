"""Translate filters and sort keys of sizes to SQL. A filter that is about one column follows from its name.

A filter whose value can be anything becomes parameters, so that one statement serves all values; one with few values
(booleans, names of an OS) is written into the statement.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from app.catalog.fields import SHOWN_FIELDS, SIZE_FLAGS
from app.catalog.names import display_keys, escape_like, glob_to_like, word_pattern
from app.catalog.projections import (
    SPOT_SAVING,
    UNIT_PRICE_FIELDS,
    is_priced,
    rank_usd,
    spot_saving,
    unit_price,
    usd_by,
)
from app.catalog.queries.pagination import SortKey
from app.catalog.queries.params import (
    FILTERED_FIELDS,
    ORDERABLE_STATUSES,
    PRICE_SORT_KEYS,
    SIZE_COLUMNS,
    SORT_KEYS,
    QueryParams,
    SizeFilter,
    SizeSelection,
)
from app.catalog.queries.price_scope import (
    GPU_SLICE_GIB,
    LOCAL_DISK_GIB,
    WHOLE_GPU_GIB,
    ZONES,
    PriceScope,
    status_of,
)
from app.db.dialects import Dialect, all_of, parameters, quote_all
from app.db.dialects import any_of as any_condition
from app.errors import BadQuery
from app.nearest import did_you_mean, nearest


@dataclass(frozen=True, slots=True)
class Filter:
    """How one filter becomes SQL: `sql` takes the price scope and the parameters of what `values` returns, `:name_0`.

    Without `values` it takes the value of the filter itself, and writes it into the statement. `figure` is that
    of a size which the filter is an inclusive bound of, if it is nothing else.
    """

    sql: Callable[[PriceScope, Any], str]
    values: Callable[[Any], Sequence[Any]] | None = None
    figure: str = ""


@dataclass(frozen=True, slots=True)
class ActiveFilter:
    """A filter that a request sets: the value written into the statement, or the number of its parameters."""

    name: str
    literal: Any
    count: int


def active_filters(
    params: QueryParams, names: Iterable[str], filters: "Mapping[str, Filter] | None" = None
) -> tuple[tuple[ActiveFilter, ...], dict[str, Any]]:
    """Return the filters that a request sets, or that always hold, and the values of their parameters.

    `filters` is the table to use instead of FILTERS.
    """
    active: list[ActiveFilter] = []
    parameters: dict[str, Any] = {}
    table = FILTERS if filters is None else filters
    for name in active_names(params, names):
        value, to_values = getattr(params, name), table[name].values
        values = to_values(value) if to_values is not None else ()
        active.append(ActiveFilter(name, value if to_values is None else None, len(values)))
        parameters |= {f"{name}_{index}": item for index, item in enumerate(values)}
    return tuple(active), parameters


def active_names(params: QueryParams, names: Iterable[str]) -> list[str]:
    """Return which of some filters a request sets, or always hold."""
    given = params.model_fields_set
    return [
        name for name in names if name in ALWAYS_ACTIVE or (name in given and getattr(params, name) not in _NO_VALUES)
    ]


_NO_VALUES: tuple[Any, ...] = (None, ())


def filter_condition(active: ActiveFilter, scope: PriceScope, filters: "Mapping[str, Filter] | None" = None) -> str:
    """Write the condition of one filter, with the parameters of `active_filters`."""
    chosen = (FILTERS if filters is None else filters)[active.name]
    values = active.literal if chosen.values is None else parameters(active.name, active.count)
    return chosen.sql(scope, values)


def conditions_by(sql: Dialect, filters: Mapping[str, Filter], active: Iterable[ActiveFilter]) -> list[str]:
    """Write the conditions of filters of another table, none of which uses a price scope."""
    scope = PriceScope(sql=sql, os="linux", purchase="on_demand")
    return [filter_condition(condition, scope, filters) for condition in active]


def _like(text: str, pattern: str) -> str:
    return f"{text} like {pattern} escape '\\'"


def name_patterns(patterns: Iterable[str]) -> list[str]:
    """Return two patterns for each glob, for the key and for the name: it may begin with the prefix of names or not."""
    return [glob_to_like(form) for pattern in patterns for form in (display_keys(pattern)[0], pattern)]


def matches_name(key: str, name: str, patterns: Sequence[str]) -> str:
    """Write the condition that the key or the name of a size matches one of `name_patterns`."""
    pairs = zip(patterns[::2], patterns[1::2], strict=True)
    return any_condition(*(f"{_like(key, of_key)} or {_like(f'lower({name})', of_name)}" for of_key, of_name in pairs))


def _any_name(_scope: PriceScope, patterns: Sequence[str]) -> str:
    """A name may begin with its provider: `aws:m5.large`, `gcp:n2-*`."""
    key, name = (f"size.provider || ':' || size.{spelling}" for spelling in ("key", "name"))
    return any_condition(matches_name("size.key", "size.name", patterns), matches_name(key, name, patterns))


def _any_gpu(_scope: PriceScope, patterns: Sequence[str]) -> str:
    columns = ("lower(size.gpu_model)", "lower(gpu.family)", "size.gpu_id")
    return any_condition(*(_like(column, pattern) for pattern in patterns for column in columns))


def _any_cpu(_scope: PriceScope, patterns: Sequence[str]) -> str:
    """Write the condition that words of the processor's name, or of its generation in brackets, match a pattern."""
    words = "replace(replace(' ' || lower(size.cpu_model) || ' ', '(', ''), ')', '')"
    return any_condition(*(_like(words, pattern) for pattern in patterns))


def _statuses(scope: PriceScope, statuses: tuple[str, ...]) -> str:
    if "any" in statuses:
        return "true"
    if not statuses or set(statuses) == set(ORDERABLE_STATUSES):
        retires = scope.column("retirement_date")
        not_retired = f"({retires} is null or {retires} > {scope.sql.day('today')})"
        return f"{not_retired} and {scope.column('withdrawn')} is not true"
    return f"{status_of(scope.sql, scope.offer)} in ({quote_all(statuses)})"


def priced_in_all(scope: PriceScope, key: str, regions: Sequence[str]) -> str:
    """Write the condition that a size is priced in every one of the regions by the scope's purchase model."""
    priced = is_priced(scope.sql, "priced", scope.purchase)
    of_this = f"priced.os = '{scope.os}' and priced.size_key = {key} and {priced}"
    return all_of(
        *(
            f"exists (select 1 from {scope.all_offers} as priced where priced.region = {region} and {of_this})"
            for region in regions
        )
    )


def equals(column: str) -> Filter:
    """Return the filter that a column has a value."""
    return Filter(lambda _scope, value: f"{column} = {value[0]}", _one)


def _one(value: Any) -> Sequence[Any]:
    return (value,)


def _at_least(of: Callable[[PriceScope], str], figure: str) -> Filter:
    return Filter(lambda scope, least: f"{of(scope)} >= {least[0]}", _one, figure)


def _at_most(
    of: Callable[[PriceScope], str], figure: str = "", values: Callable[[Any], Sequence[Any]] = _one
) -> Filter:
    return Filter(lambda scope, most: f"{of(scope)} <= {most[0]}", values, figure)


def any_of(column: str) -> Filter:
    """Return the filter that a column has one of several values."""
    return Filter(lambda _scope, values: f"{column} in ({', '.join(values)})", tuple)


def _in_usd(amount: Any) -> Sequence[float]:
    return (float(amount),)


SCOPE_FILTERS = ("os", "purchase", "region", "country", "continent")
"""Filters that choose the price scope and are no conditions of their own."""

_OF_THEIR_OWN: Mapping[str, Filter] = {
    "q": Filter(
        lambda scope, words: all_of(*(scope.sql.has_match("size.search_text", word) for word in words)),
        lambda text: [word_pattern(word) for word in text.split()],
    ),
    "name": Filter(_any_name, name_patterns),
    "series": any_of("size.series_id"),
    "category": Filter(lambda _scope, names: f"size.category in ({quote_all(names)})"),
    "gpu": Filter(_any_gpu, lambda patterns: [glob_to_like(pattern) for pattern in patterns]),
    "cpu": Filter(_any_cpu, lambda patterns: [f"% {glob_to_like(pattern)} %" for pattern in patterns]),
    "disk_controller": Filter(
        lambda _scope, name: _like("', ' || lower(size.disk_controller) || ','", name[0]),
        lambda name: (f"%, {escape_like(name)},%",),
    ),
    "status": Filter(_statuses),
    **dict.fromkeys(SCOPE_FILTERS, Filter(lambda *_: "true")),
    "provider": Filter(lambda _scope, ids: f"size.provider in ({quote_all(ids)})"),
    "available_in": Filter(lambda scope, regions: priced_in_all(scope, scope.key, regions), tuple),
    "min_local_disk": _at_least(lambda _scope: LOCAL_DISK_GIB, "local_disk_gib"),
    "min_gpu_mem_per_gpu": _at_least(lambda _scope: GPU_SLICE_GIB, "gpu_slice_gib"),
    "max_gpu_mem_per_gpu": _at_most(lambda _scope: WHOLE_GPU_GIB, "whole_gpu_gib"),
    "min_network_gbps": Filter(
        lambda _scope, mbps: f"size.network_mbps >= {mbps[0]}", lambda gbps: (gbps * 1000,), "network_mbps"
    ),
    "min_zones": _at_least(lambda _scope: ZONES, "zones"),
    "min_usd_per_hour": Filter(
        lambda scope, least: f"{scope.rank} >= {least[0]} and {is_priced(scope.sql, scope.offer, scope.purchase)}",
        _in_usd,
    ),
    "max_usd_per_hour": _at_most(lambda scope: scope.rank, values=_in_usd),
}
"""Filters that are not about one column."""


def _of_column(name: str) -> Filter:
    """Return the filter by the column of a field: a flag is equal, a text too, in any case, a figure within bounds."""
    field = FILTERED_FIELDS[name]
    if SHOWN_FIELDS[field].kind == "boolean":
        return Filter(lambda scope, value: f"{scope.column(field)} is {'true' if value else 'false'}")
    if SHOWN_FIELDS[field].kind == "text":
        return Filter(lambda _scope, text: f"lower(size.{field}) = {text[0]}", lambda text: (text.lower(),))
    bound = _at_least if name.startswith("min_") else _at_most
    return bound(lambda scope: scope.column(field), field)


def _place(name: str) -> tuple[bool, bool, int]:
    """Return what sorts filters: those of names and offers first, bounds of a figure side by side, flags last."""
    field = FILTERED_FIELDS.get(name, "")
    fields = list(FILTERED_FIELDS.values())
    selects = name in SizeSelection.model_fields
    return not selects, field in SIZE_FLAGS, 0 if selects or not field else fields.index(field)


FILTERS: Mapping[str, Filter] = {
    name: _OF_THEIR_OWN[name] if name in _OF_THEIR_OWN else _of_column(name)
    for name in sorted(SizeFilter.model_fields, key=_place)
}
"""Every filter of a search by its name."""

ALWAYS_ACTIVE = ("status",)
"""Filters that hold even if a request does not set them: retired and withdrawn sizes are left out."""

PRICE_FILTERS = frozenset({"min_usd_per_hour", "max_usd_per_hour"})
"""Filters by the price of an offer itself."""


def check_sort(keys: Iterable[str], allowed: Collection[str] = SORT_KEYS) -> None:
    """Refuse a key that is not among those allowed; raises BadQuery naming the nearest."""
    for key in keys:
        name = key.removeprefix("-")
        if name not in allowed:
            column, _, direction = name.replace(":", " ").lower().partition(" ")
            sign = "-" * (key.startswith("-") or direction == "desc")
            meant = nearest(column if direction in ("asc", "desc") else name, allowed)
            hint = did_you_mean([f"{sign}{other}" for other in ([column] if column in allowed else meant)], " ")
            raise BadQuery("sort", key, f"{hint}allowed are {', '.join(allowed)}, each also with -")


def sort_names(keys: Iterable[str]) -> list[str]:
    """Return the keys of a total order, each once; the name comes last unless it is among them."""
    names: dict[str, str] = {}
    for key in (*keys, "name"):
        names.setdefault(key.removeprefix("-"), key)
    return list(names.values())


def to_sort_keys(keys: Iterable[str], scope: PriceScope) -> list[SortKey]:
    """Return the total order of checked keys."""
    return [_sort_key(key.removeprefix("-"), scope, descending=key.startswith("-")) for key in sort_names(keys)]


_KINDS: Mapping[str, type] = {"integer": int, "number": float, "fraction": float, "text": str, "date": date}


def _sort_key(name: str, scope: PriceScope, *, descending: bool) -> SortKey:
    """Sort names without regard to case, and ascending prices by their rank, which is never null."""
    if name == "name":
        return SortKey(name=name, expression=scope.key, kind=str, descending=descending, nullable=False)
    kind: type = float
    if name in PRICE_SORT_KEYS:
        purchase = PRICE_SORT_KEYS[name] or scope.purchase
        if not descending:
            rank = rank_usd(scope.sql, scope.offer, purchase)
            return SortKey(name=name, expression=rank, kind=kind, nullable=False)
        expression = usd_by(scope.sql, scope.offer, purchase)
    elif name in UNIT_PRICE_FIELDS:
        expression = unit_price(scope.sql, scope.offer, scope.purchase, name)
    elif name == SPOT_SAVING:
        expression = spot_saving(scope.sql, scope.offer)
    else:
        expression, kind = scope.column(SIZE_COLUMNS[name]), _KINDS[SHOWN_FIELDS[name].kind]
    return SortKey(name=name, expression=expression, kind=kind, descending=descending)
