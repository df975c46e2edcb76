from typing import Any

import httpx
import pytest

from app.schemas.sizes import SizeOut
from tests.walks import walk

pytestmark = pytest.mark.first_database

A, B = "Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5"


def compare(client: httpx.Client, *sizes: str, **parameters: Any) -> dict[str, Any]:
    response = client.get("/compare", params={"size": sizes, **parameters})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def line(body: dict[str, Any], field: str) -> list[Any]:
    (found,) = (one for one in body["fields"] if one["field"] == field)
    return [(cell["value"], cell["difference"], cell["difference_percent"]) for cell in found["values"]]


def test_every_field_of_a_size_is_compared_in_order(client: httpx.Client) -> None:
    fields = [one["field"] for one in compare(client, A, B)["fields"]]
    own = [name for name in SizeOut.model_fields if name not in ("name", "adjustment", "estimate", "converted")]
    assert fields[: len(own)] == own
    assert {name.partition("_")[0] for name in fields[len(own) :]} == {"gpus", "usd"}


def test_values_are_those_of_the_list_of_sizes(client: httpx.Client) -> None:
    query = {"region": "eastus,westeurope", "os": "windows", "purchase": "spot"}
    rows = {row["name"]: row for row in walk(client, "/sizes", **query)}
    body = compare(client, A, B, **query)
    for one in body["fields"]:
        for cell in one["values"]:
            if one["field"] in SizeOut.model_fields:
                assert cell["value"] == rows[cell["size"]][one["field"]], one["field"]


def test_differences_are_from_the_baseline_in_the_unit_and_in_percent(client: httpx.Client) -> None:
    assert line(compare(client, A, B), "gpu_memory_gib") == [(80.0, 0.0, 0.0), (94.0, 14.0, 17.5)]
    turned = compare(client, A, B, baseline="nc40ADS_h100_v5")
    assert (turned["baseline"], turned["sizes"]) == (B, [A, B])
    assert line(turned, "gpu_memory_gib") == [(80.0, -14.0, -14.89), (94.0, 0.0, 0.0)]


def test_a_part_of_a_gpu_is_compared_exactly(client: httpx.Client) -> None:
    body = compare(client, "nv6ads_a10_v5", "nv36ads_a10_v5")
    assert line(body, "gpu_count") == [(0.1667, 0.0, 0.0), (1.0, pytest.approx(5 / 6), 500.0)]
    assert [percent for _, _, percent in line(body, "gpus_fp16_tflops")] == [0.0, 500.0]


def test_a_unit_price_is_the_price_by_the_figure_of_all_gpus(client: httpx.Client) -> None:
    body = compare(client, "nc48ads_a100_v4", A)
    for unit, amount in (
        ("usd_per_vcpu_hour", "vcpus"),
        ("usd_per_memory_gib_hour", "memory_gib"),
        ("usd_per_gpu_hour", "gpu_count"),
        ("usd_per_gpu_gib_hour", "gpu_memory_gib"),
        ("usd_per_fp16_tflops_hour", "gpus_fp16_tflops"),
        ("usd_per_gb_per_s_hour", "gpus_memory_bandwidth_gb_per_s"),
    ):
        for price, usd, of in zip(line(body, unit), line(body, "usd_per_hour"), line(body, amount), strict=True):
            assert price[0] == pytest.approx(usd[0] / of[0]), unit
    assert [value for value, _, _ in line(body, "gpus_fp16_tflops")] == [624.0, 312.0]


def test_unknown_values_and_texts_have_no_difference(client: httpx.Client) -> None:
    body = compare(client, A, "NG16")
    assert line(body, "usd_per_hour")[1] == (None, None, None)
    assert line(body, "usd_per_fp16_tflops_hour")[1] == (None, None, None)
    assert line(body, "cpu_model")[0][1:] == (None, None)
    assert line(body, "verified") == [(True, None, None), (False, None, None)]


def test_a_size_that_is_not_sold_there_is_shown_without_a_price(client: httpx.Client) -> None:
    sold = {row["name"] for row in walk(client, "/sizes", region="westeurope")}
    named = {row["name"] for row in walk(client, "/sizes")}
    absent = min(named - sold)
    for region in ("westeurope", "westeurope,westus"):
        body = compare(client, absent, A, region=region)
        assert body["sizes"] == [absent, A]
    assert line(compare(client, absent, A, region="westeurope"), "usd_per_hour")[0] == (None, None, None)


def test_a_retired_size_has_that_status(client: httpx.Client) -> None:
    body = compare(client, "nc24rs_v3", A, region="westeurope")
    assert [value for value, _, _ in line(body, "status")] == ["retired", "current"]


def test_every_amount_has_its_unit_beside_it(client: httpx.Client) -> None:
    for one in compare(client, A, B)["fields"]:
        if any(cell["difference"] is not None for cell in one["values"]):
            assert one["unit"], one["field"]
        known = [cell["value"] for cell in one["values"] if cell["value"] is not None]
        assert one["differs"] is any(value != known[0] for value in known)


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("", "size: is required"),
        (f"size={A}", "size"),
        (f"size={','.join(f'x{number}' for number in range(11))}", "size"),
        (f"size={A},nc40ads_h100_v4", "did you mean Standard_NC40ads_H100_v5"),
        (
            f"size={A},nd_gb300_v6",
            "nd_gb300_v6 is a series of sizes; search with series=nd_gb300_v6; GET /sizes lists them",
        ),
        (f"size={A},NC24ads_a100_v4", f"size=NC24ads_a100_v4: it is the same size as {A}; name it once"),
        ("size=Standard_ND96asr_A100_v4,nd96asr_v4", "is the same size as"),
        (f"size={A},{B}&baseline=nd40rs_v2", "must be one of the sizes"),
        (f"size={A},{B}&baseline=nd40rs_v9", "baseline=nd40rs_v9: no such size; did you mean"),
        (f"size={A},Nope,no2", "size=Nope: no such size; none is named 'no2'; GET /sizes lists them"),
        (f"size={A},{B}&region=westeurop", "did you mean westeurope?"),
        (f"size={A},{B}&baseline={A}&baseline={B}", "takes one value"),
    ],
)
def test_a_bad_comparison_is_rejected_with_the_name(client: httpx.Client, query: str, detail: str) -> None:
    response = client.get(f"/compare?{query}")
    assert response.status_code == 422, response.text
    assert detail in response.json()["detail"]


def test_aliases_and_spellings_resolve_to_the_size(client: httpx.Client) -> None:
    asked = compare(client, "standard_ND96ASR_a100_V4", "  NC24ads_a100_v4 ")
    assert asked["sizes"] == ["Standard_ND96asr_v4", A]
