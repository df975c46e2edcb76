"""Model families whose layers differ: linear attention, state-space layers, windows, indexers, heads, widths.

Each function reads a `config.json` into architecture fields with the groups of equal layers. Source: the modelling code
of transformers 5.23, and where it has no such family, of SGLang 0.5.23.
"""

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

from app.fit.formulas.architecture import LayerPart, group_layers
from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.hf_fields import ArchitectureFields, ConfigReader
from app.fit.formulas.hf_layers import (
    CONV_BYTES,
    attention,
    compressed_attention,
    delta_net,
    dense_mlp,
    hidden_of,
    indexer_cache,
    kimi_delta_attention,
    latent_attention,
    mamba2,
    matrix,
    routed_experts,
    section,
)

Reader = Callable[[ConfigReader], ArchitectureFields]


def in_groups(
    config: ConfigReader, layers: Sequence[LayerPart], *, norms: int = 2, tied: bool = False, **fields: Any
) -> ArchitectureFields:
    """Return the fields of a model of these layers, each with `norms` norms over the width."""
    width = LayerPart(others=norms * hidden_of(config))
    groups = group_layers([layer.join(width) for layer in layers])
    windows = {cache.window for group in groups for cache in group.content.caches if cache.window is not None}
    windowed = sum(group.count for group in groups if any(cache.window is not None for cache in group.content.caches))
    return {
        "groups": groups,
        "layers": len(layers),
        "kv_layers": sum(group.count for group in groups if group.content.caches),
        "sliding_window": max(windows, default=None),
        "sliding_layers": windowed or None,
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        **{name: value for name, value in fields.items() if value is not None},
    }


def kinds_of_layers(config: ConfigReader, name: str, allowed: Sequence[str]) -> list[str] | None:
    """Return a list with the kind of every layer; None where the field is missing."""
    kinds = config.get_list(name)
    unknown = {str(kind) for kind in kinds} - set(allowed)
    if unknown:
        raise InvalidWorkload(f"config.{name}", f"{', '.join(sorted(unknown))} is not understood")
    if kinds and config.has("num_hidden_layers") and len(kinds) < config.layers():
        raise InvalidWorkload(f"config.{name}", f"has {len(kinds)} entries, and there are {config.layers()} layers")
    return [str(kind) for kind in kinds[: config.layers()]] if kinds else None


def _dense_layers(config: ConfigReader, default: int = 0) -> int:
    """Return how many layers at the start have no experts."""
    dense = config.raw.get("first_k_dense_replace")
    if dense is None:
        return default
    if isinstance(dense, bool) or not isinstance(dense, int) or not 0 <= dense <= config.layers():
        raise InvalidWorkload("config.first_k_dense_replace", f"{dense!r} is no number of layers")
    return dense


def sparse_layers(config: ConfigReader, name: str, sparse: tuple[Any, ...], default: int = 0) -> list[bool]:
    """Return which layers have experts: by a list of one entry for each, or all but the first ones."""
    if isinstance(config.raw.get(name), list):
        listed = config.get_list(name)
        if len(listed) != config.layers():
            raise InvalidWorkload(f"config.{name}", f"has {len(listed)} entries for {config.layers()} layers")
        return [entry in sparse for entry in listed]
    dense = _dense_layers(config, default)
    return [number >= dense for number in range(config.layers())]


def qwen_hybrid(config: ConfigReader) -> ArchitectureFields:
    """Read Qwen3-Next and Qwen3.5: gated delta nets, and softmax attention with a gate in every fourth layer."""
    every = config.count_or_default("full_attention_interval", 4)
    linear, full = "linear_attention", "full_attention"
    kinds = kinds_of_layers(config, "layer_types", (linear, full))
    kinds = kinds or list(islice(cycle([linear] * (every - 1) + [full]), config.layers()))
    gate = "full" if config.raw.get("attn_output_gate", True) else None
    heads, kv_heads = config.count("num_attention_heads"), config.count("num_key_value_heads")
    head_dim = config.count_or_default("head_dim", 256)
    softmax = attention(config, heads=heads, kv_heads=kv_heads, head_dim=head_dim, qk_norm="per_head", output_gate=gate)
    mixers = {linear: delta_net(config), full: softmax}
    mlps, fields = _qwen_mlps(config)
    return in_groups(config, [mixers[kind].join(mlp) for kind, mlp in zip(kinds, mlps, strict=True)], **fields)


def _qwen_mlps(config: ConfigReader) -> tuple[list[LayerPart], ArchitectureFields]:
    experts, width = config.optional_count("num_experts"), config.optional_count("moe_intermediate_size")
    layers = config.layers()
    if experts is None or width is None:
        intermediate = config.count("intermediate_size")
        return [dense_mlp(config, intermediate)] * layers, {"intermediate": intermediate}
    step, named = config.optional_count("decoder_sparse_step") or 1, config.get_list("mlp_only_layers")
    shared = config.number("shared_expert_intermediate_size")
    moe = routed_experts(config, experts=experts, width=width, shared_width=shared, shared_gate=bool(shared))
    sparse = [(number + 1) % step == 0 and number not in named for number in range(layers)]
    dense = moe if all(sparse) else dense_mlp(config, config.count("intermediate_size"))
    fields = {
        "experts": experts,
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": width,
        "shared_intermediate": shared,
        "moe_layers": sum(sparse),
        "intermediate": config.optional_count("intermediate_size"),
    }
    return [moe if one else dense for one in sparse], fields


def llama4(config: ConfigReader) -> ArchitectureFields:
    """Read Llama 4: three of four layers attend within chunks, and every second one (Maverick) has experts."""
    layers, width = config.layers(), config.count("intermediate_size")
    step = config.count_or_default("interleave_moe_layer_step", 1)
    named = config.get_list("moe_layers")
    kinds = kinds_of_layers(config, "layer_types", ("chunked_attention", "full_attention"))
    if kinds is None:
        rope = config.get_list("no_rope_layers") or [int((number + 1) % 4 != 0) for number in range(layers)]
        kinds = ["chunked_attention" if one else "full_attention" for one in rope]
    chunk = config.optional_count("attention_chunk_size")
    heads, kv_heads = config.count("num_attention_heads"), config.count("num_key_value_heads")
    experts = config.count("num_local_experts")
    moe = routed_experts(config, experts=experts, width=width, shared_width=width)
    dense = dense_mlp(config, config.count("intermediate_size_mlp"))
    sparse = [number in named if named else (number + 1) % step == 0 for number in range(layers)]
    mixers = {
        kind: attention(
            config, heads=heads, kv_heads=kv_heads, head_dim=config.count_or_default("head_dim", 128), window=window
        )
        for kind, window in (("full_attention", None), ("chunked_attention", chunk))
    }
    return in_groups(
        config,
        [mixers[kind].join(moe if one else dense) for kind, one in zip(kinds, sparse, strict=True)],
        experts=experts,
        experts_per_token=config.count("num_experts_per_tok"),
        moe_intermediate=width,
        shared_intermediate=width,
        moe_layers=sum(sparse),
        intermediate=config.count("intermediate_size_mlp"),
    )


def sparse_mla(config: ConfigReader) -> ArchitectureFields:
    """Read DeepSeek-V3.2 and GLM-5: MLA with an indexer; some layers share the selection of an earlier one."""
    mixers = {selects: latent_attention(config, indexer=selects) for selects in (True, False)}
    return _mla_with_experts(config, [mixers[selects] for selects in _selecting_layers(config)])


def _selecting_layers(config: ConfigReader) -> list[bool]:
    """Return which layers have an indexer of their own."""
    kinds = kinds_of_layers(config, "indexer_types", ("full", "shared"))
    if kinds is not None:
        return [kind == "full" for kind in kinds]
    every, first = (config.raw.get(name, value) for name, value in (("index_topk_freq", 1), _SKIPPED))
    if type(every) is not int or type(first) is not int or every < 1:
        raise InvalidWorkload("config.index_topk_freq", "and index_skip_topk_offset are no whole numbers")
    return [max(number - first + 1, 0) % every == 0 for number in range(config.layers())]


def mistral_large4(config: ConfigReader) -> ArchitectureFields:
    """Read Mistral Large 4: sparse MLA, in every fourth layer without positions; layers may share a latent."""
    layers, hidden = config.layers(), hidden_of(config)
    every = config.count_or_default("no_rope_layer_interval", 4)
    rotated = config.get_list("no_rope_layers") or [int((number + 1) % every != 0) for number in range(layers)]
    sources = config.get_list("kv_source_layers") or list(range(layers))
    if len(rotated) < layers or len(sources) < layers:
        raise InvalidWorkload("config.no_rope_layers", f"or kv_source_layers has less than {layers} entries")
    # Heads have a scale and a bias, those of an indexer, too, whose queries have a norm of their own.
    scales = LayerPart(others=2 * config.count("num_attention_heads"))
    own = LayerPart(others=2 * hidden + 2 * config.count("index_n_heads"))
    mixers = [
        latent_attention(config, indexer=selects, rotates=bool(rotates), shares_cache=source != number).join(
            scales, *((own,) if selects else ())
        )
        for number, (rotates, source, selects) in enumerate(
            zip(rotated[:layers], sources[:layers], _selecting_layers(config), strict=True)
        )
    ]
    return _mla_with_experts(config, mixers, router_bias=False)


_SKIPPED = ("index_skip_topk_offset", 2)
_LATENT_FIELDS = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank")


def _mla_with_experts(
    config: ConfigReader, mixers: Sequence[LayerPart], *, router_bias: bool = True, **moe: Any
) -> ArchitectureFields:
    """Return layers with experts, of which some at the start have a dense MLP, and the fields of MLA."""
    experts, width = config.count("n_routed_experts", "num_experts"), config.count("moe_intermediate_size")
    shared = config.number("n_shared_experts", "num_shared_experts") * width
    sparse = sparse_layers(config, "mlp_layer_types", ("sparse",))
    routed = routed_experts(config, experts=experts, width=width, shared_width=shared, router_bias=router_bias, **moe)
    dense = routed if all(sparse) else dense_mlp(config, config.count("intermediate_size"))
    latent: ArchitectureFields = {name: config.count(name) for name in _LATENT_FIELDS}
    return in_groups(
        config,
        [mixer.join(routed if one else dense) for mixer, one in zip(mixers, sparse, strict=True)],
        **latent,
        q_lora_rank=config.optional_count("q_lora_rank"),
        head_dim=config.count("qk_nope_head_dim") + config.count("qk_rope_head_dim"),
        experts=experts,
        experts_per_token=config.count("num_experts_per_tok", "num_experts_per_token"),
        moe_intermediate=width,
        shared_intermediate=shared,
        moe_layers=sum(sparse),
        intermediate=config.optional_count("intermediate_size"),
    )


def kimi_linear(config: ConfigReader) -> ArchitectureFields:
    """Read Kimi Linear and Kimi K3: Kimi Delta Attention, and MLA in the layers listed from 1."""
    full = section(config, "linear_attn_config").get_list("full_attn_layers")
    gate = bool(config.raw.get("mla_use_output_gate"))
    linear, softmax = kimi_delta_attention(config), latent_attention(config, output_gate=gate)
    mixers = [softmax if number + 1 in full else linear for number in range(config.layers())]
    latent = config.optional_count("routed_expert_hidden_size")
    if config.has("attn_res_block_size"):
        residual = LayerPart(others=4 * hidden_of(config))
        mixers = [mixer.join(residual) for mixer in mixers]
    fields = _mla_with_experts(config, mixers, latent=latent)
    extra = LayerPart(others=latent) if latent is not None and config.raw.get("latent_moe_use_norm") else LayerPart()
    ends = 2 * hidden_of(config) if config.has("attn_res_block_size") else 0
    outside = ends + extra.others * fields["moe_layers"]
    return fields | {"outside": outside, "outside_active": outside}


def deepseek_v4(config: ConfigReader) -> ArchitectureFields:
    """Read DeepSeek-V4: compressed attention, hyper-connections of several streams, experts in every layer."""
    layers, hidden, width = config.layers(), hidden_of(config), config.count("moe_intermediate_size")
    ratios = config.get_list("compress_ratios")
    if len(ratios) < layers or any(type(ratio) is not int or ratio < 0 for ratio in ratios):
        raise InvalidWorkload("config.compress_ratios", f"is no list of {layers} whole numbers")
    experts, streams = config.count("n_routed_experts"), config.count_or_default("hc_mult", 4)
    shared = config.number("n_shared_experts") * width
    hashed = config.number("num_hash_layers")
    moe = routed_experts(config, experts=experts, width=width, shared_width=shared)
    mixing = (2 + streams) * streams
    connections = LayerPart(others=2 * (mixing * streams * hidden + mixing + 3))
    bias = LayerPart(others=experts)
    mixers = {ratio: compressed_attention(config, ratio) for ratio in set(ratios[:layers])}
    parts = [
        mixers[ratio].join(moe, connections, *(() if number < hashed else (bias,)))
        for number, ratio in enumerate(ratios[:layers])
    ]
    outside = streams * streams * hidden + streams + 1
    return in_groups(
        config,
        parts,
        experts=experts,
        experts_per_token=config.count("num_experts_per_tok"),
        moe_intermediate=width,
        shared_intermediate=shared,
        moe_layers=layers,
        q_lora_rank=config.count("q_lora_rank"),
        kv_heads=1,
        outside=outside,
        outside_active=outside,
    )


def gemma4(config: ConfigReader) -> ArchitectureFields:
    """Read Gemma 4: windows in most layers, wider heads in the others, and on small models embeddings per layer."""
    layers, hidden = config.layers(), hidden_of(config)
    kinds = kinds_of_layers(config, "layer_types", ("sliding_attention", "full_attention"))
    kinds = kinds or ["full_attention" if (number + 1) % 6 == 0 else "sliding_attention" for number in range(layers)]
    reused = layers - config.number("num_kv_shared_layers")
    heads, kv_heads = config.count("num_attention_heads"), config.count("num_key_value_heads")
    wide = _gemma4_wide_heads(config, kinds) | {"keys_are_values": bool(config.raw.get("attention_k_eq_v"))}
    narrow: dict[str, Any] = {
        "kv_heads": kv_heads,
        "head_dim": config.count("head_dim"),
        "window": config.count("sliding_window"),
    }
    intermediate = config.count("intermediate_size")
    double = 2 if config.raw.get("use_double_wide_mlp") else 1
    beside, experts = _gemma4_parts(config)
    parts = [
        attention(
            config,
            heads=heads,
            qk_norm="per_head",
            shares_cache=number >= reused,
            **(wide if kind == "full_attention" else narrow),
        ).join(dense_mlp(config, intermediate * (double if number >= reused else 1)), beside)
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
    each = section(config, "per_layer_config") if config.has("per_layer_config") else config.within({}, "")
    own = section(each, f"{number:02}") if each.has(f"{number:02}") else each
    return {
        "kv_heads": own.optional_count("num_key_value_heads")
        or config.optional_count("num_global_key_value_heads")
        or config.count("num_key_value_heads"),
        "head_dim": own.optional_count("head_dim")
        or config.optional_count("global_head_dim")
        or config.count("head_dim"),
    }


def _gemma4_parts(config: ConfigReader) -> tuple[LayerPart, ArchitectureFields]:
    """Return what a layer of Gemma 4 has beside attention and the dense MLP, and the fields of the experts."""
    hidden, per_layer = hidden_of(config), config.number("hidden_size_per_layer_input")
    beside = LayerPart(others=2 * hidden * per_layer + hidden) if per_layer else LayerPart()
    count = config.optional_count("num_experts")
    if not config.raw.get("enable_moe_block") or count is None:
        return beside, {}
    width = config.count("moe_intermediate_size", "expert_intermediate_size")
    routed = routed_experts(config, experts=count, width=width, prefix="layer", router_bias=True)
    fields = {
        "experts": count,
        "experts_per_token": config.count("top_k_experts", "num_experts_per_tok"),
        "moe_intermediate": width,
        "moe_layers": config.layers(),
    }
    return beside.join(routed, LayerPart(others=4 * hidden)), fields


_PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def nemotron_h(config: ConfigReader) -> ArchitectureFields:
    """Read Nemotron-H and Nemotron 3: each layer is a Mamba-2 layer, attention, an MLP or experts, and one norm."""
    text = config.raw.get("hybrid_override_pattern")
    if isinstance(text, str):
        unknown = set(text) - set(_PATTERN)
        if unknown:
            raise InvalidWorkload("config.hybrid_override_pattern", f"{''.join(sorted(unknown))!r} is not understood")
        kinds = [_PATTERN[letter] for letter in text]
    else:
        kinds = [str(kind) for kind in config.get_list("layers_block_type") or config.get_list("layer_types")]
    kinds = ["attention" if kind == "full_attention" else kind for kind in kinds]
    if not kinds or set(kinds) - set(_PATTERN.values()):
        raise InvalidWorkload("config.layers_block_type", f"{sorted(set(kinds))} is not understood, or missing")
    parts: dict[str, LayerPart] = {}
    for kind in set(kinds):
        parts[kind] = _nemotron_part(config, kind)
    width, latent = config.optional_count("moe_intermediate_size"), config.optional_count("moe_latent_size")
    experts: ArchitectureFields = {} if "moe" not in kinds else {
        "experts": config.count("n_routed_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": width,
        "shared_intermediate": _nemotron_shared(config),
        "moe_layers": kinds.count("moe"),
    }  # fmt: skip
    if latent is not None and "moe" in kinds:
        config.note("moe_latent_size", latent, "the routed experts work in this width")
    return in_groups(
        config,
        [parts[kind] for kind in kinds],
        norms=1,
        mlp="plain",
        intermediate=config.optional_count("intermediate_size") if "mlp" in kinds else None,
        head_dim=config.optional_count("head_dim", "attention_head_dim"),
        **experts,
    )


def _nemotron_shared(config: ConfigReader) -> int:
    shared = config.number("moe_shared_expert_intermediate_size")
    return shared * config.number("n_shared_experts")


def _nemotron_part(config: ConfigReader, kind: str) -> LayerPart:
    if kind == "mamba":
        return mamba2(config)
    if kind == "attention":
        heads = config.count("num_attention_heads")
        width = config.optional_count("head_dim", "attention_head_dim") or hidden_of(config) // heads
        return attention(config, heads=heads, kv_heads=config.count("num_key_value_heads"), head_dim=width)
    if kind == "mlp":
        return dense_mlp(config, config.count("intermediate_size"), gated=False, prefix="mixer")
    return routed_experts(
        config,
        experts=config.count("n_routed_experts"),
        width=config.count("moe_intermediate_size"),
        shared_width=_nemotron_shared(config),
        gated=False,
        router_bias=True,
        latent=config.optional_count("moe_latent_size"),
        prefix="mixer",
    )


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
