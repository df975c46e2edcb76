"""Read the figures on which sources disagree, each with everything that is said of it: of facts, then of prices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Subquery, and_, func, or_, select
from sqlalchemy.orm import Session

from app.catalog.in_force import PRICE, SERIES
from app.catalog.queries.lookups import check_field, check_source, get_subject_key, resolve_series
from app.catalog.queries.params import LowerTextSet, PlainText, QueryParams, optional, several
from app.catalog.queries.provenance import CONFLICTING_FIELDS, FACT, PRICE_FIELD, SIZE, SOURCE, VERDICT_RANK, about
from app.catalog.queries.snapshot import Catalog
from app.db.functions import usd_of, usd_text

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
    session = catalog.session
    conditions = _conditions(catalog, filters)
    disputed = _figures(conditions)
    of_any_field = _figures({name: condition for name, condition in conditions.items() if name != "field"})
    of_any_source = _figures({name: condition for name, condition in conditions.items() if name != "source"})
    prices = _disputed_prices(catalog, filters)
    priced = [price for price in prices if filters.source is None or _names(price, filters.source)]
    by_field = session.execute(select(of_any_field.c.field, func.count()).group_by(of_any_field.c.field))
    by_source = session.execute(
        select(SOURCE.c.id, SOURCE.c.title, func.count())
        .join_from(of_any_source, FACT, _same_figure(of_any_source.c))
        .join(SOURCE, SOURCE.c.id == FACT.c.source_id)
        .group_by(SOURCE.c.id, SOURCE.c.title)
        .order_by(SOURCE.c.title, SOURCE.c.id)
    )
    fields = dict(tuple(row) for row in by_field) | ({PRICE_FIELD: len(priced)} if priced else {})
    sources = {key: (title, count) for key, title, count in by_source}
    if filters.field not in (None, PRICE_FIELD):
        prices = priced = []
    titles = {fact["source_id"]: fact["source_title"] for price in prices for fact in price.facts}
    for key, title in sorted(titles.items()):
        sources[key] = title, sources.get(key, (title, 0))[1] + sum(_names(price, key) for price in prices)
    total = session.execute(select(func.count()).select_from(disputed)).scalar_one()
    figures = _read(session, disputed, offset, limit)
    rest = slice(max(offset - total, 0), max(offset + limit - total, 0))
    return DisputeListing(figures=[*figures, *priced[rest]], total=total + len(priced), fields=fields, sources=sources)


def _names(figure: DisputedFigure, source: str) -> bool:
    return any(fact["source_id"] == source for fact in figure.facts)


def _disputed_prices(catalog: Catalog, filters: DisputeFilter) -> list[DisputedFigure]:
    """Read the disputed prices of the sizes that filters leave, by size, region, system and purchase model."""
    run = PRICE.c
    query = (
        select(
            *(run[name] for name in SERIES),
            usd_text(usd_of(run.nano_usd_per_hour)).label("value"),
            run.seen_until,
            run.source_id,
            *about(SOURCE),
            SIZE.c.name,
            SIZE.c.series_id,
        )
        .join_from(PRICE, SOURCE, SOURCE.c.id == run.source_id)
        .join(SIZE, SIZE.c.key == run.size_key)
        .where(run.disputed.is_(True))
        .order_by(*(run[name] for name in SERIES), run.seen_until.desc(), run.source_id)
    )
    if filters.subject is not None:
        query = query.where(run.size_key == get_subject_key(catalog, filters.subject, catalog.snapshot.series))
    if filters.series:
        query = query.where(SIZE.c.series_id.in_(resolve_series(catalog.snapshot.series, filters.series)))
    figures = []
    for (key, region, os, purchase), rows in groupby(
        catalog.session.execute(query).mappings(), key=itemgetter(*SERIES)
    ):
        first, *others = (dict(row) for row in rows)
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


def _conditions(catalog: Catalog, filters: DisputeFilter) -> dict[str, ColumnElement[bool]]:
    """Return the conditions on a fact that disputes, by parameter."""
    conditions: dict[str, ColumnElement[bool]] = {}
    if filters.field is not None:
        check_field(filters.field, CONFLICTING_FIELDS)
        conditions["field"] = FACT.c.field == filters.field
    if filters.subject is not None:
        conditions["subject"] = FACT.c.subject == get_subject_key(catalog, filters.subject, catalog.snapshot.series)
    if filters.series:
        ids = resolve_series(catalog.snapshot.series, filters.series)
        sizes = select(SIZE.c.key).where(SIZE.c.series_id.in_(ids))
        conditions["series"] = or_(
            and_(FACT.c.kind == "size", FACT.c.subject.in_(sizes)),
            and_(FACT.c.kind == "series", FACT.c.subject.in_(ids)),
        )
    if filters.source is not None:
        check_source(catalog, filters.source)
        other = FACT.alias("of_source")
        conditions["source"] = (
            select(other.c.line).where(_same_figure(other.c), other.c.source_id == filters.source).exists()
        )
    return conditions


def _figures(conditions: Mapping[str, ColumnElement[bool]]) -> Subquery:
    """Select the figures, each once."""
    columns = (FACT.c[name] for name in _FIGURE)
    return select(*columns).where(FACT.c.verdict == "disputed", *conditions.values()).distinct().subquery("figure")


def _same_figure(figure: Any) -> ColumnElement[bool]:
    return and_(*(FACT.c[name] == figure[name] for name in _FIGURE))


def _read(session: Session, disputed: Subquery, offset: int, limit: int) -> list[DisputedFigure]:
    """Read the figures of a page with their facts."""
    figure = select(disputed).order_by(*(disputed.c[name] for name in ("subject", "kind", "field")))
    page = figure.offset(offset).limit(limit).subquery("page")
    stated = ("kind", "subject", "field", "value", "unit", "corrected_value", "verdict", "reason", "raw", "source_id")
    rows = session.execute(
        select(
            *(FACT.c[name] for name in stated),
            *about(SOURCE),
            func.coalesce(SIZE.c.name, FACT.c.subject).label("name"),
            SIZE.c.series_id,
        )
        .join_from(page, FACT, _same_figure(page.c))
        .join(SOURCE, SOURCE.c.id == FACT.c.source_id)
        .join(SIZE, and_(FACT.c.kind == "size", SIZE.c.key == FACT.c.subject), isouter=True)
        .order_by(FACT.c.subject, FACT.c.kind, FACT.c.field, VERDICT_RANK, FACT.c.source_id)
    ).mappings()
    by_figure: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        by_figure.setdefault(tuple(row[name] for name in _FIGURE), []).append(dict(row))
    return [_to_figure(figure, facts) for figure, facts in by_figure.items()]
