"""Read what is known besides sizes and prices: facts, conflicts between them, availability, small tables, names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator

from app.catalog.fields import FIELDS, SIZE_FIELDS, SIZE_FLAGS
from app.catalog.in_force import SERIES
from app.catalog.names import UNKNOWN_ZONES, RegionCode, escape_like, size_key
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
from app.catalog.queries.price_scope import KEYS, PRICE_KEY, key_parameters
from app.catalog.queries.snapshot import Catalog, short
from app.catalog.statements import Statement
from app.catalog.tables import select_all
from app.db.dialects import Dialect, all_of, columns_of, parameters
from app.db.statements import BoundStatement, pad_keys, to_dicts
from app.errors import BadQuery, NotFound

VERDICT_RANK = "case fact.verdict when 'accepted' then 0 when 'agrees' then 1 else 2 end"


def about(source: str) -> str:
    """Write what is shown of a source beside what it states."""
    return ", ".join(f"{source}.{name} as source_{name}" for name in ("title", "kind", "url", "published_on"))


Table = Literal["series", "gpu", "region", "source", "revision"]
"""A small table that is listed as it is."""


def find_rows(catalog: Catalog, table: Table, page: PageParams, *, newest_first: bool = False) -> Listing:
    """Find one page of a small table in the order of its primary key, ascending or descending."""
    listing = read_list(catalog, _rows_of(table, newest_first), {}, page, identity=table)
    return replace(listing, items=[split_lists(row) for row in listing.items])


@lru_cache(maxsize=16)
def _rows_of(table: Table, newest_first: bool) -> ListStatements:
    key = {"region": "code", "revision": "number"}.get(table, "id")
    kind = int if table == "revision" else str
    return ListStatements(lambda _sql: select_all(table), {key: kind}, descending=newest_first, short=True)


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


_SERIES = Statement(f"{select_all('series')} where id = :series")
_SIZES_OF_SERIES = Statement(f"select name, {', '.join(SIZE_FLAGS)} from size where series_id = :series order by name")
_BENCHMARKS = Statement(f"{select_all('benchmark')} where series_id = :series order by id")


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
    searched = "lower(id || ' ' || name || ' ' || coalesce(hf_repo, '') || ' ' || coalesce(aliases, ''))"
    conditions = all_of(*(f"{searched} like {word} escape '\\'" for word in parameters("word", words)))
    return ListStatements(lambda _sql: f"{select_all('model')} where {conditions}", {"id": str})


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
    shown = columns_of("fact", (*stated, "raw", "note", "written_as", "file", "line", "source_id"))
    return ListStatements(
        lambda sql: (
            f"""
            select {shown}, {about("source")}, {VERDICT_RANK} as rank
            from fact join source on source.id = fact.source_id
            where fact.kind = 'size' and fact.subject = :subject
            {f"and {sql.is_listed('fact.field', 'fields')}" if some else ""}"""
        ),
        {"field": str, "rank": int, "source_id": str},
        short=True,
    )


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
    return listing


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
def _conflicts(query: Callable[[Dialect], str], order: Sequence[str], filters: tuple[str, ...]) -> ListStatements:
    conditions = all_of(*(f"{name} = :{name}" for name in filters))
    return ListStatements(
        lambda sql: f"select * from ({query(sql)}) as conflict where {conditions}", dict.fromkeys(order, str)
    )


_FACT_ORDER = ("kind", "subject", "field", "source_id")
_PRICE_ORDER = ("subject", *_OF_PRICES, "source_id")


def conflicts_query(sql: Dialect) -> str:
    """Return the query of all values that dispute the accepted one, in the order of the list."""
    return f"""
        select * from ({_fact_conflicts(sql)} union all {_price_conflicts(sql)}) as conflict
        order by kind = 'price', kind, subject, field, {", ".join(_OF_PRICES)}, source_id"""


def _fact_conflicts(_sql: Dialect) -> str:
    """Select the facts that dispute accepted ones."""
    return f"""
        select fact.kind, fact.subject, fact.field, {", ".join(f"null as {name}" for name in _OF_PRICES)}, fact.unit,
            coalesce(size.name, fact.subject) as name,
            coalesce(accepted.corrected_value, accepted.value) as accepted_value,
            accepted.source_id as accepted_source_id, coalesce(fact.corrected_value, fact.value) as value,
            fact.raw, fact.reason, fact.file, fact.line, fact.source_id, {about("source")}
        from fact
        join fact as accepted
            on accepted.kind = fact.kind and accepted.subject = fact.subject and accepted.field = fact.field
            and accepted.verdict = 'accepted'
        join source on source.id = fact.source_id
        left join size on fact.kind = 'size' and size.key = fact.subject
        where fact.verdict = 'disputed'"""


def _price_conflicts(sql: Dialect) -> str:
    """Select the disputed prices that do not count, each with the one that does: that of the list seen last."""
    usd, accepted_usd = (sql.usd_text(sql.usd_of(f"{run}.nano_usd_per_hour")) for run in ("price", "accepted"))
    return f"""
        select 'price' as kind, price.size_key as subject, '{PRICE_FIELD}' as field, {columns_of("price", _OF_PRICES)},
            'USD/h' as unit, size.name, {accepted_usd} as accepted_value, accepted.source_id as accepted_source_id,
            {usd} as value, {usd} as raw,
            case
                when accepted.seen_until > price.seen_until then 'the accepted price was seen later: '
                else 'the accepted price is by the list that is first by name, of the same day: '
            end || cast(accepted.seen_until as text) || ', this one ' || cast(price.seen_until as text) as reason,
            coalesce(price_file.file, '') as file, cast(null as integer) as line, price.source_id, {about("source")}
        from price
        join price as accepted
            on {_same("accepted", "price")} and {sql.is_true("accepted.disputed")} and not exists (
                select 1 from price as better
                where {_same("better", "accepted")} and {sql.is_true("better.disputed")} and (
                    better.seen_until > accepted.seen_until
                    or better.seen_until = accepted.seen_until and better.source_id < accepted.source_id
                )
            )
        join source on source.id = price.source_id
        join size on size.key = price.size_key
        left join price_file on price_file.id = price.file_id
        where {sql.is_true("price.disputed")} and price.nano_usd_per_hour <> accepted.nano_usd_per_hour"""


def _same(offer: str, other: str) -> str:
    return " and ".join(f"{offer}.{name} = {other}.{name}" for name in SERIES)


# Refused prices


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
        if search.region is not None:
            check_regions_of_sizes(catalog, catalog.snapshot.regions, (values["size_key"],), (search.region,))
    if search.source is not None:
        check_source(catalog, search.source)
    identity = f"refused {search.model_dump_json(exclude=search.page_param_names())}"
    return read_list(catalog, _refused_prices(tuple(values)), values, search, identity=identity).without("size_key")


_REFUSED_FILTERS = {"size": "size_key", "region": "region", "source": "source_id", "rule": "rule"}


@lru_cache(maxsize=16)
def _refused_prices(filters: tuple[str, ...]) -> ListStatements:
    shown = columns_of("refused_price", (*PRICE_KEY, "seen_until", "rule", "evidence"))
    conditions = all_of(*(f"refused_price.{name} = :{name}" for name in filters))
    return ListStatements(
        lambda sql: (
            f"""
            select size.name as size, {shown},
                cast({sql.usd_of("refused_price.nano_usd_per_hour")} as double precision) as usd_per_hour
            from refused_price join size on size.key = refused_price.size_key
            where {conditions}"""
        ),
        {name: date if name in ("valid_from", "known_from") else str for name in PRICE_KEY},
    )


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
    return ListStatements(
        lambda sql: (
            f"""
            select region, zones, source.published_on as as_of, source_id
            from availability join source on source.id = source_id
            where size_key = :size {f"and {sql.is_listed('region', 'regions')}" if some else ""}"""
        ),
        {"region": str, "source_id": str},
        short=True,
    )


@short
def find_region_names(catalog: Catalog) -> Mapping[str, str]:
    """Return the name of every region by its code, in the order of names."""
    return catalog.keep("region names", lambda: dict(catalog.fetch(BoundStatement(_REGION_NAMES))))


def find_currencies(catalog: Catalog) -> Sequence[str]:
    """Return the currencies that prices can be shown in: US dollars, the euro, then those with a rate, by code."""

    def ask() -> Sequence[str]:
        rated = [code for (code,) in catalog.fetch(BoundStatement(_CURRENCIES))]
        return [USD, *([EUR] if rated else []), *(code for code in rated if code not in (USD, EUR))]

    return catalog.keep("currencies", ask)


def find_providers(catalog: Catalog) -> Sequence[str]:
    """Return the clouds that have sizes, by id."""
    return catalog.keep("providers", lambda: [cloud for (cloud,) in catalog.fetch(BoundStatement(_PROVIDERS))])


_REGION_NAMES = Statement("select code, name from region order by name", short=True)
_CURRENCIES = Statement("select distinct currency from exchange_rate order by currency", short=True)
_PROVIDERS = Statement("select distinct provider from size order by provider")

_FLAGS = {"true": "yes", "false": "no"}


def find_disputing_sources(catalog: Catalog, names: Sequence[str]) -> Mapping[str, list[tuple[str, str]]]:
    """Return, by name of a size, its disputed fields with the value that each source gives, the accepted one first.

    Each is a field and a text: `accepted 256 by ND family; 128 by Notes on ND`.
    """
    keys = key_parameters([size_key(name) for name in names])
    rows = catalog.fetch(BoundStatement(_DISPUTING, keys)) if names else ()
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


_DISPUTING = Statement(
    lambda sql: (
        f"""
        select size.name, fact.field, coalesce(fact.corrected_value, fact.value) as value, fact.verdict, source.title
        from size
        join fact on fact.kind = 'size' and fact.subject = size.key
        join source on source.id = fact.source_id
        where {sql.is_listed("size.key", KEYS)} and exists (
            select 1 from fact as other
            where other.kind = 'size' and other.verdict = 'disputed'
                and other.subject = fact.subject and other.field = fact.field
        )
        order by size.name, fact.field, fact.verdict, source.title"""
    ),
    short=True,
)
"""What sources say of the disputed fields of the sizes of KEYS."""
