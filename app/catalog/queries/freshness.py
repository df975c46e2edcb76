"""How old the newest prices and exchange rates are, and when each source and feed was read last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from app.catalog.statements import Statement
from app.db.statements import BoundStatement, Reader, fetch, to_dicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The newest day of the prices and of the exchange rates of each source by its id, none of them after `day`."""

    day: date
    prices: Mapping[str, date]
    exchange_rates: Mapping[str, date]

    @property
    def newest_prices_as_of(self) -> date | None:
        """The newest day on which any source observed a price; None without prices."""
        return max(self.prices.values(), default=None)

    @property
    def newest_exchange_rates_as_of(self) -> date | None:
        """The newest day of which any source has rates; None without rates."""
        return max(self.exchange_rates.values(), default=None)

    @property
    def prices_age_days(self) -> int | None:
        """Days from the newest prices to `day`; None without prices."""
        return _days_between(self.newest_prices_as_of, self.day)

    @property
    def exchange_rates_age_days(self) -> int | None:
        """Days from the newest exchange rates to `day`; None without rates."""
        return _days_between(self.newest_exchange_rates_as_of, self.day)

    def newest_day_of(self, source_id: str) -> date | None:
        """Return the newest day of the prices or exchange rates of a source; None where it has neither."""
        days = (self.prices.get(source_id), self.exchange_rates.get(source_id))
        return max((day for day in days if day), default=None)

    def is_stale(self, after_days: int) -> bool:
        """Return whether prices or exchange rates are older than a number of days.

        Prices of an unknown age are stale; a catalog that has no exchange rates converts nothing, and lacks none.
        """
        prices, rates = self.prices_age_days, self.exchange_rates_age_days
        return prices is None or prices > after_days or (rates is not None and rates > after_days)


def load_freshness(reader: Reader, today: date) -> Freshness:
    """Load the newest days up to `today`.

    Prices of a source without a date do not count, since their day is only the year that the source points to.
    """
    until = {"today": today.isoformat()}
    prices, rates = (fetch(reader, BoundStatement(newest, until)) for newest in (_NEWEST_PRICES, _NEWEST_RATES))
    return Freshness(day=today, prices=dict(prices), exchange_rates=dict(rates))


_NEWEST_PRICES = Statement(
    lambda sql: (
        f"""
        select source_id, max(day) as day from price_day
        where day <= {sql.day("today")} and approximate_date is false group by source_id"""
    )
)
_NEWEST_RATES = Statement(
    lambda sql: (
        f"""
        select source_id, max(day) as day from exchange_rate where day <= {sql.day("today")} group by source_id"""
    )
)


def _days_between(first: date | None, last: date) -> int | None:
    return None if first is None else (last - first).days


MAX_REVISIONS = 500
"""How many of the newest revisions are read."""
MAX_SOURCES = 1_000
"""How many sources are named, those that changed last."""


def load_last_ingests(reader: Reader) -> Mapping[str, datetime]:
    """Load when each source last changed the catalog, by its id, the newest first; bounded by the two limits above."""
    last: dict[str, datetime] = {}
    for created_at, source_ids in fetch(reader, BoundStatement(_NEWEST_REVISIONS)):
        for source_id in source_ids:
            if len(last) < MAX_SOURCES:
                last.setdefault(source_id, created_at)
    return last


_NEWEST_REVISIONS = Statement(f"select created_at, source_ids from revision order by number desc limit {MAX_REVISIONS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRefresh:
    """The last refresh of a feed, and when one last succeeded; None for never."""

    feed: str
    ended_at: datetime
    succeeded_at: datetime | None

    @property
    def has_failed(self) -> bool:
        """Whether the last one was refused or could not be fetched, in part at least."""
        return self.succeeded_at is None or self.succeeded_at < self.ended_at


def load_feed_refreshes(reader: Reader) -> Sequence[FeedRefresh]:
    """Load the last refresh of each feed that was refreshed, by name."""
    query = BoundStatement(_REFRESHES)
    return [FeedRefresh(**row) for row in to_dicts(query, fetch(reader, query))]


_REFRESHES = Statement("select feed, ended_at, succeeded_at from feed_run order by feed")
