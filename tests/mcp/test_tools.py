"""The tools as an agent uses them: what they understand, what they answer, and what they refuse."""

import re
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import TextContent
from sqlalchemy import Engine
from sqlalchemy import text as sql

from app.catalog.queries.params import SizeFilter, other_spellings
from app.db.databases import Database, open_database
from app.ingest.run import ingest
from app.mcp.catalog import CatalogReader
from app.mcp.fit_workload import FIT_WORKLOAD
from app.mcp.sizes import FIND_SIZES
from app.mcp.tool import Tool
from tests.catalog.test_price_runs import X1, X2, one_list
from tests.conftest import TODAY
from tests.factories import NOW
from tests.mcp.asking import ask, call, refused, with_client

NAMES = ["find_sizes", "explain_size", "fit_workload", "compare_sizes", "price_history", "preflight"]
MODES = ["auto", "legacy"]


@pytest.mark.parametrize("mode", MODES)
def test_there_are_six_tools_that_only_read(catalog: CatalogReader, mode: str) -> None:
    tools = with_client(catalog, lambda client: client.list_tools(), mode=mode).tools
    assert [tool.name for tool in tools] == NAMES
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None


@pytest.mark.parametrize("mode", MODES)
def test_a_reply_is_one_line_of_text_and_the_rows_once(catalog: CatalogReader, mode: str) -> None:
    result = call(catalog, "find_sizes", {"gpu": "H100"}, mode=mode)
    (text,) = result.content
    assert "\n" not in text.text  # type: ignore[union-attr]  # it is text
    assert text.text.startswith("9 sizes; first by usd_per_hour: Standard_NC40ads_H100_v5")  # type: ignore[union-attr]
    assert result.structured_content["items"][0]["name"] == "Standard_NC40ads_H100_v5"
    assert "Standard_ND96isr_H100_v5" not in text.text  # type: ignore[union-attr]


def test_a_reply_tells_its_revision_and_the_age_of_prices(catalog: CatalogReader) -> None:
    meta: Any = call(catalog, "find_sizes", {"gpu": "H100"}).meta
    revision = meta["vmsizes/revision"]
    assert revision["revision"] >= 1
    assert len(revision["digest"]) == 64
    assert (revision["day"], revision["prices_as_of"], revision["prices_age_days"]) == ("2026-09-01", "2026-08-22", 10)


def names(content: Any) -> list[str]:
    return [item["name"] for item in content["items"]]


def test_plain_spellings_are_understood(catalog: CatalogReader) -> None:
    plain = ask(catalog, "find_sizes", gpu="A100 80GB", region="East US", purchase="On demand", limit="50")
    exact = ask(catalog, "find_sizes", gpu="a100-*-80", region="eastus", purchase="on_demand", limit=50)
    assert names(plain) == names(exact)
    assert {item["gpu_memory_gib_per_gpu"] for item in plain["items"]} == {80.0}
    assert {item["gpu_model"] for item in plain["items"]} == {"A100 80GB", "A100 80GB PCIe"}
    assert ask(catalog, "find_sizes", min_gpu_mem="320 GB") == ask(catalog, "find_sizes", min_gpu_mem=320)
    assert ask(catalog, "explain_size", size="ND40rs v2") == ask(catalog, "explain_size", size="standard_nd40rs_v2")
    spoken = {"model": "Llama 3.1 70B", "users": "32", "context": "32k", "region": "West Europe"}
    terse = {"model": "llama-3.1-70b", "users": 32, "context": 32768, "region": "westeurope"}
    assert ask(catalog, "fit_workload", **spoken) == ask(catalog, "fit_workload", **terse)


SERVED = {"model": "llama-3.1-8b", "input_tokens": 1000, "output_tokens": 200}


@pytest.mark.parametrize(
    ("tool", "others", "written", "meant"),
    [
        ("fit_workload", {"model": "llama-3.1-8b"}, {"users": "32 users"}, {"users": 32}),
        ("fit_workload", {"model": "llama-3.1-8b"}, {"users": "1,000 concurrent users"}, {"users": 1000}),
        ("fit_workload", {"model": "llama-3.1-405b"}, {"max_nodes": "2 nodes"}, {"max_nodes": 2}),
        ("fit_workload", {"model": "llama-3.1-405b"}, {"max_nodes": "2 VMs"}, {"max_nodes": 2}),
        ("fit_workload", SERVED | {"users": 4}, {"ttft_ms": "500ms"}, {"ttft_ms": 500}),
        ("fit_workload", SERVED | {"users": 4}, {"tpot_ms": "50 ms"}, {"tpot_ms": 50}),
        ("fit_workload", SERVED, {"requests_per_second": "5 requests per second"}, {"requests_per_second": 5}),
        ("fit_workload", SERVED, {"requests_per_second": "5 requests/s"}, {"requests_per_second": 5}),
        ("fit_workload", {"min_gpu_mem": 80}, {"max_usd_per_month": "$5,000 a month"}, {"max_usd_per_month": 5000}),
        ("fit_workload", {"min_gpu_mem": 80}, {"max_usd_per_month": "5000 USD/month"}, {"max_usd_per_month": 5000}),
        ("fit_workload", {}, {"min_gpus": "8 GPUs"}, {"min_gpus": 8}),
        ("find_sizes", {}, {"min_gpus": "1/6 GPU"}, {"min_gpus": "1/6"}),
        ("find_sizes", {}, {"min_vcpus": "96 vCPUs"}, {"min_vcpus": 96}),
        ("find_sizes", {}, {"max_usd_per_hour": "$3.50/hour"}, {"max_usd_per_hour": 3.5}),
    ],
)
def test_a_number_may_have_the_unit_of_its_argument(
    catalog: CatalogReader, tool: str, others: dict[str, Any], written: dict[str, str], meant: dict[str, Any]
) -> None:
    assert ask(catalog, tool, **others, **written) == ask(catalog, tool, **others, **meant)


@pytest.mark.parametrize(
    "written",
    [
        "D4s_v5 and NC24ads A100 v4",
        "D4s_v5 vs NC24ads A100 v4",
        "D4s_v5 vs. NC24ads A100 v4",
        "D4s_v5, and NC24ads A100 v4",
    ],
)
def test_sizes_to_compare_may_be_joined_by_words(catalog: CatalogReader, written: str) -> None:
    assert ask(catalog, "compare_sizes", sizes=written) == ask(
        catalog, "compare_sizes", sizes="D4s_v5, NC24ads A100 v4"
    )


def test_fit_workload_takes_a_provider(all_clouds_url: str) -> None:
    clouds = CatalogReader(open_database(all_clouds_url), lambda: TODAY)
    content = ask(clouds, "fit_workload", min_gpu_mem=80, provider="AWS", limit=50)
    clouds.close()
    assert content["options"]
    assert not any(option["size"].startswith("Standard_") for option in content["options"])


@pytest.mark.parametrize("tool", [FIND_SIZES, FIT_WORKLOAD], ids=lambda tool: tool.name)
def test_a_bound_may_be_named_after_its_field(catalog: CatalogReader, tool: Tool) -> None:
    spelled = {by_field: name for by_field, name in other_spellings(SizeFilter).items() if name in tool.arguments}
    assert len(spelled) > 2
    for by_field, name in spelled.items():
        thousands = 1000 if by_field.endswith("_mbps") else 1
        assert ask(catalog, tool.name, **{by_field: 4 * thousands}) == ask(catalog, tool.name, **{name: 4}), name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("pay as you go", "on_demand"),
        ("Spot", "spot"),
        ("3-year reserved", "reserved_3y"),
        ("reservation of one year", "reserved_1y"),
        ("savings plan, 1 year", "savings_1y"),
    ],
)
def test_a_way_to_buy_may_be_in_words(catalog: CatalogReader, written: str, meant: str) -> None:
    said = ask(catalog, "price_history", size="D4s_v5", region="eastus", purchase=written)
    assert said["purchase"] == meant


UNKNOWN = [
    ("find_sizes", "min_gpu_memory", "min_gpu_mem"),
    ("find_sizes", "vram", "min_gpu_mem"),
    ("find_sizes", "location", "region"),
    ("fit_workload", "concurrency", "users"),
    ("fit_workload", "quantization", "dtype"),
    ("fit_workload", "method", "train"),
    ("fit_workload", "cloud", "provider"),
    ("compare_sizes", "size", "sizes"),
    ("price_history", "vm_size", "size"),
    ("explain_size", "field", "fields"),
]


@pytest.mark.parametrize(("tool", "given", "meant"), UNKNOWN)
def test_an_unknown_argument_is_refused_with_the_nearest(
    catalog: CatalogReader, tool: str, given: str, meant: str
) -> None:
    errors = refused(catalog, tool, **{given: "80"})
    error = next(one for one in errors if one["field"] == given)
    assert error["value"] == "80"
    assert error["suggestions"] == [meant], error


@pytest.mark.parametrize("flag", ["infiniband", "premium_storage"])
def test_a_feature_as_an_argument_is_told_how_to_write_it(catalog: CatalogReader, flag: str) -> None:
    (error,) = refused(catalog, "find_sizes", **{flag: True})
    assert error["allowed"] == f"there is no such argument; write features={flag}"


@pytest.mark.parametrize("arguments", [{"region": "atlantis"}, {"gpu": "A1000"}, {"series": "nothing"}])
def test_an_error_names_no_endpoint(catalog: CatalogReader, arguments: dict[str, str]) -> None:
    (error,) = refused(catalog, "find_sizes", **arguments)
    assert "GET /" not in error["allowed"]


WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("find_sizes", {"region": "atlantis"}, "region", "no such region"),
    ("find_sizes", {"region": "East US 9"}, "region", "no such region"),
    ("find_sizes", {"country": "DE", "region": "eastus"}, "region", "not in country=DE"),
    ("find_sizes", {"series": "nope"}, "series", "explain_size says the series of a size"),
    ("find_sizes", {"gpu": "A1000"}, "gpu", "no GPU of the catalog"),
    ("find_sizes", {"gpu": {"model": "H100"}}, "gpu", "expected a string"),
    ("find_sizes", {"min_gpu_mem": [80]}, "min_gpu_mem", "expected a number"),
    ("find_sizes", {"min_gpu_mem": "much"}, "min_gpu_mem", "expected GiB"),
    ("find_sizes", {"min_gpu_mem": -1}, "min_gpu_mem", "must be at least 0"),
    ("find_sizes", {"min_network_mbps": -1}, "min_network_mbps", "must be at least 0"),
    ("find_sizes", {"min_network_mbps": "80 Gbps"}, "min_network_mbps", "expected a number"),
    ("fit_workload", {"model": "llama-3.1-8b", "users": "32 nodes"}, "users", "expected a number"),
    ("fit_workload", SERVED | {"requests_per_second": "5 seconds"}, "requests_per_second", "expected a number"),
    ("fit_workload", {"model": "llama-3.1-8b", "max_usd_per_month": "5 USD/hour"}, "max_usd_per_month", "expected"),
    ("fit_workload", {"min_gpu_mem": 80, "provider": "aws2"}, "provider", "aws"),
    ("find_sizes", {"min_gpu_mem": 80, "min_gpu_memory_gib": 80}, "min_gpu_memory_gib", "and min_gpu_mem are one"),
    ("fit_workload", {"min_gpus": 8, "min_gpu_count": 8}, "min_gpu_count", "and min_gpus are one parameter"),
    ("find_sizes", {"purchase": "gift"}, "purchase", "allowed are on_demand, spot"),
    ("find_sizes", {"features": "warp_drive"}, "features", "allowed are nvlink"),
    ("find_sizes", {"fields": "gpu_modell"}, "fields", "did you mean gpu_model?"),
    ("find_sizes", {"limit": 51}, "limit", "from 1 to 50"),
    ("find_sizes", {"as_of": "2030-01-01"}, "as_of", "must not be later than"),
    ("find_sizes", {"sort": "pryce"}, "sort", "usd_per_hour"),
    ("explain_size", {}, "size", "is required"),
    ("explain_size", {"size": "nd40rs_v3"}, "size", "Did you mean Standard_ND40rs_v2"),
    ("explain_size", {"size": "nd40rs_v2", "fields": "gpu_memmory_gib"}, "fields", "gpu_memory_gib"),
    ("fit_workload", {}, "model", "is required, or raw needs"),
    ("fit_workload", {"users": 8}, "model", "is required with users"),
    ("fit_workload", {"model": "llama-3.1-71b"}, "model", "Did you mean llama-3.1-70b"),
    ("fit_workload", {"model": "llama-3.1-70b", "min_gpu_mem": 80}, "min_gpu_mem", "raw needs"),
    ("fit_workload", {"model": "llama-3.1-70b", "context": "1M"}, "context", "131072"),
    ("fit_workload", {"model": "bert-base"}, "model", "vmsizes://models lists them"),
    ("fit_workload", {"model": "llama-3.1-70b", "dtype": "fp9"}, "dtype", "allowed are"),
    ("fit_workload", {"model": "llama-3.1-70b", "train": "lora", "users": 4}, "users", "train"),
    ("fit_workload", {"model": "llama-3.1-70b", "tokens": "1B"}, "tokens", "give train"),
    ("fit_workload", {"model": "llama-3.1-70b", "train": "lora", "tokens": "much"}, "tokens", "such as 1e9"),
    ("fit_workload", {"model": "llama-3.1-70b", "input_tokens": 100}, "output_tokens", "is required"),
    ("compare_sizes", {"sizes": "d4s_v5"}, "sizes", "at least 2"),
    ("compare_sizes", {"sizes": "d4s_v5, d4s_v9"}, "sizes", "did you mean"),
    (
        "compare_sizes",
        {"sizes": "nope, d4s_v5, nope2"},
        "sizes",
        "none is named 'nope2'; find_sizes finds them",
    ),
    ("explain_size", {"size": "nd40rs_v2", "fields": "price"}, "fields", "no such field; allowed are"),
    ("compare_sizes", {"sizes": "d4s_v5, d8s_v5", "baseline": "d2s_v5"}, "baseline", "must be one of"),
    ("price_history", {"size": "d4s_v5", "region": "eastus9"}, "region", "no such region"),
    ("price_history", {"size": "d4s_v5", "region": "eastus", "since": "2026"}, "since", "must be a date"),
    (
        *("price_history", {"size": "d4s_v5", "region": "eastus", "since": "2026-07-02", "until": "2026-07-01"}),
        *("since", "must not be later than until=2026-07-01"),
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "field", "allowed"), WRONG)
def test_an_error_names_the_argument_its_value_and_what_is_allowed(
    catalog: CatalogReader, tool: str, arguments: dict[str, Any], field: str, allowed: str
) -> None:
    error = refused(catalog, tool, **arguments)[0]
    assert error["field"] == field, error
    assert allowed in error["allowed"], error
    if field in arguments:
        assert error["value"] is not None


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "value"),
    [
        ("find_sizes", {"min_gpu_mem": [80]}, "min_gpu_mem", "[80]"),
        ("find_sizes", {"gpu": {"model": "H100"}}, "gpu", '{"model":"H100"}'),
        ("fit_workload", {"model": "llama-3.1-70b", "tokens": "1B"}, "tokens", "1B"),
        ("fit_workload", {"model": "llama-3.1-70b", "min_gpu_mem": "320 GB"}, "min_gpu_mem", "320 GB"),
        ("explain_size", {"size": "NC7 X"}, "size", "NC7 X"),
        ("compare_sizes", {"sizes": "NC7x, D4s_v5"}, "sizes", "NC7x"),
        ("explain_size", {"size": "n" * 200_000}, "size", f"{'n' * 200}… (200,000 characters)"),
    ],
    ids=lambda part: str(part)[:30],
)
def test_an_error_quotes_a_value_as_it_was_sent_but_no_more_than_its_beginning(
    catalog: CatalogReader, tool: str, arguments: dict[str, Any], field: str, value: str
) -> None:
    (error,) = refused(catalog, tool, **arguments)
    assert (error["field"], error["value"]) == (field, value)
    assert len(error["allowed"]) < 3_000


def test_no_error_or_advice_names_what_a_tool_does_not_have(catalog: CatalogReader) -> None:
    (error,) = refused(catalog, "fit_workload", model="llama-3.1-8b", context="200k")
    assert error["allowed"] == "204800 is more than the model's maximum, 131072"
    assert "limit" not in ask(catalog, "find_sizes", limit=50, fields="name,vcpus")["narrow"]


def test_an_unknown_tool_is_an_error_of_the_protocol(catalog: CatalogReader) -> None:
    with pytest.raises(MCPError, match="did you mean find_sizes"):
        call(catalog, "find_size", {})


def test_find_sizes_counts_all_that_match(catalog: CatalogReader) -> None:
    found = ask(catalog, "find_sizes", min_gpu_mem=80)
    assert found["total"] == len(found["items"]) + found["omitted"]["items"]
    assert "limit" in found["narrow"]
    prices = [item["usd_per_hour"] for item in found["items"]]
    assert prices == sorted(prices)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("find_sizes", {"name": "NG8"}),
        ("compare_sizes", {"sizes": "nc24ads_a100_v4, ng8", "baseline": "ng8"}),
        ("fit_workload", {"gpu": "Tesla V100 16GB", "min_gpus": 4}),
    ],
)
def test_a_size_that_is_not_verified_is_told_apart(
    catalog: CatalogReader, tool: str, arguments: dict[str, Any]
) -> None:
    text = call(catalog, tool, arguments).content[0].text  # type: ignore[union-attr]  # it is text
    assert re.search(r"\bN[DG]\d+ \(not verified: no vendor page names it", text), text


def test_sizes_that_are_not_verified_say_so_in_the_list(catalog: CatalogReader) -> None:
    items = ask(catalog, "find_sizes", gpu="A100", limit=50)["items"]
    assert {item["name"] for item in items if item.get("verified") is False} >= {"NG8", "NG16", "NG32"}
    assert all("verified" not in item for item in items if item["name"] == "Standard_NC24ads_A100_v4")


def test_fields_and_features_choose_what_is_shown_and_found(catalog: CatalogReader) -> None:
    found = ask(catalog, "find_sizes", features="nvlink, infiniband", fields="nvlink,infiniband_gbps", limit=50)
    assert found["items"]
    for item in found["items"]:
        assert item.keys() == {"name", "nvlink", "infiniband_gbps"}
        assert item["nvlink"] is True


def test_a_part_of_a_gpu_is_exact(catalog: CatalogReader) -> None:
    (item,) = ask(catalog, "find_sizes", gpu="A10", max_gpus="1/6")["items"]
    assert (item["gpu_fraction"], item["gpu_memory_gib"]) == ("1/6", 4.0)


def test_a_cpu_size_has_no_fields_of_gpus(catalog: CatalogReader) -> None:
    item = ask(catalog, "find_sizes", name="Standard_D4s_v5")["items"][0]
    assert item["gpu_count"] == 0
    assert "gpu_model" not in item


def test_nothing_found_for_want_of_a_figure_is_not_told_as_none(catalog: CatalogReader) -> None:
    said = call(catalog, "find_sizes", {"features": "infiniband", "name": "D*s_v5"})
    text = said.content[0].text  # type: ignore[union-attr]  # it is text
    assert text.startswith("No size is known to have all of this")
    unknown = said.structured_content["unknown"]
    assert f"{unknown['infiniband']:,} more sizes may match: infiniband is unknown for" in text


def test_explain_size_names_the_fields_that_no_source_states(catalog: CatalogReader) -> None:
    said = call(catalog, "explain_size", {"size": "d11_v2_promo", "fields": "network_mbps,vcpus"})
    assert [fact["field"] for fact in said.structured_content["facts"]] == ["vcpus"]
    assert said.structured_content["unknown"] == ["network_mbps"]
    assert said.content[0].text.endswith(" Unknown: network_mbps.")  # type: ignore[union-attr]  # it is text


@pytest.mark.takes_seconds
def test_explain_size_answers_for_every_size(catalog: CatalogReader, seeded_engine: Engine) -> None:
    with seeded_engine.connect() as connection:
        least_known = "select name from size where vcpus is null or memory_gib is null or gpu_count is null"
        names = list(connection.execute(sql(least_known)).scalars())
    assert len(names) > 20
    for name in names:
        assert ask(catalog, "explain_size", size=name)["size"] == name


def test_explain_size_has_facts_with_sources_and_disputes_with_reasons(catalog: CatalogReader) -> None:
    said = ask(catalog, "explain_size", size="nd40rs_v2", fields="gpu_memory_gib", region="eastus")
    (fact,) = said["facts"]
    assert fact == {
        "field": "gpu_memory_gib",
        "value": "256",
        "unit": "GiB",
        "source": "ndv2-series-2020-02-03",
        "line": fact["line"],
    }
    (dispute,) = said["disputes"]
    assert (dispute["accepted"], dispute["other"], dispute["other_source"]) == ("256", "128", "nd-series-third-party")
    assert "a vendor page counts before a third party" in dispute["reason"]
    assert {price["region"] for price in said["prices"]} == {"eastus"}


def test_explain_size_tells_when_a_size_retires(catalog: CatalogReader) -> None:
    retiring = ask(catalog, "find_sizes", status="retiring", limit=1)["items"][0]
    said = ask(catalog, "explain_size", size=retiring["name"])
    assert said["status"] == "retiring"
    assert said["retirement_date"] == retiring["retirement_date"]


def test_fit_workload_says_why_others_do_not_fit_and_what_would_help(catalog: CatalogReader) -> None:
    asked = {"model": "llama-3.1-70b", "users": 32, "context": "8k", "region": "westeurope"}
    said = ask(catalog, "fit_workload", **asked)
    assert said["options"][0]["size"] == "Standard_NC96ads_A100_v4"
    assert said["options"][0]["on_demand"]["usd_per_hour"] == 19.1
    miss = next(one for one in said["nearest_misses"] if one["fixes"])
    for fix in miss["fixes"]:
        fixed = ask(catalog, "fit_workload", **{**asked, "region": "", **fix}, limit=50)
        assert miss["size"] in [option["size"] for option in fixed["options"]], fix


def test_fit_workload_meets_a_load_with_targets(catalog: CatalogReader) -> None:
    load = {"input_tokens": 1000, "output_tokens": 200, "requests_per_second": 5, "ttft_ms": 2000}
    said = ask(catalog, "fit_workload", model="Llama 3.1 8B", **load)
    assert said["fits"]
    assert "to the first token" in said["options"][0]["why"]
    users = ask(catalog, "fit_workload", model="Llama 3.1 8B", users=50, input_tokens=1000, output_tokens=200)
    assert users["fits"]


def test_fit_workload_trains(catalog: CatalogReader) -> None:
    said = ask(catalog, "fit_workload", model="Llama 3.1 8B", train="qlora", context=2048)
    assert said["fits"]
    hybrid = ask(catalog, "fit_workload", model="qwen3.6-27b", train="qlora", context=2048)
    assert "recompute=full and adapters on every matrix of the layers" in hybrid["options"][0]["why"]


def test_fit_workload_takes_raw_needs(catalog: CatalogReader) -> None:
    said = ask(catalog, "fit_workload", min_gpu_mem="320 GiB", region="East US")
    assert said["options"][0]["size"] == "Standard_NC96ads_A100_v4"


def test_compare_sizes_shows_differences_from_the_baseline(catalog: CatalogReader) -> None:
    said = ask(catalog, "compare_sizes", sizes="nc24ads_a100_v4, nc40ads_h100_v5", baseline="nc40ads_h100_v5")
    assert said["baseline"] == "Standard_NC40ads_H100_v5"
    memory = next(line for line in said["fields"] if line["field"] == "gpu_memory_gib")
    assert memory == {"field": "gpu_memory_gib", "values": [80.0, 94.0], "unit": "GiB", "percent": [-14.9, 0.0]}


def test_price_history_tells_the_price_of_a_day_and_each_change(catalog: CatalogReader) -> None:
    said = ask(catalog, "price_history", size="nv36ads_a10_v5", region="Central US", as_of="2026-01-01")
    assert said["in_force"] | {"last_seen": ""} == {
        "day": "2026-01-01",
        "usd_per_hour": 3.936,
        "since": "2023-10-27",
        "last_seen": "",
        "source": "karpenter-azure-prices",
    }
    assert said["in_force"]["last_seen"] < "2026-01-01"
    new, old = said["prices"]
    assert new == {
        "since": "2026-08-01",
        "last_seen": "2026-08-01",
        "usd_per_hour": 3.2,
        "change_percent": -18.7,
        "sources": ["azure-sku-locator-prices-2026-08-01"],
        "note": "disputed",
    }
    assert (old["since"], old["last_seen"], old["usd_per_hour"]) == ("2023-10-27", "2026-06-18", 3.936)
    unknown = ask(catalog, "price_history", size="nv36ads_a10_v5", region="Central US", as_of="2020-01-01")
    assert unknown["in_force"]["usd_per_hour"] is None


def text_of(catalog: CatalogReader, tool: str, **arguments: Any) -> str:
    (text,) = call(catalog, tool, arguments).content
    assert isinstance(text, TextContent)
    return text.text


@pytest.mark.parametrize("days", [{"since": "2026-08-23"}, {"since": "2026-08-23", "as_of": "2026-09-01"}])
def test_a_price_that_holds_is_shown_where_no_list_of_the_days_has_it(
    catalog: CatalogReader, days: dict[str, str]
) -> None:
    asked = {"size": "d4s_v5", "region": "westeurope", **days}
    said = ask(catalog, "price_history", **asked)
    assert (said["in_force"]["usd_per_hour"], said["prices"]) == (0.23, [])
    assert text_of(catalog, "price_history", **asked).endswith(": 0.23 USD/h, last seen 2026-08-22.")


def test_a_size_without_a_price_in_a_region_says_so(catalog: CatalogReader) -> None:
    assert "; no price in westindia; " in text_of(catalog, "explain_size", size="nd40rs_v2", region="westindia")
    compared = text_of(catalog, "compare_sizes", sizes="nd40rs_v2,d4s_v5", region="westindia")
    assert "; no price in westindia: Standard_ND40rs_v2" in compared


def test_fields_that_are_unknown_of_a_size_are_not_counted_as_equal(catalog: CatalogReader) -> None:
    alike = ask(catalog, "compare_sizes", sizes="d4s_v5,d8s_v5")
    other = ask(catalog, "compare_sizes", sizes="nd40rs_v2,d4s_v5")  # the GPU's figures are of one alone
    assert other["unknown"] > alike["unknown"] > 0
    assert alike["equal"] > other["equal"] > 0


def test_a_size_that_is_retired_has_retired_on_its_day(catalog: CatalogReader) -> None:
    assert text_of(catalog, "explain_size", size="nc6").startswith("Standard_NC6 (retired 2023-09-06): ")


def test_the_figure_of_the_order_stands_beside_the_price(catalog: CatalogReader) -> None:
    said = text_of(catalog, "find_sizes", gpu="H100", sort="spot_usd_per_hour")
    assert re.search(r": Standard_\w+, spot_usd_per_hour [\d.]+, [\d.]+ USD/h on_demand in ", said)


@pytest.mark.parametrize(
    ("tool", "arguments"), [("explain_size", {"size": "d4s_v5"}), ("compare_sizes", {"sizes": "d4s_v5,d8s_v5"})]
)
def test_each_tool_with_prices_in_a_currency_names_its_rate(
    catalog: CatalogReader, tool: str, arguments: dict[str, str]
) -> None:
    assert ask(catalog, tool, currency="EUR", **arguments)["exchange_rate"]["currency"] == "EUR"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"size": "nc24ads_a100_v4", "region": "eastus"}, "3.673 USD/h since 2023-10-27, last seen 2026-08-01."),
        (
            {"size": "nv36ads_a10_v5", "region": "centralus"},
            "3.2 USD/h since 2026-08-01, last seen 2026-08-01; disputed; 1 other price.",
        ),
        (
            {"size": "d2_v3", "region": "polandcentral", "purchase": "reserved_1y"},
            (
                "0.066324201 USD/h since 2026-01-26, last seen 2026-01-26; not in force, "
                "as the vendor sold it until 2026-06-30."
            ),
        ),
    ],
)
def test_price_history_says_since_when_a_price_is_known_and_when_it_was_last_seen(
    catalog: CatalogReader, asked: dict[str, str], said: str
) -> None:
    (text,) = call(catalog, "price_history", asked).content
    kind = asked.get("purchase", "on_demand")
    assert text.text.partition(f" {kind}: ")[2] == said  # type: ignore[union-attr]  # it is text


def test_a_price_is_told_with_the_day_on_which_it_was_last_seen(catalog: CatalogReader) -> None:
    asked = {"name": "Standard_NC24ads_A100_v4", "region": "westeurope"}
    (text,) = call(catalog, "find_sizes", asked).content
    assert text.text.endswith("4.775 USD/h on_demand in westeurope, last seen 2026-08-22.")  # type: ignore[union-attr]
    prices = ask(catalog, "explain_size", size="nc24ads_a100_v4", region="westeurope")["prices"]
    assert {price["purchase"]: price["last_seen"] for price in prices}["on_demand"] == "2026-08-22"


def test_price_history_says_that_newer_lists_lack_a_price(engine: Engine, database: Database) -> None:
    for day, prices in ((1, {X1: 2, X2: 2}), *((day, {X2: 2}) for day in (2, 3, 4))):
        ingest(engine, one_list(day, prices, file=f"{day}.csv"), now=NOW)
    reader = CatalogReader(database, lambda: TODAY)
    (text,) = call(reader, "price_history", {"size": "x1", "region": "eastus"}).content
    assert "last seen 2026-01-02; not in force, as newer lists lack it." in text.text  # type: ignore[union-attr]  # it is text
    reader.close()


def test_a_price_in_another_currency_is_beside_dollars(catalog: CatalogReader) -> None:
    said = ask(catalog, "find_sizes", gpu="H100", currency="eur", limit=1)
    assert said["exchange_rate"]["currency"] == "EUR"
    assert 0 < said["items"][0]["price_per_hour"] < said["items"][0]["usd_per_hour"]
    (content,) = call(catalog, "find_sizes", {"gpu": "H100", "currency": "eur", "limit": 1}).content
    assert isinstance(content, TextContent)
    assert f"{said['items'][0]['price_per_hour']} EUR/h on_demand in " in content.text


@pytest.mark.parametrize(
    ("tool", "arguments"), [("find_sizes", {"gpu": "A100"}), ("fit_workload", {"model": "llama-3.1-70b"})]
)
def test_a_reply_without_a_price_says_where_prices_are_known(
    catalog: CatalogReader, tool: str, arguments: dict[str, Any]
) -> None:
    asked = {**arguments, "region": "westeurope", "purchase": "reserved_3y"}
    note = "linux reserved_3y: no price is known in westeurope, only in polandcentral"
    result = call(catalog, tool, asked)
    assert result.structured_content["no_price"].startswith(note)
    assert note in result.content[0].text  # type: ignore[union-attr]  # it is text
    assert "no_price" not in ask(catalog, tool, **{**asked, "region": "polandcentral"})


def test_fit_workload_tells_the_time_and_the_cost_of_a_training(catalog: CatalogReader) -> None:
    result = call(
        catalog, "fit_workload", {"model": "Llama 3.1 8B", "train": "qlora", "tokens": "1B", "currency": "EUR"}
    )
    text, said = result.content[0].text, result.structured_content  # type: ignore[union-attr]  # it is text
    assert said is not None
    best = said["options"][0]
    low, high = best["on_demand"]["usd_per_job"]
    assert 0 < low < high
    assert best["hours"][0] == pytest.approx(low / best["on_demand"]["usd_per_hour"], rel=0.01)
    costs = [option["on_demand"]["usd_per_job"][0] for option in said["options"]]
    assert costs == sorted(costs)
    assert best["why"] in text
    assert f"{best['on_demand']['eur_per_hour']} EUR an hour" in text
    assert f"{low:,.10g} to {high:,.10g} USD for the job" in best["why"]
    assert "assuming sequences of 2,048 tokens and recompute=full" in best["why"]
    kept = ask(catalog, "fit_workload", model="Llama 3.1 8B", train="qlora", tokens=1e9, recompute="none", context="4k")
    assert "assuming" not in kept["options"][0]["why"]
    assert kept["options"][0]["hours"] != best["hours"]


def test_a_plan_is_checked_against_quotas_and_the_receipt_has_nothing_of_it(catalog: CatalogReader) -> None:
    usage = [
        {"currentValue": 0, "limit": limit, "name": {"value": name}}
        for name, limit in (("cores", 350), ("virtualMachines", 25000), ("StandardNCADSA100v4Family", 48))
    ]
    plan = "size,region,count\nStandard_NC24ads_A100_v4,westeurope,4\n"
    # An agent may give what it has read already.
    result = call(catalog, "preflight", {"plan": plan, "usage": usage, "region": "West Europe"})
    content: Any = result.structured_content
    assert content["verdict"] == "missing"
    (family, *others) = content["quotas"]
    assert (family["needed"], family["limit"], family["missing"]) == (96, 48, 48)
    assert {quota["verdict"] for quota in others} == {"fits"}
    assert content["lines"][0]["item"] == 1
    assert result.content[0].text == (  # type: ignore[union-attr]  # it is text
        "The plan does not fit. StandardNCADSA100v4Family in westeurope lacks 48."
    )
    receipt = (result.meta or {})["vmsizes/receipt"]
    assert receipt["questions"] == []
    assert text_of(catalog, "preflight", plan=plan).startswith(
        "Whether the plan fits is unknown: usage was not given, JSON of az "
    )
    assert text_of(catalog, "preflight", plan="size,region\nnope,eastus\n") == "There is no size named 'nope'."
    (error,) = refused(catalog, "preflight", plan=plan + plan.splitlines()[1] + "\n" * 3 + "x" * 100_000)
    assert len(error["value"]) < 300
    (error,) = refused(catalog, "preflight", plan=plan, usage="[1", region="westeurope")
    assert (error["field"], "is not JSON" in error["allowed"]) == ("usage", True)
    (error,) = refused(catalog, "preflight", plan="size,region\n,westeurope\n")
    assert (error["field"], "must not be blank" in error["allowed"]) == ("plan", True)


def test_a_comparison_says_which_prices_are_computed(all_clouds_url: str) -> None:
    clouds = CatalogReader(open_database(all_clouds_url), lambda: TODAY)
    result = call(clouds, "compare_sizes", {"sizes": "a1.large,a1.xlarge", "region": "eu-west-1"})
    clouds.close()
    (text,) = result.content
    assert isinstance(text, TextContent)
    assert text.text.endswith("; computed price: a1.large.")
