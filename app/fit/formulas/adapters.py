"""LoRA and QLoRA: which matrices get adapters, and how many parameters are trained."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.fit.formulas.architecture import Architecture

MODULES = ("q", "k", "v", "o", "gate", "up", "down")
"""The matrices of a layer that can get adapters."""
_OF_MLP = {"gate", "up", "down"}

ADAPTER_BYTES = 16
"""Bytes a trained parameter of an adapter takes: mixed-precision Adam."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A weight matrix that gets an adapter, and how many of its form there are in the model."""

    inputs: int
    outputs: int
    count: int = 1


def lora_params(rank: int, matrices: Iterable[Matrix]) -> int:
    """Count the trained parameters of LoRA: sum of r (d_in + d_out) over the matrices; exact.

    Source: Hu et al., LoRA, arXiv 2106.09685, section 4.1.
    """
    return sum(rank * (matrix.inputs + matrix.outputs) * matrix.count for matrix in matrices)


def missing_for_modules(shape: Architecture, modules: Iterable[str]) -> tuple[str, ...]:
    """Name the fields without which the matrices of modules are unknown."""
    chosen = set(modules)
    needed = ["layers", "hidden"]
    needed += ["heads", "head_dim"] if chosen & {"q", "o"} else []
    needed += ["kv_heads", "head_dim"] if chosen & {"k", "v"} else []
    needed += ["intermediate"] if chosen & _OF_MLP and shape.expert_width is None else []
    return shape.missing(*needed)


def lora_matrices(shape: Architecture, modules: Iterable[str]) -> tuple[Matrix, ...]:
    """List the matrices that modules stand for, in every layer and every expert.

    The shape misses nothing (missing_for_modules is empty), and its attention is no MLA.
    """
    layers, hidden = shape.known("layers", "hidden")
    queries, keys = (shape.heads or 0) * (shape.head_dim or 0), (shape.kv_heads or 0) * (shape.head_dim or 0)
    width, mlps = shape.expert_width or 0, layers * (shape.experts or 1)
    known = {
        "q": Matrix(inputs=hidden, outputs=queries, count=layers),
        "k": Matrix(inputs=hidden, outputs=keys, count=layers),
        "v": Matrix(inputs=hidden, outputs=keys, count=layers),
        "o": Matrix(inputs=queries, outputs=hidden, count=layers),
        "gate": Matrix(inputs=hidden, outputs=width, count=mlps if shape.gated else 0),
        "up": Matrix(inputs=hidden, outputs=width, count=mlps),
        "down": Matrix(inputs=width, outputs=hidden, count=mlps),
    }
    return tuple(known[name] for name in dict.fromkeys(modules))
