"""How each thing that may be asked of sizes becomes SQL: one table, and a test says that it is whole.

What can take any value is a parameter, so that a statement is built once for all values; what has but a few (truths,
names of systems) is written into the statement.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Double,
    String,
    and_,
    bindparam,
    cast,
    exists,
    func,
    literal,
    or_,
    select,
    true,
)

from app.catalog.fields import SIZE_FLAGS
from app.catalog.names import size_key
from app.catalog.queries.pagination import SortKey
from app.catalog.queries.params import OFFER_COLUMNS, ORDERABLE_STATUSES, SIZE_COLUMNS, SORT_KEYS, QueryParams
from app.catalog.queries.price_scope import (
    OFFER,
    PriceScope,
    gpu,
    gpu_slice_gib,
    is_orderable,
    literal_text,
    local_disk_gib,
    size,
    status_of,
    whole_gpu_gib,
)
from app.errors import BadQuery
from app.nearest import did_you_mean, nearest

Condition = ColumnElement[bool]
Binds = Sequence[BindParameter[Any]]


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition: `sql` takes the ground and the parameters that `values` makes of what was asked.

    Without `values` what was asked is itself written into the statement.
    """

    sql: Callable[[PriceScope, Any], Condition]
    values: Callable[[Any], Sequence[Any]] | None = None


@dataclass(frozen=True, slots=True)
class ActiveFilter:
    """One filter of a question: what is written into the statement, or how many parameters it has."""

    name: str
    fixed: Any
    count: int


def active_filters(
    scope: QueryParams, names: Iterable[str], filters: "Mapping[str, Filter] | None" = None
) -> tuple[tuple[ActiveFilter, ...], dict[str, Any]]:
    """The filters that a question gives, or that always hold, and the values of their parameters."""
    asked: list[ActiveFilter] = []
    values: dict[str, Any] = {}
    known = FILTERS if filters is None else filters
    given = scope.model_fields_set
    for name in names:
        if name not in given and name not in ALWAYS_ACTIVE:
            continue
        value = getattr(scope, name)
        if (value is None or value == ()) and name not in ALWAYS_ACTIVE:
            continue
        made = known[name].values
        parameters = made(value) if made is not None else ()
        asked.append(ActiveFilter(name, value if made is None else None, len(parameters)))
        values |= {f"{name}_{index}": one for index, one in enumerate(parameters)}
    return tuple(asked), values


def filter_condition(
    asked: ActiveFilter, ground: PriceScope, filters: "Mapping[str, Filter] | None" = None
) -> Condition:
    """The SQL of one filter."""
    chosen = (FILTERS if filters is None else filters)[asked.name]
    if chosen.values is None:
        return chosen.sql(ground, asked.fixed)
    return chosen.sql(ground, [bindparam(f"{asked.name}_{index}") for index in range(asked.count)])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _like(glob: str) -> str:
    return _escaped(glob).replace("*", "%").replace("?", "_")


def _matches(column: ColumnElement[Any], pattern: BindParameter[Any]) -> Condition:
    return column.like(bindparam(pattern.key, type_=String), escape="\\")


def _name_patterns(patterns: Iterable[str]) -> list[str]:
    """A pattern may begin with `Standard_` or leave it out."""
    return [_like(form) for pattern in patterns for form in (size_key(pattern), pattern)]


def _any_name(_ground: PriceScope, patterns: Binds) -> Condition:
    pairs = zip(patterns[::2], patterns[1::2], strict=True)
    return or_(*(_matches(size.key, key) | _matches(func.lower(size.name), name) for key, name in pairs))


def _any_gpu(_ground: PriceScope, patterns: Binds) -> Condition:
    columns = (func.lower(size.gpu_model), func.lower(gpu.family), size.gpu_id)
    return or_(*(_matches(column, pattern) for pattern in patterns for column in columns))


def _all_words(_ground: PriceScope, words: Binds) -> Condition:
    return and_(*(_matches(size.search_text, word) for word in words))


def _words(text: str) -> list[str]:
    return [f"%{_escaped(word)}%" for word in text.split()]


def _statuses(ground: PriceScope, statuses: tuple[str, ...]) -> Condition:
    if "any" in statuses:
        return true()
    if not statuses or set(statuses) == set(ORDERABLE_STATUSES):
        return is_orderable(ground.column("retirement_date"), ground.column("withdrawn"))
    return status_of(ground.offer).in_([literal_text(status) for status in statuses])


def priced_in_all(ground: PriceScope, key: ColumnElement[str], regions: Binds) -> Condition:
    """Whether the size of a key is priced in every one of the regions by the purchase model that is meant."""
    priced = ground.all_offers.alias("priced").c
    usd = priced[f"{ground.purchase}_usd_per_hour"]
    of_this = [priced.os == literal_text(ground.os), usd.is_not(None)]
    if ground.all_offers is OFFER:
        of_this.append(priced.purchase == literal_text(ground.purchase))
    same = priced.size_key == key
    return and_(
        *(
            exists(select(literal(1)).where(priced.region == _as(region, priced.region), same, *of_this))
            for region in regions
        )
    )


def _as(value: BindParameter[Any], column: ColumnElement[Any]) -> BindParameter[Any]:
    return bindparam(value.key, type_=column.type)


def equals(column: ColumnElement[Any]) -> Filter:
    """One value in a column."""
    return Filter(lambda _ground, value: column == _as(value[0], column), _one)


def _is(name: str) -> Filter:
    return Filter(lambda ground, value: ground.column(name).is_(value))


def _one(value: Any) -> Sequence[Any]:
    return (value,)


def _at_least(of: Callable[[PriceScope], ColumnElement[Any]], values: Callable[[Any], Sequence[Any]] = _one) -> Filter:
    return Filter(lambda ground, least: of(ground) >= _as(least[0], of(ground)), values)


def _at_most(of: Callable[[PriceScope], ColumnElement[Any]], values: Callable[[Any], Sequence[Any]] = _one) -> Filter:
    return Filter(lambda ground, most: of(ground) <= _as(most[0], of(ground)), values)


def _column(name: str) -> Callable[[PriceScope], ColumnElement[Any]]:
    return lambda ground: ground.column(name)


def any_of(column: ColumnElement[Any]) -> Filter:
    """One of several values in a column."""
    return Filter(lambda _ground, values: column.in_([_as(value, column) for value in values]), tuple)


def _at_least_mbps(_ground: PriceScope, mbps: Binds) -> Condition:
    return size.network_mbps >= bindparam(mbps[0].key, type_=Double)


def _in_usd(amount: Any) -> Sequence[float]:
    return (float(amount),)


FILTERS: Mapping[str, Filter] = {
    "q": Filter(_all_words, _words),
    "name": Filter(_any_name, _name_patterns),
    "series": any_of(size.series_id),
    "gpu": Filter(_any_gpu, lambda patterns: [_like(pattern) for pattern in patterns]),
    "gpu_vendor": Filter(lambda _ground, vendor: func.lower(size.gpu_vendor) == _as(vendor[0], size.gpu_vendor), _one),
    "verified": _is("verified"),
    "disputed": _is("disputed"),
    "status": Filter(_statuses),
    "os": Filter(lambda *_: true()),
    "purchase": Filter(lambda *_: true()),
    "region": Filter(lambda *_: true()),
    "available_in": Filter(lambda ground, regions: priced_in_all(ground, ground.key, regions), tuple),
    "min_gpu_mem": _at_least(_column("gpu_memory_gib")),
    "max_gpu_mem": _at_most(_column("gpu_memory_gib")),
    "min_gpu_mem_per_gpu": _at_least(lambda _ground: gpu_slice_gib()),
    "max_gpu_mem_per_gpu": _at_most(lambda _ground: whole_gpu_gib()),
    "min_gpus": _at_least(_column("gpu_count")),
    "max_gpus": _at_most(_column("gpu_count")),
    "min_vcpus": _at_least(_column("vcpus")),
    "max_vcpus": _at_most(_column("vcpus")),
    "min_memory": _at_least(_column("memory_gib")),
    "max_memory": _at_most(_column("memory_gib")),
    "min_local_disk": _at_least(lambda _ground: local_disk_gib()),
    "min_network_gbps": Filter(_at_least_mbps, lambda gbps: (gbps * 1000,)),
    "infiniband": _is("infiniband"),
    "min_infiniband_gbps": _at_least(_column("infiniband_gbps")),
    "nvlink": _is("nvlink"),
    "arch": Filter(lambda _ground, arch: size.arch == literal_text(arch)),
    "min_usd_per_hour": _at_least(lambda ground: ground.usd, _in_usd),
    "max_usd_per_hour": _at_most(lambda ground: ground.offer.rank_usd, _in_usd),
    **{name: _is(name) for name in SIZE_FLAGS},
}
"""Every filter of a search by its name; `os`, `purchase` and `region` choose offers, which the ground sees to."""

ALWAYS_ACTIVE = ("status",)
"""Filters that hold even where nobody asks: retired and withdrawn sizes are left out."""

SCOPE_FILTERS = ("os", "purchase", "region")
"""Filters that say which offers are meant, and are no conditions of their own."""


def check_sort(keys: Iterable[str]) -> None:
    """Refuse a key that is not in the list; raises BadQuestion naming the nearest."""
    for key in keys:
        name = key.removeprefix("-")
        if name not in SORT_KEYS:
            hint = did_you_mean(nearest(name, SORT_KEYS), " ")
            raise BadQuery("sort", key, f"{hint}allowed are {', '.join(SORT_KEYS)}, each also with -")


def to_sort_keys(keys: Iterable[str], ground: PriceScope) -> list[SortKey]:
    """Turn keys that were checked into a total order."""
    terms: dict[str, SortKey] = {}
    for key in (*keys, "name"):
        name = key.removeprefix("-")
        terms.setdefault(name, _term(name, ground, descending=key.startswith("-")))
    return list(terms.values())


def _term(name: str, ground: PriceScope, *, descending: bool) -> SortKey:
    """The name's key is the name without regard to case; a price in its usual order has its rank, which is known."""
    if name == "name":
        return SortKey(name=name, expression=ground.key, descending=descending, nullable=False)
    if name == "usd_per_hour" and not descending:
        return SortKey(name=name, expression=ground.offer.rank_usd, nullable=False)
    return SortKey(name=name, expression=_expression(name, ground), descending=descending)


def _expression(name: str, ground: PriceScope) -> ColumnElement[Any]:
    if name == "usd_per_hour":
        return ground.usd
    if name in OFFER_COLUMNS:
        return cast(ground.offer[name], Double)
    return ground.column(SIZE_COLUMNS[name])
