"""Pages of a catalog with the reader's own discounts: what is paid, with the list price beside it in words."""

import re
from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from tests.adjusted import serve_adjusted
from tests.databases import Databases

RULES = "name,size,region,discount_percent\nEA discount,,eastus,12\n"
A100 = "nc24ads_a100_v4"


@pytest.fixture(scope="module")
def adjusted(
    databases: Databases, few_sizes_template_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client of a service with 12 % off everything in East US."""
    path = tmp_path_factory.mktemp("rules") / "contoso.csv"
    path.write_text(RULES)
    with serve_adjusted(databases, few_sizes_template_url, path) as client:
        yield client


def text(client: httpx.Client, url: str) -> str:
    answer = client.get(url, headers={"accept": "text/html"}, follow_redirects=True)
    assert answer.status_code == 200, answer.text
    return " ".join(re.sub(r"<[^>]+>", " ", unescape(answer.text)).split())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"/?name=*{A100}&region=eastus", "3.2322 list 3.673"),
        (f"/?name=*{A100}&region=eastus&unit=month", "2,359.54 list 2,681.29"),
        (f"/ui/sizes/{A100}?region=eastus", "$3.2322 list $3.673 an hour in eastus"),
        (f"/ui/sizes/{A100}?region=eastus", "3.2322 list 3.673"),
        (f"/ui/compare?name={A100},nc48ads_a100_v4&region=eastus", "List price 3.673"),
        (f"/ui/compare?name={A100},nc48ads_a100_v4&region=eastus", "Rules that change it EA discount EA discount"),
        ("/ui/fit?model=llama-3.1-8b&gpu=A100&region=eastus", "$3.2322 an hour list $3.673"),
        (f"/ui/sizes/{A100}/buy?region=eastus", "3.2322 list 3.673"),
        (f"/ui/explore?name={A100}&region=eastus&x=gpu_memory&y=price", "3.2322 list 3.673"),
        (f"/ui/retirements/plan?inventory=size,region%0A{A100},eastus", "now list $3.673 an hour"),
    ],
)
def test_what_is_paid_has_the_list_price_beside_it(adjusted: httpx.Client, url: str, shown: str) -> None:
    assert shown in text(adjusted, url)


def test_without_rules_there_is_no_list_price(client: httpx.Client) -> None:
    for url in (f"/?name=*{A100}", f"/ui/sizes/{A100}", f"/ui/compare?name={A100},nc48ads_a100_v4"):
        assert "list 3.673" not in text(client, url)
        assert "List price" not in text(client, url)


def test_markdown_says_what_is_paid_and_the_list_price(adjusted: httpx.Client, client: httpx.Client) -> None:
    paid = adjusted.get(f"/ui/sizes/{A100}.md").text
    assert "USD an hour, Linux, what you pay today; `list` is the list price." in paid
    assert re.search(r"^\| eastus \| 3\.23224 \(list 3\.673: EA discount\) \|", paid, re.MULTILINE), paid
    assert "USD an hour, Linux, list prices in force today." in client.get(f"/ui/sizes/{A100}.md").text


def test_a_history_says_that_it_is_of_list_prices(adjusted: httpx.Client) -> None:
    assert "List prices, as sources state them" in text(adjusted, f"/ui/sizes/{A100}?region=eastus")
