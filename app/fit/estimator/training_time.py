"""FLOPs, throughput and time of a training workload."""

from app.fit.accuracy import evidence_of
from app.fit.estimator.model import architecture_paths
from app.fit.estimator.report import ComputeFigures
from app.fit.estimator.training_memory import TrainingSetup
from app.fit.estimator.training_rate import HOURS_FAMILY, RATE_FAMILY, EstimatedRate, estimated_rate, run_overhead
from app.fit.formulas.compute import (
    FLOPS_PER_PARAM,
    GptShape,
    attention_flops_per_token,
    gpt_iteration_flops,
    hfu_over_mfu,
    train_flops,
)
from app.fit.formulas.quantities import Evidence, Figure, Range, estimate, exact, single_value

RECOMPUTE_FLOPS_PER_PARAM = 2.0
"""FLOPs per parameter and token that full recomputation adds: one more forward pass."""
SECONDS_PER_DAY = 86_400
SECONDS_PER_HOUR = 3600


def compute_figures(setup: TrainingSetup) -> ComputeFigures:
    """Return the figures of compute and time; measured rates or GPU-hours take precedence over computed ones."""
    per_token, tokens = flops_per_token(setup), setup.workload.tokens
    total = per_token * tokens if per_token is not None and tokens is not None else None
    rate, hours, modelled = tokens_per_gpu_second(setup), gpu_hours(setup), modelled_rate(setup)
    by_rate, by_hours = (
        evidence_of(family, modelled.outside) if modelled is not None else None
        for family in (RATE_FAMILY, HOURS_FAMILY)
    )
    gpt = gpt_shape(setup)
    gpus, step = setup.deployment.gpus, iteration_flops(setup)
    return ComputeFigures(
        model_flops=_flops_figure(setup, total),
        hardware_flops=_flops_figure(setup, total, extra=_recomputed_flops(setup)),
        tokens_per_s=_tokens_per_s(setup, rate, by_rate),
        gpu_hours=_time_figure(setup, hours, "GPU-hours", by_hours),
        days=_time_figure(setup, hours.times(SECONDS_PER_HOUR / SECONDS_PER_DAY / gpus), "days", by_hours)
        if hours
        else None,
        iteration=_iteration_figure(setup, step),
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
    each = workload.flops_per_param_token
    each = FLOPS_PER_PARAM[setup.method] if each is None else each
    flops = train_flops(count.active, 1, each)
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


def tokens_per_gpu_second(setup: TrainingSetup) -> Range | None:
    """Return the tokens that one GPU trains on in a second: by stated FLOP/s, else by its peak; else None."""
    stated, per_token = stated_flops_per_gpu_second(setup), flops_per_token(setup)
    if per_token is None:
        return None
    if stated is not None:
        return single_value(stated / per_token)
    found = estimated_rate(setup, per_token)
    return found.tokens_per_s if found is not None else None


def modelled_rate(setup: TrainingSetup) -> EstimatedRate | None:
    """Return the estimated rate; None where a rate, a share of the peak or GPU-hours are stated."""
    workload, per_token = setup.workload, flops_per_token(setup)
    stated = (workload.tokens_per_s_per_gpu, workload.gpu_hours, stated_flops_per_gpu_second(setup))
    if per_token is None or any(one is not None for one in stated):
        return None
    return estimated_rate(setup, per_token)


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
        rate = tokens_per_gpu_second(setup)
        if rate is None:
            return None
        steps, stated = (
            rate.divide(workload.tokens).times(1 / SECONDS_PER_HOUR),
            stated_flops_per_gpu_second(setup) is not None,
        )
    return with_overhead(steps, run_overhead(setup, stated=stated))


def with_overhead(steps: Range, overhead: Range) -> Range:
    """Return the time of a whole run: that of its steps x (1 + overhead), end by end."""
    return Range(
        low=steps.low * (1 + overhead.low), mid=steps.mid * (1 + overhead.mid), high=steps.high * (1 + overhead.high)
    )


def gpt_shape(setup: TrainingSetup) -> GptShape | None:
    """Return the dimensions for the exact count of a GPT; None where the model is not a GPT or a field is missing."""
    shape = setup.model.shape
    gated = setup.model.count is not None and shape.has_gated_mlp
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
    known = not shape.missing_fields("layers", "hidden")
    attention = _attention_flops(setup) * workload.tokens if known and not workload.attention_flops else 0.0
    return estimate(Range(low=total + extra, mid=total + extra, high=total + extra + attention), "FLOP")


def _recomputed_flops(setup: TrainingSetup) -> float:
    """Return the FLOPs of full recomputation: one more forward pass."""
    count, workload = setup.model.count, setup.workload
    if count is None or workload.tokens is None or setup.recompute != "full":
        return 0.0
    return RECOMPUTE_FLOPS_PER_PARAM * count.active * workload.tokens


def _iteration_figure(setup: TrainingSetup, flops: float | None) -> Figure | None:
    """Return the time of a step of the global batch: its FLOPs by a stated rate, else its tokens by the rate."""
    stated, workload, gpus = stated_flops_per_gpu_second(setup), setup.workload, setup.deployment.gpus
    if stated is not None:
        return estimate(single_value(flops / (stated * gpus)), "s") if flops is not None else None
    rate = tokens_per_gpu_second(setup)
    if rate is None or workload.global_batch is None:
        return None
    return estimate(rate.times(gpus).divide(float(workload.global_batch * setup.sequence_tokens)), "s")


def _tokens_per_s(setup: TrainingSetup, rate: Range | None, rests_on: Evidence | None) -> Figure | None:
    measured = setup.workload.tokens_per_s_per_gpu
    if measured is not None:
        return exact(measured * setup.deployment.gpus, "tokens/s")
    return estimate(rate.times(setup.deployment.gpus), "tokens/s", rests_on) if rate is not None else None


def _time_figure(setup: TrainingSetup, amount: Range | None, unit: str, rests_on: Evidence | None) -> Figure | None:
    """Return a figure of time, which is exact where it follows from a measurement."""
    if amount is None:
        return None
    measured = setup.workload.gpu_hours is not None or setup.workload.tokens_per_s_per_gpu is not None
    return exact(amount.mid, unit) if measured and amount.low == amount.high else estimate(amount, unit, rests_on)
