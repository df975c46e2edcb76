from fractions import Fraction
from pathlib import Path

import pytest

from tests.ingest.pages import facts, read, read_files

TABLE = "\n\n| Size | GPU |\n|---|---|\n| NX8_v1 | 8 |\n"


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        (
            "NX is powered by 8 NVIDIA Tesla V100 NVLINK-connected GPUs, each with 32 GB of memory.",
            {"gpu_model": "V100", "gpu_vendor": "NVIDIA", "nvlink": True, "gpu_interconnect": "NVLink"},
        ),
        (
            "NX starts with a single VM and eight NVIDIA Ampere A100 40GB Tensor Core GPUs.",
            {"gpu_model": "A100", "gpu_vendor": "NVIDIA"},
        ),
        (
            "They are powered by [AMD Radeon Instinct MI25](https://x) GPUs.",
            {"gpu_model": "Instinct MI25", "gpu_vendor": "AMD"},
        ),
        ("NX uses NVIDIA Tesla V100 or A100 Tensor Core GPUs.", {"gpu_vendor": "NVIDIA"}),
        (
            "It has 40 cores of Intel Xeon Platinum 8168 (Skylake).",
            {"cpu_model": "Intel Xeon Platinum 8168 (Skylake)", "arch": "x64"},
        ),
        ("It has AMD EPYC 7V12(Rome) CPUs.", {"cpu_model": "AMD EPYC 7V12 (Rome)", "arch": "x64"}),
        ("It has AMD's third-Generation EPYC<sup>TM</sup> 7763v CPU.", {"cpu_model": "AMD EPYC 7763v", "arch": "x64"}),
        ("It has Intel® 5th Generation Xeon® CPUs.", {"cpu_model": "Intel Xeon (generation 5)", "arch": "x64"}),
        (
            "They run on the 3rd Gen Intel® Xeon® 8370C (Ice Lake), or the Intel® Xeon® E5-2673 v4 2.3 GHz (Broadwell)",
            {
                "cpu_model": "Intel Xeon 8370C (Ice Lake) or Intel Xeon E5-2673 v4 (Broadwell)",
                "arch": "x64",
            },
        ),
        ("It has two NVIDIA Grace CPUs.", {"cpu_model": "NVIDIA Grace", "arch": "arm64"}),
        (
            "Each GPU features NVLINK 3.0 connectivity within the VM.",
            {"nvlink": True, "gpu_interconnect": "NVLink 3.0"},
        ),
        ("The GPUs are interconnected via fifth-generation NVLink.", {"nvlink": True, "gpu_interconnect": "NVLink 5"}),
        ("NX now supports 100-Gigabit InfiniBand EDR networking.", {"infiniband": True, "infiniband_gbps": 100}),
        (
            "Each GPU has its own dedicated 400 Gbps NVIDIA Quantum-2 InfiniBand connection.",
            {"infiniband": True, "infiniband_gbps_per_gpu": 400, "infiniband_gbps": 3200},
        ),
        (
            "Each GPU has its own 200 GB/s HDR InfiniBand connection.",
            {"infiniband": True, "infiniband_gbps_per_gpu": 200, "infiniband_gbps": 1600},
        ),
        ("Each GPU has its own 123 GB/s InfiniBand connection.", {}),
        ("These connections support GPUDirect RDMA.", {"gpudirect_rdma": True}),
        ("Compared to NX, older sizes had 200 Gb/s per GPU InfiniBand.", {}),
        ("NVIDIA GPU drivers must be installed.", {}),
        ("These sizes are currently in public preview.", {"preview": True}),
        ("This VM series is currently in **Preview**. See the terms.", {"preview": True}),
        ("It has AMD EPYC 7V12 (Rome) CPUs. Others have Intel Xeon E5-2690 v3 (Haswell) CPUs.", {}),
        (
            "It has AMD EPYC 7V13 (Milan) CPUs, up to 96 AMD EPYC Milan cores.",
            {"cpu_model": "AMD EPYC 7V13 (Milan)", "arch": "x64"},
        ),
    ],
)
def test_sentences_state_fields_of_every_size(tmp_path: Path, sentence: str, found: dict[str, object]) -> None:
    values = facts(read(tmp_path, sentence + TABLE), "NX8_v1")
    assert {name: value for name, value in values.items() if name not in ("series", "gpu_count")} == found


ANNOUNCEMENT = """---
title: "Azure NX GB9 v6 Virtual Machines: Now Here"
canonical_url: "https://example.org/nx"
date: 2025-11-19 01:13:53 +00:00
---

# Azure NX GB9 v6 Virtual Machines: Now Here

- **Speed**: 2.5 million tokens/sec achieved for Llama 9 90B inference (12% faster than before).
- **Rack**: Each rack contains 9 VMs (36 GPUs), using NVLINK. Each VM: 2 NVIDIA Grace CPUs, 4 Blackwell Ultra GPUs.
- **Memory**:
  - 800 Gb/s per GPU cross-rack InfiniBand
  - 65 TB/sec NVLINK within rack
  - 18TB fast memory per rack (~10TB HBM3e, ~8TB LPDDR)
  - Up to 720 PFLOPS FP4 Tensor Core performance

## Platform Integration

- **Batch**: runs jobs.
- **Kubernetes Service (AKS)**: runs containers.

## Use Cases

- Training of large models
- **Inference:** at scale.
"""


def test_an_announcement_states_what_each_vm_and_the_rack_have(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"nx.md": ANNOUNCEMENT}, kind="vendor_announcement")
    size = {item.field: item.value for item in reading.facts if item.kind == "size"}
    assert size == {
        "series": "NX GB9 v6", "cpu_count": 2, "cpu_model": "NVIDIA Grace", "arch": "arm64", "gpu_count": Fraction(4),
        "gpu_model": "Blackwell Ultra", "gpu_vendor": "NVIDIA", "infiniband": True, "infiniband_gbps_per_gpu": 800,
        "infiniband_gbps": 3200,
    }  # fmt: skip
    series = {item.field: item.value for item in reading.facts if item.kind == "series"}
    assert series == {
        "name": "NX GB9 v6", "rack_vms": 9, "rack_gpus": 36, "scale_up_domain_gpus": 36, "rack_nvlink_tb_per_s": 65,
        "rack_fast_memory_tb": 18, "rack_hbm_tb": 10, "rack_lpddr_tb": 8, "rack_fp4_pflops": 720,
        "integrations": "Batch; Kubernetes Service (AKS)", "use_cases": "Training of large models; Inference",
    }  # fmt: skip
    assert reading.sources[0].kind == "vendor_announcement"


def test_an_announcement_publishes_a_benchmark(tmp_path: Path) -> None:
    (row,) = read_files(tmp_path, {"nx.md": ANNOUNCEMENT}).benchmarks
    assert (int(row.value), row.unit, row.scope, row.workload) == (2500000, "tokens/s", "rack", "Llama 9 90B inference")
    assert (row.series, row.comparison) == ("NX GB9 v6", "12% faster than before")


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        (
            "* Supports FP32, FP16, TensorFloat-32, and mixed-precision workloads.",
            "gpu_dtypes",
            "FP32; FP16; TensorFloat-32; mixed precision",
        ),
        ("* Compatible with **Machine Learning, Storage, and AI tools**.", "integrations", "Machine Learning; Storage"),
        (
            "Tools such as TensorFlow, Pytorch, RAPIDS, and other frameworks.",
            "integrations",
            "TensorFlow; Pytorch; RAPIDS",
        ),
        (
            "HPC Ubuntu 18.04, 20.04 and Azure HPC CentOS 7.9 images are supported.",
            "supported_images",
            "Ubuntu 18.04; Ubuntu 20.04; Azure HPC CentOS 7.9",
        ),
        ("Please use the 4.7-1.0.0.1 Mellanox OFED driver.", "ofed_driver", "Mellanox OFED 4.7-1.0.0.1"),
        (
            "These VMs are ideal for workloads, such as:\n\n- Rendering\n- Batch inference\n",
            "use_cases",
            "Rendering; Batch inference",
        ),
    ],
)
def test_items_of_a_list_are_joined_to_one_fact(tmp_path: Path, text: str, field: str, value: str) -> None:
    assert facts(read(tmp_path, f"{text}{TABLE}"), "NX v1")[field] == value
