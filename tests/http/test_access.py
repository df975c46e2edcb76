"""API keys and rate limits: who is served, what a refused client is told, and what shared caches may keep."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate
from pydantic import ValidationError

from app.api_keys import find_api_key, parse_api_keys
from app.cli.serve import proxy_options
from app.http.access import RateLimiter, client_network
from app.http.middleware import CacheMiddleware
from app.http.problems import EXPLANATIONS
from app.main import create_app, create_service
from app.settings import PROJECT, Settings
from tests.command_line import run_command
from tests.servers import open_client, server

pytestmark = pytest.mark.one_database  # who is served is decided before any query

KEY, OTHER = "k" * 32, "another-key-of-enough-letters"


@contextmanager
def serving(url: str, **settings: Any) -> Iterator[httpx.Client]:
    service = create_service(Settings(_env_file=None, database_url=url, **settings))
    with server(service) as base, open_client(base) as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


TWO_KEYS = "Two API keys that differ were sent: send one, as `Authorization: Bearer KEY` or `X-API-Key: KEY`."


def test_without_keys_and_limits_nothing_is_installed(database_url: str) -> None:
    assert isinstance(create_service(Settings(_env_file=None, database_url=database_url)), CacheMiddleware)


def test_a_request_with_a_key_is_served_and_one_without_is_told_how_to_send_it(seeded_url: str, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# holders\nteam-b:{sha256(OTHER.encode()).hexdigest()}\n\n")
    with serving(seeded_url, api_keys=KEY, api_keys_file=file) as client:
        for headers in (bearer(KEY), bearer(OTHER), {"x-api-key": KEY}, {"authorization": f"bearer  {OTHER}"}):
            assert client.get("/sizes?limit=1", headers=headers).status_code == 200
        no_keys: list[dict[str, str]] = [{}, {"authorization": "Basic abc"}, {"x-api-key": ""}]
        not_valid: list[dict[str, str]] = [bearer("x" * 32), {"x-api-key": "y"}]
        wrong = [
            *((headers, EXPLANATIONS["unauthorized"].detail) for headers in no_keys),
            *((headers, "The API key that was sent is not valid here.") for headers in not_valid),
            (
                {**bearer(KEY), "x-api-key": OTHER},
                TWO_KEYS,
            ),
        ]
        for headers, detail in wrong:
            for path in ("/sizes?limit=1", "/", "/docs", "/openapi.json", "/metrics", "/nothing", "/sizes.csv"):
                refused = client.get(path, headers=headers)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == 'Bearer realm="vmsizes"'
                assert refused.headers["content-type"] == "application/problem+json"
                assert refused.headers["cache-control"] == "no-store"
                assert refused.headers["x-content-type-options"] == "nosniff"
                assert refused.json()["type"] == "/problems/unauthorized"
                assert refused.json()["detail"] == detail
                assert refused.json()["request_id"] == refused.headers["x-request-id"]
            assert client.post("/mcp", headers=headers, json={}).status_code == 401
        assert client.head("/sizes").content == b""
        for path in ("/healthz", "/readyz"):
            assert client.get(path).status_code == 200


def test_a_page_of_another_origin_may_ask_beforehand_and_read_the_refusal(seeded_url: str) -> None:
    origin = {"origin": "https://pages.example"}
    asked = {**origin, "access-control-request-method": "GET", "access-control-request-headers": "authorization"}
    with serving(seeded_url, api_keys=KEY) as client:
        preflight = client.options("/sizes", headers=asked)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-headers"] == "authorization"
        assert client.get("/sizes", headers=origin).headers["access-control-allow-origin"] == "*"


@pytest.mark.takes_seconds
@pytest.mark.parametrize("max_age_seconds", [0, 300])
def test_no_shared_cache_may_keep_what_a_key_was_given(seeded_url: str, max_age_seconds: int) -> None:
    with serving(seeded_url, api_keys=KEY, max_age_seconds=max_age_seconds) as client:
        paths = ("/sizes?limit=1", "/sizes?limit=1", "/regions", "/openapi.json", "/sizes.csv", "/docs")
        answers = [client.get(path, headers=bearer(KEY)) for path in paths]
        etag = answers[0].headers["etag"]
        answers.append(client.get(paths[0], headers={**bearer(KEY), "if-none-match": etag}))
        assert answers[-1].status_code == 304
        for answer in answers:
            parts = {part.strip() for part in answer.headers["cache-control"].split(",")}
            assert "private" in parts
            assert "public" not in parts
            varies = {part.strip().lower() for part in answer.headers["vary"].split(",")}
            assert {"authorization", "x-api-key"} <= varies
        assert "no-store" in client.get("/healthz").headers["cache-control"]
    with serving(seeded_url) as client:
        assert "authorization" not in client.get("/sizes?limit=1").headers["vary"].lower()


def test_every_key_is_compared_whichever_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = parse_api_keys([KEY, OTHER, "third-" + "3" * 30])
    compared: list[str] = []

    def compare(known: str, presented: str) -> bool:
        compared.append(known)
        return known == presented

    monkeypatch.setattr("app.api_keys.hmac.compare_digest", compare)
    found = find_api_key(KEY.encode(), keys)
    assert found == keys[0]
    assert compared == [key.sha256 for key in keys]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("short", "entry 1 is neither"),
        (f"{KEY},a b{KEY}", "entry 2 is neither"),
        ("name:123", "entry 1 is neither"),
        ("é" * 30, "entry 1 is neither"),
    ],
)
def test_what_is_no_key_is_refused_at_the_start_without_being_shown(text: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said) as raised:
        Settings(_env_file=None, api_keys=text)
    assert text not in str(raised.value.errors()[0]["msg"])


def test_a_file_without_keys_is_refused_as_it_would_open_the_service(tmp_path: Path) -> None:
    empty, absent = tmp_path / "empty", tmp_path / "absent"
    empty.write_text("# nobody yet\n")
    for file in (empty, absent, tmp_path):
        with pytest.raises(ValidationError, match=r"has no key in it|is not a file"):
            Settings(_env_file=None, api_keys_file=file)


@pytest.mark.takes_seconds
def test_the_document_names_keys_and_limits_only_where_they_are_set() -> None:
    limited = Settings(_env_file=None, database_url="sqlite://", api_keys=KEY, rate_limit_requests=5)
    plain = json.loads((PROJECT / "docs/openapi.json").read_text(encoding="utf-8"))
    secured = create_app(limited).openapi()
    assert plain["security"] == []
    assert "securitySchemes" not in plain["components"]
    assert secured["security"] == [{"bearer": []}, {"apiKey": []}]
    validate(secured)
    for operations in secured["paths"].values():
        for operation in operations.values():
            assert {"401", "429"} <= operation["responses"].keys()
    for operations in plain["paths"].values():
        for operation in operations.values():
            assert not {"401", "429"} & operation["responses"].keys()


def test_a_client_over_the_limit_is_refused_until_the_time_that_it_is_told(seeded_url: str) -> None:
    with serving(seeded_url, rate_limit_requests=3, rate_limit_window_seconds=3600) as client:
        for remaining in (2, 1, 0):
            served = client.get("/regions?limit=1")
            assert served.status_code == 200
            assert served.headers["ratelimit-policy"] == '"default";q=3;w=3600'
            assert served.headers["ratelimit"].startswith(f'"default";r={remaining};t=')
        refused = client.get("/regions?limit=1")
        assert (refused.status_code, refused.json()["type"]) == (429, "/problems/too-many-requests")
        shown = EXPLANATIONS["too-many-requests"].detail.replace("100 requests in 60 s", "3 requests in 3,600 s")
        assert refused.json()["detail"] == shown
        assert 1190 <= int(refused.headers["retry-after"]) <= 1200
        assert refused.headers["ratelimit"].startswith('"default";r=0;t=')
        assert client.get("/healthz").status_code == 200


def test_holders_of_keys_are_counted_apart_and_guesses_by_address(seeded_url: str) -> None:
    limits = {"rate_limit_requests": 2, "rate_limit_window_seconds": 3600}
    with serving(seeded_url, api_keys=f"{KEY},{OTHER}", **limits) as client:
        assert [client.get("/regions", headers=bearer(KEY)).status_code for _ in range(3)] == [200, 200, 429]
        assert client.get("/regions", headers=bearer(OTHER)).status_code == 200
        guesses = [client.get("/regions", headers=bearer(f"guess-{n:030}")).status_code for n in range(4)]
        assert guesses == [401, 401, 429, 429]


@pytest.mark.parametrize(("trusted", "statuses"), [("", [200, 429, 429]), ("127.0.0.1", [200, 200, 429])])
def test_a_forwarded_address_counts_only_behind_a_trusted_proxy(
    seeded_url: str, trusted: str, statuses: list[int]
) -> None:
    settings = Settings(_env_file=None, database_url=seeded_url, rate_limit_requests=1, trusted_proxies=trusted)
    with server(create_service(settings), **proxy_options(settings)) as url, open_client(url) as client:
        sent = [
            "198.51.100.1",
            "198.51.100.2",
            "203.0.113.9, 198.51.100.2",
        ]  # a client may write what it likes in front
        got = [client.get("/regions?limit=1", headers={"x-forwarded-for": address}).status_code for address in sent]
    assert got == statuses


def test_an_address_is_counted_with_its_network() -> None:
    assert client_network("192.0.2.7") == client_network("::ffff:192.0.2.7") == "192.0.2.7"
    assert client_network("2001:db8:1:2::1") == client_network("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert client_network("2001:db8:1:3::1") != client_network("2001:db8:1:2::1")
    assert client_network("fe80::1%eth0") == "fe80::/64"
    assert client_network(None) == client_network("/run/socket") == "unknown"


def test_the_limit_holds_over_any_time_and_returns_one_request_at_a_time() -> None:
    now = 1000.0
    limiter = RateLimiter(10, 60, clock=lambda: now)
    assert [limiter.count("a").served for _ in range(12)] == [True] * 10 + [False] * 2
    assert limiter.count("a").retry_seconds == 6
    assert limiter.count("b").served
    now += 6
    assert [limiter.count("a").served for _ in range(2)] == [True, False]
    served = 0
    for _ in range(6000):
        now += 0.1
        served += limiter.count("a").served
    assert 99 <= served <= 101


def test_the_table_of_clients_has_a_bound_and_forgets_those_that_are_paid_off() -> None:
    now = 0.0
    limiter = RateLimiter(2, 60, max_clients=100, clock=lambda: now)
    for number in range(10_000):
        limiter.count(f"client {number}")
        assert len(limiter) <= 100
    now += 61
    limiter.count("one")
    assert len(limiter) == 1


def test_a_wrong_key_ends_serving_with_the_name_of_the_setting_only(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VMSIZES_API_KEYS", "hunter2")
    done = run_command(database_url, "serve")
    assert done.returncode != 0
    assert "VMSIZES_API_KEYS" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout


def test_lifespan_messages_pass(database_url: str) -> None:
    service = create_service(Settings(_env_file=None, database_url=database_url, api_keys=KEY))
    messages: list[Any] = []

    async def run() -> None:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        for kind in ("lifespan.startup", "lifespan.shutdown"):
            queue.put_nowait({"type": kind})

        async def send(message: Any) -> None:
            messages.append(message["type"])

        await service({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, queue.get, send)

    asyncio.run(run())
    assert messages == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
