"""Reads the index or the headers of a safetensors checkpoint: the bytes of its tensors, their types and parameters.

Source: the format's description in the repository huggingface/safetensors. A header is an object of tensors, each with
`dtype`, `shape` and `data_offsets`, and `__metadata__`; an index (`model.safetensors.index.json`) has
`metadata.total_size` and `weight_map`, newer ones `metadata.total_parameters`, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from app.fit.formulas.assumptions import InvalidWorkload

FIELD = "safetensors"
BITS = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16,
    "U16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F8_E8M0": 8, "I8": 8, "U8": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""Bits of a value of each type of tensor."""

DTYPES = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "F8_E4M3": "fp8", "F8_E5M2": "fp8", "I8": "int8", "F4": "nvfp4"}
"""The type of weights, by that of the tensors that have most of the bytes; packed integers may be of any type."""

NO_WEIGHTS = ("_scale", "_scale_inv", "_scale_2", "_zero_point", ".scales", ".qzeros", ".g_idx", "_scales", "inv_freq")
"""Ends of the names of tensors that hold scales, zero points and tables: bytes, but no parameters."""

MAX_SIZE = 10**16
"""Larger than any checkpoint, bytes; rejects absurd input before it is computed with."""

MAX_BYTES_PER_PARAM, MAX_PARAMS_PER_BYTE = 8, 8
"""From 64 bits to one bit a parameter; another number of parameters is not that of the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The tensors of a checkpoint: all bytes, the parameters (None where they are packed or not told), and the type."""

    size: int
    params: int | None = None
    dtype: str | None = None
    source: str = "metadata.total_size of its index"


def read_checkpoint(raw: Mapping[str, Any]) -> Checkpoint:
    """Read an index, or the tensors of a header; raises InvalidWorkload naming what is not understood."""
    if "weight_map" in raw or "metadata" in raw:
        return _read_index(raw)
    sizes: dict[str, int] = {}
    params: int | None = 0
    for name, dtype, count in _tensors(raw):
        sizes[dtype] = sizes.get(dtype, 0) + count * BITS[dtype] // 8
        if name.endswith(NO_WEIGHTS):
            continue
        packed = dtype in {"I32", "U8", "I64", "U32"}
        params = None if packed or params is None else params + count
    if not sizes:
        raise InvalidWorkload(FIELD, "has no tensors")
    most = max(sizes, key=lambda dtype: sizes[dtype])
    size = _checked(sum(sizes.values()), FIELD)
    return Checkpoint(size=size, params=params, dtype=DTYPES.get(most), source="the shapes and types of its tensors")


def _read_index(raw: Mapping[str, Any]) -> Checkpoint:
    metadata = raw.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    # Some writers have a float, which is whole.
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    if isinstance(total, bool) or not isinstance(total, int):
        raise InvalidWorkload(f"{FIELD}.metadata.total_size", "is missing or no number of bytes; or give the headers")
    size = _checked(total, f"{FIELD}.metadata.total_size")
    params = metadata.get("total_parameters") if isinstance(metadata, Mapping) else None
    # Some writers count one rank of a sharded model only: fewer than a parameter for 8 bytes.
    believed = type(params) is int and size <= params * MAX_BYTES_PER_PARAM and params <= size * MAX_PARAMS_PER_BYTE
    return Checkpoint(size=size, params=params if believed else None)


def _checked(size: int, field: str) -> int:
    if not 0 < size <= MAX_SIZE:
        raise InvalidWorkload(field, f"{size} is no number of bytes from 1 to {MAX_SIZE}")
    return size


def _tensors(header: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield name, type and number of values of each tensor of a header."""
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = (tensor.get(key) for key in ("dtype", "shape")) if isinstance(tensor, Mapping) else (None, None)
        if not isinstance(dtype, str) or dtype not in BITS:
            shown = ", ".join(BITS)
            raise InvalidWorkload(f"{FIELD}.{name[:80]}.dtype", f"{str(dtype)[:40]!r} is not one of {shown}")
        if not isinstance(shape, list) or not all(type(length) is int and 0 <= length < MAX_SIZE for length in shape):
            raise InvalidWorkload(f"{FIELD}.{name[:80]}.shape", f"{str(shape)[:80]} is no list of lengths")
        yield name, dtype, prod(shape)
