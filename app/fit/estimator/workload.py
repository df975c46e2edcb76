"""The input of an estimate: how a model is served or trained, and the GPUs; None is not given."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from app.fit.formulas.compute import LinkKind, Network
from app.fit.formulas.optimizer import AdaptedMatrix, Loading, Offload
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
