"""Reads Markdown pages and the files they include from disk; what they say is worked out in `app.ingest.documents`."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.catalog.facts import Reading, Report, SourceKind
from app.errors import BadData
from app.ingest.documents.batch import read_batch
from app.ingest.documents.gpu_memories import GpuMemories
from app.ingest.documents.page import Document, Page
from app.ingest.documents.source import SourceIds, to_page

_UNIMPORTANT = re.compile(r"footer|-defs\b|preview-tag", re.IGNORECASE)
"""Includes that hold nothing of sizes: where they are absent nothing is lost."""


@dataclass(slots=True, kw_only=True)
class _Shelf:
    """The files read so far: a file that several pages include is one source."""

    ids: SourceIds = field(default_factory=SourceIds)
    pages: dict[Path, Page] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)


def read_documents(
    paths: Sequence[Path],
    *,
    gpu_memories: GpuMemories,
    kind: SourceKind | None = None,
    on_page: Callable[[Path], None] | None = None,
) -> Reading:
    """Read pages, given as files or folders; raises BadData for a path that cannot be read.

    `kind` is that of pages whose front matter does not say what they are.
    """
    shelf = _Shelf()
    documents: list[Document] = []
    for path in find_pages(paths):
        documents.append(_document(shelf, path, kind))
        if on_page:
            on_page(path)
    return Reading(
        sources=tuple({page.source.id: page.source for page in shelf.pages.values()}.values()),
        reports=tuple(shelf.reports),
    ) + read_batch(documents, gpu_memories)


def find_pages(paths: Sequence[Path]) -> list[Path]:
    """List the pages to read: files as given, folders with all below them except what only other pages include."""
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise BadData("does not exist: give a Markdown file or a folder with Markdown files", file=str(path))
        pages = [path] if path.is_file() else _pages_below(path)
        if not pages:
            raise BadData("has no Markdown file (*.md) in it that is a page of its own", file=str(path))
        for page in pages:
            found.setdefault(page.resolve(), page)
    return list(found.values())


def _pages_below(folder: Path) -> list[Path]:
    pages = (path for path in folder.rglob("*") if path.suffix.lower() == ".md" and path.is_file())
    return sorted(path for path in pages if "includes" not in path.relative_to(folder).parts[:-1])


def _document(shelf: _Shelf, path: Path, kind: SourceKind | None) -> Document:
    page = _page(shelf, path, kind, None)
    return Document(page=page, included=tuple(_included(shelf, path, page, {path.resolve()})))


def _included(shelf: _Shelf, path: Path, page: Page, seen: set[Path]) -> Iterator[Page]:
    for include in page.blocks.includes:
        target = path.parent / re.split(r"[?#]", include.target)[0]
        if target.suffix.lower() != ".md" or not target.is_file():
            if not _UNIMPORTANT.search(include.target):
                shelf.reports.append(
                    page.report("includes a file that is not there", include.line, None, include.target)
                )
        elif target.resolve() not in seen:
            seen.add(target.resolve())
            part = _page(shelf, target, None, page)
            yield part
            yield from _included(shelf, target, part, seen)


def _page(shelf: _Shelf, path: Path, kind: SourceKind | None, includer: Page | None) -> Page:
    known = shelf.pages.get(path.resolve())
    if known:
        return known
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror}", file=str(path)) from error
    inherited = includer.source if includer else None
    page, reports = to_page(data, _shown(path), kind=kind, inherited=inherited, ids=shelf.ids)
    shelf.pages[path.resolve()] = page
    shelf.reports.extend(reports)
    return page


def _shown(path: Path) -> str:
    """Write a path without the detours of an include, `pages/../includes/x.md`."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] not in ("..", path.anchor):
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts).as_posix()
