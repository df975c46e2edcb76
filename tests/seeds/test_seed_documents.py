"""The facts that the importer must read in the five oldest documents, size by size."""

from decimal import Decimal

import pytest

from app.catalog.fields import FactValue
from app.catalog.readings import Reading
from tests.seeds.conftest import Facts

NG: list[tuple[str, int, int, int, int]] = [
    ("ng8", 8, 112, 1, 25_000),
    ("ng16", 16, 224, 2, 50_000),
    ("ng32", 32, 448, 4, 100_000),
]
ND: list[tuple[str, int, int, int]] = [
    ("nd6", 6, 112, 1),
    ("nd12", 12, 224, 2),
    ("nd24", 24, 448, 4),
    ("nd40rs_v2", 40, 672, 8),
]


def third_party(vcpus: int, memory: int, gpus: int, model: str, each: int) -> dict[str, FactValue]:
    return {
        "vcpus": vcpus,
        "memory_gib": memory,
        "gpu_count": gpus,
        "gpu_model": model,
        "gpu_memory_gib": each * gpus,
        "gpu_memory_gib_per_gpu": each,
        "infiniband": True,
    }


SEED_DOCUMENTS: list[tuple[str, str, dict[str, FactValue]]] = [
    *(
        ("ng-series-third-party", name, third_party(vcpus, memory, gpus, "A100", 40) | {"network_mbps": mbps})
        for name, vcpus, memory, gpus, mbps in NG
    ),
    *(
        ("nd-series-third-party", name, third_party(vcpus, memory, gpus, "V100", 16))
        for name, vcpus, memory, gpus in ND
    ),
    (
        "ndv2-series-2020-02-03",
        "nd40rs_v2",
        {
            "vcpus": 40,
            "memory_gib": 672,
            "gpu_count": 8,
            "gpu_model": "V100",
            "gpu_memory_gib": 256,
            "gpu_memory_gib_per_gpu": 32,
            "gpu_interconnect": "NVLink",
            "network_mbps": 24_000,
            "max_nics": 8,
            "infiniband": True,
            "infiniband_gbps": 100,
            "temp_disk_gib": 2948,
            "max_data_disks": 32,
            "uncached_disk_iops": 80_000,
            "uncached_disk_mbps": 800,
            "premium_storage": True,
            "premium_storage_caching": True,
            "live_migration": False,
            "memory_preserving_updates": False,
            "generation_2": True,
        },
    ),
    (
        "nd-a100-v4-series-2021-05-26",
        "nd96asr_v4",
        {
            "vcpus": 96,
            "memory_gib": 900,
            "gpu_count": 8,
            "gpu_model": "A100",
            "gpu_memory_gib": 320,
            "gpu_memory_gib_per_gpu": 40,
            "gpu_interconnect": "NVLink 3.0",
            "nvlink": True,
            "network_mbps": 24_000,
            "max_nics": 8,
            "infiniband": True,
            "infiniband_gbps": 1600,
            "gpudirect_rdma": True,
            "temp_disk_gib": 6000,
            "max_data_disks": 32,
            "uncached_disk_iops": 80_000,
            "uncached_disk_mbps": 800,
            "ultra_disk": True,
            "ephemeral_os_disk": True,
            "accelerated_networking": False,
            "live_migration": False,
            "memory_preserving_updates": False,
            "generation_2": True,
        },
    ),
    (
        "nd-gb300-v6-general-availability-2025-11-19",
        "nd128isr_gb300_v6",
        {
            "gpu_count": 4,
            "gpu_model": "Blackwell Ultra",
            "cpu_count": 2,
            "infiniband_gbps_per_gpu": 800,
            "infiniband_gbps": 3200,
        },
    ),
]


@pytest.mark.parametrize(("source", "size", "said"), SEED_DOCUMENTS)
def test_a_seed_document_says_exactly_this(facts: Facts, source: str, size: str, said: dict[str, FactValue]) -> None:
    assert {field: facts.get((source, size, field)) for field in said} == said


def test_the_announced_rack_is_kept(documents: Reading) -> None:
    said = series_facts(documents, "nd-gb300-v6-general-availability-2025-11-19")
    rack = {field: value for field, value in said.items() if field.startswith("rack_")}
    assert rack == {
        "rack_vms": 18,
        "rack_gpus": 72,
        "rack_nvlink_tb_per_s": 130,
        "rack_fast_memory_tb": 37,
        "rack_hbm_tb": 20,
        "rack_lpddr_tb": 17,
        "rack_fp4_pflops": 1440,
    }


def test_the_announced_benchmark_is_kept(documents: Reading) -> None:
    (result,) = documents.benchmarks
    assert (result.scope, result.value, result.unit) == ("rack", Decimal(1_100_000), "tokens/s")
    assert "Llama 2 70B" in result.workload
    assert "27%" in str(result.comparison)


@pytest.mark.parametrize(
    ("source", "field", "words"),
    [
        ("ng-series-third-party", "gpu_dtypes", ["FP32", "FP16", "TensorFloat-32"]),
        ("ng-series-third-party", "integrations", ["Azure Machine Learning", "PyTorch"]),
        ("nd-series-third-party", "use_cases", ["Deep learning", "HPC"]),
        ("ndv2-series-2020-02-03", "ofed_driver", ["4.7-1.0.0.1"]),
        ("ndv2-series-2020-02-03", "integrations", ["TensorFlow", "NCCL2"]),
        ("nd-a100-v4-series-2021-05-26", "supported_images", ["Ubuntu 18.04", "CentOS 7.9"]),
        ("nd-gb300-v6-general-availability-2025-11-19", "integrations", ["Azure CycleCloud", "Azure Batch"]),
    ],
)
def test_what_a_series_is_for_and_runs_with_is_kept(
    documents: Reading, source: str, field: str, words: list[str]
) -> None:
    text = str(series_facts(documents, source).get(field))
    assert [word for word in words if word not in text] == []


def series_facts(documents: Reading, source: str) -> dict[str, FactValue]:
    return {s.field: s.value for s in documents.facts if s.kind == "series" and s.source == source}
