import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.in_force import MAX_SPOT_AGE_DAYS
from app.catalog.names import size_key
from app.catalog.queries.params import SizeSearch
from app.catalog.queries.sizes import find_sizes
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, load_snapshot
from app.schemas.sizes import SizeOut
from tests.conftest import TODAY
from tests.walks import walk


def get(client: httpx.Client, path: str, **parameters: Any) -> dict[str, Any]:
    response = client.get(path, params=parameters)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def names(client: httpx.Client, **parameters: Any) -> set[str]:
    return {item["name"] for item in walk(client, "/sizes", **parameters)}


def size(client: httpx.Client, name: str) -> dict[str, Any]:
    return get(client, f"/sizes/{name}")


@pytest.mark.first_database
def test_gpu_memory_is_of_the_whole_vm(client: httpx.Client) -> None:
    found = names(client, min_gpu_mem=80, status="any")
    assert found >= {"NG16", "NG32", "Standard_ND40rs_v2", "Standard_ND96asr_v4", "Standard_ND128isr_GB300_v6"}
    assert "ND24" not in found
    assert "NG8" not in found


@pytest.mark.first_database
def test_retired_sizes_are_found_only_on_request(client: httpx.Client) -> None:
    assert "Standard_NC24rs_v3" not in names(client, name="*NC24rs_v3")
    assert names(client, name="*NC24rs_v3", status="retired") == {"Standard_NC24rs_v3"}
    assert names(client, name="*NC24rs_v3", status="any") == {"Standard_NC24rs_v3"}


@pytest.mark.first_database
@pytest.mark.parametrize("name", ["ND40rs_v2", "nd40rs_v2", "STANDARD_ND40RS_V2", "Standard_ND40rs_v2"])
def test_a_size_is_found_under_any_spelling_of_its_name(client: httpx.Client, name: str) -> None:
    assert size(client, name)["name"] == "Standard_ND40rs_v2"


@pytest.mark.first_database
def test_a_size_is_found_under_its_alias(client: httpx.Client) -> None:
    assert size(client, "Standard_ND96asr_A100_v4")["name"] == "Standard_ND96asr_v4"


@pytest.mark.first_database
def test_the_cheapest_size_with_80_gib_on_one_gpu_has_a_whole_one(client: httpx.Client) -> None:
    found = get(client, "/sizes", min_gpu_mem_per_gpu=80, sort="usd_per_hour", limit=5)["items"]
    assert found[0]["name"] == "Standard_NC24ads_A100_v4"
    assert all(row["gpu_count"] >= 1 for row in found)


def test_a_fraction_of_a_gpu_is_exact_and_matches_no_whole_gpu(client: httpx.Client) -> None:
    sixth = size(client, "NV6ads_A10_v5")
    assert (sixth["gpu_count"], sixth["gpu_fraction"]) == (0.1667, "1/6")
    assert (sixth["gpu_memory_gib"], sixth["gpu_memory_gib_per_gpu"]) == (4, 24)
    name = sixth["name"]
    assert name not in names(client, min_gpus=1)
    assert name not in names(client, min_gpu_mem=24)
    assert name not in names(client, min_gpu_mem_per_gpu=5)
    assert name in names(client, min_gpus="1/6", max_gpus="0.1667")


@pytest.mark.first_database
def test_per_gpu_memory_is_the_documented_figure(client: httpx.Client) -> None:
    found = names(client, min_gpu_mem_per_gpu=80, gpu="A100")
    assert "Standard_NC24ads_A100_v4" in found
    assert "Standard_ND96amsr_A100_v4" in found
    assert "Standard_ND96asr_v4" not in found


@pytest.mark.first_database
def test_names_are_globs_with_or_without_standard(client: httpx.Client) -> None:
    assert names(client, name="NC*_H100_v5") == names(client, name="Standard_NC*_H100_v5")
    assert names(client, name="Standard_NC?0ads_H100_v5") == {"Standard_NC40ads_H100_v5"}
    assert names(client, name="Standard_NC_0ads_H100_v5") == set()


@pytest.mark.first_database
def test_gpus_are_globs_on_family_model_and_id(client: httpx.Client) -> None:
    assert names(client, gpu="H200") == {"Standard_ND96isr_H200_v5"}
    both = names(client, gpu="H200") | names(client, gpu="MI300X")
    assert names(client, gpu="h200,mi300x") == both
    assert names(client, gpu=["H200", "MI300X"]) == both


def test_free_text_must_match_every_word(client: httpx.Client) -> None:
    assert "Standard_ND96amsr_A100_v4" in names(client, q="a100 ndm")
    assert names(client, q="a100 mi300x") == set()
    assert names(client, q="%") == set()


def test_free_text_is_found_where_a_word_or_a_number_begins(client: httpx.Client) -> None:
    of_nd = names(client, q="ND")
    assert "Standard_ND96isr_H100_v5" in of_nd
    assert {name for name in of_nd if not re.search(r"(^|_|\d)nd", name, re.IGNORECASE)} == set()
    assert "Standard_ND96isr_H100_v5" in names(client, q="96isr h100")
    assert names(client, q="6isr h100") == set()
    assert "Standard_ND96isr_H100_v5" in names(client, q="isr")


@pytest.mark.parametrize("text", ["*", "^", "[", "]", "\\", "?", ".", "(a)", "é", "[^a]", "nd.*", "$", "{1}"])
def test_free_text_is_no_pattern(client: httpx.Client, text: str) -> None:
    every = {name.lower() for name in names(client)}
    assert {name.lower() for name in names(client, q=text)} <= {name for name in every if text in name}


@pytest.mark.first_database
def test_a_region_gives_its_prices_and_leaves_out_what_is_not_sold_there(client: httpx.Client) -> None:
    page = get(client, "/sizes", region="westeurope", limit=500)
    assert page["total"] > 0
    assert {item["region"] for item in page["items"]} == {"westeurope"}
    assert all(item["on_demand_usd_per_hour"] or item["spot_usd_per_hour"] for item in page["items"])


@pytest.mark.first_database
def test_without_a_region_the_cheapest_is_named(client: httpx.Client) -> None:
    row = size(client, "Standard_NC24ads_A100_v4")
    prices = get(client, "/sizes/Standard_NC24ads_A100_v4/prices", os="linux", purchase="on_demand", limit=500)["items"]
    cheapest = min(prices, key=lambda price: (price["usd_per_hour"], price["region"]))
    assert (row["region"], row["usd_per_hour"]) == (cheapest["region"], cheapest["usd_per_hour"])
    assert row["on_demand_as_of"] == cheapest["valid_from"]


@pytest.mark.first_database
def test_available_in_means_all_of_the_regions_and_region_any(client: httpx.Client) -> None:
    in_all = names(client, available_in="eastus,westeurope")
    assert in_all == names(client, available_in="eastus") & names(client, available_in="westeurope")
    assert names(client, region=["eastus", "westeurope"]) >= in_all


@pytest.mark.first_database
def test_a_list_is_ordered_by_several_keys_with_unknown_last(client: httpx.Client) -> None:
    items = walk(client, "/sizes", sort="-gpu_memory_gib,usd_per_hour", status="any")

    def key(item: dict[str, Any]) -> tuple[Any, ...]:
        memory, price = item["gpu_memory_gib"], item["usd_per_hour"]
        return (memory is None, -(memory or 0), price is None, price or 0, size_key(item["name"]))

    assert items == sorted(items, key=key)
    assert items[0]["gpu_memory_gib"] == 1536


@pytest.mark.first_database
def test_withdrawn_sizes_are_found_only_on_request(client: httpx.Client) -> None:
    withdrawn = names(client, status="withdrawn")
    assert "Standard_NC128ds_xl_RTXPRO6000BSE_v6" in withdrawn
    assert withdrawn & names(client) == withdrawn & names(client, status="current,preview,retiring") == set()
    assert withdrawn & names(client, status="any", verified=True) == set()
    assert withdrawn < names(client, status="any")
    counted = {one["value"]: one["count"] for one in get(client, "/facets", status="any")["status"]}
    assert counted["withdrawn"] == len(withdrawn)
    rejected = get(client, "/fit", name="*_RTXPRO6000BSE_v6", min_gpu_mem=96, include="rejected")["rejected"]
    codes = {one["size"]: {failure["code"] for failure in one["failures"]} for one in rejected}
    assert {name for name, found in codes.items() if "WITHDRAWN" in found} == {
        name for name in withdrawn if "RTXPRO" in name
    }
    similar = get(client, "/sizes/nc144ds_xl_rtxpro6000bse_v6/similar", limit=20)["items"]
    assert withdrawn & {item["size"] for item in similar} == set()


@pytest.mark.first_database
def test_the_gpu_memory_of_the_mi300x_is_eight_times_192(client: httpx.Client) -> None:
    assert [item["name"] for item in get(client, "/sizes", min_gpu_mem=1536)["items"]] == ["Standard_ND96isr_MI300X_v5"]


@pytest.mark.first_database
@pytest.mark.parametrize(
    "sort",
    [
        "name",
        "-usd_per_gpu_hour",
        "usd_per_vcpu_hour",
        "-coremark,usd_per_1000_coremark_hour",
        "-usd_per_memory_gib_hour",
        "gpu_count,-usd_per_hour",
        "retirement_date",
        "-series",
    ],
)
def test_the_pages_have_each_size_once_in_order(client: httpx.Client, sort: str) -> None:
    asked = {"sort": sort, "status": "any"}
    whole = [item["name"] for item in walk(client, "/sizes", **asked)]
    walked, cursor = [], None
    while True:
        page = get(client, "/sizes", limit=70, **asked, **({"cursor": cursor} if cursor else {}))
        walked += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        assert page["total"] == len(whole)
        if cursor is None:
            break
    assert walked == whole
    assert len(set(walked)) == len(walked)


def test_the_vendors_value_of_memory_is_accepted_and_the_other_disputed(client: httpx.Client) -> None:
    facts = get(client, "/sizes/nd40rs_v2/facts", limit=500)["items"]
    memory = [fact for fact in facts if fact["field"] == "gpu_memory_gib"]
    assert ("256", "accepted", "vendor_page") in {(f["value"], f["verdict"], f["source_kind"]) for f in memory}
    (disputed,) = [fact for fact in memory if fact["verdict"] == "disputed"]
    assert (disputed["value"], disputed["raw"], disputed["source_kind"]) == ("128", "128 GB", "third_party")
    assert "a vendor page counts before a third party" in disputed["reason"]


def test_prices_are_those_in_force_on_a_day(client: httpx.Client) -> None:
    path = "/sizes/Standard_NC24ads_A100_v4/prices"
    asked = {"region": "westeurope", "os": "linux", "purchase": "on_demand"}
    (now,) = get(client, path, **asked)["items"]
    (before,) = get(client, path, as_of="2026-07-01", **asked)["items"]
    assert (before["seen_until"], now["seen_until"]) == ("2026-06-18", "2026-08-22")
    assert get(client, path, as_of="2020-01-01", **asked)["total"] == 0
    assert get(client, path, history=True, **asked)["total"] == 3


@pytest.mark.first_database
@pytest.mark.parametrize("asked", [{}, {"region": "eastus"}, {"os": "windows", "purchase": "spot"}], ids=str)
def test_every_size_matches_its_schema(client: httpx.Client, asked: dict[str, str]) -> None:
    items = walk(client, "/sizes", status="any", **asked)
    assert len(items) > 60
    for item in [*items, get(client, "/sizes/nv6ads_a10_v5")]:
        assert list(item) == [
            name for name in SizeOut.model_fields if name not in ("adjustment", "converted", "estimate")
        ]
        assert json.loads(SizeOut.model_validate(item).model_dump_json()) == item


@pytest.mark.first_database
def test_a_list_by_price_is_the_same_by_either_plan(seeded_engine: Engine) -> None:
    search = SizeSearch(min_gpu_mem=20, max_gpu_mem=700, sort=("usd_per_hour",), region=("eastus",), limit=7)
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        walked = pages(session, search, known)
        assert pages(session, search, replace(known, sizes=100_000)) == walked
    prices = [size["usd_per_hour"] for size in walked]
    assert len(prices) > 20
    assert prices == sorted(prices, key=lambda usd: (usd is None, usd))


def pages(session: Session, search: SizeSearch, known: CatalogSnapshot) -> list[dict[str, Any]]:
    """Return the items of all pages of a search."""
    page = find_sizes(Catalog(session, known, TODAY), search)
    items = [json.loads(item) for item in page.items]
    following = search.model_copy(update={"cursor": page.next_cursor})
    return items + (pages(session, following, known) if page.next_cursor else [])


def test_every_price_has_its_age(client: httpx.Client) -> None:
    for row in walk(client, "/sizes", purchase="spot"):
        spot, day = row["spot_usd_per_hour"], row["spot_as_of"]
        assert (row["usd_per_hour"], row["price_as_of"]) == (spot, day)
        assert row["price_age_days"] == (None if day is None else (TODAY - date.fromisoformat(day)).days)
        assert row["spot_approximate_date"] is (None if spot is None else False)
    on_demand = walk(client, "/sizes", status="any")
    assert {row["price_as_of"] == row["on_demand_as_of"] for row in on_demand} == {True}
    for row in get(client, "/prices", limit=500, history=True)["items"]:
        assert row["price_age_days"] == (TODAY - date.fromisoformat(row["seen_until"])).days


@pytest.mark.first_database
def test_an_order_by_spot_begins_with_the_cheapest_of_the_last_year(client: httpx.Client) -> None:
    found = walk(client, "/sizes", sort="spot_usd_per_hour", purchase="spot", gpu="H100")
    prices = [row["spot_usd_per_hour"] for row in found]
    known = [price for price in prices if price is not None]
    assert known
    assert prices == sorted(known) + [None] * (len(prices) - len(known))
    assert all(row["price_age_days"] <= MAX_SPOT_AGE_DAYS for row in found if row["spot_usd_per_hour"] is not None)
    assert [row["name"] for row in found] == [
        row["name"] for row in walk(client, "/sizes", sort="usd_per_hour", purchase="spot", gpu="H100")
    ]


def test_sizes_of_one_price_a_gpu_are_equals_and_the_next_key_counts(client: httpx.Client) -> None:
    asked = {"series": "nvads_v710_v5", "region": "southcentralus", "sort": "usd_per_gpu_hour,gpu_memory_gib"}
    found = get(client, "/sizes", **asked)["items"]
    keys = [(row["usd_per_gpu_hour"], row["gpu_memory_gib"]) for row in found]
    assert len({price for price, _ in keys}) < len(keys)
    assert keys == sorted(keys)


@pytest.mark.parametrize("sort", ["spot_saving_percent", "-spot_saving_percent"])
def test_sizes_are_sorted_by_what_spot_saves_in_lists_and_files(client: httpx.Client, sort: str) -> None:
    listed = walk(client, "/sizes", region="westeurope", sort=sort)
    savings = [
        1 - row["spot_usd_per_hour"] / row["on_demand_usd_per_hour"]
        for row in listed
        if row["spot_usd_per_hour"] is not None and row["on_demand_usd_per_hour"]
    ]
    assert 0 < len(savings) < len(listed)
    assert savings == pytest.approx(sorted(savings, reverse=sort.startswith("-")))
    assert all(row["spot_usd_per_hour"] is None for row in listed[len(savings) :])
    file = client.get("/sizes.csv", params={"region": "westeurope", "sort": sort}).text.splitlines()[1:]
    assert [line.partition(",")[0] for line in file] == [row["name"] for row in listed]


@pytest.mark.parametrize("purchase", ["on_demand", "spot"])
@pytest.mark.parametrize("dated", [{}, {"as_of": "2026-08-01", "region": "eastus"}])
def test_a_unit_price_is_the_exact_quotient_rounded_once(
    client: httpx.Client, purchase: str, dated: dict[str, str]
) -> None:
    units = {
        "usd_per_vcpu_hour": (1, "vcpus"),
        "usd_per_1000_coremark_hour": (1000, "coremark"),
        "usd_per_memory_gib_hour": (1, "memory_gib"),
        "usd_per_gpu_gib_hour": (1, "gpu_memory_gib"),
    }
    known = dict.fromkeys(units, 0)
    for row in walk(client, "/sizes", purchase=purchase, **dated):
        for name, (of, unit) in units.items():
            if row["usd_per_hour"] is None or not row[unit]:
                assert row[name] is None
                continue
            known[name] += 1
            exactly = of * Decimal(str(row["usd_per_hour"])) / Decimal(str(row[unit]))
            assert row[name] == float(exactly.quantize(Decimal("1e-9"), ROUND_HALF_UP))
    assert all(known.values())


@pytest.mark.parametrize("name", ["NV6 Promo", "Standard NV6 Promo", "NC24ads A100 v4", "ND40 rs v2"])
def test_a_size_is_found_by_its_display_name(client: httpx.Client, name: str) -> None:
    found = client.get(f"/sizes/{quote(name)}").json()["name"]
    assert found.replace("_", "") == f"Standard{name.removeprefix('Standard ').replace(' ', '')}"
    (planned,) = client.post("/retirements", json={"items": [{"size": name, "region": "eastus"}]}).json()["items"]
    assert planned["size"] == found
    if name != "ND40 rs v2":  # of a filter blanks are `_`
        assert client.get("/sizes", params={"name": name, "status": "any", "fields": "name"}).json()["total"] == 1


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_a_list_of_names_may_be_as_long_as_that_of_a_policy(client: httpx.Client) -> None:
    known = [one["name"] for one in client.get("/sizes", params={"limit": 150, "fields": "name"}).json()["items"]]
    names = [*known, *(f"Standard_Nope{number}" for number in range(50))]
    for day in ({}, {"as_of": "2026-08-15"}):
        found = client.get("/sizes", params={"name": ",".join(names), "limit": 500, "fields": "name", **day}).json()
        assert [one["name"] for one in found["items"]] == known
    refused = client.get("/sizes", params={"name": ",".join([*names, "Standard_One_More"])})
    assert refused.status_code == 422
    assert "at most 200 values are allowed" in refused.json()["detail"]


PROCESSORS = (
    ("EPYC 9*", r"(?<!\w)epyc 9"),
    ("Cobalt", r"(?<!\w)cobalt(?!\w)"),
    ("*obal*", "obal"),
    ("Sapphire*", r"(?<!\w)sapphire"),
    ("Xeon Platinum 8?70C", r"xeon platinum 8.70c(?!\w)"),
)


@pytest.mark.first_database
@pytest.mark.parametrize(("glob", "pattern"), PROCESSORS)
def test_a_processor_is_found_by_words_of_its_name_or_generation(client: httpx.Client, glob: str, pattern: str) -> None:
    sizes = walk(client, "/sizes", status="any")
    having = {item["name"] for item in sizes if re.search(pattern, (item["cpu_model"] or "").lower())}
    assert len(having) > 10
    assert names(client, cpu=glob, status="any") == having


def test_no_part_of_a_word_is_a_processor_and_any_of_several_is(client: httpx.Client) -> None:
    assert names(client, cpu="obalt") == set()
    assert names(client, cpu="Cobalt,Ampere Altra") == names(client, cpu="cobalt") | names(client, cpu="*altra")


@pytest.mark.first_database
def test_the_maker_of_a_processor_is_unknown_where_it_may_be_of_two(client: httpx.Client) -> None:
    makers = {"Intel": "intel|xeon", "AMD": "amd|epyc", "Ampere": "ampere", "Microsoft": "cobalt", "NVIDIA": "grace"}
    for item in walk(client, "/sizes", status="any"):
        processors = (item["cpu_model"] or "").lower().split(" or ")
        stated = {next((name for name, words in makers.items() if re.search(words, one)), None) for one in processors}
        assert item["cpu_vendor"] == (stated.pop() if len(stated) == 1 else None), item["cpu_model"]
    assert {item["cpu_vendor"] for item in walk(client, "/sizes", cpu_vendor="amd")} == {"AMD"}


FIGURES = (
    ("min_data_disks", 32, lambda item: (item["max_data_disks"] or 0) >= 32),
    ("min_uncached_disk_iops", 80_000, lambda item: (item["uncached_disk_iops"] or 0) >= 80_000),
    ("min_uncached_disk_mbps", 1_000, lambda item: (item["uncached_disk_mbps"] or 0) >= 1_000),
    ("min_nics", 8, lambda item: (item["max_nics"] or 0) >= 8),
    ("burstable", "true", lambda item: item["cpu_credits_per_hour"] is not None),
    ("local_nvme", "true", lambda item: (item["nvme_disk_gib"] or 0) > 0 or (item["nvme_disk_count"] or 0) > 0),
    ("trusted_launch", "false", lambda item: item["trusted_launch"] is False),
    ("disk_controller", "scsi", lambda item: "SCSI" in (item["disk_controller"] or "")),
    ("fabric", "infiniband", lambda item: item["infiniband"] is True),
    ("confidential_computing", "tdx", lambda item: item["confidential_computing"] == "TDX"),
)


@pytest.mark.parametrize(("name", "value", "has"), FIGURES, ids=[name for name, _, _ in FIGURES])
def test_a_filter_finds_the_sizes_whose_figure_is_known_to_meet_it(
    client: httpx.Client, name: str, value: Any, has: Callable[[dict[str, Any]], bool]
) -> None:
    having = {item["name"] for item in walk(client, "/sizes", status="any") if has(item)}
    assert len(having) > 10
    assert names(client, status="any", **{name: value}) == having


@pytest.mark.first_database
def test_a_size_without_local_disks_has_no_local_nvme(client: httpx.Client) -> None:
    assert size(client, "Standard_D2s_v5")["local_nvme"] is False
    assert size(client, "Standard_L8s_v3")["local_nvme"] is True


@pytest.mark.first_database
@pytest.mark.parametrize("path", ["/sizes", "/facets", "/sizes.csv"])
def test_a_greatest_value_below_the_least_is_an_error(client: httpx.Client, path: str) -> None:
    refused = client.get(path, params={"min_vcpus": 8, "max_vcpus": 4})
    assert (refused.status_code, refused.json()["detail"]) == (422, "max_vcpus=4: must not be less than min_vcpus=8")
    assert client.get(path, params={"min_vcpus": 8, "max_vcpus": 8}).status_code == 200


@pytest.mark.takes_seconds
def test_zones_are_those_of_the_one_region_that_is_asked_for(client: httpx.Client) -> None:
    in_three = names(client, region="westeurope", min_zones=3)
    assert {"Standard_D2s_v5"} <= in_three < names(client, region="westeurope", min_zones=0)
    zones = get(client, "/sizes/d2s_v5/availability", region="westeurope")["items"][0]["zones"]
    assert zones == ["1", "2", "3"]
    assert names(client, region="australiacentral", min_zones=1) == set()
    page = get(client, "/sizes", region="belgiumcentral", min_zones=1)
    assert (page["total"], page["unknown"]) == (0, {"zones": get(client, "/sizes", region="belgiumcentral")["total"]})
    for place in ({}, {"region": "westeurope,eastus"}, {"country": "US"}):
        refused = client.get("/sizes", params={"min_zones": 2, **place})
        assert refused.status_code == 422
        assert "needs exactly one region" in refused.json()["errors"][0]["detail"]
    anywhere = get(client, "/facets")["zones"]
    assert (anywhere["min"], anywhere["max"]) == (None, None)
    there = get(client, "/facets", region="westeurope", min_zones=3)["zones"]
    assert (there["min"], there["max"]) == (1, 3)
    facets = get(client, "/facets", region="westeurope", min_zones=3)
    assert len(facets["region"]) > 20
    for entry in facets["region"]:
        assert get(client, "/sizes", region=entry["value"], min_zones=3, limit=1)["total"] == entry["count"]
