"""The pages and their states: each row is checked by the tests of this folder and has screenshots.

To add a page is to add its rows here.
"""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class PageState:
    """A state of a page that is worth a look: the name of its screenshots, its URL, the status of the response."""

    name: str
    url: str
    status: int = 200


INVENTORY = """id,size,region,count
render,Standard_NV12s_v3,West Europe,4
train,nc24rs_v3,centralindia,2
web,d8s_v3,eastus,20
new,nc24ads_a100_v4,eastus,1
wrong,d8s_v33,eastus,1"""
"""VMs with a successor, without one, without a retirement, and of a size that there is not."""

PLAN = """id,size,region,count,purchase
train,Standard_NC24ads_A100_v4,West Europe,4,
web,d8s_v5,eastus,20,spot
wrong,d8s_v33,eastus,1,"""

PAGES = (
    PageState("search", "/"),
    PageState("search-filtered", "/?gpu=H100&region=westeurope,eastus&unit=month&currency=EUR&sort=usd_per_hour"),
    PageState("search-disputed", "/?disputed=true&limit=25"),
    PageState("search-columns", "/?gpu=A100&columns=vcpus,price,spot_usd_per_hour,reserved_3y_usd_per_hour,nvlink"),
    PageState("search-empty", "/?gpu=H100&min_vcpus=1000&region=westeurope"),
    PageState("search-invalid", "/?min_vcpus=lots&gpu=H1000", status=422),
    PageState("size", "/ui/sizes/nd40rs_v2?region=eastus"),
    PageState("size-euro", "/ui/sizes/d8s_v5?region=westeurope&currency=EUR&unit=month"),
    PageState("size-retired", "/ui/sizes/nc6s_v3"),
    PageState("size-fraction", "/ui/sizes/nv6ads_a10_v5?purchase=spot&os=windows"),
    PageState("size-invalid", "/ui/sizes/d8s_v5?region=atlantis&unit=decade", status=422),
    PageState("size-unknown", "/ui/sizes/nd40rs_v9", status=404),
    PageState("size-models", "/ui/sizes/nc24ads_a100_v4/models"),
    PageState("size-buy", "/ui/sizes/nc24ads_a100_v4/buy?region=westeurope&months=24"),
    PageState("compare", "/ui/compare?name=nd40rs_v2,nd96isr_h100_v5,d8s_v5&currency=EUR"),
    PageState("compare-differing", "/ui/compare?name=nc24ads_a100_v4,nc40ads_h100_v5&differing=true&unit=month"),
    PageState("compare-empty", "/ui/compare"),
    PageState("compare-invalid", "/ui/compare?name=nd40rs_v2,nd40rs_v9&region=atlantis", status=422),
    PageState("fit", "/ui/fit"),
    PageState("fit-model", "/ui/fit?model=llama-3.3-70b&dtype=fp8&concurrency=64"),
    PageState("fit-nodes", "/ui/fit?model=deepseek-r1&max_nodes=4&currency=EUR&region=eastus"),
    PageState("fit-none", "/ui/fit?model=llama-3.1-405b&concurrency=400&context_tokens=32768"),
    PageState("fit-config", "/ui/fit?by=config"),
    PageState("fit-resources", "/ui/fit?by=resources&min_gpu_mem=640&max_nodes=2&budget_usd_per_month=30000"),
    PageState(
        "fit-service",
        "/ui/fit?model=llama-3.1-70b&use=service&input_tokens=2000&output_tokens=300&requests_per_second=5"
        "&peak_to_mean=3&ttft_ms=500&tpot_ms=40",
    ),
    PageState("fit-training", "/ui/fit?model=llama-3.1-8b&use=training&method=qlora&tokens=100000000&max_nodes=2"),
    PageState("fit-invalid", "/ui/fit?model=llama-3.3-7b&concurrency=many&dtype=fp9", status=422),
    PageState("changes", "/ui/changes"),
    PageState("changes-invalid", "/ui/changes?since=tomorrow&kind=price_up&size=nd40rs_v9", status=422),
    PageState("conflicts", "/ui/conflicts"),
    PageState("conflicts-invalid", "/ui/conflicts?field=max_nic&series=nvv4", status=422),
    PageState("coverage", "/ui/coverage?gpus=none"),
    PageState("coverage-invalid", "/ui/coverage?gpus=some", status=422),
    PageState("retirements", "/ui/retirements"),
    PageState("retirements-past", "/ui/retirements?past=true&region=westeurope&purchase=spot"),
    PageState("retirements-empty", "/ui/retirements?gpu=H100"),
    PageState("retirement-plan", f"/ui/retirements/plan?inventory={quote(INVENTORY)}"),
    PageState("retirement-plan-empty", "/ui/retirements/plan"),
    PageState("retirement-plan-invalid", "/ui/retirements/plan?inventory=size%2Cregion%0A%2Ceastus", status=422),
    PageState("preflight", f"/ui/preflight?plan={quote(PLAN)}"),
    PageState("preflight-empty", "/ui/preflight"),
    PageState("preflight-invalid", "/ui/preflight?plan=size%2Cregion%0A%2Ceastus&region=atlantis", status=422),
    PageState("explore", "/ui/explore"),
    PageState("explore-size", "/ui/explore?gpu_vendor=nvidia&region=westeurope&name=nc24ads_a100_v4&currency=EUR"),
    PageState("explore-cpu", "/ui/explore?x=memory&max_gpus=0&category=memory_optimized&region=westeurope&unit=month"),
    PageState("explore-empty", "/ui/explore?gpu=H100&min_vcpus=1000"),
    PageState("explore-invalid", "/ui/explore?x=price&name=nd40rs_v9", status=422),
    PageState("not-found", "/ui/nothing", status=404),
)
