"""The series of a page, from its title; the forms that titles have are taken off until the name is left."""

import re
from dataclasses import dataclass

from app.ingest.documents.page import Page

_LEADS = re.compile(r"^(?:overview of|about|updated|new|the|microsoft|azure|sizes? (?:for|of|in))\b\s*", re.IGNORECASE)
_PREVIEW = re.compile(r"\(\s*(?:public |private )?preview\s*\)|^(?:public |private )?preview:\s", re.IGNORECASE)
_TAIL = re.compile(
    r"[\s_-]*\b(?:sizes?|vm|vms|virtual machines?|series|gpu|specifications?|specs?|"
    r"include(?: file)?|overview|general availability)\s*$",
    re.IGNORECASE,
)
_NAME = re.compile(r"^(?=[^a-z]*[A-Z])[A-Z][A-Za-z0-9_+.-]*(?: [A-Z0-9v][A-Za-z0-9_+.-]*){0,7}$")
_SHORT = re.compile(r"^[A-Z]{1,4}[a-z]{0,4}$")
_LONGEST = 45
_SIZE = re.compile(r"^(?:standard_|basic_)?(?P<letters>[a-z]+)\d", re.IGNORECASE)
_VERSION = re.compile(r"(?:v|[ _-]V)(\d{1,2})(?!\d)")
_SIZE_VERSION = re.compile(r"[_ ]v(\d{1,2})$", re.IGNORECASE)
_BARE = re.compile(r"^[A-Z]+[a-z]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesTitle:
    """The name of a page's series, the title it was found in, and that title's line.

    `stated`: the page says in so many words that it is the series, no title had to be read.
    """

    name: str
    raw: str
    line: int
    stated: bool = False


def find_series(page: Page) -> SeriesTitle | None:
    """Find the name: a `series:` of the front matter, else the title, else the first heading."""
    front = page.front
    if stated := front.first("series"):
        return SeriesTitle(name=stated, raw=stated, line=front.lines.get("series", 1), stated=True)
    titles = [(front.first("title"), front.lines.get("title", 1))]
    titles += [(part.text, part.line) for part in page.blocks.passages if part.kind == "heading"][:1]
    for title, line in titles:
        if title and (name := to_series_name(title)):
            return SeriesTitle(name=name, raw=title, line=line)
    return None


def to_series_name(title: str) -> str | None:
    """Clean a title: `Overview of NGads V620 Series (preview)` is NGads V620; None where no name is left."""
    text = _PREVIEW.sub(" ", title.strip("'\" #")).strip()
    text = re.split(r":\s|\s[-–—|]\s", text)[0].strip()
    while (shorter := _TAIL.sub("", _LEADS.sub("", text)).strip(" -_,")) != text:
        text = shorter
    text = re.sub(r"\s+", " ", text)
    named = bool(re.search(r"[\d_]", text) or _SHORT.match(text))
    return text if named and _NAME.match(text) and len(text) <= _LONGEST else None


def fits(series: str, size: str) -> bool:
    """Say whether a size bears the letters and the version of a series, as NC24rs_v3 those of NCv3.

    A title is read by its form, so that it may be no series at all, or not that of every size below it.
    """
    if size == series:
        return True
    named = _SIZE.match(size)
    if not named or not re.match(
        rf"{named['letters'].upper()}(?![A-Z])|{named['letters'].upper()}[A-Z]{{1,2}}\d", series
    ):
        return False
    theirs, own = _VERSION.findall(series), _SIZE_VERSION.findall(size)
    if theirs and own:
        return int(theirs[-1]) == int(own[-1])
    return not (_BARE.match(series) and own and int(own[-1]) > 1)


def is_preview(page: Page) -> tuple[str, int] | None:
    """Give the title or first heading that says preview."""
    titles = [(page.front.first("title"), page.front.lines.get("title", 1))]
    titles += [(part.text, part.line) for part in page.blocks.passages if part.kind == "heading"][:1]
    return next(((title, line) for title, line in titles if title and _PREVIEW.search(title)), None)
