"""Speed of a serving workload: the bound of a decode step, expected times, their range, and models of other kinds."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, inf, log2
from typing import NamedTuple, TypeVar

from app.fit.estimator.serving import ServingSetup, kv_cache_of, sequence_bytes, weights_range
from app.fit.estimator.speed_model import (
    EXPERT_PASSES,
    GPUS_OF_A_VM,
    VALUE_BYTES,
    Lengths,
    SpeedModel,
    gathering_steps,
    is_disaggregated,
    prompt_busy_s,
    queue_s,
    request_lengths,
    spans_vms,
    speed_model,
    spread_over_experts,
    transfer_s,
    wait_s,
)
from app.fit.estimator.weights import proposed, with_draft_passes, yielded
from app.fit.estimator.workload import Gpus, InferenceWorkload, assume_network
from app.fit.formulas.architecture import SELECTED_ENTRIES, Architecture, LayerCache, ModelKind, is_sparse
from app.fit.formulas.compute import (
    LinkKind,
    prefill_flops,
    prompt_attention_flops,
    stage_hop,
    tensor_link,
)
from app.fit.formulas.memory import (
    KvCache,
    Parallelism,
    experts_read,
    kv_bytes_per_sequence,
    step_seconds,
)
from app.fit.formulas.quantities import Assumptions, Evidence, InvalidWorkload, Range, bound, estimate
from app.fit.formulas.serving_speed import (
    CHUNK_TOKENS,
    FIRST_TOKEN,
    FIRST_TOKEN_SPREAD,
    MAX_RANKS_OF_A_PROMPT,
    MEASURED_MODELS,
    STEP,
    STEP_SPREAD,
    Spread,
    StepWork,
    first_token_time,
    prompt_time,
    step_time,
)
from app.fit.results import DecodeFigures, EncodeFigures, evidence_of


class _Gpu(NamedTuple):
    """A GPU by its ids in the catalog, the memory bandwidths that are stated, GB/s, and its types' peaks, TFLOP/s."""

    ids: tuple[str, ...]
    bandwidths: tuple[float, ...]
    peaks: tuple[float, ...]


MEASURED_GPUS = {
    "H100": _Gpu(("h100-sxm-80",), (3350,), (989, 1979)),
    "H200": _Gpu(("h200-sxm-141",), (4800,), (989, 1979)),
    "B200": _Gpu(("b200-sxm-180",), (7700, 8000), (2250, 4500, 9000)),
    "GB200, GB300": _Gpu(("gb200", "gb300"), (8000,), (2500, 5000, 10_000, 15_000)),
    "MI300X": _Gpu(("mi300x",), (5300,), (1307, 2615)),
}
"""GPUs of the measured runs: the vendors' pages, which state 7.7 and 8 TB/s of a B200. Others are outside."""
SERVERS_OF_EIGHT = ("H100", "H200", "B200")
"""Those that servers have eight of, which NVLink joins; a rack of GB200 has 72."""
AMD_PEAKS = MEASURED_GPUS["MI300X"].peaks
"""Dense peaks that no GPU of NVIDIA has: MI300X and MI325X."""
AMD_BANDWIDTHS = (5300.0, 6000.0)
"""GB/s of MI300X and MI325X."""
ROUNDING = 0.02
"""How far a figure of a GPU may be from that of a measured one: sources round it."""


def _is_about(given: float, rated: Iterable[float]) -> bool:
    return any(abs(given / speed - 1) <= ROUNDING for speed in rated)


def is_measured(gpus: Gpus) -> bool:
    """Whether runs on such GPUs were measured: their id, or else bandwidth, and a known peak are of one of them."""
    id_, bandwidth, peak = gpus.gpu_id, gpus.bandwidth_gb_per_s or 0.0, gpus.peak_tflops
    return any(
        (id_ in gpu.ids if id_ is not None else _is_about(bandwidth, gpu.bandwidths))
        and (peak is None or _is_about(peak, gpu.peaks))
        for gpu in MEASURED_GPUS.values()
    )


def is_amd(gpus: Gpus) -> bool:
    """Whether the GPUs have the memory bandwidth and a peak of AMD's."""
    return (
        gpus.peak_tflops is not None
        and _is_about(gpus.peak_tflops, AMD_PEAKS)
        and _is_about(gpus.bandwidth_gb_per_s or 0.0, AMD_BANDWIDTHS)
    )


MAX_TENSOR_PARALLEL = 8
"""The most GPUs of a layer that were measured."""
MAX_SEQUENCES = 128
"""Nine tenths of the measured runs have no more sequences of a replica; the most are 512.

Of published maximum rates with 129 to 512, which nothing is fitted to, only half were in a range that was not wider.
"""
MAX_CONTEXT_TOKENS = 16_384
"""The longest requests that were measured are of 8,192 tokens in and 1,024 out."""
MEASURED_DTYPES = frozenset({"bf16", "fp16", "fp8", "nvfp4", "mxfp4", "int4"})
"""Types of weights of the measured runs."""

WIDER = 1.2
"""How much further each end of the range is for each departure. An assumption, as nothing outside was fitted."""
MAX_DEPARTURES = 4
"""More departures make a range no wider."""


def find_departures(setup: ServingSetup, lengths: Lengths | None, *, typical: bool) -> tuple[str, ...]:
    """Return in what a workload departs from the measured runs under any load: gpu, link, ... (DEPARTURES has all)."""
    gpus, parallelism, shape = setup.gpus, setup.deployment.parallelism, setup.model.shape
    dtype = setup.weights.type.dtype if setup.weights is not None else None
    departs = {
        "gpu": not is_measured(gpus),
        "vendor": is_amd(gpus),
        "peak": gpus.peak_tflops is None,
        "link": parallelism.stage_gpus > 1 and gpus.link == "pcie",
        "tensor_parallel": parallelism.stage_gpus > MAX_TENSOR_PARALLEL,
        "data_parallel_attention": parallelism.data > 1,
        "pipeline_parallel": parallelism.pipeline > 1,
        "disaggregated": setup.workload.prefill_busy is not None,
        "speculative": setup.workload.speculative is not None,
        "context": lengths is None or lengths.kept > MAX_CONTEXT_TOKENS,
        "dtype": dtype not in MEASURED_DTYPES,
        "model": typical or shape.unknown_type or model_key(setup) not in MEASURED_MODELS,
    }
    return tuple(name for name, outside in departs.items() if outside)


def model_key(setup: ServingSetup) -> tuple[int, int, int, str]:
    """Return what models are recognized by as measured: layers, hidden size and experts, each with an engine."""
    shape = setup.model.shape
    return shape.layers or 0, shape.hidden or 0, shape.experts or 0, setup.engine


LEFT_OUT = frozenset({"model", "gpu", "vendor"})
"""Departures whose range is that of models, GPUs and vendors that were left out as a whole: none is wider for them."""
COMPARED = frozenset({"sequences", "data_parallel_attention", "disaggregated"})
"""Departures whose steps were compared, and are within that range, too: more than 80 % of each."""


class Spreads(NamedTuple):
    """The spreads of a step and of the time to the first token under a load, and what they are wider for."""

    step: Spread
    first_token: Spread
    departures: tuple[str, ...]


def find_spreads(setup: ServingSetup, work: StepWork, departures: tuple[str, ...], sequences: int) -> Spreads:
    """Return the spreads of the times with `sequences` on a copy, for a search as for its answer: of the same load.

    `work` is that of a step, `departures` are those under any load. A step has the range of a measured model, or of
    what no run covers; without an engine it has the steps of all. A first token has that of requests that come one by
    one, or together.
    """
    if sequences > MAX_SEQUENCES * setup.deployment.parallelism.data:
        departures = (*departures, "sequences")
    kind = "experts" if work.routed else "dense"
    if not (LEFT_OUT | COMPARED).isdisjoint(departures):
        kind = "unseen"
    step = _widened(STEP_SPREAD[kind], [name for name in departures if name not in COMPARED])
    if setup.workload.engine is None:
        # The range also has the other engines' steps.
        expected, own = step_time(work, STEP), (work.sglang, work.vllm)
        others = [flags for flags in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0)) if flags != own]
        steps = [expected, *(step_time(work._replace(sglang=sglang, vllm=vllm), STEP) for sglang, vllm in others)]
        step = Spread(step.low * min(steps) / expected, step.high * max(steps) / expected)
    arrivals = "burst" if setup.workload.arrivals == "burst" else "steady"
    return Spreads(step, _widened(FIRST_TOKEN_SPREAD[arrivals], departures), departures)


def _widened(factor: float, departures: Iterable[str]) -> Spread:
    """Return a range that goes as far to either side, and further for each other departure."""
    factor *= WIDER ** min(sum(name not in LEFT_OUT for name in departures), MAX_DEPARTURES)
    return Spread(1 / factor, factor)


def step_evidence(departures: tuple[str, ...]) -> Evidence:
    """Return what the time of a step rests on.

    Runs with data-parallel attention are a family of their own, and those whose replicas only generate.
    """
    for name, family in _OWN_FAMILIES.items():
        if name in departures:
            return evidence_of(family, departures)
    reported = evidence_of("decode_step_reported", departures)
    return reported if departures and reported.n else evidence_of("decode_step", departures)


_OWN_FAMILIES = {
    "vendor": "decode_step_amd",
    "data_parallel_attention": "decode_step_data_parallel",
    "disaggregated": "decode_step_disaggregated",
}


def first_token_evidence(departures: tuple[str, ...]) -> Evidence:
    """Return what the time to the first token rests on."""
    grouped = "data_parallel_attention" in departures
    return evidence_of("ttft_data_parallel" if grouped else "ttft", departures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast all copies are; None is unknown. A step is one token of every sequence, `hours` are of a whole training.

    `first_token_s` is the time to the first token under the load. `departures` are what no measurement covers, of those
    of the `family`, if not of decode steps. Of an encoder a step is a batch that it reads.
    """

    tokens_per_s: Range
    min_step_s: float | None = None
    step_s: Range | None = None
    max_tokens_per_s: float | None = None
    first_token_s: Range | None = None
    departures: tuple[str, ...] = ()
    family: str | None = None
    hours: Range | None = None

    @property
    def time(self) -> float:
        """The sort key of options: hours of the job, else seconds of a step; infinity where unknown."""
        duration = self.hours or self.step_s
        return duration.mid if duration is not None else inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSpeed(Speed):
    """How fast a model is served: its steps are known, and the rate has the sequences' own prompts, too."""

    min_step_s: float
    step_s: Range
    max_tokens_per_s: float


def serving_speed(setup: ServingSetup, weights: Range | None, cache: KvCache | None) -> ServingSpeed | None:
    """Return the speed of a workload; None where bandwidth or weights are unknown, or nothing is read.

    A step yields one token of every sequence. A token passes through all p stages one after the other, while each stage
    works on another micro-batch: the sequences of a copy are divided into p micro-batches, so that one pass through all
    stages reads the whole model and the cache of one micro-batch. More micro-batches would read the weights more often,
    fewer would leave stages idle. With speculative decoding a step yields several tokens of a sequence: times are those
    per token.
    """
    if setup.gpus.bandwidth_gb_per_s is None or weights is None or not weights.mid:
        return None
    model, lengths = speed_model(setup, weights), request_lengths(setup.workload)
    work = copy_work(setup, model, lengths, kv_bytes_read(setup, cache, lengths)).under()
    departures = find_departures(setup, lengths, typical=model.of_typical_shape)
    spreads = find_spreads(setup, work, departures, setup.sequences)
    least = least_step(setup, model, work.kv_read_s)
    if least <= 0:
        return None
    step = step_time(work, STEP)
    expected = at_least(least, step / yielded(setup.workload.speculative), spreads.step)
    # Over a step, what a sequence takes for a token in the mean: more where the copy also reads the sequence's own
    # prompt, for which it waits before its first token and not between tokens.
    first, cycle = None, 1.0
    if lengths is not None and not is_disaggregated(setup) and setup.workload.arrivals != "random":
        own = min(1.0, _sequences_per_copy(setup) / setup.deployment.parallelism.data)
        own *= yielded(setup.workload.speculative) / lengths.output
        cycle = step_time(work._replace(prompts=work.prompts + own), STEP) / step
    if lengths is not None and setup.gpus.peak_tflops is not None:
        alone = prompt_work(setup, work, lengths)
        step = expected.mid * yielded(setup.workload.speculative)
        middle = first_token_time(alone, step, STEP, FIRST_TOKEN) + gathering_steps(setup, work, lengths) * step
        if setup.workload.arrivals == "random":
            middle += queue_s(work, alone, step)
        if setup.workload.prefill_busy is not None:
            middle += wait_s(prompt_busy_s(alone), setup.workload.prefill_busy) + transfer_s(setup, cache, lengths)
        first = at_least(least_prompt(setup, model, lengths), middle, spreads.first_token)
    return ServingSpeed(
        tokens_per_s=expected.times(cycle).divide(setup.concurrency),
        min_step_s=least,
        step_s=expected,
        max_tokens_per_s=setup.concurrency / least,
        first_token_s=first,
        departures=spreads.departures,
    )


def request_work(setup: ServingSetup) -> StepWork:
    """Return the work of a decode step under the workload's load; raises ValueError where the weights are unknown."""
    weights, lengths = weights_range(setup), request_lengths(setup.workload)
    if weights is None:
        raise ValueError("the weights are unknown")
    sequence_read = kv_bytes_read(setup, kv_cache_of(setup), lengths)
    return copy_work(setup, speed_model(setup, weights), lengths, sequence_read).under()


def first_token_work(setup: ServingSetup) -> StepWork:
    """Return the work of one prompt on its way through all stages; raises ValueError where lengths are unknown."""
    lengths = request_lengths(setup.workload)
    if lengths is None:
        raise ValueError("the lengths of a request are unknown")
    return prompt_work(setup, request_work(setup), lengths)


def prefill_speed(setup: ServingSetup, weights: Range | None) -> Range | None:
    """Return the time in which one copy reads a prompt without waiting, s; None where peak, model or prompt is unknown.

    With a given MFU: 2 N_act T / (n peak MFU).
    """
    lengths, count, gpus = request_lengths(setup.workload), setup.model.count, setup.gpus
    if lengths is None or weights is None or not weights.mid or count is None or gpus.peak_tflops is None:
        return None
    model = speed_model(setup, weights)
    least = least_prompt(setup, model, lengths)
    if gpus.mfu is not None:
        peak = gpus.peak_tflops * 1e12 * setup.deployment.parallelism.gpus
        return at_least(least, prefill_flops(count.active, lengths.read) / (peak * gpus.mfu), Spread(1.0, 1.0))
    work = copy_work(setup, model, lengths, 0.0).under()
    departures = find_departures(setup, lengths, typical=model.of_typical_shape)
    spread = find_spreads(setup, work, departures, setup.sequences).first_token
    return at_least(least, prompt_time(prompt_work(setup, work, lengths), STEP), spread)


def speed_evidence(speed: Speed) -> Evidence:
    """Return what a speed rests on."""
    if speed.family is not None:
        return evidence_of(speed.family, speed.departures)
    return step_evidence(speed.departures)


StepFigures = TypeVar("StepFigures", DecodeFigures, EncodeFigures)


def step_figures(speed: ServingSpeed, shape: type[StepFigures]) -> StepFigures:
    """Return step time and token rate, as bounds and as expected."""
    rests_on = speed_evidence(speed)
    return shape(
        step=bound(speed.min_step_s * 1e3, "ms"),
        expected_step=estimate(speed.step_s.times(1e3), "ms", rests_on),
        tokens_per_s=bound(speed.max_tokens_per_s, "tokens/s"),
        expected_tokens_per_s=estimate(speed.tokens_per_s, "tokens/s", rests_on),
    )


def record_lengths(setup: ServingSetup) -> None:
    """Record the lengths of a request that are assumed, and the engine."""
    lengths, workload = request_lengths(setup.workload), setup.workload
    if lengths is None:
        return
    why = "two thirds of the context: requests with as many tokens out as in"
    if workload.output_tokens is not None:
        why = "the context without half of the output"
    if workload.prompt_tokens is None:
        setup.assumptions.record("inference.prompt_tokens", lengths.prompt, why)
    if workload.output_tokens is None:
        setup.assumptions.record("inference.output_tokens", lengths.output, "as many as of the prompt")
    setup.assumptions.get(workload.engine, "inference.engine")


def assume_links(gpus: Gpus, parallelism: Parallelism, assumptions: Assumptions) -> Gpus:
    """Return the GPUs with the link between tensor ranks and the network between stages, where these are not given."""
    speed = gpus.link_gb_per_s
    if gpus.bandwidth_gb_per_s is None or parallelism.gpus == 1:
        return gpus
    link: LinkKind = assumptions.get(gpus.link, "gpus.link")
    if speed is None:
        usual = tensor_link(link, None, gpus.bandwidth_gb_per_s).bytes_per_s * 2 / 1e9
        speed = assumptions.record("gpus.link_gb_per_s", usual, "usual of GPUs with such a memory bandwidth")
    several = (
        parallelism.pipeline > 1 or (spans_vms(parallelism) and gpus.link is None) or leaves_server(gpus, parallelism)
    )
    if several and parallelism.gpus > GPUS_OF_A_VM:
        gpus = assume_network(gpus, assumptions)
    return replace(gpus, link=link, link_gb_per_s=speed)


def leaves_server(gpus: Gpus, parallelism: Parallelism) -> bool:
    """Whether tensor ranks are on several servers: more than eight, of GPUs that NVLink joins by eights."""
    peaks = {peak for name in SERVERS_OF_EIGHT for peak in MEASURED_GPUS[name].peaks}
    return parallelism.tensor > GPUS_OF_A_VM and _is_about(gpus.peak_tflops or 0.0, peaks)


def at_least(least: float, middle: float, spread: Spread) -> Range:
    """Return a range around the middle that nowhere beats a bound."""
    return Range(low=max(least, middle * spread.low), mid=max(least, middle), high=max(least, middle * spread.high))


def _sequences_per_copy(setup: ServingSetup) -> float:
    """Return the sequences of a copy: the mean over copies, at least one."""
    return max(1.0, setup.concurrency / setup.deployment.copies)


def _sequences_per_stage(setup: ServingSetup, sequences: float | None = None) -> float:
    """Return the sequences per micro-batch of a group of tensor ranks: the mean, at least one."""
    of_copy = setup.concurrency / setup.deployment.copies if sequences is None else sequences
    parallelism = setup.deployment.parallelism
    return max(1.0, of_copy / (parallelism.pipeline * parallelism.data))


def least_step(setup: ServingSetup, model: SpeedModel, kv_read_s: float, sequences: float | None = None) -> float:
    """Return the bound of a step, s: every weight that a token uses and the whole cache are read once.

    Of an input embedding that is not the output layer, too, a token takes one row: it is neither read nor computed.
    At the least what tensor ranks send takes: each value of the two sums of a layer once, in 16 bits, at the link's
    speed in one direction (a ring sends up to twice that). With speculative decoding of a token, at the stated
    acceptance.
    """
    parallelism, gpus, own_sequences = setup.deployment.parallelism, setup.gpus, _sequences_per_stage(setup, sequences)
    bandwidth = (gpus.bandwidth_gb_per_s or 0.0) * 1e9
    used = model.expert_bytes * model.experts_per_token / model.experts if model.experts else 0.0
    read = (model.dense_bytes + used) / parallelism.tensor
    flops = model.token_flops * own_sequences / parallelism.tensor if setup.model.count is not None else 0.0
    if parallelism.data > 1:
        of_stage = max(1.0, (_sequences_per_copy(setup) if sequences is None else sequences) / parallelism.pipeline)
        flops += model.expert_flops * (of_stage / parallelism.stage_gpus - own_sequences / parallelism.tensor)
        read += used / parallelism.stage_gpus - used / parallelism.tensor
    speculation = setup.workload.speculative
    peak = gpus.peak_tflops * 1e12 if gpus.peak_tflops is not None else None
    verified = 1 + proposed(speculation)
    step_s = step_seconds(read, kv_read_s * bandwidth, flops * verified, bandwidth=bandwidth, peak_flops=peak)
    sent = 0.0
    if parallelism.tensor > 1:
        link = tensor_link(gpus.link or "nvlink", gpus.link_gb_per_s, gpus.bandwidth_gb_per_s or 0.0)
        reduced = 2 * model.layers - (model.expert_layers if parallelism.data > 1 else 0)
        sent = reduced * model.hidden * VALUE_BYTES * (own_sequences * verified) / link.bytes_per_s
    return max(step_s, sent) / yielded(speculation)


def kv_bytes_read(setup: ServingSetup, cache: KvCache | None, lengths: Lengths | None) -> float:
    """Return the KV bytes of one sequence that a tensor rank reads in a step, over all stages, on average."""
    tensor = setup.deployment.parallelism.tensor
    if setup.workload.kv_bytes_per_sequence is None and cache is not None and lengths is not None:
        read = sparsely_read(setup.model.shape, cache)
        return kv_bytes_per_sequence(read, round(lengths.kept), Parallelism(tensor=tensor))
    return (sequence_bytes(setup, cache) or 0.0) / tensor


def sparsely_read(shape: Architecture, cache: KvCache) -> KvCache:
    """Return the cache as a step reads it: of sparse attention the index, and the entries that it selects."""
    if not any(is_sparse(group.content) for group in shape.groups):
        return cache
    kinds: dict[LayerCache, int] = {}
    for group in shape.groups:
        for kept in group.content.caches:
            selected = is_sparse(group.content) and kept.values == max(other.values for other in group.content.caches)
            read = kept._replace(window=SELECTED_ENTRIES * kept.stride) if selected and kept.window is None else kept
            kinds[read] = kinds.get(read, 0) + group.count
    return replace(cache, kinds=tuple(kinds.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyWork:
    """What of the work of a decode step of one copy is the same under any load.

    `bandwidth` and `peak` are those of all tensor ranks. A token takes `message_s` in collectives, and `stage_s`
    between two stages; `hop_s` is the latency of all ways over a network in a step. `verified` tokens of a sequence are
    computed in a step, and `yielded` come out of it. `alone` is the work without any sequences.
    """

    setup: ServingSetup
    model: SpeedModel
    lengths: Lengths | None
    sequence_read: float
    bandwidth: float
    peak: float
    message_s: float
    hop_s: float
    stage_s: float
    verified: int
    yielded: float
    alone: StepWork

    def under(self, sequences: float | None = None) -> StepWork:
        """Return the work of a step with `sequences` on the copy; None are those of the workload."""
        setup, model, lengths, alone, bandwidth = self.setup, self.model, self.lengths, self.alone, self.bandwidth
        parallelism = setup.deployment.parallelism
        batch, stages = _sequences_per_stage(setup, sequences), parallelism.pipeline
        sequences = _sequences_per_copy(setup) if sequences is None else sequences
        tokens = batch * self.verified
        touched = experts_read(model.experts, model.experts_per_token, tokens) if model.experts else 0.0
        prompts = 0.0
        if lengths is not None and not is_disaggregated(setup):
            # Of requests that arrive at random as many others are open; of a given number one less.
            own = 0.0 if setup.workload.arrivals == "random" else 1.0
            others = max(0.0, sequences / parallelism.data - own)
            prompts = others * self.yielded / lengths.output
        work = alone._replace(
            expert_read_s=model.expert_bytes * touched / bandwidth,
            kv_read_s=batch * self.sequence_read * parallelism.tensor / bandwidth,
            compute_s=model.token_flops * tokens / self.peak,
            collective_s=self.message_s * tokens,
            sequences=batch * self.yielded,
            prompts=prompts,
            hops_s=self.hop_s + stages * tokens * self.stage_s,
        )
        if parallelism.data > 1 or parallelism.expert > 1:
            work = spread_over_experts(work, setup, model, lengths, sequences)
        draft = setup.weights.draft if setup.weights is not None else None
        if draft is None:
            return work
        touched_by_a_pass = experts_read(model.experts, model.experts_per_token, batch) if model.experts else 0.0
        return with_draft_passes(work, draft, self.verified - 1, bandwidth, touched_by_a_pass)


def copy_work(setup: ServingSetup, model: SpeedModel, lengths: Lengths | None, sequence_read: float) -> CopyWork:
    """Return the work of a step of one copy under any load, with that of the prompts that are read meanwhile.

    `sequence_read` are the KV bytes of a sequence that a tensor rank reads.
    """
    gpus, parallelism = setup.gpus, setup.deployment.parallelism
    tensor, stages = parallelism.tensor, parallelism.pipeline
    bandwidth = (gpus.bandwidth_gb_per_s or inf) * 1e9 * tensor
    peak = gpus.peak_tflops * 1e12 * tensor if gpus.peak_tflops is not None else inf
    narrow = narrow_factor(setup, model)
    link = tensor_link(gpus.link or "nvlink", gpus.link_gb_per_s, gpus.bandwidth_gb_per_s or 0.0)
    hop = stage_hop(gpus.network, gpus.network_gbps, link)
    # A ring sends each byte of an all-reduce 2 (t - 1) / t times.
    message_s = model.layers * 2 * model.hidden * VALUE_BYTES * (2 * (tensor - 1) / tensor) / link.bytes_per_s
    prompt = lengths.read if lengths is not None else 0
    moved_bytes = EXPERT_PASSES * model.routed * model.hidden * VALUE_BYTES
    routed = prompt * (model.expert_flops / peak + moved_bytes / bandwidth) / stages
    attention = (_attention_flops(setup, lengths) if lengths is not None else 0.0) * narrow / peak / stages
    split = min(1.0, MAX_RANKS_OF_A_PROMPT / tensor)
    # Each rank sends its share of a hidden state: vLLM, GroupCoordinator.send_tensor_dict.
    stage_s = model.hidden * VALUE_BYTES / (hop.bytes_per_s * tensor) if stages > 1 else 0.0
    hop_s = stages * hop.latency_s if stages > 1 else 0.0
    if leaves_server(gpus, parallelism):
        # Two all-reduces of a layer, each to the other servers and back.
        hop_s += 4 * model.layers * hop.latency_s
        message_s += 2 * model.layers * model.hidden * VALUE_BYTES / hop.bytes_per_s
    doublings = model.layers * log2(tensor) * link.latency_factor
    alone = StepWork(
        dense_read_s=model.dense_bytes / bandwidth,
        expert_read_s=0.0,
        kv_read_s=0.0,
        compute_s=0.0,
        collective_s=0.0,
        layers=model.layers,
        latent_layers=model.latent_layers,
        expert_layers=model.expert_layers,
        routed=model.routed,
        doublings=doublings,
        # A third all-reduce, of the sums of squares: vLLM, MiniMaxText01RMSNormTP.
        norm_doublings=doublings / 2 if setup.model.shape.qk_norm == "all_heads" else 0.0,
        sequences=0.0,
        prompts=0.0,
        dense_prefill_s=(model.token_flops - model.expert_flops) * prompt / peak / stages,
        expert_prefill_s=routed,
        attention_prefill_s=attention,
        collective_prefill_s=message_s * prompt * split / stages + prompt * stage_s,
        hops_s=0.0,
        sglang=float(setup.engine == "sglang"),
        vllm=float(setup.engine == "vllm"),
        amd=float(is_amd(gpus)),
        burst=float(setup.workload.arrivals == "burst"),
    )
    speculation = setup.workload.speculative
    return CopyWork(
        setup=setup,
        model=model,
        lengths=lengths,
        sequence_read=sequence_read,
        bandwidth=bandwidth,
        peak=peak,
        message_s=message_s,
        hop_s=hop_s,
        stage_s=stage_s,
        verified=1 + proposed(speculation),
        yielded=yielded(speculation),
        alone=alone,
    )


MAX_FLOPS_PER_BYTE = 296.0
"""Dense FLOPs in 16 bits for each byte of memory traffic, at most: H100 has 295, B200 281, MI300X 247, H200 206."""


def narrow_factor(setup: ServingSetup, model: SpeedModel) -> float:
    """Return the GPU's peak over that in 16 bits: 1 where weights are dequantized, up to 2 in 8 bits, 4 in 4 bits."""
    gpus = setup.gpus
    if gpus.peak_tflops is None or not model.quantized:
        return 1.0
    if gpus.peak_16_bits_tflops is not None:
        return max(1.0, gpus.peak_tflops / gpus.peak_16_bits_tflops)
    most = MAX_FLOPS_PER_BYTE * (gpus.bandwidth_gb_per_s or inf) / 1e3
    kind = setup.weights.type.dtype if setup.weights is not None else None
    return max(1.0, min(2.0 if kind in {"fp8", "int8"} else 4.0, gpus.peak_tflops / most))


def _attention_flops(setup: ServingSetup, lengths: Lengths) -> float:
    """Return the FLOPs of attention of the tokens that are read: of a whole prompt, less what its cached part took."""
    whole = prompt_attention_flops(setup.model.shape, lengths.prompt)
    return whole - prompt_attention_flops(setup.model.shape, lengths.cached) if lengths.cached else whole


def least_prompt(setup: ServingSetup, model: SpeedModel, lengths: Lengths) -> float:
    """Return the bound of reading a prompt, s: its FLOPs, with those of attention in 16 bits, at the peak."""
    peak = (setup.gpus.peak_tflops or inf) * 1e12 * setup.deployment.parallelism.gpus
    attention = _attention_flops(setup, lengths) * narrow_factor(setup, model)
    return (model.token_flops * lengths.read + attention) / peak * _pipeline_fill(setup, lengths)


def _pipeline_fill(setup: ServingSetup, lengths: Lengths) -> float:
    """Return the time of a prompt over that with all stages busy: p - 1 chunks more, as it passes one after another."""
    chunks = ceil(lengths.read / (setup.workload.max_batched_tokens or CHUNK_TOKENS))
    return (chunks + setup.deployment.parallelism.pipeline - 1) / chunks


def prompt_work(setup: ServingSetup, work: StepWork, lengths: Lengths) -> StepWork:
    """Return the work with that of one prompt on its way through all stages, and with the sequences beside it.

    A prompt passes the stages in chunks: a stage idles during the p - 1 chunks that others begin and end with. Where
    all requests start together, or the replica does nothing else, all groups with their own sequences read prompts at
    the same time; else one alone has the GPUs of all for its experts.
    """
    parallelism, fill = setup.deployment.parallelism, _pipeline_fill(setup, lengths)
    shared = 1 if setup.workload.arrivals == "burst" or is_disaggregated(setup) else parallelism.data
    return work._replace(
        dense_prefill_s=work.dense_prefill_s * fill,
        expert_prefill_s=work.expert_prefill_s / shared * fill,
        attention_prefill_s=work.attention_prefill_s * fill,
        collective_prefill_s=work.collective_prefill_s * fill,
        sequences=_sequences_per_copy(setup) / parallelism.data,
    )


_OF_OUTPUT = (
    "inference.kv_dtype",
    "inference.kv_bytes_per_value",
    "inference.kv_bytes_per_sequence",
    "inference.kv_budget_gib",
    "inference.block_tokens",
    "inference.output_tokens",
    "inference.max_batched_tokens",
    "inference.engine",
    "inference.arrivals",
    "inference.expert_parallel",
    "inference.data_parallel_attention",
)
REFUSED: dict[ModelKind, tuple[str, ...]] = {
    "encoder": _OF_OUTPUT,
    "diffusion": (*_OF_OUTPUT, "inference.context_tokens", "inference.prompt_tokens"),
}
"""Fields of a workload that do not apply to a kind of model."""

PASSAGE_TOKENS = 512
"""Tokens of a sequence that an encoder reads, where a request does not say."""

ENCODER_SHARE = Range(low=0.05, mid=0.3, high=0.7)
"""Share of the peak that an encoder reaches. An assumption, as no run was compared: short batches launch more than they
compute, long ones reach what decoders do in reading prompts (0.5 to 0.7).
"""

ENCODER_FAMILY = "encoder_rate"
"""What an encoder's speed would be compared with: no measurement yet, so its evidence has n = 0."""

_NO_SPEED = {
    "speech": "no speed is estimated, as none was compared; memory has the audio of each sequence",
    "diffusion": "no speed is estimated, as none was compared; memory has a range for the images in the making",
    "encoder": "read only: no KV cache, no output; the speed is an assumption that no run was compared with",
}


def workload_of_kind(shape: Architecture, workload: InferenceWorkload, assumptions: Assumptions) -> InferenceWorkload:
    """Return the workload as the kind of model takes it; raises InvalidWorkload for a field that does not apply.

    Models other than decoders have one copy on each GPU unless the request says otherwise. An encoder has the tokens of
    a sequence as its context.
    """
    kind = shape.kind
    if kind == "decoder":
        return workload
    for field in REFUSED.get(kind, ()):
        if getattr(workload, field.removeprefix("inference.")) is not None:
            raise InvalidWorkload(field, f"does not apply: the model is of kind {kind}")
    assumptions.record("architecture.kind", kind, _NO_SPEED[kind])
    if kind == "encoder":
        tokens = workload.context_tokens or workload.prompt_tokens
        if tokens is None:
            usual = min(PASSAGE_TOKENS, shape.max_positions or PASSAGE_TOKENS)
            why = "tokens of a sequence that is read: a passage"
            tokens = assumptions.record("inference.context_tokens", usual, why)
        workload = replace(workload, context_tokens=tokens, prompt_tokens=None)
    if kind == "speech" and workload.context_tokens is None and workload.kv_bytes_per_sequence is None:
        why = "the longest text of an audio"
        longest = assumptions.record("inference.context_tokens", shape.max_positions, why)
        workload = replace(workload, context_tokens=longest)
    return replace(
        workload,
        tensor_parallel=workload.tensor_parallel or 1,
        pipeline_parallel=workload.pipeline_parallel or 1,
    )


def refuse_other_kinds(shape: Architecture, field: str) -> None:
    """Raise InvalidWorkload for what is asked of decoders only: a service level, a training."""
    if shape.kind != "decoder":
        raise InvalidWorkload(field, f"is of models that generate text, and this one is of kind {shape.kind}")


TIMED_KINDS = frozenset({"decoder", "encoder"})
"""Kinds of models whose speed is estimated."""


def speed_of_kind(setup: ServingSetup, weights: Range | None, cache: KvCache | None) -> ServingSpeed | None:
    """Return the speed of a workload; None where it is unknown, and of kinds whose speed is not estimated."""
    kind = setup.model.shape.kind
    if kind == "decoder":
        return serving_speed(setup, weights, cache)
    return encoder_speed(setup, weights) if kind == "encoder" and weights is not None else None


def encoder_speed(setup: ServingSetup, weights: Range) -> ServingSpeed | None:
    """Return the time of one batch of all copies, B sequences of S tokens; None where the peak is unknown.

    2 (N_act - N_embeddings) + 4 L S w FLOPs a token, over the peak; at least the time to read the weights. L layers,
    w width of all heads. The expected time is that over ENCODER_SHARE.
    """
    gpus, shape, count = setup.gpus, setup.model.shape, setup.model.count
    if gpus.peak_tflops is None or count is None or shape.missing_fields("layers", "heads", "head_dim"):
        return None
    layers, heads, head_dim = shape.require("layers", "heads", "head_dim")
    tokens = setup.workload.context_tokens or PASSAGE_TOKENS
    flops = 2 * (count.active - count.embeddings) + 4.0 * layers * tokens * heads * head_dim
    ranks = setup.deployment.parallelism.gpus
    least = flops * tokens * setup.sequences / (gpus.peak_tflops * 1e12 * ranks)
    if gpus.bandwidth_gb_per_s is not None:
        least = max(least, weights.mid / (gpus.bandwidth_gb_per_s * 1e9 * ranks))
    if least <= 0:
        return None
    step, read = ENCODER_SHARE.divide(least), float(tokens * setup.concurrency)
    return ServingSpeed(
        tokens_per_s=step.divide(read),
        min_step_s=least,
        step_s=step,
        max_tokens_per_s=read / least,
        family=ENCODER_FAMILY,
    )
