"""Every page in every state: accessible in both themes, on phone and desktop, without errors, and without scripts.

Each state is drawn on one device in one theme, which axe examines, and then on the other device, whose width it has to
fit; and on one of them without scripts. These go by turns: a page of several states is examined in all combinations.
Every third state is tried always, the others with --slow.
"""

from typing import Any

import pytest
from playwright.sync_api import Page

from app.settings import PROJECT
from tests.browser.conftest import VIEWPORTS, KeptPage, RecordedPage, Theme
from tests.browser.pages import PAGES, PageState
from tests.databases import one_in

AXE = PROJECT / "app/web/frontend/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async (tags) => {
  const found = await axe.run({ runOnly: tags, resultTypes: ["violations"], elementRef: false });
  return { violations: found.violations, passes: found.passes.length };
}"""


DEVICES = tuple(VIEWPORTS)
THEMES: tuple[Theme, Theme] = ("light", "dark")
IN_A_THEME = one_in(
    3,
    [
        pytest.param(state, DEVICES[number % 2], THEMES[number // 2 % 2], id=state.name)
        for number, state in enumerate(PAGES)
    ],
)
"""Every state with a device and a theme, by turns."""
WITHOUT_SCRIPTS = one_in(
    3,
    [
        pytest.param(state, DEVICES[number % 2], False, id=f"{state.name}-{DEVICES[number % 2]}")
        for number, state in enumerate(PAGES)
    ],
)
"""Every state on one device, by turns."""


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
def watched(kept_page: KeptPage, request: pytest.FixtureRequest) -> RecordedPage:
    """A page of the device, theme and use of scripts that the test's parameters say, which has recorded nothing yet."""
    params = {"theme": "light", "scripts": True, **request.node.callspec.params}
    watched = kept_page(params["device"], params["theme"], params["scripts"])
    watched.requests.clear()
    watched.errors.clear()
    return watched


def assert_whole(watched: RecordedPage, base_url: str, device: str) -> None:
    """Assert that a page has one heading and no errors, loads nothing from elsewhere, and fits each screen.

    The first is that of `device`, and the last, too.
    """
    page = watched.page
    assert page.locator("h1").count() == 1
    assert page.title().endswith(" · vmsizes")
    assert watched.errors == []
    assert {url.split("/")[2] for url in watched.requests if not url.startswith("data:")} == {base_url.split("/")[2]}
    for each in (device, *(other for other in DEVICES if other != device), device):
        page.set_viewport_size(VIEWPORTS[each])
        assert page.evaluate("document.documentElement.scrollWidth") <= VIEWPORTS[each]["width"]


@pytest.mark.takes_seconds
@pytest.mark.parametrize(("state", "device", "theme"), IN_A_THEME)
def test_a_page_is_whole_and_axe_finds_no_violation(
    watched: RecordedPage, base_url: str, state: PageState, device: str, theme: str
) -> None:
    page = opened(watched, base_url, state)
    assert_whole(watched, base_url, device)
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci --prefix app/web/frontend")
    page.evaluate(AXE.read_text())
    found: Any = page.evaluate(RUN_AXE, RULES)
    nodes = [
        (one["id"], node["html"][:160], node["failureSummary"]) for one in found["violations"] for node in one["nodes"]
    ]
    assert not nodes
    assert found["passes"]


@pytest.mark.takes_seconds
@pytest.mark.parametrize(("state", "device", "scripts"), WITHOUT_SCRIPTS)
def test_a_page_is_whole_without_scripts(
    watched: RecordedPage, base_url: str, state: PageState, device: str, scripts: bool
) -> None:
    opened(watched, base_url, state)
    assert_whole(watched, base_url, device)
