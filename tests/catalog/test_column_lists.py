"""Lists found on columns are those that SQL finds: the same sizes in the same order, totals and cursors."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries import column_lists, column_order, column_store
from app.catalog.queries import sizes as sizes_module
from app.catalog.queries import snapshot as snapshot_module
from app.catalog.queries.column_lists import load_list_columns
from app.catalog.queries.column_needs import ColumnNeeds
from app.catalog.queries.columns import SortColumn
from app.catalog.queries.pagination import write_cursor
from app.catalog.queries.params import SORT_KEYS, SizeSearch
from app.catalog.queries.sizes import JsonPage, columns_to_load, find_sizes, is_quick, normalize, reads_columns
from app.catalog.queries.snapshot import SMALL_CATALOG, CatalogSnapshot, KeptRows, load_snapshot
from app.db.statements import run_plan
from app.errors import BadQuery, CursorGone
from app.http.canonical import parse_query
from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size

TODAY = date(2026, 9, 1)
FILTERS = (
    *(
        "q=standard",
        "q=h100 nd",
        "q=nothinglikethis",
        "q=v5",
        "name=*96*,nc24*",
        "name=standard_nd*",
        "name=*",
        "name=?d*s_v5",
    ),
    *("series=nd_h100_v5,nc_a100_v4", "category=gpu_accelerated,general_purpose", "gpu=A100,H100", "gpu=*a10*"),
    *("gpu_vendor=NVIDIA", "gpu_vendor=AMD", "verified=false", "disputed=true", "status=any", "status=retired"),
    *("status=retiring,preview", "available_in=eastus", "available_in=eastus,westeurope", "min_gpu_mem=80"),
    *(
        "max_gpu_mem=24",
        "min_gpu_mem_per_gpu=40",
        "max_gpu_mem_per_gpu=80",
        "min_gpus=1/6",
        "max_gpus=1/3",
        "max_gpus=0",
    ),
    *("min_vcpus=96", "max_vcpus=4", "min_memory=900", "max_memory=8", "min_local_disk=1000", "min_network_gbps=40"),
    *(
        "infiniband=true",
        "min_infiniband_gbps=200",
        "nvlink=true",
        "nvlink=false",
        "arch=arm64",
        "premium_storage=true",
    ),
    *("ultra_disk=false", "min_usd_per_hour=20", "min_usd_per_hour=0", "max_usd_per_hour=0.1", "max_usd_per_hour=5"),
)
SCOPES = (
    *("", "region=eastus", "region=westeurope", "region=eastus,westeurope", "region=eastus,uksouth,westus2,westeurope"),
    *("os=windows", "os=windows&region=eastus,japaneast", "region=centralindia"),
    *(f"purchase={purchase}" for purchase in PURCHASE_MODELS[1:]),
    *(f"purchase={purchase}&region=eastus,westeurope" for purchase in PURCHASE_MODELS[1:]),
)


def every_order() -> Iterator[str]:
    """Every sort key in both directions and every filter, each with another scope."""
    for number, key in enumerate(SORT_KEYS):
        for sign in ("", "-"):
            turn = 2 * number + len(sign)
            yield f"{FILTERS[turn % len(FILTERS)]}&sort={sign}{key}&limit=60&{SCOPES[turn % len(SCOPES)]}"


def random_questions(count: int) -> Iterator[str]:
    rng = random.Random(16)
    for _ in range(count):
        chosen = {one.partition("=")[0]: one for one in rng.sample(FILTERS, rng.randint(0, 3))}
        sort = ",".join(rng.choice(("", "-")) + key for key in rng.sample(SORT_KEYS, rng.randint(1, 3)))
        yield "&".join([*chosen.values(), rng.choice(SCOPES), f"sort={sort}&limit={rng.choice((1, 7, 50, 500))}"])


QUESTIONS = [*every_order(), *random_questions(50)]


@pytest.fixture(scope="module")
def session(seeded_engine: Engine) -> Iterator[Session]:
    with Session(seeded_engine) as session:
        yield session


@pytest.fixture(scope="module")
def by_sql(session: Session) -> CatalogSnapshot:
    return load_snapshot(session)


@pytest.fixture(scope="module")
def on_columns(session: Session) -> CatalogSnapshot:
    return load_snapshot(session)


def load(session: Session, search: SizeSearch, snapshot: CatalogSnapshot) -> None:
    run_plan(session, load_list_columns(ColumnNeeds.of(normalize(search, snapshot)), snapshot))


def find(session: Session, search: SizeSearch, snapshot: CatalogSnapshot, offset: int = 0) -> JsonPage:
    return run_plan(session, find_sizes(search, snapshot, TODAY, offset=offset))


@pytest.fixture(params=["sorted", "along an order of all sizes"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Find lists of this small catalog by sorting them, and as those of a large one: in small steps."""
    if request.param != "sorted":
        monkeypatch.setattr(column_lists, "SORTED", 0)
        monkeypatch.setattr(column_order, "_PROBES", 3)
        monkeypatch.setattr(column_order, "_BLOCK", 10)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("question", QUESTIONS)
def test_pages_on_columns_are_those_by_sql(
    session: Session, by_sql: CatalogSnapshot, on_columns: CatalogSnapshot, question: str
) -> None:
    search = parse_query(question.encode(), SizeSearch)
    load(session, search, on_columns)
    for _ in range(3):
        page = find(session, search, by_sql)
        assert find(session, search, on_columns) == page
        if page.next_cursor is None:
            break
        search = search.model_copy(update={"cursor": page.next_cursor})


def test_most_of_these_questions_are_answered_on_columns_and_find_sizes(
    session: Session, on_columns: CatalogSnapshot
) -> None:
    searches = [parse_query(question.encode(), SizeSearch) for question in QUESTIONS]
    for search in searches:
        load(session, search, on_columns)
    assert sum(reads_columns(search, on_columns) for search in searches) > 0.9 * len(searches)
    assert sum(find(session, search, on_columns).total > 50 for search in searches) > len(searches) / 3


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("offset", [1, 60, 1_000, 100_000])
def test_a_page_by_its_offset_on_columns_is_that_by_sql(
    session: Session,
    by_sql: CatalogSnapshot,
    on_columns: CatalogSnapshot,
    offset: int,
) -> None:
    search = SizeSearch(sort=("-network_mbps",), region=("eastus", "westeurope"), limit=20)
    load(session, search, on_columns)
    assert find(session, search, on_columns, offset) == find(session, search, by_sql, offset)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("sort", ["gpu_model", "-gpu_model", "name", "-name"])
@pytest.mark.parametrize("text", ["", "a", "h", "m", "zz"])
def test_a_cursor_at_a_text_that_no_size_has_is_between_two_that_sizes_have(
    session: Session,
    by_sql: CatalogSnapshot,
    on_columns: CatalogSnapshot,
    sort: str,
    text: str,
) -> None:
    search = SizeSearch(sort=(sort,), status=("any",), limit=30)
    load(session, search, on_columns)
    identity = search.model_dump_json(exclude=search.page_param_names())
    values = [text] if sort.endswith("name") else [text, "nc24"]
    search = search.model_copy(update={"cursor": write_cursor(identity, by_sql.revision, values)})
    assert find(session, search, on_columns) == find(session, search, by_sql)


def test_a_list_of_a_catalog_that_changed_since_its_columns_were_loaded_is_found_by_sql(engine: Engine) -> None:
    ingest(engine, reading([*size("Standard_X1", vcpus=8), *size("Standard_X2", vcpus=16)]), now=NOW)
    search = SizeSearch(sort=("-vcpus",), limit=1)
    with Session(engine) as session:
        before = load_snapshot(session)
        load(session, search, before)
        first = find(session, search, before)
        assert '"Standard_X2"' in first.items[0]
    ingest(engine, reading([*size("Standard_X1", vcpus=32), *size("Standard_X2", vcpus=16)]), now=NOW)
    with Session(engine) as session:
        assert '"Standard_X2"' in find(session, SizeSearch(sort=("vcpus",), limit=1), before).items[0]
        with pytest.raises(CursorGone):
            find(session, search.model_copy(update={"cursor": first.next_cursor}), before)


def test_a_page_of_which_all_rows_were_read_before_is_of_their_revision_without_the_database(engine: Engine) -> None:
    sizes, prices = (
        [*size("Standard_X1", vcpus=8), *size("Standard_X2", vcpus=16)],
        [price("X1", "1"), price("X2", "2")],
    )
    ingest(engine, reading(sizes, regions=["eastus"], prices=prices), now=NOW)
    search, other = SizeSearch(sort=("-vcpus",), limit=1), SizeSearch(sort=("-vcpus",), min_vcpus=9)
    with Session(engine) as session:
        before = load_snapshot(session)
        load(session, search, before)
        first = find(session, search, before)
    with pytest.raises(StopIteration) as end:
        next(find_sizes(other, before, TODAY))
    assert end.value.value.items == first.items
    ingest(engine, reading([*size("Standard_X1", vcpus=32), *size("Standard_X2", vcpus=16)]), now=NOW)
    with Session(engine) as session:
        assert find(session, search, before) == first
        assert '"Standard_X1"' in find(session, search, load_snapshot(session)).items[0]


def test_rows_of_pages_are_kept_up_to_a_bound(
    session: Session, by_sql: CatalogSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, searches = replace(by_sql, rows=KeptRows()), [SizeSearch(sort=(s,), limit=40) for s in ("-vcpus", "vcpus")]
    monkeypatch.setattr(snapshot_module, "MAX_ROW_BYTES", most_bytes := 160_000)
    for search in (*searches, *searches):
        load(session, search, kept)
        assert find(session, search, kept) == find(session, search, by_sql)
        assert len(kept.rows.of(("linux", "on_demand", TODAY))) == 40  # two pages would take 200,000 bytes
        assert 80_000 < kept.rows.nbytes <= most_bytes


def test_an_unknown_region_is_refused_where_columns_are_loaded(session: Session, on_columns: CatalogSnapshot) -> None:
    load(session, SizeSearch(sort=("-vcpus",)), on_columns)
    with pytest.raises(BadQuery, match="region"):
        find(session, SizeSearch(sort=("-vcpus",), region=("nowhere",)), on_columns)


def test_a_large_catalog_wants_columns_at_the_first_question(session: Session, by_sql: CatalogSnapshot) -> None:
    large, search = replace(by_sql, sizes=100_000), SizeSearch(sort=("-vcpus",), limit=1)
    assert columns_to_load(search, large) is None
    find(session, search, large)
    wanted = large.columns.next_wanted()
    assert wanted is not None
    run_plan(session, wanted())
    assert reads_columns(search, large)
    find(session, search, large)
    assert not large.columns.are_wanted


def test_a_small_catalog_loads_columns_behind_its_first_list_and_before_others(
    session: Session, by_sql: CatalogSnapshot
) -> None:
    small, search = replace(by_sql), SizeSearch(sort=("-vcpus",), limit=1)
    assert columns_to_load(search, small) is None
    find(session, search, small)
    assert small.columns.are_wanted
    needs = columns_to_load(search, small)
    assert needs is not None
    run_plan(session, load_list_columns(needs, small))
    assert columns_to_load(search, small) is None
    assert reads_columns(search, small)
    with pytest.raises(BadQuery, match="region"):
        columns_to_load(SizeSearch(region=("nowhere",)), small)


def test_an_order_of_all_sizes_is_computed_once_for_all_filters(
    session: Session, by_sql: CatalogSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_lists, "SORTED", 0)
    monkeypatch.setattr(column_lists, "order_all", computed := Mock(wraps=column_order.order_all))
    snapshot = replace(by_sql)
    for question in ("sort=-vcpus&region=eastus", "sort=-vcpus&region=uksouth&arch=arm64", "sort=-vcpus&min_gpus=1"):
        search = parse_query(question.encode(), SizeSearch)
        load(session, search, snapshot)
        assert find(session, search, snapshot) == find(session, search, by_sql)
    assert computed.call_count == 1


def test_a_list_of_a_large_catalog_is_quick_once_its_order_is_kept_unless_it_searches_texts(
    session: Session, by_sql: CatalogSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_lists, "SORTED", 0)
    small, large, huge = (replace(by_sql, sizes=sizes) for sizes in (1_000, 100_000, 1_000_000))
    search = SizeSearch(region=("eastus", "westeurope"), sort=("usd_per_hour",))
    elsewhere = SizeSearch(region=("eastus",), sort=("usd_per_hour",))
    assert is_quick(search, small)
    assert not is_quick(search, large)
    for snapshot in (large, huge):
        load(session, search, snapshot)
        assert find(session, search, snapshot) == find(session, search, by_sql)
    assert is_quick(search, large)
    assert is_quick(search.model_copy(update={"min_vcpus": 8}), large)
    assert not is_quick(parse_query(b"region=eastus,westeurope&sort=usd_per_hour&q=h100", SizeSearch), large)
    assert not is_quick(elsewhere, large)
    assert not is_quick(search, huge)


def test_a_list_whose_columns_were_dropped_just_now_is_found_by_sql_and_loads_none(
    session: Session, by_sql: CatalogSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, snapshot = SizeSearch(sort=("-vcpus",), limit=5), replace(by_sql)
    monkeypatch.setattr(sizes_module, "reads_columns", lambda *_: True)
    assert find(session, search, snapshot) == find(session, search, by_sql)
    assert not ColumnNeeds.of(search).are_kept(snapshot)


def test_of_what_was_computed_from_columns_the_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_store, "MAX_DERIVED", 2)
    derived, columns = column_store.DerivedColumns(), SortColumn(np.zeros(1))
    computed: list[str] = []
    for key in "abacab":
        derived.of(key, (columns,), partial(computed.append, key))
    assert "".join(computed) == "abcb"


def test_what_was_computed_from_columns_is_not_that_of_others() -> None:
    derived = column_store.DerivedColumns()
    before, now = SortColumn(np.array([1.0])), SortColumn(np.array([2.0]))
    assert [derived.of("key", (each,), each.values.sum) for each in (before, now, now, before)] == [1, 2, 2, 1]


def test_columns_beyond_the_bound_are_dropped_the_least_recently_used_first(
    session: Session, by_sql: CatalogSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = replace(by_sql, sizes=SMALL_CATALOG + 1)  # of smaller ones all regions are loaded at once
    searches = [SizeSearch(region=(region,), sort=("-vcpus",), limit=5) for region in ("eastus", "westus2", "uksouth")]
    load(session, searches[0], snapshot)
    monkeypatch.setattr(column_store, "MAX_COLUMN_BYTES", int(2.5 * snapshot.columns.nbytes))
    load(session, searches[1], snapshot)
    load(session, searches[0], snapshot)
    load(session, searches[2], snapshot)
    assert [reads_columns(search, snapshot) for search in searches] == [True, False, True]
    assert snapshot.columns.nbytes <= column_store.MAX_COLUMN_BYTES
    assert find(session, searches[1], snapshot) == find(session, searches[1], by_sql)


@pytest.mark.one_database  # numbers in memory
@pytest.mark.parametrize("values", [[], [3], [5, 1, 5, 5, -2, 1], list(range(300, 0, -1))])
def test_different_numbers_are_found_in_order(values: list[int]) -> None:
    assert column_order.distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))
