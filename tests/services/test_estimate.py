"""Any combination of fields is answered or rejected with a message; figures are finite and ranges in order."""

from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.errors import BadWorkload
from app.fit.formulas.optimizer import LORA_MODULES, RECIPES
from app.fit.formulas.quantities import Figure
from app.fit.formulas.quantization import BITS, KV_BITS
from app.schemas.bodies import TEXT_VALUES
from app.schemas.fit_request import EstimateIn
from app.schemas.fit_response import EstimateOut
from app.services.fit import estimate, to_architecture

some = st.integers(1, 200)
many = st.sampled_from([1, 2, 3, 4, 8, 64, 128])
tokens = st.sampled_from([1, 17, 4096, 10**9])
amounts = st.floats(1e-3, 1e15)
prices = st.floats(0, 1000).map(lambda price: round(price, 4))
flags = st.booleans()
dtypes = st.sampled_from(sorted(BITS))
kv_dtypes = st.sampled_from(sorted(KV_BITS))


def maybe(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of any subset of the fields."""
    return st.fixed_dictionaries({}, optional=known)


shapes = maybe(
    params=st.integers(1, 10**13), active_params=st.integers(1, 10**13), layers=some, hidden=some, heads=many,
    kv_heads=many, head_dim=some, intermediate=some, vocab=some, mlp=st.sampled_from(["gated", "plain"]),
    tied_embeddings=flags, kv_layers=some, sliding_window=tokens, sliding_layers=some, kv_lora_rank=some,
    q_lora_rank=some, qk_nope_head_dim=some, qk_rope_head_dim=some, v_head_dim=some, experts=many,
    experts_per_token=many, moe_intermediate=some, shared_intermediate=some, moe_layers=some, qkv_bias=flags,
    qk_norm=st.sampled_from(["per_head", "all_heads"]),
)  # fmt: skip
serving = maybe(
    dtype=dtypes, kv_dtype=kv_dtypes, kv_bytes_per_sequence=st.floats(1, 1e12), kv_budget_gib=amounts,
    context_tokens=tokens, prompt_tokens=tokens, concurrency=tokens, block_tokens=many, max_batched_tokens=tokens,
    utilization=st.floats(0.01, 1), tensor_parallel=many, pipeline_parallel=many,
)  # fmt: skip
training = maybe(
    method=st.sampled_from(["full", "lora", "qlora"]), recipe=st.sampled_from(sorted(RECIPES)),
    weight_bytes_per_param=st.floats(0, 64), base_dtype=dtypes, zero_stage=st.integers(0, 3), data_parallel=many,
    shard_group=many, tensor_parallel=many, pipeline_parallel=many, sequence_parallel=flags, pipeline_chunks=many,
    micro_batches=many, offload=st.sampled_from(["none", "optimizer", "all"]), lora_rank=some,
    lora_modules=st.lists(st.sampled_from(LORA_MODULES), max_size=7),
    sequence_tokens=tokens, micro_batch=many, global_batch=tokens,
    recompute=st.sampled_from(["none", "selective", "full"]), activation_bytes=st.sampled_from([2, 4]),
    activation_formula=st.sampled_from(["korthikanti", "modern", "zero"]), hidden_state_copies=amounts, tokens=amounts,
    attention_flops=flags, gpu_hours=prices, tokens_per_s_per_gpu=amounts,
)  # fmt: skip


def consistent(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out the fields that say nothing without another: refused, they would be all that most examples try."""
    adapted = {"base_dtype", "lora_rank", "lora_modules"} if fields.get("method") not in {"lora", "qlora"} else set()
    without = {"experts": {"moe_layers", "experts_per_token"}, "sliding_window": {"sliding_layers"}}
    adapted = adapted.union(*(names for needed, names in without.items() if needed not in fields))
    return {name: value for name, value in fields.items() if name not in adapted}


gpus = maybe(
    count=many, usable_gib=amounts, bandwidth_gb_per_s=amounts, peak_tflops=amounts, achieved_tflops=amounts,
    mfu=st.floats(0.01, 1), usd_per_gpu_hour=prices,
)  # fmt: skip
uses = st.one_of(
    serving.map(lambda use: {"inference": use}), training.map(consistent).map(lambda use: {"training": use})
)
workloads = st.builds(
    lambda shape, gpu, use: {"architecture": consistent(shape), "gpus": gpu, **use}, shapes, gpus, uses
)


def figures(part: Any) -> list[Figure]:
    """Return every figure of an answer."""
    if isinstance(part, Figure):
        return [part]
    return (
        [found for field in fields(part) for found in figures(getattr(part, field.name))] if is_dataclass(part) else []
    )


@pytest.mark.takes_seconds
@given(workloads)
@settings(max_examples=6 * settings().max_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_workload_is_answered_or_rejected_with_a_message(body: dict[str, Any]) -> None:
    asked = EstimateIn.model_validate(body)
    try:
        answer = estimate(asked, {})
    except BadWorkload:
        return
    EstimateOut.model_validate(answer).model_dump_json()
    for figure in figures(answer):
        ends = [float(end) for end in (figure.low, figure.mid, figure.high, figure.value) if end is not None]
        assert len(ends) == (3 if figure.certainty == "estimate" else 1)
        assert all(isfinite(end) and end >= 0 for end in ends)
        assert ends == sorted(ends)


@given(workloads)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_workload_written_without_its_defaults_is_the_same(body: dict[str, Any]) -> None:
    asked = EstimateIn.model_validate(body)
    written = asked.model_dump_json(exclude_defaults=True)
    assert EstimateIn.model_validate_json(written, context={TEXT_VALUES: True}) == asked


def test_shared_experts_of_a_preset_are_part_of_its_architecture() -> None:
    row = {"id": "x", "layers": 3, "experts": 8, "experts_per_token": 2, "shared_experts": 2, "moe_intermediate": 5}
    shape = to_architecture(row)
    assert (shape.layers, shape.experts, shape.shared_intermediate) == (3, 8, 10)


def test_a_preset_without_experts_has_none() -> None:
    shape = to_architecture({"id": "x", "layers": 3, "experts": 0, "experts_per_token": 0, "moe_layers": 0})
    assert (shape.experts, shape.experts_per_token, shape.moe_layers) == (None, None, None)
