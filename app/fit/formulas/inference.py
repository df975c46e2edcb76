"""Serving a model: speed of decoding, memory that each GPU needs and may use, and how many sequences fit."""

from dataclasses import dataclass, replace
from math import ceil, floor
from typing import NamedTuple

from app.fit.formulas.memory import (
    NO_EXPERTS,
    ExpertShare,
    KvCache,
    Parallelism,
    kv_bytes_per_sequence,
    largest_gpu_share,
    padding_share,
)
from app.fit.formulas.quantities import GIB, ZERO, Range, plus_minus


class DecodeStep(NamedTuple):
    """What one GPU does in one step of a batch: bytes of weights and KV cache that it reads, and FLOPs."""

    weights_bytes: float
    kv_bytes: float
    flops: float = 0.0


def step_seconds(step: DecodeStep, bandwidth_bytes_per_s: float, peak_flops: float | None = None) -> float:
    """Return the least time of one step, s: max(W_read / BW, FLOPs / peak) + B KV / BW.

    A bound: every weight and every cached token is read once a step. W_read, B KV and FLOPs are of one GPU of a
    tensor-parallel group; without a peak, arithmetic sets no bound. BW bytes a second (decimal), peak dense FLOP/s.
    Source: Pope et al., arXiv 2211.05102, section 2; kipply, Transformer Inference Arithmetic.
    """
    reading = step.weights_bytes / bandwidth_bytes_per_s
    counting = step.flops / peak_flops if peak_flops else 0.0
    return max(reading, counting) + step.kv_bytes / bandwidth_bytes_per_s


def experts_read(experts: int, per_token: int, sequences: float) -> float:
    """Return the share of the experts' weights that a step of B sequences reads: 1 - (1 - e / E)^B.

    An estimate: routing is taken as uniform and independent. E experts, e of them per token. Derived here.
    """
    unread: float = (1 - per_token / experts) ** sequences
    return 1 - unread


def decode_flops(active_params: float, sequences: float) -> float:
    """Return the FLOPs of one step of B sequences: 2 N_act B; a bound from below, attention not counted."""
    return 2 * active_params * sequences


CUDA_CONTEXT = Range(low=0.5 * GIB, mid=0.75 * GIB, high=1.0 * GIB)
"""CUDA context and kernels on each GPU: Bekman, Machine Learning Engineering, measured 0.47 to 0.92 GiB."""

NCCL_BUFFERS = Range(low=1.0 * GIB, mid=1.25 * GIB, high=1.5 * GIB)
"""NCCL's buffers on each GPU of a group: the same book."""

STEP_SPREAD = 0.4
"""Relative spread of a step's memory, which was seen on two logs of one model only; other models vary."""


SERVING_RUNTIME = Range(low=0.0, mid=0.1 * GIB, high=1.3 * GIB)
SERVING_RUNTIME_SHARE = Range(low=0.004, mid=0.015, high=0.015)
"""What an engine takes on each GPU beside weights, cache and a step: a base, and a share of the GPU's memory.

Fitted to the start-up logs of vLLM and SGLang in benchmarks/accuracy/kv_capacity.csv, like the two constants below:
0.1 GiB on GPUs of 22 GiB, 0.4 of 40, 0.9 on an A100 of 80 and up to 2.2 GiB on an H100.
"""

TENSOR_RANK_BUFFERS = Range(low=0.5 * GIB, mid=1.5 * GIB, high=5.6 * GIB)
"""Communication buffers and workspaces on each GPU of several: 1.2 to 8 GiB in the same logs, most for large MoE."""

GRAPHS = Range(low=0.0, mid=1.3 * GIB, high=1.3 * GIB)
GRAPHS_UTILIZATION = 0.92
"""CUDA graphs, where the budget has to hold them: since vLLM measures them in its memory profile, 0.92 is its default.

With less, as with the former default of 0.90, they are captured in the memory that the utilization leaves free.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model as it is served, the same on every candidate of a placement.

    `embeddings` is their share of the parameters, 0 to 1, `replicated` the share of what every tensor rank holds whole.
    `step_bytes_per_token` is 6 (f + h); 0 where the widths are unknown. `pass_bytes` are the activations of one
    sequence, or image, of a model that keeps no cache.
    """

    weights_bytes: float
    cache: KvCache | None = None
    layers: int | None = None
    embeddings: float = 0.0
    replicated: float = 0.0
    experts: ExpertShare = NO_EXPERTS
    step_bytes_per_token: float = 0.0
    pass_bytes: Range = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLoad:
    """What one copy of a model serves at the same time: sequences of a context, and tokens batched in a step."""

    context_tokens: int
    sequences: int
    batched_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceNeed:
    """Memory that the fullest GPU of one copy needs, bytes; `padding` is what kernels add to the weights."""

    weights: float
    kv_cache: float
    activations: Range
    overhead: Range
    padding: Range = ZERO

    @property
    def total(self) -> Range:
        """Sum of all parts."""
        return self.activations + self.overhead + self.padding + (self.weights + self.kv_cache)


def inference_need(
    model: ServedModel, load: ServingLoad, parallelism: Parallelism, overhead: Range | None = None
) -> InferenceNeed:
    """Return the memory that the fullest GPU of one copy needs: W share + padding + ceil(B / d) KV + A_step + C.

    A_step = 6 (f + h) x batched tokens / t.  Weights and KV exact for p = 1, else bounds; A_step and C estimates.
    W weights, B sequences, f intermediate, h hidden, t tensor parallel, C `overhead`; bytes. With data-parallel
    attention each of d groups holds the cache of its own sequences.
    Source: vLLM's memory profiling; A_step was fitted to two start-up logs of vLLM (its GitHub, 10517; within 0.6 %).
    """
    cache = model.cache if load.sequences else None
    sequence = kv_bytes_per_sequence(cache, load.context_tokens, parallelism) if cache else 0.0
    step = model.step_bytes_per_token * load.batched_tokens / parallelism.tensor
    share = largest_gpu_share(parallelism, layers=model.layers, embeddings=model.embeddings, experts=model.experts)
    share += model.replicated * (1 - 1 / parallelism.tensor) / parallelism.pipeline
    return InferenceNeed(
        weights=model.weights_bytes * share,
        kv_cache=ceil(load.sequences / parallelism.data) * sequence,
        activations=plus_minus(step, STEP_SPREAD) + model.pass_bytes.times(load.sequences / parallelism.gpus),
        overhead=serving_overhead(parallelism) if overhead is None else overhead,
        padding=padding_share(model.experts, parallelism, model.layers).times(model.weights_bytes),
    )


def serving_overhead(parallelism: Parallelism, *, usable_bytes: float = 0.0, utilization: float = 0.0) -> Range:
    """Return the bytes that an engine takes on each GPU beside weights, KV cache and a step: an estimate.

    Runtime + share x usable memory, + buffers of tensor ranks, + CUDA graphs where the utilization includes them. It
    is fitted to 30 start-up logs; the range has 27 of them. With a utilization above the default an engine may be of
    either version, and SGLang has its graphs in what the utilization leaves: only the upper end has graphs.
    """
    runtime = SERVING_RUNTIME + SERVING_RUNTIME_SHARE.times(usable_bytes)
    graphs = GRAPHS if utilization == GRAPHS_UTILIZATION else ZERO
    if utilization > GRAPHS_UTILIZATION:
        graphs = Range(low=0.0, mid=0.0, high=GRAPHS.high)
    return runtime + graphs + (TENSOR_RANK_BUFFERS if parallelism.gpus > 1 else ZERO)


def runtime_overhead(gpus: int) -> Range:
    """Return the bytes of the runtime on each GPU in training: the CUDA context, and NCCL's buffers of several GPUs.

    An estimate.
    """
    return CUDA_CONTEXT + (NCCL_BUFFERS if gpus > 1 else ZERO)


def memory_budget_bytes(usable_bytes: float, utilization: float) -> float:
    """Return the bytes that a server may use of a GPU: u x usable memory; exact. vLLM's default of u is 0.92."""
    return usable_bytes * utilization


def max_sequences(
    model: ServedModel, load: ServingLoad, parallelism: Parallelism, budget: float, overhead: Range | None = None
) -> Range | None:
    """Return how many sequences of the load's context one copy serves at once; None where a sequence takes nothing.

    d floor((budget - W share - A_step - C) / KV of a sequence), never below 0.  An estimate, as A_step and C are.
    Source: vLLM, arXiv 2309.06180, section 4: the memory that profiling leaves is divided into pages.
    """
    cached = kv_bytes_per_sequence(model.cache, load.context_tokens, parallelism) if model.cache is not None else 0.0
    sequence = model.pass_bytes.times(1 / parallelism.gpus) + cached
    if not sequence.low:
        return None
    need, groups = inference_need(model, replace(load, sequences=0), parallelism, overhead), parallelism.data
    beside = need.total
    room = Range(low=budget - beside.high, mid=budget - beside.mid, high=budget - beside.low)
    ends = ((room.low, sequence.high), (room.mid, sequence.mid), (room.high, sequence.low))
    low, mid, high = (groups * max(0, floor(free / each)) for free, each in ends)
    return Range(low=low, mid=mid, high=high)
