"""One request for every kind of error, and the problem that the service returns for it."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date

import httpx

from app.api.openapi.build import PROBLEM_STATUSES
from app.main import create_asgi_app
from app.settings import Settings
from tests.api.openapi.parts import Part
from tests.servers import open_client, server

REQUEST_ID = "0f8fad5bd9cb469fa16570867728950e"
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCase:
    """A request that fails, and the state of the service in which it does."""

    path: str
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    state: str = "seeded"


ERROR_CASES: dict[str, ErrorCase] = {
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
    "ContentTooLarge": ErrorCase(method="POST", path="/fit", body=b" " * 9 * 2**20, headers=_JSON),
    "URITooLong": ErrorCase(path=f"/sizes?name={'x' * 8192}"),
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
for _prefix in ("Estimate", "Retirements", "Preflight"):
    for _name in (
        "UnreadableBody",
        "PostMethodNotAllowed",
        "ContentTooLarge",
        "UnsupportedMediaType",
        "UnprocessableBody",
    ):
        ERROR_CASES[_prefix + _name] = replace(ERROR_CASES[_name], path=f"/{_prefix.lower()}")
ERROR_CASES["RetirementsUnprocessableBody"] = replace(
    ERROR_CASES["RetirementsUnprocessableBody"], body=b'{"items": [{"size": "nc6s_v3", "number": 2}]}'
)


@contextmanager
def clients(seeded_url: str, empty_url: str, today: date) -> Iterator[Mapping[str, httpx.Client]]:
    """Yield clients of three services: a working one, a broken one, and one without a catalog."""
    with ExitStack() as stack:
        services = {}
        for state, url in (("seeded", seeded_url), ("broken", seeded_url), ("empty", empty_url)):
            service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: today)
            if state == "broken":
                service.app.state.executor.today = _fail
            base_url = stack.enter_context(server(service))
            services[state] = stack.enter_context(open_client(base_url))
        yield services


def get_problem(services: Mapping[str, httpx.Client], name: str) -> Part:
    """Return the problem of an error case; raises AssertionError if the status is another."""
    case, client = ERROR_CASES[name], services[ERROR_CASES[name].state]
    path = case.path.replace("{earlier}", _earlier_cursor(client)) if "{" in case.path else case.path
    headers = {**case.headers, "x-request-id": REQUEST_ID}
    response = client.request(case.method, path, content=case.body, headers=headers)
    assert response.status_code == PROBLEM_STATUSES[name], response.text
    problem: Part = response.json()
    return problem


def _earlier_cursor(client: httpx.Client) -> str:
    """Return a cursor of an earlier revision of the catalog."""
    cursor = client.get("/regions", params={"limit": 2}).json()["next_cursor"]
    kind, _, *position = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return base64.urlsafe_b64encode(json.dumps([kind, "0-00000000", *position]).encode()).decode().rstrip("=")


def _fail() -> date:
    raise RuntimeError("an error on purpose")
