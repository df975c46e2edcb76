"""Fetches the pages of the Azure Retail Prices API, region by region, or reads saved ones.

Each region is one walk from page to page, since only a walk over few pages is consistent while prices change. A walk
ends with a page without `NextPageLink`; everything else that could end it is an error.
"""

import asyncio
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from app.catalog.readings import Progress, no_progress
from app.errors import BadData, FetchError
from app.ingest.feeds.fetched_pages import FetchedPages
from app.ingest.feeds.fetching import MAX_PAGE_BYTES, TIMEOUT, USER_AGENT, RetryPolicy, get
from app.ingest.feeds.retail_prices import Item
from app.ingest.files import refuse_special_file

API_URL = "https://prices.azure.com/api/retail/prices"
API_VERSION = "2023-01-01-preview"
"""The version that has savings plans; texts in its filters are case-sensitive."""
PAGE_LIMIT = 500
"""Pages of one region, of a thousand items each; a region has some 16. Reaching it is an error, never the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the API: its items, and the query of the next page (None: it is the last)."""

    items: Sequence[Item]
    next_query: bytes | None


def to_page(body: bytes) -> Page:
    """Check a page; raises FetchError for one that is no page, was cut, or is in another currency than USD."""
    try:
        page = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise FetchError(f"a page is not JSON: {error}") from error
    items = page.get("Items") if isinstance(page, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FetchError("a page has no list Items")
    if page.get("Count") != len(items):
        raise FetchError(f"a page was cut: its Count is {page.get('Count')}, and it has {len(items)} items")
    if page.get("BillingCurrency") != "USD":
        raise FetchError(f"a page is in {page.get('BillingCurrency')!r}, not in USD")
    return Page(items=items, next_query=_next_query(page.get("NextPageLink")))


def _next_query(link: Any) -> bytes | None:
    if not link:
        return None
    query = httpx.URL(link).query if isinstance(link, str) else b""
    if not query:
        raise FetchError(f"a page has the NextPageLink {link!r}, which has no query")
    return query


# Over HTTP


@dataclass(slots=True, kw_only=True)
class _Walks:
    """The walks over the pages of some regions, and what they fetched so far."""

    client: httpx.AsyncClient
    url: httpx.URL
    store: FetchedPages
    policy: RetryPolicy
    progress: Progress
    regions: int
    finished: int = 0
    finished_pages: int = 0
    pages: int = 0
    items: int = 0

    async def fetch(self, region: str) -> None:
        """Fetch the pages of one region; raises FetchError where a walk does not come to its end."""
        query: bytes | None = first_query(self.url, region)
        seen: set[bytes] = set()
        with self.store.write(region) as write:
            while query is not None:
                if query in seen:
                    raise FetchError(f"page {len(seen)} links to a page that was read already: {query.decode()}")
                if len(seen) >= PAGE_LIMIT:
                    raise FetchError(f"there are more than {PAGE_LIMIT} pages")
                seen.add(query)
                # Only the query of a link is used: a proxy or a copy of the API need not rewrite links.
                body = await get(self.client, self.url.copy_with(query=query), self.policy)
                page = to_page(body)
                if not page.items and (len(seen) == 1 or page.next_query is not None):
                    raise FetchError(f"page {len(seen)} has no items")
                write(body)
                query = page.next_query
                self._count(page)
        self.finished, self.finished_pages = self.finished + 1, self.finished_pages + len(seen)

    def _count(self, page: Page) -> None:
        self.pages, self.items = self.pages + 1, self.items + len(page.items)
        # The other regions are taken to have as many pages as those that are finished.
        expected = self.finished_pages / self.finished * self.regions if self.finished else 0
        self.progress(
            f"fetching {self.regions} regions", min(0.99, self.pages / expected) if expected else None, self.items
        )


async def fetch_regions(
    regions: Iterable[str],
    store: FetchedPages,
    *,
    url: str = API_URL,
    concurrency: int = 4,
    policy: RetryPolicy | None = None,
    progress: Progress = no_progress,
) -> dict[str, str]:
    """Fetch the pages of regions to disk, some side by side; return why regions failed, by region.

    Regions that are on disk already are not fetched again. Where not one page could be fetched, the rest is not tried.
    """
    missing = [region for region in regions if not store.has(region)]
    failures: dict[str, str] = {}
    limiter = asyncio.Semaphore(concurrency)
    limits = httpx.Limits(max_connections=concurrency)

    async def fetch(region: str) -> None:
        async with limiter:
            if failures and not walks.pages:  # where nothing answers, the other regions need not wait for it, too
                failures[region] = f"not tried: {next(iter(failures.values()))}"
                return
            try:
                await walks.fetch(region)
            except FetchError as error:
                failures[region] = str(error)

    async with (
        httpx.AsyncClient(timeout=TIMEOUT, limits=limits, headers={"user-agent": USER_AGENT}) as client,
        asyncio.TaskGroup() as group,
    ):
        walks = _Walks(
            client=client,
            url=httpx.URL(url),
            store=store,
            policy=policy or RetryPolicy(),
            progress=progress,
            regions=len(missing),
        )
        progress(f"fetching {len(missing)} regions", None)
        for region in missing:
            group.create_task(fetch(region))
    return dict(sorted(failures.items()))


def first_query(url: httpx.URL, region: str) -> bytes:
    """Return the query of a region's first page.

    It asks for all meters, not for primary ones only: the single price of a size often is of a meter that is billed
    from another region.
    """
    conditions = f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}'"
    return url.copy_merge_params({"api-version": API_VERSION, "$filter": conditions}).query


# Saved pages

_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_SKIP = re.compile(rb"(?:^|&)(?:\$|%24)skip=(\d+)")


def read_saved_pages(path: Path) -> Iterator[Page]:
    """Yield the pages in a file, or in the files of a folder by name; raises BadData where one is missing or wrong.

    A file has one page, or one a line; with `.gz` it is compressed.
    """
    skipped, last, name = 0, None, str(path)
    for file in _page_files(path):
        name = str(file)
        for line, body in _bodies(file):
            try:
                page = to_page(body)
            except FetchError as error:
                raise BadData(str(error), file=name, line=line) from error
            yield page
            last = page
            skipped += len(page.items)
            skip = _SKIP.search(page.next_query) if page.next_query else None
            if skip and int(skip[1]) != skipped:
                detail = f"a page is missing: {skipped} items are there, and the next page begins after {int(skip[1])}"
                raise BadData(detail, file=name, line=line)
            if page.next_query is None:
                skipped = 0
    if last is None or last.next_query is not None:
        raise BadData("the last page is missing: one without NextPageLink", file=name)


def _page_files(path: Path) -> list[Path]:
    refuse_special_file(path)
    if path.is_file():
        return [path]
    files = [file for file in path.rglob("*") if file.is_file() and file.name.endswith(_SUFFIXES)]
    if not files:
        raise BadData(f"has no saved pages; give a file or a folder of {', '.join(_SUFFIXES)}", file=str(path))
    return sorted(files, key=lambda file: [int(t) if t.isdecimal() else t for t in re.split(r"(\d+)", str(file))])


def _bodies(file: Path) -> Iterator[tuple[int | None, bytes]]:
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
