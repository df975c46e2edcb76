from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from app.api.openapi.build import to_openapi30
from tests.api.openapi.generated_files import document, make_document

pytestmark = pytest.mark.first_database


@pytest.mark.takes_seconds
def test_both_documents_are_served_as_generated(client: httpx.Client) -> None:
    assert client.get("/openapi.json").json() == document()
    assert client.get("/openapi-3.0.json").json() == to_openapi30(document())


@pytest.mark.takes_seconds
def test_documents_can_be_generated_concurrently() -> None:
    with ThreadPoolExecutor() as threads:
        made = [threads.submit(make_document) for _ in range(2)]
    assert [one.result() for one in made] == [document()] * 2


@pytest.mark.parametrize("path", ["/openapi.json", "/openapi-3.0.json"])
def test_a_cached_copy_of_a_document_is_revalidated(client: httpx.Client, path: str) -> None:
    first = client.get(path)
    assert first.headers["content-type"] == "application/json"
    again = client.get(path, headers={"if-none-match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert client.get(path, headers={"if-none-match": '"other"'}).content == first.content


def test_the_documentation_page_allows_scripts_of_its_own_origin_only(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert "script-src 'self';" in page.headers["content-security-policy"]
    for path in ("docs/page.js", "docs/assets/swagger-ui-bundle.js", "docs/assets/swagger-ui.css"):
        assert path in page.text
        assert client.get(f"/{path}").status_code == httpx.codes.OK
