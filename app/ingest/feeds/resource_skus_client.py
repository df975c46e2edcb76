"""Reads answers of Azure's Resource SKUs API, entry by entry, from files or over HTTP with a token.

An answer for all regions has 100 MB and more: it is kept in a file, and never whole in memory.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import InvalidOperation
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import ijson  # type: ignore[import-untyped]  # has no type information

from app.catalog.readings import Progress, no_progress
from app.errors import BadData, FetchError
from app.ingest.csv_files import sha256_of
from app.ingest.feeds.fetching import TIMEOUT, USER_AGENT, RetryPolicy, download
from app.ingest.feeds.resource_skus import Entry
from app.ingest.files import refuse_special_file

API_URL = "https://management.azure.com/subscriptions/{subscription}/providers/Microsoft.Compute/skus"
API_VERSION = "2021-07-01"
PAGE_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SkuApi:
    """The API of a subscription: `token` is a bearer token of Azure Resource Manager."""

    subscription: str
    token: str = field(repr=False)
    url: str = API_URL
    policy: RetryPolicy | None = None


def fetch_answers(api: SkuApi, folder: Path) -> list[Path]:
    """Write the pages of an answer into a folder, and return the files; raises FetchError."""
    folder.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_fetch(api, folder))


async def _fetch(api: SkuApi, folder: Path) -> list[Path]:
    url = httpx.URL(api.url.format(subscription=api.subscription))
    query: bytes | None = url.copy_merge_params({"api-version": API_VERSION}).query
    headers, files, seen = {"authorization": f"Bearer {api.token}"}, list[Path](), set[bytes]()
    async with httpx.AsyncClient(timeout=TIMEOUT, headers={"user-agent": USER_AGENT}) as client:
        while query is not None:
            if query in seen or len(seen) >= PAGE_LIMIT:
                raise FetchError(f"the answer does not end: page {len(seen)} links to page 1, or there are too many")
            seen.add(query)
            file = folder / f"skus-{len(seen)}.json"
            # Only the query of a link is used: the token is sent to no other host.
            await download(client, url.copy_with(query=query), api.policy or RetryPolicy(), file, headers)
            files.append(file)
            query = _next_query(file)
    return files


def _next_query(file: Path) -> bytes | None:
    with file.open("rb") as opened:
        link = next(_items(opened, file, "nextLink"), None)
    return httpx.URL(link).query or None if isinstance(link, str) and link else None


# Files


def read_entries(path: Path, *, progress: Progress = no_progress) -> Iterator[Entry]:
    """Yield the entries in a file, or in the JSON files of a folder; raises BadData for what is no such answer.

    A file is an answer of the API (`{"value": [...]}`), or the output of `az vm list-skus` or of PowerShell's
    Get-AzComputeResourceSku (`[...]`), whose keys begin with capitals.
    """
    entries = 0
    for file in sku_files(path):
        with _open(file) as opened:
            prefix = "item" if _first_byte(opened) == b"[" else "value.item"
            found = False
            for entry in _items(opened, file, prefix):
                if not isinstance(entry, dict):
                    raise BadData("has something else than objects in its list", file=str(file))
                found, entries = True, entries + 1
                if entries % 1_000 == 0:
                    progress("reading entries", None, entries)
                yield _camel_case(entry) if "ResourceType" in entry else entry
            if not found:
                raise BadData("has no entries; give an answer of the Resource SKUs API or of az", file=str(file))


def _camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {f"{key[:1].lower()}{key[1:]}": _camel_case(each) for key, each in value.items()}
    return [*map(_camel_case, value)] if isinstance(value, list) else value


def sku_files(path: Path) -> list[Path]:
    """Return the files of answers: a file as it is, or the JSON files of a folder by name."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise BadData("has no JSON file in it", file=str(path))
    return files


def digest_of(path: Path) -> str:
    """Return the sha256 of the sha256 of each file, in the order in which they are read."""
    files = sku_files(path)
    for file in files:
        refuse_special_file(file)
    return sha256("".join(map(sha256_of, files)).encode()).hexdigest()


def _open(file: Path) -> BinaryIO:
    refuse_special_file(file)
    try:
        return file.open("rb")
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror}", file=str(file)) from error


def _first_byte(opened: BinaryIO) -> bytes:
    while (byte := opened.read(1)).isspace():
        pass
    opened.seek(0)
    return byte


MAX_DEPTH = 200
"""Of JSON; the API's has eight levels. ijson keeps the path of each, so that its memory grows with their square."""
_SLICE_BYTES = 256
"""Between two looks at the depth, which may grow by as many levels: less than Python's limit on recursion."""


class _ShallowJson:
    """A file whose reader raises BadData where JSON is nested too deeply; brackets in texts count too, and are rare."""

    def __init__(self, opened: BinaryIO, name: str) -> None:
        self._opened, self._name, self._depth = opened, name, 0

    def read(self, size: int) -> bytes:
        data = self._opened.read(size)
        for start in range(0, len(data), _SLICE_BYTES):
            piece = data[start : start + _SLICE_BYTES]
            self._depth += piece.count(b"[") + piece.count(b"{") - piece.count(b"]") - piece.count(b"}")
            if self._depth > MAX_DEPTH:
                raise BadData(f"is nested deeper than {MAX_DEPTH} levels", file=self._name)
        return data


def _items(opened: BinaryIO, file: Path, prefix: str) -> Iterator[Any]:
    try:
        yield from ijson.items(_ShallowJson(opened, str(file)), prefix)
    except (ijson.JSONError, ValueError) as error:  # the latter for texts that are not UTF-8
        raise BadData(f"is not whole JSON: {error}", file=str(file)) from error
    except InvalidOperation as error:  # ijson makes a Decimal of each number
        raise BadData("has a number whose exponent is too long to be read", file=str(file)) from error
