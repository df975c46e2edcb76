"""FLOPs, throughput and time of a training workload: by a stated rate, else by what GPUs reach."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

from app.fit.estimator.model import architecture_paths
from app.fit.estimator.training_memory import BASE_DTYPES, TrainingSetup, has_quantized_base, trainable_params
from app.fit.estimator.workload import assume_network
from app.fit.formulas.architecture import ParameterCount, missing_for_count, typical_shape
from app.fit.formulas.compute import (
    FLOPS_PER_PARAM,
    GptShape,
    attention_flops_per_token,
    gpt_iteration_flops,
    hfu_over_mfu,
    network_hop,
    train_flops,
)
from app.fit.formulas.quantities import ZERO, Evidence, Figure, Range, estimate, exact, single_value
from app.fit.formulas.quantization import BITS
from app.fit.formulas.training_memory import WEIGHT_SHARDING_STAGE
from app.fit.formulas.training_speed import (
    FITTED,
    HIDING_SHARE,
    HOST_UPDATE_S,
    MOST_SENT_BYTES,
    RATE_SPREAD,
    RUN_OVERHEAD,
    SENT_BYTES_PER_PARAM,
    STEP_LAYER_S,
    Accelerator,
    Precision,
    TokenWork,
    accelerator_of,
    neighbours,
    precision_of,
    seconds_per_token,
    sending_seconds,
    token_work,
    usual_batch_tokens,
)
from app.fit.results import ComputeFigures, evidence_of

PRECISION = "training.precision"
RATE_FAMILY, HOURS_FAMILY = "training_rate", "training_gpu_hours"
"""The families of measurements that the figures are compared with."""

CALIBRATED_PARAMS = (3e9, 1.1e12)
CALIBRATED_GPUS = (8, 1024)
CALIBRATED_SEQUENCE = (2048, 8192)
CALIBRATED_CAPABILITIES = frozenset({"9.0", "10.0", "10.3"})
CALIBRATED_STEP_TOKENS = 4096
"""What the published rates cover: parameters of a model, GPUs, tokens of a sequence, CUDA compute capabilities, and the
fewest tokens of a GPU in a step where the batch is not stated."""


def precision(setup: TrainingSetup) -> Precision:
    """Return the precision of matrix products: as given, else that whose peak is given, else 16 bits."""
    given = setup.workload.precision
    if given is not None:
        return given
    peak = setup.gpus.peak_tflops
    match = precision_of(peak) if peak is not None else None
    if match is not None:
        return setup.assumptions.record(PRECISION, match[0], f"the peak is that of {match[1].name} in this precision")
    return setup.assumptions.record(PRECISION, "bf16", "matrix products in 16 bits; in fp16 where a GPU lacks bf16")


def work_per_token(setup: TrainingSetup) -> TokenWork | None:
    """Return what a token takes; None where the parameters are unknown.

    Where widths are unknown, they are those of a typical model with as many active parameters.
    """
    shape, count, workload = setup.model.shape, setup.model.count, setup.workload
    if count is None:
        return None
    if missing_for_count(shape):
        typical = typical_shape(replace(shape, params=count.active))
        shape = replace(typical, experts=None, sliding_window=None, kv_lora_rank=None)
        count = ParameterCount(total=count.total, active=count.active)
    given = workload.flops_per_param_token
    return token_work(
        shape,
        count,
        sequence_tokens=setup.sequence_tokens,
        flops_per_param=FLOPS_PER_PARAM[setup.method] if given is None else given,
        recomputed=setup.recompute == "full",
    )


LORA_OVER_QLORA = 1.66
"""How much faster adapters train on a base in 16 bits than on a quantized one: a reason for a lower low end.

Source: Google, Vertex AI, "LoRA and QLoRA recommendations for LLMs". No published rate is of QLoRA.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What the published rates do not cover of a training; empty where they cover it."""

    outside: tuple[str, ...]
    paces: float = 1.0

    @property
    def spread(self) -> Range:
        """The range of rate / estimate: outside of the published rates it is as wide again, to either side.

        `paces` is how far the GPUs that it may be are from their mean, as a factor.
        """
        power = 2 if self.outside else 1
        low, high = RATE_SPREAD.low**power / self.paces, RATE_SPREAD.high**power * self.paces
        low = low / LORA_OVER_QLORA if "base" in self.outside else low
        return Range(low=low, mid=RATE_SPREAD.mid, high=high)


def domain(setup: TrainingSetup, accelerator: Accelerator, gpus: int) -> Domain:
    """Return in what the model, its sequences or the GPUs depart from the published rates."""
    params = setup.model.count.total if setup.model.count is not None else 0
    checks = {
        "model": _within(params, CALIBRATED_PARAMS),
        "sequence": _within(setup.sequence_tokens, CALIBRATED_SEQUENCE),
        "gpus": _within(gpus, CALIBRATED_GPUS),
        "gpu": accelerator.known and CALIBRATED_CAPABILITIES.issuperset(accelerator.capabilities),
        "link": accelerator.slowdown <= 1,
        "base": not has_quantized_base(setup),
        "offload": setup.workload.offload in {None, "none"},
        "batch": setup.workload.global_batch is not None or batch_tokens(setup) >= CALIBRATED_STEP_TOKENS * gpus,
    }
    paces = [FITTED.pace([capability]) for capability in accelerator.capabilities] or [1.0]
    outside = tuple(name for name, inside in checks.items() if not inside)
    return Domain(outside=outside, paces=sqrt(max(paces) / min(paces)))


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


LEAST_BATCH = 1 / 8
"""The least batch over the usual one of a training of unknown length: MLPerf's of Llama 3.1 8B has 64 sequences."""


def rate_of(setup: TrainingSetup, work: TokenWork, seconds: float, accelerator: Accelerator) -> Range:
    """Return the tokens/s of each GPU of the setup's deployment that takes these `seconds` for a token, with bubbles.

    The low end has a smaller batch where neither that nor the tokens are stated.
    """
    spread, batch = domain(setup, accelerator, setup.deployment.gpus).spread, batch_tokens(setup)
    spread = spread.times(1 / (1 + pipeline_bubble(setup)))
    if not batch:
        return spread.times(1 / seconds)
    stated = setup.workload.global_batch is not None or setup.workload.tokens is not None
    gpus, launching = setup.deployment.gpus, work.layers * STEP_LAYER_S
    sending, updating = sending_seconds(*_sent_bytes(setup), accelerator, gpus), _host_update_s(setup)

    def whole_seconds(tokens: float, host_s: float) -> float:
        """Return the time of a token: a step also takes launches, what they and computing do not hide, and the host."""
        return seconds + (max(launching, sending - HIDING_SHARE * seconds * tokens / gpus) + host_s) * gpus / tokens

    least = batch if stated else max(float(setup.sequence_tokens), batch * LEAST_BATCH)
    return Range(
        low=spread.low / whole_seconds(least, updating.high),
        mid=spread.mid / whole_seconds(batch, updating.mid),
        high=spread.high / whole_seconds(batch, updating.low),
    )


def _host_update_s(setup: TrainingSetup) -> Range:
    """Return what a host takes in a step for the optimizer states that are offloaded to it, s; 0 where none are."""
    workload, gpus = setup.workload, setup.deployment.gpus
    if workload.offload in {None, "none"}:
        return ZERO
    of_host = min(1.0, setup.assumptions.get(workload.gpus_per_node, "training.gpus_per_node") / gpus)
    return HOST_UPDATE_S.times((trainable_params(setup) or 0) * of_host)


def _sent_bytes(setup: TrainingSetup) -> tuple[float, float]:
    """Return the bytes that a copy sends in a step, and over how many GPUs it is split: as stated, or as it must be.

    With ZeRO-3 all weights are gathered forward and backward, in place of the new ones: once, which is the least, as
    more micro-batches than one gather them again.
    """
    workload, count, split = setup.workload, setup.model.count, setup.deployment.parallelism.gpus
    sent = SENT_BYTES_PER_PARAM * (trainable_params(setup) or 0)
    if count is None or workload.zero_stage != WEIGHT_SHARDING_STAGE:
        return sent, max(split, sent / MOST_SENT_BYTES)
    base = BASE_DTYPES.get(setup.method)
    bits = BITS["bf16" if base is None else workload.base_dtype or base]
    return sent / 2 + 2 * count.total * bits / 8, split


def batch_tokens(setup: TrainingSetup) -> float:
    """Return the tokens of a step on all GPUs: as stated, else as is usual; 0 where the parameters are unknown.

    Without a number of tokens to train on there are 20 a parameter (Hoffmann et al., arXiv 2203.15556).
    """
    workload, count = setup.workload, setup.model.count
    if workload.global_batch is not None:
        return float(workload.global_batch * setup.sequence_tokens)
    if count is None:
        return 0.0
    tokens = workload.tokens or USUAL_TOKENS_PER_PARAM * count.active
    return max(float(setup.sequence_tokens), usual_batch_tokens(FLOPS_PER_PARAM["full"] * count.active * tokens))


def _seconds_by_peak(setup: TrainingSetup, work: TokenWork, peak: float, accelerator: Accelerator, gpus: int) -> float:
    """Return the time per token of a GPU of which only the peak is known, s: never longer than with a lower peak.

    A GPU that is not known trains as fast as one of the known GPUs next to it at the least, and at the most. Where a
    known one is slower than another with a lower peak, which is of another type or of a larger NVLink domain, the peak
    alone does not distinguish them: the faster counts.
    """
    times = [
        (edge, seconds_per_token(work, replace(other, network_bytes_per_s=accelerator.network_bytes_per_s), gpus))
        for edge, other in neighbours(setup.workload.precision, setup.gpus.bandwidth_gb_per_s)
    ]
    own = min([seconds_per_token(work, accelerator, gpus), *(time for edge, time in times if edge <= peak)])
    above = [edge for edge, _ in times if edge > peak]
    return max(own, min(time for edge, time in times if edge <= above[0])) if above else own


def pipeline_bubble(setup: TrainingSetup) -> float:
    """Return the idle time of a pipeline over its working time: (p - 1) / (m v); 0 where m is not given.

    p stages, m micro-batches a step, v chunks a stage. The published rates include the bubbles of their recipes.
    Source: Narayanan et al., arXiv 2104.04473, section 2.2.
    """
    workload = setup.workload
    stages, batches = setup.deployment.parallelism.pipeline, workload.micro_batches
    return (stages - 1) / (batches * (workload.pipeline_chunks or 1)) if batches else 0.0


class TrainingRate(NamedTuple):
    """The tokens/s of one GPU, and in what the training departs from the published rates; None of a stated rate."""

    tokens_per_s: Range
    outside: tuple[str, ...] | None


def training_rate(setup: TrainingSetup) -> TrainingRate | None:
    """Return the tokens/s of one GPU: by stated FLOP/s, else by its peak, recording the MFU.

    None where the model or the peak is unknown.
    """
    stated, per_token = stated_flops_per_gpu_second(setup), flops_per_token(setup)
    if per_token is None:
        return None
    if stated is not None:
        return TrainingRate(single_value(stated / per_token), None)
    gpus, peak, work = setup.gpus, setup.gpus.peak_tflops, work_per_token(setup)
    if peak is None or work is None:
        return None
    accelerator = accelerator_of(peak, precision(setup), gpus.bandwidth_gb_per_s)
    if setup.deployment.gpus > accelerator.domain_gpus:
        joined = assume_network(gpus, setup.assumptions)
        hop = network_hop(joined.network or "infiniband", joined.network_gbps)
        accelerator = replace(accelerator, network_bytes_per_s=hop.bytes_per_s)
    seconds = _seconds_by_peak(setup, work, peak, accelerator, setup.deployment.gpus)
    rate = rate_of(setup, work, seconds, accelerator)
    mfu = rate.times(per_token / (peak * 1e12))
    shares = [round(end, 4) for end in (mfu.low, mfu.mid, mfu.high)]
    setup.assumptions.record("gpus.mfu", shares, "from the time per token that is fitted to published rates")
    if setup.workload.global_batch is None:
        sequences = max(1, round(batch_tokens(setup) / setup.sequence_tokens))
        setup.assumptions.record("training.global_batch", sequences, "usual of a training with that many FLOPs")
    return TrainingRate(rate, domain(setup, accelerator, setup.deployment.gpus).outside)


def run_overhead(setup: TrainingSetup, *, stated: bool) -> Range:
    """Return what a whole run takes beside its steps, as a share: as given; nothing beside a stated rate."""
    given = setup.workload.run_overhead
    if given is not None:
        return single_value(given)
    if stated:
        return ZERO
    low, mid, high = RUN_OVERHEAD.low, RUN_OVERHEAD.mid, RUN_OVERHEAD.high
    why = "restarts, evaluation, checkpoints and slow nodes: published GPU-hours of whole runs over their steps"
    setup.assumptions.record("training.run_overhead", [low, mid, high], why)
    return RUN_OVERHEAD


USUAL_TOKENS_PER_PARAM = 20
RECOMPUTE_FLOPS_PER_PARAM = 2.0
"""FLOPs per parameter and token that full recomputation adds: one more forward pass."""
SECONDS_PER_DAY = 86_400
SECONDS_PER_HOUR = 3600


def compute_figures(setup: TrainingSetup) -> ComputeFigures:
    """Return the figures of compute and time; measured rates or GPU-hours take precedence over computed ones."""
    per_token, tokens, measured = flops_per_token(setup), setup.workload.tokens, setup.workload.tokens_per_s_per_gpu
    total = per_token * tokens if per_token is not None and tokens is not None else None
    rate, hours = training_rate(setup), gpu_hours(setup)
    is_measured = measured is not None or setup.workload.gpu_hours is not None
    outside = rate.outside if rate is not None and not is_measured else None
    families = (RATE_FAMILY, HOURS_FAMILY)
    by_rate, by_hours = (evidence_of(family, outside) if outside is not None else None for family in families)
    gpt, gpus, step = gpt_shape(setup), setup.deployment.gpus, iteration_flops(setup)
    tokens_per_s = estimate(rate.tokens_per_s.times(gpus), "tokens/s", by_rate) if rate is not None else None
    if measured is not None:
        tokens_per_s = exact(measured * gpus, "tokens/s")
    days = hours.times(SECONDS_PER_HOUR / SECONDS_PER_DAY / gpus) if hours else None
    return ComputeFigures(
        model_flops=_flops_figure(setup, total),
        hardware_flops=_flops_figure(setup, total, extra=_recomputed_flops(setup)),
        tokens_per_s=tokens_per_s,
        gpu_hours=_time_figure(setup, hours, "GPU-hours", by_hours),
        days=_time_figure(setup, days, "days", by_hours),
        iteration=_iteration_figure(setup, step, rate),
        iteration_flops=estimate(single_value(step), "FLOP") if step is not None else None,
        hfu_over_mfu=exact(hfu_over_mfu(gpt), "ratio") if gpt else None,
    )


def flops_per_token(setup: TrainingSetup) -> float | None:
    """Return the model FLOPs of training on one token; None where the parameters are unknown."""
    count, workload = setup.model.count, setup.workload
    wanted = workload.tokens is not None and workload.tokens_per_s_per_gpu is None
    if count is None:
        if wanted:
            setup.assumptions.mark_missing("training.compute", ("architecture.params",))
        return None
    per_param = workload.flops_per_param_token
    per_param = FLOPS_PER_PARAM[setup.method] if per_param is None else per_param
    flops = train_flops(count.active, 1, per_param)
    return flops + _attention_flops(setup) if workload.attention_flops else flops


def _attention_flops(setup: TrainingSetup) -> float:
    shape = setup.model.shape
    missing = architecture_paths(shape.missing_fields("layers", "hidden"))
    if setup.assumptions.mark_missing("training.compute.attention_flops", missing):
        return 0.0
    layers, hidden = shape.require("layers", "hidden")
    return attention_flops_per_token(layers, hidden, setup.sequence_tokens)


def stated_flops_per_gpu_second(setup: TrainingSetup) -> float | None:
    """Return the FLOP/s that one GPU reaches as stated: as measured, else peak x MFU; None where neither is given."""
    gpus = setup.gpus
    if gpus.achieved_tflops is not None:
        return gpus.achieved_tflops * 1e12
    return gpus.mfu * gpus.peak_tflops * 1e12 if gpus.mfu is not None and gpus.peak_tflops is not None else None


def gpu_hours(setup: TrainingSetup) -> Range | None:
    """Return GPU-hours as given, else from a measured rate, else from FLOPs; None where all are unknown.

    A stated rate is taken to be that of the whole run, unless an overhead is given, too.
    """
    workload = setup.workload
    if workload.gpu_hours is not None:
        return single_value(float(workload.gpu_hours))
    if workload.tokens is None:
        return None
    if workload.tokens_per_s_per_gpu is not None:
        steps, stated = single_value(workload.tokens / workload.tokens_per_s_per_gpu / SECONDS_PER_HOUR), True
    else:
        rate = training_rate(setup)
        if rate is None:
            return None
        steps, stated = rate.tokens_per_s.divide(workload.tokens).times(1 / SECONDS_PER_HOUR), rate.outside is None
    return steps.within(run_overhead(setup, stated=stated) + 1)


def gpt_shape(setup: TrainingSetup) -> GptShape | None:
    """Return the dimensions for the exact count of a GPT; None where the model is not a GPT or a field is missing."""
    shape = setup.model.shape
    gated = setup.model.count is not None and shape.mlp == "gated"
    if gated or shape.missing_fields("layers", "hidden", "vocab"):
        return None
    layers, hidden, vocab = shape.require("layers", "hidden", "vocab")
    return GptShape(layers=layers, hidden=hidden, vocab=vocab, sequence_tokens=setup.sequence_tokens)


def iteration_flops(setup: TrainingSetup) -> float | None:
    """Return the FLOPs of one iteration of the global batch: counted for a GPT, else by parameters and attention."""
    gpt, workload, per_token = gpt_shape(setup), setup.workload, flops_per_token(setup)
    if workload.global_batch is None:
        return None
    if gpt:
        return gpt_iteration_flops(gpt, workload.global_batch)
    if per_token is None:
        return None
    attention = 0.0 if workload.attention_flops else _attention_flops(setup)
    return (per_token + attention) * setup.sequence_tokens * workload.global_batch


def _flops_figure(setup: TrainingSetup, total: float | None, extra: float = 0.0) -> Figure | None:
    """Return FLOPs by parameters; the high end adds attention, where the architecture is known."""
    workload, shape = setup.workload, setup.model.shape
    if total is None or workload.tokens is None:
        return None
    has_widths = not shape.missing_fields("layers", "hidden")
    attention = _attention_flops(setup) * workload.tokens if has_widths and not workload.attention_flops else 0.0
    return estimate(Range(low=total + extra, mid=total + extra, high=total + extra + attention), "FLOP")


def _recomputed_flops(setup: TrainingSetup) -> float:
    """Return the FLOPs of full recomputation: one more forward pass."""
    count, workload = setup.model.count, setup.workload
    if count is None or workload.tokens is None or setup.recompute != "full":
        return 0.0
    return RECOMPUTE_FLOPS_PER_PARAM * count.active * workload.tokens


def _iteration_figure(setup: TrainingSetup, flops: float | None, rate: TrainingRate | None) -> Figure | None:
    """Return the time of a step of the global batch: its FLOPs by a stated rate, else its tokens by the rate."""
    stated, workload, gpus = stated_flops_per_gpu_second(setup), setup.workload, setup.deployment.gpus
    if stated is not None:
        return estimate(single_value(flops / (stated * gpus)), "s") if flops is not None else None
    if rate is None or workload.global_batch is None:
        return None
    return estimate(rate.tokens_per_s.times(gpus).divide(float(workload.global_batch * setup.sequence_tokens)), "s")


def _time_figure(setup: TrainingSetup, amount: Range | None, unit: str, rests_on: Evidence | None) -> Figure | None:
    """Return a figure of time, which is exact where it follows from a measurement."""
    if amount is None:
        return None
    measured = setup.workload.gpu_hours is not None or setup.workload.tokens_per_s_per_gpu is not None
    return exact(amount.mid, unit) if measured and amount.low == amount.high else estimate(amount, unit, rests_on)
