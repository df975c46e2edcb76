"""Asks the service by the client of openapi-python-client, and reports what it got as JSON."""

import json
import sys
from typing import Any

from client import Client
from client.api.exports import export_sizes_csv
from client.api.fit import estimate_workload, fit_workload
from client.api.sizes import list_sizes, show_size
from client.models import EstimateIn, EstimateOut, FitAnswerOut, FitIn, Problem, SizeDetailOut, SizePage, SizeStatus

INFERENCE = {"context_tokens": 8192, "concurrency": 32}


def main(url: str) -> None:
    client = Client(base_url=url)
    print(json.dumps({**sizes(client), **models(client), "problem": problem(client)}))


def page(answer: SizePage | Problem | None) -> SizePage:
    assert isinstance(answer, SizePage), answer
    return answer


def walk(client: Client) -> tuple[list[str], int]:
    names: list[str] = []
    cursor = ""
    while True:
        found = page(list_sizes.sync(client=client, limit=25, cursor=cursor))
        names += [size.name for size in found.items]
        if found.next_cursor is None:
            return names, found.total
        cursor = found.next_cursor


def sizes(client: Client) -> dict[str, Any]:
    cheapest = page(list_sizes.sync(client=client, min_gpu_mem=80, sort=["usd_per_hour"], limit=1)).items[0]
    current = [SizeStatus("current"), SizeStatus("retiring")]
    chosen = page(list_sizes.sync(client=client, gpu=["A100", "H100"], status=current, nvlink=True))
    walked, total = walk(client)
    size = show_size.sync("NV6ads_A10_v5", client=client)
    assert isinstance(size, SizeDetailOut)
    csv = export_sizes_csv.sync(client=client, gpu=["A100"])
    assert isinstance(csv, str)
    return {
        "cheapest": {"name": cheapest.name, "usd_per_hour": cheapest.usd_per_hour},
        "as_of": cheapest.on_demand_as_of.isoformat() if cheapest.on_demand_as_of else None,
        "chosen": chosen.total,
        "walked": walked,
        "total": total,
        "size": {
            "name": size.name,
            "gpu_count": size.gpu_count,
            "gpu_fraction": size.gpu_fraction,
            "nvlink": size.nvlink,
            "disputed_fields": size.disputed_fields,
        },
        "csv": csv.count("\n"),
    }


def models(client: Client) -> dict[str, Any]:
    asked = {"model": "llama-3.1-70b", "inference": INFERENCE}
    regions = {"constraints": {"regions": ["westeurope"]}, "include": ["rejected"]}
    fit = fit_workload.sync(client=client, body=FitIn.from_dict({**asked, **regions}))
    assert isinstance(fit, FitAnswerOut)
    assert fit.rejected is not None
    best, rejected = fit.items[0], fit.rejected[0]
    estimate = estimate_workload.sync(client=client, body=EstimateIn.from_dict(asked))
    assert isinstance(estimate, EstimateOut)
    assert estimate.parameters
    return {
        "fit": {
            "size": best.size,
            "usd_per_hour": best.cost.on_demand.usd_per_hour if best.cost.on_demand else None,
            "rejected": rejected.size,
            "code": rejected.failures[0].code,
        },
        "parameters": estimate.parameters.total.value,
    }


def problem(client: Client) -> dict[str, Any]:
    answer = show_size.sync("nothing", client=client)
    assert isinstance(answer, Problem)
    return {"type": answer.type_, "title": answer.title, "status": answer.status, "detail": answer.detail}


main(sys.argv[1])
