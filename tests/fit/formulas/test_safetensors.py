"""The index and the headers of safetensors checkpoints: bytes, parameters and types, and what is refused."""

from typing import Any

import pytest

from app.fit.formulas.hf_quantization import Checkpoint, read_checkpoint
from app.fit.formulas.quantities import InvalidWorkload

LLAMA_8B = {
    "metadata": {"total_size": 16_060_522_496},
    "weight_map": {"lm_head.weight": "model-00004-of-00004.safetensors"},
}
"""The index of Llama 3.1 8B: 2 bytes for each of 8,030,261,248 parameters."""


def tensor(dtype: str, *shape: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [*shape], "data_offsets": [0, 0]}


def test_an_index_has_the_bytes_of_all_files() -> None:
    assert read_checkpoint(LLAMA_8B).size == 2 * 8_030_261_248
    assert read_checkpoint({"metadata": {"total_size": 10.0}}).size == 10


def test_headers_have_types_and_shapes() -> None:
    first = {"__metadata__": {"format": "pt"}, "embed.weight": tensor("BF16", 100, 8), "norm.weight": tensor("BF16", 8)}
    second = {"a.weight": tensor("F8_E4M3", 64, 64), "a.weight_scale_inv": tensor("F32", 1, 1)}
    found = read_checkpoint(first | second)
    assert (found.size, found.params, found.dtype) == (2 * 808 + 4096 + 4, 808 + 4096, "fp8")


def test_packed_integers_have_bytes_but_no_number_of_parameters() -> None:
    header = {"a.qweight": tensor("I32", 64, 8), "a.scales": tensor("F16", 64), "a.qzeros": tensor("I32", 8)}
    assert read_checkpoint(header) == Checkpoint(size=4 * 512 + 128 + 32, source="the shapes and types of its tensors")


def test_four_bits_are_half_a_byte() -> None:
    assert read_checkpoint({"a": tensor("F4", 32), "a_scale": tensor("F8_E4M3", 2)}).size == 18


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"metadata": {}}, "safetensors.metadata.total_size"),
        ({"metadata": 3}, "safetensors.metadata.total_size"),
        ({"metadata": {"total_size": -1}}, "safetensors.metadata.total_size"),
        ({"weight_map": {}}, "safetensors.metadata.total_size"),
        ({"__metadata__": {}}, "safetensors"),
        ({"a": {"dtype": "Q4_K", "shape": [1]}}, "safetensors.a.dtype"),
        ({"a": {"dtype": ["BF16"], "shape": [1]}}, "safetensors.a.dtype"),
        ({"a": {"dtype": "BF16", "shape": [-1]}}, "safetensors.a.shape"),
        ({"a": {"dtype": "BF16", "shape": [10**12, 10**12]}}, "safetensors"),
        ({"a": 3}, "safetensors.a.dtype"),
    ],
)
def test_what_is_no_checkpoint_is_refused_with_its_field(raw: Any, field: str) -> None:
    with pytest.raises(InvalidWorkload) as caught:
        read_checkpoint(raw)
    assert caught.value.field == field
