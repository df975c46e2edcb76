"""What people do on the search page: with scripts, without, and with the keyboard alone."""

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import VIEWPORTS, RecordedPage, open_page, record
from tests.databases import one_in


@pytest.fixture
def still(browser: Browser) -> Iterator[Page]:
    """A new page without scripts."""
    with open_page(browser, java_script_enabled=False, viewport=VIEWPORTS["desktop"]) as page:
        yield page


@pytest.fixture
def phone(browser: Browser) -> Iterator[RecordedPage]:
    """A new page on a phone."""
    with open_page(browser, viewport=VIEWPORTS["phone"]) as page:
        yield record(page)


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_a_filter_is_applied_at_once_and_back_undoes_it(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.goto(base_url)
    page.evaluate("window.loaded = 'once'")
    page.get_by_label("Tesla T4").check()
    expect(page.get_by_role("heading", level=1)).to_have_text("4 sizes")
    page.locator("#min_vcpus").fill("16")
    page.locator("#min_vcpus").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("2 sizes")
    assert page.evaluate("document.activeElement.id") == "min_vcpus"
    page.get_by_role("link", name="vCPUs", exact=True).click()
    expect(page.locator("th[aria-sort]")).to_contain_text("vCPUs")
    assert page.evaluate("window.loaded") == "once"
    assert page.url.endswith("&sort=-vcpus")
    page.go_back()
    expect(page.locator("th[aria-sort]")).to_contain_text("Price")
    expect(page.locator("#min_vcpus")).to_have_value("16")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("4 sizes")
    expect(page.locator("#min_vcpus")).to_have_value("")
    assert watched.errors == []


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_a_request_has_no_empty_values_and_no_defaults(watched: RecordedPage, base_url: str) -> None:
    watched.page.goto(base_url)
    watched.page.get_by_label("Tesla T4").check()
    expect(watched.page.get_by_role("heading", level=1)).to_have_text("4 sizes")
    pages = [url.removeprefix(base_url) for url in watched.requests if "/assets/" not in url]
    assert pages == ["/", "/?gpu=Tesla+T4"]


@pytest.mark.takes_seconds
def test_without_scripts_a_form_leads_to_the_same_url(still: Page, base_url: str) -> None:
    still.goto(base_url)
    still.get_by_label("Tesla T4").check()
    still.locator("#min_vcpus").fill("16")
    still.get_by_role("button", name="Show sizes").click()
    expect(still.get_by_role("heading", level=1)).to_have_text("2 sizes")
    assert still.url == f"{base_url}/?min_vcpus=16&gpu=tesla%20t4"
    expect(still.locator("[data-theme-toggle]")).to_be_hidden()


@pytest.mark.takes_seconds
def test_a_size_is_found_with_the_keyboard_alone(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.goto(base_url)
    page.keyboard.press("Tab")
    expect(page.locator(".skip").first).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#compare tbody input").first).to_be_focused()
    page.goto(base_url)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "q":
            break
    page.keyboard.type("nc24ads_a100")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("1 size")
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.mark')"):
            break
    expect(page.locator(".mark").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Sources disagree on:")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Sources disagree on:")).to_be_hidden()
    assert watched.errors == []


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_the_filters_are_a_sheet_on_a_phone(phone: RecordedPage, base_url: str) -> None:
    page = phone.page
    page.goto(base_url)
    expect(page.locator("#min_vcpus")).to_be_hidden()
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Tesla T4").check()
    expect(page.get_by_role("heading", level=1)).to_have_text("4 sizes")
    expect(page.locator("#min_vcpus")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#min_vcpus")).to_be_hidden()
    assert phone.errors == []


@pytest.mark.takes_seconds
def test_all_figures_of_a_size_are_on_the_screen_of_a_phone(phone: RecordedPage, base_url: str) -> None:
    phone.page.goto(f"{base_url}/?gpu=a100")
    scroller = phone.page.locator("#compare .table-scroll")
    assert scroller.evaluate("one => one.scrollWidth <= one.clientWidth")
    expect(phone.page.locator("#compare tbody tr").first).to_contain_text("A100")


@pytest.mark.takes_seconds
@pytest.mark.parametrize("query", one_in(2, ["", "?gpu=h100", "?category=gpu_accelerated", "?max_gpus=0"]))
def test_no_column_is_cut_on_a_desktop(watched: RecordedPage, clouds_base_url: str, query: str) -> None:
    watched.page.set_viewport_size(VIEWPORTS["desktop"])
    watched.page.goto(f"{clouds_base_url}/{query}")
    expect(watched.page.locator("#compare thead th")).not_to_have_count(0)
    assert watched.page.locator("#compare .table-scroll").evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.takes_seconds
def test_no_table_is_cut_on_paper(watched: RecordedPage, base_url: str) -> None:
    watched.page.emulate_media(media="print")
    watched.page.goto(f"{base_url}/ui/sizes/nd40rs_v2")
    tables = watched.page.locator(".table-scroll")
    assert tables.evaluate_all("all => all.every(one => getComputedStyle(one).maxHeight === 'none')")
    expect(watched.page.locator(".history .points")).to_be_visible()


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_prices_that_were_chosen_are_those_of_pages_without_a_question_until_others_are(
    watched: RecordedPage, base_url: str
) -> None:
    page = watched.page
    page.goto(base_url)
    page.get_by_label("Currency").select_option("EUR")
    expect(page.locator("#compare thead")).to_contain_text("EUR an hour")
    page.get_by_role("combobox", name="Region").fill("westeurope")
    page.get_by_role("combobox", name="Region").press("Enter")
    expect(page.locator("#compare tbody")).to_contain_text("westeurope")
    page.get_by_role("link", name="Reset").click()
    expect(page.locator("#compare thead")).to_contain_text("EUR an hour")
    for path in ("/", "/ui/sizes/d8s_v5", "/ui/compare", "/ui/explore", "/ui/fit"):
        page.goto(base_url + path)
        page.wait_for_url("**region=westeurope**currency=EUR**")
    page.goto(base_url)
    page.get_by_label("Run the model", exact=True).fill("llama-3.1-8b")
    page.get_by_role("button", name="Which sizes?").click()
    page.wait_for_url("**/ui/fit?**region=westeurope**currency=EUR**")
    page.locator("header input[name=q]").fill("d8s_v5")
    page.locator("header input[name=q]").press("Enter")
    page.wait_for_url(partial(has_query, "name=standard_d8s_v5&currency=EUR"))
    page.goto(f"{base_url}/ui/retirements")
    page.wait_for_url("**/ui/retirements?region=westeurope")
    page.goto(f"{base_url}/?currency=CHF")
    expect(page.locator("#compare thead")).to_contain_text("CHF an hour")
    page.goto(f"{base_url}/?gpu=H100")
    expect(page.locator("#compare thead")).to_contain_text("USD an hour")
    expect(page.locator(".results-head")).to_contain_text("in the cheapest region, unusual prices aside")
    page.get_by_label("Price for").select_option("month")
    expect(page.locator("#compare thead")).to_contain_text("USD a month")
    page.get_by_label("Price for").select_option("hour")
    expect(page.locator("#compare thead")).to_contain_text("USD an hour")
    page.goto(base_url)
    expect(page.locator("#compare thead")).to_contain_text("EUR an hour")
    assert page.locator("#regions option").first.get_attribute("value") == "westeurope"
    page.get_by_role("combobox", name="Region").fill("")
    page.get_by_role("combobox", name="Region").press("Enter")
    expect(page.locator(".results-head")).to_contain_text("in the cheapest region, unusual prices aside")
    page.goto(f"{base_url}/ui/sizes/d8s_v5")
    page.wait_for_url("**/d8s_v5?currency=EUR")
    assert watched.errors == []


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_kinds_of_gpus_stay_below_their_family_when_a_filter_changes(
    watched: RecordedPage, clouds_base_url: str
) -> None:
    page = watched.page
    rows = "rows => rows.map(row => [row.classList.contains('below'), row.querySelector('span').textContent])"
    page.goto(f"{clouds_base_url}/?gpu=H100&region=westeurope")
    page.get_by_role("combobox", name="Region").fill("")
    page.get_by_role("combobox", name="Region").press("Enter")
    expect(page.locator(".results-head")).to_contain_text("in the cheapest region")
    shown = page.locator("#choices-gpu .check").evaluate_all(rows)
    page.reload()
    fresh = page.locator("#choices-gpu .check").evaluate_all(rows)

    def families(listed: list[tuple[bool, str]]) -> dict[str, set[str]]:
        made: dict[str, set[str]] = {}
        for is_kind, title in listed:
            made.setdefault(title, set()) if not is_kind else made[[*made][-1]].add(title)
        return made

    assert families(shown) == families(fresh)
    assert any(families(fresh).values())
    assert shown[0] == fresh[0]


@pytest.mark.usefixtures("scripts")
def test_a_box_suggests_while_one_types(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    for path, box, typed, found in (
        ("/", "#q", "h100 weste", "h100 westeurope"),
        ("/ui/fit", "header input[name=q]", "a100", "a100"),
        ("/ui/compare?name=d8s_v5", "#add", "d4s_v5,d2s_v", "d4s_v5,Standard_D2s_v5"),
    ):
        page.goto(base_url + path)
        page.locator(box).press_sequentially(typed)
        expect(page.locator(f'datalist option[value="{found}"]')).to_have_count(1)
    page.locator("#add").fill("d4s_v5")
    page.locator("#add").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare 2 sizes")
    assert watched.errors == []


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_a_point_says_at_once_what_it_is_also_at_a_touch(browser: Browser, base_url: str) -> None:
    with open_page(browser, viewport=VIEWPORTS["phone"], has_touch=True) as page:
        page.goto(f"{base_url}/ui/explore")
        point, tip = page.locator(".points a").first, page.locator(".tip")
        expect(tip).to_be_hidden()
        point.locator("circle").hover(force=True)
        expect(tip).to_be_visible()
        labels = page.locator(".points a").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        assert tip.inner_text() in labels
        page.mouse.move(1, 1)
        expect(tip).to_be_hidden()
        point.locator("circle").tap(force=True)
        expect(tip).to_be_visible()
        assert "/ui/explore" in page.url
        point.locator("circle").tap(force=True)
        page.wait_for_url("**/ui/sizes/**")


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_the_theme_is_chosen_and_remembered(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.emulate_media(color_scheme="light")
    page.goto(base_url)
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    toggle = page.get_by_role("button", name="Theme")
    toggle.click()
    toggle.click()
    expect(toggle).to_have_text("Theme: dark")
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark


@pytest.mark.takes_seconds
def test_the_first_view_is_small(watched: RecordedPage, base_url: str) -> None:
    sizes: list[int] = []
    watched.page.on("response", lambda response: sizes.append(response.request.sizes()["responseBodySize"]))
    watched.page.goto(base_url, wait_until="networkidle")
    assert sum(sizes) < 110_000
    assert len(sizes) <= 10


def has_query(query: str, url: str) -> bool:
    return set(url.partition("?")[2].split("&")) == set(query.split("&"))


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_the_heads_of_columns_filter(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.set_viewport_size(VIEWPORTS["desktop"])
    page.goto(base_url)
    for column, text, query in (
        ("vCPUs", ">=8", "min_vcpus=8"),
        ("vCPUs", "8..64", "min_vcpus=8&max_vcpus=64"),
        ("vCPUs", "< 64", "max_vcpus=64"),
        ("vCPUs", "8", "min_vcpus=8&max_vcpus=8"),
        ("GPU", "a100", "gpu=a100&min_vcpus=8&max_vcpus=8"),
    ):
        page.get_by_role("textbox", name=f"{column}: filter", exact=True).fill(text)
        page.keyboard.press("Enter")
        page.wait_for_url(partial(has_query, query))
        expect(page.locator("[aria-busy]")).to_have_count(0)
    assert watched.errors == []
    memory = page.get_by_role("textbox", name="Memory: filter", exact=True)
    memory.fill("abc")
    page.keyboard.press("Enter")
    expect(page.locator("#errors li")).to_have_count(1)
    expect(memory).to_have_value("abc")


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
def test_on_a_phone_the_menu_opens_and_the_baseline_stays_while_one_swipes(phone: RecordedPage, base_url: str) -> None:
    page = phone.page
    page.goto(f"{base_url}/ui/compare?name=nd40rs_v2,nd96isr_h100_v5,d8s_v5")
    expect(page.get_by_label("Add a size")).to_be_hidden()
    page.get_by_text("Change the comparison").click()
    expect(page.get_by_label("Add a size")).to_be_visible()
    base = page.locator("#comparison thead .base")
    before = base.bounding_box()
    page.locator("#comparison").evaluate("one => one.scrollTo(200, 0)")
    assert base.bounding_box() == before
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Explore").click()
    page.wait_for_url("**/ui/explore")
    assert phone.errors == []


@pytest.mark.takes_seconds
def test_rows_of_the_list_are_one_line_high(watched: RecordedPage, base_url: str) -> None:
    watched.page.set_viewport_size(VIEWPORTS["desktop"])
    watched.page.goto(f"{base_url}/?gpu=h100&status=any")
    expect(watched.page.locator("#compare .mark").filter(has_text="unverified").first).to_be_visible()
    rows = watched.page.locator("#rows tr").evaluate_all("rows => rows.map(row => row.offsetHeight)")
    assert max(rows) == min(rows) <= 34


def test_the_price_of_a_card_has_its_unit_on_a_phone(phone: RecordedPage, base_url: str) -> None:
    phone.page.goto(f"{base_url}/?gpu=a100&currency=EUR&unit=month&columns=price,vcpus,spot_usd_per_hour")
    price, spot = (phone.page.locator(f"#rows tr:first-child td:nth-of-type({place})") for place in (1, 3))
    unit = "cell => getComputedStyle(cell, '::after').content"
    assert price.evaluate(unit) == '"EUR a month"'
    assert spot.get_attribute("data-title") == "Spot EUR a month"
    boxes = [box for box in (price.bounding_box(), spot.bounding_box()) if box]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[-1]["y"]
