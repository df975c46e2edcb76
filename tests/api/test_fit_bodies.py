from typing import Any

import httpx
import pytest

from app.db.statements import BoundStatement, DriverReader, Rows
from app.main import create_app, create_asgi_app
from app.settings import Settings
from tests.api.bodies import LLAMA, Body, fit, post_rejected
from tests.conftest import TODAY
from tests.servers import open_client, server

pytestmark = pytest.mark.first_database

UNTIMED: list[Body] = [
    {"inference": {}}, {"inference": {}, "pricing": {"hours": 3}}, {"training": {}},
    {"serving": {"input_tokens": 100, "output_tokens": 10, "users": 1}},
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "pointer", "said"),
    [
        ({}, "/body", "give exactly one of resources, inference, serving and training; none is given"),
        (LLAMA | {"training": {}}, "/body", "inference and training are given"),
        (LLAMA | {"modle": "x"}, "/body/modle", "did you mean model?"),
        (LLAMA | {"pricing": {"purchases": ["foo"]}}, "/body/pricing/purchases/0", "allowed are on_demand"),
        (LLAMA | {"pricing": {"purchases": []}}, "/body/pricing/purchases", "at least 1 value is needed"),
        (LLAMA | {"region": "westeurope"}, "/body/region", "did you mean constraints.regions?"),
        (LLAMA | {"users": 8}, "/body/users", "did you mean inference.concurrency or serving.users?"),
        (LLAMA | {"pricing": {"region": "westeurope"}}, "/body/pricing/region", "did you mean constraints.regions?"),
        (LLAMA | {"constraints": {"max_node": 2}}, "/body/constraints/max_node", "did you mean max_nodes?"),
        (LLAMA | {"hardware": {"gpus": 0}}, "/body/hardware/gpus", "must be at least 1"),
        (LLAMA | {"pricing": {"hours": "NaN"}}, "/body/pricing/hours", "expected a number"),
        (LLAMA | {"sort": "waste"}, "/body", "sort=waste is for resources only"),
        (LLAMA | {"sort": "cost_per_job"}, "/body/sort", "needs pricing.hours"),
        (
            LLAMA | {"constraints": {"budget_usd_per_job": 9}},
            "/body/constraints/budget_usd_per_job",
            "needs pricing.hours",
        ),
        (LLAMA | {"constraints": {"regions": ["westeurop"]}}, "/body/constraints/regions", "did you mean westeurope?"),
        (LLAMA | {"constraints": {"series": ["nothing"]}}, "/body/constraints/series", "no such series"),
        (LLAMA | {"constraints": {"min_nodes": 2}}, "/body/constraints/min_nodes", "more than max_nodes"),
        (LLAMA | {"model": "lama-3.1-70b"}, "/body/model", "llama-3.1-70b"),
        ({"inference": {"context_tokens": 8192}}, "/body/inference", "architecture.params"),
        (
            {"architecture": {"params": 7_000_000_000}, "inference": {"context_tokens": 8192}},
            "/body/inference/context_tokens",
            "architecture.layers, architecture.kv_heads, architecture.head_dim",
        ),
        ({"training": {"sequence_tokens": 10}}, "/body/training", "architecture.params"),
        (
            {"model": "llama-3.1-8b", "training": {"tokens": 10}, "pricing": {"hours": 3}},
            "/body/pricing/hours",
            "both say how long",
        ),
        ({"model": "llama-3.1-8b", "training": {}, "sort": "time"}, "/body/sort", "time needs training.tokens"),
        ({"resources": {"min_gpus": 1}, "model": "gpt-2"}, "/body/model", "model cannot be given with resources"),
        ({"resources": {}, "hardware": {"gpu": "T4"}}, "/body/hardware", "hardware cannot be given with resources"),
        ({"resources": {}, "hardware": {"gpu": "T4"}, "model": "gpt-2"}, "/body", "hardware, model cannot be given"),
        (
            {"resources": {}, "constraints": {"max_hours": 3}},
            "/body/constraints/max_hours",
            "constraints.max_hours cannot be given",
        ),
        *(
            (
                {"model": "llama-3.1-8b", "constraints": {"max_hours": 5}} | use,
                "/body/constraints/max_hours",
                "tokens or gpu_hours",
            )
            for use in UNTIMED
        ),
        ({"resources": {}, "sort": "time"}, "/body", "sort=time is for inference and training only"),
        ({"resources": {"min_gpu": 1}}, "/body/resources/min_gpu", "did you mean min_gpus?"),
        (
            {"model": "llama-3.1-70b", "serving": {"input_tokens": 130000, "output_tokens": 10000, "users": 5}},
            "/body/serving/input_tokens",
            "serving.input_tokens: and serving.output_tokens together are 140000, more than the model's maximum",
        ),
        (
            {"model": "llama-3.1-70b", "inference": {"prompt_tokens": 130000, "output_tokens": 10000}},
            "/body/inference/prompt_tokens",
            "inference.prompt_tokens: and inference.output_tokens together are 140000, more than",
        ),
        (
            {
                "config": {
                    "text_config": {
                        "model_type": "llama",
                        "hidden_size": 64,
                        "num_attention_heads": 4,
                        "num_hidden_layers": 2,
                        "intermediate_size": 128,
                    }
                },
                "inference": {},
            },
            "/body/config/text_config/vocab_size",
            "config.text_config.vocab_size: is missing",
        ),
        (LLAMA | {"hardware": {"gpu": "A100"}}, "/body/hardware/gpu", "a100-pcie-80"),
        (LLAMA | {"hardware": {"gpu": "H100"}}, "/body/hardware/gpu", "Several GPUs are called 'H100': name h100-"),
        (LLAMA | {"hardware": {"gpu": "H1000"}}, "/body/hardware/gpu", "There is no GPU named 'H1000'. Or give"),
        (LLAMA | {"hardware": {"gpus": 8}}, "/body/hardware", "gpu, usable_gib or memory_gib"),
        (
            LLAMA | {"hardware": {"usable_gib": 200, "memory_gib": 80}},
            "/body/hardware/usable_gib",
            "200 is more than hardware.memory_gib, 80",
        ),
        (LLAMA | {"hardware": {"gpu": "T4"}, "constraints": {"regions": ["eastus"]}}, "/body", "regions"),
    ],
)
def test_a_contradictory_or_incomplete_body_is_rejected(
    client: httpx.Client, body: Body, pointer: str, said: str
) -> None:
    problem = post_rejected(client, body)
    assert [error["pointer"] for error in problem["errors"]] == [pointer], problem
    assert said in problem["detail"], problem


def test_the_cursor_of_a_body_is_named_where_it_stands(client: httpx.Client) -> None:
    response = client.post("/fit", json=LLAMA | {"cursor": "x"})
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (400, "/body/cursor")


def test_the_same_body_has_the_same_bytes_from_every_worker(seeded_url: str, client: httpx.Client) -> None:
    body = LLAMA | {"include": ["rejected", "assumptions"], "limit": 500}
    kept = client.post("/fit", json=body)
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url, cache_mib=0), today=lambda: TODAY)
    with server(service) as url, open_client(url) as other:
        fresh = [other.post("/fit", json=body).content for _ in range(2)]
    assert {kept.content, client.post("/fit", json=body).content, *fresh} == {kept.content}


def test_the_whole_catalog_with_fifty_regions_reads_all_offers_once(
    seeded_url: str, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    regions = [region["code"] for region in client.get("/regions", params={"limit": 50}).json()["items"]]
    assert len(regions) == 50
    app = create_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)
    asked: list[str] = []
    read = DriverReader.fetch

    def fetch(reader: DriverReader, bound: BoundStatement) -> Rows:
        asked.append(bound.statement.compiled_for("sqlite").sql)
        return read(reader, bound)

    with server(app) as url, open_client(url) as other:
        other.get("/regions").raise_for_status()  # reads the revision
        monkeypatch.setattr(DriverReader, "fetch", fetch)
        answer = fit(other, LLAMA, constraints={"regions": regions}, limit=500)
        assert answer["items"]
        assert len([statement for statement in asked if "offer" in statement]) == 1
        asked.clear()
        assert fit(other, LLAMA, constraints={"regions": regions}, limit=500, sort="nodes")["items"]
    assert asked == []  # another order needs nothing that is not kept
    app.state.database.dispose()


def test_resources_in_a_body_give_the_options_of_get(client: httpx.Client) -> None:
    got = client.get("/fit", params={"min_gpu_mem": 320, "region": "eastus", "hours": 72, "include": "rejected"}).json()
    body = {"resources": {"min_gpu_mem": 320}, "constraints": {"regions": ["eastus"]}, "pricing": {"hours": 72}}
    posted = fit(client, body, include=["rejected"], limit=50)
    assert [item["size"] for item in posted["items"]] == [item["size"] for item in got["items"]]
    assert [item["headroom"] for item in posted["items"]] == [item["headroom"] for item in got["items"]]
    shared = got["items"][0].keys() & posted["items"][0].keys()
    assert {"size", "region", "nodes", "cost", "headroom", "unused_gpu_memory_gib", "explanation"} <= shared
    assert [{name: item[name] for name in shared} for item in posted["items"]] == [
        {name: item[name] for name in shared} for item in got["items"]
    ]
    assert posted["items"][0]["cost"]["spot"]["usd_per_job"]["value"] > 0
    assert [one["failures"] for one in posted["rejected"]] == [one["failures"] for one in got["rejected"]]
    assert posted["rejection_summary"] == got["rejection_summary"]


@pytest.mark.parametrize("sort", ["cost_per_hour", "headroom", "waste", "nodes"])
def test_resources_are_ranked_as_by_get_and_show_the_sort_key(client: httpx.Client, sort: str) -> None:
    asked = f"min_gpu_mem=100&max_nodes=3&region=eastus&sort={sort}&limit=500"
    got = client.get(f"/fit?{asked}").json()
    body: Body = {"resources": {"min_gpu_mem": 100}, "constraints": {"regions": ["eastus"], "max_nodes": 3}}
    posted = fit(client, body, sort=sort, limit=500)
    assert [item["size"] for item in posted["items"]] == [item["size"] for item in got["items"]]
    unused = [item["unused_gpu_memory_gib"] for item in posted["items"]]
    assert unused == [item["unused_gpu_memory_gib"] for item in got["items"]]
    priced = [one for one, item in zip(unused, posted["items"], strict=True) if "NO_PRICE" not in item["warnings"]]
    assert sort != "waste" or priced == sorted(priced)


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        *(
            ("/fit", needs | {part: {field: value}}, f"/body/{part}/{field}")
            for needs in ({"resources": {"min_gpus": 1}}, LLAMA)
            for part, field, value in (
                ("constraints", "regions", ["mars"]),
                ("constraints", "gpu", ["zz"]),
                ("constraints", "series", ["zz"]),
                ("constraints", "country", ["ZZ"]),
                ("pricing", "as_of", "2999-01-01"),
                ("pricing", "currency", "XXX"),
            )
        ),
        (
            "/fit",
            {"resources": {"min_gpus": 1}, "constraints": {"regions": ["eastus"], "provider": ["aws"]}},
            "/body/constraints/regions",
        ),
        ("/fit", {"model": "nope", "inference": {}}, "/body/model"),
        ("/fit", LLAMA | {"hardware": {"gpu": "zz"}}, "/body/hardware/gpu"),
        ("/estimate", {"model": "nope", "inference": {}}, "/body/model"),
        ("/preflight", {"plan": "size,region\nx,eastus\n", "region": "mars"}, "/body/region"),
    ],
)
def test_what_the_catalog_lacks_is_an_unknown_value(client: httpx.Client, path: str, body: Body, pointer: str) -> None:
    problem = client.post(path, json=body).json()
    assert (problem["type"], problem["errors"][0]["pointer"]) == ("/problems/unknown-value", pointer)


def test_the_cost_of_a_job_orders_only_where_the_job_has_hours(client: httpx.Client) -> None:
    got = client.get("/fit?min_gpu_mem=80&sort=cost_per_job")
    posted = client.post("/fit", json={"resources": {"min_gpu_mem": 80}, "sort": "cost_per_job"})
    for answer in (got, posted):
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/contradiction")
        assert "hours" in answer.json()["detail"]
    assert got.json()["errors"][0]["pointer"] == "/query/sort"
    assert client.get("/fit?min_gpu_mem=80&sort=cost_per_job&hours=2").status_code == 200
    wrong = client.get("/fit?min_gpu_mem=80&sort=cost_per_job&hours=0").json()
    assert [error["pointer"] for error in wrong["errors"]] == ["/query/hours"]


def test_resources_accept_the_constraints_of_any_size(client: httpx.Client) -> None:
    body: Body = {"resources": {"min_gpus": 1}, "constraints": {"verified_only": True, "allow_retiring": False}}
    answer = fit(client, body, include=["rejected"], limit=500)
    assert not {"RETIRING", "UNVERIFIED"} & {warning for item in answer["items"] for warning in item["warnings"]}
    codes = {failure["code"] for one in answer["rejected"] for failure in one["failures"]}
    assert {"UNVERIFIED", "STATUS"} <= codes


@pytest.mark.parametrize(
    ("hardware", "fits"),
    [
        ({"gpu": "A100-80GB", "gpus": 4}, True), ({"gpu": "A100-80GB", "gpus": 2}, False),
        ({"gpu": "H100 SXM", "gpus": 8}, True), ({"usable_gib": 300}, True), ({"memory_gib": 24, "gpus": 8}, False),
        ({"gpu": "RTX 3090", "memory_gib": 24, "gpus": 8}, False), ({"gpu": "V100-32GB", "gpus": 8}, False),
        ({"gpu": "A100-80GB", "gpus": 4, "host_memory_gib": 64}, False),
        ({"gpu": "A100-80GB", "gpus": 4, "memory_gib": 40}, False),
    ],
)  # fmt: skip
def test_a_described_machine_is_checked_instead_of_the_catalog(
    client: httpx.Client, hardware: Body, fits: bool
) -> None:
    answer = fit(client, LLAMA, hardware=hardware, include=["assumptions"])
    assert answer["fits"] is fits
    assert answer["total"] + answer["rejected_total"] == 1


def test_a_split_alone_is_checked_without_memory(client: httpx.Client) -> None:
    body: Body = {"architecture": {"heads": 32}, "hardware": {}}
    assert fit(client, body, inference={"tensor_parallel": 4})["fits"]
    answer = fit(client, body, inference={"tensor_parallel": 3}, include=["rejected"])
    assert [failure["code"] for failure in answer["rejected"][0]["failures"]] == ["TP_HEADS"]


def test_the_price_of_a_described_machine_makes_its_cost(client: httpx.Client) -> None:
    (item,) = fit(client, LLAMA, hardware={"gpu": "A100-80GB", "gpus": 4, "usd_per_hour": 10})["items"]
    on_demand: Any = item["cost"]["on_demand"]
    assert (on_demand["usd_per_hour"], on_demand["usd_per_month"]) == (10, 7300)


def test_a_model_without_known_fields_has_no_speed(client: httpx.Client) -> None:
    use = {"inference": {"dtype": "awq_int4", "pipeline_parallel": 1}, "hardware": {"bandwidth_gb_per_s": 1.0}}
    (option,) = fit(client, use)["items"]
    assert "speed" not in option
