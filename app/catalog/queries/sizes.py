"""Sizes: from a typed search to one page, each size as the JSON text that is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from app.catalog.octaves import LAST, octave_of
from app.catalog.queries.cursors import Place, write_cursor
from app.catalog.queries.filters import FILTERS, asked_filters
from app.catalog.queries.gpu_filters import check_vendor, resolve_gpus
from app.catalog.queries.lookups import check_regions, series_ids, size_key_of
from app.catalog.queries.ordering import check_sort, sort_terms
from app.catalog.queries.pages import Shape, count_statement, page_statement, size_statement
from app.catalog.queries.pagination import read_place
from app.catalog.queries.params import SizeList, SizeScope, SizeSearch
from app.catalog.queries.price_scope import Ground, region_values
from app.catalog.queries.rendering import RENDERED, render_size
from app.catalog.queries.snapshot import Known, read_known
from app.catalog.queries.walks import still
from app.db.statements import Ask, Question, answer, ask_once
from app.errors import BadQuestion, NotFound

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
