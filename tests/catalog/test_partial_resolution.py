"""An ingest resolves only what it may change; the catalog is the same as if all facts were resolved again."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.models import Size
from app.catalog.readings import FileRead, Reading
from app.catalog.store.facts import load_subject_keys, reconcile_facts
from app.catalog.store.revisions import compute_digest
from app.db.engines import read_session
from app.db.writing import write_session
from app.ingest.run import forget, ingest
from tests.databases import first_on_each_kind
from tests.factories import NOW, price, reading, size, source, statement

NOTES = source("notes", kind="third_party", on=None)
PAGE = reading(
    (
        *size("Standard_X1", series="S1", vcpus=8, gpu_model="Foo 16GB", gpu_count=1),
        *size("Standard_X2", series="S1", vcpus=16),
        *size("Standard_Y1", series="S2", vcpus=2),
        *size("s1", kind="series", category="general"),
    ),
)
OF_NOTES = size("X1", by="notes", vcpus=4, series="S2")

STEPS = {
    "prices and facts name new sizes": [
        reading(
            size("Standard_Y1", by="notes", vcpus=3),
            sources=[NOTES],
            regions=["eastus"],
            prices=[price("Standard_Z1", "1"), price("Standard_X2", "2")],
        )
    ],
    "a name moves to another series": [
        reading([statement("aliases", "S1; W", kind="series", subject="s9", source="notes")], sources=[NOTES])
    ],
    "a second source states other values and another series": [reading(OF_NOTES, sources=[NOTES])],
    "a series retires, and all its sizes with it": [
        reading(size("s1", by="notes", kind="series", retirement_date=date(2027, 1, 1)), sources=[NOTES])
    ],
    "a source gets more authority than the one before": [
        reading(OF_NOTES, sources=[NOTES]),
        reading((), sources=[source("notes", kind="vendor_api", on=date(2026, 1, 1))]),
    ],
    "a page states less": [replace(PAGE, facts=PAGE.facts[:2])],
    "a page states nothing": [
        replace(
            PAGE,
            facts=(),
            files=(FileRead(file="page.md", kind="claims", sources=frozenset({"page"}), states_facts=True),),
        )
    ],
    "a new size joins a series": [reading(size("X9", by="notes", series="S2", vcpus=1), sources=[NOTES])],
    "a size leaves its only series": [
        reading((*size("Standard_Y1", series="S3", vcpus=2), *size("Standard_X1", series="S1", vcpus=8)))
    ],
    "a new series is named, and another gets a name": [
        reading(
            (
                *size("Standard_W1", series="W", vcpus=4),
                *size("W", kind="series", category="memory"),
                statement("name", "W-series", kind="series", subject="W"),
                statement("name", "S2-series", kind="series", subject="s2"),
            )
        ),
    ],
    "a GPU is named": [
        reading(
            size("foo-16", by="notes", kind="gpu", model="Foo 16GB", vendor="NVIDIA", memory_gib=Decimal(16)),
            sources=[NOTES],
        )
    ],
}


def check_resolution(engine: Engine) -> None:
    """Check that resolving all facts again changes nothing."""
    with write_session(engine) as session:
        of_all, *_ = reconcile_facts(session, Reading(), load_subject_keys(session, Reading()), {})
        assert {name: change.has_changes for name, change in of_all.items()} == dict.fromkeys(
            ("gpu", "series", "size", "fact"), False
        )


@pytest.mark.parametrize("step", first_on_each_kind(3, STEPS))
def test_the_catalog_is_as_if_all_facts_were_resolved_again(engine: Engine, step: str) -> None:
    ingest(engine, PAGE, now=NOW)
    for what in STEPS[step]:
        outcome = ingest(engine, what, now=NOW)
        assert outcome.new_revision
    with read_session(engine) as session:
        assert compute_digest(session) == (outcome.revision["digest"], outcome.revision["counts"])
    check_resolution(engine)


def test_a_page_reads_the_facts_of_its_own_series_only(engine: Engine) -> None:
    others = [one for number in range(300) for one in size(f"Standard_Z{number}", series=f"Z{number}", vcpus=2)]
    ingest(engine, reading([*PAGE.facts, *others]), now=NOW)
    ingest(engine, reading(size("X1", by="notes", vcpus=6), sources=[NOTES]), now=NOW)
    summary = ingest(engine, reading(size("X1", by="notes", vcpus=7), sources=[NOTES]), now=NOW).summary
    assert summary.changes["fact"].unchanged == len(PAGE.facts) - 2
    assert summary.checksum_changes.keys() == {"fact", "size", "series"}


def test_a_page_of_a_new_series_reads_its_own_facts_only(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    page = [
        *size("Standard_W1", by="w", series="W-series", vcpus=4),
        statement("name", "W-series", kind="series", subject="W-series", source="w"),
    ]
    first = ingest(engine, reading(page, sources=[source("w")]), now=NOW).summary
    assert (first.changes["fact"].added, first.changes["fact"].unchanged) == (len(page), 0)
    assert first.checksum_changes.keys() == {"fact", "size", "series"}
    check_resolution(engine)


SPELLED = {
    "a page": reading(
        [*size("Standard_X1", series="Foo S-series", vcpus=8), *size("Foo S-series", kind="series", category="general")]
    ),
    "a page that spells the series differently": reading(
        size("Standard_X2", by="notes", series="Foo_S"), sources=[NOTES]
    ),
    "an unrelated page": reading(size("Standard_Y1", by="other", vcpus=2), sources=[source("other")]),
    "a list of series": reading(
        [statement("aliases", "Bar S; Foo S", kind="series", subject="bar", source="list")],
        sources=[source("list", kind="third_party")],
    ),
}


PAGES, LISTED = tuple(SPELLED)[:3], "a list of series"


@pytest.mark.takes_seconds
@pytest.mark.first_database
@pytest.mark.parametrize(
    "orders",
    [(PAGES, PAGES[::-1]), ((LISTED, *PAGES), (*PAGES[::-1], LISTED), (*PAGES[:1], LISTED, *PAGES[1:]))],
    ids=["unlisted", "listed"],
)
def test_the_order_of_pages_does_not_decide_what_series_a_size_is_of(
    engine: Engine, orders: Sequence[Sequence[str]]
) -> None:
    digests = {}
    for order in orders:
        for name in order:
            outcome = ingest(engine, SPELLED[name], now=NOW)
        digests[order] = outcome.revision["digest"]
        with read_session(engine) as session:
            assert compute_digest(session)[0] == digests[order]
            sizes = session.execute(select(table_of(Size).c.key, table_of(Size).c.series_id)).all()
            series = "bar" if LISTED in order else "foos"
            assert dict(sizes) == {"x1": series, "x2": series, "y1": None}
        check_resolution(engine)
        for cited in ("page", "notes", "other", *(["list"] if LISTED in order else [])):
            forget(engine, cited, now=NOW)
    assert len(set(digests.values())) == 1


def test_a_name_that_the_list_of_series_no_longer_has_means_another_series(engine: Engine) -> None:
    ingest(engine, SPELLED["a page"], now=NOW)
    ingest(engine, SPELLED["a list of series"], now=NOW)
    without = reading(
        [statement("aliases", "Bar S", kind="series", subject="bar", source="list")],
        sources=[source("list", kind="third_party")],
    )
    ingest(engine, without, now=NOW)
    check_resolution(engine)
    with read_session(engine) as session:
        assert session.execute(select(table_of(Size).c.series_id)).scalar_one() == "foos"
