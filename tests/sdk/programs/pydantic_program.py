"""Asks the service by the client of openapi-generator's python, and reports what it got as JSON."""

import json
import sys
from typing import Any

from vmsizes_sdk import ApiClient, Configuration, ConstraintsIn, EstimateIn, FitIn, InferenceIn, Problem, SizeStatus
from vmsizes_sdk.api.exports_api import ExportsApi
from vmsizes_sdk.api.fit_api import FitApi
from vmsizes_sdk.api.sizes_api import SizesApi
from vmsizes_sdk.exceptions import NotFoundException
from vmsizes_sdk.models.fit_include import FitInclude

INFERENCE = InferenceIn(context_tokens=8192, concurrency=32)


def main(url: str) -> None:
    with ApiClient(Configuration(host=url)) as client:
        api = SizesApi(client)
        csv = ExportsApi(client).export_sizes_csv(gpu=["A100"]).decode()
        models = fitted(FitApi(client))
        print(json.dumps({**sizes(api), "csv": csv.count("\n"), **models, "problem": problem(api)}))


def walk(api: SizesApi) -> tuple[list[str], int]:
    names: list[str] = []
    cursor = None
    while True:
        found = api.list_sizes(limit=25, cursor=cursor)
        names += [size.name for size in found.items]
        cursor = found.next_cursor
        if cursor is None:
            return names, found.total


def sizes(api: SizesApi) -> dict[str, Any]:
    cheapest = api.list_sizes(min_gpu_mem=80, sort=["usd_per_hour"], limit=1).items[0]
    current = [SizeStatus("current"), SizeStatus("retiring")]
    chosen = api.list_sizes(gpu=["A100", "H100"], status=current, nvlink=True)
    walked, total = walk(api)
    size = api.show_size("NV6ads_A10_v5")
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
    }


def fitted(api: FitApi) -> dict[str, Any]:
    constraints, include = ConstraintsIn(regions=["westeurope"]), [FitInclude("rejected")]
    fit = api.fit_workload(FitIn(model="llama-3.1-70b", inference=INFERENCE, constraints=constraints, include=include))
    best, rejected = fit.items[0], fit.rejected[0]
    estimate = api.estimate_workload(EstimateIn(model="llama-3.1-70b", inference=INFERENCE))
    return {
        "fit": {
            "size": best.size,
            "usd_per_hour": best.cost.on_demand.usd_per_hour if best.cost.on_demand else None,
            "rejected": rejected.size,
            "code": rejected.failures[0].code,
        },
        "parameters": estimate.parameters.total.value if estimate.parameters else None,
    }


def problem(api: SizesApi) -> dict[str, Any]:
    try:
        api.show_size("nothing")
    except NotFoundException as refusal:
        answer = Problem.from_json(refusal.body or "")
        assert answer is not None
        return {"type": answer.type, "title": answer.title, "status": answer.status, "detail": answer.detail}
    raise AssertionError("there is a size named nothing")


main(sys.argv[1])
