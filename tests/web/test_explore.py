"""The page of points: its front and its bars are the API's figures, its URL is its state."""

import re
from html import unescape
from typing import Any

import httpx
import pytest

HTML = {"accept": "text/html"}


def get(client: httpx.Client, url: str, status: int = 200) -> str:
    answer = client.get(url, headers=HTML)
    assert answer.status_code == status, answer.text
    return unescape(answer.text)


def table(page: str, name: str) -> list[list[str]]:
    """Return the cells of a table of the page as text, by rows."""
    body = page.partition(f'id="{name}"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in body.split("<tr")[1:]]
    return [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row] for row in cells]


def sizes(client: httpx.Client, query: str) -> list[dict[str, Any]]:
    answer: Any = client.get(f"/sizes?{query}&limit=500").json()
    assert answer["next_cursor"] is None
    items: list[dict[str, Any]] = answer["items"]
    return items


def test_the_front_has_the_sizes_that_no_other_beats_in_price_and_memory(client: httpx.Client) -> None:
    drawn = [one for one in sizes(client, "region=westeurope&min_gpu_mem=1") if one["usd_per_hour"]]
    best = {
        one["name"]
        for one in drawn
        if not any(
            other["usd_per_hour"] <= one["usd_per_hour"]
            and other["gpu_memory_gib"] >= one["gpu_memory_gib"]
            and (other["usd_per_hour"], other["gpu_memory_gib"]) != (one["usd_per_hour"], one["gpu_memory_gib"])
            for other in drawn
        )
    }
    page = get(client, "/ui/explore?region=westeurope")
    assert {row[0].split()[0] for row in table(page, "front-table")} == best
    links = re.findall(r'<a href="sizes/([^"]+)" tabindex="-1"', page)
    assert sorted(links) == sorted(one["name"].lower() for one in drawn)


def test_filters_are_those_of_the_search_page(client: httpx.Client) -> None:
    query = "gpu=A100&region=westeurope&purchase=spot"
    page = get(client, f"/ui/explore?{query}&x=vcpus")
    drawn = {one["name"].lower() for one in sizes(client, query) if one["usd_per_hour"] and one["vcpus"]}
    assert set(re.findall(r'<a href="sizes/([^"]+)" tabindex="-1"', page)) == drawn
    (link,) = re.findall(r'<a href="\.\./\?([^"]+)">All [\d,]+ sizes as a table', page)
    assert httpx.QueryParams(link) == httpx.QueryParams(f"{query.lower()}&sort=usd_per_hour")


def test_a_marked_size_has_its_price_in_every_region_the_cheapest_first(client: httpx.Client) -> None:
    page = get(client, "/ui/explore?name=nc24ads_a100_v4&unit=month")
    prices: Any = client.get("/sizes/nc24ads_a100_v4/prices?os=linux&purchase=on_demand&limit=500").json()["items"]
    rows = table(page, "region-table")
    dearer = {one["region"]: one["usd_per_hour"] for one in prices}
    listed = [dearer.pop(row[0].split()[-1]) for row in rows]
    assert listed == sorted(listed)
    assert not dearer
    cheapest = min(one["usd_per_hour"] for one in prices)
    assert rows[0][1] == f"{cheapest * 730:,.2f}"
    assert rows[0][3] == "cheapest"
    assert page.count(' here"><title>Standard_NC24ads_A100_v4:') == 1


def test_sizes_without_a_gpu_are_drawn_where_no_axis_is_about_gpus(client: httpx.Client) -> None:
    page = get(client, "/ui/explore?max_gpus=0&series=ddsv5&x=memory")
    assert table(page, "front-table")
    assert "Nothing to draw" in get(client, "/ui/explore?max_gpus=0&series=ddsv5")


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("x=price", "x", "the two axes must have different figures"),
        ("y=gpu_memory", "y", "the two axes must have different figures"),
        ("name=nd40rs_v9", "name", "nd40rs_v9"),
        ("gpu=H1000", "gpu", "no GPU of the catalog is called"),
        ("as_of=2999-01-01", "as_of", "must not be later than"),
    ],
)
def test_an_invalid_value_is_said_at_its_field_and_the_rest_is_drawn(
    client: httpx.Client, query: str, field: str, words: str
) -> None:
    page = get(client, f"/ui/explore?{query}", 422)
    assert re.search(rf'<a href="#{field}">[^<]*{re.escape(words)}', page)
    assert re.search('class="point series-[0-6] best"', page)
