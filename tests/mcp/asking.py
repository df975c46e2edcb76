"""Asks a server in process with the official client."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio
from mcp import Client, MCPError
from mcp_types import CallToolResult

from app.mcp.catalog import CatalogReader
from app.mcp.server import make_server

T = TypeVar("T")


def with_client(catalog: CatalogReader, use: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    """Return what a function does with a client that is connected in process."""

    async def connect() -> T | MCPError:
        async with Client(make_server(catalog), **options) as client:
            try:
                return await use(client)
            except MCPError as error:  # raised here, it would leave the client's task group in a group of its own
                return error

    result = anyio.run(connect)
    if isinstance(result, MCPError):
        raise result
    return result


def call(catalog: CatalogReader, tool: str, arguments: Mapping[str, Any], **options: Any) -> CallToolResult:
    """Call a tool."""
    return with_client(catalog, lambda client: client.call_tool(tool, dict(arguments)), **options)


def ask(catalog: CatalogReader, tool: str, **arguments: Any) -> Any:
    """Return the structured content of a reply, which must not be an error."""
    result = call(catalog, tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


def refused(catalog: CatalogReader, tool: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return the errors of a call, which must be refused."""
    result = call(catalog, tool, arguments)
    assert result.is_error, result.structured_content
    errors: list[dict[str, Any]] = result.structured_content["errors"]
    return errors
