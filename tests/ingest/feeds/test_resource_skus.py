"""What an entry of the Resource SKUs API states of a size."""

import json
import tracemalloc
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from app.catalog.fields import SIZE_FIELDS
from app.catalog.readings import Reading
from app.errors import BadData
from app.ingest.feeds.resource_skus import READERS, SkuMapper, digest_of, read_entries
from tests.ingest.feeds.skus import DISK, Entry, entry

DAY = date(2026, 8, 1)


def mapped(*entries: Entry) -> Reading:
    mapper = SkuMapper(regions={"southcentralus", "westus3"})
    for one in entries:
        mapper.add(one)
    return mapper.finish(day=DAY, sha256="0")


def facts(reading: Reading) -> dict[str, Any]:
    return {fact.field: fact.value for fact in reading.facts}


def stated(field: str, **capabilities: str | None) -> Any:
    return facts(mapped(entry(**capabilities))).get(field)


def test_an_entry_states_its_capabilities_in_the_units_of_the_catalog() -> None:
    reading = mapped(entry())
    assert facts(reading) == {
        "quota_family": "StandardNCADSA100v4Family",
        "vcpus": 24,
        "memory_gib": 220,
        "arch": "x64",
        "temp_disk_gib": 64,
        "nvme_disk_gib": Decimal("894.0693359375"),
        "nvme_disk_count": 1,
        "max_data_disks": 8,
        "uncached_disk_iops": 30000,
        "uncached_disk_mbps": 1024,
        "max_nics": 2,
        "infiniband": False,
        "ultra_disk": True,
        "accelerated_networking": True,
        "generation_1": False,
        "generation_2": True,
    }
    assert {fact.subject for fact in reading.facts} == {"Standard_NC24ads_A100_v4"}
    assert not reading.reports


def test_the_source_is_the_vendors_api_and_its_facts_replace_those_of_the_day_before() -> None:
    reading = mapped(entry())
    (source,), (file,) = reading.sources, reading.files
    assert (source.id, source.kind, source.published_on) == ("azure-resource-skus", "vendor_api", DAY)
    assert {(fact.file, fact.source) for fact in reading.facts} == {(file.file, source.id)}
    assert file.states_facts


def test_a_fact_keeps_the_text_of_its_capability() -> None:
    raw = {fact.field: fact.raw for fact in mapped(entry()).facts}
    assert (raw["temp_disk_gib"], raw["uncached_disk_mbps"]) == ("65536", "1024000000")


def test_every_field_that_is_read_is_a_field_of_a_size() -> None:
    assert READERS.keys() <= SIZE_FIELDS.keys()


def test_restrictions_are_not_taken() -> None:
    """They are those of the subscription that asked."""
    text = repr(mapped(entry()))
    assert "NotAvailableForSubscription" not in text
    assert "restriction" not in text


def places(reading: Reading) -> set[tuple[str, str, str]]:
    return {(row.size, row.region, row.zones) for row in reading.availability}


def test_the_regions_and_zones_of_a_size_are_its_availability() -> None:
    name = "Standard_NC24ads_A100_v4"
    without_zones = entry(name, "WestUS3") | {"locationInfo": [{"location": "WestUS3", "zones": []}]}
    assert places(mapped(entry(), without_zones)) == {(name, "southcentralus", "1 3"), (name, "westus3", "")}


def test_an_entry_without_details_of_its_location_is_offered_there() -> None:
    assert places(mapped(entry() | {"locationInfo": None})) == {("Standard_NC24ads_A100_v4", "southcentralus", "")}


def test_an_entry_without_any_capability_adds_no_size() -> None:
    reading = mapped(entry() | {"capabilities": [], "family": ""})
    assert (reading.facts, reading.availability) == ((), ())


def test_a_region_that_the_catalog_lacks_is_reported_once() -> None:
    reading = mapped(entry("Standard_A", "atlantis"), entry("Standard_B", "atlantis"))
    assert not reading.availability
    (report,) = reading.reports
    assert (report.cell, report.detail) == ("atlantis", "the catalog has no such region; not taken")


def test_the_number_of_gpus_is_not_taken() -> None:
    """The API counts a sixth of a GPU as one."""
    assert stated("gpu_count") is None


@pytest.mark.parametrize(
    ("name", "capabilities", "vcpus"),
    [
        ("Standard_M8-2ms", {"vCPUs": "8", "vCPUsAvailable": "2", "ParentSize": "Standard_M8ms"}, 2),
        ("Standard_M8-2ms", {"vCPUs": "8", "ParentSize": "Standard_M8ms"}, None),
        ("Standard_HC44-16rs", {"vCPUs": "44"}, None),
        ("Standard_HC44rs", {"vCPUs": "44"}, 44),
        ("Standard_D2s_v5", {"vCPUs": "2", "vCPUsAvailable": "2"}, 2),
    ],
)
def test_the_vcpus_of_a_constrained_size_are_never_those_of_its_parent(
    name: str, capabilities: dict[str, str], vcpus: int | None
) -> None:
    found = facts(mapped(entry(name, **capabilities)))
    assert found.get("vcpus") == vcpus
    assert found.get("parent_size") == capabilities.get("ParentSize")


@pytest.mark.parametrize(
    ("field", "capabilities", "value"),
    [
        ("memory_gib", {"MemoryGB": "218.75"}, Decimal("218.75")),
        ("memory_gib", {"MemoryGB": "0.5"}, Decimal("0.5")),
        ("memory_gib", {"MemoryGB": None}, None),
        ("memory_gib", {"MemoryGB": ""}, None),
        ("retirement_date", {"RetirementDateUtc": "09/03/2024"}, date(2024, 9, 3)),
        ("retirement_date", {"RetirementDateUtc": "08/31/2023"}, date(2023, 8, 31)),
        ("trusted_launch", {"TrustedLaunchDisabled": "True"}, False),
        ("trusted_launch", {"TrustedLaunchDisabled": "False"}, True),
        ("trusted_launch", {}, None),
        ("generation_1", {"HyperVGenerations": "V1,V2"}, True),
        ("generation_2", {"HyperVGenerations": "V1"}, False),
        ("scsi_interface", {"DiskControllerTypes": "SCSI,NVMe"}, True),
        ("scsi_interface", {"DiskControllerTypes": "NVMe"}, False),
        ("arch", {"CpuArchitectureType": "Arm64"}, "arm64"),
        ("confidential_computing", {"ConfidentialComputingType": "SNP"}, "SNP"),
        ("temp_disk_gib", {"MaxResourceVolumeMB": "0", "NvmeDiskSizeInMiB": None}, 0),
        ("temp_disk_gib", {"MaxResourceVolumeMB": "0"}, None),
        ("nvme_disk_count", {"NvmeDiskSizeInMiB": "7208960", "NvmeSizePerDiskInMiB": "1802240"}, 4),
        ("nvme_disk_count", {"NvmeSizePerDiskInMiB": "0"}, None),
    ],
)
def test_a_capability_is_read_as_what_it_means(field: str, capabilities: dict[str, str | None], value: object) -> None:
    assert stated(field, **capabilities) == value


@pytest.mark.parametrize(
    ("field", "capability", "value", "allowed"),
    [
        ("retirement_date", "RetirementDateUtc", "31/08/2023", "a date written as MM/DD/YYYY"),
        ("premium_storage", "PremiumIO", "yes", "True or False"),
        ("memory_gib", "MemoryGB", "much", "a number from 0, written like 3.5"),
        ("memory_gib", "MemoryGB", "-1", "a number from 0, written like 3.5"),
        ("memory_gib", "MemoryGB", "1e-99999999", "a number from 0, written like 3.5"),
        ("memory_gib", "MemoryGB", "1000000000000", "below 1,000,000,000,000 GiB"),
        ("max_nics", "MaxNetworkInterfaces", "2.5", "a whole number"),
        ("vcpus", "vCPUs", "3000000000", "at most 2147483647"),
        ("arch", "CpuArchitectureType", "riscv", "x64 or Arm64"),
        ("nvme_disk_count", "NvmeSizePerDiskInMiB", "all", "a number from 0, written like 3.5"),
    ],
)
def test_a_value_of_another_kind_is_reported_and_the_rest_is_taken(
    field: str, capability: str, value: str, allowed: str
) -> None:
    reading = mapped(entry(**{capability: value}))
    assert field not in facts(reading)
    assert facts(reading)["max_data_disks"] == 8
    (report,) = reading.reports
    assert (report.column, report.cell) == (capability, value)
    assert report.detail == f"Standard_NC24ads_A100_v4: is not a value of {field}: must be {allowed}"


@pytest.mark.parametrize("name", ["../y z", "a" * 101, "Standard_", 7, "", None])
def test_a_name_that_no_size_has_is_reported_and_not_taken(name: object) -> None:
    reading = mapped(entry(), entry() | {"name": name})
    assert {fact.subject for fact in reading.facts} == {"Standard_NC24ads_A100_v4"}
    (report,) = reading.reports
    assert (report.line, report.column, report.cell) == (2, "name", None if name is None else str(name))
    assert report.detail.startswith("must be the name of a size: up to 100 letters" if name else "names no size")


def test_entries_of_a_size_in_several_regions_are_one_size() -> None:
    both = mapped(entry(), entry("standard_NC24ads_A100_v4", "WestUS3"))
    assert both.facts == mapped(entry()).facts


def test_what_differs_between_regions_is_reported_and_not_taken() -> None:
    reading = mapped(entry(), entry("Standard_NC24ads_A100_v4", "westus3", UltraSSDAvailable="False"))
    assert "ultra_disk" not in facts(reading)
    (report,) = reading.reports
    assert (report.column, report.cell) == ("UltraSSDAvailable", "False")
    assert report.detail == "Standard_NC24ads_A100_v4: True in another region (entry 1); not taken"


@pytest.mark.parametrize("kind", ["virtualMachines", "virtualmachines"])
def test_other_resources_are_ignored(kind: str) -> None:
    reading = mapped(DISK, entry() | {"resourceType": kind})
    assert {fact.subject for fact in reading.facts} == {"Standard_NC24ads_A100_v4"}


# Files


def write(path: Path, answer: Any) -> Path:
    path.write_text(json.dumps(answer))
    return path


@pytest.mark.parametrize("wrap", [lambda entries: {"value": entries}, lambda entries: entries], ids=["api", "az"])
def test_an_answer_of_the_api_and_the_output_of_az_are_read_alike(tmp_path: Path, wrap: Any) -> None:
    entries = [entry(), DISK]
    assert [*read_entries(write(tmp_path / "skus.json", wrap(entries)))] == entries


def _capitalized(value: Any) -> Any:
    if isinstance(value, dict):
        return {f"{key[0].upper()}{key[1:]}": _capitalized(each) for key, each in value.items()}
    return [*map(_capitalized, value)] if isinstance(value, list) else value


def test_the_output_of_powershell_is_read_as_that_of_az(tmp_path: Path) -> None:
    entries = [entry(), DISK]
    assert [*read_entries(write(tmp_path / "skus.json", _capitalized(entries)))] == entries


def test_the_answers_of_a_folder_are_read_one_after_another(tmp_path: Path) -> None:
    first, second = entry("Standard_A"), entry("Standard_B")
    write(tmp_path / "1.json", {"value": [first]})
    write(tmp_path / "2.json", [second])
    assert [*read_entries(tmp_path)] == [first, second]
    assert len(digest_of(tmp_path)) == 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"value": [{"name": "a"}, {"na', "is not whole JSON"),
        ("<html>", "is not whole JSON"),
        ("", "is not whole JSON"),
        ('{"error": {"code": "AuthenticationFailed"}}', "has no entries"),
        ('{"value": [1]}', "has something else than objects"),
    ],
)
def test_what_is_no_answer_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "skus.json"
    path.write_text(text)
    with pytest.raises(BadData, match=said):
        list(read_entries(path))


@pytest.mark.takes_seconds
def test_a_large_answer_takes_little_memory(tmp_path: Path) -> None:
    """The limit is of the whole process, which holds one entry and the facts of each size."""

    def lines() -> Iterable[str]:
        yield '{"value": ['
        for number in range(3_000):
            one = json.dumps(entry(f"Standard_D{number % 50}s_v5", f"region{number // 50}"))
            yield ("," if number else "") + one
        yield "]}"

    path = tmp_path / "skus.json"
    path.write_text("".join(lines()))
    tracemalloc.start()
    mapper = SkuMapper(regions=set())
    for one in read_entries(path):
        mapper.add(one)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(mapper.sizes) == 50
    assert path.stat().st_size > 3.5e6
    assert most < 1.5e6


def test_json_that_is_nested_deeply_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "skus.json"
    path.write_text('{"value": [{"name": ' + "[" * 200_000 + "]" * 200_000 + "}]}")
    tracemalloc.start()
    with pytest.raises(BadData, match=r"skus\.json: is nested deeper than 200 levels"):
        list(read_entries(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("number", ["1e9999999999999999999", "-0.1e-9999999999999999999"])
def test_a_number_with_an_endless_exponent_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "skus.json"
    path.write_text('{"value": [{"name": ' + number + "}]}")
    with pytest.raises(BadData, match=r"skus\.json: has a number whose exponent is too long"):
        list(read_entries(path))
