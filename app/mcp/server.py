"""The MCP server: the tools and resources, as the official SDK serves them."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from sqlalchemy.exc import DBAPIError

from app.catalog.queries.snapshot import Catalog
from app.errors import VmsizesError
from app.mcp.arguments import ArgumentError, BadArguments
from app.mcp.catalog import CatalogReader, RevisionInfo
from app.mcp.resources import RESOURCES, TEMPLATES, read_resource
from app.mcp.tool import Tool
from app.mcp.tools import INSTRUCTIONS, TOOLS, Called, call, to_json
from app.nearest import did_you_mean, nearest
from app.receipts import make_receipt

_log = logging.getLogger(__name__)

_STRUCTURED_SINCE = "2025-06-18"
"""The first protocol version with structured content; a client of an older one gets it as text instead."""

LIST_TTL = timedelta(hours=1)
"""How long clients may keep the lists of tools and resources, which change with the program only."""
CONTENT_TTL = timedelta(minutes=1)
"""How long clients may keep a resource: an ingest is seen after at most so long."""

_ANNOTATIONS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
_TOOL_LIST = [
    types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=_ANNOTATIONS,
    )
    for tool in TOOLS.values()
]

Context = ServerRequestContext[dict[str, Any], Any]


def make_server(catalog: CatalogReader) -> Server[dict[str, Any]]:
    """Return a server whose tools and resources read a catalog; nothing in it writes."""

    async def list_tools(_: Context, _page: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_TOOL_LIST, ttl_ms=_milliseconds(LIST_TTL), cache_scope="public")

    async def call_tool(context: Context, request: types.CallToolRequestParams) -> types.CallToolResult:
        return await _call_tool(catalog, context.protocol_version, request)

    async def list_resources(_: Context, _page: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        resources = [types.Resource(**one._asdict(), mime_type="application/json") for one in RESOURCES]
        return types.ListResourcesResult(resources=resources, ttl_ms=_milliseconds(LIST_TTL), cache_scope="public")

    async def list_templates(
        _: Context, _page: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(
                uri_template=one.uri, name=one.name, description=one.description, mime_type="application/json"
            )
            for one in TEMPLATES
        ]
        return types.ListResourceTemplatesResult(
            resource_templates=templates, ttl_ms=_milliseconds(LIST_TTL), cache_scope="public"
        )

    async def read(_: Context, request: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await _read_resource(catalog, str(request.uri))

    server: Server[dict[str, Any]] = Server(
        "vmsizes",
        version=version("vmsizes"),
        title="vmsizes",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        get_tool_input_schema=lambda name: TOOLS[name].input_schema if name in TOOLS else None,
    )
    server.middleware.clear()  # the one that is there by default traces by OpenTelemetry, which nothing here collects
    return server


async def _call_tool(
    catalog: CatalogReader, protocol_version: str, request: types.CallToolRequestParams
) -> types.CallToolResult:
    """Call a tool; what is wrong with the call is an error of the tool, which the model sees and can correct."""
    tool = TOOLS.get(request.name)
    if tool is None:
        hint = did_you_mean(nearest(request.name, TOOLS)) or f"there are {', '.join(TOOLS)}"
        raise MCPError(code=types.INVALID_PARAMS, message=f"There is no tool named {request.name}; {hint}")
    try:
        called, meta = await catalog.run(
            lambda opened, revision: _call_with_meta(tool, request.arguments or {}, opened, revision)
        )
    except BadArguments as error:
        return _error_result(str(error), error.errors)
    except (VmsizesError, DBAPIError) as error:
        return _error_result(_explain(error), ())
    except Exception:  # noqa: BLE001  # logged with its traceback; the agent is told without it
        _log.exception("tool %s crashed", tool.name)
        return _error_result("This is a fault of the service; it has been logged.", ())
    return _result(called, meta, protocol_version)


def _call_with_meta(
    tool: Tool, arguments: Mapping[str, Any], catalog: Catalog, revision: RevisionInfo
) -> tuple[Called, dict[str, Any]]:
    """Call a tool; return its answer, and the revision and the receipt for `_meta`."""
    called = call(tool, arguments, catalog)
    receipt = make_receipt(catalog, called.asked, full=False)
    return called, {"vmsizes/revision": revision.to_json(), "vmsizes/receipt": receipt}


def _explain(error: Exception) -> str:
    if isinstance(error, DBAPIError):
        _log.error("a tool's query failed", exc_info=error)
        return "The database does not answer as it should; the log of the service says why."
    return str(error)


def _result(called: Called, meta: dict[str, Any], protocol_version: str) -> types.CallToolResult:
    structured = protocol_version >= _STRUCTURED_SINCE
    text = called.text if structured else f"{called.text}\n{to_json(called.content).decode()}"
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=called.content if structured else None,
        _meta=meta,
    )


def _error_result(text: str, errors: tuple[ArgumentError, ...]) -> types.CallToolResult:
    """Return an error of a tool: a line of text, and each error with field, value, what is allowed and suggestions."""
    listed = [
        {
            "field": error.field,
            "value": error.value,
            "allowed": error.allowed,
            **({"suggestions": list(error.suggestions)} if error.suggestions else {}),
        }
        for error in errors
    ]
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content={"errors": listed}, is_error=True
    )


async def _read_resource(catalog: CatalogReader, uri: str) -> types.ReadResourceResult:
    """Read a resource; raises MCPError with the code that the protocol has for one that there is not."""
    try:
        text, revision = await catalog.run(lambda opened, revision: (read_resource(uri, opened, revision), revision))
    except VmsizesError as error:
        raise MCPError(code=types.INVALID_PARAMS, message=str(error), data={"uri": uri}) from None
    except DBAPIError as error:
        raise MCPError(code=types.INTERNAL_ERROR, message=_explain(error)) from None
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)],
        ttl_ms=_milliseconds(min(CONTENT_TTL, _until_midnight())),
        cache_scope="public",
        _meta={"vmsizes/revision": revision.to_json()},
    )


def _until_midnight() -> timedelta:
    """Return how long the day lasts (UTC): ages and statuses are those of a day."""
    now = datetime.now(UTC)
    return timedelta(days=1) - timedelta(hours=now.hour, minutes=now.minute, seconds=now.second)


def _milliseconds(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1000)
