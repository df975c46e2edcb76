"""Pages that would add sizes which do not exist: hosts, names with blanks or a footnote's mark, other vendors."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Fact, Size
from app.errors import BadData
from app.ingest.registry import read_pages
from app.ingest.run import ingest
from tests.factories import NOW, reading, size
from tests.ingest.pages import FRONT, details, read, read_files
from tests.seeded import PROJECT

TABLE = "| Size | vCPU | Memory: GiB |\n|---|---|---|\n"
HOSTS = """
# NX hosts
## NXv4
### NXv4-Type1

| Physical cores | Available vCPUs | Available RAM | VM Size | # VMs |
|---|---|---|---|---|
| 128 | 128 | 448 GiB | NX4 v4 | 30 |
| | | | NX8 v4 | 15 |
"""


def ingest_page(engine: Engine, folder: Path, text: str) -> list[str]:
    """Ingest a vendor's page; return the reports."""
    page = folder / "page.md"
    page.write_text(FRONT.format(title="NX v4-series") + text)
    outcome = ingest(engine, read_pages([page], PROJECT / "seeds"), now=NOW)
    return [str(report) for report in outcome.summary.reports]


def vcpus(engine: Engine) -> dict[str, int | None]:
    with Session(engine) as session:
        return {row.name: row.vcpus for row in session.execute(select(table_of(Size)))}


def test_a_page_of_dedicated_hosts_has_no_facts_of_sizes(tmp_path: Path) -> None:
    found = read(tmp_path, HOSTS, title="NX hosts")
    assert found.facts == ()
    assert "is about dedicated hosts" in details(found)[0]
    with pytest.raises(BadData, match=r"page\.md.*is about dedicated hosts"):
        read_pages([tmp_path / "page.md"], PROJECT / "seeds")


@pytest.mark.first_database
@pytest.mark.parametrize("name", ["NX8 v4", "Standard_NX8_v41"])
def test_a_doubtful_name_that_no_list_of_sizes_has_is_refused(engine: Engine, tmp_path: Path, name: str) -> None:
    page = f"{TABLE}| Standard_NX4_v4 | 4 | 16 |\n| {name} | 8 | 32 |\n"
    for _ in range(2):  # what the page itself said does not make it known
        (report,) = [one for one in ingest_page(engine, tmp_path, page) if "does not fit" not in one]
        assert f"page.md:{len(FRONT.splitlines()) + 4}" in report
        assert name in report
        assert vcpus(engine) == {"Standard_NX4_v4": 4}


@pytest.mark.first_database
@pytest.mark.parametrize(("name", "known"), [("NX8 v4", "Standard_NX8_v4"), ("Standard_NX8_v41", "Standard_NX8_v41")])
def test_a_doubtful_name_that_a_list_of_sizes_has_is_that_size(
    engine: Engine, tmp_path: Path, name: str, known: str
) -> None:
    ingest(engine, reading(size(known, arch="x64")), now=NOW)
    reports = ingest_page(engine, tmp_path, f"{TABLE}| {name} | 8 | 32 |\n")
    assert [one for one in reports if "left out" in one] == []
    assert vcpus(engine) == {known: 8}
    with Session(engine) as session:
        fact = table_of(Fact).c
        facts = session.execute(select(fact.subject).where(fact.field == "vcpus")).scalars().all()
    assert facts == [known.lower().removeprefix("standard_")]


@pytest.mark.parametrize("kind", ["vendor_page", "vendor_announcement"])
def test_a_page_of_another_vendor_states_nothing_of_sizes(tmp_path: Path, kind: str) -> None:
    text = f"---\npublisher: Example Cloud\nkind: {kind}\n---\n\n# NX v4-series\n\n{TABLE}| NX4_v4 | 4 | 16 |\n"
    found = read_files(tmp_path, {"page.md": text})
    assert found.facts == ()
    said = "is a page of Example Cloud, whose sizes the catalog does not have: it has those of "
    said += "Azure, AWS, Google Cloud, Oracle Cloud, CoreWeave, Hyperstack, Lambda, Nebius, RunPod, Verda"
    assert details(found) == [f"{tmp_path / 'page.md'}:1: {said}"]


def test_a_name_that_the_provider_does_not_write_so_is_refused(tmp_path: Path) -> None:
    text = f"---\npublisher: Example Cloud\n---\n\n# Notes\n\n{TABLE}| x5.48large | 4 | 16 |\n| NX4_v4 | 4 | 16 |\n"
    found = read_files(tmp_path, {"page.md": text})
    assert {fact.subject for fact in found.facts} == {"NX4_v4"}
    assert any("is not how Azure names sizes" in text and "x5.48large" in text for text in details(found))


def test_a_third_party_that_describes_sizes_of_the_provider_is_read(tmp_path: Path) -> None:
    text = f"---\npublisher: Example Blog\n---\n\n# Notes\n\n{TABLE}| NX4_v4 | 4 | 16 |\n"
    assert {fact.field for fact in read_files(tmp_path, {"page.md": text}).facts} == {"vcpus", "memory_gib"}
