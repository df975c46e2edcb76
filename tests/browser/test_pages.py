"""Every page in every state: accessible in both themes, on phone and desktop, without errors, and without scripts.

Each state is tried on both devices, in both themes, with and without scripts; not in every combination of these, since
the colours of a theme do not depend on the width, and a page of several states has all pairs.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from app.settings import PROJECT
from tests.browser.conftest import VIEWPORTS, RecordedPage, record
from tests.browser.pages import PAGES, PageState

AXE = PROJECT / "app/web/frontend/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async (tags) => {
  const found = await axe.run({ runOnly: tags, resultTypes: ["violations"], elementRef: false });
  return { violations: found.violations, passes: found.passes.length };
}"""


def in_pairs(name: str, values: tuple[object, object]) -> pytest.MarkDecorator:
    """Try every state with both values of a parameter, one on a phone and one on a desktop, by turns."""
    rows = [
        pytest.param(state, device, value, id=f"{state.name}-{device}-{value}")
        for number, state in enumerate(PAGES)
        for device, value in zip(VIEWPORTS, values[:: -1 if number % 2 else 1], strict=True)
    ]
    return pytest.mark.parametrize(("state", "device", name), rows)


def opened(watched: RecordedPage, base_url: str, state: PageState) -> Page:
    """Open a page; its status is checked here, as Chromium reports an expected 4xx as an error."""
    response = watched.page.goto(f"{base_url}{state.url}")
    assert response is not None
    assert response.status == state.status
    watched.errors[:] = [
        error for error in watched.errors if "Failed to load resource" not in error or state.status == 200
    ]
    return watched.page


@pytest.fixture
def watched(browser: Browser, request: pytest.FixtureRequest) -> Iterator[RecordedPage]:
    """A new page of the device, theme and use of scripts that the test's parameters say."""
    params = {"device": "desktop", "theme": "light", "scripts": True, **request.node.callspec.params}
    context = browser.new_context(
        viewport=VIEWPORTS[params["device"]], color_scheme=params["theme"], java_script_enabled=params["scripts"]
    )
    yield record(context.new_page())
    context.close()


@in_pairs("theme", ("light", "dark"))
def test_axe_finds_no_violation(
    watched: RecordedPage, base_url: str, state: PageState, device: str, theme: str
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci --prefix app/web/frontend")
    page = opened(watched, base_url, state)
    page.evaluate(AXE.read_text())
    found: Any = page.evaluate(RUN_AXE, RULES)
    nodes = [
        (one["id"], node["html"][:160], node["failureSummary"]) for one in found["violations"] for node in one["nodes"]
    ]
    assert not nodes
    assert found["passes"]


@in_pairs("scripts", (True, False))
def test_a_page_has_one_heading_no_errors_and_fits_the_screen(
    watched: RecordedPage, base_url: str, state: PageState, device: str, scripts: bool
) -> None:
    page = opened(watched, base_url, state)
    assert page.locator("h1").count() == 1
    assert page.title().endswith(" · vmsizes")
    assert watched.errors == []
    assert {url.split("/")[2] for url in watched.requests if not url.startswith("data:")} == {base_url.split("/")[2]}
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= VIEWPORTS[device]["width"]
