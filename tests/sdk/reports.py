"""The report that each program prints, and the values expected in it, fetched by plain HTTP."""

from typing import Any

import httpx

from tests.servers import open_client

Report = dict[str, Any]

FIT = {
    "model": "llama-3.1-70b",
    "inference": {"context_tokens": 8192, "concurrency": 32},
    "constraints": {"regions": ["westeurope"]},
    "include": ["rejected"],
}
ESTIMATE = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 32}}


def expected(url: str) -> Report:
    """Fetch by plain HTTP what every program fetches by its generated client."""
    with open_client(url) as client:
        return {**_of_sizes(client), **_of_models(client), "problem": _problem(client)}


def _of_sizes(client: httpx.Client) -> Report:
    (cheapest,) = _get(client, "/sizes?min_gpu_mem=80&sort=usd_per_hour&limit=1")["items"]
    pages = [_get(client, "/sizes?limit=500")]
    while cursor := pages[-1]["next_cursor"]:
        pages.append(_get(client, f"/sizes?limit=500&cursor={cursor}"))
    size = _get(client, "/sizes/NV6ads_A10_v5")
    return {
        "cheapest": {"name": cheapest["name"], "usd_per_hour": cheapest["usd_per_hour"]},
        "as_of": cheapest["on_demand_as_of"],
        "chosen": _get(client, "/sizes?gpu=A100&gpu=H100&status=current&status=retiring&nvlink=true")["total"],
        "walked": [item["name"] for page in pages for item in page["items"]],
        "total": pages[0]["total"],
        "size": {name: size[name] for name in ("name", "gpu_count", "gpu_fraction", "nvlink", "disputed_fields")},
        "csv": client.get("/sizes.csv?gpu=A100").raise_for_status().text.count("\n"),
    }


def _of_models(client: httpx.Client) -> Report:
    fit = client.post("/fit", json=FIT).raise_for_status().json()
    best, rejected = fit["items"][0], fit["rejected"][0]
    estimate = client.post("/estimate", json=ESTIMATE).raise_for_status().json()
    return {
        "fit": {
            "size": best["size"],
            "usd_per_hour": best["cost"]["on_demand"]["usd_per_hour"],
            "rejected": rejected["size"],
            "code": rejected["failures"][0]["code"],
        },
        "parameters": estimate["parameters"]["total"]["value"],
    }


def _problem(client: httpx.Client) -> Report:
    problem = client.get("/sizes/nothing").json()
    return {name: problem[name] for name in ("type", "title", "status", "detail")}


def _get(client: httpx.Client, question: str) -> dict[str, Any]:
    body: dict[str, Any] = client.get(question).raise_for_status().json()
    return body
