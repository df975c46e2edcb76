"""Tools and resources for agents by the Model Context Protocol (MCP): the answers of the API, short and typed.

Only `app.mcp.server` and, with the first request, `app.mcp.http` import the SDK (package `mcp`).
"""
