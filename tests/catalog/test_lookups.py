"""Names of sizes: what is read to answer one that the catalog does not have."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.lookups import get_size_keys
from app.catalog.queries.params import SizeParams
from app.catalog.queries.provenance import ConflictSearch, FactSearch, find_conflicts, find_facts, get_series
from app.catalog.queries.sizes import find_size
from app.catalog.queries.snapshot import Catalog, load_snapshot
from app.db.statements import Statement
from app.errors import NotFound
from app.ingest.run import forget, ingest
from tests.conftest import TODAY
from tests.factories import NOW, reading, size
from tests.recording import Recording, statements_of

PAGE = reading([*size("Standard_NX24_v2", vcpus=24, series="NXv2"), *size("Standard_NX48_v2", vcpus=48, series="NXv2")])


@pytest.mark.first_database
def test_a_series_is_recognized_by_the_names_that_a_snapshot_has(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    with Session(engine) as session:
        recording = Recording(session)
        with pytest.raises(NotFound, match="nxv2 is a series of sizes"):
            get_size_keys(recording, ("NX v2-series",), load_snapshot(session).series)
    assert len(recording.asked) == 1


@pytest.mark.first_database
def test_a_suggestion_is_a_name_as_the_catalog_writes_it(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    with Session(engine) as session, pytest.raises(NotFound) as unknown:
        get_size_keys(session, ("nx24_v2", "nx4_v2"), {})
    assert (unknown.value.name, unknown.value.suggestions) == ("nx4_v2", ("Standard_NX48_v2", "Standard_NX24_v2"))


@pytest.mark.first_database
def test_a_size_that_is_removed_after_its_name_was_looked_up_is_not_found(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    with Session(engine) as session:
        snapshot = load_snapshot(session)

    def forget_it(number: int) -> None:
        session.rollback()
        if number == 1:
            forget(engine, "page", now=NOW)

    with Session(engine) as session, pytest.raises(NotFound, match="no size named 'nx24_v2'"):
        find_size(Catalog(Recording(session, forget_it), snapshot, TODAY), "nx24_v2", SizeParams())


def test_a_series_that_is_removed_after_its_name_was_looked_up_is_not_found(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    with Session(engine) as session:
        snapshot = load_snapshot(session)
    forget(engine, "page", now=NOW)
    with Session(engine) as session, pytest.raises(NotFound, match="no series named 'nxv2'"):
        get_series(Catalog(session, snapshot, TODAY), "nxv2")


def test_lists_of_one_shape_share_their_statements(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)

    def statements(question: Callable[[Catalog], object]) -> list[Statement]:
        with Session(engine) as session:
            return [bound.statement for bound in statements_of(session, load_snapshot(session), TODAY, question)[1]]

    def facts(*fields: str) -> list[Statement]:
        return statements(lambda catalog: find_facts(catalog, "nx24_v2", FactSearch(field=fields)))

    def conflicts(field: str) -> list[Statement]:
        return statements(lambda catalog: find_conflicts(catalog, ConflictSearch(field=field)))

    assert facts("vcpus") == facts("memory_gib")
    assert facts("vcpus", "arch", "nvlink") == facts("vcpus", "arch", "nvlink", "memory_gib")
    assert conflicts("vcpus") == conflicts("memory_gib")


def test_a_display_name_is_that_of_a_size_unless_it_may_be_of_two(engine: Engine) -> None:
    ingest(engine, reading([*size("Standard_NX_24s", vcpus=24), *size("Standard_NX24s", vcpus=24)]), now=NOW)
    with Session(engine) as session:
        assert get_size_keys(session, ("Standard NX24s",), {}) == ("nx24s",)
        with pytest.raises(NotFound, match="Did you mean Standard_NX24s or Standard_NX_24s"):
            get_size_keys(session, ("NX 24s",), {})
