"""`GET /sizes/{name}/availability` on the seeds."""

import httpx
import pytest

from tests.walks import walk


def test_the_regions_of_a_size_are_listed_with_their_zones(client: httpx.Client) -> None:
    regions = {item["region"]: item for item in walk(client, "/sizes/nc24ads_a100_v4/availability", limit=5)}
    assert len(regions) > 10
    assert regions["southcentralus"] == {
        "region": "southcentralus",
        "zones": ["1", "2"],
        "zones_known": True,
        "as_of": "2026-08-01",
        "source_id": "azure-availability-2026-08-01",
    }


@pytest.mark.first_database
def test_a_region_without_zones_has_the_size_all_the_same(client: httpx.Client) -> None:
    (item,) = walk(client, "/sizes/d2s_v3/availability", region="westus")
    assert (item["zones"], item["zones_known"]) == ([], True)


def test_zones_that_the_list_of_a_region_does_not_name_are_unknown_and_not_none(clouds: httpx.Client) -> None:
    (item,) = walk(clouds, "/sizes/c4-standard-8/availability", region="europe-west4")
    assert item == {
        "region": "europe-west4",
        "zones": [],
        "zones_known": False,
        "as_of": "2026-08-20",
        "source_id": "gcp-machine-type-regions-2026-08-20",
    }
    (item,) = walk(clouds, "/sizes/n2-standard-8/availability", region="europe-west4")
    assert (item["zones_known"], item["as_of"], item["source_id"]) == (True, None, "gcp-zones")
    assert item["zones"] == ["europe-west4-a", "europe-west4-b", "europe-west4-c"]
    there = {"provider": "gcp", "region": "europe-west4", "name": "c4-standard-8,n2-standard-8"}
    for least, met in ((0, ["n2-standard-8"]), (3, ["n2-standard-8"]), (4, [])):
        page = clouds.get("/sizes", params={**there, "min_zones": least}).json()
        assert [size["name"] for size in page["items"]] == met
        assert page["unknown"] == {"zones": 1}
    facets = clouds.get("/facets", params={**there, "min_zones": 3}).json()
    assert [entry["count"] for entry in facets["region"] if entry["value"] == "europe-west4"] == [1]
    page = clouds.get("/ui/sizes/c4-standard-8").text
    assert "Lists of zones have the size in 42 regions." in page
    assert "none to choose" not in page


def test_a_region_that_lacks_the_size_is_not_listed(client: httpx.Client) -> None:
    answer = client.get("/sizes/nd128isr_gb300_v6/availability?region=australiacentral").json()
    assert (answer["items"], answer["next_cursor"], answer["total"]) == ([], None, 0)


@pytest.mark.first_database
def test_unknown_names_are_refused(client: httpx.Client) -> None:
    assert client.get("/sizes/nosuchsize/availability").status_code == 404
    assert client.get("/sizes/d2s_v3/availability?region=nowhere").status_code == 422


def test_the_answer_says_that_zone_numbers_of_azure_differ_between_subscriptions(
    client: httpx.Client, clouds: httpx.Client
) -> None:
    answer = client.get("/sizes/hb120rs_v3/availability").json()
    assert "another zone in another subscription" in answer["zones_note"]
    page = client.get("/ui/sizes/hb120rs_v3").text
    assert "zone numbers differ between subscriptions" in page
    assert "zone numbers differ" not in clouds.get("/ui/sizes/m5.large").text
