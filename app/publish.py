"""Write the catalog as a static site: the service's own pages, rendered in this process, with files and a sitemap.

A link leads to another page of the site, or is plain text: what needs a service (searches, comparisons, scripts) is
left out. Links are relative, so that the site works below any path.
"""

import asyncio
import posixpath
import re
import shutil
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from app.catalog.providers import PROVIDER_IDS
from app.catalog.readings import Progress
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
        pages = asyncio.run(_Site(written, settings, step).write())
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


class _Site:
    def __init__(self, folder: Path, settings: Settings, step: Progress) -> None:
        self._folder, self._step, self._public_url = folder, step, settings.public_url.rstrip("/")
        self._app = create_asgi_app(settings)
        self._names: set[str] = set()
        self._found: dict[str, str] = {}
        self._waiting: list[str] = []

    async def write(self) -> int:
        """Write all, and return the number of pages."""
        app = self._app.app
        transport = httpx.ASGITransport(app=self._app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url=_ORIGIN, timeout=600, follow_redirects=True) as client,
        ):
            names = [name.lower() for name in await app.state.executor.ask(find_names)]
            self._names = {name for name in names if _NAME.fullmatch(name)}
            (self._folder / MARK).touch()
            for url in ("/", *(f"/ui/sizes/{name}" for name in sorted(self._names))):
                self._place(url)
            done = 0
            while self._waiting:
                urls, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                await asyncio.gather(*(self._write(client, url) for url in urls))
                done += len(urls)
                self._step("writing pages", done / len(self._found), done)
            for url in self._others():
                await self._copy(client, url)
        return len(self._found)

    def _others(self) -> Iterator[str]:
        yield "/robots.txt"
        if self._public_url:
            yield "/sitemap.xml"
        for provider in PROVIDER_IDS:
            yield from (f"/files/{provider}/{file}" for file in FILES)

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
        elif size is not None and unquote(size[1]) in self._names and (size[2] or not query):
            file = f"{unquote(path).removeprefix('/')}/index.html"
        if file is None:
            return None
        if file not in self._found.values():
            self._waiting.append(url)
        self._found[url] = file
        return file

    async def _write(self, client: httpx.AsyncClient, url: str) -> None:
        """Write a page or an asset, and have what it links to written."""
        file = self._found[url]
        asked = f"/?limit={_ROWS}" if url == "/" else url
        answer = await _get(client, asked, {"accept": "text/html"})
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

        return _DEAD.sub("", _LINK.sub(replace, kept))

    async def _copy(self, client: httpx.AsyncClient, url: str) -> None:
        """Write a file as it is served; a provider without sizes has none."""
        self._step(f"writing {url}", None)
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
