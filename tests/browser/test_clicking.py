"""Clicks while an answer is under way, and sizes that are checked to be compared: nothing is lost."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.clicking import SlowService, walk
from tests.browser.conftest import VIEWPORTS, RecordedPage, open_page
from tests.databases import one_in
from tests.servers import server

pytestmark = pytest.mark.usefixtures("scripts")


@pytest.fixture(scope="module")
def service() -> SlowService:
    """A service whose search page is late."""
    return SlowService()


@pytest.fixture(scope="module")
def slow_url(service: SlowService) -> Iterator[str]:
    """Its URL."""
    with server(service) as url:
        yield url


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new page on a desktop."""
    with open_page(browser, viewport=VIEWPORTS["desktop"]) as page:
        yield page


@pytest.mark.takes_seconds
@pytest.mark.parametrize("number", one_in(3, range(3)))
def test_a_walk_that_is_faster_than_the_server_loses_nothing(
    browser: Browser, service: SlowService, slow_url: str, number: int
) -> None:
    assert walk(browser, slow_url, service, number) == []


@pytest.mark.takes_seconds
def test_an_older_answer_never_replaces_a_newer_one(page: Page, service: SlowService, slow_url: str) -> None:
    service.latency_ms = lambda: 0
    page.goto(slow_url)
    latencies = iter((1500, 50))
    service.latency_ms = lambda: next(latencies)
    page.locator("#min_vcpus").fill("100")
    page.locator("#min_vcpus").press("Enter")
    expect(page.locator("#main")).to_have_attribute("aria-busy", "true")
    page.locator("#min_vcpus").fill("400")
    page.locator("#min_vcpus").press("Enter")
    expect(page.locator(".chips .chip")).to_have_text(["Remove: vCPUs ≥ 400"])
    count = page.locator("h1").inner_text()
    page.wait_for_timeout(1600)  # the older answer would be there by now
    assert page.locator("h1").inner_text() == count
    assert page.url.endswith("min_vcpus=400")
    expect(page.locator("#announcement")).to_have_text(count)


@pytest.mark.takes_seconds
def test_a_filter_and_an_order_at_once_are_both_applied(page: Page, service: SlowService, slow_url: str) -> None:
    service.latency_ms = lambda: 0
    page.goto(f"{slow_url}/?region=westeurope")
    service.latency_ms = lambda: 400
    page.locator("#min_gpu_mem_per_gpu").fill("80")
    page.locator("#min_gpu_mem_per_gpu").press("Enter")
    page.wait_for_timeout(150)
    page.get_by_role("link", name="vCPUs", exact=True).click()
    expect(page.locator("th[aria-sort]")).to_contain_text("vCPUs")
    expect(page.locator("#min_gpu_mem_per_gpu")).to_have_value("80")
    for part in ("region=westeurope", "min_gpu_mem_per_gpu=80", "sort=-vcpus"):
        assert part in page.url


@pytest.mark.takes_seconds
def test_what_is_typed_while_an_answer_comes_stays(page: Page, service: SlowService, slow_url: str) -> None:
    service.latency_ms = lambda: 0
    page.goto(slow_url)
    service.latency_ms = lambda: 500
    page.get_by_label("Tesla T4").check()
    page.locator("#min_vcpus").focus()
    page.keyboard.type("12")
    expect(page.get_by_role("heading", level=1)).to_have_text("4 sizes")
    page.keyboard.type("8")
    expect(page.locator("#min_vcpus")).to_have_value("128")


@pytest.mark.takes_seconds
def test_checked_sizes_stay_checked_across_searches_and_pages(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.goto(f"{base_url}/?min_vcpus=8&sort=name")
    boxes = page.locator("[data-compared]")
    names = [boxes.nth(number).get_attribute("value") or "" for number in (0, 1)]
    boxes.nth(0).check()
    boxes.nth(1).check()
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".pages")).to_contain_text("51–")
    expect(page.locator("[data-compared]:checked")).to_have_count(0)
    page.goto(f"{base_url}/?gpu=h100&sort=name")
    page.locator("[data-compared]").first.check()
    names.append(page.locator("[data-compared]").first.get_attribute("value") or "")
    tray = page.get_by_role("form", name="Sizes to compare")
    tray.get_by_role("button", name=f"Do not compare {names[1]}").click()
    page.goto(f"{base_url}/ui/sizes/d8s_v5?os=windows")
    page.get_by_label("Compare", exact=True).check()
    tray.get_by_role("button", name="Compare 3").click()
    compared = parse_qs(urlsplit(page.url).query)
    assert compared == {"name": [f"{names[0]},{names[2]},Standard_D8s_v5"], "os": ["windows"]}
    page.goto(f"{base_url}/?min_vcpus=8&sort=name")
    expect(page.locator("[data-compared]:checked")).to_have_count(1)
    expect(page.locator("[data-compared]:checked")).to_have_value(names[0])
    assert watched.errors == []


@pytest.mark.takes_seconds
def test_no_answer_is_said_and_asked_for_again(page: Page, service: SlowService, slow_url: str) -> None:
    service.latency_ms = lambda: 0
    page.goto(slow_url)
    page.context.set_offline(True)
    page.get_by_label("Tesla T4").check()
    expect(page.get_by_role("alert")).to_contain_text("No answer from the server")
    expect(page.get_by_label("Tesla T4")).to_be_checked()
    page.context.set_offline(False)
    if page.locator("#failure").is_visible():  # else the browser's word that it is online again was enough
        page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("4 sizes")
    expect(page.get_by_role("alert")).to_be_hidden()
