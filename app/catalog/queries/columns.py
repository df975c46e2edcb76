"""The sizes of a revision as columns of numbers, for what must look at all of them.

Loaded by the first question that needs them, and kept as long as the revision is current: 100,000 sizes take 80 MB.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Integer, String, bindparam, func, literal_column, select, type_coerce

from app.catalog.fields import SIZE_FLAGS
from app.catalog.queries.codes import Codes, Mask, map_values
from app.catalog.queries.column_needs import FILTERED_NUMBERS, SIZES, sort_column_key
from app.catalog.queries.price_scope import (
    GPU,
    SIZE,
    gpu,
    gpu_slice_gib,
    local_disk_gib,
    size,
    whole_gpu_gib,
)
from app.catalog.queries.size_texts import SizeTexts
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Row, Statement

T = TypeVar("T")
Numbers = NDArray[np.float64]

_TEXTS = {
    **{name: size[name] for name in ("series_id", "category", "arch", "gpu_model", "gpu_vendor", "gpu_id")},
    "gpu_family": gpu.family,
}
_NUMBERS = {
    **{name: size[name] for name in (*FILTERED_NUMBERS, "gpu_count_numerator", "gpu_count_denominator")},
    "local_disk_gib": local_disk_gib(),
    "gpu_slice_gib": gpu_slice_gib(),
    "whole_gpu_gib": whole_gpu_gib(),
}
_FLAGS = ("verified", "disputed", "infiniband", "nvlink", "preview", "withdrawn", *SIZE_FLAGS)
_NAMES = {"key": size.key, "name": func.lower(size.name), "search_text": size.search_text}
_COLUMNS = {**_NAMES, "retirement_date": type_coerce(size.retirement_date, String), **_TEXTS, **_NUMBERS}
_MASKS = 32
_ROWS = 5_000
"""So many sizes are read at once, so that no more of them exist as rows."""
_NEVER = date.max.toordinal()


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class SizeColumns:
    """All sizes in the order of their keys. Unknown numbers are NaN, unknown flags -1; `retires` is a day's ordinal."""

    positions: Mapping[str, int]
    keys: Sequence[str]
    names: SizeTexts
    texts: Mapping[str, Codes]
    numbers: Mapping[str, Numbers]
    flags: Mapping[str, NDArray[np.int8]]
    retires: NDArray[np.int32]
    order: Numbers
    _masks: "OrderedDict[Hashable, Any]" = field(default_factory=OrderedDict)

    def is_flag(self, name: str, value: bool) -> Mask:
        """Return which sizes have a flag that is known to be true, or false."""
        mask: Mask = self.flags[name] == int(value)
        return mask

    def status(self, today: date) -> Codes:
        """Return the status of each size on a day, as `status_of` does in SQL."""
        return self.remember(("status", today), lambda: self._status(today))

    def remember(self, key: Hashable, find: Callable[[], T]) -> T:
        """Return what was found lately, or find it: a mask of all sizes by a filter that takes long."""
        kept: T | None = self._masks.get(key)
        if kept is None:
            kept = self._masks[key] = find()
            if len(self._masks) > _MASKS:
                with suppress(KeyError):
                    self._masks.popitem(last=False)
        with suppress(KeyError):  # another thread may have dropped it just now
            self._masks.move_to_end(key)
        return kept

    def forget(self) -> None:
        """Drop what is remembered, as for measuring how long it takes to find."""
        self._masks.clear()

    def _status(self, today: date) -> Codes:
        retired, announced = self.retires <= today.toordinal(), self.retires < _NEVER
        conditions = [retired, self.is_flag("withdrawn", True), announced, self.is_flag("preview", True)]
        # The first that holds counts most. Products take a fifth of the time of np.select.
        weights = (condition * np.int8(len(conditions) - code) for code, condition in enumerate(conditions))
        codes = np.int8(len(conditions)) - reduce(np.maximum, weights)
        return Codes(("retired", "withdrawn", "retiring", "preview", "current"), codes)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SortColumn:
    """A figure of each size, NaN where unknown; for texts their place among `texts`, for dates the ordinal."""

    values: Numbers
    texts: Sequence[str] | None = None


def load_sizes(snapshot: CatalogSnapshot) -> QueryPlan[SizeColumns]:
    """Load the columns of all sizes, or return those that are kept."""
    return snapshot.keep(SIZES, _read_sizes)


def load_sort_column(snapshot: CatalogSnapshot, column: str) -> QueryPlan[SortColumn]:
    """Load a column of sizes to sort them by, or return the one that is kept."""
    return snapshot.keep(sort_column_key(column), lambda: _read_sort_column(column))


def _read_sort_column(column: str) -> QueryPlan[SortColumn]:
    values: list[Any] = []
    after = ""
    while True:
        rows = yield BoundStatement(_sort_column_statement(column), {"after": after})
        values += [row[1] for row in rows]
        if len(rows) < _ROWS:
            break
        after = rows[-1][0]
    known = next((value for value in values if value is not None), None)
    if isinstance(known, str):
        texts = tuple(sorted({value for value in values if value is not None}))
        places = {text: place for place, text in enumerate(texts)}
        return SortColumn(np.array([places.get(value) for value in values], dtype=np.float64), texts)
    if isinstance(known, date):
        values = [None if day is None else day.toordinal() for day in values]
    return SortColumn(np.array(values, dtype=np.float64))


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

    # Tuples of texts, which the garbage collector does not look through, as it does through lists.
    keys, *others = (tuple(text for chunk in chunks for text in chunk[name]) for name in _NAMES)
    return SizeColumns(
        positions={key: position for position, key in enumerate(keys)},
        keys=keys,
        order=np.arange(len(keys), dtype=np.float64),
        names=SizeTexts(keys, *others),
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
            for value in dict.fromkeys(column):
                known.setdefault(value, len(known))
            chunk[name] = map_values(column, known)
        elif name in _NUMBERS:
            chunk[name] = np.array(column, dtype=np.float64)  # None becomes NaN
        elif name in _NAMES:
            chunk[name] = column
        elif name == "retirement_date":
            chunk[name] = map_values(column, {day: _ordinal(day) for day in set(column)})
        else:
            chunk[name] = np.array([-1 if value is None else value for value in column], dtype=np.int8)
    return chunk


def _ordinal(day: date | str | None) -> int:
    """Return the ordinal of a day as a driver returns it: SQLite's has no dates."""
    if day is None:
        return _NEVER
    return (date.fromisoformat(day) if isinstance(day, str) else day).toordinal()


@lru_cache(maxsize=1)
def _sizes_statement() -> Statement:
    """Build the statement; dates and flags are left as the driver returns them, since converting each takes long."""
    columns = [column.label(name) for name, column in _COLUMNS.items()]
    columns += [type_coerce(size[name], Integer).label(f"is_{name}") for name in _FLAGS]
    query = select(*columns).join_from(SIZE, GPU, gpu.id == size.gpu_id, isouter=True)
    after = bindparam("after", type_=size.key.type)
    return Statement(query.where(size.key > after).order_by(size.key).limit(literal_column(str(_ROWS), Integer)))


@lru_cache(maxsize=64)
def _sort_column_statement(column: str) -> Statement:
    after = bindparam("after", type_=size.key.type)
    query = select(size.key, size[column]).where(size.key > after).order_by(size.key)
    return Statement(query.limit(literal_column(str(_ROWS), Integer)))
