"""The command line `vmsizes`: calls the same functions as the API, without a server."""

from app.cli.commands import main

__all__ = ["main"]
