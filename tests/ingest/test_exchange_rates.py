"""The reader of tables of exchange rates: a row a day, a column a currency."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from app.catalog.readings import ExchangeRateRow, SourceRow
from app.errors import BadData
from app.ingest.sources.reference import read_exchange_rates
from tests.factories import source

SOURCES: Mapping[str, SourceRow] = {"bank": source("bank", kind="third_party")}


def write(folder: Path, text: str) -> Path:
    path = folder / "rates.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [";", "\t"])
def test_cells_may_be_separated_as_in_any_other_file(tmp_path: Path, separator: str) -> None:
    text = "day,USD,source\n2026-01-02,1.1721,bank\n".replace(",", separator)
    (rate,) = read_exchange_rates(write(tmp_path, text), SOURCES).exchange_rates
    assert (rate.currency, rate.units_per_euro) == ("USD", Decimal("1.1721"))


def test_a_blank_cell_and_na_are_no_rate(tmp_path: Path) -> None:
    reading = read_exchange_rates(write(tmp_path, "day,USD,BGN,CHF,source\n2026-01-02,1.1721,,N/A,bank\n"), SOURCES)
    assert reading.exchange_rates == (
        ExchangeRateRow(
            currency="USD",
            day=date(2026, 1, 2),
            units_per_euro=Decimal("1.1721"),
            source="bank",
            file=str(tmp_path / "rates.csv"),
            line=2,
        ),
    )
    assert [one.id for one in reading.sources] == ["bank"]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("day,USD\n", "rates.csv:1: column 'source': is missing from the header"),
        ("day,usd,source\n", "rates.csv:1: column 'usd': is unknown"),
        ("day,USD,USD,source\n", "rates.csv:1: column 'USD': is in the header twice"),
        ("day,USD,source\n2026-01-02,0,bank\n", "rates.csv:2: column 'USD': '0': must be a number above 0"),
        ("day,USD,source\n2026-01-02,-1,bank\n", "rates.csv:2: column 'USD': '-1': must be a number above 0"),
        ("day,USD,source\n2026-01-02,1.0000000001,bank\n", "rates.csv:2: column 'USD': '1.0000000001': must be below"),
        ("day,USD,source\n02.01.2026,1,bank\n", "rates.csv:2: column 'day': '02.01.2026': must be a date"),
        ("day,USD,source\n2095-01-02,1,bank\n", "rates.csv:2: column 'day': '2095-01-02': is in the future"),
        ("day,USD,source\n2026-01-02,1,mine\n", "rates.csv:2: column 'source': 'mine': is not in the list of sources"),
        (
            "day,USD,source\n2026-01-02,1,bank\n2026-01-02,1,bank\n",
            "rates.csv:3: column 'day': '2026-01-02': is listed twice",
        ),
        ("day,USD,source\n2026-01-02,1\n", "rates.csv:2: has 2 cells where the header names 3 columns"),
    ],
)
def test_bad_data_is_named_with_file_line_and_column(tmp_path: Path, text: str, detail: str) -> None:
    with pytest.raises(BadData) as caught:
        read_exchange_rates(write(tmp_path, text), SOURCES)
    assert detail in str(caught.value)
