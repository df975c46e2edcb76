"""Every problem that the document shows is what the service refuses with."""

from collections.abc import Iterator, Mapping

import httpx
import pytest

from app.api.document.examples import find_problem
from app.api.document.responses import REFUSALS
from tests.api.document.refusing import REFUSED, clients, refusal
from tests.conftest import TODAY


@pytest.fixture
def services(seeded_url: str, empty_url: str) -> Iterator[Mapping[str, httpx.Client]]:
    with clients(seeded_url, empty_url, TODAY) as services:
        yield services


def test_every_refusal_is_brought_about() -> None:
    assert set(REFUSED) == {one.name for one in REFUSALS.values() if one.problem}


def test_problems_are_what_the_service_refuses_with(services: Mapping[str, httpx.Client]) -> None:
    for name in REFUSED:
        assert refusal(services, name) == find_problem(name)
