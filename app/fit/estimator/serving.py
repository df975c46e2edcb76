"""From a workload that is served to the memory it takes: weights, KV cache, and what the fullest GPU needs."""

from dataclasses import dataclass, replace
from math import ceil

from app.fit.estimator.model import Model, weight_figure
from app.fit.estimator.parallelism import ALONE, Placing
from app.fit.estimator.report import DecodeFigures, KvFigures, ServingMemory
from app.fit.estimator.weights import Weights, weights_of
from app.fit.estimator.workload import Gpus, InferenceWorkload
from app.fit.formulas.assumptions import Impossible, Ledger
from app.fit.formulas.compute import MFU_PREFILL, prefill_flops, seconds
from app.fit.formulas.inference import (
    InferenceNeed,
    Load,
    Served,
    Step,
    budget_bytes,
    decode_flops,
    expected_step_seconds,
    experts_read,
    inference_need,
    max_sequences,
    step_seconds,
)
from app.fit.formulas.memory import (
    BITS,
    KvCache,
    Split,
    cache_of,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    missing_for_cache,
    tokens_in_budget,
)
from app.fit.formulas.quantities import (
    GIB,
    Figure,
    Range,
    bound,
    certain,
    estimate,
    estimate_gib,
    exact,
    exact_gib,
    held_gib,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A workload, the model, the GPUs and the placing together; the ledger notes what is assumed.

    `stored` is what the weights take, once that is counted; None before, and where the model is unknown.
    """

    model: Model
    load: InferenceWorkload
    gpus: Gpus
    ledger: Ledger
    placing: Placing = ALONE
    stored: Weights | None = None

    @property
    def concurrency(self) -> int:
        """Sequences that all copies serve at the same time."""
        return self.ledger.take(self.load.concurrency, "inference.concurrency")

    @property
    def sequences(self) -> int:
        """Sequences that one copy serves at the same time."""
        return ceil(self.concurrency / self.placing.copies)


def longer_than_made_for(asked: Serving) -> bool:
    """Whether the context is longer than the longest that the model is made for; raises Impossible unless allowed."""
    context, most = asked.load.context_tokens, asked.model.shape.max_positions
    if context is None or most is None or context <= most:
        return False
    if not asked.load.allow_longer_context:
        said = f"{context} is more than the model's maximum, {most}; allow_longer_context takes it as extended"
        raise Impossible("inference.context_tokens", said)
    why = f"as asked; the model is made for {most}, and its positions must be scaled (rope_scaling)"
    asked.ledger.note("inference.context_tokens", context, why)
    return True


def without_cache(load: InferenceWorkload) -> bool:
    """Whether nothing says what a sequence keeps, so that no KV cache is counted."""
    return load.context_tokens is None and load.kv_bytes_per_sequence is None


def weighed(asked: Serving) -> Serving:
    """The workload with the bytes of one copy's weights, where the model is known."""
    return replace(asked, stored=weights_of(asked.model, asked.load, asked.ledger))


def served_weights(asked: Serving) -> Range | None:
    """Bytes of one copy's weights; a range where the quantization leaves it open, None where the model is unknown."""
    return asked.stored.bytes if asked.stored is not None else None


def served_cache(asked: Serving) -> KvCache | None:
    """How tokens are kept, in the asked type and pages; None where the shape does not say."""
    missing = tuple(f"architecture.{name}" for name in missing_for_cache(asked.model.shape))
    if asked.ledger.lacks("inference.kv_cache", missing):
        return None
    width = asked.load.kv_bytes_per_value
    if width is None:
        width = BITS[asked.ledger.take(asked.load.kv_dtype, "inference.kv_dtype")] / 8
    pages = asked.ledger.take(asked.load.block_tokens, "inference.block_tokens")
    return cache_of(asked.model.shape, value_bytes=width, block_tokens=pages)


def sequence_bytes(asked: Serving, cache: KvCache | None) -> float | None:
    """Bytes that one sequence of the asked context keeps, on all GPUs of a copy counted once."""
    if asked.load.kv_bytes_per_sequence is not None:
        return asked.load.kv_bytes_per_sequence
    if cache is None or asked.load.context_tokens is None:
        return None
    return kv_bytes_per_sequence(cache, asked.load.context_tokens)


def kv_figures(asked: Serving, cache: KvCache | None) -> KvFigures | None:
    """The KV cache; None where neither the shape nor its bytes are known."""
    sequence, budget = sequence_bytes(asked, cache), asked.load.kv_budget_gib
    if cache is None and sequence is None:
        return None
    room = budget * GIB if budget is not None else None
    return KvFigures(
        per_token=exact(kv_bytes_per_token(cache), "bytes") if cache else None,
        per_sequence=exact_gib(sequence) if sequence is not None else None,
        total=exact_gib(sequence * asked.concurrency) if sequence is not None else None,
        tokens_in_budget=_tokens_in(cache, room) if cache and room is not None else None,
        sequences_in_budget=exact(int(room // sequence), "sequences") if room is not None and sequence else None,
    )


def _tokens_in(cache: KvCache, room: float) -> Figure:
    """Tokens that fit in; windows can only let more fit."""
    tokens = tokens_in_budget(cache, room)
    return bound(tokens, "tokens") if cache.windowed_layers else exact(tokens, "tokens")


def memory_figures(asked: Serving, weights: Range, cache: KvCache | None) -> ServingMemory:
    """What the fullest GPU of a copy needs, and whether it has it."""
    model, split = served(asked, weights, cache), asked.placing.split
    load = Load(
        context_tokens=asked.load.context_tokens or 0,
        sequences=asked.sequences,
        batched_tokens=asked.ledger.take(asked.load.max_batched_tokens, "inference.max_batched_tokens"),
    )
    need = _given_cache(asked, inference_need(model, load, split))
    held = weights.times(need.weights / weights.mid)
    total = need.total + held.spread
    budget = _budget(asked)
    most = max_sequences(model, load, split, budget) if budget is not None and load.context_tokens else None
    return ServingMemory(
        tensor_parallel=split.tensor,
        pipeline_parallel=split.pipeline,
        copies=asked.placing.copies,
        weights=weight_figure(held, exactly=split.pipeline == 1),
        kv_cache=held_gib(need.kv_cache, exactly=split.pipeline == 1),
        activations=estimate_gib(need.activations),
        overhead=estimate_gib(need.overhead),
        need=estimate_gib(total),
        budget=exact_gib(budget) if budget is not None else None,
        fits=total.mid <= budget if budget is not None else None,
        max_concurrency=estimate(most.times(asked.placing.copies), "sequences") if most else None,
    )


def served(asked: Serving, weights: Range, cache: KvCache | None) -> Served:
    """The model as all candidates of a placement share it."""
    width = _step_width(asked)
    if without_cache(asked.load):
        asked.ledger.note("inference.context_tokens", 0, "no context is given: no KV cache is counted in the need")
    return Served(
        weights_bytes=weights.mid,
        cache=cache,
        layers=asked.model.shape.layers,
        embeddings=asked.stored.embeddings if asked.stored is not None else 0.0,
        step_bytes_per_token=6 * width if width is not None else 0.0,
    )


def _step_width(asked: Serving) -> int | None:
    """Add f + h of the widest layer; of experts, those that a token uses; None where unknown."""
    shape = asked.model.shape
    missing = shape.missing("hidden") + (() if shape.intermediate or shape.moe_intermediate else ("intermediate",))
    if asked.ledger.lacks("inference.memory_per_gpu.activations", tuple(f"architecture.{name}" for name in missing)):
        return None
    chosen = (shape.experts_per_token or 1) * (shape.expert_width or 0) + shape.shared_intermediate
    widths = [shape.intermediate or 0, chosen if shape.experts else 0]
    return max(widths) + shape.known("hidden")[0]


def _given_cache(asked: Serving, need: InferenceNeed) -> InferenceNeed:
    """Take the bytes of a sequence that were given in place of counted ones."""
    given = asked.load.kv_bytes_per_sequence
    if given is None:
        return need
    return replace(need, kv_cache=given * asked.sequences / asked.placing.split.gpus)


def _budget(asked: Serving) -> float | None:
    """What a server may use of a GPU; None where its memory is not given."""
    if asked.gpus.usable_gib is None:
        return None
    return budget_bytes(asked.gpus.usable_gib * GIB, asked.ledger.take(asked.load.utilization, "inference.utilization"))


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
