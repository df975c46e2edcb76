"""Local NVMe disks that a page calls temporary disks."""

from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.price_scope import LOCAL_DISK_GIB
from app.ingest.run import ingest
from tests.factories import NOW, reading, statement
from tests.ingest.pages import facts, read
from tests.sql import select_rows

TABLE = """
| Size Name | Max Temp Storage Disks (Qty.) | Temp Disk Size (GiB) |
|---|---|---|
| Standard_NX8_v6 | 1 | 440 |
| Standard_NX32_v6 | 4 | 440 |
"""
HOST = "| Part | Quantity | Specs |\n|---|---|---|\n| Processor | 8 vCPUs | |\n| Local Storage | {} | {} |\n"


@pytest.mark.parametrize(
    "text",
    [
        "- [Temporary local NVMe disks](faq.yml): Supported\n",
        "| Feature | Support |\n|---|---|\n| Temporary local NVMe disks | Supported |\n",
        "- For NXv6, temp disk refers to the NVMe local data disks used by the VM.\n",
        "- NVMe temp disks are presented as raw NVMe devices that need to be initialized before use.\n",
        HOST.format("1 - 4 NVMe disks", "440 GiB/Disk"),
    ],
    ids=["feature", "table of features", "sentence", "note of a table", "host"],
)
def test_temporary_disks_are_nvme_disks_where_the_page_says_so(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, f"{text}\n{TABLE}", title="NX v6-series")
    figures = {name: facts(found, name) for name in ("Standard_NX8_v6", "Standard_NX32_v6")}
    assert {name: (one["nvme_disk_gib"], one["nvme_disk_count"]) for name, one in figures.items()} == {
        "Standard_NX8_v6": (440, 1),
        "Standard_NX32_v6": (1760, 4),
    }
    assert all("temp_disk_gib" not in one and "temp_disk_count" not in one for one in figures.values())
    notes = [fact.note for fact in found.facts if fact.field == "nvme_disk_gib"]
    assert all(note and "NVMe, as line" in note for note in notes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- Temporary local NVMe disks: Not Supported\n",
        HOST.format("1 Temp Disk<br>1 - 4 NVMe disks", "440 GiB"),
        "- Temp disks are presented as SCSI devices. NVMe disks are presented as raw devices.\n",
    ],
    ids=["nothing", "not supported", "both kinds", "another disk"],
)
def test_temporary_disks_stay_such_where_the_page_does_not(tmp_path: Path, text: str) -> None:
    found = facts(read(tmp_path, f"{text}\n{TABLE}", title="NX v6-series"), "Standard_NX32_v6")
    assert (found["temp_disk_gib"], found.get("nvme_disk_gib")) == (1760, None)


def test_a_page_with_columns_of_both_kinds_has_both(tmp_path: Path) -> None:
    header = "| Size Name | Temp Disk Size (GiB) | Max NVMe Disks (Qty.) | NVMe Disk Size (GiB) |\n|---|---|---|---|\n"
    page = f"- Temporary local NVMe disks: Supported\n\n{header}| Standard_NX8_v6 | 80 | 1 | 1920 |\n"
    found = facts(read(tmp_path, page, title="NX v6-series"), "Standard_NX8_v6")
    assert (found["temp_disk_gib"], found["nvme_disk_gib"]) == (80, 1920)


def test_no_local_disk_stays_no_temporary_disk(tmp_path: Path) -> None:
    page = "- Temporary local NVMe disks: Supported\n\n| Size Name | vCPUs | Temp Disk Size (GiB) |\n|---|---|---|\n"
    found = facts(read(tmp_path, f"{page}| Standard_NX8_v6 | 8 | 0 |\n", title="NX v6-series"), "Standard_NX8_v6")
    assert (found["temp_disk_gib"], found.get("nvme_disk_gib")) == (0, None)


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("temporary", "nvme", "local"), [(440, 440, 440), (80, 1920, 2000), (0, 440, 440), (0, 0, 0), (None, 440, 440)]
)
def test_one_disk_under_two_names_counts_once(engine: Engine, temporary: int | None, nvme: int, local: int) -> None:
    stated = [("nvme_disk_gib", nvme), ("temp_disk_gib", temporary)]
    known = [statement(field, gib) for field, gib in stated if gib is not None]
    ingest(engine, reading(known), now=NOW)
    with Session(engine) as session:
        assert select_rows(session, lambda _sql: f"select {LOCAL_DISK_GIB} as gib from size") == [(local,)]
