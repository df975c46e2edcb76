from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from app.catalog.readings import StatedFact
from app.ingest.run import to_json_line


def line_of(field: str, value: object) -> object:
    fact = StatedFact(
        kind="size", subject="NX6", field=field, value=value, raw="raw", file="nx.md", line=3, source="nx",  # type: ignore[arg-type]  # any value
    )  # fmt: skip
    return to_json_line(fact)["value"]


def test_a_json_line_has_exactly_the_documented_keys() -> None:
    fact = StatedFact(
        kind="size",
        subject="NX6",
        field="memory_gib",
        value=Decimal(112),
        raw="112",
        file="nx.md",
        line=3,
        source="nx",
    )
    assert to_json_line(fact) == {
        "subject": "NX6", "field": "memory_gib", "value": 112, "unit": "GiB", "raw": "112", "file": "nx.md", "line": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "written"),
    [
        ("gpu_count", Fraction(1, 6), 0.1667),
        ("gpu_count", Fraction(8), 8),
        ("temp_disk_gib", Decimal("14901.161"), 14901.161),
        ("nvlink", True, True),
        ("retirement_date", date(2026, 9, 30), "2026-09-30"),
        ("gpu_fraction", "1/6", "1/6"),
    ],
)
def test_a_json_value_is_a_number_a_boolean_or_a_string(field: str, value: object, written: object) -> None:
    found = line_of(field, value)
    assert (found, type(found)) == (written, type(written))
