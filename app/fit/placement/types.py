"""Which types of numbers a GPU computes with, and how fast."""

from collections.abc import Mapping
from math import inf

from app.fit.placement.machine import Machine

ARITHMETIC = {"fp32": "fp32", "tf32": "tf32", "bf16": "bf16", "fp8": "fp8", "fp4": "fp4", "nvfp4": "fp4"}
"""In which type products of weights of a type are computed; of all others in fp16, after they are unpacked."""

CAPABILITY = {"fp32": 0.0, "fp16": 5.3, "tf32": 8.0, "bf16": 8.0, "fp8": 8.9, "fp4": 10.0}
"""The least CUDA compute capability for a type: NVIDIA, CUDA C++ Programming Guide, on compute capabilities."""

WEIGHT_ONLY = {"fp8": 8.0, "fp4": 8.0}
"""The least CUDA compute capability on which weights of a type are unpacked and computed in 16 bits.

Below that of the type itself: vLLM's Marlin kernels (csrc/quantization/marlin). A KV cache has no such kernels, nor
have AMD's chips, V100 and T4.
"""

AMD: Mapping[str, frozenset[str]] = {
    "gfx90a": frozenset({"fp32", "fp16", "bf16"}),
    "gfx942": frozenset({"fp32", "tf32", "fp16", "bf16", "fp8"}),
    "gfx950": frozenset({"fp32", "fp16", "bf16", "fp8", "fp4"}),
}
"""What AMD's accelerators compute with: ROCm's documentation on precision; all other chips are for graphics."""

LEGACY = 6.0
"""Chips of NVIDIA below this capability (Kepler, Maxwell) are no longer supported by libraries for language models."""

_SLOWER = {"tf32": "fp32", "bf16": "fp16", "fp16": "bf16"}
"""Whose peak is taken where none of a type is known."""


def arithmetic(dtype: str | None) -> str:
    """Name the type that products of weights are computed in."""
    return ARITHMETIC.get(dtype or "", "fp16")


def generation(machine: Machine) -> float:
    """Give the compute capability as a number, for order: higher is newer, and 0 is unknown or of another vendor."""
    try:
        return float(machine.capability or 0)
    except ValueError:
        return 0.0


def legacy(machine: Machine) -> bool:
    """Whether the chip is for graphics only, or too old for any library that serves or trains language models."""
    chip = machine.capability
    if chip is None:
        return False
    return chip not in AMD if chip.startswith("gfx") else generation(machine) < LEGACY


def computes(machine: Machine, kind: str) -> bool:
    """Whether the chip computes with a type; one whose capability is not said is taken to."""
    chip = machine.capability
    if chip is None:
        return True
    if chip.startswith("gfx"):
        return kind in AMD.get(chip, {"fp32", "fp16"})
    return generation(machine) >= CAPABILITY[kind]


def unpacks(machine: Machine, kind: str) -> bool:
    """Whether weights of a type that the chip does not compute in are unpacked to 16 bits by kernels made for that."""
    if computes(machine, kind) or machine.capability is None or machine.capability.startswith("gfx"):
        return False
    return generation(machine) >= WEIGHT_ONLY.get(kind, inf)


def computed_in(machine: Machine, dtype: str | None) -> str:
    """Name the type in which a chip computes products of weights of a type."""
    kind = arithmetic(dtype)
    return "bf16" if unpacks(machine, kind) else kind


def peak(machine: Machine, kind: str) -> float | None:
    """Give the dense peak for a type, FLOP a second; None where it is unknown."""
    known = machine.peaks.get(kind)
    return known if known is not None else machine.peaks.get(_SLOWER.get(kind, ""))
