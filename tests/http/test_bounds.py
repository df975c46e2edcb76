"""Memory stays bounded whatever is requested, and oversized or invalid requests are rejected briefly and soon."""

import http.client
import random
import time
from collections.abc import Iterator
from itertools import chain
from urllib.parse import urlencode

import httpx
import pytest

from app.http.headers import MAX_HEADER_BYTES, MAX_URL_BYTES
from tests.processes import ServiceProcess, run_service
from tests.servers import get

CACHE_MIB = 8
ROOM_MIB = CACHE_MIB + 16
"""How much a worker may grow: the cache, and temporary memory that the allocator releases late."""
LONG_URLS_MIB = 1.25
"""How much it may grow by 100 URLs near the limit: 17 KiB of each are not kept."""


pytestmark = pytest.mark.one_database  # one kind of database: the memory under test is the cache's


@pytest.fixture
def running(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that has answered one request of each kind, so that its modules are loaded."""
    with run_service(seeded_url, tmp_path_factory.mktemp("serve") / "log", VMSIZES_CACHE_MIB=str(CACHE_MIB)) as running:
        for path in ("/sizes?q=nothing", "/facets", "/fit?min_gpus=1", "/sizes?nonsense=1", "/sizes.csv?fields=name"):
            get(running.url + path)
        statuses(running.port, long_urls(1))
        yield running


def statuses(port: int, asked: Iterator[tuple[str, str]]) -> set[int]:
    """Request each path with its Accept-Encoding over one connection, and return the statuses."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    found = set()
    for path, encoding in asked:
        connection.request("GET", path, headers={"accept-encoding": encoding})
        answer = connection.getresponse()
        answer.read()
        found.add(answer.status)
    connection.close()
    return found


def long_urls(number: int) -> Iterator[tuple[str, str]]:
    """Different requests with URLs near the limit and short responses, which no size has enough GPU memory for."""
    return ((f"/sizes?min_gpu_mem=9999&name={','.join(f'{each:x<110}{one}' for one in range(48))}", "identity")
            for each in range(number))  # fmt: skip


def spellings(number: int) -> Iterator[tuple[str, str]]:
    """One request in many spellings with long URLs."""
    return ((f"/sizes?q=nothing&gpu={',' * (7_000 + one % 1000)}&region={',' * (one // 1000)}", "identity")
            for one in range(number))  # fmt: skip


def encodings(number: int) -> Iterator[tuple[str, str]]:
    """A few requests, each with many long Accept-Encoding headers."""
    return ((f"/sizes?q=nothing{one % 250}", f"gzip, {'x' * 12_000}{one}") for one in range(number))


BOUNDS = {
    "/fit": ("min_vcpus", "min_memory", "min_gpus", "min_gpu_mem", "max_nodes", "hours"),
    "/sizes": ("min_vcpus", "max_vcpus", "min_memory", "max_memory", "min_gpus", "max_gpus", "min_gpu_mem"),
    "/facets": ("min_vcpus", "max_vcpus", "min_memory", "max_memory", "min_gpus", "max_gpus", "min_gpu_mem"),
}


def shapes(number: int, path: str) -> Iterator[tuple[str, str]]:
    """Requests with different combinations of filters and numbers of values."""
    chance = random.Random(7)
    for _ in range(number):
        asked = {name: "1" for name in BOUNDS[path] if chance.random() < 0.5}
        asked |= {name: "true" for name in ("nvlink", "infiniband", "verified") if chance.random() < 0.5}
        names = ",".join(f"nd{index}*" for index in range(chance.randrange(9)))
        gpus = ",".join(("a100", "h100", "t4", "a10", "v100")[: chance.randrange(6)])
        yield f"{path}?{urlencode(asked | {'name': names, 'gpu': gpus})}", "identity"


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    ("asked", "grows_by"),
    [
        (long_urls(100), LONG_URLS_MIB),
        pytest.param(chain(spellings(2_000), encodings(2_000)), ROOM_MIB, marks=pytest.mark.slow),
        (chain(shapes(300, "/sizes"), shapes(150, "/facets"), shapes(300, "/fit")), ROOM_MIB + 24),
    ],
    ids=["long URLs", "spellings and encodings", "shapes"],
)
def test_memory_does_not_grow_with_requests(
    running: ServiceProcess, asked: Iterator[tuple[str, str]], grows_by: float
) -> None:
    before = running.rss_mib
    assert statuses(running.port, asked) <= {200}
    grown = running.rss_mib - before
    assert grown < grows_by


def test_oversized_requests_are_rejected_with_a_problem(client: httpx.Client) -> None:
    for method, path, headers, status, kind in (
        ("GET", f"/sizes?q={'x' * MAX_URL_BYTES}", {}, 414, "url-too-long"),
        ("HEAD", f"/{'x' * MAX_URL_BYTES}", {}, 414, ""),
        ("GET", "/sizes", {"accept-encoding": "gzip," * (MAX_HEADER_BYTES // 5)}, 431, "headers-too-long"),
        (
            "GET",
            "/healthz",
            {"cookie": "x" * MAX_HEADER_BYTES, "origin": "https://example.org"},
            431,
            "headers-too-long",
        ),
    ):
        answer = client.request(method, path, headers=headers)
        assert answer.status_code == status
        assert answer.headers["x-request-id"]
        assert answer.headers["content-type"] == "application/problem+json"
        assert ("access-control-allow-origin" in answer.headers) == ("origin" in headers)
        assert len(answer.content) < 10_000
        assert not kind or answer.json()["type"] == f"/problems/{kind}"
    assert client.get(f"/sizes?q={'x' * 50}&gpu={',' * (MAX_URL_BYTES - 70)}").status_code == 200


def test_a_very_long_accept_encoding_is_ignored(client: httpx.Client) -> None:
    assert client.get("/sizes", headers={"accept-encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.get("/sizes", headers={"accept-encoding": f"gzip, {'x' * 300}"}).headers


SOON_CPU_SECONDS = 1.0
"""For what took 2 to 5. The service runs in the process of the test, which does nothing else."""


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/sizes?" + "&".join(f"n{number}" for number in range(1_200)), None),
        ("GET", "/sizes?status=" + ",".join(f"s{number}" for number in range(1_200)), None),
        ("POST", "/fit", {f"key{number}": 1 for number in range(60_000)}),
        ("POST", "/estimate", {"inference": {f"dtyp{number}": 1 for number in range(40_000)}}),
        ("POST", "/fit", {"model": "m" * 900_000, "inference": {"context_tokens": 1}}),
        ("POST", "/fit", {"m" * 900_000: 1}),
    ],
    ids=["parameters", "values", "keys", "near keys", "a long name", "a long key"],
)
def test_many_errors_are_reported_briefly_and_soon(
    client: httpx.Client, method: str, path: str, body: dict[str, object] | None
) -> None:
    took = []
    for _ in range(3):
        begun = time.process_time()
        answer = client.request(method, path, json=body)
        took.append(time.process_time() - begun)
    assert answer.status_code in (404, 422)
    assert len(answer.content) < 50_000
    assert len(answer.json()["errors"]) <= 10
    assert min(took) < SOON_CPU_SECONDS


def test_the_number_of_unlisted_errors_is_reported(client: httpx.Client) -> None:
    told = client.get("/sizes?" + "&".join(f"n{number}" for number in range(25))).json()
    assert [error["pointer"] for error in told["errors"]] == [f"/query/n{number}" for number in range(10)]
    assert told["detail"].endswith("; and 15 more errors, which are not listed")
    few = client.get("/sizes?a=1&b=2").json()
    assert "more errors" not in few["detail"]
    body = client.post("/fit", json={f"n{number}": 1 for number in range(1_010)}).json()
    assert len(body["errors"]) == 10
    assert body["detail"].endswith("; and 1,000 more errors, which are not listed")


def test_a_duplicate_key_among_many_is_found_soon(client: httpx.Client) -> None:
    body = "{" + ",".join(f'"key{number}":1' for number in range(60_000)) + ',"key1":2}'
    begun = time.process_time()
    answer = client.post("/fit", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert time.process_time() - begun < 3 * SOON_CPU_SECONDS
