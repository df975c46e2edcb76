"""A parsed file and its source, its sentences, and the two results of reading it: facts and reports."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

import yaml

from app.catalog.fields import FactValue
from app.catalog.providers import UNKNOWN_PUBLISHER
from app.catalog.readings import AUTHORITY, Report, SourceKind, SourceRow, StatedFact
from app.ingest.documents.markdown import LINE_END, Blocks, MarkdownTable, Passage, to_blocks
from app.ingest.documents.values import find_date, to_lines

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z“\"(])|\v")
_BEFORE_SENTENCE = re.compile(r"\s*(?:\[!\w+\]\s*)?")
"""What is before a sentence: spaces, and the first line of an alert, `[!NOTE]`."""
_REMOTE_ONLY = re.compile(r"\W*(?P<mark>[A-Z]{1,4}):.*\bremote storage only\b", re.IGNORECASE)
_MAX_RAW_LENGTH = 300
_FRONT_MATTER_KEY = re.compile(r"^\s?([A-Za-z_][\w.-]*):\s*(.*?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """Keys of a page in lower case, the line number of each, and the number of the first line of the body."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    body_line: int = 1

    def first(self, *keys: str) -> str | None:
        """Return the value of the first of `keys` that is present and not empty."""
        return next((self.values[key] for key in keys if self.values.get(key)), None)

    @property
    def is_microsoft(self) -> bool:
        """Return whether there are `ms.` keys, which only Microsoft's own pages have."""
        return any(key.startswith("ms.") for key in self.values)


def to_front_matter(lines: Sequence[str]) -> FrontMatter:
    """Parse the block between the first two `---`; return an empty FrontMatter where there is none."""
    start = next((at for at, line in enumerate(lines) if line.strip()), None)
    if start is None or lines[start].strip() != "---":
        return FrontMatter()
    end = next((at for at in range(start + 1, len(lines)) if lines[at].strip() in ("---", "...")), None)
    if end is None:
        return FrontMatter()
    block = lines[start + 1 : end]
    matches = {at: match for at, line in enumerate(block) if (match := _FRONT_MATTER_KEY.match(line))}
    if block and not matches:
        return FrontMatter()
    # Broken YAML still gives its `key: value` lines; valid YAML overrides them.
    plain = {match[1].lower(): match[2].strip("'\" ") for match in matches.values()}
    line_numbers = {match[1].lower(): start + 2 + at for at, match in matches.items()}
    return FrontMatter(values=plain | _yaml(block), lines=line_numbers, body_line=end + 2)


def _yaml(block: Sequence[str]) -> dict[str, str]:
    try:
        data = yaml.load("\n".join(block), Loader=yaml.BaseLoader)  # noqa: S506  # BaseLoader makes strings only
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {str(key).lower(): value.strip() for key, value in data.items() if isinstance(value, str)}


Finding = StatedFact | Report
"""What a reader yields: a fact, or a report of something that it did not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """One file, or the section of a file that starts at `heading`."""

    file: str
    front: FrontMatter
    blocks: Blocks
    source: SourceRow
    heading: str | None = None

    @property
    def remote_only(self) -> set[str]:
        """Return what the page writes for sizes without local disks, by its legend: `RS: … remote storage only`."""
        legends = (_REMOTE_ONLY.match(passage.text) for passage in self.blocks.passages)
        return {legend["mark"] + star for legend in legends if legend for star in ("", "*")}

    @property
    def title(self) -> str:
        """Return the heading of a section, the title of a whole page."""
        return self.heading or self.source.title

    def size_fact(  # noqa: PLR0917  # called at some forty places, always in this order
        self, subject: str, field: str, value: FactValue, raw: str, line: int, note: str | None = None
    ) -> StatedFact:
        """Build a fact of a size that this page states in `raw` on `line`."""
        return StatedFact(
            kind="size", subject=subject, field=field, value=value, raw=raw, file=self.file, line=line,
            source=self.source.id, note=note,
        )  # fmt: skip

    def size_facts(  # noqa: PLR0917  # as `size_fact`
        self, subjects: Iterable[str], field: str, value: FactValue, raw: str, line: int, note: str | None = None
    ) -> Iterator[StatedFact]:
        """Yield that fact of each of some sizes."""
        return (self.size_fact(subject, field, value, raw, line, note) for subject in subjects)

    def series_fact(self, subject: str, field: str, value: FactValue, raw: str, line: int) -> StatedFact:
        """Build a fact of a series that this page states in `raw` on `line`."""
        return replace(self.size_fact(subject, field, value, raw, line), kind="series")

    def report_table(self, detail: str, table: MarkdownTable) -> Report:
        """Build a report of a table that was not read, by its header."""
        return self.report(detail, table.line, None, " | ".join(cell.text for cell in table.header))

    def report(self, detail: str, line: int | None, column: str | None = None, cell: str | None = None) -> Report:
        """Build a report of something that was not read; `detail` completes the sentence `this cell …`."""
        return Report(file=self.file, line=line, column=column, cell=cell, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUnit:
    """The unit of a page's network bandwidths, and the line that states it."""

    unit: str
    line: int

    @property
    def note(self) -> str:
        """Return the note of a figure whose own table names no unit."""
        return f"in {self.unit}, as line {self.line} says"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDocument:
    """A page together with the files that it includes; `network_unit` is that of the whole page for its sections."""

    page: SourcePage
    included: tuple[SourcePage, ...] = ()
    network_unit: NetworkUnit | None = None

    @property
    def pages(self) -> tuple[SourcePage, ...]:
        """Return all files of the document, the page itself first."""
        return (self.page, *self.included)

    def passages(self) -> Iterable[tuple[SourcePage, Passage]]:
        """Yield every passage with the file that it is in."""
        return ((page, passage) for page in self.pages for passage in page.blocks.passages)

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a passage has what a pattern finds."""
        return any(pattern.search(passage.text) for _, passage in self.passages())

    def sentences(self) -> Iterator["Sentence"]:
        """Yield the sentences of paragraphs and list items."""
        for page, passage in self.passages():
            if passage.kind == "heading":
                continue
            start, line, counted = 0, passage.line, 0
            for end in [*(match.end() for match in _SENTENCE_END.finditer(passage.text)), len(passage.text)]:
                part = passage.text[start:end]
                before = _BEFORE_SENTENCE.match(part)
                indent = before.end() if before else 0
                if text := re.sub(r"\s+", " ", part[indent:].strip()):
                    line += passage.text.count(LINE_END, counted, start + indent)
                    counted = start + indent
                    yield Sentence(page=page, text=text, line=line, heading=passage.heading)
                start = end


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence, the number of the line that it starts on, and the heading above it."""

    page: SourcePage
    text: str
    line: int
    heading: str = ""

    @property
    def raw(self) -> str:
        """Return the sentence as it is quoted in a fact, cut after 300 characters."""
        return self.text if len(self.text) <= _MAX_RAW_LENGTH else f"{self.text[:_MAX_RAW_LENGTH]}…"


def to_page(
    data: bytes, file: str, *, kind: SourceKind | None, inherited: SourceRow | None, ids: dict[str, str]
) -> tuple[SourcePage, list[Report]]:
    """Parse a file; return its page and reports of bad front matter.

    `ids` has the ids assigned so far, each with the digest of its file: of two different files of the same name and
    date the second gets another id.
    Publisher and kind come from the front matter, else from the page that includes the file (`inherited`); `kind` is
    that of a page where neither says it.
    """
    lines = to_lines(data)
    front = to_front_matter(lines)
    blocks = to_blocks(lines[front.body_line - 1 :], first=front.body_line)
    stated_day = front.first("published_on", "ms.date", "date")
    published = find_date(stated_day) if stated_day else None
    heading = next((part.text for part in blocks.passages if part.kind == "heading"), None)
    sha256 = hashlib.sha256(data).hexdigest()
    id_ = front.first("id") or slugify(f"{PurePath(file).stem} {published or ''}")
    if ids.setdefault(id_, sha256) != sha256:
        id_ = f"{id_}-{sha256[:8]}"
        ids[id_] = sha256
    source = SourceRow(
        id=id_,
        title=front.first("title") or heading or PurePath(file).stem,
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
        detail = f"is not a kind of source; the kinds are {', '.join(AUTHORITY)}"
        reports.append(page.report(detail, front.lines.get("kind"), "kind", stated))
    if (pinned := front.first("pinned")) not in (None, "true", "false"):
        reports.append(page.report("is neither true nor false", front.lines.get("pinned"), "pinned", pinned))
    return page, reports


def _kind(front: FrontMatter, kind: SourceKind | None, inherited: SourceRow | None) -> SourceKind:
    stated = next((authority for authority in AUTHORITY if authority == front.first("kind")), None)
    if stated or front.is_microsoft:
        return stated or "vendor_page"
    return inherited.kind if inherited else kind or "third_party"


def _publisher(front: FrontMatter, inherited: SourceRow | None) -> str:
    if stated := front.first("publisher"):
        return stated
    if front.is_microsoft:
        return "Microsoft"
    return inherited.publisher if inherited else front.first("feed_name") or UNKNOWN_PUBLISHER


def slugify(text: str) -> str:
    """Return `text` in lower case with every run of other characters than a-z and 0-9 turned into a dash."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
