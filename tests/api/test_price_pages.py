"""Pages of prices are rendered without the framework, with the bytes that their schema says."""

from datetime import date

import httpx
import pytest

from app.catalog.queries.prices import QUICK_ROWS
from app.main import create_app
from app.schemas.sizes import SizePricePage
from app.settings import Settings
from tests.conftest import TODAY
from tests.servers import open_client, server
from tests.walks import walk

PAGES = [
    "region=westeurope",
    "region=westeurope&limit=1",
    f"region=westeurope&limit={QUICK_ROWS + 1}",
    "region=westeurope,eastus&os=windows&purchase=on_demand",
    "region=westeurope&purchase=spot&history=true",
    "region=westeurope&currency=EUR",
    "region=westeurope&as_of=2026-07-01",
    "size=nd40rs_v2&history=true&currency=CHF",
    "gpu=A100&os=linux",
    "series=nc_a100_v4",
    "purchase=reserved_3y",
    "limit=500",
]
EMPTY = "region=westeurope&known_at=2026-07-01"
REFUSED = [
    "region=nowhere",
    "region=westeurope&currency=XTS",
    "region=westeurope&limit=0",
    "region=westeurope&cursor=nonsense",
    "region=westeurope&as_of=2999-01-01",
    "region=westeurope&sort=usd",
]


@pytest.mark.parametrize("query", PAGES)
def test_a_page_has_the_bytes_that_its_schema_says(client: httpx.Client, query: str) -> None:
    body = client.get(f"/prices?{query}").raise_for_status().content
    page = SizePricePage.model_validate_json(body)
    assert page.items
    assert body == page.model_dump_json(by_alias=True).encode()


def test_pages_and_problems_are_those_of_the_application(seeded_url: str, client: httpx.Client) -> None:
    app = create_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)
    with server(app) as url, open_client(url) as other:
        for query in (*PAGES, EMPTY, *REFUSED):
            ours, theirs = (each.get(f"/prices?{query}") for each in (client, other))
            assert ours.status_code == theirs.status_code
            if ours.status_code == httpx.codes.OK:
                assert (ours.content, ours.headers["content-type"]) == (theirs.content, theirs.headers["content-type"])
            else:
                problems = [each.json() | {"request_id": "", "instance": ""} for each in (ours, theirs)]
                assert problems[0] == problems[1]
    app.state.database.dispose()


@pytest.mark.parametrize("query", ["region=westeurope", "region=westeurope,eastus&purchase=spot", "purchase=spot"])
def test_pages_by_any_way_are_one_list(client: httpx.Client, query: str) -> None:
    """The first pages are found otherwise than those behind a cursor, and than longer ones."""
    (whole, short) = (client.get(f"/prices?{query}&limit={limit}").json() for limit in (QUICK_ROWS + 1, 60))
    behind = client.get(f"/prices?{query}&limit=41&cursor={short['next_cursor']}").json()
    assert short["items"] + behind["items"] == whole["items"]
    assert short["total"] == behind["total"] == whole["total"]


@pytest.mark.first_database
def test_a_price_of_a_page_has_days_as_dates_and_money_as_a_number(client: httpx.Client) -> None:
    (item,) = client.get("/prices?region=westeurope&limit=1&currency=EUR").json()["items"]
    assert item["price_age_days"] == (TODAY - date.fromisoformat(item["seen_until"])).days
    assert isinstance(item["usd_per_hour"], float)
    assert isinstance(item["converted"]["price_per_hour"], float)


@pytest.mark.parametrize("query", [{"os": "linux", "purchase": "on_demand"}, {"history": "true"}])
def test_prices_of_a_size_are_listed_in_the_order_of_their_price(client: httpx.Client, query: dict[str, str]) -> None:
    path = "/sizes/e8s_v5/prices"
    listed = walk(client, path, **query)
    cheapest = walk(client, path, **query, sort="usd_per_hour", limit=23)
    by_price = [price["usd_per_hour"] for price in cheapest]
    assert by_price == sorted(by_price)
    assert sorted(map(str, cheapest)) == sorted(map(str, listed))
    refused = client.get(f"{path}?sort=-price")
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "usd_per_hour" in refused.json()["detail"]
