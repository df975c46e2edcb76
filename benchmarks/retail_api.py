"""A stand-in for the Azure Retail Prices API with many regions, as a process: `python -m benchmarks.retail_api ITEMS`.

Each region has the same pages but for its name, which is put into them as they are sent.
"""

import re
import socket
import sys

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.ingest.feeds.meters import B16ALS_V2, in_region

PAGE_ITEMS = 1_000
ITEMS = 15_000
_REGION = re.compile(r"armRegionName eq '(\w+)'")
_PLACEHOLDER = "the-region"
_LINK = "the-link"


def region_name(number: int) -> str:
    """Return the code of one of the regions."""
    return f"region{number:02}"


def _pages(items: int) -> list[bytes]:
    """Return the pages of a region, with texts in place of its name and of the link to the next page."""
    sizes = -(-items // len(B16ALS_V2))
    every = [one for n in range(sizes) for one in in_region(_PLACEHOLDER, size=f"Standard_B{n}als_v2")][:items]
    chunks = [every[start : start + PAGE_ITEMS] for start in range(0, items, PAGE_ITEMS)]
    return [
        orjson.dumps(
            {
                "BillingCurrency": "USD",
                "CustomerEntityId": "Default",
                "CustomerEntityType": "Retail",
                "Items": chunk,
                "NextPageLink": _LINK if number < len(chunks) else None,
                "Count": len(chunk),
            }
        )
        for number, chunk in enumerate(chunks, 1)
    ]


class Api:
    """The stand-in; `requests` counts the pages that were sent."""

    def __init__(self, items: int) -> None:
        self.pages, self.requests = _pages(items), 0

    async def page(self, request: Request) -> Response:
        found = _REGION.search(request.query_params["$filter"])
        assert found
        skip = int(request.query_params.get("$skip", 0))
        link = str(request.url.include_query_params(**{"$skip": skip + PAGE_ITEMS}))
        body = self.pages[skip // PAGE_ITEMS].replace(_PLACEHOLDER.encode(), found[1].encode())
        self.requests += 1
        return Response(body.replace(_LINK.encode(), link.encode()), media_type="application/json")

    async def count(self, _request: Request) -> Response:
        return PlainTextResponse(str(self.requests))


def main() -> None:
    """Serve on a free port of the loopback and print the address."""
    api = Api(int(sys.argv[1]))
    routes = [Route("/api/retail/prices", api.page), Route("/requests", api.count)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
