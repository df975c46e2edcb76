"""ROOF: the command line `vmsizes`; calls the same functions as the API."""

from app.cli.commands import main

__all__ = ["main"]
