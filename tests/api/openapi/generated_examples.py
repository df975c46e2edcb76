"""The requests of the document's examples, and how their responses are recorded."""

import json
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from app.api.openapi.build import shorten
from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.api.openapi.error_cases import ERROR_CASES, clients, get_problem
from tests.api.openapi.generated_files import make_document
from tests.api.openapi.parts import Part, operations
from tests.conftest import TODAY
from tests.seeded import seeded_sqlite_url
from tests.servers import open_client, server

EXAMPLE_PATHS: Mapping[str, str] = {
    "listSizes": "/sizes?gpu=A100&min_gpu_mem=80&region=eastus&sort=usd_per_hour&limit=2",
    "listSimilarSizes": "/sizes/nc24ads_a100_v4/similar?region=eastus&limit=2",
    "listSizeFacts": "/sizes/nd40rs_v2/facts?field=gpu_memory_gib&limit=2",
    "listSizeAvailability": "/sizes/nc24ads_a100_v4/availability?region=eastus,southcentralus&limit=2",
    "listSizePrices": "/sizes/nc24ads_a100_v4/prices?region=westeurope&as_of=2026-07-01&limit=2",
    "listSizePriceHistory": "/sizes/nc24ads_a100_v4/price-history?region=westeurope&limit=2",
    "exportPricesCsv": "/prices.csv?fields=size,region,os,purchase,usd_per_hour,valid_from,seen_until,source_id",
    "showSizeCost": "/sizes/nc24ads_a100_v4/cost?region=westeurope&disk=premium_ssd:1000,premium_ssd_v2:1024:5000:200",
    "compareWaysToBuy": "/sizes/b16als_v2/buy?region=polandcentral&months=12",
    "listDisks": "/disks?type=premium_ssd&redundancy=lrs&region=westeurope&min_gib=1000&limit=2",
    "compareSizes": "/compare?size=nc24ads_a100_v4&size=nc40ads_h100_v5&region=eastus",
    "fitResources": "/fit?min_gpu_mem=320&region=eastus&limit=2",
    "listConflicts": "/conflicts?subject=nd40rs_v2&field=gpu_memory_gib&limit=2",
    "listModels": "/models?q=llama+3.1&limit=2",
    "fitWorkload": "/fit",
    "estimateWorkload": "/estimate",
    "planRetirements": "/retirements",
    "checkQuotas": "/preflight",
    "exportRetirementsIcs": "/retirements.ics?series=nvv3",
}
"""Requests that differ from the default: the examples of the required parameters, and two items."""

_LLAMA = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 32}}
BODIES: Mapping[str, dict[str, Any]] = {
    "fitWorkload": {**_LLAMA, "constraints": {"regions": ["westeurope"]}, "limit": 2},
    "planRetirements": {
        "items": [
            {"id": "render-1", "size": "Standard_NV12s_v3", "region": "westeurope", "count": 4},
            {"id": "train-1", "size": "nc24rs_v3", "region": "East US", "count": 2},
        ],
        "max_successors": 1,
    },
    "checkQuotas": {
        "plan": "size,region,count\nStandard_NC24ads_A100_v4,westeurope,2\n",
        "usage": [
            {
                "region": "westeurope",
                "text": '[{"name": {"value": "StandardNCADSA100v4Family"}, "currentValue": "0", "limit": "24"}]',
            }
        ],
    },
    "estimateWorkload": {**_LLAMA, "gpus": {"count": 4, "usable_gib": 79.25, "bandwidth_gb_per_s": 1935}},
}
VOLATILE_FIELDS = {"created_at", "known_from", "tracked_since", "next_cursor"}
"""Fields that depend on the day of the ingest or on the revision of the catalog."""


def example_path(path: str, operation: Part) -> str:
    """Return the path of an operation's example: from EXAMPLE_PATHS, else from its parameters' examples."""
    parameters = operation.get("parameters", [])
    for parameter in (one for one in parameters if one["in"] == "path"):
        path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
    limit = "?limit=2" if any(parameter["name"] == "limit" for parameter in parameters) else ""
    return EXAMPLE_PATHS.get(operation["operationId"], path + limit)


def send_shortened(client: httpx.Client, path: str, body: dict[str, Any] | None) -> Any:
    """Send a request and return the response, shortened as in an example."""
    answer = client.get(path) if body is None else client.post(path, json=body)
    assert answer.status_code == httpx.codes.OK, answer.text
    is_json = answer.headers["content-type"].startswith("application/json")
    return shorten(answer.json() if is_json else answer.text)


def without_volatile_fields(answer: Any) -> Any:
    """Return a response without the fields that change when a catalog is ingested again."""
    if isinstance(answer, dict):
        return {name: without_volatile_fields(value) for name, value in answer.items() if name not in VOLATILE_FIELDS}
    return [without_volatile_fields(value) for value in answer] if isinstance(answer, list) else answer


def write_examples() -> None:
    """Send the examples to a service with a seeded catalog, and record its responses."""
    with TemporaryDirectory() as folder:
        url = seeded_sqlite_url()
        service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: TODAY)
        with server(service) as base_url, open_client(base_url) as client:
            for place, operation in operations(make_document()):
                _write_operation_example(client, place.partition(" ")[2], operation)
        with clients(url, f"sqlite:///{folder}/empty.db", TODAY) as services:
            for name in ERROR_CASES:
                _write_example(f"problems/{name}", get_problem(services, name))


def _write_operation_example(client: httpx.Client, path: str, operation: Part) -> None:
    if "application/octet-stream" in operation["responses"]["200"]["content"]:
        return  # binary files have no example
    path, body = example_path(path, operation), BODIES.get(operation["operationId"])
    _write_example(operation["operationId"], {"path": path, "body": body, "answer": send_shortened(client, path, body)})


def _write_example(name: str, example: Part) -> None:
    """Write an example unless only its volatile fields have changed."""
    file = PROJECT / "app/api/openapi/examples" / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    if without_volatile_fields(before) != without_volatile_fields(example):
        file.write_text(json.dumps(example, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
