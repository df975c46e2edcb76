"""Search sizes, read whole ones by their keys, and render each as JSON text.

Rows become JSON text without objects: `size_json` and `offer` hold the size and its offer as JSON that was written at
ingest. The statements are in `app.catalog.queries.size_sets`.

"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import islice
from typing import Any, TypeVar

import orjson

from app.catalog.fields import GPU_FIELDS
from app.catalog.projections import NO_OFFER_JSON, OFFER_JSON_FIELDS, offer_json
from app.catalog.providers import AZURE
from app.catalog.queries.exchange_rates import CurrencyRate, convert_prices, exchange_rate_json, find_exchange_rate
from app.catalog.queries.filters import check_sort, sort_names, to_sort_keys
from app.catalog.queries.lookups import (
    check_cloud,
    check_regions,
    check_word,
    clouds_of_regions,
    get_size_keys,
    place_regions,
    resolve_gpus,
    resolve_series,
)
from app.catalog.queries.pagination import CursorPosition, ensure_same_revision, read_position, write_cursor
from app.catalog.queries.params import (
    WORD_FILTERS,
    DatedSelection,
    OfferParams,
    SizeParams,
    SizeSearch,
    SizeSelection,
    check_days,
)
from app.catalog.queries.price_scope import (
    KEYS,
    PriceScope,
    PriceScopeKey,
    key_parameters,
    price_parameters,
    status_of,
)
from app.catalog.queries.size_sets import (
    IS_SET,
    NATURAL_NAME,
    SizeQuestion,
    SortColumn,
    place_after,
    rows_statement,
)
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, short_if
from app.catalog.statements import cached_statement
from app.db.dialects import SQLITE, Dialect, columns_of
from app.db.statements import BoundStatement, Row, Rows
from app.errors import BadQuery, CatalogChanged, NotFound
from app.nearest import join_with_or

_MAX_NAMED = 6
"""The most regions a text names; more are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPrice:
    """Explains an answer without prices; `known_in` are the regions that have some."""

    os: str
    purchase: str
    known_in: tuple[str, ...]
    detail: str


def explain_no_price(catalog: Catalog, asked: OfferParams, *, provider: str | None = None) -> NoPrice | None:
    """Find where prices are known if no size, or none of a provider, has one in the requested regions; None if any has.

    Also None with `known_at`, for which there are no totals.
    """
    if getattr(asked, "known_at", None) is not None:
        return None
    day = getattr(asked, "as_of", None) or catalog.today
    places = catalog.snapshot.regions
    # Only regions of the same clouds are a way out.
    providers = {*getattr(asked, "provider", ()), *filter(None, (provider,))} or {
        places[code].provider for code in asked.region
    }
    regions = {code for code, place in places.items() if not providers or place.provider in providers}

    def find_regions(os: str) -> tuple[str, ...]:
        values = {"os": os, "purchase": asked.purchase, "day": day.isoformat()}
        rows = catalog.fetch(BoundStatement(_regions_statement(), values))
        return tuple(region for (region,) in rows if region in regions)

    known_in = find_regions(asked.os)
    if set(asked.region or known_in) & set(known_in):
        return None
    if day != catalog.today:
        rest = f" on {day}"
    elif asked.os == "windows" and asked.purchase.startswith(("reserved", "savings")):
        rest = "; it covers the machine and not the licence of Windows"
        priced = set(find_regions("linux"))
        rest += ": os=linux has its price" if priced & set(asked.region or priced) else ""
    elif not providers or AZURE.id in providers:
        rest = f"; `vmsizes refresh azure-prices` brings {'the others' if known_in else 'them'}"
    else:
        rest = ""
    detail = _detail(asked, known_in, len(regions)) + rest
    return NoPrice(os=asked.os, purchase=asked.purchase, known_in=known_in, detail=detail)


@cached_statement(1, short=True)
def _regions_statement(sql: Dialect) -> str:
    """Write the statement of the regions with a price in force on a day."""
    day = sql.day("day")
    return f"""select region from price_total where os = :os and purchase = :purchase
        and since <= {day} and (until is null or until > {day}) and in_force > 0 order by region"""


def _detail(asked: OfferParams, known_in: Sequence[str], regions: int) -> str:
    """Return where prices are known, in words: `linux spot: no price is known in eastus, only in westeurope`."""
    where = f"in {join_with_or(asked.region)}" if 0 < len(asked.region) <= _MAX_NAMED else "in any region"
    if len(asked.region) > _MAX_NAMED:
        where = f"in any of the {len(asked.region)} regions"
    if not known_in:
        elsewhere = ", nor in any other region" if asked.region else ""
    elif len(known_in) <= _MAX_NAMED:
        elsewhere = f", only in {', '.join(known_in)}"
    else:
        elsewhere = f", but in {len(known_in)} of {regions} regions"
    return f"{asked.os} {asked.purchase}: no price is known {where}{elsewhere}"


STATUS_AND_OFFER_FIELDS = ("status", *OFFER_JSON_FIELDS, "price_age_days")
"""The fields of a size after those of its own JSON, in order."""

RENDERED_COLUMNS = 3
"""How many columns a row is rendered from."""


def render_size(row: Row, today: date) -> str:
    """Render a size as JSON text from a row that begins with its JSON, its status and its offer (None for no offer)."""
    size_json, status, offer = row[:RENDERED_COLUMNS]
    offer = offer or NO_OFFER_JSON
    # The JSON of an offer ends with `"price_as_of":"2026-09-01"}`, or with null.
    age = age_days(offer[-12:-2], today) if offer[-2] == '"' else "null"
    return f'{size_json[:-1]},"status":"{status}",{offer[1:-1]},"price_age_days":{age}}}'


@lru_cache(maxsize=4096)
def age_days(day: str, today: date) -> int:
    """Return how many days have passed since an ISO day; cached, as there are only as many days as price lists."""
    return (today - date.fromisoformat(day)).days


def render_converted_size(row: Row, today: date, rate: CurrencyRate) -> str:
    """Render a size as `render_size` does, with its prices in the currency of the rate at the end."""
    size = render_size(row, today)
    converted = convert_prices(json.loads(size, parse_float=Decimal), rate)
    return f'{size[:-1]},"converted":{orjson.dumps(converted, default=float).decode()}}}'


T = TypeVar("T")
SelectionT = TypeVar("SelectionT", bound=SizeSelection)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPage:
    """A page of sizes, each as JSON text; the cursor of the next page (None at the end); how many there are in all.

    `exchange_rate` is that of a page that has its prices in another currency, too; `cursor` is that of a page that was
    found by its offset. `no_price` is there where no size has a price. `unknown` counts sizes that may match, by the
    unknown figure of theirs that a filter is on.
    """

    items: list[str]
    next_cursor: str | None
    total: int
    exchange_rate: CurrencyRate | None = None
    cursor: str | None = None
    no_price: NoPrice | None = None
    unknown: Mapping[str, int] = field(default_factory=dict)


def render_page(page: JsonPage) -> str:
    """Render a page of sizes."""
    cursor, rate = orjson.dumps(page.next_cursor).decode(), page.exchange_rate
    end = f',"exchange_rate":{exchange_rate_json(rate)}' if rate is not None else ""
    if page.no_price is not None:
        end += f',"no_price":{orjson.dumps(page.no_price).decode()}'
    total = f'"total":{page.total},"unknown":{orjson.dumps(page.unknown).decode()}'
    return f'{{"items":[{",".join(page.items)}],"next_cursor":{cursor},{total}{end}}}'


@short_if(lambda search: search.is_quick)
def find_sizes(catalog: Catalog, search: SizeSearch, *, offset: int = 0, natural: bool = False) -> JsonPage:
    """Find one page of a search; raises BadQuery for a name that the catalog does not have, and CursorGone.

    `offset` skips sizes: pages for people are numbered, which cursors are not. With `natural` a list by name has D2
    before D16, as people read it; cursors are always of the order of letters.
    """
    check_days(search, catalog.today)
    search = normalize(search, catalog.snapshot)
    priced_on = search.as_of or catalog.today
    rate = find_exchange_rate(catalog, search.currency, priced_on)
    identity = search.model_dump_json(exclude=search.page_param_names())
    if search.names_a_day:
        identity = f"{identity} {catalog.today}"
    check_sort(search.sort)
    position = None
    if search.cursor:
        scope = PriceScope(sql=SQLITE, os=search.os, purchase=search.purchase)
        position = read_position(search.cursor, identity, to_sort_keys(search.sort, scope))
        ensure_same_revision(catalog, position)
    question = SizeQuestion(catalog, search)
    places, total, columns = _first_places(question, search, position, offset, natural=natural)
    shown, more = places[offset:][: search.limit], len(places) > offset + search.limit
    rows = _read_rows(catalog, question, shown)

    def cursor_at(place: int) -> str:
        return write_cursor(identity, catalog.snapshot.revision, [column.values[place] for column in columns])

    if rate is None:
        items = [render_size(row, catalog.today) for row in rows]
    else:
        items = [render_converted_size(row, catalog.today, rate) for row in rows]
    offers = (row[RENDERED_COLUMNS - 1] for row in rows)
    has_prices = any(offer is not None and '"usd_per_hour":null' not in offer for offer in offers)
    return JsonPage(
        items=items,
        next_cursor=cursor_at(shown[-1]) if more else None,
        total=total,
        exchange_rate=rate,
        cursor=cursor_at(places[offset - 1]) if offset and shown else None,
        no_price=None if has_prices else explain_no_price(catalog, search),
        unknown={name: sizes.bit_count() for name, sizes in question.undecided().items()},
    )


@short_if(lambda selection, _names: not selection.names_a_day)
def read_sizes(catalog: Catalog, selection: DatedSelection, names: Sequence[str]) -> list[str]:
    """Return sizes as JSON text at the prices of a selection. Those without an offer are left out."""
    question = SizeQuestion(catalog, normalize(selection, catalog.snapshot))
    keys = get_size_keys(catalog, names, catalog.snapshot.series)
    offered = question.offered()
    places = [place for place in map(question.sets.place_of, keys) if offered >> place & 1]
    return [render_size(row, catalog.today) for row in _read_rows(catalog, question, places)]


def _first_places(
    question: SizeQuestion, search: SizeSearch, position: CursorPosition | None, offset: int, *, natural: bool
) -> tuple[list[int], int, list[SortColumn]]:
    """Find the places of a page, with those that its offset skips and the one behind it; the total; the sort keys."""
    matching = question.found()
    names = sort_names(search.sort)
    columns = [question.sort_column(name) for name in names]
    if natural and names[0].removeprefix("-") == "name":
        names = [names[0].replace("name", NATURAL_NAME)]
    order = question.order(names)
    start = place_after(order, columns, position.values) if position is not None else 0
    flags = question.sets.flags(matching)
    listed = (place for place in islice(order, start, None) if flags[place] == IS_SET)
    return list(islice(listed, offset + search.limit + 1)), matching.bit_count(), columns


def _read_rows(catalog: Catalog, question: SizeQuestion, places: Sequence[int]) -> Rows:
    """Read the rows that sizes are rendered from, unless they are kept; raises CatalogChanged."""
    kept = catalog.snapshot.rows.by_scope.get(question.priced_by, {})
    keys = [question.sets.keys[place] for place in places]
    missing = [key for key in keys if key not in kept]
    read: dict[str, Row] = {}
    if missing:
        read = {row[0]: row[1:] for row in catalog.fetch(question.rows_of(missing))}
        if len(read) != len(missing):
            raise CatalogChanged
        catalog.when_confirmed.append(partial(catalog.snapshot.rows.add, question.priced_by, read))
    return [read[key] if key in read else kept[key] for key in keys]


@short_if(lambda _name, params: not params.names_a_day)
def find_size(catalog: Catalog, name: str, params: SizeParams) -> str:
    """Return one size by any of its names as JSON text, with its cheapest on-demand Linux price; raises NotFound."""
    check_days(params, catalog.today)
    everywhere = DatedSelection(as_of=params.as_of, known_at=params.known_at)
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    statement = rows_statement(PriceScopeKey.of(everywhere, catalog.snapshot.rules), short=True)
    values = key_parameters([key]) | price_parameters(everywhere, catalog.today)
    rows = catalog.fetch(BoundStatement(statement, values))
    if not rows:  # an ingest removed it after its name was looked up
        raise NotFound("size", name)
    row = rows[0][1:]
    rate = find_exchange_rate(catalog, params.currency, params.as_of or catalog.today)
    if rate is None:
        return render_size(row, catalog.today)
    size = render_converted_size(row, catalog.today, rate)
    return f'{size[:-1]},"exchange_rate":{exchange_rate_json(rate)}}}'


def normalize(selection: SelectionT, snapshot: CatalogSnapshot) -> SelectionT:
    """Replace names of series and GPUs by those of the catalog.

    Raises BadQuery for a name that the catalog lacks, and for what no size can meet together.
    """
    check_regions(snapshot.regions, "region", selection.region)
    check_regions(snapshot.regions, "available_in", selection.available_in)
    providers = {snapshot.regions[code].provider for code in selection.available_in}
    if len(providers) > 1:
        detail = f"no size is in regions of {' and of '.join(sorted(providers))}"
        raise BadQuery("available_in", ",".join(selection.available_in), detail)
    check_cloud(snapshot.regions, "available_in", selection.available_in, selection.provider)
    sellers = {snapshot.regions[code].provider for code in selection.region}
    than = f"and region={','.join(selection.region)} {clouds_of_regions(snapshot.regions, selection.region)}"
    check_cloud(snapshot.regions, "available_in", selection.available_in, sellers, than)
    selection = place_regions(selection, snapshot.regions, by_provider=bool(selection.region))
    zones = getattr(selection, "min_zones", None)
    if zones is not None and len(selection.region) != 1:
        raise BadQuery("min_zones", zones, "needs exactly one region, whose zones are counted")
    for name in sorted(selection.model_fields_set):
        other = name.replace("max_", "min_", 1)
        most, least = getattr(selection, name), getattr(selection, other, None)
        if other != name and None not in (most, least) and most < least:
            raise BadQuery(name, most, f"must not be less than {other}={least}")
    for name in WORD_FILTERS:
        if (word := getattr(selection, name, None)) is not None:
            check_word(snapshot.words, name, word)
    # What the client did not give stays out of the model's set fields, by which active_filters goes.
    update: dict[str, Any] = {"series": resolve_series(snapshot.series, selection.series)} if selection.series else {}
    update |= {"gpu": resolve_gpus(snapshot.gpus, selection.gpu)} if selection.gpu else {}
    return selection.model_copy(update=update) if update else selection


GPU_FIGURES = tuple(
    name
    for name, field in GPU_FIELDS.items()
    if field.unit in ("TFLOPS", "TOPS") or name == "memory_bandwidth_gb_per_s"
)
"""Figures of one whole GPU: dense throughput, and the bandwidth of its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeDetails:
    """A size: its row as a list shows it (fractional numbers are Decimal), its exact GPUs, the figures of one GPU."""

    row: Mapping[str, Any]
    gpus: Fraction | None
    gpu: Mapping[str, float | None]


def find_size_details(catalog: Catalog, keys: Sequence[str], params: OfferParams) -> tuple[SizeDetails, ...]:
    """Find sizes by keys that exist, in the order of the keys; prices are null where there is no offer."""
    values = key_parameters(keys) | price_parameters(params, catalog.today)
    statement = _details_statement(PriceScopeKey.of(params, catalog.snapshot.rules))
    rows = catalog.fetch(BoundStatement(statement, values))
    details: dict[str, SizeDetails] = {}
    for key, size_json, status, offer, numerator, denominator, *figures in rows:
        details[key] = SizeDetails(
            row=json.loads(render_size((size_json, status, offer), catalog.today), parse_float=Decimal),
            gpus=Fraction(numerator, denominator) if denominator else None,
            gpu=dict(zip(GPU_FIGURES, figures, strict=True)),
        )
    return tuple(details[key] for key in keys)


@cached_statement(32, short=True)
def _details_statement(sql: Dialect, key: PriceScopeKey) -> str:
    scope = PriceScope.for_keys(sql, key)
    return f"""select size.key, size_doc.doc, {status_of(sql, "size")} as status,
        {offer_json(sql, scope.offer, scope.purchase)} as offer,
        size.gpu_count_numerator, size.gpu_count_denominator, {columns_of("gpu", GPU_FIGURES)}
        from size join size_doc on size_doc.size_key = size.key {scope.join_to_sizes()}
        left join gpu on gpu.id = size.gpu_id
        where {sql.is_listed("size.key", KEYS)}"""
