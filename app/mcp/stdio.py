"""Serves MCP on standard input and output, for agents that start the program, if the official SDK is installed."""

from collections.abc import Callable
from datetime import date
from importlib.util import find_spec

import anyio
from sqlalchemy import Engine

from app.errors import NotReady
from app.mcp.catalog import CatalogReader

NOT_INSTALLED = "MCP needs the official SDK, which is not installed; run `pip install 'vmsizes[mcp]'`."


def is_installed() -> bool:
    """Return whether the SDK can be imported."""
    return find_spec("mcp") is not None


def serve(engine: Engine, today: Callable[[], date]) -> None:
    """Serve until standard input ends; raises NotReady where the SDK is not installed."""
    if not is_installed():
        raise NotReady(NOT_INSTALLED)
    anyio.run(_serve, engine, today)


async def _serve(engine: Engine, today: Callable[[], date]) -> None:
    from mcp.server.stdio import stdio_server

    from app.mcp.server import make_server

    catalog = CatalogReader(engine, today)
    server = make_server(catalog)
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    finally:
        catalog.close()
