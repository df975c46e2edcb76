"""The accepted values of some sizes in the catalog that the seeds give."""

import json
from datetime import date
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.params import SizeParams
from app.catalog.queries.sizes import find_size
from app.catalog.queries.snapshot import load_catalog

pytestmark = pytest.mark.first_database

TODAY = date(2026, 9, 1)

SPOT_CHECKS: dict[str, dict[str, Any]] = {
    "ND96asr_v4": {
        "vcpus": 96,
        "memory_gib": 900,
        "gpu_model": "A100 40GB",
        "gpu_count": 8,
        "gpu_memory_gib": 320,
        "temp_disk_gib": 6000,
        "network_mbps": 24_000,
        "infiniband_gbps": 1600,
        "gpu_interconnect": "NVLink 3.0",
        "cpu_model": "AMD EPYC 7V12 (Rome)",
        "max_data_disks": 32,
        "accelerated_networking": False,
        "verified": True,
    },
    "ND96amsr_A100_v4": {
        "memory_gib": 1800,
        "max_data_disks": 16,
        "gpu_model": "A100 80GB",
        "gpu_memory_gib": 640,
        "gpu_memory_gib_per_gpu": 80,
        "temp_disk_gib": 6400,
    },
    "ND96isr_H100_v5": {
        "vcpus": 96,
        "memory_gib": 1900,
        "gpu_count": 8,
        "gpu_memory_gib": 640,
        "uncached_disk_iops": 40_800,
        "uncached_disk_mbps": 612,
        "network_mbps": 80_000,
        "infiniband_gbps": 3200,
        "max_data_disks": 16,
        "temp_disk_gib": 1024,
    },
    "ND96isr_H200_v5": {"memory_gib": 1850, "gpu_memory_gib": 1128, "max_data_disks": 16},
    "ND96isr_MI300X_v5": {
        "gpu_vendor": "AMD",
        "gpu_model": "Instinct MI300X",
        "cpu_model": "Intel Xeon (Sapphire Rapids)",
        "gpu_memory_gib": 1536,
        "gpu_memory_gib_per_gpu": 192,
        "max_data_disks": 16,
        "uncached_disk_iops": 80_000,
        "uncached_disk_mbps": 1200,
    },
    "ND128isr_NDR_GB200_v6": {
        "arch": "arm64",
        "vcpus": 128,
        "memory_gib": 864,
        "max_nics": 8,
        "gpu_count": 4,
        "gpu_memory_gib_per_gpu": 192,
        "gpu_memory_gib": 768,
        "max_data_disks": 16,
        "network_mbps": 160_000,
        "infiniband_gbps": 1600,
    },
    "ND128isr_GB300_v6": {
        "arch": "arm64",
        "memory_gib": 864,
        "gpu_memory_gib_per_gpu": 288,
        "gpu_memory_gib": 1152,
        "infiniband_gbps": 3200,
        "network_mbps": 160_000,
    },
    "NC24ads_A100_v4": {
        "nvlink": False,
        "vcpus": 24,
        "memory_gib": 220,
        "gpu_model": "A100 80GB PCIe",
        "temp_disk_gib": 64,
        "nvme_disk_count": 1,
        "nvme_disk_gib": 894.07,
        "infiniband": False,
        "generation_1": False,
        "generation_2": True,
    },
    "NC80adis_H100_v5": {
        "nvlink": True,
        "vcpus": 80,
        "memory_gib": 640,
        "gpu_count": 2,
        "gpu_memory_gib": 188,
        "gpu_memory_gib_per_gpu": 94,
        "uncached_disk_iops": 240_000,
        "uncached_disk_mbps": 7000,
        "max_nics": 8,
    },
    "NCC40ads_H100_v5": {"accelerated_networking": False, "max_nics": 8, "temp_disk_gib": 800},
    "NC40ads_H100_v5": {"max_nics": 2, "nvlink": False},
    "NV6ads_A10_v5": {
        "gpu_fraction": "1/6",
        "gpu_memory_gib": 4,
        "gpu_memory_gib_per_gpu": 24,
        "memory_gib": 55,
        "network_mbps": 5000,
        "max_nics": 2,
    },
    "NV12ads_A10_v5": {"max_data_disks": 8, "max_nics": 4},
    "NV18ads_A10_v5": {"max_data_disks": 16, "max_nics": 6},
    "NV36ads_A10_v5": {"max_data_disks": 32, "max_nics": 8},
    "NC8as_T4_v3": {"max_nics": 8},
    "NC6s_v3": {"accelerated_networking": True},
    "NV8as_v4": {"max_data_disks": 16},
    "NV12s_v2": {"vcpus": 12, "memory_gib": 224, "series": "nvv2", "verified": True, "gpu_count": 2},
    "ND96is_MI300X_v5": {
        "vcpus": 96,
        "memory_gib": 1850,
        "max_data_disks": 16,
        "max_nics": 8,
        "series": "nd_mi300x_v5",
        "gpu_model": "Instinct MI300X",
        "gpu_count": None,
    },
    "NC8ads_A10_v4": {"max_data_disks": 8, "gpu_model": "A10", "gpu_count": None, "verified": True},
    "ND96isf_H100_v5": {"series": "nd_h100_v5", "gpu_model": "H100", "gpu_memory_gib": None, "verified": False},
    "NV36adms_A10_v5": {"memory_gib": 880, "gpu_count": 1},
    "NV72ads_A10_v5": {"memory_gib": 880, "gpu_count": 2},
    "NV4as_v4": {
        "gpu_fraction": "1/8",
        "gpu_memory_gib": 2,
        "network_mbps": 1000,
        "retirement_date": "2026-09-30",
        "status": "retiring",
    },
    "NC64as_T4_v3": {"gpu_count": 4, "gpu_memory_gib": 64, "memory_gib": 440, "network_mbps": 32_000},
    "NC4as_T4_v3": {"network_mbps": 8000, "uncached_disk_iops": None},
    "ND40rs_v2": {
        "vcpus": 40,
        "memory_gib": 672,
        "gpu_model": "Tesla V100 32GB",
        "gpu_memory_gib": 256,
        "max_data_disks": 32,
        "disputed": True,
        "verified": True,
    },
    "NC24s_v3": {
        "gpu_model": "Tesla V100 16GB",
        "gpu_memory_gib": 64,
        "retirement_date": "2025-09-30",
        "status": "retired",
    },
    "NC6": {"retirement_date": "2023-09-06", "gpu_memory_gib": 12},
    "NG32adms_V620_v1": {"memory_gib": 176, "gpu_count": 1, "max_data_disks": 32, "network_mbps": 40_000},
    "NV12s_v3": {"gpu_count": 1, "gpu_memory_gib": 8, "gpu_memory_gib_per_gpu": 8},
    "NV12": {"gpu_count": 2, "gpu_memory_gib": 16, "gpu_memory_gib_per_gpu": 8},
    "NC256ds_xl_RTXPRO6000BSE_v6": {"gpu_memory_gib": 192, "status": "withdrawn", "verified": False},
    "NC64mds_xl_RTXPRO6000BSE_v6": {"status": "withdrawn", "verified": False},
    "NC24r_Promo": {"status": "withdrawn", "verified": False},
    "NV12_Promo": {"status": "retired", "withdrawn": True},
    "NC144ds_xl_RTXPRO6000BSE_v6": {"status": "current", "withdrawn": None},
    "NC72lds_xl_RTXPRO6000BSE_v6": {
        "gpu_fraction": "1/2",
        "gpu_memory_gib": 48,
        "memory_gib": 132,
        "max_nics": 6,
        "verified": True,
    },
    "NG16": {"gpu_memory_gib": 80, "network_mbps": 50_000, "verified": False},
    "NG32": {"gpu_memory_gib": 160, "network_mbps": 100_000, "infiniband": True, "verified": False},
    "ND24": {"gpu_memory_gib": 64, "verified": False},
    "ND24s": {"gpu_model": "Tesla P40", "gpu_memory_gib": 96, "verified": True},
    "ND GB300 v6": {"gpu_count": 4, "infiniband_gbps": 3200, "gpu_model": "GB300 (Blackwell Ultra)"},
}


@pytest.mark.parametrize("name", SPOT_CHECKS)
def test_a_size_is_what_its_pages_say(seeded_engine: Engine, name: str) -> None:
    with Session(seeded_engine) as session:
        size = json.loads(find_size(load_catalog(session, TODAY), name, SizeParams()))
    assert {field: size[field] for field in SPOT_CHECKS[name]} == SPOT_CHECKS[name]


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("Standard_ND96asr_A100_v4", "Standard_ND96asr_v4"),
        ("standard_nd96isr_v5", "Standard_ND96isr_H100_v5"),
        ("NG32adms_V620", "Standard_NG32adms_V620_v1"),
        ("Standard_NV28ads_V710_v5", "Standard_NV28adms_V710_v5"),
        ("NC36dsxlRTX6kv6", "Standard_NC36ds_xl_RTXPRO6000BSE_v6"),
    ],
)
def test_an_alias_leads_to_the_size_by_the_vendors_name(seeded_engine: Engine, alias: str, name: str) -> None:
    with Session(seeded_engine) as session:
        assert json.loads(find_size(load_catalog(session, TODAY), alias, SizeParams()))["name"] == name
