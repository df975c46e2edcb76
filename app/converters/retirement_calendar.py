"""Converts retirements to an iCalendar: an event for each series and date, with its sizes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from app.formats.calendar import CalendarEvent, write_calendar

Row = Mapping[str, Any]


def to_calendar(rows: Iterable[Row], *, stamped_at: datetime) -> str:
    """Write retirements as a calendar, in their order by date; `stamped_at` is the time of the revision."""
    ordered = sorted(rows, key=_group_key)
    events = [_to_event(list(group)) for _, group in groupby(ordered, key=_group_key)]
    return write_calendar(
        events, product="-//vmsizes//retirements//EN", name="Retirements of VM sizes", stamped_at=stamped_at
    )


def _group_key(row: Row) -> tuple[str, str, str]:
    """Return the date, the provider, and the series, or the size where its series is unknown."""
    return (row["retirement_date"].isoformat(), row["provider"], row["series"] or row["size"].lower())


def _to_event(rows: Sequence[Row]) -> CalendarEvent:
    first = rows[0]
    day, provider, subject = _group_key(first)
    name = f"{first['series_name'] or first['series']} sizes" if first["series"] else first["size"]
    published = f", {first['source_published_on']}" if first["source_published_on"] else ""
    source = f"\nSource: {first['source_title']}{published}" if first["source_title"] else ""
    return CalendarEvent(
        uid=f"{provider}-{subject}-{day}@vmsizes",
        day=first["retirement_date"],
        summary=f"{name} {'retire' if first['series'] else 'retires'}",
        description=f"{', '.join(row['size'] for row in rows)}{source}",
        url=first["source_url"],
    )
