"""`/llms.txt`: what the service has for language models, in the form of llmstxt.org."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.http.headers import PUBLIC_URL

_TEXT = """# vmsizes

> Cloud VM sizes of Azure: specifications, GPUs, prices by region since October 2023, and which sizes hold a language
> model. Every figure has its source; null is unknown, zero is zero. Memory is in GiB, prices in USD an hour.

## For agents

- [MCP]({root}mcp): five tools (find_sizes, explain_size, fit_workload, compare_sizes, price_history), streamable HTTP
- [A size as Markdown]({root}ui/sizes/nd40rs_v2.md): figures with sources, disputes and prices; any size by its name
- [The OpenAPI document]({root}openapi.json): all endpoints, parameters and fields

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


async def _send(request: Request) -> Response:
    # Relative links where the public URL is not known: caches keep the answer, for whatever Host it was asked.
    public_url = request.scope.get(PUBLIC_URL)
    root = f"{public_url}/" if public_url else ""
    return PlainTextResponse(_TEXT.format(root=root), headers={"cache-control": "public, max-age=300"})


ROUTE = Route("/llms.txt", _send, methods=["GET"])
