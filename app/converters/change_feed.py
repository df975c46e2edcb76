"""Converts revisions with their events to a feed: an entry for each revision, with its first events as lines."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import NAMESPACE_URL, uuid5

from app.catalog.queries.changes import ChangeFilter, RevisionChanges
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
