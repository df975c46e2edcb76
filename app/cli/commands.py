"""The command line: its commands, each loaded from its module when it is called (click's recipe LazyGroup)."""

import gc
import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMAND_MODULES: Mapping[str, tuple[str, str]] = {
    "search": ("show", "Find sizes by GPU, memory, price and more: `vmsizes search H100:8`."),
    "show": ("show", "Show one size: its GPUs and price first."),
    "fit": ("estimate", "Find the sizes that hold a model or meet requirements: `vmsizes fit llama-3.3-70b`."),
    "estimate": ("estimate", "Compute the memory, time and cost of a language model."),
    "accuracy": ("estimate", "Show how the estimates agree with what was measured."),
    "history": ("compare", "List what a size cost in a region over time."),
    "similar": ("compare", "List the sizes that are most like one."),
    "compare": ("compare", "Compare sizes side by side."),
    "retirements": ("lists", "List announced retirements, or plan successors for an inventory."),
    "cost": ("compare", "Show what a size costs with its disks: `vmsizes cost SIZE --disk premium_ssd:1024`."),
    "buy": ("compare", "Compare on demand, spot, reserved and savings plans: `vmsizes buy SIZE --months 24`."),
    "preflight": ("compare", "Check a plan against quotas: `vmsizes preflight plan.csv --usage usage.json`."),
    "changes": ("lists", "List what ingests changed: prices, sizes, values, disputes."),
    "conflicts": ("lists", "List every figure on which sources disagree."),
    "refused-prices": ("lists", "List prices that are those of something else, and why they are refused."),
    "models": ("lists", "List the language models whose configuration is known."),
    "serve": ("serve", "Serve the API over HTTP."),
    "doctor": ("setup", "Say what is wrong with an installation and what to do next."),
    "verify": ("export", "Compute the answers of a receipt again: `vmsizes verify receipt.json`."),
    "mcp": ("setup", "Serve the tools for agents (MCP), and `vmsizes mcp install` in programs that run them."),
    "migrate": ("serve", "Upgrade the database to the newest schema."),
    "ingest": ("ingest", "Read documents, prices and other figures into the catalog."),
    "refresh": ("refresh", "Fetch the newest prices, sizes and pages from the vendor."),
    "audit": ("ingest", "Judge the figures of another catalog's file: `vmsizes audit vms.csv --as skypilot`."),
    "observations": (
        "observations",
        "Take in what vendors say of capacity, for one key's holder: import, list, forget.",
    ),
    "webhooks": ("webhooks", "Send changes to receivers of yours: add, list, test, deliver …"),
    "sources": ("ingest", "List the sources of the catalog."),
    "forget": ("ingest", "Remove a source, or all of an ingest, and what only they state."),
    "revisions": ("ingest", "List the ingests that changed the catalog."),
    "publish": ("export", "Write the catalog as a static site: pages, files and a sitemap."),
    "export": ("export", "Write whole lists and tables to a file: sizes, prices, GPUs, regions, series, models …"),
}
"""The module of each command and its line in the help, in the order of the help."""

SYNONYMS: Mapping[str, str] = {
    **dict.fromkeys(("list", "ls", "sizes", "find", "query", "vms", "instances", "list-sizes"), "search"),
    **dict.fromkeys(("gpus", "gpu", "show-gpus", "list-gpus", "accelerators"), "export gpus"),
    **dict.fromkeys(("prices", "price", "pricing"), "export prices"),
    **dict.fromkeys(("regions", "series", "facts"), "export {}"),
    **dict.fromkeys(("get", "describe", "info"), "show SIZE"),
    **dict.fromkeys(("diff", "vs"), "compare SIZE SIZE"),
    **dict.fromkeys(("retire", "retirement", "retired", "retiring", "eol", "deprecated"), "retirements"),
    **dict.fromkeys(("costs", "tco"), "cost SIZE"),
    **dict.fromkeys(("run", "server", "start"), "serve"),
    **dict.fromkeys(("status", "check", "health", "diagnose"), "doctor"),
    **dict.fromkeys(("agent", "agents", "stdio", "tools"), "mcp"),
    **dict.fromkeys(("import", "load", "add"), "ingest"),
    **dict.fromkeys(("fetch", "update", "sync", "pull"), "refresh"),
    **dict.fromkeys(("upgrade", "init"), "migrate"),
    **dict.fromkeys(("webhook", "hooks", "notify", "subscribe"), "webhooks"),
    "version": "--version",
    "help": "--help",
}
"""Commands of other tools, and what does the same here; `{}` is the name itself."""


class LazyGroup(TyperGroup):
    """A group that imports the module of a command when it is called, and none to list the commands."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return all names without importing any module."""
        return list(COMMAND_MODULES)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None where there is none of that name."""
        if cmd_name in COMMAND_MODULES:
            self.commands.setdefault(cmd_name, _load_command(cmd_name))
        return self.commands.get(cmd_name)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write what each command does, in full, without importing any module."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMAND_MODULES.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Typer would end with 1, nothing found, where the reader of its output stops."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            from app.cli import context

            context.exit_with_error(error)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; for an unknown name the error suggests what was probably meant."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(unknown_command_message(args[0]))
        return super().resolve_command(ctx, args)


def unknown_command_message(name: str) -> str:
    """Return the error for an unknown command, with the command that does the same or has a similar name."""
    hint = ""
    if synonym := SYNONYMS.get(name.lower()):
        hint = f" Try `vmsizes {synonym.format(name.lower())}`."
    elif near := get_close_matches(name.lower(), COMMAND_MODULES, 1, 0.75):
        hint = f" Did you mean {near[0]}?"
    return f"No such command '{name}'.{hint}"


def _load_command(name: str) -> Any:
    """Import the module of a command and return the command.

    What is imported lives until the end, so the garbage collector never scans it: it is off until then (`main`).
    """
    module = import_module(f"app.cli.{COMMAND_MODULES[name][0]}")
    gc.freeze()
    gc.enable()
    only = typer.Typer()  # the other commands of the module have up to a hundred options, which take time to build
    only.registered_groups = module.app.registered_groups
    commands = {info.name or info.callback.__name__: info for info in module.app.registered_commands}
    only.registered_commands = [info for own, info in commands.items() if own.replace("_", "-") == name]
    return _disable_rich_markup(typer.main.get_group(only).commands[name])


def _disable_rich_markup(command: Any) -> Any:
    """Let help be plain text: Rich's tables cut the names of options on a narrow terminal."""
    command.rich_markup_mode = None
    for subcommand in getattr(command, "commands", {}).values():
        _disable_rich_markup(subcommand)
    return command


app = typer.Typer(
    name="vmsizes",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:  # Typer passes the value of the option
    if requested:
        from importlib.metadata import version

        typer.echo(f"vmsizes {version('vmsizes')}")
        raise typer.Exit


@app.callback(epilog="Exit codes: 0 success, 1 nothing found, 2 bad option or setting, 3 bad data, 4 no catalog yet.")
def _vmsizes(
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Look up, compare and cost cloud VM sizes: a source for every figure, fit and cost with the reasoning shown."""


def main() -> None:
    """Run the command line.

    Garbage collection is put off: imported modules live until the end, and scanning them even once takes a tenth of the
    time of a short command. It is on again, for large garbage, when the module of the command is loaded.
    """
    gc.disable()
    gc.set_threshold(100_000)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else every installed package's metadata is read
    # The interpreter has None for a stream that was closed before it began; what is printed there goes nowhere.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # open to the end
    sys.stderr = sys.stderr or sys.stdout
    try:
        app(prog_name="vmsizes")  # the name that shells complete, however it was started
    except Exception as error:  # noqa: BLE001  # re-raised unless a known error
        from app.cli import context

        context.exit_with_error(error)
    finally:
        gc.freeze()
