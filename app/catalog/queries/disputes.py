"""Read the figures on which sources disagree, each with everything that is said of it: of facts, then of prices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson

from app.catalog.in_force import SERIES
from app.catalog.queries.lookups import check_field, check_source, get_subject_key, resolve_series
from app.catalog.queries.params import LowerTextSet, PlainText, QueryParams, optional, several
from app.catalog.queries.provenance import CONFLICTING_FIELDS, PRICE_FIELD, VERDICT_RANK, about
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import cached_statement
from app.db.dialects import Dialect, columns_of
from app.db.statements import BoundStatement, to_dicts

_FIGURE = ("kind", "subject", "field")
"""What a figure is of: of a size, a series or a GPU; which one; which field of it."""


class DisputeFilter(QueryParams):
    """Which figures."""

    field: PlainText | None = optional("Of this field: `gpu_memory_gib`.")
    series: LowerTextSet = several("Of a series or its sizes, by id or name; of any of several.")
    source: PlainText | None = optional("Of which this source says something, by its id.")
    subject: PlainText | None = optional("Of this size, in any spelling; or series or GPU by id.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputedFigure:
    """A figure, and the facts about it: the accepted one first, then those that agree, then those that disagree.

    `name` is that of the subject: a size, or the id of a series or GPU. `where` is the region, system and purchase
    model of a price.
    """

    kind: str
    subject: str
    name: str
    series: str | None
    field: str
    facts: Sequence[Mapping[str, Any]]
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeListing:
    """A page of disputed figures, the number of all, and how many the other filters leave by field and by source.

    Sources are counted by their id, each with its title.
    """

    figures: Sequence[DisputedFigure]
    total: int
    fields: Mapping[str, int]
    sources: Mapping[str, tuple[str, int]]


def find_disputes(catalog: Catalog, filters: DisputeFilter, *, offset: int, limit: int) -> DisputeListing:
    """Find the disputed figures by subject; raises BadQuery for a field, series, source or subject that is unknown."""
    values = _values(catalog, filters)
    prices = _disputed_prices(catalog, values)
    priced = [price for price in prices if filters.source is None or _names(price, filters.source)]
    by_field = catalog.fetch(BoundStatement(_by_field(*(name for name in values if name != "field")), values))
    by_source = catalog.fetch(BoundStatement(_by_source(*(name for name in values if name != "source")), values))
    fields = dict(by_field) | ({PRICE_FIELD: len(priced)} if priced else {})
    sources = {key: (title, count) for key, title, count in by_source}
    if filters.field not in (None, PRICE_FIELD):
        prices = priced = []
    titles = {fact["source_id"]: fact["source_title"] for price in prices for fact in price.facts}
    for key, title in sorted(titles.items()):
        sources[key] = title, sources.get(key, (title, 0))[1] + sum(_names(price, key) for price in prices)
    ((total,),) = catalog.fetch(BoundStatement(_count(*values), values))
    figures = _read(catalog, BoundStatement(_page(*values), {**values, "offset": offset, "limit": limit}))
    rest = slice(max(offset - total, 0), max(offset + limit - total, 0))
    return DisputeListing(figures=[*figures, *priced[rest]], total=total + len(priced), fields=fields, sources=sources)


def _names(figure: DisputedFigure, source: str) -> bool:
    return any(fact["source_id"] == source for fact in figure.facts)


def _disputed_prices(catalog: Catalog, values: Mapping[str, str]) -> list[DisputedFigure]:
    """Read the disputed prices of the sizes that filters leave, by size, region, system and purchase model."""
    query = BoundStatement(_prices(*(name for name in values if name in _OF_PRICES)), values)
    figures = []
    for (key, region, os, purchase), rows in groupby(to_dicts(query, catalog.fetch(query)), key=itemgetter(*SERIES)):
        first, *others = rows
        seen = f"last seen on {first['seen_until']}"
        judged = [(first, "accepted", seen)]
        judged += [(row, "disputed", f"last seen on {row['seen_until']}, the accepted one {seen}") for row in others]
        common = {"corrected_value": None, "unit": "USD/h"}
        facts = [
            {**fact, "raw": fact["value"], "verdict": verdict, "reason": reason, **common}
            for fact, verdict, reason in judged
        ]
        where = f"{region}, {os}, {purchase.replace('_', ' ')}"
        figures.append(_to_figure(("price", key, PRICE_FIELD), facts, where))
    return figures


def _to_figure(figure: tuple[str, ...], facts: Sequence[Mapping[str, Any]], where: str | None = None) -> DisputedFigure:
    kind, subject, field = figure
    name, series = facts[0]["name"], facts[0]["series_id"]
    return DisputedFigure(kind=kind, subject=subject, name=name, series=series, field=field, facts=facts, where=where)


def _values(catalog: Catalog, filters: DisputeFilter) -> dict[str, str]:
    """Return the parameters of the conditions on a fact that disputes, by the filter."""
    values = {}
    if filters.field is not None:
        check_field(filters.field, CONFLICTING_FIELDS)
        values["field"] = filters.field
    if filters.subject is not None:
        values["subject"] = get_subject_key(catalog, filters.subject, catalog.snapshot.series)
    if filters.series:
        values["series"] = orjson.dumps(resolve_series(catalog.snapshot.series, filters.series)).decode()
    if filters.source is not None:
        check_source(catalog, filters.source)
        values["source"] = filters.source
    return values


def _condition(sql: Dialect, name: str) -> str:
    """Write the condition of a filter on a fact that disputes."""
    if name == "series":
        return f"""(
            fact.kind = 'size' and fact.subject in (select key from size where {sql.is_listed("series_id", name)})
            or fact.kind = 'series' and {sql.is_listed("fact.subject", name)}
        )"""
    if name == "source":
        return f"exists (select 1 from fact as other where {_same_figure('other', 'fact')} and source_id = :source)"
    return f"fact.{name} = :{name}"


def _figures(sql: Dialect, filters: Sequence[str]) -> str:
    """Select the figures, each once."""
    conditions = " and ".join(("verdict = 'disputed'", *(_condition(sql, name) for name in filters)))
    return f"select distinct {', '.join(_FIGURE)} from fact where {conditions}"


def _same_figure(left: str, right: str) -> str:
    return " and ".join(f"{left}.{name} = {right}.{name}" for name in _FIGURE)


@cached_statement(16)
def _count(sql: Dialect, *filters: str) -> str:
    return f"select count(*) from ({_figures(sql, filters)}) as figure"


@cached_statement(16)
def _by_field(sql: Dialect, *filters: str) -> str:
    return f"select field, count(*) from ({_figures(sql, filters)}) as figure group by field"


@cached_statement(16)
def _by_source(sql: Dialect, *filters: str) -> str:
    return f"""
        select source.id, source.title, count(*)
        from ({_figures(sql, filters)}) as figure
        join fact on {_same_figure("fact", "figure")}
        join source on source.id = fact.source_id
        group by source.id, source.title
        order by source.title, source.id"""


@cached_statement(16)
def _page(sql: Dialect, *filters: str) -> str:
    """Build the statement of the facts about the figures of a page."""
    stated = ("kind", "subject", "field", "value", "unit", "corrected_value", "verdict", "reason", "raw", "source_id")
    return f"""
        select {columns_of("fact", stated)}, {about("source")},
            coalesce(size.name, fact.subject) as name, size.series_id
        from ({_figures(sql, filters)} order by subject, kind, field limit :limit offset :offset) as page
        join fact on {_same_figure("fact", "page")}
        join source on source.id = fact.source_id
        left join size on fact.kind = 'size' and size.key = fact.subject
        order by fact.subject, fact.kind, fact.field, {VERDICT_RANK}, fact.source_id"""


_OF_PRICES: Mapping[str, Callable[[Dialect], str]] = {
    "subject": lambda _sql: "price.size_key = :subject",
    "series": lambda sql: sql.is_listed("size.series_id", "series"),
}
"""The conditions of the filters on prices."""


@cached_statement(4)
def _prices(sql: Dialect, *filters: str) -> str:
    series = columns_of("price", SERIES)
    return f"""
        select {series}, {sql.usd_text(sql.usd_of("price.nano_usd_per_hour"))} as value, price.seen_until,
            price.source_id, {about("source")}, size.name, size.series_id
        from price
        join source on source.id = price.source_id
        join size on size.key = price.size_key
        where {" and ".join((sql.is_true("price.disputed"), *(_OF_PRICES[name](sql) for name in filters)))}
        order by {series}, price.seen_until desc, price.source_id"""


def _read(catalog: Catalog, page: BoundStatement) -> list[DisputedFigure]:
    """Read the figures of a page with their facts."""
    by_figure: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in to_dicts(page, catalog.fetch(page)):
        by_figure.setdefault(tuple(row[name] for name in _FIGURE), []).append(row)
    return [_to_figure(figure, facts) for figure, facts in by_figure.items()]
