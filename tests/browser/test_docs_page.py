"""The documentation page of the API, in a real browser."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from tests.api.openapi.generated_files import document
from tests.api.openapi.parts import operations
from tests.browser.conftest import RecordedPage


def split(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    return parts.path, dict(parse_qsl(parts.query))


def test_the_page_shows_every_operation_and_sends_no_request_elsewhere(watched: RecordedPage, base_url: str) -> None:
    watched.page.goto(f"{base_url}/docs")
    expect(watched.page.locator(".opblock")).to_have_count(len(list(operations(document()))))
    assert {urlsplit(url).netloc for url in watched.requests if not url.startswith("data:")} == {
        urlsplit(base_url).netloc
    }
    assert watched.errors == []


@pytest.mark.parametrize(
    ("operation", "filled", "requested"),
    [
        ("sizes/listSizes", {"min_gpu_mem": "640"}, "/sizes?min_gpu_mem=640&limit=50&currency=USD"),
        ("sizes/showSize", {}, "/sizes/nd96isr_h100_v5?currency=USD"),
        ("fit/fitWorkload", {}, "/fit"),
    ],
)
def test_an_operation_is_tried_out_with_what_is_filled_in(
    watched: RecordedPage, base_url: str, operation: str, filled: dict[str, str], requested: str
) -> None:
    watched.page.goto(f"{base_url}/docs#/{operation}")
    block = watched.page.locator(".opblock.is-open")
    for name, value in filled.items():
        block.locator(f"tr[data-param-name={name}] input").first.fill(value)
    block.locator("button.execute").click()
    expect(block.locator(".live-responses-table .response .response-col_status").first).to_have_text("200")
    path, query = split(requested)
    assert [query] == [sent for where, sent in map(split, watched.requests) if where == path]
    assert watched.errors == []


def test_a_script_in_the_page_itself_would_not_run(watched: RecordedPage, base_url: str) -> None:
    watched.page.goto(f"{base_url}/docs")
    expect(watched.page.locator(".opblock").first).to_be_visible()
    watched.page.locator("main").evaluate("(main) => main.setAttribute('onclick', 'document.title = \"ran\"')")
    watched.page.locator("main").dispatch_event("click")
    assert watched.page.title() != "ran"
    assert any("Content Security Policy" in error for error in watched.errors)
