"""`vmsizes refresh`: what is printed, what it exits with, and what to do next."""

import json
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.main import create_asgi_app
from app.settings import Settings
from tests.api.test_metrics import samples_of
from tests.cli.conftest import Run
from tests.conftest import TODAY
from tests.ingest.feeds.fake_api import FakeApi, serving
from tests.ingest.feeds.meters import Item, in_region, item
from tests.ingest.feeds.skus import entry as sku_entry
from tests.servers import open_client, server

pytestmark = (
    pytest.mark.one_database
)  # what a command prints does not depend on it; tests/ingest/feeds writes to every kind

PAGE = """---
title: NX v1 size series
kind: vendor_page
---

# NX v1 size series

[!INCLUDE [specs](./includes/nx-specs.md)]
"""
SPECS = """
| Size | vCPUs | Memory (GiB) |
| --- | --- | --- |
| Standard_NX24_v1 | 24 | 220 |
"""


@pytest.fixture
def catalog(few_sizes_url: str) -> str:
    """A catalog to write to."""
    return few_sizes_url


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("VMSIZES_FEEDS", str(tmp_path / "feeds"))
    return tmp_path / "feeds"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of the documentation with one page, which includes its table, and one that is about something else."""
    pages = tmp_path / "checkout" / "articles" / "virtual-machines" / "sizes" / "gpu-accelerated"
    (pages / "includes").mkdir(parents=True)
    (pages / "nx-series.md").write_text(PAGE)
    (pages / "includes" / "nx-specs.md").write_text(SPECS)
    (pages / "overview.md").write_text("# Sizes\n\nAll of them.\n")
    (tmp_path / "checkout" / "README.md").write_text("| Size | vCPUs |\n| --- | --- |\n| Standard_NY1 | 1 |\n")
    return tmp_path / "checkout"


def prices_of_one_size() -> list[Item]:
    return in_region("eastus", size="Standard_NC24ads_A100_v4")


def eastus(**more: object) -> FakeApi:
    return FakeApi(items={"eastus": prices_of_one_size()}, **more)  # type: ignore[arg-type]  # knobs of the stand-in


LIST_SIZES = [{"maxDataDiskCount": 12, "memoryInMb": 114688, "name": "Standard_ND6s", "numberOfCores": 6}]


@pytest.mark.parametrize(
    ("command", "listed", "says"),
    [
        (("refresh", "azure-skus", "--accept", "--file"), LIST_SIZES, "is the JSON of `az vm list-sizes`"),
        (("refresh", "aws-types", "--file"), [{"x": 1}], "no entry is an instance type; give the JSON of `aws ec2"),
        (("refresh", "aws-types", "--file"), LIST_SIZES, "is the JSON of `az vm list-sizes`"),
        (("refresh", "azure-skus", "--file"), [{"name": "a"}], "no entry is a size; give the JSON of"),
        (("refresh", "azure-skus", "--file"), [{"hardwareProfile": {}}], "is the JSON of `az vm list`"),
        (("ingest", "regions"), LIST_SIZES, "is the JSON of `az vm list-sizes`"),
        (("ingest", "sizes"), [{"resourceType": "x", "capabilities": []}], "is the JSON of `az vm list-skus`"),
        (("retirements",), LIST_SIZES, "is the JSON of `az vm list-sizes`"),
        (("ingest", "prices"), {"Items": [{"retailPrice": 1}]}, "is the JSON of the Retail Prices API"),
        (("ingest", "aliases"), {"a": 1}, "is JSON, where a CSV file is expected"),
    ],
)
def test_json_of_other_commands_is_named_for_what_it_is(  # noqa: PLR0917  # two fixtures, and a column of the table each
    run: Run, catalog: str, tmp_path: Path, command: tuple[str, ...], listed: object, says: str
) -> None:
    file = tmp_path / "some.json"
    file.write_text(json.dumps(listed, indent=1), encoding="utf-8")
    (tmp_path / "sources.csv").write_text("id,title,publisher,kind,url,published_on\n", encoding="utf-8")
    done = run(catalog, *command, str(file))
    assert done.returncode == 3
    assert f"some.json: {says}" in done.stderr
    assert "--accept" not in done.stderr


def test_a_refresh_tells_what_was_fetched_left_out_and_written(run: Run, catalog: str) -> None:
    with serving(eastus()) as api:
        done = run(catalog, "refresh", "azure-prices", "--url", api.url, "--region", "eastus")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"azure-prices of {TODAY}: 1 of 1 region, 8 prices from 13 items"
    assert lines[1] == (
        "left out: 2 Cloud Services, 2 Dev/Test, for subscribers only, 3 Low Priority, which is of Azure Batch"
    )
    assert any(line.startswith("price        8 added") for line in lines)
    assert lines[-1].startswith("revision 2 (new), digest ")


@pytest.mark.takes_seconds
def test_a_refresh_as_json_has_the_outcome_of_each_feed(run: Run, catalog: str) -> None:
    with serving(eastus()) as api:
        done = run(catalog, "refresh", "azure-prices", "--url", api.url, "--region", "eastus", "--json")
    (feed,) = json.loads(done.stdout)["feeds"]
    assert (feed["feed"], feed["day"], feed["prices"], feed["items"]) == ("azure-prices", str(TODAY), 8, 13)
    assert feed["left_out"]["Cloud Services"] == 2
    assert (feed["refused"], feed["ingest"]["tables"]["price"]["added"]) == ([], 8)


@pytest.mark.takes_seconds
def test_a_region_that_fails_is_told_with_the_command_that_fetches_it_again(run: Run, catalog: str) -> None:
    with serving(eastus()) as api:
        arguments = ("--url", api.url, "--region", "eastus", "--region", "westus")
        done = run(catalog, "refresh", "azure-prices", *arguments)
    assert done.returncode == 3
    assert "refused: westus: page 1 has no items" in done.stderr
    assert "To fetch again what failed: vmsizes refresh azure-prices --region westus" in done.stderr
    assert "price        8 added" in done.stdout


@pytest.mark.takes_seconds
def test_a_list_that_shrank_is_told_with_the_command_that_accepts_it(run: Run, catalog: str) -> None:
    with serving(eastus()) as api:
        arguments = ("refresh", "azure-prices", "--url", api.url, "--region", "eastus")
        assert run(catalog, *arguments).returncode == 0
        api.items = {"eastus": prices_of_one_size()[:1]}
        done = run(catalog, *arguments)
        assert done.returncode == 3
        assert "refused: eastus: 5 of 8 prices (62 %) are gone" in done.stderr
        assert (
            "To take the refused lists as they are: vmsizes refresh azure-prices --accept --region eastus"
            in done.stderr
        )
        assert "azure-prices: nothing was written." in done.stderr
        assert run(catalog, *arguments, "--accept").returncode == 0


@pytest.mark.takes_seconds
def test_of_a_list_that_cannot_be_accepted_no_command_says_that_it_can(run: Run, catalog: str, tmp_path: Path) -> None:
    file = tmp_path / "page.json"
    items = [*prices_of_one_size(), item(armRegionName="mars"), item(armRegionName="westus", armSkuName="Standard_NQ1")]
    page = {"Items": items, "Count": len(items), "BillingCurrency": "USD", "NextPageLink": None}
    file.write_text(json.dumps(page), encoding="utf-8")
    done = run(catalog, "refresh", "azure-prices", "--file", str(file))
    assert done.returncode == 3
    assert "refused: mars: " in done.stderr
    assert "refused: westus: none of 1 items is a price of a size that the catalog has" in done.stderr
    assert "vmsizes refresh azure-prices" not in done.stderr


@pytest.mark.takes_seconds
def test_names_that_only_prices_have_are_told_until_they_are_taken(run: Run, catalog: str) -> None:
    arguments = ("refresh", "azure-prices", "--region", "eastus", "--url")
    names = [f"Standard_NQ{n}_v1" for n in range(10, 40)]
    items = prices_of_one_size() + [item(armRegionName="eastus", armSkuName=name) for name in names]
    with serving(FakeApi(items={"eastus": items}, page_size=100)) as api:
        done = run(catalog, *arguments, api.url)
        assert done.returncode == 0, done.stderr
        assert (
            "unmatched: 30 prices of 30 sizes that the catalog does not have, to be taken with --new-sizes: "
            "Standard_NQ10_v1, Standard_NQ11_v1, "
        ) in done.stdout
        assert done.stdout.splitlines()[2].endswith(", Standard_NQ29_v1, 10 more")
        (feed,) = json.loads(run(catalog, *arguments, api.url, "--dry-run", "--json").stdout)["feeds"]
        assert feed["unmatched"] == {"prices": 30, "sizes": names}
        assert run(catalog, "show", "nq10_v1").returncode == 1
        done = run(catalog, *arguments, api.url, "--new-sizes")
    assert "unmatched" not in done.stdout
    assert run(catalog, "show", "nq10_v1").returncode == 0


@pytest.mark.takes_seconds
def test_a_price_that_jumps_is_told_with_the_old_and_the_new_price(run: Run, catalog: str) -> None:
    arguments = ("refresh", "azure-prices", "--region", "eastus", "--url")
    names = ("Standard_NC24ads_A100_v4", "Standard_NC48ads_A100_v4", "Standard_NC96ads_A100_v4")
    items = [one for name in names for one in in_region("eastus", size=name)]
    with serving(FakeApi(items={"eastus": items}, page_size=100)) as api:
        assert run(catalog, *arguments, api.url).returncode == 0
        items[5] |= {"retailPrice": 9.0}
        (feed,) = json.loads(run(catalog, *arguments, api.url, "--dry-run", "--json").stdout)["feeds"]
        done = run(catalog, *arguments, api.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"azure-prices of {TODAY}: 1 of 1 region, 23 prices from 39 items, 1 held back\n")
    text = "Standard_NC24ads_A100_v4 windows on_demand was 0.747; the new price is held back until a list"
    assert f"{text} of another day has the same (cell '9')" in done.stderr
    assert feed["held_back"] == [
        {
            "region": "eastus",
            "size": "Standard_NC24ads_A100_v4",
            "os": "windows",
            "purchase": "on_demand",
            "old_usd_per_hour": 0.747,
            "new_usd_per_hour": 9.0,
        }
    ]


@pytest.mark.takes_seconds
def test_a_dry_run_writes_nothing(run: Run, catalog: str) -> None:
    with serving(eastus()) as api:
        done = run(catalog, "refresh", "azure-prices", "--url", api.url, "--region", "eastus", "--dry-run")
    assert done.returncode == 0
    assert "azure-prices: nothing was written." in done.stderr
    assert "(new, not written)" in done.stdout


@pytest.mark.takes_seconds
def test_saved_pages_are_of_the_day_that_is_given(run: Run, catalog: str, tmp_path: Path) -> None:
    with serving(eastus()) as api:
        run(catalog, "refresh", "azure-prices", "--url", api.url, "--region", "eastus")
    saved = str(tmp_path / "feeds" / "azure-retail-prices" / "accepted" / "eastus.jsonl.gz")
    done = run(catalog, "refresh", "azure-prices", "--file", saved, "--day", "2026-08-30")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("azure-prices of 2026-08-30: 1 of 1 region")


@pytest.mark.takes_seconds
def test_saved_pages_that_lack_a_region_or_are_refused_are_told_with_what_accepts_them(
    run: Run, catalog: str, tmp_path: Path
) -> None:
    file = tmp_path / "saved pages.json"
    arguments = ("refresh", "azure-prices", "--file", str(file), "--day", "2026-08-30", "--region", "eastus")
    for items, refused in (
        (prices_of_one_size(), None),
        ([], "refused: eastus: what was read has no item of it\n"),
        (prices_of_one_size()[:1], "refused: eastus: 5 of 8 prices (62 %) are gone; "),
    ):
        page = {"Items": items, "Count": len(items), "BillingCurrency": "USD", "NextPageLink": None}
        file.write_text(json.dumps(page), encoding="utf-8")
        done = run(catalog, *arguments)
        assert done.returncode == (3 if refused else 0)
        assert (refused or "") in done.stderr
        accept = f"refresh azure-prices --accept --region eastus --file '{file}' --day 2026-08-30\n"
        assert (accept in done.stderr) is (len(items) == 1)
        assert "To fetch again" not in done.stderr
    file.write_text('{"Items": [], "Count": 0, "BillingCurrency": "USD", "NextPageLink": null}', encoding="utf-8")
    done = run(catalog, *arguments[:-2])
    assert (done.returncode, done.stderr) == (3, f"error: {file}: has no items\n")


@pytest.mark.takes_seconds
def test_a_checkout_is_read_with_what_its_pages_include(run: Run, catalog: str, checkout: Path) -> None:
    done = run(catalog, "refresh", "azure-docs", str(checkout))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("azure-docs: 4 facts from 2 pages")
    assert "overview.md" in done.stderr
    facts = json.loads(run(catalog, "show", "nx24_v1", "--json").stdout)["facts"]
    assert "articles/virtual-machines/sizes/gpu-accelerated/includes/nx-specs.md" in {fact["file"] for fact in facts}


@pytest.mark.takes_seconds
def test_without_a_feed_all_that_are_set_up_are_refreshed_and_one_that_fails_stops_no_other(
    run: Run, catalog: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VMSIZES_AZURE_DOCS", str(checkout))
    with serving(FakeApi(items={}, fault=lambda *_: (404, {}))) as api:
        monkeypatch.setenv("VMSIZES_AZURE_PRICES_URL", api.url)
        monkeypatch.setenv("VMSIZES_EXCHANGE_RATES_URL", f"{api.url}/no-such-file.zip")
        done = run(catalog, "refresh", "--json")
    assert done.returncode == 3
    prices, rates, docs = json.loads(done.stdout)["feeds"]
    assert prices["ingest"] is None
    assert docs["facts"] == 4
    assert (rates["feed"], rates["ingest"]) == ("exchange-rates", None)
    assert "/no-such-file.zip: 127.0.0.1 answered 404" in done.stderr
    assert "127.0.0.1 answered 404" in done.stderr
    assert "To fetch again what failed: vmsizes refresh azure-prices\n" in done.stderr
    assert api.requests <= 4


@pytest.mark.takes_seconds
def test_a_refresh_that_fails_is_in_the_metrics_until_one_succeeds(run: Run, catalog: str, tmp_path: Path) -> None:
    (tmp_path / "damaged.json").write_text("{")
    damaged = str(tmp_path / "damaged.json")

    def states() -> dict[str, tuple[float, bool]]:
        refreshes = client.get("/readyz").json()["refreshes"]
        names = ("vmsizes_refresh_failed", "vmsizes_refresh_success_timestamp_seconds")
        failed, succeeded = (samples_of(client, name) for name in names)
        assert samples_of(client, "vmsizes_refresh_timestamp_seconds").keys() == failed.keys()
        assert {feed: float(one["failed"]) for feed, one in refreshes.items()} == {
            key[0]: failed[key] for key in failed
        }
        assert {feed for feed, one in refreshes.items() if one["succeeded_at"]} == {feed for (feed,) in succeeded}
        return {feed: (failed[feed,], (feed,) in succeeded) for (feed,) in failed}

    service = create_asgi_app(Settings(_env_file=None, database_url=catalog))
    with server(service) as url, open_client(url) as client:
        assert states() == {}
        run(catalog, "refresh", "exchange-rates", "--file", damaged, "--dry-run")
        run(catalog, "refresh", "exchange-rates", "--file", "no-such.zip")
        assert states() == {}
        run(catalog, "refresh", "exchange-rates", "--file", damaged)
        with serving(eastus(fault=lambda *_: (404, {}))) as broken:
            run(catalog, "refresh", "azure-prices", "--url", broken.url, "--region", "eastus")
        assert states() == {"azure-prices": (1, False), "exchange-rates": (1, False)}
        with serving(eastus()) as api:
            run(catalog, "refresh", "azure-prices", "--url", api.url, "--region", "eastus")
        assert states() == {"azure-prices": (0, True), "exchange-rates": (1, False)}
        run(catalog, "refresh", "azure-prices", "--file", damaged)
        assert states() == {"azure-prices": (1, True), "exchange-rates": (1, False)}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("azure-prices", "--region", "westeurop"), 2, "--region=westeurop: no such region; did you mean westeurope?"),
        (("azure-prices", "--day", "2026-08-30"), 2, "--day is of saved pages: it needs --file"),
        (("azure-prices", "--file", "x", "--url", "http://127.0.0.1"), 2, "--file fetches nothing"),
        (("azure-prices", "--file", "x", "--day", "2099-01-01"), 2, "--day=2099-01-01: must not be later than "),
        (("azure-prices", "--file", "no-such-folder"), 3, "no-such-folder: does not exist"),
        (("azure-skus",), 2, "give --file, or set VMSIZES_AZURE_SUBSCRIPTION and VMSIZES_AZURE_TOKEN"),
        (("azure-skus", "--file", "no-such-file.json"), 3, "no-such-file.json: does not exist"),
        (("exchange-rates", "--file", "x", "--url", "http://127.0.0.1"), 2, "--file fetches nothing"),
        (("exchange-rates", "--file", "no-such.zip"), 3, "no-such.zip: does not exist"),
        (("azure-docs",), 2, "give the folder of a checkout, or set VMSIZES_AZURE_DOCS"),
        (("azure-docs", "no-such-folder"), 3, "no-such-folder: does not exist"),
        (("--dry-run", "azure-docs", "x"), 2, "give options behind the feed: vmsizes refresh azure-docs"),
        (("aws",), 2, "No such command 'aws'"),
    ],
)
def test_what_cannot_be_done_is_refused(
    run: Run, catalog: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = run(catalog, "refresh", *arguments)
    assert done.returncode == code, done.stderr
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_refresh_needs_a_catalog(run: Run, database_url: str) -> None:
    done = run(database_url, "refresh", "azure-prices")
    assert done.returncode == 4
    assert "run `vmsizes ingest seeds`" in done.stderr


def answer(*names: str) -> str:
    return json.dumps({"value": [sku_entry(name) for name in names], "nextLink": None})


def test_a_saved_answer_about_sizes_is_read(run: Run, catalog: str, tmp_path: Path) -> None:
    file = tmp_path / "skus.json"
    file.write_text(answer("Standard_NX24_v1", "Standard_NX48_v1"))
    done = run(catalog, "refresh", "azure-skus", "--file", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"azure-skus of {TODAY}: 2 sizes, 32 facts from 2 entries")
    size = json.loads(run(catalog, "show", "nx24_v1", "--json").stdout)["size"]
    assert (size["vcpus"], size["memory_gib"], size["verified"]) == (24, 220, True)


def test_an_answer_for_one_region_does_not_replace_one_for_several(run: Run, catalog: str, tmp_path: Path) -> None:
    file = tmp_path / "skus.json"
    regions = ("southcentralus", "westus3")
    file.write_text(json.dumps([sku_entry("Standard_NX24_v1", region) for region in regions]))
    arguments = ("refresh", "azure-skus", "--file", str(file))
    assert run(catalog, *arguments).returncode == 0
    file.write_text(answer("Standard_NX24_v1"))
    done = run(catalog, *arguments)
    assert done.returncode == 3
    assert "refused: azure-skus: 1 of 2 regions of sizes are gone" in done.stderr


@pytest.mark.takes_seconds
def test_sizes_that_are_gone_refuse_an_answer_until_it_is_accepted(run: Run, catalog: str, tmp_path: Path) -> None:
    file = tmp_path / "skus.json"
    file.write_text(answer(*(f"Standard_NX{n}_v1" for n in range(1, 11))))
    arguments = ("refresh", "azure-skus", "--file", str(file))
    assert run(catalog, *arguments).returncode == 0
    file.write_text(answer("Standard_NX1_v1"))
    done = run(catalog, *arguments)
    assert done.returncode == 3
    assert "refused: azure-skus: 9 of 10 sizes are gone" in done.stderr
    assert f"To take it as it is: vmsizes refresh azure-skus --accept --file {file}" in done.stderr
    assert run(catalog, *arguments, "--accept").returncode == 0
    assert run(catalog, "show", "nx2_v1").returncode == 1


@pytest.mark.takes_seconds
def test_sizes_are_fetched_with_a_token_from_page_to_page(
    run: Run, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def skus(request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer secret" or request.path_params["id"] != "sub":
            return Response(status_code=401)
        if "$skiptoken" in request.query_params:
            return Response(answer("Standard_NX48_v1"))
        link = str(request.url.include_query_params(**{"$skiptoken": "2"}))
        return Response(json.dumps({"value": [sku_entry("Standard_NX24_v1")], "nextLink": link}))

    with server(Starlette(routes=[Route("/subscriptions/{id}/skus", skus)])) as base:
        url = base + "/subscriptions/{subscription}/skus"
        monkeypatch.setenv("VMSIZES_AZURE_SUBSCRIPTION", "sub")
        monkeypatch.setenv("VMSIZES_AZURE_TOKEN", "secret")
        done = run(catalog, "refresh", "azure-skus", "--url", url)
        assert done.returncode == 0, done.stderr
        assert "2 sizes" in done.stdout
        monkeypatch.setenv("VMSIZES_AZURE_TOKEN", "old")
        done = run(catalog, "refresh", "azure-skus", "--url", url)
    assert done.returncode == 3
    assert "127.0.0.1 answered 401" in done.stderr
    assert "secret" not in done.stderr + done.stdout


@pytest.mark.takes_seconds
def test_sizes_are_not_read_from_pages_of_a_longer_answer_before(
    run: Run, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = ["Standard_NX24_v1", "Standard_NX48_v1"]

    async def skus(request: Request) -> Response:
        page = int(request.query_params.get("page", 0))
        link = str(request.url.include_query_params(page=page + 1)) if page + 1 < len(pages) else None
        return Response(json.dumps({"value": [sku_entry(pages[page])], "nextLink": link}))

    monkeypatch.setenv("VMSIZES_AZURE_SUBSCRIPTION", "sub")
    monkeypatch.setenv("VMSIZES_AZURE_TOKEN", "secret")
    with server(Starlette(routes=[Route("/skus", skus)])) as base:
        first = run(catalog, "refresh", "azure-skus", "--url", f"{base}/skus")
        assert "2 sizes" in first.stdout, first.stderr
        del pages[1]
        second = run(catalog, "refresh", "azure-skus", "--url", f"{base}/skus", "--accept")
    assert "1 size," in second.stdout, second.stderr


def test_exchange_rates_of_new_days_are_added(run: Run, catalog: str, tmp_path: Path) -> None:
    saved = tmp_path / "eurofxref-hist.csv"
    saved.write_text("Date,USD,GBP,\n2026-11-02,1.12,0.84,\n2026-10-30,1.1172,0.8338,\n")
    done = run(catalog, "refresh", "exchange-rates", "--file", str(saved))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "exchange-rates: 2 rates of 1 new day until 2026-11-02"
    again = run(catalog, "refresh", "exchange-rates", "--file", str(saved), "--json")
    (feed,) = json.loads(again.stdout)["feeds"]
    assert (feed["days"], feed["newest_day"], feed["ingest"]) == (0, None, None)
