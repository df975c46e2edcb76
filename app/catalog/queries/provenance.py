"""Who says what: every source's word on a size, and every disagreement there is."""

from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, FromClause, Select, and_, case, func, select
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.fields import FIELDS, SIZE_FIELDS, SIZE_FLAGS
from app.catalog.models import Benchmark, Fact, Series, Size, Source
from app.catalog.queries.lookups import check_field, series_ids, series_titles, size_key_of, subject_key
from app.catalog.queries.pagination import Item, Listing, Term, take_page
from app.catalog.queries.params import AnyOf, Page, Text

LISTS = ("use_cases", "integrations", "gpu_dtypes", "supported_images", "aliases")
"""Columns of series and others that hold several values, joined by `; `."""


def find_all(session: Session, model: type[SQLModel], page: Page, *, newest_first: bool = False) -> Listing:
    """Find the rows of a small table in the order of its key, or in the opposite one."""
    table = table_of(model)
    terms = [
        Term(name=column.name, expression=column, descending=newest_first, nullable=False)
        for column in table.primary_key
    ]
    found = take_page(session, select(table), terms, question=table.name, limit=page.limit, cursor=page.cursor)
    items = [with_lists(row) for row in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)


def with_lists(row: Item) -> Item:
    """Texts that are lists become lists; an unknown one is empty."""
    return {name: (value.split("; ") if value else []) if name in LISTS else value for name, value in row.items()}


def get_series(session: Session, name: str) -> Item:
    """Get a series by its id or any of its titles: its rack, its benchmarks, its sizes, the flags they all have."""
    (key,) = series_ids(series_titles(session), [name])
    series, benchmark, size = table_of(Series), table_of(Benchmark), table_of(Size)
    row = dict(session.execute(select(series).where(series.c.id == key)).mappings().one())
    sizes = session.execute(select(size).where(size.c.series_id == key).order_by(size.c.name)).mappings().all()
    results = session.execute(select(benchmark).where(benchmark.c.series_id == key).order_by(benchmark.c.id))
    return with_lists(row) | {
        "sizes": [size_row["name"] for size_row in sizes],
        "flags": [flag for flag in SIZE_FLAGS if sizes and all(size_row[flag] for size_row in sizes)],
        "benchmarks": [dict(result) for result in results.mappings()],
    }


OTHER = table_of(Fact)
"""A word that may not be the accepted one."""


class FactSearch(Page):
    """Which facts of a size."""

    field: AnyOf = Field(
        default=(), description="On this field: `gpu_memory_gib`; on any of several.", examples=[["gpu_memory_gib"]]
    )


class ConflictSearch(Page):
    """Which conflicts."""

    field: Text | None = Field(
        default=None, description="On this field: `gpu_memory_gib`.", examples=["gpu_memory_gib"]
    )
    subject: Text | None = Field(
        default=None, description="On this size, in any spelling; or series or GPU by id.", examples=["nd40rs_v2"]
    )


def find_facts(session: Session, name: str, search: FactSearch) -> Listing:
    """Find what every source says of a size, field by field, the accepted word first.

    Raises NotFound for the size, BadQuestion for a field that no size has.
    """
    key = size_key_of(session, name)
    for field in search.field:
        check_field(field, SIZE_FIELDS)
    fact, source = table_of(Fact), table_of(Source)
    rank = case((fact.c.verdict == "accepted", 0), (fact.c.verdict == "agrees", 1), else_=2)
    said = ("field", "value", "unit", "corrected_value", "verdict", "reason")
    shown = (*said, "raw", "note", "written_as", "file", "line", "source_id")
    query = (
        select(*(fact.c[column] for column in shown), *_about(source), rank.label("rank"))
        .join_from(fact, source, source.c.id == fact.c.source_id)
        .where(fact.c.kind == "size", fact.c.subject == key)
    )
    terms = [_term("field", fact.c.field), _term("rank", rank), _term("source_id", fact.c.source_id)]
    if search.field:
        query = query.where(fact.c.field.in_(search.field))
    question = f"{key} {search.model_dump_json(exclude=search.of_page())}"
    found = take_page(session, query, terms, question=question, limit=search.limit, cursor=search.cursor)
    items = [{name: value for name, value in item.items() if name != "rank"} for item in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)


def find_conflicts(session: Session, search: ConflictSearch) -> Listing:
    """Find every word that was not accepted, beside the one that was."""
    query = all_conflicts().order_by(None)
    if search.field is not None:
        check_field(search.field, {name: None for fields in FIELDS.values() for name in fields})
        query = query.where(OTHER.c.field == search.field)
    if search.subject is not None:
        query = query.where(OTHER.c.subject == subject_key(session, search.subject))
    question = search.model_dump_json(exclude=search.of_page())
    return take_page(session, query, _CONFLICT_ORDER, question=question, limit=search.limit, cursor=search.cursor)


def all_conflicts() -> Select[Any]:
    """Every word that was not accepted, as a query in the order of the list."""
    source, size = table_of(Source), table_of(Size)
    accepted = OTHER.alias("accepted")
    same = and_(*(OTHER.c[name] == accepted.c[name] for name in ("kind", "subject", "field")))
    return (
        select(
            *(OTHER.c[name] for name in ("kind", "subject", "field", "unit")),
            func.coalesce(size.c.name, OTHER.c.subject).label("name"),
            func.coalesce(accepted.c.corrected_value, accepted.c.value).label("accepted_value"),
            accepted.c.source_id.label("accepted_source_id"),
            func.coalesce(OTHER.c.corrected_value, OTHER.c.value).label("value"),
            *(OTHER.c[name] for name in ("raw", "reason", "file", "line", "source_id")),
            *_about(source),
        )
        .join_from(OTHER, accepted, and_(same, accepted.c.verdict == "accepted"))
        .join(source, source.c.id == OTHER.c.source_id)
        .join(size, and_(OTHER.c.kind == "size", size.c.key == OTHER.c.subject), isouter=True)
        .where(OTHER.c.verdict == "disputed")
        .order_by(*(term.expression for term in _CONFLICT_ORDER))
    )


def _about(source: FromClause) -> list[ColumnElement[Any]]:
    return [source.c[name].label(f"source_{name}") for name in ("title", "kind", "url", "published_on")]


def _term(name: str, expression: ColumnElement[Any]) -> Term:
    return Term(name=name, expression=expression, nullable=False)


_CONFLICT_ORDER = [_term(name, OTHER.c[name]) for name in ("kind", "subject", "field", "source_id")]
