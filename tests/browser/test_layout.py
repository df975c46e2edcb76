"""What is seen where there is little room: nothing is cut, covered or broken inside a number."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import RecordedPage
from tests.browser.pages import INVENTORY

SPILLING = """cards => cards.flatMap(card => [...card.children].filter(part => {
  const [inner, outer] = [part.getBoundingClientRect(), card.getBoundingClientRect()];
  const reachesOut = inner.left < outer.left || inner.right > outer.right + 0.5 || inner.bottom > outer.bottom + 0.5;
  return !inner.height || reachesOut;
}).map(part => part.textContent))"""
"""The texts of the parts of some elements that are not shown, or reach out of their element."""


def test_the_figures_of_a_plan_are_in_their_cards_and_on_paper(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.goto(f"{base_url}/ui/retirements/plan?inventory={quote(INVENTORY)}")
    cards = page.locator(".figure")
    successors = cards.filter(has_text="Best successors, a month")
    for width in (390, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert cards.evaluate_all(SPILLING) == []
        expect(successors.locator("dd").first).to_have_text("$11,630.36")
    page.emulate_media(media="print")
    expect(successors).to_be_visible()


BROKEN = """cells => cells.flatMap(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell.firstChild);
  return new Set([...range.getClientRects()].map(line => line.top)).size > 1 ? [cell.textContent] : [];
})"""
"""The cells whose first text is on several lines."""

WIDER = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.id)"


@pytest.mark.parametrize(
    ("width", "url"),
    [(390, "/?gpu=H100&region=westeurope&currency=IDR&unit=year"), (320, "/?per=gib")],
)
def test_no_number_is_broken_on_a_phone(watched: RecordedPage, clouds_base_url: str, width: int, url: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(clouds_base_url + url)
    numbers = page.locator("#rows td.number:not(.unknown)")
    expect(numbers).not_to_have_count(0)
    assert numbers.evaluate_all(BROKEN) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_marks_are_whole_and_an_error_leaves_the_fields_beside_it_as_they_are(
    watched: RecordedPage, clouds_base_url: str
) -> None:
    page = watched.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{clouds_base_url}/?gpu=H100&region=westeurope")
    marks = page.locator("#rows .name .mark").filter(has_text="disputed")
    expect(marks).not_to_have_count(0)
    assert page.locator("#rows th").evaluate_all(SPILLING) == []
    assert marks.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).length") == 0

    page.goto(f"{clouds_base_url}/?gpu=H100&region=atlantis")
    expect(page.locator("#price-bar .error")).to_be_visible()
    boxes = [field.bounding_box() for field in page.locator("#price-bar :is(input, select)").all()]
    places = {(round(box["y"]), round(box["height"])) for box in boxes if box}
    assert len(places) == 1


def test_no_tick_and_no_last_column_is_cut(watched: RecordedPage, clouds_base_url: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{clouds_base_url}/ui/explore?currency=IDR&unit=year")
    assert page.locator(".table-scroll").evaluate_all(WIDER) == []
    left = page.locator(".plot").evaluate("plot => plot.getBoundingClientRect().left")
    ticks = page.locator(".plot .tick").evaluate_all("all => all.map(one => one.getBoundingClientRect().left)")
    assert min(ticks) > left
    page.goto(f"{clouds_base_url}/ui/retirements")
    assert page.locator(".month details[open] .table-scroll").evaluate_all(WIDER) == []
    page.goto(f"{clouds_base_url}/ui/fit?model=llama-3.1-8b&use=training&method=qlora&tokens=100000000")
    assert page.locator("#options").evaluate_all(WIDER) == []


def test_the_fields_of_prices_have_room_on_a_small_phone(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 320, "height": 900})
    page.goto(f"{base_url}/ui/sizes/d8s_v5?region=westeurope")
    bar, day = page.locator("#price-bar").bounding_box(), page.locator("#as_of").bounding_box()
    assert bar is not None
    assert day is not None
    assert bar["width"] > 250
    assert bar["y"] + bar["height"] <= day["y"]


@pytest.mark.usefixtures("scripts")
def test_the_focus_goes_through_the_head_from_left_to_right(watched: RecordedPage, base_url: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{base_url}/ui/coverage")
    page.keyboard.press("Tab")
    lefts = []
    for _ in range(page.locator("header :is(a, input, button):visible").count()):
        page.keyboard.press("Tab")
        lefts.append(page.evaluate("document.activeElement.getBoundingClientRect().left"))
    assert page.evaluate("document.activeElement.closest('header') !== null")
    assert lefts == sorted(lefts)
