from decimal import Decimal

import pytest

from app.ingest.documents.gpu_memory import GpuMemoryIndex

ROWS = [
    {"id": "v100-16", "model": "V100 16GB", "family": "V100", "aliases": "Tesla V100", "memory_gib": "16"},
    {"id": "v100-32", "model": "V100 32GB", "family": "V100", "aliases": "", "memory_gib": "32"},
    {"id": "h100", "model": "H100 SXM", "family": "H100", "aliases": "", "memory_gib": "80"},
    {"id": "h100-nvl", "model": "H100 NVL", "family": "H100", "aliases": "H100 PCIe NVL", "memory_gib": "94"},
    {"id": "a10", "model": "A10", "family": "", "aliases": "NVIDIA A10; A10-24", "memory_gib": "24"},
    {"id": "new", "model": "X1", "family": "", "aliases": "", "memory_gib": ""},
]


@pytest.mark.parametrize(
    ("text", "memories"),
    [
        ("NVIDIA Tesla V100", [16, 32]),
        ("V100", [16, 32]),
        ("H100 NVL", [94]),
        ("H100", [80, 94]),
        ("NVIDIA A10 GPU", [24]),
        ("A100", []),
        ("X1", []),
        ("", []),
    ],
)
def test_a_model_is_found_however_it_is_written(text: str, memories: list[int]) -> None:
    assert GpuMemoryIndex.from_rows(ROWS).find(text) == tuple(Decimal(memory) for memory in memories)


@pytest.mark.parametrize(
    ("title", "memories"), [("NVadsA10_v5 size series", [24]), ("NDasrA100_v4", []), ("NX-H100-v5", [80, 94])]
)
def test_a_model_is_found_inside_the_words_of_a_title(title: str, memories: list[int]) -> None:
    assert GpuMemoryIndex.from_rows(ROWS).find_in_title(title) == tuple(Decimal(memory) for memory in memories)
