"""`vmsizes mcp`: an agent starts the program and speaks with it on standard input and output."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from app.mcp.server import TOOLS
from tests.command_line import run_command

PROGRAM = str(Path(sys.executable).with_name("vmsizes"))


@pytest.mark.takes_seconds
def test_an_agent_can_start_the_program(seeded_url: str) -> None:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}

    async def use() -> tuple[int, object]:
        async with Client(StdioServerParameters(command=PROGRAM, args=["mcp"], env=environment)) as client:
            tools = await client.list_tools()
            found = await client.call_tool("explain_size", {"size": "nd40rs_v2"})
            return len(tools.tools), found.structured_content

    count, found = anyio.run(use)
    assert count == len(TOOLS)
    assert isinstance(found, dict)
    assert found["size"] == "Standard_ND40rs_v2"


@pytest.mark.takes_seconds
def test_an_empty_catalog_is_an_error_of_the_tool(database_url: str) -> None:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": database_url}

    async def use() -> tuple[bool, str]:
        async with Client(StdioServerParameters(command=PROGRAM, args=["mcp"], env=environment)) as client:
            result = await client.call_tool("find_sizes", {})
            return result.is_error, str(result.content[0])

    is_error, text = anyio.run(use)
    assert is_error
    assert "vmsizes ingest seeds" in text


def test_without_the_sdk_the_program_says_what_to_install(seeded_url: str) -> None:
    program = "import sys; sys.modules['mcp'] = None; sys.argv = ['vmsizes', 'mcp']; from app.cli import main; main()"
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "pip install 'vmsizes[mcp]'" in done.stderr


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.takes_seconds
def test_an_agent_is_set_up_beside_what_its_configuration_has_and_starts_the_tools(seeded_url: str, home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    before = '{"theme": "dark", "mcpServers": {"other": {"command": "é"}}}'
    file.write_text(before, encoding="utf-8")
    done = run_command(seeded_url, "mcp", "install", "--yes")
    assert done.returncode == 0, done.stderr
    written = json.loads(file.read_text(encoding="utf-8"))
    server = written["mcpServers"].pop("vmsizes")
    assert written == json.loads(before)
    assert file.with_name("mcp.json.bak").read_text(encoding="utf-8") == before

    async def use() -> int:
        parameters = StdioServerParameters(**{**server, "env": {**os.environ, **server["env"]}})
        async with Client(parameters) as client:
            return len((await client.list_tools()).tools)

    assert anyio.run(use) == len(TOOLS)
    assert "has it already" in run_command(seeded_url, "mcp", "install").stdout
    assert run_command(seeded_url, "mcp", "install", "--remove", "--yes").returncode == 0
    assert json.loads(file.read_text(encoding="utf-8")) == json.loads(before)


@pytest.mark.one_database
def test_nothing_is_written_unasked_or_into_what_cannot_be_read(
    seeded_url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / ".gemini" / "settings.json"
    assert run_command(seeded_url, "mcp", "install").returncode == 2  # no program is there
    file.parent.mkdir()
    shown = json.loads(run_command(seeded_url, "mcp", "install", "--print").stdout)
    assert shown["mcpServers"]["vmsizes"]["env"] == {"VMSIZES_DATABASE_URL": seeded_url}
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = run_command(seeded_url, "mcp", "install")
    assert (asked.returncode, file.exists()) == (0, False)
    assert f"Write vmsizes in {file}?" in asked.stdout
    for text in ("// servers\n{}", "[]", '{"mcpServers": []}'):
        file.write_text(text)
        refused = run_command(seeded_url, "mcp", "install", "--yes")
        assert (refused.returncode, file.read_text()) == (3, text)
        assert "vmsizes mcp install --print" in refused.stderr


@pytest.mark.one_database
def test_a_program_in_the_cache_of_uv_is_started_by_uvx(
    seeded_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # uv marks its cache so, and not the environments of `uv tool install`.
    (tmp_path / "CACHEDIR.TAG").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0" / "x"))
    server = json.loads(run_command(seeded_url, "mcp", "install", "--host", "cursor", "--print").stdout)
    started = server["mcpServers"]["vmsizes"]
    assert Path(started["command"]).stem == "uvx"
    assert started["args"][::2] == ["--from", "vmsizes"]
    assert started["args"][1].startswith("vmsizes[mcp]")
    assert started["args"][-1] == "mcp"


@pytest.mark.one_database
def test_a_host_that_is_named_needs_no_folder(seeded_url: str, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    hosts = ("--host", "vscode", "--host", "claude-code")
    assert run_command(seeded_url, "mcp", "install", "--yes", *hosts, folder=folder).returncode == 0
    assert "vmsizes" in json.loads((folder / ".mcp.json").read_text())["mcpServers"]
    (written,) = home.rglob("Code/User/mcp.json")
    assert "vmsizes" in json.loads(written.read_text())["servers"]
    assert written.stat().st_mode & 0o77 == 0
