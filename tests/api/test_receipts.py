"""POST /receipts: what an answer of the API rests on."""

import hashlib
import json
from collections.abc import Iterator

import httpx
import pytest
from sqlalchemy import Engine

from app.catalog.queries.prices import PriceSearch
from app.catalog.queries.snapshot import load_catalog
from app.catalog.store.revisions import compute_digest
from app.db.engines import make_engine, read_session
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.questions import Question, answer
from app.receipts import check_receipt, make_receipt
from app.settings import Settings
from tests.conftest import TODAY
from tests.databases import Databases
from tests.factories import NOW, price, reading, size
from tests.servers import open_client, server

pytestmark = pytest.mark.first_database

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


@pytest.fixture(scope="module")
def catalog_url(databases: Databases, few_sizes_template_url: str) -> Iterator[str]:
    """A small catalog: to check a receipt all of it is read."""
    url = databases.copy(few_sizes_template_url)
    yield url
    databases.drop(url)


@pytest.fixture(scope="module")
def client(catalog_url: str) -> Iterator[httpx.Client]:
    service = create_asgi_app(Settings(_env_file=None, database_url=catalog_url), today=lambda: TODAY)
    with server(service) as url, open_client(url) as client:
        yield client


@pytest.mark.takes_seconds
@pytest.mark.parametrize(("question", "method", "url"), QUESTIONS)
def test_a_receipt_is_of_the_answer_that_the_api_gives(
    client: httpx.Client, catalog_url: str, question: dict[str, object], method: str, url: str
) -> None:
    receipt = client.post("/receipts", json=question).json()
    answer = client.request(method, url, json=question["params"] if method == "POST" else None).json()
    answer.pop("next_cursor", None)
    canonical = json.dumps(answer, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert receipt["questions"][0]["answer_sha256"] == hashlib.sha256(canonical.encode()).hexdigest()
    engine = make_engine(catalog_url)
    with read_session(engine) as session:
        assert check_receipt(load_catalog(session, TODAY), receipt, compute_digest(session)[0]) == []
    engine.dispose()


@pytest.mark.parametrize(
    ("question", "detail"),
    [
        ({"endpoint": "GET /size"}, "allowed are GET /sizes"),
        (
            {"endpoint": "GET /sizes", "params": {"min_gpu_memory": 80}},
            "params.min_gpu_memory=80: there is no such field; did",
        ),
        ({"endpoint": "GET /models/{name}", "name": "x", "params": {"y": 1}}, "params.y=1: there is no such field"),
        ({"endpoint": "GET /sizes", "parameters": {}}, "parameters"),
        ({"endpoint": "GET /sizes", "params": {"region": ["atlantis"]}}, "no such region"),
        ({"endpoint": "GET /sizes/{name}"}, "name: is required"),
        ({"endpoint": "GET /sizes/{name}", "name": None}, "name: is required"),
        ({"endpoint": "GET /sizes", "name": "nd40rs_v2"}, "name=nd40rs_v2: GET /sizes has no name in its path"),
    ],
)
def test_a_question_that_cannot_be_asked_gets_no_receipt(
    client: httpx.Client, question: dict[str, object], detail: str
) -> None:
    answer = client.post("/receipts", json=question)
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]


@pytest.mark.parametrize(
    ("question", "pointer"),
    [
        ({"endpoint": "GET /sizes", "params": {"cursor": "abc"}}, "/body/params/cursor"),
        ({"endpoint": "GET /sizes", "params": {"x": 1}}, "/body/params/x"),
        ({"endpoint": "POST /fit", "params": {"model": "nope", "inference": {}}}, "/body/params/model"),
        ({"endpoint": "GET /sizes/{name}"}, "/body/name"),
        ({"endpoint": "GET /sizes", "params": {"limit": True}}, "/body/params/limit"),
        ({"endpoint": "GET /sizes", "params": {"min_vcpus": "8"}}, "/body/params/min_vcpus"),
        ({"endpoint": "GET /sizes", "params": {"min_memory": "8"}}, "/body/params/min_memory"),
        ({"endpoint": "GET /sizes", "params": {"min_memory_gib": "8"}}, "/body/params/min_memory_gib"),
        ({"endpoint": "GET /sizes", "params": {"infiniband": 1}}, "/body/params/infiniband"),
        ({"endpoint": "GET /sizes", "params": {"infiniband": "true"}}, "/body/params/infiniband"),
        ({"endpoint": "GET /sizes", "params": {"name": [5]}}, "/body/params/name/0"),
        ({"endpoint": "GET /sizes", "params": {"gpu": [["A100"]]}}, "/body/params/gpu/0"),
        ({"endpoint": "GET /sizes", "params": {"gpu": ["A100", None]}}, "/body/params/gpu/1"),
        ({"endpoint": "GET /sizes", "params": {"fields": ["name", "name"]}}, "/body/params/fields"),
        ({"endpoint": "GET /sizes", "params": {"fields": ["nope"]}}, "/body/params/fields"),
        ({"endpoint": "POST /fit", "params": {"resources": {"min_memory": "8"}}}, "/body/params/resources/min_memory"),
    ],
)
def test_an_error_points_into_the_body_of_the_question(
    client: httpx.Client, question: dict[str, object], pointer: str
) -> None:
    (error,) = client.post("/receipts", json=question).json()["errors"]
    assert error["pointer"] == pointer


def test_null_stands_for_an_absent_parameter(client: httpx.Client) -> None:
    params = dict.fromkeys(("gpu", "region", "limit", "infiniband", "currency", "fields"))
    receipts = [
        client.post("/receipts", json={"endpoint": "GET /sizes", "params": given}).json() for given in ({}, params)
    ]
    assert receipts[0]["questions"][0]["params"] == {}
    assert receipts[0] == receipts[1]
    (error,) = client.post("/receipts", json={"endpoint": "GET /sizes", "params": {"gpus": None}}).json()["errors"]
    assert error["pointer"] == "/body/params/gpus"


def test_an_answer_names_more_regions_than_a_parameter_takes(engine: Engine) -> None:
    regions = [f"region{number}" for number in range(70)]
    prices = [price("Standard_X1", "1.5", region=region) for region in regions]
    ingest(engine, reading(size("Standard_X1", vcpus=8), regions=regions, prices=prices), now=NOW)
    question = Question(endpoint="GET /sizes/{name}/prices", name="x1", params=PriceSearch(limit=500))
    with read_session(engine) as session:
        catalog = load_catalog(session, TODAY)
        receipt = make_receipt(catalog, [(question, answer(catalog, *question))])
        assert receipt["rests_on"]["price_count"] == len(regions)
        assert check_receipt(catalog, receipt, compute_digest(session)[0]) == []
