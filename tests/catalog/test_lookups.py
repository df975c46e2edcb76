"""Names of sizes: what is read to answer one that the catalog does not have."""

from contextlib import suppress

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.lookups import get_size_keys
from app.catalog.queries.pagination import Listing
from app.catalog.queries.params import SizeParams
from app.catalog.queries.provenance import ConflictSearch, FactSearch, find_conflicts, find_facts, get_series
from app.catalog.queries.sizes import find_size
from app.catalog.queries.snapshot import load_snapshot
from app.db.statements import BoundStatement, QueryPlan, Rows, Statement, run_plan, single_statement
from app.errors import NotFound
from app.ingest.run import forget, ingest
from tests.conftest import TODAY
from tests.factories import NOW, reading, size

PAGE = reading([*size("Standard_NX24_v2", vcpus=24, series="NXv2"), *size("Standard_NX48_v2", vcpus=48, series="NXv2")])


def read(engine: Engine, asked: BoundStatement) -> Rows:
    with Session(engine) as session:
        return run_plan(session, single_statement(asked))


def test_a_series_is_recognized_by_the_names_that_a_snapshot_has(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    with Session(engine) as session:
        series = load_snapshot(session).series
    question = get_size_keys(("NX v2-series",), series)
    rows = read(engine, next(question))
    with pytest.raises(NotFound, match="nxv2 is a series of sizes") as unknown:
        question.send(rows)
    with Session(engine) as session, pytest.raises(NotFound) as without_snapshot:
        run_plan(session, get_size_keys(("NX v2-series",)))
    assert str(unknown.value) == str(without_snapshot.value)


def test_a_suggestion_is_a_name_as_the_catalog_writes_it(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    with Session(engine) as session, pytest.raises(NotFound) as unknown:
        run_plan(session, get_size_keys(("nx24_v2", "nx4_v2"), {}))
    assert (unknown.value.name, unknown.value.suggestions) == ("nx4_v2", ("Standard_NX24_v2", "Standard_NX48_v2"))


def test_a_size_that_is_removed_after_its_name_was_looked_up_is_not_found(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    with Session(engine) as session:
        snapshot = load_snapshot(session)
    question = find_size("nx24_v2", SizeParams(), snapshot, TODAY)
    known = read(engine, next(question))
    asked = question.send(known)
    forget(engine, "page", now=NOW)
    rows = read(engine, asked)
    with pytest.raises(NotFound, match="no size named 'nx24_v2'"):
        question.send(rows)


def test_a_series_that_is_removed_after_its_name_was_looked_up_is_not_found(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    with Session(engine) as session:
        snapshot = load_snapshot(session)
    forget(engine, "page", now=NOW)
    with Session(engine) as session, pytest.raises(NotFound, match="no series named 'nxv2'"):
        run_plan(session, get_series("nxv2", snapshot))


def statements(engine: Engine, question: QueryPlan[Listing]) -> list[Statement]:
    asked = []
    with suppress(StopIteration):
        one = next(question)
        while True:
            asked.append(one.statement)
            one = question.send(read(engine, one))
    return asked


def test_lists_of_one_shape_share_their_statements(engine: Engine) -> None:
    ingest(engine, PAGE, now=NOW)
    for few, many in (
        (("vcpus",), ("memory_gib",)),
        (("vcpus", "arch", "nvlink"), ("vcpus", "arch", "nvlink", "memory_gib")),
    ):
        first, other = (find_facts("nx24_v2", FactSearch(field=fields)) for fields in (few, many))
        assert statements(engine, first) == statements(engine, other)
    conflicts = [find_conflicts(ConflictSearch(field=field)) for field in ("vcpus", "memory_gib")]
    assert statements(engine, conflicts[0]) == statements(engine, conflicts[1])


def test_a_display_name_is_that_of_a_size_unless_it_may_be_of_two(engine: Engine) -> None:
    ingest(engine, reading([*size("Standard_NX_24s", vcpus=24), *size("Standard_NX24s", vcpus=24)]), now=NOW)
    with Session(engine) as session:
        assert run_plan(session, get_size_keys(("Standard NX24s",))) == ("nx24s",)
        with pytest.raises(NotFound, match="Did you mean Standard_NX24s or Standard_NX_24s"):
            run_plan(session, get_size_keys(("NX 24s",)))
