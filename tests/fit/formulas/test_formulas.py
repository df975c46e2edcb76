"""Formulas by hand: figures that a reader can check with a pencil."""

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from app.fit.formulas import compute
from app.fit.formulas.architecture import Architecture, LayerCache
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.memory import (
    ExpertShare,
    KvCache,
    Parallelism,
    ServedModel,
    ServingLoad,
    build_kv_cache,
    experts_read,
    inference_need,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    max_sequences,
    padding_share,
    serving_overhead,
)
from app.fit.formulas.optimizer import (
    LORA_MODULES,
    RECIPES,
    lora_matrices,
    lora_params,
    missing_for_modules,
    model_states,
)
from app.fit.formulas.quantities import GIB, ZERO, Assumptions
from app.fit.formulas.training_memory import (
    ActivationPolicy,
    LayerWidths,
    MicroBatch,
    TrainedModel,
    korthikanti_layer_bytes,
    layers_in_flight,
    loss_bytes,
    modern_layer_bytes,
    training_need,
)
from tests.fit.formulas.test_hf_hybrids import HUNYUAN_A13B

GPT = LayerWidths(hidden=1000, heads=10, kv_width=1000, intermediate=4000)
BATCH = MicroBatch(sequence_tokens=100)
SBH = 100 * 1000
SCORES = 5 * 10 * 100 / 1000


@pytest.mark.parametrize(
    ("policy", "per_sbh"),
    [
        ({}, 34 + SCORES),
        ({"tensor": 4}, 10 + 24 / 4 + SCORES / 4),
        ({"tensor": 4, "sequence_parallel": True}, (34 + SCORES) / 4),
        ({"tensor": 4, "recompute": "selective"}, 10 + 24 / 4),
        ({"tensor": 4, "recompute": "selective", "sequence_parallel": True}, 34 / 4),
        ({"value_bytes": 4}, 66 + 9 * SCORES / 5),
    ],
)
def test_a_gpt_layer_stores_what_the_table_of_korthikanti_has(policy: dict[str, Any], per_sbh: float) -> None:
    kept = korthikanti_layer_bytes(GPT, BATCH, ActivationPolicy(formula="korthikanti", **policy))
    assert kept == pytest.approx(SBH * per_sbh)


def test_a_wider_mlp_keeps_more() -> None:
    wide = LayerWidths(hidden=1000, heads=10, kv_width=1000, intermediate=8000)
    kept = korthikanti_layer_bytes(wide, BATCH, ActivationPolicy(recompute="selective"))
    assert kept == pytest.approx(SBH * (18 + 4 * 8))


LLAMA_LAYER = LayerWidths(hidden=4096, heads=32, kv_width=1024, intermediate=14336)


def test_a_modern_layer_of_llama_3_8b_keeps_28_hidden_states_in_eager_code_and_20_compiled() -> None:
    kept = modern_layer_bytes(LLAMA_LAYER, MicroBatch(sequence_tokens=32768), ActivationPolicy())
    assert kept.high == pytest.approx(1.4 * 7 * GIB)
    assert kept.mid == pytest.approx(20.5 / 28 * 7 * GIB)
    assert kept.low == pytest.approx(0.8 * kept.mid)


def test_selective_recomputation_keeps_half_of_a_modern_layer() -> None:
    batch = MicroBatch(sequence_tokens=8192, micro_batch=2)
    whole, selective = (
        modern_layer_bytes(LLAMA_LAYER, batch, ActivationPolicy(recompute=kind)) for kind in ("none", "selective")
    )
    assert selective.mid == pytest.approx(whole.mid / 2)
    assert selective.high < whole.high


def test_inputs_of_matrices_are_stored_in_the_precision() -> None:
    batch = MicroBatch(sequence_tokens=1)
    wide, fp8, nvfp4 = (
        modern_layer_bytes(LLAMA_LAYER, batch, ActivationPolicy(precision=one)).mid for one in ("bf16", "fp8", "nvfp4")
    )
    assert wide - fp8 == 3 * 4096 + 14336
    assert wide > fp8 > nvfp4


def test_a_fused_loss_needs_less_than_a_chunked_one_and_that_less_than_the_whole() -> None:
    batch = MicroBatch(sequence_tokens=4096)
    fused, chunked, full = (loss_bytes(4096, 128256, batch, 1, kind) for kind in ("fused", "chunked", "full"))
    assert fused.low < chunked.low < full.low
    assert fused.mid < chunked.mid < full.mid
    assert fused.high < chunked.high < full.high
    assert full.mid == 12 * 4096 * 128256


def test_copies_of_weights_in_the_precision_shrink_to_two_layers_where_weights_are_sharded() -> None:
    model = TrainedModel(
        params=8e9, gathered_params=8e9, recipe=RECIPES["mixed_adam"], largest_layer=2e8, quantized_copies=2.0
    )
    alone = training_need(model, Parallelism(), 1)
    sharded = training_need(replace(model, stage=3), Parallelism(), 8)
    assert alone.buffers.mid == 16e9
    assert sharded.buffers.mid - training_need(
        replace(model, stage=3, quantized_copies=0.0), Parallelism(), 8
    ).buffers.mid == pytest.approx(8e8)


@pytest.mark.parametrize(
    ("policy", "in_flight"),
    [
        ({"pipeline": 8}, 96),
        ({"pipeline": 8, "chunks": 3}, 96 * (1 + 7 / 24)),
        ({"pipeline": 8, "micro_batches": 2}, 24),
    ],
)
def test_a_pipeline_keeps_the_micro_batches_in_flight(policy: dict[str, Any], in_flight: float) -> None:
    assert layers_in_flight(96, ActivationPolicy(**policy)) == pytest.approx(in_flight)


@pytest.mark.parametrize(("tensor", "heads"), [(1, 8), (2, 4), (8, 1), (16, 1)])
def test_heads_are_replicated_where_there_are_more_ranks_than_heads(tensor: int, heads: int) -> None:
    cache = KvCache(kinds=((LayerCache(heads=8, values=256), 80),))
    assert kv_bytes_per_token(cache, Parallelism(tensor=tensor)) == 80 * heads * 256 * 2


def test_a_latent_is_on_every_tensor_rank() -> None:
    cache = build_kv_cache(Architecture(layers=61, kv_lora_rank=512, qk_rope_head_dim=64))
    assert kv_bytes_per_token(cache, Parallelism(tensor=8)) == kv_bytes_per_token(cache) == 61 * 576 * 2


def test_a_window_caps_its_layers_and_pages_round_up() -> None:
    whole, windowed = LayerCache(heads=1, values=1), LayerCache(heads=1, values=1, window=1024)
    cache = KvCache(kinds=((whole, 1), (windowed, 5)), value_bytes=1)
    assert kv_bytes_per_sequence(cache, 10_000) == 10_000 + 5 * 1024
    paged = KvCache(kinds=((whole, 1),), value_bytes=1, block_tokens=16)
    assert kv_bytes_per_sequence(paged, 17) == 32


def test_llama_70b_on_four_gpus_needs_what_the_parts_add_up_to() -> None:
    served = ServedModel(
        weights_bytes=2 * 70_553_706_496,
        cache=KvCache(kinds=((LayerCache(heads=8, values=256), 80),)),
        layers=80,
        step_bytes_per_token=6 * (28672 + 8192),
    )
    load = ServingLoad(context_tokens=8192, sequences=32, batched_tokens=8192)
    overhead = serving_overhead(Parallelism(tensor=4), usable_bytes=79.15 * GIB, utilization=0.92)
    need = inference_need(served, load, Parallelism(tensor=4), overhead)
    parts = (need.weights, need.kv_cache, need.activations.mid, need.overhead.mid, need.total.mid)
    assert [round(part / GIB, 2) for part in parts] == [32.85, 20.0, 0.42, 4.09, 57.36]
    most = max_sequences(served, load, Parallelism(tensor=4), 0.92 * 79.15 * GIB, overhead)
    assert most is not None
    assert most.mid == 56


@pytest.mark.parametrize(("usable", "mid"), [(22.07, 0.43), (79.15, 1.29), (93.1, 1.5)])
def test_an_engine_takes_more_of_a_larger_gpu(usable: float, mid: float) -> None:
    """Logs of vLLM with a utilization of 0.90: 0.09 GiB, 0.87 to 2.2, and 1.4."""
    overhead = serving_overhead(Parallelism(), usable_bytes=usable * GIB, utilization=0.9)
    assert overhead.mid / GIB == pytest.approx(mid, abs=0.01)


def test_graphs_are_in_the_budget_at_the_default_utilization() -> None:
    less, default, more = (
        serving_overhead(Parallelism(), usable_bytes=80 * GIB, utilization=share) for share in (0.9, 0.92, 0.95)
    )
    assert (default.mid - less.mid) / GIB == pytest.approx(1.3)
    assert default.low == less.low
    assert (more.low, more.mid, more.high) == (less.low, less.mid, default.high)


@pytest.mark.parametrize("usable", [1.0, 2.7, 5.5, 14.6, 22.1, 79.2, 277.0])
def test_graphs_are_where_a_utilization_has_room_for_them(usable: float) -> None:
    """What is left free has as much of the graphs as it can; less of it never gives the rest more room."""
    shares = (0.05, 0.3, 0.6, 0.8, 0.9, 0.91, 0.919, 0.921, 0.93, 0.95, 0.99, 1.0)
    taken = {u: serving_overhead(Parallelism(), usable_bytes=usable * GIB, utilization=u) for u in (*shares, 0.92)}
    left = {u: u * usable * GIB - overhead.mid for u, overhead in taken.items()}
    for u, overhead in taken.items():
        outside = taken[0.92].mid - overhead.mid
        assert outside == pytest.approx(0 if u == 0.92 else min(1.3 * GIB, (1 - u) * usable * GIB), abs=1)
        assert overhead.low <= overhead.mid <= overhead.high <= taken[0.92].high
    assert all(left[lower] <= left[higher] + 1 for lower, higher in pairwise(shares))  # to a byte: of floats
    assert left[0.919] >= left[0.92] <= left[0.921]  # of the default the budget has all, and what is free has none


def test_tensor_ranks_hold_projections_to_a_latent_whole() -> None:
    load = ServingLoad(context_tokens=0, sequences=0, batched_tokens=1)
    need = inference_need(ServedModel(weights_bytes=800, replicated=0.01), load, Parallelism(tensor=8))
    assert need.weights == 100 + 800 * 0.01 * 7 / 8


@pytest.mark.parametrize(
    ("layers", "experts", "stored", "tensor", "loaded"),
    [
        (36, 128, 60.768, 1, 65.9651),  # vLLM's GitHub, 23278
        (36, 128, 60.768, 4, 17.2217),
        (24, 32, 12.816, 1, 13.72),
    ],
)
def test_experts_in_mxfp4_are_loaded_with_the_widths_that_kernels_take(
    layers: int, experts: int, stored: float, tensor: int, loaded: float
) -> None:
    """gpt-oss as logs of vLLM with Marlin have it: 2,880 is no multiple of 256, nor are its parts of 128."""
    share = layers * experts * 3 * 2880**2 * 4.25 / 8 / GIB / stored
    served = ServedModel(weights_bytes=stored * GIB, experts=ExpertShare(experts, share, (2880, 2880)))
    need = inference_need(
        served, ServingLoad(context_tokens=0, sequences=0, batched_tokens=1), Parallelism(tensor=tensor)
    )
    assert (need.weights + need.padding.mid) / GIB == pytest.approx(loaded, rel=0.005)
    assert need.padding.low <= need.padding.mid <= need.padding.high


def test_widths_that_kernels_take_are_not_padded() -> None:
    experts = ExpertShare(per_layer=384, share=0.97, padded=(7168, 2048))
    assert padding_share(experts, Parallelism(tensor=8), 61) == ZERO
    alone = padding_share(experts._replace(padded=(2880, 2880)), Parallelism(expert=8, tensor=8))
    split = padding_share(experts._replace(padded=(2880, 2880)), Parallelism(tensor=8))
    assert 0 < alone.mid < split.mid  # 360 of a width become 384; whole experts 2,944 of 2,880


@pytest.mark.parametrize(
    ("name", "each"),
    [
        ("mixed_adam", 16),
        ("mixed_adam_fp32_grads", 18),
        ("zero_infinity_adam", 20),
        ("fp32_adam", 16),
        ("bf16_adam", 8),
        ("bf16_adam_fp32_states", 12),
        ("mixed_adam_8bit", 10),
        ("mixed_sgd_momentum", 12),
        ("mixed_muon", 12),
    ],
)
def test_a_recipe_takes_its_bytes_a_parameter(name: str, each: int) -> None:
    assert model_states(1, RECIPES[name]).total == each


def test_the_distributed_optimizer_of_megatron_is_stage_1_with_18_bytes() -> None:
    held = model_states(1000, RECIPES["mixed_adam_fp32_grads"], stage=1, shards=4).total
    assert held == 1000 * (6 + 12 / 4)


@pytest.mark.parametrize(("stage", "offload", "each"), [(2, "optimizer", 2), (3, "optimizer", 2 / 8), (3, "all", 0)])
def test_what_is_offloaded_is_not_on_the_gpu(stage: int, offload: Any, each: float) -> None:
    assert model_states(1000, RECIPES["mixed_adam"], stage=stage, shards=8, offload=offload).total == 1000 * each


def test_adapters_on_queries_and_values_of_llama_7b() -> None:
    llama = Architecture(layers=32, hidden=4096, heads=32, kv_heads=32, head_dim=128, intermediate=11008)
    assert lora_params(8, lora_matrices(llama, ["q", "v"])) == 4_194_304
    assert lora_params(16, lora_matrices(llama, ["q", "k", "v", "o", "gate", "up", "down"])) == 39_976_960


QWEN3_SPARSE: dict[str, Any] = {
    "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 2, "vocab_size": 151936,
    "tie_word_embeddings": False,
}  # fmt: skip
GLM_45_AIR: dict[str, Any] = {
    "model_type": "glm4_moe", "num_hidden_layers": 46, "hidden_size": 4096, "num_attention_heads": 96,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 10944, "moe_intermediate_size": 1408,
    "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1,
    "vocab_size": 151552, "attention_bias": True, "tie_word_embeddings": False,
}  # fmt: skip


def by_hand(hidden: int, queries: int, keys: int, layers: int, *mlps: tuple[int, int]) -> int:
    """The sum of inputs and outputs of all linear layers: `mlps` are widths with the number of MLPs that have them."""
    attention = 2 * (hidden + queries) + 2 * (hidden + keys)
    return layers * attention + sum(number * 3 * (hidden + width) for width, number in mlps)


@pytest.mark.parametrize(
    ("config", "sides", "params"),
    [
        (QWEN3_SPARSE, by_hand(2048, 4096, 512, 48, (6144, 24), (768, 24 * 128)), 438_042_624),
        (GLM_45_AIR, by_hand(4096, 12288, 1024, 46, (10944, 1), (1408, 45 * 128), (1408, 45)), 1_566_010_368),
        (HUNYUAN_A13B, by_hand(4096, 4096, 1024, 32, (3072, 32 * 64), (3072, 32)), 729_284_608),
    ],
    ids=["half of the layers are dense", "GLM-4.5-Air", "Hunyuan-A13B"],
)
def test_adapters_are_on_dense_layers_and_shared_experts_too(config: dict[str, Any], sides: int, params: int) -> None:
    shape = read_config(config, Assumptions())
    assert lora_params(16, lora_matrices(shape, LORA_MODULES)) == 16 * sides == params


def test_adapters_of_a_model_with_dense_layers_need_their_width() -> None:
    shape = Architecture(layers=4, hidden=8, heads=2, kv_heads=1, head_dim=4, experts=2, moe_intermediate=16)
    assert missing_for_modules(shape, LORA_MODULES) == ()
    assert missing_for_modules(replace(shape, moe_layers=3), LORA_MODULES) == ("intermediate",)
    assert missing_for_modules(replace(shape, moe_intermediate=None), LORA_MODULES) == ("moe_intermediate",)
    assert missing_for_modules(replace(shape, moe_layers=3), ["q"]) == ()


def test_two_sequences_read_more_experts_than_one_and_fewer_than_twice_as_many() -> None:
    assert experts_read(8, 2, 1) == 0.25
    assert experts_read(8, 2, 2) == 1 - 0.75**2
    assert experts_read(8, 8, 5) == 1


def test_costs() -> None:
    assert compute.per_million_tokens(Decimal(36), Decimal(1000)) == 10
