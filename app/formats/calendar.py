"""Writes all-day events as iCalendar (RFC 5545)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

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
        lines += [f"URL:{_uri(event.url)}"] if event.url else []
        lines += ["TRANSP:TRANSPARENT", "END:VEVENT"]
    lines.append("END:VCALENDAR")
    return "".join(f"{part}\r\n" for line in lines for part in _fold(line))


def _day(day: date) -> str:
    return day.isoformat().replace("-", "")


def _text(value: str) -> str:
    """Escape a text (section 3.3.11); control characters other than line breaks are not allowed and left out."""
    escaped = value.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return _CONTROL.sub("", re.sub(r"\r\n?|\n", r"\\n", escaped))


def _uri(url: str) -> str:
    return _CONTROL.sub("", url)


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
