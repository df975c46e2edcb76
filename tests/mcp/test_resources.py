"""Resources: sizes, their facts, models and the revision."""

import json
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import ReadResourceResult

from app.mcp.catalog import CatalogReader
from tests.mcp.asking import with_client


def read(catalog: CatalogReader, uri: str) -> tuple[Any, ReadResourceResult]:
    result = with_client(catalog, lambda client: client.read_resource(uri))
    return json.loads(result.contents[0].text), result  # type: ignore[union-attr]  # they are texts


def test_resources_and_their_templates_are_listed(catalog: CatalogReader) -> None:
    async def list_all(client: Client) -> list[str]:
        resources, templates = await client.list_resources(), await client.list_resource_templates()
        return [one.uri for one in resources.resources] + [one.uri_template for one in templates.resource_templates]

    assert with_client(catalog, list_all) == [
        "vmsizes://revision",
        "vmsizes://models",
        "vmsizes://sizes/{name}",
        "vmsizes://sizes/{name}/facts",
        "vmsizes://models/{name}",
    ]


def test_a_size_and_its_facts_can_be_read(catalog: CatalogReader) -> None:
    size, _ = read(catalog, "vmsizes://sizes/nd40rs_v2")
    assert (size["name"], size["gpu_memory_gib"]) == ("Standard_ND40rs_v2", 256.0)
    facts, _ = read(catalog, "vmsizes://sizes/nd40rs_v2/facts")
    assert {fact["verdict"] for fact in facts["items"]} == {"accepted", "agrees", "disputed"}


def test_models_can_be_read(catalog: CatalogReader) -> None:
    models, _ = read(catalog, "vmsizes://models")
    ids = [model["id"] for model in models["models"]]
    assert ids == sorted(set(ids))
    model, _ = read(catalog, "vmsizes://models/Llama%203.1%2070B")
    assert (model["id"], model["layers"]) == ("llama-3.1-70b", 80)


def test_the_revision_tells_what_the_catalog_is_from(catalog: CatalogReader) -> None:
    revision, result = read(catalog, "vmsizes://revision")
    assert revision["rows"]["size"] > 1000
    assert result.meta is not None
    assert result.meta["vmsizes/revision"]["digest"] == revision["digest"]


def test_resources_may_be_cached_for_a_minute_and_lists_for_an_hour(catalog: CatalogReader) -> None:
    _, result = read(catalog, "vmsizes://models")
    assert (0 < result.ttl_ms <= 60_000, result.cache_scope) == (True, "public")
    tools = with_client(catalog, lambda client: client.list_tools())
    assert (tools.ttl_ms, tools.cache_scope) == (3_600_000, "public")


@pytest.mark.parametrize("uri", ["vmsizes://sizes/nd40rs_v3", "vmsizes://modles", "vmsizes://models/nothing"])
def test_a_resource_that_there_is_not_is_an_error(catalog: CatalogReader, uri: str) -> None:
    with pytest.raises(MCPError, match="There is no"):
        read(catalog, uri)
