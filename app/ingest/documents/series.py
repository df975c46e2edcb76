"""The series of a page, read from its title, its list fields (use cases, images, data types, drivers), and retirements.

Dates of these are in sentences about a page's own series, and in tables that list many series.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from app.catalog.names import series_key
from app.ingest.documents.columns import header_key
from app.ingest.documents.page import Finding, MarkdownTable, Passage, Sentence, SourceDocument, SourcePage
from app.ingest.documents.values import find_date, find_slashed_dates, is_blank

LIST_SEPARATOR = "; "
"""Separates the items in the value of a list field."""


class ListedItem(NamedTuple):
    """An item of a list field of a series, such as one use case."""

    page: SourcePage
    field: str
    item: str
    raw: str
    line: int


_USE_CASES = re.compile(r"^(?:key |common |typical |ideal )?use cases?$", re.IGNORECASE)
_INTEGRATION = re.compile(r"\bintegrations?\b", re.IGNORECASE)
_IDEAL_FOR = re.compile(
    r"\b(?:ideal|suited|designed) for\b.*(?:such as|like|including)?\s*:\s*$", re.IGNORECASE | re.DOTALL
)
_SUCH_AS = re.compile(
    r"\b(?:frameworks like|such as|utilizing(?= CUDA,))\s+(?=(?:CUDA|TensorFlow|PyTorch|Pytorch|"
    r"TensorRT))(.+?)(?:,?\s+and\s+(?:other|more|the)\b|,? and \w+ tools|\.|$)",
    re.IGNORECASE,
)
_SUPPORTS = re.compile(r"\bSupports?\s+NVIDIA (CUDA\b.+?)(?:,?\s+and\s+(?:other|more|visualization)\b.*|\.|$)")
_COMPATIBLE = re.compile(r"\bCompatible with\s+(.+?)(?:,?\s+and\s+\w+ tools)?\.?$")
_LIST_SEPARATORS = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_DTYPE = re.compile(
    r"\b(?:FP(?:4|8|16|32|64)|BF16|TF32|TensorFloat-32|INT8|INT4)\b|\bmixed[\s-]precision\b", re.IGNORECASE
)
_SUPPORTS_DTYPES = re.compile(r"^\W*Supports?\b.*\b(?:FP\d+|BF16|TF32|TensorFloat)", re.IGNORECASE)
_IMAGES = re.compile(
    r"(?P<images>(?:Azure HPC\s+)?(?:Ubuntu|CentOS|RHEL|AlmaLinux|SLES|"
    r"Windows Server)[\w\s./,-]*?)\s+(?:VM\s+)?images are supported",
    re.IGNORECASE,
)
_SUPPORTS_IMAGES = re.compile(r"\bsupports?\s+(?P<images>(?:Ubuntu|CentOS|RHEL|AlmaLinux|SLES)[\w\s./,-]*?)\s+for\b")
_OFED = re.compile(
    r"\b(?P<version>\d[\w.-]*\d)\s+(?P<name>Mellanox OFED)\b|"
    r"\b(?P<name2>Mellanox OFED)\s+(?:driver\s+)?(?:version\s+)?(?P<version2>\d[\w.-]*\d)"
)


def find_listed(document: SourceDocument, sentences: Iterable[Sentence]) -> Iterator[ListedItem]:
    """Yield every item of a list field, those of bullets before those of sentences."""
    for page in document.pages:
        yield from _bullets(page)
    for sentence in sentences:
        for field, item in _listed_in(sentence.text):
            yield ListedItem(sentence.page, field, item, sentence.raw, sentence.line)


def _bullets(page: SourcePage) -> Iterator[ListedItem]:
    listing = False
    for passage in page.blocks.passages:
        if passage.kind != "item":
            listing = passage.kind == "paragraph" and bool(_IDEAL_FOR.search(passage.text))
            continue
        item = passage.bold[0] if passage.bold else _one_line(passage)
        if _USE_CASES.match(passage.heading.strip()) or listing:
            yield ListedItem(page, "use_cases", item.strip(" .;"), _one_line(passage), passage.line)
        elif passage.bold and _INTEGRATION.search(passage.heading) and ":" in passage.text:
            yield ListedItem(page, "integrations", item, _one_line(passage), passage.line)


def _listed_in(text: str) -> Iterator[tuple[str, str]]:
    for pattern in (_COMPATIBLE, _SUPPORTS, _SUCH_AS):
        if match := pattern.search(text):
            yield from (("integrations", item) for item in _items(match[1]))
    if _SUPPORTS_DTYPES.search(text):
        named = (dtype[0] for dtype in _DTYPE.finditer(text))
        dtypes = dict.fromkeys("mixed precision" if dtype.lower().startswith("mixed") else dtype for dtype in named)
        yield from (("gpu_dtypes", dtype) for dtype in dtypes)
    if match := _IMAGES.search(text) or _SUPPORTS_IMAGES.search(text):
        yield from (("supported_images", item) for item in _images(match["images"]))
    if match := _OFED.search(text):
        version = match["version"] or match["version2"]
        yield "ofed_driver", f"Mellanox OFED {version}"


def _items(text: str) -> list[str]:
    parts = _LIST_SEPARATORS.split(text)
    return [part.strip(" .*") for part in parts if re.match(r"\s*[A-Za-z]", part) and len(part) < 40]  # noqa: PLR2004  # a name, no clause


def _images(text: str) -> list[str]:
    """Split `Azure HPC Ubuntu 18.04, 20.04`; a version without a name belongs to the name before it."""
    images: list[str] = []
    name = ""
    for part in filter(None, map(str.strip, _LIST_SEPARATORS.split(text))):
        words = re.match(r"(?P<name>[A-Za-z][A-Za-z -]*?)\s*(?P<version>\d[\w./]*)?$", part)
        if words:
            name = words["name"].strip()
        version = words["version"] if words else part
        images.extend(f"{name} {single}".strip() for single in (version or "").split("/"))
    return images


def _one_line(passage: Passage) -> str:
    return re.sub(r"\s+", " ", passage.text).strip()


_LEADING_WORDS = re.compile(
    r"^(?:overview of|about|updated|new|the|microsoft|azure|sizes? (?:for|of|in))\b\s*", re.IGNORECASE
)
_PREVIEW = re.compile(r"\(\s*(?:public |private )?preview\s*\)|^(?:public |private )?preview:\s", re.IGNORECASE)
_TRAILING_WORDS = re.compile(
    r"[\s_-]*\b(?:sizes?|vm|vms|virtual machines?|series|gpu|specifications?|specs?|"
    r"include(?: file)?|overview|general availability|products?)\s*$",
    re.IGNORECASE,
)
_SIZE_RANGE = re.compile(r"(?<=series) \d+[-–]\d+$", re.IGNORECASE)
"""Which sizes of a series a page is about, as in `Dv2-series 11-15`."""
_NAME = re.compile(r"^(?=[^a-z]*[A-Z])[A-Z][A-Za-z0-9_+.-]*(?: [A-Z0-9v][A-Za-z0-9_+.-]*){0,7}$")
_SHORT = re.compile(r"^[A-Z]{1,4}[a-z]{0,4}$")
_MAX_NAME_LENGTH = 45
_SIZE = re.compile(r"^(?:standard_|basic_)?(?P<letters>[a-z]+)\d+(?:-\d+)?(?P<features>[a-z]*)", re.IGNORECASE)
_PLAIN_SERIES = re.compile(r"(?P<letters>[A-Z]+[a-z]*?)(?:v\d+)?")
"""A series whose name is letters and a version, which its sizes have around the number of vCPUs."""
_VERSION = re.compile(r"(?:v|[ _-]V)(\d{1,2})(?!\d)")
_SIZE_VERSION = re.compile(r"[_ ]v(\d{1,2})$", re.IGNORECASE)
_NAME_WITHOUT_VERSION = re.compile(r"^[A-Z]+[a-z]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesTitle:
    """The name of a page's series, and the title that it was read from.

    `stated` is true where the front matter has the name as `series:`, so that no title had to be interpreted.
    """

    name: str
    raw: str
    line: int
    stated: bool = False


def find_series(page: SourcePage) -> SeriesTitle | None:
    """Return the series in `series:` of the front matter, else in the title, else in the first heading."""
    front = page.front
    if stated := front.first("series"):
        return SeriesTitle(name=stated, raw=stated, line=front.lines.get("series", 1), stated=True)
    for title, line in _titles(page):
        if name := to_series_name(title):
            return SeriesTitle(name=name, raw=title, line=line)
    return None


def to_series_name(title: str) -> str | None:
    """Return `NGads V620` for the title `Overview of NGads V620 Series (preview)`; None if no name is left."""
    text = _PREVIEW.sub(" ", title.strip("'\" #")).strip()
    text = re.split(r":\s|\s[-–—|]\s", text)[0].strip()
    text = _SIZE_RANGE.sub("", text)
    while (shorter := _TRAILING_WORDS.sub("", _LEADING_WORDS.sub("", text)).strip(" -_,")) != text:
        text = shorter
    text = re.sub(r"\s+", " ", text)
    named = bool(re.search(r"[\d_]", text) or _SHORT.match(text))
    return text if named and _NAME.match(text) and len(text) <= _MAX_NAME_LENGTH else None


def belongs_to_series(series: str, size: str) -> bool:
    """Return whether a size has the letters and the version of a series, as E2bds_v6 has those of Ebdsv6.

    The check is needed because a title may name no series, or not that of every size below it. A size may have letters
    of its own besides, as B2ats_v2 of Basv2, and lack the `s` of premium disks, as DC8_v2 of DCsv2.
    """
    if size == series:
        return True
    named = _SIZE.match(size)
    if not named or not _has_letters(series, named["letters"], named["features"]):
        return False
    theirs, own = _VERSION.findall(series), _SIZE_VERSION.findall(size)
    if theirs and own:
        return int(theirs[-1]) == int(own[-1])
    # A name without a version is that of the first version of the series.
    return not (_NAME_WITHOUT_VERSION.match(series) and own and int(own[-1]) > 1)


def _has_letters(series: str, letters: str, features: str) -> bool:
    if plain := _PLAIN_SERIES.fullmatch(series):
        own = plain["letters"].lower()
        return own.startswith(letters.lower()) and set(own[len(letters) :]) <= {*features.lower(), "s"}
    upper = letters.upper()
    return bool(re.match(rf"{upper}(?![A-Z])|{upper}[A-Z]{{1,2}}\d", series))


def find_preview_title(page: SourcePage) -> tuple[str, int] | None:
    """Return the title or first heading that says preview, and its line."""
    return next(((title, line) for title, line in _titles(page) if _PREVIEW.search(title)), None)


def _titles(page: SourcePage) -> Iterator[tuple[str, int]]:
    """Yield the title of the front matter and the first heading, with their lines."""
    if title := page.front.first("title"):
        yield title, page.front.lines.get("title", 1)
    yield from [(part.text, part.line) for part in page.blocks.passages if part.kind == "heading"][:1]


_RETIRES = re.compile(
    r"\b(?:will be retired|planned to retire|(?:has|have|was|were|is|are) (?:being )?retired?|retires?|"
    r"(?:be|is|are) retiring|scheduled to retire|(?:scheduled|planned|set|slated) for retirement)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|n't|doesn't|won't)\b", re.IGNORECASE)
_THESE_SIZES = re.compile(
    r"^(?:the|this|these)\s+(?:vm\s+)?(?:sizes?|series)\b|\b(?:this|these)\s+(?:vm\s+)?(?:sizes?|series)\b",
    re.IGNORECASE,
)
_SERIES_LIST = re.compile(
    r"^(?:(?:the|azure|both)\s+)*(?P<names>[A-Z]\w*[\s-]series\b(?:(?:\s*,|\s+and|\s*&|\s*/)+\s*[A-Z]\w*[\s-]series\b)+)",
    re.IGNORECASE,
)
"""Several series at the start of a sentence, `The Ev3-series and Esv3-series`."""
_SERIES_SEPARATOR = re.compile(r"/(?=[A-Z])|\s*,\s*(?:and\s+)?(?=[A-Z])")
_OPENING_DATE = re.compile(r"(?:on|by|from|as of)\s[^.;]{6,20}\d{4},", re.IGNORECASE)
SOME_SIZES = re.compile(r"\b(?:all|the|these|following)\s+(?!vm\b)[a-z]+\s+sizes\s+(?:in|of)\b", re.IGNORECASE)
"""Sizes of a series that a sentence distinguishes from its others: `all isolated sizes in this series`."""
_LIST = re.compile(r"\s*(?:,|\band\b|&|/)\s*", re.IGNORECASE)


_NAME_HEADER = re.compile(r"(?:vms? |virtual machines? )?(?:(?:size )?series(?: name)?|sizes?)")


def is_retiring(text: str) -> bool:
    """Return whether a text gives a retirement date of series that it names (not of `these sizes`)."""
    verb = _RETIRES.search(text)
    if not verb or _THESE_SIZES.search(text[: verb.start()]):
        return False
    return find_date(text[verb.start() :]) is not None


def find_retirement(sentences: Iterable[Sentence], series: str | None) -> tuple[Sentence, date] | None:
    """Return the first sentence that retires the page's own series, and its date, ignoring other series."""
    for sentence in sentences:
        verb = _RETIRES.search(sentence.text)
        if not verb or _NEGATION.search(sentence.text):
            continue
        day = find_date(sentence.text[verb.start() :])
        if day is None and (opening := _OPENING_DATE.match(sentence.text)):
            day = find_date(opening[0])
        if day and _names_series(sentence.text[: verb.start()], series):
            return sentence, day
    return None


def _names_series(subject: str, series: str | None) -> bool:
    if _THESE_SIZES.search(subject):
        return True
    if series is None:
        return False
    if several := _SERIES_LIST.match(subject):
        return series_key(series) in {series_key(name) for name in _LIST.split(several["names"])}
    names = re.split(r"[\s-]+(?:size\s+)?series\b|\s+(?:Azure\s+)?(?:virtual machines|VMs?|sizes?)\b", subject)[0]
    keys = {
        series_key(re.sub(r"^(?:the|azure)\s+", "", name.strip(), flags=re.IGNORECASE)) for name in _LIST.split(names)
    }
    return series_key(series) in keys


def is_retirement_table(table: MarkdownTable) -> bool:
    """Return whether a table lists series or sizes with their retirement dates."""
    keys = [header_key(cell.text) for cell in table.header]
    return any(map(_NAME_HEADER.fullmatch, keys)) and any(_is_date_header(key) for key in keys)


def read_retirement_table(page: SourcePage, table: MarkdownTable) -> Iterator[Finding]:
    """Yield the retirement date of every series or size of the table.

    A date such as 05/06/2021 is read in the order that the other dates of its column show.
    """
    keys = [header_key(cell.text) for cell in table.header]
    names = next(at for at, key in enumerate(keys) if _NAME_HEADER.fullmatch(key))
    dates = next(at for at, key in enumerate(keys) if _is_date_header(key))
    cells = (row.cells[dates].text for row in table.rows)
    # By the unambiguous dates of the column; None if they leave it open.
    single = [next(iter(readings)) for cell in cells if len(readings := find_slashed_dates(cell)) == 1]
    month_first = None if not single or len(set(single)) > 1 else single[0]
    for row in table.rows:
        name, cell = row.cells[names].text, row.cells[dates]
        if is_blank(name) or is_blank(cell.text):
            continue
        day = find_date(cell.text, month_first=month_first)
        if day is None:
            yield page.report("is not a date, or an ambiguous one", row.line, table.header[dates].text, cell.raw)
        elif name.startswith("Standard_"):
            yield page.size_fact(name, "retirement_date", day, cell.raw, row.line)
        else:
            for part in _SERIES_SEPARATOR.split(re.sub(r"\s*\([^)]*\)", "", name)):
                yield page.series_fact(to_series_name(part) or part.strip(), "retirement_date", day, cell.raw, row.line)


def _is_date_header(key: str) -> bool:
    return "retirement date" in key or key in ("retires on", "retired on", "date of retirement")
