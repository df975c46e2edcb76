import pytest

from app.catalog.names import closest_regions, display_keys, region_key, series_key, size_key
from app.catalog.resolution.subjects import GpuName, find_gpu, gpu_text_key


@pytest.mark.parametrize("name", ["ND40rs_v2", "standard_nd40rs_v2", "Standard_ND40rs_v2", " STANDARD_ND40RS_V2 "])
def test_a_size_is_the_same_in_any_case_with_or_without_standard(name: str) -> None:
    assert size_key(name) == "nd40rs_v2"


@pytest.mark.parametrize("name", ["D8s v5", "D8 s v5", "Standard D8s v5", "standard_D8s_v5", " D8s_v5 "])
def test_a_display_name_may_be_that_of_a_size(name: str) -> None:
    assert "d8s_v5" in display_keys(name)


def test_a_name_without_blanks_or_with_many_has_one_key() -> None:
    assert display_keys("D8s_v5") == ("d8s_v5",)
    assert len(display_keys("a b c d e f")) == 1
    assert display_keys(" ") == ("",)


@pytest.mark.parametrize("name", ["ND A100 v4-series", "ND_A100_v4", "ND A100 v4 size series", "nd-a100-v4"])
def test_a_series_is_the_same_in_every_title(name: str) -> None:
    assert series_key(name) == "nda100v4"


@pytest.mark.parametrize("name", ["West Europe", "westeurope", "WestEurope", "west-europe"])
def test_a_region_is_the_same_in_every_spelling(name: str) -> None:
    assert region_key(name) == "westeurope"


REGIONS = ["eastus", "eu-central-1", "eu-central-2", "europe-west3", "us-central1", "us-east-1", "us-east1", "westus"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("eu-centrall-1", ["eu-central-1"]),
        ("eu-cental-2", ["eu-central-2"]),
        ("us-eas-1", ["us-east-1", "us-east1"]),  # both are a letter away
        ("us-centrl1", ["us-central1"]),
        ("europe-wst3", ["europe-west3"]),
        ("me-central-1", []),  # another place
        ("estus", ["eastus"]),
    ],
)
def test_a_misspelled_region_of_any_cloud_has_its_nearest(written: str, meant: list[str]) -> None:
    assert closest_regions(region_key(written), REGIONS) == meant


def gpu(key: str, memory: float, *aliases: str) -> GpuName:
    return GpuName(id=key, vendor="NVIDIA", model=key, memory_gib=memory, aliases=frozenset(map(gpu_text_key, aliases)))


KNOWN = [
    gpu("a100-40", 40, "A100"),
    gpu("a100-80", 80, "A100"),
    gpu("a100-80-pcie", 80, "PCIe A100"),
    gpu("b300", 268.59, "B300"),
    gpu("rtx-4090", 24, "RTX 4090"),
]


@pytest.mark.parametrize(
    ("text", "memory", "found"),
    [
        ("Nvidia A100 GPU (40GB)", 40, "a100-40"),
        ("NVIDIA A100", 80, "a100-80"),
        ("Nvidia PCIe A100 GPU (80GB)", 80, "a100-80-pcie"),
        ("A100", None, None),
        ("A100", 24, None),
        ("H100", 80, None),
        ("B300", 288, "b300"),  # GB of its maker
        ("B300", 262, "b300"),  # GiB that a VM sees
        ("RTX 4090", 48, None),  # another card
    ],
)
def test_a_gpu_is_found_by_text_and_memory_and_never_guessed(text: str, memory: float | None, found: str) -> None:
    gpu = find_gpu(text, memory, KNOWN)
    assert (gpu.id if gpu else None) == found
