"""Read what is known besides sizes and prices: facts of each source, conflicts between them, and the small tables."""

from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, FromClause, Select, and_, case, func, or_, select
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.fields import FIELDS, SIZE_FIELDS, SIZE_FLAGS
from app.catalog.models import Benchmark, Fact, Series, Size, Source
from app.catalog.queries.freshness import Freshness
from app.catalog.queries.lookups import check_field, get_series_ids, get_size_key, get_subject_key, load_series_ids
from app.catalog.queries.pagination import Item, Listing, SortKey, fetch_page
from app.catalog.queries.params import LowerTextSet, PageParams, PlainText

LIST_COLUMNS = ("use_cases", "integrations", "gpu_dtypes", "supported_images", "aliases")
"""Columns of series and others that hold several values, joined by `; `."""


def find_rows(session: Session, model: type[SQLModel], page: PageParams, *, newest_first: bool = False) -> Listing:
    """Find one page of a small table in the order of its primary key, ascending or descending."""
    table = table_of(model)
    sort_keys = [
        SortKey(name=column.name, expression=column, descending=newest_first, nullable=False)
        for column in table.primary_key
    ]
    found = fetch_page(session, select(table), sort_keys, identity=table.name, limit=page.limit, cursor=page.cursor)
    items = [split_lists(row) for row in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)


def find_sources(session: Session, page: PageParams, freshness: Freshness) -> Listing:
    """Find one page of the sources, each with the newest day of its prices or exchange rates."""
    found = find_rows(session, Source, page)
    items = [row | {"newest_day": freshness.newest_day_of(row["id"])} for row in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)


def split_lists(row: Item) -> Item:
    """Split the texts of LIST_COLUMNS; an unknown one is an empty list."""
    return {
        name: (value.split("; ") if value else []) if name in LIST_COLUMNS else value for name, value in row.items()
    }


def get_series(session: Session, name: str) -> Item:
    """Return a series by its id, name or alias, with its benchmarks, its sizes and the flags that all of them have.

    Raises NotFound.
    """
    (key,) = get_series_ids(load_series_ids(session), [name])
    series, benchmark, size = table_of(Series), table_of(Benchmark), table_of(Size)
    row = dict(session.execute(select(series).where(series.c.id == key)).mappings().one())
    sizes = session.execute(select(size).where(size.c.series_id == key).order_by(size.c.name)).mappings().all()
    results = session.execute(select(benchmark).where(benchmark.c.series_id == key).order_by(benchmark.c.id))
    return split_lists(row) | {
        "sizes": [size_row["name"] for size_row in sizes],
        "flags": [flag for flag in SIZE_FLAGS if sizes and all(size_row[flag] for size_row in sizes)],
        "benchmarks": [dict(result) for result in results.mappings()],
    }


FACT = table_of(Fact)


class FactSearch(PageParams):
    """Which facts of a size."""

    field: LowerTextSet = Field(
        default=(), description="On this field: `gpu_memory_gib`; on any of several.", examples=[["gpu_memory_gib"]]
    )


class ConflictSearch(PageParams):
    """Which conflicts."""

    field: PlainText | None = Field(
        default=None, description="On this field: `gpu_memory_gib`.", examples=["gpu_memory_gib"]
    )
    subject: PlainText | None = Field(
        default=None, description="On this size, in any spelling; or series or GPU by id.", examples=["nd40rs_v2"]
    )


def find_facts(session: Session, name: str, search: FactSearch) -> Listing:
    """Find one page of what each source states of a size, by field, the accepted fact first.

    Raises NotFound for the size, BadQuery for a field that no size has.
    """
    key = get_size_key(session, name)
    for field in search.field:
        check_field(field, SIZE_FIELDS)
    fact, source = table_of(Fact), table_of(Source)
    rank = case((fact.c.verdict == "accepted", 0), (fact.c.verdict == "agrees", 1), else_=2)
    stated = ("field", "value", "unit", "corrected_value", "verdict", "reason")
    shown = (*stated, "raw", "note", "written_as", "file", "line", "source_id")
    query = (
        select(*(fact.c[column] for column in shown), *_about(source), rank.label("rank"))
        .join_from(fact, source, source.c.id == fact.c.source_id)
        .where(fact.c.kind == "size", fact.c.subject == key)
    )
    sort_keys = [_sort_key("field", fact.c.field), _sort_key("rank", rank), _sort_key("source_id", fact.c.source_id)]
    if search.field:
        query = query.where(or_(*(fact.c.field == field for field in search.field)))
    identity = f"{key} {search.model_dump_json(exclude=search.page_param_names())}"
    found = fetch_page(session, query, sort_keys, identity=identity, limit=search.limit, cursor=search.cursor)
    items = [{name: value for name, value in item.items() if name != "rank"} for item in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)


def find_conflicts(session: Session, search: ConflictSearch) -> Listing:
    """Find one page of the facts that dispute the accepted one; raises BadQuery for an unknown field or subject."""
    query = conflicts_query().order_by(None)
    if search.field is not None:
        check_field(search.field, {name: None for fields in FIELDS.values() for name in fields})
        query = query.where(FACT.c.field == search.field)
    if search.subject is not None:
        query = query.where(FACT.c.subject == get_subject_key(session, search.subject))
    identity = search.model_dump_json(exclude=search.page_param_names())
    return fetch_page(session, query, _CONFLICT_ORDER, identity=identity, limit=search.limit, cursor=search.cursor)


def conflicts_query() -> Select[Any]:
    """Return the query of all facts that dispute the accepted one, in the order of the list."""
    source, size = table_of(Source), table_of(Size)
    accepted = FACT.alias("accepted")
    same = and_(*(FACT.c[name] == accepted.c[name] for name in ("kind", "subject", "field")))
    return (
        select(
            *(FACT.c[name] for name in ("kind", "subject", "field", "unit")),
            func.coalesce(size.c.name, FACT.c.subject).label("name"),
            func.coalesce(accepted.c.corrected_value, accepted.c.value).label("accepted_value"),
            accepted.c.source_id.label("accepted_source_id"),
            func.coalesce(FACT.c.corrected_value, FACT.c.value).label("value"),
            *(FACT.c[name] for name in ("raw", "reason", "file", "line", "source_id")),
            *_about(source),
        )
        .join_from(FACT, accepted, and_(same, accepted.c.verdict == "accepted"))
        .join(source, source.c.id == FACT.c.source_id)
        .join(size, and_(FACT.c.kind == "size", size.c.key == FACT.c.subject), isouter=True)
        .where(FACT.c.verdict == "disputed")
        .order_by(*(key.expression for key in _CONFLICT_ORDER))
    )


def _about(source: FromClause) -> list[ColumnElement[Any]]:
    return [source.c[name].label(f"source_{name}") for name in ("title", "kind", "url", "published_on")]


def _sort_key(name: str, expression: ColumnElement[Any]) -> SortKey:
    return SortKey(name=name, expression=expression, nullable=False)


_CONFLICT_ORDER = [_sort_key(name, FACT.c[name]) for name in ("kind", "subject", "field", "source_id")]
