"""From a workload that is trained to its FLOPs, its time, and the rate of tokens."""

from app.fit.estimator.report import ComputeFigures
from app.fit.estimator.training_memory import Training
from app.fit.formulas.compute import (
    FLOPS_PER_PARAM,
    MFU,
    Gpt,
    attention_flops_per_token,
    gpt_iteration_flops,
    hfu_over_mfu,
    seconds,
    train_flops,
)
from app.fit.formulas.quantities import Figure, Range, certain, estimate, exact

RECOMPUTED = 2.0
"""FLOPs a parameter and token that full recomputation adds: one more forward pass."""
DAY = 86_400
HOUR = 3600


def compute_figures(asked: Training) -> ComputeFigures:
    """Every figure of time that is known; a measured rate or number of GPU-hours counts before a computed one."""
    per_token, tokens, rate = flops_per_token(asked), asked.job.tokens, gpu_rate(asked)
    total = per_token * tokens if per_token is not None and tokens is not None else None
    hours = gpu_hours(asked)
    iteration = iteration_flops(asked)
    gpt = gpt_of(asked)
    gpus = asked.placing.gpus
    return ComputeFigures(
        model_flops=_flops(asked, total),
        hardware_flops=_flops(asked, total, again=_recomputed(asked)),
        tokens_per_s=_tokens_per_s(asked, per_token, rate),
        gpu_hours=_timed(asked, hours, "GPU-hours"),
        days=_timed(asked, hours.times(HOUR / DAY / gpus), "days") if hours else None,
        iteration=estimate(rate.times(gpus).dividing(iteration), "s") if rate and iteration else None,
        iteration_flops=estimate(certain(iteration), "FLOP") if iteration is not None else None,
        hfu_over_mfu=exact(hfu_over_mfu(gpt), "ratio") if gpt else None,
    )


def flops_per_token(asked: Training) -> float | None:
    """What one token costs in training, FLOPs of the model; None where its parameters are not known."""
    count, job = asked.model.count, asked.job
    wanted = job.tokens is not None and job.tokens_per_s_per_gpu is None
    if count is None:
        if wanted:
            asked.ledger.lacks("training.compute", ("architecture.params",))
        return None
    each = job.flops_per_param_token
    each = FLOPS_PER_PARAM[asked.method] if each is None else each
    flops = train_flops(count.active, 1, each)
    return flops + _attention(asked) if job.attention_flops else flops


def _attention(asked: Training) -> float:
    shape, sequence = asked.model.shape, asked.job.sequence_tokens
    missing = tuple(f"architecture.{name}" for name in shape.missing("layers", "hidden"))
    missing += () if sequence else ("training.sequence_tokens",)
    if asked.ledger.lacks("training.compute.attention_flops", missing) or sequence is None:
        return 0.0
    layers, hidden = shape.known("layers", "hidden")
    return attention_flops_per_token(layers, hidden, sequence)


def gpu_rate(asked: Training) -> Range | None:
    """FLOP a second that one GPU reaches: as achieved, else the peak x MFU; None where neither is given."""
    gpus = asked.gpus
    if gpus.achieved_tflops is not None:
        return certain(gpus.achieved_tflops * 1e12)
    if gpus.peak_tflops is None:
        return None
    if gpus.mfu is not None:
        return certain(gpus.mfu * gpus.peak_tflops * 1e12)
    asked.ledger.note("gpus.mfu", [MFU.low, MFU.mid, MFU.high], "share of the dense peak that trainings reach")
    return MFU.times(gpus.peak_tflops * 1e12)


def gpu_hours(asked: Training) -> Range | None:
    """GPU-hours as given, from a measured rate, or from FLOPs; None where neither is known."""
    job, per_token, rate = asked.job, flops_per_token(asked), gpu_rate(asked)
    if job.gpu_hours is not None:
        return certain(float(job.gpu_hours))
    if job.tokens is None:
        return None
    if job.tokens_per_s_per_gpu is not None:
        return certain(job.tokens / job.tokens_per_s_per_gpu / HOUR)
    if per_token is None or rate is None:
        return None
    return seconds(per_token * job.tokens, 1, 1.0, rate).times(1 / HOUR)


def gpt_of(asked: Training) -> Gpt | None:
    """What the exact count of a GPT needs; None where the model is no GPT, or a field is missing."""
    shape, sequence = asked.model.shape, asked.job.sequence_tokens
    gated = asked.model.count is not None and shape.gated
    if sequence is None or gated or shape.missing("layers", "hidden", "vocab"):
        return None
    layers, hidden, vocab = shape.known("layers", "hidden", "vocab")
    return Gpt(layers=layers, hidden=hidden, vocab=vocab, sequence_tokens=sequence)


def iteration_flops(asked: Training) -> float | None:
    """What one iteration of the global batch computes: counted for a GPT, else by parameters and attention."""
    gpt, job, per_token = gpt_of(asked), asked.job, flops_per_token(asked)
    if job.global_batch is None or job.sequence_tokens is None:
        return None
    if gpt:
        return gpt_iteration_flops(gpt, job.global_batch)
    if per_token is None:
        return None
    attention = 0.0 if job.attention_flops else _attention(asked)
    return (per_token + attention) * job.sequence_tokens * job.global_batch


def _flops(asked: Training, total: float | None, again: float = 0.0) -> Figure | None:
    """The FLOPs by parameters; at most with what attention adds, where the shape and the sequence say it."""
    job, shape = asked.job, asked.model.shape
    if total is None or job.tokens is None:
        return None
    known = job.sequence_tokens is not None and not shape.missing("layers", "hidden")
    attention = _attention(asked) * job.tokens if known and not job.attention_flops else 0.0
    return estimate(Range(low=total + again, mid=total + again, high=total + again + attention), "FLOP")


def _recomputed(asked: Training) -> float:
    """What full recomputation computes again: one forward pass."""
    count, job = asked.model.count, asked.job
    if count is None or job.tokens is None or job.recompute != "full":
        return 0.0
    return RECOMPUTED * count.active * job.tokens


def _tokens_per_s(asked: Training, per_token: float | None, rate: Range | None) -> Figure | None:
    measured = asked.job.tokens_per_s_per_gpu
    if measured is not None:
        return exact(measured * asked.placing.gpus, "tokens/s")
    if per_token is None or rate is None:
        return None
    return estimate(rate.times(asked.placing.gpus / per_token), "tokens/s")


def _timed(asked: Training, amount: Range | None, unit: str) -> Figure | None:
    """A time; exact where it follows from a measured one."""
    if amount is None:
        return None
    measured = asked.job.gpu_hours is not None or asked.job.tokens_per_s_per_gpu is not None
    return exact(amount.mid, unit) if measured else estimate(amount, unit)
