"""From a workload that is trained to its FLOPs, its time, and the rate of tokens."""

from app.fit.estimator.report import ComputeFigures
from app.fit.estimator.training_memory import TrainingSetup
from app.fit.formulas.compute import (
    FLOPS_PER_PARAM,
    MFU,
    GptShape,
    attention_flops_per_token,
    gpt_iteration_flops,
    hfu_over_mfu,
    seconds,
    train_flops,
)
from app.fit.formulas.quantities import Figure, Range, estimate, exact, single_value

RECOMPUTE_FLOPS_PER_PARAM = 2.0
"""FLOPs a parameter and token that full recomputation adds: one more forward pass."""
DAY = 86_400
HOUR = 3600


def compute_figures(setup: TrainingSetup) -> ComputeFigures:
    """Every figure of time that is known; a measured rate or number of GPU-hours counts before a computed one."""
    per_token, tokens, rate = flops_per_token(setup), setup.workload.tokens, flops_per_gpu_second(setup)
    total = per_token * tokens if per_token is not None and tokens is not None else None
    hours = gpu_hours(setup)
    iteration = iteration_flops(setup)
    gpt = gpt_shape(setup)
    gpus = setup.deployment.gpus
    return ComputeFigures(
        model_flops=_flops_figure(setup, total),
        hardware_flops=_flops_figure(setup, total, again=_recomputed_flops(setup)),
        tokens_per_s=_tokens_per_s(setup, per_token, rate),
        gpu_hours=_time_figure(setup, hours, "GPU-hours"),
        days=_time_figure(setup, hours.times(HOUR / DAY / gpus), "days") if hours else None,
        iteration=estimate(rate.times(gpus).divide(iteration), "s") if rate and iteration else None,
        iteration_flops=estimate(single_value(iteration), "FLOP") if iteration is not None else None,
        hfu_over_mfu=exact(hfu_over_mfu(gpt), "ratio") if gpt else None,
    )


def flops_per_token(setup: TrainingSetup) -> float | None:
    """What one token costs in training, FLOPs of the model; None where its parameters are not known."""
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
    shape, sequence = setup.model.shape, setup.workload.sequence_tokens
    missing = tuple(f"architecture.{name}" for name in shape.missing_fields("layers", "hidden"))
    missing += () if sequence else ("training.sequence_tokens",)
    if setup.assumptions.mark_missing("training.compute.attention_flops", missing) or sequence is None:
        return 0.0
    layers, hidden = shape.require("layers", "hidden")
    return attention_flops_per_token(layers, hidden, sequence)


def flops_per_gpu_second(setup: TrainingSetup) -> Range | None:
    """FLOP a second that one GPU reaches: as achieved, else the peak x MFU; None where neither is given."""
    gpus = setup.gpus
    if gpus.achieved_tflops is not None:
        return single_value(gpus.achieved_tflops * 1e12)
    if gpus.peak_tflops is None:
        return None
    if gpus.mfu is not None:
        return single_value(gpus.mfu * gpus.peak_tflops * 1e12)
    setup.assumptions.record("gpus.mfu", [MFU.low, MFU.mid, MFU.high], "share of the dense peak that trainings reach")
    return MFU.times(gpus.peak_tflops * 1e12)


def gpu_hours(setup: TrainingSetup) -> Range | None:
    """GPU-hours as given, from a measured rate, or from FLOPs; None where neither is known."""
    workload, per_token, rate = setup.workload, flops_per_token(setup), flops_per_gpu_second(setup)
    if workload.gpu_hours is not None:
        return single_value(float(workload.gpu_hours))
    if workload.tokens is None:
        return None
    if workload.tokens_per_s_per_gpu is not None:
        return single_value(workload.tokens / workload.tokens_per_s_per_gpu / HOUR)
    if per_token is None or rate is None:
        return None
    return seconds(per_token * workload.tokens, 1, 1.0, rate).times(1 / HOUR)


def gpt_shape(setup: TrainingSetup) -> GptShape | None:
    """What the exact count of a GPT needs; None where the model is no GPT, or a field is missing."""
    shape, sequence = setup.model.shape, setup.workload.sequence_tokens
    gated = setup.model.count is not None and shape.has_gated_mlp
    if sequence is None or gated or shape.missing_fields("layers", "hidden", "vocab"):
        return None
    layers, hidden, vocab = shape.require("layers", "hidden", "vocab")
    return GptShape(layers=layers, hidden=hidden, vocab=vocab, sequence_tokens=sequence)


def iteration_flops(setup: TrainingSetup) -> float | None:
    """What one iteration of the global batch computes: counted for a GPT, else by parameters and attention."""
    gpt, workload, per_token = gpt_shape(setup), setup.workload, flops_per_token(setup)
    if workload.global_batch is None or workload.sequence_tokens is None:
        return None
    if gpt:
        return gpt_iteration_flops(gpt, workload.global_batch)
    if per_token is None:
        return None
    attention = 0.0 if workload.attention_flops else _attention_flops(setup)
    return (per_token + attention) * workload.sequence_tokens * workload.global_batch


def _flops_figure(setup: TrainingSetup, total: float | None, again: float = 0.0) -> Figure | None:
    """The FLOPs by parameters; at most with what attention adds, where the shape and the sequence say it."""
    workload, shape = setup.workload, setup.model.shape
    if total is None or workload.tokens is None:
        return None
    known = workload.sequence_tokens is not None and not shape.missing_fields("layers", "hidden")
    attention = _attention_flops(setup) * workload.tokens if known and not workload.attention_flops else 0.0
    return estimate(Range(low=total + again, mid=total + again, high=total + again + attention), "FLOP")


def _recomputed_flops(setup: TrainingSetup) -> float:
    """What full recomputation computes again: one forward pass."""
    count, workload = setup.model.count, setup.workload
    if count is None or workload.tokens is None or workload.recompute != "full":
        return 0.0
    return RECOMPUTE_FLOPS_PER_PARAM * count.active * workload.tokens


def _tokens_per_s(setup: TrainingSetup, per_token: float | None, rate: Range | None) -> Figure | None:
    measured = setup.workload.tokens_per_s_per_gpu
    if measured is not None:
        return exact(measured * setup.deployment.gpus, "tokens/s")
    if per_token is None or rate is None:
        return None
    return estimate(rate.times(setup.deployment.gpus / per_token), "tokens/s")


def _time_figure(setup: TrainingSetup, amount: Range | None, unit: str) -> Figure | None:
    """A time; exact where it follows from a measured one."""
    if amount is None:
        return None
    measured = setup.workload.gpu_hours is not None or setup.workload.tokens_per_s_per_gpu is not None
    return exact(amount.mid, unit) if measured else estimate(amount, unit)
