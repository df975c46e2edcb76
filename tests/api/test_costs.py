"""What a size costs with disks, and the list of disks."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import httpx
import pytest

from app.catalog.projections import UNIT_PRICE_FIELDS

pytestmark = pytest.mark.one_database  # arithmetic on prices that other tests ask each kind for

NC24 = "/sizes/nc24ads_a100_v4/cost"


def cost(client: httpx.Client, path: str = NC24, **params: Any) -> dict[str, Any]:
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refusal(client: httpx.Client, path: str = NC24, **params: Any) -> str:
    answer = client.get(path, params=params)
    assert answer.status_code == 422
    return str(answer.json()["detail"])


def test_a_month_is_the_hours_of_the_vms_and_the_whole_month_of_the_disks(client: httpx.Client) -> None:
    found = cost(client, region="westeurope", disk="premium_ssd:1024", count=3, hours_per_month=200)
    assert found["vm"]["usd_per_hour"] == 4.775
    assert found["vm"]["usd_per_month"] == 955
    assert found["disks"][0]["usd_per_month"] == 148.68
    assert found["total"] == {"usd_per_month": 3311.04, "usd_per_year": 39732.48}
    assert found["unknown_parts"] == []


@pytest.mark.parametrize("name", ["nc24ads_a100_v4", "nv6ads_a10_v5", "nd96isr_h100_v5"])
@pytest.mark.parametrize("purchase", ["on_demand", "spot"])
@pytest.mark.parametrize("region", ["", "westeurope", "eastus,westeurope,swedencentral"])
def test_the_price_is_that_of_the_list(client: httpx.Client, name: str, purchase: str, region: str) -> None:
    params = {"purchase": purchase, "region": region}
    (row,) = client.get("/sizes", params={"name": f"Standard_{name}", **params}).json()["items"]
    found = cost(client, f"/sizes/{name}/cost", **params)
    names = ("usd_per_hour", *UNIT_PRICE_FIELDS, "price_as_of", "price_age_days")
    assert [found["vm"][each] for each in names] == [row[each] for each in names]
    assert row["region"] is None or found["region"] == row["region"]


def test_a_disk_that_was_asked_for_is_chosen_and_named(client: httpx.Client) -> None:
    wanted = ["premium_ssd:1000", "premium_ssd:100:6000", "standard_ssd:128", "standard_hdd:30", "premium_ssd_v2:10"]
    found = cost(client, region="westeurope", disk=wanted)["disks"]
    assert [(one["requested"], one["disk"], one["gib"], one["iops"]) for one in found] == [
        ("premium_ssd:1000", "p30-lrs", 1024, 5000),
        ("premium_ssd:100:6000", "p40-lrs", 2048, 7500),
        ("standard_ssd:128", "e10-lrs", 128, 500),
        ("standard_hdd:30", "s4-lrs", 32, 500),
        ("premium_ssd_v2:10", "premium-ssd-v2-lrs", 10, 3000),
    ]
    assert {(one["price_as_of"], one["price_age_days"]) for one in found} == {("2026-08-22", 10)}
    (zone,) = cost(client, region="westeurope", disk="premium_ssd:1000", redundancy="zrs")["disks"]
    assert (zone["disk"], zone["usd_per_month"]) == ("p30-zrs", 222.99)


def test_what_has_no_price_is_null_and_named(client: httpx.Client) -> None:
    found = cost(client, region="eastus", disk="premium_ssd:1000")
    assert (found["vm"]["usd_per_hour"], found["disks"][0]["usd_per_month"]) == (3.673, None)
    assert (found["unknown_parts"], found["warnings"]) == (["disks[0]"], ["NO_PRICE"])
    assert found["total"] == {"usd_per_month": None, "usd_per_year": None}
    nowhere = cost(client, "/sizes/ng8/cost", disk="premium_ssd:4")
    assert (nowhere["region"], nowhere["unknown_parts"]) == (None, ["vm", "disks[0]"])


def test_a_day_before_the_disks_had_prices_has_none(client: httpx.Client) -> None:
    found = cost(client, region="westeurope", disk="premium_ssd:1000", as_of="2026-08-21")
    assert (found["as_of"], found["unknown_parts"]) == ("2026-08-21", ["disks[0]"])
    past = cost(client, region="westeurope", as_of="2026-07-01")["vm"]
    (price,) = client.get(
        "/sizes/nc24ads_a100_v4/prices",
        params={"region": "westeurope", "os": "linux", "purchase": "on_demand", "as_of": "2026-07-01"},
    ).json()["items"]
    assert (past["usd_per_hour"], past["source_id"]) == (price["usd_per_hour"], price["source_id"])


def test_warnings_say_what_the_size_does_not_support(client: httpx.Client) -> None:
    found = cost(client, region="westeurope", disk="ultra_disk:128:1000:100")
    assert found["warnings"] == ["NO_ULTRA_DISK"]
    many = cost(client, region="westeurope", disk=["standard_hdd:32"] * 20)
    assert many["warnings"] == ["TOO_MANY_DISKS"]


@pytest.mark.parametrize(
    ("disk", "detail"),
    [
        ("floppy:3", "types are standard_hdd, standard_ssd, premium_ssd, premium_ssd_v2, ultra_disk"),
        ("premium_ssd", "expected TYPE:GiB"),
        ("premium_ssd:0", "expected TYPE:GiB"),
        ("premium_ssd:40000", "premium_ssd holds 1 to 32767 GiB, with up to 20000 IOPS and 900 MBps"),
        ("premium_ssd:99999999", "premium_ssd holds 1 to 32767 GiB"),
        ("premium_ssd:8:99999999:1", "with up to 20000 IOPS and 900 MBps"),
        ("ultra_disk:2:100:1", "ultra_disk holds 4 to 65536 GiB"),
        ("ultra_disk:1024", "its IOPS and MBps are billed, so say how many: ultra_disk:1024:1000:100"),
        ("premium_ssd_v2:8:5000", "8 GiB can have up to 4000 IOPS"),
        ("premium_ssd_v2:1024:5000:1900", "with 5000 IOPS it can have up to 1250 MBps"),
    ],
)
def test_a_disk_that_there_is_not_is_refused_with_what_there_is(client: httpx.Client, disk: str, detail: str) -> None:
    text = refusal(client, disk=disk)
    assert text.startswith(f"disk={disk}: ")
    assert detail in text


def test_a_redundancy_that_a_type_does_not_have_is_refused(client: httpx.Client) -> None:
    assert "no premium_ssd_v2 with redundancy=zrs; GET /disks" in refusal(
        client, disk="premium_ssd_v2:8", redundancy="zrs"
    )
    assert "no such region" in refusal(client, region="mars")
    assert client.get("/sizes/nc24nothing/cost").status_code == 404


# The list of disks


def disks(client: httpx.Client, **params: Any) -> list[dict[str, Any]]:
    answer = client.get("/disks", params={"limit": 500, **params})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["total"] == len(found["items"])
    items: list[dict[str, Any]] = found["items"]
    return items


def test_every_disk_has_the_price_of_the_region(client: httpx.Client) -> None:
    every = disks(client, region="westeurope")
    assert len(every) == 69
    assert {one["region"] for one in every} == {"westeurope"}
    priced = [one["usd_per_month"] if one["size"] else one["usd_per_gib_hour"] for one in every]
    assert all(usd is not None for usd in priced)
    by_id = {one["id"]: one for one in every}
    assert (by_id["p30-lrs"]["usd_per_month"], by_id["p30-zrs"]["usd_per_month"]) == (148.68, 222.99)
    assert by_id["p30-lrs"]["usd_per_gib_month"] == 0.145195313
    ultra = by_id["ultra-disk-lrs"]
    assert [ultra[f"usd_per_{per}_hour"] for per in ("gib", "iops", "mbps")] == [0.000213, 0.000088, 0.000572]


def test_a_region_without_prices_of_disks_has_null(client: httpx.Client) -> None:
    for one in disks(client, region="eastus", type="premium_ssd"):
        assert [one[name] for name in ("region", "usd_per_month", "price_as_of")] == [None] * 3
        assert one["price_source_ids"] == []


def test_without_a_region_each_disk_is_shown_in_its_cheapest(client: httpx.Client) -> None:
    (p30,) = disks(client, type="premium_ssd", redundancy="lrs", min_gib=1000, min_iops=5000, sort="max_gib")[:1]
    regions = ("belgiumcentral", "francecentral", "northeurope", "swedencentral", "westeurope")
    each = {code: next(d for d in disks(client, region=code) if d["id"] == "p30-lrs") for code in regions}
    cheapest = min(each, key=lambda code: Decimal(repr(each[code]["usd_per_month"])))
    assert (p30["id"], p30["region"], p30["usd_per_month"]) == ("p30-lrs", cheapest, each[cheapest]["usd_per_month"])


def test_filters_and_order(client: httpx.Client) -> None:
    found = disks(client, type=["premium_ssd_v2", "ultra_disk"], min_iops=100_000)
    assert [one["id"] for one in found] == ["ultra-disk-lrs"]
    dear = disks(client, redundancy="lrs", region="westeurope", sort="-usd_per_month")
    assert dear[0]["id"] == "p80-lrs"
    assert [one["usd_per_month"] for one in dear[-2:]] == [None, None]
    assert {one["redundancy"] for one in dear} == {"lrs"}
    assert all(one["max_gib"] >= 1000 for one in disks(client, min_gib=1000))
    assert "allowed are type, max_gib" in refusal(client, "/disks", sort="colour")


def test_pages_hold_every_disk_once(client: httpx.Client) -> None:
    ids: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get("/disks", params={"limit": 20, "sort": "-max_iops,usd_per_month", "cursor": cursor}).json()
        ids += [one["id"] for one in page["items"]]
        cursor = page["next_cursor"]
    assert len(ids) == len(set(ids)) == 69


def test_a_price_with_the_licence_of_windows_is_told_from_that_with_hybrid_benefit(client: httpx.Client) -> None:
    windows, linux = (
        client.get("/sizes/d2a_v4/cost", params={"region": "eastus", "os": os}).json() for os in ("windows", "linux")
    )
    assert windows["vm"]["usd_per_hour"] > linux["vm"]["usd_per_hour"]
    assert (windows["warnings"], linux["warnings"]) == (["LICENCE_INCLUDED"], [])


def test_a_cost_says_that_a_commitment_is_no_longer_sold(client: httpx.Client) -> None:
    answer = client.get("/sizes/d8s_v3/cost?region=polandcentral&purchase=reserved_1y").json()
    assert answer["vm"]["usd_per_hour"] is None
    assert (
        answer["no_price"]["detail"]
        == "linux reserved_1y: Standard_D8s_v3 is no longer sold this way; the last day was 2026-06-30"
    )


def test_every_description_of_a_system_says_what_hybrid_benefit_costs(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    described = [
        one["description"]
        for path, methods in document["paths"].items()
        for one in methods.get("get", {}).get("parameters", ())
        if one["name"] == "os" and path not in ("/changes", "/changes.csv")
    ]
    described += [
        document["components"]["schemas"][name]["properties"]["os"]["description"]
        for name in ("PricingIn", "RetirementPlanIn")
    ]
    assert len(described) > 10
    assert all("Azure Hybrid Benefit" in text for text in described)


# Commitments: paid for 730 hours of each month, used or not


@pytest.mark.parametrize("purchase", ["reserved_1y", "savings_3y"])
def test_a_month_by_a_commitment_is_paid_whole_however_few_its_hours(client: httpx.Client, purchase: str) -> None:
    asked: dict[str, Any] = {"region": "polandcentral", "purchase": purchase, "hours_per_month": 200}
    found = cost(client, "/sizes/b16als_v2/cost", **asked, count=2)
    usd = Decimal(repr(found["vm"]["usd_per_hour"]))
    assert found["vm"]["usd_per_month"] == float(usd * 730)
    assert found["vm"]["usd_per_year"] == float(usd * 8760)
    assert found["total"]["usd_per_month"] == float(usd * 1460)
    assert (found["vm"]["committed_hours_per_month"], found["warnings"]) == (730, ["COMMITMENT"])
    (way,) = (
        way
        for way in client.get("/sizes/b16als_v2/buy?region=polandcentral&months=36&hours_per_month=200").json()["ways"]
        if way["purchase"] == purchase
    )
    assert way["usd_per_month"] == found["vm"]["usd_per_month"]
    on_demand = cost(client, "/sizes/b16als_v2/cost", **asked | {"purchase": "on_demand"})
    assert on_demand["vm"]["usd_per_month"] == float(Decimal(repr(on_demand["vm"]["usd_per_hour"])) * 200)
    assert (on_demand["vm"]["committed_hours_per_month"], on_demand["warnings"]) == (None, [])


def test_fits_and_their_budgets_count_the_whole_month_of_a_commitment(client: httpx.Client) -> None:
    asked: dict[str, Any] = {"min_vcpus": 16, "name": "*b16als_v2", "region": "polandcentral"}
    asked |= {"hours_per_month": 100, "hours": 7.5}
    found = client.get("/fit", params={**asked, "purchase": "reserved_1y"}).json()["items"][0]
    body = {
        "resources": {"min_vcpus": 16},
        "constraints": {"name": ["*b16als_v2"], "regions": ["polandcentral"]},
        "pricing": {"purchases": ["reserved_1y", "on_demand"], "hours_per_month": 100, "hours": 7.5},
    }
    placed = client.post("/fit", json=body).json()["items"][0]
    for option in (found, placed):
        of = option["cost"]["reserved_1y"]
        usd = Decimal(repr(of["usd_per_hour"]))
        assert (of["usd_per_month"], of["committed_hours_per_month"]) == (float(usd * 730), 730)
        # The hours' share of what is paid anyway, which a warning says; and no more digits than other amounts.
        assert of["usd_per_job"]["value"] == float((usd * Decimal("7.5")).quantize(Decimal("1e-9"), ROUND_HALF_UP))
        assert "COMMITMENT" in option["warnings"]
        other = option["cost"]["on_demand"]
        assert other["usd_per_month"] == float(Decimal(repr(other["usd_per_hour"])) * 100)
        assert other["committed_hours_per_month"] is None
        assert f"{of['usd_per_month']:.2f} USD a month" in option["explanation"]
    for budget, fitting in ((of["usd_per_month"] - 1, 0), (of["usd_per_month"], 1)):
        asked_for: dict[str, Any] = {**asked, "purchase": "reserved_1y", "budget_usd_per_month": budget}
        assert client.get("/fit", params=asked_for).json()["total"] == fitting


def test_a_plan_for_retirements_counts_the_whole_month_of_a_commitment(client: httpx.Client) -> None:
    items = [{"size": "e16-4s_v3", "region": "polandcentral", "count": 3}]
    body = {"items": items, "purchase": "savings_1y", "hours_per_month": 100}
    plan = client.post("/retirements", json=body).json()
    (item,) = plan["items"]
    for of in (item["cost"], item["successors"][0]["cost"], plan["summary"]["now"], plan["summary"]["then"]):
        assert of["usd_per_month"] == float(Decimal(repr(of["usd_per_hour"])) * 730)
        assert of["committed_hours_per_month"] == 730
    on_demand = client.post("/retirements", json=body | {"purchase": "on_demand"}).json()["items"][0]["cost"]
    assert on_demand["usd_per_month"] == float(Decimal(repr(on_demand["usd_per_hour"])) * 100)
