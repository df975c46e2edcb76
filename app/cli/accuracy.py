"""The command `vmsizes accuracy`: how the estimates agree with what was measured."""

from dataclasses import asdict

import typer

from app.cli.options import Command
from app.cli.output import Column, OutputOptions, print_rows, with_output_options

app = typer.Typer()

COLUMNS = {
    "family": Column(heading="family"),
    "title": Column(heading="of"),
    "n": Column(heading="n"),
    "in_range_share": Column(heading="in range"),
    "range_width": Column(heading="high / low"),
    "median_error": Column(heading="median error"),
    "worst_ratio": Column(heading="worst", rank=2),
    "leave_one_out_error": Column(heading="left out"),
    "source": Column(heading="measured by", rank=3, wraps=True),
}


@app.command(cls=Command)
@with_output_options
def accuracy(*, output: OutputOptions) -> None:
    """Show how the estimates agree with what was measured, by family: one figure for one kind of workload."""
    from app.fit.accuracy import read_accuracy

    print_rows([asdict(family) for family in read_accuracy()], COLUMNS, output)
