"""Every problem in the document is what the service returns."""

from collections.abc import Iterator, Mapping

import httpx
import pytest

from app.api.openapi.build import PROBLEM_STATUSES, find_example, find_problem_example
from app.catalog.fields import SIZE_FLAGS
from tests.api.openapi.error_cases import ERROR_CASES, clients, get_problem
from tests.api.openapi.generated_files import document
from tests.api.openapi.parts import operations
from tests.conftest import TODAY

pytestmark = pytest.mark.one_database  # the documents have what a service on SQLite answers


@pytest.fixture
def services(seeded_url: str, empty_url: str) -> Iterator[Mapping[str, httpx.Client]]:
    with clients(seeded_url, empty_url, TODAY) as services:
        yield services


def test_every_error_response_has_a_case() -> None:
    assert set(ERROR_CASES) == set(PROBLEM_STATUSES)


@pytest.mark.takes_seconds
def test_problems_are_what_the_service_returns(services: Mapping[str, httpx.Client]) -> None:
    for name in ERROR_CASES:
        assert get_problem(services, name) == find_problem_example(name)


def test_the_example_of_a_problem_is_one_that_the_operation_can_return() -> None:
    shown = document()["components"]["responses"]
    for place, operation in operations(document()):
        method, _, path = place.partition(" ")
        for status, response in operation["responses"].items():
            if status in {"200", "304"}:
                continue
            (content,) = shown[response["$ref"].rpartition("/")[2]]["content"].values()
            problem = content["examples"]["example"]["value"]
            assert problem["status"] == int(status)
            pointers = {error["pointer"].split("/")[1] for error in problem["errors"]}
            assert pointers <= {"body" if method == "POST" else "query"}, (place, status)
            if method == "POST" and status in {"400", "405", "413", "415", "422"}:
                assert problem["instance"] == path
            if status == "404" and "{" in path:
                assert problem["instance"].split("/")[1] == path.split("/")[1]
            if "parquet" in path and status in {"400", "412", "416"}:
                assert problem["instance"] == "/sizes.parquet"


def test_an_example_shows_lists_of_strings_whole() -> None:
    for operation in ("listSizes", "showSize"):
        answer = find_example(operation).answer  # type: ignore[union-attr]  # both are there
        for size in answer.get("items", [answer]):
            flags = {name for name in SIZE_FLAGS if size[name]}
            assert set(size["flags"]) == flags
