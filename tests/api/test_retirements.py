"""GET and POST /retirements, and the calendar."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from icalendar import Calendar
from sqlalchemy import Engine

from app.fit.features import ESSENTIAL_FEATURES
from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from tests.conftest import TODAY
from tests.factories import NOW, price, reading, size
from tests.servers import open_client, server

pytestmark = pytest.mark.first_database


def plan(client: httpx.Client, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    response = client.post("/retirements", json={"items": items, **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def item(size: str, region: str = "eastus", **more: Any) -> dict[str, Any]:
    return {"size": size, "region": region, **more}


# The list


def every(client: httpx.Client, path: str, **asked: Any) -> list[dict[str, Any]]:
    """Return the items of all pages of a list."""
    page = client.get(path, params={"limit": 500, **asked}).raise_for_status().json()
    items: list[dict[str, Any]] = page["items"]
    return items + every(client, path, **asked | {"cursor": page["next_cursor"]}) if page["next_cursor"] else items


def listed(client: httpx.Client, **asked: Any) -> list[dict[str, Any]]:
    return every(client, "/retirements", **asked)


def test_the_list_has_every_size_with_a_date_and_its_source_those_to_come_first(client: httpx.Client) -> None:
    items, sizes = listed(client), every(client, "/sizes", status="any")
    dated = {one["name"]: one["retirement_date"] for one in sizes if one["retirement_date"]}
    assert {one["size"]: one["retirement_date"] for one in items} == dated
    assert [one["retirement_date"] for one in items] == sorted(dated.values(), key=lambda day: (day <= str(TODAY), day))
    for past in (True, False):
        assert listed(client, past=past) == [one for one in items if (one["status"] == "retired") is past]
    for one in items:
        day = date.fromisoformat(one["retirement_date"])
        assert one["status"] == ("retired" if day <= TODAY else "retiring")
        assert one["days_left"] == (day - TODAY).days
        assert one["source_url"].startswith("https://")
        assert one["source_id"]


def test_the_source_of_a_date_is_the_accepted_fact(client: httpx.Client) -> None:
    (nv12s, *_) = listed(client, series="nvv3")
    sources = {one["id"]: one for one in client.get("/sources", params={"limit": 500}).json()["items"]}
    assert nv12s["source_title"] == sources[nv12s["source_id"]]["title"]
    assert nv12s["source_published_on"] == sources[nv12s["source_id"]]["published_on"]
    facts = client.get("/conflicts", params={"subject": "nv", "field": "retirement_date"}).json()["items"]
    assert {one["source_id"] for one in listed(client, series="nv")} == {facts[0]["accepted_source_id"]}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"series": "NVv4"}, {"nvv4"}),
        ({"series": "nvv3,ncv3"}, {"nvv3", "ncv3"}),
        ({"gpu": "P100"}, {"ncv2"}),
        ({"gpu": "M60,MI25", "after": "2025-09-30"}, {"nvv3", "nvv4"}),
        ({"after": "2025-09-29", "before": "2025-10-01"}, {"ncv3"}),
        ({"before": "2023-09-06"}, set()),
    ],
)
def test_filters_choose_retirements(client: httpx.Client, asked: dict[str, str], expected: set[str]) -> None:
    assert {one["series"] for one in listed(client, **asked)} == expected


@pytest.mark.parametrize("path", ["/retirements", "/retirements.ics"])
@pytest.mark.parametrize("after", ["2026-07-01", "2026-07-02"])
def test_days_between_which_there_is_none_are_refused(client: httpx.Client, path: str, after: str) -> None:
    refused = client.get(path, params={"after": after, "before": "2026-07-01"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == f"after={after}: must be earlier than before=2026-07-01"


def test_a_region_leaves_the_sizes_that_have_a_price_there(client: httpx.Client) -> None:
    found = {one["size"] for one in listed(client, region="West Europe")}
    for name in {one["size"] for one in listed(client)}:
        prices = client.get(f"/sizes/{name}/prices", params={"region": "westeurope", "limit": 1}).json()
        assert (name in found) <= (prices["total"] > 0), name
    assert found


def test_the_pages_make_up_the_list(client: httpx.Client) -> None:
    walked, cursor = [], None
    while True:
        page = client.get("/retirements", params={"limit": 17, **({"cursor": cursor} if cursor else {})}).json()
        walked += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert walked == listed(client)
    assert page["total"] == len(walked)


# The calendar


def test_the_calendar_has_an_event_for_each_series_and_date(client: httpx.Client) -> None:
    response = client.get("/retirements.ics")
    assert response.headers["content-type"] == "text/calendar; charset=utf-8"
    events: list[Any] = list(Calendar.from_ical(response.text).walk("VEVENT"))
    items = listed(client)
    expected = {(one["series_name"] or one["size"], date.fromisoformat(one["retirement_date"])) for one in items}
    named = {(re.split(" (?:sizes retire|retires)", str(one["SUMMARY"]))[0], one["DTSTART"].dt) for one in events}
    assert named == expected
    assert len({one["UID"] for one in events}) == len(events)
    revision = client.get("/revisions").json()["items"][0]["created_at"]
    assert {one["DTSTAMP"].dt.strftime("%Y-%m-%dT%H:%M:%SZ") for one in events} == {revision[:19] + "Z"}
    (nvv3,) = (one for one in events if one["UID"] == "azure-nvv3-2026-09-30@vmsizes")
    assert "Standard_NV12s_v3, Standard_NV24s_v3, Standard_NV48s_v3" in nvv3["DESCRIPTION"]
    assert nvv3["URL"].startswith("https://learn.microsoft.com/")


def test_the_calendar_takes_the_filters_of_the_list_and_has_an_etag(client: httpx.Client) -> None:
    response = client.get("/retirements.ics", params={"series": "nvv4"})
    assert response.text.count("BEGIN:VEVENT") == 1
    assert client.get("/retirements.ics", params={"series": "NVv4"}).text == response.text
    again = client.get("/retirements.ics?series=nvv4", headers={"if-none-match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/retirements.ics", params={"limit": 3}).status_code == 422


# The plan


def test_a_retiring_size_has_its_date_source_and_successors(client: httpx.Client) -> None:
    (answer,) = plan(client, item("nv12s_v3", "West Europe", count=4, id="render"))["items"]
    assert (answer["id"], answer["size"], answer["region"], answer["count"]) == (
        "render",
        "Standard_NV12s_v3",
        "westeurope",
        4,
    )
    assert (answer["outcome"], answer["status"], answer["retirement_date"]) == ("successor", "retiring", "2026-09-30")
    assert answer["days_left"] == (date(2026, 9, 30) - TODAY).days
    (same, *_) = listed(client, series="nvv3")
    assert {name: answer[name] for name in answer if name.startswith("source_")} == {
        name: same[name] for name in same if name.startswith("source_")
    }
    assert answer["source_url"].startswith("https://learn.microsoft.com/")
    assert [one["size"] for one in answer["successors"]] == [
        "Standard_NC36ds_xl_RTXPRO6000BSE_v6",
        "Standard_NV18ads_A10_v5",
        "Standard_NC72lds_xl_RTXPRO6000BSE_v6",
    ]
    assert answer["rejection_summary"] == {}
    assert answer["nearest_misses"] == answer["fixes"] == answer["errors"] == []


def test_equal_lines_list_their_successors_once(client: httpx.Client) -> None:
    lines = [item("nv12s_v3", "westeurope", id="a"), item("nv12s_v3", "westeurope", count=2), item("f8s_v2")]
    again = [item("nv12s_v3", "westeurope", id="b"), item("f8s_v2")]
    answer = plan(client, *lines, *again)
    items = answer["items"]
    assert [one.get("same_as") for one in items] == [None, None, None, 0, 2]
    assert items[3] == items[0] | {"index": 3, "id": "b", "same_as": 0, "successors": items[0]["successors"][:1]}
    assert all(len(one["successors"]) == 3 for one in items[:3])
    assert answer["summary"]["priced"] == len(items)


def test_an_answer_does_not_grow_with_items_times_successors(client: httpx.Client) -> None:
    few, many = (
        client.post("/retirements", json={"items": [item("f8s_v2")] * 1000, "max_successors": most, "keep": ["vcpus"]})
        for most in (1, 20)
    )
    assert len(many.content) < 1.02 * len(few.content)


def test_more_successors_than_an_answer_may_list_are_refused(client: httpx.Client) -> None:
    lines = [item("f8s_v2", count=1 + at) for at in range(1000)]
    refused = client.post("/retirements", json={"items": lines, "max_successors": 6})
    assert refused.status_code == 422
    assert refused.json()["detail"] == (
        "items has 1,000 different lines, which may have 6,000 successors with max_successors=6; "
        "at most 5,000: give max_successors=5, or fewer lines"
    )
    assert client.post("/retirements", json={"items": lines[:833], "max_successors": 6}).status_code == 200


def test_a_small_size_is_not_replaced_by_one_at_twice_its_price_for_its_local_disk(client: httpx.Client) -> None:
    (answer,) = plan(client, item("b2s"))["items"]
    first, second, third = answer["successors"]
    assert second["size"] == "Standard_B2ls_v2"
    assert max(first["usd_per_hour"], second["usd_per_hour"]) <= answer["usd_per_hour"] < third["usd_per_hour"] / 2
    assert "ephemeral_os_disk" in {one["feature"] for one in first["lost"]}
    (strict,) = plan(client, item("b2s"), keep=[*ESSENTIAL_FEATURES, "local_disk_gib"])["items"]
    assert strict["successors"][0] == third


def test_prices_and_changes_are_those_of_the_region_times_the_count(client: httpx.Client) -> None:
    (answer,) = plan(client, item("nc6s_v3", count=3), hours_per_month=100)["items"]
    rows = {one["name"]: one for one in every(client, "/sizes", region="eastus", status="any")}
    old = Decimal(str(rows["Standard_NC6s_v3"]["usd_per_hour"]))
    assert answer["usd_per_hour"] == float(old)
    amounts = {"usd_per_hour": float(3 * old), "usd_per_month": float(300 * old)}
    assert answer["cost"] == amounts | {"committed_hours_per_month": None}
    for successor in answer["successors"]:
        new = Decimal(str(rows[successor["size"]]["usd_per_hour"]))
        assert successor["usd_per_hour"] == float(new)
        assert successor["price_as_of"] == rows[successor["size"]]["price_as_of"]
        assert successor["cost"]["usd_per_month"] == float(300 * new)
        assert successor["change"] == {
            "usd_per_hour": float(3 * (new - old)),
            "usd_per_month": float(300 * (new - old)),
            "committed_hours_per_month": None,
        }


@pytest.mark.takes_seconds
def test_every_successor_keeps_what_it_must_and_can_be_had(client: httpx.Client) -> None:
    rows = {one["name"]: one for one in every(client, "/sizes", status="any")}
    retiring = [one["size"] for one in listed(client)]
    answers = plan(client, *(item(name, "westeurope") for name in retiring), max_successors=20)["items"]
    assert sum(len(answer["successors"]) for answer in answers) > 20
    for answer in answers:
        old = rows[answer["size"]]
        assert (answer["outcome"] == "successor") is bool(answer["successors"])
        for successor in answer["successors"]:
            new = rows[successor["size"]]
            assert (new["status"] in ("current", "retiring"), new["verified"]) == (True, True)
            assert (new["retirement_date"] or "9999") > str(TODAY + timedelta(days=1095))
            amounts = ["vcpus", "memory_gib", "gpu_memory_gib"]
            if None in (old["gpu_model"], new["gpu_model"]) or old["gpu_model"] == new["gpu_model"]:
                amounts.append("gpu_count")
            for name in amounts:
                assert not old[name] or new[name] >= old[name], (old["name"], new["name"], name)
            for name in ("premium_storage", "infiniband", "nvlink", "accelerated_networking"):
                assert not old[name] or new[name] is True
            assert old["gpu_vendor"] in (None, new["gpu_vendor"])
            assert not set(successor["kept"]) & {one["feature"] for one in successor["lost"] + successor["gained"]}


@pytest.mark.parametrize(
    ("name", "keep", "most", "first"),
    [
        ("f8s_v2", None, "0.3811", "Standard_D8alds_v7"),  # and not the next of family F for 0.572
        ("b2s", ["vcpus", "memory_gib"], "0.0416", "Standard_B2als_v2"),
        ("e8s_v3", None, "0.504", "Standard_E8as_v4"),
        ("l8s_v2", None, "0.624", "Standard_L8as_v3"),  # sizes without its disks are cheaper
    ],
)
def test_the_best_successor_is_the_cheapest_that_keeps_what_it_must(
    client: httpx.Client, name: str, keep: list[str] | None, most: str, first: str
) -> None:
    (answer,) = plan(client, item(name), **({"keep": keep} if keep else {}), max_successors=20)["items"]
    costs = [one["usd_per_hour"] for one in answer["successors"] if one["relation"] != "other" or name == "f8s_v2"]
    assert costs == sorted(costs)
    assert (answer["successors"][0]["size"], Decimal(str(costs[0])) <= Decimal(most)) == (first, True)


def test_a_purchase_model_without_prices_falls_back_to_on_demand_and_says_so(client: httpx.Client) -> None:
    items = (item("f8s_v2"), item("f8s_v2", "polandcentral"))
    body, plain = plan(client, *items, purchase="reserved_1y"), plan(client, *items)
    assert [one["purchase"] for one in body["items"]] == ["on_demand", "reserved_1y"]
    assert body["no_price"] == {
        "os": "linux",
        "purchase": "reserved_1y",
        "known_in": ["polandcentral"],
        "detail": "linux reserved_1y: no price is known in eastus, only in polandcentral; "
        "`vmsizes refresh azure-prices` brings the others; costs there are those of on_demand",
    }
    assert body["items"][0] == plain["items"][0]
    assert body["items"][0]["outcome"] == "successor"
    reserved, on_demand = (one["items"][1]["successors"][0]["usd_per_hour"] for one in (body, plain))
    assert reserved < on_demand
    assert "no_price" not in plain


def test_a_size_that_does_not_retire_needs_no_successor(client: httpx.Client) -> None:
    (answer,) = plan(client, item("nc24ads_a100_v4"))["items"]
    assert (answer["outcome"], answer["status"], answer["successors"]) == ("not_needed", "current", [])
    assert answer["retirement_date"] is answer["days_left"] is answer["source_id"] is None


def test_the_horizon_leaves_later_retirements_alone(client: httpx.Client) -> None:
    items = (item("nv12s_v3"), item("nc6s_v3"))
    outcomes = [one["outcome"] for one in plan(client, *items, before="2026-09-30")["items"]]
    assert outcomes == ["not_needed", "successor"]


def test_an_unknown_name_is_an_error_of_its_item_and_the_others_are_answered(client: httpx.Client) -> None:
    body = plan(client, item("NC6s_v9"), item("nc6s_v3", "West Europ"), item("nope", "mars"), item("nc6s_v3"))
    size_error, region_error, both, fine = body["items"]
    assert [one["outcome"] for one in body["items"]] == ["error", "error", "error", "successor"]
    assert (size_error["size"], size_error["errors"][0]["code"]) == ("NC6s_v9", "UNKNOWN_SIZE")
    assert "Standard_NC6s_v3" in size_error["errors"][0]["suggestions"]
    assert (region_error["region"], region_error["errors"][0]["suggestions"]) == ("West Europ", ["westeurope"])
    assert region_error["errors"][0]["detail"] == "There is no region named 'West Europ'. Did you mean westeurope?"
    assert region_error["retirement_date"] == "2025-09-30"
    assert [one["field"] for one in both["errors"]] == ["size", "region"]
    assert body["summary"]["outcomes"] == {"successor": 1, "no_successor": 0, "not_needed": 0, "error": 3}
    assert fine["index"] == 3


def test_an_alias_is_the_size(client: httpx.Client) -> None:
    (answer,) = plan(client, item("ND96ASR_A100_v4"))["items"]
    assert answer["size"] == "Standard_ND96asr_v4"


def test_the_summary_adds_up_the_items(client: httpx.Client) -> None:
    body = plan(client, item("nv12s_v3", count=4), item("nc6s_v3", count=2), item("nc6s_v3"), item("g3"))
    summary = body["summary"]
    assert summary["by_date"] == [
        {"retirement_date": "2025-09-30", "items": 2, "vms": 3, "without_successor": 0},
        {"retirement_date": "2026-09-30", "items": 1, "vms": 4, "without_successor": 0},
        {"retirement_date": "2028-11-15", "items": 1, "vms": 1, "without_successor": 0},
    ]
    assert (summary["priced"], summary["unpriced"]) == (3, 1)
    changes = [Decimal(str(one["successors"][0]["change"]["usd_per_hour"])) for one in body["items"][:3]]
    assert summary["change"]["usd_per_hour"] == float(sum(changes))
    assert "change" not in body["items"][3]["successors"][0]


def test_a_body_that_is_malformed_is_refused_as_a_whole(client: httpx.Client) -> None:
    def refused(**body: Any) -> str:
        response = client.post("/retirements", json=body)
        assert response.status_code == 422, response.text
        return str(response.json()["detail"])

    assert "items: is required" in refused()
    assert "at least 1 value" in refused(items=[])
    assert "at most 1000 values" in refused(items=[item("x")] * 1001)
    assert "did you mean region?" in refused(items=[{"size": "x", "location": "y"}])
    assert "did you mean premium_storage?" in refused(items=[item("x")], keep=["premium_storag"])
    assert "count" in refused(items=[item("x", count=0)])


def test_a_thousand_items_are_answered(client: httpx.Client) -> None:
    names = [one["size"] for one in listed(client)]
    items = [item(names[number % len(names)], count=number + 1, id=f"vm-{number}") for number in range(1000)]
    answers = plan(client, *items)["items"]
    assert [one["id"] for one in answers] == [one["id"] for one in items]


# A catalog of a few sizes


@pytest.fixture
def small_client(service: CacheMiddleware, engine: Engine) -> Iterator[httpx.Client]:
    """A client of a catalog with a retiring size that has InfiniBand, and candidates that each lack something."""
    ordinary: dict[str, Any] = {"vcpus": 8, "memory_gib": 64, "arch": "x64"}
    soon = TODAY + timedelta(days=200)
    statements = [
        *size("Standard_Old", **ordinary, infiniband=True, premium_storage=True, retirement_date=soon),
        *size("Standard_NoIb", **ordinary, infiniband=False, premium_storage=True),
        *size("Standard_Mystery", **ordinary, infiniband=True),
        *size("Standard_Elsewhere", **ordinary, infiniband=True, premium_storage=True),
        *size("Standard_Preview", **ordinary, infiniband=True, premium_storage=True, preview=True),
        *size(
            "Standard_Soon",
            **ordinary,
            infiniband=True,
            premium_storage=True,
            retirement_date=TODAY + timedelta(days=1000),
        ),
        *size("Standard_Gone", **ordinary, withdrawn=True),
    ]
    prices = [price(f"Standard_{name}", "1.5") for name in ("Old", "NoIb", "Preview")]
    prices += [price("Standard_Soon", "2.5"), price("Standard_Mystery", "3.25")]
    prices += [price("Standard_Elsewhere", "1.5", region="northeurope")]
    everywhere = reading(statements, regions=["eastus", "northeurope"], prices=prices)
    ingest(engine, everywhere, now=NOW)
    with server(service) as url, open_client(url) as client:
        yield client


def test_without_a_successor_every_reason_is_given_and_what_to_give_up(small_client: httpx.Client) -> None:
    (answer,) = plan(small_client, item("old"))["items"]
    assert answer["outcome"] == "no_successor"
    assert answer["rejection_summary"] == {
        "FEATURE": 1,
        "NOT_IN_REGION": 1,
        "NO_INFINIBAND": 1,
        "PREVIEW": 1,
        "RETIRING": 1,
    }
    misses = {one["size"]: [failure["code"] for failure in one["failures"]] for one in answer["nearest_misses"]}
    assert misses == {
        "Standard_Elsewhere": ["NOT_IN_REGION"],
        "Standard_Mystery": ["FEATURE"],
        "Standard_NoIb": ["NO_INFINIBAND"],
    }
    assert answer["fixes"] == [
        {"give_up": ["infiniband"], "size": "Standard_NoIb", "usd_per_hour": 1.5},
        {"give_up": ["premium_storage"], "size": "Standard_Mystery", "usd_per_hour": 3.25},
    ]


def test_every_fix_is_true(small_client: httpx.Client) -> None:
    body = plan(small_client, item("old"))
    for fix in body["items"][0]["fixes"]:
        keep = [name for name in body["keep"] if name not in fix["give_up"]]
        (answer,) = plan(small_client, item("old"), keep=keep)["items"]
        best = answer["successors"][0]
        assert best["size"] == fix["size"]
        assert {one["feature"] for one in best["lost"]} | set(best["unknown"]) == set(fix["give_up"])


def test_a_successor_may_retire_if_late_enough(small_client: httpx.Client) -> None:
    (answer,) = plan(small_client, item("old"), successor_days=1000)["items"]
    assert [one["size"] for one in answer["successors"]] == ["Standard_Soon"]
    assert answer["successors"][0]["status"] == "retiring"


def test_a_successor_is_sold_in_the_region(small_client: httpx.Client) -> None:
    (answer,) = plan(small_client, item("old", "northeurope"))["items"]
    assert [one["size"] for one in answer["successors"]] == ["Standard_Elsewhere"]
    assert answer["usd_per_hour"] is None
    assert "cost" not in answer


def test_a_withdrawn_size_needs_a_successor_whatever_the_horizon(small_client: httpx.Client) -> None:
    body = plan(small_client, item("gone"), before="2026-09-02")
    assert body["items"][0]["outcome"] == "successor"
    assert body["summary"]["by_date"] == [{"retirement_date": None, "items": 1, "vms": 1, "without_successor": 0}]


def test_unknown_figures_of_the_old_size_are_named(small_client: httpx.Client) -> None:
    (answer,) = plan(small_client, item("old"))["items"]
    assert "accelerated_networking" in answer["unknown"]
    assert not {"vcpus", "memory_gib", "infiniband"} & set(answer["unknown"])
