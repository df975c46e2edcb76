"""The KV cache: what a sequence keeps of its tokens, under any attention, cut over GPUs or in pages."""

from dataclasses import dataclass
from math import ceil, floor

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.sharding import WHOLE, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """How a model's tokens are kept.

    `values_per_head` are 2 d (keys and values of one head); with `latent` there is one head of r + d_rope values that
    every tensor rank keeps whole. `block_tokens` is the page: 1 is no paging, vLLM's is 16.
    """

    full_layers: int
    windowed_layers: int = 0
    window_tokens: int = 0
    heads: int
    values_per_head: int
    latent: bool = False
    value_bytes: float = 2.0
    block_tokens: int = 1


def missing_for_cache(shape: Architecture) -> tuple[str, ...]:
    """Name the fields without which the KV cache is unknown."""
    own = ("kv_heads", "head_dim") if shape.kv_lora_rank is None else ("qk_rope_head_dim",)
    return shape.missing(*(("layers",) if shape.kv_layers is None else ()), *own)


def cache_of(shape: Architecture, *, value_bytes: float = 2.0, block_tokens: int = 1) -> KvCache:
    """Take from a shape that misses nothing (missing_for_cache is empty) how its tokens are kept."""
    (layers,) = shape.known("layers" if shape.kv_layers is None else "kv_layers")
    windowed = 0
    if shape.sliding_window is not None:
        windowed = layers if shape.sliding_layers is None else min(shape.sliding_layers, layers)
    heads, values = _kept_heads(shape)
    return KvCache(
        full_layers=layers - windowed,
        windowed_layers=windowed,
        window_tokens=shape.sliding_window or 0,
        heads=heads,
        values_per_head=values,
        latent=shape.kv_lora_rank is not None,
        value_bytes=value_bytes,
        block_tokens=block_tokens,
    )


def _kept_heads(shape: Architecture) -> tuple[int, int]:
    """How many heads a layer keeps of a token, and how many values of each."""
    if shape.kv_lora_rank is not None:
        return 1, sum(shape.known("kv_lora_rank", "qk_rope_head_dim"))
    heads, head_dim = shape.known("kv_heads", "head_dim")
    return heads, 2 * head_dim


def kv_bytes_per_token(cache: KvCache, split: Split = WHOLE) -> float:
    """Say how many bytes one token keeps, on the GPU that keeps most.

    2 L k d c (MHA k = a, GQA k < a, MQA k = 1); MLA L (r + d_rope) c, without the factor 2.  Exact for one GPU.
    L layers that keep a cache, k KV heads, d head_dim, c bytes a value, r the latent's rank.
    Sources: vLLM, arXiv 2309.06180, section 3; MLA: DeepSeek-V2, arXiv 2405.04434, table 1.
    """
    layers = ceil(cache.full_layers / split.pipeline) + ceil(cache.windowed_layers / split.pipeline)
    return layers * _layer_bytes(cache, split)


def _layer_bytes(cache: KvCache, split: Split) -> float:
    """One token of one layer: ceil(k / t) heads a rank, so never less than one; a latent is on every rank."""
    heads = 1 if cache.latent else ceil(cache.heads / split.tensor)
    return heads * cache.values_per_head * cache.value_bytes


def kv_bytes_per_sequence(cache: KvCache, tokens: int, split: Split = WHOLE) -> float:
    """Say how many bytes a sequence of T tokens keeps, on the GPU that keeps most.

    sum over layers of min(T, window) x bytes a token and layer, T rounded up to whole pages; under pipeline
    parallelism the largest stage, ceil(layers / p) of either kind.  Exact for one GPU, else a bound from above.
    Sources: Mistral 7B, arXiv 2310.06825, section 2 (windows); vLLM, arXiv 2309.06180 (pages); vLLM replicates KV
    heads where t > k.
    """
    full = ceil(cache.full_layers / split.pipeline) * _paged(tokens, cache)
    windowed = ceil(cache.windowed_layers / split.pipeline) * _paged(min(tokens, cache.window_tokens), cache)
    return (full + windowed) * _layer_bytes(cache, split)


def _paged(tokens: int, cache: KvCache) -> int:
    return ceil(tokens / cache.block_tokens) * cache.block_tokens


def tokens_in_budget(cache: KvCache, budget_bytes: float, split: Split = WHOLE) -> int:
    """Say how many tokens fit into a budget, in whole pages: floor(budget / (bytes a token x page)) x page.

    Exact where no layer has a window; else a bound from below, since windows are not counted on.
    Source: vLLM, arXiv 2309.06180, section 4; its log prints the number of pages.
    """
    page = kv_bytes_per_token(cache, split) * cache.block_tokens
    return floor(budget_bytes / page) * cache.block_tokens
