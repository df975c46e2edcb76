"""Sizes: from a typed search to one page, each size as the JSON text that is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Any, TypeVar

import orjson
from sqlalchemy import FromClause, Integer, Select, bindparam, func, literal_column, select, union_all
from sqlalchemy.orm import Session
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.models import SizeDoc
from app.catalog.projections import LAST, NO_OFFER_DOC, OFFER_JSON_FIELDS, octave_of
from app.catalog.queries.filters import (
    FILTERS,
    PLACES,
    Asked,
    Condition,
    asked_filters,
    check_sort,
    condition,
    sort_terms,
)
from app.catalog.queries.gpu_filters import check_vendor, resolve_gpus
from app.catalog.queries.lookups import check_regions, series_ids, size_key_of
from app.catalog.queries.pagination import Place, Term, beyond, read_place, still, write_cursor
from app.catalog.queries.params import SizeList, SizeScope, SizeSearch
from app.catalog.queries.price_scope import GPU, SIZE, Ground, region_values, standing
from app.catalog.queries.snapshot import Known, read_known
from app.db.statements import Ask, Question, Row, Statement, answer, ask_once, by_shape
from app.errors import BadQuestion, NotFound

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


TAIL = ("status", *OFFER_JSON_FIELDS, "price_age_days")
"""What is shown of a size after its document, in this order: its standing, its offer, how old the price is."""

RENDERED = 3
"""So many values of a row are written; behind them a page has the keys of its order."""


def render_size(row: Row, today: date) -> str:
    """Write a size: `row` begins with its document, its standing and the document of its offer, None for no offer.

    The document of an offer ends with the day from which its price is known.
    """
    doc, status, offer = row[:RENDERED]
    offer = offer or NO_OFFER_DOC
    age = age_days(offer[-12:-2], today) if offer[-2] == '"' else "null"
    return f'{doc[:-1]},"status":"{status}",{offer[1:-1]},"price_age_days":{age}}}'


@lru_cache(maxsize=4096)
def age_days(day: str, today: date) -> int:
    """How many days have passed since a day; there are as many days as price lists."""
    return (today - date.fromisoformat(day)).days


def render_page(items: Sequence[str], next_cursor: str | None, total: int) -> str:
    """Write a page of items that are JSON texts already."""
    return f'{{"items":[{",".join(items)}],"next_cursor":{orjson.dumps(next_cursor).decode()},"total":{total}}}'


Scope = TypeVar("Scope", bound=SizeScope)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTexts:
    """A page of sizes, each as JSON text; the cursor of the next page, None at the end; how many there are in all."""

    items: list[str]
    next_cursor: str | None
    total: int


def find_sizes(search: SizeSearch, known: Known, today: date) -> Question[SizeTexts]:
    """Find the sizes that a search asks for; raises BadQuestion for what is unknown here, and CursorGone."""
    search = settle(search, known)
    question = search.model_dump_json(exclude=search.of_page())
    shape, values = shape_of(search)
    shape = replace(shape, octaves=_octaves(search, known))
    place = read_place(search.cursor, question, sort_terms(shape.sort, shape.ground)) if search.cursor else None
    values |= {"today": today.isoformat(), "limit": search.limit + 1}
    rows = yield _page(shape, values, place)
    revision = known.revision if place is None else (yield from still(place))
    total = known.total_of(question)
    if total is None:
        ((total,),) = yield Ask(count_statement(shape), values)
        known.learn_total(question, total)
    page = rows[: search.limit]
    following = write_cursor(question, revision, page[-1][RENDERED:]) if len(rows) > len(page) else None
    return SizeTexts(items=[render_size(row, today) for row in page], next_cursor=following, total=total)


def search_sizes(session: Session, search: SizeSearch, *, today: date) -> SizeTexts:
    """Find sizes, and wait for them."""
    return answer(session, find_sizes(search, read_known(session), today))


def get_size(session: Session, name: str, *, today: date) -> str:
    """Get one size by any of its names, with its cheapest on-demand Linux price; raises NotFound."""
    ground, key = Ground.of(SizeScope()), size_key_of(session, name)
    values = {"key": key, "today": today.isoformat(), **region_values(SizeScope())}
    (row,) = answer(session, ask_once(Ask(size_statement(ground), values)))
    return render_size(row, today)


def settle(scope: Scope, known: Known) -> Scope:
    """Bring the series and GPUs that a question names to the catalog's own names, and refuse what is unknown here."""
    check_regions(known.regions, "region", scope.region)
    check_regions(known.regions, "available_in", scope.available_in)
    if scope.gpu_vendor is not None:
        check_vendor(known.gpus, scope.gpu_vendor)
    settled: dict[str, Any] = {"series": known_series(scope.series, known)} if scope.series else {}
    settled |= {"gpu": resolve_gpus(known.gpus, scope.gpu)} if scope.gpu else {}
    return scope.model_copy(update=settled) if settled else scope


def known_series(names: Sequence[str], known: Known) -> tuple[str, ...]:
    """The ids of the series that a question names; raises BadQuestion."""
    try:
        return series_ids(known.series, names)
    except NotFound as unknown:
        raise BadQuestion("series", unknown.name, f"{unknown} GET /series lists them.") from None


def shape_of(search: SizeList) -> tuple[Shape, dict[str, Any]]:
    """The shape of a list that was settled, and the values of its parameters; raises BadQuestion for its order."""
    check_sort(search.sort)
    filters, values = asked_filters(search, FILTERS)
    return Shape(ground=Ground.of(search), filters=filters, sort=search.sort), values | region_values(search)


def _page(shape: Shape, values: dict[str, Any], place: Place | None) -> Ask:
    """The page of a question: from its beginning or a place, by a walk or merged from walks."""
    if place is not None:
        values |= {f"at_{index}": _plain(value) for index, value in enumerate(place.values)}
        shape = replace(shape, after=tuple(value is not None for value in place.values))
    return Ask(page_statement(shape), values)


def _octaves(search: SizeSearch, known: Known) -> tuple[int, ...]:
    """The octaves of GPU memory to merge a list by price from: none where it is walked."""
    least, most = search.min_gpu_mem, search.max_gpu_mem
    if search.sort != ("usd_per_hour",) or len(search.region) > 1 or not least:
        return ()
    first, last = octave_of(least), octave_of(most) if most else LAST
    return tuple(octave for octave in known.octaves if first <= octave <= last)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
