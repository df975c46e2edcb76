"""How a model is cut over GPUs: tensor and pipeline parallelism, and the share of the GPU that holds most."""

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One copy of a model over `tensor` x `pipeline` GPUs."""

    tensor: int = 1
    pipeline: int = 1

    @property
    def gpus(self) -> int:
        """How many GPUs hold the copy."""
        return self.tensor * self.pipeline


WHOLE = Split()


def largest_share(split: Split, *, layers: int | None = None, embeddings: float = 0.0) -> float:
    """Say which share of the parameters the GPU that holds most has, 0 to 1.

    p = 1: 1 / t.  p > 1: ((1 - m) ceil(L / p) / L + m) / t: the largest stage has ceil(L / p) layers, and one end
    stage has embeddings, at most all m of them.  Exact for p = 1, else a bound from above. t tensor, p pipeline,
    L layers, m the embeddings' share of the parameters.
    Source: Megatron-LM places embeddings on the end stages (arXiv 2104.04473).
    """
    if split.pipeline == 1:
        return 1 / split.tensor
    stage = 1 / split.pipeline if layers is None else ceil(layers / split.pipeline) / layers
    return ((1 - embeddings) * stage + embeddings) / split.tensor
