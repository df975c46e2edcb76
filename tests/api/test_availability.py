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
        "as_of": "2026-08-01",
        "source_id": "azure-availability-2026-08-01",
    }


@pytest.mark.first_database
def test_a_region_without_zones_has_the_size_all_the_same(client: httpx.Client) -> None:
    (item,) = walk(client, "/sizes/d2s_v3/availability", region="westus")
    assert item["zones"] == []


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
