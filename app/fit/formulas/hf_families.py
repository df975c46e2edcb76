"""Model families of Hugging Face transformers as data: the parts of their layers, and the fields that have the shapes.

A family whose layers differ by experts and windows only is a list of parts with a source for each field of an
Architecture; all others are in `hf_hybrids`. Source: the modelling code of transformers 5.23, and where it has no such
family, of SGLang 0.5.23.
"""

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from app.fit.formulas.hf_hybrids import (
    DEEPSEEK_V4,
    GRANITE_HYBRID,
    LATENT,
    LFM2,
    LLAMA4,
    MIMO_V2,
    MINIMAX_M3,
    MISTRAL_LARGE4,
    QWEN_HYBRID,
    SPARSE_MLA,
    STEP3,
    falcon_h1,
    gemma4,
    kimi_linear,
    longcat_flash,
    minimax_m3_text,
    nemotron_h,
    nemotron_nas,
    qwen_sparse,
)
from app.fit.formulas.hf_layers import (
    ArchitectureFields,
    ConfigReader,
    Experts,
    Part,
    Reader,
    Source,
    after,
    choose,
    count,
    default,
    flag,
    hidden_of,
    is_set,
    kinds_of_layers,
    only,
    read_fields,
    shared_experts,
    some_layers,
    stated,
    value_of,
)


def gated(*, tied: bool = False, biased: bool = False) -> Part:
    """Return the fields of a family like Llama: RMSNorm, a gated MLP, no biases unless the file says so."""
    biases = flag("attention_bias", biased) if biased else stated("attention_bias")
    return {
        "qkv_bias": biases,
        "output_bias": biases,
        "intermediate": count("intermediate_size"),
        "tied_embeddings": flag("tie_word_embeddings", tied),
        "mlp_bias": stated("mlp_bias"),
    }


def plain(width: str, *, tied: bool) -> Part:
    """Return the fields of a family like GPT-2: LayerNorm, a plain MLP of 4h unless stated, biases everywhere."""
    return {
        "mlp": "plain",
        "intermediate": lambda config: config.optional_count(width) or 4 * hidden_of(config),
        "tied_embeddings": flag("tie_word_embeddings", tied),
        **_all_biases(True),
        "norm_bias": True,
    }


def _all_biases(source: Source) -> dict[str, Source]:
    return dict.fromkeys(("qkv_bias", "output_bias", "mlp_bias"), source)


def window(layers: Source = None) -> Reader:
    """Return the reader of the sliding window, used by all layers or by `layers` of them."""

    def read(config: ConfigReader) -> ArchitectureFields:
        windowed = value_of(config, layers)
        width = config.optional_count("sliding_window")
        return {} if width is None else {"sliding_window": width, "sliding_layers": windowed}

    return read


def _every_second(config: ConfigReader) -> int:
    return ceil(config.layers() / 2)


def _all_but_every(usual: int) -> Callable[[ConfigReader], int]:
    """Return what reads how many layers have the window: all but every n-th, `usual` where the file does not say."""
    return lambda config: config.layers() - config.layers() // config.count_or_default("sliding_window_pattern", usual)


def _late_layers(config: ConfigReader) -> int:
    layers = config.layers()
    return max(0, layers - config.count_or_default("max_window_layers", layers))


def family(*parts: Part) -> Reader:
    """Return the reader of a family of these parts."""
    return lambda config: read_fields(config, *parts)


def _dense_deepseek(config: ConfigReader) -> int:
    kinds = kinds_of_layers(config, "mlp_layer_types", ("dense", "sparse"))
    return kinds.count("dense") if kinds else config.some_layers("first_k_dense_replace")


QWEN2: tuple[Part, ...] = (
    gated(),
    {"qkv_bias": True},
    choose(stated("use_sliding_window"), window(_late_layers), lambda _: {}),
)
QWEN3: tuple[Part, ...] = (*QWEN2, {"qkv_bias": stated("attention_bias"), "qk_norm": "per_head"})
WIDE_HEADS: Part = {"head_dim": default("head_dim", 256)}

LOCAL_EXPERTS = Experts(count=("num_local_experts",), width=count("intermediate_size"))
QWEN_EXPERTS = Experts(count=("num_experts",), sparse=qwen_sparse)
DEEPSEEK_EXPERTS = Experts(
    count=("n_routed_experts",), shared=shared_experts("n_shared_experts"), sparse=after(_dense_deepseek)
)

DEEPSEEK = (
    only("moe_layer_freq", 1),
    gated(),
    LATENT,
    DEEPSEEK_EXPERTS.fields,
    {"router_bias": lambda config: config.raw.get("topk_method") == "noaux_tc"},
)

FALCON_GROUPED = flag("new_decoder_architecture", False)
FALCON_KV_HEADS = choose(
    FALCON_GROUPED,
    lambda config: config.optional_count("num_kv_heads", "n_head_kv") or config.count("num_attention_heads", "n_head"),
    choose(flag("multi_query", True), 1, count("num_attention_heads", "n_head")),
)
FALCON_NORMS = choose(
    FALCON_GROUPED,
    lambda config: config.optional_count("num_ln_in_parallel_attn") or 2,
    choose(flag("parallel_attn", True), 1, 2),
)
FALCON: Part = {**_all_biases(flag("bias", False)), "kv_heads": FALCON_KV_HEADS, "norms_per_layer": FALCON_NORMS}
STARCODER_BIASES: Part = _all_biases(flag("use_bias", True))
GPT2 = (plain("n_inner", tied=True), {"learned_positions": count("n_positions", "n_ctx")})


def hunyuan_moe(config: ConfigReader) -> ArchitectureFields:
    """Read Hunyuan-A13B, whose fields may be lists with a number for every layer, of which all are equal."""
    listed = {name: config.entries(name) for name in HUNYUAN_LISTS if isinstance(config.raw.get(name), list)}
    equal = {name: values[0] for name, values in listed.items() if all(value == values[0] for value in values)}
    return read_fields(
        config.with_fields({**config.raw, **equal}),
        *HUNYUAN,
        Experts(
            count=("num_experts",),
            per_token=("moe_topk",),
            width=lambda config: config.optional_count("moe_intermediate_size") or config.count("intermediate_size"),
            shared=shared_experts("num_shared_expert"),
        ).fields,
    )


HUNYUAN: tuple[Part, ...] = (
    only("use_cla", False),
    gated(),
    {"qk_norm": choose(is_set("use_qk_norm", True), "per_head")},
)
HUNYUAN_LISTS = ("num_experts", "moe_topk", "moe_intermediate_size", "num_shared_expert")

GEMMA3_DEFAULTS: dict[str, int] = {
    "vocab_size": 262_208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
    "max_position_embeddings": 131_072,
}  # fmt: skip
DEFAULTS: dict[str, dict[str, int]] = dict.fromkeys(("gemma3", "gemma3_text"), GEMMA3_DEFAULTS)
"""The defaults of a family whose released files leave out what equals them: those of its class in transformers."""


FAMILIES: dict[str, Reader] = {
    **dict.fromkeys(("llama", "granite"), family(gated())),
    "smollm3": family(gated(tied=True)),
    **dict.fromkeys(("mistral", "ministral3", "phi3"), family(gated(), window())),
    "olmo2": family(gated(), {"qk_norm": "all_heads"}),
    "seed_oss": family(gated(biased=True), {"output_bias": is_set("attention_out_bias")}),
    "ernie4_5": family(gated(tied=True), _all_biases(is_set("use_bias"))),
    "cohere": family(
        {"qk_norm": choose(stated("use_qk_norm"), "all_heads"), "norms_per_layer": 1},
        gated(tied=True),
    ),
    "cohere2": family(gated(tied=True), window(_all_but_every(4)), {"norms_per_layer": 1}),
    **dict.fromkeys(("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "mimo"), family(*QWEN2)),
    **dict.fromkeys(("qwen3", "qwen3_vl_text"), family(*QWEN3)),
    "gemma": family(gated(tied=True), WIDE_HEADS),
    "gemma2": family(gated(tied=True), WIDE_HEADS, window(_every_second), {"norms_per_layer": 4}),
    **dict.fromkeys(
        ("gemma3", "gemma3_text"),
        family(window(_all_but_every(6)), gated(tied=True), WIDE_HEADS, {"norms_per_layer": 4, "qk_norm": "per_head"}),
    ),
    "mixtral": family(gated(), LOCAL_EXPERTS.fields, window()),
    "qwen2_moe": family(
        {"shared_intermediate": count("shared_expert_intermediate_size"), "shared_expert_gate": True},
        *QWEN2,
        QWEN_EXPERTS.fields,
    ),
    **dict.fromkeys(("qwen3_moe", "qwen3_vl_moe_text"), family(*QWEN3, QWEN_EXPERTS.fields)),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2"), family(*DEEPSEEK)),
    "mistral4": family(*DEEPSEEK, {"router_bias": False}),
    "glm4_moe_lite": family(*DEEPSEEK, {"router_bias": True}),
    "glm4_moe": family(
        gated(),
        {"output_bias": False, "qk_norm": choose(is_set("use_qk_norm"), "per_head"), "router_bias": True},
        replace(DEEPSEEK_EXPERTS, sparse=after(some_layers("first_k_dense_replace"))).fields,
    ),
    "gpt_oss": family(
        gated(biased=True),
        {"mlp_bias": True, "attention_sinks": True, "router_bias": True},
        replace(LOCAL_EXPERTS, per_token=("num_experts_per_tok", "experts_per_token")).fields,
        window(_every_second),
    ),
    "minimax_m2": family(
        {
            "intermediate": count("intermediate_size"),
            "tied_embeddings": flag("tie_word_embeddings", False),
            "qk_norm": choose(is_set("use_qk_norm", True), "all_heads"),
            "router_bias": is_set("use_routing_bias", True),
        },
        replace(LOCAL_EXPERTS, shared=lambda config, _: config.number("shared_intermediate_size")).fields,
    ),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), QWEN_HYBRID),
    "llama4_text": LLAMA4,
    "gemma4_text": gemma4,
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), SPARSE_MLA),
    **dict.fromkeys(("deepseek_v4", "deepseek_ref"), DEEPSEEK_V4),
    "kimi_linear": kimi_linear,
    "nemotron_h": nemotron_h,
    "nemotron-nas": nemotron_nas,
    "minimax_m3": MINIMAX_M3,
    "minimax_m3_vl_text": minimax_m3_text,
    **dict.fromkeys(("lfm2", "lfm2_moe"), LFM2),
    "mistral_large4_text": MISTRAL_LARGE4,
    "mimo_v2_flash": MIMO_V2,
    "granitemoehybrid": GRANITE_HYBRID,
    "falcon_h1": falcon_h1,
    "longcat_flash": longcat_flash,
    "hunyuan_v1_dense": family(*HUNYUAN),
    "hunyuan_v1_moe": hunyuan_moe,
    **dict.fromkeys(("step3p5", "step3p7"), STEP3),
    "gpt2": family(*GPT2),
    "gpt_bigcode": family(*GPT2, choose(flag("multi_query", True), lambda _: {"kv_heads": 1}, lambda _: {})),
    "gpt_neox": family(
        plain("intermediate_size", tied=False),
        dict.fromkeys(("qkv_bias", "output_bias"), stated("attention_bias", True)),
    ),
    "gptj": family(
        plain("n_inner", tied=False),
        {"qkv_bias": False, "output_bias": False, "norms_per_layer": 1, "lm_head_bias": True},
    ),
    "opt": family(
        only("word_embed_proj_dim", count("hidden_size")),
        only("enable_bias", True),
        {"learned_positions": lambda config: config.count("max_position_embeddings") + 2},
        plain("ffn_dim", tied=True),
    ),
    "bloom": family(plain("n_inner", tied=True), {"embedding_norm": True}),
    "falcon": family(FALCON, plain("ffn_hidden_size", tied=True), FALCON),
    "starcoder2": family(STARCODER_BIASES, plain("intermediate_size", tied=True), STARCODER_BIASES, window()),
    "phi": family(plain("intermediate_size", tied=False), {"norms_per_layer": 1, "lm_head_bias": True}),
}
"""The reader of a configuration, by its `model_type`.

The tests compare the resulting numbers of parameters with released checkpoints.
"""
