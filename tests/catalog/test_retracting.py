"""Retraction: rows that a file or source no longer states go, as if they had never been ingested."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.models import DiskPrice, Offer, Price, Size, SizeAlias, Source
from app.catalog.purchases import ANY_REGION
from app.catalog.revisions import latest_revision
from app.catalog.store.revisions import compute_digest, find_sources_taken_in
from app.db.engines import read_session as reads
from app.errors import BadData, BadQuery, NotFound
from app.ingest.registry import read_csv_source
from app.ingest.run import IngestOutcome, forget, ingest
from app.ingest.sources import reference
from app.ingest.sources.documents import read_documents
from tests.factories import NOW, price, reading, size, source
from tests.ingest.pages import MEMORIES

SOURCES = """\
id,title,publisher,kind,url,published_on
list,Price list,Someone,third_party,https://example.org/list,2026-08-15
other,Another,Someone,third_party,https://example.org/other,2026-08-15
places,Regions,Someone,vendor_page,https://example.org/places,2026-08-15
"""
HEADERS = {
    "prices": "size,region,os,purchase,usd_per_hour,valid_from,approximate_date,source",
    "regions": "code,name,geography,source",
    "aliases": "alias,size,source,reason",
    "benchmarks": "id,series,scope,workload,metric,value,unit,comparison,source",
    "corrections": "kind,subject,field,source,value,reason",
    "gpus": "id,source,model,memory_gib",
    "sizes": "id,source,vcpus",
    "disks": ",".join(reference.DISK_COLUMNS),
    "disk_prices": ",".join(reference.DISK_PRICE_COLUMNS),
}
PAGE = reading([*size("Standard_X1", vcpus=8, series="X1"), *size("Standard_X2", vcpus=16, series="X1")])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sources.csv").write_text(SOURCES)
    return tmp_path


def write(folder: Path, kind: str, *rows: str, name: str | None = None) -> Path:
    path = folder / (name or f"{kind}.csv")
    path.write_text("\n".join([HEADERS[kind], *rows]) + "\n")
    return path


def cost(size: str, *, region: str = "eastus", usd: str = "1.5", by: str = "list") -> str:
    return f"{size},{region},linux,on_demand,{usd},2026-08-15,false,{by}"


def ingest_file(engine: Engine, kind: str, path: Path, **more: Any) -> IngestOutcome:
    allowed = {name: more.pop(name) for name in ("new_sizes",) if name in more}
    return ingest(engine, read_csv_source(kind, path, **allowed), now=NOW, **more)


def start(engine: Engine, folder: Path) -> None:
    ingest(engine, PAGE, now=NOW)
    ingest_file(engine, "regions", write(folder, "regions", "eastus,East US,,places", "westus,West US,,places"))


def keys(engine: Engine, model: Any) -> set[tuple[Any, ...]]:
    table = table_of(model)
    with reads(engine) as session:
        return {tuple(row) for row in session.execute(select(*table.primary_key))}


def digest(engine: Engine) -> str:
    """Return the stored digest, and check that it is the one computed from the rows."""
    with reads(engine) as session:
        revision, (read, _) = latest_revision(session), compute_digest(session)
    assert revision is not None
    assert revision["digest"] == read
    return read


def tables(outcome: IngestOutcome) -> Mapping[str, tuple[int, int, int]]:
    return {name: (c.added, c.changed, c.removed) for name, c in outcome.summary.changes.items() if c.has_changes}


@pytest.mark.takes_seconds
def test_a_price_list_that_is_read_again_retracts_the_rows_it_no_longer_has(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    right = [cost("X1"), cost("X2", usd="2.5")]
    ingest_file(engine, "prices", write(folder, "prices", *right))
    before = digest(engine)
    wrong = [*right, cost("X1", region="westus", usd="9"), cost("Standard_X11")]
    ingest_file(engine, "prices", write(folder, "prices", *wrong), new_sizes=True)
    assert ("x11",) in keys(engine, Size)
    outcome = ingest_file(engine, "prices", write(folder, "prices", *right))
    assert tables(outcome)["price"] == (0, 0, 2)
    assert tables(outcome)["size"] == (0, 0, 1)
    assert digest(engine) == before
    assert {row[2] for row in keys(engine, Offer)} == {"x1", "x2"}
    assert {row[0] for row in keys(engine, Offer)} == {*ANY_REGION.values(), "eastus"}
    again = ingest_file(engine, "prices", folder / "prices.csv")
    assert (again.new_revision, tables(again)) == (False, {})


@pytest.mark.takes_seconds
def test_a_price_is_of_the_file_that_has_it_last_also_where_it_is_the_same(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    both = [cost("X1"), cost("X2")]
    january, february = (write(folder, "prices", *both, name=f"{month}.csv") for month in ("jan", "feb"))
    assert tables(ingest_file(engine, "prices", january))["price"] == (2, 0, 0)
    assert tables(ingest_file(engine, "prices", february)) == {}
    shorter = ingest_file(engine, "prices", write(folder, "prices", both[0], name="jan.csv"))
    assert "price" not in tables(shorter)
    elsewhere = write(folder, "prices", cost("X1", region="westus"), name="feb.csv")
    assert tables(ingest_file(engine, "prices", elsewhere))["price"] == (1, 0, 1)
    assert {row[:2] for row in keys(engine, Price)} == {("x1", "eastus"), ("x1", "westus")}  # the former is of jan.csv
    digest(engine)


def test_a_list_of_a_header_alone_takes_no_price_away_and_says_what_does(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    path = write(folder, "prices")
    assert tables(ingest_file(engine, "prices", path)).keys() <= {"source"}  # it never had one
    ingest_file(engine, "prices", write(folder, "prices", cost("X1"), cost("X2")))
    before = digest(engine)
    with pytest.raises(BadData, match=r"none of the 2 prices .*, and no other; `vmsizes forget SOURCE` .*: list"):
        ingest_file(engine, "prices", write(folder, "prices"))
    assert digest(engine) == before
    forget(engine, "list", now=NOW)
    assert keys(engine, Price) == set()
    assert tables(ingest_file(engine, "prices", path)).keys() <= {"source"}


@pytest.mark.takes_seconds
def test_rows_of_another_file_or_another_source_stay(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    ingest_file(engine, "prices", write(folder, "prices", cost("X1"), cost("X2")))
    ingest_file(engine, "prices", write(folder, "prices", cost("X1", region="westus"), name="more.csv"))
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "sources.csv").write_text("\n".join(SOURCES.splitlines()[i] for i in (0, 2)) + "\n")
    other = write(elsewhere, "prices", cost("X2", region="westus", by="other"))
    other.rename(folder / "prices.csv")
    ingest(engine, read_csv_source("prices", folder / "prices.csv", elsewhere / "sources.csv"), now=NOW)
    assert len(keys(engine, Price)) == 4
    ingest_file(engine, "prices", write(folder, "prices", cost("X2")))
    assert {(row[0], row[1]) for row in keys(engine, Price)} == {("x1", "westus"), ("x2", "eastus")}


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_an_unknown_size_is_refused_with_its_line_and_the_nearest(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    path = write(folder, "prices", cost("X1"), cost("Standard_X2x"))
    with pytest.raises(BadData, match=r"'Standard_X2x': there is no such size; did you mean Standard_X2\?") as caught:
        ingest_file(engine, "prices", path)
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(path), 3, "size")
    assert keys(engine, Price) == set()
    ingest_file(engine, "prices", path, new_sizes=True)
    assert ("x2x",) in keys(engine, Size)


@pytest.mark.takes_seconds
@pytest.mark.first_database
@pytest.mark.parametrize("what", ["page", "prices"])
def test_a_dry_run_says_what_the_real_run_does_and_writes_nothing(engine: Engine, folder: Path, what: str) -> None:
    start(engine, folder)
    path = write(folder, "prices", cost("X1"))
    news = PAGE if what == "page" else read_csv_source("prices", path)
    news = reading(size("Standard_X3", vcpus=4)) if what == "page" else news
    before = digest(engine)
    tried = ingest(engine, news, now=NOW, dry_run=True)
    assert (tried.written, tried.new_revision, digest(engine)) == (False, True, before)
    done = ingest(engine, news, now=NOW)
    assert (done.revision, done.summary.changes) == (tried.revision, tried.summary.changes)


@pytest.mark.takes_seconds
def test_forgetting_a_source_leaves_the_catalog_as_if_it_had_never_been_read(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    ingest_file(engine, "prices", write(folder, "prices", cost("X1"), cost("X2")))
    before = digest(engine)
    shown = keys(engine, Offer)
    notes = [*size("Standard_X1", by="notes", vcpus=99, memory_gib=7), *size("X9", by="notes", series="X9")]
    ingest(engine, reading(notes, sources=[source("notes")]), now=NOW)
    rows = [cost("X1", usd="1", by="other"), cost("X9", by="other")]
    ingest_file(engine, "prices", write(folder, "prices", *rows, name="o.csv"))
    ingest_file(engine, "aliases", write(folder, "aliases", "X1old,X1,other,said so"))
    ingest_file(engine, "benchmarks", write(folder, "benchmarks", "b,X9,vm,w,m,1,u,,other"))
    for name in ("other", "notes"):
        tried = forget(engine, name, now=NOW, dry_run=True)
        done = forget(engine, name, now=NOW)
        assert done.summary.changes == tried.summary.changes
        assert (done.new_revision, done.revision["source_ids"]) == (True, [name])
    assert keys(engine, SizeAlias) == set()
    assert {("x1",), ("x2",)} == keys(engine, Size)
    ingest_file(engine, "prices", folder / "prices.csv")
    assert digest(engine) == before
    assert keys(engine, Offer) == shown


@pytest.mark.takes_seconds
def test_a_whole_ingest_is_taken_back(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    before = digest(engine)
    notes = [*size("Standard_X1", by="a", vcpus=99), *size("X9", by="b", series="X9")]
    news = reading(notes, sources=[source("a"), source("b")], prices=[price("X9", "1", source="b")])
    taken = ingest(engine, news, now=NOW).revision["number"]
    later = ingest(engine, reading(size("X7", by="c", vcpus=7), sources=[source("a"), source("c")]), now=NOW).revision
    with reads(engine) as session:
        sources, earlier = find_sources_taken_in(session, taken)
        assert (sources, earlier) == (["a", "b"], {"page": 1, "prices": 1})
        assert find_sources_taken_in(session, later["number"]) == (["c"], {"a": taken, "page": 1, "prices": 1})
        with pytest.raises(NotFound, match=r"^There is no revision 99\.$"):
            find_sources_taken_in(session, 99)
    forget(engine, "c", now=NOW)
    outcome = forget(engine, *sources, now=NOW)
    assert outcome.revision["source_ids"] == sources
    assert digest(engine) == before
    with reads(engine) as session:
        assert find_sources_taken_in(session, taken) == ([], {"page": 1, "prices": 1})
    again = ingest(engine, news, now=NOW).revision["number"]  # what was forgotten is new again
    with reads(engine) as session:
        assert find_sources_taken_in(session, again)[0] == sources


@pytest.mark.first_database
def test_an_unknown_source_and_one_whose_regions_are_in_use_cannot_be_forgotten(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    ingest_file(engine, "prices", write(folder, "prices", cost("X1")))
    with pytest.raises(NotFound, match=r"There is no source named 'place'\. Did you mean places"):
        forget(engine, "place", now=NOW)
    with pytest.raises(BadQuery, match="names the region eastus, which prices or availability of other"):
        forget(engine, "places", now=NOW)
    forget(engine, "list", now=NOW)
    forget(engine, "places", now=NOW)
    assert {row[0] for row in keys(engine, Source)} == {"page", "prices"}
    digest(engine)


@pytest.mark.takes_seconds
def test_a_listed_table_that_is_read_again_retracts_its_rows(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    before = digest(engine)
    files = {
        "aliases": "X1old,X1,list,said so",
        "benchmarks": "b,X1,vm,w,m,1,u,,list",
        "corrections": "size,X1,vcpus,page,9,seen",
        "gpus": "g1,list,G1,80",
    }
    for kind, row in files.items():
        ingest_file(engine, kind, write(folder, kind, row))
    for kind in reversed(files):
        assert ingest_file(engine, kind, write(folder, kind)).new_revision
    forget(engine, "list", now=NOW)
    assert digest(engine) == before


@pytest.mark.takes_seconds
@pytest.mark.first_database
@pytest.mark.parametrize(
    ("kind", "row", "column"),
    [
        ("regions", "eastus,Eastern US,,{}", "code"),
        ("aliases", "X1old,X1,{},said so", "alias"),
        ("benchmarks", "b,X1,vm,w,m,1,u,,{}", "id"),
        ("disks", "p30-lrs,premium_ssd,lrs,P30,Premium_LRS,,1024,5000,200,0,0,,,,,5,{}", "id"),
    ],
)
def test_what_a_source_states_is_not_taken_over_by_another(
    engine: Engine, folder: Path, kind: str, row: str, column: str
) -> None:
    start(engine, folder)
    first = "places" if kind == "regions" else "list"
    ingest_file(engine, kind, write(folder, kind, row.format(first), name="first.csv"))
    with pytest.raises(BadData, match=f"the source {first} states it already; leave it out, cite that") as caught:
        ingest_file(engine, kind, write(folder, kind, row.format("other")))
    assert (caught.value.line, caught.value.column) == (2, column)
    ingest_file(engine, kind, write(folder, kind, row.format(first)))  # of the same source, in two files
    moved = write(folder, kind, name="first.csv")
    assert tables(ingest_file(engine, kind, moved)) == {}
    if kind != "regions":  # which another file states, too
        assert ingest_file(engine, kind, write(folder, kind, row.format("other"))).new_revision
        forget(engine, "other", now=NOW)


def test_a_region_with_prices_outlives_its_list_and_is_reported(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    ingest_file(engine, "prices", write(folder, "prices", cost("X1")))
    outcome = ingest_file(engine, "regions", write(folder, "regions"))
    assert tables(outcome) == {"region": (0, 0, 1)}
    assert [report.cell for report in outcome.summary.reports] == ["eastus"]
    digest(engine)


P30 = "p30-lrs,premium_ssd,lrs,P30,Premium_LRS,,1024,5000,200,0,0,,,,,5,list"


def test_prices_of_disks_that_a_file_no_longer_has_go(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    ingest_file(engine, "disks", write(folder, "disks", P30))
    of_day = "p30-lrs,eastus,month,{},2026-08-{},other"
    ingest_file(engine, "disk_prices", write(folder, "disk_prices", of_day.format("148.68", "01")))
    before = digest(engine)
    both = (of_day.format("148.68", "01"), of_day.format("150", "02"))
    assert tables(ingest_file(engine, "disk_prices", write(folder, "disk_prices", *both)))["disk_price"] == (1, 0, 0)
    assert len(keys(engine, DiskPrice)) == 2
    outcome = ingest_file(engine, "disk_prices", write(folder, "disk_prices", both[0]))
    assert tables(outcome)["disk_price"] == (0, 0, 1)
    assert digest(engine) == before


@pytest.mark.takes_seconds
def test_a_disk_and_a_region_outlive_their_lists_until_the_prices_of_the_disk_go(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    before = digest(engine)
    ingest_file(engine, "disks", write(folder, "disks", P30))
    ingest_file(engine, "disk_prices", write(folder, "disk_prices", "p30-lrs,eastus,month,1,2026-08-01,other"))
    for kind, priced in (("disks", "p30-lrs"), ("regions", "eastus")):
        outcome = ingest_file(engine, kind, write(folder, kind))
        assert [report.cell for report in outcome.summary.reports] == [priced]
    for of, what in (("list", "disk p30-lrs"), ("places", "region eastus")):
        with pytest.raises(BadQuery, match=f"names the {what}, which prices or availability of other sources are for"):
            forget(engine, of, now=NOW)
    forget(engine, "other", now=NOW)
    forget(engine, "list", now=NOW)
    ingest_file(engine, "regions", write(folder, "regions", "eastus,East US,,places", "westus,West US,,places"))
    assert digest(engine) == before


@pytest.mark.first_database
def test_a_list_of_sizes_that_drops_a_source_retracts_its_facts(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    ingest_file(engine, "sizes", write(folder, "sizes", "X8,list,4", "X9,other,8"))
    ingest_file(engine, "sizes", write(folder, "sizes", "X8,list,4"))
    assert ("x8",) in keys(engine, Size)
    assert ("x9",) not in keys(engine, Size)
    digest(engine)


@pytest.mark.first_database
@pytest.mark.parametrize("kind", ["sizes", "aliases", "corrections"])
def test_a_header_alone_that_was_never_read_is_nothing_to_read(engine: Engine, folder: Path, kind: str) -> None:
    start(engine, folder)
    with pytest.raises(BadData, match=rf"{kind}\.csv: has no rows below its header"):
        ingest_file(engine, kind, write(folder, kind))


@pytest.mark.first_database
def test_a_header_alone_takes_rows_away_also_where_it_is_read_again(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    ingest_file(engine, "aliases", write(folder, "aliases", "X1old,X1,list,said so"))
    assert tables(ingest_file(engine, "aliases", write(folder, "aliases")))["size_alias"] == (0, 0, 1)
    assert not ingest_file(engine, "aliases", write(folder, "aliases")).new_revision


def test_rows_that_all_state_nothing_are_nothing_to_read(folder: Path) -> None:
    with pytest.raises(BadData, match=r"sizes\.csv: states nothing: all cells are blank"):
        read_csv_source("sizes", write(folder, "sizes", "X1,list,", "X2,list,"))


@pytest.mark.first_database
def test_a_page_with_a_corrected_size_name_retracts_the_misspelled_size(engine: Engine, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    table = "# NX v1 series\n\n| Size | vCPUs |\n|---|---|\n| Standard_NX1_v1 | 4 |\n| {} | 8 |\n"
    page.write_text(table.format("Standard_NX22_v1"))
    ingest(engine, read_documents([page], gpu_memories=MEMORIES), now=NOW)
    page.write_text(table.format("Standard_NX2_v1"))
    ingest(engine, read_documents([page], gpu_memories=MEMORIES), now=NOW)
    assert keys(engine, Size) == {("nx1_v1",), ("nx2_v1",)}
    digest(engine)


@pytest.mark.takes_seconds
def test_prices_that_an_older_version_read_are_overwritten_and_can_be_forgotten(engine: Engine, folder: Path) -> None:
    start(engine, folder)
    old = [price("X1", "3", source="list"), price("X2", "3", source="list")]
    ingest(engine, reading(prices=old, sources=[source("list")]), now=NOW)
    with engine.begin() as connection:
        connection.exec_driver_sql("update price set file_id = null")
    row = "X1,eastus,linux,on_demand,4,2026-06-18,false,list"
    assert tables(ingest_file(engine, "prices", write(folder, "prices", row)))["price"] == (0, 1, 0)
    assert tables(forget(engine, "list", now=NOW))["price"] == (0, 0, 2)
