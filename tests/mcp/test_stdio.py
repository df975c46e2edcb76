"""`vmsizes mcp`: an agent starts the program and speaks with it on standard input and output."""

import os
import subprocess
import sys
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

PROGRAM = str(Path(sys.executable).with_name("vmsizes"))


def test_an_agent_can_start_the_program(seeded_url: str) -> None:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}

    async def use() -> tuple[int, object]:
        async with Client(StdioServerParameters(command=PROGRAM, args=["mcp"], env=environment)) as client:
            tools = await client.list_tools()
            found = await client.call_tool("explain_size", {"size": "nd40rs_v2"})
            return len(tools.tools), found.structured_content

    count, found = anyio.run(use)
    assert count == 5
    assert isinstance(found, dict)
    assert found["size"] == "Standard_ND40rs_v2"


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
