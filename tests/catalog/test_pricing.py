"""Bulk upsert of prices: counts, duplicates, unknown regions, aliases and spellings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy import Engine, event, select

from app.catalog.column_types import table_of
from app.catalog.models import Price, Size
from app.catalog.money import to_usd_text
from app.catalog.readings import AliasRow, PriceRow
from app.db.engines import read_session as reads
from app.errors import BadData
from app.ingest.run import IngestOutcome, ingest
from tests.databases import first_on_each_kind
from tests.factories import NOW, price, price_list, reading, size


def ingest_prices(engine: Engine, *prices: PriceRow) -> IngestOutcome:
    return ingest(engine, reading(regions=["eastus", "westus"], prices=prices), now=NOW)


def changes(outcome: IngestOutcome) -> tuple[int, int, int]:
    change = outcome.summary.changes["price"]
    return change.added, change.changed, change.unchanged


def stored_prices(engine: Engine) -> dict[tuple[str, str], Decimal]:
    with reads(engine) as session:
        return {
            (row.size_key, row.region): Decimal(to_usd_text(row.nano_usd_per_hour))
            for row in session.execute(select(table_of(Price)))
        }


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """Collect the statements that are executed in the block."""
    seen: list[str] = []

    def see(*arguments: object) -> None:
        seen.append(str(arguments[2]))

    event.listen(engine, "before_cursor_execute", see)
    yield seen
    event.remove(engine, "before_cursor_execute", see)


MANY = tuple(
    price(f"Standard_X{number}", f"{number + 1}.25", region=region, line=number + 2)
    for number in range(7)
    for region in ("eastus", "westus")
)


@pytest.mark.first_database
@pytest.mark.parametrize("order", [MANY, MANY[::-1], MANY[5:] + MANY[:5]], ids=["sorted", "backwards", "turned"])
def test_the_summary_counts_new_changed_and_unchanged_prices(engine: Engine, order: tuple[PriceRow, ...]) -> None:
    assert changes(ingest_prices(engine, *order)) == (14, 0, 0)
    assert changes(ingest_prices(engine, *order)) == (0, 0, 14)
    others = [row for row in order if row.size != "Standard_X0"]
    assert changes(ingest_prices(engine, price("x0", "9"), *others, price("x99", "0.5"))) == (1, 1, 12)
    assert len(stored_prices(engine)) == 15


@pytest.mark.first_database
def test_of_two_prices_in_one_list_the_first_is_written_whatever_is_stored(engine: Engine) -> None:
    twice = (price("X1", "1"), price("X2", "5", line=3), price("Standard_X1", "2", line=4), price("x1", "1.0", line=5))
    for _ in range(2):
        outcome = ingest_prices(engine, *twice)
        assert [(report.line, report.cell) for report in outcome.summary.reports] == [(4, "2")]
        assert stored_prices(engine) == {("x1", "eastus"): 1, ("x2", "eastus"): 5}
    assert changes(outcome) == (0, 0, 2)


@pytest.mark.first_database
def test_a_duplicate_price_is_reported_with_the_file_of_its_list(engine: Engine) -> None:
    lists = price_list(price("X2", "1"), price("X3", "1")) + price_list(price("X1", "1", file="b.csv"))
    lists += price_list(price("X2", "4", file="c.csv", line=7))
    outcome = ingest(engine, replace(reading(regions=["eastus"]), prices=lists), now=NOW)
    assert [str(report).partition(":")[0] for report in outcome.summary.reports] == ["c.csv"]
    assert outcome.summary.reports[0].line == 7


def test_an_unknown_region_is_refused_with_its_first_row(engine: Engine) -> None:
    rows = [*MANY[:6], price("X1", "1", region="nowhere", line=70), price("X2", "1", region="mars", line=71)]
    with pytest.raises(BadData) as caught:
        ingest_prices(engine, *rows)
    assert (caught.value.file, caught.value.line, caught.value.column) == ("prices.csv", 70, "region")
    assert stored_prices(engine) == {}


def test_a_price_that_starts_in_many_years_is_refused_with_its_line(engine: Engine) -> None:
    to_come, typo = (price("X1", "2", valid_from=date(year, 12, 31), line=year) for year in (2028, 2029))
    assert changes(ingest_prices(engine, price("X1", "1"), to_come)) == (2, 0, 0)
    with pytest.raises(
        BadData, match=r"prices\.csv:2029: column 'valid_from': '2029-12-31': must not be after 2028-12-31"
    ):
        ingest_prices(engine, to_come, typo)
    assert changes(ingest_prices(engine, price("X1", "1"), to_come)) == (0, 0, 2)


def test_a_failed_ingest_does_not_break_the_next(engine: Engine) -> None:
    with pytest.raises(BadData):
        ingest_prices(engine, *MANY[:4], price("X1", "1", region="nowhere"))
    assert changes(ingest_prices(engine, *MANY)) == (14, 0, 0)


@pytest.mark.parametrize("name", ["a\tb", "a\\b", "a\nb\r", "\\N", "ä€ 'x' \"y\"", "\\."])
def test_a_name_comes_back_as_it_was_written(engine: Engine, name: str) -> None:
    ingest_prices(engine, price(name, "1.5"))
    assert stored_prices(engine) == {(name.lower().strip(), "eastus"): Decimal("1.5")}
    with reads(engine) as session:
        assert session.execute(select(table_of(Size).c.name)).scalars().all() == [name]


@pytest.mark.parametrize(
    "usd", first_on_each_kind(2, ["0.000000001", "999999999.999999", "123456789.123456", "3.673", "0.1", "100"])
)
def test_a_price_keeps_its_last_digit(engine: Engine, usd: str) -> None:
    ingest_prices(engine, price("X1", usd))
    assert stored_prices(engine) == {("x1", "eastus"): Decimal(usd)}
    assert changes(ingest_prices(engine, price("X1", usd))) == (0, 0, 1)


def test_a_size_is_spelled_as_its_first_price_spells_it_and_cites_that_source(engine: Engine) -> None:
    ingest_prices(engine, *MANY[:3], price("Standard_Big", "1", source="prices"), price("BIG", "2", region="westus"))
    with reads(engine) as session:
        (row,) = session.execute(select(table_of(Size)).where(table_of(Size).c.key == "big")).mappings()
    assert (row["name"], row["source_id"], row["verified"]) == ("Standard_Big", "prices", False)


@pytest.mark.first_database
def test_prices_resolve_no_facts_and_write_no_stored_size(engine: Engine) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"]), now=NOW)
    with statements(engine) as seen:
        outcome = ingest_prices(engine, price("x1", "1.5"))
    assert outcome.new_revision
    others = ("fact.verdict = ", "fact.field IN (")  # disputes, and the names of series
    resolving = [text for text in seen if "FROM fact" in text and not any(other in text for other in others)]
    assert not resolving
    assert not [text for text in seen if "UPDATE size" in text or "INTO size " in text]
    with statements(engine) as seen:
        ingest(engine, reading(size("Standard_X1", vcpus=9)), now=NOW)
    assert [text for text in seen if "FROM fact" in text]
    assert [text for text in seen if "UPDATE size" in text]


@pytest.mark.first_database
def test_prices_by_an_alias_are_those_of_its_size(engine: Engine) -> None:
    alias = AliasRow(alias="Xone", size="Standard_X1", source="prices", reason="billing", file="a.csv", line=2)
    ingest(engine, reading(aliases=(alias,), regions=["eastus"]), now=NOW)
    outcome = ingest_prices(engine, price("Xone", "3"), price("X1", "4", valid_from=date(2026, 7, 1)))
    assert changes(outcome) == (2, 0, 0)
    assert {key for key, _ in stored_prices(engine)} == {"x1"}
