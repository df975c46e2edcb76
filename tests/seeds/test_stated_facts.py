"""Facts that the documents of the catalog and the vendor's lists state, as the API gives them."""

import csv

import httpx
import pytest

pytestmark = pytest.mark.first_database


def test_a_size_that_its_page_says_is_superseded_is_withdrawn_with_its_figures(client: httpx.Client) -> None:
    size = client.get("/sizes/nd40s_v2").json()
    assert (size["status"], size["series"], size["gpu_model"], size["gpu_memory_gib_per_gpu"]) == (
        "withdrawn",
        "ndv2",
        "Tesla V100 16GB",
        16,
    )
    facts = client.get("/sizes/nd40s_v2/facts").json()["items"]
    sources = {fact["source_id"] for fact in facts if fact["field"] in ("withdrawn", "gpu_memory_gib_per_gpu")}
    listed = client.get("/sources?limit=500").json()["items"]
    (title,) = [source["title"] for source in listed if source["id"] in sources]
    assert "superseded by ND40rs_v2" in title


def test_sizes_of_the_notes_are_found_by_the_category_that_the_notes_give(client: httpx.Client) -> None:
    names = {
        size["name"] for size in client.get("/sizes?category=gpu_accelerated&verified=false&limit=500").json()["items"]
    }
    assert names >= {"NG8", "NG16", "NG32", "ND6", "ND12", "ND24"}


@pytest.mark.parametrize(
    ("size", "field", "value"),
    [
        ("nd96asr_v4", "physical_cores", "96"),
        ("nd96asr_v4", "infiniband_gbps_per_gpu", "200"),
        ("nd40rs_v2", "physical_cores", "40"),
    ],
)
def test_figures_in_the_text_of_a_document_are_facts(client: httpx.Client, size: str, field: str, value: str) -> None:
    facts = client.get(f"/sizes/{size}/facts?limit=500").json()["items"]
    assert [fact["value"] for fact in facts if fact["field"] == field] == [value]


@pytest.mark.parametrize(
    ("series", "integration"),
    [
        ("nd_gb300_v6", "Slurm"),
        ("ndv2", "NVIDIA GPU Driver Extension"),
        ("ng_third_party", "visualization frameworks"),
    ],
)
def test_what_the_text_of_a_document_names_beside_its_list_is_an_integration(
    client: httpx.Client, series: str, integration: str
) -> None:
    assert integration in client.get(f"/series/{series}").json()["integrations"]


def test_a_result_that_two_documents_publish_is_shown_once(client: httpx.Client) -> None:
    results = client.get("/series/nd_gb300_v6").json()["benchmarks"]
    assert len({(one["scope"], one["metric"], one["value"], one["unit"]) for one in results}) == len(results) > 0


KEPT = ("memory_gib", "temp_disk_gib", "nvme_disk_gib", "max_data_disks")


def test_a_constrained_size_has_the_memory_and_disks_of_its_parent_or_a_dispute(client: httpx.Client) -> None:
    rows = csv.DictReader(client.get("/sizes.csv?status=any").text.splitlines())
    sizes = {row["name"]: row for row in rows}
    pairs = [(size, sizes[size["parent_size"]]) for size in sizes.values() if size["parent_size"]]
    differ = {
        (size["name"], field)
        for size, parent in pairs
        for field in KEPT
        if parent[field] and size[field] != parent[field] and field not in size["disputed_fields"]
    }
    assert len(pairs) == 246
    assert differ == set()


@pytest.mark.parametrize(
    ("size", "gib", "source"),
    [
        ("e96-24ds_v5", 3600, "azure-constrained-vcpus-2025-10-16"),
        ("e96-48ds_v5", 3600, "azure-constrained-vcpus-2025-10-16"),
        ("m16-4ms", 512, "azure-constrained-vcpus-2025-10-16"),
        ("m16-8ms", 512, "azure-constrained-vcpus-2025-10-16"),
        ("ec96ads_v5", 3600, "ecasv5-ecadsv5-series-2021-11-15"),
        ("e80is_v4", 0, "esv4-series-2026-03-10"),
    ],
)
def test_a_local_disk_is_that_of_the_page_where_the_calculator_differs(
    client: httpx.Client, size: str, gib: int, source: str
) -> None:
    answer = client.get(f"/sizes/{size}").json()
    assert (answer["temp_disk_gib"], answer["disputed_fields"]) == (gib, ["temp_disk_gib"])
    facts = client.get(f"/sizes/{size}/facts?limit=500").json()["items"]
    verdicts = {fact["source_id"]: fact["verdict"] for fact in facts if fact["field"] == "temp_disk_gib"}
    assert verdicts == {source: "accepted", "azure-calculator-local-disks-2026-01-26": "disputed"}


@pytest.mark.parametrize(
    ("size", "count", "source"),
    [
        ("nd96is_h100_v5", 8, "azure-ml-endpoint-sizes-2025-10-18"),
        ("nc32ads_a10_v4", 2, "azure-resource-skus-gpu-counts-2026-06-23"),
        ("nv6s_v2", 1, "azure-nvv2-series-2019-05-16"),
        ("nv12s_v2", 2, "azure-nvv2-series-2019-05-16"),
        ("nv24s_v2", 4, "azure-nvv2-series-2019-05-16"),
    ],
)
def test_a_gpu_count_is_known_where_a_source_states_it(
    client: httpx.Client, size: str, count: int, source: str
) -> None:
    assert client.get(f"/sizes/{size}").json()["gpu_count"] == count
    facts = client.get(f"/sizes/{size}/facts?limit=500").json()["items"]
    counts = {fact["source_id"]: fact["verdict"] for fact in facts if fact["field"] == "gpu_count"}
    assert counts[source] == "accepted"
    assert "disputed" not in counts.values()


@pytest.mark.parametrize("size", ["nv6", "nv6_promo", "nv6s_v2", "nv12s_v3"])
def test_half_boards_of_the_m60_are_counted_alike_in_all_series(client: httpx.Client, size: str) -> None:
    figures = ("gpu_count", "gpu_fraction", "gpu_id", "gpu_memory_gib", "gpu_memory_gib_per_gpu")
    answer = client.get(f"/sizes/{size}").json()
    assert [answer[name] for name in figures] == [1, None, "m60-half", 8, 8]


@pytest.mark.parametrize("size", ["nc6", "nc12", "nc24", "nc24r", "nv6", "nv12", "nv24"])
def test_a_promotion_is_the_machine_that_its_regular_size_is(client: httpx.Client, size: str) -> None:
    figures = ("gpu_count", "gpu_id", "gpu_memory_gib", "vcpus", "memory_gib", "temp_disk_gib")
    regular, promotion = (client.get(f"/sizes/{name}").json() for name in (size, f"{size}_promo"))
    assert [promotion[name] for name in figures] == [regular[name] for name in figures]
    assert promotion["disputed_fields"] == []


@pytest.mark.parametrize(("size", "values"), [("nv12s_v3", {"320", "736"}), ("nv48s_v3", {"1344", "1280", "2948"})])
def test_all_temporary_disks_that_sources_state_of_nvv3_are_shown(
    client: httpx.Client, size: str, values: set[str]
) -> None:
    assert "temp_disk_gib" in client.get(f"/sizes/{size}").json()["disputed_fields"]
    facts = client.get(f"/sizes/{size}/facts?limit=500").json()["items"]
    assert {fact["value"] for fact in facts if fact["field"] == "temp_disk_gib"} == values


def test_a_search_for_eight_gpus_finds_the_sizes_whose_count_is_stated(client: httpx.Client) -> None:
    found = client.get("/sizes?gpu=H100&min_gpus=8").json()["items"]
    assert {"Standard_ND96is_H100_v5", "Standard_ND96isr_H100_v5"} <= {size["name"] for size in found}
    unknown = client.get("/sizes/nd96is_flex_h100_v5").json()["gpu_count"]
    assert unknown is None  # no source with a licence counts its GPUs, so it is not found
