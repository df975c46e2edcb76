from math import log10
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.page import BEGIN, END, between, table, write_page
from benchmarks.plot import Bar, axis_for, draw
from benchmarks.results import save


def run(**outcome: Any) -> dict[str, Any]:
    figures = {"ratio": {"median": 0.5, "min": 0.4, "max": 0.6, "count": 5}}
    ordinary = {
        "name": "hot", "says": "a page", "subject": "the service", "reference": "raw ASGI", "main": "ratio",
        "asked": "at least 0.80", "figures": figures, "reached": False, "load_average": 1.5, "why_not": None,
    }  # fmt: skip
    machine = dict.fromkeys(("cpu", "cores", "memory_gb", "system", "python", "sqlite", "postgresql", "wrk"), "x")
    return {
        "commit": "abc", "measured_at": "2026-01-01", "plan": {"pairs": 5, "burst": 3},
        "machine": {**machine, "datasette": "1", "packages": {"fastapi": "1"}}, "outcomes": [ordinary | outcome],
    }  # fmt: skip


def test_only_the_text_between_the_markers_is_replaced() -> None:
    assert between(f"before {BEGIN} old {END} after", "new") == f"before {BEGIN}\nnew\n{END} after"


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no markers"):
        between("text", "new")


def test_a_goal_that_is_missed_is_said_plainly() -> None:
    assert "| ratio | 0.5 | 0.4 – 0.6 | – | at least 0.80 | **no** |" in table(run())


def test_a_goal_that_some_measurements_miss_is_reached_by_the_median_only() -> None:
    said = table(run(asked="at least 0.45", reached=True))
    assert "| at least 0.45 | by the median only |" in said


def test_what_was_not_measured_says_why() -> None:
    assert "not measured: no ETag" in table(run(figures={}, reached=None, why_not="no ETag"))


def test_the_page_is_the_same_when_written_twice(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# Title\n{BEGIN}\n{END}\n")
    write_page(run(), page)
    once = page.read_text()
    write_page(run(), page)
    assert page.read_text() == once
    assert "performance.svg" in once
    assert ET.parse(page.with_suffix(".svg")).getroot().tag.endswith("svg")  # made above


def test_the_axis_is_logarithmic_and_holds_every_value() -> None:
    axis = axis_for([0.003, 27.0])
    assert (axis.first, axis.last) == (-3, 2)
    assert axis.x(1.0) - axis.x(0.1) == pytest.approx(axis.x(10.0) - axis.x(1.0))
    assert axis.x(5.0) - axis.x(1.0) == pytest.approx(log10(5) * (axis.x(10.0) - axis.x(1.0)))


def test_names_are_escaped_in_the_plot() -> None:
    drawn = draw([Bar(name="a < b & c", median=1.0, least=0.9, most=1.1)], "title")
    assert "a &lt; b &amp; c" in drawn


def test_the_results_of_a_run_replace_earlier_ones(tmp_path: Path) -> None:
    save(run(), tmp_path)
    save(run() | {"commit": "def"}, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["def.json"]
