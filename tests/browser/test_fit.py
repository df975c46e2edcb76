"""What people do on the fit page: with the keyboard alone, without scripts, and with a pasted configuration."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import RecordedPage, open_page


def tab_to(page: Page, selector: str, presses: int = 120) -> None:
    """Press Tab until an element that matches has the focus."""
    for _ in range(presses):
        page.keyboard.press("Tab")
        if page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
            return
    raise AssertionError(f"Tab does not reach {selector}")


@pytest.mark.takes_seconds
def test_a_fit_is_reached_from_the_search_and_fixed_with_the_keyboard_alone(
    watched: RecordedPage, base_url: str
) -> None:
    page = watched.page
    page.goto(base_url)
    tab_to(page, "nav a[href$='ui/fit']")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("What fits?")
    tab_to(page, "#model")
    page.keyboard.type("llama-3.1-405b")
    tab_to(page, "#concurrency")
    page.keyboard.type("400")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("No size holds Llama 3.1 405B")
    assert page.url.endswith("/ui/fit?model=llama-3.1-405b&concurrency=400")
    tab_to(page, ".fix")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^[0-9]+ sizes? holds? Llama"))
    assert watched.errors == []


@pytest.mark.takes_seconds
def test_the_evidence_of_a_range_opens(watched: RecordedPage, base_url: str) -> None:
    watched.page.goto(f"{base_url}/ui/fit?model=llama-3.1-8b&gpu=h100")
    expect(watched.page.locator("#evidence")).to_be_hidden()
    watched.page.get_by_role("link", name="evidence").first.click()
    expect(watched.page.locator("#evidence")).to_be_visible()


@pytest.mark.takes_seconds
def test_without_scripts_a_configuration_is_pasted_and_answered(browser: Browser, base_url: str) -> None:
    with open_page(browser, java_script_enabled=False) as page:
        page.goto(f"{base_url}/ui/fit")
        page.get_by_role("link", name="config.json", exact=True).click()
        page.get_by_label("config.json of the model").fill(
            '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,\n'
            '"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}'
        )
        page.get_by_role("button", name="Find sizes").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^[0-9]+ sizes hold this llama model$"))
