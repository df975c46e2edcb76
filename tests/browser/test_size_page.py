"""The page of a size and the comparison in a browser: what scripts add, and when they load it."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import VIEWPORTS, RecordedPage, open_page

SIZE = "/ui/sizes/d8s_v5?region=westeurope"


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_a_price_of_the_chart_says_at_once_what_it_is(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.goto(base_url + SIZE)
    spot = page.locator(".history .spot[data-tip]").first
    spot.hover(force=True)
    expect(page.locator(".tip")).to_have_text(spot.get_attribute("data-tip") or "")
    expect(page.locator(".tip")).to_have_text(re.compile(r"on demand: [\d.]+ USD an hour, 20\d\d-"))
    assert watched.errors == []


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_the_models_that_fit_are_put_in_place_when_they_come_into_view(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.goto(f"{base_url}/ui/sizes/nc24ads_a100_v4")
    page.locator("#models").scroll_into_view_if_needed()
    expect(page.locator("#models #capacity-table")).to_be_visible()
    assert watched.errors == []


@pytest.mark.takes_seconds
def test_without_scripts_there_are_a_chart_and_a_table_of_prices_and_a_link_to_the_models(
    browser: Browser, base_url: str
) -> None:
    with open_page(browser, java_script_enabled=False) as page:
        page.goto(f"{base_url}/ui/sizes/nc24ads_a100_v4")
        expect(page.locator(".history svg.points")).to_be_visible()
        expect(page.locator("#history-table tbody tr").first).to_be_visible()
        page.get_by_role("link", name="Language models on one VM").click()
        expect(page.locator("#capacity-table")).to_be_visible()


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_nothing_scrolls_inside_the_page_and_all_regions_open(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.set_viewport_size(VIEWPORTS["desktop"])
    page.goto(f"{base_url}/ui/sizes/d8s_v5")
    inner = "all => all.filter(one => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)"
    assert page.locator(".table-scroll").evaluate_all(f"{inner}.map(one => one.id)") == []
    rows = page.locator("#price-table tbody tr:visible")
    expect(rows).to_have_count(8)
    page.get_by_text(re.compile(r"Show all \d+ regions")).click()
    assert rows.count() > 40
    assert page.locator(".table-scroll").evaluate_all(f"{inner}.map(one => one.id)") == []
    page.set_viewport_size(VIEWPORTS["phone"])
    assert page.locator("#similar-table").evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_the_name_of_a_size_is_copied(browser: Browser, base_url: str) -> None:
    with open_page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(f"{base_url}/ui/sizes/d8s_v5")
        page.get_by_role("button", name="Copy").first.click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == "Standard_D8s_v5"


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_another_region_by_the_form_keeps_the_other_choices_in_the_url(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.goto(f"{base_url}{SIZE}&currency=EUR")
    page.get_by_label("Region", exact=True).fill("eastus")
    page.get_by_label("Region", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Price history in East US")).to_be_visible()
    assert "region=eastus" in page.url
    assert "currency=EUR" in page.url
    page.go_back()
    expect(page.get_by_role("heading", name="Price history in West Europe")).to_be_visible()


@pytest.mark.takes_seconds
def test_the_names_and_the_first_column_of_a_comparison_stay_in_view(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(f"{base_url}/ui/compare?name=nd40rs_v2,nd96isr_h100_v5,nc24ads_a100_v4,d8s_v5")
    table = page.locator("#comparison")
    table.evaluate("table => table.scrollTo(400, 600)")
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    box, head = table.bounding_box(), table.locator("thead th").first.bounding_box()
    assert box is not None
    assert head is not None
    assert abs(head["x"] - box["x"]) < 3
    assert abs(head["y"] - box["y"]) < 3
