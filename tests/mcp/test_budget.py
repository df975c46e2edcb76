"""Tools and replies are short: in tokens of a real tokenizer, and in the program's own upper estimate."""

import json
from typing import Any

import bpe_openai  # type: ignore[import-untyped]  # it has no types
import pytest

from app.mcp.catalog import CatalogReader
from app.mcp.tool import MAX_TOKENS, Reply, estimate_tokens, shorten
from tests.mcp.asking import call, with_client

ENCODING = bpe_openai.get_encoding("o200k_base")
MAX_SCHEMA_TOKENS = 2_000


def tokens(data: Any) -> int:
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return len(ENCODING.encode(text))


def test_all_tools_and_the_instructions_take_at_most_2000_tokens(catalog: CatalogReader) -> None:
    listed = with_client(catalog, lambda client: client.list_tools())
    tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
    instructions = with_client(catalog, _instructions)
    assert sum(map(tokens, tools)) + tokens(instructions) <= MAX_SCHEMA_TOKENS


async def _instructions(client: Any) -> str:
    return str(client.instructions)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("find_sizes", {}),
    ("find_sizes", {"gpu": "A100", "currency": "EUR"}),
    ("find_sizes", {"status": "retired, retiring, withdrawn"}),
    ("find_sizes", {"limit": 50}),
    ("explain_size", {"size": "nd40rs_v2"}),
    ("explain_size", {"size": "nd96isr_h100_v5", "region": "eastus, westeurope, uksouth, japaneast"}),
    ("explain_size", {"size": "d4s_v5", "currency": "JPY"}),
    ("fit_workload", {"model": "llama-3.1-70b", "users": 32, "context": "8k"}),
    ("fit_workload", {"model": "llama-3.1-405b", "users": 64, "context": "32k", "max_nodes": 4}),
    ("fit_workload", {"model": "llama-3.1-8b", "input_tokens": 1000, "output_tokens": 200, "requests_per_second": 50}),
    ("fit_workload", {"model": "llama-3.1-8b", "train": "full", "max_nodes": 4}),
    ("fit_workload", {"min_gpu_mem": 100_000}),
    ("compare_sizes", {"sizes": "nc24ads_a100_v4, nc40ads_h100_v5"}),
    (
        "compare_sizes",
        {
            "sizes": "d2s_v5, d4s_v5, d8s_v5, nd40rs_v2, nd96isr_h100_v5, nc24ads_a100_v4, nc40ads_h100_v5, e4s_v5, "
            "f4s_v2, nv36ads_a10_v5"
        },
    ),
    ("preflight", {"plan": "size,region\n" + "d4s_v5,westeurope\nnd40rs_v2,eastus\n" * 50}),
    ("price_history", {"size": "d4s_v5"}),
    ("price_history", {"size": "nc24ads_a100_v4", "as_of": "2026-01-01"}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_reply_takes_at_most_1500_tokens_unless_more_is_asked_for(
    catalog: CatalogReader, tool: str, arguments: dict[str, Any]
) -> None:
    result = call(catalog, tool, arguments)
    assert not result.is_error
    text, content = result.content[0].text, result.structured_content  # type: ignore[union-attr]  # it is text
    taken = tokens(text) + tokens(content)
    assert taken <= estimate_tokens(text, content)
    if "limit" not in arguments:
        assert taken <= MAX_TOKENS


def test_a_reply_that_is_too_long_says_what_it_leaves_out() -> None:
    rows = [{"name": f"Standard_D{number}", "note": "x" * 100} for number in range(100)]
    content = shorten(
        Reply(text="", content={"items": rows}, lists=("items",), totals={"items": 500}, narrow="region"), 1_000
    )
    assert 1 < len(content["items"]) < 100
    assert content["omitted"] == {"items": 500 - len(content["items"])}
    assert content["narrow"] == "region"
    assert content["items"] == rows[: len(content["items"])]
