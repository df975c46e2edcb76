"""Columns of texts, of which there are few different ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of texts: the different ones, and for each size the index of its own."""

    values: Sequence[str | None]
    codes: NDArray[np.int32] | NDArray[np.int8]
    _places: Mapping[str | None, int] = field(init=False)
    _alphabetic: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare for looking texts up, and for counting them."""
        object.__setattr__(self, "_places", {value: place for place, value in enumerate(self.values)})
        ordered = sorted(self._places, key=lambda value: (value is None, value or ""))
        object.__setattr__(self, "_alphabetic", np.array([self._places[value] for value in ordered], dtype=np.int64))

    def is_any_of(self, texts: Iterable[str]) -> Mask:
        """Return which sizes have one of some texts."""
        found = [self._places[text] for text in set(texts) if text in self._places]
        return reduce(or_, (self.codes == code for code in found), np.zeros(len(self.codes), dtype=bool))

    def among(self, wanted: Sequence[bool] | Mask) -> Mask:
        """Return which sizes have one of the values that are wanted."""
        mask: Mask = np.asarray(wanted, dtype=bool)[self.codes]
        return mask

    def count(self, at: NDArray[np.int64]) -> Iterator[tuple[str | None, int]]:
        """Yield the texts that some sizes have, and how many have each: most first, then by text, unknown last."""
        counted = np.bincount(self.codes[at], minlength=len(self.values))[self._alphabetic]
        order = np.argsort(-counted, kind="stable")[: np.count_nonzero(counted)]
        places, counts = self._alphabetic[order].tolist(), counted[order].tolist()
        return zip(map(self.values.__getitem__, places), counts, strict=True)


def encode_texts(texts: Sequence[str | None]) -> Codes:
    """Return a column of texts with the code of each."""
    places: dict[str | None, int] = {}
    for text in texts:
        places.setdefault(text, len(places))
    return Codes(tuple(places), map_values(texts, places))


def map_values(column: Sequence[Any], values: Mapping[Any, int]) -> NDArray[np.int32]:
    """Return the number of each value of a column."""
    return np.fromiter(map(values.__getitem__, column), dtype=np.int32, count=len(column))
