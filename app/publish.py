"""Write the catalog as a static site: the service's own pages, rendered in this process, with files and a sitemap.

A link leads to another page of the site, or is plain text: what needs a service (searches, comparisons, scripts) is
left out. Links are relative, so that the site works below any path.
"""

import asyncio
import os
import posixpath
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, MutableSequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from contextlib import contextmanager
from html import escape, unescape
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from app.catalog.providers import PROVIDER_IDS
from app.catalog.queries.snapshot import count_sizes
from app.catalog.readings import Progress
from app.db.databases import open_database
from app.errors import BadQuery, FetchError
from app.main import create_asgi_app
from app.settings import Settings
from app.web.llms import find_names

MARK = ".vmsizes-site"
"""The file that says that a folder is a site, which the next one may replace."""
FILES = ("sizes.json", "instances.json", "vms.csv", "gpuhunt.csv")
_ROWS = 200
"""Sizes on a page of the list."""
_AT_ONCE = 4
_PAGES_OF_A_SIZE = 2
"""Its own, and that of the ways to buy it."""
_SIZES_OF_A_PROCESS = 100
"""How many sizes are worth the start of another process."""
_POLL_SECONDS = 0.2
_TRIES, _WAIT_SECONDS = 10, 3
"""How often a page is asked for while the database is away, or the machine busy."""
_ORIGIN = "http://site"
_NAME = re.compile(r"[a-z0-9][a-z0-9_.+-]*")
_LIST = re.compile(r'<form\b[^>]* id="compare"[^>]*>')
"""The form around the list of sizes, which stays."""
_SERVED = re.compile(
    r"<(script|form)\b.*?</\1>|<button\b(?![^>]*popovertarget=\"menu\").*?</button>|<link rel=\"alternate\"[^>]*>"
    r"|<meta [^>]*=\"(?:og:image|twitter:card)\"[^>]*>"
    r"|<input\b(?![^>]* id=\"all-regions\")[^>]*>|<section id=\"(?:models|programs)\".*?</section>",
    re.DOTALL,
)
"""What needs a service: scripts, forms and their fields, preview images, and parts of a page about programs."""
_DEAD = re.compile(r'<li><a>[^<]*</a></li>|<a class="button[^"]*">[^<]*</a>')
"""Items of menus and buttons that lead nowhere in the site."""
_CANONICAL = re.compile(r'<link rel="canonical" href="[^"?]*[^"?/](?=")')
_LINK = re.compile(r' (href|src)="([^"]*)"')
_FONT = re.compile(rb"url\(([\w.-]+)\)")
_SIZE = re.compile(r"/ui/sizes/([^/]+)(/buy)?")


def publish(folder: Path, settings: Settings, step: Progress) -> int:
    """Write the site into a folder, which is replaced at once when all is written; return the number of its pages.

    With `public_url` in the settings pages name their own address, and there is a sitemap. Raises BadQuery for a folder
    that has something else in it.
    """
    if folder.exists() and not (folder / MARK).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadQuery("folder", folder, "has something else in it; give a new or empty folder, or an earlier site")
    folder.parent.mkdir(parents=True, exist_ok=True)
    written = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        pages = _write_with_all_cores(written, settings, step)
        written.chmod(0o755)  # a temporary folder is its owner's alone
        if folder.exists():
            earlier = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            folder.rename(earlier / folder.name)
            written.rename(folder)
            shutil.rmtree(earlier)
        else:
            written.rename(folder)
    finally:
        shutil.rmtree(written, ignore_errors=True)
    return pages


def _write_with_all_cores(folder: Path, settings: Settings, step: Progress) -> int:
    """Let each core write a share of the pages, in a process of its own; this one writes those of a small catalog."""
    with open_database(settings.database_url, pool_size=0).connect() as reader:
        sizes = count_sizes(reader)
    total = sizes * _PAGES_OF_A_SIZE

    def tell(done: int) -> None:
        step(f"writing about {total:,} pages", min(done / total, 1) if total else None, done)

    shares = min(os.cpu_count() or 1, sizes // _SIZES_OF_A_PROCESS)
    if shares <= 1:
        return asyncio.run(_Site(folder, settings, 0, 1, tell).write())
    spawning = get_context("spawn")
    progress: Any = spawning.Array("q", shares)
    with ProcessPoolExecutor(shares, spawning, initializer=_begin_process, initargs=(progress,)) as pool:
        try:
            with _interrupts_blocked():
                running = [pool.submit(_write_share, folder, settings, share, shares) for share in range(shares)]
            while (states := wait(running, _POLL_SECONDS, FIRST_EXCEPTION)).not_done:
                for writing in states.done:
                    writing.result()
                tell(sum(progress))
            return sum(writing.result() for writing in running)
        except BaseException:
            for process in active_children():  # the pool waits for them
                process.terminate()
            raise


_progress: MutableSequence[int] = []


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start processes that Ctrl-C, which a terminal sends to all, does not reach; this one gets it afterwards."""
    if sys.platform == "win32":
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _begin_process(progress: MutableSequence[int]) -> None:
    global _progress  # noqa: PLW0603  # memory that the processes share, which only their start can be given
    _progress = progress
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
    os._exit(1)


def _write_share(folder: Path, settings: Settings, share: int, shares: int) -> int:
    def tell(done: int) -> None:
        _progress[share] = done

    return asyncio.run(_Site(folder, settings, share, shares, tell).write())


class _Site:
    """The share of the site that a process writes: the pages of each n-th size; the first also writes all else."""

    def __init__(self, folder: Path, settings: Settings, share: int, shares: int, tell: Callable[[int], None]) -> None:
        self._folder, self._tell, self._public_url = folder, tell, settings.public_url.rstrip("/")
        self._share, self._shares = share, shares
        self._app = create_asgi_app(settings)
        self._shares_of_names: dict[str, int] = {}
        self._found: dict[str, str] = {}
        self._files: set[str] = set()
        self._waiting: list[str] = []

    async def write(self) -> int:
        """Write the share, and return the number of its pages."""
        app = self._app.app
        transport = httpx.ASGITransport(app=self._app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url=_ORIGIN, timeout=600, follow_redirects=True) as client,
        ):
            listed = {name.lower() for name in await app.state.executor.ask(find_names)}
            names = sorted(name for name in listed if _NAME.fullmatch(name))
            self._shares_of_names = {name: index % self._shares for index, name in enumerate(names)}
            (self._folder / MARK).touch()
            for url in (*(f"/ui/sizes/{name}" for name in reversed(names)), "/"):
                self._place(url)
            done = 0
            while self._waiting:
                urls = self._waiting[-_AT_ONCE:]
                del self._waiting[-_AT_ONCE:]
                await asyncio.gather(*(self._write(client, url) for url in urls))
                done += len(urls)
                self._tell(done)
            if self._share == 0:
                sitemap = ["/sitemap.xml"] if self._public_url else []
                files = (f"/files/{provider}/{file}" for provider in PROVIDER_IDS for file in FILES)
                for url in ("/robots.txt", *sitemap, *files):
                    await self._copy(client, url)
        return done

    def _place(self, url: str) -> str | None:
        """Return the file of a URL in the site, which will be written; None for what the site does not have."""
        path, query = urlsplit(url).path, urlsplit(url).query
        if url in self._found:
            return self._found[url]
        size = _SIZE.fullmatch(path)
        page = re.fullmatch(rf"limit={_ROWS}&page=(\d+)|page=(\d+)&limit={_ROWS}", query)
        file = None
        if path == "/" and (not query or query == f"limit={_ROWS}"):
            file = "index.html"
        elif path == "/" and page is not None:
            file = f"page/{page[1] or page[2]}/index.html"
        elif path.startswith("/assets/") and _NAME.fullmatch(path.removeprefix("/assets/").lower()):
            file = path.removeprefix("/")
        elif size is not None and unquote(size[1]) in self._shares_of_names and (size[2] or not query):
            file = f"{unquote(path).removeprefix('/')}/index.html"
        if file is None:
            return None
        writer = self._shares_of_names[unquote(size[1])] if size is not None else 0
        if writer == self._share and file not in self._files:
            self._files.add(file)
            self._waiting.append(url)
        self._found[url] = file
        return file

    async def _write(self, client: httpx.AsyncClient, url: str) -> None:
        """Write a page or an asset, and have what it links to written."""
        file = self._found[url]
        asked = f"/?limit={_ROWS}" if url == "/" else url
        answer = await _get(client, asked, {"accept": "text/html", "accept-encoding": "identity"})
        content = answer.content
        if file.endswith(".html"):
            content = self._link(answer.text, url, file).encode()
        elif file.endswith(".css"):
            for font in _FONT.findall(content):
                self._place(urljoin(url, font.decode()))
        path = self._folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def _link(self, html: str, url: str, file: str) -> str:
        """Return a page whose links lead to files of the site, or elsewhere; others are text, or gone from menus."""
        kept = _SERVED.sub("", _LIST.sub("<div>", html)).replace("</form>", "</div>")

        def replace(match: re.Match[str]) -> str:
            attribute, value = match[1], unescape(match[2])
            if value.startswith("#"):
                return match[0] if f'id="{value[1:]}"' in kept else ""
            target = urlsplit(urljoin(f"{_ORIGIN}{url}", value))
            if f"{target.scheme}://{target.netloc}" != _ORIGIN:
                return match[0]
            place = self._place(target._replace(scheme="", netloc="", fragment="").geturl())
            if place is None:
                return ""
            relative = posixpath.relpath(place, posixpath.dirname(file)).removesuffix("index.html") or "./"
            fragment = f"#{target.fragment}" if target.fragment else ""
            return f' {attribute}="{escape(relative + fragment)}"'

        linked = _DEAD.sub("", _LINK.sub(replace, kept))
        return _CANONICAL.sub(r"\g<0>/", linked, count=1)  # pages are folders here

    async def _copy(self, client: httpx.AsyncClient, url: str) -> None:
        """Write a file as it is served; a provider without sizes has none."""
        path = self._folder / url.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        content = (await _get(client, url, {"accept-encoding": "identity"})).content
        if url == "/sitemap.xml":  # pages are folders here
            content = re.sub(rb"(?<!/)</loc>", b"/</loc>", content)
        path.write_bytes(content)


async def _get(client: httpx.AsyncClient, url: str, headers: dict[str, str]) -> httpx.Response:
    """Return the answer to a request, also after some tries; raises FetchError where there is none."""
    for _ in range(_TRIES):
        answer = await client.get(url, headers=headers)
        if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
            break
        await asyncio.sleep(_WAIT_SECONDS)
    if not answer.is_success:
        raise FetchError(f"{url} is answered with {answer.status_code}: nothing is published.")
    return answer
