"""POST /preflight: plans of VMs against quotas, as the vendors' commands print them."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

A100, D8, E8 = "Standard_NC24ads_A100_v4", "Standard_D8s_v5", "Standard_E8s_v5"


def azure(**quotas: tuple[int, int]) -> str:
    """What `az vm list-usage` prints of used and limit: texts, as the command writes numbers."""
    rows = {"cores": (20, 350), "virtualMachines": (3, 25000), "lowPriorityCores": (0, 3), **quotas}
    return json.dumps(
        [
            {
                "currentValue": str(used),
                "limit": str(limit),
                "localName": f"{name} vCPUs",
                "name": {"localizedValue": f"{name} vCPUs", "value": name},
            }
            for name, (used, limit) in rows.items()
        ]
    )


def aws(**values: float) -> str:
    """What `aws service-quotas list-service-quotas --service-code ec2` prints: no figure of use."""
    names = {
        "L_43DA4232": "Running On-Demand High Memory instances",
        "L_7212CCBC": "All P4, P3 and P2 Spot Instance Requests",
        "L_C4BD4855": "All P5 Spot Instance Requests",
        "L_1216C47A": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
        "L_DB2E81BA": "Running On-Demand G and VT instances",
        "L_3819A6DF": "All G and VT Spot Instance Requests",
        "L_0263D0A3": "EC2-VPC Elastic IPs",
    }
    quotas = [
        {
            "ServiceCode": "ec2",
            "QuotaArn": f"arn:aws:servicequotas:us-east-1:123456789012:ec2/{code.replace('_', '-')}",
            "QuotaCode": code.replace("_", "-"),
            "QuotaName": names[code],
            "Value": value,
            "Unit": "None",
            "Adjustable": True,
        }
        for code, value in values.items()
    ]
    return json.dumps({"Quotas": quotas})


def gcp(**metrics: tuple[float, float]) -> str:
    """What `gcloud compute regions describe us-central1 --format=json` prints."""
    quotas = [{"limit": limit, "metric": name, "usage": used} for name, (used, limit) in metrics.items()]
    return json.dumps({"kind": "compute#region", "name": "us-central1", "quotas": quotas, "status": "UP"})


def terraform(*changes: Mapping[str, Any], region: str | None = None) -> str:
    """What `terraform show -json` prints of a plan."""
    provider = {"aws": {"name": "aws", "expressions": {"region": {"constant_value": region}}}} if region else {}
    return json.dumps(
        {
            "format_version": "1.2",
            "terraform_version": "1.9.5",
            "planned_values": {"root_module": {}},
            "resource_changes": changes,
            "configuration": {"provider_config": provider},
        }
    )


def change(
    kind: str, actions: list[str], after: Mapping[str, Any] | None, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A resource's change in a plan."""
    changes = {"actions": actions, "before": before, "after": after, "after_unknown": {}}
    return {"address": f"{kind}.this", "mode": "managed", "type": kind, "name": "this", "change": changes}


def ask(client: httpx.Client, plan: str, *usage: str, region: str | None = "westeurope", **more: Any) -> dict[str, Any]:
    """Return the answer, which no cache may keep."""
    named = {} if region is None else {"region": region}
    body = {"plan": plan, "usage": [{"text": text} for text in usage], **named, **more}
    response = client.post("/preflight", json=body)
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    assert "stored" not in response.headers.get("cache-status", "")
    answer: dict[str, Any] = response.json()
    return answer


def quota(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a quota of an answer."""
    (found,) = (one for one in answer["quotas"] if one["quota"] == name)
    return dict(found)


def test_what_is_missing_is_told_with_the_text_of_a_request(client: httpx.Client) -> None:
    plan = f"size,region,count,purchase\n{A100},West Europe,4,\n{D8},westeurope,10,Regular\n{D8},westeurope,1,Spot\n"
    # Lists of sizes and of usage spell families differently.
    usage = azure(**{"Standard NCADSA100v4 Family": (24, 100), "standardDSv5Family": (20, 100)})
    answer = ask(client, plan, usage)
    assert answer["verdict"] == "missing"
    family = quota(answer, "Standard NCADSA100v4 Family")
    assert (family["needed"], family["used"], family["limit"], family["missing"]) == (96, 24, 100, 20)
    assert "from 100 to 120" in family["request"]
    assert family["request"].endswith(f"{A100} will need 96 vCPUs more, and 24 are in use.")
    assert "--resource-name 'Standard NCADSA100v4 Family'" in family["command"]
    spot = quota(answer, "lowPriorityCores")
    assert (spot["needed"], spot["missing"], spot["sizes"]) == (8, 5, [D8])
    others = {name: quota(answer, name) for name in ("cores", "virtualMachines", "standardDSv5Family")}
    # Spot VMs count neither towards their family nor towards the vCPUs of the region.
    assert {name: one["needed"] for name, one in others.items()} == {
        "cores": 4 * 24 + 80,
        "virtualMachines": 15,
        "standardDSv5Family": 80,
    }
    assert {one["verdict"] for one in others.values()} == {"fits"}
    assert [item["verdict"] for item in answer["items"]] == ["missing", "fits", "missing"]


def test_what_no_file_says_is_unknown_and_never_fits(client: httpx.Client) -> None:
    plan = f"size,region\n{D8},westeurope\n"
    fits = ask(client, plan, azure(standardDSv5Family=(0, 8)))
    assert fits["verdict"] == "fits"
    assert ask(client, plan, azure())["verdict"] == "unknown"
    assert ask(client, plan)["verdict"] == "unknown"
    # Nobody says whether the vCPUs of a constrained size or those of its parent count: 8 or 32.
    constrained = "size,region\nStandard_E32-8s_v5,westeurope\n"
    verdicts = [ask(client, constrained, azure(standardESv5Family=(0, limit)))["verdict"] for limit in (7, 8, 31, 32)]
    assert verdicts == ["missing", "unknown", "unknown", "fits"]
    needed = quota(ask(client, constrained, azure(standardESv5Family=(0, 8))), "standardESv5Family")
    assert (needed["needed_at_least"], needed["needed"], needed["missing"]) == (8, 32, None)


def test_names_that_the_catalog_does_not_have_are_errors_of_their_lines(client: httpx.Client) -> None:
    plan = json.dumps([{"size": D8, "region": "westeurop"}, {"size": "Standard_D8s_v55", "region": "westeurope"}])
    answer = ask(client, plan, azure())
    assert answer["verdict"] == "error"
    assert [item["verdict"] for item in answer["items"]] == ["error", "error"]
    assert ["Did you mean" in item["details"][0] for item in answer["items"]] == [True, True]


@pytest.mark.parametrize("region", ["us-east-1", "westeurop"])
def test_a_line_that_is_an_error_needs_no_quotas(client: httpx.Client, region: str) -> None:
    answer = ask(client, json.dumps([{"size": D8, "region": region}]), azure())
    assert (answer["verdict"], answer["quotas"]) == ("error", [])


def test_restrictions_of_a_subscription_count_and_other_regions_are_named(client: httpx.Client) -> None:
    def sku(location: str, restrictions: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "resourceType": "virtualMachines",
            "name": D8,
            "family": "standardDSv5Family",
            "locations": [location],
            "locationInfo": [{"location": location, "zones": ["1", "2", "3"]}],
            "restrictions": restrictions,
        }

    closed = {"type": "Location", "values": ["westeurope"], "reasonCode": "NotAvailableForSubscription"}
    zones = {"type": "Zone", "values": ["northeurope"], "restrictionInfo": {"zones": ["2"]}, "reasonCode": "QuotaId"}
    answer = ask(
        client,
        f"size,region\n{D8},westeurope\n{D8},northeurope\n",
        usage=[
            {"region": "West Europe", "text": azure(standardDSv5Family=(0, 100))},
            {"region": "northeurope", "text": azure(standardDSv5Family=(0, 16))},
            {"region": "uksouth", "text": azure(standardDSv5Family=(0, 7))},
        ],
        skus=json.dumps([sku("westeurope", [closed]), sku("northeurope", [zones])]),
    )
    restricted, open_to_it = answer["items"]
    assert (restricted["verdict"], restricted["offered"]) == ("missing", False)
    assert restricted["restriction"] == "NotAvailableForSubscription"
    # Two of eight vCPUs fit there, beside those that the plan has there already.
    assert restricted["fits_in"] == ["northeurope"]
    assert (open_to_it["verdict"], open_to_it["closed_zones"], open_to_it["fits_in"]) == ("fits", ["2"], [])
    assert answer["verdict"] == "missing"


def test_a_plan_of_terraform_counts_what_it_changes(client: httpx.Client) -> None:
    vm = "azurerm_linux_virtual_machine"
    here = {"location": "westeurope"}
    plan = terraform(
        change(vm, ["create"], {"size": D8, **here}),
        change(vm, ["no-op"], {"size": D8, **here}, {"size": D8, **here}),
        change(vm, ["update"], {"size": D8, **here, "tags": {}}, {"size": D8, **here}),
        change(vm, ["update"], {"size": E8, **here}, {"size": D8, **here}),
        change(vm, ["create", "delete"], {"size": E8, **here}, {"size": E8, **here}),
        change(vm, ["delete"], None, {"size": D8, **here}),
        change(
            "azurerm_kubernetes_cluster_node_pool",
            ["create"],
            {"vm_size": D8, "node_count": 1, "max_count": 5, "priority": "Spot"},
        ),
        change("azurerm_resource_group", ["create"], {"location": "westeurope"}),
    )
    answer = ask(client, plan, azure(standardDSv5Family=(8, 100), standardESv5Family=(0, 100)))
    assert {one["quota"]: one["needed"] for one in answer["quotas"]} == {
        "standardDSv5Family": 0,
        "standardESv5Family": 16,
        "cores": 16,
        "virtualMachines": 1 + 0 + 1 + 5,
        "lowPriorityCores": 40,
    }
    unknown = terraform(
        change(vm, ["create"], here),
        change("aws_autoscaling_group", ["create"], {}),
        change(vm, ["create"], {"size": D8}),
    )
    items = ask(client, unknown, azure(), region=None, usage=[])["items"]
    assert [item["verdict"] for item in items] == ["unknown"] * 3
    details = [item["details"][0] for item in items]
    assert ("size" in details[0], "are not read" in details[1], "names no region" in details[2]) == (True,) * 3


def test_quotas_of_aws_are_read_by_the_families_that_they_name(clouds: httpx.Client) -> None:
    plan = terraform(
        change("aws_instance", ["create"], {"instance_type": "g5.12xlarge", "availability_zone": "us-east-1a"}),
        change("aws_instance", ["create"], {"instance_type": "m5.large", "region": None}),
        change(
            "aws_instance",
            ["create"],
            {"instance_type": "g5.xlarge", "instance_market_options": [{"market_type": "spot"}]},
        ),
        region="us-east-1",
    )
    usage = aws(L_1216C47A=1920, L_DB2E81BA=32, L_3819A6DF=0, L_0263D0A3=5)
    answer = ask(clouds, plan, usage, region=None)
    on_demand, spot, standard = (quota(answer, code) for code in ("L-DB2E81BA", "L-3819A6DF", "L-1216C47A"))
    assert (on_demand["needed"], on_demand["missing"], on_demand["verdict"]) == (48, 16, "missing")
    assert on_demand["command"].endswith("--quota-code L-DB2E81BA --desired-value 48 --region us-east-1")
    assert (spot["needed"], spot["limit"], spot["verdict"]) == (4, 0, "missing")
    # The command prints limits and no use.
    assert (standard["needed"], standard["used"], standard["verdict"]) == (2, None, "unknown")
    used = json.loads(usage)
    for row in used["Quotas"]:
        row["Used"] = 0
    assert quota(ask(clouds, plan, json.dumps(used), region=None), "L-1216C47A")["verdict"] == "fits"
    lonely = ask(clouds, "size,region\naws:im4gn.large,us-east-1\n", usage, region=None)
    assert (lonely["verdict"], lonely["quotas"][0]["quota"]) == ("unknown", None)


def test_quotas_of_aws_name_families_by_a_letter_a_generation_or_in_words(clouds: httpx.Client) -> None:
    plan = (
        "size,region,purchase\np4d.24xlarge,us-east-1,spot\np5.48xlarge,us-east-1,spot\n"
        "aws:u-6tb1.56xlarge,us-east-1,\naws:u7i-12tb.224xlarge,us-east-1,\n"
    )
    answer = ask(clouds, plan, aws(L_7212CCBC=0, L_C4BD4855=192, L_43DA4232=448), region=None)
    assert {one["quota"]: (one["needed"], one["missing"], one["sizes"]) for one in answer["quotas"]} == {
        "L-7212CCBC": (96, 96, ["p4d.24xlarge"]),
        "L-C4BD4855": (192, None, ["p5.48xlarge"]),
        "L-43DA4232": (1120, 672, ["u-6tb1.56xlarge", "u7i-12tb.224xlarge"]),
    }


def test_a_family_in_more_quotas_than_aws_has_is_refused(clouds: httpx.Client) -> None:
    rows = [
        {"QuotaName": "Running On-Demand Standard (A, C, D, M) instances", "QuotaCode": f"L-{number}", "Value": 5.0}
        for number in range(11)
    ]
    body = {"plan": "size,region\naws:m5.large,us-east-1\n", "usage": [{"region": "us-east-1"}]}
    for number, status in ((10, 200), (11, 422)):
        body["usage"] = [{"text": json.dumps({"Quotas": rows[:number]}), "region": "us-east-1"}]
        response = clouds.post("/preflight", json=body)
        assert response.status_code == status
    assert "more than 10 quotas of 'a' in us-east-1, of which AWS has one" in response.json()["detail"]


def test_elements_of_a_plan_of_terraform_that_are_no_changes_count_nothing(client: httpx.Client) -> None:
    elements = [1, [[]], {"change": {"actions": [["create"]]}}, {"mode": "data"}]
    plan = json.dumps({"resource_changes": elements, "planned_values": {}})
    response = client.post("/preflight", json={"plan": plan, "region": "westeurope"})
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/body/plan")


def test_quotas_of_google_are_read_by_region(clouds: httpx.Client) -> None:
    plan = "size,region,count,purchase\nn2-standard-8,us-central1,4,\ne2-standard-4,us-central1,1,spot\n"
    usage = gcp(CPUS=(0, 24), N2_CPUS=(10, 24), PREEMPTIBLE_CPUS=(0, 0), N2D_CPUS=(0, 24))
    answer = ask(clouds, plan, usage, region=None)
    assert {one["quota"]: (one["needed"], one["verdict"]) for one in answer["quotas"]} == {
        "N2_CPUS": (32, "missing"),
        "CPUS": (4, "fits"),
    }
    regions = f"[{usage}]"
    assert ask(clouds, plan, regions, region=None)["quotas"] == answer["quotas"]


def test_gpus_of_google_count_towards_the_region_and_all_regions(clouds: httpx.Client) -> None:
    plan = (
        "size,region,count,purchase\na3-megagpu-8g,us-central1,2,\na2-ultragpu-1g,us-central1,1,spot\n"
        "n1-standard-8-nvidia-tesla-t4-x1,us-central1,3,\ng4-standard-48,us-central1,1,\n"
    )
    limits = {
        "NVIDIA_H100_MEGA_GPUS": (0, 8),
        "NVIDIA_A100_80GB_GPUS": (0, 0),
        "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS": (0, 1),
        "NVIDIA_T4_GPUS": (1, 4),
        "CPUS": (0, 100),
    }
    project = json.loads(gcp(GPUS_ALL_REGIONS=(1, 16), CPUS_ALL_REGIONS=(0, 1000))) | {"kind": "compute#project"}
    answer = ask(clouds, plan, gcp(**limits), json.dumps(project), region=None)
    counted = {one["quota"]: (one["region"], one["needed"], one["verdict"]) for one in answer["quotas"] if one["quota"]}
    vcpus = {name: counted.pop(name) for name in [*counted] if name.endswith("CPUS") or name == "CPUS_ALL_REGIONS"}
    assert counted == {
        "NVIDIA_H100_MEGA_GPUS": ("us-central1", 16, "missing"),
        "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS": ("us-central1", 1, "fits"),
        "NVIDIA_T4_GPUS": ("us-central1", 3, "fits"),
        "GPUS_ALL_REGIONS": ("global", 21, "missing"),
    }
    assert (vcpus["CPUS"], vcpus["CPUS_ALL_REGIONS"][0]) == (("us-central1", 24, "fits"), "global")
    assert quota(answer, "NVIDIA_H100_MEGA_GPUS")["request"].endswith(
        "a3-megagpu-8g will need 16 GPUs more, and 0 are in use."
    )
    # No source says which quota the GPUs of G4 have.
    (unnamed,) = (one for one in answer["quotas"] if one["quota"] is None)
    assert ("GPUs of g4-standard-48" in unnamed["title"], unnamed["verdict"]) == (True, "unknown")
    # Without the quotas of the project nobody knows whether GPUs fit.
    alone = ask(clouds, "size,region\nn1-standard-8-nvidia-tesla-t4-x1,us-central1\n", gcp(**limits), region=None)
    assert (alone["verdict"], quota(alone, "NVIDIA_T4_GPUS")["verdict"]) == ("unknown", "fits")


@pytest.mark.parametrize(("usage", "field"), [({"text": "{"}, "text"), ({"text": azure(), "region": "mars"}, "region")])
def test_an_error_of_the_quotas_of_a_region_points_to_them(
    client: httpx.Client, usage: dict[str, str], field: str
) -> None:
    body = {"plan": f"size,region\n{D8},westeurope\n", "usage": [{"text": azure(), "region": "westeurope"}, usage]}
    (error,) = client.post("/preflight", json=body).json()["errors"]
    assert error["pointer"] == f"/body/usage/1/{field}"
    assert error["detail"].startswith(f"usage[1].{field}")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"plan": "size,region\n,westeurope\n"}, "plan: 2: column 'size': '': must not be blank"),
        ({"plan": f"size,region,count\n{D8},westeurope,-1\n"}, "column 'count': '-1': must be a whole number"),
        ({"plan": f"size,region,priority\n{D8},westeurope,High\n"}, "'High': must be one of"),
        ({"plan": f'size,region\n"{D8},westeurope\n'}, "plan: 2: a quote that is opened here is not closed"),
        ({"plan": "size,region\n"}, "plan: has 0 lines with VMs; 1 to 1,000 are allowed"),
        ({"plan": f"size,region\n{D8},westeurope\n" + f"{D8},westeurope\n" * 1000}, "plan: has more than 1,000 lines"),
        ({"plan": "size,region" + ",a" * 1000 + "\n"}, "the header has 1,002 columns; 1,000 are allowed"),
        ({"plan": '{"format_version": "1.0", "terraform_version": "1.9.5"}'}, "Terraform's JSON without a plan"),
        ({"usage": [{"text": "{"}]}, "usage[0].text: is not JSON"),
        ({"usage": [{"text": "{}"}]}, "usage[0].text: is JSON without a list of quotas"),
        ({"usage": [{"text": azure()}, {"text": '[{"name": 3}]'}]}, "usage[1].text: quota 1: is none of `az vm"),
        ({"usage": [{"text": azure(cores=(-2, 5))}]}, "column 'used': '-2': must be a whole number"),
        ({"usage": [{"text": azure()}], "region": None}, "has no region, since the vendor's command prints none"),
        ({"region": "westeurop"}, "region=westeurop: there is no such region; did you mean westeurope?"),
        ({"skus": '{"a": 1}'}, "skus: is JSON without a list; give that of `az vm list-skus --all`"),
        ({"plan": ""}, "plan"),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_is(client: httpx.Client, body: dict[str, Any], detail: str) -> None:
    whole = {"plan": f"size,region\n{D8},westeurope\n", "usage": [], "region": "westeurope", **body}
    response = client.post("/preflight", json=whole)
    assert response.status_code == 422
    assert detail in response.json()["detail"]
    assert response.json()["errors"][0]["pointer"].startswith("/body/")
