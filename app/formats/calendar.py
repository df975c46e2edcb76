"""Writes all-day events as iCalendar (RFC 5545), and retirements as such events."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

MAX_LINE_BYTES = 75
"""A longer line is folded (section 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEvent:
    """An event of a whole day; `uid` is the same each time the event is written."""

    uid: str
    day: date
    summary: str
    description: str
    url: str | None = None


def write_calendar(events: Iterable[CalendarEvent], *, product: str, name: str, stamped_at: datetime) -> str:
    """Write a calendar; `stamped_at` is when its content last changed, with a time zone."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", f"PRODID:{_text(product)}", "CALSCALE:GREGORIAN", "METHOD:PUBLISH"]
    lines += [f"NAME:{_text(name)}", f"X-WR-CALNAME:{_text(name)}"]
    stamp = f"DTSTAMP:{stamped_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    for event in events:
        lines += ["BEGIN:VEVENT", f"UID:{_text(event.uid)}", stamp]
        lines.append(f"DTSTART;VALUE=DATE:{_day(event.day)}")
        if event.day < date.max:  # no day comes after that one; an event without an end takes its day
            lines.append(f"DTEND;VALUE=DATE:{_day(event.day + timedelta(days=1))}")
        lines += [f"SUMMARY:{_text(event.summary)}", f"DESCRIPTION:{_text(event.description)}"]
        lines += [f"URL:{_CONTROL.sub('', event.url)}"] if event.url else []
        lines += ["TRANSP:TRANSPARENT", "END:VEVENT"]
    lines.append("END:VCALENDAR")
    return "".join(f"{part}\r\n" for line in lines for part in _fold(line))


def _day(day: date) -> str:
    return day.isoformat().replace("-", "")


def _text(value: str) -> str:
    """Escape a text (section 3.3.11); control characters other than line breaks are not allowed and left out."""
    escaped = value.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return _CONTROL.sub("", re.sub(r"\r\n?|\n", r"\\n", escaped))


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _fold(line: str) -> Iterator[str]:
    """Split a line into parts of at most 75 bytes, each but the first with a space before it, between characters."""
    part, size = "", 0
    for character in line:
        length = len(character.encode())
        if size + length > MAX_LINE_BYTES:
            yield part
            part, size = " ", 1
        part, size = part + character, size + length
    yield part


# Retirements


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
