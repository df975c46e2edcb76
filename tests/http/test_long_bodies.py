"""POST /fit and POST /estimate take bodies of 8 MiB, a few at once, and keep none of them."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from app.http.headers import MAX_CACHED_BODY_BYTES
from app.http.long_bodies import MAX_LONG_BODIES
from tests.faults.heavy import JSON, config_of_names
from tests.processes import ServiceProcess, run_service
from tests.servers import CLIENT_TIMEOUT
from tests.waiting import wait_until

pytestmark = pytest.mark.one_database  # how a body is read does not depend on it

MIB = 1024 * 1024
PATHS = ("/fit", "/estimate")


@pytest.fixture(scope="module")
def running(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with run_service(seeded_url, tmp_path_factory.mktemp("serve") / "log") as service:
        yield service


@pytest.mark.parametrize("path", PATHS)
def test_a_config_of_megabytes_is_read_as_a_short_one_is(client: httpx.Client, path: str) -> None:
    long = json.loads(config_of_names(42_000))
    listed = long["config"]["quantization_config"]["ignore"]
    short = {**long, "config": {**long["config"], "quantization_config": {"quant_method": "modelopt"}}}
    short["config"]["quantization_config"] |= {"quant_algo": "NVFP4", "ignore": listed[:2]}
    answers = [client.post(path, json=body) for body in (long, short)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert int(answers[0].request.headers["content-length"]) > 2.4 * MIB
    found = [answer.json() for answer in answers]
    for answer in found:
        answer.pop("next_cursor", None)  # each is for its own request
        # The long list names layers that the model does not have, which is said.
        assumed = answer.get("assumptions", [])
        answer["assumptions"] = [one for one in assumed if one["field"] != "config.quantization_config.ignore"]
    assert found[0] == found[1]


def test_the_pages_of_a_long_request_belong_together(client: httpx.Client) -> None:
    body = {**json.loads(config_of_names(20_000)), "limit": 2}
    first = client.post("/fit", json=body).json()
    second = client.post("/fit", json={**body, "cursor": first["next_cursor"]})
    assert second.status_code == 200
    assert not {item["size"] for item in first["items"]} & {item["size"] for item in second.json()["items"]}
    body["config"]["quantization_config"]["ignore"].append("lm_head")
    assert client.post("/fit", json={**body, "cursor": first["next_cursor"]}).status_code == 400


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b" " * (9 * MIB), 413, "at most 8,388,608 are allowed. Of a config, the list of modules"),
        (b'{"config":{"a":[' + b"0," * 250_000 + b"0]}}", 413, "more than 250,000 values. Of a config"),
        (b'{"model":"' + b"a" * (MIB + 1) + b'"}', 413, "1,048,577 characters; 1,048,576 are allowed"),
        (b'{"config":{"a":' + b"1" * 70_000 + b"}}", 413, "A number of the body has more than 1,000 digits"),
        (b'{"config":{"a":[' + b"0," * 90_000 + b'0],"a":1}}', 422, "config.a: the key is given more than once"),
        (b'{"config":{"a":[' + b"0," * 90_000 + b'"\\ud800"]}}', 422, "half of a surrogate pair"),
        (b'{"config":{"a":[' + b"0," * 90_000 + b"}}", 400, "not valid JSON: Expecting value at character 180016"),
        (b'{"config":' + b"[" * 90_000 + b"]" * 90_000 + b"}", 400, "not valid JSON: it is nested too deeply"),
    ],
    ids=["bytes", "values", "text", "number", "repeated key", "surrogate", "invalid", "deep"],
)
def test_a_long_body_is_refused_as_a_short_one_is(
    client: httpx.Client, path: str, body: bytes, status: int, detail: str
) -> None:
    answer = client.post(path, content=body, headers=JSON)
    assert answer.status_code == status
    assert detail in answer.json()["detail"]
    assert len(answer.content) < 2_000


def begin(port: int, path: str, length: int) -> socket.socket:
    """Send the headers of a request, and the beginning of its body: more than is read before the limit counts it."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    connection.sendall(head.encode() + b" " * 2 * MAX_CACHED_BODY_BYTES)
    return connection


@pytest.mark.takes_seconds
def test_only_a_few_long_bodies_are_received_at_once(running: ServiceProcess) -> None:
    long = config_of_names(20_000)

    def ask(body: bytes) -> httpx.Response:
        return httpx.post(f"{running.url}/estimate", content=body, headers=JSON, timeout=60)

    with ExitStack() as held:
        for _ in range(MAX_LONG_BODIES):
            held.enter_context(begin(running.port, "/estimate", 2 * MIB))
        wait_until(lambda: ask(long).status_code == 503)
        refused = ask(long)
        assert (refused.json()["type"], refused.headers["retry-after"]) == ("/problems/busy", "5")
        assert ask(config_of_names(500)).status_code == 200
    wait_until(lambda: ask(long).status_code == 200)


@pytest.mark.takes_seconds
def test_long_lists_are_not_kept(running: ServiceProcess) -> None:
    with httpx.Client(base_url=running.url, timeout=60, headers=JSON) as client:

        def ask(number: int) -> None:
            body = config_of_names(60_000, f"model.layers.{{0}}.block_sparse_moe.experts.{{1}}.part{number}.quantizer")
            for path in PATHS:
                assert client.post(path, content=body).status_code == 200

        for number in range(3):
            ask(number)
        before = running.rss_mib
        for number in range(3, 8):
            ask(number)
        assert running.rss_mib - before < 24  # each list alone has 4 MB as JSON, and 12 as it is matched


@pytest.mark.takes_seconds
def test_answers_to_long_bodies_are_bounded_in_time_and_in_number(seeded_url: str, tmp_path: Path) -> None:
    constraints = {"max_nodes": 10_000, "allow_legacy": True, "require_infiniband": False}
    serving = {"input_tokens": 20_000, "output_tokens": 3000, "users": 100_000, "ttft_ms": 5000, "tpot_ms": 40}
    serving |= {"peak_to_mean": 3, "disaggregated": True}
    fit = {"model": "glm-5", "serving": serving, "include": ["rejected"], "constraints": constraints}
    with run_service(seeded_url, tmp_path / "log", VMSIZES_REQUEST_SECONDS="1", VMSIZES_MAX_REQUESTS="1") as service:

        def ask(limit: int) -> httpx.Response:
            text = json.dumps(fit | {"limit": limit}) + " " * MAX_CACHED_BODY_BYTES
            return httpx.post(f"{service.url}/fit", content=text, headers=JSON, timeout=CLIENT_TIMEOUT)

        with ThreadPoolExecutor(4) as clients:
            answers = [*clients.map(ask, range(497, 501))]
    refused = [answer.json()["detail"] for answer in answers if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE]
    assert "The answer takes longer than 1 seconds. Ask for less, or retry later." in refused
    assert "1 other requests are being answered. Retry in some seconds." in refused


def test_a_body_that_is_sent_slowly_takes_no_place_of_others(seeded_url: str, tmp_path: Path) -> None:
    body = json.dumps({"model": "llama-3.1-8b", "inference": {}, "limit": 1}) + " " * MAX_CACHED_BODY_BYTES
    head = f"POST /fit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with (
        run_service(seeded_url, tmp_path / "log", VMSIZES_MAX_REQUESTS="1") as service,
        socket.create_connection(("127.0.0.1", service.port), CLIENT_TIMEOUT) as slow,
    ):
        slow.sendall((head + body[:-1]).encode())
        answer = httpx.post(f"{service.url}/fit", content=body, headers=JSON, timeout=CLIENT_TIMEOUT)
        assert answer.status_code == httpx.codes.OK
        slow.sendall(body[-1:].encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 200 OK")
