"""Replies carry a receipt in `_meta`: the questions behind them, with digests."""

import json
from typing import Any

import anyio
import pytest

from app.converters.receipts import check_receipt
from app.mcp.catalog import CatalogReader
from tests.mcp.asking import call
from tests.mcp.test_budget import CALLS, tokens


@pytest.mark.parametrize(("tool", "arguments"), CALLS[::3])
def test_the_receipt_of_a_reply_is_computed_again_from_the_catalog(
    catalog: CatalogReader, tool: str, arguments: dict[str, Any]
) -> None:
    meta: Any = call(catalog, tool, arguments).meta
    receipt = json.loads(json.dumps(meta["vmsizes/receipt"]))
    assert receipt["digest"] == meta["vmsizes/revision"]["digest"]
    assert receipt["questions"]
    assert "facts" not in receipt["rests_on"]
    assert tokens(receipt) < 2_000
    assert anyio.run(catalog.run, lambda opened, _: check_receipt(opened, receipt)) == []


def test_an_altered_receipt_of_a_reply_is_caught(catalog: CatalogReader) -> None:
    meta: Any = call(catalog, *CALLS[0]).meta
    receipt = json.loads(json.dumps(meta["vmsizes/receipt"]))
    receipt["questions"][0]["answer_sha256"] = "0" * 64
    assert anyio.run(catalog.run, lambda opened, _: check_receipt(opened, receipt)) != []
