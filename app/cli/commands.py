"""The command line: which commands there are, each in a module that is loaded when it is called."""

import gc
import os
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMAND_MODULES: Mapping[str, tuple[str, str]] = {
    "search": ("search", "Find sizes by GPU, memory, price and all else: `vmsizes search H100:8`."),
    "show": ("search", "Show one size: its GPUs and price first."),
    "fit": ("search", "Say which sizes hold a model or meet needs, at what cost: `vmsizes fit llama-3.3-70b`."),
    "estimate": ("estimate", "Say what a language model needs of memory, time and money."),
    "similar": ("compare", "List the sizes that are most like one."),
    "compare": ("compare", "Lay sizes side by side."),
    "conflicts": ("search", "List every figure on which sources disagree."),
    "models": ("search", "List the language models whose configuration is known."),
    "serve": ("serve", "Serve the API over HTTP."),
    "migrate": ("serve", "Bring the database to the newest schema."),
    "ingest": ("ingest", "Take in documents, prices and other figures."),
    "sources": ("sources", "List what the catalog was read from."),
    "forget": ("sources", "Take a source back: what only it said goes."),
    "revisions": ("sources", "List the ingests that changed something."),
    "export": ("export", "Write whole lists and tables: sizes, prices, GPUs, regions, series, models …"),
}
"""The module of each command and what it does, in the order of the help."""

SYNONYMS: Mapping[str, str] = {
    **dict.fromkeys(("list", "ls", "sizes", "find", "query", "vms", "instances", "list-sizes"), "search"),
    **dict.fromkeys(("gpus", "gpu", "show-gpus", "list-gpus", "accelerators"), "export gpus"),
    **dict.fromkeys(("prices", "price", "pricing", "cost"), "export prices"),
    **dict.fromkeys(("regions", "series", "facts"), "export {}"),
    **dict.fromkeys(("get", "describe", "info"), "show SIZE"),
    **dict.fromkeys(("diff", "vs"), "compare SIZE SIZE"),
    **dict.fromkeys(("run", "server", "start"), "serve"),
    **dict.fromkeys(("import", "load", "add"), "ingest"),
    **dict.fromkeys(("upgrade", "init"), "migrate"),
    "version": "--version",
    "help": "--help",
}
"""What other command lines call what we have."""


class LazyGroup(TyperGroup):
    """Loads a module when a command of it is called, and all of them where all are to be told of."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """All names, without loading any."""
        return list(COMMAND_MODULES)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """The command of a name."""
        if cmd_name in COMMAND_MODULES:
            self.commands.setdefault(cmd_name, _load_command(cmd_name))
        return self.commands.get(cmd_name)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Tell what each command does, in full, and without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMAND_MODULES.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; a name that there is not is refused with what is meant by it, if that is plain."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(unknown_command_message(args[0]))
        return super().resolve_command(ctx, args)


def unknown_command_message(name: str) -> str:
    """Say that there is no such command, and what does what it means elsewhere, or is a slip of the pen away."""
    meant = SYNONYMS.get(name.lower())
    near = get_close_matches(name.lower(), COMMAND_MODULES, 1, 0.75)
    hint = f" Try `vmsizes {meant.format(name.lower())}`." if meant else f" Did you mean {near[0]}?" if near else ""
    return f"No such command '{name}'.{hint}"


def _load_command(name: str) -> Any:
    """A command of a module, or the module itself where it is a group of commands."""
    room = typer.main.get_group(import_module(f"app.cli.{COMMAND_MODULES[name][0]}").app)
    if name not in room.commands:
        room.name = name
    return _disable_rich_markup(room.commands.get(name, room))


def _disable_rich_markup(command: Any) -> Any:
    """Tell help as plain text: a table of it cuts the names of options on a narrow terminal."""
    command.rich_markup_mode = None
    for one in getattr(command, "commands", {}).values():
        _disable_rich_markup(one)
    return command


app = typer.Typer(
    name="vmsizes",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:  # as Typer calls it
    if requested:
        from importlib.metadata import version

        typer.echo(f"vmsizes {version('vmsizes')}")
        raise typer.Exit


@app.callback(epilog="Exit codes: 0 done or found, 1 nothing found, 2 bad question, 3 bad data, 4 no catalog yet.")
def _vmsizes(
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Look up, compare and cost cloud VM sizes: a source for every figure, fit and cost with the reasoning shown."""


def main() -> None:
    """Run the command line.

    What a command loads stays until its end: to look through it for garbage again and again would cost a tenth of a
    short command's time, and once more at the end. What only tells of commands loads no more than this.
    """
    gc.set_threshold(100_000)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for them reads what every library declares
    try:
        app(prog_name="vmsizes")  # however it is started, shells complete that name
    except Exception as error:  # noqa: BLE001  # raised again where it is not ours
        from app.cli import context

        context.exit_with_error(error)
    finally:
        gc.freeze()
