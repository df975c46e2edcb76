"""Model families with softmax attention alone, whose layers differ by window, heads or width."""

from typing import Any

from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.hf_fields import ArchitectureFields, ConfigReader
from app.fit.formulas.hf_hybrids import in_groups, kinds_of_layers, sparse_layers
from app.fit.formulas.hf_mixers import CONV_BYTES, attention, hidden_of, indexer_cache, matrix, section
from app.fit.formulas.hf_mlps import dense_mlp, routed_experts
from app.fit.formulas.layers import LayerPart


def minimax_m3(config: ConfigReader) -> ArchitectureFields:
    """Read MiniMax-M3: grouped heads, and in most layers an indexer that selects blocks of tokens."""
    heads, kv_heads = config.count("num_attention_heads"), config.count("num_key_value_heads")
    width = config.optional_count("moe_intermediate_size") or config.count("intermediate_size")
    shared = config.number("n_shared_experts") * (config.number("shared_intermediate_size") or width)
    gate = "full" if config.raw.get("attention_output_gate") else None
    head_dim = config.count_or_default("head_dim", 128)
    softmax = attention(
        config, heads=heads, kv_heads=kv_heads, head_dim=head_dim, qk_norm=_qk_norm(config), output_gate=gate
    )
    indexed = softmax.join(_block_indexer(config)) if config.has("sparse_attention_config") else softmax
    sparse_attention = _flags(config, "sparse_attention_config", "sparse_attention_freq")
    experts = config.count("num_local_experts", "n_routed_experts", "num_experts")
    moe = routed_experts(
        config,
        experts=experts,
        width=width,
        shared_width=shared,
        router_bias=bool(config.raw.get("use_routing_bias")),
    )
    sparse = sparse_layers(config, "moe_layer_freq", (1,))
    dense_width = config.optional_count("dense_intermediate_size")
    dense = moe if all(sparse) else dense_mlp(config, dense_width or config.count("dense_intermediate_size"))
    return in_groups(
        config,
        [
            (indexed if indexes else softmax).join(moe if one else dense)
            for indexes, one in zip(sparse_attention, sparse, strict=True)
        ],
        experts=experts,
        experts_per_token=config.count("num_experts_per_tok"),
        moe_intermediate=width,
        shared_intermediate=shared,
        moe_layers=sum(sparse),
        intermediate=dense_width,
        head_dim=head_dim,
    )


def _qk_norm(config: ConfigReader) -> str | None:
    if not config.raw.get("use_qk_norm"):
        return None
    config.require_one_of("qk_norm_type", "per_head", "per_layer")
    return "per_head" if config.raw.get("qk_norm_type") == "per_head" else "all_heads"


def _flags(config: ConfigReader, name: str, field: str) -> list[bool]:
    """Return a list of 0 and 1 within an object, one for each layer; all false where the object is missing."""
    if not config.has(name):
        return [False] * config.layers()
    listed = section(config, name).get_list(field) or [1] * config.layers()
    if len(listed) != config.layers():
        raise InvalidWorkload(f"config.{name}.{field}", f"has {len(listed)} entries for {config.layers()} layers")
    return [bool(one) for one in listed]


def _block_indexer(config: ConfigReader) -> LayerPart:
    """Count the indexer of MiniMax-M3: queries of some heads, and a key a token, without values."""
    sparse = section(config, "sparse_attention_config")
    heads, width = sparse.count("sparse_num_index_heads"), sparse.count("sparse_index_dim")
    return LayerPart(
        matrices=(
            matrix("self_attn.index_q_proj", heads * width, hidden_of(config)),
            matrix("self_attn.index_k_proj", width, hidden_of(config)),
        ),
        others=2 * width,
        caches=(indexer_cache(width)._replace(value_bytes=None),),
    )


def minimax_m3_text(config: ConfigReader) -> ArchitectureFields:
    """Read MiniMax-M3 by the names that transformers gives its fields."""
    kinds = kinds_of_layers(config, "layer_types", ("full_attention", "minimax_m3_sparse"))
    renamed: dict[str, Any] = {
        "use_qk_norm": True,
        "qk_norm_type": "per_head",
        "use_routing_bias": True,
        "n_shared_experts": 1,
        "moe_layer_freq": [int(one) for one in sparse_layers(config, "mlp_layer_types", ("sparse",))],
    }
    if kinds is not None:
        renamed["sparse_attention_config"] = {
            "sparse_attention_freq": [int(kind != "full_attention") for kind in kinds],
            "sparse_num_index_heads": config.raw.get("index_n_heads"),
            "sparse_index_dim": config.raw.get("index_head_dim"),
        }
    given = {name: value for name, value in config.raw.items() if value is not None}
    return minimax_m3(config.with_fields(renamed | given))


def lfm2(config: ConfigReader) -> ArchitectureFields:
    """Read LFM2: short convolutions in most layers, attention in the others; from some layer on experts (LFM2-MoE)."""
    layers, hidden, kernel = config.layers(), hidden_of(config), config.count_or_default("conv_L_cache", 3)
    kinds = kinds_of_layers(config, "layer_types", ("conv", "full_attention"))
    attending = set(config.get_list("full_attn_idxs"))
    kinds = kinds or ["full_attention" if number in attending else "conv" for number in range(layers)]
    heads, kv_heads = config.count("num_attention_heads"), config.count("num_key_value_heads")
    biases = (4 * hidden + hidden) if config.raw.get("conv_bias") else 0
    conv = LayerPart(
        matrices=(matrix("conv.in_proj", 3 * hidden, hidden), matrix("conv.out_proj", hidden, hidden)),
        others=hidden * kernel + biases,
        state_bytes=hidden * kernel * CONV_BYTES,
    )
    softmax = attention(config, heads=heads, kv_heads=kv_heads, head_dim=hidden // heads, qk_norm="per_head")
    width, experts = _lfm2_width(config), config.optional_count("num_experts")
    dense = dense_mlp(config, width, prefix="feed_forward")
    moe, sparse, fields = dense, 0, {}
    if experts is not None:
        expert_width = config.count("moe_intermediate_size")
        moe = routed_experts(
            config,
            experts=experts,
            width=expert_width,
            router_bias=bool(config.raw.get("use_expert_bias", True)),
            prefix="feed_forward",
        )
        sparse = layers - min(layers, config.number("num_dense_layers"))
        fields = {
            "experts": experts,
            "experts_per_token": config.count("num_experts_per_tok"),
            "moe_intermediate": expert_width,
            "moe_layers": sparse,
        }
    parts = [
        (conv if kind == "conv" else softmax).join(dense if number < layers - sparse else moe)
        for number, kind in enumerate(kinds)
    ]
    tied = bool(config.raw.get("tie_embedding", True))
    return in_groups(config, parts, tied=tied, intermediate=width, **fields)


def _lfm2_width(config: ConfigReader) -> int:
    """Return the width of a dense MLP: two thirds of the stated one, rounded up, unless the file says otherwise."""
    width = config.count("block_ff_dim", "intermediate_size")
    if config.has("num_experts") or config.raw.get("block_auto_adjust_ff_dim") is False:
        return width
    factor, unit = config.raw.get("block_ffn_dim_multiplier", 1), config.count_or_default("block_multiple_of", 256)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= 64:  # noqa: PLR2004
        raise InvalidWorkload("config.block_ffn_dim_multiplier", f"{factor!r} is no factor")
    return -(-int(factor * int(2 * width / 3)) // unit) * unit


def mimo_v2(config: ConfigReader) -> ArchitectureFields:
    """Read MiMo-V2: most layers have a window and heads of their own (`swa_...`), and sinks."""
    windowed = [bool(one) for one in config.get_list("hybrid_layer_pattern")]
    if len(windowed) != config.layers():
        raise InvalidWorkload(
            "config.hybrid_layer_pattern", f"has {len(windowed)} entries for {config.layers()} layers"
        )
    full = attention(
        config,
        heads=config.count("num_attention_heads"),
        kv_heads=config.count("num_key_value_heads"),
        head_dim=config.count("head_dim"),
        v_head_dim=config.optional_count("v_head_dim"),
        sinks=bool(config.raw.get("add_full_attention_sink_bias")),
    )
    near = attention(
        config,
        heads=config.count("swa_num_attention_heads", "num_attention_heads"),
        kv_heads=config.count("swa_num_key_value_heads", "num_key_value_heads"),
        head_dim=config.count("swa_head_dim", "head_dim"),
        v_head_dim=config.optional_count("swa_v_head_dim", "v_head_dim"),
        window=config.count("sliding_window", "sliding_window_size"),
        sinks=bool(config.raw.get("add_swa_attention_sink_bias")),
    )
    return _with_experts(config, [near if one else full for one in windowed], sparse_field="moe_layer_freq")


def step3(config: ConfigReader) -> ArchitectureFields:
    """Read Step 3.5 and 3.7: windows in most layers, a gate for each head, experts from some layer on."""
    kinds = kinds_of_layers(config, "layer_types", ("sliding_attention", "full_attention"))
    kinds = kinds or ["full_attention"] * config.layers()
    heads, kv_heads = config.count("num_attention_heads"), config.count("num_key_value_heads", "num_attention_groups")
    near = config.raw.get("attention_other_setting")
    other = config.within(near, "attention_other_setting") if isinstance(near, dict) else config
    width = config.count_or_default("head_dim", 128)
    common: dict[str, Any] = {"head_dim": width, "qk_norm": "per_head", "output_gate": "per_head"}
    mixers = {
        "full_attention": attention(config, heads=heads, kv_heads=kv_heads, **common),
        "sliding_attention": attention(
            config,
            heads=config.optional_count("num_sliding_attention_heads") or other.count("num_attention_heads"),
            kv_heads=other.optional_count("num_key_value_heads", "num_attention_groups") or kv_heads,
            window=config.optional_count("sliding_window"),
            **common,
        ),
    }
    return _with_experts(config, [mixers[kind] for kind in kinds], sparse_field="mlp_layer_types")


def _with_experts(config: ConfigReader, mixers: list[LayerPart], *, sparse_field: str) -> ArchitectureFields:
    experts = config.count("n_routed_experts", "num_experts", "moe_num_experts")
    width = config.count("moe_intermediate_size")
    shared = config.number("share_expert_dim", "share_expert_dims") or config.number("n_shared_experts") * width
    biased = config.raw.get("topk_method") == "noaux_tc" or bool(config.raw.get("use_moe_router_bias"))
    moe = routed_experts(config, experts=experts, width=width, shared_width=shared, router_bias=biased)
    sparse = sparse_layers(config, sparse_field, (1, "sparse"))
    dense = moe if all(sparse) else dense_mlp(config, config.count("intermediate_size"))
    return in_groups(
        config,
        [mixer.join(moe if one else dense) for mixer, one in zip(mixers, sparse, strict=True)],
        experts=experts,
        experts_per_token=config.count("num_experts_per_tok", "moe_top_k"),
        moe_intermediate=width,
        shared_intermediate=shared,
        moe_layers=sum(sparse),
        intermediate=config.optional_count("intermediate_size"),
        head_dim=config.optional_count("head_dim"),
    )


def nemotron_nas(config: ConfigReader) -> ArchitectureFields:
    """Read Llama-Nemotron, whose layers were pruned one by one: no attention or no MLP, or a narrower one."""
    blocks = config.get_list("block_configs")
    if len(blocks) != config.layers() or not all(isinstance(block, dict) for block in blocks):
        raise InvalidWorkload("config.block_configs", f"is no list of {config.layers()} objects")
    heads, hidden = config.count("num_attention_heads"), hidden_of(config)
    parts, widths, kv_heads = [], {0}, {1}
    for number, block in enumerate(blocks):
        mixer, mlp = (block.get(name) if isinstance(block.get(name), dict) else {} for name in ("attention", "ffn"))
        for part, name in ((mixer, "attention"), (mlp, "ffn")):
            if part.get("replace_with_linear"):
                raise InvalidWorkload(f"config.block_configs.{number}.{name}", "replace_with_linear is not understood")
        layer = LayerPart()
        if not mixer.get("no_op"):
            shared = config.within(mixer, f"block_configs.{number}.attention").count("n_heads_in_group")
            kv_heads.add(heads // shared)
            layer = layer.join(
                attention(config, heads=heads, kv_heads=heads // shared, head_dim=hidden // heads),
                LayerPart(others=hidden),
            )
        if not mlp.get("no_op"):
            width = _pruned_width(mlp.get("ffn_mult"), hidden, number)
            widths.add(width)
            layer = layer.join(dense_mlp(config, width), LayerPart(others=hidden))
        parts.append(layer)
    return in_groups(config, parts, norms=0, intermediate=max(widths) or None, kv_heads=max(kv_heads))


def _pruned_width(factor: Any, hidden: int, number: int) -> int:
    """Return the width of a pruned MLP: 2/3 of the factor, rounded up to a multiple of 256."""
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= 64:  # noqa: PLR2004
        raise InvalidWorkload(f"config.block_configs.{number}.ffn.ffn_mult", f"{factor!r} is no factor")
    width = int(2 * factor * hidden / 3)
    return -(-width // 256) * 256
