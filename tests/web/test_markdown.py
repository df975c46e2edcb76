"""A size as Markdown, and /llms.txt."""

import re

import httpx
import pytest

from app.mcp.server import TOOLS
from app.web.rendering import PURCHASE_TITLES


def test_a_size_has_a_markdown_page_with_sources_disputes_and_prices(client: httpx.Client) -> None:
    answer = client.get("/ui/sizes/nd40rs_v2.md")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    text = answer.text
    assert text.startswith("# Standard_ND40rs_v2\n")
    assert re.search(r"\| [^|]*GPU memory[^|]* \| 256\W*GiB \| ndv2-series-2020-02-03, line \d+ \|", text), text
    assert "| 128" in text.partition("## Disputed")[2]
    assert re.search(r"^\| eastus \| 22.032 \|", text, re.MULTILINE)
    for path in re.findall(r"\]\(([^)]+)\)", text):
        assert client.get(client.base_url.join("/ui/sizes/").join(path)).status_code == 200, path


@pytest.mark.parametrize("name", ["d4s_v5", "ND6", "Standard_NV6ads_A10_v5"])
def test_every_table_has_cells_under_each_heading(client: httpx.Client, name: str) -> None:
    tables = re.findall(r"(?m)(?:^\|.*\|\n)+", client.get(f"/ui/sizes/{name}.md").text)
    assert tables
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


def test_each_price_has_the_day_on_which_it_was_last_seen(client: httpx.Client) -> None:
    prices = client.get("/sizes/nc24ads_a100_v4/prices?os=linux&limit=500").json()["items"]
    text = client.get("/ui/sizes/nc24ads_a100_v4.md").text.partition("## Prices")[2]
    head, _, *lines = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|"))
    shown = {line[0]: dict(zip(head, line, strict=True)) for line in lines}
    earlier = 0
    for price in prices:
        row = shown[price["region"]]
        cell, newest = row[PURCHASE_TITLES[price["purchase"]]], row["last seen"]
        assert cell.startswith(f"{price['usd_per_hour']:.9f}".rstrip("0").rstrip(".")), price
        assert cell.endswith(f"last seen {price['seen_until']})") == (price["seen_until"] < newest), (price, row)
        earlier += price["seen_until"] < newest
    assert earlier


def test_markdown_is_cached_and_validated_like_a_page(client: httpx.Client) -> None:
    first = client.get("/ui/sizes/nd40rs_v2.md")
    again = client.get("/ui/sizes/nd40rs_v2.md")
    assert again.headers["content-type"] == first.headers["content-type"]
    assert "hit" in again.headers["cache-status"]
    unchanged = client.get("/ui/sizes/nd40rs_v2.md", headers={"if-none-match": first.headers["etag"]})
    assert unchanged.status_code == 304
    assert client.get("/ui/sizes/nd40rs_v2").headers["content-type"].startswith("text/html")


def test_an_unknown_size_has_no_markdown(client: httpx.Client) -> None:
    assert client.get("/ui/sizes/nd40rs_v3.md").status_code == 404


def test_every_link_of_llms_txt_works(client: httpx.Client) -> None:
    answer = client.get("/llms.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text.startswith("# vmsizes\n\n> ")
    links = re.findall(r"\]\(([^)]+)\)", answer.text)
    assert len(links) > 10
    assert all(tool in answer.text for tool in TOOLS)
    for link in links:
        expected = 405 if link.endswith("mcp") else 200
        assert client.get(link).status_code == expected, link


def test_llms_txt_repeats_no_host_that_a_client_sends(client: httpx.Client) -> None:
    answer = client.get("/llms.txt", headers={"host": "other.example"})
    assert "other.example" not in answer.text
    assert answer.text == client.get("/llms.txt").text
