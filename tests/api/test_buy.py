"""GET /sizes/{name}/buy: the figures of five sizes, worked out by hand from the prices of the seeds."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.command_line import run_command
from tests.conftest import TODAY

Figures = tuple[str, str | None, int | None, float | None, float | None]
"""Cost over the months, saved, month of break-even, percent from which it beats on demand, and is the cheapest."""


def buy(client: httpx.Client, name: str, query: str) -> dict[str, Any]:
    response = client.get(f"/sizes/{name}/buy?{query}")
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def cents(amount: float | None) -> str | None:
    return None if amount is None else f"{Decimal(repr(amount)):.2f}"


@pytest.mark.parametrize(
    ("name", "query", "expected"),
    [
        (  # 0.612, 0.5508; 3163 a year, 6112 in three; 0.46512, 0.32436: 446.76 a month on demand
            "b16als_v2",
            "region=polandcentral",
            {
                "on_demand": ("16083.36", None, None, None, 0),
                "spot": ("14475.02", "1608.34", 1, 0, 0),
                "reserved_1y": ("9489.00", "6594.36", 8, 59.0, None),
                "reserved_3y": ("6112.00", "9971.36", 14, 38.0, 38.0),
                "savings_1y": ("12223.35", "3860.01", 10, 76.0, None),
                "savings_3y": ("8524.18", "7559.18", 20, 53.0, None),
            },
        ),
        (  # 0.828, 0.153014 and 0.3496 for Linux with a licence of 0.828 - 0.46: 6124.992 + 5299.2
            "d8s_v5",
            "region=westeurope&os=windows&months=24&hours_per_month=600",
            {
                "on_demand": ("11923.20", None, None, None, 0),
                "spot": ("2203.40", "9719.80", 1, 0, 0),
                "savings_1y": ("11424.19", "499.01", 12, 76.0, 76.0),
            },
        ),
        (  # 0.46 and 0.3496: the licence is one's own, so 6624 and 6124.992
            "d8s_v5",
            "region=westeurope&os=windows&months=24&hours_per_month=600&hybrid_benefit=true",
            {
                "on_demand": ("6624.00", None, None, None, 0),
                "spot": ("1224.12", "5399.88", 1, 0, 0),
                "savings_1y": ("6124.99", "499.01", 12, 76.0, 76.0),
            },
        ),
        (  # 0.388472, 0.167504 / 0.8, 0.244728, 0.174824, times three; the term of three years is paid whole
            "n2-standard-8",
            "region=us-central1&months=24&hours_per_month=400&spot_loss_percent=20&count=3",
            {
                "on_demand": ("11187.99", None, None, None, 0),
                "spot": ("6030.14", "5157.85", 1, 0, 0),
                "reserved_1y": ("12862.90", "-1674.91", None, 63.0, 63.0),
                "reserved_3y": ("13783.12", "-2595.13", 30, 45.0, None),
            },
        ),
        (  # 98.32 and 18.169536 for 730 hours
            "nd96isr_h100_v5",
            "region=eastus&months=1",
            {"on_demand": ("71773.60", None, None, None, 0), "spot": ("13263.76", "58509.84", 1, 0, 0)},
        ),
        ("m5.large", "region=us-east-1&months=12", {"on_demand": ("840.96", None, None, None, 0)}),
    ],
)
def test_the_figures_are_those_by_hand(
    clouds: httpx.Client, name: str, query: str, expected: dict[str, Figures]
) -> None:
    answer = buy(clouds, name, query)
    known = {way["purchase"]: way for way in answer["ways"] if way["usd_total"] is not None}
    assert {
        purchase: (
            cents(way["usd_total"]),
            cents(way["saved_usd"]),
            way["break_even_month"],
            way["break_even_percent"],
            way["cheapest_from_percent"],
        )
        for purchase, way in known.items()
    } == expected
    # What has no price is unknown: it has no amount, and is named.
    assert answer["unknown"] == [way["purchase"] for way in answer["ways"] if way["purchase"] not in known]
    assert answer["not_sold"] == []
    assert all(way["prices"] == way["cumulative"] == [] for way in answer["ways"] if way["purchase"] not in known)
    without_spot = {purchase: way["usd_total"] for purchase, way in known.items() if purchase != "spot"}
    assert answer["cheapest_without_spot"] == min(without_spot, key=lambda purchase: without_spot[purchase])
    sources = {source["id"] for source in clouds.get("/sources?limit=500").json()["items"]}
    for way in known.values():
        assert way["cumulative"][-1] == {"month": answer["months"], "usd": way["usd_total"]}
        assert {price["source_id"] for price in way["prices"]} <= sources
        assert all(price["price_as_of"] for price in way["prices"])


def test_the_month_of_break_even_is_the_first_by_which_on_demand_has_cost_as_much(clouds: httpx.Client) -> None:
    for months in (7, 8):
        ways = {
            way["purchase"]: way for way in buy(clouds, "b16als_v2", f"region=polandcentral&months={months}")["ways"]
        }
        # A year is paid whole, however soon one stops.
        assert cents(ways["reserved_1y"]["usd_total"]) == "3163.00"
        assert (ways["on_demand"]["usd_total"] >= ways["reserved_1y"]["usd_total"]) is (months == 8)


def test_a_commitment_costs_the_same_in_a_month_of_31_days(clouds: httpx.Client) -> None:
    usual, longer = (
        buy(clouds, "b16als_v2", f"region=polandcentral&months=12&hours_per_month={hours}") for hours in (730, 744)
    )
    for before, after in zip(usual["ways"], longer["ways"], strict=True):
        factor = 1 if before["purchase"].startswith(("reserved", "savings")) else Decimal(744) / 730
        difference = Decimal(str(after["usd_total"])) - Decimal(str(before["usd_total"])) * factor
        assert abs(difference) < Decimal("0.000001"), before["purchase"]


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("months=0", "months=0: must be at least 1"),
        ("months=61", "months=61: must be at most 60"),
        ("hours_per_month=745", "hours_per_month=745: must be at most 744"),
        ("spot_loss_percent=91", "spot_loss_percent=91: must be at most 90"),
        ("region=westeurop", "did you mean westeurope?"),
        ("as_of=2100-01-01", "must not be later than"),
        ("hybrid_benefit=true", "hybrid_benefit=true: needs os=windows"),
    ],
)
def test_what_cannot_be_is_refused(client: httpx.Client, query: str, detail: str) -> None:
    response = client.get(f"/sizes/d8s_v5/buy?{query}")
    assert (response.status_code, detail in response.json()["detail"]) == (422, True), response.text


@pytest.mark.one_database
def test_a_way_that_the_vendor_stopped_selling_is_not_unknown(client: httpx.Client, seeded_url: str) -> None:
    ended = [{"purchase": purchase, "sold_until": "2026-06-30"} for purchase in ("reserved_1y", "reserved_3y")]
    answer = buy(client, "d2_v3", "region=polandcentral")
    assert (answer["not_sold"], {"reserved_1y", "reserved_3y"} & {*answer["unknown"]}) == (ended, set())
    assert buy(client, "d2_v3", "region=polandcentral&as_of=2026-06-30")["not_sold"] == []
    page = client.get("/ui/sizes/d2_v3/buy?region=polandcentral", headers={"accept": "text/html"}).text
    assert "No longer sold: reserved, 1 year (until 2026-06-30); reserved, 3 years (until 2026-06-30)." in page
    shown = run_command(seeded_url, "buy", "d2_v3", "--region", "polandcentral", today=lambda: TODAY).stdout
    assert "No longer sold: reserved_1y (until 2026-06-30), reserved_3y (until 2026-06-30)." in shown


@pytest.mark.one_database
@pytest.mark.parametrize(("months", "left"), [(8, None), (9, 8), (24, 8)])
def test_a_size_that_retires_before_the_months_are_over_says_so(
    client: httpx.Client, seeded_url: str, months: int, left: int | None
) -> None:
    query = f"region=westeurope&months={months}"
    assert buy(client, "hb120rs_v2", query)["retires_after_months"] == left
    said = f"he size retires on 2027-05-31, after {left} of the {months} months"
    page = client.get(f"/ui/sizes/hb120rs_v2/buy?{query}", headers={"accept": "text/html"}).text
    options = ("--region", "westeurope", "--months", str(months))
    shown = run_command(seeded_url, "buy", "hb120rs_v2", *options, today=lambda: TODAY).stdout
    verdict = next(line for line in shown.splitlines() if line.startswith("Cheapest"))
    assert (said in page, f"; but t{said}." in verdict) == (left is not None,) * 2
    assert "The size retires on 2027-05-31" in (page if left is None else verdict.replace("; but t", " T"))
    retired = client.get("/ui/sizes/nc6s_v3/buy?region=eastus", headers={"accept": "text/html"}).text
    assert "The size retired on 2025-09-30: figures and ranks are as if" in retired


@pytest.mark.one_database
def test_the_page_and_the_command_say_the_same(client: httpx.Client, seeded_url: str) -> None:
    query = "region=westeurope&os=windows&months=24&hours_per_month=600"
    page = client.get(f"/ui/sizes/d8s_v5/buy?{query}", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert all(text in page.text for text in ("11,923.20", "11,424.19", "licence 0.368", 'class="chosen"'))
    assert (
        "ui/sizes/standard_d8s_v5/buy?region=" in client.get("/ui/sizes/d8s_v5", headers={"accept": "text/html"}).text
    )
    euro = client.get(f"/ui/sizes/d8s_v5/buy?{query}&currency=EUR", headers={"accept": "text/html"}).text
    of_api = buy(client, "d8s_v5", f"{query}&currency=EUR")["ways"][0]["converted"]["cost_total"]
    assert (f"{of_api:,.2f}" in euro, "EUR for 1" in euro, "EUR an hour" in euro) == (True, True, True)
    options = ("--region", "westeurope", "--os", "windows", "--months", "24", "--hours-per-month", "600")
    shown = run_command(seeded_url, "buy", "d8s_v5", *options, today=lambda: TODAY).stdout
    assert all(
        text in shown for text in ("11,923.20", "11,424.19", "Cheapest of the known ways: spot, of those without")
    )
    shown = run_command(seeded_url, "buy", "d8s_v5", *options, "--currency", "EUR", today=lambda: TODAY).stdout
    assert all(text in shown for text in (f"{of_api:,.2f}", "EUR/month", "1 USD = 0.862"))
