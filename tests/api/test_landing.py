"""The landing page and the explanations of problems, also under a path prefix."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin

import httpx
import pytest

from app.http.problems import EXPLANATIONS
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.servers import open_client, server

pytestmark = pytest.mark.first_database

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PUBLIC = "https://vms.example/api"


@pytest.fixture
def prefixed(seeded_url: str) -> Iterator[httpx.Client]:
    """A client of a service behind a proxy with a path prefix, requesting as the proxy does."""
    settings = Settings(_env_file=None, database_url=seeded_url, public_url=f"{PUBLIC}/")
    service = create_asgi_app(settings, today=lambda: TODAY)
    with server(service) as url, open_client(url) as client:
        yield client
    service.app.state.database.dispose()


def test_the_instance_of_a_problem_leads_to_what_was_asked_behind_a_prefix(prefixed: httpx.Client) -> None:
    problem = prefixed.get("/sizes/nope").json()
    assert urljoin(f"{PUBLIC}/sizes/nope", problem["instance"]) == f"{PUBLIC}/sizes/nope"
    assert problem["type"] == f"{PUBLIC}/problems/not-found"


def links_of(page: str) -> list[str]:
    """Return the links of a page, one of each kind of size page."""
    links = dict.fromkeys(unescape(link) for link in re.findall(r'href="([^"#]+)"', page))
    return [link for link in links if "ui/sizes/" not in link]


def test_the_landing_page_is_html_for_browsers_and_json_for_programs(client: httpx.Client) -> None:
    page = client.get("/", headers=HTML)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>" in page.text
    returned = client.get("/")
    assert (returned.headers["content-type"], returned.json()["name"]) == ("application/json", "vmsizes")
    assert page.headers["vary"] == "accept, accept-encoding, origin"
    assert returned.headers["vary"] == "accept"
    assert client.head("/").status_code == 200


@pytest.mark.takes_seconds
@pytest.mark.one_database  # of paths that other tests ask each kind for
def test_every_link_of_the_landing_page_works(client: httpx.Client) -> None:
    page = client.get("/", headers=HTML).text
    links = [*links_of(page), *client.get("/").json()["links"].values()]
    assert len(links) > 30
    for link in links:
        assert client.get(urljoin("/", link), headers=HTML, follow_redirects=True).status_code == 200, link
    assert not re.findall(r'(?:href|src|action)="(?:https?:)?//', page)


@pytest.mark.takes_seconds
@pytest.mark.one_database  # the links are those of before, which are asked of each kind
def test_links_keep_the_path_prefix(prefixed: httpx.Client) -> None:
    page = prefixed.get("/", headers=HTML).text
    links = [urljoin(f"{PUBLIC}/", link) for link in links_of(page)]
    links += prefixed.get("/").json()["links"].values()
    links += [prefixed.get(path).json()["type"] for path in ("/sizes/nope", "/sizes?limit=0", "/nothing")]
    links += [prefixed.get("/problems/not-found").json()["type"]]
    links += [prefixed.get("/sizes").links["service-desc"]["url"]]
    links += [prefixed.get("/openapi.json").json()["info"]["contact"]["url"]]
    for link in links:
        assert link.startswith(PUBLIC)
        answer = prefixed.get(link.removeprefix(PUBLIC), headers=HTML if "problems" not in link else {})
        assert answer.status_code == 200, link


def test_a_document_without_public_url_has_no_contact_url(client: httpx.Client) -> None:
    for path in ("/openapi.json", "/openapi-3.0.json"):
        assert "contact" not in client.get(path).json()["info"]


def test_every_problem_type_is_explained(client: httpx.Client) -> None:
    kinds = client.get("/problems").json()["items"]
    assert {kind["type"].removeprefix("/problems/") for kind in kinds} == set(EXPLANATIONS)
    for kind in kinds:
        assert client.get(kind["type"]).json() == kind
        assert kind["meaning"]
        assert kind["remedy"]
    unknown = client.get("/problems/bad-parametre")
    assert (unknown.status_code, "Did you mean bad-parameter" in unknown.json()["detail"]) == (404, True)


IN_ANOTHER_STATE = {
    *("cursor-gone", "internal-error", "busy", "not-ready", "unauthorized", "too-many-requests", "request-timeout"),
}
OF_BROKEN_CLIENTS = {"http-version", "not-implemented"}
"""No HTTP library sends such a request: `tests/faults/test_hostile_heads.py` does."""


@pytest.mark.parametrize("name", sorted(EXPLANATIONS.keys() - IN_ANOTHER_STATE - OF_BROKEN_CLIENTS))
def test_the_example_of_a_problem_type_is_what_the_service_returns(client: httpx.Client, name: str) -> None:
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
    returned = answer.json()
    assert returned["type"] == f"/problems/{name}"
    shown = ".*".join(map(re.escape, explained.detail.split("…")))
    assert re.fullmatch(shown, returned["detail"])
