"""Questions over several clouds: which sizes, whose regions, and the same size elsewhere."""

import json
import re
from typing import Any

import httpx
import pytest

from tests.conftest import TODAY

pytestmark = pytest.mark.one_database


def get(clouds: httpx.Client, path: str, **params: Any) -> Any:
    answer = clouds.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_list_is_over_all_clouds_and_each_row_names_its_provider(clouds: httpx.Client) -> None:
    found = get(clouds, "/sizes", min_gpu_mem_per_gpu=80, sort="usd_per_gpu_hour", limit=30)["items"]
    assert {item["provider"] for item in found} >= {"runpod", "verda", "hyperstack", "lambda"}
    prices = [item["usd_per_gpu_hour"] for item in found]
    assert prices == sorted(prices)


def test_a_region_elsewhere_is_named_as_what_is_wrong(clouds: httpx.Client) -> None:
    answer = clouds.get("/sizes", params={"region": "eastus", "continent": "europe"})
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "region=eastus: not in continent=europe; GET /regions says where each region is",
    )


@pytest.mark.parametrize(
    ("params", "detail"),
    [
        (
            {"region": "us-east-1", "provider": "azure"},
            "region=us-east-1: is a region of AWS, not of provider=azure",
        ),
        (
            {"region": "us-east-1", "provider": "azure", "continent": "north_america"},
            "region=us-east-1: is a region of AWS, not of provider=azure",
        ),
        (
            {"available_in": "eastus,westeurope", "provider": "aws,gcp"},
            "available_in=eastus,westeurope: are regions of Azure, not of provider=aws,gcp",
        ),
        (
            {"available_in": "eastus", "region": "us-east-1"},
            "available_in=eastus: is a region of Azure, and region=us-east-1 is a region of AWS",
        ),
        (
            {"available_in": "eastus,us-east-1"},
            "available_in=eastus,us-east-1: no size is in regions of aws and of azure",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/sizes", "/facets", "/fit"])
def test_no_size_is_in_the_region_of_another_cloud(
    clouds: httpx.Client, path: str, params: dict[str, str], detail: str
) -> None:
    answer = clouds.get(path, params=params)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/unknown-value")
    assert answer.json()["detail"] == detail


@pytest.mark.parametrize("use", [{"resources": {}}, {"model": "llama-3.1-8b", "inference": {}}])
@pytest.mark.parametrize("field", ["regions", "available_in"])
def test_a_body_is_refused_for_a_region_of_another_cloud(clouds: httpx.Client, use: dict[str, Any], field: str) -> None:
    answer = clouds.post("/fit", json=use | {"constraints": {field: ["eastus"], "provider": ["aws"]}})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"/body/constraints/{field}")
    assert "eastus: is a region of Azure, not of " in answer.json()["detail"]


@pytest.mark.parametrize("where", [{}, {"region": "ap-northeast-1,ap-south-1"}, {"as_of": "2026-08-31"}])
def test_a_size_without_a_price_by_a_purchase_model_is_where_it_is_cheapest_on_demand(
    clouds: httpx.Client, where: dict[str, str]
) -> None:
    (size,) = get(clouds, "/sizes", name="a1.2xlarge", purchase="spot", **where)["items"]
    assert size["usd_per_hour"] is None
    assert (size["region"], size["on_demand_usd_per_hour"]) == ("ap-south-1", 0.204)


@pytest.mark.parametrize(
    ("params", "detail"),
    [
        ({"provider": "aws", "purchase": "spot"}, "linux spot: no price is known in any region"),
        (
            {"region": "us-east-1", "purchase": "reserved_1y", "os": "windows"},
            (
                "windows reserved_1y: no price is known in us-east-1, nor in any other region; "
                "it covers the machine and not the licence of Windows"
            ),
        ),
        (
            {"region": "us-east-1", "purchase": "savings_1y"},
            "linux savings_1y: no price is known in us-east-1, nor in any other region",
        ),
    ],
)
def test_a_note_of_missing_prices_is_about_the_clouds_that_are_asked_for(
    clouds: httpx.Client, params: dict[str, str], detail: str
) -> None:
    note = get(clouds, "/sizes", limit=1, **params)["no_price"]
    assert (note["known_in"], note["detail"]) == ([], detail)


def test_a_country_leaves_the_facet_of_its_regions(clouds: httpx.Client) -> None:
    codes = {entry["value"] for entry in get(clouds, "/facets", country="DE", region="germanywestcentral")["region"]}
    assert codes >= {"germanywestcentral", "eu-central-1", "europe-west3"}
    regions = get(clouds, "/regions", limit=500)["items"]
    assert codes <= {region["code"] for region in regions if region["country"] == "DE"}


def test_an_unknown_region_is_one_that_differs_in_hyphens_alone(clouds: httpx.Client) -> None:
    detail = clouds.get("/sizes?region=useast1").json()["detail"]
    assert detail.startswith("region=useast1: no such region; did you mean us-east-1 or us-east1?")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe (Frankfurt)", "eu-central-1"),
        ("US East (N. Virginia)", "us-east-1"),
        ("Iowa", "centralus or us-central1"),
        ("all regions", "coreweave or lambda or runpod"),
    ],
)
def test_the_name_of_a_region_is_refused_with_its_code(clouds: httpx.Client, name: str, meant: str) -> None:
    answer = clouds.get("/sizes", params={"region": name})
    detail = f"region={name}: no such region; did you mean {meant}? GET /regions lists them"
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


def test_a_series_may_be_named_without_its_cloud_if_no_other_has_the_name(clouds: httpx.Client) -> None:
    assert get(clouds, "/sizes", series="p5") == get(clouds, "/sizes", series="aws_p5")
    answer = clouds.get("/sizes", params={"series": "c4"})
    assert (answer.status_code, "did you mean aws_c4 or gcp_c4?" in answer.json()["detail"]) == (422, True)


def test_a_size_in_a_region_of_another_provider_is_an_error_of_a_plan(clouds: httpx.Client) -> None:
    elsewhere = [{"size": "D2_v3", "region": "us-east-1"}, {"size": "m5.large", "region": "westeurope"}]
    details = [
        "Standard_D2_v3 is a size of Azure, and us-east-1 a region of AWS.",
        "m5.large is a size of AWS, and westeurope a region of Azure.",
    ]
    planned = clouds.post("/retirements", json={"items": elsewhere}).json()["items"]
    assert [item["outcome"] for item in planned] == ["error", "error"]
    errors = [error for item in planned for error in item["errors"]]
    assert [(error["code"], error["detail"]) for error in errors] == [("OTHER_PROVIDER", text) for text in details]
    checked = clouds.post("/preflight", json={"plan": json.dumps(elsewhere)}).json()["items"]
    assert [(item["verdict"], item["details"]) for item in checked] == [("error", [text]) for text in details]


def test_a_provider_narrows_lists_facets_and_prices(clouds: httpx.Client) -> None:
    found = get(clouds, "/sizes", provider="aws,oci", limit=500, fields="provider")
    assert {item["provider"] for item in found["items"]} == {"aws", "oci"}
    facets = get(clouds, "/facets", provider="aws")
    # A facet ignores its own parameter.
    assert {each["value"] for each in facets["provider"]} >= {"azure", "aws", "gcp"}
    assert {each["value"] for each in facets["series"]} >= {"aws_m5"}
    assert all(each["value"].startswith("aws_") for each in facets["series"] if each["value"])
    prices = get(clouds, "/prices", provider="gcp", limit=500)["items"]
    assert {get(clouds, f"/sizes/{name}")["provider"] for name in {item["size"] for item in prices[:20]}} == {"gcp"}
    assert get(clouds, "/fit", provider="lambda", min_gpus=8)["items"][0]["size"].startswith("gpu_8x")
    assert clouds.get("/sizes", params={"provider": "nobody"}).status_code == 422


def test_the_first_size_of_azure_in_a_region_stays_one_of_azure(clouds: httpx.Client) -> None:
    found = get(clouds, "/sizes", region="eastus", sort="usd_per_hour", limit=20)["items"]
    assert {item["provider"] for item in found} == {"azure"}
    assert {item["region"] for item in found} == {"eastus"}


def test_a_country_or_continent_means_the_regions_there(clouds: httpx.Client) -> None:
    found = get(clouds, "/sizes", country="de", name="m5.large,n2-standard-8,standard_d8s_v5", limit=9)["items"]
    assert {item["region"] for item in found} == {"eu-central-1", "europe-west3", "germanywestcentral"}
    found = get(clouds, "/sizes", continent="europe", provider="aws", limit=200)["items"]
    regions = {item["code"]: item for item in get(clouds, "/regions", limit=500)["items"]}
    assert {regions[item["region"]]["continent"] for item in found} == {"europe"}
    assert regions["us-east-1"]["country"] == "US"
    prices = get(clouds, "/prices", country="IE", size="m5.large")["items"]
    assert [item["region"] for item in prices] == ["eu-west-1"]
    answer = clouds.get("/sizes", params={"country": "XX"})
    assert answer.status_code == 422
    assert "country=XX" in answer.json()["detail"]
    assert "DE" in answer.json()["detail"]


def test_a_name_may_begin_with_its_provider(clouds: httpx.Client) -> None:
    assert get(clouds, "/sizes/aws:m5.large")["name"] == "m5.large"
    assert get(clouds, "/sizes/Azure:D8s_v5")["name"] == "Standard_D8s_v5"
    compared = get(clouds, "/compare", size="aws:m7i.2xlarge,gcp:n2-standard-8,azure:d8s_v5")
    assert compared["sizes"] == ["m7i.2xlarge", "n2-standard-8", "Standard_D8s_v5"]
    listed = get(
        clouds, "/sizes", name="aws:m5.large,GCP:n2-standard-8,azure:standard_d8s_v5,azure:m7i.large,oci:vm.gpu2*"
    )
    assert {item["name"] for item in listed["items"]} == {"m5.large", "n2-standard-8", "Standard_D8s_v5", "VM.GPU2.1"}
    missing = clouds.get("/sizes/azure:m5.large")
    assert missing.status_code == 404
    assert "azure:m5.large" in missing.json()["detail"]


@pytest.mark.parametrize(
    ("name", "provider", "same"),
    [
        ("m7i.2xlarge", "azure", "Standard_D8s_v6"),
        ("m7i.2xlarge", "gcp", "c3-standard-8"),
        ("n2-standard-8", "aws", "m6i.2xlarge"),
        ("d8s_v5", "aws", "m6i.2xlarge"),
        ("d8s_v5", "gcp", "n2-standard-8"),
    ],
)
def test_similar_sizes_are_found_on_other_clouds(clouds: httpx.Client, name: str, provider: str, same: str) -> None:
    found = get(clouds, f"/sizes/{name}/similar", provider=provider, limit=8)["items"]
    assert {item["provider"] for item in found} == {provider}
    assert same in {item["size"] for item in found}
    assert found[0]["vcpus"] == 8
    architectures = {get(clouds, f"/sizes/{item['size']}")["arch"] for item in found}
    assert architectures == {"x64"}, "programs for x64 do not run on arm64"


def test_a_computed_price_is_estimated_and_names_its_formula(clouds: httpx.Client) -> None:
    (price,) = get(clouds, "/prices", size="a1.large", region="eu-west-1")["items"]
    assert price["estimate"]["estimated"] is True
    assert "us-east-1" in price["estimate"]["formula"]
    assert "2025-03-02" in price["estimate"]["formula"]  # the day of its oldest figure, which price_as_of is not
    (row,) = get(clouds, "/sizes", name="a1.large", region="eu-west-1")["items"]
    assert row["estimate"] | {"sum": price["estimate"]["sum"]} == price["estimate"]
    (listed,) = get(clouds, "/sizes", name="a1.large", region="us-east-1")["items"]
    assert "estimate" not in listed
    (price,) = get(clouds, "/prices", size="bm.gpu.h100.8")["items"]
    assert price["estimate"]["formula"].startswith("OCPUs or GPUs x")
    assert "744" not in price["estimate"]["formula"]  # what its source calls a month; the API's has 730 hours
    formulas = {one["id"]: one["formula"] for one in get(clouds, "/sources", limit=500)["items"]}
    assert formulas[price["source_id"]] == price["estimate"]["formula"]


@pytest.mark.parametrize(
    ("size", "region"),
    [("a1.large", "eu-west-1"), ("bm.gpu.h100.8", "oci"), ("n1-standard-4-nvidia-tesla-t4-x1", "us-central1")],
)
def test_histories_and_exports_say_which_prices_are_computed(clouds: httpx.Client, size: str, region: str) -> None:
    formula = get(clouds, f"/sizes/{size}/price-history", region=region)["items"][-1]["estimate"]["formula"]
    for path in ("/prices.ndjson", "/sizes.ndjson"):
        named = {"size": size} if "prices" in path else {"name": size}
        answer = clouds.get(path, params={**named, "region": region, "fields": "usd_per_hour,estimate_formula"})
        assert {json.loads(line)["estimate_formula"] for line in answer.text.splitlines()} == {formula}
    whole = clouds.get("/prices.csv", params={"size": size, "region": region}).text
    assert whole.splitlines()[0].endswith(",estimate_formula")
    assert formula in whole


def test_every_gpu_and_disk_controller_of_facets_finds_sizes(clouds: httpx.Client) -> None:
    facets = get(clouds, "/facets")
    families = {"A100", "H100"}  # these names also find the kinds of the GPU
    for name, parameter in (("gpu_model", "gpu"), ("disk_controller", "disk_controller")):
        for each in facets[name]:
            if each["value"] is None:
                continue
            total = get(clouds, "/sizes", limit=1, **{parameter: each["value"]})["total"]
            assert total == each["count"] or (each["value"] in families and total > each["count"]), each


def test_a_place_without_a_region_of_the_provider_names_both(clouds: httpx.Client) -> None:
    answer = clouds.get("/prices", params={"provider": "lambda", "continent": "africa"})
    assert answer.json()["detail"] == "continent=africa: no region there has provider=lambda"
    answer = clouds.get("/sizes", params={"country": "DE", "continent": "asia"})
    assert answer.json()["detail"] == "continent=asia: no region there has country=DE"


def test_equal_spot_savings_are_in_the_order_of_names(clouds: httpx.Client) -> None:
    names = "standard_b4als_v2,standard_b16als_v2"
    found = get(clouds, "/sizes", name=names, sort="-spot_saving_percent", fields="name,spot_usd_per_hour")["items"]
    assert [item["name"] for item in found] == ["Standard_B16als_v2", "Standard_B4als_v2"]


def test_a_price_that_is_a_sum_has_its_parts_and_every_face_says_that_it_is_computed(clouds: httpx.Client) -> None:
    attached, flexible = "n1-standard-4-nvidia-tesla-t4-x1", "VM.Standard.E5.Flex.4o.32g"
    (of_size,) = get(clouds, f"/sizes/{attached}/prices")["items"]
    (of_all,) = get(clouds, "/prices", size=flexible)["items"]
    assert of_size["estimate"]["sum"] == {"parts": ["n1-standard-4 0.189999", "1 nvidia-tesla-t4 x 0.35"]}
    assert of_all["estimate"]["sum"] == {"parts": ["4 OCPU x 0.03", "32 GiB x 0.002"]}
    (by_ratio,) = get(clouds, "/prices", size="a1.large", region="eu-west-1")["items"]
    assert by_ratio["estimate"]["sum"] == {"parts": ["0.051 in us-east-1 x 1.12941"]}
    assert "computed: 4 OCPU x 0.03 + 32 GiB x 0.002" in clouds.get(f"/ui/sizes/{flexible}").text
    page = clouds.get("/ui/sizes/a1.large").text
    assert "Computed prices: price in us-east-1 on 2026-07-20 x ratio" in page
    assert "Computed prices" not in clouds.get("/ui/sizes/standard_d8s_v5").text
    assert "Oracle Cloud VM size of the series" in clouds.get(f"/ui/sizes/{flexible}.md").text


def test_a_fit_is_over_all_clouds_unless_it_names_some(clouds: httpx.Client) -> None:
    body: dict[str, Any] = {"model": "llama-3.1-8b", "inference": {"context_tokens": 8192}, "limit": 40}
    found = clouds.post("/fit", json=body | {"constraints": {"provider": ["gcp", "aws"], "continent": ["europe"]}})
    assert found.status_code == 200, found.text
    regions = {one["code"]: one for one in get(clouds, "/regions", limit=500)["items"]}
    used = {option["provider"] for option in found.json()["items"]}
    assert used == {"gcp", "aws"}
    assert all(regions[option["region"]]["provider"] == option["provider"] for option in found.json()["items"])
    assert {regions[option["region"]]["continent"] for option in found.json()["items"]} == {"europe"}
    refused = clouds.post("/fit", json=body | {"constraints": {"provider": ["nobody"]}})
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("size", "tokens_per_s"), [("g6e.xlarge", 100.7), ("g2-standard-8", 35.0), ("gpu-l40s-a_1gpu-16vcpu-64gb", 100.7)]
)
def test_a_fit_tells_the_speed_of_gpus_that_azure_does_not_have(
    clouds: httpx.Client, size: str, tokens_per_s: float
) -> None:
    body = {
        "model": "llama-3.1-8b",
        "inference": {"context_tokens": 8192, "concurrency": 2},
        "constraints": {"name": [size]},
    }
    (option,) = clouds.post("/fit", json=body).json()["items"]
    assert option["speed"]["tokens_per_s"]["value"] == pytest.approx(tokens_per_s, rel=0.02)
    assert option["cost"]["on_demand"]["usd_per_million_tokens"]["mid"] > 0


def test_a_fit_says_what_is_unknown_of_a_size_of_any_cloud(clouds: httpx.Client) -> None:
    body = {
        "model": "llama-3.1-8b",
        "inference": {"context_tokens": 8192},
        "constraints": {
            "name": ["gpu_1x_a100", "bm.gpu.h100.8", "a2-highgpu-1g", "aws:m5.large"],
            "checkpoint_on_local_disk": True,
        },
        "include": ["rejected"],
    }
    answer = clouds.post("/fit", json=body).json()
    reasons = {miss["size"]: (miss["provider"], miss["failures"][0]["detail"]) for miss in answer["rejected"]}
    of_gpu = "no source states its memory bandwidth"
    assert reasons == {
        "gpu_1x_a100": ("lambda", of_gpu),  # its form is not stated
        "BM.GPU.H100.8": ("oci", of_gpu),
        "a2-highgpu-1g": ("gcp", "needs 15.0 GiB of local disk, and no source says what it has"),
        "m5.large": ("aws", "has no GPU"),
    }


def test_gpus_on_cards_share_no_nvlink_and_those_of_one_board_do(clouds: httpx.Client) -> None:
    body = {
        "model": "llama-3.1-70b",
        "inference": {"context_tokens": 8192, "concurrency": 4},
        "constraints": {"name": ["g6e.12xlarge", "p5.48xlarge", "p6-b200.48xlarge"]},
    }
    found = {option["size"]: option["warnings"] for option in clouds.post("/fit", json=body).json()["items"]}
    assert {size for size, warnings in found.items() if "TP_OVER_PCIE" in warnings} == {"g6e.12xlarge"}
    assert len(found) == 3


def test_sixteen_gpus_of_one_mesh_share_nvlink(clouds: httpx.Client) -> None:
    body = {
        "model": "llama-3.1-70b",
        "inference": {"context_tokens": 8192, "tensor_parallel": 16},
        "constraints": {"name": ["a2-megagpu-16g"], "tp_in_nvlink": True},
    }
    (option,) = clouds.post("/fit", json=body).json()["items"]
    assert "TP_OVER_PCIE" not in option["warnings"]


def test_a_replica_is_on_several_vms_only_where_a_fabric_is_known(clouds: httpx.Client) -> None:
    sizes = {
        "p5.48xlarge": ("EFA", True),
        "a3-megagpu-8g": ("GPUDirect-TCPXO", True),
        "BM.GPU.L40S.4": ("RoCE", None),
        "a2-ultragpu-8g": ("none", True),
        "gpu_8x_h100_sxm5": (None, None),
    }
    names = ",".join(sizes)
    listed = get(clouds, "/sizes", name=names, fields="name,fabric,nvlink")["items"]
    assert {item["name"]: (item["fabric"], item["nvlink"]) for item in listed} == sizes
    assert {item["name"] for item in get(clouds, "/sizes", name=names, fabric="efa")["items"]} == {"p5.48xlarge"}
    body = {
        "model": "llama-3.1-405b",
        "inference": {"context_tokens": 8192, "concurrency": 2},
        "constraints": {
            "name": [*sizes],
            "checkpoint_on_local_disk": False,
            "max_nodes": 8,
            "require_infiniband": True,
        },
        "include": ["rejected"],
    }
    answer = clouds.post("/fit", json=body).json()
    assert {option["size"] for option in answer["items"]} == {"p5.48xlarge", "a3-megagpu-8g", "BM.GPU.L40S.4"}
    reasons = {miss["size"]: miss["failures"][0]["detail"] for miss in answer["rejected"]}
    assert reasons == {
        "a2-ultragpu-8g": "one replica needs 2 VMs, and has no InfiniBand",
        "gpu_8x_h100_sxm5": "one replica needs 2 VMs, and no source says that it has InfiniBand",
    }


def test_an_unknown_region_is_told_those_of_its_own_cloud(clouds: httpx.Client) -> None:
    for written, meant in (("us-east-9", "us-east-1"), ("us-east9", "us-east1"), ("eastus9", "eastus")):
        detail = clouds.get("/sizes", params={"region": written}).json()["detail"]
        assert written in detail
        assert f"{meant}" in detail


@pytest.mark.parametrize(
    ("size", "gbps"),
    [
        ("p5.48xlarge", 400),  # EFA is the network of the VM
        ("p4d.24xlarge", 50),
        ("g6e.48xlarge", 50),
        ("Standard_ND96asr_v4", 200),
        ("Standard_ND96isr_H100_v5", 400),
        ("a3-megagpu-8g", 200),
        ("a3-ultragpu-8g", None),  # the rate of its RoCE is not that of its network
        ("BM.GPU.H100.8", None),
    ],
)
def test_vms_exchange_data_at_the_rate_of_their_own_fabric(clouds: httpx.Client, size: str, gbps: int | None) -> None:
    level = {"input_tokens": 8000, "output_tokens": 100, "requests_per_second": 1, "disaggregated": True}
    body = {"model": "llama-3.1-8b", "serving": level, "inference": {"tensor_parallel": 4}}
    answer = clouds.post("/fit", json=body | {"constraints": {"name": [size]}}).json()
    if gbps is None:
        assert answer["rejection_summary"] == {"GPU_UNKNOWN": 1}
        assert "network" in answer["nearest_misses"][0]["failures"][0]["detail"]
        return
    (option,) = answer["items"]
    cache_of_a_gpu = 8000 * 32 * 2 * 8 * 128 * 2 / 4
    assert option["serving"]["disaggregation"]["kv_transfer"]["mid"] == pytest.approx(
        cache_of_a_gpu / (gbps * 1e9 / 8) + 30e-6
    )


def test_disks_of_azure_are_refused_for_a_size_of_another_cloud(clouds: httpx.Client) -> None:
    answer = clouds.get("/sizes/m5.large/cost?region=us-east-1&disk=premium_ssd:100")
    assert answer.status_code == 422
    assert "disk=premium_ssd:100: managed disks are of Azure, and m5.large is a size of AWS" in answer.json()["detail"]


def test_costs_fits_and_comparisons_say_which_prices_are_computed(clouds: httpx.Client) -> None:
    (price,) = get(clouds, "/prices", size="a1.large", region="eu-west-1")["items"]
    estimate, formula = price["estimate"], {"estimated": True, "formula": price["estimate"]["formula"]}
    assert get(clouds, "/sizes/a1.large/cost", region="eu-west-1")["vm"]["estimate"] == estimate
    (way, *_) = get(clouds, "/sizes/a1.large/buy", region="eu-west-1")["ways"]
    assert way["prices"][0]["estimate"] == estimate
    asked = {"min_vcpus": 2, "name": "a1.large", "region": "eu-west-1"}
    (option,) = get(clouds, "/fit", **asked)["items"]
    body = {"resources": {"min_vcpus": 2}, "constraints": {"name": ["a1.large"], "regions": ["eu-west-1"]}}
    (placed,) = clouds.post("/fit", json=body).json()["items"]
    (past,) = get(clouds, "/fit", **asked, as_of=str(TODAY))["items"]
    for fitting in (option, placed, past):
        assert fitting["cost"]["on_demand"]["estimate"] == formula
        assert "in eu-west-1 (computed)" in fitting["explanation"]
    compared = get(clouds, "/compare", size="a1.large,m5.large", region="eu-west-1")["fields"]
    (line,) = (line for line in compared if line["field"] == "estimate_formula")
    assert line["values"][0]["value"] == formula["formula"]
    listed = get(clouds, "/files/aws/sizes.json")["sizes"]
    (row,) = (size for size in listed if size["name"] == "a1.large")
    assert row["prices"]["eu-west-1"]["linux"]["on_demand"]["computed"] is True
    # What a list states is marked nowhere.
    for path in ("/sizes/a1.large/cost", "/sizes/a1.large/buy", "/fit?min_vcpus=2&name=a1.large"):
        assert "estimate" not in clouds.get(f"{path}{'&' if '?' in path else '?'}region=us-east-1").text
    assert "computed" not in row["prices"]["us-east-1"]["linux"]["on_demand"]


def test_a_model_on_a_size_of_a_computed_price_says_so(clouds: httpx.Client) -> None:
    served = {"model": "llama-3.2-1b", "inference": {"concurrency": 1, "dtype": "fp16"}}
    body = served | {"constraints": {"name": ["n1-standard-4-nvidia-tesla-t4-x1"]}}
    (placed,) = clouds.post("/fit", json=body).json()["items"]
    assert placed["cost"]["on_demand"]["estimate"]["formula"].startswith("price of the N1 machine type")
    assert "(computed)" in placed["explanation"]


@pytest.mark.parametrize(
    "path",
    [
        "/ui/compare?name=a1.large,a1.xlarge&region=eu-west-1",
        "/ui/fit?model=llama-3.2-1b&dtype=fp16&gpu=T4&provider=gcp",
        "/ui/explore?y=price&x=vcpus&name=a1.large",
        "/ui/sizes/a1.large/buy?region=eu-west-1",
        "/ui/sizes.csv?q=a1.large&region=eu-west-1",
    ],
)
def test_pages_say_which_prices_are_computed(clouds: httpx.Client, path: str) -> None:
    answer = clouds.get(path, headers={"accept": "text/html"}, follow_redirects=True)
    assert answer.status_code == 200, answer.text
    text = answer.text.partition("<main")[2] or answer.text
    assert re.search(r">(computed|computed: [^<]+|Computed as)<|,computed", text)


FOREIGN = "region=us-east-1: is a region of AWS, and Standard_D8s_v5 is a size of Azure"


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        *((f"/sizes/d8s_v5/{what}?region=us-east-1", FOREIGN) for what in ("cost", "buy", "prices", "availability")),
        ("/sizes/d8s_v5/price-history?region=us-east-1", FOREIGN),
        ("/compare?size=d8s_v5,e8s_v5&region=us-east-1", FOREIGN),
        (
            "/sizes/d8s_v5/cost?region=us-east-1,us-central1",
            "region=us-central1,us-east-1: are regions of AWS and of Google Cloud, and Standard_D8s_v5 is a size of",
        ),
        ("/sizes/m5.large/cost?region=eastus", "region=eastus: is a region of Azure, and m5.large is a size of AWS"),
        *((f"/{list_}?size=d8s_v5&region=us-east-1", FOREIGN) for list_ in ("prices", "changes", "refused-prices")),
        ("/changes?size=standard_d8s_v5&region=us-east-1", FOREIGN),
        ("/prices.csv?size=d8s_v5,e8s_v5&region=us-east-1", FOREIGN),
        ("/changes?provider=aws&region=eastus", "region=eastus: is a region of Azure, not of provider=aws"),
        ("/sizes/d8s_v5/similar?provider=azure&region=us-east-1", "region=us-east-1: is a region of AWS, not of "),
        ("/disks?region=us-east-1", "region=us-east-1: is a region of AWS, and the disks are Azure's"),
        (
            "/sizes/m5.large/buy?os=windows&hybrid_benefit=true",
            "hybrid_benefit=true: is a benefit of Azure, and m5.large is a size of AWS",
        ),
    ],
)
def test_what_is_of_another_cloud_is_refused(clouds: httpx.Client, path: str, detail: str) -> None:
    answer = clouds.get(path)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/unknown-value")
    assert answer.json()["detail"].startswith(detail)


@pytest.mark.parametrize(
    "path",
    [
        "/sizes/d8s_v5/cost?region=eastus,us-east-1",
        "/compare?size=d8s_v5,m5.large&region=us-east-1",
        "/prices?size=d8s_v5,m5.large&region=us-east-1",
        "/changes?size=d8s_v5,m5.large&region=us-east-1",
        "/changes?size=d8s_v5,m5*&region=us-east-1",
        "/sizes?available_in=eastus&region=us-east-1,westeurope",
        "/sizes?available_in=eastus&provider=aws,azure",
        "/sizes/d8s_v5/similar?provider=aws&region=us-east-1",
        "/disks?region=westeurope,us-east-1",
        "/ui/sizes/d8s_v5?region=us-east-1",
        "/ui/compare?name=d8s_v5,e8s_v5&region=us-east-1",
    ],
)
def test_one_region_of_the_cloud_is_enough(clouds: httpx.Client, path: str) -> None:
    assert clouds.get(path, headers={"accept": "text/html"} if "/ui/" in path else {}).status_code == 200


def test_the_page_of_ways_to_buy_says_at_the_field_that_a_region_is_of_another_cloud(clouds: httpx.Client) -> None:
    answer = clouds.get("/ui/sizes/d8s_v5/buy?region=us-east-1", headers={"accept": "text/html"})
    assert answer.status_code == 422
    assert "is a region of AWS, and Standard_D8s_v5 is a size of Azure" in answer.text


@pytest.mark.parametrize(
    ("size", "model", "tensor", "joined"),
    [
        ("n3-A100x8", "llama-3.1-70b", 2, False),  # the cloud sells the bridge with another size
        ("n3-A100x8-NVLink", "llama-3.1-70b", 2, True),
        ("n3-H100x8-NVLink", "llama-3.1-70b", 2, True),
        ("n1-standard-32-nvidia-tesla-v100-x8", "llama-3.1-8b", 4, True),
        ("gpu_2x_h100_sxm5", "llama-3.1-70b", 2, True),
    ],
)
def test_what_is_stated_of_a_size_decides_whether_its_gpus_share_nvlink(
    clouds: httpx.Client, size: str, model: str, tensor: int, joined: bool
) -> None:
    placed = {"context_tokens": 2048, "concurrency": 1, "tensor_parallel": tensor, "dtype": "fp16"}
    body = {"model": model, "inference": placed, "constraints": {"name": [size]}}
    (option,) = clouds.post("/fit", json=body).json()["items"]
    assert ("TP_OVER_PCIE" in option["warnings"]) is not joined
    strict = clouds.post("/fit", json=body | {"constraints": {"name": [size], "tp_in_nvlink": True}}).json()
    assert strict["fits"] is joined
    assert set(strict["rejection_summary"]) == (set() if joined else {"NVLINK_DOMAIN"})
