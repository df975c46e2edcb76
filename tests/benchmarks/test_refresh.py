"""The benchmark of a refresh runs, and checks what it measures."""

from pathlib import Path

import pytest

from benchmarks.refresh import measure
from tests.databases import START


@pytest.mark.slow
def test_a_refresh_is_measured_whole_again_and_killed_and_resumed(tmp_path: Path) -> None:
    with START["sqlite"](tmp_path) as databases:
        figures = measure(databases, tmp_path, regions=3, items=130)
    assert [*figures] == ["whole", "again", "killed and resumed"]
    assert {(run["items"], run["prices"]) for run in figures.values()} == {(390, 240)}
