"""Groups of weights in a `quantization_config` (compressed-tensors, ModelOpt), and algorithms by name."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.fit.formulas.assumptions import Impossible
from app.fit.formulas.quantization import FP8_SCALE_BITS, MXFP4, NVFP4, Coding, Group
from app.fit.formulas.weight_matrices import FIELD

FP8_ROWS = Coding(dtype="fp8", bits=8, scale_bits=32, block=(1, 0))
ALGORITHMS: dict[str, Coding] = {
    "FP8": Coding(dtype="fp8", bits=8),
    "FP8_PER_CHANNEL_PER_TOKEN": FP8_ROWS,
    "FP8_PB_WO": Coding(dtype="fp8", bits=8, scale_bits=FP8_SCALE_BITS, block=(128, 128)),
    "MXFP8": Coding(dtype="fp8", bits=8, scale_bits=8, block=(1, 32)),
    "W8A8_SQ_PER_CHANNEL": Coding(dtype="int8", bits=8, scale_bits=32, block=(1, 0)),
    "W4A16_AWQ": Coding(dtype="awq_int4", bits=4, scale_bits=16, block=(1, 128)),
    "W4A8_AWQ": Coding(dtype="awq_int4", bits=4, scale_bits=16, block=(1, 128)),
    "NVFP4": NVFP4,
    "NVFP4_AWQ": NVFP4,
    "W4A16_NVFP4": NVFP4,
    "W4A8_NVFP4_FP8": NVFP4,
    "W4A8_MXFP4_FP8": MXFP4,
    "MXFP4": MXFP4,
}
"""The algorithms of NVIDIA ModelOpt by name: its `QUANT_ALGO` values."""

LARGEST = 65_536


def algorithm(name: str, group_size: Any, place: str) -> Coding:
    """Give the coding of an algorithm; raises Impossible for one that is not known, or another size of groups."""
    known = ALGORITHMS.get(name)
    if known is None:
        allowed = ", ".join([*ALGORITHMS, "MIXED_PRECISION"])
        raise Impossible(
            place, f"{name!r} is not understood; allowed are {allowed}; or leave it out and give inference.dtype"
        )
    if group_size is None or known.block[0] != 1 or not known.block[1]:
        return known
    return Coding(
        dtype=known.dtype, bits=known.bits, scale_bits=known.scale_bits, block=(1, _size(group_size, "group_size"))
    )


def grouped(groups: Mapping[str, Any]) -> Iterator[Group]:
    """Read groups of matrices that are stored alike; those for all linear layers come last."""
    read = [_group(name, raw) for name, raw in groups.items()]
    yield from (group for group in read if group.targets)
    yield from (group for group in read if not group.targets)


def _group(name: str, raw: Any) -> Group:
    place = f"config_groups.{name}"
    weights = raw.get("weights") if isinstance(raw, Mapping) else None
    if not isinstance(weights, Mapping):
        raise _wrong(f"{place}.weights", weights, "an object: weights that are not quantized are told by ignore")
    targets = raw.get("targets") or []
    if not isinstance(targets, list) or not all(isinstance(one, str) for one in targets):
        raise _wrong(f"{place}.targets", targets, "a list of names")
    everything = "Linear" in targets
    return Group(coding=_coding(weights, f"{place}.weights"), targets=() if everything else tuple(targets))


def _coding(weights: Mapping[str, Any], place: str) -> Coding:
    bits, kind = weights.get("num_bits"), weights.get("type")
    block = _block(weights, place)
    if (bits, kind) == (8, "float"):
        return Coding(dtype="fp8", bits=8, scale_bits=_scale_bits(weights, block), block=block)
    if kind == "int" and bits in (4, 8):
        zero = 0 if weights.get("symmetric", True) else bits
        return Coding(dtype=f"int{bits}", bits=bits, scale_bits=16 + zero, block=block)
    if (bits, kind) == (4, "float"):
        if block[0] != 1 or block[1] not in (16, 32):
            raise _wrong(f"{place}.group_size", weights.get("group_size"), "16 (NVFP4) and 32 (MXFP4)")
        return NVFP4 if block[1] == 16 else MXFP4  # noqa: PLR2004  # what tells the two formats apart
    raise _wrong(f"{place}.num_bits", f"{bits} of type {kind}", "8 and 4 of type float, 8 and 4 of type int")


def _scale_bits(weights: Mapping[str, Any], block: tuple[int, int]) -> int:
    """MXFP8 has a byte for a group; a scale of rows or of the matrix is in 16 bits, of square blocks in 32."""
    if block[0] == 1 and block[1]:
        return 8 if "uint8" in str(weights.get("scale_dtype")) or block[1] == 32 else 16  # noqa: PLR2004  # OCP MX
    return FP8_SCALE_BITS if block[0] > 1 else 16


def _block(weights: Mapping[str, Any], place: str) -> tuple[int, int]:
    """Rows and columns that share a scale, by the strategy; where none is named, by what else there is."""
    structure, size = weights.get("block_structure"), weights.get("group_size")
    strategy = weights.get("strategy") or ("block" if structure else "group" if size else "tensor")
    if strategy in {"tensor", "channel"}:
        return (0, 0) if strategy == "tensor" else (1, 0)
    if strategy in {"group", "tensor_group"}:
        return (1, 0) if size == -1 else (1, _size(size, f"{place}.group_size"))
    if strategy == "block":
        if isinstance(structure, str):
            structure = [int(part) if part.isdigit() else part for part in structure.split("x")]
        if not isinstance(structure, list) or len(structure) != 2:  # noqa: PLR2004  # rows and columns
            raise _wrong(f"{place}.block_structure", structure, "[128, 128]")
        return _size(structure[0], f"{place}.block_structure"), _size(structure[1], f"{place}.block_structure")
    raise _wrong(f"{place}.strategy", strategy, "tensor, channel, group, tensor_group and block")


def _size(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise _wrong(place, value, f"1 to {LARGEST}")
    return value


def _wrong(place: str, value: Any, allowed: str) -> Impossible:
    said = f"{str(value)[:80]!r} is not understood; allowed are {allowed}; or leave it out and give inference.dtype"
    return Impossible(f"{FIELD}.{place}", said)
