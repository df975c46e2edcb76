"""Model states of training: weights, gradients and optimizer by recipe and ZeRO or FSDP stage; LoRA adapters."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from app.fit.formulas.quantities import Range

if TYPE_CHECKING:  # else the names of recipes, which requests are validated by, would load all of the architecture
    from app.fit.formulas.architecture import Architecture

LORA_MODULES = ("q", "k", "v", "o", "gate", "up", "down")
"""The matrices of a layer that can have adapters."""
MODULE_NAMES = {
    "q": ("q_proj", "q_a_proj", "q_b_proj"),
    "k": ("k_proj", "kv_proj", "kv_a_proj_with_mqa", "kv_b_proj"),
    "v": ("v_proj", "kv_proj", "kv_a_proj_with_mqa", "kv_b_proj"),
    "o": ("o_proj", "o_a_proj", "o_b_proj"),
    **{name: (f"{name}_proj",) for name in ("gate", "up", "down")},
}
"""The names in transformers of the matrices that a module stands for, those of MLA among them."""
_MLP_MODULES = {"gate", "up", "down"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedMatrix:
    """A weight matrix that gets an adapter, and how many matrices of these dimensions the model has."""

    inputs: int
    outputs: int
    count: int = 1


def lora_params(rank: int, matrices: Iterable[AdaptedMatrix]) -> int:
    """Count the parameters that LoRA trains: the sum of r (d_in + d_out) over the matrices; exact.

    Source: Hu et al., LoRA, arXiv 2106.09685, section 4.1.
    """
    return sum(rank * (matrix.inputs + matrix.outputs) * matrix.count for matrix in matrices)


def missing_for_modules(shape: "Architecture", modules: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the unknown fields that the matrices of these modules need."""
    chosen = set(modules)
    needed = ["layers", "hidden"]
    needed += ["heads", "head_dim"] if chosen & {"q", "o"} else []
    needed += ["kv_heads", "head_dim"] if chosen & {"k", "v"} else []
    missing = shape.missing_fields(*needed)
    if not chosen & _MLP_MODULES:
        return missing
    if shape.experts is not None and shape.expert_width is None:
        return (*missing, "moe_intermediate")
    has_dense = shape.experts is None or (shape.layers is not None and shape.layers_with_experts < shape.layers)
    return (*missing, *(shape.missing_fields("intermediate") if has_dense else ()))


def lora_matrices(shape: "Architecture", modules: Iterable[str]) -> tuple[AdaptedMatrix, ...]:
    """Return the matrices that the modules stand for: of every layer, dense MLP, routed expert and shared expert.

    The shape must be complete (missing_for_modules is empty), its attention must not be MLA, and its layers may differ
    by experts only. Shared experts are one MLP of their widths together.
    """
    layers, hidden = shape.require("layers", "hidden")
    queries, keys = (shape.heads or 0) * (shape.head_dim or 0), (shape.kv_heads or 0) * (shape.head_dim or 0)
    sparse = shape.layers_with_experts
    mlps = (
        (shape.intermediate, layers - sparse),
        (shape.expert_width, sparse * (shape.experts or 0)),
        (shape.shared_intermediate, sparse),
    )
    widths = [(width, count) for width, count in mlps if width and count]
    inward = tuple(AdaptedMatrix(inputs=hidden, outputs=width, count=count) for width, count in widths)
    matrices = {
        "q": (AdaptedMatrix(inputs=hidden, outputs=queries, count=layers),),
        "k": (AdaptedMatrix(inputs=hidden, outputs=keys, count=layers),),
        "v": (AdaptedMatrix(inputs=hidden, outputs=keys, count=layers),),
        "o": (AdaptedMatrix(inputs=queries, outputs=hidden, count=layers),),
        "gate": inward if shape.mlp == "gated" else (),
        "up": inward,
        "down": tuple(AdaptedMatrix(inputs=width, outputs=hidden, count=count) for width, count in widths),
    }
    return tuple(matrix for name in dict.fromkeys(modules) for matrix in matrices[name])


Offload = Literal["none", "optimizer", "all"]
Loading = Literal["sharded", "whole", "none"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Bytes per trained parameter: its weight, its gradient, and the optimizer state (master copy, m and v)."""

    weights: float
    gradients: float
    optimizer: float


RECIPES: dict[str, Recipe] = {
    "mixed_adam": Recipe(2, 2, 12),  # ZeRO, arXiv 1910.02054, section 3.1
    "mixed_adam_fp32_grads": Recipe(2, 4, 12),  # Megatron-LM, theoretical_memory_usage.py; Hugging Face's 18 bytes
    "zero_infinity_adam": Recipe(2, 2, 16),  # ZeRO-Infinity, arXiv 2104.07857, section 3
    "fp32_adam": Recipe(4, 4, 8),
    "bf16_adam": Recipe(2, 2, 4),  # everything in 16 bits: LLaMA-Factory's `pure_bf16`
    "bf16_adam_fp32_states": Recipe(2, 2, 8),  # no fp32 copy: QLoRA, arXiv 2305.14314, 780 GB for 65B
    "mixed_adam_8bit": Recipe(2, 2, 6),  # fp32 copy, 8-bit m and v: EleutherAI, Transformer Math 101
    "mixed_sgd_momentum": Recipe(2, 2, 8),  # fp32 copy and momentum: EleutherAI's cookbook
    "mixed_muon": Recipe(2, 2, 8),  # fp32 copy and momentum
}
"""Bytes per parameter by recipe; exact given the recipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStates:
    """Model states of one GPU, bytes."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """Sum of the three."""
        return self.weights + self.gradients + self.optimizer


def model_states(
    params: float, recipe: Recipe, *, stage: int = 0, shards: int = 1, offload: Offload = "none"
) -> ModelStates:
    """Return the bytes of the model states on one GPU whose tensor and pipeline rank has P parameters.

    stage 0 (DDP): P (w + g + o);  1: P (w + g + o / D);  2 (SHARD_GRAD_OP): P (w + (g + o) / D);
    3 (FULL_SHARD): P (w + g + o) / D.  Exact. D data-parallel shards (of HSDP: the shard group).
    Offload `optimizer` moves gradients and optimizer state to the host, `all` moves the weights, too.
    Sources: ZeRO, arXiv 1910.02054, figure 1; ZeRO-Offload, arXiv 2101.06840; PyTorch FSDP, arXiv 2304.11277.
    """
    # Weights are sharded from stage 3 on, gradients from stage 2, the optimizer state from stage 1.
    held = [1 / shards if stage >= first_stage else 1.0 for first_stage in (3, 2, 1)]
    if offload != "none":
        held[1] = held[2] = 0.0
    if offload == "all":
        held[0] = 0.0
    return ModelStates(
        weights=params * recipe.weights * held[0],
        gradients=params * recipe.gradients * held[1],
        optimizer=params * recipe.optimizer * held[2],
    )


def offloaded_host_bytes(params: float, gpus_per_node: int) -> Range:
    """Return the bytes of host memory for offloaded states: P max(4 n, 16) x 1.5, with n GPUs a node.

    An estimate; the states alone are P max(4 n, 16). Source: DeepSpeed, `estimate_zero2_model_states_mem_needs`, whose
    factor for buffers is 1.5.
    """
    least = params * max(4 * gpus_per_node, 16)
    return Range(low=least, mid=1.5 * least, high=1.5 * least)


def loaded_host_bytes(weights_bytes: float, loading: Loading, part: float) -> float:
    """Return the bytes of host memory needed to load weights onto the GPUs of a host.

    sharded: W x the part that its GPUs hold, as it reads or initializes no more;  whole: W;  none: 0, the weights are
    initialized on the GPUs.  A bound from above: tensors are read one after the other. W weights, part 0 to 1.
    Sources: PyTorch's Distributed Checkpoint and `torch.device("meta")`; DeepSpeed's `zero.Init`; Hugging Face's
    `from_pretrained`, which reads the whole checkpoint by default.
    """
    return {"sharded": weights_bytes * part, "whole": weights_bytes, "none": 0.0}[loading]
