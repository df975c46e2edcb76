"""A parsed file with the source that it is, and the two things that reading it can give: statements and reports."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePath

import yaml

from app.catalog.fields import FactValue, SubjectKind
from app.catalog.readings import AUTHORITY, Report, SourceKind, SourceRow, StatedFact
from app.ingest.documents.blocks import Blocks, Passage
from app.ingest.documents.markdown import to_blocks
from app.ingest.documents.values import find_date, to_lines

_KEY = re.compile(r"^\s?([A-Za-z_][\w.-]*):\s*(.*?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The keys of a page in lower case, the line each stands on, and the number of the first line after it."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    body_line: int = 1

    def first(self, *keys: str) -> str | None:
        """Give the value of the first of the keys that is there and not empty."""
        return next((self.values[key] for key in keys if self.values.get(key)), None)

    @property
    def is_microsoft(self) -> bool:
        """Say whether it has the keys that Microsoft's own pages have."""
        return any(key.startswith("ms.") for key in self.values)


def to_front_matter(lines: Sequence[str]) -> FrontMatter:
    """Read what stands between the first two `---`; a page without has none, which is no error."""
    start = next((at for at, line in enumerate(lines) if line.strip()), None)
    if start is None or lines[start].strip() != "---":
        return FrontMatter()
    end = next((at for at in range(start + 1, len(lines)) if lines[at].strip() in ("---", "...")), None)
    if end is None:
        return FrontMatter()
    block = lines[start + 1 : end]
    found = {match[1].lower(): at for at, line in enumerate(block) if (match := _KEY.match(line))}
    if block and not found:
        return FrontMatter()
    plain = {match[1].lower(): match[2].strip("'\" ") for line in block if (match := _KEY.match(line))}
    return FrontMatter(
        values=plain | _yaml(block), lines={key: start + 2 + at for key, at in found.items()}, body_line=end + 2
    )


def _yaml(block: Sequence[str]) -> dict[str, str]:
    try:
        data = yaml.load("\n".join(block), Loader=yaml.BaseLoader)  # noqa: S506  # BaseLoader makes strings only
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {str(key).lower(): value.strip() for key, value in data.items() if isinstance(value, str)}


Finding = StatedFact | Report


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """One file, or the section of one that `heading` opens."""

    file: str
    front: FrontMatter
    blocks: Blocks
    source: SourceRow
    heading: str | None = None

    @property
    def title(self) -> str:
        """Give the heading of a section, the title of a whole page."""
        return self.heading or self.source.title

    def size_fact(  # noqa: PLR0917  # what every statement has, in the order in which it is read
        self, subject: str, field: str, value: FactValue, raw: str, line: int, note: str | None = None
    ) -> StatedFact:
        """State a field of a size."""
        return self._fact("size", subject, field, value, (raw, line, note))

    def series_fact(self, subject: str, field: str, value: FactValue, raw: str, line: int) -> StatedFact:
        """State a field of a series."""
        return self._fact("series", subject, field, value, (raw, line, None))

    def report(self, detail: str, line: int | None, column: str | None = None, cell: str | None = None) -> Report:
        """Report something that was not read."""
        return Report(file=self.file, line=line, column=column, cell=cell, detail=detail)

    def _fact(
        self, kind: SubjectKind, subject: str, field: str, value: FactValue, at: tuple[str, int, str | None]
    ) -> StatedFact:
        raw, line, note = at
        return StatedFact(
            kind=kind, subject=subject, field=field, value=value, raw=raw, file=self.file, line=line,
            source=self.source.id, note=note,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDocument:
    """A page together with the files that it includes, itself first."""

    page: SourcePage
    included: tuple[SourcePage, ...] = ()

    @property
    def pages(self) -> tuple[SourcePage, ...]:
        """Give all files of the document."""
        return (self.page, *self.included)

    def passages(self) -> Iterable[tuple[SourcePage, Passage]]:
        """Give every passage with the file it stands in."""
        return ((page, passage) for page in self.pages for passage in page.blocks.passages)


@dataclass(slots=True)
class SourceIds:
    """The ids given so far: two different files of one name and day get two ids."""

    sha256_by_id: dict[str, str] = field(default_factory=dict)

    def assign(self, wanted: str, sha256: str) -> str:
        """Give the wanted id, lengthened where another content has it."""
        source = wanted if self.sha256_by_id.get(wanted, sha256) == sha256 else f"{wanted}-{sha256[:8]}"
        self.sha256_by_id[source] = sha256
        return source


def to_page(
    data: bytes, file: str, *, kind: SourceKind | None, inherited: SourceRow | None, ids: SourceIds
) -> tuple[SourcePage, list[Report]]:
    """Parse a file; what includes a file lends it what its own front matter does not say."""
    lines = to_lines(data)
    front = to_front_matter(lines)
    blocks = to_blocks(lines[front.body_line - 1 :], first=front.body_line)
    published = _published_on(front)
    sha256 = hashlib.sha256(data).hexdigest()
    wanted = front.first("id") or _slug(f"{PurePath(file).stem} {published or ''}")
    source = SourceRow(
        id=ids.assign(wanted, sha256),
        title=front.first("title") or _first_heading(blocks) or PurePath(file).stem,
        publisher=_publisher(front, inherited),
        kind=_kind(front, kind, inherited),
        url=front.first("url", "canonical_url"),
        published_on=published,
        sha256=sha256,
        pinned=front.first("pinned") == "true",
    )
    page = SourcePage(file=file, front=front, blocks=blocks, source=source)
    stated = front.first("kind")
    reports = []
    if stated and stated not in AUTHORITY:
        detail = f"is no kind of source, which are {', '.join(AUTHORITY)}"
        reports.append(page.report(detail, front.lines.get("kind"), "kind", stated))
    if (pinned := front.first("pinned")) not in (None, "true", "false"):
        reports.append(page.report("is neither true nor false", front.lines.get("pinned"), "pinned", pinned))
    return page, reports


def _kind(front: FrontMatter, kind: SourceKind | None, inherited: SourceRow | None) -> SourceKind:
    stated = next((known for known in AUTHORITY if known == front.first("kind")), None)
    if stated or front.is_microsoft:
        return stated or "vendor_page"
    return inherited.kind if inherited else kind or "third_party"


def _publisher(front: FrontMatter, inherited: SourceRow | None) -> str:
    if stated := front.first("publisher"):
        return stated
    if front.is_microsoft:
        return "Microsoft"
    return inherited.publisher if inherited else front.first("feed_name") or "unknown"


def _published_on(front: FrontMatter) -> date | None:
    stated = front.first("published_on", "ms.date", "date")
    return find_date(stated) if stated else None


def _first_heading(blocks: Blocks) -> str | None:
    return next((part.text for part in blocks.passages if part.kind == "heading"), None)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
