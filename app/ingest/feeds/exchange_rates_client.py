"""Fetches the history of exchange rates from the European Central Bank, or reads a saved file of it."""

import asyncio
from pathlib import Path

import httpx

from app.errors import BadData, FetchError
from app.ingest.feeds.fetching import MAX_PAGE_BYTES, TIMEOUT, USER_AGENT, RetryPolicy, get
from app.ingest.files import refuse_special_file

HISTORY_URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip"
"""The rates of every day since 1999: one small file, so that a refresh after months misses no day."""


def fetch_history(url: str = HISTORY_URL, policy: RetryPolicy | None = None) -> bytes:
    """Return the file at a URL; raises BadData when it cannot be fetched as often as the policy allows.

    A redirect is followed within its host, by https.
    """

    async def refuse_elsewhere(request: httpx.Request) -> None:
        first = httpx.URL(url)
        if request.url != first and (request.url.scheme, request.url.host) != ("https", first.host):
            raise FetchError(f"redirects to {request.url}; only https at {first.host} is followed")

    async def fetch() -> bytes:
        async with httpx.AsyncClient(
            timeout=TIMEOUT,
            headers={"User-Agent": USER_AGENT},
            follow_redirects=True,
            event_hooks={"request": [refuse_elsewhere]},
        ) as client:
            return await get(client, httpx.URL(url), policy or RetryPolicy())

    try:
        return asyncio.run(fetch())
    except (FetchError, httpx.InvalidURL) as error:
        raise BadData(str(error), file=url) from error


def read_saved_file(path: Path) -> bytes:
    """Return a saved file; raises BadData where it cannot be read."""
    refuse_special_file(path)
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_PAGE_BYTES + 1)
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror}", file=str(path)) from error
    if len(data) > MAX_PAGE_BYTES:
        raise BadData(f"has more than {MAX_PAGE_BYTES:,} bytes", file=str(path))
    return data
