"""The sizes and prices of a revision as columns of numbers, for what must look at all of them.

Loaded by the first question that needs them, and kept as long as the revision is current. 100,000 sizes take 80 MB,
the offers of an OS and a purchase model 12 bytes each.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Integer, bindparam, func, literal_column, select

from app.catalog.fields import SIZE_FLAGS
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.price_scope import (
    GPU,
    OFFER,
    SIZE,
    gpu,
    gpu_slice_gib,
    local_disk_gib,
    size,
    whole_gpu_gib,
)
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Row, Statement

Mask = NDArray[np.bool_]
Numbers = NDArray[np.float64]

_TEXTS = {
    **{name: size[name] for name in ("series_id", "category", "arch", "gpu_model", "gpu_vendor", "gpu_id")},
    "gpu_family": gpu.family,
}
_NUMBERS = {
    **{name: size[name] for name in ("gpu_memory_gib", "gpu_memory_gib_per_gpu", "gpu_count", "vcpus", "memory_gib")},
    **{name: size[name] for name in ("network_mbps", "infiniband_gbps")},
    "local_disk_gib": local_disk_gib(),
    "gpu_slice_gib": gpu_slice_gib(),
    "whole_gpu_gib": whole_gpu_gib(),
}
_FLAGS = ("verified", "disputed", "infiniband", "nvlink", "preview", "withdrawn", *SIZE_FLAGS)
_LINES = {"key": size.key, "name": func.lower(size.name), "search_text": size.search_text}
_COLUMNS = {**_LINES, "retirement_date": size.retirement_date, **_TEXTS, **_NUMBERS}
_ROWS = 5_000
"""So many sizes are read at once, so that no more of them exist as rows."""
_NEVER = date.max.toordinal()


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of texts: the different ones, and for each size the index of its own."""

    values: Sequence[str | None]
    codes: NDArray[np.int32]

    def among(self, wanted: Sequence[bool]) -> Mask:
        """Return which sizes have one of the values that are wanted."""
        mask: Mask = np.array(wanted, dtype=bool)[self.codes]
        return mask


class Lines:
    """A text of each size, which are searched as the lines of one."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._text = "\n".join(lines)
        self._starts = np.cumsum([0, *(len(line) + 1 for line in lines)][:-1])

    def match(self, pattern: str) -> Mask:
        """Return which lines a regular expression finds something in; it must not match the end of a line."""
        found = np.array([one.start() for one in re.finditer(pattern, self._text, re.MULTILINE)], dtype=np.int64)
        mask = np.zeros(len(self._starts), dtype=bool)
        mask[np.searchsorted(self._starts, found, side="right") - 1] = True
        return mask

    def contain(self, word: str) -> Mask:
        """Return which lines have a word."""
        return self.match(re.escape(word))


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeColumns:
    """All sizes in the order of their keys. Unknown numbers are NaN, unknown flags -1; `retires` is a day's ordinal."""

    positions: Mapping[str, int]
    lines: Mapping[str, Lines]
    texts: Mapping[str, Codes]
    numbers: Mapping[str, Numbers]
    flags: Mapping[str, NDArray[np.int8]]
    retires: NDArray[np.int32]

    def is_flag(self, name: str, value: bool) -> Mask:
        """Return which sizes have a flag that is known to be true, or false."""
        mask: Mask = self.flags[name] == int(value)
        return mask

    def status(self, today: date) -> Codes:
        """Return the status of each size on a day, as `status_of` does in SQL."""
        retired, announced = self.retires <= today.toordinal(), self.retires < _NEVER
        conditions = [retired, self.is_flag("withdrawn", True), announced, self.is_flag("preview", True)]
        codes = np.select(conditions, range(4), default=4).astype(np.int32)
        return Codes(("retired", "withdrawn", "retiring", "preview", "current"), codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferColumns:
    """The offers for an OS by region: the position of each size that has one, and its price by one purchase model.

    An unknown price is infinity. `any_region` is the code under which each size has its cheapest offer.
    """

    any_region: str
    sizes: Mapping[str, NDArray[np.int32]]
    usd: Mapping[str, Numbers]

    def ranks(self, count: int, regions: Sequence[str]) -> Numbers:
        """Return the price of each of `count` sizes, the least of several regions; NaN for one without an offer."""
        ranks = np.full(count, np.nan)
        for region in regions or (self.any_region,):
            if region in self.sizes:
                at = self.sizes[region]
                ranks[at] = np.fmin(ranks[at], self.usd[region])
        return ranks


def load_sizes(snapshot: CatalogSnapshot) -> QueryPlan[SizeColumns]:
    """Load the columns of all sizes, or return those that are kept."""
    return snapshot.keep("sizes", _read_sizes)


def load_offers(snapshot: CatalogSnapshot, sizes: SizeColumns, os: str, purchase: str) -> QueryPlan[OfferColumns]:
    """Load the offers for an OS with their prices by a purchase model, or return those that are kept."""
    return snapshot.keep(
        ("offers", os, purchase), lambda: _read_offers(sorted(snapshot.regions), sizes.positions, os, purchase)
    )


def _read_sizes() -> QueryPlan[SizeColumns]:
    chunks: list[Mapping[str, Any]] = []
    codes: dict[str, dict[str | None, int]] = {name: {} for name in _TEXTS}
    after = ""
    while True:
        rows = yield BoundStatement(_sizes_statement(), {"after": after})
        if rows:
            chunks.append(_to_chunk(rows, codes))
            after = rows[-1][0]
        if len(rows) < _ROWS:
            break

    def joined(name: str, kind: type) -> NDArray[Any]:
        return np.concatenate([chunk[name] for chunk in chunks] or [np.array([], dtype=kind)])

    lines = {name: [line for chunk in chunks for line in chunk[name]] for name in _LINES}
    return SizeColumns(
        positions={key: position for position, key in enumerate(lines["key"])},
        lines={name: Lines(each) for name, each in lines.items()},
        texts={name: Codes(tuple(known), joined(name, np.int32)) for name, known in codes.items()},
        numbers={name: joined(name, np.float64) for name in _NUMBERS},
        flags={name: joined(f"is_{name}", np.int8) for name in _FLAGS},
        retires=joined("retirement_date", np.int32),
    )


def _to_chunk(rows: Sequence[Row], codes: Mapping[str, dict[str | None, int]]) -> Mapping[str, Any]:
    """Turn rows into the columns of some sizes, with the codes of texts that were met so far."""
    columns: Iterator[tuple[Any, ...]] = zip(*rows, strict=True)
    chunk: dict[str, Any] = {}
    for name, column in zip((*_COLUMNS, *(f"is_{flag}" for flag in _FLAGS)), columns, strict=True):
        if name in codes:
            known = codes[name]
            chunk[name] = np.array([known.setdefault(value, len(known)) for value in column], dtype=np.int32)
        elif name in _NUMBERS:
            chunk[name] = np.array(column, dtype=np.float64)  # None becomes NaN
        elif name in _LINES:
            chunk[name] = column
        elif name == "retirement_date":
            chunk[name] = np.array([day.toordinal() if day else _NEVER for day in column], dtype=np.int32)
        else:
            chunk[name] = np.array([-1 if value is None else value for value in column], dtype=np.int8)
    return chunk


def _read_offers(
    regions: Sequence[str], positions: Mapping[str, int], os: str, purchase: str
) -> QueryPlan[OfferColumns]:
    sizes: dict[str, NDArray[np.int32]] = {}
    usd: dict[str, Numbers] = {}
    for region in (*regions, ANY_REGION[purchase]):
        rows = yield BoundStatement(_offers_statement(purchase), {"region": region, "os": os})
        known = [(positions[key], rank) for key, rank in rows if key in positions]
        if known:
            sizes[region] = np.array([position for position, _ in known], dtype=np.int32)
            usd[region] = np.array([rank for _, rank in known], dtype=np.float64)
    return OfferColumns(any_region=ANY_REGION[purchase], sizes=sizes, usd=usd)


@lru_cache(maxsize=1)
def _sizes_statement() -> Statement:
    columns = [column.label(name) for name, column in _COLUMNS.items()]
    columns += [size[name].label(f"is_{name}") for name in _FLAGS]
    query = select(*columns).join_from(SIZE, GPU, gpu.id == size.gpu_id, isouter=True)
    after = bindparam("after", type_=size.key.type)
    return Statement(query.where(size.key > after).order_by(size.key).limit(literal_column(str(_ROWS), Integer)))


@lru_cache(maxsize=8)
def _offers_statement(purchase: str) -> Statement:
    offer = OFFER.c
    binds = {name: bindparam(name, type_=offer[name].type) for name in ("region", "os")}
    query = select(offer.size_key, offer[f"{purchase}_rank_usd"])
    return Statement(query.where(offer.region == binds["region"], offer.os == binds["os"]))
