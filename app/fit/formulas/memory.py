"""Memory of a served model: its split over GPUs, weights, KV cache, what each GPU needs, and how many sequences fit."""

from dataclasses import dataclass, replace
from math import ceil, floor
from typing import NamedTuple

from app.fit.formulas.architecture import Architecture, LayerCache
from app.fit.formulas.quantities import GIB, ZERO, Range, plus_minus


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """One copy of a model split over `tensor` x `data` x `pipeline` GPUs.

    `tensor` GPUs share the attention of a sequence. `data` groups of them have sequences of their own and share the
    routed experts: data-parallel attention, where every group holds all other weights. The experts are distributed over
    `expert` GPUs; where these are fewer than the GPUs of a stage, each expert is split over the rest.
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    data: int = 1

    @property
    def gpus(self) -> int:
        """Number of GPUs that hold the copy."""
        return self.tensor * self.pipeline * self.data

    @property
    def stage_gpus(self) -> int:
        """Number of GPUs that a layer is on."""
        return self.tensor * self.data

    @property
    def group_gpus(self) -> int:
        """Number of GPUs that share a sequence, over all stages."""
        return self.tensor * self.pipeline


UNSPLIT = Parallelism()


class ExpertShare(NamedTuple):
    """The routed experts of a layer, and their share of the model's bytes, 0 to 1.

    `padded` are the hidden size and the width of an expert in a format whose kernels round both up.
    """

    per_layer: int = 1
    share: float = 0.0
    padded: tuple[int, int] | None = None


NO_EXPERTS = ExpertShare()


def largest_gpu_share(
    parallelism: Parallelism,
    *,
    layers: int | None = None,
    embeddings: float = 0.0,
    experts: ExpertShare = NO_EXPERTS,
) -> float:
    """Return the share of the parameters that the fullest GPU holds, 0 to 1.

    p = 1: 1 / t.  p > 1: ((1 - m) ceil(L / p) / L + m) / t: the largest stage has ceil(L / p) layers, and one end
    stage has embeddings, at most all m of them.  Of routed experts, x of the parameters, a GPU holds
    ceil(E / ep) / E x ep / (t d) in place of 1 / t: whole experts, and of each its part.  Exact for p = 1, else a
    bound from above. t tensor, d data, ep expert, p pipeline, L layers, m the embeddings' share of the parameters.
    Sources: Megatron-LM places embeddings on the end stages (arXiv 2104.04473); DeepSeek-V3 (arXiv 2412.19437), section
    3.4, and vLLM (FusedMoEParallelConfig) for experts and data-parallel attention.
    """
    stage = _stage_share(parallelism, layers)
    held = ((1 - embeddings) * stage + embeddings) / parallelism.tensor if stage < 1 else 1 / parallelism.tensor
    if parallelism.expert == 1 and parallelism.data == 1:
        return held
    return held + stage * experts.share * (expert_share_of_gpu(parallelism, experts.per_layer) - 1 / parallelism.tensor)


def _stage_share(parallelism: Parallelism, layers: int | None) -> float:
    """Return the share of the layers that the largest pipeline stage has."""
    if layers is None or parallelism.pipeline == 1:
        return 1 / parallelism.pipeline
    return ceil(layers / parallelism.pipeline) / layers


def expert_share_of_gpu(parallelism: Parallelism, experts: int) -> float:
    """Return the share of a layer's experts that the fullest GPU holds: ceil(E / ep) / E x ep / (t d)."""
    whole = ceil(experts / parallelism.expert) / experts
    return whole * parallelism.expert / parallelism.stage_gpus


MXFP4_ALIGNMENTS = ((1, 64), (256, 128), (256, 256))
"""Multiples that the hidden size and a rank's part of an expert's width are rounded up to: least, usual, most.

Of Triton's kernels, of Marlin's, and of those of TensorRT-LLM on Blackwell: vLLM, Mxfp4MoEMethod.create_weights.
gpt-oss-120b is 60.8 GiB; on one GPU Marlin loaded 65.97 (vLLM's GitHub, 23278) and Triton 64.38 (33155).
"""


def padding_share(experts: ExpertShare, parallelism: Parallelism, layers: int | None = None) -> Range:
    """Return what kernels add to the experts of the fullest GPU, as a share of the model's bytes; an estimate.

    x of the GPU (h' f' / (h f) - 1): hidden h and the rank's width f rounded up to h' and f'.
    """
    if experts.padded is None:
        return ZERO
    hidden, width = experts.padded
    part = width * parallelism.expert / parallelism.stage_gpus
    held = experts.share * expert_share_of_gpu(parallelism, experts.per_layer) * _stage_share(parallelism, layers)
    low, mid, high = (
        held * (ceil(hidden / down) * down * ceil(part / across) * across / (hidden * part) - 1)
        for down, across in MXFP4_ALIGNMENTS
    )
    return Range(low=low, mid=mid, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """The layout of a model's KV cache: what each kind of layer keeps of a token, with the number of such layers.

    `state_bytes` is what linear attention and state-space layers keep of a sequence, whatever its length.
    `block_tokens` is the page size in tokens: 1 is no paging, vLLM's is 16.
    """

    kinds: tuple[tuple[LayerCache, int], ...] = ()
    state_bytes: int = 0
    value_bytes: float = 2.0
    block_tokens: int = 1


def missing_for_cache(shape: Architecture) -> tuple[str, ...]:
    """Return the names of the unknown fields that the KV cache needs."""
    if shape.groups:
        return ()
    own = ("kv_heads", "head_dim") if shape.kv_lora_rank is None else ("qk_rope_head_dim",)
    return shape.missing_fields(*(("layers",) if shape.kv_layers is None else ()), *own)


def build_kv_cache(shape: Architecture, *, value_bytes: float = 2.0, block_tokens: int = 1) -> KvCache:
    """Build the KV cache layout of a complete shape (one for which missing_for_cache is empty)."""
    kinds: dict[LayerCache, int] = {} if shape.groups else dict(_kept_by_fields(shape))
    for group in shape.groups:
        for kept in group.content.caches:
            kinds[kept] = kinds.get(kept, 0) + group.count
    state = sum(group.count * group.content.state_bytes for group in shape.groups)
    return KvCache(kinds=tuple(kinds.items()), state_bytes=state, value_bytes=value_bytes, block_tokens=block_tokens)


def _kept_by_fields(shape: Architecture) -> tuple[tuple[LayerCache, int], ...]:
    """Return what full and windowed layers keep: 2 d values of each KV head (MHA, GQA, MQA), or a latent (MLA)."""
    (layers,) = shape.require("layers" if shape.kv_layers is None else "kv_layers")
    windowed = 0
    if shape.sliding_window is not None:
        windowed = layers if shape.sliding_layers is None else min(shape.sliding_layers, layers)
    if shape.kv_lora_rank is not None:
        kept = LayerCache(heads=1, values=sum(shape.require("kv_lora_rank", "qk_rope_head_dim")), latent=True)
    else:
        heads, head_dim = shape.require("kv_heads", "head_dim")
        kept = LayerCache(heads=heads, values=2 * head_dim)
    full = (kept, layers - windowed)
    return (full, (kept._replace(window=shape.sliding_window), windowed)) if windowed else (full,)


def with_further_layers(cache: KvCache, layers: int) -> KvCache:
    """Return the layout with further layers of attention to the whole context, as those that keep most of a token."""
    whole = [kept for kept, _ in cache.kinds if kept.window is None]
    if not whole:
        return cache
    most = max(whole, key=lambda kept: kept.heads * kept.values / kept.stride)
    return replace(cache, kinds=tuple((kept, n + layers if kept == most else n) for kept, n in cache.kinds))


def kv_bytes_per_token(cache: KvCache, parallelism: Parallelism = UNSPLIT) -> float:
    """Return the bytes that one token takes in the KV cache of the fullest GPU.

    2 L k d c (MHA k = a, GQA k < a, MQA k = 1); MLA L (r + d_rope) c, without the factor 2.  Exact for one GPU.
    L layers that keep a cache, k KV heads, d head_dim, c bytes a value, r the latent's rank.
    Sources: vLLM, arXiv 2309.06180, section 3; MLA: DeepSeek-V2, arXiv 2405.04434, table 1.
    """
    return sum(
        ceil(count / parallelism.pipeline) * _entry_bytes(kept, cache, parallelism) / kept.stride
        for kept, count in cache.kinds
    )


def _entry_bytes(kept: LayerCache, cache: KvCache, parallelism: Parallelism) -> float:
    """Return the bytes of one entry of a layer: ceil(k / t) heads a rank, at least one; a latent is on every rank."""
    heads = kept.heads if kept.latent else ceil(kept.heads / parallelism.tensor)
    if kept.fp8_bytes is not None and cache.value_bytes == 1:
        return heads * kept.fp8_bytes
    return heads * kept.values * (cache.value_bytes if kept.value_bytes is None else kept.value_bytes)


def kv_bytes_per_sequence(cache: KvCache, tokens: int, parallelism: Parallelism = UNSPLIT) -> float:
    """Return the bytes that a sequence of T tokens takes in the KV cache of the fullest GPU.

    sum over layers of min(T, window) x bytes a token and layer, T rounded up to whole pages, and the state of a
    sequence / t; under pipeline parallelism the largest stage, ceil(layers / p) of each kind.  Exact for one GPU, else
    a bound from above.
    Sources: Mistral 7B, arXiv 2310.06825, section 2 (windows); vLLM, arXiv 2309.06180 (pages); vLLM replicates KV
    heads where t > k.
    """
    kept = sum(
        ceil(count / parallelism.pipeline) * _entries(layer, tokens, cache) * _entry_bytes(layer, cache, parallelism)
        for layer, count in cache.kinds
    )
    return kept + cache.state_bytes / parallelism.group_gpus


def _entries(kept: LayerCache, tokens: int, cache: KvCache) -> int:
    """Return the entries that a layer keeps of a sequence, in whole pages."""
    held = tokens if kept.window is None else min(tokens, kept.window)
    return ceil(ceil(held / cache.block_tokens) * cache.block_tokens / kept.stride)


def tokens_in_budget(cache: KvCache, budget_bytes: float) -> int:
    """Return how many tokens fit into a budget, in whole pages: floor(budget / (bytes a token x page)) x page.

    Exact where no layer has a window; else a bound from below, since windows are ignored.
    Source: vLLM, arXiv 2309.06180, section 4; its log prints the number of pages.
    """
    page = kv_bytes_per_token(cache) * cache.block_tokens
    return floor(budget_bytes / page) * cache.block_tokens


def step_seconds(
    weights_bytes: float, kv_bytes: float, flops: float, *, bandwidth: float, peak_flops: float | None = None
) -> float:
    """Return the least time of one step, s: max(W_read / BW, FLOPs / peak) + B KV / BW.

    A bound: every weight and every cached token is read once a step. W_read, B KV and FLOPs are of one GPU of a
    tensor-parallel group; without a peak, arithmetic sets no bound. BW bytes a second (decimal), peak dense FLOP/s.
    Source: Pope et al., arXiv 2211.05102, section 2; kipply, Transformer Inference Arithmetic.
    """
    counting = flops / peak_flops if peak_flops else 0.0
    return max(weights_bytes / bandwidth, counting) + kv_bytes / bandwidth


def experts_read(experts: int, per_token: int, sequences: float) -> float:
    """Return the share of the experts' weights that a step of B sequences reads: 1 - (1 - e / E)^B.

    An estimate: routing is taken as uniform and independent. E experts, e of them per token. Derived here.
    """
    unread: float = (1 - per_token / experts) ** sequences
    return 1 - unread


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

With another, as with the former default of 0.90, they are captured in the memory that the utilization leaves free.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model as it is served, the same on every candidate of a placement.

    `sequence_bytes` are those of a sequence's cache over all GPUs of a copy where they are given, in place of `cache`.
    `embeddings` is their share of the parameters, 0 to 1, `replicated` the share of what every tensor rank holds whole.
    `step_bytes_per_token` is 6 (f + h); 0 where the widths are unknown. `pass_bytes` are the activations of one
    sequence, or image, of a model that keeps no cache.
    """

    weights_bytes: float
    cache: KvCache | None = None
    sequence_bytes: float | None = None
    layers: int | None = None
    embeddings: float = 0.0
    replicated: float = 0.0
    experts: ExpertShare = NO_EXPERTS
    step_bytes_per_token: float = 0.0
    pass_bytes: Range = ZERO


def cache_of_sequence(model: ServedModel, tokens: int, parallelism: Parallelism) -> float:
    """Return the bytes that the cache of a sequence takes on the fullest GPU: its part of the given, or as counted."""
    if model.sequence_bytes is not None:
        return model.sequence_bytes / parallelism.group_gpus
    return kv_bytes_per_sequence(model.cache, tokens, parallelism) if model.cache is not None else 0.0


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
    sequence = cache_of_sequence(model, load.context_tokens, parallelism) if load.sequences else 0.0
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


def serving_overhead(parallelism: Parallelism, *, usable_bytes: float | None = None, utilization: float = 0.0) -> Range:
    """Return the bytes that an engine takes on each GPU beside weights, KV cache and a step: an estimate.

    Runtime, + what depends on the usable memory where that is given, + CUDA graphs where the default utilization
    includes them, + buffers of tensor ranks. It is fitted to 30 start-up logs; the range has 27 of them.
    """
    runtime = SERVING_RUNTIME
    if usable_bytes is not None:
        runtime += overhead_by_memory(usable_bytes, utilization)
    graphs = GRAPHS if utilization == GRAPHS_UTILIZATION else ZERO
    return runtime + graphs + (TENSOR_RANK_BUFFERS if parallelism.gpus > 1 else ZERO)


def overhead_by_memory(usable_bytes: float, utilization: float) -> Range:
    """Return the bytes of the overhead that depend on a GPU's memory: an estimate.

    Share x usable memory, + the CUDA graphs that have no room in what a utilization other than the default leaves free,
    (1 - utilization) x usable memory. With more than the default an engine may be of either version, and SGLang has its
    graphs in what is left: the upper end has all.
    """
    runtime = SERVING_RUNTIME_SHARE.times(usable_bytes)
    if utilization == GRAPHS_UTILIZATION:
        return runtime
    beyond = max(0.0, GRAPHS.mid - (1 - utilization) * usable_bytes)
    most = GRAPHS.high if utilization > GRAPHS_UTILIZATION else beyond
    return runtime + Range(low=0.0, mid=beyond, high=most)


def max_sequences(
    model: ServedModel, load: ServingLoad, parallelism: Parallelism, budget: float, overhead: Range | None = None
) -> Range | None:
    """Return how many sequences of the load's context one copy serves at once; None where a sequence takes nothing.

    d floor((budget - W share - A_step - C) / KV of a sequence), never below 0.  An estimate, as A_step and C are.
    Source: vLLM, arXiv 2309.06180, section 4: the memory that profiling leaves is divided into pages.
    """
    cached = cache_of_sequence(model, load.context_tokens, parallelism)
    sequence = model.pass_bytes.times(1 / parallelism.gpus) + cached
    if not sequence.low:
        return None
    need, groups = inference_need(model, replace(load, sequences=0), parallelism, overhead), parallelism.data
    beside = need.total
    room = Range(low=budget - beside.high, mid=budget - beside.mid, high=budget - beside.low)
    ends = ((room.low, sequence.high), (room.mid, sequence.mid), (room.high, sequence.low))
    low, mid, high = (groups * max(0, floor(free / size)) for free, size in ends)
    return Range(low=low, mid=mid, high=high)
