"""MCP at /mcp of a real server, with the official client and with plain requests."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client

from app.main import create_asgi_app
from app.mcp.server import TOOLS
from app.settings import Settings
from tests.conftest import TODAY
from tests.servers import open_client, server

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PUBLIC = "https://vms.example/api"


@pytest.fixture
def public(seeded_url: str) -> Iterator[httpx.Client]:
    """A client of a service whose public URL is known."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url, public_url=PUBLIC), today=lambda: TODAY)
    with server(service) as url, open_client(url) as client:
        yield client
    service.app.state.database.dispose()


def test_the_official_client_lists_calls_and_reads(base_url: str) -> None:
    async def use() -> tuple[int, Any, Any]:
        async with Client(f"{base_url}/mcp") as client:
            tools = await client.list_tools()
            found = await client.call_tool("find_sizes", {"gpu": "H100", "limit": 1})
            revision = await client.read_resource("vmsizes://revision")
            return len(tools.tools), found.structured_content, revision.contents[0]

    count, found, revision = anyio.run(use)
    assert count == len(TOOLS)
    assert found["items"][0]["name"] == "Standard_NC40ads_H100_v5"
    assert '"revision":' in revision.text


def test_a_client_of_an_old_protocol_gets_the_rows_as_text(client: httpx.Client) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "find_sizes", "arguments": {"gpu": "H100", "limit": 1}},
    }
    old = client.post("/mcp", json=body, headers={"mcp-protocol-version": "2025-03-26"}).json()["result"]
    assert '"name":"Standard_NC40ads_H100_v5"' in old["content"][0]["text"]
    assert "structuredContent" not in old
    new = client.post("/mcp", json=body, headers={"mcp-protocol-version": "2025-06-18"}).json()["result"]
    assert new["structuredContent"]["items"][0]["name"] == "Standard_NC40ads_H100_v5"


def test_a_response_is_json_without_a_session(client: httpx.Client) -> None:
    answer = client.post("/mcp", json=PING)
    assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("length", [2_000_000, 5_000_000])
def test_a_body_that_is_too_long_is_a_problem_like_any_other(client: httpx.Client, length: int) -> None:
    answer = client.post("/mcp", content=b" " * length, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-long")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_are_no_streams_and_no_sessions(client: httpx.Client, method: str) -> None:
    answer = client.request(method, "/mcp")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, OPTIONS")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "attacker.example"},
        {"host": "attacker.example:8000"},
        {"origin": "https://attacker.example"},
        {"origin": "null"},
        {"origin": "http://[::1"},
        {"host": "[::1"},
        {"host": "127.0.0.1.attacker.example"},
        {"host": "localhost.attacker.example"},
        {"host": "vms.example"},
        {"origin": "http://192.0.2.8"},
        {"host": "192.0.2.7", "origin": "http://192.0.2.8"},
        {"host": "192.0.2.7", "origin": "null"},
    ],
)
def test_a_foreign_host_or_origin_is_refused(client: httpx.Client, headers: dict[str, str]) -> None:
    asked = {"access-control-request-method": "POST", **headers}
    for answer in (client.post("/mcp", json=PING, headers=headers), client.options("/mcp", headers=asked)):
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/foreign-origin")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:8000"},
        {"host": "[::1]:8000"},
        {"host": "192.0.2.7"},
        {"host": "vms.example"},
        {"host": "vms.example", "origin": "https://vms.example"},
        {"origin": "http://localhost:6274"},
        {"origin": "http://[::1]:6274"},
        {"host": "192.0.2.7:8000", "origin": "http://192.0.2.7:8000"},
    ],
)
def test_addresses_this_machine_and_the_public_url_are_answered(public: httpx.Client, headers: dict[str, str]) -> None:
    assert public.post("/mcp", json=PING, headers=headers).status_code == 200
    asked = {"origin": "http://localhost", "access-control-request-method": "POST", **headers}
    assert public.options("/mcp", headers=asked).headers["access-control-allow-methods"] == "POST, OPTIONS"


def test_without_the_setting_there_is_no_such_path(seeded_url: str) -> None:
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url, mcp=False), today=lambda: TODAY)
    with server(service) as url, open_client(url) as client:
        assert client.post("/mcp", json=PING).status_code == 404
        assert "/mcp" not in (listed := client.get("/llms.txt").text)
        assert "## For agents" in listed
    service.app.state.database.dispose()


WITHOUT_SDK = """
import sys
sys.modules["mcp"] = None
import anyio, httpx, app.asgi

async def ask():
    transport = httpx.ASGITransport(app.asgi.service())
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.post("/mcp", json={})
        print(answer.status_code, answer.json()["detail"])

anyio.run(ask)
"""


@pytest.mark.takes_seconds
def test_without_the_sdk_the_answer_says_what_to_install(seeded_url: str) -> None:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
    command = [sys.executable, "-c", WITHOUT_SDK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("503 MCP needs the official SDK")
    assert "pip install 'vmsizes[mcp]'" in done.stdout
