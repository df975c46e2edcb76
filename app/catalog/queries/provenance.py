"""Read what is known besides sizes and prices: facts of each source, conflicts between them, and the small tables."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import Field
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Select,
    String,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
)
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.fields import FIELDS, SIZE_FIELDS, SIZE_FLAGS
from app.catalog.models import Benchmark, Fact, Series, Size, Source
from app.catalog.queries.freshness import Freshness
from app.catalog.queries.lookups import check_field, get_series_ids, get_size_keys, get_subject_key
from app.catalog.queries.pagination import Item, Listing, ListStatements, SortKey, read_list, split_lists
from app.catalog.queries.params import LowerTextSet, PageParams, PlainText
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Statement, pad_keys, to_dicts
from app.errors import NotFound


def find_rows(
    model: type[SQLModel], page: PageParams, snapshot: CatalogSnapshot | None = None, *, newest_first: bool = False
) -> QueryPlan[Listing]:
    """Find one page of a small table in the order of its primary key, ascending or descending."""
    listed = _rows_of(model, newest_first)
    found = yield from read_list(listed, {}, page, identity=table_of(model).name, snapshot=snapshot)
    return replace(found, items=[split_lists(row) for row in found.items])


@lru_cache(maxsize=16)
def _rows_of(model: type[SQLModel], newest_first: bool) -> ListStatements:
    table = table_of(model)
    order = [
        SortKey(name=column.name, expression=column, descending=newest_first, nullable=False)
        for column in table.primary_key
    ]
    return ListStatements(lambda: select(table), order, short=True)


def find_sources(page: PageParams, freshness: Freshness, snapshot: CatalogSnapshot | None = None) -> QueryPlan[Listing]:
    """Find one page of the sources, each with the newest day of its prices or exchange rates."""
    found = yield from find_rows(Source, page, snapshot)
    return replace(found, items=[row | {"newest_day": freshness.newest_day_of(row["id"])} for row in found.items])


def get_series(name: str, snapshot: CatalogSnapshot) -> QueryPlan[Item]:
    """Return a series by its id, name or alias, with its benchmarks, its sizes and the flags that all of them have.

    Raises NotFound.
    """
    (key,) = get_series_ids(snapshot.series, [name])
    found = []
    for statement in _series_statements():
        bound = BoundStatement(statement, {"series": key})
        found.append(to_dicts(bound, (yield bound)))
    series, sizes, benchmarks = found
    if not series:  # an ingest removed it after its name was looked up
        raise NotFound("series", name)
    return split_lists(series[0]) | {
        "sizes": [row["name"] for row in sizes],
        "flags": [flag for flag in SIZE_FLAGS if sizes and all(row[flag] for row in sizes)],
        "benchmarks": benchmarks,
    }


@lru_cache(maxsize=1)
def _series_statements() -> tuple[Statement, ...]:
    """Return the statements of the series with an id, of the names and flags of its sizes, and of its benchmarks."""
    series, benchmark, size = table_of(Series), table_of(Benchmark), table_of(Size).c
    shown = (size.name, *(size[flag] for flag in SIZE_FLAGS))
    queries = (
        select(series).where(series.c.id == _bind("series")),
        select(*shown).where(size.series_id == _bind("series")).order_by(size.name),
        select(benchmark).where(benchmark.c.series_id == _bind("series")).order_by(benchmark.c.id),
    )
    return tuple(Statement(query) for query in queries)


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


def find_facts(name: str, search: FactSearch, snapshot: CatalogSnapshot | None = None) -> QueryPlan[Listing]:
    """Find one page of what each source states of a size, by field, the accepted fact first.

    Raises NotFound for the size, BadQuery for a field that no size has.
    """
    (key,) = yield from get_size_keys((name,), snapshot.series if snapshot is not None else None)
    for field in search.field:
        check_field(field, SIZE_FIELDS)
    fields = pad_keys(search.field)
    values = {"subject": key, **{f"field_{index}": field for index, field in enumerate(fields)}}
    identity = f"{key} {search.model_dump_json(exclude=search.page_param_names())}"
    found = yield from read_list(_facts_of(len(fields)), values, search, identity=identity)
    items = [{name: value for name, value in item.items() if name != "rank"} for item in found.items]
    return replace(found, items=items)


@lru_cache(maxsize=8)
def _facts_of(fields: int) -> ListStatements:
    """Return the list of the facts of the size `subject`; where there are `fields`, of any of these."""
    source = table_of(Source)
    rank = case((FACT.c.verdict == "accepted", 0), (FACT.c.verdict == "agrees", 1), else_=2)
    stated = ("field", "value", "unit", "corrected_value", "verdict", "reason")
    shown = (*stated, "raw", "note", "written_as", "file", "line", "source_id")

    def build() -> Select[Any]:
        query = (
            select(*(FACT.c[column] for column in shown), *_about(source), rank.label("rank"))
            .join_from(FACT, source, source.c.id == FACT.c.source_id)
            .where(FACT.c.kind == "size", FACT.c.subject == _bind("subject"))
        )
        return query.where(or_(*(FACT.c.field == _bind(f"field_{i}") for i in range(fields)))) if fields else query

    order = {"field": FACT.c.field, "rank": rank, "source_id": FACT.c.source_id}
    return ListStatements(build, [_sort_key(*key) for key in order.items()], short=True)


def _bind(name: str) -> BindParameter[str]:
    return bindparam(name, type_=String)


def find_conflicts(search: ConflictSearch, snapshot: CatalogSnapshot | None = None) -> QueryPlan[Listing]:
    """Find one page of the facts that dispute the accepted one; raises BadQuery for an unknown field or subject."""
    values: dict[str, str] = {}
    if search.field is not None:
        check_field(search.field, {name: None for fields in FIELDS.values() for name in fields})
        values["field"] = search.field
    if search.subject is not None:
        series = snapshot.series if snapshot is not None else None
        values["subject"] = yield from get_subject_key(search.subject, series)
    identity = search.model_dump_json(exclude=search.page_param_names())
    return (yield from read_list(_conflicts(tuple(values)), values, search, identity=identity, snapshot=snapshot))


@lru_cache(maxsize=4)
def _conflicts(filters: tuple[str, ...]) -> ListStatements:
    def build() -> Select[Any]:
        return conflicts_query().order_by(None).where(*(FACT.c[name] == _bind(name) for name in filters))

    return ListStatements(build, _CONFLICT_ORDER)


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
