"""The names of fields and values in cases, and those of the API."""

import re

ARCHITECTURE = {
    "params": "params", "active_params": "active_params", "layers": "layers", "L": "layers", "hidden": "hidden",
    "h": "hidden", "heads": "heads", "a": "heads", "kv_heads": "kv_heads", "head_dim": "head_dim",
    "intermediate": "intermediate", "f": "intermediate", "vocab": "vocab", "V": "vocab", "attention": "attention",
    "tied_embeddings": "tied_embeddings", "attention_layers": "kv_layers", "sliding_window": "sliding_window",
    "window": "sliding_window", "sliding_layers": "sliding_layers", "window_layers": "sliding_layers",
    "sliding_window_layers": "sliding_layers", "q_lora_rank": "q_lora_rank", "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_nope_head_dim", "qk_rope_head_dim": "qk_rope_head_dim", "v_head_dim": "v_head_dim",
    "experts": "experts", "experts_per_token": "experts_per_token", "moe_intermediate": "moe_intermediate",
    "shared_intermediate": "shared_intermediate", "moe_layers": "moe_layers", "qkv_bias": "qkv_bias",
    "output_bias": "output_bias", "mlp_bias": "mlp_bias", "norm_bias": "norm_bias", "lm_head_bias": "lm_head_bias",
    "qk_norm": "qk_norm", "norms_per_layer": "norms_per_layer", "embedding_norm": "embedding_norm",
    "learned_positions": "learned_positions", "positions": "learned_positions",
}  # fmt: skip
"""Names in cases and in the API for the fields of an architecture."""

GPUS = {
    "gpus": "count", "peak_tflops": "peak_tflops", "achieved_tflops": "achieved_tflops", "mfu": "mfu",
    "bandwidth_gbps": "bandwidth_gb_per_s", "usd_per_gpu_hour": "usd_per_gpu_hour",
}  # fmt: skip

TRAINING = {
    "weight_bytes": "weight_bytes_per_param", "grad_bytes": "gradient_bytes_per_param",
    "optimizer_bytes": "optimizer_bytes_per_param", "zero_stage": "zero_stage", "dp": "data_parallel",
    "t": "tensor_parallel", "tp": "tensor_parallel", "p": "pipeline_parallel", "pp": "pipeline_parallel",
    "static_per_gpu_bytes": "static_bytes_per_gpu", "rank": "lora_rank", "s": "sequence_tokens", "b": "micro_batch",
    "seq_len": "sequence_tokens", "global_batch": "global_batch", "hidden_state_copies": "hidden_state_copies",
    "recompute": "recompute", "sequence_parallel": "sequence_parallel", "sp": "sequence_parallel", "tokens": "tokens",
    "flops_per_param_token": "flops_per_param_token", "include_attention": "attention_flops",
    "gpu_hours": "gpu_hours", "tokens_per_s_per_gpu": "tokens_per_s_per_gpu",
}  # fmt: skip

SERVING = {
    "dtype": "dtype", "bits_per_weight": "bits_per_weight", "weight_bytes": "weight_bytes", "batch": "concurrency",
    "concurrency": "concurrency", "kv_bytes_per_sequence": "kv_bytes_per_sequence",
    "kv_dtype_bytes": "kv_bytes_per_value", "kv_budget_gib": "kv_budget_gib", "block_size": "block_tokens",
    "context_tokens": "context_tokens", "max_batched_tokens": "max_batched_tokens", "kv_dtype": "kv_dtype",
}  # fmt: skip

ATTENTIONS = ("mha", "gqa", "mqa", "mla")
"""Kinds of attention that the API has; for others, a case gives layers and window."""

MLPS = {"swiglu": "gated", "geglu": "gated", "gated": "gated", "gelu": "plain", "relu": "plain", "plain": "plain"}

DTYPES = {"float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float8": "fp8"}
"""Other names of types; the rest are the API's names, or GGUF's without the prefix."""

DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "fp8": 1, "int4": 0.5}


def offloaded(value: bool | str) -> str:
    """Return what is offloaded: `all` where parameters are named, `optimizer` where anything else is.

    Understands `optimizer_cpu`, `cpu`, `optimizer+params`, `params_nvme`, true. Raises KeyError for other words.
    """
    words = set(re.findall(r"[a-z]+", str(value).lower()))
    if words <= {"none", "false", "no"}:
        return "none"
    if words & {"all", "param", "params", "parameters", "weights", "model"}:
        return "all"
    if words & {"optimizer", "optim", "cpu", "host", "true", "yes"}:
        return "optimizer"
    raise KeyError(value)


FORMULAS = ("zero", "korthikanti", "modern")
"""Formulas of activations; a name in a case begins with one of these."""
