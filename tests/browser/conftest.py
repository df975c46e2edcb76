"""A real browser, with pages that record their requests and errors."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from app.web.assets import assets
from tests.databases import Databases
from tests.waiting import LONGEST_SECONDS

LONGEST_MS = 1000 * LONGEST_SECONDS
expect.set_options(timeout=LONGEST_MS)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """A page, the URLs that it requested, and the errors of its console."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


Theme = Literal["light", "dark"]
KeptPage = Callable[[str, Theme, bool], RecordedPage]
VIEWPORTS: dict[str, ViewportSize] = {
    "phone": {"width": 390, "height": 844},
    "desktop": {"width": 1440, "height": 900},
}


@contextmanager
def launch() -> Iterator[Browser]:
    """Headless Chromium; skips the test where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(PROGRAMS)} is on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def scripts() -> None:
    """The scripts of the pages; skips the test where they are not bundled."""
    if "app.js" not in assets():
        pytest.skip("the scripts of the pages are not bundled: make assets, which needs npm")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Headless Chromium; for this folder alone, since Playwright runs an event loop in this thread while it is open."""
    with launch() as browser:
        yield browser


@contextmanager
def open_page(browser: Browser, **options: Any) -> Iterator[Page]:
    """Open a page in a context of its own; `options` are those of the context."""
    context = browser.new_context(**options)
    context.set_default_timeout(LONGEST_MS)
    yield context.new_page()
    context.close()


def record(page: Page) -> RecordedPage:
    """Return the page with a record of its requests and errors from now on."""
    watched = RecordedPage(page)
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("console", lambda message: watched.errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: watched.errors.append(str(error)))
    return watched


@pytest.fixture(scope="package")
def kept_page(browser: Browser) -> KeptPage:
    """Return a function that returns the page of a device, a theme and a use of scripts: a new one costs a process.

    For tests that keep nothing in the browser, and leave the page as large as the device.
    """

    @cache
    def kept_page(device: str, theme: Theme, scripts: bool) -> RecordedPage:
        context = browser.new_context(viewport=VIEWPORTS[device], color_scheme=theme, java_script_enabled=scripts)
        context.set_default_timeout(LONGEST_MS)
        return record(context.new_page())

    return kept_page


@pytest.fixture
def watched(browser: Browser) -> Iterator[RecordedPage]:
    """A new page that records."""
    with open_page(browser) as page:
        yield record(page)


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind of database: a page does not depend on it."""
    return single_database
