"""Lays out answers as feeds, calendars and flat tables."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode
from uuid import NAMESPACE_URL, uuid5

from app.catalog.queries.changes import ChangeFilter, RevisionChanges
from app.formats.calendar import CalendarEvent, write_calendar
from app.formats.feeds import Feed, FeedEntry

KINDS: Mapping[str, tuple[str, str]] = {
    "price_up": ("price rose", "prices rose"),
    "price_down": ("price fell", "prices fell"),
    "price_new": ("new price", "new prices"),
    "price_gone": ("price gone", "prices gone"),
    "size_new": ("new size", "new sizes"),
    "size_gone": ("size gone", "sizes gone"),
    "field_changed": ("value changed", "values changed"),
    "dispute_opened": ("dispute opened", "disputes opened"),
    "dispute_closed": ("dispute closed", "disputes closed"),
    "retirement_announced": ("retirement announced", "retirements announced"),
}
"""What a kind of event is called: one of them, and several."""


def to_feed(
    revisions: Sequence[RevisionChanges], filters: ChangeFilter, *, path: str, base_url: str, updated_at: datetime
) -> Feed:
    """Return the feed of revisions; `path` is the feed's own, and `base_url` comes before every path."""
    query = _query_of(filters)
    return Feed(
        id=_stable_id(path, query),
        title="Changes of VM sizes and prices",
        author="vmsizes",
        feed_url=f"{base_url}{path}{query and f'?{query}'}",
        url=f"{base_url}/changes{query and f'?{query}'}",
        updated_at=updated_at,
        entries=[_to_entry(one, query, base_url) for one in revisions],
    )


def _query_of(filters: ChangeFilter) -> str:
    given = filters.model_dump(mode="json", exclude_unset=True)
    return urlencode({name: ",".join(value) if isinstance(value, list) else value for name, value in given.items()})


def _stable_id(*parts: str) -> str:
    return f"urn:uuid:{uuid5(NAMESPACE_URL, ' '.join(('vmsizes', *parts)))}"


def _to_entry(one: RevisionChanges, query: str, base_url: str) -> FeedEntry:
    counts = ", ".join(f"{count:,} {KINDS[kind][count != 1]}" for kind, count in one.counts.items())
    lines = [event_line(event) for event in one.events]
    more = sum(one.counts.values()) - len(lines)
    return FeedEntry(
        id=_stable_id(query, str(one.number), one.created_at.isoformat()),
        title=f"Revision {one.number}: {counts}",
        text="\n".join([*lines, *([f"and {more:,} more"] if more else [])]),
        url=f"{base_url}/changes?revision={one.number}{query and f'&{query}'}",
        updated_at=one.created_at,
    )


def event_line(event: Mapping[str, Any]) -> str:
    """Return an event as a line of text."""
    label = KINDS[event["kind"]][0]
    if event["region"]:
        offer = f"{event['size']} in {event['region']}, {event['os']}, {event['purchase']}"
        percent = f" ({event['percent']:+.1f} %)" if event["percent"] is not None else ""
        return f"{offer}: {label}, {_values(event)}{percent}"
    if event["field"] is None:
        return f"{event['size']}: {label}"
    return f"{event['size']}, {event['field']}: {label}, {_values(event)}"


def _values(event: Mapping[str, Any]) -> str:
    unit = " USD an hour" if event["region"] else ""
    old, new = event["old"], event["new"]
    if event["kind"] in ("price_new", "dispute_opened"):
        return f"{new}{unit}"
    if event["kind"] in ("price_gone", "dispute_closed"):
        return f"{old}{unit}"
    return f"{'unknown' if old is None else old} -> {'unknown' if new is None else new}{unit}"


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


def flatten_adjustments(rows: Sequence[Mapping[str, Any]], prefix: str = "") -> list[dict[str, Any]]:
    """Return rows with list price and rules as fields of their own, for tables and CSV; the same if no row has any.

    The list price of a row that no rule changed is its price. The new fields have the `prefix` of the price's field.
    """
    name = f"{prefix}adjustment"
    if not any(name in row for row in rows):
        return [dict(row) for row in rows]
    flat = []
    for row in rows:
        adjustment = row.get(name, {"list_usd_per_hour": row[f"{prefix}usd_per_hour"], "rules": []})
        plain = {field: value for field, value in row.items() if field != name}
        listed = {"list_usd_per_hour": adjustment["list_usd_per_hour"], "adjustments": adjustment["rules"]}
        flat.append({**plain, **{f"{prefix}{field}": value for field, value in listed.items()}})
    return flat
