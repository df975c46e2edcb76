"""What is seen where there is little room: nothing is cut, covered or broken inside a number."""

from urllib.parse import quote

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
