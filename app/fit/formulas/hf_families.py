"""Families with experts: Mixtral, Qwen, DeepSeek, gpt-oss; from their configurations to the shape's fields."""

from collections.abc import Callable
from math import ceil

from app.fit.formulas.assumptions import Impossible
from app.fit.formulas.hf_fields import Config, Shape
from app.fit.formulas.hf_gated import gated, qwen2, qwen3, window


def _mixtral(config: Config) -> Shape:
    experts = {
        "experts": config.count("num_local_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": config.count("intermediate_size"),
    }
    return gated(config) | experts | window(config)


def _qwen2_moe(config: Config) -> Shape:
    shared = {"shared_intermediate": config.count("shared_expert_intermediate_size"), "shared_expert_gate": True}
    return qwen2(config) | _qwen_experts(config) | shared


def _qwen3_moe(config: Config) -> Shape:
    return qwen3(config) | _qwen_experts(config)


def _qwen_experts(config: Config) -> Shape:
    layers, step = config.layers(), config.maybe("decoder_sparse_step") or 1
    dense = {number for number in config.listed("mlp_only_layers") if isinstance(number, int)}
    sparse = [number for number in range(layers) if (number + 1) % step == 0 and number not in dense]
    return {
        "experts": config.count("num_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": config.count("moe_intermediate_size"),
        "moe_layers": len(sparse),
    }


def _deepseek(config: Config) -> Shape:
    """DeepSeek V2 and V3: MLA, shared and routed experts; the layers that predict further tokens are not counted."""
    config.refuse_unless("moe_layer_freq", 1)
    layers, width = config.layers(), config.count("moe_intermediate_size")
    dense = config.raw.get("first_k_dense_replace", 0)
    if isinstance(dense, bool) or not isinstance(dense, int) or not 0 <= dense <= layers:
        raise Impossible("config.first_k_dense_replace", f"{dense!r} is no number of layers")
    ranks = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank")
    return (
        gated(config)
        | {name: config.count(name) for name in ranks}
        | {
            "q_lora_rank": config.maybe("q_lora_rank"),
            "head_dim": config.count("qk_nope_head_dim") + config.count("qk_rope_head_dim"),
            "experts": config.count("n_routed_experts"),
            "experts_per_token": config.count("num_experts_per_tok"),
            "moe_intermediate": width,
            "shared_intermediate": (config.maybe("n_shared_experts") or 0) * width,
            "moe_layers": layers - dense,
            "router_bias": config.raw.get("topk_method") == "noaux_tc",
        }
    )


def _gpt_oss(config: Config) -> Shape:
    width = config.count("intermediate_size")
    return (
        gated(config, bias=True)
        | {
            "mlp_bias": True,
            "attention_sinks": True,
            "router_bias": True,
            "experts": config.count("num_local_experts"),
            "experts_per_token": config.count("num_experts_per_tok", "experts_per_token"),
            "moe_intermediate": width,
        }
        | window(config, layers=ceil(config.layers() / 2))
    )


EXPERTS: dict[str, Callable[[Config], Shape]] = {
    "mixtral": _mixtral,
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
    "gpt_oss": _gpt_oss,
}
