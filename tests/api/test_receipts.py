"""POST /receipts: what an answer of the API rests on."""

import hashlib
import json

import httpx
import pytest
from sqlalchemy import Engine

from app.catalog.queries.snapshot import Catalog, load_snapshot
from app.converters.receipts import check_receipt
from app.db.engines import read_session
from tests.conftest import TODAY

QUESTIONS = [
    ({"endpoint": "GET /sizes", "params": {"gpu": ["H100"], "limit": 2}}, "GET", "/sizes?gpu=H100&limit=2"),
    ({"endpoint": "GET /sizes/{name}", "name": "nd40rs_v2"}, "GET", "/sizes/nd40rs_v2"),
    (
        {"endpoint": "GET /sizes/{name}/prices", "name": "nd40rs_v2", "params": {"as_of": "2026-08-01"}},
        "GET",
        "/sizes/nd40rs_v2/prices?as_of=2026-08-01",
    ),
    (
        {"endpoint": "POST /fit", "params": {"model": "llama-3.1-8b", "inference": {"concurrency": 4}}},
        "POST",
        "/fit",
    ),
]


@pytest.mark.parametrize(("question", "method", "url"), QUESTIONS)
def test_a_receipt_is_of_the_answer_that_the_api_gives(
    client: httpx.Client, seeded_engine: Engine, question: dict[str, object], method: str, url: str
) -> None:
    receipt = client.post("/receipts", json=question).json()
    answer = client.request(method, url, json=question["params"] if method == "POST" else None).json()
    answer.pop("next_cursor", None)
    canonical = json.dumps(answer, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert receipt["questions"][0]["answer_sha256"] == hashlib.sha256(canonical.encode()).hexdigest()
    with read_session(seeded_engine) as session:
        assert check_receipt(Catalog(session, load_snapshot(session), TODAY), receipt) == []


@pytest.mark.parametrize(
    ("question", "detail"),
    [
        ({"endpoint": "GET /size"}, "allowed are GET /sizes"),
        ({"endpoint": "GET /sizes", "params": {"min_gpu_memory": 80}}, "params.min_gpu_memory"),
        ({"endpoint": "GET /sizes", "parameters": {}}, "parameters"),
        ({"endpoint": "GET /sizes", "params": {"region": ["atlantis"]}}, "no such region"),
    ],
)
def test_a_question_that_cannot_be_asked_gets_no_receipt(
    client: httpx.Client, question: dict[str, object], detail: str
) -> None:
    answer = client.post("/receipts", json=question)
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]
