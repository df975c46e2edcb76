"""Time per output token and time to the first token of a serving engine: physical work, weighted by fitted constants.

The work of a step is counted in seconds at the rated speed of a GPU and of its links, and in numbers (layers, experts,
sequences). The constants of `serving_constants` turn it into the time that engines take. All formulas are plain
arithmetic, so that `python -m benchmarks.calibrate` passes arrays of all measured runs through the very same code.
"""

from dataclasses import dataclass
from typing import NamedTuple

ATTENTION_OVER_PEAK = 2.0
"""Time of a prompt's attention over that of its FLOPs at the 16-bit peak: half of the peak is reached.

Sources: 8B and a million tokens on one A100 in 30 minutes (MInference, arXiv 2407.02490), 405B and a million tokens on
128 H100 in 77 s (arXiv 2411.01783); FlashAttention-2 and -3 reach 0.5 to 0.75 of it (arXiv 2307.08691, 2407.08608).
"""

MAX_RANKS_OF_A_PROMPT = 8
"""Beyond this number of tensor ranks, each group of ranks reads a part of the prompt (context parallelism)."""

CHUNK_TOKENS = 8192
"""Tokens of a prompt that a pipeline stage passes on at a time: the usual `max_batched_tokens`."""


class StepWork(NamedTuple):
    """The work of one decode step of one copy, all pipeline stages after each other; times in seconds.

    Bytes are read at the memory bandwidth, FLOPs computed at the dense peak, collectives sent at the link's speed.
    `dequantized_s` is the part of the reading whose weights are dequantized to 16 bits. `latent_layers` compress their
    keys and values (MLA). `routed` counts the experts of a token over all layers. `doublings` is log2 of the tensor
    ranks, summed over layers, times the latency of the link over that of NVLink. `prompts` is how many prompts of other
    requests are read in a step; the four times after it are those of one prompt. `hops_s` is what moving between stages
    takes. Of `sglang` and `vllm` the engine's is 1 and others are 0.
    """

    dense_read_s: float
    expert_read_s: float
    dequantized_s: float
    kv_read_s: float
    compute_s: float
    collective_s: float
    layers: float
    latent_layers: float
    routed: float
    doublings: float
    sequences: float
    prompts: float
    dense_prefill_s: float
    expert_prefill_s: float
    attention_prefill_s: float
    collective_prefill_s: float
    hops_s: float
    sglang: float
    vllm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConstants:
    """The fitted constants of a step. Those in µs are per layer, expert, doubling of ranks or sequence; others factors.

    `dense_read` to `compute`: time over that at the rated speed. `prefill_dense` and `prefill_experts`: the same of
    reading prompts, of models without and with experts. `sglang` and `vllm`: what these take longer than TensorRT-LLM.
    """

    dense_read: float
    expert_read: float
    dequantize: float
    kv_read: float
    compute: float
    layer_us: float
    latent_us: float
    expert_us: float
    doubling_us: float
    collective: float
    sequence_us: float
    prefill_dense: float
    prefill_experts: float
    sglang: float
    vllm: float


def step_time(work: StepWork, by: StepConstants) -> float:
    """Return the expected time of a step, s; an estimate.

    (max(reading, computing) + KV + L overhead + collectives + B overhead + prompts of others) x engine.
    """
    reading = work.dense_read_s * by.dense_read + work.expert_read_s * by.expert_read
    reading = reading + work.dequantized_s * by.dequantize
    computing = work.compute_s * by.compute
    micros = work.layers * by.layer_us + work.latent_layers * by.latent_us + work.routed * by.expert_us
    micros = micros + work.doublings * by.doubling_us + work.sequences * by.sequence_us
    own = _larger(reading, computing) + work.kv_read_s * by.kv_read + work.collective_s * by.collective + micros * 1e-6
    return (own + work.prompts * prompt_time(work, by)) * engine_factor(work, by) + work.hops_s


def prompt_time(work: StepWork, by: StepConstants) -> float:
    """Return the time in which the GPUs of a copy read one prompt, without waiting, s; an estimate."""
    linear = work.dense_prefill_s * by.prefill_dense + work.expert_prefill_s * by.prefill_experts
    return linear + work.attention_prefill_s * ATTENTION_OVER_PEAK + work.collective_prefill_s * by.collective


def engine_factor(work: StepWork, by: StepConstants) -> float:
    """Return what the engine's step takes over that of TensorRT-LLM."""
    return 1 + by.sglang * work.sglang + by.vllm * work.vllm


def _larger(one: float, other: float) -> float:
    """Return the larger of two; unlike max also of arrays, value by value."""
    return (one + other + abs(one - other)) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokenConstants:
    """The fitted constants of the time to the first token.

    `layer_ms` and `latent_ms` are the launch of a layer's kernels, without CUDA graphs. `waiting` is the share of the
    other sequences whose prompts are read first. `steps` are decode steps that pass meanwhile. `base_ms` is the
    request's way to the engine and back. `sglang` and `vllm`: what these take longer than TensorRT-LLM.
    """

    base_ms: float
    layer_ms: float
    latent_ms: float
    waiting: float
    steps: float
    sglang: float
    vllm: float


def first_token_time(work: StepWork, step_s: float, own: StepConstants, by: FirstTokenConstants) -> float:
    """Return the expected time to the first token, s, where a step of the same load takes `step_s`; an estimate.

    (base + (prompt + L launches) x (1 + waiting x sequences) + steps x step) x engine: prompts are read in the order
    they come, chunk by chunk beside decoding, and the more sequences there are, the more arrive together. It is never
    less than the prompt alone takes.
    """
    alone = prompt_time(work, own)
    queued = (alone + launch_time(work, by)) * (1 + by.waiting * work.sequences)
    engine = 1 + by.sglang * work.sglang + by.vllm * work.vllm
    return _larger(alone, (by.base_ms * 1e-3 + queued + by.steps * step_s) * engine)


def launch_time(work: StepWork, by: FirstTokenConstants) -> float:
    """Return the time in which the kernels of a prompt are launched, layer by layer, s; an estimate."""
    return (work.layers * by.layer_ms + work.latent_layers * by.latent_ms) * 1e-3
