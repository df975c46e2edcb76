"""What an instance type of DescribeInstanceTypes states of a size."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from app.catalog.readings import Reading
from app.errors import BadData
from app.ingest.feeds.aws_types import TypeMapper
from app.ingest.feeds.resource_skus import run_sku_refresh
from app.ingest.run import ingest
from tests.factories import NOW, size, source

DAY = date(2026, 10, 27)
L4 = {"Count": 0, "GpuPartitionSize": 0.125, "LogicalGpuCount": 1, "Name": "L4", "MemoryInfo": {"SizeInMiB": 2861}}


def entry(name: str = "g6f.large", **more: Any) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": 2, "DefaultCores": 1},
        "MemoryInfo": {"SizeInMiB": 7577},
        "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"], "Manufacturer": "AMD"},
        "GpuInfo": {"Gpus": [L4]},
        "InstanceStorageSupported": True,
        "InstanceStorageInfo": {
            "TotalSizeInGB": 100,
            "NvmeSupport": "required",
            "Disks": [{"Count": 1, "SizeInGB": 100, "Type": "ssd"}],
        },
        "EbsInfo": {
            "MaximumEbsAttachments": 32,
            "EbsOptimizedInfo": {"BaselineIops": 3750, "BaselineThroughputInMBps": 117.5},
        },
        "NetworkInfo": {
            "MaximumNetworkInterfaces": 2,
            "NetworkPerformance": "Up to 10 Gigabit",
            "EfaSupported": False,
        },
        "HibernationSupported": False,
        "BurstablePerformanceSupported": True,
    } | more


def stated(**more: Any) -> dict[str, Any]:
    mapper = TypeMapper()
    mapper.add(entry(**more))
    reading = mapper.finish(day=DAY, sha256="0")
    assert not reading.reports, reading.reports
    return {fact.field: fact.value for fact in reading.facts}


def test_a_type_states_its_figures_in_the_units_of_the_catalog() -> None:
    assert stated() == {
        "vcpus": 2,
        "physical_cores": 1,
        "cpu_vendor": "AMD",
        "arch": "x64",
        "burstable": True,
        "memory_gib": Decimal("7.3994140625"),
        "gpu_count": Fraction(1, 8),
        "nvme_disk_gib": Decimal("93.13"),
        "nvme_disk_count": 1,
        "max_data_disks": 32,
        "uncached_disk_iops": 3750,
        "uncached_disk_mbps": Decimal("117.5"),
        "max_nics": 2,
        "network_mbps": 10_000,
        "fabric": "none",
        "hibernation": False,
    }


@pytest.mark.parametrize(
    ("gpus", "count"),
    [([], 0), ([L4 | {"Count": 8, "GpuPartitionSize": 1.0}], 8), ([L4 | {"LogicalGpuCount": 2}], Fraction(1, 4))],
)
def test_gpus_are_counted_exactly(gpus: list[Any], count: int | Fraction) -> None:
    assert stated(GpuInfo={"Gpus": gpus})["gpu_count"] == count


def test_a_type_without_local_disks_has_none_and_one_with_older_disks_has_them_elsewhere() -> None:
    none = stated(InstanceStorageSupported=False, InstanceStorageInfo={})
    assert (none["nvme_disk_gib"], none["nvme_disk_count"]) == (0, 0)
    older = stated(InstanceStorageInfo=entry()["InstanceStorageInfo"] | {"NvmeSupport": "unsupported"})
    assert (older["temp_disk_count"], "nvme_disk_count" in older) == (1, False)


@pytest.mark.parametrize(
    ("performance", "mbps"),
    [("4x 100 Gigabit", 400_000), ("12.5 Gigabit", 12_500), ("Up to 5 Gigabit", 5_000), ("Moderate", None)],
)
def test_the_network_is_what_it_is_called(performance: str, mbps: int | None) -> None:
    network = {"MaximumNetworkInterfaces": 2, "NetworkPerformance": performance}
    assert stated(NetworkInfo=network).get("network_mbps") == mbps


@pytest.mark.parametrize(
    ("more", "column", "cell", "detail"),
    [
        ({"MemoryInfo": {"SizeInMiB": -1}}, "memory_gib", "-1", "is not a value of memory_gib: must be a number from"),
        ({"MemoryInfo": {"SizeInMiB": Decimal("1e30")}}, "memory_gib", "1E+30", "must be a number from 0, written"),
        ({"MemoryInfo": {"SizeInMiB": 10**16}}, "memory_gib", "1" + "0" * 16, "must be below 1,000,000,000,000 GiB"),
        ({"VCpuInfo": {"DefaultVCpus": "two"}}, "vcpus", "two", "is not a value of vcpus: must be a number from 0"),
        ({"VCpuInfo": {"DefaultVCpus": Decimal("8.5")}}, "vcpus", "8.5", "must be a whole number"),
        ({"VCpuInfo": {"DefaultVCpus": Decimal("1e400")}}, "vcpus", "1E+400", "must be a number from 0"),
        ({"VCpuInfo": {"DefaultVCpus": 3_000_000_000}}, "vcpus", "3000000000", "must be at most 2147483647"),
        ({"VCpuInfo": {"DefaultVCpus": True}}, "vcpus", "True", "must be a number"),
        ({"HibernationSupported": 1}, "hibernation", "1", "must be true or false"),
        (
            {"ProcessorInfo": {"SupportedArchitectures": ["riscv64"]}},
            "arch",
            '{"SupportedArchitectures": ["riscv64"]}',
            "is not a value of arch: must list SupportedArchitectures of i386, x86_64",
        ),
        ({"GpuInfo": {"Gpus": [{}]}}, "gpu_count", '{"Gpus": [{}]}', "is not a value of gpu_count: must list Gpus"),
        ({"GpuInfo": {"Gpus": [{"Count": Decimal("1e99999999")}]}}, "gpu_count", "1E+99999999", "must be a number"),
        (
            {"InstanceStorageInfo": {"Disks": [{}], "NvmeSupport": "required"}},
            "nvme_disk_gib",
            '{"Disks": [{}], "NvmeSupport": "required"}',
            "is not a value of nvme_disk_gib: must have TotalSizeInGB",
        ),
        ({"InstanceType": ""}, "InstanceType", "", "names no size"),
        ({"InstanceType": 7}, "InstanceType", "7", "must be the name of a size: up to 100 letters"),
        ({"InstanceType": "../../x"}, "InstanceType", "../../x", "must be the name of a size: up to 100 letters"),
    ],
)
def test_a_figure_that_is_none_is_reported(more: dict[str, Any], column: str, cell: str, detail: str) -> None:
    mapper = TypeMapper()
    mapper.add(entry(**more))
    report = mapper.finish(day=DAY, sha256="0").reports[0]
    assert (report.line, report.column, report.cell) == (1, column, cell)
    assert detail in report.detail


def test_a_size_of_another_provider_is_reported_and_not_taken(engine: Engine, tmp_path: Path) -> None:
    azure = Reading(sources=(replace(source(), publisher="Microsoft"),), facts=size("Standard_D16ads_v5", vcpus=16))
    ingest(engine, azure, now=NOW)
    file = tmp_path / "types.json"
    file.write_text(json.dumps([entry("Standard_D16ads_v5"), entry()]))
    found, outcome = run_sku_refresh(engine, file, TypeMapper, day=DAY, now=NOW)
    assert outcome is not None
    (report,) = outcome.summary.reports
    assert (found.sizes, report.cell, report.detail) == (1, "Standard_D16ads_v5", "is a size of another provider")


def test_a_saved_answer_is_written_and_one_that_lost_most_sizes_is_refused(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "types.json"
    file.write_text(json.dumps({"InstanceTypes": [entry(f"g6f.x{number}") for number in range(5)]}))
    found, outcome = run_sku_refresh(engine, file, TypeMapper, day=DAY, now=NOW)
    assert (found.sizes, found.facts, found.refused) == (5, 80, None)
    assert outcome is not None
    assert outcome.summary.changes["size"].added == 5
    file.write_text(json.dumps([entry("g6f.x0")]))
    found, outcome = run_sku_refresh(engine, file, TypeMapper, day=DAY, now=NOW)
    assert (found.refused, outcome) == ("4 of 5 sizes are gone", None)
    assert run_sku_refresh(engine, file, TypeMapper, day=DAY, now=NOW, accept=True)[1] is not None


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"InstanceTypes": []}', "has no instance types"),
        ('{"InstanceTypes": [7]}', "has something else than objects in its list"),
        ('{"InstanceTypes": [{', r"is not whole JSON: .* \(before byte 20\)"),
        ("", "is not whole JSON"),
    ],
)
def test_a_file_that_is_no_answer_is_refused(engine: Engine, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "types.json"
    file.write_text(text)
    with pytest.raises(BadData, match=said):
        run_sku_refresh(engine, file, TypeMapper, day=DAY, now=NOW)
