"""Stand-ins for the price lists of AWS, Google and Oracle: real HTTP servers that answer in the shapes of the vendors.

The files in `shapes` have the names, units and structure of the vendors' answers, with the traps that each has; their
figures are invented.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.servers import server
from tests.waiting import until

SHAPES = Path(__file__).with_name("shapes")
INDEX = "region_index.json"


def shape(name: str) -> Any:
    """Return an answer of a vendor as JSON."""
    return json.loads((SHAPES / name).read_text())


def aws_list(region: str = "us-east-2") -> bytes:
    """Return the price list of a region as CSV."""
    return (SHAPES / "aws_ec2_us-east-2_index.csv").read_bytes().replace(b"us-east-2", region.encode())


def gcp_pages() -> dict[str, Any]:
    """Return the pages of the billing catalog by their token: the second is the last, and is empty."""
    return {"": shape("gcp_skus_page.json"), "MORE": {"skus": [], "nextPageToken": ""}}


@dataclass(kw_only=True)
class FakeVendors:
    """What a vendor answers; `fault` gets the end of the path and returns a status to answer instead.

    An answer whose name is in `withheld` is not sent until it is taken out.
    """

    index: Any = field(default_factory=lambda: shape("aws_region_index.json"))
    aws: Callable[[str], bytes] = aws_list
    gcp: dict[str, Any] = field(default_factory=gcp_pages)
    oci: Any = field(default_factory=lambda: shape("oci_products_page.json"))
    fault: Callable[[str], int | None] = lambda _name: None
    withheld: set[str] = field(default_factory=set)
    asked: Counter[str] = field(default_factory=Counter)
    keys: list[str | None] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: Request) -> Response:
        name, bodies = self._find(request)
        self.asked[name] += 1
        self.keys.append(request.headers.get("x-goog-api-key"))
        await until(lambda: name not in self.withheld)
        if status := self.fault(name):
            return Response(status_code=status)
        body = bodies()
        return Response(body if isinstance(body, bytes) else json.dumps(body))

    def _find(self, request: Request) -> tuple[str, Callable[[], Any]]:
        parts = request.url.path.split("/")
        if parts[-1] == INDEX:
            return INDEX, lambda: self.index
        if parts[-1] == "index.csv":
            return parts[-2], lambda: self.aws(parts[-2])
        if parts[-1] == "skus":
            token = request.query_params.get("pageToken", "")
            return f"skus {token}".strip(), lambda: self.gcp[token]
        return "products", lambda: self.oci


@contextmanager
def serving(vendors: FakeVendors) -> Iterator[FakeVendors]:
    """Serve the stand-ins; `url` is then where they are."""
    with server(Starlette(routes=[Route("/{path:path}", vendors.answer)])) as vendors.url:
        yield vendors
