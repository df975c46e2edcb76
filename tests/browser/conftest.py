"""A real browser, and a page of it that remembers what it asked for and what it complained of."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.databases import Databases

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """A page, every URL that it asked for, and what its console says is wrong."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, without a window; no longer than a module, since an event loop runs in this thread meanwhile."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(PROGRAMS)} is on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def watched(browser: Browser) -> Iterator[RecordedPage]:
    """A new page."""
    page = browser.new_page()
    watched = RecordedPage(page)
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("console", lambda said: watched.errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: watched.errors.append(str(error)))
    yield watched
    page.close()


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind: a page does not know what is behind the service."""
    return single_database
