"""Layers that differ from each other: the matrices of each, its other parameters, and what it keeps of a sequence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.fit.formulas.quantization import WeightPart


class LayerMatrix(NamedTuple):
    """A weight matrix of a layer, by its name within the layer; `copies` of it, one for each expert."""

    name: str
    part: WeightPart
    rows: int
    columns: int
    copies: int = 1

    @property
    def params(self) -> int:
        """Weights of all copies."""
        return self.rows * self.columns * self.copies


class LayerCache(NamedTuple):
    """What a layer keeps of each token: `values` for each of `heads`.

    `window` is the number of tokens that are kept (None: all), `stride` how many tokens share one entry. A `latent` is
    on every tensor rank, whereas heads are divided. `value_bytes` holds where engines store it in one type only,
    `fp8_bytes` is the size of an entry with scales where the cache is kept in FP8; None follows the cache's type.
    """

    heads: int
    values: int
    window: int | None = None
    stride: int = 1
    latent: bool = False
    value_bytes: float | None = None
    fp8_bytes: int | None = None


class LayerPart(NamedTuple):
    """A part of a layer, or a whole one: its matrices, other parameters, caches, and bytes of state of a sequence.

    `others` are norms, biases, convolutions and routers. A state does not grow with the sequence, and its heads are
    divided over the tensor ranks.
    """

    matrices: tuple[LayerMatrix, ...] = ()
    others: int = 0
    caches: tuple[LayerCache, ...] = ()
    state_bytes: int = 0

    def join(self, *parts: "LayerPart") -> "LayerPart":
        """Return this part together with others."""
        whole = (self, *parts)
        return LayerPart(
            matrices=tuple(matrix for part in whole for matrix in part.matrices),
            others=sum(part.others for part in whole),
            caches=tuple(cache for part in whole for cache in part.caches),
            state_bytes=sum(part.state_bytes for part in whole),
        )

    @property
    def params(self) -> int:
        """All parameters."""
        return self.others + sum(matrix.params for matrix in self.matrices)

    @property
    def expert_params(self) -> int:
        """Parameters of all routed experts."""
        return sum(matrix.params for matrix in self.matrices if matrix.part == "experts")


SELECTED_ENTRIES = 2048
"""Entries of the cache that sparse attention reads for a token: `index_topk` of DeepSeek-V3.2."""


def is_sparse(layer: LayerPart) -> bool:
    """Whether a layer selects what it attends to by an index, which it keeps besides."""
    return sum(cache.window is None for cache in layer.caches) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Equal layers: their numbers, from 0, and the content of one of them."""

    numbers: tuple[int, ...]
    content: LayerPart

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.numbers)


def group_layers(layers: Sequence[LayerPart]) -> tuple[LayerGroup, ...]:
    """Group layers of equal content, in the order in which each kind first appears."""
    numbers: dict[LayerPart, list[int]] = {}
    for number, content in enumerate(layers):
        numbers.setdefault(content, []).append(number)
    return tuple(LayerGroup(numbers=tuple(found), content=content) for content, found in numbers.items())


def count_state_bytes(groups: Iterable[LayerGroup]) -> int:
    """Return the bytes of state that all layers keep of a sequence, whatever its length."""
    return sum(group.count * group.content.state_bytes for group in groups)
