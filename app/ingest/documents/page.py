"""Markdown to a page: its blocks (tables, passages of text, includes) with line numbers, its source, and its sentences.

Pages break tables in ways that make a Markdown parser miss them; `repair_layout` fixes these without losing count of
the source lines. markdown-it-py parses what it returns, and tokens become plain text and tables. Reading a page has two
results: facts and reports.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

import yaml
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from app.catalog.fields import FactValue
from app.catalog.providers import UNKNOWN_PUBLISHER
from app.catalog.readings import AUTHORITY, Report, SourceKind, SourceRow, StatedFact, day_problem, url_problem
from app.errors import BadData
from app.ingest.documents.values import find_date, to_lines

LINE_END, HTML_BREAK = "\n", "\v"
"""Characters of a passage's text: the end of a source line, and a `<br>`, which does not end a source line."""


PassageKind = Literal["heading", "paragraph", "item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A cell of a table: `text` without markup, `raw` as in the file, its footnote marks (`*`, `1`)."""

    text: str
    raw: str
    footnote_marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row with as many cells as the header; `extra_cells` are those beyond the last column."""

    line: int
    cells: tuple[TableCell, ...]
    extra_cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownTable:
    """A table; `line` is that of its header, `in_list` whether it is inside a list, `heading` the heading above it."""

    line: int
    header: tuple[TableCell, ...]
    rows: tuple[TableRow, ...]
    in_list: bool
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A heading, paragraph or list item without markup; `bold` are its parts in bold, `heading` the heading above it.

    `level` is 1 to 6 for a heading and 0 for anything else.
    """

    kind: PassageKind
    text: str
    line: int
    heading: str
    bold: tuple[str, ...] = ()
    footnote_marks: tuple[str, ...] = ()
    level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """A reference to another file whose text is part of the page."""

    target: str
    line: int


MAX_COLUMNS = 200
"""Of a table; the widest of Azure's on sizes has some 20. Every header is looked up many times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The parsed body of a page.

    `html_tables` and `wide_tables` are the lines of tables that are not read: those in HTML, and those of more than
    MAX_COLUMNS columns. `long_texts` are the lines with texts that are not read for their length.
    """

    tables: tuple[MarkdownTable, ...]
    passages: tuple[Passage, ...]
    includes: tuple[Include, ...]
    html_tables: tuple[int, ...]
    wide_tables: tuple[int, ...] = ()
    long_texts: tuple[int, ...] = ()


_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"^\s*+\|?\s*+:?-++:?\s*+(\|\s*+:?-++:?\s*+)*+\|?\s*+$")
_SPACER = re.compile(r"^\s*(<br\s*/?>\s*)+$|^\s*:::", re.IGNORECASE)


def split_row(line: str) -> list[str]:
    """Split a line of a table into its cells; the outer pipes are optional."""
    cells = [cell.strip() for cell in _PIPE.split(line.strip().removeprefix(">").strip())]
    if cells and not cells[0]:
        cells = cells[1:]
    return cells[:-1] if cells and not cells[-1] else cells


def repair_layout(lines: Sequence[str], first: int) -> tuple[list[str], list[int]]:
    """Return the repaired lines and the number of the source line of each.

    Blank lines are put around a table that touches other text, a delimiter row is made as wide as its header, and a
    line of nothing but `<br>` (which would turn the lines below it into an HTML block) is made blank.
    """
    repaired = list(_repaired_lines(lines, first))
    return [text for _, text in repaired], [number for number, _ in repaired]


def _repaired_lines(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    inside = False
    for at, source in enumerate(lines):
        line, number = source, first + at
        opens = not inside and _is_table_header(lines, at)
        if inside and not _PIPE.search(line):
            inside = False
            yield number, ""
        if opens:
            inside = True
            yield number, ""
        elif inside and _DELIMITER.match(line) and _is_table_header(lines, at - 1):
            width = len(split_row(lines[at - 1]))
            if len(split_row(line)) != width:
                line = f"{line[: len(line) - len(line.lstrip())]}|{'|'.join(['---'] * width)}|"
        yield number, "" if _SPACER.match(line) else line


def _is_table_header(lines: Sequence[str], at: int) -> bool:
    if at < 0 or at + 1 >= len(lines) or not _PIPE.search(lines[at]):
        return False
    # `---` without a pipe below a line makes it a heading, not a table.
    return bool(_DELIMITER.match(lines[at + 1]) and "|" in lines[at + 1]) and not _DELIMITER.match(lines[at])


_TAG = re.compile(r"<\s*(/?)\s*([a-zA-Z]+)")
_FOOTNOTE = re.compile(r"^[\s(]*(\d{1,2}|[*†‡§]+|[a-e])(?:\s*,\s*\d{1,2})*[\s)]*$")
_TRAILING_MARK = re.compile(r"[\s*†‡§¹²³⁴⁵⁶⁷⁸⁹]+$")


def to_plain(tokens: Sequence[Token]) -> tuple[str, tuple[str, ...]]:
    """Return the text and the footnote marks of an inline token's children.

    A superscript of a digit or sign is a footnote mark; any other is text, as in `24<sup>vCores` (never closed).
    """
    parts: list[str] = []
    marks: list[str] = []
    superscript: list[str] | None = None
    for token in tokens:
        if token.type == "html_inline" and (tag := _TAG.match(token.content)) and tag[2].lower() == "sup":
            _end_superscript(superscript, parts, marks)
            superscript = None if tag[1] else []
            continue
        (parts if superscript is None else superscript).append(_text(token))
    _end_superscript(superscript, parts, marks)
    return "".join(parts), tuple(marks)


def to_cell(tokens: Sequence[Token], raw: str) -> TableCell:
    """Build a table's cell; line ends become spaces, trailing signs such as `*` footnote marks."""
    text, marks = to_plain(tokens)
    text = re.sub(r"[ \t\n]+", " ", text).strip(" \v")
    if mark := _TRAILING_MARK.search(text):
        marks = (*marks, *mark[0].replace(" ", ""))
        text = text[: mark.start()]
    return TableCell(text=text, raw=raw.strip(), footnote_marks=marks)


def to_bold(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the runs of bold text."""
    runs: list[str] = []
    depth = 0
    for token in tokens:
        if token.type == "strong_open":
            depth += 1
            runs.append("")
        elif token.type == "strong_close":
            depth -= 1
        elif depth:
            runs[-1] += _text(token)
    return tuple(run.strip(" :.") for run in runs)


def _text(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return LINE_END
    if token.type == "html_inline":
        tag = _TAG.match(token.content)
        return HTML_BREAK if tag and tag[2].lower() == "br" else ""
    return token.content


def _end_superscript(superscript: list[str] | None, parts: list[str], marks: list[str]) -> None:
    if superscript is None:
        return
    text = "".join(superscript)
    if _FOOTNOTE.match(text):
        marks.append(text.strip(" ()"))
    elif text.strip():
        parts.append(f" {text}")


_INCLUDE = re.compile(
    r"\[!INCLUDE\s*+\[[^\]]{0,500}+\]\(\s{0,500}+([^)\s]{1,500}+)[^)]{0,500}+\)\s{0,500}+\]", re.IGNORECASE
)
_PARSER = MarkdownIt("commonmark").enable("table")

MAX_TEXT_CHARS = 5_000
"""Of a paragraph or a cell; the longest of Azure's on sizes has 2,000. The time of some patterns, and of the parser,
grows with the square of it."""


def _empty_long_texts(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and len(token.content) > MAX_TEXT_CHARS:
            token.content, token.meta["is_too_long"] = "", True


_PARSER.core.ruler.before("inline", "long_texts", _empty_long_texts)


_MAX_PIPES = 5 * MAX_COLUMNS


def to_blocks(lines: Sequence[str], *, first: int = 1) -> Blocks:
    """Parse a page's lines, the first of which is number `first` of its file."""
    includes = [
        Include(target=target, line=first + offset)
        for offset, line in enumerate(lines)
        for target in _INCLUDE.findall(line)
    ]
    # The parser makes several objects of each cell: a line of pipes alone would fill the memory.
    endless = [at for at, line in enumerate(lines, first) if line.count("|") > _MAX_PIPES]
    lines = [line.replace("|", " ") if line.count("|") > _MAX_PIPES else line for line in lines]
    texts, line_numbers = repair_layout([_INCLUDE.sub("", line) for line in lines], first)
    tokens = _PARSER.parse("\n".join(texts))
    builder = _BlockBuilder(lines=texts, line_numbers=line_numbers, tokens=tokens)
    for at in range(len(tokens)):
        builder.add(at)
    long_texts, line = list[int](), first
    for token in tokens:
        line = line_numbers[token.map[0]] if token.map else line
        if "is_too_long" in token.meta:
            long_texts.append(line)
    return Blocks(
        tables=tuple(builder.tables),
        passages=tuple(builder.passages),
        includes=tuple(includes),
        html_tables=tuple(builder.html_tables),
        wide_tables=tuple(sorted((*builder.wide_tables, *endless))),
        long_texts=tuple(dict.fromkeys(long_texts)),
    )


@dataclass(slots=True, kw_only=True)
class _BlockBuilder:
    """Collects blocks from the parser's tokens; `heading` and `list_depth` are those at the current token."""

    lines: list[str]
    line_numbers: list[int]
    tokens: list[Token]
    heading: str = ""
    list_depth: int = 0
    tables: list[MarkdownTable] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    html_tables: list[int] = field(default_factory=list)
    wide_tables: list[int] = field(default_factory=list)

    def add(self, at: int) -> None:
        token = self.tokens[at]
        if token.type in ("bullet_list_open", "ordered_list_open"):
            self.list_depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self.list_depth -= 1
        elif token.type == "table_open":
            table = self._to_table(at)
            if len(table.header) > MAX_COLUMNS:
                self.wide_tables.append(table.line)
            else:
                self.tables.append(table)
        elif token.type == "html_block" and "<table" in token.content.lower():
            self.html_tables.append(self._line_number(token))
        elif token.type == "inline" and self.tokens[at - 1].type in ("paragraph_open", "heading_open"):
            self._add_passage(self.tokens[at - 1], token.children or [])

    def _line_number(self, token: Token) -> int:
        return self.line_numbers[token.map[0]] if token.map else 0

    def _add_passage(self, opening: Token, inline: Sequence[Token]) -> None:
        text, marks = to_plain(inline)
        kind: PassageKind = "item" if self.list_depth else "paragraph"
        if opening.type == "heading_open":
            kind, self.heading = "heading", text
        if text.strip():
            self.passages.append(
                Passage(
                    kind=kind,
                    text=text,
                    line=self._line_number(opening),
                    heading=self.heading,
                    bold=to_bold(inline),
                    footnote_marks=marks,
                    level=int(opening.tag[1]) if kind == "heading" else 0,
                )
            )

    def _to_table(self, at: int) -> MarkdownTable:
        rows: list[TableRow] = []
        cells: list[TableCell] = []
        opening = self.tokens[at]
        for token in map(self.tokens.__getitem__, range(at + 1, len(self.tokens))):
            if token.type == "tr_open":
                opening, cells = token, []
            elif token.type == "inline":
                cells.append(to_cell(token.children or [], token.content))
            elif token.type == "tr_close":
                # The parser drops cells beyond the last column, so the source line is split again.
                source = split_row(self.lines[opening.map[0]]) if opening.map else []
                extra = tuple(filter(None, source[len(cells) :]))
                rows.append(TableRow(line=self._line_number(opening), cells=tuple(cells), extra_cells=extra))
            elif token.type == "table_close":
                break
        header, *body = rows
        # Some tables begin with an empty header row; their first row holds the headers.
        if body and not any(cell.text for cell in header.cells):
            header, *body = body
        return MarkdownTable(
            line=header.line,
            header=header.cells,
            rows=tuple(body),
            in_list=self.list_depth > 0,
            heading=self.heading,
        )


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z“\"(])|\v")
_BEFORE_SENTENCE = re.compile(r"\s*(?:\[!\w+\]\s*)?")
"""What is before a sentence: spaces, and the first line of an alert, `[!NOTE]`."""
_REMOTE_ONLY = re.compile(r"\W*(?P<mark>[A-Z]{1,4}):.*\bremote storage only\b", re.IGNORECASE)
_MAX_RAW_LENGTH = 300
_ID = re.compile(r"[A-Za-z0-9._-]+")
_FRONT_MATTER_KEY = re.compile(r"^\s?([A-Za-z_][\w.-]*):(.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """Keys of a page in lower case, the line number of each, and the number of the first line of the body.

    Of those that are `repeated` the last counts. Those that are `too_long` have no value.
    """

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    body_line: int = 1
    repeated: tuple[str, ...] = ()
    too_long: tuple[str, ...] = ()

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
    plain = {match[1].lower(): match[2].strip().strip("'\" ") for match in matches.values()}
    line_numbers = {match[1].lower(): start + 2 + at for at, match in matches.items()}
    times = Counter(match[1].lower() for match in matches.values())
    repeated = tuple(key for key, number in times.items() if number > 1)
    values = plain | _yaml(block)
    too_long = tuple(key for key, value in values.items() if len(value) > MAX_TEXT_CHARS)
    return FrontMatter(
        values={key: value for key, value in values.items() if key not in too_long},
        lines=line_numbers,
        body_line=end + 2,
        repeated=repeated,
        too_long=too_long,
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


DAY_KEYS = ("published_on", "ms.date", "date")
"""The keys of the front matter that may have the day of a page; the first that is filled counts."""


def to_page(
    data: bytes, file: str, *, kind: SourceKind | None, inherited: SourceRow | None, ids: dict[str, str]
) -> tuple[SourcePage, list[Report]]:
    """Parse a file; return its page and reports of bad front matter. Raises BadData for a bad `url` and a day to come.

    `ids` has the ids assigned so far, each with the digest of its file: of two different files of the same name and
    date the second gets another id.
    Publisher and kind come from the front matter, else from the page that includes the file (`inherited`); `kind` is
    that of a page where neither says it.
    """
    lines = to_lines(data)
    front = to_front_matter(lines)
    blocks = to_blocks(lines[front.body_line - 1 :], first=front.body_line)
    day_key = next(filter(front.first, DAY_KEYS), DAY_KEYS[0])
    stated_day = front.first(day_key)
    published = find_date(stated_day) if stated_day else None
    if problem := day_problem(published):
        raise BadData(f"{stated_day!r}: {problem}", file=file, line=front.lines.get(day_key), column=day_key)
    url_key = next(filter(front.first, ("url", "canonical_url")), "url")
    url = front.first(url_key)
    if url and (problem := url_problem(url)):
        raise BadData(f"{url[:100]!r}: {problem}", file=file, line=front.lines.get(url_key), column=url_key)
    heading = next((part.text for part in blocks.passages if part.kind == "heading"), None)
    sha256 = hashlib.sha256(data).hexdigest()
    id_ = stated_id = front.first("id") or ""
    if not _ID.fullmatch(id_):
        id_ = slugify(f"{PurePath(file).stem} {published or ''}")
    if ids.setdefault(id_, sha256) != sha256:
        id_ = f"{id_}-{sha256[:8]}"
        ids[id_] = sha256
    source = SourceRow(
        id=id_,
        title=front.first("title") or heading or PurePath(file).stem,
        publisher=_publisher(front, inherited),
        kind=_kind(front, kind, inherited),
        url=url,
        published_on=published,
        sha256=sha256,
        pinned=front.first("pinned") == "true",
    )
    page = SourcePage(file=file, front=front, blocks=blocks, source=source)
    stated = front.first("kind")
    reports = [
        page.report("is in the front matter twice; the last counts", front.lines[key], key, front.values.get(key))
        for key in front.repeated
    ]
    reports += [
        page.report(f"has more than {MAX_TEXT_CHARS:,} characters and is not read", front.lines.get(key), key[:100])
        for key in front.too_long
    ]
    if stated_id and not _ID.fullmatch(stated_id):
        detail = "must be letters of A to Z, digits, `.`, `_` and `-`; the id is made of the name of the file instead"
        reports.append(page.report(detail, front.lines.get("id"), "id", stated_id))
    if stated_day and not published:
        detail = "is not a date, which is written as YYYY-MM-DD; the page counts as undated"
        reports.append(page.report(detail, front.lines.get(day_key), day_key, stated_day))
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
