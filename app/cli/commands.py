"""The command line: which commands there are, each in a room that is loaded when it is called."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from app.cli import context

ROOMS: Mapping[str, str] = {
    **dict.fromkeys(("search", "show", "fit"), "asking"),
    "estimate": "modelling",
    **dict.fromkeys(("similar", "compare"), "comparing"),
    **dict.fromkeys(("conflicts", "models"), "asking"),
    **dict.fromkeys(("serve", "migrate"), "serving"),
    "ingest": "receiving",
    **dict.fromkeys(("sources", "forget", "revisions"), "sources"),
    "export": "exporting",
}
"""The room of each command, in the order of the help."""


class Rooms(TyperGroup):
    """Loads a room when a command of it is called, and all of them where all are to be told of."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """All names, without loading any."""
        return list(ROOMS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """The command of a name; for a name that there is not all are loaded, so that the nearest can be told."""
        for name in (cmd_name,) if cmd_name in ROOMS else ROOMS:
            self.commands.setdefault(name, _load(name))
        return self.commands.get(cmd_name)


def _load(name: str) -> Any:
    """A command of a room, or the room itself where it is a group of commands."""
    room = typer.main.get_group(import_module(f"app.cli.{ROOMS[name]}").app)
    if name not in room.commands:
        room.name = name
    return room.commands.get(name, room)


app = typer.Typer(name="vmsizes", cls=Rooms, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback(epilog="Exit codes: 0 done or found, 1 nothing found, 2 bad question, 3 bad data, 4 no catalog yet.")
def _vmsizes() -> None:
    """Look up, compare and cost cloud VM sizes: a source for every figure, fit and cost with the reasoning shown."""


def main() -> None:
    """Run the command line."""
    context.run(app)
