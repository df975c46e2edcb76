"""A file's bytes to a page with its source: id, publisher, kind and day from the front matter, else by rule."""

import hashlib
import re
from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePath

from app.catalog.readings import AUTHORITY, Report, SourceKind, SourceNote
from app.ingest.documents.blocks import Blocks
from app.ingest.documents.dates import find_date
from app.ingest.documents.front_matter import FrontMatter, to_front_matter
from app.ingest.documents.markdown import to_blocks
from app.ingest.documents.page import Page
from app.ingest.documents.text import to_lines


@dataclass(slots=True)
class SourceIds:
    """The ids given so far: two different files of one name and day get two ids."""

    given: dict[str, str] = field(default_factory=dict)

    def take(self, wanted: str, sha256: str) -> str:
        """Give the wanted id, lengthened where another content has it."""
        source = wanted if self.given.get(wanted, sha256) == sha256 else f"{wanted}-{sha256[:8]}"
        self.given[source] = sha256
        return source


def to_page(
    data: bytes, file: str, *, kind: SourceKind | None, inherited: SourceNote | None, ids: SourceIds
) -> tuple[Page, list[Report]]:
    """Parse a file; what includes a file lends it what its own front matter does not say."""
    lines = to_lines(data)
    front = to_front_matter(lines)
    blocks = to_blocks(lines[front.body - 1 :], first=front.body)
    published = _published(front)
    sha256 = hashlib.sha256(data).hexdigest()
    wanted = front.first("id") or _slug(f"{PurePath(file).stem} {published or ''}")
    source = SourceNote(
        id=ids.take(wanted, sha256),
        title=front.first("title") or _first_heading(blocks) or PurePath(file).stem,
        publisher=_publisher(front, inherited),
        kind=_kind(front, kind, inherited),
        url=front.first("url", "canonical_url"),
        published_on=published,
        sha256=sha256,
        pinned=front.first("pinned") == "true",
    )
    page = Page(file=file, front=front, blocks=blocks, source=source)
    stated = front.first("kind")
    reports = []
    if stated and stated not in AUTHORITY:
        detail = f"is no kind of source, which are {', '.join(AUTHORITY)}"
        reports.append(page.report(detail, front.lines.get("kind"), "kind", stated))
    if (pinned := front.first("pinned")) not in (None, "true", "false"):
        reports.append(page.report("is neither true nor false", front.lines.get("pinned"), "pinned", pinned))
    return page, reports


def _kind(front: FrontMatter, kind: SourceKind | None, inherited: SourceNote | None) -> SourceKind:
    stated = next((known for known in AUTHORITY if known == front.first("kind")), None)
    if stated or front.is_microsoft:
        return stated or "vendor_page"
    return inherited.kind if inherited else kind or "third_party"


def _publisher(front: FrontMatter, inherited: SourceNote | None) -> str:
    if stated := front.first("publisher"):
        return stated
    if front.is_microsoft:
        return "Microsoft"
    return inherited.publisher if inherited else front.first("feed_name") or "unknown"


def _published(front: FrontMatter) -> date | None:
    stated = front.first("published_on", "ms.date", "date")
    return find_date(stated) if stated else None


def _first_heading(blocks: Blocks) -> str | None:
    return next((part.text for part in blocks.passages if part.kind == "heading"), None)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
