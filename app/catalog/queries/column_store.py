"""Keeps columns of a revision up to a bound of memory, and notes which ones would have answered a question sooner."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from threading import Lock
from typing import Any, Protocol, TypeVar, cast

from app.catalog.queries.pagination import current_revision
from app.db.statements import QueryPlan

MAX_COLUMN_BYTES = 128 * 2**20
"""Columns beyond so many bytes in all are dropped, the least recently used first; they can be loaded again."""

QUESTIONS_BEFORE_LOADING = 32
"""A small catalog answers a question by SQL in some milliseconds, and loads columns when so many would have helped."""


class Column(Protocol):
    """One column or more."""

    @property
    def nbytes(self) -> int:
        """Return the memory that they take."""


ColumnT = TypeVar("ColumnT", bound=Column)
Load = Callable[[], QueryPlan[Any]]


class ColumnStore:
    """The columns of one revision. Threads may read and load at once; what is kept is read without a lock."""

    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._kept: OrderedDict[Hashable, Column] = OrderedDict()
        self._loading = Lock()
        self._wanted: dict[Hashable, Load] = {}
        self._asked = 0

    @property
    def nbytes(self) -> int:
        """Return the memory that all columns take."""
        return sum(column.nbytes for column in list(self._kept.values()))

    def has(self, keys: Iterable[Hashable]) -> bool:
        """Return whether all of these are kept."""
        return all(key in self._kept for key in keys)

    def keep(self, key: Hashable, load: Callable[[], QueryPlan[ColumnT]]) -> QueryPlan[ColumnT]:
        """Return what is kept, or load it: in a thread, never in an event loop.

        What was read while an ingest committed may be of two revisions, and is not kept.
        """
        kept = self._kept.get(key)
        if kept is None:
            with self._loading:
                kept = self._kept.get(key)
                if kept is None:
                    loaded = yield from load()
                    if (yield from current_revision()) == self._revision:
                        self._add(key, loaded)
                    return loaded
        with suppress(KeyError):  # another thread may have dropped it just now
            self._kept.move_to_end(key)
        return cast("ColumnT", kept)

    def want(self, key: Hashable, load: Load, *, small_catalog: bool) -> None:
        """Note a question that columns would have answered sooner, and how to load these."""
        self._asked += 1
        if not small_catalog or self._asked > QUESTIONS_BEFORE_LOADING:
            self._wanted[key] = load

    @property
    def are_wanted(self) -> bool:
        """Return whether any columns are to be loaded."""
        return bool(self._wanted)

    def next_wanted(self) -> Load | None:
        """Return the plan that loads what a question wanted, once; None where there is none."""
        return self._wanted.popitem()[1] if self._wanted else None

    def _add(self, key: Hashable, loaded: Column) -> None:
        self._kept[key] = loaded
        used = self.nbytes
        while used > MAX_COLUMN_BYTES and len(self._kept) > 1:
            used -= self._kept.popitem(last=False)[1].nbytes
