from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar

from app.formats.calendar import CalendarEvent, write_calendar

STAMP = datetime(2026, 9, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))


def event(**more: object) -> CalendarEvent:
    ordinary = {"uid": "a@b", "day": date(2026, 9, 30), "summary": "x", "description": "y"}
    return CalendarEvent(**ordinary | more)  # type: ignore[arg-type]  # as the test writes it


def write(*events: CalendarEvent) -> str:
    return write_calendar(events, product="-//p//EN", name="n", stamped_at=STAMP)


def read(text: str) -> list[Any]:
    return list(Calendar.from_ical(text).walk("VEVENT"))


def test_an_event_is_read_back_by_another_implementation() -> None:
    (found,) = read(
        write(event(summary="NVv3, NVv4; and \\more", description="one\ntwo", url="https://example.org/?a=1,2"))
    )
    assert found["SUMMARY"] == "NVv3, NVv4; and \\more"
    assert found["DESCRIPTION"] == "one\ntwo"
    assert found["URL"] == "https://example.org/?a=1,2"
    assert (found["UID"], found.DTSTAMP) == ("a@b", datetime(2026, 9, 1, 12, 30, tzinfo=UTC))
    assert (found["DTSTART"].dt, found["DTEND"].dt) == (date(2026, 9, 30), date(2026, 10, 1))


@pytest.mark.parametrize("day", [date.min, date.max])
def test_the_first_and_the_last_day_that_there_are_can_be_written(day: date) -> None:
    (found,) = read(write(event(day=day)))
    assert found["DTSTART"].dt == day
    assert ("DTEND" in found) == (day < date.max)


def test_a_calendar_without_events_is_a_calendar() -> None:
    assert Calendar.from_ical(write())["VERSION"] == "2.0"


def test_lines_end_with_crlf_and_have_at_most_75_bytes() -> None:
    text = write(event(description="Standard_ND96isr_H100_v5, " * 20 + "ü€🙂" * 40))
    lines = text.split("\r\n")
    assert lines.pop() == ""
    assert max(len(line.encode()) for line in lines) <= 75
    assert "\n" not in "".join(lines)


@given(st.text())
def test_no_text_breaks_out_of_its_property(text: str) -> None:
    text = text.encode(errors="ignore").decode()
    (found,) = read(write(event(description=text)))
    assert set(found) == {"UID", "DTSTAMP", "DTSTART", "DTEND", "SUMMARY", "DESCRIPTION", "TRANSP"}
