"""Translates the machines and trainings of cases of the kind `fit` to fields of POST /fit."""

import re
from collections.abc import Mapping
from typing import Any

from tests.cases.field_names import TRAINING, offloaded

Inputs = Mapping[str, Any]

PARALLELISM_FIELDS = {
    "gpu_memory_utilization": "utilization", "utilization": "utilization", "tensor_parallel": "tensor_parallel",
    "tp": "tensor_parallel", "pipeline_parallel": "pipeline_parallel", "pp": "pipeline_parallel",
}  # fmt: skip

RECIPES = {
    "fp32": "fp32_adam", "mixed": "mixed_adam", "16bit": "bf16_adam_fp32_states", "bf16": "bf16_adam",
    "pure": "bf16_adam", "8bit": "mixed_adam_8bit", "sgd": "mixed_sgd_momentum",
}  # fmt: skip
"""Recipes by a word of a case's method: `full_adam_mixed`."""

BASES = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16", "int8": "int8", "8bit": "int8", "nf4": "nf4_dq", "4bit": "nf4"}
"""Types of a frozen base, by a word of a case's method: `lora_fp32_base`."""

STAGES = {"ddp": 0, "zero0": 0, "zero1": 1, "zero2": 2, "shard_grad_op": 2, "zero3": 3, "fsdp": 3, "full_shard": 3}

ON_ONE_SERVER = 8
"""Most GPUs of a server in the cases: a larger number counts all servers together."""


def machine(inputs: Inputs) -> dict[str, Any]:
    """Return the GPU by name, with the memory in its name, and the usable memory where a case has it."""
    known: dict[str, Any] = {}
    if "gpu" in inputs:
        known["gpu"] = inputs["gpu"]
        memory = re.search(r"(\d+)\s*GB", inputs["gpu"], re.IGNORECASE)
        known |= {"memory_gib": float(memory[1])} if memory else {}
    given = {"usable_total_gib": "usable_gib", "usable_gib": "usable_gib", "memory_gib": "memory_gib"}
    return known | {name: inputs[own] for own, name in given.items() if own in inputs}


def nodes_of(inputs: Inputs) -> tuple[dict[str, int], dict[str, int]]:
    """Return the constraints on the number of machines, and the GPUs of each."""
    nodes, gpus = inputs.get("nodes", 1), inputs.get("gpus")
    machines = {"min_nodes": nodes, "max_nodes": nodes} if nodes > 1 else {}
    if gpus is None:
        return machines, {}
    return machines, {"gpus": gpus // nodes if gpus > ON_ONE_SERVER and gpus % nodes == 0 else gpus}


def training_of(inputs: Inputs) -> dict[str, Any]:
    """Return the `training` of a case."""
    fields = {TRAINING[name]: value for name, value in inputs.items() if name in TRAINING and value is not None}
    names = {"seq": "sequence_tokens", "micro_batch": "micro_batch"}
    fields |= {names[name]: value for name, value in inputs.items() if name in names}
    for name in ("activation_checkpointing", "gradient_checkpointing"):
        fields |= {"recompute": "full" if inputs[name] else "none"} if name in inputs else {}
    return fields | _sharding(inputs) | _method(str(inputs.get("method", "")))


def _method(method: str) -> dict[str, Any]:
    words = method.split("_")
    if words[0] in {"lora", "qlora"}:
        base = next((BASES[word] for word in words if word in BASES), None)
        return {"method": words[0]} | ({"base_dtype": base} if base else {})
    recipe = next((RECIPES[word] for word in words if word in RECIPES), None)
    return {"recipe": recipe} if recipe else {}


def _sharding(inputs: Inputs) -> dict[str, Any]:
    sharding = str(inputs.get("sharding", "")).lower()
    stage = next((number for name, number in STAGES.items() if sharding.startswith(name)), None)
    offload = inputs.get("offload", inputs.get("cpu_offload", "offload" in sharding))
    return ({"zero_stage": stage} if stage is not None else {}) | {"offload": offloaded(offload)}
