"""GET with retries, lists of prices, pages of JSON, and the folder in which files stay until they are written.

A request waits as long as the server asks for, and raises one error with its host and reason. A walk from page to page
ends with a page that links to no other; everything else that could end it is an error. A refresh that was stopped goes
on with the files of the same day; those of two days are not one list.
"""

import asyncio
import gzip
import logging
import os
import re
import shutil
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import httpx
import orjson
import stamina

from app.catalog.readings import Progress, no_progress
from app.errors import BadData, BadQuery, FetchError
from app.ingest.feeds.price_lists import Item, ReadScope, RegionPrices
from app.ingest.files import refuse_special_file

Body = TypeVar("Body")

USER_AGENT = "vmsizes"
TIMEOUT = httpx.Timeout(60.0, connect=15.0)
MAX_PAGE_BYTES = 64 * 2**20
"""Of a response that is read into memory; a page of prices has 1 MB, the zip of exchange rates 600 kB."""
MAX_FILE_BYTES = 2 * 2**30
"""Of a response that is written to a file; all sizes of a subscription have 100 MB."""
RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})

_log = logging.getLogger(__name__)
stamina.instrumentation.set_on_retry_hooks(())  # its line says neither what failed nor why


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a request is tried, and how long to wait before it is tried again, in seconds.

    Waits double from `first_wait` to `longest_wait`, with jitter, unless the server says how long. A server that asks
    for more than `longest_retry_after` is not waited for, nor one that sends a response for longer than
    `longest_transfer`, however often a byte of it comes.
    """

    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 60.0
    longest_retry_after: float = 600.0
    longest_transfer: float = 900.0


def tls_context() -> ssl.SSLContext:
    """Return how servers are verified; raises BadQuery for a file of authorities that cannot be read."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        file = os.environ.get("SSL_CERT_FILE")
        raise BadQuery("SSL_CERT_FILE", file, f"has no certificates that can be read ({error.strerror})") from None


async def get(
    client: httpx.AsyncClient, url: httpx.URL, policy: RetryPolicy, headers: Mapping[str, str] | None = None
) -> bytes:
    """Return the body of a response of 200; raises FetchError when it failed as often as the policy allows.

    So it does at once for a body of more than MAX_PAGE_BYTES, however short it is compressed.
    """
    return await _request(client, url, policy, headers, _read)


async def download(
    client: httpx.AsyncClient, url: httpx.URL, policy: RetryPolicy, file: Path, headers: Mapping[str, str] | None = None
) -> None:
    """Write the body of a response of 200 to a file as it comes, up to MAX_FILE_BYTES; raises FetchError as `get`.

    A file that is fetched for later is compressed, unless its name says otherwise.
    """

    async def save(response: httpx.Response) -> None:
        with file.open("wb") if file.suffix == ".json" else open_packed(file) as opened:
            async for chunk in _bounded(response, MAX_FILE_BYTES):
                opened.write(chunk)

    await _request(client, url, policy, headers, save)


async def _read(response: httpx.Response) -> bytes:
    # httpx would keep the body in the response, which lives in a cycle until the garbage collector comes.
    return b"".join([chunk async for chunk in _bounded(response, MAX_PAGE_BYTES)])


async def _bounded(response: httpx.Response, most_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body unpacked; raises FetchError where it is longer than allowed, before more of it is read."""
    received_bytes = 0
    async for chunk in response.aiter_bytes():
        received_bytes += len(chunk)
        if received_bytes > most_bytes:
            raise FetchError(f"{response.request.url.host} sent more than {most_bytes:,} bytes")
        yield chunk


async def _request(
    client: httpx.AsyncClient,
    url: httpx.URL,
    policy: RetryPolicy,
    headers: Mapping[str, str] | None,
    consume: Callable[[httpx.Response], Awaitable[Body]],
) -> Body:
    def wait_or_give_up(error: Exception) -> bool | float:
        if not isinstance(error, httpx.HTTPStatusError):
            return isinstance(error, httpx.TransportError)
        if error.response.status_code not in RETRIED_STATUSES:
            return False
        seconds = retry_after(error.response)
        return True if seconds is None else seconds <= policy.longest_retry_after and max(seconds, 0.001)

    retries = stamina.retry_context(
        on=wait_or_give_up,
        attempts=policy.attempts,
        timeout=None,
        wait_initial=policy.first_wait,
        wait_max=policy.longest_wait,
        wait_jitter=policy.first_wait,
    )
    tries = 0
    try:
        async for attempt in retries:
            with attempt:
                tries = attempt.num
                try:
                    async with (
                        asyncio.timeout(policy.longest_transfer),
                        client.stream("GET", url, headers=headers) as response,
                    ):
                        if response.status_code != HTTPStatus.OK:
                            raise httpx.HTTPStatusError("", request=response.request, response=response)
                        return await consume(response)
                except httpx.HTTPError as error:
                    if tries < policy.attempts and wait_or_give_up(error):
                        _log.warning(
                            "%s, at attempt %d of %d; it is tried again", _reason(error), tries, policy.attempts
                        )
                    raise
    except TimeoutError:
        raise FetchError(f"{url.host} did not send all of it in {policy.longest_transfer:g} s") from None
    except httpx.HTTPError as error:
        raise FetchError(f"{_reason(error)}, at attempt {tries} of {policy.attempts}") from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def _reason(error: httpx.HTTPError) -> str:
    if not isinstance(error, httpx.HTTPStatusError):
        return f"{error.request.url.host} cannot be reached: {network_reason(error)}"
    seconds = retry_after(error.response)
    asked = "" if seconds is None else f" and asked to wait {seconds:.0f} s"
    return f"{error.request.url.host} answered {error.response.status_code}{asked}"


def network_reason(error: httpx.HTTPError) -> str:
    """Return why a server cannot be reached, as the middle of a sentence and without the marks of Python's errors."""
    text = _PYTHON_MARKS.sub("", str(error)).rstrip(".") or "the connection was closed"
    return text[0].lower() + text[1:] if text[1:2].islower() else text


_PYTHON_MARKS = re.compile(r"^\[[^\]]*\] ?|\.? \(_ssl\.c:\d+\)$")


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds that a response asks to wait, as a number or until a date; None where it does not say."""
    text = response.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())


# Fetched files

_LEVEL = 1
"""Of compression: lists are repetitive, and a higher level costs more time than their transfer."""


def open_packed(file: Path) -> gzip.GzipFile:
    """Open a file to write what is compressed."""
    return gzip.open(file, "wb", compresslevel=_LEVEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedLists:
    """The fetched files of a feed: of one day while the refresh is under way, `accepted` those last written.

    A folder has one file for each list: that of a region, or of all regions where a feed has one for all.
    """

    root: Path
    day: date
    suffix: str = ".jsonl.gz"

    @property
    def _fetched(self) -> Path:
        return self.root / self.day.isoformat()

    @property
    def _refused(self) -> Path:
        return self.root / f"{self.day.isoformat()}-refused"

    def open_day(self) -> None:
        """Create the folder of the day, and delete what refreshes of other days left."""
        self._fetched.mkdir(parents=True, exist_ok=True)
        for folder in self.root.iterdir():
            if folder.is_dir() and folder not in (self._fetched, self._refused, self.root / "accepted"):
                shutil.rmtree(folder)

    def file(self, name: str) -> Path:
        """Return the file of a list, whether it was fetched or not."""
        return self._fetched / f"{name}{self.suffix}"

    def has(self, name: str) -> bool:
        """Check whether all of a list was fetched on this day."""
        return self.file(name).is_file()

    @contextmanager
    def new_file(self, name: str) -> Iterator[Path]:
        """Yield where to write a list; without an error it is kept, otherwise nothing is."""
        part = self._fetched / f"{name}.{os.getpid()}.part"
        try:
            yield part
            part.replace(self.file(name))
        finally:
            part.unlink(missing_ok=True)

    def refuse(self, name: str) -> None:
        """Move a list to those refused; the next refresh fetches it again unless it accepts them."""
        _move(self.file(name), self._refused)

    def restore_refused(self, names: Iterable[str]) -> None:
        """Move lists that were refused on this day back to those fetched, since they are accepted now."""
        for name in names:
            _move(self._refused / self.file(name).name, self._fetched)

    def accept(self, names: Iterable[str]) -> None:
        """Move lists to those accepted, replacing earlier ones; the next refresh fetches them again."""
        for name in names:
            _move(self.file(name), self.root / "accepted")


def _move(file: Path, folder: Path) -> None:
    if file.is_file():
        folder.mkdir(exist_ok=True)
        file.replace(folder / file.name)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFeed:
    """Where prices come from: an API at `url`, whose lists are kept in `cache`, or the saved ones in `file`.

    Of both, `cache` keeps the prices that are held back.
    `regions` are codes or names of those wanted; none are all of the catalog. With `accept` lists are taken without a
    comparison with the last ones, also those that were refused on this day. With `new_sizes` names that the catalog
    does not have become sizes; otherwise their prices are not taken. `headers` have the user's key where the API needs
    one, and `seeds` the parts of sizes that are priced by parts.
    """

    api: PriceApi
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    cache: Path = Path("vmsizes.db.feeds")
    seeds: Path | None = None
    file: Path | None = None
    regions: Sequence[str] = ()
    concurrency: int = 4
    policy: RetryPolicy | None = None
    accept: bool = False
    new_sizes: bool = False

    @property
    def held(self) -> Path:
        """The file of the prices that are held back."""
        return self.cache / f"{self.api.source_id}-held.csv"


async def fetch_lists(
    feed: PriceFeed, names: Iterable[str], store: FetchedLists, progress: Progress = no_progress
) -> dict[str, str]:
    """Fetch the lists that the store lacks; returns those that failed with the reason.

    A list is kept only when all of it was fetched. Where the first requests fail, the other lists are not tried.
    """
    missing = [name for name in names if not store.has(name)]
    failures: dict[str, str] = {}
    limiter = asyncio.Semaphore(feed.concurrency)
    limits = httpx.Limits(max_connections=feed.concurrency)

    async def fetch(name: str) -> None:
        async with limiter:
            if failures and not walk.pages:  # where nothing answers, the other lists need not wait for it, too
                failures[name] = f"not tried: {next(iter(failures.values()))}"
                return
            try:
                with store.new_file(name) as file:
                    await feed.api.fetch(walk, name, file)
            except FetchError as error:
                failures[name] = str(error)

    async with (
        httpx.AsyncClient(
            verify=tls_context(), timeout=TIMEOUT, limits=limits, headers={"user-agent": USER_AGENT}
        ) as client,
        asyncio.TaskGroup() as group,
    ):
        walk = Walk(
            client=client,
            url=httpx.URL(feed.url or feed.api.url),
            headers=feed.headers,
            policy=feed.policy or RetryPolicy(),
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
    """An API that answers page by page: `items` are in the list of this name, `link` is what asks for the next page.

    `to_page` gets an answer with its items, and raises FetchError for what is no whole page.
    """

    items: str
    to_page: Callable[[Mapping[str, Any], Sequence[Item]], Page]
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
    items = page.get(pages.items) if isinstance(page, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FetchError(f"a page has no list {pages.items}")
    return pages.to_page(page, items)


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
                    (number, _bounded_page(line, file, number)) for number, line in enumerate(lines, 1) if line.strip()
                )
            else:
                yield None, _bounded_page(opened.read(MAX_PAGE_BYTES + 1), file, None)
    except (OSError, EOFError, zlib.error) as error:
        raise BadData(f"cannot be read: {error}", file=str(file)) from error


def _bounded_page(body: bytes, file: Path, line: int | None) -> bytes:
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
