"""What every search needs to know of a revision of the catalog: small, read once for each revision and kept."""

import re
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import partial
from sys import intern
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from app.catalog.in_force import Rules, load_rules
from app.catalog.queries.lookups import (
    GpuNames,
    ModelsByKey,
    RegionPlace,
    load_formulas,
    load_gpu_names,
    load_models,
    load_price_parts,
    load_region_places,
    load_series_ids,
    load_words,
)
from app.catalog.revisions import current_revision
from app.catalog.statements import Statement
from app.db.statements import BoundStatement, QueueFull, Reader, Row, Rows, fetch, to_dicts
from app.errors import Busy, CatalogChanged

P = ParamSpec("P")
T = TypeVar("T")
QuestionT = TypeVar("QuestionT", bound=Callable[..., Any])

MAX_ANSWER_BYTES = 48 * 2**20
"""The most memory that the answers of a revision take; then the oldest are dropped. Of 3,800 sizes of all clouds a set
takes 475 bytes, prices in all regions by a purchase model 1.2 MB, and 1.5 MB more in their order."""
_ANSWER_BYTES = 300
"""What an answer takes besides its own: its key, but for its texts, and its place among the others."""
_MAX_KEY_CHARACTERS = 2_000
"""The longest texts of a question whose answer is kept; lists of names may be longer, and are hardly asked again."""
_MAX_LISTED = 12_000
"""The most items that the kept lists have together: 1,570 candidates of a fit take 1.1 MB, 4,200 sizes of a plan 15."""
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
        self.by_scope: dict[Hashable, dict[str, Row]] = {}
        self._sizes: dict[str, str] = {}
        self._adding = Lock()
        self.nbytes = 0

    def add(self, scope: Hashable, rows: Mapping[str, Row]) -> None:
        """Keep rows that are known to be of this revision; if they would be too many, those of before are dropped."""
        with self._adding:
            if self.nbytes + sum(map(_row_bytes, rows.values())) > MAX_ROW_BYTES:
                self.by_scope.clear()
                self._sizes.clear()
                self.nbytes = 0
            kept = self.by_scope.setdefault(scope, {})
            for key, row in rows.items():
                size_json = self._sizes.setdefault(key, row[0])
                self.nbytes += _row_bytes(row) - (len(row[0]) if size_json is not row[0] else 0)
                kept[key] = (size_json, intern(row[1]), *row[2:])  # each row that is read has a status of its own


def _row_bytes(row: Row) -> int:
    return _ROW_BYTES + len(row[0]) + len(row[2] or "")


class KeptAnswers:
    """What was asked about a revision, by what was asked; up to a bound of memory, the oldest first out.

    Answers never change, so that threads may share them: two that ask the same at once keep the same. `nbytes` is what
    the answers take.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.by_key: dict[Hashable, Any] = {}
        self._adding = Lock()

    def add(self, answers: Mapping[Hashable, Any]) -> None:
        """Keep answers that are known to be of this revision."""
        with self._adding:
            for key, answer in answers.items():
                if key not in self.by_key and _characters(key) <= _MAX_KEY_CHARACTERS:
                    self.by_key[key] = answer
                    self.nbytes += _entry_bytes(key, answer)
            while self.nbytes > MAX_ANSWER_BYTES:
                oldest = next(iter(self.by_key))
                self.nbytes -= _entry_bytes(oldest, self.by_key.pop(oldest))


def _entry_bytes(key: Hashable, answer: Any) -> int:
    return _ANSWER_BYTES + _characters(key) + _bytes_of(answer)


def _characters(key: Hashable) -> int:
    """Return how long the texts of a key are."""
    if isinstance(key, tuple):
        return sum(map(_characters, key))
    return len(key) if isinstance(key, str) else 0


def _bytes_of(answer: Any) -> int:
    """Return the memory of an answer, without the texts and numbers that answers share with others."""
    if isinstance(answer, int):
        return answer.bit_length() // 8
    if isinstance(answer, array):
        return len(answer) * answer.itemsize
    if isinstance(answer, Mapping):
        return sum(map(_bytes_of, answer.values()))
    if hasattr(answer, "_fields"):  # a named tuple of answers
        return sum(map(_bytes_of, answer))
    return 8 * len(answer)


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Names and numbers of one revision of the catalog.

    `regions` are places by code, `series` ids by the key of each name, `models` rows of language models by the key of
    each name, `words` those that sizes have, by the filters on them, `rules` those by which prices are adjusted,
    `formulas` how prices are computed, by the sources that no list states the prices of, `price_parts` the figures of
    these, by source and key of a size. More is kept when it was first needed: `answers`
    (`app.catalog.queries.size_sets`, and lengths of lists), `rows` of pages, and `lists`.
    """

    revision: str
    regions: Mapping[str, RegionPlace]
    series: Mapping[str, str]
    sizes: int
    models: ModelsByKey
    gpus: GpuNames
    words: Mapping[str, Sequence[str]]
    rules: Rules = ()
    formulas: Mapping[str, str] = field(default_factory=dict)
    price_parts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    answers: KeptAnswers = field(default_factory=KeptAnswers)
    rows: KeptRows = field(default_factory=KeptRows)
    lists: OrderedDict[Hashable, list[Any]] = field(default_factory=OrderedDict)

    @property
    def revision_number(self) -> int:
        """The number of the revision; 0 before the first ingest."""
        return int(self.revision.partition("-")[0] or 0)

    def explain_computed(self, source: str, size_key: str, region: str, usd: float | Decimal) -> dict[str, Any] | None:
        """Return how a list price of a source is computed, with the figures if they are known; None for a stated one.

        It is the `estimate` of answers. Where the source has no figures, as the vendor's API, which names parts by
        number, those of another count whose sum is this price.
        """
        if source not in self.formulas:
            return None
        estimate: dict[str, Any] = {"estimated": True, "formula": self.formulas[source]}
        stated = self.price_parts.get((source, size_key)) or self._find_sum(size_key, usd)
        by_region = dict(part.rpartition(": ")[::2] for part in stated.split("; "))
        if parts := by_region.get(region, by_region.get("")):
            estimate["sum"] = {"parts": parts.split(" + ")}
        return estimate

    def _find_sum(self, size_key: str, usd: float | Decimal) -> str:
        """Return the parts of a size, `4 OCPU x 0.03 + 64 GiB x 0.002`, that cost this; empty where none do."""
        of_size = (self.price_parts.get((source, size_key), "") for source in self.formulas)
        sums = (parts for parts in of_size if _SUM.fullmatch(parts))
        return next((parts for parts in sums if abs(_add(parts) - Decimal(str(usd))) < _ROUNDING), "")


_SUM = re.compile(r"[0-9.]+ [^+:;]+ x [0-9.]+(?: \+ [0-9.]+ [^+:;]+ x [0-9.]+)*")


_ROUNDING = Decimal("0.000000001")


def _add(parts: str) -> Decimal:
    products = (Decimal(part.split()[0]) * Decimal(part.split()[-1]) for part in parts.split(" + "))
    return sum(products, Decimal())


@dataclass(slots=True, eq=False)
class Catalog:
    """What a question is answered from: a connection, the snapshot of a revision, and the day.

    What is read while an ingest commits may be of two revisions. So the revision is read after all else: where it has
    moved CatalogChanged is raised, and the question is to be asked again of the new one. What is new is kept with the
    snapshot then, and not before: the functions of `when_confirmed` do that.
    """

    reader: Reader
    snapshot: CatalogSnapshot
    today: date
    when_confirmed: list[Callable[[], None]] = field(default_factory=list)
    _has_read: bool = False
    _answers: dict[Hashable, Any] = field(default_factory=dict)

    def ask(self, question: "Callable[Concatenate[Catalog, P], T]", *args: P.args, **more: P.kwargs) -> T:
        """Answer a question from one revision; raises CatalogChanged if an ingest has committed since the snapshot."""
        answer = question(self, *args, **more)
        self.confirm()
        return answer

    def fetch(self, bound: BoundStatement) -> Rows:
        """Return the rows of a statement."""
        self._has_read = True
        return fetch(self.reader, bound)

    def keep(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return the answer from before, or ask; the answer must not be changed."""
        kept: T | None = self.kept(key)
        if kept is None:
            kept = self._answers[key] = ask()
        return kept

    def kept(self, key: Hashable) -> Any:
        """Return the answer from before; None if there is none."""
        kept = self.snapshot.answers.by_key.get(key)
        return self._answers.get(key) if kept is None else kept

    def keep_list(self, query: BoundStatement, convert: Callable[[list[dict[str, Any]]], list[T]]) -> list[T]:
        """Run a query and convert its rows, or return the list that was converted before; it must not be changed.

        The last lists are kept, as long as they have at most `_MAX_LISTED` items together.
        """
        key = (query.statement, frozenset(query.parameters.items()))
        kept: list[T] | None = self.snapshot.lists.get(key)
        if kept is not None:
            return kept
        converted = convert(to_dicts(query, self.fetch(query)))
        if len(converted) <= _MAX_LISTED:
            self.when_confirmed.append(partial(self._add_list, key, converted))
        return converted

    def confirm(self) -> None:
        """Check that the snapshot is still of the current revision, and keep what is new; raises CatalogChanged."""
        if self._has_read and current_revision(self.reader) != self.snapshot.revision:
            raise CatalogChanged
        self.snapshot.answers.add(self._answers)
        for keep in self.when_confirmed:
            keep()
        self._has_read, self._answers, self.when_confirmed = False, {}, []

    def _add_list(self, key: Hashable, converted: list[Any]) -> None:
        self.snapshot.lists[key] = converted
        while sum(map(len, self.snapshot.lists.values())) > _MAX_LISTED:
            self.snapshot.lists.popitem(last=False)


SHORT: dict[Callable[..., Any], Callable[..., bool]] = {}
"""Questions that take a millisecond where no statement takes long, and for which parameters: a server answers them on
its event loop."""
COMPUTING: set[Callable[..., Any]] = set()
"""Questions that take milliseconds of arithmetic: a server answers one at a time."""


def short(question: QuestionT) -> QuestionT:
    """Have servers answer a question on the event loop."""
    SHORT[question] = lambda *_args, **_more: True
    return question


def short_if(condition: Callable[..., bool]) -> Callable[[QuestionT], QuestionT]:
    """Have servers answer a question on the event loop where its parameters meet a condition."""

    def mark(question: QuestionT) -> QuestionT:
        SHORT[question] = condition
        return question

    return mark


def computing(question: QuestionT) -> QuestionT:
    """Have servers answer one such question at a time."""
    COMPUTING.add(question)
    return question


def load_snapshot(reader: Reader) -> CatalogSnapshot:
    """Read the snapshot of the current revision.

    The revision is read first: if the catalog changes meanwhile, the snapshot is known to be outdated, never too new.
    """
    revision, formulas = current_revision(reader), load_formulas(reader)
    return CatalogSnapshot(
        revision=revision,
        regions=load_region_places(reader),
        series=load_series_ids(reader),
        sizes=count_sizes(reader),
        models=load_models(reader),
        gpus=load_gpu_names(reader),
        words=load_words(reader),
        rules=load_rules(reader),
        formulas=formulas,
        price_parts=load_price_parts(reader, formulas),
    )


def count_sizes(reader: Reader) -> int:
    """Return how many sizes there are."""
    ((sizes,),) = fetch(reader, BoundStatement(_COUNT))
    return int(sizes)


_COUNT = Statement("select count(*) from size")

MAX_ATTEMPTS = 5
"""How many revisions a question is tried on before the client is asked to retry."""


def changes_too_fast() -> Busy:
    """Return the error for a question whose catalog has changed MAX_ATTEMPTS times while it was answered."""
    return Busy("The catalog changes faster than it can be read. Retry in some seconds.")


async def or_busy(answer: Awaitable[T]) -> T:
    """Wait for an answer; raises Busy if it cannot be queued."""
    try:
        return await answer
    except QueueFull:
        raise Busy("Too many requests wait for the database. Retry in some seconds.") from None


def load_catalog(reader: Reader, today: date) -> Catalog:
    """Load the snapshot of the newest revision, for questions to a reader."""
    return Catalog(reader, load_snapshot(reader), today)


def ask_catalog(reader: Reader, today: date, question: Callable[[Catalog], T]) -> T:
    """Answer a question from the newest revision, again if an ingest commits meanwhile; raises Busy."""
    for _ in range(MAX_ATTEMPTS):
        with suppress(CatalogChanged):
            return load_catalog(reader, today).ask(question)
    raise changes_too_fast()
