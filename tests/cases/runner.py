"""Sends the requests of cases to a service, and compares the responses with the published figures."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from tests.cases.case_file import Case, convert, deviation_percent
from tests.cases.requests import CaseRequest, by_preset, request_for

OK = 200


class Client(Protocol):
    """The part of an HTTP client that is used."""

    def get(self, url: str) -> httpx.Response:
        """Send a GET request."""

    def post(self, url: str, *, json: Any) -> httpx.Response:
        """Send a POST request with a JSON body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a case; `got` is in the case's unit, None where the request failed."""

    case: Case
    got: float | None
    certainty: str = ""
    trouble: str = ""

    @property
    def deviation_percent(self) -> float | None:
        """Deviation from the published figure."""
        return None if self.got is None else deviation_percent(self.got, self.case.expected)

    @property
    def passed(self) -> bool:
        """Whether the figure is within the case's tolerance."""
        off = self.deviation_percent
        return off is not None and abs(off) <= self.case.tolerance_percent + 1e-9


def run(cases: Iterable[Case], client: Client) -> Iterator[Result]:
    """Yield the result of each case; one without a request or response fails with the reason."""
    for case in cases:
        try:
            request = request_for(case.kind, case.inputs)
        except (KeyError, TypeError, StopIteration) as error:
            yield Result(case=case, got=None, trouble=f"no request for the case: {error!r}")
        else:
            yield _send(case, request, client)


def _send(case: Case, request: CaseRequest, client: Client) -> Result:
    try:
        request = _by_preset_name(request, client)
        response = client.post(request.endpoint, json=request.body)
        answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        return Result(case=case, got=None, trouble=repr(error))
    if response.status_code != OK:
        detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
        return Result(case=case, got=None, trouble=f"{response.status_code}: {detail}")
    result = figure(answer, request.figure)
    if isinstance(result, bool):
        return Result(case=case, got=float(result))
    if not isinstance(result, dict):
        return Result(case=case, got=None, trouble=f"no figure at {request.figure}")
    value = result["mid"] if result["value"] is None else result["value"]
    return Result(case=case, got=convert(value, result["unit"], case.unit), certainty=result["class"])


def _by_preset_name(request: CaseRequest, client: Client) -> CaseRequest:
    """Return the request by the name of the preset that it is about, if any."""
    if request.preset is None or "architecture" not in request.body:
        return request
    found = client.get(f"/models/{quote(request.preset, safe='')}")
    return by_preset(request, found.json()) if found.status_code == OK else request


def figure(answer: Any, path: str) -> Any:
    """Return the value at a dotted path of a response; None where a part is missing."""
    return reduce(lambda part, name: part.get(name) if isinstance(part, dict) else None, path.split("."), answer)
