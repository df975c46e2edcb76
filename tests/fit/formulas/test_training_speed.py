"""The time of training: bounds, monotony, precision, and what is said outside of the published rates."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.estimator.estimate import estimate_training
from app.fit.estimator.workload import Gpus, TrainingWorkload
from app.fit.formulas.architecture import Architecture, count_parameters
from app.fit.formulas.optimizer import Offload
from app.fit.formulas.quantities import Assumptions
from app.fit.formulas.training_speed import (
    KNOWN_GPUS,
    PRECISION_DTYPES,
    KnownGpu,
    Precision,
    accelerator_of,
    precision_of,
    seconds_per_token,
    token_work,
)
from app.fit.results import Estimate

DENSE = Architecture(
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, intermediate=14336, vocab=128256
)  # fmt: skip
SPARSE = replace(DENSE, experts=64, experts_per_token=4, moe_intermediate=2048)
H100, GB300 = (next(gpu for gpu in KNOWN_GPUS if gpu.name == name) for name in ("H100", "GB300"))
shapes = st.sampled_from([DENSE, SPARSE])
gpus = st.sampled_from(KNOWN_GPUS)
counts = st.sampled_from([1, 8, 16, 64, 256, 1024])


def estimate(shape: Architecture = DENSE, *, peak: float = 989, count: int = 64, **training: object) -> Estimate:
    workload = TrainingWorkload(**{"tokens": 1e12, "sequence_tokens": 4096, **training})  # type: ignore[arg-type]
    return estimate_training(shape, workload, Gpus(count=count, peak_tflops=peak), Assumptions())


def rate(found: Estimate) -> float:
    assert found.training is not None
    assert found.training.compute.tokens_per_s is not None
    return float(found.training.compute.tokens_per_s.mid or 0)


def why(found: Estimate, field: str) -> str:
    return next(one.why for one in found.assumptions if one.field == field)


@given(shape=shapes, gpu=gpus, count=counts, sequence=st.integers(128, 131_072))
def test_no_gpu_exceeds_its_peak(shape: Architecture, gpu: KnownGpu, count: int, sequence: int) -> None:
    work = token_work(shape, count_parameters(shape), sequence_tokens=sequence)
    for precision, dtype in PRECISION_DTYPES.items():
        if dtype in gpu.peaks:
            accelerator = gpu.accelerator(precision)  # type: ignore[arg-type]  # a name of a precision
            least = work.matrix_flops / accelerator.matrix_peak + work.other_flops / accelerator.peak_16_bits
            assert seconds_per_token(work, accelerator, count) / 1.28**2 / 1.1 > least


@given(shape=shapes, gpu=gpus, count=counts, shorter=st.integers(128, 65_536))
def test_longer_sequences_and_recomputation_take_longer(
    shape: Architecture, gpu: KnownGpu, count: int, shorter: int
) -> None:
    accelerator, params = gpu.accelerator("bf16"), count_parameters(shape)
    base = seconds_per_token(token_work(shape, params, sequence_tokens=shorter), accelerator, count)
    longer = seconds_per_token(token_work(shape, params, sequence_tokens=2 * shorter), accelerator, count)
    again = token_work(shape, params, sequence_tokens=shorter, recomputed=True)
    assert base < longer
    assert base < seconds_per_token(again, accelerator, count)


@given(shape=shapes, gpu=gpus, one=counts, other=counts)
def test_more_gpus_never_train_fewer_tokens_a_second(shape: Architecture, gpu: KnownGpu, one: int, other: int) -> None:
    fewer, more = sorted((one, other))
    accelerator, work = gpu.accelerator("bf16"), token_work(shape, count_parameters(shape))
    assert more / seconds_per_token(work, accelerator, more) >= fewer / seconds_per_token(work, accelerator, fewer)


@given(shape=shapes, layers=st.integers(1, 100), width=st.sampled_from(["intermediate", "vocab", "layers"]))
def test_more_parameters_take_longer(shape: Architecture, layers: int, width: str) -> None:
    larger = replace(shape, **{width: (getattr(shape, width) or 0) + 128 * layers})  # type: ignore[arg-type]  # a width
    work, more = (token_work(one, count_parameters(one), sequence_tokens=4096) for one in (shape, larger))
    accelerator = H100.accelerator("bf16")
    assert seconds_per_token(work, accelerator, 64) <= seconds_per_token(more, accelerator, 64)


def test_narrower_precision_is_faster_but_not_by_the_ratio_of_the_peaks() -> None:
    work = token_work(DENSE, count_parameters(DENSE), sequence_tokens=8192)
    bf16, fp8, nvfp4 = (seconds_per_token(work, GB300.accelerator(one), 8) for one in ("bf16", "mxfp8", "nvfp4"))
    assert bf16 / 2 < fp8 < bf16
    assert fp8 / 3 < nvfp4 < fp8


def test_attention_and_the_output_layer_stay_in_16_bits() -> None:
    count = count_parameters(DENSE)
    short, long = (token_work(DENSE, count, sequence_tokens=tokens) for tokens in (0, 8192))
    assert short.matrix_flops == long.matrix_flops == 6 * (count.active - count.embeddings)
    assert short.other_flops == 6 * 128256 * 4096
    assert long.other_flops - short.other_flops == 6 * 8192 * 32 * 128 * 32


def test_experts_in_one_rack_exchange_nothing_over_the_network() -> None:
    work = token_work(SPARSE, count_parameters(SPARSE))
    rack = GB300.accelerator("bf16")
    server = replace(rack, domain_gpus=8)
    assert seconds_per_token(work, rack, 64) == seconds_per_token(work, server, 8)
    assert seconds_per_token(work, rack, 64) < seconds_per_token(work, server, 64)


@pytest.mark.parametrize(
    ("peak", "precision"), [(1979, "fp8"), (5000, "fp8"), (15_000, "nvfp4"), (10_000, "nvfp4"), (9000, "nvfp4")]
)
def test_a_peak_tells_the_precision(peak: float, precision: str) -> None:
    found = precision_of(peak)
    assert found is not None
    assert found[0] == precision


@pytest.mark.parametrize("peak", [312, 989, 2250, 2500, 123])
def test_a_peak_of_16_bits_or_of_no_known_gpu_tells_none(peak: float) -> None:
    assert precision_of(peak) is None


def test_the_bandwidth_of_an_unknown_gpu_follows_from_its_peak() -> None:
    assert accelerator_of(100, "bf16", None).bandwidth == pytest.approx(100e12 * 3.39e-3)
    assert accelerator_of(100, "bf16", 1000).bandwidth == 1e12


@given(
    shape=shapes,
    count=counts,
    precision=st.sampled_from(["bf16", "fp8", "mxfp8", "nvfp4"]),
    peak=st.floats(50, 20_000),
    more=st.floats(1, 4),
)
def test_a_higher_peak_is_never_slower(
    shape: Architecture, count: int, precision: Precision, peak: float, more: float
) -> None:
    work = token_work(shape, count_parameters(shape), sequence_tokens=4096)
    slow, fast = (accelerator_of(one, precision, 3350) for one in (peak, peak * more))
    if slow.peak_16_bits <= fast.peak_16_bits and slow.domain_gpus <= fast.domain_gpus:
        assert seconds_per_token(work, fast, count) <= seconds_per_token(work, slow, count) * (1 + 1e-9)


def test_the_precision_that_was_told_by_the_peak_is_an_assumption() -> None:
    assert "H100" in why(estimate(peak=1979), "training.precision")
    assert rate(estimate(peak=1979)) == rate(estimate(peak=1979, precision="fp8"))


def test_outside_of_the_published_rates_the_range_is_wider_and_says_so() -> None:
    widths = []
    known, longer = estimate(global_batch=512), estimate(global_batch=512, sequence_tokens=131_072)
    quantized = estimate(global_batch=512, method="qlora")
    for found, outside in ((known, ()), (longer, ("sequence",)), (quantized, ("base",))):
        assert found.training is not None
        figure = found.training.compute.tokens_per_s
        assert figure is not None
        assert figure.evidence is not None
        assert (figure.evidence.family, figure.evidence.outside) == ("training_rate", outside)
        widths.append(float(figure.high or 0) / float(figure.low or 1))
    assert widths[1] == pytest.approx(widths[0] ** 2)
    assert widths[2] == pytest.approx(widths[0] ** 2 * 1.66)  # LoRA is 66 % faster than QLoRA


def test_a_stated_rate_rests_on_no_measurements_of_others() -> None:
    found = estimate(tokens_per_s_per_gpu=1000)
    assert found.training is not None
    assert found.training.compute.tokens_per_s is not None
    assert found.training.compute.tokens_per_s.evidence is None


def test_gpu_hours_contain_the_overhead_of_a_whole_run_unless_the_rate_is_stated() -> None:
    def hours(found: Estimate) -> float:
        assert found.training is not None
        figure = found.training.compute.gpu_hours
        assert figure is not None
        return float(figure.mid if figure.value is None else figure.value)  # type: ignore[arg-type]

    steps = hours(estimate(run_overhead=0))
    assert hours(estimate(run_overhead=0.5)) == pytest.approx(1.5 * steps)
    assert hours(estimate()) > steps
    assert hours(estimate(tokens_per_s_per_gpu=1000)) == pytest.approx(1e12 / 1000 / 3600)


def test_the_bubble_of_a_pipeline_of_given_micro_batches_takes_time() -> None:
    assert rate(estimate(pipeline_parallel=4)) == rate(estimate())
    assert rate(estimate(pipeline_parallel=4, micro_batches=12)) == pytest.approx(rate(estimate()) / 1.25)


@pytest.mark.parametrize(("gpus", "sequences", "measured"), [(72, 36, 1_952_130), (512, 64, 5_931_060)])
def test_a_small_batch_keeps_many_gpus_less_busy(gpus: int, sequences: int, measured: float) -> None:
    """Llama 3.1 8B in NVFP4 on GB300: MLPerf Training v5.1."""

    def rate_of(batch: int) -> float:
        return rate(
            estimate(peak=15_000, count=gpus, precision="nvfp4", sequence_tokens=8192, global_batch=batch, tokens=None)
        )

    assert rate_of(sequences) == pytest.approx(measured, rel=0.1)
    assert rate_of(100 * sequences) > 1.5 * rate_of(sequences)


def test_an_unstated_batch_is_the_usual_of_the_tokens_and_outside_where_gpus_are_many() -> None:
    many, few = estimate(count=1024, tokens=1e9), estimate(count=8, tokens=1e9)
    assert [one.value for one in few.assumptions if one.field == "training.global_batch"] == [196]
    assert rate(many) < 0.8 * 128 * rate(few)
    for found, outside in ((many, ("batch",)), (few, ()), (estimate(count=1024, tokens=1e9, global_batch=64), ())):
        assert found.training is not None
        figure = found.training.compute.tokens_per_s
        assert figure is not None
        assert figure.evidence is not None
        assert figure.evidence.outside == outside


LLAMA_7B = replace(DENSE, kv_heads=32, intermediate=11_008, vocab=32_000)
A800 = Gpus(count=8, usable_gib=79.0, bandwidth_gb_per_s=2039.0, peak_tflops=312.0, link="nvlink")


@pytest.mark.parametrize(
    ("stage", "offload", "measured"),
    [(2, "none", 4.19), (3, "none", 4.45), (2, "optimizer", 1.81), (3, "optimizer", 2.05), (3, "all", 2.06)],
)
def test_a_host_takes_its_time_for_what_is_offloaded(stage: int, offload: Offload, measured: float) -> None:
    """Sequences a second of LLaMA 7B with recomputation on eight A800 (gist of chenyaofo, DeepSpeed 0.14.2)."""
    workload = TrainingWorkload(
        sequence_tokens=4096, global_batch=64, zero_stage=stage, recompute="full", offload=offload
    )
    found = estimate_training(LLAMA_7B, workload, A800, Assumptions()).training
    assert found is not None
    figure = found.compute.tokens_per_s
    assert figure is not None
    assert figure.evidence is not None
    assert float(figure.low or 0) <= measured * 4096 <= float(figure.high or 0)
    assert ("offload" in figure.evidence.outside) == (offload != "none")


def test_more_hosts_share_the_update_of_what_is_offloaded() -> None:
    def step_s(count: int, offload: str) -> float:
        return 1024 * 4096 / rate(estimate(count=count, global_batch=1024, zero_stage=3, offload=offload))

    one, four = (step_s(count, "optimizer") - step_s(count, "none") for count in (8, 32))
    assert one == pytest.approx(4 * four, rel=1e-6)
