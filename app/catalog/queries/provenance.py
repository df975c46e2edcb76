"""Read what is known besides sizes and prices: facts, conflicts between them, availability, small tables, names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Double,
    FromClause,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    union_all,
)
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.fields import FIELDS, SIZE_FIELDS, SIZE_FLAGS
from app.catalog.in_force import PRICE, SERIES
from app.catalog.models import (
    UNKNOWN_ZONES,
    Availability,
    Benchmark,
    ExchangeRate,
    Fact,
    LanguageModel,
    PriceFile,
    RefusedPrice,
    Region,
    Series,
    Size,
    Source,
)
from app.catalog.names import RegionCode, escape_like, size_key
from app.catalog.price_checks import Rule
from app.catalog.queries.exchange_rates import EUR, USD
from app.catalog.queries.lookups import (
    check_field,
    check_regions,
    check_regions_of_sizes,
    check_source,
    get_series_ids,
    get_size_keys,
    get_subject_key,
)
from app.catalog.queries.pagination import (
    Item,
    Listing,
    ListStatements,
    is_cursor_of,
    read_list,
    split_lists,
    write_cursor,
)
from app.catalog.queries.params import (
    LowerText,
    LowerTextSet,
    PageParams,
    PlainText,
    RegionSet,
    optional,
    several,
)
from app.catalog.queries.price_scope import KEYS, key_parameters
from app.catalog.queries.snapshot import Catalog, short
from app.db.functions import is_listed, usd_of, usd_text
from app.db.statements import BoundStatement, Statement, cached_statement, pad_keys, to_dicts
from app.errors import BadQuery, NotFound

FACT, SIZE, SOURCE = table_of(Fact), table_of(Size), table_of(Source)
VERDICT_RANK = case((FACT.c.verdict == "accepted", 0), (FACT.c.verdict == "agrees", 1), else_=2)


def find_rows(catalog: Catalog, model: type[SQLModel], page: PageParams, *, newest_first: bool = False) -> Listing:
    """Find one page of a small table in the order of its primary key, ascending or descending."""
    listed = _rows_of(model, newest_first)
    listing = read_list(catalog, listed, {}, page, identity=table_of(model).name)
    return replace(listing, items=[split_lists(row) for row in listing.items])


@lru_cache(maxsize=16)
def _rows_of(model: type[SQLModel], newest_first: bool) -> ListStatements:
    table = table_of(model)
    order = [column.name for column in table.primary_key]
    return ListStatements(lambda: select(table), order, descending=newest_first, short=True)


def get_series(catalog: Catalog, name: str) -> Item:
    """Return a series by its id, name or alias, with its benchmarks, its sizes and the flags that all of them have.

    Raises NotFound.
    """
    (key,) = get_series_ids(catalog.snapshot.series, [name])
    queries = [BoundStatement(statement, {"series": key}) for statement in (_SERIES, _SIZES_OF_SERIES, _BENCHMARKS)]
    series, sizes, benchmarks = (to_dicts(query, catalog.fetch(query)) for query in queries)
    if not series:  # an ingest removed it after its name was looked up
        raise NotFound("series", name)
    return split_lists(series[0]) | {
        "sizes": [row["name"] for row in sizes],
        "flags": [flag for flag in SIZE_FLAGS if sizes and all(row[flag] for row in sizes)],
        "benchmarks": benchmarks,
    }


_series, _benchmark, _size = table_of(Series), table_of(Benchmark), table_of(Size).c
_SERIES = Statement(lambda: select(_series).where(_series.c.id == _bind("series")))
_SIZES_OF_SERIES = Statement(
    lambda: (
        select(_size.name, *(_size[flag] for flag in SIZE_FLAGS))
        .where(_size.series_id == _bind("series"))
        .order_by(_size.name)
    )
)
_BENCHMARKS = Statement(
    lambda: select(_benchmark).where(_benchmark.c.series_id == _bind("series")).order_by(_benchmark.c.id)
)


_MODELS = table_of(LanguageModel)
_model = _MODELS.c
_SEARCHED = func.lower(
    _model.id + " " + _model.name + " " + func.coalesce(_model.hf_repo, "") + " " + func.coalesce(_model.aliases, "")
)


class ModelSearch(PageParams):
    """Which language models."""

    q: LowerText | None = optional("Words to find in id, name, repository and aliases; all must be there.", "llama 3.1")


@short
def find_models(catalog: Catalog, search: ModelSearch) -> Listing:
    """Find language models by words, in the order of their ids."""
    words = pad_keys((search.q or "").split())
    values = {f"word_{index}": f"%{escape_like(word)}%" for index, word in enumerate(words)}
    identity = f"models {search.model_dump_json(exclude=search.page_param_names())}"
    listing = read_list(catalog, _models_with(len(words)), values, search, identity=identity)
    configs = [orjson.loads(row["config"]) if row["config"] is not None else {} for row in listing.items]
    items = [split_lists(row) | {"config": config} for row, config in zip(listing.items, configs, strict=True)]
    return replace(listing, items=items)


@lru_cache(maxsize=8)
def _models_with(words: int) -> ListStatements:
    """Return the list of the models whose names contain a number of words."""

    def build() -> Select[Any]:
        binds = (bindparam(f"word_{index}", type_=String) for index in range(words))
        return select(_MODELS).where(*(_SEARCHED.like(bind, escape="\\") for bind in binds))

    return ListStatements(build, ("id",))


class FactSearch(PageParams):
    """Which facts of a size."""

    field: LowerTextSet = several("On this field: `gpu_memory_gib`; on any of several.", "gpu_memory_gib")


class ConflictSearch(PageParams):
    """Which conflicts."""

    field: PlainText | None = optional("On this field: `gpu_memory_gib`.", "gpu_memory_gib")
    subject: PlainText | None = optional("On this size, in any spelling; or series or GPU by id.", "nd40rs_v2")


@short
def find_facts(catalog: Catalog, name: str, search: FactSearch) -> Listing:
    """Find one page of what each source states of a size, by field, the accepted fact first.

    Raises NotFound for the size, BadQuery for a field that no size has.
    """
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    for field in search.field:
        check_field(field, SIZE_FIELDS)
    values = {"subject": key} | ({"fields": orjson.dumps(search.field).decode()} if search.field else {})
    identity = f"{key} {search.model_dump_json(exclude=search.page_param_names())}"
    listing = read_list(catalog, _facts_of(some=bool(search.field)), values, search, identity=identity)
    return listing.without("rank")


@cache
def _facts_of(*, some: bool) -> ListStatements:
    """Return the list of the facts of the size `subject`, or of those on `fields`."""
    stated = ("field", "value", "unit", "corrected_value", "verdict", "reason")
    shown = (*stated, "raw", "note", "written_as", "file", "line", "source_id")

    def build() -> Select[Any]:
        query = (
            select(*(FACT.c[column] for column in shown), *about(SOURCE), VERDICT_RANK.label("rank"))
            .join_from(FACT, SOURCE, SOURCE.c.id == FACT.c.source_id)
            .where(FACT.c.kind == "size", FACT.c.subject == _bind("subject"))
        )
        return query.where(is_listed(FACT.c.field, _bind("fields"))) if some else query

    return ListStatements(build, ("field", "rank", "source_id"), short=True)


def _bind(name: str) -> BindParameter[str]:
    return bindparam(name, type_=String)


PRICE_FIELD = "usd_per_hour"
"""The field of a disputed price, which is of a region, an operating system and a purchase model, too."""
CONFLICTING_FIELDS = {name: None for fields in FIELDS.values() for name in fields} | {PRICE_FIELD: None}
_OF_PRICES = ("region", "os", "purchase")


@short
def find_conflicts(catalog: Catalog, search: ConflictSearch) -> Listing:
    """Find one page of the values that dispute the accepted one: those of facts, then those of prices.

    Raises BadQuery for an unknown field or subject.
    """
    values: dict[str, str] = {}
    if search.field is not None:
        check_field(search.field, CONFLICTING_FIELDS)
        values["field"] = search.field
    if search.subject is not None:
        values["subject"] = get_subject_key(catalog, search.subject, catalog.snapshot.series)
    identity = search.model_dump_json(exclude=search.page_param_names())
    if search.field not in (None, PRICE_FIELD):
        facts = _conflicts(_fact_conflicts, _FACT_ORDER, tuple(values))
        listing = read_list(catalog, facts, values, search, identity=identity)
    elif search.field == PRICE_FIELD or is_cursor_of(search.cursor, _of_prices(identity)):
        listing = _find_price_conflicts(catalog, values, search, identity)
    else:
        listing = _find_all_conflicts(catalog, values, search, identity)
    return replace(listing, items=[item | {name: item[name] or None for name in _OF_PRICES} for item in listing.items])


def _find_all_conflicts(catalog: Catalog, values: Mapping[str, str], search: ConflictSearch, identity: str) -> Listing:
    """Find a page that begins among facts: where these end, prices follow."""
    facts = _conflicts(_fact_conflicts, _FACT_ORDER, tuple(values))
    listing = read_list(catalog, facts, values, search, identity=identity)
    room = search.limit - len(listing.items)
    first = search.model_copy(update={"cursor": None, "limit": max(room, 1)})
    prices = _conflicts(_price_conflicts, _PRICE_ORDER, tuple(values))
    rest = read_list(catalog, prices, values, first, identity=_of_prices(identity))
    total = listing.total + rest.total
    if listing.next_cursor is not None or (room == 0 and not rest.total):
        return replace(listing, total=total)
    if room == 0:
        before_all = write_cursor(_of_prices(identity), catalog.snapshot.revision, [""] * len(_PRICE_ORDER))
        return replace(listing, next_cursor=before_all, total=total)
    return Listing(items=[*listing.items, *rest.items], next_cursor=rest.next_cursor, total=total)


def _find_price_conflicts(
    catalog: Catalog, values: Mapping[str, str], search: ConflictSearch, identity: str
) -> Listing:
    """Find a page of prices, which come after all facts unless the field of prices is asked for."""
    prices = _conflicts(_price_conflicts, _PRICE_ORDER, tuple(values))
    listing = read_list(catalog, prices, values, search, identity=_of_prices(identity))
    if search.field is not None:
        return listing
    facts, first = _conflicts(_fact_conflicts, _FACT_ORDER, tuple(values)), search.model_copy(update={"cursor": None})
    before = read_list(catalog, facts, values, first, identity=identity)
    return replace(listing, total=listing.total + before.total)


def _of_prices(identity: str) -> str:
    return f"prices {identity}"


@lru_cache(maxsize=8)
def _conflicts(query: Callable[[], Select[Any]], order: Sequence[str], filters: tuple[str, ...]) -> ListStatements:
    columns = query().selected_columns

    def build() -> Select[Any]:
        return query().where(*(columns[name] == _bind(name) for name in filters))

    return ListStatements(build, order)


_FACT_ORDER = ("kind", "subject", "field", "source_id")
_PRICE_ORDER = ("subject", *_OF_PRICES, "source_id")


def conflicts_query() -> Select[Any]:
    """Return the query of all values that dispute the accepted one, in the order of the list."""
    conflict = union_all(_fact_conflicts(), _price_conflicts()).subquery("conflict").c
    columns = (func.nullif(field, "").label(field.name) if field.name in _OF_PRICES else field for field in conflict)
    order = (*_FACT_ORDER[:3], *_OF_PRICES, "source_id")
    return select(*columns).order_by(conflict.kind == "price", *(conflict[name] for name in order))


@lru_cache(maxsize=1)
def _fact_conflicts() -> Select[Any]:
    """Select the facts that dispute accepted ones."""
    accepted = FACT.alias("accepted")
    same = and_(*(FACT.c[name] == accepted.c[name] for name in ("kind", "subject", "field")))
    return (
        select(
            *(FACT.c[name] for name in ("kind", "subject", "field")),
            *(literal_column("''", String).label(name) for name in _OF_PRICES),
            FACT.c.unit,
            func.coalesce(SIZE.c.name, FACT.c.subject).label("name"),
            func.coalesce(accepted.c.corrected_value, accepted.c.value).label("accepted_value"),
            accepted.c.source_id.label("accepted_source_id"),
            func.coalesce(FACT.c.corrected_value, FACT.c.value).label("value"),
            *(FACT.c[name] for name in ("raw", "reason", "file", "line", "source_id")),
            *about(SOURCE),
        )
        .join_from(FACT, accepted, and_(same, accepted.c.verdict == "accepted"))
        .join(SOURCE, SOURCE.c.id == FACT.c.source_id)
        .join(SIZE, and_(FACT.c.kind == "size", SIZE.c.key == FACT.c.subject), isouter=True)
        .where(FACT.c.verdict == "disputed")
    )


@lru_cache(maxsize=1)
def _price_conflicts() -> Select[Any]:
    """Select the disputed prices that do not count, each with the one that does: that of the list seen last."""
    file, run = table_of(PriceFile), PRICE.c
    of_accepted, better = PRICE.alias("accepted"), PRICE.alias("better").c
    accepted = of_accepted.c
    of_offer = [accepted[name] == run[name] for name in SERIES]
    seen_later = better.seen_until > accepted.seen_until
    is_better = or_(seen_later, and_(better.seen_until == accepted.seen_until, better.source_id < accepted.source_id))
    beaten = exists().where(*(better[name] == accepted[name] for name in SERIES), better.disputed.is_(True), is_better)
    joined = (
        PRICE.join(of_accepted, and_(*of_offer, accepted.disputed.is_(True), ~beaten))
        .join(SOURCE, SOURCE.c.id == run.source_id)
        .join(SIZE, SIZE.c.key == run.size_key)
        .join(file, file.c.id == run.file_id, isouter=True)
    )
    usd, accepted_usd = (usd_text(usd_of(observed.nano_usd_per_hour)) for observed in (run, accepted))
    reason = case(
        (accepted.seen_until > run.seen_until, literal("the accepted price was seen later: ")),
        else_=literal("the accepted price is by the list that is first by name, of the same day: "),
    )
    return (
        select(
            literal_column("'price'", String).label("kind"),
            run.size_key.label("subject"),
            literal_column(f"'{PRICE_FIELD}'", String).label("field"),
            *(run[name] for name in _OF_PRICES),
            literal_column("'USD/h'", String).label("unit"),
            SIZE.c.name,
            accepted_usd.label("accepted_value"),
            accepted.source_id.label("accepted_source_id"),
            usd.label("value"),
            usd.label("raw"),
            (reason + cast(accepted.seen_until, String) + ", this one " + cast(run.seen_until, String)).label("reason"),
            func.coalesce(file.c.file, "").label("file"),
            cast(null(), Integer).label("line"),
            run.source_id,
            *about(SOURCE),
        )
        .select_from(joined)
        .where(run.disputed.is_(True), run.nano_usd_per_hour != accepted.nano_usd_per_hour)
    )


def about(source: FromClause) -> list[ColumnElement[Any]]:
    """Return what is shown of a source beside what it states."""
    return [source.c[name].label(f"source_{name}") for name in ("title", "kind", "url", "published_on")]


# Refused prices

REFUSED = table_of(RefusedPrice)


class RefusedPriceSearch(PageParams):
    """Which refused prices."""

    size: PlainText | None = optional("Of this size, in any spelling.", "e96as_v5")
    region: Annotated[PlainText, AfterValidator(RegionCode)] | None = optional("In this region.", "eastus")
    source: PlainText | None = optional("Of this source, by its id.", "karpenter-azure-prices")
    rule: Rule | None = optional("By this rule.", "equals_windows")


@short
def find_refused_prices(catalog: Catalog, search: RefusedPriceSearch) -> Listing:
    """Find one page of the prices that failed a check; raises BadQuery for an unknown size, region or source."""
    given = search.model_dump(include={"size", "region", "source", "rule"}, exclude_none=True)
    values = {_REFUSED_FILTERS[name]: value for name, value in given.items()}
    if search.region is not None:
        check_regions(catalog.snapshot.regions, "region", (search.region,))
    if search.size is not None:
        try:
            (values["size_key"],) = get_size_keys(catalog, (search.size,), catalog.snapshot.series)
        except NotFound as unknown:
            raise BadQuery("size", search.size, unknown.of_value("GET /sizes lists them")) from None
    if search.source is not None:
        check_source(catalog, search.source)
    identity = f"refused {search.model_dump_json(exclude=search.page_param_names())}"
    return read_list(catalog, _refused_prices(tuple(values)), values, search, identity=identity).without("size_key")


_REFUSED_FILTERS = {"size": "size_key", "region": "region", "source": "source_id", "rule": "rule"}


@lru_cache(maxsize=16)
def _refused_prices(filters: tuple[str, ...]) -> ListStatements:
    def build() -> Select[Any]:
        return refused_prices_query().order_by(None).where(*(REFUSED.c[name] == _bind(name) for name in filters))

    return ListStatements(build, [column.name for column in REFUSED.primary_key])


def refused_prices_query() -> Select[Any]:
    """Return the query of all refused prices, in the order of the list."""
    names = [column.name for column in REFUSED.primary_key if column.name != "size_key"]
    columns = (*names, "seen_until", "rule", "evidence")
    usd = cast(usd_of(REFUSED.c.nano_usd_per_hour), Double).label("usd_per_hour")
    return (
        select(SIZE.c.name.label("size"), REFUSED.c.size_key, *(REFUSED.c[name] for name in columns), usd)
        .join_from(REFUSED, SIZE, SIZE.c.key == REFUSED.c.size_key)
        .order_by(*REFUSED.primary_key)
    )


_availability = table_of(Availability)


class AvailabilitySearch(PageParams):
    """Which regions of a size."""

    region: RegionSet = several("This region; any of several.", "eastus")


@short
def find_availability(catalog: Catalog, name: str, search: AvailabilitySearch) -> Listing:
    """Find one page of the regions that have a size; raises NotFound for the size, BadQuery for a region."""
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    check_regions_of_sizes(catalog, catalog.snapshot.regions, (key,), search.region)
    values = {"size": key} | ({"regions": orjson.dumps(search.region).decode()} if search.region else {})
    identity = f"{key} {search.model_dump_json(exclude=search.page_param_names())}"
    listing = read_list(catalog, _regions_of(some=bool(search.region)), values, search, identity=identity)
    return replace(listing, items=[{**item, **_zones_of(item["zones"])} for item in listing.items])


def _zones_of(stored: str) -> dict[str, Any]:
    known = stored != UNKNOWN_ZONES
    return {"zones": stored.split() if known else [], "zones_known": known}


@cache
def _regions_of(*, some: bool) -> ListStatements:
    """Return the list of the regions that have the size `size`, or of those among `regions`."""
    table = _availability.c

    def build() -> Select[Any]:
        query = (
            select(table.region, table.zones, SOURCE.c.published_on.label("as_of"), table.source_id)
            .join_from(_availability, SOURCE, SOURCE.c.id == table.source_id)
            .where(table.size_key == bindparam("size", type_=String))
        )
        return query.where(is_listed(table.region, bindparam("regions", type_=String))) if some else query

    return ListStatements(build, ("region", "source_id"), short=True)


@short
def find_region_names(catalog: Catalog) -> Mapping[str, str]:
    """Return the name of every region by its code, in the order of names."""
    return catalog.keep("region names", lambda: dict(catalog.fetch(BoundStatement(_REGION_NAMES, {}))))


def find_currencies(catalog: Catalog) -> Sequence[str]:
    """Return the currencies that prices can be shown in: US dollars, the euro, then those with a rate, by code."""

    def ask() -> Sequence[str]:
        rated = [code for (code,) in catalog.fetch(BoundStatement(_CURRENCIES, {}))]
        return [USD, *([EUR] if rated else []), *(code for code in rated if code not in (USD, EUR))]

    return catalog.keep("currencies", ask)


def find_providers(catalog: Catalog) -> Sequence[str]:
    """Return the clouds that have sizes, by id."""
    return catalog.keep("providers", lambda: [cloud for (cloud,) in catalog.fetch(BoundStatement(_PROVIDERS, {}))])


_region, _currency = table_of(Region).c, table_of(ExchangeRate).c.currency
_REGION_NAMES = Statement(lambda: select(_region.code, _region.name).order_by(_region.name), short=True)
_CURRENCIES = Statement(lambda: select(_currency).distinct().order_by(_currency), short=True)
_PROVIDERS = Statement(lambda: select(_size.provider).distinct().order_by(_size.provider))

_FLAGS = {"true": "yes", "false": "no"}


def find_disputing_sources(catalog: Catalog, names: Sequence[str]) -> Mapping[str, list[tuple[str, str]]]:
    """Return, by name of a size, its disputed fields with the value that each source gives, the accepted one first.

    Each is a field and a text: `accepted 256 by ND family; 128 by Notes on ND`.
    """
    keys = key_parameters([size_key(name) for name in names])
    rows = catalog.fetch(BoundStatement(_disputing(), keys)) if names else ()
    said: dict[str, dict[str, dict[str, list[str]]]] = {name: {} for name in names}
    for name, field, stated, _verdict, title in rows:
        said[name].setdefault(field, {}).setdefault(stated, []).append(title)
    return {
        name: [
            (
                field,
                "; ".join(
                    f"{_FLAGS.get(stated, stated)} by {', '.join(dict.fromkeys(titles))}"
                    for stated, titles in values.items()
                ),
            )
            for field, values in fields.items()
        ]
        for name, fields in said.items()
    }


@cached_statement(1, short=True)
def _disputing() -> Select[Any]:
    """Build the statement of what sources say of the disputed fields of the sizes of KEYS."""
    fact, source, size = FACT.c, SOURCE.c, SIZE.c
    disputed = select(fact.subject, fact.field).where(fact.kind == "size", fact.verdict == "disputed").subquery()
    value = func.coalesce(fact.corrected_value, fact.value).label("value")
    return (
        select(size.name, fact.field, value, fact.verdict, source.title)
        .join_from(SIZE, FACT, (fact.kind == "size") & (fact.subject == size.key))
        .join(SOURCE, source.id == fact.source_id)
        .where(
            is_listed(size.key, KEYS),
            select(disputed).where(disputed.c.subject == fact.subject, disputed.c.field == fact.field).exists(),
        )
        .order_by(size.name, fact.field, fact.verdict, source.title)
    )
