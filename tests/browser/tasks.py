"""`python -m tests.browser.tasks`: how many clicks and seconds eight tasks take in Chromium on the pages.

Typing into a field and Enter are no clicks; opening a group, a checkbox, a choice of a select and a link are one each.
A task whose page is not there is listed as such.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Browser, Locator, Page, expect

from app.main import create_asgi_app
from app.settings import Settings
from tests.browser.conftest import VIEWPORTS, launch, open_page
from tests.conftest import TODAY
from tests.seeded import seeded_sqlite_url
from tests.servers import server


@dataclass(slots=True)
class Visitor:
    """Somebody at a page, whose clicks are counted."""

    page: Page
    clicks: int = 0

    def click(self, target: Locator) -> None:
        """Click, and count it."""
        target.click()
        self.clicks += 1

    def choose(self, field: str, value: str) -> None:
        """Choose an option of a select by its value."""
        self.page.locator(f"select#{field}").select_option(value)
        self.clicks += 1

    def enter(self, field: str, text: str) -> None:
        """Type into a field."""
        self.page.locator(f"#{field}").fill(text)

    def send(self, field: str, text: str, becomes: str = "") -> None:
        """Type into a field, press Enter, and wait for the answer, whose URL has the field or what the text becomes."""
        self.enter(field, text)
        self.page.locator(f"#{field}").press("Enter")
        self.answered(f"{becomes or field}=")

    def answered(self, part: str) -> None:
        """Wait until the answer is there whose URL has this part."""
        self.page.wait_for_url(lambda url: part in url)
        expect(self.page.locator("[aria-busy]")).to_have_count(0)

    def sort_by_price(self) -> None:
        """Wait for a list that has the cheapest sizes first, as lists begin with."""
        expect(self.page.locator("th[aria-sort]")).to_contain_text("Price")

    def first_size(self) -> str:
        """Return the name of the first size of the list."""
        return self.page.locator("#compare tbody tr").first.locator("input").get_attribute("value") or ""


@dataclass(frozen=True, slots=True)
class Task:
    """A task that begins at the search page."""

    name: str
    do: Callable[[Visitor], str]


def cheapest_with_80_gb(visitor: Visitor) -> str:
    """Return the cheapest size with 80 GB on one GPU in West Europe."""
    visitor.send("region", "westeurope")
    visitor.send("min_gpu_mem_per_gpu", "80")
    visitor.sort_by_price()
    return visitor.first_size()


def holds_llama_70b(visitor: Visitor) -> str:
    """Return how many sizes hold Llama 3.3 70B in FP8 for 64 users."""
    visitor.click(visitor.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Fit"))
    visitor.enter("model", "llama-3.3-70b")
    visitor.choose("dtype", "fp8")
    visitor.send("concurrency", "64")
    return visitor.page.get_by_role("heading", level=1).inner_text()


def dispute_of_nd40rs_v2(visitor: Visitor) -> str:
    """Return what sources say about the disputed figures of ND40rs_v2."""
    visitor.send("q", "nd40rs_v2", "name")
    visitor.click(visitor.page.get_by_role("button", name="disputed").first)
    return visitor.page.locator(".sources:popover-open").inner_text()


def csv_of_h100(visitor: Visitor) -> str:
    """Return the CSV file of all sizes with an H100."""
    visitor.click(visitor.page.locator("input[name=gpu][value=H100]"))
    visitor.answered("gpu=")
    with visitor.page.expect_download() as download:
        visitor.click(visitor.page.get_by_role("link", name="CSV", exact=True))
    return download.value.path().read_bytes().decode()


def comparison_of_three(visitor: Visitor) -> str:
    """Return the sizes of a comparison of the three first with an A100."""
    visitor.send("q", "a100", "gpu")
    for number in range(3):
        visitor.click(visitor.page.locator("#compare tbody input").nth(number))
    visitor.click(visitor.page.get_by_role("button", name="Compare 3"))
    visitor.page.wait_for_url("**/ui/compare?**")
    return visitor.page.locator("main table thead").first.inner_text()


def price_a_year_ago(visitor: Visitor) -> str:
    """Return the prices of D8s_v5 in euro by region, a year ago and now."""
    visitor.send("q", "standard_d8s_v5", "name")
    visitor.click(visitor.page.locator("#compare tbody th a").first)
    visitor.page.wait_for_url("**/ui/sizes/standard_d8s_v5")
    visitor.choose("currency", "EUR")
    visitor.answered("currency=EUR")
    visitor.send("region", "westeurope")
    visitor.click(visitor.page.get_by_role("link", name="Compare with a year ago"))
    visitor.answered("as_of=")
    return visitor.page.locator("#price-table").inner_text()


def successor_of_retiring(visitor: Visitor) -> str:
    """Return the successors of the first size that retires."""
    visitor.click(visitor.page.locator("#group-status > summary"))
    visitor.click(visitor.page.get_by_role("checkbox", name="retiring"))
    visitor.answered("status=retiring")
    visitor.click(visitor.page.locator("#compare tbody th a").first)
    return visitor.page.locator("#successors").inner_text()


def cheapest_with_64_vcpus(visitor: Visitor) -> str:
    """Return the cheapest size with 64 vCPUs and no GPU."""
    visitor.enter("max_gpus", "0")
    visitor.enter("max_vcpus", "64")
    visitor.send("min_vcpus", "64")
    visitor.sort_by_price()
    return visitor.first_size()


TASKS = (
    Task("cheapest size with 80 GB on one GPU in West Europe", cheapest_with_80_gb),
    Task("everything that holds Llama 3.3 70B in FP8 for 64 users", holds_llama_70b),
    Task("where two sources disagree about ND40rs_v2", dispute_of_nd40rs_v2),
    Task("CSV of the sizes with an H100", csv_of_h100),
    Task("compare three sizes", comparison_of_three),
    Task("price of D8s_v5 in euro by region, a year ago and now", price_a_year_ago),
    Task("successor of a size that retires", successor_of_retiring),
    Task("cheapest VM with 64 vCPUs and no GPU", cheapest_with_64_vcpus),
)


def run(browser: Browser, url: str, task: Task) -> tuple[str, int, float]:
    """Do a task on a desktop; return what was found, the clicks and the seconds."""
    with open_page(browser, viewport=VIEWPORTS["desktop"]) as page:
        page.goto(url)
        visitor, start = Visitor(page), time.perf_counter()
        found = task.do(visitor)
        return found, visitor.clicks, time.perf_counter() - start


def main() -> None:
    """Print each task with its clicks, its seconds and what was found."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_sqlite_url()), today=lambda: TODAY)
    with server(service) as url, launch() as browser:
        print(f"{'task':56} {'clicks':>6} {'seconds':>7}  found")  # noqa: T201
        for task in TASKS:
            found, clicks, seconds = run(browser, url, task)
            print(f"{task.name:56} {clicks:6} {seconds:7.2f}  {' '.join(found.split())[:60]}")  # noqa: T201


if __name__ == "__main__":
    main()
