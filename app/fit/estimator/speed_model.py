"""What the speed of serving depends on beside GPUs: lengths, bytes and FLOPs, experts distributed, prefill apart.

Nothing here is fitted: the constants are those of runs without data-parallel attention, on replicas that both prefill
and decode. `python -m benchmarks.accuracy --only decode_step_data_parallel`, or decode_step_disaggregated, compares it
with runs that differ.

Where prefill and decoding have replicas of their own, both kinds are copies with the same split. One that generates
reads no prompts, so its step has no part of them; one that reads prompts reads them one after another.
"""

from dataclasses import dataclass, replace
from math import inf, log2
from typing import NamedTuple

from app.fit.estimator.serving import ServingSetup, sequence_bytes
from app.fit.estimator.weights import proposed
from app.fit.estimator.workload import InferenceWorkload
from app.fit.formulas.architecture import missing_for_count, typical_shape
from app.fit.formulas.compute import network_hop, tensor_link
from app.fit.formulas.memory import KvCache, Parallelism, experts_read, kv_bytes_per_sequence
from app.fit.formulas.quantities import Range
from app.fit.formulas.serving_speed import FIRST_TOKEN, STEP, StepWork, launch_time, prompt_time, prompts_time

VALUE_BYTES = 2
"""Bytes of a value of a hidden state as it is sent, or moved in memory."""
EXPERT_PASSES = 15
"""How often a hidden state is moved in memory for each expert of a token: permuted, read, written, and added up.

Of 0 to 40 passes, 10 to 20 predict prompts of models and GPUs best that are left out of the fit: by 3 to 4 points.
"""
DEQUANTIZED_BITS = 14
"""Fewer average bits a weight than this are quantized: 16 less what stays in 16 bits."""
TYPICAL_EXPERTS = (128, 8)
"""Experts of a layer and of a token where only the active parameters are known: Qwen3, gpt-oss (128 and 4)."""


class Lengths(NamedTuple):
    """Tokens of a request: of its prompt and its output, and how many it keeps on average while it generates.

    The first `cached` tokens of the prompt were read for an earlier request, and are not read again.
    """

    prompt: int
    output: int
    kept: float
    cached: int = 0

    @property
    def read(self) -> int:
        """Tokens of the prompt that are computed."""
        return self.prompt - self.cached


def request_lengths(workload: InferenceWorkload) -> Lengths | None:
    """Return the lengths of a request; None where none is given.

    Without prompt and output there are as many tokens out as in, and the context is the average of what is kept: a
    prompt of two thirds of it. Without an output it is as long as the prompt.
    """
    context, prompt, output = workload.context_tokens, workload.prompt_tokens, workload.output_tokens
    if prompt is None:
        if context is None:
            return None
        prompt = max(1, round(context * 2 / 3) if output is None else context - output // 2)
    output = prompt if output is None else output
    given = workload.prompt_tokens is not None and workload.output_tokens is not None
    average = prompt + output / 2
    kept = average if context is None or (given and average < context) else float(context)
    cached = min(prompt - 1, round(prompt * (workload.prefix_cache_hit or 0.0)))
    return Lengths(prompt, output, kept, cached)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedModel:
    """What the speed of a model depends on, the same on all GPUs: bytes of weights, FLOPs of a token, layers, experts.

    `dense_bytes` are read for every token, without the input embedding; of `expert_bytes` only the experts that are
    chosen; `expert_flops` of `token_flops` are theirs. `layers` have a mixer and an MLP: one with either is half of
    one, as it has half the norms and all-reduces. `of_typical_shape`: layers and widths are those of a usual model with
    that many parameters.
    """

    dense_bytes: float
    expert_bytes: float
    experts: int
    experts_per_token: int
    quantized: bool
    token_flops: float
    expert_flops: float
    layers: float
    latent_layers: int
    routed: int
    hidden: int
    of_typical_shape: bool

    @property
    def expert_layers(self) -> int:
        """Layers with experts."""
        return self.routed // self.experts_per_token if self.experts else 0


def speed_model(setup: ServingSetup, weights: Range) -> SpeedModel:
    """Return what the speed of a model depends on."""
    shape, count, shares = setup.model.shape, setup.model.count, setup.weights
    of_typical_shape = bool(shape.missing_fields("layers", "hidden"))
    if of_typical_shape:
        params = count.total if count is not None else max(1, int(weights.mid / 2))
        shape = typical_shape(replace(shape, params=params))
    experts, experts_per_token, expert_share = expert_shares(setup)
    embeddings = shares.embeddings if shares is not None else 0.0
    input_share = 0.0 if shape.tied_embeddings else embeddings / 2
    input_params = 0.0 if count is None or shape.tied_embeddings else count.embeddings / 2
    weights_counted = count.total if count is not None else weights.mid / 2
    layers, hidden = shape.require("layers", "hidden")
    moe_layers = (shape.layers_with_experts if shape.experts is not None else layers) if experts else 0
    expert_flops = 0.0
    if count is not None and experts:
        # Of experts that cannot be counted by their share of the bytes.
        expert_flops = 2 * experts_per_token / experts * (count.experts or count.total * expert_share)
    # Most layers have a mixer (of attention or state) and an MLP, those of Nemotron-H one of the two.
    parts = sum(
        group.count * len({matrix.part == "attention" for matrix in group.content.matrices}) for group in shape.groups
    )
    return SpeedModel(
        dense_bytes=weights.mid * (1 - expert_share - input_share),
        expert_bytes=weights.mid * expert_share,
        experts=experts,
        experts_per_token=experts_per_token,
        quantized=weights.mid * 8 / weights_counted < DEQUANTIZED_BITS,
        token_flops=2 * (count.active - input_params) if count is not None else weights.mid,
        expert_flops=expert_flops,
        layers=parts / 2 or layers,
        latent_layers=layers if shape.kv_lora_rank is not None else 0,
        routed=moe_layers * experts_per_token,
        hidden=hidden,
        of_typical_shape=of_typical_shape,
    )


def expert_shares(setup: ServingSetup) -> tuple[int, int, float]:
    """Return the experts of a layer and of a token, and the experts' share of the bytes; 0, 0, 0 without experts.

    Where the experts cannot be counted, they follow from the active parameters: N - N_act = N_experts (1 - e / E).
    """
    shape, count = setup.model.shape, setup.model.count
    share = setup.weights.experts if setup.weights is not None else 0.0
    if shape.experts and shape.experts_per_token and share:
        return shape.experts, shape.experts_per_token, share
    if count is None or count.active >= count.total or not (shape.experts or missing_for_count(shape)):
        return 0, 0, 0.0
    experts, per_token = shape.experts or TYPICAL_EXPERTS[0], shape.experts_per_token or TYPICAL_EXPERTS[1]
    if experts <= per_token:
        return 0, 0, 0.0
    return experts, per_token, min(0.98, (1 - count.active / count.total) / (1 - per_token / experts))


def spread_over_experts(
    work: StepWork, setup: ServingSetup, model: SpeedModel, lengths: Lengths | None, sequences: float
) -> StepWork:
    """Return the work of a step of one group of tensor ranks with its part of the experts, and what it waits for.

    `work` is that of a group with its own sequences, as if it had all experts: of attention, shared experts and dense
    layers nothing changes. `sequences` are those of the whole copy. Routed experts are read and computed by all GPUs of
    a stage, for the tokens of all groups. Without data-parallel attention every GPU has every token, and results are
    added up by the all-reduce that tensor parallelism has, too: such runs are among those that the constants are fitted
    to. What the GPU with most of the chosen experts reads beyond the average is not counted, as it makes the estimates
    of those runs worse: uniform routing, which chooses more experts than real routing does, makes up for it.

    Sources: DeepSeek-V3, arXiv 2412.19437, section 3.4; vLLM, FusedMoEParallelConfig.
    """
    parallelism, gpus = setup.deployment.parallelism, setup.gpus
    stage, groups = parallelism.stage_gpus, parallelism.data
    verified = 1 + proposed(setup.workload.speculative)
    of_stage = max(1.0, sequences / parallelism.pipeline) * verified
    own = max(1.0, sequences / (parallelism.pipeline * groups)) * verified
    bandwidth = (gpus.bandwidth_gb_per_s or inf) * 1e9 * stage
    peak = gpus.peak_tflops * 1e12 if gpus.peak_tflops is not None else inf
    touched = experts_read(model.experts, model.experts_per_token, of_stage)
    work = work._replace(
        expert_read_s=model.expert_bytes * touched / bandwidth,
        compute_s=work.compute_s
        - model.expert_flops * own / peak / parallelism.tensor
        + model.expert_flops * of_stage / peak / stage,
    )
    return _with_groups(work, setup, model, lengths, of_stage) if groups > 1 else work


def _with_groups(
    work: StepWork, setup: ServingSetup, model: SpeedModel, lengths: Lengths | None, of_stage: float
) -> StepWork:
    """Return the work with what groups with their own sequences send each other, and wait for.

    Tokens are sent to the other GPUs that have experts of theirs, once to each, and back (dispatch and combine): twice
    hidden x 2 bytes x (n - 1) (1 - (1 - 1 / e)^k) a token, with k of its experts distributed over e of n GPUs, in place
    of the MLP's all-reduce over n GPUs, whose latency it has: over the network where the stage is on several VMs. All
    groups read a prompt at the same time, each its own: d GPUs have the routed experts of d prompts, as one would of
    one. Source: DeepEP, Buffer.get_dispatch_layout.
    """
    parallelism, gpus = setup.deployment.parallelism, setup.gpus
    link = tensor_link(gpus.link or "nvlink", gpus.link_gb_per_s, gpus.bandwidth_gb_per_s or 0.0)
    tensor, stage, pipeline = parallelism.tensor, parallelism.stage_gpus, parallelism.pipeline
    bytes_per_s, latency_factor, hop_s = *link, 0.0
    if gpus.network is not None and spans_vms(parallelism):
        bytes_per_s, hop_s = network_hop(gpus.network, gpus.network_gbps)
        latency_factor = 0.0
    reduced = 1 - model.expert_layers / (2 * model.layers)
    receivers = (stage - 1) * (1 - (1 - 1 / parallelism.expert) ** model.experts_per_token)
    sent = 2 * model.expert_layers * model.hidden * VALUE_BYTES * receivers / bytes_per_s
    doublings = work.doublings * reduced
    doublings += model.expert_layers / 2 * log2(stage) * latency_factor
    work = work._replace(
        collective_s=work.collective_s * reduced + sent * of_stage / stage,
        doublings=doublings,
        hops_s=work.hops_s + 2 * model.expert_layers * hop_s,
    )
    if lengths is None:
        return work
    return work._replace(
        collective_prefill_s=work.collective_prefill_s * reduced + sent * lengths.read / tensor / pipeline
    )


GPUS_OF_A_VM = 8
"""GPUs of the largest VMs of most GPU models; a rack of GB200 has 4 in each."""


def spans_vms(parallelism: Parallelism) -> bool:
    """Whether a stage is on several VMs of a copy that is: its only one, or one larger than a VM usually is."""
    return parallelism.data > 1 and (parallelism.pipeline == 1 or parallelism.stage_gpus > GPUS_OF_A_VM)


MAX_BUSY = 0.8
"""The largest share of the time that a replica reads prompts, where no target of the first token asks for less.

A rule of thumb of queues: a prompt then waits twice as long as it is read.
"""


def is_disaggregated(setup: ServingSetup) -> bool:
    """Whether prompts are read by replicas of their own."""
    return setup.workload.prefill_busy is not None


def prompt_busy_s(work: StepWork) -> float:
    """Return how long a prompt occupies the replica that reads it, s; `work` is that of one prompt."""
    return prompt_time(work, STEP) + launch_time(work, FIRST_TOKEN)


def wait_s(prompt_s: float, busy: float) -> float:
    """Return the mean time that a prompt waits for those before it, s: S u / (2 (1 - u)) with u < 1 the busy share.

    Prompts of one length that arrive at random (a queue M/D/1). Source: the formula of Pollaczek and Khinchine.
    """
    return prompt_s * busy / (2 * (1 - busy))


def queue_s(work: StepWork, prompt: StepWork, step_s: float) -> float:
    """Return the mean time that a prompt waits on a replica that also generates, s, where requests arrive at random.

    The share of time that prompts take is that of a step.
    """
    return wait_s(prompt_time(prompt, STEP), min(prompts_time(work, STEP) / step_s, MOST_BUSY))


MOST_GATHERED_STEPS = 60
"""Steps after which TensorRT-LLM waits for no more prompts: `timeout_iters` of its runs of bursts (InferenceX)."""


def gathering_steps(setup: ServingSetup, work: StepWork, lengths: Lengths) -> float:
    """Return how many steps a prompt waits in the mean until all groups with their own sequences have one; else 0.

    TensorRT-LLM balances groups so in its runs of bursts: `attention_dp_config`, `enable_balance`. Each of d groups has
    a prompt every O / B steps, at a random one of them: the last comes after d / (d + 1) of that time in the mean, any
    after half of it.
    """
    groups = setup.deployment.parallelism.data
    if groups == 1 or setup.engine != "trtllm" or setup.workload.arrivals != "burst":
        return 0.0
    between = lengths.output / (work.sequences * setup.deployment.parallelism.pipeline)
    return min(MOST_GATHERED_STEPS, between * (groups / (groups + 1) - 1 / 2))


MOST_BUSY = 0.95
"""A larger share of the time that prompts take makes none wait longer: what is open bounds the queue."""


def most_busy(prompt_s: float, spare_s: float) -> float:
    """Return the largest busy share with which a prompt waits no longer than the target leaves: 2 w / (S + 2 w)."""
    return min(MAX_BUSY, 2 * spare_s / (prompt_s + 2 * spare_s))


def transfer_s(setup: ServingSetup, cache: KvCache | None, lengths: Lengths) -> float:
    """Return the time in which the cache of a prompt moves to the replica that generates, s.

    Every GPU sends its part to its counterpart over the network, InfiniBand unless it is known, after the whole prompt
    is read: engines that send layer by layer hide most of it. The whole prompt moves, also what is cached of it.
    """
    parallelism = setup.deployment.parallelism
    given, context = setup.workload.kv_bytes_per_sequence, setup.workload.context_tokens
    if given is not None or cache is None:
        share = lengths.prompt / context if context else 1.0
        size = (sequence_bytes(setup, cache) or 0.0) * min(1.0, share) / parallelism.group_gpus
    else:
        size = kv_bytes_per_sequence(cache, lengths.prompt, parallelism)
    hop = network_hop(setup.gpus.network or "infiniband", setup.gpus.network_gbps)
    return hop.latency_s + size / hop.bytes_per_s
