"""Builds the request of a case, and the path of the figure in the response that the case is about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.cases.field_names import (
    ARCHITECTURE,
    ATTENTIONS,
    DTYPE_BYTES,
    DTYPES,
    FORMULAS,
    GPUS,
    MLPS,
    SERVING,
    TRAINING,
    offloaded,
)
from tests.cases.machines import PARALLELISM_FIELDS, machine, nodes_of, training_of

Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRequest:
    """A request and the path of the figure in its response; `preset` is the model's name where a case has one."""

    body: dict[str, Any]
    figure: str
    endpoint: str = "/estimate"
    preset: str | None = None


def request_for(kind: str, inputs: Inputs) -> CaseRequest:
    """Build the request of a case; raise KeyError for an unknown kind or quantity."""
    return KINDS[kind](inputs)


def renamed(inputs: Inputs, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a case that the API has, by the API's names."""
    return {names[name]: value for name, value in inputs.items() if name in names and value is not None}


def architecture(inputs: Inputs) -> dict[str, Any]:
    """Return the `architecture` of a case."""
    known = renamed(inputs, ARCHITECTURE)
    if "mlp" in inputs:
        known["mlp"] = MLPS[inputs["mlp"]]
    if known.get("attention") not in ATTENTIONS:
        known.pop("attention", None)
    if "shared_experts" in inputs and "moe_intermediate" in inputs:
        known["shared_intermediate"] = inputs["shared_experts"] * inputs["moe_intermediate"]
    if "dense_layers" in inputs and "layers" in inputs:
        known["moe_layers"] = inputs["layers"] - inputs["dense_layers"]
    return known


def serving(inputs: Inputs) -> dict[str, Any]:
    """Return the `inference` of a case."""
    known = renamed(inputs, SERVING)
    for name in ("dtype", "kv_dtype"):
        if name in known:
            known[name] = dtype(known[name])
    return known


def dtype(name: str) -> str:
    """Return the API's name of a type of weights."""
    quantized = name.lower().startswith(("q2_", "q3_", "q4_", "q5_", "q6_", "q8_", "iq"))
    return f"gguf_{name.lower()}" if quantized else DTYPES.get(name, name)


def body(inputs: Inputs, use: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Build a request body with the model and the GPUs of a case."""
    gpus = renamed(inputs, GPUS)
    model = architecture(inputs)
    return {use: dict(fields)} | ({"architecture": model} if model else {}) | ({"gpus": gpus} if gpus else {})


def _weights(inputs: Inputs) -> CaseRequest:
    counted = {"params_from_config": "parameters.total", "active_params_from_config": "parameters.active",
               "active_params": "parameters.active"}  # fmt: skip
    figure = counted.get(inputs.get("quantity", ""), "inference.weights")
    return CaseRequest(body=body(inputs, "inference", serving(inputs)), figure=figure)


def _kv_cache(inputs: Inputs) -> CaseRequest:
    load = serving(inputs)
    if "tokens" in inputs:
        load["context_tokens"] = inputs["tokens"]
    figure = "tokens_in_budget" if "kv_budget_gib" in inputs and "tokens" not in inputs else "total"
    if inputs.get("quantity") in {"sequences", "max_concurrency"}:
        figure = "sequences_in_budget"
    return CaseRequest(body=body(inputs, "inference", load), figure=f"inference.kv_cache.{figure}")


STATE_FIGURES = {
    "per_gpu_model_states": "training.states.total",
    "trainable_params": "training.trainable_params",
    "measured_total": "training.memory_per_gpu.need",
    "host_memory": "training.states.host",
}


def _training(inputs: Inputs) -> CaseRequest:
    training = renamed(inputs, TRAINING)
    training |= {"offload": offloaded(inputs["offload"])} if "offload" in inputs else {}
    if "largest_layer_params" in inputs and "static_per_gpu_bytes" not in inputs:
        training["static_bytes_per_gpu"] = 4 * inputs["largest_layer_params"]  # DeepSpeed's estimator of ZeRO-3
    if "targets" in inputs:
        training |= {"method": "lora", "lora_matrices": [_matrix(target) for target in inputs["targets"]]}
    quantity = inputs.get("quantity", "per_gpu_model_states")
    if quantity == "measured_total" and "activation" in inputs:
        return _with_activations(inputs, training)
    return CaseRequest(body=body(inputs, "training", training), figure=STATE_FIGURES[quantity])


def _matrix(target: Inputs) -> dict[str, Any]:
    return {"inputs": target["in"], "outputs": target["out"], "count": target.get("count", 1)}


def _with_activations(inputs: Inputs, training: dict[str, Any]) -> CaseRequest:
    """States and activations together: `activation` has the fields of that kind, or is a number of bytes."""
    activation = inputs["activation"]
    if isinstance(activation, int | float):
        training["static_bytes_per_gpu"] = training.get("static_bytes_per_gpu", 0) + activation
        return CaseRequest(body=body(inputs, "training", training), figure=STATE_FIGURES["measured_total"])
    fields = dict(inputs) | (dict(activation) if isinstance(activation, Mapping) else {})
    request = _activation(fields | {"quantity": "total"})
    wide = {"activation_bytes": 4} if inputs.get("weight_bytes") == 4 else {}
    request.body["training"] |= training | wide
    return CaseRequest(body=request.body, figure=STATE_FIGURES["measured_total"])


ACTIVATION_FIGURES = {
    "selective_saving_fraction": "selective_saving",
    "total": "kept",
    "hidden_states": "hidden_states",
    "checkpoints": "checkpoints",
    "layer_working_set": "layer_working_set",
    "logits_fp32": "logits_fp32",
    "checkpointed_peak": "checkpointed_peak",
}


def _activation(inputs: Inputs) -> CaseRequest:
    training = renamed(inputs, TRAINING)
    named = inputs.get("formula", "korthikanti")
    training["activation_formula"] = next(known for known in FORMULAS if named.startswith(known))
    if inputs.get("dtype_bytes", inputs.get("activation_bytes")) == 4 or inputs.get("dtype") == "fp32":
        training["activation_bytes"] = 4
    if inputs["quantity"] == "checkpointed_peak" and "hidden_state_copies" not in inputs:
        training["hidden_state_copies"] = 28
    figure = ACTIVATION_FIGURES[inputs["quantity"]]
    return CaseRequest(body=body(inputs, "training", training), figure=f"training.activations.{figure}")


TIME_FIGURES = {
    "train_flops": "training.compute.model_flops",
    "train_gpu_hours": "training.compute.gpu_hours",
    "train_days": "training.compute.days",
    "train_tokens_per_s": "training.compute.tokens_per_s",
    "iteration_time_s": "training.compute.iteration",
    "hfu_over_mfu": "training.compute.hfu_over_mfu",
    "train_days_from_throughput": "training.compute.days",
    "job_cost_usd": "cost.per_job",
    "decode_step_ms": "inference.decode.step",
    "decode_tokens_per_s": "inference.decode.tokens_per_s",
    "prefill_s": "inference.prefill",
}


def _compute_time(inputs: Inputs) -> CaseRequest:
    figure = TIME_FIGURES[inputs["mode"]]
    if not figure.startswith("inference"):
        return CaseRequest(body=body(inputs, "training", renamed(inputs, TRAINING)), figure=figure)
    load = serving(inputs)
    if "tokens" in inputs:
        load["prompt_tokens" if inputs["mode"] == "prefill_s" else "context_tokens"] = inputs["tokens"]
    return CaseRequest(body=body(inputs, "inference", load), figure=figure)


def _accelerate(inputs: Inputs) -> CaseRequest:
    if inputs["quantity"] == "total":
        return _weights({"params": inputs["params"], "dtype": inputs["dtype"]})
    size = DTYPE_BYTES[dtype(inputs["dtype"])]
    bytes_per_param = {"weight_bytes": size, "grad_bytes": size, "optimizer_bytes": 2 * size}
    return _training({"params": inputs["params"]} | bytes_per_param)


def _fit(inputs: Inputs) -> CaseRequest:
    """Build a request with `hardware`, as a case names GPUs, not a size of the catalog."""
    use = inputs["workload"]
    fields = training_of(inputs) if use == "training" else serving(inputs) | renamed(inputs, PARALLELISM_FIELDS)
    nodes, gpus = nodes_of(inputs)
    request = {use: fields, "hardware": machine(inputs) | gpus}
    model = architecture(inputs)
    named = {"model": inputs["model"]} if "model" in inputs else {}
    return CaseRequest(
        body=request | ({"architecture": model} if model else named) | ({"constraints": nodes} if nodes else {}),
        figure="fits",
        endpoint="/fit",
        preset=inputs.get("model"),
    )


def by_preset(request: CaseRequest, preset: Mapping[str, Any]) -> CaseRequest:
    """Return the request with the preset's name in place of the architecture, where the two agree.

    Only cases that need more of the model than its parameters are changed; published numbers of parameters are rounded.
    """
    fields = request.body.get("architecture", {})
    same = all(_agrees(name, preset.get(name), value) for name, value in fields.items())
    use = request.body.get("inference", request.body.get("training", {}))
    tokens = {"context_tokens", "sequence_tokens"} & use.keys()
    if not same or not ("layers" in fields or tokens):
        return request
    rest = {name: value for name, value in request.body.items() if name != "architecture"}
    return replace(request, body=rest | {"model": request.preset})


def _agrees(name: str, known: object, value: object) -> bool:
    if name in {"params", "active_params"} and isinstance(known, int) and isinstance(value, int | float):
        return abs(known - value) <= ROUNDED * known
    return known == value


ROUNDED = 0.01
"""How far a published number of parameters may be from the counted one."""


KINDS: dict[str, Callable[[Inputs], CaseRequest]] = {
    "inference_weights": _weights,
    "kv_cache": _kv_cache,
    "training": _training,
    "activation": _activation,
    "compute_time": _compute_time,
    "accelerate": _accelerate,
    "fit": _fit,
}
"""The function that builds the request of a case, by kind."""
