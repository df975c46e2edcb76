"""What the databases do with the hot questions, at a size of catalog where a full scan would be chosen if it could."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any, TypeVar

import pytest
from sqlalchemy import Engine, insert
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Price, Region, Size, Source
from app.catalog.money import NANO_USD
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.candidates import candidates_query
from app.catalog.queries.exports import PriceExport, SizeExport, export_prices, export_sizes
from app.catalog.queries.facets import find_facets
from app.catalog.queries.lookups import get_size_keys
from app.catalog.queries.params import FitSearch, OfferParams, SizeFilter, SizeSearch
from app.catalog.queries.prices import AllPricesFilter, AllPricesSearch, find_all_prices
from app.catalog.queries.sizes import find_size_details, find_sizes
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, KeptAnswers, load_snapshot
from app.catalog.store.offers import save_derived
from app.db.engines import analyze, make_engine
from app.db.statements import BoundStatement
from app.errors import NotFound
from app.services.resource_fit import TRAITS
from tests.databases import Databases
from tests.plans.explain import explain, full_scans, plan_of, sorts
from tests.recording import Recording, statements_of

TODAY = date(2026, 9, 1)
SIZES, REGIONS = 300, 40
Answer = TypeVar("Answer")
PRICE_SCOPE = set(AllPricesFilter.model_fields)


@pytest.fixture(scope="module")
def crowded(databases: Databases, template_url: str) -> Iterator[Engine]:
    """A catalog of 300 sizes in 40 regions, for two systems on demand and for Linux on spot: 36,000 prices."""
    url = databases.copy(template_url)
    engine = make_engine(url)
    cited = {"title": "t", "publisher": "p", "kind": "third_party", "sha256": "0"}
    sizes = [_size(number) for number in range(SIZES)]
    days = dict.fromkeys(("valid_from", "seen_until", "known_from"), TODAY)
    dated = {**days, "source_id": "s", "approximate_date": False}
    prices = [
        {
            "size_key": row["key"],
            "region": f"region{number}",
            "os": os,
            "purchase": purchase,
            "nano_usd_per_hour": row["vcpus"] * NANO_USD // part,
            **dated,
        }
        for row in sizes
        for number in range(REGIONS)
        for os, purchase, part in (("linux", "on_demand", 1), ("windows", "on_demand", 1), ("linux", "spot", 3))
    ]
    with Session(engine) as session, session.begin():
        session.execute(insert(table_of(Source)), [{"id": "s", **cited}])
        regions = [{"code": f"region{number}", "name": "r", "source_id": "s"} for number in range(REGIONS)]
        session.execute(insert(table_of(Region)), regions)
        session.execute(insert(table_of(Size)), sizes)
        session.execute(insert(table_of(Price)), prices)
        save_derived(session, TODAY)
        analyze(session)
    yield engine
    engine.dispose()
    databases.drop(url)


@pytest.fixture
def large(crowded: Engine) -> CatalogSnapshot:
    """What is known of the catalog, as if it were too large to be looked through."""
    with Session(crowded) as session:
        return replace(load_snapshot(session), sizes=100_000)


def _size(number: int) -> dict[str, Any]:
    about = {"provider": "azure", "verified": True, "disputed": False, "disputed_fields": "", "search_text": ""}
    memory = {"gpu_memory_gib": float(number % 20 * 16), "gpu_count": float(number % 20), "vcpus": number % 97 + 1}
    model = "A100" if number % 3 == 0 else "H100"
    return {"key": f"x{number:03}", "name": f"Standard_X{number:03}", "gpu_model": model, **memory, **about}


def plan(engine: Engine, asked: BoundStatement) -> str:
    """A few hundred rows are sorted by PostgreSQL rather than merged, unless that is forbidden."""
    forbidden = ("set local enable_sort = off",) if engine.dialect.name == "postgresql" else ()
    return plan_of(engine, asked, *forbidden)


FITS = [
    FitSearch(min_gpu_mem=80),
    FitSearch(min_gpu_mem=80, region=("region7",)),
    FitSearch(min_gpu_mem=80, region=("region7", "region9"), purchase="spot"),
    FitSearch(min_gpu_mem=80, available_in=("region1", "region2"), os="windows"),
]


@pytest.mark.parametrize("search", FITS, ids=lambda search: search.model_dump_json(exclude_defaults=True))
def test_the_candidates_of_a_fit_come_by_index(crowded: Engine, search: FitSearch) -> None:
    purchases, keys = {"on_demand", search.purchase}, ("x001", "x002")
    lines = plan(crowded, candidates_query(search, purchases, TRAITS, keys, today=TODAY, rules=()))
    assert full_scans(lines) == [], lines
    assert re.search(r"offer", lines), lines


SEARCHES = [
    SizeSearch(min_gpu_mem=80, gpu=("a100",)),
    SizeSearch(min_gpu_mem=80, region=("region7",), max_usd_per_hour=Decimal(2), sort=("-gpu_memory_gib",)),
    SizeSearch(available_in=("region1", "region2")),
    SizeSearch(region=("region1", "region2")),
    *(SizeSearch(sort=("usd_per_hour",), purchase=purchase, min_gpu_mem=80) for purchase in PURCHASE_MODELS),
    SizeSearch(as_of=TODAY, region=("region7",)),
    SizeSearch(as_of=TODAY, os="windows", region=("region7", "region9"), sort=("usd_per_hour",)),
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.model_dump_json(exclude_defaults=True))
def test_what_a_search_asks_comes_by_index_and_once_for_a_revision(
    crowded: Engine, large: CatalogSnapshot, search: SizeSearch
) -> None:
    forbidden = ("set local enable_seqscan = off",) if crowded.dialect.name == "postgresql" else ()
    known = replace(large, answers=KeptAnswers())
    for asked in asks(crowded, known, lambda catalog: find_sizes(catalog, search)):
        lines = plan_of(crowded, asked, *forbidden)
        assert full_scans(lines) == [], lines
    if search.purchase in {"on_demand", "spot"}:  # where prices of others are known is not kept
        assert (asks(crowded, known, lambda catalog: find_sizes(catalog, search))) == []


@pytest.mark.parametrize("search", [SizeSearch(as_of=TODAY), SizeSearch(known_at=TODAY, purchase="spot")])
def test_the_cheapest_regions_of_a_past_day_come_by_index_without_reading_all_prices(
    crowded: Engine, large: CatalogSnapshot, search: SizeSearch
) -> None:
    by_price = search.model_copy(update={"sort": ("usd_per_hour",)})
    asked = [
        one
        for one in asks(crowded, large, lambda catalog: find_sizes(catalog, by_price))
        if "usd" in one.statement.names
    ]
    assert asked
    for one in asked:
        lines = plan(crowded, one)
        assert not re.search(r"^\s*SCAN price|Seq Scan on price\b", lines, re.MULTILINE), lines


OFFER_SCOPES = [
    OfferParams(),
    OfferParams(region=("region7",), purchase="spot"),
    OfferParams(region=("region7", "region9"), os="windows"),
]


@pytest.mark.parametrize("place", OFFER_SCOPES, ids=lambda place: place.model_dump_json(exclude_defaults=True))
def test_compared_sizes_come_by_their_keys(crowded: Engine, large: CatalogSnapshot, place: OfferParams) -> None:
    (asked,) = asks(crowded, large, lambda catalog: find_size_details(catalog, ("x001", "x002", "x003"), place))
    lines = plan(crowded, asked)
    assert full_scans(lines) == [], lines


def test_names_are_looked_up_by_index_and_suggestions_by_a_range_scan(crowded: Engine) -> None:
    forbidden = ("set local enable_seqscan = off",) if crowded.dialect.name == "postgresql" else ()
    with Session(crowded) as session, pytest.raises(NotFound):
        get_size_keys(recording := Recording(session), ("nope", "x001"), {})
    known, near = plan_of(crowded, recording.asked[0], *forbidden), plan(crowded, recording.asked[1])
    assert not re.search(r"^SCAN size|Seq Scan on size", known, re.MULTILINE), known
    assert not re.search(r"USE TEMP B-TREE|Sort  \(", near), near


def asks(engine: Engine, known: CatalogSnapshot, question: Callable[[Catalog], Any]) -> list[BoundStatement]:
    """Everything that a question asks, while it is answered."""
    with Session(engine) as session:
        return statements_of(session, known, TODAY, question)[1]


def answered(engine: Engine, known: CatalogSnapshot, question: Callable[[Catalog], Answer]) -> Answer:
    with Session(engine) as session:
        return Catalog(session, known, TODAY).ask(question)


FACETS = [
    SizeFilter(),
    SizeFilter(gpu=("a100",), nvlink=True, status=("any",)),
    SizeFilter(region=("region7",), min_gpu_mem=80, max_usd_per_hour=Decimal(20)),
    SizeFilter(region=("region7", "region9"), available_in=("region1",), os="windows"),
]


@pytest.mark.parametrize("search", FACETS, ids=lambda search: search.model_dump_json(exclude_defaults=True))
def test_what_facets_ask_comes_by_index_and_once_for_a_revision(
    crowded: Engine, large: CatalogSnapshot, search: SizeFilter
) -> None:
    forbidden = ("set local enable_seqscan = off",) if crowded.dialect.name == "postgresql" else ()
    known = replace(large, answers=KeptAnswers())
    asked = asks(crowded, known, lambda catalog: find_facets(catalog, search))
    different = {one.statement: plan_of(crowded, one, *forbidden) for one in asked}
    for lines in different.values():
        assert full_scans(lines) == [], lines
    assert (asks(crowded, known, lambda catalog: find_facets(catalog, search))) == []


LISTS = [
    SizeExport(),
    SizeExport(region=("region7",), sort=("usd_per_hour",)),
    SizeExport(min_gpu_mem=80, sort=("usd_per_hour",), fields=("name",)),
]


@pytest.mark.parametrize("export", LISTS, ids=lambda export: export.model_dump_json(exclude_defaults=True))
def test_an_export_of_sizes_by_name_or_price_is_an_index_scan(
    crowded: Engine, large: CatalogSnapshot, export: SizeExport
) -> None:
    lines = plan(crowded, export_sizes(export, large, TODAY).query)
    assert full_scans(lines) == [], lines
    assert sorts(lines) == 0, lines


PRICES = [
    AllPricesSearch(),
    AllPricesSearch(history=True, region=("region7",), os="linux"),
    AllPricesSearch(size=("x007",), as_of=TODAY),
]


@pytest.mark.parametrize("search", PRICES, ids=lambda search: search.model_dump_json(exclude_defaults=True))
def test_prices_come_by_a_scan_of_their_key(crowded: Engine, large: CatalogSnapshot, search: AllPricesSearch) -> None:
    asked = asks(crowded, large, lambda catalog: find_all_prices(catalog, search))
    (page,) = (one for one in asked if "usd_per_hour" in one.statement.names)
    export = answered(
        crowded, large, lambda catalog: export_prices(catalog, PriceExport(**search.model_dump(include=PRICE_SCOPE)))
    )
    for listed in (page, export.query):
        lines = plan(crowded, listed)
        assert sorts(lines) == 0, lines
        assert re.search(r"(SCAN|SEARCH) price\b(?! USING INDEX)|using pk_price on price", lines), lines


def test_prices_of_gpus_are_searched_by_their_sizes(crowded: Engine, large: CatalogSnapshot) -> None:
    few = replace(large, sizes=SIZES)  # a large catalog finds the sizes on columns
    for asked in asks(crowded, few, lambda catalog: find_all_prices(catalog, AllPricesSearch(gpu=("*a1*",)))):
        lines = plan(crowded, asked)
        assert full_scans(lines) == [], lines


def test_a_page_of_prices_further_on_begins_where_the_last_one_ended(crowded: Engine, large: CatalogSnapshot) -> None:
    first = answered(crowded, large, lambda catalog: find_all_prices(catalog, AllPricesSearch(limit=2)))
    (page, *_) = asks(
        crowded, large, lambda catalog: find_all_prices(catalog, AllPricesSearch(limit=2, cursor=first.next_cursor))
    )
    lines = plan(crowded, page)
    assert full_scans(lines) == [], lines
    assert sorts(lines) == 0, lines


def test_a_full_scan_and_a_sort_would_be_seen(crowded: Engine) -> None:
    lines = explain(crowded, "select * from offer where spot_as_of is null order by on_demand_as_of", {})
    assert full_scans(lines), lines
    assert sorts(lines) == 1, lines
