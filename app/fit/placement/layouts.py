"""Into how many parts a model can be cut on VMs of one kind: tensor ranks, pipeline stages, copies."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from app.fit.formulas.sharding import Split
from app.fit.placement.blocks import Blocked

STAGES = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
"""Numbers of pipeline stages that are tried; more than 64 are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a cut must respect: heads, KV heads, layers, widths of MLPs and of blocks; and the parts that are asked for.

    None is unknown, or not asked for. A latent of MLA has no KV heads to be cut.
    """

    heads: int | None = None
    kv_heads: int | None = None
    widths: tuple[int, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    layers: int | None = None
    tensor: int | None = None
    pipeline: int | None = None

    @property
    def fixed(self) -> Split:
        """The split that is asked for; 1 where nothing is."""
        return Split(tensor=self.tensor or 1, pipeline=self.pipeline or 1)


class Way(NamedTuple):
    """A split, and how it lies on VMs: so many copies on so many VMs, and again on as many more."""

    split: Split
    copies: int
    nodes: int


def why_not(cut: Cut, tensor: int) -> str | None:
    """Say why a layer cannot be cut over so many ranks; None where it can.

    Heads are dealt out whole, KV heads dealt out or replicated whole, and the MLP cut evenly.
    Source: vLLM refuses the rest, vllm/config/model.py and vllm/distributed/utils.py.
    """
    if cut.heads is not None and cut.heads % tensor:
        return f"{tensor} tensor ranks do not divide {cut.heads} heads"
    if cut.kv_heads is not None and cut.kv_heads % tensor and tensor % cut.kv_heads:
        return f"{cut.kv_heads} KV heads can neither be dealt out to nor replicated on {tensor} tensor ranks"
    for width in cut.widths:
        if width % tensor:
            return f"{tensor} tensor ranks do not divide the MLP's width {width}"
    return None


def why_no_blocks(cut: Cut, tensor: int) -> str | None:
    """Say why quantized blocks cannot be dealt out whole to so many ranks; None where they can."""
    return next((why for one in cut.blocked if (why := one.why_not(tensor)) is not None), None)


def divides(cut: Cut, tensor: int) -> bool:
    """Whether a layer can be cut over so many ranks."""
    return why_not(cut, tensor) is None and why_no_blocks(cut, tensor) is None


@lru_cache(maxsize=1024)
def ways(cut: Cut, gpus: int, reach: int, nodes: int) -> tuple[Way, ...]:
    """List the splits that VMs of so many GPUs allow, on up to so many VMs: fewest stages first, then most ranks."""
    ranks = _tensors(cut, gpus, reach)
    stages = STAGES if cut.pipeline is None else (cut.pipeline,)
    tried = [p for p in stages if cut.layers is None or p <= cut.layers]
    return tuple(way for p in tried for t in ranks if (way := lie(Split(tensor=t, pipeline=p), gpus)).nodes <= nodes)


def _tensors(cut: Cut, gpus: int, reach: int) -> list[int]:
    if cut.tensor is not None:
        return [cut.tensor] if cut.tensor <= reach and divides(cut, cut.tensor) else []
    whole = cut.heads if cut.heads is not None else max(gpus, reach)
    return [t for t in range(reach, 0, -1) if whole % t == 0 and divides(cut, t)]


def lie(split: Split, gpus: int) -> Way:
    """Lay copies on VMs of so many GPUs: several on one, or one on several, whose stages never share a VM's rest."""
    if split.gpus <= gpus:
        return Way(split, gpus // split.gpus, 1)
    if split.tensor <= gpus:
        return Way(split, 1, ceil(split.pipeline / (gpus // split.tensor)))
    return Way(split, 1, split.pipeline * ceil(split.tensor / gpus))
