"""Fetches lists of prices, one after another or side by side, and reads lists that are pages of JSON.

A walk from page to page ends with a page that links to no other; everything else that could end it is an error.
"""

import asyncio
import gzip
import re
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import orjson

from app.catalog.readings import Progress, no_progress
from app.errors import BadData, FetchError
from app.ingest.feeds.fetching import (
    MAX_PAGE_BYTES,
    TIMEOUT,
    USER_AGENT,
    FetchedLists,
    RetryPolicy,
    get,
    open_packed,
)
from app.ingest.feeds.price_lists import Item, ReadScope, RegionPrices
from app.ingest.files import refuse_special_file

PAGE_LIMIT = 500
"""Pages of one list; a region of Azure has some 16. Reaching it is an error, never the end."""
ALL_REGIONS = "all"
"""The list of a feed that has one for all regions."""


@dataclass(slots=True, kw_only=True)
class Walk:
    """The requests for some lists: who sends them, and what came so far."""

    client: httpx.AsyncClient
    url: httpx.URL
    policy: RetryPolicy
    progress: Progress
    lists: int
    headers: Mapping[str, str] = field(default_factory=dict)
    finished: int = 0
    finished_pages: int = 0
    pages: int = 0
    items: int = 0

    def count(self, items: int) -> None:
        """Count a page, and report progress: the other lists are taken to have as many pages as those finished."""
        self.pages, self.items = self.pages + 1, self.items + items
        expected = self.finished_pages / self.finished * self.lists if self.finished else 0
        share = min(0.99, self.pages / expected) if expected else None
        self.progress(f"fetching {self.lists} lists", share, self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceApi:
    """A vendor's feed of prices: a row of the table of feeds, whose functions are all that a cloud needs of its own.

    `fetch` writes the list of a region to a file, or that of all regions without `by_region`; `read` yields the prices
    in such files by the code of the region. `figure` is the field of an item that has its price.
    """

    command: str
    provider: str
    source_id: str
    title: str
    publisher: str
    url: str
    figure: str
    fetch: Callable[[Walk, str, Path], Awaitable[None]]
    read: Callable[[Sequence[Path], ReadScope], Iterator[RegionPrices]]
    by_region: bool = True
    suffix: str = ".jsonl.gz"
    formula: str | None = None

    def lists(self, regions: Sequence[str]) -> Sequence[str]:
        """Return the names of the lists that have the prices of some regions."""
        return regions if self.by_region else (ALL_REGIONS,)


async def fetch_lists(
    api: PriceApi,
    names: Iterable[str],
    store: FetchedLists,
    *,
    url: str = "",
    headers: Mapping[str, str] | None = None,
    concurrency: int = 4,
    policy: RetryPolicy | None = None,
    progress: Progress = no_progress,
) -> dict[str, str]:
    """Fetch the lists that the store lacks; returns those that failed with the reason.

    A list is kept only when all of it was fetched. Where the first requests fail, the other lists are not tried.
    """
    missing = [name for name in names if not store.has(name)]
    failures: dict[str, str] = {}
    limiter = asyncio.Semaphore(concurrency)
    limits = httpx.Limits(max_connections=concurrency)

    async def fetch(name: str) -> None:
        async with limiter:
            if failures and not walk.pages:  # where nothing answers, the other lists need not wait for it, too
                failures[name] = f"not tried: {next(iter(failures.values()))}"
                return
            try:
                with store.new_file(name) as file:
                    await api.fetch(walk, name, file)
            except FetchError as error:
                failures[name] = str(error)

    async with (
        httpx.AsyncClient(timeout=TIMEOUT, limits=limits, headers={"user-agent": USER_AGENT}) as client,
        asyncio.TaskGroup() as group,
    ):
        walk = Walk(
            client=client,
            url=httpx.URL(url or api.url),
            headers=headers or {},
            policy=policy or RetryPolicy(),
            progress=progress,
            lists=len(missing),
        )
        progress(f"fetching {len(missing)} lists", None)
        for name in missing:
            group.create_task(fetch(name))
    return dict(sorted(failures.items()))


# Pages of JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its items, what asks for the following one (None: it is the last), and how many come before that.

    `file` is the one that it was read from.
    """

    items: Sequence[Item]
    following: bytes | None
    items_before_following: int | None = None
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageApi:
    """An API that answers page by page; `to_page` raises FetchError for what is no whole page, `link` is its link."""

    to_page: Callable[[Any], Page]
    to_query: Callable[[httpx.URL, str, bytes | None], bytes]
    link: str


async def fetch_pages(pages: PageApi, walk: Walk, name: str, file: Path) -> None:
    """Write the pages of a list to a file, one a line; raises FetchError where the walk does not come to its end."""
    seen: set[bytes] = set()
    query: bytes | None = pages.to_query(walk.url, name, None)
    with open_packed(file) as opened:
        while query is not None:
            if query in seen:
                raise FetchError(f"page {len(seen)} links to a page that was read already: {query.decode()}")
            if len(seen) >= PAGE_LIMIT:
                raise FetchError(f"there are more than {PAGE_LIMIT} pages")
            seen.add(query)
            body = await get(walk.client, walk.url.copy_with(query=query), walk.policy, walk.headers)
            page = _parse(pages, body)
            if not page.items and (len(seen) == 1 or page.following is not None):
                raise FetchError(f"page {len(seen)} has no items")
            opened.write(body.translate(_ONE_LINE) + b"\n")
            query = None if page.following is None else pages.to_query(walk.url, name, page.following)
            walk.count(len(page.items))
    walk.finished, walk.finished_pages = walk.finished + 1, walk.finished_pages + len(seen)


_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
"""Line breaks in JSON only stand between values, so that spaces do as well."""


def _parse(pages: PageApi, body: bytes) -> Page:
    try:
        page = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise FetchError(f"a page is not JSON: {error}") from error
    return pages.to_page(page)


def read_pages(pages: PageApi, files: Sequence[Path], *, fetched: bool = False) -> Iterator[Page]:
    """Yield the pages in files, in their order; raises BadData where one is missing or wrong.

    A file has one page, or one a line; with `.gz` it is compressed. Whether pages are missing between those that were
    `fetched` here was seen while they were.
    """
    before, last, name = 0, None, ""
    for file in files:
        name = str(file)
        for line, body in _bodies(file):
            try:
                page = _parse(pages, body)
            except FetchError as error:
                raise BadData(str(error), file=name, line=line) from error
            yield replace(page, file=name)
            last = page
            before += len(page.items)
            skipped = page.items_before_following
            if not fetched and skipped is not None and skipped != before:
                detail = f"a page is missing: {before} items are there, and the next page begins after {skipped}"
                raise BadData(detail, file=name, line=line)
            if page.following is None:
                before = 0
    if last is None or last.following is not None:
        raise BadData(f"the last page is missing: one without {pages.link}", file=name)


def _bodies(file: Path) -> Iterator[tuple[int | None, bytes]]:
    refuse_special_file(file)
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as opened:
            if ".jsonl" in file.name:
                lines = iter(lambda: opened.readline(MAX_PAGE_BYTES + 1), b"")
                yield from (
                    (number, _bounded(line, file, number)) for number, line in enumerate(lines, 1) if line.strip()
                )
            else:
                yield None, _bounded(opened.read(MAX_PAGE_BYTES + 1), file, None)
    except (OSError, EOFError, zlib.error) as error:
        raise BadData(f"cannot be read: {error}", file=str(file)) from error


def _bounded(body: bytes, file: Path, line: int | None) -> bytes:
    """Return a page; raises BadData for one that is longer than any, of which no more than that was read."""
    if len(body) > MAX_PAGE_BYTES:
        raise BadData(f"has a page of more than {MAX_PAGE_BYTES:,} bytes", file=str(file), line=line)
    return body


# Saved files

_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".csv", ".csv.gz")


def saved_files(path: Path) -> list[Path]:
    """Return a file, or the files of a folder by name and number; raises BadData for a folder without any."""
    refuse_special_file(path)
    if path.is_file():
        return [path]
    files = [file for file in path.rglob("*") if file.is_file() and file.name.endswith(_SUFFIXES)]
    if not files:
        raise BadData(f"has no saved pages; give a file or a folder of {', '.join(_SUFFIXES)}", file=str(path))
    return sorted(files, key=lambda file: [int(t) if t.isdecimal() else t for t in re.split(r"(\d+)", str(file))])
