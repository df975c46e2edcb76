"""Writes feeds as Atom (RFC 4287) and as JSON Feed 1.1, and changes of the catalog as feeds."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree as ET

from app.catalog.queries.changes import ChangeFilter, RevisionChanges

ATOM = "http://www.w3.org/2005/Atom"
JSON_FEED = "https://jsonfeed.org/version/1.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """An entry; `id` is an IRI that is the same each time the entry is written, `text` has lines."""

    id: str
    title: str
    text: str
    url: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A feed; URLs are absolute, or relative to that of the feed. `updated_at` is used where there is no entry."""

    id: str
    title: str
    author: str
    feed_url: str
    url: str
    updated_at: datetime
    entries: Sequence[FeedEntry]


def write_atom(feed: Feed) -> str:
    """Write a feed as Atom."""
    root = ET.Element("feed", {"xmlns": ATOM})
    _add(root, "id", feed.id)
    _add(root, "title", feed.title)
    _add(root, "updated", _timestamp(max((entry.updated_at for entry in feed.entries), default=feed.updated_at)))
    _add(ET.SubElement(root, "author"), "name", feed.author)
    ET.SubElement(root, "link", {"rel": "self", "type": "application/atom+xml", "href": feed.feed_url})
    ET.SubElement(root, "link", {"rel": "alternate", "type": "application/json", "href": feed.url})
    for entry in feed.entries:
        element = ET.SubElement(root, "entry")
        _add(element, "id", entry.id)
        _add(element, "title", entry.title)
        _add(element, "updated", _timestamp(entry.updated_at))
        ET.SubElement(element, "link", {"rel": "alternate", "type": "application/json", "href": entry.url})
        _add(element, "content", entry.text).set("type", "text")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def write_json_feed(feed: Feed) -> str:
    """Write a feed as JSON Feed."""
    items = [
        {
            "id": entry.id,
            "url": entry.url,
            "title": entry.title,
            "content_text": entry.text,
            "date_published": _timestamp(entry.updated_at),
        }
        for entry in feed.entries
    ]
    head = {"version": JSON_FEED, "title": feed.title, "home_page_url": feed.url, "feed_url": feed.feed_url}
    return json.dumps({**head, "authors": [{"name": feed.author}], "items": items}, ensure_ascii=False)


def _add(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, name)
    element.text = _NOT_XML.sub("", text)
    return element


_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even escaped."""


def _timestamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


# Changes


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
    given = filters.model_dump(mode="json", exclude_unset=True)
    query = urlencode({name: ",".join(value) if isinstance(value, list) else value for name, value in given.items()})
    return Feed(
        id=_stable_id(path, query),
        title="Changes of VM sizes and prices",
        author="vmsizes",
        feed_url=f"{base_url}{path}{query and f'?{query}'}",
        url=f"{base_url}/changes{query and f'?{query}'}",
        updated_at=updated_at,
        entries=[_to_entry(revision, query, base_url) for revision in revisions],
    )


def _stable_id(*parts: str) -> str:
    return f"urn:uuid:{uuid5(NAMESPACE_URL, ' '.join(('vmsizes', *parts)))}"


def _to_entry(revision: RevisionChanges, query: str, base_url: str) -> FeedEntry:
    counts = ", ".join(f"{count:,} {KINDS[kind][count != 1]}" for kind, count in revision.counts.items())
    lines = [event_line(event) for event in revision.events]
    more = sum(revision.counts.values()) - len(lines)
    return FeedEntry(
        id=_stable_id(query, str(revision.number), revision.created_at.isoformat()),
        title=f"Revision {revision.number}: {counts}",
        text="\n".join([*lines, *([f"and {more:,} more"] if more else [])]),
        url=f"{base_url}/changes?revision={revision.number}{query and f'&{query}'}",
        updated_at=revision.created_at,
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
