"""GET with retries, and the folder in which fetched files stay until they are written to the catalog.

A request waits as long as the server asks for, and raises one error with its host and reason. A refresh that was
stopped goes on with the files of the same day; those of two days are not one list.
"""

import asyncio
import gzip
import logging
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import httpx
import stamina

from app.errors import FetchError

Body = TypeVar("Body")

USER_AGENT = "vmsizes"
TIMEOUT = httpx.Timeout(60.0, connect=15.0)
MAX_PAGE_BYTES = 64 * 2**20
"""Of a response that is read into memory; a page of prices has 1 MB, the zip of exchange rates 600 kB."""
MAX_FILE_BYTES = 2 * 2**30
"""Of a response that is written to a file; all sizes of a subscription have 100 MB."""
RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})

# Retries are told by the progress of the command; without a handler the logger would write to standard error.
logging.getLogger("stamina").addHandler(logging.NullHandler())


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
                async with (
                    asyncio.timeout(policy.longest_transfer),
                    client.stream("GET", url, headers=headers) as response,
                ):
                    if response.status_code != HTTPStatus.OK:
                        raise httpx.HTTPStatusError("", request=response.request, response=response)
                    return await consume(response)
    except TimeoutError:
        raise FetchError(f"{url.host} did not send all of it in {policy.longest_transfer:g} s") from None
    except httpx.HTTPError as error:
        raise FetchError(f"{_reason(error)}, at attempt {tries} of {policy.attempts}") from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def _reason(error: httpx.HTTPError) -> str:
    if not isinstance(error, httpx.HTTPStatusError):
        return f"{error.request.url.host} cannot be reached: {str(error) or type(error).__name__}"
    seconds = retry_after(error.response)
    asked = "" if seconds is None else f" and asked to wait {seconds:.0f} s"
    return f"{error.request.url.host} answered {error.response.status_code}{asked}"


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
