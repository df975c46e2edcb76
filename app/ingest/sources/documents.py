"""Reads Markdown pages and the files they include from disk, to be parsed by `app.ingest.documents`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from app.catalog.fields import FIELDS, too_large
from app.catalog.providers import PROVIDERS, is_other_vendor, provider_of
from app.catalog.readings import FileRead, Progress, Reading, Report, SourceKind, StatedFact, no_progress
from app.errors import BadData
from app.ingest.documents.document import read_batch
from app.ingest.documents.gpu_rows import GpuMemoryIndex
from app.ingest.documents.page import SourceDocument, SourcePage, to_page
from app.ingest.documents.values import is_binary
from app.ingest.files import read_bounded, refuse_special_file
from app.ingest.sources.claims import MAY_BE_ZERO

_IRRELEVANT = re.compile(r"footer|-defs\b|preview-tag|previous-gen-header", re.IGNORECASE)
"""Includes without facts of sizes; a missing one is not reported."""

_VENDORS = ", ".join(provider.name for provider in PROVIDERS.values())

_NO_FACTS = "no figure of a size or series can be read in it"


MAX_PAGE_BYTES = 5 * 2**20
"""Of a page; the longest of Azure's on sizes has 200 kB. Reading takes a second for some 800 kB."""

MAX_INCLUDE_DEPTH = 50
"""Of pages that include pages that include pages; those of Azure have two."""


@dataclass(slots=True, kw_only=True)
class _PageCache:
    """The pages read so far by path, since a file that several pages include is one source.

    `ids` are those of sources with the digest of each. `folders` are those that were given; pages in them may include
    any file in them.
    """

    ids: dict[str, str] = field(default_factory=dict)
    pages: dict[Path, SourcePage] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    folders: tuple[Path, ...] = ()


def read_documents(
    paths: Sequence[Path],
    *,
    gpu_memories: GpuMemoryIndex,
    kind: SourceKind | None = None,
    progress: Progress = no_progress,
    require_facts: bool = False,
) -> Reading:
    """Read pages, given as files or folders; raises BadData for a path that cannot be read.

    `kind` is that of pages whose front matter does not state one. With `require_facts` a page without facts raises
    BadData if it was given as a file, and is left out with a report if it was found in a folder.
    """
    cache = _PageCache(folders=tuple(path.resolve() for path in paths if path.is_dir()))
    documents: dict[Path, SourceDocument] = {}
    for number, path in enumerate(pages := find_pages(paths), 1):
        page = _read_page(cache, path, kind, None)
        included = tuple(_read_includes(cache, path, page, {path.resolve()}))
        documents[path] = SourceDocument(page=page, included=included)
        progress(f"reading {path.name}", number / len(pages))
    sources = {page.source.id: page.source for page in cache.pages.values()}
    files = tuple(
        FileRead(
            kind="documents",
            file=page.file,
            sources=frozenset({page.source.id}),
            states_facts=True,
            id_line=page.front.lines.get("id") if page.source.id.startswith(page.front.first("id") or "\n") else None,
        )
        for page in cache.pages.values()
    )
    reading = Reading(sources=tuple(sources.values()), reports=tuple(cache.reports), files=files)
    reading = _without_unusable(reading + read_batch([*documents.values()], gpu_memories))
    return _without_factless_pages(paths, documents, reading) if require_facts else reading


def _without_unusable(reading: Reading) -> Reading:
    """Leave out facts whose number is no amount of the field, and those of sizes of clouds that the catalog lacks.

    There is a report of each such number, and of each page or size of another cloud: these are of a vendor's page whose
    publisher is no provider, or their names are not written as the provider writes.
    """
    sources = {source.id: source for source in reading.sources}
    kept: list[StatedFact] = []
    too_long: list[Report] = []
    reports: dict[tuple[str, str], Report] = {}
    counts = (fact for fact in reading.facts if fact.field == "gpu_count" and fact.value)
    of_gpus = {("gpu_memory_gib", fact.source, fact.subject) for fact in counts}
    for fact in reading.facts:
        source, problem = sources[fact.source], None
        provider = provider_of(source.publisher)
        if isinstance(fact.value, int | Decimal | Fraction):
            spec = FIELDS[fact.kind][fact.field]
            problem = too_large(spec.kind, Fraction(fact.value), spec.unit)
            may_be_zero = fact.field in MAY_BE_ZERO and (fact.field, fact.source, fact.subject) not in of_gpus
            if not fact.value and spec.kind in ("integer", "number") and not may_be_zero:
                problem = "must be above 0"
        if problem is not None:
            cell = fact.raw[:100]
            too_long.append(Report(file=fact.file, line=fact.line, column=fact.field, cell=cell, detail=problem))
        elif fact.kind == "gpu":
            kept.append(fact)
        elif source.kind != "third_party" and is_other_vendor(source.publisher):
            detail = (
                f"is a page of {source.publisher}, whose sizes the catalog does not have: it has those of {_VENDORS}"
            )
            reports[fact.file, ""] = Report(file=fact.file, line=1, column=None, cell=None, detail=detail)
        elif fact.kind == "size" and not provider.size_name.fullmatch(fact.subject):
            detail = f"is not how {provider.name} names sizes: with letters, digits, `_`, `-` and `+`; it is left out"
            report = Report(file=fact.file, line=fact.line, column="name", cell=fact.subject, detail=detail)
            reports.setdefault((fact.file, fact.subject), report)
        else:
            kept.append(fact)
    return replace(reading, facts=tuple(kept), reports=(*reports.values(), *reading.reports, *too_long))


def _without_factless_pages(
    paths: Sequence[Path], documents: Mapping[Path, SourceDocument], reading: Reading
) -> Reading:
    """Leave out pages without facts; raises BadData for one that was given as a file, or if no page has any."""
    with_facts = {stated.source for stated in reading.facts} | {stated.source for stated in reading.benchmarks}
    without_facts: dict[Path, SourceDocument] = {}
    kept: set[str] = set()
    for path, document in documents.items():
        ids = {page.source.id for page in document.pages}
        if ids & with_facts:
            kept |= ids
        else:
            without_facts[path] = document
    named = {path.resolve() for path in paths if path.is_file()}
    for path, document in without_facts.items():
        if path.resolve() in named or len(without_facts) == len(documents):
            raise _no_facts_error(path, document, reading.reports)
    left_out = [
        document.page.report(f"{_no_page(path) or _NO_FACTS}; the page is left out", None)
        for path, document in without_facts.items()
    ]
    return replace(
        reading,
        sources=tuple(source for source in reading.sources if source.id in kept),
        files=tuple(file for file in reading.files if file.sources & kept),
        reports=(*reading.reports, *left_out),
    )


def _no_page(path: Path) -> str | None:
    """Return why a file is no page; None where it is text."""
    data = path.read_bytes()
    return "is empty" if not data.strip() else "is not text" if is_binary(data) else None


def _no_facts_error(path: Path, document: SourceDocument, reports: Sequence[Report]) -> BadData:
    file = document.page.file
    if problem := _no_page(path):
        return BadData(f"{problem}; give a Markdown page", file=file)
    files = {page.file for page in document.pages}
    first = next((report for report in reports if report.file in files and report.line), None)
    why = f" (line {first.line}: {first.detail})" if first else ""
    return BadData(f"{_NO_FACTS}{why}; give a page with a table of sizes or the like", file=file)


def find_pages(paths: Sequence[Path]) -> list[Path]:
    """Return the pages to read: files as given, and all below a folder except those in folders named `includes`."""
    page_of: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise BadData("does not exist: give a Markdown file or a folder with Markdown files", file=str(path))
        refuse_special_file(path)
        pages = [path] if path.is_file() else _pages_below(path)
        if not pages:
            raise BadData("has no Markdown file (*.md) in it that is a page of its own", file=str(path))
        for page in pages:
            page_of.setdefault(page.resolve(), page)
    return list(page_of.values())


def _pages_below(folder: Path) -> list[Path]:
    paths = (path for path in folder.rglob("*") if path.suffix.lower() == ".md" and path.is_file())
    pages = sorted(path for path in paths if "includes" not in path.relative_to(folder).parts[:-1])
    for page in pages:
        if not page.resolve().is_relative_to(folder.resolve()):
            raise BadData("is a link to a file outside of the folder; give that file itself", file=str(page))
    return pages


def _read_includes(
    cache: _PageCache, path: Path, page: SourcePage, seen: set[Path], depth: int = 1
) -> Iterator[SourcePage]:
    for include in page.blocks.includes:
        target = path.parent / re.split(r"[?#]", include.target)[0]
        if target.suffix.lower() != ".md" or not target.is_file():
            if not _IRRELEVANT.search(include.target):
                detail = "includes a file that is not there"
                cache.reports.append(page.report(detail, include.line, None, include.target))
        elif not _may_include(path.resolve(), target.resolve(), cache.folders):
            detail = "includes a file outside of its folder, which is not read"
            cache.reports.append(page.report(detail, include.line, None, include.target))
        elif target.resolve() not in seen:
            if depth > MAX_INCLUDE_DEPTH:
                detail = f"is included by a chain of more than {MAX_INCLUDE_DEPTH} pages"
                raise BadData(detail, file=_display_path(target))
            seen.add(target.resolve())
            part = _read_page(cache, target, None, page)
            yield part
            yield from _read_includes(cache, target, part, seen, depth + 1)


def _may_include(page: Path, target: Path, folders: Sequence[Path]) -> bool:
    """Check whether a page may include a file: one in its folder, in a folder that was given, or in `includes`.

    Folders named `includes` are beside the page's own or beside one above it, as in Azure's documentation. A page may
    come from anybody, and what it includes is shown with its text. Both paths are without links.
    """
    allowed = [page.parent, *folders, *(folder / "includes" for folder in page.parents)]
    return any(target.is_relative_to(folder) for folder in allowed)


def _read_page(cache: _PageCache, path: Path, kind: SourceKind | None, includer: SourcePage | None) -> SourcePage:
    cached = cache.pages.get(path.resolve())
    if cached:
        return cached
    data = read_bounded(path, MAX_PAGE_BYTES, ", which no page of sizes has")
    inherited = includer.source if includer else None
    page, reports = to_page(data, _display_path(path), kind=kind, inherited=inherited, ids=cache.ids)
    cache.pages[path.resolve()] = page
    cache.reports.extend(reports)
    return page


def _display_path(path: Path) -> str:
    """Return a path without the `..` that an include brings, as in `pages/../includes/x.md`."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] not in ("..", path.anchor):
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts).as_posix()
