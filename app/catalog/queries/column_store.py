"""Keeps columns of a revision up to a bound of memory, and notes which ones would have answered a question sooner."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Protocol, TypeVar, cast
from weakref import ref

from app.catalog.queries.pagination import current_revision
from app.db.statements import QueryPlan

MAX_COLUMN_BYTES = 128 * 2**20
"""Columns beyond so many bytes in all are dropped, the least recently used first; they can be loaded again."""

MAX_DERIVED = 48
"""So many orders of all sizes, and prices of several regions, are kept: 4 and 9 bytes a size each."""


class Column(Protocol):
    """One column or more."""

    @property
    def nbytes(self) -> int:
        """Return the memory that they take."""


T = TypeVar("T")
ColumnT = TypeVar("ColumnT", bound=Column)
Load = Callable[[], QueryPlan[Any]]


class DerivedColumns:
    """What was computed from columns lately, each from the very columns that it is asked for with.

    These may be of another revision than those of before: what is read while an ingest commits is not kept.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[tuple[ref[Any], ...], Any]] = OrderedDict()

    def has(self, keys: Iterable[Hashable]) -> bool:
        """Return whether all of these are kept, perhaps from other columns."""
        return all(key in self._kept for key in keys)

    def of(self, key: Hashable, columns: Sequence[Any], compute: Callable[[], T]) -> T:
        """Return what was computed from these columns before, or compute it; MAX_DERIVED are kept, used last."""
        kept = self._kept.get(key)
        if kept is None or any(one() is not column for one, column in zip(kept[0], columns, strict=True)):
            kept = self._kept[key] = tuple(map(ref, columns)), compute()
        with suppress(KeyError):  # another thread may have dropped it just now
            self._kept.move_to_end(key)
            if len(self._kept) > MAX_DERIVED:
                self._kept.popitem(last=False)
        return cast("T", kept[1])


class ColumnStore:
    """The columns of one revision, which take `nbytes`; what is kept is read without a lock, by several threads."""

    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._kept: OrderedDict[Hashable, Column] = OrderedDict()
        self._loading = Lock()
        self._wanted: dict[Hashable, Load] = {}
        self._was_asked = False
        self.nbytes = 0
        self.derived = DerivedColumns()

    def has(self, keys: Iterable[Hashable]) -> bool:
        """Return whether all of these are kept."""
        return all(key in self._kept for key in keys)

    def keep(self, key: Hashable, load: Callable[[], QueryPlan[ColumnT]]) -> QueryPlan[ColumnT]:
        """Return what is kept, or load it, as `keep_all` does."""

        def load_one() -> QueryPlan[Mapping[Hashable, ColumnT]]:
            return {key: (yield from load())}

        return (yield from self.keep_all([key], load_one))[key]

    def keep_all(
        self, keys: Sequence[Hashable], load: Callable[[], QueryPlan[Mapping[Hashable, ColumnT]]]
    ) -> QueryPlan[Mapping[Hashable, ColumnT]]:
        """Return what is kept by these keys, or load it, perhaps with others: in a thread, never in an event loop.

        What was read while an ingest committed may be of two revisions, and is not kept.
        """
        found = self._find(keys)
        if found is None:
            with self._loading:
                found = self._find(keys)
                if found is None:
                    found = yield from load()
                    if (yield from current_revision()) == self._revision:
                        for key, column in found.items():
                            self._add(key, column)
                    return found
        for key in keys:
            with suppress(KeyError):  # another thread may have dropped it just now
                self._kept.move_to_end(key)
        return cast("Mapping[Hashable, ColumnT]", found)

    def ask(self) -> bool:
        """Return whether a list was asked for before for which columns are missing."""
        before, self._was_asked = self._was_asked, True
        return before

    def want(self, key: Hashable, load: Load) -> None:
        """Note that columns would have answered a question sooner, and how to load them."""
        self._wanted[key] = load

    @property
    def are_wanted(self) -> bool:
        """Return whether any columns are to be loaded."""
        return bool(self._wanted)

    def next_wanted(self) -> Load | None:
        """Return the plan that loads what a question wanted, once; None where there is none."""
        return self._wanted.popitem()[1] if self._wanted else None

    def _find(self, keys: Sequence[Hashable]) -> Mapping[Hashable, Column] | None:
        """Return the columns of these keys if all are kept."""
        found = {key: column for key in keys if (column := self._kept.get(key)) is not None}
        return found if len(found) == len(set(keys)) else None

    def _add(self, key: Hashable, loaded: Column) -> None:
        replaced = self._kept.pop(key, None)
        self._kept[key] = loaded
        self.nbytes += loaded.nbytes - (replaced.nbytes if replaced is not None else 0)
        while self.nbytes > MAX_COLUMN_BYTES and len(self._kept) > 1:
            self.nbytes -= self._kept.popitem(last=False)[1].nbytes
