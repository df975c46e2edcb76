"""Asking every case of a service, and comparing what comes back."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from tests.cases.case_file import Case, convert, deviation_percent
from tests.cases.requests import CaseRequest, by_preset, request_for

FOUND = 200


class Client(Protocol):
    """What is asked: a client of HTTP, or the app itself."""

    def get(self, url: str) -> httpx.Response:
        """Look something up."""

    def post(self, url: str, *, json: Any) -> httpx.Response:
        """Send a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a case; `got` is in the case's unit, None where nothing came."""

    case: Case
    got: float | None
    certainty: str = ""
    trouble: str = ""

    @property
    def deviation_percent(self) -> float | None:
        """How far it is from what was published."""
        return None if self.got is None else deviation_percent(self.got, self.case.expected)

    @property
    def passed(self) -> bool:
        """Whether it is within the case's tolerance."""
        off = self.deviation_percent
        return off is not None and abs(off) <= self.case.tolerance_percent + 1e-9


def run(cases: Iterable[Case], client: Client) -> Iterator[Result]:
    """Ask for each case; one that cannot be asked or answered fails with the reason."""
    for case in cases:
        try:
            asked = request_for(case.kind, case.inputs)
        except (KeyError, TypeError, StopIteration) as error:
            yield Result(case=case, got=None, trouble=f"cannot be asked: {error!r}")
        else:
            yield _answered(case, asked, client)


def _answered(case: Case, asked: CaseRequest, client: Client) -> Result:
    try:
        asked = _named(asked, client)
        response = client.post(asked.endpoint, json=asked.body)
        answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        return Result(case=case, got=None, trouble=repr(error))
    if response.status_code != FOUND:
        detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
        return Result(case=case, got=None, trouble=f"{response.status_code}: {detail}")
    found = figure(answer, asked.figure)
    if isinstance(found, bool):
        return Result(case=case, got=float(found))
    if not isinstance(found, dict):
        return Result(case=case, got=None, trouble=f"no figure at {asked.figure}")
    value = found["mid"] if found["value"] is None else found["value"]
    return Result(case=case, got=convert(value, found["unit"], case.unit), certainty=found["class"])


def _named(asked: CaseRequest, client: Client) -> CaseRequest:
    """The question by the name of the preset that it is about, where it is about one."""
    if asked.preset is None or "architecture" not in asked.body:
        return asked
    found = client.get(f"/models/{quote(asked.preset, safe='')}")
    return by_preset(asked, found.json()) if found.status_code == FOUND else asked


def figure(answer: Any, path: str) -> Any:
    """What stands at a path of an answer; None where a part of it is not there."""
    return reduce(lambda part, name: part.get(name) if isinstance(part, dict) else None, path.split("."), answer)
