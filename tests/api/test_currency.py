"""The parameter `currency`: the amounts of every answer in another currency, by one dated rate."""

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import httpx
import pytest

from app.catalog.projections import OFFER_JSON_FIELDS, UNIT_PRICE_FIELDS
from app.catalog.queries.exchange_rates import EXCHANGE_RATE_FIELDS, converted_name
from app.schemas.sizes import ConvertedPricesOut, ExchangeRateOut

pytestmark = pytest.mark.first_database

SOURCE = "ecb-reference-rates-2026-10-30"
USD_PER_EURO = Decimal("1.159")
"""On 2026-09-01, which is today in these tests."""

WORKLOAD = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 8}, "limit": 3}


def get(client: httpx.Client, path: str, **params: Any) -> Any:
    response = client.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


def fit(client: httpx.Client, **pricing: Any) -> Any:
    response = client.post("/fit", json=WORKLOAD | {"pricing": pricing})
    assert response.status_code == 200, response.text
    return response.json()


def in_euro(usd: float | None) -> float | None:
    if usd is None:
        return None
    return float((Decimal(repr(usd)) / USD_PER_EURO).quantize(Decimal("1e-9"), ROUND_HALF_UP))


def test_a_page_of_sizes_has_its_prices_in_the_currency_and_their_rate(client: httpx.Client) -> None:
    body = get(client, "/sizes", currency="eur", gpu="A100,A10", limit=100)
    assert body["exchange_rate"] == {
        "currency": "EUR",
        "units_per_usd": in_euro(1.0),
        "units_per_euro": 1.0,
        "usd_per_euro": float(USD_PER_EURO),
        "day": "2026-09-01",
        "age_days": 0,
        "source_id": SOURCE,
    }
    assert any(row["converted"]["price_per_gpu_hour"] != row["converted"]["price_per_hour"] for row in body["items"])
    for row in body["items"]:
        converted = row["converted"]
        assert converted["currency"] == "EUR"
        for name in ("usd_per_hour", "on_demand_usd_per_hour", "spot_usd_per_hour"):
            assert converted[converted_name(name)] == in_euro(row[name])
        for name in UNIT_PRICE_FIELDS:  # rounded once each, so they may differ by the last
            assert converted[converted_name(name)] == pytest.approx(in_euro(row[name]), abs=2e-9)


def test_the_schemas_have_every_converted_price_and_field_of_a_rate() -> None:
    prices = [converted_name(name) for name in OFFER_JSON_FIELDS if "usd_per" in name]
    assert list(ConvertedPricesOut.model_fields) == ["currency", *prices]
    assert tuple(ExchangeRateOut.model_fields) == EXCHANGE_RATE_FIELDS


def test_what_is_in_us_dollars_stays_beside_the_currency(client: httpx.Client) -> None:
    plain, converted = (get(client, "/sizes", limit=20, **more) for more in ({}, {"currency": "JPY"}))
    for row in converted["items"]:
        del row["converted"]
    del converted["exchange_rate"]
    assert converted == plain


def test_pages_in_a_currency_go_on_and_a_cursor_takes_any_currency(client: httpx.Client) -> None:
    first = client.get("/sizes", params={"currency": "EUR", "limit": 2, "sort": "usd_per_hour"})
    following = client.get(first.links["next"]["url"])
    assert following.status_code == 200
    assert following.json()["exchange_rate"] == first.json()["exchange_rate"]
    cursor = first.json()["next_cursor"]
    other = get(client, "/sizes", limit=2, sort="usd_per_hour", cursor=cursor)
    assert [row["name"] for row in other["items"]] == [row["name"] for row in following.json()["items"]]


def test_bounds_and_order_stay_in_us_dollars(client: httpx.Client) -> None:
    question = {"max_usd_per_hour": 4, "sort": "-usd_per_hour", "limit": 100}
    plain, yen = (get(client, "/sizes", **question, **more)["items"] for more in ({}, {"currency": "JPY"}))
    assert [row["name"] for row in plain] == [row["name"] for row in yen]


def test_converted_prices_can_be_chosen_as_a_field(client: httpx.Client) -> None:
    body = get(client, "/sizes", currency="GBP", fields="converted,name", limit=2)
    assert [list(row) for row in body["items"]] == [["converted", "name"]] * 2
    assert [list(row) for row in get(client, "/sizes", fields="converted,name", limit=2)["items"]] == [["name"]] * 2


def test_one_size_has_the_rate_beside_its_prices(client: httpx.Client) -> None:
    size = get(client, "/sizes/nd40rs_v2", currency="EUR")
    assert size["converted"]["price_per_hour"] == in_euro(size["usd_per_hour"])
    assert size["exchange_rate"]["usd_per_euro"] == float(USD_PER_EURO)


def test_a_size_without_a_price_has_none_in_any_currency(client: httpx.Client) -> None:
    size = get(client, "/sizes/NG16", currency="EUR")
    assert {name: value for name, value in size["converted"].items() if value is not None} == {"currency": "EUR"}


@pytest.mark.parametrize("path", ["/sizes/nc24ads_a100_v4/prices", "/prices"])
def test_prices_of_a_day_are_converted_by_the_rate_of_that_day(client: httpx.Client, path: str) -> None:
    question = {"region": "eastus", "os": "linux", "purchase": "on_demand", "as_of": "2026-07-05", "limit": 3}
    body = get(client, path, currency="CHF", **question)
    rate = body["exchange_rate"]
    assert (rate["day"], rate["age_days"]) == ("2026-07-03", 2)  # the fifth is a Sunday
    for row in body["items"]:
        exact = Decimal(repr(row["usd_per_hour"])) * Decimal(repr(rate["units_per_euro"]))
        price = float((exact / Decimal(repr(rate["usd_per_euro"]))).quantize(Decimal("1e-9"), ROUND_HALF_UP))
        assert row["converted"] == {"currency": "CHF", "price_per_hour": price}


def converted(usd: Fraction, rate: dict[str, Any]) -> float:
    exact = usd * Fraction(repr(rate["units_per_euro"])) / Fraction(repr(rate["usd_per_euro"]))
    return float(Decimal(int(exact * 10**9 + Fraction(1, 2))).scaleb(-9))


def test_a_cost_is_converted_from_exact_amounts_and_rounded_once(client: httpx.Client) -> None:
    question = {"region": "westeurope", "disk": "premium_ssd:1000,premium_ssd_v2:1024:5000:200", "count": 3}
    plain = get(client, "/sizes/nc24ads_a100_v4/cost", **question)
    body = get(client, "/sizes/nc24ads_a100_v4/cost", currency="CHF", **question)
    rate = body["exchange_rate"]
    usd = Fraction(repr(plain["vm"]["usd_per_hour"]))
    expected = {
        "price_per_hour": usd,
        "price_per_month": usd * 730,
        "price_per_year": usd * 730 * 12,
        "price_per_vcpu_hour": usd / 24,
        "price_per_memory_gib_hour": usd / 220,
        "price_per_gpu_hour": usd,
        "price_per_gpu_gib_hour": usd / 80,
    }
    in_francs = {name: converted(amount, rate) for name, amount in expected.items()}
    of_no_score = {"price_per_1000_coremark_hour": None}
    assert body["vm"].pop("converted") == {"currency": "CHF", **in_francs, **of_no_score}
    for part in (*body["disks"], body["total"]):
        month = Fraction(repr(part["usd_per_month"]))
        in_francs = {"price_per_month": converted(month, rate), "price_per_year": converted(month * 12, rate)}
        assert part.pop("converted") == {"currency": "CHF", **in_francs}
    assert body.pop("exchange_rate")["day"] == "2026-09-01"
    assert body == plain


def test_a_cost_of_a_past_day_is_converted_by_the_rate_of_that_day(client: httpx.Client) -> None:
    body = get(client, "/sizes/nc24ads_a100_v4/cost", currency="EUR", region="eastus", as_of="2026-07-05")
    assert (body["exchange_rate"]["day"], body["exchange_rate"]["age_days"]) == ("2026-07-03", 2)


def test_what_is_unknown_of_a_cost_is_unknown_in_the_currency(client: httpx.Client) -> None:
    body = get(client, "/sizes/nc24ads_a100_v4/cost", currency="EUR", region="eastus", disk="premium_ssd:1000")
    unknown = {"currency": "EUR", "price_per_month": None, "price_per_year": None}
    assert [body["disks"][0]["converted"], body["total"]["converted"]] == [unknown, unknown]


def test_disks_have_their_prices_also_in_the_currency(client: httpx.Client) -> None:
    plain = get(client, "/disks", region="westeurope", limit=500)
    body = get(client, "/disks", region="westeurope", limit=500, currency="EUR")
    rate = body.pop("exchange_rate")
    kinds = dict.fromkeys(("usd_per_month", "usd_per_gib_hour", "usd_per_iops_hour", "usd_per_mbps_hour"), 0)
    for disk in body["items"]:
        prices = disk.pop("converted")
        assert prices["currency"] == "EUR"
        for name in kinds:
            usd = disk[name]
            kinds[name] += usd is not None
            assert prices[converted_name(name)] == (None if usd is None else converted(Fraction(repr(usd)), rate))
        per_gib = disk["usd_per_gib_month"]
        expected = None if per_gib is None else pytest.approx(in_euro(per_gib), abs=2e-9)
        assert prices["price_per_gib_month"] == expected
    assert all(kinds.values())
    assert body == plain


def test_ways_to_buy_are_converted_from_exact_amounts_and_rounded_once(client: httpx.Client) -> None:
    question = {"region": "polandcentral", "months": 6, "hours_per_month": 200, "count": 3}
    plain = get(client, "/sizes/b16als_v2/buy", **question)
    body = get(client, "/sizes/b16als_v2/buy", currency="EUR", **question)
    assert body.pop("exchange_rate")["day"] == "2026-09-01"
    signs = set()
    for way in body["ways"]:
        amounts = way.pop("converted")
        assert amounts.pop("currency") == "EUR"
        usd = [way["usd_total"], way["usd_per_month"], way["saved_usd"], *(at["usd"] for at in way["cumulative"])]
        expected = [None if amount is None else pytest.approx(in_euro(amount), abs=2e-9) for amount in usd]
        assert [*amounts.values()][:3] + amounts["cumulative_cost"] == expected
        signs.add(amounts["saved"] is not None and amounts["saved"] < 0)
        for price in way["prices"]:
            assert price.pop("converted") == {"currency": "EUR", "price_per_hour": in_euro(price["usd_per_hour"])}
    assert signs == {True, False}  # what costs more saves less than nothing, and is rounded alike
    assert body == plain


def test_a_history_is_converted_by_one_rate(client: httpx.Client) -> None:
    body = get(client, "/sizes/nc24ads_a100_v4/prices", history="true", currency="EUR", region="eastus")
    assert len({row["valid_from"] for row in body["items"]}) > 1
    assert all(row["converted"]["price_per_hour"] == in_euro(row["usd_per_hour"]) for row in body["items"])


def test_a_comparison_has_each_price_also_in_the_currency_with_its_unit(client: httpx.Client) -> None:
    body = get(client, "/compare", size="nc24ads_a100_v4,nc40ads_h100_v5", currency="EUR")
    lines = {line["field"]: line for line in body["fields"]}
    dollars = [name for name in lines if "usd_per" in name]
    assert "usd_per_fp16_tflops_hour" in dollars
    for name in dollars:
        line, converted = lines[name], lines[converted_name(name)]
        assert converted["unit"] == line["unit"].replace("USD", "EUR")
        for cell, other in zip(line["values"], converted["values"], strict=True):
            expected = in_euro(cell["value"])
            assert other["value"] == (expected if expected is None else pytest.approx(expected, abs=2e-9))
    assert body["exchange_rate"]["currency"] == "EUR"
    hourly = lines["price_per_hour"]["values"]
    assert hourly[1]["difference_percent"] == lines["usd_per_hour"]["values"][1]["difference_percent"]


def test_costs_of_raw_amounts_are_converted(client: httpx.Client) -> None:
    body = get(client, "/fit", min_gpus=4, hours=24, currency="EUR", limit=3)
    for option in body["items"]:
        for cost in option["cost"].values():
            converted = cost.get("converted")
            assert converted["currency"] == "EUR"
            assert converted["cost_per_hour"] == in_euro(cost["usd_per_hour"])
            assert converted["cost_per_month"] == in_euro(cost["usd_per_month"])
            if "usd_per_job" in cost:
                job = converted["cost_per_job"]
                assert (job["unit"], job["class"]) == ("EUR", "exact")
                assert job["value"] == in_euro(cost["usd_per_job"]["value"])
    assert body["exchange_rate"]["day"] == "2026-09-01"


def test_costs_of_a_model_are_converted_with_their_ranges(client: httpx.Client) -> None:
    body = fit(client, currency="eur")
    cost = body["items"][0]["cost"]["on_demand"]
    assert cost["converted"]["cost_per_hour"] == in_euro(cost["usd_per_hour"])
    dollars, euro = cost["usd_per_million_tokens"], cost["converted"]["cost_per_million_tokens"]
    assert (euro["unit"], euro["class"], euro["value"]) == ("EUR", "estimate", None)
    assert [euro[name] for name in ("low", "mid", "high")] == [
        in_euro(dollars[name]) for name in ("low", "mid", "high")
    ]
    assert body["exchange_rate"]["source_id"] == SOURCE


def test_a_body_of_resources_takes_a_currency_and_a_day(client: httpx.Client) -> None:
    pricing = {"currency": "BGN", "as_of": "2025-12-31"}
    response = client.post("/fit", json={"resources": {"min_gpus": 4}, "pricing": pricing})
    assert response.json()["exchange_rate"]["day"] == "2025-12-31"
    assert "exchange_rate" not in client.post("/fit", json={"resources": {"min_gpus": 4}}).text
    assert fit(client, **pricing)["exchange_rate"]["units_per_euro"] == 1.9558


@pytest.mark.parametrize(
    ("path", "slug", "detail"),
    [
        ("/sizes?currency=ZZZ", "unknown-value", "currency=ZZZ: `errors` lists what is allowed"),
        ("/sizes/nd40rs_v2?currency=BGN", "unknown-value", "has rates from 2023-01-02 until 2025-12-31, and none for"),
        ("/prices?currency=EUR&as_of=2022-07-01", "unknown-value", "has rates from 2023-01-02 until"),
        ("/compare?size=nd40rs_v2,nd96asr_v4&currency=HRK", "unknown-value", "currency=HRK"),
        ("/fit?min_gpus=1&currency=RUB", "unknown-value", "currency=RUB"),
        ("/sizes?currency=euro", "bad-parameter", "currency=euro: must be a code of three letters, such as EUR"),
        ("/sizes?currency=EUR&currency=CHF", "bad-parameter", "takes one value"),
        ("/facets?currency=EUR", "bad-parameter", "there is no such parameter"),
        ("/sizes.csv?currency=EUR", "bad-parameter", "there is no such parameter"),
    ],
)
def test_a_currency_that_cannot_be_had_is_refused(client: httpx.Client, path: str, slug: str, detail: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.json()["type"]) == (422, f"/problems/{slug}")
    assert detail in response.json()["detail"]


def test_an_unknown_currency_is_told_which_are_known(client: httpx.Client) -> None:
    (error,) = client.get("/sizes?currency=ZZZ").json()["errors"]
    assert error["pointer"] == "/query/currency"
    assert "allowed are AUD, BGN, BRL" in error["detail"]
    assert all(f" {code}" in error["detail"] for code in ("EUR", "USD", "ZAR"))


@pytest.mark.parametrize("body", [WORKLOAD, {"resources": {"min_gpus": 4}}], ids=["model", "resources"])
def test_an_unknown_currency_in_a_body_is_named_with_its_path(client: httpx.Client, body: dict[str, Any]) -> None:
    (error,) = client.post("/fit", json=body | {"pricing": {"currency": "ZZZ"}}).json()["errors"]
    assert error["pointer"] == "/body/pricing/currency"
    assert error["detail"].startswith("pricing.currency=ZZZ: allowed are AUD")


def shape(value: Any) -> Any:
    """Return the names of an answer's fields, at every level."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else None


REGION = {"region": "westeurope"}
ASKED: dict[str, dict[str, str]] = {
    "/sizes": {"gpu": "A100"},
    "/sizes/{name}": {},
    "/sizes/{name}/prices": REGION,
    "/sizes/{name}/cost": {**REGION, "disk": "premium_ssd:1024"},
    "/sizes/{name}/buy": {**REGION, "months": "24"},
    "/prices": REGION,
    "/compare": {"size": "nc24ads_a100_v4,nc40ads_h100_v5"},
    "/fit": {"min_gpus": "4", "hours": "24"},
    "/disks": REGION,
}
"""Every endpoint that takes a currency, with what it is asked."""


def test_all_endpoints_that_take_a_currency_are_tried(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    taking = {
        path
        for path, methods in paths.items()
        for one in methods.get("get", {}).get("parameters", ())
        if one["name"] == "currency"
    }
    assert taking == ASKED.keys()


@pytest.mark.parametrize("path", ASKED)
def test_us_dollars_are_answered_as_another_currency_is_at_the_rate_1(client: httpx.Client, path: str) -> None:
    url = path.format(name="nc24ads_a100_v4")
    dollars, euro = (get(client, url, currency=code, **ASKED[path]) for code in ("USD", "EUR"))
    if path == "/compare":
        assert [line["field"] for line in dollars["fields"]] == [line["field"] for line in euro["fields"]]
    assert shape(dollars) == shape(euro)
    assert_in_us_dollars(dollars)


@pytest.mark.parametrize("path", ASKED)
def test_without_a_currency_there_are_us_dollars_only(client: httpx.Client, path: str) -> None:
    plain = client.get(path.format(name="nc24ads_a100_v4"), params=ASKED[path])
    assert "converted" not in plain.text
    assert "exchange_rate" not in plain.text
    assert client.get(plain.url, params={**ASKED[path], "currency": ""}).content == plain.content


@pytest.mark.parametrize("asked", [WORKLOAD, {"resources": {"min_gpus": 4}}], ids=["model", "resources"])
def test_a_body_with_us_dollars_is_answered_as_one_with_euro(client: httpx.Client, asked: dict[str, Any]) -> None:
    answers = [client.post("/fit", json=asked | {"pricing": {"currency": code}}).json() for code in ("USD", "EUR")]
    assert shape(answers[0]) == shape(answers[1])
    assert_in_us_dollars(answers[0])


def assert_in_us_dollars(answer: Any) -> None:
    rate = answer["exchange_rate"]
    assert (rate["currency"], rate["units_per_usd"], rate["day"]) == ("USD", 1, "2026-09-01")
    assert rate["units_per_euro"] == rate["usd_per_euro"] == float(USD_PER_EURO)
    if "fields" in answer:  # a comparison
        lines = {line["field"]: line for line in answer["fields"]}
        assert lines["price_per_hour"]["unit"] == "USD/h"
        assert lines["price_per_hour"]["values"] == lines["usd_per_hour"]["values"]
        return
    pairs = [pair for pair in walk(answer) if "converted" in pair]
    assert pairs
    for amounts in pairs:
        assert amounts["converted"]["currency"] == "USD"
        for name, amount in amounts["converted"].items():
            in_dollars = name.replace("price_per", "usd_per").replace("cost_per", "usd_per")
            if in_dollars in amounts and not isinstance(amount, dict):
                assert amount == pytest.approx(amounts[in_dollars], abs=2e-9)


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of an answer."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(one)


def test_prices_in_us_dollars_need_no_rate(client: httpx.Client) -> None:
    question = {"as_of": "2022-12-31", "limit": 1}  # before the first rate
    assert get(client, "/sizes", currency="USD", **question) == get(client, "/sizes", **question)


@pytest.mark.parametrize(
    ("question", "params"),
    [
        ({"endpoint": "GET /sizes"}, {"currency": "EUR"}),
        ({"endpoint": "GET /sizes/{name}", "name": "nd40rs_v2"}, {"currency": "EUR"}),
        ({"endpoint": "POST /fit"}, WORKLOAD | {"pricing": {"currency": "EUR"}}),
    ],
)
def test_a_receipt_names_the_source_of_the_exchange_rate(
    client: httpx.Client, question: dict[str, Any], params: dict[str, Any]
) -> None:
    in_dollars = {name: value for name, value in params.items() if name not in ("currency", "pricing")}
    plain, converted = (
        client.post("/receipts", json={**question, "params": given}).json()["rests_on"]
        for given in (in_dollars, params)
    )
    assert converted == plain | {"sources": sorted([*plain["sources"], SOURCE])}
