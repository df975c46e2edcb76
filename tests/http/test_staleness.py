"""A service tells how old its prices and exchange rates are: `/readyz`, `/metrics` and `/sources`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Engine

from app.catalog.readings import ExchangeRateRow
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.factories import NOW, price, reading, size
from tests.servers import open_client, server
from tests.waiting import wait_until

pytestmark = pytest.mark.first_database

LAST_WEEK, YESTERDAY = TODAY - timedelta(days=8), TODAY - timedelta(days=1)
GAUGES = ("vmsizes_prices_age_days", "vmsizes_exchange_rates_age_days", "vmsizes_catalog_stale")


@contextmanager
def client_of(url: str, **settings: int) -> Iterator[httpx.Client]:
    service = create_asgi_app(
        Settings(_env_file=None, database_url=url, **settings),  # type: ignore[arg-type]  # names of settings
        today=lambda: TODAY,
    )
    with server(service) as served, open_client(served) as client:
        yield client


def save_prices(engine: Engine, day: date, usd: str = "1") -> None:
    prices = (price("Standard_X1", usd, valid_from=day),)
    ingest(engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"], prices=prices), now=NOW)


def save_rates(engine: Engine, day: date) -> None:
    rate = ExchangeRateRow(
        currency="USD", day=day, units_per_euro=Decimal("1.1"), source="prices", file="rates.csv", line=2
    )
    ingest(engine, reading(exchange_rates=(rate,)), now=NOW)


def gauges(client: httpx.Client) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {sample.name: sample.value for family in families for sample in family.samples if sample.name in GAUGES}


def test_old_prices_leave_the_service_ready_and_are_told_until_a_refresh(engine: Engine, database_url: str) -> None:
    save_prices(engine, LAST_WEEK)
    save_rates(engine, YESTERDAY)
    with client_of(database_url) as client:
        ready = client.get("/readyz")
        assert ready.status_code == 200
        told = ready.json()
        assert (told.pop("revision"), bool(told.pop("digest"))) == (2, True)
        assert told == {
            "status": "ready",
            "stale": True,
            "stale_after_days": 7,
            "newest_prices_as_of": str(LAST_WEEK),
            "prices_age_days": 8,
            "newest_exchange_rates_as_of": str(YESTERDAY),
            "exchange_rates_age_days": 1,
            "refreshes": {},
            "database_is_replica": False,
            "database_is_receiving": None,
            "database_replay_age_seconds": None,
        }
        assert gauges(client) == dict(zip(GAUGES, (8, 1, 1), strict=True))
        save_prices(engine, YESTERDAY, "2")
        wait_until(lambda: client.get("/readyz").json()["revision"] == 3)
        told = client.get("/readyz").json()
        assert (told["stale"], told["newest_prices_as_of"], told["prices_age_days"]) == (False, str(YESTERDAY), 1)
        assert gauges(client) == dict(zip(GAUGES, (1, 1, 0), strict=True))


def test_the_age_from_which_on_a_catalog_is_stale_is_a_setting(engine: Engine, database_url: str) -> None:
    save_prices(engine, LAST_WEEK)
    with client_of(database_url, stale_after_days=8) as client:
        told = client.get("/readyz").json()
        assert (told["stale"], told["stale_after_days"], told["prices_age_days"]) == (False, 8, 8)
        assert gauges(client)["vmsizes_catalog_stale"] == 0


def test_what_is_not_known_is_null_and_has_no_gauge(engine: Engine, database_url: str) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    with client_of(database_url) as client:
        told = client.get("/readyz").json()
        assert (told["stale"], told["newest_prices_as_of"], told["prices_age_days"]) == (True, None, None)
        assert (told["newest_exchange_rates_as_of"], told["exchange_rates_age_days"]) == (None, None)
        assert gauges(client) == {"vmsizes_catalog_stale": 1}


def test_a_scrape_without_a_catalog_still_tells_of_the_worker(database_url: str) -> None:
    with client_of(database_url) as client:
        assert client.get("/metrics").status_code == 200
        assert gauges(client) == {}


def test_a_source_tells_the_newest_day_of_its_prices(engine: Engine, database_url: str) -> None:
    save_prices(engine, LAST_WEEK)
    with client_of(database_url) as client:
        days = {one["id"]: one["newest_day"] for one in client.get("/sources").json()["items"]}
        assert days == {"page": None, "prices": str(LAST_WEEK)}
