"""The command line, run in this process."""

from collections.abc import Callable

import pytest

from tests.command_line import CommandResult, run_command
from tests.conftest import TODAY

Run = Callable[..., CommandResult]


@pytest.fixture
def run() -> Run:
    """Run the command line in this process, on the database at a URL, on the date of the service under test."""
    return lambda url, *arguments: run_command(url, *arguments, today=lambda: TODAY)
