import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from app.fit.formulas.hf_config import read_config
from app.fit.formulas.memory import Parallelism
from app.fit.formulas.optimizer import Loading
from app.fit.formulas.quantities import GIB, Assumptions, InvalidWorkload
from app.fit.placement.evaluate import evaluate
from app.fit.placement.fixes import FixFinder
from app.fit.placement.layouts import PartitionLimits, blocked_widths, checkpoint_quantization, lay_out, partition_error
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import prepare
from app.fit.placement.ranking import rank
from app.fit.verdict import Failure, Rejection
from tests.fit.formulas.test_hf_hybrids import shape as released
from tests.fit.formulas.test_hf_quantization import NEXT
from tests.fit.placement.factories import (
    LLAMA_8B,
    LLAMA_70B,
    QWEN_235B,
    codes,
    expect_option,
    expect_rejection,
    machine,
    prepare_request,
    serving,
    training,
    vm,
)

A100_PCIE = {"usable_bytes": 79.2 * GIB, "bandwidth": 1.935e12, "domain_gpus": 2, "infiniband": False}
RACK = {"gpus": Fraction(4), "usable_bytes": 184 * GIB, "domain_gpus": 72, "domain_vms": 18, "capability": "10.0"}


def test_a_vm_needs_the_memory_to_load_what_its_gpus_hold() -> None:
    job, small = training(method="full", recompute="full", zero_stage=3), machine(memory_bytes=60 * GIB)
    option = expect_option(prepare_request(job, max_nodes=64), small)
    memory = next(one for one in option.headrooms if one.resource == "memory")
    assert memory.required == pytest.approx(2 * 70_553_706_496 / option.attempt.nodes / GIB)
    needed_by_loading: dict[Loading, float] = {"whole": 2 * 70_553_706_496 / GIB, "none": 0.0}
    for loading, needed in needed_by_loading.items():
        on = machine(memory_bytes=needed * GIB + 1)
        loaded = expect_option(prepare_request(replace(job, loading=loading), max_nodes=64), on)
        assert next(one for one in loaded.headrooms if one.resource == "memory").required == pytest.approx(needed)
    rejection = expect_rejection(prepare_request(replace(job, loading="whole"), max_nodes=64), small)
    assert codes(rejection) == {"RAM"}
    (fix,) = FixFinder(prepare_request(replace(job, loading="whole"), max_nodes=64)).find_fixes(vm(), small, rejection)
    assert fix.text == "loading=sharded"


@pytest.mark.parametrize(
    ("dtype", "block", "tensor", "whole"),
    [
        ("fp8", 128, 8, False), ("fp8", 128, 4, True), ("fp8", 128, 2, True), ("fp8", 128, 1, True),
        ("fp8", None, 8, True), ("bf16", 128, 8, True), ("awq_int4", 128, 8, True), ("fp8", 64, 8, True),
    ],
)  # fmt: skip
def test_quantized_weights_are_split_into_whole_blocks(dtype: str, block: int | None, tensor: int, whole: bool) -> None:
    shape = replace(QWEN_235B, fp8_block=block)
    on, load = machine(usable_bytes=600 * GIB), serving(dtype=dtype, context_tokens=1024, concurrency=1)
    prepared = prepare_request(replace(load, tensor_parallel=tensor), shape)
    verdict = evaluate(vm(), on, prepared)
    if whole:
        assert isinstance(verdict, PlacementOption)
        return
    assert isinstance(verdict, Rejection)
    assert codes(verdict) == {"TP_BLOCKS"}
    assert verdict.failures[0].detail == "8 tensor ranks get 192 of a width of 1536, and its blocks are of 128"
    assert [fix.text for fix in FixFinder(prepared).find_fixes(vm(), on, verdict)] == [
        "tensor_parallel=4", "expert_parallel=8", "tensor_parallel=null"
    ]  # fmt: skip
    assert expect_option(prepare_request(load, shape), on).attempt.parallelism.tensor == 4


@pytest.mark.parametrize(("chip", "dtype"), [("8.0", "bf16"), ("7.5", "fp16")])
def test_weights_in_32_bits_are_first_offered_16(chip: str, dtype: str) -> None:
    on, prepared = machine(capability=chip, usable_bytes=36 * GIB), prepare_request(serving(dtype="fp32"))
    texts = [fix.text for fix in FixFinder(prepared).find_fixes(vm(), on, expect_rejection(prepared, on))]
    assert f"dtype={dtype}" in texts
    assert not {"dtype=fp8", "dtype=int8", "dtype=awq_int4"} & {*texts}


@pytest.mark.parametrize(
    ("chip", "weights", "memory", "dtype"),
    [
        ("8.0", "bf16", 80, "bf16"), ("8.0", "fp16", 80, "fp16"), ("7.5", "fp16", 80, "fp16"),
        ("7.5", "awq_int4", 80, "fp16"), ("8.0", "fp8", 80, "bf16"), ("8.0", "bf16", 20.5, "int8"),
    ],
)  # fmt: skip
def test_in_place_of_a_cache_in_fp8_the_16_bits_of_the_model_are_offered_first(
    chip: str, weights: str, memory: float, dtype: str
) -> None:
    on = machine(capability=chip, gpus=Fraction(1), usable_bytes=memory * GIB)
    load = serving(dtype=weights, kv_dtype="fp8", concurrency=2)
    prepared = prepare_request(load, LLAMA_8B)
    rejection = expect_rejection(prepared, on)
    assert [failure.constraint for failure in rejection.failures] == ["kv_dtype"]
    texts = [fix.text for fix in FixFinder(prepared).find_fixes(vm(), on, rejection)]
    assert texts == [f"kv_dtype={dtype}"]
    expect_option(prepare_request(replace(load, kv_dtype=dtype), LLAMA_8B), on)


@pytest.mark.parametrize("name", ["DeepSeek-V3.2", "GLM-5", "GLM-5.2", "DeepSeek-V4-Flash"])
def test_fp8_models_with_an_indexer_are_split_over_eight_ranks(name: str) -> None:
    # An indexer's keys are 128 wide, one block: every rank holds their projection whole.
    blocks = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    prepared = prepare_request(serving(dtype="fp8", tensor_parallel=8), released(name, quantization_config=blocks))
    assert expect_option(prepared, machine(usable_bytes=250 * GIB)).attempt.parallelism == Parallelism(tensor=8)


@pytest.mark.parametrize(("tensor", "whole"), [(1, True), (2, True), (4, True), (8, False)])
def test_the_published_fp8_of_qwen3_next_is_split_like_its_experts(tensor: int, whole: bool) -> None:
    # Its file excludes in_proj_ba, 64 rows; an expert of 512 on 8 ranks is half a block, which vLLM rejects.
    kept = ["lm_head", *(f"model.layers.{layer}.linear_attn.in_proj_ba" for layer in range(48))]
    blocks = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": kept}
    shape = read_config(NEXT | {"quantization_config": blocks}, Assumptions())
    on = machine(usable_bytes=250 * GIB)
    verdict = evaluate(vm(), on, prepare_request(serving(dtype="fp8", tensor_parallel=tensor), shape))
    if whole:
        assert isinstance(verdict, PlacementOption)
        return
    assert isinstance(verdict, Rejection)
    assert verdict.failures[0].detail == "8 tensor ranks get 64 of a width of 512, and its blocks are of 128"


def test_the_output_of_linear_attention_is_split_by_its_inputs() -> None:
    # vLLM: RowParallelLinear, with 32 heads of 128 as inputs of the 2,048 outputs.
    others = ["self_attn", "mlp", "in_proj_qkvz", "in_proj_ba", "lm_head"]
    blocks = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": others}
    shape = read_config(NEXT | {"quantization_config": blocks}, Assumptions())
    assert [split.width for split in blocked_widths(shape, checkpoint_quantization(shape, "fp8"))] == [32 * 128]


def test_the_loading_of_weights_is_an_assumption() -> None:
    assumptions = Assumptions()
    prepare(prepare_request(training()).request, assumptions)
    (assumption,) = [one for one in assumptions.recorded if one.field == "training.loading"]
    assert assumption.value == "sharded"


def test_llama_70b_needs_57_gib_on_each_of_four_a100() -> None:
    option = expect_option(prepare_request(serving()), machine(gpus=Fraction(4), capability="8.0", **A100_PCIE))
    assert option.attempt.parallelism == Parallelism(tensor=4)
    assert option.attempt.required_bytes / GIB == pytest.approx(57.36, abs=0.01)
    assert option.attempt.budget_bytes / GIB == pytest.approx(72.86, abs=0.01)
    assert option.speed is not None
    assert option.speed.max_tokens_per_s == pytest.approx(1101.3, abs=0.1)
    assert "TP_OVER_PCIE" in option.warnings


def test_llama_70b_lacks_25_gib_on_two_h100_nvl() -> None:
    (failure,) = expect_rejection(
        prepare_request(serving()), machine(gpus=Fraction(2), usable_bytes=93.6 * GIB, domain_gpus=2)
    ).failures
    assert failure.code == "GPU_MEMORY_PER_GPU"
    assert failure.required == pytest.approx(110.86, abs=0.01)
    assert failure.available == pytest.approx(86.11, abs=0.01)
    assert failure.detail == "needs 110.9 GiB on each of 2 GPUs, but only 86.1 GiB is usable"


def test_a_shortfall_of_a_few_mib_is_seen_in_the_detail() -> None:
    def lacking(usable_gib: float) -> Failure:
        gpus = machine(gpus=Fraction(2), usable_bytes=usable_gib * GIB, domain_gpus=2)
        (failure,) = expect_rejection(prepare_request(serving()), gpus).failures
        return failure

    failure = lacking(93.6)
    for _ in range(20):  # what is needed grows with the memory that there is
        assert failure.required is not None
        failure = lacking((failure.required - 0.004) / 0.92)
    assert failure.share_missing < 1e-3
    needed, usable = (float(number) for number in re.findall(r"([\d.]+) GiB", failure.detail))
    assert needed == pytest.approx(failure.required, abs=5e-3)
    assert usable == pytest.approx(failure.available, abs=5e-3)
    assert needed > usable


def test_layers_are_split_over_the_gpus_of_an_nvlink_domain() -> None:
    assert expect_option(prepare_request(serving(), LLAMA_8B)).attempt.parallelism.tensor == 8
    joined_by_pcie = expect_option(prepare_request(serving(), LLAMA_8B), machine(domain_gpus=2)).attempt
    assert (joined_by_pcie.parallelism.tensor, joined_by_pcie.replicas) == (2, 4)


def test_replicas_are_added_where_one_holds_too_few_sequences() -> None:
    one = expect_option(prepare_request(serving(tensor_parallel=4), LLAMA_70B)).attempt
    assert (one.nodes, one.replicas) == (1, 2)
    many = expect_option(prepare_request(serving(concurrency=2000, pipeline_parallel=1), max_nodes=16)).attempt
    assert many.nodes == many.replicas > 1


def test_stages_span_several_vms_where_one_is_too_small() -> None:
    option = expect_option(prepare_request(serving(), max_nodes=8), machine(gpus=Fraction(1), infiniband=False))
    assert (option.attempt.nodes, option.attempt.parallelism.pipeline) == (4, 4)
    assert "NODES_WITHOUT_INFINIBAND" in option.warnings


def test_a_rack_of_18_vms_is_one_nvlink_domain_of_72_gpus() -> None:
    rack = machine(**RACK)
    assert rack.max_tensor_ranks(18, tp_in_nvlink=True) == 72
    assert rack.max_tensor_ranks(2, tp_in_nvlink=True) == 8
    assert machine().max_tensor_ranks(18, tp_in_nvlink=True) == 8
    wide = expect_option(prepare_request(serving(tensor_parallel=64, dtype="fp8"), max_nodes=16), rack)
    assert (wide.attempt.nodes, wide.attempt.parallelism.tensor) == (16, 64)
    assert "NODES_WITHOUT_INFINIBAND" not in wide.warnings
    assert codes(expect_rejection(prepare_request(serving(tensor_parallel=16), max_nodes=4))) == {"NVLINK_DOMAIN"}


def test_a_fraction_of_a_gpu_serves_alone_or_as_replicas() -> None:
    half = machine(gpus=Fraction(1, 2), usable_bytes=40 * GIB)
    assert expect_option(prepare_request(serving(concurrency=8), LLAMA_8B), half).attempt.parallelism.gpus == 1
    assert expect_option(prepare_request(serving(concurrency=60), LLAMA_8B, max_nodes=4), half).attempt.replicas == 4
    assert "FRACTIONAL_GPU" in codes(expect_rejection(prepare_request(serving(tensor_parallel=2), LLAMA_8B), half))


@pytest.mark.parametrize(
    ("cut", "tensor", "possible"),
    [
        ({"heads": 32}, 3, False), ({"heads": 32}, 4, True), ({"heads": 28, "kv_heads": 4}, 7, False),
        ({"heads": 64, "kv_heads": 8}, 16, True), ({"heads": 64, "mlp_widths": (11008,)}, 64, True),
        ({"heads": 64, "mlp_widths": (11000,)}, 64, False), ({}, 7, True),
    ],
)  # fmt: skip
def test_heads_and_widths_limit_the_tensor_ranks(cut: dict[str, Any], tensor: int, possible: bool) -> None:
    assert (partition_error(PartitionLimits(**cut), tensor) is None) is possible


@pytest.mark.parametrize(
    ("tensor", "pipeline", "copies", "nodes"),
    [(1, 1, 8, 1), (8, 1, 1, 1), (2, 2, 2, 1), (3, 1, 2, 1), (8, 3, 1, 3), (4, 3, 1, 2), (16, 2, 1, 4)],
)
def test_replicas_are_laid_out_on_vms_of_eight_gpus(tensor: int, pipeline: int, copies: int, nodes: int) -> None:
    assert lay_out(Parallelism(tensor=tensor, pipeline=pipeline), 8) == (
        Parallelism(tensor=tensor, pipeline=pipeline),
        copies,
        nodes,
    )


def test_training_takes_the_fewest_vms_and_the_lowest_stage() -> None:
    small = expect_option(prepare_request(training(), LLAMA_8B)).attempt
    assert (small.nodes, small.parallelism.gpus, small.replicas, small.zero_stage) == (1, 1, 8, 2)
    large = expect_option(prepare_request(training(recompute="full"), max_nodes=16)).attempt
    assert large.nodes == 3
    with_fewer = prepare_request(training(recompute="full"), max_nodes=2)
    assert codes(expect_rejection(with_fewer)) == {"GPU_MEMORY_PER_GPU"}


def test_a_deadline_takes_more_vms() -> None:
    slow = expect_option(prepare_request(training(), LLAMA_8B, max_nodes=16))
    assert slow.speed is not None
    assert slow.speed.hours is not None
    fast = expect_option(prepare_request(training(), LLAMA_8B, max_nodes=16, max_hours=slow.speed.hours.mid / 4))
    assert fast.attempt.nodes == 5  # on 4 VMs a step has its launches still
    assert slow.usd_per_job is not None
    assert fast.usd_per_job is not None
    assert 1 < fast.usd_per_job / slow.usd_per_job < 1.1


def test_vms_without_infiniband_train_together_only_where_that_is_waived() -> None:
    alone = machine(infiniband=None)
    assert codes(expect_rejection(prepare_request(training(recompute="full"), max_nodes=4), alone)) == {
        "NO_INFINIBAND",
        "GPU_MEMORY_PER_GPU",
    }
    option = expect_option(prepare_request(training(recompute="full"), max_nodes=4, require_infiniband=False), alone)
    assert "NODES_WITHOUT_INFINIBAND" in option.warnings


def test_qlora_of_llama_70b_fits_where_full_training_does_not() -> None:
    one = machine(gpus=Fraction(1))
    assert expect_option(prepare_request(training(method="qlora", recompute="full")), one).attempt.gpus == 1
    assert codes(expect_rejection(prepare_request(training()), one)) == {"GPU_MEMORY_PER_GPU"}


@pytest.mark.parametrize("sort", ["cost_per_hour", "time", "headroom", "nodes", "cost_per_1m_tokens"])
def test_options_without_a_price_come_last_in_every_order(sort: str) -> None:
    unpriced = vm("b", usd_per_hour={"on_demand": None, "spot": None})
    options, _ = rank([(unpriced, machine()), (vm(), machine())], prepare_request(serving()), sort)
    assert [option.vm.name for option in options] == ["a", "b"]
    assert [option.pareto_optimal for option in options] == [True, None]


def test_the_nearest_miss_does_not_depend_on_the_order_of_vms_that_differ_in_their_network() -> None:
    """InfiniBand is required between VMs: several that it joins may hold the model, others may not."""
    gpu = {"gpus": Fraction(1), "usable_bytes": 15.8 * GIB, "domain_gpus": 1}
    joined, alone = machine(**gpu), machine(**gpu, infiniband=False, network_gbps=None)
    sizes = [(vm("a"), alone), (vm("b"), joined)]
    prepared = prepare_request(serving(), max_nodes=1, require_infiniband=True)
    orders = [[miss.vm.name for miss in rank(some, prepared)[1]] for some in (sizes, sizes[::-1])]
    assert orders == [["b", "a"]] * 2


def test_an_option_is_optimal_unless_another_is_better_in_cost_and_time() -> None:
    slow = machine(bandwidth=1e12)
    prices = [
        vm(name, usd_per_hour={"on_demand": usd, "spot": None}) for name, usd in (("a", 10), ("b", 20), ("c", 30))
    ]
    options, _ = rank(zip(prices, (slow, machine(), slow), strict=True), prepare_request(serving()))
    assert [(option.vm.name, option.pareto_optimal) for option in options] == [
        ("a", True),
        ("b", True),
        ("c", False),
    ]


@pytest.mark.parametrize(
    ("shape", "use", "field", "missing"),
    [
        (replace(LLAMA_70B, layers=None), serving(), "inference", "architecture.params"),
        (replace(LLAMA_70B, layers=None, params=7), serving(), "inference.context_tokens", "architecture.layers"),
        (replace(LLAMA_70B, heads=None), training(), "training", "architecture.params"),
    ],
)
def test_incomplete_requests_are_rejected_with_the_missing_field(
    shape: Any, use: Any, field: str, missing: str
) -> None:
    with pytest.raises(InvalidWorkload, match=missing) as error:
        prepare_request(use, shape)
    assert error.value.field == field
