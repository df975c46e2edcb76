"""The documentation page of the API, in a real browser."""

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.api.openapi.generated_files import document
from tests.api.openapi.parts import operations
from tests.browser.conftest import RecordedPage, open_page, record


def split(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    return parts.path, dict(parse_qsl(parts.query))


@pytest.fixture(scope="module")
def docs(browser: Browser, base_url: str) -> Iterator[RecordedPage]:
    """The page, loaded once at one of its operations: to draw all of them takes seconds."""
    with open_page(browser) as page:
        watched = record(page)
        page.goto(f"{base_url}/docs#/sizes/listSizes")
        expect(page.locator(".opblock.is-open")).to_have_id("operations-sizes-listSizes")
        yield watched


@pytest.mark.takes_seconds
def test_the_page_shows_every_operation_and_sends_no_request_elsewhere(docs: RecordedPage, base_url: str) -> None:
    expect(docs.page.locator(".opblock")).to_have_count(len(list(operations(document()))))
    assert {urlsplit(url).netloc for url in docs.requests if not url.startswith("data:")} == {urlsplit(base_url).netloc}
    assert docs.errors == []


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    ("operation", "filled", "requested"),
    [
        ("sizes-listSizes", {"min_gpu_mem": "640"}, "/sizes?min_gpu_mem=640&limit=50"),
        pytest.param("sizes-showSize", {}, "/sizes/nd96isr_h100_v5", marks=pytest.mark.slow),
        pytest.param("fit-fitWorkload", {}, "/fit", marks=pytest.mark.slow),
    ],
)
def test_an_operation_is_tried_out_with_what_is_filled_in(
    docs: RecordedPage, operation: str, filled: dict[str, str], requested: str
) -> None:
    block = docs.page.locator(f"#operations-{operation}")
    if "is-open" not in (block.get_attribute("class") or ""):
        block.locator(".opblock-summary-control").click()
    for name, value in filled.items():
        block.locator(f"tr[data-param-name={name}] input").first.fill(value)
    block.locator("button.execute").click()
    expect(block.locator(".live-responses-table .response .response-col_status").first).to_have_text("200")
    path, query = split(requested)
    assert [query] == [sent for where, sent in map(split, docs.requests) if where == path]
    assert docs.errors == []


def test_a_script_in_the_page_itself_would_not_run(docs: RecordedPage) -> None:
    docs.page.locator("main").evaluate("(main) => main.setAttribute('onclick', 'document.title = \"ran\"')")
    docs.page.locator("main").dispatch_event("click")
    assert docs.page.title() != "ran"
    assert any("Content Security Policy" in error for error in docs.errors)
    docs.errors.clear()
