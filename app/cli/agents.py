"""The command that serves tools for agents: `vmsizes mcp`."""

import typer

from app.cli import context
from app.errors import NotReady

app = typer.Typer()


@app.command()
def mcp() -> None:
    """Serve the tools for agents (MCP) on standard input and output, for programs that start this one."""
    from app.mcp import stdio

    try:
        stdio.serve(context.engine(), context.today)
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        raise NotReady(stdio.NOT_INSTALLED) from None
