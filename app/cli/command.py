"""Help that is never cut: plain text, the options under headings."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

ORDER = (
    *("Arguments", "A model and its use", "GPUs by their figures", "Which sizes", "What a VM must have"),
    *("What a VM may have at most", "Whose prices", "Order and page", "Output", "Options"),
)
"""The headings, as far as a command has options under them; others come before the last."""


class Command(TyperCommand):
    """A command whose help tells its options in groups; a name too long for its column has its text below it."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options under their headings."""
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ORDER}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                groups["Arguments"].append((param.metavar or param.name.upper(), record[1]))
            else:
                groups.setdefault(getattr(param, "rich_help_panel", None) or "Options", []).append(record)
        groups["Options"] = groups.pop("Options")
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Group(TyperGroup):
    """A group of commands, of each of which the help tells the whole of what it does."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their texts."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help or "") for name, command in commands if command is not None])
