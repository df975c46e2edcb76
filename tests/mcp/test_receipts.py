"""Replies carry a receipt in `_meta`: the questions behind them, with digests."""

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from app.catalog.store.revisions import compute_digest
from app.db.databases import open_database
from app.db.engines import make_engine, read_session
from app.mcp.catalog import CatalogReader
from app.receipts import check_receipt
from tests.conftest import TODAY
from tests.databases import Databases
from tests.mcp.asking import call
from tests.mcp.test_budget import CALLS, tokens

GPU_SIZE = {"size": "nd40rs_v2"}
"""The small catalog has few sizes without GPUs."""
QUESTIONS = [(tool, given | GPU_SIZE if "size" in given else given) for tool, given in CALLS[::3]]


@pytest.fixture(scope="module")
def url(databases: Databases, few_sizes_template_url: str) -> str:
    """The database of a small catalog: to check a receipt all of it is read."""
    return databases.copy(few_sizes_template_url)


@pytest.fixture(scope="module")
def digest(url: str) -> str:
    engine = make_engine(url)
    with read_session(engine) as session:
        summed_up, _ = compute_digest(session)
    engine.dispose()
    return summed_up


@pytest.fixture(scope="module")
def catalog(url: str) -> Iterator[CatalogReader]:
    database = open_database(url)
    reader = CatalogReader(database, lambda: TODAY)
    yield reader
    reader.close()
    database.dispose()


@pytest.mark.parametrize(("tool", "arguments"), QUESTIONS)
def test_the_receipt_of_a_reply_is_computed_again_from_the_catalog(
    catalog: CatalogReader, digest: str, tool: str, arguments: dict[str, Any]
) -> None:
    meta: Any = call(catalog, tool, arguments).meta
    receipt = json.loads(json.dumps(meta["vmsizes/receipt"]))
    assert receipt["digest"] == meta["vmsizes/revision"]["digest"]
    assert receipt["questions"]
    assert "facts" not in receipt["rests_on"]
    assert tokens(receipt) < 2_000
    assert anyio.run(catalog.run, lambda opened, _: check_receipt(opened, receipt, digest)) == []


def test_an_altered_receipt_of_a_reply_is_caught(catalog: CatalogReader, digest: str) -> None:
    meta: Any = call(catalog, *CALLS[0]).meta
    receipt = json.loads(json.dumps(meta["vmsizes/receipt"]))
    receipt["questions"][0]["answer_sha256"] = "0" * 64
    assert anyio.run(catalog.run, lambda opened, _: check_receipt(opened, receipt, digest)) != []
