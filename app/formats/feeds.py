"""Writes feeds as Atom (RFC 4287) and as JSON Feed 1.1."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

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
