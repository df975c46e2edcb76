"""Families of Hugging Face transformers with mixers of their own in each layer, followed by an MLP or experts.

Mixers are linear, sparse or compressed attention, state-space layers, indexers, and heads that differ by layer. Source:
that of `hf_families`, which has the table of all families.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

from app.fit.formulas.architecture import LayerPart, attention, dense_mlp, matrix
from app.fit.formulas.hf_layers import (
    CONV_BYTES,
    MAX_COUNT,
    ArchitectureFields,
    ConfigReader,
    Experts,
    Source,
    after,
    by_kind,
    check_heads,
    check_kinds,
    choose,
    compressed_attention,
    count,
    default,
    delta_net,
    has,
    hidden_of,
    in_groups,
    indexer_cache,
    is_set,
    kimi_delta_attention,
    kinds_of_layers,
    latent_attention,
    layered,
    listed_sparse,
    mamba2,
    number,
    optional,
    read_fields,
    section,
    shared_experts,
    softmax,
    some_layers,
    stated,
)
from app.fit.formulas.quantities import shown


def qwen_sparse(config: ConfigReader) -> list[bool]:
    """Return which layers of Qwen have experts: every n-th one that is not named as dense."""
    step, dense = config.optional_count("decoder_sparse_step") or 1, config.numbers_of_layers("mlp_only_layers")
    return [(number + 1) % step == 0 and number not in dense for number in range(config.layers())]


LATENT: dict[str, Source] = {
    **{name: count(name) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank")},
    "q_lora_rank": optional("q_lora_rank"),
    "head_dim": lambda config: config.count("qk_nope_head_dim") + config.count("qk_rope_head_dim"),
}


def _qwen_kinds(config: ConfigReader) -> Sequence[str]:
    every = config.count_or_default("full_attention_interval", 4)
    kinds = kinds_of_layers(config, "layer_types", ("linear_attention", "full_attention"))
    return kinds or list(islice(cycle(["linear_attention"] * (every - 1) + ["full_attention"]), config.layers()))


QWEN_HYBRID = layered(
    by_kind(
        _qwen_kinds,
        {
            "full_attention": softmax(
                head_dim=default("head_dim", 256),
                qk_norm="per_head",
                output_gate=choose(is_set("attn_output_gate", True), "full"),
            ),
            "linear_attention": delta_net,
        },
    ),
    Experts(
        count=("num_experts",),
        shared=lambda config, _: config.number("shared_expert_intermediate_size"),
        shared_gate=True,
        sparse=qwen_sparse,
        present=has("num_experts", "moe_intermediate_size"),
    ),
)
"""Qwen3-Next and Qwen3.5: gated delta nets, and softmax attention with a gate in every fourth layer."""


def _llama4_kinds(config: ConfigReader) -> Sequence[str]:
    config.count_or_default("interleave_moe_layer_step", 1)  # recorded before what the mixers assume
    kinds = kinds_of_layers(config, "layer_types", ("chunked_attention", "full_attention"))
    if kinds is not None:
        return kinds
    layers = range(config.layers())
    listed = config.entries("no_rope_layers") if config.raw.get("no_rope_layers") else None
    chunked = listed or [int((number + 1) % 4 != 0) for number in layers]
    return ["chunked_attention" if rotates else "full_attention" for rotates in chunked]


def _llama4_sparse(config: ConfigReader) -> list[bool]:
    step, named = config.count_or_default("interleave_moe_layer_step", 1), config.numbers_of_layers("moe_layers")
    return [number in named if named else (number + 1) % step == 0 for number in range(config.layers())]


LLAMA4_HEAD: Source = default("head_dim", 128)
LLAMA4 = layered(
    by_kind(
        _llama4_kinds,
        {
            "full_attention": softmax(head_dim=LLAMA4_HEAD),
            "chunked_attention": softmax(head_dim=LLAMA4_HEAD, window=optional("attention_chunk_size")),
        },
    ),
    Experts(
        count=("num_local_experts",),
        width=count("intermediate_size"),
        shared=lambda _, width: width,
        sparse=_llama4_sparse,
        dense=("intermediate_size_mlp",),
    ),
    intermediate=count("intermediate_size_mlp"),
)
"""Llama 4: three of four layers attend within chunks, and every second one (Maverick) has experts."""

SPARSE_MLA_EXPERTS = Experts(
    count=("n_routed_experts", "num_experts"),
    per_token=("num_experts_per_tok", "num_experts_per_token"),
    shared=shared_experts("n_shared_experts", "num_shared_experts"),
    sparse=listed_sparse("mlp_layer_types", "sparse"),
    router_bias=True,
)


def _selecting_layers(config: ConfigReader) -> list[bool]:
    """Return which layers have an indexer of their own; the others share the selection of an earlier one."""
    kinds = kinds_of_layers(config, "indexer_types", ("full", "shared"))
    if kinds is not None:
        return [kind == "full" for kind in kinds]
    every, first = config.raw.get("index_topk_freq", 1), config.raw.get("index_skip_topk_offset", 2)
    if type(every) is not int or type(first) is not int or every < 1:
        config.refuse("index_topk_freq", "and index_skip_topk_offset are not whole numbers, the first above 0")
    return [max(number - first + 1, 0) % every == 0 for number in range(config.layers())]


def _sparse_mla_mixers(config: ConfigReader) -> list[LayerPart]:
    mixers = {selects: latent_attention(config, indexer=selects) for selects in (True, False)}
    return [mixers[selects] for selects in _selecting_layers(config)]


SPARSE_MLA = layered(_sparse_mla_mixers, SPARSE_MLA_EXPERTS, **LATENT)
"""DeepSeek-V3.2 and GLM-5: MLA with an indexer."""


def _mistral_mixers(config: ConfigReader) -> list[LayerPart]:
    """Read the sparse MLA of Mistral Large 4, in every fourth layer without positions; layers may share a latent."""
    layers, hidden = config.layers(), hidden_of(config)
    every = config.count_or_default("no_rope_layer_interval", 4)
    listed = {name: config.entries(name) for name in ("no_rope_layers", "kv_source_layers") if config.raw.get(name)}
    rotated = listed.get("no_rope_layers") or [int((number + 1) % every != 0) for number in range(layers)]
    sources = listed.get("kv_source_layers") or list(range(layers))
    # Heads have a scale and a bias, those of an indexer, too, whose queries have a norm of their own.
    scales = LayerPart(others=2 * config.count("num_attention_heads"))
    own = LayerPart(others=2 * hidden + 2 * config.count("index_n_heads"))
    return [
        latent_attention(config, indexer=selects, rotates=bool(rotates), shares_cache=source != number).join(
            scales, *((own,) if selects else ())
        )
        for number, (rotates, source, selects) in enumerate(
            zip(rotated, sources, _selecting_layers(config), strict=True)
        )
    ]


MISTRAL_LARGE4 = layered(_mistral_mixers, replace(SPARSE_MLA_EXPERTS, router_bias=False), **LATENT)


def _kimi_mixers(config: ConfigReader) -> list[LayerPart]:
    full = section(config, "linear_attn_config").numbers_of_layers("full_attn_layers", config, first=1)
    gate = bool(config.raw.get("mla_use_output_gate"))
    linear, latent = kimi_delta_attention(config), latent_attention(config, output_gate=gate)
    residual = LayerPart(others=4 * hidden_of(config) if config.has("attn_res_block_size") else 0)
    return [(latent if layer + 1 in full else linear).join(residual) for layer in range(config.layers())]


KIMI_MLPS = layered(_kimi_mixers, replace(SPARSE_MLA_EXPERTS, latent=optional("routed_expert_hidden_size")), **LATENT)


def kimi_linear(config: ConfigReader) -> ArchitectureFields:
    """Read Kimi Linear and Kimi K3: Kimi Delta Attention, and MLA in the layers listed from 1."""
    fields: ArchitectureFields = KIMI_MLPS(config)
    latent = config.optional_count("routed_expert_hidden_size")
    norms = latent * fields["moe_layers"] if latent is not None and config.raw.get("latent_moe_use_norm") else 0
    outside = norms + (2 * hidden_of(config) if config.has("attn_res_block_size") else 0)
    return fields | {"outside": outside, "outside_active": outside}


def _deepseek_v4_mixers(config: ConfigReader) -> list[LayerPart]:
    """Read compressed attention with hyper-connections of several streams; layers after the hashed ones have a bias."""
    hidden = hidden_of(config)
    ratios = config.entries("compress_ratios", drafts=1)
    for ratio in ratios:
        if type(ratio) is not int or not 0 <= ratio <= MAX_COUNT:
            config.refuse("compress_ratios", f"{shown(ratio)} is not a whole number from 0 to {MAX_COUNT:,}")
    experts, streams = config.count("n_routed_experts"), config.count_or_default("hc_mult", 4)
    hashed, mixing = config.some_layers("num_hash_layers"), (2 + streams) * streams
    connections = LayerPart(others=2 * (mixing * streams * hidden + mixing + 3))
    bias = LayerPart(others=experts)
    mixers = {ratio: compressed_attention(config, ratio) for ratio in set(ratios)}
    return [mixers[ratio].join(connections, *(() if layer < hashed else (bias,))) for layer, ratio in enumerate(ratios)]


def _deepseek_v4_ends(config: ConfigReader) -> int:
    streams = config.count_or_default("hc_mult", 4)
    return streams * streams * hidden_of(config) + streams + 1


DEEPSEEK_V4 = layered(
    _deepseek_v4_mixers,
    Experts(count=("n_routed_experts",), shared=shared_experts("n_shared_experts"), dense=()),
    q_lora_rank=count("q_lora_rank"),
    kv_heads=1,
    outside=_deepseek_v4_ends,
    outside_active=_deepseek_v4_ends,
)
"""DeepSeek-V4: compressed attention, experts in every layer."""


def gemma4(config: ConfigReader) -> ArchitectureFields:
    """Read Gemma 4: windows in most layers, wider heads in the others, and on small models embeddings per layer."""
    layers, hidden = config.layers(), hidden_of(config)
    kinds = kinds_of_layers(config, "layer_types", ("sliding_attention", "full_attention"))
    kinds = kinds or ["full_attention" if (number + 1) % 6 == 0 else "sliding_attention" for number in range(layers)]
    reused = layers - config.some_layers("num_kv_shared_layers")
    heads, kv_heads = config.count("num_attention_heads"), config.count("num_key_value_heads")
    wide = _gemma4_wide_heads(config, kinds) | {"keys_are_values": bool(config.raw.get("attention_k_eq_v"))}
    narrow: dict[str, Any] = {"kv_heads": kv_heads, "head_dim": config.count("head_dim")}
    narrow["window"] = config.count("sliding_window")
    intermediate = config.count("intermediate_size")
    double = 2 if config.raw.get("use_double_wide_mlp") else 1
    beside, experts = _gemma4_parts(config)
    for used in (kv_heads, wide["kv_heads"]):
        check_heads(config, heads, used)
    parts = [
        attention(
            hidden,
            heads=heads,
            qk_norm="per_head",
            shares_cache=number >= reused,
            **(wide if kind == "full_attention" else narrow),
        ).join(dense_mlp(hidden_of(config), intermediate * (double if number >= reused else 1)), beside)
        for number, kind in enumerate(kinds)
    ]
    per_layer = config.number("hidden_size_per_layer_input")
    rows = config.count_or_default("vocab_size_per_layer_input", config.count("vocab_size")) if per_layer else 0
    projection = layers * per_layer * hidden + per_layer
    return in_groups(
        config,
        parts,
        norms=4,
        **experts,
        intermediate=intermediate,
        tied=True,
        outside=rows * layers * per_layer + projection if per_layer else 0,
        outside_active=projection if per_layer else 0,
    )


def _gemma4_wide_heads(config: ConfigReader, kinds: Sequence[str]) -> dict[str, Any]:
    """Return KV heads and width of layers without a window: as `global_...`, or in the object of one such layer."""
    number = kinds.index("full_attention") if "full_attention" in kinds else 0
    per_layer = section(config, "per_layer_config") if config.has("per_layer_config") else config.within({}, "")
    own = section(per_layer, f"{number:02}") if per_layer.has(f"{number:02}") else per_layer
    return {
        "kv_heads": own.optional_count("num_key_value_heads")
        or config.optional_count("num_global_key_value_heads")
        or config.count("num_key_value_heads"),
        "head_dim": own.optional_count("head_dim")
        or config.optional_count("global_head_dim")
        or config.count("head_dim"),
    }


GEMMA4_EXPERTS = Experts(
    count=("num_experts",),
    per_token=("top_k_experts", "num_experts_per_tok"),
    width=count("moe_intermediate_size", "expert_intermediate_size"),
    sparse=lambda config: [True] * config.layers(),
    router_bias=True,
    prefix="layer",
)


def _gemma4_parts(config: ConfigReader) -> tuple[LayerPart, ArchitectureFields]:
    """Return what a layer of Gemma 4 has beside attention and the dense MLP, and the fields of the experts."""
    hidden, per_layer = hidden_of(config), config.number("hidden_size_per_layer_input")
    beside = LayerPart(others=2 * hidden * per_layer + hidden) if per_layer else LayerPart()
    if not config.raw.get("enable_moe_block") or config.optional_count("num_experts") is None:
        return beside, {}
    fields = GEMMA4_EXPERTS.fields(config)
    return beside.join(GEMMA4_EXPERTS.routed(config, fields), LayerPart(others=4 * hidden)), fields


_PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _nemotron_kinds(config: ConfigReader) -> list[str]:
    text = config.raw.get("hybrid_override_pattern")
    if isinstance(text, str):
        check_kinds(config, "hybrid_override_pattern", text, _PATTERN)
        config.check_length("hybrid_override_pattern", len(text))
        return [_PATTERN[letter] for letter in text[: config.layers()]]
    name = config.first("layers_block_type", "layer_types")
    kinds = ["attention" if kind == "full_attention" else str(kind) for kind in config.entries(name)]
    check_kinds(config, name, kinds, _PATTERN.values())
    return kinds


NEMOTRON_EXPERTS = Experts(
    count=("n_routed_experts",),
    shared=lambda config, _: config.number("moe_shared_expert_intermediate_size") * config.number("n_shared_experts"),
    sparse=lambda config: [kind == "moe" for kind in _nemotron_kinds(config)],
    gated=False,
    router_bias=True,
    latent=optional("moe_latent_size"),
    prefix="mixer",
)


def nemotron_h(config: ConfigReader) -> ArchitectureFields:
    """Read Nemotron-H and Nemotron 3: each layer is a Mamba-2 layer, attention, an MLP or experts, and one norm."""
    kinds = _nemotron_kinds(config)
    parts: dict[str, LayerPart] = {}
    fields: ArchitectureFields = {}
    latent = config.optional_count("moe_latent_size")
    if "mamba" in kinds:
        parts["mamba"] = mamba2(config)
    if "attention" in kinds:
        heads = config.count("num_attention_heads")
        width = config.optional_count("head_dim", "attention_head_dim") or hidden_of(config) // heads
        parts["attention"] = softmax(head_dim=width)(config)
    if "mlp" in kinds:
        fields["intermediate"] = config.count("intermediate_size")
        parts["mlp"] = dense_mlp(hidden_of(config), fields["intermediate"], gated=False, prefix="mixer")
    if "moe" in kinds:
        fields |= NEMOTRON_EXPERTS.fields(config)
        parts["moe"] = NEMOTRON_EXPERTS.routed(config, fields)
        if latent is not None:
            config.note("moe_latent_size", latent, "the routed experts work in this width")
    head_dim = config.optional_count("head_dim", "attention_head_dim")
    return in_groups(config, [parts[kind] for kind in kinds], norms=1, mlp="plain", head_dim=head_dim, **fields)


def _minimax_m3_mixers(config: ConfigReader) -> list[LayerPart]:
    """Read grouped heads, and in most layers an indexer that selects blocks of tokens."""
    grouped = softmax(
        head_dim=default("head_dim", 128),
        qk_norm=_qk_norm,
        output_gate=choose(is_set("attention_output_gate"), "full"),
    )(config)
    if not config.has("sparse_attention_config"):
        return [grouped] * config.layers()
    sparse = section(config, "sparse_attention_config")
    heads, width = sparse.count("sparse_num_index_heads"), sparse.count("sparse_index_dim")
    indexer = LayerPart(
        matrices=(
            matrix("self_attn.index_q_proj", heads * width, hidden_of(config)),
            matrix("self_attn.index_k_proj", width, hidden_of(config)),
        ),
        others=2 * width,
        caches=(indexer_cache(width)._replace(value_bytes=None),),
    )
    listed = sparse.get_list("sparse_attention_freq")
    selecting = sparse.entries("sparse_attention_freq", config) if listed else [1] * config.layers()
    return [grouped.join(indexer) if selects else grouped for selects in selecting]


def _qk_norm(config: ConfigReader) -> str | None:
    if not config.raw.get("use_qk_norm"):
        return None
    config.require_one_of("qk_norm_type", "per_head", "per_layer")
    return "per_head" if config.raw.get("qk_norm_type") == "per_head" else "all_heads"


MINIMAX_M3 = layered(
    _minimax_m3_mixers,
    Experts(
        count=("num_local_experts", "n_routed_experts", "num_experts"),
        width=lambda config: config.optional_count("moe_intermediate_size") or config.count("intermediate_size"),
        shared=lambda config, width: (
            config.number("n_shared_experts") * (config.number("shared_intermediate_size") or width)
        ),
        sparse=listed_sparse("moe_layer_freq", 1),
        dense=("dense_intermediate_size",),
        router_bias=is_set("use_routing_bias"),
    ),
    head_dim=default("head_dim", 128),
)


def minimax_m3_text(config: ConfigReader) -> ArchitectureFields:
    """Read MiniMax-M3 by the names that transformers gives its fields."""
    kinds = kinds_of_layers(config, "layer_types", ("full_attention", "minimax_m3_sparse"))
    renamed: dict[str, Any] = {
        "use_qk_norm": True,
        "qk_norm_type": "per_head",
        "use_routing_bias": True,
        "n_shared_experts": 1,
        "moe_layer_freq": [int(sparse) for sparse in listed_sparse("mlp_layer_types", "sparse")(config)],
    }
    if kinds is not None:
        renamed["sparse_attention_config"] = {
            "sparse_attention_freq": [int(kind != "full_attention") for kind in kinds],
            "sparse_num_index_heads": config.raw.get("index_n_heads"),
            "sparse_index_dim": config.raw.get("index_head_dim"),
        }
    given = {name: value for name, value in config.raw.items() if value is not None}
    fields: ArchitectureFields = MINIMAX_M3(config.with_fields(renamed | given))
    return fields


def _lfm2_kinds(config: ConfigReader) -> Sequence[str]:
    kinds = kinds_of_layers(config, "layer_types", ("conv", "full_attention"))
    attending = set(config.numbers_of_layers("full_attn_idxs"))
    return kinds or ["full_attention" if layer in attending else "conv" for layer in range(config.layers())]


def _short_convolution(config: ConfigReader) -> LayerPart:
    hidden, kernel = hidden_of(config), config.count_or_default("conv_L_cache", 3)
    biases = (4 * hidden + hidden) if config.raw.get("conv_bias") else 0
    return LayerPart(
        matrices=(matrix("conv.in_proj", 3 * hidden, hidden), matrix("conv.out_proj", hidden, hidden)),
        others=hidden * kernel + biases,
        state_bytes=hidden * kernel * CONV_BYTES,
    )


def _lfm2_width(config: ConfigReader) -> int:
    """Return the width of a dense MLP: two thirds of the stated one, rounded up, unless the file says otherwise."""
    width = config.count("block_ff_dim", "intermediate_size")
    if config.has("num_experts") or config.raw.get("block_auto_adjust_ff_dim") is False:
        return width
    unit, factor = config.count_or_default("block_multiple_of", 256), config.factor("block_ffn_dim_multiplier", 1)
    return -(-int(factor * int(2 * width / 3)) // unit) * unit


LFM2 = layered(
    by_kind(
        _lfm2_kinds,
        {
            "conv": _short_convolution,
            "full_attention": softmax(
                head_dim=lambda config: hidden_of(config) // config.count("num_attention_heads"), qk_norm="per_head"
            ),
        },
    ),
    Experts(
        count=("num_experts",),
        sparse=after(some_layers("num_dense_layers")),
        dense=_lfm2_width,
        present=has("num_experts"),
        router_bias=is_set("use_expert_bias", True),
        prefix="feed_forward",
    ),
    tied=is_set("tie_embedding", True),
)
"""LFM2: short convolutions in most layers, attention in the others; from some layer on experts (LFM2-MoE)."""


def _step_experts(sparse_field: str) -> Experts:
    return Experts(
        count=("n_routed_experts", "num_experts", "moe_num_experts"),
        per_token=("num_experts_per_tok", "moe_top_k"),
        shared=lambda config, width: (
            config.number("share_expert_dim", "share_expert_dims") or config.number("n_shared_experts") * width
        ),
        sparse=listed_sparse(sparse_field, 1, "sparse"),
        router_bias=lambda config: (
            config.raw.get("topk_method") == "noaux_tc" or bool(config.raw.get("use_moe_router_bias"))
        ),
    )


MIMO_V2 = layered(
    by_kind(
        lambda config: ["window" if near else "full" for near in config.entries("hybrid_layer_pattern")],
        {
            "full": softmax(
                head_dim=count("head_dim"),
                v_head_dim=optional("v_head_dim"),
                sinks=is_set("add_full_attention_sink_bias"),
            ),
            "window": softmax(
                heads=count("swa_num_attention_heads", "num_attention_heads"),
                kv_heads=count("swa_num_key_value_heads", "num_key_value_heads"),
                head_dim=count("swa_head_dim", "head_dim"),
                v_head_dim=optional("swa_v_head_dim", "v_head_dim"),
                window=count("sliding_window", "sliding_window_size"),
                sinks=is_set("add_swa_attention_sink_bias"),
            ),
        },
    ),
    _step_experts("moe_layer_freq"),
    head_dim=optional("head_dim"),
)
"""MiMo-V2: most layers have a window and heads of their own (`swa_...`), and sinks."""


def _step3_windows(config: ConfigReader) -> LayerPart:
    """Read the layers of Step with a window, whose heads an object of their own may have."""
    near = config.raw.get("attention_other_setting")
    other = config.within(near, "attention_other_setting") if isinstance(near, dict) else config
    heads = config.optional_count("num_sliding_attention_heads") or other.count("num_attention_heads")
    kv_heads = other.optional_count("num_key_value_heads", "num_attention_groups") or STEP_KV_HEADS(config)
    check_heads(other, heads, kv_heads)
    windowed: LayerPart = softmax(
        heads=heads,
        kv_heads=kv_heads,
        window=optional("sliding_window"),
        **STEP_HEADS,
    )(config)
    return windowed


STEP_HEADS: dict[str, Source] = {
    "head_dim": default("head_dim", 128),
    "qk_norm": "per_head",
    "output_gate": "per_head",
}
STEP_KV_HEADS = count("num_key_value_heads", "num_attention_groups")
STEP3 = layered(
    by_kind(
        lambda config: (
            kinds_of_layers(config, "layer_types", ("sliding_attention", "full_attention"))
            or ["full_attention"] * config.layers()
        ),
        {"full_attention": softmax(kv_heads=STEP_KV_HEADS, **STEP_HEADS), "sliding_attention": _step3_windows},
    ),
    _step_experts("mlp_layer_types"),
    head_dim=optional("head_dim"),
)
"""Step 3.5 and 3.7: windows in most layers, a gate for each head, experts from some layer on."""


def nemotron_nas(config: ConfigReader) -> ArchitectureFields:
    """Read Llama-Nemotron, whose layers were pruned one by one: no attention or no MLP, or a narrower one."""
    blocks = config.entries("block_configs")
    for place, block in enumerate(blocks):
        if not isinstance(block, dict):
            config.refuse(f"block_configs.{place}", f"{shown(block)} is not an object")
    heads, hidden = config.count("num_attention_heads"), hidden_of(config)
    parts, widths, kv_heads = [], {0}, {1}
    for place, block in enumerate(blocks):
        mixer, mlp = (block.get(name) if isinstance(block.get(name), dict) else {} for name in ("attention", "ffn"))
        for part, name in ((mixer, "attention"), (mlp, "ffn")):
            if part.get("replace_with_linear"):
                config.refuse(f"block_configs.{place}.{name}", "replace_with_linear is not understood")
        layer = LayerPart()
        if not mixer.get("no_op"):
            block_reader = config.within(mixer, f"block_configs.{place}.attention")
            shared = block_reader.count("n_heads_in_group")
            if heads % shared:
                block_reader.refuse("n_heads_in_group", f"{shared:,} does not divide num_attention_heads, {heads:,}")
            kv_heads.add(heads // shared)
            layer = layer.join(
                attention(hidden, heads=heads, kv_heads=heads // shared, head_dim=hidden // heads),
                LayerPart(others=hidden),
            )
        if not mlp.get("no_op"):
            # Two thirds of the factor, rounded up to a multiple of 256.
            width = int(2 * config.within(mlp, f"block_configs.{place}.ffn").factor("ffn_mult") * hidden / 3)
            width = -(-width // 256) * 256
            widths.add(width)
            layer = layer.join(dense_mlp(hidden, width), LayerPart(others=hidden))
        parts.append(layer)
    return in_groups(config, parts, norms=0, intermediate=max(widths) or None, kv_heads=max(kv_heads))


GRANITE_HYBRID = layered(
    by_kind(
        lambda config: kinds_of_layers(config, "layer_types", ("mamba", "attention")) or ["mamba"] * config.layers(),
        {
            "mamba": mamba2,
            "attention": softmax(
                head_dim=lambda config: hidden_of(config) // config.count("num_attention_heads"),
                bias=stated("attention_bias"),
            ),
        },
    ),
    Experts(
        count=("num_local_experts",),
        width=count("intermediate_size"),
        shared=lambda config, _: config.number("shared_intermediate_size"),
        dense=("shared_intermediate_size",),
        present=number("num_local_experts"),
    ),
)
"""Granite 4: Mamba-2 layers and a few of attention; experts beside a shared MLP, or (H-Micro) that MLP alone."""


def falcon_h1(config: ConfigReader) -> ArchitectureFields:
    """Read Falcon-H1: attention and Mamba-2 side by side in every layer, then a gated MLP."""
    for name in ("mlp_bias", "projectors_bias", "mamba_proj_bias"):
        config.require_one_of(name, False)
    width = config.count("intermediate_size")
    head_dim = config.optional_count("head_dim") or hidden_of(config) // config.count("num_attention_heads")
    beside = softmax(head_dim=head_dim, bias=stated("attention_bias"))(config)
    layer = beside.join(mamba2(config), dense_mlp(hidden_of(config), width, prefix="feed_forward"))
    return in_groups(config, [layer] * config.layers(), intermediate=width)


LONGCAT_EXPERTS = Experts(
    count=("n_routed_experts",),
    per_token=("moe_topk",),
    width=count("expert_ffn_hidden_size"),
    sparse=lambda config: [True] * config.count("num_layers"),
    router_bias=True,
)


def longcat_flash(config: ConfigReader) -> ArchitectureFields:
    """Read LongCat-Flash (arXiv 2509.01322), whose layers are two of MLA and a dense MLP, and experts in the first.

    Some experts of the router compute nothing: of those that a token selects, their share is left out on average.
    """
    width, zero = config.count("ffn_hidden_size"), config.number("zero_expert_num")
    half = latent_attention(config).join(dense_mlp(hidden_of(config), width, prefix="mlps"))
    fields = LONGCAT_EXPERTS.fields(config)
    router = LayerPart(others=zero * (hidden_of(config) + 1))
    whole = half.join(LONGCAT_EXPERTS.routed(config, fields), router)
    if zero:
        experts, selected = fields["experts"], fields["experts_per_token"]
        fields["experts_per_token"] = max(1, round(selected * experts / (experts + zero)))
        why = f"experts with weights on average, of the {selected} that a token selects"
        config.note("moe_topk", fields["experts_per_token"], why)
    layers = [whole, half] * config.count("num_layers")
    return in_groups(config, layers, intermediate=width, **read_fields(config, LATENT), **fields)
