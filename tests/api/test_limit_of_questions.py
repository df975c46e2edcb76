"""Every endpoint and page that asks the catalog passes one limit: as many questions as may run and wait."""

import re

import httpx
import pytest

from app.db import executors
from app.http.middleware import CacheMiddleware
from tests.servers import open_client, server

ASKS_NOTHING = {
    *("/healthz", "/problems", "/problems/{slug}", "/metrics", "/readyz", "/accuracy", "/ui", "/ui/", "/"),
    *(
        "/llms.txt",
        "/docs",
        "/docs/page.js",
        "/ui/{rest:path}",
        "/openapi.json",
        "/openapi-3.0.json",
        "/schemas",
        "/assets/{name}",
        "/mcp",
    ),
    *("/sizes.csv", "/sizes.ndjson", "/sizes.parquet"),  # these are streams, which have their own limit
    *("/files/{provider}/vms.csv", "/files/{provider}/gpuhunt.csv"),
    *("/files/{provider}/instances.json", "/files/{provider}/sizes.json"),
    *("/sizes/{name}/observations", "/ui/sizes/{name}/observations"),  # this service has no keys
    "/robots.txt",
    "/sitemap.xml",  # there is none without a public URL
}
"""Routes that need no connection to the database, or one that others do not wait for."""
NAMES = {"model_id": "llama-3.1-70b", "series_id": "ndv2"}
PLAN = {"plan": "size,region\nx1,eastus"}
BODIES = {
    "/fit": {"resources": {"min_vcpus": 1}},
    "/estimate": {"architecture": {"params": 8_000_000_000}, "inference": {"dtype": "fp8"}},
    "/retirements": {"items": [{"size": "x1", "region": "eastus"}]},
    "/receipts": {"endpoint": "GET /sizes"},
    "/preflight": PLAN,
}
INVENTORY = {"inventory": "size,region\nx1,eastus"}
QUERIES = {
    "/ui/suggestions": {"q": "h100"},
    "/compare": {"size": "x1,x2"},
    "/sizes/{name}/price-history": {"region": "eastus"},
    "/ui/retirements/plan": INVENTORY,
    "/ui/retirements/plan.csv": INVENTORY,
    "/ui/preflight": PLAN,
}
FORMS = {
    "/ui/fit": {"model": "x"},
    "/ui/retirements/plan": INVENTORY,
    "/ui/retirements/plan.csv": INVENTORY,
    "/ui/preflight": PLAN,
}


@pytest.mark.one_database
def test_each_route_is_refused_while_too_many_questions_wait(
    service: CacheMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = service.app.state.executor
    executor.loop_connection = None  # as with PostgreSQL, which no question reads on the event loop
    for threads in executor.queues:
        monkeypatch.setattr(threads, "_most", 0)
    answered: dict[str, int] = {}
    with server(service) as url, open_client(url) as client:
        for route in service.app.state.routes:
            for method in sorted(route.methods - {"HEAD", "OPTIONS"}):
                if route.path not in ASKS_NOTHING:
                    answered[f"{method} {route.path}"] = ask(client, method, route.path).status_code
    assert len(answered) > 40
    assert {asked: status for asked, status in answered.items() if status != 503} == {}
    assert executors.MAX_WAITING > 0


def ask(client: httpx.Client, method: str, path: str) -> httpx.Response:
    target = re.sub(r"{(\w+)(:path)?}", lambda name: NAMES.get(name[1], "x1"), path)
    if method == "GET":
        return client.get(target, params=QUERIES.get(path))
    return client.post(target, data=FORMS[path]) if path in FORMS else client.post(target, json=BODIES[path])
