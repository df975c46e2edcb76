"""The input of an estimate: how a model is served or trained, and the GPUs; None is not given.

Also the deployment that follows from it: the given parallelism and copies, or defaults by the GPUs.
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.compute import USUAL_NETWORK_GBPS, LinkKind, Network
from app.fit.formulas.memory import UNSPLIT, Parallelism
from app.fit.formulas.optimizer import AdaptedMatrix, Loading, Offload
from app.fit.formulas.quantities import Assumptions, InvalidWorkload
from app.fit.formulas.training_memory import CrossEntropy, Formula, Recompute
from app.fit.formulas.training_speed import Precision

Engine = Literal["vllm", "sglang", "trtllm"]
Confidence = Literal["p50", "p80", "p95"]
Arrivals = Literal["steady", "burst", "random"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """GPUs of one kind: their number, and the memory, bandwidth (decimal GB/s), dense peak and price of each.

    `gpu_id` is that of the catalog; None where only figures are known.
    `link` joins the GPUs of a VM, at `link_gb_per_s` in both directions together; `network` joins the VMs of a copy,
    None where one VM holds it, and `network_gbps` is what each GPU has of that. `peak_16_bits_tflops` is known where
    `peak_tflops` is of a narrower type.
    """

    count: int | None = None
    gpu_id: str | None = None
    usable_gib: float | None = None
    bandwidth_gb_per_s: float | None = None
    peak_tflops: float | None = None
    peak_16_bits_tflops: float | None = None
    link: LinkKind | None = None
    link_gb_per_s: float | None = None
    network: Network | None = None
    network_gbps: float | None = None
    achieved_tflops: float | None = None
    mfu: float | None = None
    usd_per_gpu_hour: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevel:
    """The requests that a service gets, and how fast it must answer them; exactly one of the three rates is given.

    Rates and users are means; the busiest time has `peak_to_mean` times as many. A user waits `think_time_s` after an
    answer before the next request. `confidence` is the share of estimates that must meet the targets.
    `prefix_cache_hit` is the share of a prompt that need not be read again. Where it is `disaggregated`, prompts are
    read by replicas of their own.
    """

    input_tokens: int
    output_tokens: int
    requests_per_second: float | None = None
    requests_per_day: float | None = None
    users: int | None = None
    think_time_s: float | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    confidence: Confidence | None = None
    prefix_cache_hit: float | None = None
    peak_to_mean: float | None = None
    disaggregated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: tokens that are proposed in a step and accepted on average, and what proposes them.

    That is a draft model, by its parameters or its bytes, or `mtp_layers` of the model's own multi-token prediction;
    none where tokens are looked up in the prompt.
    """

    accepted_tokens_per_step: float
    draft_tokens: int | None = None
    draft_params: int | None = None
    draft_weight_gib: float | None = None
    mtp_layers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceWorkload:
    """How a model is served.

    A copy is on `tensor_parallel` x `data_parallel_attention` x `pipeline_parallel` GPUs, see Parallelism. Two fields
    follow from a service level: `prefix_cache_hit` is the share of a prompt that is cached, `prefill_busy` the share of
    the time in which replicas that only read prompts do so, None where there are none. Requests of a service arrive at
    random, `arrivals` of others are steady unless they are a burst.
    """

    dtype: str | None = None
    bits_per_weight: float | None = None
    weight_bytes: float | None = None
    kv_dtype: str | None = None
    kv_bytes_per_value: float | None = None
    kv_bytes_per_sequence: float | None = None
    kv_budget_gib: float | None = None
    context_tokens: int | None = None
    allow_longer_context: bool = False
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    prefix_cache_hit: float | None = None
    prefill_busy: float | None = None
    engine: Engine | None = None
    arrivals: Arrivals | None = None
    concurrency: int | None = None
    block_tokens: int | None = None
    max_batched_tokens: int | None = None
    utilization: float | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    expert_parallel: int | None = None
    data_parallel_attention: int | None = None
    speculative: Speculation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorkload:
    """How a model is trained."""

    method: str | None = None
    recipe: str | None = None
    precision: Precision | None = None
    weight_bytes_per_param: float | None = None
    gradient_bytes_per_param: float | None = None
    optimizer_bytes_per_param: float | None = None
    base_dtype: str | None = None
    zero_stage: int | None = None
    data_parallel: int | None = None
    shard_group: int | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    sequence_parallel: bool = False
    pipeline_chunks: int | None = None
    micro_batches: int | None = None
    offload: Offload | None = None
    loading: Loading | None = None
    gpus_per_node: int | None = None
    static_bytes_per_gpu: float | None = None
    lora_rank: int | None = None
    lora_modules: tuple[str, ...] | None = None
    lora_matrices: tuple[AdaptedMatrix, ...] | None = None
    sequence_tokens: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    recompute: Recompute | None = None
    cross_entropy: CrossEntropy | None = None
    activation_formula: Formula | None = None
    activation_bytes: int | None = None
    hidden_state_copies: float | None = None
    tokens: float | None = None
    flops_per_param_token: float | None = None
    attention_flops: bool = False
    gpu_hours: Decimal | None = None
    tokens_per_s_per_gpu: float | None = None
    run_overhead: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The parallelism of one copy and the number of copies: replicas when serving, data-parallel ranks in training."""

    parallelism: Parallelism
    copies: int

    @property
    def gpus(self) -> int:
        """Number of GPUs of all copies."""
        return self.parallelism.gpus * self.copies


ONE_GPU = Deployment(parallelism=UNSPLIT, copies=1)


def plan_serving(workload: InferenceWorkload, gpus: Gpus, shape: Architecture, assumptions: Assumptions) -> Deployment:
    """Split a copy over the most GPUs that divide the heads, unless the parallelism is given; other GPUs get copies."""
    stages = assumptions.get(workload.pipeline_parallel, "inference.pipeline_parallel")
    tensor, count, groups = workload.tensor_parallel, gpus.count, workload.data_parallel_attention or 1
    heads = shape.heads
    parts = stages * groups
    if count is None:
        count = parts * (assumptions.get(None, "gpus.count") if tensor is None else tensor)
    if tensor is None:
        candidates = [t for t in range(1, count // parts + 1) if count % (t * parts) == 0 and (heads or t) % t == 0]
        tensor = max(candidates, default=1)
        assumptions.record("inference.tensor_parallel", tensor, "one copy over as many GPUs as divide the heads")
    experts = _expert_ranks(workload, tensor * groups, assumptions)
    parallelism = Parallelism(tensor=tensor, pipeline=stages, expert=experts, data=groups)
    _check_divides("inference", parallelism, count, shape)
    return Deployment(parallelism=parallelism, copies=count // parallelism.gpus)


def _expert_ranks(workload: InferenceWorkload, stage_gpus: int, assumptions: Assumptions) -> int:
    """Return the GPUs that experts are distributed over: with data-parallel attention all of a stage, else one."""
    given = workload.expert_parallel
    if given is None and (workload.data_parallel_attention or 1) > 1:
        why = "with data-parallel attention engines deal experts out over all its GPUs"
        return assumptions.record("inference.expert_parallel", stage_gpus, why)
    if given is not None and stage_gpus % given:
        detail = f"{given} does not divide tensor_parallel x data_parallel_attention, {stage_gpus}"
        raise InvalidWorkload("inference.expert_parallel", detail)
    return given or 1


PARALLEL_FIELDS = ("tensor_parallel", "pipeline_parallel", "expert_parallel", "data_parallel_attention")
"""The fields of a workload that say how a copy is split; a training has the first two."""


def requested_gpus(workload: InferenceWorkload | TrainingWorkload) -> int:
    """Return the GPUs of a copy as the workload says; 1 where it says nothing."""
    stage = workload.tensor_parallel or 1
    if isinstance(workload, InferenceWorkload):
        stage = max(stage * (workload.data_parallel_attention or 1), workload.expert_parallel or 1)
    return stage * (workload.pipeline_parallel or 1)


def check_experts(workload: InferenceWorkload, experts: int | None) -> None:
    """Raise InvalidWorkload where experts are to be distributed that a model does not have, or not over these GPUs."""
    expert, tensor, groups = workload.expert_parallel, workload.tensor_parallel, workload.data_parallel_attention
    if expert is not None and tensor is not None and groups is not None and (tensor * groups) % expert:
        detail = f"{expert} does not divide tensor_parallel x data_parallel_attention, {tensor * groups}"
        raise InvalidWorkload("inference.expert_parallel", detail)
    for given, field in ((expert, "inference.expert_parallel"), (groups, "inference.data_parallel_attention")):
        if given is not None and given > 1 and experts is None:
            raise InvalidWorkload(field, f"{given}: the model has no experts, or their number is unknown")
    if expert is not None and experts is not None and expert > experts:
        detail = f"{expert} is more than the experts of a layer, {experts}"
        raise InvalidWorkload("inference.expert_parallel", detail)


def plan_training(workload: TrainingWorkload, gpus: Gpus, shape: Architecture, assumptions: Assumptions) -> Deployment:
    """Use the given parallelism, with the given data-parallel copies or as many as the GPUs allow."""
    tensor = assumptions.get(workload.tensor_parallel, "training.tensor_parallel")
    stages = assumptions.get(workload.pipeline_parallel, "training.pipeline_parallel")
    copies = workload.data_parallel
    if copies is None:
        count = assumptions.get(gpus.count, "gpus.count") if gpus.count or tensor * stages == 1 else tensor * stages
        copies = max(1, count // (tensor * stages))
    _check_divides(
        "training", Parallelism(tensor=tensor, pipeline=stages), gpus.count or tensor * stages * copies, shape
    )
    if gpus.count is not None and gpus.count != tensor * stages * copies:
        detail = f"{tensor} x {stages} x {copies} are not the {gpus.count} GPUs given"
        raise InvalidWorkload("training.data_parallel", detail)
    check_training(workload)
    return Deployment(parallelism=Parallelism(tensor=tensor, pipeline=stages), copies=copies)


def check_training(workload: TrainingWorkload) -> None:
    """Raise InvalidWorkload for fields of adapters without any, and for too few sequences.

    These are fewer in a step than pass through the given copies at a time. Copies that are not given may be fewer than
    the GPUs allow.
    """
    of_adapters = {
        "training.base_dtype": workload.base_dtype,
        "training.lora_rank": workload.lora_rank,
        "training.lora_modules": workload.lora_modules,
        "training.lora_matrices": workload.lora_matrices,
    }
    for field, given in of_adapters.items():
        if given is not None and workload.method in {None, "full"}:
            raise InvalidWorkload(field, "is for training.method lora and qlora; full trains all weights")
    micro, batch, copies = workload.micro_batch or 1, workload.global_batch, workload.data_parallel or 1
    if batch is not None and batch < micro * copies:
        where = f"{micro} on each of {copies} copies" if copies > 1 else "training.micro_batch"
        detail = f"{batch} is less than the sequences of one pass, {micro * copies}: {where}"
        raise InvalidWorkload("training.global_batch", detail)


def _check_divides(section: str, parallelism: Parallelism, count: int, shape: Architecture) -> None:
    if shape.heads is not None and shape.heads % parallelism.tensor:
        raise InvalidWorkload(f"{section}.tensor_parallel", f"{parallelism.tensor} does not divide {shape.heads} heads")
    if shape.layers is not None and parallelism.pipeline > shape.layers:
        detail = f"{shape.layers} layers cannot be cut into {parallelism.pipeline} stages"
        raise InvalidWorkload(f"{section}.pipeline_parallel", detail)
    if count % parallelism.gpus:
        parts = (parallelism.tensor, *((parallelism.data,) if parallelism.data > 1 else ()), parallelism.pipeline)
        gpus = " x ".join(map(str, parts))
        raise InvalidWorkload("gpus.count", f"{count} is not a multiple of {gpus}, the GPUs of one copy")


def assume_network(gpus: Gpus, assumptions: Assumptions) -> Gpus:
    """Return the GPUs with the network between VMs, and what each has of it, where these are not given."""
    network: Network = assumptions.get(gpus.network, "gpus.network")
    gbps = gpus.network_gbps
    if gbps is None:
        gbps = assumptions.record("gpus.network_gbps", USUAL_NETWORK_GBPS[network], f"usual of a GPU with {network}")
    return replace(gpus, network=network, network_gbps=gbps)
