"""How fast one GPU trains: time per token of matrix products, memory traffic, and the exchange between experts.

The constants are fitted to published rates by `python -m benchmarks.calibrate_training`, which prints them with their
errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log, prod, sqrt
from typing import Literal

from app.fit.formulas.architecture import Architecture, ParameterCount
from app.fit.formulas.quantities import Range

Precision = Literal["bf16", "fp8", "fp8_block", "mxfp8", "nvfp4"]

PRECISION_DTYPES: dict[str, str] = {"bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "mxfp8": "mxfp8", "nvfp4": "fp4"}
"""The type in which each precision computes matrix products."""

PEAK_RATIOS: dict[str, float] = {"bf16": 1, "fp8": 2, "mxfp8": 2, "fp4": 4}
"""Dense peak of a type relative to that of 16 bits, where the GPU is unknown: H100, B200 and GB200."""

FORWARD_FLOPS, FULL_FLOPS = 2.0, 6.0
"""FLOPs per parameter and token of a forward pass, and of training all parameters."""

MAX_EXPERT_GPUS = 64
"""GPUs that the experts of a layer are spread over at most: DeepSeek-V3, arXiv 2412.19437, section 3.2; NVIDIA's
recipes of Megatron-Bridge do the same.
"""

NETWORK_BYTES_PER_S = 50e9
"""Bytes a second that each GPU sends to other servers, where that is not known: 400 Gbit/s, as in DGX H100, DGX B200
and GB200, whose rates the constants are fitted to.
"""

SENT_BYTES_PER_PARAM = 4.0
"""What data-parallel ranks send in a step for each parameter: its gradient and its new weight, in 16 bits.

Source: Rajbhandari et al., ZeRO, arXiv 1910.02054, section 7.
"""

MOST_SENT_BYTES = 40e9
"""Of one GPU: more than gradients and weights beside the optimizer's states would fill it, so that copies are split."""

HIDING_SHARE = 2 / 3
"""The share of a step's computing that hides what ranks send: the backward pass (Li et al., arXiv 2006.15704)."""

STEP_LAYER_S = 2e-3
"""What a step takes for each layer whatever its batch, s: launches, and collectives that no computing hides.

Llama 3.1 8B in NVFP4 on 8, 72 and 512 GB300 with 16, 36 and 64 sequences a step took 0.36, 0.15 and 0.088 s (MLPerf
Training v5.1): 17 µs a token of a GPU, and 0.07 to 0.08 s for 32 layers, that is 2.2 to 2.5 ms; 2 beside the time of a
token that is fitted to larger batches.
"""

HOST_UPDATE_S = Range(low=0.25e-9, mid=0.8e-9, high=3e-9)
"""What a host takes in a step for each parameter whose optimizer state is offloaded to it, s: GPUs wait meanwhile.

Measured: 0.25 s a billion by one process on two Xeon 8168 (Ren et al., ZeRO-Offload, arXiv 2101.06840, table 4); less
than 0.77 and 1.0 with Qwen2.5 3B on two A100, with and without cores bound to ranks (DeepSpeed, pull request 7474); 2.3
to 3.0 with LLaMA 7B on eight A800, the difference to a step without (gist of chenyaofo, DeepSpeed 0.14.2), where
offloading weights, too, took no longer.
"""

EXCHANGES_PER_LAYER, EXCHANGED_BYTES = 4, 2
"""A layer of experts sends each token to its experts and back, forward and backward, with 2 bytes a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedConstants:
    """The fitted constants: shares of a peak that are reached, and how often stored activations are moved.

    `matrix_share` is the share of the dense peak that matrix products reach in 16 and 8 bits, `fp4_share` in 4 bits.
    `passes` is the memory traffic of a token divided by the bytes of its stored activations, `moe_passes` what a model
    with experts adds (routing, permutation, uneven load). `exchange_share` is the part of the exchange between servers
    that is not hidden behind computing. `hopper` and `ultra` are the time on Hopper and on Blackwell Ultra, relative to
    what the peaks and bandwidths say in comparison with Blackwell.
    """

    matrix_share: float
    fp4_share: float
    passes: float
    moe_passes: float
    exchange_share: float
    hopper: float
    ultra: float

    def pace(self, capabilities: Sequence[str]) -> float:
        """Return the time relative to Blackwell's; of GPUs that cannot be distinguished the geometric mean.

        GPUs before Hopper, which have no published rates, are taken to be as Hopper. `capabilities` are CUDA compute
        capabilities.
        """
        paces = [
            {"8": self.hopper, "9": self.hopper, "10.3": self.ultra}.get(_generation(capability), 1.0)
            for capability in capabilities
        ]
        return prod(paces) ** (1 / len(paces)) if paces else 1.0


def _generation(capability: str) -> str:
    """Return the major number of a capability, of Blackwell both numbers: its generations differ in pace."""
    return capability if capability.startswith("10.") else capability.partition(".")[0]


FITTED = SpeedConstants(
    matrix_share=0.475,
    fp4_share=0.270,
    passes=9.99,
    moe_passes=41.0,
    exchange_share=0.236,
    hopper=1.12,
    ultra=0.858,
)
"""As printed by `python -m benchmarks.calibrate_training`."""

RATE_SPREAD = Range(low=0.90, mid=1.0, high=1.28)
"""Published rate / estimate: 80 % of 134 rates are between, each estimated by constants that do not know its model."""

RUN_OVERHEAD = Range(low=0.0, mid=0.19, high=1.7)
"""What a whole run takes beyond its steps, as a share: restarts, evaluation, checkpoints, warm-up, slow nodes.

The median of published GPU-hours over those of the steps is 1.19 in 16 runs, and 80 % are below the high end of a range
that also has the spread of the rates. Llama 3 405B (arXiv 2407.21783, section 3.3.4) lost less than 10 % to restarts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWork:
    """What one token of training takes: FLOPs, bytes of stored activations, and what its experts exchange.

    `matrix_flops` are those of the layers' weights, computed in the precision of the recipe; `other_flops` are those of
    attention scores and the output layer, which stay in 16 bits. `exchanged_bytes` go from and to each server that has
    an expert of the token.
    """

    matrix_flops: float
    other_flops: float
    stored_bytes: float
    exchanged_bytes: float = 0.0
    experts: int = 0
    experts_per_token: int = 0
    sparse: bool = False
    layers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One GPU: peaks in the precision and in 16 bits (FLOP/s), bandwidth (bytes/s), GPUs in its NVLink domain.

    `network_bytes_per_s` is what it has of the network between VMs. `four_bits` is whether the precision has 4 bits.
    `capabilities` has its CUDA compute capability, or all that it may have; where it is not `known`, that of the GPU
    with the nearest peak. `slowdown` multiplies the time: it is what a slower link or an immature chip adds.
    """

    matrix_peak: float
    peak_16_bits: float
    bandwidth: float
    domain_gpus: int = 8
    network_bytes_per_s: float = NETWORK_BYTES_PER_S
    four_bits: bool = False
    capabilities: tuple[str, ...] = ()
    known: bool = True
    slowdown: float = 1.0


def token_work(
    shape: Architecture,
    count: ParameterCount,
    *,
    sequence_tokens: int = 0,
    flops_per_param: float = FULL_FLOPS,
    recomputed: bool = False,
) -> TokenWork:
    """Return the work of one token; `shape` has layers and widths, of which unknown ones count as zero.

    Matrices: c FLOPs per active parameter of the layers; output layer c V h; scores 6 s w of each layer, half of that
    of all pairs as attention is causal (w width of all heads; the window instead of s where it is shorter). Full
    recomputation adds a forward pass: 2 FLOPs per parameter and a third of the rest. Stored are 6 h + q + 2 k values a
    layer and 4 f of each MLP that the token uses, 2 bytes each, as in `activations.modern_layer_bytes`; frozen weights
    need no gradients, so that traffic shrinks like the FLOPs of a parameter.
    Sources: Kaplan et al., arXiv 2001.08361, section 2.1; Korthikanti et al., arXiv 2205.05198.
    """
    layers, hidden = shape.layers or 0, shape.hidden or 0
    output = float((shape.vocab or 0) * hidden) if count.embeddings else 0.0
    queries, keys = _head_widths(shape)
    again = 1.0 + (1 / 3 if recomputed else 0.0)
    per_param = flops_per_param + (FORWARD_FLOPS if recomputed else 0.0)
    sparse = shape.layers_with_experts if shape.experts else 0
    active = (shape.experts_per_token or 0) * (shape.expert_width or 0) + shape.shared_intermediate
    values = layers * (6 * hidden + queries + 2 * keys)
    values += 4 * ((layers - sparse) * (shape.intermediate or 0) + sparse * active)
    return TokenWork(
        matrix_flops=per_param * max(0, count.active - count.embeddings),
        other_flops=flops_per_param * output + 6 * again * queries * _attended_tokens(shape, sequence_tokens),
        stored_bytes=2.0 * values * again * flops_per_param / FULL_FLOPS,
        exchanged_bytes=float(EXCHANGES_PER_LAYER * EXCHANGED_BYTES * sparse * hidden),
        experts=shape.experts or 0,
        experts_per_token=shape.experts_per_token or 0,
        sparse=count.active < count.total,
        layers=layers,
    )


def _head_widths(shape: Architecture) -> tuple[float, float]:
    """Return the width of all query heads, and of all keys and values (the mean of both, where they differ)."""
    heads = shape.heads or 0
    if shape.kv_lora_rank is None:
        head = shape.head_dim or 0
        return heads * head, (shape.kv_heads or 0) * head
    nope, rope, values = (shape.qk_nope_head_dim or 0, shape.qk_rope_head_dim or 0, shape.v_head_dim or 0)
    return heads * (nope + rope + values) / 2, heads * (nope + values) / 2


def _attended_tokens(shape: Architecture, sequence_tokens: int) -> float:
    """Return twice the mean number of tokens that a token attends to, summed over the layers: s each, if causal."""
    layers = (shape.layers or 0) if shape.kv_layers is None else shape.kv_layers
    window = shape.sliding_window
    if window is None or window >= sequence_tokens:
        return float(layers * sequence_tokens)
    windowed = layers if shape.sliding_layers is None else min(layers, shape.sliding_layers)
    return (layers - windowed) * sequence_tokens + windowed * 2 * (window - window**2 / (2 * sequence_tokens))


def seconds_per_token(
    work: TokenWork, accelerator: Accelerator, gpus: int, constants: SpeedConstants = FITTED
) -> float:
    """Return the time that one of n GPUs takes for a token, s; the middle of an estimate.

    (matrix FLOPs / peak + other FLOPs / 16-bit peak) / share + passes x stored bytes / bandwidth + the exchange.
    Experts are spread over min(n, E, 64) GPUs; a token reaches min(e, servers) of their servers (or racks with one
    NVLink domain), all but its own over the network. E experts, e of them per token.
    """
    share = constants.fp4_share if accelerator.four_bits else constants.matrix_share
    computing = work.matrix_flops / (accelerator.matrix_peak * share)
    computing += work.other_flops / (accelerator.peak_16_bits * constants.matrix_share)
    passes = constants.passes + (constants.moe_passes if work.sparse else 0.0)
    moving = passes * work.stored_bytes / accelerator.bandwidth
    servers = max(1.0, min(gpus, work.experts, MAX_EXPERT_GPUS) / accelerator.domain_gpus)
    sent = work.exchanged_bytes * ((1 - 1 / servers) * min(work.experts_per_token, servers))
    exchanging = constants.exchange_share * sent / accelerator.network_bytes_per_s
    return constants.pace(accelerator.capabilities) * accelerator.slowdown * (computing + moving + exchanging)


def sending_seconds(sent_bytes: float, split: float, accelerator: Accelerator, gpus: int) -> float:
    """Return how long n GPUs send a copy's gradients and weights over the network in a step, s; an estimate.

    sent / max(s, d) / network (1 - d / n), where a copy is split over s GPUs. The d GPUs of a server, or of a rack,
    send together what they have in common.
    """
    domain = accelerator.domain_gpus
    sent_by_gpu = sent_bytes / max(split, domain)
    return sent_by_gpu / accelerator.network_bytes_per_s * max(0.0, 1 - domain / gpus)


def usual_batch_tokens(flops: float) -> float:
    """Return the tokens of a step that a training usually takes, by its FLOPs: 0.292 C^0.3271; an estimate.

    Source: DeepSeek LLM, arXiv 2401.02954, section 3.1: the batch with the least loss.
    """
    return 0.292 * float(flops**0.3271)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGpu:
    """A GPU: dense peaks by type (TFLOP/s), bandwidth (GB/s), compute capability and GPUs of an NVLink domain."""

    name: str
    peaks: Mapping[str, float]
    bandwidth_gb_per_s: float
    capability: str
    domain_gpus: int

    def accelerator(self, precision: Precision) -> Accelerator:
        """Return what counts for the speed of training in a precision that it has."""
        dtype = PRECISION_DTYPES[precision]
        return Accelerator(
            matrix_peak=self.peaks[dtype] * 1e12,
            peak_16_bits=self.peaks["bf16"] * 1e12,
            bandwidth=self.bandwidth_gb_per_s * 1e9,
            domain_gpus=self.domain_gpus,
            four_bits=dtype == "fp4",
            capabilities=(self.capability,),
        )


def _gpu(name: str, capability: str, bandwidth: float, domain: int, **peaks: float) -> KnownGpu:
    eight_bits = {"mxfp8": peaks["fp8"]} if "fp8" in peaks and "fp4" in peaks else {}
    return KnownGpu(
        name=name, peaks=peaks | eight_bits, bandwidth_gb_per_s=bandwidth, capability=capability, domain_gpus=domain
    )


KNOWN_GPUS: tuple[KnownGpu, ...] = (
    _gpu("A100", "8.0", 2039, 8, bf16=312),
    _gpu("H100", "9.0", 3350, 8, bf16=989, fp8=1979),
    _gpu("B200", "10.0", 8000, 8, bf16=2250, fp8=4500, fp4=9000),
    _gpu("B300", "10.3", 8000, 8, bf16=2250, fp8=4500, fp4=13_500),
    _gpu("GB200", "10.0", 8000, 72, bf16=2500, fp8=5000, fp4=10_000),
    _gpu("GB300", "10.3", 8000, 72, bf16=2500, fp8=5000, fp4=15_000),
)
"""Dense peaks, as on NVIDIA's pages on DGX A100, H100, B200, B300 and GB200 and GB300 NVL72. MXFP8 has the peak of FP8
and needs the block scaling of Blackwell.
"""

PEAK_TOLERANCE = 0.02
"""How far a peak may be from that of a known GPU: sources round it."""

USUAL_BYTES_PER_FLOP = 3.39e-3
"""Bytes of memory traffic per FLOP in 16 bits: 3.35 TB/s and 989 TFLOP/s on H100, and as much on B200."""

USUAL_DOMAIN = 8
"""GPUs of a server that NVLink joins."""


def find_gpus(peak_tflops: float, dtype: str) -> tuple[KnownGpu, ...]:
    """Return the known GPUs that have this dense peak in a type."""
    return tuple(
        gpu for gpu in KNOWN_GPUS if dtype in gpu.peaks and abs(peak_tflops / gpu.peaks[dtype] - 1) <= PEAK_TOLERANCE
    )


def precision_of(peak_tflops: float) -> tuple[Precision, KnownGpu] | None:
    """Return the precision with more than 16 bits' speed whose peak this is, and a GPU that has it; else None.

    A peak that is also one of 16 bits is taken for that.
    """
    precisions: tuple[Precision, ...] = ("fp8", "nvfp4")
    if find_gpus(peak_tflops, "bf16"):
        return None
    for precision in precisions:
        for gpu in find_gpus(peak_tflops, PRECISION_DTYPES[precision]):
            return precision, gpu
    return None


def accelerator_of(
    peak_tflops: float,
    precision: Precision,
    bandwidth_gb_per_s: float | None,
    *,
    rated_tflops: float | None = None,
) -> Accelerator:
    """Return the GPU with a dense peak in a precision: its other figures are those of the known GPUs with that peak.

    These are found by the peak that they are `rated` at, where it differs. Where none has the peak, the peak of 16 bits
    follows from the usual ratio, the bandwidth from that of H100, and the pace from the GPU with the nearest peak.
    """
    dtype = PRECISION_DTYPES[precision]
    gpus = find_gpus(peak_tflops if rated_tflops is None else rated_tflops, dtype)
    peak_16_bits = gpus[0].peaks["bf16"] if gpus else peak_tflops / PEAK_RATIOS[dtype]
    usual = gpus[0].bandwidth_gb_per_s * 1e9 if gpus else peak_16_bits * 1e12 * USUAL_BYTES_PER_FLOP
    return Accelerator(
        matrix_peak=peak_tflops * 1e12,
        peak_16_bits=peak_16_bits * 1e12,
        bandwidth=bandwidth_gb_per_s * 1e9 if bandwidth_gb_per_s is not None else usual,
        domain_gpus=gpus[0].domain_gpus if gpus else USUAL_DOMAIN,
        four_bits=dtype == "fp4",
        capabilities=tuple(sorted({gpu.capability for gpu in gpus or _nearest(peak_tflops, dtype)})),
        known=bool(gpus),
    )


def neighbours(precision: Precision | None, bandwidth_gb_per_s: float | None) -> tuple[tuple[float, Accelerator], ...]:
    """Return the known GPUs with the peak that each is recognized by, TFLOP/s, in increasing order.

    Each is there with the lowest and the highest peak that is taken for its own. Of a precision those that have it;
    of None all, each in the precisions that its peak may be meant in where none is given.
    """
    wanted: tuple[Precision, ...] = ("bf16", "fp8", "nvfp4") if precision is None else (precision,)
    peaks = {
        (gpu.peaks[dtype], format_)
        for format_ in wanted
        for gpu in KNOWN_GPUS
        if (dtype := PRECISION_DTYPES[format_]) in gpu.peaks
    }
    return tuple(
        (edge, accelerator_of(edge, format_, bandwidth_gb_per_s, rated_tflops=peak))
        for peak, format_ in sorted(peaks)
        for edge in (peak * (1 - PEAK_TOLERANCE), peak * (1 + PEAK_TOLERANCE))
    )


def _nearest(peak_tflops: float, dtype: str) -> tuple[KnownGpu, ...]:
    """Return the known GPUs whose peak in a type is the nearest, by ratio."""
    peaks = {gpu.peaks[dtype] for gpu in KNOWN_GPUS if dtype in gpu.peaks}
    nearest = min(peaks, key=lambda peak: abs(log(peak / peak_tflops)))
    return tuple(gpu for gpu in KNOWN_GPUS if gpu.peaks.get(dtype) == nearest)


HOURS_PER_MONTH = 730
MAX_EXPONENT = 50.0
"""Beyond e^50 times the time a job does not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotTerms:
    """How VMs are evicted, started again, and where checkpoints go.

    `evictions_per_hour` is the probability that one VM is evicted within an hour, and one evicted VM stops the job.
    `restart_hours` pass until VMs are back and the program has started. Checkpoints are written and read at
    `bytes_per_s` in all; `checkpoints` of them are kept, at `usd_per_gb_month` (10^9 bytes). `interval_hours` is the
    time between checkpoints; None for the best.
    """

    evictions_per_hour: float
    restart_hours: float
    bytes_per_s: float
    usd_per_gb_month: float
    checkpoints: int
    interval_hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """What evictions do to a job: extra time as a share, infinite where it never ends; evictions of any VM an hour.

    `storage_usd_per_hour` is for the checkpoints that are kept, in each hour until the job ends.
    """

    overhead: float
    evictions_per_hour: float
    interval_hours: float
    checkpoint_hours: float
    checkpoint_bytes: float
    storage_usd_per_hour: float

    def cost(self, usd_per_hour: float, hours: float) -> float:
        """Return the USD of a job of `hours` without interruptions."""
        return (usd_per_hour + self.storage_usd_per_hour) * hours * (1 + self.overhead)


def best_interval(write_hours: float, hours_between: float) -> float:
    """Return the time of work between two checkpoints with the least expected time, hours.

    sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 18M) - d for d < 2M, else M; d to write a checkpoint, M between failures.
    Sources: Young, CACM 17 (1974), 530; Daly, FGCS 22 (2006), 303, equation 37.
    """
    if write_hours >= 2 * hours_between:
        return hours_between
    ratio = sqrt(write_hours / (2 * hours_between))
    return sqrt(2 * write_hours * hours_between) * (1 + ratio / 3 + ratio**2 / 9) - write_hours


def time_factor(interval: float, write: float, restart: float, between: float) -> float:
    """Return expected time / time of work: M e^(R/M) (e^((t + d)/M) - 1) / t, with all times in one unit.

    t of work between checkpoints, d to write one, R to restart, M between failures at exponential intervals, which may
    also strike while a checkpoint is written or the job restarts. Source: Daly, FGCS 22 (2006), 303, equation 20.
    """
    if (interval + write + restart) / between > MAX_EXPONENT:
        return inf
    return between * exp(restart / between) * (exp((interval + write) / between) - 1) / interval


def interruptions(terms: SpotTerms, checkpoint_bytes: float, vms: int, job_hours: float | None) -> Interruptions:
    """Return what evictions of any of n VMs do to a job; the interval is the best one, or given, at most the job."""
    write = checkpoint_bytes / terms.bytes_per_s / 3600
    evictions = terms.evictions_per_hour * vms
    between = 1 / evictions if evictions else inf
    interval = terms.interval_hours
    if interval is None:
        interval = best_interval(write, between) if evictions and write else inf
    interval = min(interval, job_hours or inf)
    if not evictions:
        overhead = write / interval
    elif interval == inf:  # without checkpoints to write, work is saved all the time
        overhead = 0.0
    else:
        # What was written is read again, as fast.
        overhead = time_factor(interval, write, terms.restart_hours + write, between) - 1
    gigabytes = terms.checkpoints * checkpoint_bytes / 1e9
    return Interruptions(
        overhead=overhead,
        evictions_per_hour=evictions,
        interval_hours=interval,
        checkpoint_hours=write,
        checkpoint_bytes=checkpoint_bytes,
        storage_usd_per_hour=gigabytes * terms.usd_per_gb_month / HOURS_PER_MONTH,
    )
