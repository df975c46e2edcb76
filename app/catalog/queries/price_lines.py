"""Merges the price runs of an offer across lists into one line per price change, for people.

A list has a price on some days, so a line tells since when a price is known and when it was last seen, and never that
it ended. Lists that agree are one line; lists that disagree at the same time are lines beside one another.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from app.catalog.price_notes import price_note

Run = Mapping[str, Any]
"""A row of `find_price_history`, or one of `find_prices`, of a single offer; its days are ISO texts."""

_PRICE, _KEY = itemgetter("usd_per_hour"), itemgetter("valid_from", "source_id", "known_from")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceLine:
    """A price with the runs of the lists that have it, the most recently seen last.

    `previous` is the price before: that of the line that was last seen before this one, of those that began earlier.
    """

    runs: tuple[Run, ...]
    previous: float | None
    in_force: bool

    @property
    def usd_per_hour(self) -> float:
        """The price, USD an hour."""
        price: float = _PRICE(self.runs[0])
        return price

    @property
    def change_percent(self) -> Decimal | None:
        """The change from the price before; None where there is none."""
        if self.previous is None:
            return None
        return 100 * (Decimal(str(self.usd_per_hour)) / Decimal(str(self.previous)) - 1)

    @property
    def since(self) -> str:
        """The first day on which a list has the price."""
        return _first_day(self.runs)

    @property
    def approximate_date(self) -> bool:
        """Whether only undated lists have it on that day."""
        return all(run["approximate_date"] for run in self.runs if run["valid_from"] == self.since)

    @property
    def last_seen(self) -> str:
        """The last day on which a list has the price."""
        day: str = self.runs[-1]["seen_until"]
        return day

    @property
    def sources(self) -> list[str]:
        """The ids of the lists, the most recently seen first."""
        return list(dict.fromkeys(run["source_id"] for run in reversed(self.runs)))

    def note(self, shown: Callable[[Any], str] = "{:g}".format) -> str | None:
        """Return the note on the most recently seen run: unusual, disputed, or None."""
        return price_note(self.runs[-1], shown=shown)


def merge_runs(runs: Iterable[Run], in_force: Run | None = None) -> list[PriceLine]:
    """Merge the runs of an offer into lines, in the order in which they were last seen.

    No line has the price of the one before it. `in_force` is the run in force: if it is among the runs, it is in the
    last line.
    """
    ordered = sorted(runs, key=itemgetter("known_from", "valid_from"))
    # As app.catalog.in_force has it: of what was last seen on one day, an exact date and the first source count more.
    ordered.sort(key=itemgetter("source_id"), reverse=True)
    ordered.sort(key=lambda run: (run["seen_until"], not run["approximate_date"]))
    groups = sorted(_find_agreeing(ordered), key=max)
    lines: list[PriceLine] = []
    for price, same in groupby(groups, key=lambda group: _PRICE(ordered[group[0]])):
        merged = tuple(ordered[place] for place in sorted(chain.from_iterable(same)))
        earlier = (line.usd_per_hour for line in reversed(lines) if line.since < _first_day(merged))
        line = PriceLine(
            runs=merged,
            previous=next((other for other in earlier if other != price), None),
            in_force=in_force is not None and _KEY(in_force) in map(_KEY, merged),
        )
        lines.append(line)
    return lines


def _first_day(runs: Sequence[Run]) -> str:
    day: str = min(run["valid_from"] for run in runs)
    return day


def _find_agreeing(runs: Sequence[Run]) -> Iterator[list[int]]:
    """Yield the indexes of runs with the same price that overlap or have no other price in between."""
    by_price = sorted(range(len(runs)), key=lambda place: (_PRICE(runs[place]), runs[place]["valid_from"]))
    for price, places in groupby(by_price, key=lambda place: _PRICE(runs[place])):
        others = [(run["valid_from"], run["seen_until"]) for run in runs if _PRICE(run) != price]
        group: list[int] = []
        last = ""
        for place in places:
            first = runs[place]["valid_from"]
            if last and first > last and any(begin < first and end > last for begin, end in others):
                yield group
                group = []
            group.append(place)
            last = max(last, runs[place]["seen_until"])
        yield group
