"""GPUs are found by their usual names; an unknown name is an error everywhere."""

import httpx
import pytest

pytestmark = pytest.mark.first_database


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("A100-80GB", {"a100-sxm-80", "a100-pcie-80"}), ("NVIDIA A100 80GB", {"a100-sxm-80", "a100-pcie-80"}),
        ("A100-SXM4-80GB", {"a100-sxm-80"}), ("NVIDIA H100", {"h100-sxm-80", "h100-nvl-94"}),
        ("H100-80GB", {"h100-sxm-80"}), ("h100_sxm", {"h100-sxm-80"}), ("H100NVL", {"h100-nvl-94"}),
        ("NVIDIA H100 80GB HBM3", {"h100-sxm-80"}), ("Tesla-T4", {"t4"}), ("MI300X", {"mi300x"}),
        ("RTXPRO6000", {"rtx-pro-6000-bse"}), ("a100", {"a100-sxm-80", "a100-pcie-80", "a100-sxm-40"}),
        ("*h100*", {"h100-sxm-80", "h100-nvl-94"}), ("AMD MI300X", {"mi300x"}),
    ],
)  # fmt: skip
def test_a_gpu_is_found_by_a_usual_spelling(client: httpx.Client, name: str, gpus: set[str]) -> None:
    items = client.get("/sizes", params={"gpu": name, "limit": 500}).raise_for_status().json()["items"]
    assert {row["gpu_id"] for row in items if row["gpu_id"]} == gpus


@pytest.mark.parametrize(
    "path",
    ["/sizes", "/facets", "/prices", "/sizes.csv", "/prices.csv", "/sizes.parquet", "/fit?min_gpu_mem=8", "/fit?q=a"],
)
@pytest.mark.parametrize("name", ["H100-40GB", "*x99*", "B100", "nvidia", "a", "NVIDIA A", "form", "not stated"])
def test_an_unknown_gpu_is_rejected(client: httpx.Client, path: str, name: str) -> None:
    answer = client.get(f"{path}{'&' if '?' in path else '?'}gpu={name}")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/query/gpu"
    assert f"gpu={name}: no GPU of the catalog is called {name}" in error["detail"]
    suggested = {"H100-40GB": "did you mean H100?", "nvidia": "did you mean gpu_vendor=nvidia?"}
    assert suggested.get(name, "GET /gpus lists them") in error["detail"]
    assert ("did you mean" in error["detail"]) is (name in suggested)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("H1000", "H100"),
        ("B200", "GB200"),
        ("A10G", "A10"),
        ("MI300", "MI300X"),
        ("V100S", "V100"),
        ("amd a100", "A100"),
        ("Intel A100", "A100"),
        ("Radeon A100", "A100"),
    ],
)
def test_a_gpu_that_is_not_there_names_those_whose_name_is_part_of_it(
    client: httpx.Client, name: str, near: str
) -> None:
    detail = client.get("/sizes", params={"gpu": name}).json()["detail"]
    assert f"gpu={name}: no GPU of the catalog is called {name}; did you mean {near}? GET /gpus lists them" in detail


def test_a_gpu_that_is_like_no_other_names_what_there_is(client: httpx.Client) -> None:
    detail = client.get("/sizes", params={"gpu": "L40S"}).json()["detail"]
    assert "L40S; GET /gpus lists them: A10, A100, GB200, " in detail


@pytest.mark.one_database
def test_all_gpus_that_sizes_have_are_named(clouds: httpx.Client) -> None:
    detail = clouds.get("/sizes", params={"gpu": "Z*"}).json()["detail"]
    named = detail.partition("GET /gpus lists them: ")[2].split(", ")
    assert {"MI355X", "P4", "Radeon Pro V520", "T4"} <= set(named)
    for name in (*named, "half of a K80 card", "K80 half"):
        assert clouds.get("/sizes", params={"gpu": name, "limit": 1}).status_code == 200, name


@pytest.mark.one_database
def test_a_gpu_without_a_stated_form_is_found_by_its_words(clouds: httpx.Client) -> None:
    items = clouds.get("/sizes", params={"gpu": "NVIDIA H200 form not stated"}).raise_for_status().json()["items"]
    assert {row["gpu_id"] for row in items} == {"h200-form-not-stated"}


@pytest.mark.parametrize("sent", ["gpu_vendor=NVIDJA", "cpu_vendor=ANM", "confidential_computing=SNPP", "series=NDx9"])
def test_a_word_that_is_unknown_is_quoted_as_it_was_sent(client: httpx.Client, sent: str) -> None:
    assert client.get(f"/sizes?{sent}").json()["detail"].startswith(f"{sent}: ")


@pytest.mark.parametrize("job", [{"resources": {"min_gpu_mem": 8}}, {"model": "llama-3.1-8b", "inference": {}}])
@pytest.mark.parametrize(("field", "value"), [("gpu", ["H100-40GB"]), ("gpu_vendor", "nvidja")])
def test_a_body_is_as_strict(client: httpx.Client, job: dict[str, object], field: str, value: object) -> None:
    answer = client.post("/fit", json={**job, "constraints": {field: value}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == f"/body/constraints/{field}"
    assert "did you mean" in answer.json()["detail"]
    there = client.post("/fit", json={**job, "constraints": {"gpu": ["H100-80GB"], "gpu_vendor": "NVIDIA"}})
    assert {item["size"] for item in there.raise_for_status().json()["items"]} <= {
        row["name"] for row in client.get("/sizes?gpu=h100-sxm-80&limit=500").json()["items"]
    }


@pytest.mark.parametrize("vendor", ["nvidja", "nvidia,amd"])
def test_an_unknown_vendor_is_rejected_with_the_known_ones(client: httpx.Client, vendor: str) -> None:
    answer = client.get("/sizes", params={"gpu_vendor": vendor})
    assert answer.status_code == 422
    assert "allowed are AMD, NVIDIA" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("name", "word", "detail"),
    [
        ("cpu_vendor", "intell", "did you mean Intel? allowed are AMD, Ampere, Intel, Microsoft"),
        ("fabric", "ib", "allowed are InfiniBand"),
        ("confidential_computing", "sev", "allowed are SNP, TDX"),
        ("disk_controller", "nvm", "allowed are NVMe, SCSI"),
    ],
)
@pytest.mark.parametrize("path", ["/sizes", "/facets", "/sizes.csv"])
def test_a_word_that_no_size_has_is_rejected_with_those_that_some_have(
    client: httpx.Client, path: str, name: str, word: str, detail: str
) -> None:
    answer = client.get(path, params={name: word})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{name}={word}: {detail}")


@pytest.mark.parametrize("value", ["yes", "1", "True", "on"])
def test_a_boolean_is_true_or_false(client: httpx.Client, value: str) -> None:
    for path in (f"/sizes?infiniband={value}", f"/facets?ultra_disk={value}", f"/prices?history={value}"):
        answer = client.get(path)
        assert answer.status_code == 422, path
        assert "expected true or false" in answer.json()["detail"]


def test_a_long_list_of_allowed_values_is_in_an_error_once(client: httpx.Client) -> None:
    for asked in ("/sizes?zzz=1", "/sizes?sort=colour"):
        answer = client.get(asked)
        assert answer.status_code == 422
        assert answer.text.count("gpu_vendor") == 1, asked
        assert "`errors` lists what is allowed" in answer.json()["detail"]
