"""The digest of a revision: equal for equal content, whatever the order of ingests; updated by checksums."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, update

from app.catalog.column_types import table_of
from app.catalog.models import TableSum
from app.catalog.readings import AliasRow, Reading
from app.catalog.revisions import latest_revision
from app.catalog.store.revisions import TableChecksum, compute_digest, load_checksums
from app.db.engines import make_engine
from app.db.engines import read_session as reads
from app.ingest.run import ingest
from tests.databases import Databases
from tests.factories import NOW, price, price_list, reading, size, source

JULY = date(2026, 7, 1)
ALIAS = AliasRow(alias="Xone", size="Standard_X1", source="prices", reason="billing", file="a.csv", line=2)
new = partial(price, file="new.csv")
STEPS: dict[str, Reading] = {
    "facts": reading(size("Standard_X1", vcpus=8, memory_gib=Decimal("112.5"), nvlink=True), regions=["eastus"]),
    "prices": reading(regions=["eastus"], prices=(price("x1", "1.50"), price("x1", "2", valid_from=JULY))),
    "a price that differs": reading(prices=(price("x1", "1.6"), price("x2", "0.000123"))),
    "the same prices": reading(prices=(price("x2", "0.000123"), price("x1", "1.60"))),
    "a price that turns back": reading(prices=(price("x1", "1.5"),)),
    "prices of a name that is an alias": reading(prices=(price("Xone", "7"), price("Xone", "3", os="windows"))),
    "the alias": reading(aliases=(ALIAS,)),
    "a page that says less": reading(size("Standard_X1", vcpus=16)),
    "a source of another date": reading(sources=[source(on=date(2024, 1, 1))]),
    "a new file": reading(
        prices=(new("x4", "1"), new("x4", "2", purchase="spot", approximate_date=True), new("x5", "3"))
    ),
    "a new file with one price twice": reading(prices=(new("x6", "2", file="twice.csv"), new("x6", "1"))),
    "a new file with a known price": reading(prices=(new("x6", "2", file="known.csv"), new("x6", "3", os="windows"))),
    "prices after all that": reading(prices=(price("Xone", "8", valid_from=JULY), price("x3", "1"))),
}


@pytest.fixture
def other(databases: Databases, template_url: str) -> Iterator[Engine]:
    """Another database of the same kind."""
    url = databases.copy(template_url)
    engine = make_engine(url)
    yield engine
    engine.dispose()
    databases.drop(url)


def digests(engine: Engine) -> tuple[str, str]:
    """Return the stored digest, and the one computed from scratch."""
    with reads(engine) as session:
        revision = latest_revision(session)
        assert revision is not None
        digest, counts = compute_digest(session)
        assert revision["counts"] == counts
        return revision["digest"], digest


@pytest.mark.takes_seconds
def test_the_stored_digest_is_the_one_computed_from_scratch_after_every_ingest(engine: Engine) -> None:
    seen = []
    for what in STEPS.values():
        ingest(engine, what, now=NOW)
        kept, from_scratch = digests(engine)
        assert kept == from_scratch
        seen.append(kept)
    assert seen[2] == seen[3], "the same again is the same"
    assert len(set(seen)) == len(seen) - 1


@pytest.mark.takes_seconds
def test_the_same_content_has_the_same_digest_in_whatever_order_it_came(engine: Engine, other: Engine) -> None:
    prices = [price(f"x{n}", f"{n}.5", valid_from=JULY) for n in range(1, 6)]
    for row in prices:
        ingest(engine, reading(regions=["eastus"], prices=(row,)), now=NOW)
    ingest(engine, STEPS["facts"], now=NOW)
    ingest(other, STEPS["facts"], now=NOW)
    ingest(other, replace(reading(), prices=price_list(*reversed(prices))), now=NOW)
    assert digests(engine) == digests(other)


def test_without_stored_checksums_the_tables_are_read_once(engine: Engine) -> None:
    ingest(engine, STEPS["prices"], now=NOW)
    with engine.begin() as connection:
        connection.execute(delete(table_of(TableSum)))
    ingest(engine, STEPS["a price that differs"], now=NOW)
    kept, from_scratch = digests(engine)
    assert kept == from_scratch
    with reads(engine) as session:
        assert load_checksums(session)


def test_a_table_with_other_columns_is_read_again(engine: Engine) -> None:
    ingest(engine, STEPS["prices"], now=NOW)
    with engine.begin() as connection:
        sums = table_of(TableSum)
        other = update(sums).where(sums.c.heading.startswith("price(")).values(heading="price(size_key, region)")
        connection.execute(other)
    ingest(engine, STEPS["facts"], now=NOW)
    kept, from_scratch = digests(engine)
    assert kept == from_scratch


CONTENTS = st.builds(TableChecksum, st.integers(0, 10**9), st.integers(0, 2**256 - 1))


@given(CONTENTS, CONTENTS, CONTENTS)
def test_adding_and_subtracting_a_checksum_cancels(
    one: TableChecksum, other: TableChecksum, third: TableChecksum
) -> None:
    assert one + other - other == one
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert 0 <= (one - other).sum < 2**256
