"""Lists, counts and neighbours by sets are those that one statement of SQL gives, which the exports run."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries import snapshot as snapshot_module
from app.catalog.queries.facets import find_facets
from app.catalog.queries.filters import FILTERS, SCOPE_FILTERS
from app.catalog.queries.pagination import write_cursor
from app.catalog.queries.params import SORT_KEYS, FacetSearch, SizeFilter, SizeSearch
from app.catalog.queries.size_sets import IS_SET, SizeQuestion, SizeSets, list_query
from app.catalog.queries.sizes import (
    JsonPage,
    find_sizes,
    normalize,
    render_size,
)
from app.catalog.queries.snapshot import (
    Catalog,
    CatalogSnapshot,
    KeptAnswers,
    KeptRows,
    ask_catalog,
    load_catalog,
    load_snapshot,
)
from app.db.statements import fetch
from app.errors import BadQuery, CatalogChanged, CursorGone
from app.http.canonical import parse_query
from app.ingest.run import ingest
from tests.databases import first_on_each_kind, one_in
from tests.factories import NOW, price, reading, size

TODAY = date(2026, 9, 1)
FILTERED = (
    """
q=standard|q=H100 nd|q=nvidia_|q=100%25|q=v5|q=d_nd9|q=rd_ h100|name=standard_nd*|name=*v?|name=nc24*,Standard_ND96*
name=*d_nd*|name=?tandard_n*v?|name=standard_|name=nd96isr_h100_v5|name=[n]*|name=*|series=nd_h100_v5,nc_a100_v4
category=gpu_accelerated,general_purpose|gpu=A100|gpu=h*,T4|gpu=a100*|gpu_vendor=nvidia|gpu_vendor=AMD&status=any
verified=true|verified=false|disputed=true|disputed=false|status=any|status=retired|status=withdrawn
status=retiring,preview|available_in=eastus|available_in=eastus,westeurope&purchase=spot|min_gpu_mem=80&max_gpu_mem=640
min_gpu_mem_per_gpu=40&max_gpu_mem_per_gpu=80|min_gpus=1/6&max_gpus=4|max_gpus=0|min_vcpus=24&max_vcpus=96
min_memory=220&max_memory=900|min_local_disk=1000|min_network_gbps=40|infiniband=true|infiniband=false
min_infiniband_gbps=200|nvlink=true|arch=x64|arch=arm64|premium_storage=true|ultra_disk=false
max_usd_per_hour=10&region=eastus|min_usd_per_hour=2&max_usd_per_hour=40|min_usd_per_hour=0&os=windows
min_usd_per_hour=1&purchase=spot&region=eastus,westeurope|purchase=reserved_3y&max_usd_per_hour=30
as_of=2026-02-01&max_usd_per_hour=5|as_of=2025-06-01&available_in=eastus|as_of=2025-06-01&region=eastus,uksouth
provider=azure|provider=aws|country=US|continent=europe&min_gpus=1|cpu=*cobalt*|cpu=epyc 9*|cpu_vendor=amd
burstable=true|min_data_disks=32|min_uncached_disk_iops=80000|min_uncached_disk_mbps=1200|local_nvme=true|min_nics=8
disk_controller=nvme|fabric=infiniband|confidential_computing=snp|trusted_launch=true|min_zones=2&region=westeurope
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
SCOPES = (
    *("", "region=eastus", "region=westeurope", "region=eastus,westeurope", "region=eastus,uksouth,westus2,westeurope"),
    *(
        "os=windows",
        "os=windows&region=eastus,japaneast",
        "region=centralindia",
        "as_of=2026-02-01&region=eastus",
        "as_of=2026-07-01&known_at=2026-08-01",
    ),
    *(f"purchase={purchase}" for purchase in PURCHASE_MODELS[1:]),
    *(f"purchase={purchase}&region=eastus,westeurope" for purchase in PURCHASE_MODELS[1:]),
)


def agreeing(parts: Iterable[str]) -> dict[str, str]:
    """The parameters of some parts, without those that contradict others."""
    chosen = dict(parameter.split("=") for part in parts for parameter in part.split("&") if parameter)
    if "continent" in chosen:
        chosen = {name: value for name, value in chosen.items() if name not in {"country", "provider", "region"}}
    if chosen.get("provider") == "aws":
        chosen.pop("region", None)
    if "min_gpus" in chosen:
        chosen.pop("max_gpus", None)
    return chosen


def every_order() -> Iterator[str]:
    """Every sort key in both directions and every filter, each with another scope."""
    for number, key in enumerate(SORT_KEYS):
        for sign in ("", "-"):
            turn = 2 * number + len(sign)
            chosen = agreeing((SCOPES[turn % len(SCOPES)], FILTERED[turn % len(FILTERED)]))
            yield "&".join(f"{name}={value}" for name, value in chosen.items()) + f"&sort={sign}{key}&limit=90"


def random_questions(count: int) -> Iterator[str]:
    rng = random.Random(16)
    for _ in range(count):
        chosen = agreeing([*rng.sample(FILTERED, rng.randint(0, 3)), rng.choice(SCOPES)])
        sort = ",".join(rng.choice(("", "-")) + key for key in rng.sample(SORT_KEYS, rng.randint(1, 3)))
        limit = rng.choice((1, 7, 50, 500))
        yield "&".join([*(f"{name}={value}" for name, value in chosen.items()), f"sort={sort}&limit={limit}"])


FIXED = [*(f"{one}&limit=500" for one in FILTERED), *every_order()]
RANDOM = [*random_questions(50)]


@pytest.fixture(scope="module")
def session(seeded_engine: Engine) -> Iterator[Session]:
    with Session(seeded_engine) as session:
        yield session


@pytest.fixture(scope="module")
def snapshot(session: Session) -> CatalogSnapshot:
    return load_snapshot(session)


def find(session: Session, search: SizeSearch, snapshot: CatalogSnapshot, offset: int = 0) -> JsonPage:
    return Catalog(session, snapshot, TODAY).ask(find_sizes, search, offset=offset)


def listed_by_sql(session: Session, search: SizeSearch, snapshot: CatalogSnapshot) -> list[str]:
    """The whole list as one statement gives it."""
    search = normalize(search, snapshot)
    return [render_size(row, TODAY) for row in fetch(session, list_query(search, TODAY, snapshot.rules))]


@pytest.mark.parametrize("question", [*FIXED, *one_in(5, first_on_each_kind(0, RANDOM))])
def test_pages_are_the_list_that_one_statement_gives(
    session: Session, snapshot: CatalogSnapshot, question: str
) -> None:
    search = parse_query(question.encode(), SizeSearch)
    expected = listed_by_sql(session, search, snapshot)
    found: list[str] = []
    for _ in range(4 if search.limit < 50 else len(expected) + 1):  # long pages are walked to the end
        page = find(session, search, snapshot)
        assert page.total == len(expected)
        found += page.items
        if page.next_cursor is None:
            break
        search = search.model_copy(update={"cursor": page.next_cursor})
    assert found == expected[: len(found)]
    assert len(found) == (len(expected) if search.limit >= 50 else min(len(expected), 4 * search.limit))


@pytest.mark.first_database
@pytest.mark.parametrize("question", first_on_each_kind(3, one_in(3, FILTERED)))
def test_facets_count_the_sizes_of_the_list(session: Session, snapshot: CatalogSnapshot, question: str) -> None:
    facets = find_facets(Catalog(session, snapshot, TODAY), parse_query(question.encode(), FacetSearch))
    rows = [orjson.loads(row) for row in listed_by_sql(session, parse_query(question.encode(), SizeSearch), snapshot)]
    assert facets.total == len(rows)
    if "series" not in question:
        counts = {one.value: one.count for one in facets.counts["series"]}
        assert counts == {name: sum(row["series"] == name for row in rows) for name in {row["series"] for row in rows}}
    if "vcpus" not in question:
        known = [row["vcpus"] for row in rows if row["vcpus"] is not None]
        assert facets.ranges["vcpus"].unknown == len(rows) - len(known)
        assert (facets.ranges["vcpus"].min, facets.ranges["vcpus"].max) == (
            min(known, default=None),
            max(known, default=None),
        )


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_most_of_these_questions_find_sizes(session: Session, snapshot: CatalogSnapshot) -> None:
    searches = [parse_query(question.encode(), SizeSearch) for question in (*FIXED, *RANDOM)]
    totals = [find(session, search, snapshot).total for search in searches]
    assert sum(total > search.limit for total, search in zip(totals, searches, strict=True)) > len(totals) / 4
    assert sum(total > 0 for total in totals) > len(totals) / 2


def test_every_filter_is_among_these_questions() -> None:
    asked = {pair.partition("=")[0] for question in FILTERED for pair in question.split("&")}
    flags = {name for name in FILTERS if FILTERS[name].values is None} - asked
    assert set(FILTERS) - asked - flags == set(SCOPE_FILTERS) - asked


@pytest.mark.parametrize("offset", [1, 60, 1_000, 100_000])
def test_a_page_by_its_offset_skips_so_many_sizes(session: Session, snapshot: CatalogSnapshot, offset: int) -> None:
    search = SizeSearch(sort=("-network_mbps",), region=("eastus", "westeurope"), limit=20)
    page, expected = find(session, search, snapshot, offset), listed_by_sql(session, search, snapshot)
    assert page.items == expected[offset:][:20]
    if page.items:
        following = find(session, search.model_copy(update={"cursor": page.cursor}), snapshot)
        assert following.items == page.items


@pytest.mark.first_database
@pytest.mark.parametrize("sort", ["gpu_model", "-gpu_model", "name", "-name"])
@pytest.mark.parametrize("text", ["", "a", "h", "m", "zz"])
def test_a_cursor_at_a_text_that_no_size_has_is_between_two_that_sizes_have(
    session: Session, snapshot: CatalogSnapshot, sort: str, text: str
) -> None:
    search = SizeSearch(sort=(sort,), status=("any",), limit=30)
    identity = search.model_dump_json(exclude=search.page_param_names())
    values = [text] if sort.endswith("name") else [text, "nc24"]
    page = find(
        session, search.model_copy(update={"cursor": write_cursor(identity, snapshot.revision, values)}), snapshot
    )
    after = [row for row in listed_by_sql(session, search, snapshot) if _is_after(orjson.loads(row), sort, text)]
    assert page.items == after[:30]


def _is_after(row: dict[str, str | None], sort: str, text: str) -> bool:
    value = row["gpu_model"] if sort.endswith("gpu_model") else str(row["name"]).lower().removeprefix("standard_")
    return value is None or (value < text if sort.startswith("-") else value > text)


@pytest.mark.first_database
def test_a_question_of_a_revision_that_is_gone_is_to_be_asked_again(engine: Engine) -> None:
    sizes, prices = (
        [*size("Standard_X1", vcpus=8), *size("Standard_X2", vcpus=16)],
        [price("X1", "1"), price("X2", "2")],
    )
    ingest(engine, reading(sizes, regions=["eastus"], prices=prices), now=NOW)
    search = SizeSearch(sort=("-vcpus",), limit=1)
    with Session(engine) as session:
        before = load_snapshot(session)
        first = find(session, search, before)
        assert '"Standard_X2"' in first.items[0]
    ingest(engine, reading([*size("Standard_X1", vcpus=32), *size("Standard_X2", vcpus=16)]), now=NOW)
    with Session(engine) as session:
        assert find(session, search, before) == first  # nothing of it is asked of the database again
        for new in ({"min_vcpus": 20}, {"sort": ("vcpus",)}, {"region": ("eastus",)}, {"limit": 2}):
            with pytest.raises(CatalogChanged):
                find(session, SizeSearch(**{"sort": ("-vcpus",), "limit": 1, **new}), before)
        with pytest.raises(CursorGone):
            ask_catalog(
                session,
                TODAY,
                lambda catalog: find_sizes(catalog, search.model_copy(update={"cursor": first.next_cursor})),
            )
        assert '"Standard_X1"' in ask_catalog(session, TODAY, lambda catalog: find_sizes(catalog, search)).items[0]


@pytest.mark.first_database
def test_rows_of_pages_are_kept_up_to_a_bound(
    session: Session, snapshot: CatalogSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, searches = replace(snapshot, rows=KeptRows()), [SizeSearch(sort=(s,), limit=40) for s in ("-vcpus", "vcpus")]
    monkeypatch.setattr(snapshot_module, "MAX_ROW_BYTES", most_bytes := 160_000)
    for search in (*searches, *searches):
        assert find(session, search, kept) == find(session, search, snapshot)
        assert 80_000 < kept.rows.nbytes <= most_bytes  # two pages would take 200,000 bytes


@pytest.mark.first_database
def test_the_oldest_answers_are_dropped_beyond_a_bound(
    session: Session, snapshot: CatalogSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "MAX_ANSWER_BYTES", 20_000)
    own = replace(snapshot, answers=KeptAnswers())
    for text in map(str, range(30)):
        found = Catalog(session, own, TODAY).ask(_found, text)
        assert found.bit_count() == find(session, SizeSearch(q=text, limit=1), snapshot).total
        assert 0 < own.answers.nbytes <= 20_000
    assert own.answers.nbytes > 15_000


@pytest.mark.one_database
def test_the_texts_of_a_question_count_and_very_long_ones_are_not_kept(
    session: Session, snapshot: CatalogSnapshot
) -> None:
    own = replace(snapshot, answers=KeptAnswers())

    def bytes_after(names: int) -> int:
        search = SizeFilter(name=tuple(f"{at:x<100}" for at in range(names)))
        Catalog(session, own, TODAY).ask(lambda catalog: SizeQuestion(catalog, search).found())
        return own.answers.nbytes

    of_one, of_ten, of_sixty = map(bytes_after, (1, 10, 60))
    assert of_one + 1_000 < of_ten < of_one + 2_000
    assert of_sixty == of_ten


def _found(catalog: Catalog, text: str) -> int:
    return SizeQuestion(catalog, SizeFilter(q=text)).found()


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_prices_of_many_days_are_kept_up_to_a_bound(
    session: Session, snapshot: CatalogSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "MAX_ANSWER_BYTES", 3 * 2**20)
    own = replace(snapshot, answers=KeptAnswers())
    for day in range(1, 4):  # each alone has more than 1.5 MiB
        Catalog(session, own, TODAY).ask(find_facets, FacetSearch(as_of=date(2026, 5, day), max_usd_per_hour=5))
    assert 2**20 < own.answers.nbytes <= 3 * 2**20


@pytest.mark.first_database
def test_an_unknown_region_is_refused(session: Session, snapshot: CatalogSnapshot) -> None:
    with pytest.raises(BadQuery, match="region"):
        find(session, SizeSearch(sort=("-vcpus",), region=("nowhere",)), snapshot)


def test_facets_of_an_empty_catalog_are_empty(engine: Engine) -> None:
    with Session(engine) as session:
        facets = find_facets(load_catalog(session, TODAY), SizeFilter())
    assert (facets.total, facets.counts["series"]) == (0, [])
    assert facets.ranges["vcpus"].unknown == 0


@pytest.mark.one_database
@given(st.integers(0, 70), st.sets(st.integers(0, 69)))
def test_a_set_has_the_places_that_it_is_made_of(count: int, places: set[int]) -> None:
    keys = [f"{number:03}" for number in range(count)]
    sets = SizeSets(keys)
    inside = {place for place in places if place < count}
    members = sets.set_of(inside)
    assert list(sets.places_in(members)) == sorted(inside)
    assert [flag == IS_SET for flag in sets.flags(members)] == [place in inside for place in range(count)]
    assert (members.bit_count(), sets.all.bit_count()) == (len(inside), count)
