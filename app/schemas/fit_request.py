"""The bodies of POST /estimate and POST /fit: a model, how it is served or trained, GPUs, constraints and pricing."""

from collections.abc import Collection
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from app.catalog.purchases import PURCHASE_MODELS, Purchase
from app.catalog.queries.params import (
    MAX_VALUES,
    PRICED_OS,
    ContinentSet,
    CountrySet,
    Currency,
    Cursor,
    Day,
    GpuSet,
    Hours,
    HoursPerMonth,
    LowerTextSet,
    Os,
    PlainText,
    ProviderSet,
    RegionSet,
    SizeRequirements,
    UsdAmount,
    optional,
    other_spellings,
    several,
)
from app.fit.formulas.optimizer import Loading, Offload
from app.schemas.bodies import (
    Bytes,
    BytesPerParam,
    Count,
    Dtype,
    Fraction,
    In,
    KvDtype,
    Layers,
    Modules,
    NonNegative,
    NonNegativeDecimal,
    Params,
    Positive,
    RecipeName,
    Sequences,
    Tokens,
    Width,
    contradiction,
    require_exactly_one,
)

Confidence = Literal["p50", "p80", "p95"]
Rate = Annotated[float, Field(ge=1e-6, le=1e12, allow_inf_nan=False)]


class ServingIn(In):
    """The requests that a service gets, and how fast it must answer: exactly one of the three rates."""

    input_tokens: Tokens = Field(description="Tokens of a prompt.")
    output_tokens: Tokens = Field(description="Tokens that are generated for a prompt.")
    requests_per_second: Rate | None = optional("Requests a second, on average.")
    requests_per_day: Rate | None = optional("Requests a day, on average.")
    users: Sequences | None = optional("Users who each send a request and, after think_time_s, the next; on average.")
    think_time_s: Annotated[NonNegative, Field(le=1e6)] | None = optional(
        "What a user waits after an answer, s; default 0: a request is always open."
    )
    ttft_ms: Positive | None = optional("The longest expected time to the first token, ms.")
    tpot_ms: Positive | None = optional("The longest expected time per output token after the first, ms.")
    confidence: Confidence | None = optional(
        "How sure it must be that the targets are met: p50 by the middle of the estimates, p80 and p95 by "
        "what 80 and 95 % of measured runs are within. Default: by the middle, and where one request alone misses a "
        "target by the middle, it is taken where the low end meets it, with a warning."
    )
    prefix_cache_hit: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = optional(
        "Share of a prompt that is cached and not read again; default 0."
    )
    peak_to_mean: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] | None = optional(
        "Load of the busiest time over the average; default 1."
    )
    disaggregated: bool = Field(
        default=False,
        description="Whether replicas of their own read the prompts, and move the cache to those that generate.",
    )

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        require_exactly_one(self, "requests_per_second", "requests_per_day", "users")
        if self.think_time_s is not None and self.users is None:
            raise contradiction("think_time_s is of users, and a rate of requests is given")
        return self


AttentionKind = Literal["mha", "gqa", "mqa", "mla"]
MlpKind = Literal["gated", "plain"]
QkNormKind = Literal["per_head", "all_heads"]


class ArchitectureIn(In):
    """A model by its fields. A figure that needs a missing field is left out, and named in `left_out`."""

    params: Params | None = optional("All parameters; counted from the other fields if absent.")
    active_params: Params | None = optional(
        "Parameters that a token passes through; default: counted, without experts all."
    )
    layers: Layers | None = optional("Layers.")
    hidden: Width | None = optional("Width of the residual stream.")
    heads: Width | None = optional("Query heads.")
    kv_heads: Width | None = optional("Key and value heads; default: as many as heads.")
    head_dim: Width | None = optional("Width of a head; default: hidden / heads.")
    intermediate: Width | None = optional("Width of a dense MLP.")
    vocab: Width | None = optional("Rows of the embedding.")
    attention: AttentionKind | None = optional("How keys and values are shared; checked against the heads.")
    mlp: MlpKind | None = optional("SwiGLU, or two matrices; default gated.")
    tied_embeddings: bool | None = optional("The output layer is the embedding; default false.")
    kv_layers: Layers | None = optional("Layers that keep a KV cache; default: all.")
    sliding_window: Tokens | None = optional("Tokens that a layer with a window sees.")
    sliding_layers: Layers | None = optional("Layers with the window; default: all.")
    q_lora_rank: Width | None = optional("MLA: rank of the queries.")
    kv_lora_rank: Width | None = optional("MLA: rank of the latent that is kept.")
    qk_nope_head_dim: Width | None = optional("MLA: width of a head without positions.")
    qk_rope_head_dim: Width | None = optional("MLA: width of the part with positions.")
    v_head_dim: Width | None = optional("MLA: width of a value head.")
    experts: Width | None = optional("Routed experts of a layer.")
    experts_per_token: Width | None = optional("Routed experts that a token uses.")
    moe_intermediate: Width | None = optional("Width of one expert; default: intermediate.")
    shared_intermediate: Width | None = optional("Width of all shared experts together.")
    moe_layers: Layers | None = optional("Layers with experts; default: all.")
    qkv_bias: bool | None = optional("Queries, keys and values have biases; default false.")
    output_bias: bool | None = optional("The output of attention has a bias; default false.")
    mlp_bias: bool | None = optional("The MLP has biases; default false.")
    norm_bias: bool | None = optional("Norms have a bias (LayerNorm); default false.")
    lm_head_bias: bool | None = optional("The output layer has a bias; default false.")
    qk_norm: QkNormKind | None = optional("Norms of queries and keys.")
    norms_per_layer: int | None = Field(default=None, ge=0, le=8, description="Norms over the width; default 2.")
    embedding_norm: bool | None = optional("A norm after the embedding; default false.")
    learned_positions: Width | None = optional("Positions with a learned embedding.")


class ModelIn(In):
    """A model: by name, by its fields or by its configuration."""

    model: PlainText | None = optional("A preset of GET /models: `llama-3.1-70b`.")
    architecture: ArchitectureIn | None = optional("The model by its fields.")
    config: dict[str, Any] | None = Field(
        default=None, max_length=500, description="The model by its Hugging Face `config.json`, as it is."
    )

    safetensors: dict[str, Any] | None = optional(
        "The tensors of the model's checkpoint, which give the exact bytes of the weights: its "
        "`model.safetensors.index.json`, or the header of its file (of several files, all tensors together)."
    )

    @model_validator(mode="before")
    @classmethod
    def _absent_if_empty(cls, body: Any) -> Any:
        """Treat an empty object as absent: clients in typed languages send one for a field that is not set.

        An empty configuration beside nothing else that says what is asked for is a model that cannot be read.
        """
        if not isinstance(body, dict):
            return body
        empty = {name for name in ("config", "safetensors") if body.get(name) == {}}
        others = {name for name in ("model", "architecture", "safetensors", "resources") if body.get(name) is not None}
        if not others - empty:
            empty.discard("config")
        return {name: value for name, value in body.items() if name not in empty}

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        models = [name for name in ("model", "architecture", "config") if getattr(self, name) is not None]
        if len(models) > 1:
            raise contradiction(f"{' and '.join(models)} are given, and each is the whole model: give one")
        return self


TrainingMethod = Literal["full", "lora", "qlora"]
Precision = Literal["bf16", "fp8", "fp8_block", "mxfp8", "nvfp4"]
Recompute = Literal["none", "selective", "full"]
CrossEntropy = Literal["full", "chunked", "fused"]
ActivationFormula = Literal["korthikanti", "modern", "zero"]

Engine = Literal["vllm", "sglang", "trtllm"]
Arrivals = Literal["steady", "burst"]
Link = Literal["nvlink", "pcie"]
Network = Literal["infiniband", "ethernet"]


class GpusIn(In):
    """GPUs of one kind, by their figures; nothing is looked up in the catalog."""

    count: Count | None = optional("All GPUs; default 1, or those of the split.")
    usable_gib: Positive | None = optional("Memory of one GPU as the system sees it, GiB.")
    bandwidth_gb_per_s: Positive | None = optional("Memory bandwidth of one GPU, 10^9 bytes/s.")
    peak_tflops: Positive | None = optional("Dense peak of one GPU in the type used, TFLOP/s.")
    link: Link | None = optional("What joins the GPUs of a VM; default nvlink, or xGMI.")
    link_gb_per_s: Positive | None = optional(
        "Speed of the link of one GPU, both directions, 10^9 bytes/s; default: the usual one."
    )
    network: Network | None = optional("What joins the VMs of a copy, or training, on several; default infiniband.")
    network_gbps: Positive | None = optional(
        "What one GPU has of that network, 10^9 bits/s; default 400 of InfiniBand, 12.5 of Ethernet."
    )
    engine: Engine | None = optional("The serving engine, in place of inference.engine.")
    achieved_tflops: Positive | None = optional("What one GPU reaches in training, TFLOP/s.")
    mfu: Fraction | None = optional("Share of the peak that is reached; default: a range.")
    usd_per_gpu_hour: NonNegativeDecimal | None = optional("Price of one GPU, USD an hour.")


class SpeculativeIn(In):
    """Speculative decoding, as it was measured: what share of a draft is accepted depends on the text."""

    accepted_tokens_per_step: Annotated[NonNegative, Field(le=64)] = Field(
        description="Proposed tokens that are accepted in a step, on average: a step yields one more."
    )
    draft_tokens: Annotated[int, Field(ge=1, le=64)] | None = optional(
        "Tokens proposed in a step; default: accepted_tokens_per_step, rounded up."
    )
    draft_params: Params | None = optional("Parameters of the draft model, in 16 bits.")
    draft_weight_gib: NonNegative | None = optional(
        "Weights of the draft, GiB; 0 where tokens are looked up in the prompt."
    )
    mtp_layers: Annotated[int, Field(ge=1, le=16)] | None = optional(
        "The model's own layers of multi-token prediction that propose; default, where no draft is given: "
        "those that its configuration has (`num_nextn_predict_layers`), 1 of DeepSeek-V3."
    )


class InferenceIn(In):
    """A model that is served; LoRA adapters that are served with it are not counted."""

    dtype: Dtype | None = optional("Type of the weights; default: as released, else bf16.")
    bits_per_weight: Annotated[Positive, Field(le=64)] | None = optional(
        "Bits of a weight on average, in place of dtype."
    )
    weight_bytes: Bytes | None = optional("Bytes of all weights, in place of counting them.")
    kv_dtype: KvDtype | None = optional("Type of the KV cache; default bf16.")
    kv_bytes_per_value: Annotated[Positive, Field(le=8)] | None = optional(
        "Bytes of a value of the KV cache, in place of kv_dtype."
    )
    kv_bytes_per_sequence: Bytes | None = optional("Bytes that a sequence keeps, in place of counting them.")
    kv_budget_gib: Positive | None = optional("Memory for the KV cache, GiB: how much fits in.")
    context_tokens: Tokens | None = optional(
        "Tokens that a sequence keeps; at most what the model is made for. Default: prompt and output "
        "together, where either is given; else 512 of an encoder, and 8,192 in a fit with `concurrency`."
    )
    allow_longer_context: bool = Field(
        default=False, description="Allow a context longer than the model is made for, by rope_scaling."
    )
    prompt_tokens: Tokens | None = optional("Tokens of a prompt; default: two thirds of the context.")
    output_tokens: Tokens | None = optional("Tokens that are generated for a prompt; default: as many as it has.")
    engine: Engine | None = optional("The serving engine; default vllm.")
    arrivals: Arrivals | None = optional(
        "How requests arrive: default steady, one after another; burst, all at once, as in benchmarks that "
        "start them together, where prompts wait for each other."
    )
    concurrency: Sequences | None = optional("Sequences at a time, over all copies; default 1.")
    block_tokens: Count | None = optional("Tokens of a page of the KV cache; default 1, vLLM 16.")
    max_batched_tokens: Tokens | None = optional("Tokens that one step computes; default 8192.")
    utilization: Fraction | None = optional("Share of a GPU's memory that is used; default 0.92.")
    tensor_parallel: Count | None = optional("GPUs that a layer is split over.")
    pipeline_parallel: Count | None = optional("Stages that the layers are cut into; default 1.")
    expert_parallel: Count | None = optional(
        "GPUs that routed experts are distributed over; default 1: every expert is split. With "
        "data_parallel_attention the default is all GPUs of a layer."
    )
    data_parallel_attention: Count | None = optional(
        "Groups of tensor_parallel GPUs that each have the attention and the KV cache of their own "
        "sequences, and share the experts; default 1."
    )
    speculative: SpeculativeIn | None = optional("Speculative decoding, if it is used.")

    @model_validator(mode="after")
    def _one_size_of_weights(self) -> "InferenceIn":
        given = [name for name in ("dtype", "bits_per_weight", "weight_bytes") if getattr(self, name) is not None]
        if len(given) > 1:
            raise contradiction(f"{' and '.join(given)} say the same thing: give one")
        if self.kv_dtype is not None and self.kv_bytes_per_value is not None:
            raise contradiction("kv_dtype and kv_bytes_per_value say the same thing: give one")
        return self


class MatrixIn(In):
    """A weight matrix that gets an adapter."""

    inputs: Width = Field(description="Width of what goes in.")
    outputs: Width = Field(description="Width of what comes out.")
    count: Width = Field(default=1, description="How many matrices of this form the model has.")


class TrainingIn(In):
    """A model that is trained."""

    method: TrainingMethod | None = optional("Default full.")
    recipe: RecipeName | None = optional("Bytes a parameter; default mixed_adam_fp32_grads.")
    precision: Precision | None = optional(
        "Type of the layers' matrix products; attention and output layer stay in 16 bits. Default bf16."
    )
    weight_bytes_per_param: BytesPerParam | None = optional("In place of the recipe's.")
    gradient_bytes_per_param: BytesPerParam | None = optional("In place of the recipe's.")
    optimizer_bytes_per_param: BytesPerParam | None = optional("In place of the recipe's.")
    base_dtype: Dtype | None = optional("Type of a frozen base; bf16, of qlora nf4_dq.")
    zero_stage: int | None = Field(default=None, ge=0, le=3, description="0 DDP, 2 SHARD_GRAD_OP, 3 FULL_SHARD.")
    data_parallel: Count | None = optional("Copies of the model; default: as many as GPUs allow.")
    shard_group: Count | None = optional("HSDP: copies that share one set of shards.")
    tensor_parallel: Count | None = optional("GPUs that a layer is split over; default 1.")
    pipeline_parallel: Count | None = optional("Stages that the layers are cut into; default 1.")
    sequence_parallel: bool = Field(default=False, description="Norms and dropout are split over tensor ranks, too.")
    pipeline_chunks: Count | None = optional("Interleaved chunks of a stage; default 1.")
    micro_batches: Sequences | None = optional("Micro-batches of a step; default: the stages.")
    offload: Offload | None = optional(
        "What is kept in the host's memory: optimizer and gradients, or the weights, too."
    )
    loading: Loading | None = optional(
        "How weights come to the GPUs: each VM reads or initializes its shards, reads all, or makes them "
        "there (from scratch). Default sharded."
    )
    gpus_per_node: Count | None = optional("GPUs of a host, for what is offloaded; default 8.")
    static_bytes_per_gpu: NonNegative | None = optional("What every GPU holds besides, bytes.")
    lora_rank: Width | None = optional("Rank of the adapters; default 16.")
    lora_modules: Modules | None = optional(
        "Matrices that get adapters; default: all seven, of layers with others all of them."
    )
    lora_matrices: tuple[MatrixIn, ...] | None = Field(
        default=None, max_length=100, description="The matrices that get adapters, in place of modules."
    )
    sequence_tokens: Tokens | None = optional("Tokens of a sequence; default 2,048, or the longest of the model.")
    micro_batch: Count | None = optional("Sequences that pass at a time on a GPU; default 1.")
    global_batch: Sequences | None = optional("Sequences of one step on all GPUs.")
    recompute: Recompute | None = optional(
        "Activations that are recomputed; FlashAttention is selective. Default none, with adapters full."
    )
    cross_entropy: CrossEntropy | None = optional("How logits are held for the loss; default full.")
    activation_formula: ActivationFormula | None = optional("Default: modern where the MLP is gated, else korthikanti.")
    activation_bytes: Annotated[int, Field(ge=2, le=4, multiple_of=2)] | None = optional(
        "Bytes of an activation, 2 or 4; default 2."
    )
    hidden_state_copies: Positive | None = optional("Hidden states that a layer keeps, where it was measured.")
    tokens: Positive | None = optional("Tokens that are trained on, all epochs together.")
    flops_per_param_token: Annotated[Positive, Field(le=100)] | None = optional(
        "FLOPs a parameter and token; default 6, with adapters 4."
    )
    attention_flops: bool = Field(default=False, description="Count what attention adds: 12 L h s FLOPs a token.")
    gpu_hours: NonNegativeDecimal | None = optional("GPU-hours that are known, in place of estimating them.")
    tokens_per_s_per_gpu: Positive | None = optional("A rate that was measured.")
    run_overhead: Annotated[NonNegative, Field(le=100)] | None = optional(
        "Time of a whole run beside its steps, as a share: restarts, evaluation. Default: a range; 0 with "
        "a stated rate."
    )


_ANY_GPUS = GpusIn.model_construct()
"""The default of `EstimateIn`, not validated: its validator would be built at the start of every worker."""


class EstimateIn(ModelIn):
    """A workload: one model at most, and exactly one use of it."""

    inference: InferenceIn | None = optional("How the model is served.")
    training: TrainingIn | None = optional("How the model is trained.")
    serving: ServingIn | None = optional(
        "Load and targets of a service, in place of inference.concurrency; inference may be left out."
    )
    gpus: GpusIn = Field(default=_ANY_GPUS, description="What it runs on.")

    @model_validator(mode="after")
    def _one_use(self) -> Self:
        if self.serving is None:
            require_exactly_one(self, "inference", "serving", "training")
        elif self.training is not None:
            raise contradiction("serving is of a model that is served, and training is given")
        return self

    @model_validator(mode="after")
    def _one_engine(self) -> Self:
        if self.gpus.engine is None:
            return self
        if self.training is not None:
            raise contradiction("gpus.engine is of a model that is served, and training is given")
        if self.inference is not None and self.inference.engine not in {None, self.gpus.engine}:
            raise contradiction("gpus.engine and inference.engine differ: give one")
        return self


Nodes = Annotated[int, Field(ge=1, le=10_000)]


class ResourcesIn(In, SizeRequirements):
    """The resources that a VM must have, as in the parameters of GET /fit; a bound has either of its names."""

    @classmethod
    def allowed_names(cls) -> Collection[str]:
        """Return the names of the fields, and those of bounds after the field of a size that they bound."""
        return cls.model_fields.keys() | other_spellings(cls).keys()


class HardwareIn(In):
    """One machine, checked instead of the catalog; figures that are not given are not checked."""

    gpu: PlainText | None = optional("A GPU of GET /gpus by any name: `H100-SXM-80GB`.")
    gpus: Annotated[int, Field(ge=1, le=1024)] | None = optional(
        "GPUs of the machine; default: as many as the split needs, or 1."
    )
    memory_gib: Positive | None = optional("Memory of one GPU as marketed, GiB.")
    usable_gib: Positive | None = optional("Memory of one GPU as the system sees it, GiB.")
    bandwidth_gb_per_s: Positive | None = optional("Memory bandwidth of one GPU, 10^9 bytes/s.")
    peak_tflops: Positive | None = optional("Dense peak of one GPU in the type used, TFLOP/s.")
    compute_capability: Annotated[str, Field(pattern="^([0-9]{1,2}[.][0-9]|gfx[0-9a-f]{3,4})$")] | None = optional(
        "`8.0`, or `gfx942`; unknown: every type is taken to be supported."
    )
    scale_up_domain_gpus: Count | None = optional("GPUs that share NVLink; 1: PCIe only.")
    infiniband: bool | None = optional("Machines are joined by InfiniBand; default true.")
    network_gbps: Positive | None = optional(
        "Network of the machine, 10^9 bits/s; default 400 for each GPU, without InfiniBand 12.5."
    )
    host_memory_gib: Positive | None = optional("Memory of the machine, GiB.")
    local_disk_gib: Positive | None = optional("Local disks of the machine, GiB.")
    vcpus: Count | None = optional("vCPUs of the machine.")
    usd_per_hour: UsdAmount | None = optional("What the machine costs an hour, USD.")

    @property
    def memory_known(self) -> bool:
        """Whether the memory of its GPUs is given or can be looked up."""
        return any(value is not None for value in (self.gpu, self.memory_gib, self.usable_gib))


class ConstraintsIn(In):
    """Which sizes are checked (series, name, gpu, gpu_vendor), and what an option must meet (all other fields)."""

    series: LowerTextSet = several("Only these series, by id or name.")
    name: LowerTextSet = several("Only names that match a glob: `Standard_NC*_v5`.")
    gpu: GpuSet = several("Only these GPUs, by names or globs as GET /sizes takes them: `A100`, `*80GB*`.")
    gpu_vendor: PlainText | None = optional("Only GPUs of this maker.")
    regions: RegionSet = several("Priced in one of these.")
    available_in: RegionSet = several("Priced in all of these.")
    provider: ProviderSet = ()
    country: CountrySet = several("Priced in a region in one of these countries (ISO 3166-1).")
    continent: ContinentSet = several("Priced in a region on one of these continents.")
    min_nodes: Nodes = Field(default=1, description="The fewest VMs.")
    max_nodes: Nodes = Field(default=1, description="The most VMs; default 1, with serving 100.")
    utilization: Fraction | None = optional("Share of a GPU's memory that may be used; default 0.92, in training 0.95.")
    tp_in_nvlink: bool = Field(default=False, description="Split layers only over GPUs that share NVLink.")
    require_infiniband: bool | None = optional(
        "VMs that train together, or hold one replica together, have InfiniBand or another `fabric`; "
        "default: for training and with serving. With false they may use Ethernet."
    )
    allow_preview: bool = Field(default=True, description="Include sizes in preview.")
    allow_retiring: bool = Field(default=True, description="Include sizes with an announced retirement.")
    allow_legacy: bool = Field(default=False, description="Include GPUs for graphics, and GPUs older than Pascal.")
    verified_only: bool = Field(default=False, description="The vendor's own documents must name the size.")
    checkpoint_on_local_disk: bool = Field(default=False, description="A checkpoint must fit on the VM's local disk.")
    budget_usd_per_month: UsdAmount | None = optional("The most that all VMs may cost a month, USD.")
    budget_usd_per_job: UsdAmount | None = optional("The most that the job may cost, USD.")
    max_hours: Positive | None = optional("The longest that training with tokens or gpu_hours may take, hours.")


class PricingIn(In):
    """The prices to use."""

    elsewhere = dict.fromkeys(("region", "regions", "location"), "constraints.regions")

    purchases: Annotated[
        tuple[Purchase, ...],
        Field(min_length=1, max_length=len(PURCHASE_MODELS)),
        AfterValidator(lambda purchases: tuple(dict.fromkeys(purchases))),
    ] = Field(default=("on_demand", "spot"), description="Purchase models to price; options are ranked by the first.")
    os: Os = Field(default="linux", description=PRICED_OS)
    hours: Hours | None = optional("How long the VMs run, for the cost of the job.")
    hours_per_month: HoursPerMonth = Field(
        default=Decimal(730), description="Hours a month; reservations and savings plans are paid for 730 anyway."
    )
    spot_overhead: Annotated[Decimal, Field(ge=0, le=10, allow_inf_nan=False)] | None = optional(
        "What interruptions add to a training on spot VMs, as a share, in place of computing it."
    )
    spot_evictions_per_hour: Annotated[NonNegative, Field(le=1)] | None = optional(
        "Probability that a spot VM is evicted within an hour; default 0.025."
    )
    spot_restart_minutes: Annotated[NonNegative, Field(le=10_000)] | None = optional(
        "From an eviction until the training goes on; default 10."
    )
    checkpoint_interval_minutes: Annotated[Positive, Field(le=1_000_000)] | None = optional(
        "Between two checkpoints on spot VMs; default: the best."
    )
    checkpoint_gb_per_s: Positive | None = optional(
        "Rate at which all VMs together write a checkpoint, 10^9 bytes/s; default 7.5."
    )
    checkpoint_usd_per_gb_month: Annotated[NonNegative, Field(le=1000)] | None = optional(
        "Price of the storage of checkpoints, USD for 10^9 bytes a month; default 0.02."
    )
    checkpoints_kept: Annotated[int, Field(ge=1, le=10_000)] | None = optional("Checkpoints that are kept; default 2.")
    as_of: Day | None = optional("The day whose prices are used; default: today.")
    known_at: Day | None = optional(
        "Prices as the catalog knew them at the end of this day; default: as it knows them now."
    )
    currency: Currency | None = optional(
        "Give costs in this currency, too (ISO 4217), by the European Central Bank's reference rate of the "
        "day whose prices are used; USD at the rate 1. Budgets and order stay in USD."
    )


_NO_CONSTRAINTS, _USUAL_PRICING = ConstraintsIn.model_construct(), PricingIn.model_construct()
"""Defaults of `FitIn`, not validated: their validators would be built at the start of every worker, in 6 ms."""

Sort = Literal["cost_per_hour", "cost_per_job", "cost_per_1m_tokens", "time", "headroom", "waste", "nodes"]
Include = Literal["rejected", "assumptions", "workload"]


class FitIn(ModelIn):
    """What has to fit: exactly one of resources, inference or serving, and training."""

    resources: ResourcesIn | None = optional("The resources of a VM.")
    inference: InferenceIn | None = optional("How the model is served.")
    training: TrainingIn | None = optional("How the model is trained.")
    serving: ServingIn | None = optional(
        "Load and targets of a service, in place of inference.concurrency; inference may be left out."
    )
    hardware: HardwareIn | None = optional("One machine, instead of the catalog.")
    constraints: ConstraintsIn = Field(default=_NO_CONSTRAINTS, description="What an option must meet.")
    pricing: PricingIn = Field(default=_USUAL_PRICING, description="Which prices are used, and for how many hours.")
    sort: Sort | None = optional(
        "The order of options; unknown prices come last. Default: cost_per_job where training.tokens or "
        "training.gpu_hours is given, else cost_per_hour."
    )
    limit: Annotated[int, Field(ge=1, le=500)] = Field(default=10, description="The most options to return.")
    cursor: Cursor | None = optional("`next_cursor` of the page before; belongs to the same question.")
    include: Annotated[
        tuple[Include, ...], Field(max_length=MAX_VALUES), AfterValidator(lambda names: tuple(sorted(set(names))))
    ] = several("`rejected`: sizes that do not fit, at most 2,000; `assumptions`; `workload`: the architecture.")

    @property
    def order(self) -> Sort:
        """Return the order of options: as given, else by the cost of a job of known length, or of an hour."""
        timed = self.training is not None and (self.training.tokens, self.training.gpu_hours) != (None, None)
        return self.sort or ("cost_per_job" if timed else "cost_per_hour")

    @model_validator(mode="after")
    def _one_use(self) -> Self:
        if self.serving is None:
            require_exactly_one(self, "resources", "inference", "serving", "training")
        elif others := [name for name in ("resources", "training") if getattr(self, name) is not None]:
            raise contradiction(f"serving is of a model that is served, and {' and '.join(others)} is given")
        if self.resources is not None:
            # Fields about models cannot be given with resources.
            beside = {
                name for name in ("model", "architecture", "config", "hardware") if getattr(self, name) is not None
            }
            beside |= {f"constraints.{name}" for name in self.constraints.model_fields_set - _RESOURCE_CONSTRAINTS}
            if beside:
                at = min(beside) if len(beside) == 1 else ""
                raise contradiction(f"{', '.join(sorted(beside))} cannot be given with resources", at)
            if self.sort in {"cost_per_1m_tokens", "time"}:
                raise contradiction(f"sort={self.sort} is for inference and training only")
            if self.sort == "cost_per_job" and self.pricing.hours is None:
                raise contradiction("sort=cost_per_job needs pricing.hours")
        elif self.sort == "waste":
            raise contradiction("sort=waste is for resources only")
        if self.hardware is not None and _OF_THE_CATALOG & self.constraints.model_fields_set:
            raise contradiction(
                "constraints.regions, available_in, provider, country and continent are about the catalog; "
                "they cannot be given with hardware"
            )
        return self


_OF_THE_CATALOG = {"regions", "available_in", "provider", "country", "continent"}
_RESOURCE_CONSTRAINTS = {
    *("series", "name", "gpu", "gpu_vendor", *_OF_THE_CATALOG, "max_nodes", "allow_preview"),
    *("allow_retiring", "verified_only", "budget_usd_per_month"),
}
"""The constraints that apply to resources, too."""
