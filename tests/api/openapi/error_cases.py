"""One refusal of every kind: how it is brought about, and the problem that the service answers with."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date

import httpx

from app.api.openapi.responses import PROBLEM_STATUSES
from app.main import create_asgi_app
from app.settings import Settings
from tests.api.openapi.parts import Part
from tests.servers import server

ID = "0f8fad5bd9cb469fa16570867728950e"
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCase:
    """A request that is refused, and in which state of the service."""

    path: str
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    state: str = "seeded"


ERROR_CASES: Mapping[str, ErrorCase] = {
    "BadRequest": ErrorCase(path="/sizes?cursor=of-another-list"),
    "UnreadableBody": ErrorCase(method="POST", path="/fit", body=b'{"model":', headers=_JSON),
    "UnreadableRange": ErrorCase(path="/sizes.parquet", headers={"range": "bytes=9-3"}),
    "NotFound": ErrorCase(path="/sizes/nd40rs_v3"),
    "SeriesNotFound": ErrorCase(path="/series/nd_h100_v6"),
    "ModelNotFound": ErrorCase(path="/models/llama-3.1-71b"),
    "MethodNotAllowed": ErrorCase(method="DELETE", path="/sizes"),
    "PostMethodNotAllowed": ErrorCase(method="DELETE", path="/fit"),
    "PreconditionFailed": ErrorCase(path="/sizes.parquet", headers={"if-match": '"0"'}),
    "RangeNotSatisfiable": ErrorCase(path="/sizes.parquet", headers={"range": "bytes=99999999-"}),
    "Gone": ErrorCase(path="/regions?limit=2&cursor={earlier}"),
    "ContentTooLarge": ErrorCase(method="POST", path="/fit", body=b" " * 3 * 2**20, headers=_JSON),
    "UnsupportedMediaType": ErrorCase(method="POST", path="/fit", body=b"{}", headers={"content-type": "text/plain"}),
    "UnprocessableContent": ErrorCase(path="/sizes?min_gpu_memory=80"),
    "UnprocessableBody": ErrorCase(
        method="POST",
        path="/fit",
        body=b'{"model": "llama-3.1-70b", "inference": {"context": 8192}}',
        headers=_JSON,
    ),
    "InternalServerError": ErrorCase(path="/sizes", state="broken"),
    "ServiceUnavailable": ErrorCase(path="/sizes", state="empty"),
}


@contextmanager
def clients(seeded_url: str, empty_url: str, today: date) -> Iterator[Mapping[str, httpx.Client]]:
    """The service as it should be, with a fault, and without a catalog."""
    with ExitStack() as stack:
        made = {}
        for state, url in (("seeded", seeded_url), ("broken", seeded_url), ("empty", empty_url)):
            service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: today)
            if state == "broken":
                service.app.state.executor.today = _fail
            base_url = stack.enter_context(server(service))
            made[state] = stack.enter_context(httpx.Client(base_url=base_url, trust_env=False))
        yield made


def get_problem(services: Mapping[str, httpx.Client], name: str) -> Part:
    """The problem that a request is refused with; raises AssertionError where it has another status."""
    asked, client = ERROR_CASES[name], services[ERROR_CASES[name].state]
    path = asked.path.replace("{earlier}", _earlier(client)) if "{" in asked.path else asked.path
    headers = {**asked.headers, "x-request-id": ID}
    answer = client.request(asked.method, path, content=asked.body, headers=headers)
    assert answer.status_code == PROBLEM_STATUSES[name], answer.text
    problem: Part = answer.json()
    return problem


def _earlier(client: httpx.Client) -> str:
    """A cursor as an earlier revision of the catalog gave it."""
    cursor = client.get("/regions", params={"limit": 2}).json()["next_cursor"]
    mark, _, *place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return base64.urlsafe_b64encode(json.dumps([mark, "0-00000000", *place]).encode()).decode().rstrip("=")


def _fail() -> date:
    raise RuntimeError("a fault, brought about on purpose")
