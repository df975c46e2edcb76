"""What joins GPUs: the speed and the latency of all-reduces between tensor ranks and of hops between stages."""

from typing import Literal, NamedTuple

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

    def all_reduce_factor(self, ranks: int) -> float:
        """Return the bytes that a rank sends for each byte of an all-reduce: 2 (t - 1) / t, of a ring."""
        return 2 * (ranks - 1) / ranks


class Hop(NamedTuple):
    """Between pipeline stages: bytes a second, and seconds of latency."""

    bytes_per_s: float
    latency_s: float


def nvlink_gb_per_s(bandwidth_gb_per_s: float) -> float:
    """Return the speed of NVLink that GPUs of a memory bandwidth usually have, GB/s in both directions."""
    return next(speed for least, speed in NVLINK_BY_BANDWIDTH if bandwidth_gb_per_s >= least)


def tensor_link(kind: LinkKind, gb_per_s: float | None, bandwidth_gb_per_s: float) -> Link:
    """Return the link between tensor ranks; an unknown speed is that which such GPUs usually have."""
    if kind == "pcie":
        return Link((gb_per_s or PCIE_GB_PER_S) * 1e9 / 2, PCIE_LATENCY)
    return Link((gb_per_s or nvlink_gb_per_s(bandwidth_gb_per_s)) * 1e9 / 2, 1.0)


HOPS: dict[Network, Hop] = {"infiniband": Hop(50e9, 30e-6), "ethernet": Hop(10e9, 300e-6)}
"""Between VMs: 400 Gb/s of InfiniBand with RDMA, and 80 of 100 Gb/s through TCP, with the time to send and receive.

Assumed, not fitted: the vendor's bandwidths, and NCCL's latency over either, which is 10 to 30 µs over InfiniBand.
"""


def stage_hop(network: Network | None, link: Link) -> Hop:
    """Return the hop between stages: over the network between VMs, else over the link inside one."""
    return HOPS[network] if network is not None else Hop(link.bytes_per_s, 20e-6)
