"""What machines read first: `/llms.txt` for language models, as of llmstxt.org, `/robots.txt` and `/sitemap.xml`."""

from html import escape

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import Statement
from app.db.statements import BoundStatement
from app.http.headers import PUBLIC_URL
from app.web.rendering import path_segment

_TEXT = """# vmsizes

> VM sizes of Azure, AWS, Google Cloud, Oracle Cloud and GPU clouds: specifications, GPUs, prices by region, and which
> sizes hold a language model. Every figure has its source; null is unknown, zero is zero. Memory is in GiB, prices in
> USD an hour.

## For agents

- [A size as Markdown]({root}ui/sizes/nd40rs_v2.md): figures with sources, disputes and prices; any size by its name
- [The OpenAPI document]({root}openapi.json): all endpoints, parameters and fields
{agents}
## Lists

- [Sizes]({root}sizes?sort=usd_per_hour&limit=20): filters such as gpu, min_gpu_mem, region, max_usd_per_hour
- [All sizes as CSV]({root}sizes.csv)
- [Models]({root}models): the language models that POST /fit knows
- [Regions]({root}regions), [GPUs]({root}gpus), [series]({root}series)
- [Conflicts]({root}conflicts): where sources disagree, and which one counts
- [Changes]({root}changes): prices and sizes that changed

## Optional

- [What errors mean]({root}problems)
- [How old the catalog is]({root}readyz)
"""


_AGENTS = (
    "- [MCP]({root}mcp): find_sizes, explain_size, fit_workload, compare_sizes, price_history, preflight"
    " (streamable HTTP)\n"
)
_ROBOTS = """User-agent: *
Disallow: /ui/suggestions
Allow: /ui/sizes.png
Disallow: /ui/sizes.
{sitemap}"""
_SIZES = "/ui/sizes/"
_MAX_URLS = 50_000
"""A sitemap may have this many."""


async def _send_llms(request: Request) -> Response:
    # Relative links where the public URL is not known: caches keep the answer, for whatever Host it was asked.
    public_url = request.scope.get(PUBLIC_URL)
    root = f"{public_url}/" if public_url else ""
    agents = _AGENTS.format(root=root) if request.app.state.mcp is not None else ""
    return PlainTextResponse(_TEXT.format(root=root, agents=agents), headers=_KEPT)


async def _send_robots(request: Request) -> Response:
    """Send what crawlers may read; the sitemap needs the public URL."""
    public_url = request.scope.get(PUBLIC_URL)
    sitemap = f"Sitemap: {public_url}/sitemap.xml\n" if public_url else ""
    return PlainTextResponse(_ROBOTS.format(sitemap=sitemap), headers=_KEPT)


async def _send_sitemap(request: Request) -> Response:
    """Send the URLs of the search page and of each size; 404 where the public URL is not known."""
    public_url = request.scope.get(PUBLIC_URL)
    if not public_url:
        raise HTTPException(404)
    names = await request.app.state.executor.ask(find_names)
    pages = ["/", *(f"{_SIZES}{path_segment(name.lower())}" for name in names)]
    urls = "".join(f"<url><loc>{escape(public_url + page)}</loc></url>" for page in pages[:_MAX_URLS])
    xml = f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="{_SITEMAPS}">{urls}</urlset>'
    return Response(xml, media_type="application/xml", headers=_KEPT)


def find_names(catalog: Catalog) -> list[str]:
    """Return the names of all sizes, which have a page each."""
    return [name for (name,) in catalog.fetch(BoundStatement(_NAMES))]


_NAMES = Statement("select name from size order by name")


_KEPT = {"cache-control": "public, max-age=300"}
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"

ROUTES = (
    Route("/llms.txt", _send_llms, methods=["GET"]),
    Route("/robots.txt", _send_robots, methods=["GET"]),
    Route("/sitemap.xml", _send_sitemap, methods=["GET"]),
)
