"""What leads on from an answer: the first page, and the explanations of problems, under a path prefix, too."""

import re
from collections.abc import Iterator

import httpx
import pytest

from app.http.problems import EXPLANATIONS
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.servers import server

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PUBLIC = "https://vms.example/api"


@pytest.fixture
def prefixed(seeded_url: str) -> Iterator[httpx.Client]:
    """A service that is reached under a path by way of a proxy, asked as the proxy asks it."""
    settings = Settings(_env_file=None, database_url=seeded_url, public_url=f"{PUBLIC}/")
    service = create_asgi_app(settings, today=lambda: TODAY)
    with server(service) as url, httpx.Client(base_url=url) as client:
        yield client
    service.app.state.engine.dispose()


def test_the_first_page_says_what_this_is_to_a_browser_and_to_a_program(client: httpx.Client) -> None:
    page = client.get("/", headers=HTML)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "Look up, compare and cost cloud VM sizes" in page.text
    told = client.get("/")
    assert (told.headers["content-type"], told.json()["name"]) == ("application/json", "vmsizes")
    assert page.headers["vary"] == told.headers["vary"] == "accept"
    assert client.head("/").status_code == 200


def test_every_link_of_the_first_page_leads_somewhere(client: httpx.Client) -> None:
    page = client.get("/", headers=HTML).text
    links = [link.replace("&amp;", "&") for link in re.findall(r'href="([^"]+)"', page)]
    links += client.get("/").json()["links"].values()
    assert len(links) > 10
    for link in links:
        assert client.get(f"/{link.removeprefix('/')}").status_code == 200, link
    assert "http://" not in page
    assert "https://" not in page


def test_links_keep_the_prefix_under_which_the_service_is_reached(prefixed: httpx.Client) -> None:
    page = prefixed.get("/", headers=HTML).text
    links = [*re.findall(r'href="([^"]+)"', page), *prefixed.get("/").json()["links"].values()]
    links += [prefixed.get(path).json()["type"] for path in ("/sizes/nope", "/sizes?limit=0", "/nothing")]
    links += [prefixed.get("/problems/not-found").json()["type"]]
    links += [prefixed.get("/sizes").links["service-desc"]["url"]]
    links += [prefixed.get("/openapi.json").json()["info"]["contact"]["url"]]
    for link in links:
        assert link.startswith(PUBLIC)
        assert prefixed.get(link.removeprefix(PUBLIC).replace("&amp;", "&")).status_code == 200, link


def test_a_contract_that_does_not_know_its_url_names_nobody_at_a_wrong_one(client: httpx.Client) -> None:
    for path in ("/openapi.json", "/openapi-3.0.json"):
        assert client.get(path).json()["info"]["contact"] == {"name": "vmsizes"}


def test_every_type_of_problem_is_explained(client: httpx.Client) -> None:
    kinds = client.get("/problems").json()["items"]
    assert {kind["type"].removeprefix("/problems/") for kind in kinds} == set(EXPLANATIONS)
    for kind in kinds:
        assert client.get(kind["type"]).json() == kind
        assert kind["meaning"]
        assert kind["remedy"]
    unknown = client.get("/problems/bad-parametre")
    assert (unknown.status_code, "Did you mean bad-parameter" in unknown.json()["detail"]) == (404, True)


IN_ANOTHER_STATE = {"cursor-gone", "internal-error", "busy", "not-ready"}


@pytest.mark.parametrize("name", sorted(EXPLANATIONS.keys() - IN_ANOTHER_STATE))
def test_the_example_of_a_type_of_problem_is_what_the_service_says(client: httpx.Client, name: str) -> None:
    explained = EXPLANATIONS[name]
    asked, _, header = explained.request.partition(", ")
    method, path, *body = asked.split(" ", 2)
    headers = {"content-type": "application/json", **dict([header.split(": ")] if header else [])}
    path = path.replace("…", "x" * 9_000)
    headers = {key: value.replace("…", "x" * 17_000) for key, value in headers.items()}
    content = b" " * 3 * 2**20 if name == "too-long" else body[0].encode() if body else b""
    answer = client.request(
        method, path, content=content or None, headers=headers if method == "POST" or header else {}
    )
    told = answer.json()
    assert told["type"] == f"/problems/{name}"
    shown = ".*".join(map(re.escape, explained.detail.split("…")))
    assert re.fullmatch(shown, told["detail"])
