"""Runs of prices answer every day, as known on every day, as if each observation were kept by itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import (
    ColumnElement,
    Date,
    Engine,
    Integer,
    column,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    values,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.in_force import EVER_KNOWN, MISSING_LISTS, KnownDay, is_in_force, last_observed
from app.catalog.models import PriceTotal, Region, Size, Source
from app.catalog.readings import PriceBlock, PriceList, PriceRow, Reading, no_progress
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store.price_runs import RUN_TABLES, merge_lists
from app.catalog.store.price_totals import save_price_totals
from app.catalog.store.prices import LIST, PRICE, STAGED_PRICE, PriceStaging, merge_prices, stage_prices
from app.catalog.store.revisions import compute_digest
from app.catalog.store.upsert import condition, temporary_tables
from app.db.writing import write_session
from app.ingest.run import forget, ingest
from tests.catalog.test_deriving import offered
from tests.factories import NOW, price, reading

SIZES, REGIONS, SOURCES = ("x1", "x2"), ("eastus", "westus"), ("a", "b")
DAYS = range(1, 7)
FIRST_INGEST = date(2026, 9, 1)
Place = tuple[str, str]
"""A size and a region."""
Asked = tuple[int, date]
"""A day of prices, and the day on which they are known."""


def on(day: int) -> date:
    return date(2026, 1, 1) + timedelta(days=day)


def ingested(number: int) -> date:
    return FIRST_INGEST + timedelta(days=number)


@dataclass(frozen=True)
class Observed:
    """A list of a source for a day: the prices by size and region; if it is complete, those of its regions."""

    source: str
    day: int
    prices: Mapping[Place, int]
    regions: tuple[str, ...] | None
    undated: bool = False
    file: str = "file"

    def to_prices(self) -> tuple[PriceList, ...]:
        rows = [self._row(place, usd) for place, usd in sorted(self.prices.items())]
        complete = self.regions is not None
        each = PriceList(
            file=self.file,
            blocks=lambda: iter([PriceBlock.of(rows)] if rows else []),
            complete=complete,
            regions=frozenset(self.regions or ()) if complete else None,
        )
        return (each,)

    def _row(self, place: Place, usd: int) -> PriceRow:
        size, region = place
        about = {"source": self.source, "valid_from": on(self.day), "approximate_date": self.undated}
        return price(size, Decimal(usd), region=region, **about)


@dataclass
class EveryObservation:
    """The model: of each place, source and day all prices that were known, with the day from which they were."""

    known: dict[tuple[str, Place, int], list[tuple[date, int, bool]]] = field(default_factory=dict)
    lists: dict[tuple[str, str, int], date] = field(default_factory=dict)

    def take(self, observed: Observed, today: date) -> None:
        source, day = observed.source, observed.day
        # A list without any price says nothing of what kind of prices it would have had.
        for region in (observed.regions or ()) if observed.prices else ():
            if (source, region, day) in self.lists:
                for key in [key for key in self.known if (key[0], key[1][1], key[2]) == (source, region, day)]:
                    if key[1] not in observed.prices:
                        del self.known[key]
            self.lists.setdefault((source, region, day), today)
        for place, usd in observed.prices.items():
            versions = self.known.setdefault((source, place, day), [])
            value = (usd, observed.undated)
            versions[:] = [one for one in versions if one[1:] == value or one[0] < today]
            if not versions or versions[-1][1:] != value:
                versions.append((today, *value))

    def forget(self, source: str) -> None:
        self.known = {key: versions for key, versions in self.known.items() if key[0] != source}
        self.lists = {key: known for key, known in self.lists.items() if key[0] != source}

    def in_force(self, place: Place, day: int, known_on: date) -> tuple[date, int] | None:
        """Return the last day on which the price was observed, and the price."""
        found = []
        for (source, where, observed_on), versions in self.known.items():
            by_then = [one for one in versions if one[0] <= known_on]
            if where == place and observed_on <= day and by_then:
                undated, _, usd = min((undated, -number, usd) for number, (_, usd, undated) in enumerate(by_then))
                found.append((-observed_on, undated, source, usd))
        if not found:
            return None
        last, _, source, usd = min(found)
        later = [
            one
            for (by, region, one), known in self.lists.items()
            if (by, region) == (source, place[1]) and -last < one <= day and known <= known_on
        ]
        return None if len(later) >= MISSING_LISTS else (on(-last), usd)


def take(session: Session, observed: Observed, today: date) -> None:
    regions = dict.fromkeys(REGIONS, "azure")
    staging = PriceStaging(subjects=SubjectKeys(aliases={}, series_ids={}), regions=regions, progress=no_progress)
    with temporary_tables(session, STAGED_PRICE, *RUN_TABLES):
        stage_prices(session, observed.to_prices(), staging)
        merge_lists(session, staging, today)
        merge_prices(session, staging, today)


def in_force(session: Session, asked: Iterable[Asked]) -> dict[Asked, dict[Place, tuple[date, int]]]:
    """Return the prices in force on each day, as known on another; all in one statement, as examples ask many."""
    found: dict[Asked, dict[Place, tuple[date, int]]] = {each: {} for each in asked}
    days = values(column("day", Integer), column("on_day", Date), column("known", Date), name="days")
    table = days.data([(day, on(day), known_on) for day, known_on in found]).cte("asked")
    each = table.c

    def rows(known: KnownDay, *conditions: ColumnElement[bool]) -> set[tuple[int, date, str, str, date, int]]:
        last = literal_column(last_observed("price", "asked.on_day", known), Date)
        columns = (each.day, each.known, PRICE.c.size_key, PRICE.c.region, last, PRICE.c.nano_usd_per_hour)
        in_force = condition(is_in_force("price", "asked.on_day", known))
        read = session.execute(select(*columns).join_from(table, PRICE, in_force).where(*conditions)).all()
        assert len(set(read)) == len(read)
        return {tuple(row) for row in read}

    of_all = rows("asked.known")
    assert rows(None, each.known == EVER_KNOWN) == {row for row in of_all if row[1] == EVER_KNOWN}
    for day, known_on, size, region, last, nano in of_all:
        assert (size, region) not in found[day, known_on]
        found[day, known_on][size, region] = (last, nano // 10**9)
    return found


def expected(model: EveryObservation, day: int, known_on: date) -> dict[Place, tuple[date, int]]:
    found = {(size, region): model.in_force((size, region), day, known_on) for size in SIZES for region in REGIONS}
    return {place: answer for place, answer in found.items() if answer is not None}


def kept_total(session: Session, day: int) -> int:
    total = table_of(PriceTotal).c
    holds = (total.since <= on(day), or_(total.until.is_(None), total.until > on(day)))
    found: int = session.execute(select(func.coalesce(func.sum(total.in_force), 0)).where(*holds)).scalar_one()
    return found


@pytest.fixture
def catalog(engine: Engine) -> Engine:
    """A catalog with the sizes, regions and sources, and no price."""
    cited = {"title": "t", "publisher": "p", "kind": "third_party", "sha256": "0"}
    about = {"provider": "azure", "verified": True, "disputed": False, "disputed_fields": "", "search_text": ""}
    with write_session(engine) as session:
        session.execute(insert(table_of(Source)), [{"id": source, **cited} for source in SOURCES])
        regions = [{"code": region, "name": region, "source_id": "a"} for region in REGIONS]
        session.execute(insert(table_of(Region)), regions)
        session.execute(insert(table_of(Size)), [{"key": key, "name": key, **about} for key in SIZES])
    return engine


places = st.tuples(st.sampled_from(SIZES), st.sampled_from(REGIONS))


@st.composite
def lists(draw: st.DrawFn) -> Observed:
    regions = draw(st.sampled_from([None, ("eastus",), REGIONS, REGIONS]))
    prices = draw(st.dictionaries(places, st.integers(1, 2), min_size=1))
    if regions == ("eastus",):
        prices = {place: usd for place, usd in prices.items() if place[1] == "eastus"} or {("x1", "eastus"): 1}
    undated = draw(st.integers(0, 5)) == 0
    return Observed(draw(st.sampled_from(SOURCES)), draw(st.sampled_from(DAYS)), prices, regions, undated)


@pytest.mark.takes_seconds
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=settings().max_examples // 4)
@given(ingests=st.lists(st.tuples(lists(), st.integers(0, 1)), max_size=12), forgotten=st.sampled_from(SOURCES))
def test_runs_answer_as_if_every_observation_were_kept(
    catalog: Engine, ingests: Sequence[tuple[Observed, int]], forgotten: str
) -> None:
    model, today = EveryObservation(), FIRST_INGEST
    with write_session(catalog, commit=False) as session:
        days = {EVER_KNOWN, FIRST_INGEST - timedelta(days=1)}
        for observed, later in ingests:
            today += timedelta(days=later)
            days.add(today)
            take(session, observed, today)
            model.take(observed, today)
        for _ in range(2):
            save_price_totals(session)
            for day in (0, *DAYS, 8):
                assert kept_total(session, day) == len(expected(model, day, EVER_KNOWN)), day
            asked = [(day, known_on) for known_on in days for day in (0, *DAYS, 8)]
            assert in_force(session, asked) == {each: expected(model, *each) for each in asked}
            session.execute(delete(PRICE).where(PRICE.c.source_id == forgotten))
            session.execute(delete(LIST).where(LIST.c.source_id == forgotten))
            model.forget(forgotten)


@pytest.mark.takes_seconds
@pytest.mark.first_database
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=settings().max_examples // 10)
@given(ingests=st.permutations([(source, day) for source in SOURCES for day in DAYS]), data=st.data())
def test_an_older_day_changes_nothing_that_was_known_before(
    catalog: Engine, ingests: Sequence[tuple[str, int]], data: st.DataObject
) -> None:
    with write_session(catalog, commit=False) as session:
        before: dict[Asked, dict[Place, tuple[date, int]]] = {}
        for number, (source, day) in enumerate(ingests[:8]):
            today = ingested(number)
            prices = data.draw(st.dictionaries(places, st.integers(1, 2), min_size=1))
            take(session, Observed(source, day, prices, REGIONS), today)
            before |= in_force(session, [(one, today) for one in DAYS])
            assert in_force(session, before) == before


def one_list(day: int, prices: Mapping[Place, int], *, file: str = "list.csv", complete: bool = True) -> Reading:
    """A reading of a list for East US."""
    observed = Observed("prices", day, prices, ("eastus",) if complete else None, file=file)
    lists = tuple(replace(each, sources=frozenset(["prices"])) for each in observed.to_prices())
    return replace(reading(regions=REGIONS), prices=lists)


def stored(engine: Engine) -> list[tuple[str, int, int, int]]:
    """Return the runs: size, first and last day, US dollars."""
    query = select(PRICE.c.size_key, PRICE.c.valid_from, PRICE.c.seen_until, PRICE.c.nano_usd_per_hour)
    with write_session(engine) as session:
        found = session.execute(query.order_by(PRICE.c.size_key, PRICE.c.valid_from)).all()
    return [(key, (first - on(0)).days, (last - on(0)).days, nano // 10**9) for key, first, last, nano in found]


X1, X2 = ("x1", "eastus"), ("x2", "eastus")


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_lists_with_one_price_make_one_run_and_a_list_between_them_cuts_it(engine: Engine) -> None:
    for day in (1, 3, 5):
        ingest(engine, one_list(day, {X1: 2, X2: day}, file=f"{day}.csv"), now=NOW)
    assert stored(engine) == [("x1", 1, 5, 2), ("x2", 1, 1, 1), ("x2", 3, 3, 3), ("x2", 5, 5, 5)]
    ingest(engine, one_list(4, {X2: 3}, file="4.csv"), now=NOW)
    assert stored(engine) == [("x1", 1, 3, 2), ("x1", 5, 5, 2), ("x2", 1, 1, 1), ("x2", 3, 4, 3), ("x2", 5, 5, 5)]
    assert not ingest(engine, one_list(4, {X2: 3}, file="4.csv"), now=NOW).new_revision


@pytest.mark.takes_seconds
def test_a_list_that_its_file_has_no_more_is_taken_out_of_the_runs(engine: Engine) -> None:
    for day in (1, 2, 3):
        ingest(engine, one_list(day, {X1: 2}, file="the.csv" if day == 2 else "other.csv" + str(day)), now=NOW)
    ingest(engine, one_list(4, {X1: 2}, file="the.csv"), now=NOW)
    assert stored(engine) == [("x1", 1, 1, 2), ("x1", 3, 4, 2)]
    ingest(engine, one_list(4, {X2: 2}, file="the.csv"), now=NOW)
    assert stored(engine) == [("x1", 1, 1, 2), ("x1", 3, 3, 2), ("x2", 4, 4, 2)]


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_an_offer_goes_when_three_complete_lists_lack_its_price(engine: Engine) -> None:
    ingest(engine, one_list(1, {X1: 2, X2: 2}, file="1.csv"), now=NOW)
    for day in (2, 3, 4):
        assert offered(engine, "x1") == (2, "eastus")
        ingest(engine, one_list(day, {X2: 2}, file=f"{day}.csv"), now=NOW)
    assert offered(engine, "x1") is None
    assert offered(engine, "x2") == (2, "eastus")
    ingest(engine, one_list(5, {X1: 2, X2: 2}, file="5.csv"), now=NOW)
    assert offered(engine, "x1") == (2, "eastus")


@pytest.mark.takes_seconds
def test_the_digest_of_runs_is_that_of_all_rows_whatever_day_they_are_ingested_on(engine: Engine) -> None:
    digests = []
    for number in range(2):
        for day in (1, 3, 2):
            outcome = ingest(engine, one_list(day, {X1: 2}, file=f"{day}.csv"), now=NOW + timedelta(days=number))
        with write_session(engine) as session:
            digest, _ = compute_digest(session)
        assert outcome.revision["digest"] == digest
        digests.append(digest)
        forget(engine, "prices", now=NOW)
        ingest(engine, reading(), now=NOW)
    assert digests[0] == digests[1]
    with write_session(engine) as session:
        assert session.execute(select(LIST)).all() == []


def test_a_correction_on_a_later_day_leaves_what_was_known_before(engine: Engine) -> None:
    later = NOW + timedelta(days=3)
    for day in (1, 2):
        ingest(engine, one_list(day, {X1: 2}, file=f"{day}.csv"), now=NOW)
    ingest(engine, one_list(2, {X1: 9}, file="2.csv"), now=later)
    with write_session(engine) as session:
        found = in_force(session, [(3, NOW.date()), (3, later.date()), (1, later.date())])
    assert [*found.values()] == [{X1: (on(2), 2)}, {X1: (on(2), 9)}, {X1: (on(1), 2)}]


def test_a_run_that_an_ingest_begins_and_extends_is_added_and_not_changed(engine: Engine) -> None:
    def changes(*days: int) -> tuple[int, int, int]:
        blocks = {day: PriceBlock.of([price("x1", "1", valid_from=on(day))]) for day in days}
        lists = tuple(
            PriceList(
                file=f"{day}.csv",
                blocks=partial(iter, [block]),
                sources=frozenset({"prices"}),
                complete=True,
            )
            for day, block in blocks.items()
        )
        read = replace(reading(regions=["eastus"]), prices=lists)
        change = ingest(engine, read, now=NOW).summary.changes["price"]
        return change.added, change.changed, change.unchanged

    assert changes(1, 2, 3) == (1, 0, 0)
    assert changes(4) == (0, 1, 0), "the run is of the ingest before, on the same day"
    assert changes(4) == (0, 0, 1)
