"""Links of GPUs; FLOPs, time and cost: training by the 6 N D rule, the exact count of a GPT, prefill, and money."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple

from app.fit.formulas.architecture import SELECTED_ENTRIES, Architecture, is_sparse

LinkKind = Literal["nvlink", "pcie"]
Network = Literal["infiniband", "ethernet"]

NVLINK_BY_BANDWIDTH = ((6000.0, 1800.0), (2500.0, 900.0), (0.0, 600.0))
"""Speed of NVLink or xGMI, GB/s in both directions, assumed from the memory bandwidth of a GPU, GB/s, from which on.

B200 8,000 and 1,800; H100, H200 and MI300X 3,350 to 5,300 and 896 to 900; A100 1,555 to 2,039 and 600.
"""

PCIE_GB_PER_S = 64.0
"""PCIe 4 x16, both directions."""

PCIE_LATENCY = 5.0
"""Latency of an all-reduce over PCIe, over that over NVLink.

42 and 54 µs for 8 bytes over eight GPUs (NVIDIA/nccl, issues 1530 and 1439); the fit has 3.2 µs a doubling of ranks
over NVLink, 10 over eight, and its issue 1259 measured 6 over two.
"""


class Link(NamedTuple):
    """Between tensor ranks: bytes a second in one direction, and latency over that of NVLink."""

    bytes_per_s: float
    latency_factor: float


class Hop(NamedTuple):
    """The way of one GPU to others that no link joins: bytes a second, and seconds of latency."""

    bytes_per_s: float
    latency_s: float


def tensor_link(kind: LinkKind, gb_per_s: float | None, bandwidth_gb_per_s: float) -> Link:
    """Return the link between tensor ranks; an unknown speed is that which such GPUs usually have."""
    if kind == "pcie":
        return Link((gb_per_s or PCIE_GB_PER_S) * 1e9 / 2, PCIE_LATENCY)
    usual = next(speed for least, speed in NVLINK_BY_BANDWIDTH if bandwidth_gb_per_s >= least)
    return Link((gb_per_s or usual) * 1e9 / 2, 1.0)


USUAL_NETWORK_GBPS: dict[Network, float] = {"infiniband": 400.0, "ethernet": 12.5}
"""What a GPU usually has of the network between VMs, Gbit/s: as in a DGX H100, and an eighth of 100 Gbit/s."""

_NETWORK_SHARES: dict[Network, float] = {"infiniband": 1.0, "ethernet": 0.8}
_NETWORK_LATENCIES: dict[Network, float] = {"infiniband": 30e-6, "ethernet": 300e-6}
"""The share of a rate that is reached, and the time to send and receive, s: with RDMA, and through TCP.

Assumed, not fitted; NCCL's latency over InfiniBand is 10 to 30 µs.
"""


def network_hop(network: Network, gbps: float | None) -> Hop:
    """Return the way of a GPU over the network between VMs; `gbps` is what it has of that, None for what is usual."""
    rate = USUAL_NETWORK_GBPS[network] if gbps is None else gbps
    return Hop(rate * 1e9 / 8 * _NETWORK_SHARES[network], _NETWORK_LATENCIES[network])


def stage_hop(network: Network | None, gbps: float | None, link: Link) -> Hop:
    """Return the hop between stages: over the network between VMs, else over the link inside one."""
    return network_hop(network, gbps) if network is not None else Hop(link.bytes_per_s, 20e-6)


FLOPS_PER_PARAM = {"full": 6.0, "lora": 4.0, "qlora": 4.0}
"""FLOPs per parameter and token: forward 2, backward 4, or 2 where the gradients of frozen weights are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GptShape:
    """Dimensions that the exact count of a GPT's FLOPs needs."""

    layers: int
    hidden: int
    vocab: int
    sequence_tokens: int


def train_flops(active_params: float, tokens: float, flops_per_param: float = 6.0) -> float:
    """Return the FLOPs of training: 6 N_act D (full recomputation: 8; LoRA: 4); an estimate.

    N_act parameters a token passes through, D tokens.  Source: Kaplan et al., arXiv 2001.08361, section 2.1; 8 N D:
    Narayanan et al., arXiv 2104.04473, section 5.1.
    """
    return flops_per_param * active_params * tokens


def attention_flops_per_token(layers: int, hidden: int, sequence_tokens: int) -> float:
    """Return the FLOPs that attention adds for each token of training: 12 L h s; an estimate (causality not counted).

    Source: MosaicML llm-foundry, scripts/train/benchmarking; Chowdhery et al., PaLM, arXiv 2204.02311, appendix B.
    """
    return 12.0 * layers * hidden * sequence_tokens


def gpt_iteration_flops(gpt: GptShape, global_batch: int) -> float:
    """Return the FLOPs of one iteration of a GPT: 72 B L s h^2 (1 + s / 6h + V / 12hL); exact for MHA with f = 4h.

    Source: Korthikanti et al., arXiv 2205.05198, appendix A, equation 7.
    """
    return 72.0 * global_batch * gpt.layers * gpt.sequence_tokens * gpt.hidden**2 * _gpt_factor(gpt, attention=6)


def hfu_over_mfu(gpt: GptShape) -> float:
    """Return hardware over model FLOPs with selective recomputation; exact.

    (1 + s / 3h + V / 12hL) / (1 + s / 6h + V / 12hL).
    Source: Korthikanti et al., arXiv 2205.05198, appendix A, equations 7 and 8.
    """
    return _gpt_factor(gpt, attention=3) / _gpt_factor(gpt, attention=6)


def _gpt_factor(gpt: GptShape, *, attention: int) -> float:
    scores = gpt.sequence_tokens / (attention * gpt.hidden)
    return 1 + scores + gpt.vocab / (12 * gpt.hidden * gpt.layers)


def prefill_flops(active_params: float, prompt_tokens: float) -> float:
    """Return the FLOPs of prefill, that is of reading a prompt: 2 N_act T; a bound from below, attention not counted.

    Source: Google DeepMind, How to Scale Your Model, on inference.
    """
    return 2.0 * active_params * prompt_tokens


def prompt_attention_flops(shape: Architecture, prompt_tokens: float) -> float:
    """Return the FLOPs of a prompt's attention: 2 a (d_qk + d_v) T^2 / 2 a layer; 0 where heads or layers are unknown.

    Causal: a token attends to those before it, in a layer with a window to the window at most, in one with sparse
    attention to the selected ones. A layer that keeps no KV cache (linear attention) has none.  a heads, d_qk and d_v
    their widths, T tokens.
    Source: Dao, FlashAttention-2, arXiv 2307.08691, section 4.1 (4 T^2 d a, halved by the causal mask).
    """
    layers, width = shape.layers if shape.kv_layers is None else shape.kv_layers, None
    if shape.kv_lora_rank is not None and shape.v_head_dim is not None:
        width = (shape.qk_nope_head_dim or 0) + (shape.qk_rope_head_dim or 0) + shape.v_head_dim
    elif shape.head_dim is not None:
        width = 2 * shape.head_dim
    if layers is None or shape.heads is None or width is None:
        return 0.0
    windowed = 0
    if shape.sliding_window is not None:
        windowed = layers if shape.sliding_layers is None else min(shape.sliding_layers, layers)
    seen = prompt_tokens / 2
    sparse = min(sum(group.count for group in shape.groups if is_sparse(group.content)), layers - windowed)
    attended = (layers - windowed - sparse) * seen + sparse * min(seen, SELECTED_ENTRIES)
    attended += windowed * min(seen, shape.sliding_window or 0)
    return 2.0 * shape.heads * width * prompt_tokens * attended


HOURS_PER_MONTH = Decimal(730)
"""A twelfth of the 8,760 hours of a year."""
MILLION = Decimal(1_000_000)
SECONDS_PER_HOUR = Decimal(3600)


def per_million_tokens(usd_per_hour: Decimal, tokens_per_s: Decimal) -> Decimal:
    """Return the cost of a million tokens, USD: cost per hour / (tokens/s x 3600) x 10^6; as exact as the rate."""
    return usd_per_hour / (tokens_per_s * SECONDS_PER_HOUR) * MILLION
