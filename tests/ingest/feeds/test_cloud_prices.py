"""Prices of AWS, Google and Oracle: each trap of their lists, from a real server to a real database."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.catalog.money import to_usd_text
from app.catalog.queries.costs import CostSearch, find_cheapest_price
from app.catalog.queries.prices import PriceSearch, find_prices
from app.catalog.queries.snapshot import Catalog, load_snapshot
from app.catalog.readings import AvailabilityRow, FileRead, Reading
from app.db.engines import make_engine, read_session
from app.errors import BadData
from app.ingest.feeds.aws_prices import AWS_PRICES, COLUMNS, read_offers
from app.ingest.feeds.fetching import PriceApi, PriceFeed, RetryPolicy
from app.ingest.feeds.part_prices import GCP_PRICES, OCI_PRICES, price_of, read_part_prices, to_part
from app.ingest.feeds.price_refresh import PriceRefresh, run_price_refresh
from app.ingest.registry import read_csv_source
from app.ingest.run import IngestOutcome, ingest
from app.settings import Settings
from tests.command_line import run_command
from tests.databases import Databases
from tests.factories import NOW, region, size, source, statement
from tests.ingest.feeds.fake_vendors import INDEX, SHAPES, FakeVendors, aws_list, gcp_pages, serving, shape
from tests.waiting import wait_until

DAY = date(2026, 8, 22)
QUICK = RetryPolicy(attempts=2, first_wait=0.001, longest_wait=0.01)
SHAPE = "BM.GPU.H100.8"
SEEDS = Settings.model_fields["seeds"].default

AWS_SIZES = ("g6.xlarge", "p5.48xlarge", "g4dn.metal")
AWS_FOUND = {
    ("g6.xlarge", "linux", "on_demand"): "0.8048",
    ("g6.xlarge", "windows", "on_demand"): "0.9888",
    ("p5.48xlarge", "linux", "on_demand"): "55.04",
    ("g4dn.metal", "linux", "on_demand"): "7.824",
}
"""Of 18 rows of instances, among them dedicated ones, hosts, reservations, SQL Server, RHEL and a local zone."""


@pytest.fixture
def engine(engine: Engine) -> Engine:
    """A catalog with some sizes and regions of the three clouds."""
    fill(engine)
    return engine


def fill(engine: Engine) -> None:
    aws = [fact for name in AWS_SIZES for fact in size(name, vcpus=4, by="amazon")]
    oci = size("BM.GPU.H100.8", gpu_count=Fraction(8), by="oracle")
    gcp = [
        *size("n2-standard-8", vcpus=8, memory_gib=Decimal(32), gpu_count=Fraction(0), by="google", series="Google n2"),
        *size("n2-unknown", vcpus=8, by="google", series="Google n2"),
        statement("family", "n2", kind="series", subject="gcp_n2", source="google"),
        statement("name", "Google n2", kind="series", subject="gcp_n2", source="google"),
    ]
    publishers = {"amazon": "AWS", "google": "Google", "oracle": "Oracle"}
    places = {
        "aws": ("us-east-1", "us-east-2"),
        "gcp": ("us-central1", "us-east1", "us-west1"),
        "oci": ("oci",),
    }
    reading = Reading(
        sources=(source("prices"), *(replace(source(id_), publisher=name) for id_, name in publishers.items())),
        regions=tuple(replace(region(code), provider=cloud) for cloud, codes in places.items() for code in codes),
        facts=(*aws, *gcp, *oci),
    )
    ingest(engine, reading, now=NOW)


def refresh(
    engine: Engine, folder: Path, api: PriceApi, *, day: date = DAY, **more: Any
) -> tuple[PriceRefresh, IngestOutcome | None]:
    feed = PriceFeed(api=api, cache=folder, seeds=SEEDS, policy=QUICK, **more)
    return run_price_refresh(engine, feed, day=day, now=datetime.combine(day, NOW.timetz()))


def prices_of(found: PriceRefresh, code: str) -> dict[tuple[str, str, str], str]:
    return {
        (price.size, price.os, price.purchase): to_usd_text(price.nano_usd_per_hour)
        for prices in found.lists
        if prices.region == code
        for price in prices.prices
    }


def refused(found: PriceRefresh) -> dict[str, str]:
    return {each.region: "; ".join(each.reasons) for each in found.refused}


# What must come out


@pytest.mark.first_database
def test_of_the_rows_of_amazons_csv_one_is_the_price(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeVendors()) as vendors:
        found, outcome = refresh(engine, tmp_path, AWS_PRICES, url=vendors.url, regions=["us-east-2"])
    assert prices_of(found, "us-east-2") == AWS_FOUND
    assert {str(reason): number for reason, number in found.left_out.items()} == {
        "dedicated tenancy or host": 2,
        "capacity reservation or block": 3,
        "with installed software": 1,
        "another operating system than Linux and Windows": 2,
        "with a licence of your own": 1,
        "reservation that is paid upfront in part or whole": 2,
    }
    assert outcome is not None
    with engine.connect() as connection:
        stored = connection.execute(text("select count(*) from price where source_id = 'aws-price-list'")).scalar_one()
    assert stored == len(AWS_FOUND)


@pytest.mark.first_database
def test_amazons_json_has_the_same_prices_and_reservations_without_upfront_payment(
    engine: Engine, tmp_path: Path
) -> None:
    found, _ = refresh(engine, tmp_path, AWS_PRICES, file=SHAPES / "aws_ec2_us-east-2_index.json")
    assert prices_of(found, "us-east-2") == AWS_FOUND | {
        ("g6.xlarge", "linux", "reserved_1y"): "0.5231",
        ("g6.xlarge", "linux", "reserved_3y"): "0.3472",
    }


@pytest.mark.first_database
def test_a_machine_type_of_google_costs_the_sum_of_its_parts(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeVendors()) as vendors:
        found, _ = refresh(
            engine, tmp_path, GCP_PRICES, url=f"{vendors.url}/v1/skus", headers={"x-goog-api-key": "secret"}
        )
    assert prices_of(found, "us-east1") == {("n2-standard-8", "linux", "on_demand"): "0.388472"}
    assert {each.region for each in found.lists} == {"us-central1", "us-east1", "us-west1"}
    assert {str(reason) for reason in found.left_out} == {
        "of whose parts the catalog knows too little",
        "with a part that has no price there",  # spot and commitments, of which the page has cores only
    }
    assert dict(vendors.asked) == {"skus": 1, "skus MORE": 1}
    assert set(vendors.keys) == {"secret"}


@pytest.mark.first_database
def test_a_machine_type_of_google_has_no_price_where_only_its_parts_are_sold(engine: Engine, tmp_path: Path) -> None:
    places = [
        AvailabilityRow(size="n2-standard-8", region=code, zones="", source="google", file="zones.csv", line=line)
        for line, code in enumerate(("us-central1", "us-east1"), 2)
    ]
    zones = FileRead(kind="availability", file="zones.csv", sources=frozenset({"google"}))
    ingest(engine, Reading(availability=tuple(places), files=(zones,)), now=NOW)
    with serving(FakeVendors()) as vendors:
        found, _ = refresh(engine, tmp_path, GCP_PRICES, url=f"{vendors.url}/v1/skus")
    priced = {code for code in ("us-central1", "us-east1", "us-west1") if prices_of(found, code)}
    assert priced == {"us-central1", "us-east1"}
    assert found.left_out["in a region that does not have the size"] > 0


@pytest.mark.parametrize(
    ("group", "description", "part"),
    [
        ("CPU", "N2 Instance Core running in Americas", "n2 core"),
        ("CPU", "Spot Preemptible N2D AMD Instance Core running in Paris", "n2d core"),
        ("RAM", "C4A Arm Instance Ram running in Iowa", "c4a ram"),
        ("N1Standard", "N1 Predefined Instance Ram running in EMEA", "n1 ram"),
        ("CPU", "Compute optimized Core running in Americas", "c2 core"),
        ("CPU", "M3 Memory-optimized Instance Core running in Iowa", "m3 core"),
        ("CPU", "Commitment v1: Cpu in Americas for 3 Year", "n1 core"),
        ("CPU", "Commitment v1: N2 Cpu in Americas for 1 Year", "n2 core"),
        ("GPU", "Nvidia Tesla A100 GPU running in Americas", "gpu A100 40GB"),
        ("GPU", "Nvidia Tesla A100 80GB GPU attached to Spot Preemptible VMs running in Iowa", "gpu A100 80GB"),
        ("GPU", "Commitment v1: Nvidia H100 80GB Mega GPU in Iowa for 1 Year", "gpu H100 80GB Mega"),
        ("LocalSSD", "SSD backed Local Storage in Sydney", "ssd"),
        ("LocalSSD", "C4 Instance Local SSD running in Iowa", "c4 ssd"),
        ("CPU", "N2 Custom Instance Core running in Americas", None),
        ("CPU", "N2 Sole Tenancy Instance Core running in Americas", None),
        ("CPU", "Memory Optimized Upgrade Premium for Memory-optimized Instance Core running in Iowa", None),
        ("CPU", "Upgraded premium tier N2 networking", None),
        ("CPU", "Reserved A2 Instance Core in Americas", None),
        ("GPU", "Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Iowa", None),
    ],
)
def test_a_sku_of_google_is_a_part_or_nothing(group: str, description: str, part: str | None) -> None:
    assert to_part({"description": description, "category": {"resourceGroup": group}}) == part


@pytest.mark.first_database
def test_a_price_of_google_is_that_of_the_last_tier_in_force(engine: Engine) -> None:
    sku = shape("gcp_skus_page.json")["skus"][0]
    free = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": "0", "nanos": 0}}
    billed = {"startUsageAmount": 744, "unitPrice": {"currencyCode": "USD", "units": "1", "nanos": 250000000}}
    sku["pricingInfo"][0]["pricingExpression"]["tieredRates"] = [free, billed]
    assert price_of(sku, DAY) == Fraction(5, 4)
    assert price_of(sku, date(2026, 7, 1)) is None


@pytest.mark.first_database
def test_a_shape_of_oracle_costs_the_sum_of_its_parts(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeVendors()) as vendors:
        found, _ = refresh(engine, tmp_path, OCI_PRICES, url=f"{vendors.url}/products")
    assert prices_of(found, "oci") == {("BM.GPU.H100.8", "linux", "on_demand"): "80"}


def test_a_sum_has_the_parts_that_another_source_states_while_they_cost_what_it_says(
    engine: Engine, tmp_path: Path
) -> None:
    shapes = replace(source("shapes"), publisher="Oracle", formula="GPUs x their price an hour")
    rule = tmp_path / "rules.csv"
    rule.write_text("name,size,discount_percent\nTenth,BM.*,10\n")
    ingest(engine, Reading(sources=(shapes,), facts=size(SHAPE, by="shapes", price_parts="8 GPU x 10")), now=NOW)

    def estimates(usd: float, folder: Path) -> list[Any]:
        price = {"model": "PAY_AS_YOU_GO", "value": usd}
        page = shape("oci_products_page.json")
        for item in page["items"]:
            if item["partNumber"] == "B98415":
                item["currencyCodeLocalizations"] = [{"currencyCode": "USD", "prices": [price]}]
        with serving(FakeVendors(oci=page)) as vendors:
            refresh(engine, folder, OCI_PRICES, url=f"{vendors.url}/products", accept=True)
        with read_session(engine) as session:
            catalog = Catalog(session, load_snapshot(session), DAY)
            (listed,) = find_prices(catalog, SHAPE.lower(), PriceSearch()).items
            cheapest = find_cheapest_price(catalog, SHAPE.lower(), CostSearch())
        assert cheapest is not None
        assert listed["estimate"] == cheapest.estimate
        return [listed["usd_per_hour"], listed["estimate"].get("sum")]

    assert estimates(10, tmp_path / "first") == [80, {"parts": ["8 GPU x 10"]}]
    ingest(engine, read_csv_source("adjustments", rule), now=NOW)
    assert estimates(10, tmp_path / "second") == [72, {"parts": ["8 GPU x 10"]}]  # it is the list price that is a sum
    assert estimates(10.5, tmp_path / "third") == [75.6, None]


def test_a_part_of_oracle_costs_what_it_does_beyond_the_free_range() -> None:
    parts = read_part_prices(iter(shape("oci_products_page.json")["items"]), "products")
    assert parts["B93297"] == Fraction(1, 100)
    assert 4 * parts["B97384"] + 32 * parts["B97385"] == Fraction("0.184")
    assert "B108806" not in parts, "VMware is billed by the node"


# Stopped and gone on


@pytest.mark.first_database
def test_a_refresh_that_was_stopped_fetches_only_what_is_missing(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeVendors(fault=lambda name: 503 if name == "us-east-2" else None)) as vendors:
        first, _ = refresh(engine, tmp_path, AWS_PRICES, url=vendors.url)
    assert refused(first) == {"us-east-2": "127.0.0.1 answered 503, at attempt 2 of 2"}
    assert [each.region for each in first.lists] == ["us-east-1"]
    (tmp_path / "aws-price-list" / str(DAY)).mkdir(exist_ok=True)
    kept = tmp_path / "aws-price-list" / "accepted" / "us-east-1.csv.gz"
    kept.rename(tmp_path / "aws-price-list" / str(DAY) / kept.name)  # as if it was stopped before it wrote
    with serving(FakeVendors()) as vendors:
        second, _ = refresh(engine, tmp_path, AWS_PRICES, url=vendors.url)
    assert {each.region for each in second.lists} == {"us-east-1", "us-east-2"}
    assert set(vendors.asked) == {INDEX, "us-east-2"}


def test_a_list_that_lost_most_of_its_prices_is_refused_until_it_is_accepted(engine: Engine, tmp_path: Path) -> None:
    def shorter(code: str) -> bytes:
        return b"".join(
            line for line in aws_list(code).splitlines(True) if b"p5.48" not in line and b"metal" not in line
        )

    with serving(FakeVendors()) as vendors:
        refresh(engine, tmp_path, AWS_PRICES, url=vendors.url, regions=["us-east-2"])
    later = DAY + timedelta(days=1)
    with serving(FakeVendors(aws=shorter)) as vendors:
        found, outcome = refresh(engine, tmp_path, AWS_PRICES, url=vendors.url, regions=["us-east-2"], day=later)
        assert refused(found) == {"us-east-2": "2 of 4 prices (50 %) are gone"}
        assert outcome is None
        refresh(engine, tmp_path, AWS_PRICES, url=vendors.url, regions=["us-east-2"], day=later, accept=True)
    assert dict(vendors.asked) == {INDEX: 1, "us-east-2": 1}, "what was refused is accepted without a request"


RESUMED = {
    "aws-prices": ("", "us-east-2", {INDEX: 3, "us-east-1": 1, "us-east-2": 2}),
    "gcp-prices": ("/v1/skus", "skus MORE", {"skus": 2, "skus MORE": 2}),
    "oci-prices": ("/products", "products", {"products": 2}),
}
"""Of each feed the path, the answer during which the process is killed, and what both runs together ask for."""


@pytest.mark.takes_seconds
@pytest.mark.one_database
@pytest.mark.parametrize("command", RESUMED)
def test_a_killed_process_leaves_nothing_and_the_next_one_goes_on(
    engine: Engine, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    path, withheld, asked = RESUMED[command]
    database_url = engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("VMSIZES_GCP_KEY", "secret")
    before = content(engine)
    engine.dispose()
    undisturbed = databases.copy(database_url)
    with serving(FakeVendors(withheld={withheld})) as vendors:
        arguments = ("refresh", command, "--url", vendors.url + path)
        monkeypatch.setenv("VMSIZES_FEEDS", str(tmp_path / "feeds"))
        killed = start_program(database_url, *arguments)
        wait_until(lambda: withheld in vendors.asked and (command != "aws-prices" or vendors.asked["us-east-1"]))
        if command == "aws-prices":
            wait_until(lambda: [*(tmp_path / "feeds").rglob("us-east-1.csv.gz")], "the first list is complete")
        killed.kill()
        assert killed.wait() == -signal.SIGKILL
        assert content(engine) == before
        vendors.withheld.clear()
        assert run_command(database_url, *arguments).returncode == 0
        assert dict(vendors.asked) == asked, "a list that was complete is not fetched again"
        monkeypatch.setenv("VMSIZES_FEEDS", str(tmp_path / "other"))
        assert run_command(undisturbed, *arguments).returncode == 0
    again = make_engine(undisturbed)
    assert content(engine) == content(again) != before
    again.dispose()


def start_program(database_url: str, *arguments: str) -> "subprocess.Popen[bytes]":
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = {**os.environ, "VMSIZES_DATABASE_URL": database_url}
    return subprocess.Popen([program, *arguments], env=environment, stdout=subprocess.DEVNULL)


def content(engine: Engine) -> list[Any]:
    columns = "size_key, region, os, purchase, valid_from, seen_until, source_id, nano_usd_per_hour"
    with engine.connect() as connection:
        return [*connection.execute(text(f"select {columns} from price order by {columns}"))]


# Broken


def edited_csv(column: str, value: str) -> bytes:
    """Return Amazon's CSV with a cell of the first row changed."""
    head, rows = aws_list().split(b'"SKU"', 1)
    lines = list(csv.reader(io.StringIO('"SKU"' + rows.decode())))
    lines[1][lines[0].index(column)] = value
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows(lines)
    return head + written.getvalue().encode()


REPORTED = [
    ("Currency", "CNY", "is not USD"),
    ("Unit", "Quantity", "is not Hrs"),
    ("StartingRange", "100", "is not 0"),
    ("TermType", "Lease", "is not OnDemand or Reserved"),
    ("PricePerUnit", "0,8048", "is not a price"),
    ("PricePerUnit", "-1", "is not a price"),
    ("PricePerUnit", "1e12", "billion dollars"),
    ("Instance Type", "", "names no size"),
]


@pytest.mark.one_database
@pytest.mark.parametrize(("column", "value", "detail"), REPORTED)
def test_a_row_of_amazon_that_is_not_as_expected_is_reported_and_not_taken(
    engine: Engine, tmp_path: Path, column: str, value: str, detail: str
) -> None:
    with serving(FakeVendors(aws=lambda _: edited_csv(column, value))) as vendors:
        found, outcome = refresh(engine, tmp_path, AWS_PRICES, url=vendors.url, regions=["us-east-2"])
    assert ("g6.xlarge", "linux", "on_demand") not in prices_of(found, "us-east-2")
    assert outcome is not None
    (report,) = outcome.summary.reports
    assert (report.file, report.line, report.column) == (f"aws-price-list/{DAY}/us-east-2", 1, column)
    assert detail in report.detail


@pytest.mark.one_database
def test_several_rows_of_amazon_for_one_way_to_buy_are_none(engine: Engine, tmp_path: Path) -> None:
    lines = aws_list().splitlines(True)
    twice = [line for line in lines if b"WANTED0000000001" in line and b"OnDemand" in line]
    with serving(FakeVendors(aws=lambda _: b"".join([*lines, *twice * 8]))) as vendors:
        found, outcome = refresh(engine, tmp_path, AWS_PRICES, url=vendors.url, regions=["us-east-2"])
    assert ("g6.xlarge", "linux", "on_demand") not in prices_of(found, "us-east-2")
    assert outcome is not None
    assert outcome.summary.reports[0].detail == (
        "items 1, 16, 19, 22, 25 and 4 more are each the price of linux on_demand "
        "(0.8048, 0.8048, 0.8048, 0.8048, 0.8048); none is taken"
    )


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (aws_list().replace(b'"Tenancy"', b'"Tenant"', 1), r":6: column 'Tenancy': is missing from the header"),
        (aws_list()[:-40], r"csv\.gz:\d+: (has \d+ cells|a quote that is opened here is not closed)"),
        (b"<html>busy</html>", "'SKU': is missing from the header"),
        (b"", "'SKU': is missing from the header"),
        (b"\xff\xfe\x00" * 9, "is not a CSV file in UTF-8"),
        (b"".join(aws_list().splitlines(True)[:6]), r":6: has no rows below its header"),
    ],
)
def test_a_file_of_amazon_that_is_not_whole_is_refused(engine: Engine, tmp_path: Path, body: bytes, said: str) -> None:
    with serving(FakeVendors(aws=lambda _: body)) as vendors, pytest.raises(BadData, match=said):
        refresh(engine, tmp_path, AWS_PRICES, url=vendors.url, regions=["us-east-2"])


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("index", "said"),
    [
        ({"regions": {}}, "the index of regions does not have it"),
        ({"other": 1}, "the index of regions is not as expected: KeyError('regions')"),
        (b"<html>", "the index of regions is not as expected: JSONDecodeError"),
        (
            {"regions": {"us-east-2": {"currentVersionUrl": "https://evil.example/index.json"}}},
            "which is not the path of an index.json",
        ),
    ],
)
def test_an_index_of_amazon_that_is_not_as_expected_fails_the_region(
    engine: Engine, tmp_path: Path, index: Any, said: str
) -> None:
    with serving(FakeVendors(index=index)) as vendors:
        found, _ = refresh(engine, tmp_path, AWS_PRICES, url=vendors.url, regions=["us-east-2"])
    assert said in refused(found)["us-east-2"]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: whole[:9000], r"json: is not whole JSON: .* \(before byte 9,000\)"),
        (lambda _: "{}", "has no instances among its products"),
        (lambda whole: whole.replace('"USD": "0.8048000000"', '"USD": "1", "CNY": "7"', 1), "must be one currency"),
        (lambda whole: whole.replace('"products"', '"goods"'), "has no instances among its products"),
    ],
)
def test_json_of_amazon_that_is_not_whole_is_refused(
    engine: Engine, tmp_path: Path, change: Callable[[str], str], said: str
) -> None:
    file = tmp_path / "index.json"
    file.write_text(change((SHAPES / "aws_ec2_us-east-2_index.json").read_text()))
    with pytest.raises(BadData, match=said):
        refresh(engine, tmp_path, AWS_PRICES, file=file)


def with_first_sku(**changed: Any) -> dict[str, Any]:
    pages = gcp_pages()
    pages[""]["skus"][0] |= changed
    return pages


def with_expression(**changed: Any) -> dict[str, Any]:
    pages = gcp_pages()
    pages[""]["skus"][0]["pricingInfo"][0]["pricingExpression"] |= changed
    return pages


def twice() -> dict[str, Any]:
    pages = gcp_pages()
    pages[""]["skus"].append(pages[""]["skus"][0] | {"skuId": "OTHER"})
    return pages


IN_EUR = [{"startUsageAmount": 0, "unitPrice": {"currencyCode": "EUR", "units": "1"}}]
BELOW_0 = [{"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": "-1"}}]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (with_expression(tieredRates=IN_EUR), r":1: column 'pricingInfo': SKU AAAA-0001-CORE .*'EUR' is not USD"),
        (with_expression(tieredRates=BELOW_0), "is below 0"),
        (with_expression(tieredRates=[]), "SKU AAAA-0001-CORE .*: tieredRates is empty: it must have a price"),
        (with_expression(usageUnit="d"), "usageUnit 'd' is not one of h, GiBy.h, GiBy.mo"),
        (with_first_sku(pricingInfo=[{}]), r"SKU AAAA-0001-CORE .*: has no 'effectiveTime'"),
        (twice(), "SKUs AAAA-0001-CORE and OTHER both are the price of n2 core on_demand in us-"),
    ],
)
def test_a_sku_of_google_that_is_not_as_expected_is_refused(
    engine: Engine, tmp_path: Path, pages: dict[str, Any], said: str
) -> None:
    with serving(FakeVendors(gcp=pages)) as vendors, pytest.raises(BadData, match=said):
        refresh(engine, tmp_path, GCP_PRICES, url=f"{vendors.url}/v1/skus")


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ({"": {"error": "no key"}}, "a page has no list skus"),
        ({"": {"skus": []}}, "page 1 has no items"),
        ({"": shape("gcp_skus_page.json") | {"nextPageToken": 7}}, "a page has the nextPageToken 7, which is not text"),
        ({"": shape("gcp_skus_page.json"), "MORE": shape("gcp_skus_page.json")}, "links to a page that was read"),
    ],
)
def test_a_walk_of_google_that_does_not_end_is_refused(
    engine: Engine, tmp_path: Path, pages: dict[str, Any], said: str
) -> None:
    with serving(FakeVendors(gcp=pages)) as vendors:
        found, outcome = refresh(engine, tmp_path, GCP_PRICES, url=f"{vendors.url}/v1/skus")
    assert said in refused(found)["all"]
    assert outcome is None


def oci_price(**changed: Any) -> dict[str, Any]:
    price = {"model": "PAY_AS_YOU_GO", "value": 1} | changed
    return oci(currencyCodeLocalizations=[{"currencyCode": "USD", "prices": [price]}])


def oci(**changed: Any) -> dict[str, Any]:
    page = shape("oci_products_page.json")
    page["items"][2] |= changed
    return {**page}


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("page", "said"),
    [
        (
            oci(currencyCodeLocalizations=[]),
            r":3: column 'prices': part B98415: must have a price in USD, and has some in no currency",
        ),
        (oci(currencyCodeLocalizations=[{"currencyCode": "EUR", "prices": []}]), "and has some in EUR"),
        (oci_price(model="MONTHLY"), "must have a price whose model is PAY_AS_YOU_GO, and has none in USD"),
        (oci_price(value="0,05"), "value '0,05' is not a price: it must be a number, 0 or more"),
        (oci_price(value=-1), "value -1 is not a price: it must be a number, 0 or more"),
        (oci(currencyCodeLocalizations=[{"currencyCode": "USD"}]), "part B98415: has no 'prices'"),
        (oci(partNumber="B97384"), r":3: column 'partNumber': part B97384 is listed twice"),
    ],
)
def test_a_part_of_oracle_that_is_not_as_expected_is_refused(
    engine: Engine, tmp_path: Path, page: dict[str, Any], said: str
) -> None:
    with serving(FakeVendors(oci=page)) as vendors, pytest.raises(BadData, match=said):
        refresh(engine, tmp_path, OCI_PRICES, url=f"{vendors.url}/products")


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("page", "said"),
    [
        (b"<html>", "a page is not JSON"),
        ({"products": []}, "a page has no list items"),
        ({"items": []}, "page 1 has no items"),
        (shape("oci_products_page.json") | {"hasMore": True}, "a page says that there are more"),
    ],
)
def test_a_page_of_oracle_that_is_not_whole_is_refused(engine: Engine, tmp_path: Path, page: Any, said: str) -> None:
    with serving(FakeVendors(oci=page)) as vendors:
        found, _ = refresh(engine, tmp_path, OCI_PRICES, url=f"{vendors.url}/products")
    assert said in refused(found)["all"]


# Memory


@pytest.mark.takes_seconds
@pytest.mark.one_database
@pytest.mark.parametrize("form", ["csv.gz", "json"])
def test_memory_does_not_grow_with_the_length_of_a_list(tmp_path: Path, form: str) -> None:
    def peak(copies: int) -> int:
        file = tmp_path / f"list{copies}.{form}"
        if form == "json":
            whole = shape("aws_ec2_us-east-2_index.json")
            disk = whole["products"].pop("TRAPSTORAGE00001")
            whole["products"] |= {f"DISK{number}": disk for number in range(copies)}
            file.write_text(json.dumps(whole))
        else:
            lines = aws_list().splitlines(True)
            file.write_bytes(gzip.compress(b"".join([*lines[:6], *lines[6:] * copies])))
        tracemalloc.start()
        rows = sum(1 for _ in read_offers(file))
        reached = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert rows
        return reached

    assert peak(800) < 1.2 * peak(200)


def test_every_column_that_a_condition_asks_for_is_read() -> None:
    assert {*next(read_offers(SHAPES / "aws_ec2_us-east-2_index.json"))} == {*COLUMNS}
    assert {*next(read_offers(SHAPES / "aws_ec2_us-east-2_index.csv"))} == {*COLUMNS}
