"""The work of a step where experts are dealt out over GPUs, and where groups of GPUs have sequences of their own.

Nothing here is fitted: the constants are those of runs without data-parallel attention. `python -m benchmarks.accuracy
--only decode_step_data_parallel` compares it with runs that have it.
"""

from math import inf, log2
from typing import NamedTuple

from app.fit.estimator.serving import ServingSetup
from app.fit.estimator.speculation import proposed
from app.fit.estimator.speed_model import Lengths, SpeedModel
from app.fit.formulas.inference import experts_read
from app.fit.formulas.links import HOPS, Link, tensor_link
from app.fit.formulas.memory import Parallelism
from app.fit.formulas.serving_speed import StepWork

VALUE_BYTES = 2
"""Bytes of a value of a hidden state as it is sent."""


class _Exchange(NamedTuple):
    """What sends tokens to their experts and back: bytes a second, latency over NVLink's, and seconds a hop."""

    bytes_per_s: float
    latency_factor: float
    hop_s: float


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
    expert_read = model.expert_bytes * touched / bandwidth
    work = work._replace(
        expert_read_s=expert_read,
        dequantized_s=work.dequantized_s * expert_read / work.expert_read_s if work.expert_read_s else 0.0,
        compute_s=work.compute_s
        - model.expert_flops * own / peak / parallelism.tensor
        + model.expert_flops * of_stage / peak / stage,
    )
    return _with_groups(work, setup, model, lengths, of_stage) if groups > 1 else work


def _with_groups(
    work: StepWork, setup: ServingSetup, model: SpeedModel, lengths: Lengths | None, of_stage: float
) -> StepWork:
    """Return the work with what groups with their own sequences send each other, and wait for.

    Tokens are sent to the GPUs of their experts, and back (dispatch and combine): twice tokens x experts of a token x
    hidden x 2 bytes x (n - 1) / n, in place of the MLP's all-reduce over n GPUs, whose latency it has. All groups read
    a prompt at the same time, each its own: `expert_prefill_s` is that of d prompts.
    """
    parallelism, link = setup.deployment.parallelism, _link(setup)
    tensor, stage, pipeline = parallelism.tensor, parallelism.stage_gpus, parallelism.pipeline
    exchange = _exchange(setup, link)
    reduced = 1 - model.expert_layers / (2 * model.layers)
    per_token = 2 * model.expert_layers * model.experts_per_token * model.hidden * VALUE_BYTES * (stage - 1) / stage
    sent = per_token / exchange.bytes_per_s
    doublings = work.doublings * reduced
    doublings += model.expert_layers / 2 * log2(stage) * exchange.latency_factor
    work = work._replace(
        collective_s=work.collective_s * reduced + sent * of_stage / stage,
        doublings=doublings,
        hops_s=work.hops_s + 2 * model.expert_layers * exchange.hop_s,
    )
    if lengths is None:
        return work
    peak = setup.gpus.peak_tflops * 1e12 if setup.gpus.peak_tflops is not None else inf
    own = (model.token_flops - model.expert_flops) * lengths.read / peak / tensor / pipeline
    routed = model.expert_flops * lengths.read / peak / stage / pipeline
    return work._replace(
        dense_prefill_s=own,
        expert_prefill_s=routed * parallelism.data,
        collective_prefill_s=work.collective_prefill_s * reduced + sent * lengths.read / tensor / pipeline,
    )


def _link(setup: ServingSetup) -> Link:
    gpus = setup.gpus
    return tensor_link(gpus.link or "nvlink", gpus.link_gb_per_s, gpus.bandwidth_gb_per_s or 0.0)


def _exchange(setup: ServingSetup, link: Link) -> _Exchange:
    """Return the way between the GPUs of a stage: over the network where the stage is on several VMs."""
    network = setup.gpus.network
    if network is None or not spans_vms(setup.deployment.parallelism):
        return _Exchange(link.bytes_per_s, link.latency_factor, 0.0)
    hop = HOPS[network]
    return _Exchange(hop.bytes_per_s, 0.0, hop.latency_s)


GPUS_OF_A_VM = 8
"""GPUs of the largest VMs of most GPU models; a rack of GB200 has 4 in each."""


def spans_vms(parallelism: Parallelism) -> bool:
    """Whether a stage is on several VMs of a copy that is: its only one, or one larger than a VM usually is."""
    return parallelism.data > 1 and (parallelism.pipeline == 1 or parallelism.stage_gpus > GPUS_OF_A_VM)
