"""Pages and totals that are joined from fragments are those of the statements that SQLAlchemy builds as a whole."""

from collections.abc import Callable, Iterator
from datetime import date
from functools import cache

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.params import SizeSearch
from app.catalog.queries.size_statements import list_statement
from app.catalog.queries.sizes import normalize, render_size, search_sizes, to_statement_key
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import BoundStatement, run_plan, single_statement
from app.http.canonical import parse_query
from tests.databases import first_on_each_kind

TODAY = date(2026, 9, 1)
FILTERS = (
    *("", "q=standard h100", "name=*96*,nc24*", "series=nd_h100_v5", "category=gpu_accelerated", "gpu=A100,H100"),
    *("gpu_vendor=NVIDIA&disputed=true", "status=current,retiring", "status=any", "available_in=eastus,westeurope"),
    *("min_gpu_mem=80", "min_gpu_mem=80&max_gpu_mem=700&q=nd", "min_gpu_mem_per_gpu=40&max_gpus=2", "min_gpus=1/6"),
    *("min_vcpus=96&max_vcpus=200&min_memory=900", "min_local_disk=1000&min_network_gbps=16", "infiniband=true"),
    *("nvlink=true&arch=x64", "min_usd_per_hour=1&max_usd_per_hour=20", "verified=true&premium_storage=true"),
)
SCOPES = (
    *("region=eastus", "os=windows", "region=eastus,westeurope&purchase=spot", "purchase=savings_3y"),
    *("region=eastus&as_of=2026-07-01", "as_of=2026-07-01&known_at=2026-08-01"),
)
SORTS = (
    *("usd_per_hour", "name", "-name", "-gpu_memory_gib,usd_per_hour", "retirement_date", "-usd_per_hour"),
    *("-spot_usd_per_hour,gpu_model", "usd_per_gpu_hour", "-gpu_count,-name,vcpus"),
)
LIMIT = 250
QUESTIONS = [
    "&".join(part for part in (FILTERS[number % len(FILTERS)], SCOPES[number % len(SCOPES)], sort) if part)
    for number, sort in enumerate(f"sort={SORTS[number % len(SORTS)]}&limit={LIMIT}" for number in range(60))
]


@pytest.fixture(scope="module")
def session(seeded_engine: Engine) -> Iterator[Session]:
    with Session(seeded_engine) as session:
        yield session


@pytest.fixture(scope="module")
def snapshot(session: Session) -> CatalogSnapshot:
    return load_snapshot(session)


def walk(session: Session, search: SizeSearch) -> tuple[list[str], set[int]]:
    """Return the items of all pages, and the totals that they told."""
    page = search_sizes(session, search, today=TODAY)
    items, totals = [*page.items], {page.total}
    while page.next_cursor is not None:
        page = search_sizes(session, search.model_copy(update={"cursor": page.next_cursor}), today=TODAY)
        items += page.items
        totals.add(page.total)
    return items, totals


@pytest.fixture(scope="module")
def read(session: Session) -> Callable[[str], tuple[list[str], set[int]]]:
    """Return a function that reads all pages of a question once."""
    return cache(lambda question: walk(session, parse_query(question.encode(), SizeSearch)))


@pytest.mark.parametrize("question", first_on_each_kind(len(FILTERS), QUESTIONS))
def test_all_pages_together_are_the_list_that_one_statement_gives(
    session: Session, snapshot: CatalogSnapshot, read: Callable[[str], tuple[list[str], set[int]]], question: str
) -> None:
    search = parse_query(question.encode(), SizeSearch)
    key, values = to_statement_key(normalize(search, snapshot), TODAY, snapshot.rules)
    rows = run_plan(session, single_statement(BoundStatement(list_statement(key), values)))
    items, totals = read(question)
    assert items == [render_size(row, TODAY) for row in rows]
    assert totals == {len(rows)}


@pytest.mark.one_database  # reads all questions; what each kind finds is compared above
def test_the_questions_find_sizes(read: Callable[[str], tuple[list[str], set[int]]]) -> None:
    found = [len(read(question)[0]) for question in QUESTIONS]
    assert sum(total > LIMIT for total in found) > 10  # more than a page
    assert sum(total > 0 for total in found) > len(QUESTIONS) / 2
