"""From a workload that is served to its speed: bounds of a decoding step, what is expected, and reading the prompt."""

from dataclasses import dataclass

from app.fit.estimator.report import DecodeFigures
from app.fit.estimator.serving import Serving, sequence_bytes
from app.fit.formulas.compute import MFU_PREFILL, prefill_flops, seconds
from app.fit.formulas.decode import Step, decode_flops, expected_step_seconds, experts_read, step_seconds
from app.fit.formulas.memory import KvCache, kv_bytes_per_sequence
from app.fit.formulas.quantities import Figure, Range, bound, certain, estimate
from app.fit.formulas.sharding import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast all copies together generate: the least time of a step, s, and the tokens that it gives."""

    least_s: float
    likely_s: Range
    tokens_per_step: float


def decode_pace(asked: Serving, weights: Range | None, cache: KvCache | None) -> Pace | None:
    """Time a step: one token of every sequence; None where bandwidth or weights are not known.

    A token passes through all p stages, one after the other. While it does, each stage works on another micro-batch:
    the sequences of a copy are dealt into p of them, so a pass of all stages reads the whole model and the cache of one
    micro-batch. More micro-batches would read the weights more often, fewer would leave stages without work. Either way
    a step gives one token of each sequence that was asked for, and no more.
    """
    bandwidth = asked.gpus.bandwidth_gb_per_s
    if bandwidth is None or weights is None:
        return None
    split = asked.placing.split
    peak = asked.gpus.peak_tflops * 1e12 if asked.gpus.peak_tflops is not None else None
    count = asked.model.count
    together = _in_a_micro_batch(asked)
    flops = decode_flops(count.active, together) / split.tensor if count else 0.0
    kept = together * _sequence_read(asked, cache)
    least, likely = (
        step_seconds(
            Step(weights_bytes=read * weights.mid / split.tensor, kv_bytes=kept, flops=flops), bandwidth * 1e9, peak
        )
        for read in _weights_read(asked, together)
    )
    return Pace(least_s=least, likely_s=expected_step_seconds(likely), tokens_per_step=asked.concurrency)


def _in_a_micro_batch(asked: Serving) -> float:
    """How many sequences pass through a stage at a time: their mean over copies and micro-batches, at least one."""
    return max(1.0, asked.concurrency / (asked.placing.copies * asked.placing.split.pipeline))


def _sequence_read(asked: Serving, cache: KvCache | None) -> float:
    """Bytes of the KV cache of one sequence that one tensor rank reads in a step, of all stages."""
    tensor = asked.placing.split.tensor
    if asked.load.kv_bytes_per_sequence is None and cache is not None and asked.load.context_tokens is not None:
        return kv_bytes_per_sequence(cache, asked.load.context_tokens, Split(tensor=tensor))
    return (sequence_bytes(asked, cache) or 0.0) / tensor


def _weights_read(asked: Serving, together: float) -> tuple[float, float]:
    """Which share of the weights a step reads, at least and likely: of experts only the chosen ones."""
    shape, experts = asked.model.shape, asked.stored.experts if asked.stored is not None else 0.0
    if not experts or shape.experts is None or shape.experts_per_token is None:
        return 1.0, 1.0
    chosen, total = shape.experts_per_token, shape.experts
    likely = experts_read(total, chosen, together)
    return 1 - (1 - chosen / total) * experts, 1 - (1 - likely) * experts


def decode_figures(pace: Pace) -> DecodeFigures:
    """The step and the rate, as bounds and as expected."""
    return DecodeFigures(
        step=bound(pace.least_s * 1e3, "ms"),
        expected_step=estimate(pace.likely_s.times(1e3), "ms"),
        tokens_per_s=bound(pace.tokens_per_step / pace.least_s, "tokens/s"),
        expected_tokens_per_s=estimate(pace.likely_s.dividing(pace.tokens_per_step), "tokens/s"),
    )


def prefill_figure(asked: Serving) -> Figure | None:
    """How long one copy reads a prompt, s; None where the peak, the model or the prompt is not known."""
    prompt, peak, count = asked.load.prompt_tokens, asked.gpus.peak_tflops, asked.model.count
    if prompt is None and asked.load.context_tokens is not None and peak is not None:
        prompt = asked.ledger.note("inference.prompt_tokens", asked.load.context_tokens, "the whole context")
    if asked.load.prompt_tokens is not None and (peak is None or count is None):
        unknown = {"gpus.peak_tflops": peak, "architecture.params": count}
        asked.ledger.lacks("inference.prefill", tuple(name for name, known in unknown.items() if known is None))
    if prompt is None or peak is None or count is None:
        return None
    mfu = certain(asked.gpus.mfu) if asked.gpus.mfu is not None else MFU_PREFILL
    if asked.gpus.mfu is None:
        asked.ledger.note("gpus.mfu", [mfu.low, mfu.mid, mfu.high], "share of the peak that reading a prompt reaches")
    flops = prefill_flops(count.active, prompt)
    return estimate(seconds(flops, asked.placing.split.gpus, peak * 1e12, mfu), "s")
