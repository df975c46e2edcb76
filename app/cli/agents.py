"""The command that serves tools for agents: `vmsizes mcp`."""

import typer

from app.cli import context

app = typer.Typer()


@app.command()
def mcp() -> None:
    """Serve the tools for agents (MCP) on standard input and output, for programs that start this one."""
    from app.mcp.stdio import serve

    serve(context.engine(), context.today)
