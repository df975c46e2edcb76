"""Time per output token and time to the first token of a serving engine: physical work, weighted by fitted constants.

The work of a step is counted in seconds at the rated speed of a GPU and of its links, and in numbers (layers, experts,
sequences). The constants at the end turn it into the time that engines take. All formulas are plain arithmetic, so that
`python -m benchmarks.calibrate` passes arrays of all measured runs through the very same code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import e
from typing import NamedTuple

ATTENTION_OVER_PEAK = 2.0
"""Time of a prompt's attention over that of its FLOPs at the 16-bit peak: half of the peak is reached.

Sources: 8B and a million tokens on one A100 in 30 minutes (MInference, arXiv 2407.02490), 405B and a million tokens on
128 H100 in 77 s (arXiv 2411.01783); FlashAttention-2 and -3 reach 0.5 to 0.75 of it (arXiv 2307.08691, 2407.08608).
"""

COMPUTE_OVER_PEAK = 1.5
"""Time of the FLOPs of a step over that at the dense peak: two thirds are reached, as in prompts of dense models."""

MAX_RANKS_OF_A_PROMPT = 8
"""Beyond this number of tensor ranks, each group of ranks reads a part of the prompt (context parallelism)."""

CHUNK_TOKENS = 8192
"""Tokens of a prompt that a pipeline stage passes on at a time, unless stated: the usual `max_batched_tokens`."""


class StepWork(NamedTuple):
    """The work of one decode step of one copy, all pipeline stages after each other; times in seconds.

    Bytes are read at the memory bandwidth, FLOPs computed at the dense peak, collectives sent at the link's speed.
    `latent_layers` compress their keys and values (MLA), `expert_layers` have experts; `routed` counts the experts of a
    token over all layers. `doublings` is log2 of the tensor ranks, summed over layers, times the latency of the link
    over that of NVLink; `norm_doublings` are those of norms over all heads. `prompts` is how many prompts of other
    requests are read in a step; the four times after it are those of one prompt. `hops_s` is what moving between
    stages, and between servers, takes. Of `sglang` and `vllm` the engine's is 1 and others are 0; `amd` is 1 on AMD's
    GPUs, `burst` where all requests start together.
    """

    dense_read_s: float
    expert_read_s: float
    kv_read_s: float
    compute_s: float
    collective_s: float
    layers: float
    latent_layers: float
    expert_layers: float
    routed: float
    doublings: float
    norm_doublings: float
    sequences: float
    prompts: float
    dense_prefill_s: float
    expert_prefill_s: float
    attention_prefill_s: float
    collective_prefill_s: float
    hops_s: float
    sglang: float
    vllm: float
    amd: float
    burst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConstants:
    """The fitted constants of a step. Those in µs are per layer, expert, doubling of ranks or sequence; others factors.

    `dense_read` and `collective`: time over that at the rated speed, which experts and caches are read at.
    `prefill_dense` and `prefill_experts`: the same of reading prompts, beside routed experts and in them. `vllm`: what
    it takes longer than others; `sglang_layer_us`: how long SGLang launches each layer of a pass over prompts, which
    generates nothing, of models with experts. `host_ms`: what the host takes between two steps of vLLM and SGLang while
    the GPUs wait; in the runs of bursts, which vendors tune, it takes nothing. `amd`: what AMD's GPUs take longer than
    their figures say, with the host's part, and `amd_latent` what models with latent attention add while they generate.
    """

    dense_read: float
    layer_us: float
    latent_us: float
    expert_us: float
    doubling_us: float
    collective: float
    sequence_us: float
    prefill_dense: float
    prefill_experts: float
    sglang_layer_us: float
    vllm: float
    host_ms: float
    amd: float
    amd_latent: float


def step_time(work: StepWork, by: StepConstants) -> float:
    """Return the expected time of a step, s; an estimate.

    ((max(reading, computing) + KV + L overhead + collectives + B overhead) x GPU + prompts) x engine + host.
    """
    micros = work.layers * by.layer_us + work.latent_layers * by.latent_us + work.routed * by.expert_us
    micros = micros + (work.doublings + work.norm_doublings) * by.doubling_us + work.sequences * by.sequence_us
    reading = work.dense_read_s * by.dense_read + work.expert_read_s
    computing = work.compute_s * COMPUTE_OVER_PEAK
    working = (reading + computing + abs(reading - computing)) / 2  # the larger of both, also of arrays
    own = working + work.kv_read_s + work.collective_s * by.collective + micros * 1e-6
    own = own * (1 + work.amd * (by.amd + by.amd_latent * work.latent_layers / work.layers))
    host = (work.sglang + work.vllm) * (1 - work.burst) * (1 - work.amd) * by.host_ms * 1e-3
    return own * _engine_factor(work, by) + prompts_time(work, by) + work.hops_s + host


def prompts_time(work: StepWork, by: StepConstants) -> float:
    """Return the time of a step in which prompts of other requests are read, s; an estimate.

    SGLang reads those that have come since the last step in one pass, which is launched once: of `prompts` that come at
    random, a share of 1 - e^-prompts of the steps has such a pass.
    """
    passes: float = 1 - e**-work.prompts
    return (work.prompts * _reading_time(work, by) + passes * _pass_time(work, by)) * _engine_factor(work, by)


def prompt_time(work: StepWork, by: StepConstants) -> float:
    """Return the time in which the GPUs of a copy read one prompt, without waiting, s; an estimate."""
    return _reading_time(work, by) + _pass_time(work, by)


def _reading_time(work: StepWork, by: StepConstants) -> float:
    linear = work.dense_prefill_s * by.prefill_dense + work.expert_prefill_s * by.prefill_experts
    own = linear + work.attention_prefill_s * ATTENTION_OVER_PEAK + work.collective_prefill_s * by.collective
    return own * (1 + work.amd * by.amd)


def _pass_time(work: StepWork, by: StepConstants) -> float:
    """Return how long SGLang launches the layers of a pass over prompts, s; others read prompts in their steps."""
    return work.sglang * work.expert_layers * by.sglang_layer_us * 1e-6


def _engine_factor(work: StepWork, by: StepConstants) -> float:
    """Return what the engine's step takes over that of others."""
    return 1 + by.vllm * work.vllm


PREFILL_FACTOR = 1.2
"""Time in which an engine reads a prompt beside decoding over that in which the GPUs read it."""


BASE_MS = 10.0
STEPS_IN_FLIGHT = 2.0
"""A request's way to the engine and back, and the decode steps that pass before its prompt is read and sampled from.

Of 813 first tokens that others measured of requests that come one by one, most of them with vLLM, these two and 1.2
prompts are 22 % off. Fitted to the reported runs they are no better without the source that is asked for.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokenConstants:
    """The fitted constants of the time to the first token.

    With TensorRT-LLM it is `trtllm_ms` longer. Collectives of a prompt are launched without CUDA graphs: `doubling_ms`
    is that of a layer for each doubling of ranks. Where requests start together, `waiting` is the share of them whose
    prompts are read first, with SGLang `sglang_waiting` more.
    """

    trtllm_ms: float
    doubling_ms: float
    waiting: float
    sglang_waiting: float


def first_token_time(work: StepWork, step_s: float, own: StepConstants, by: FirstTokenConstants) -> float:
    """Return the expected time to the first token, s, where a step of the same load takes `step_s`; an estimate.

    base + (prompt x 1.2 + launches) x (1 + waiting x sequences of a burst) + steps x step: a prompt waits for the steps
    in flight and, where all requests start together, for the prompts before it.
    """
    trtllm = 1 - work.sglang - work.vllm
    waiting = work.burst * work.sequences * (by.waiting + work.sglang * by.sglang_waiting)
    reading = prompt_time(work, own) * PREFILL_FACTOR + launch_time(work, by)
    return (BASE_MS + trtllm * by.trtllm_ms) * 1e-3 + reading * (1 + waiting) + STEPS_IN_FLIGHT * step_s


def launch_time(work: StepWork, by: FirstTokenConstants) -> float:
    """Return the time in which the collectives of a prompt are launched, layer by layer, s; an estimate."""
    return work.doublings * by.doubling_ms * 1e-3


class Spread(NamedTuple):
    """The measured time over the expected one at the ends of a range."""

    low: float
    high: float


# Fitted, by `python -m benchmarks.calibrate --write`.
STEP = StepConstants(
    dense_read=1.075,
    layer_us=48.67,
    latent_us=26.45,
    expert_us=4.158,
    doubling_us=4.704,
    collective=1.846,
    sequence_us=19.12,
    prefill_dense=1.318,
    prefill_experts=3.082,
    sglang_layer_us=1092,
    vllm=0.1055,
    host_ms=2.184,
    amd=0.5914,
    amd_latent=0.9181,
)
FIRST_TOKEN = FirstTokenConstants(trtllm_ms=73.48, doubling_ms=0.06501, waiting=0.07201, sglang_waiting=0.127)
STEP_SPREAD: Mapping[str, float] = {"dense": 1.148, "experts": 1.287, "unseen": 1.405}
FIRST_TOKEN_SPREAD: Mapping[str, float] = {"steady": 1.641, "burst": 1.723}
MEASURED_MODELS = frozenset(
    [
        (32, 4096, 0, "sglang"),
        (32, 4096, 0, "trtllm"),
        (36, 2880, 128, "trtllm"),
        (36, 2880, 128, "vllm"),
        (60, 4096, 512, "sglang"),
        (61, 7168, 256, "sglang"),
        (61, 7168, 256, "trtllm"),
        (61, 7168, 384, "vllm"),
        (62, 3072, 256, "vllm"),
        (80, 8192, 0, "trtllm"),
        (80, 8192, 0, "vllm"),
        (94, 4096, 128, "trtllm"),
        (94, 4096, 128, "vllm"),
    ]
)
# End of what is fitted.
