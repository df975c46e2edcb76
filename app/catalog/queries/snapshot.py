"""What every search needs to know of a revision of the catalog: small, read once for each revision and kept."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from hashlib import blake2b
from sys import intern
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.adjustments import Rules, load_rules
from app.catalog.column_types import table_of
from app.catalog.models import Size
from app.catalog.queries.language_models import ModelsByKey, load_models
from app.catalog.queries.lookups import GpuNames, load_gpu_names, load_region_codes, load_series_ids
from app.catalog.queries.pagination import current_revision, get_revision
from app.db.statements import BoundStatement, QueryPlan, Row, run_plan, to_dicts
from app.errors import Busy, CatalogChanged

T = TypeVar("T")

_MAX_TOTALS = 10_000
_MAX_LISTS, _MAX_LIST_LENGTH = 4, 2_000
MAX_ROW_BYTES = 8 * 2**20
"""The most memory that kept rows of pages take: about 6,500 rows of 1,000 sizes."""
_ROW_BYTES = 300
"""What a kept row takes besides its JSON: the row, its key, and their places in mappings."""
SMALL_CATALOG = 2_000
"""A catalog of up to this many sizes is scanned in a millisecond, which an event loop can spare."""


class KeptRows:
    """Rows of pages, up to a bound of memory, by the prices they show and the key of the size.

    A row is the JSON of a size, which its rows share, its status, and the JSON of its offer, if any.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, dict[str, Row]] = {}
        self._sizes: dict[str, str] = {}
        self._adding = Lock()
        self.nbytes = 0

    def of(self, scope: Hashable) -> Mapping[str, Row]:
        """Return the rows of a scope that were read before."""
        return self._rows.get(scope, {})

    def add(self, scope: Hashable, rows: Mapping[str, Row]) -> None:
        """Keep rows that are known to be of this revision; if they would be too many, those of before are dropped."""
        with self._adding:
            if self.nbytes + sum(map(_row_bytes, rows.values())) > MAX_ROW_BYTES:
                self._rows.clear()
                self._sizes.clear()
                self.nbytes = 0
            kept = self._rows.setdefault(scope, {})
            for key, row in rows.items():
                size_json = self._sizes.setdefault(key, row[0])
                self.nbytes += _row_bytes(row) - (len(row[0]) if size_json is not row[0] else 0)
                kept[key] = (size_json, intern(row[1]), *row[2:])  # each row that is read has a status of its own


def _row_bytes(row: Row) -> int:
    return _ROW_BYTES + len(row[0]) + len(row[2] or "")


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Names and numbers of one revision of the catalog.

    `regions` are codes, `series` ids by the key of each name, `models` rows of language models by the key of each
    name, `rules` those by which prices are adjusted; `totals` are lengths of lists, counted once for each query. More
    is loaded when it is first needed: the sets of sizes (`app.catalog.queries.size_sets`), and rows of pages.
    """

    revision: str
    regions: frozenset[str]
    series: Mapping[str, str]
    sizes: int
    models: ModelsByKey
    gpus: GpuNames
    rules: Rules = ()
    totals: dict[bytes, int] = field(default_factory=dict)
    _sets: dict[str, Any] = field(default_factory=dict)
    _lists: OrderedDict[Hashable, list[Any]] = field(default_factory=OrderedDict)
    rows: KeptRows = field(default_factory=KeptRows)

    @property
    def small(self) -> bool:
        """Return whether a scan of all sizes takes no more than a millisecond."""
        return self.sizes <= SMALL_CATALOG

    def remember_total(self, query: str, total: int) -> None:
        """Keep the total of a list; a full cache is emptied."""
        if len(self.totals) >= _MAX_TOTALS:
            self.totals.clear()
        self.totals[_digest(query)] = total

    def cached_total(self, query: str) -> int | None:
        """Return the total of a list that was counted before."""
        return self.totals.get(_digest(query))

    def keep_sets(self, load: Callable[[str], QueryPlan[T]]) -> QueryPlan[T]:
        """Load the sets of this revision once, or return them; two threads that load them at once keep the same."""
        kept = self._sets.get("sets")
        if kept is None:
            kept = self._sets.setdefault("sets", (yield from load(self.revision)))
        return cast("T", kept)

    def forget_sets(self) -> None:
        """Drop what was asked of this revision, as for measuring how long it takes."""
        self._sets.clear()

    def keep_list(
        self, query: BoundStatement, convert: Callable[[list[dict[str, Any]]], list[T]]
    ) -> QueryPlan[list[T]]:
        """Run a query and convert its rows, or return the list that was converted before; it must not be changed.

        Raises CatalogChanged if an ingest has committed since.

        The last few lists are kept, but no long ones: 1,500 candidates of a fit take 4 MB.
        """
        key = (query.statement, frozenset(query.parameters.items()))
        kept: list[T] | None = self._lists.get(key)
        if kept is not None:
            return kept
        rows = yield query
        if (yield from current_revision()) != self.revision:
            raise CatalogChanged
        found = convert(to_dicts(query, rows))
        if len(found) <= _MAX_LIST_LENGTH:
            self._lists[key] = found
            while len(self._lists) > _MAX_LISTS:
                self._lists.popitem(last=False)
        return found


class Catalog(NamedTuple):
    """What a question is answered from: a session, what its revision has, and the day."""

    session: Session
    snapshot: CatalogSnapshot
    today: date


def _digest(query: str) -> bytes:
    """Return a short key for a query, which may have kilobytes."""
    return blake2b(query.encode(), digest_size=16).digest()


def load_snapshot(session: Session) -> CatalogSnapshot:
    """Read the snapshot of the current revision.

    The revision is read first: if the catalog changes meanwhile, the snapshot is known to be outdated, never too new.
    """
    return CatalogSnapshot(
        revision=get_revision(session),
        regions=load_region_codes(session),
        series=load_series_ids(session),
        sizes=session.execute(select(func.count()).select_from(table_of(Size))).scalar_one(),
        models=load_models(session),
        gpus=load_gpu_names(session),
        rules=load_rules(session),
    )


MAX_ATTEMPTS = 5
"""How many revisions a question is tried on before the client is told to retry."""


def changes_too_fast() -> Busy:
    """Return the error for a question whose catalog has changed MAX_ATTEMPTS times while it was answered."""
    return Busy("The catalog changes faster than it can be read. Retry in some seconds.")


def ask_catalog(session: Session, make_plan: Callable[[CatalogSnapshot], QueryPlan[T]]) -> T:
    """Run a plan of the newest revision in a session, and again if an ingest commits meanwhile; raises Busy."""
    for _ in range(MAX_ATTEMPTS):
        with suppress(CatalogChanged):
            return run_plan(session, make_plan(load_snapshot(session)))
    raise changes_too_fast()
