"""Pages of sizes as SQL: one statement for each shape of a question, a walk along an index wherever there is one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    FromClause,
    Integer,
    Select,
    bindparam,
    func,
    literal_column,
    select,
    union_all,
)
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.models import SizeDoc
from app.catalog.queries.filters import PLACES, Asked, Condition, condition
from app.catalog.queries.ordering import sort_terms
from app.catalog.queries.pagination import Term, beyond
from app.catalog.queries.price_scope import GPU, SIZE, Ground, standing
from app.catalog.tables import table_of
from app.db.statements import Statement, by_shape

DOC = table_of(SizeDoc)
_INDEXED = {("name",), ("usd_per_hour",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All of a question but its values: what statement answers it.

    `after` says which keys of the place where the page begins are known, and is None for the first page; `octaves`
    are those of GPU memory to merge a list by price from; without any it is walked as it is.
    """

    ground: Ground
    filters: tuple[Asked, ...]
    sort: tuple[str, ...]
    after: tuple[bool, ...] | None = None
    octaves: tuple[int, ...] = ()


@by_shape(256)
def page_statement(shape: Shape) -> Statement:
    """Take the page's offers, then the documents of these alone; rows end with the keys of the order."""
    terms = sort_terms(shape.sort, shape.ground)
    conditions = _conditions(shape)
    keys = [term.expression.label(f"key_{index}") for index, term in enumerate(terms)]
    page = _walk(shape, terms, keys, conditions)
    ordered = [clause for index, term in enumerate(terms) for clause in _again(term, page.c[f"key_{index}"])]
    size_key = page.c[f"key_{[term.name for term in terms].index('name')}"]
    query = select(DOC.c.doc, *page.c).join_from(page, DOC, DOC.c.size_key == size_key).order_by(*ordered)
    return Statement(query, short=shape.sort in _INDEXED and not needs(SIZE, [*conditions, *keys]))


@by_shape(64)
def list_statement(shape: Shape) -> Statement:
    """Take all offers of a question in its order, each with its document."""
    ground, conditions = shape.ground, _conditions(shape)
    order = [clause for term in sort_terms(shape.sort, ground) for clause in term.clauses]
    rows = joined(select(DOC.c.doc, *_columns(ground)), ground, [*conditions, *order])
    return Statement(rows.join(DOC, DOC.c.size_key == ground.key).where(ground.held, *conditions).order_by(*order))


@by_shape(256)
def count_statement(shape: Shape) -> Statement:
    """Count what a question finds on all its pages."""
    conditions, ground = _conditions(shape), shape.ground
    query = joined(select(func.count()), ground, conditions).where(ground.held, *conditions)
    if shape.octaves:
        query = _hinted(query, ground).where(ground.offer.gpu_octave >= literal_column(str(shape.octaves[0]), Integer))
    return Statement(query)


@by_shape(4)
def size_statement(ground: Ground) -> Statement:
    """Take one size by `key`: the same columns as of a page."""
    query = select(DOC.c.doc, *_columns(ground)).join_from(DOC, ground.offers, ground.key == DOC.c.size_key)
    asked = DOC.c.size_key == bindparam("key", type_=DOC.c.size_key.type)
    return Statement(query.where(ground.held, asked), short=True)


def _conditions(shape: Shape) -> list[Condition]:
    return [condition(asked, shape.ground) for asked in shape.filters if asked.name not in PLACES]


def _walk(shape: Shape, terms: Sequence[Term], keys: Sequence[Any], conditions: Sequence[Condition]) -> FromClause:
    """The offers of a page: along an index in its order, or merged from a walk for each octave.

    Prices rise with GPU memory, so a walk by price would pass by nearly all cheap sizes before it finds a large one.
    """
    ground = shape.ground
    walk = joined(select(*_columns(ground), *keys), ground, [*conditions, *keys]).where(ground.held, *conditions)
    if shape.after is not None:
        walk = walk.where(beyond(terms, _place(shape.after, terms)))
    limit = bindparam("limit", type_=Integer)
    order = [clause for term in terms for clause in term.clauses]
    if not shape.octaves:
        return walk.order_by(*order).limit(limit).subquery("page")
    octave = ground.offer.gpu_octave
    hinted = _hinted(walk, ground)
    of_each = [
        select(hinted.where(octave == literal_column(str(number), Integer)).order_by(*order).subquery())
        for number in shape.octaves
    ]
    merged = union_all(*of_each)
    keyed = [merged.selected_columns[key.key] for key in keys]
    return merged.order_by(*keyed).limit(limit).subquery("page")


def _hinted(query: Select[Any], ground: Ground) -> Select[Any]:
    """SQLite needs to be told the index: from a sample it cannot know that one octave is less than a region."""
    return query.with_hint(ground.offers, "indexed by ix_offer_gpu", "sqlite")


def _columns(ground: Ground) -> list[ColumnElement[Any]]:
    """What a size is rendered from, but for its document."""
    return [standing(ground.offer).label("status"), ground.offer.doc.label("offer")]


def joined(query: Select[Any], ground: Ground, used: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """Join the size, and its GPU, only where something of them is used."""
    query = query.select_from(ground.offers)
    if needs(SIZE, used):
        query = query.join(SIZE, SIZE.c.key == ground.key)
    if needs(GPU, used):
        query = query.join(GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True)
    return query


def needs(table: FromClause, used: Sequence[ColumnElement[Any]]) -> bool:
    """Whether something of a table is used."""
    return any(getattr(part, "table", None) is table for each in used for part in visitors.iterate(each))


def _place(after: tuple[bool, ...], terms: Sequence[Term]) -> list[Any]:
    places = zip(after, terms, strict=True)
    return [
        bindparam(f"at_{index}", type_=term.expression.type) if known else None
        for index, (known, term) in enumerate(places)
    ]


def _again(term: Term, column: ColumnElement[Any]) -> list[ColumnElement[Any]]:
    return Term(name=term.name, expression=column, descending=term.descending, nullable=term.nullable).clauses
