"""The MCP server: the tools and resources, as the official SDK serves them."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from app.catalog.queries.params import SizeParams
from app.catalog.queries.provenance import FactSearch
from app.catalog.queries.snapshot import Catalog
from app.catalog.revisions import latest_revision
from app.db.databases import Database
from app.db.errors import DatabaseError
from app.errors import NotFound, VmsizesError
from app.mcp.catalog import CatalogReader, RevisionInfo
from app.mcp.fit_workload import FIT_WORKLOAD
from app.mcp.preflight import PREFLIGHT
from app.mcp.sizes import COMPARE_SIZES, EXPLAIN_SIZE, FIND_SIZES, PRICE_HISTORY
from app.mcp.tool import ArgumentError, BadArguments, Reply, Tool, call, to_json
from app.nearest import closest_spellings, did_you_mean, nearest
from app.questions import NoParams, answer
from app.receipts import make_receipt

_log = logging.getLogger(__name__)

_STRUCTURED_SINCE = "2025-06-18"
"""The first protocol version with structured content; a client of an older one gets it as text instead."""

LIST_TTL = timedelta(hours=1)
"""How long clients may keep the lists of tools and resources, which change with the program only."""
_KEPT: Mapping[str, Any] = {"ttl_ms": int(LIST_TTL.total_seconds() * 1000), "cache_scope": "public"}
CONTENT_TTL = timedelta(minutes=1)
"""How long clients may keep a resource: an ingest is seen after at most so long."""

TOOLS: Mapping[str, Tool] = {
    tool.name: tool for tool in (FIND_SIZES, EXPLAIN_SIZE, FIT_WORKLOAD, COMPARE_SIZES, PRICE_HISTORY, PREFLIGHT)
}

INSTRUCTIONS = """Cloud VM sizes: specifications, prices, fit of language models, each figure with its source.
Memory is GiB, prices USD an hour; null is unknown, never zero. Prices hold from price_as_of on: quote that day.
Arguments of one name mean the same in all tools; unknown ones are refused. A reply says in `omitted` what it left out
and in `narrow` which arguments leave less.
Start with find_sizes or fit_workload; explain_size has sources and disputes of one size."""

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
        return types.ListToolsResult(tools=_TOOL_LIST, **_KEPT)

    async def call_tool(context: Context, request: types.CallToolRequestParams) -> types.CallToolResult:
        return await _call_tool(catalog, context.protocol_version, request)

    async def list_resources(_: Context, _page: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        resources = [
            types.Resource(uri=uri, name=name, description=text, mime_type="application/json")
            for uri, name, text in RESOURCES
        ]
        return types.ListResourcesResult(resources=resources, **_KEPT)

    async def list_templates(
        _: Context, _page: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(uri_template=uri, name=name, description=text, mime_type="application/json")
            for uri, name, text in TEMPLATES
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates, **_KEPT)

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


def serve(database: Database, today: Callable[[], date]) -> None:
    """Serve on standard input and output, for agents that start the program, until the input ends."""
    anyio.run(_serve, database, today)


async def _serve(database: Database, today: Callable[[], date]) -> None:
    catalog = CatalogReader(database, today)
    server = make_server(catalog)
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    finally:
        catalog.close()


async def _call_tool(
    catalog: CatalogReader, protocol_version: str, request: types.CallToolRequestParams
) -> types.CallToolResult:
    """Call a tool; what is wrong with the call is an error of the tool, which the model sees and can correct."""
    tool = TOOLS.get(request.name)
    if tool is None:
        hint = did_you_mean(nearest(request.name, TOOLS)) or f"there are {', '.join(TOOLS)}"
        raise MCPError(code=types.INVALID_PARAMS, message=f"There is no tool named {request.name}; {hint}")

    def call_with_meta(opened: Catalog, revision: RevisionInfo) -> tuple[Reply, dict[str, Any]]:
        reply, inquiry = call(tool, request.arguments or {}, opened)
        receipt = make_receipt(opened, inquiry.asked, full=False)
        return reply, {"vmsizes/revision": revision, "vmsizes/receipt": receipt}

    try:
        reply, meta = await catalog.run(call_with_meta)
    except BadArguments as error:
        return _error_result(str(error), error.errors)
    except (VmsizesError, DatabaseError) as error:
        return _error_result(_explain(error))
    except Exception:  # noqa: BLE001  # logged with its traceback; the agent gets it without
        _log.exception("tool %s crashed", tool.name)
        return _error_result("This is a fault of the service; it has been logged.")
    structured = protocol_version >= _STRUCTURED_SINCE
    text = reply.text if structured else f"{reply.text}\n{to_json(reply.content)}"
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=reply.content if structured else None,
        _meta=meta,
    )


def _explain(error: Exception) -> str:
    if isinstance(error, DatabaseError):
        _log.error("a tool's query failed", exc_info=error)
        return "The database does not answer as it should; the log of the service says why."
    return str(error)


def _error_result(text: str, errors: Sequence[ArgumentError] = ()) -> types.CallToolResult:
    """Return an error of a tool: a line of text, and each error with field, value, what is allowed and suggestions."""
    listed = [
        {name: value for name, value in asdict(error).items() if name != "suggestions" or value} for error in errors
    ]
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content={"errors": listed}, is_error=True
    )


# Resources


RESOURCES = (
    ("vmsizes://revision", "revision", "What the catalog is from: revision, digest, day of the newest prices."),
    ("vmsizes://models", "models", "Language models that fit_workload knows, with parameters and context."),
)
TEMPLATES = (
    ("vmsizes://sizes/{name}", "size", "All fields of a size, with its cheapest price."),
    ("vmsizes://sizes/{name}/facts", "facts", "What each source says of a size, file and line, and verdicts."),
    ("vmsizes://models/{name}", "model", "The configuration of a language model."),
)
"""URI, name and description of resources, and of templates of many, with `{name}` in their URI."""


def read_resource(uri: str, catalog: Catalog, revision: RevisionInfo) -> str:
    """Return a resource as JSON text; raises NotFound for one that there is not."""
    if uri == "vmsizes://revision":
        latest = latest_revision(catalog)
        return to_json({**revision, "rows": {} if latest is None else latest["counts"]})
    if uri == "vmsizes://models":
        rows = {row["id"]: row for row in catalog.snapshot.models.values()}
        shown = ("id", "name", "params", "active_params", "max_context_tokens")
        return to_json({"models": [{name: rows[key][name] for name in shown} for key in sorted(rows)]})
    for pattern, (endpoint, params) in _RESOURCE_QUESTIONS.items():
        if match := re.fullmatch(pattern, uri):
            return to_json(answer(catalog, endpoint, params, unquote(match[1])))
    uris = [uri for uri, *_ in (*RESOURCES, *TEMPLATES)]
    raise NotFound("resource", uri, suggestions=closest_spellings(uri, uris, 2))


_RESOURCE_QUESTIONS: Mapping[str, tuple[str, BaseModel]] = {
    r"vmsizes://models/(.+)": ("GET /models/{name}", NoParams()),
    r"vmsizes://sizes/([^/]+)": ("GET /sizes/{name}", SizeParams()),
    r"vmsizes://sizes/([^/]+)/facts": ("GET /sizes/{name}/facts", FactSearch(limit=500)),
}
"""The question that the resource of a name answers, by the pattern of its URI."""


async def _read_resource(catalog: CatalogReader, uri: str) -> types.ReadResourceResult:
    """Read a resource; raises MCPError with the code that the protocol has for one that there is not."""
    try:
        text, revision = await catalog.run(lambda opened, revision: (read_resource(uri, opened, revision), revision))
    except VmsizesError as error:
        raise MCPError(code=types.INVALID_PARAMS, message=str(error), data={"uri": uri}) from None
    except DatabaseError as error:
        raise MCPError(code=types.INTERNAL_ERROR, message=_explain(error)) from None
    now = datetime.now(UTC)  # ages and statuses are those of a day
    until_midnight = timedelta(days=1) - timedelta(hours=now.hour, minutes=now.minute, seconds=now.second)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)],
        ttl_ms=int(min(CONTENT_TTL, until_midnight).total_seconds() * 1000),
        cache_scope="public",
        _meta={"vmsizes/revision": revision},
    )
