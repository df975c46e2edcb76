"""The page of a size: facts with their sources, prices and their history, regions, similar sizes, successors."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from app.catalog.fields import field_title
from app.catalog.names import RegionCode
from app.catalog.price_notes import price_note
from app.catalog.providers import AZURE
from app.catalog.purchases import Purchase
from app.catalog.queries.costs import BuySearch
from app.catalog.queries.exchange_rates import USD, CurrencyRate
from app.catalog.queries.lookups import check_regions
from app.catalog.queries.params import (
    PRICED_OS,
    Currency,
    DatedSelection,
    Day,
    Os,
    PlainText,
    SimilarSearch,
    SizeParams,
)
from app.catalog.queries.prices import PriceListing, PriceSearch, find_prices
from app.catalog.queries.provenance import AvailabilitySearch, FactSearch, find_availability, find_facts
from app.catalog.queries.sizes import find_size, find_sizes, read_sizes
from app.errors import NotFound
from app.questions import NoParams
from app.web.rendering import format_amount, path_segment, render_page
from app.web.retirements import find_successors
from app.web.serving import PRICE_NAMES, PageContent, PageRequest
from app.web.size_fields import Difference, group_facts, percent_from
from app.web.size_prices import azure_snippets, newest_first, price_chart, purchases_of, region_rows
from app.web.sizes_view import (
    COLUMNS,
    UNIT_TITLES,
    Cell,
    Column,
    ShownCurrency,
    SizesView,
    Unit,
    find_price_bar,
    heading_of,
    price_in,
    table,
)

if TYPE_CHECKING:
    from app.schemas.catalog import BuyPriceOut, SimilarOut
    from app.schemas.sizes import ExchangeRateOut

_MOST = 500
_SIMILAR = 6
_PEERS = 100
_BY_AMOUNTS = ("gpu_count", "vcpus", "memory_gib", "name")
_GPU_COLUMNS = ("price", "vcpus", "memory_gib", "gpu_model", "gpu_count", "gpu_memory_gib", "network_mbps", "region")
_CPU_COLUMNS = ("price", "vcpus", "memory_gib", "temp_disk_gib", "network_mbps", "uncached_disk_iops", "region")
_ENDING = frozenset({"retiring", "retired", "withdrawn"})


class SizeView(ShownCurrency):
    """How a size is shown: the prices of a day, system and currency, and the region of history and successors."""

    region: Annotated[PlainText, AfterValidator(RegionCode)] | None = Field(
        default=None, description="The region of the price, its history and successors; default: the cheapest."
    )
    os: Os = Field(default="linux", description=PRICED_OS)
    purchase: Purchase = Field(default="on_demand", description="How similar sizes and successors are paid for.")
    as_of: Day | None = Field(default=None, description="Prices in force on this day; default: today.")
    unit: Unit = Field(default="hour", description="The time that prices are for.")


async def render(request: PageRequest) -> str:
    """Render the page of a size; raises NotFound for its name."""
    view, name, run = request.params, request.names["name"], request.executor
    prices_of = PriceSearch(os=view.os, as_of=view.as_of, currency=view.converted_to, limit=_MOST)
    size_json, facts, prices, available, bar = await asyncio.gather(
        run.ask(find_size, name, SizeParams(as_of=view.as_of)),
        run.ask(find_facts, name, FactSearch(limit=_MOST)),
        run.ask(find_prices, name, prices_of),
        run.ask(find_availability, name, AvailabilitySearch(limit=_MOST)),
        run.ask(find_price_bar),
    )
    item = json.loads(size_json, parse_float=Decimal)
    await _check_regions(request, item["provider"], (view.region,) if view.region is not None else ())
    rate = prices.exchange_rate
    shown = price_in(view.unit, rate)
    regions = region_rows(prices.items, available.items, bar.regions, shown, view.purchase)
    priced = [row for row in regions if row.prices]
    lead = next((row for row in priced if row.code == view.region), next(iter(priced), None))
    region = lead.code if lead else None
    ending = [item["name"]] if item["status"] in _ENDING else []
    history, planned, today, series, similar = await asyncio.gather(
        _find_history(request, name, region),
        find_successors(request, ending, region),
        _find_prices_today(request, name, shown),
        _find_series(request, item),
        _find_similar(request, item, region, rate),
    )
    unit = f"{view.currency} {UNIT_TITLES[view.unit]}"
    in_force = next((row.prices for row in regions if row.code == region), {})
    listed = newest_first(history.items, in_force)
    history_title = f"Prices of {item['name']} in {bar.regions.get(region or '', region)}, {unit}"
    return render_page(
        request,
        "size.html",
        item=item,
        segment=path_segment(item["name"].lower()),
        price=lead.prices.get(view.purchase) if lead else None,
        facts=group_facts(facts.items, item),
        percent_from=percent_from,
        regions=regions,
        formulas=sorted({price["estimate"]["formula"] for price in prices.items if "estimate" in price}),
        purchases=purchases_of(regions) or ([view.purchase] if view.as_of else []),
        zones_as_of=max((row.zones_as_of for row in regions if row.zones_as_of and row.zones_known), default=None),
        available=available,
        region=region,
        region_title=bar.regions.get(region or "", region),
        wanted_region=bar.regions.get(view.region or "", view.region),
        history=listed,
        history_rows=len(history.items),
        history_total=history.total,
        history_title=history_title,
        chart=price_chart(listed, shown, unit, view.as_of or run.today()),
        today=today,
        year_ago=None if view.as_of else run.today() - timedelta(days=365),
        snippets=azure_snippets(item["name"], region, view.purchase) if item["provider"] == AZURE.id else {},
        series=series,
        similar=similar,
        peer_columns=_peer_columns(item),
        planned=planned.get(item["name"]),
        ending=ending,
        shown=shown,
        shown_text=lambda usd: format_amount(shown(usd)),
        rate=rate,
        price_unit=unit,
        bar=replace(bar, regions={row.code: bar.regions.get(row.code, row.code) for row in regions}),
    )


async def _check_regions(request: PageRequest, provider: str, codes: Sequence[str]) -> None:
    """Raise BadQuery for a region that there is not, with the nearest of the cloud of the size."""
    places = (await request.executor.snapshot()).regions
    of_cloud = {code: place for code, place in places.items() if place.provider == provider}
    check_regions(of_cloud, "region", [code for code in codes if code not in places])


async def _find_history(request: PageRequest, name: str, region: str | None) -> PriceListing:
    """Find the prices of a size in a region up to the day of the view; none without a region."""
    view = request.params
    if region is None:
        return PriceListing(items=[], next_cursor=None, total=0, exchange_rate=None)
    search = PriceSearch(region=(region,), os=view.os, as_of=view.as_of, history=True, limit=_MOST)
    return await request.executor.ask(find_prices, name, search)


async def _find_prices_today(request: PageRequest, name: str, shown: Callable[[Any], Decimal]) -> dict[str, Any]:
    """Find what a size costs today by region, to be beside the prices of a past day; nothing without one."""
    view = request.params
    if view.as_of is None:
        return {}
    search = PriceSearch(os=view.os, purchase=view.purchase, limit=_MOST)
    prices = await request.executor.ask(find_prices, name, search)
    return {row.code: row.prices[view.purchase] for row in region_rows(prices.items, [], {}, shown, view.purchase)}


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A size beside others, and how similar it is.

    Each cell has the difference from the size of the page, and the heading of its column.
    """

    item: Mapping[str, Any]
    cells: Sequence[tuple[Cell, Difference | None, str]]
    similar: "SimilarOut | None"

    def parts(self) -> list[tuple[str, str]]:
        """Return the parts of its distance: what each is of, and how much it adds."""
        terms = self.similar.terms if self.similar else []
        titles = {"gpu_class": "GPU", "gpu_count": "GPUs", "usd_per_hour": "Price in USD/h"}
        return [
            (titles.get(term.term) or field_title(term.term), f"{term.detail}, {term.contribution:.3f}")
            for term in terms
        ]


async def _find_series(request: PageRequest, item: Mapping[str, Any]) -> list[PeerRow]:
    """Find the sizes of the series of a size, the smallest first."""
    if item["series"] is None:
        return []
    regions = (request.params.region,) if request.params.region else ()
    view = _peers_view(
        request, series=(item["series"],), region=regions, sort=_BY_AMOUNTS, status=("any",), limit=_PEERS
    )
    page = await request.executor.ask(find_sizes, view.search())
    return _compare_peers(item, page.items, {}, view, page.exchange_rate)


async def _find_similar(
    request: PageRequest, item: Mapping[str, Any], region: str | None, rate: CurrencyRate | None
) -> list[PeerRow]:
    """Find the sizes that are most like one, in the region of the view if the size is sold there."""
    from app.services.compare import find_similar

    view = request.params
    regions = (region,) if region is not None and region == view.region else ()
    search = SimilarSearch(os=view.os, purchase=view.purchase, region=regions, limit=_SIMILAR)
    page = await request.executor.ask(find_similar, item["name"], search)
    similar = {peer.size: peer for peer in page.items}
    if not similar:
        return []
    listed = _peers_view(request, region=regions)
    texts = await request.executor.ask(read_sizes, listed.as_params(DatedSelection), (item["name"], *similar))
    return _compare_peers(item, texts, similar, listed, rate)


def _peers_view(request: PageRequest, **which: Any) -> SizesView:
    """Return the view of a list of sizes at the prices of the page."""
    view: SizeView = request.params
    prices = view.model_dump(include=set(PRICE_NAMES) - {"region"}) | ({"as_of": view.as_of} if view.as_of else {})
    return SizesView(**prices, **which)


def _compare_peers(
    item: Mapping[str, Any],
    texts: Sequence[str],
    similar: "Mapping[str, SimilarOut]",
    listed: SizesView,
    rate: CurrencyRate | None,
) -> list[PeerRow]:
    """Compare sizes, each as JSON text, with the size of the page, which is among them."""
    items = [json.loads(text, parse_float=Decimal) for text in texts]
    columns = _peer_columns(item)
    price = partial(listed.shown_price, rate=rate)
    own = next((peer for peer in items if peer["name"] == item["name"]), None)

    def difference(peer: Mapping[str, Any], column: Column) -> Difference | None:
        if own is None or not column.is_number:
            return None
        if column.kind == "price":
            return percent_from(price(peer), price(own), "usd_per_hour")
        return percent_from(peer[column.field], own[column.field], column.field)

    return [
        PeerRow(
            peer,
            [
                (cell, difference(peer, column), heading_of(column, listed.price_title()))
                for cell, column in zip(cells, columns, strict=True)
            ],
            similar.get(peer["name"]),
        )
        for peer, cells in zip(items, table(items, columns, price), strict=True)
    ]


def _peer_columns(item: Mapping[str, Any]) -> list[Column]:
    return [COLUMNS[name] for name in (_GPU_COLUMNS if item["gpu_count"] != 0 else _CPU_COLUMNS)]


async def render_models(request: PageRequest) -> str:
    """Render the language models that one VM of a size serves; raises NotFound for its name."""
    from app.services.capacity import PRECISIONS, find_capacity

    capacity = await request.executor.ask(find_capacity, request.names["name"])
    fitting = [model for model in capacity.models if any(held.users for held in model.by_precision.values())]
    return render_page(
        request,
        "size_models.html",
        capacity=capacity,
        precisions=PRECISIONS,
        fitting=fitting,
        failing=[model for model in capacity.models if model not in fitting],
        segment=path_segment(capacity.size.lower()),
    )


class BuyView(BuySearch):
    """Which VMs are bought, in the currency of the page."""

    currency: Currency = Field(default=USD, description="The currency of all amounts (ISO 4217).")


async def render_buy(request: PageRequest) -> str:
    """Render the ways to buy VMs of a size; raises NotFound for its name."""
    from app.services.costs import compare_ways

    name, view, run = request.names["name"], request.params, request.executor
    provider = json.loads(await run.ask(find_size, name, SizeParams()))["provider"]
    await _check_regions(request, provider, view.region)
    ways, bar = await asyncio.gather(run.ask(compare_ways, name, view), run.ask(find_price_bar))
    several = ("region",) if len(view.region) > 1 else ()  # the page of a size has one
    return render_page(
        request,
        "size_buy.html",
        item=ways,
        currency=ways.exchange_rate.currency if ways.exchange_rate else USD,
        hourly=lambda price: price.converted.price_per_hour if price.converted else price.usd_per_hour,
        beside=lambda price: _beside_price(price, ways.exchange_rate),
        segment=path_segment(ways.size.lower()),
        query=request.query()[1:],
        size_query=request.prices(*several),
        currencies=bar.currencies,
        of_azure=provider == AZURE.id,
    )


def _beside_price(price: "BuyPriceOut", rate: "ExchangeRateOut | None") -> dict[str, Any]:
    """Return the text beside the price of a way to buy: its list price and a note."""
    stated = price.model_dump()
    adjustment = stated.get("adjustment")
    units = rate.units_per_usd if rate is not None else 1
    return {
        "adjustment": adjustment and adjustment | {"shown": adjustment["list_usd_per_hour"] * units},
        "note": price_note(stated),
    }


async def render_observations(request: PageRequest) -> str:
    """Render what the holder of an API key observed of a size; raises NotFound for its name, and without a key."""
    from app.services.observations import find_observations

    if request.holder is None:
        raise NotFound("page", request.path)
    found = await request.executor.ask(find_observations, request.names["name"], request.holder, datetime.now(UTC))
    return render_page(
        request,
        "size_observations.html",
        item=found,
        holder=request.holder,
        segment=path_segment(found.size.lower()),
    )


PAGE = PageContent(params=SizeView, render=render)
OBSERVATIONS_PAGE = PageContent(params=NoParams, render=render_observations)
BUY_PAGE = PageContent(params=BuyView, render=render_buy)
MODELS_PAGE = PageContent(params=NoParams, render=render_models)
