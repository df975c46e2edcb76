"""`python -m tests.browser.clicking [WALKS]`: clicks on the search page faster than the server answers.

A walk is drawn from its number: filters, orders, pages, and sizes to compare, each some time after the one before,
while each answer takes a time of its own, so that a later one often overtakes an earlier one. What is lost is said.
"""

import asyncio
import random
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as NotThere

from app.main import create_asgi_app
from app.settings import Settings
from tests.browser.conftest import VIEWPORTS, launch, open_page
from tests.conftest import TODAY
from tests.seeded import seeded_sqlite_url
from tests.servers import server

PAUSES_MS, LATENCIES_MS = (0, 600), (50, 1000)
STEPS = 7
CHECKS = {"gpu": ("A100", "H100", "T4", "A10"), "category": ("gpu_accelerated", "memory_optimized")}
BOUNDS = {"min_gpu_mem_per_gpu": ("16", "24", "80"), "min_vcpus": ("4", "16"), "max_memory": ("900", "2000")}
SELECTS = {"arch": ("x64",), "purchase": ("spot", "on_demand"), "os": ("windows", "linux"), "unit": ("month", "hour")}
DEFAULTS = {"purchase": "on_demand", "os": "linux", "unit": "hour"}


class SlowService:
    """The service over the catalog of seeds/, whose search page waits for `latency_ms()` before each answer."""

    def __init__(self) -> None:
        settings = Settings(_env_file=None, database_url=seeded_sqlite_url())
        self._service: Any = create_asgi_app(settings, today=lambda: TODAY)
        self.latency_ms: Callable[[], float] = lambda: 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, late."""
        if scope["type"] == "http" and scope["path"] == "/":
            await asyncio.sleep(self.latency_ms() / 1000)
        await self._service(scope, receive, send)


class Walk:
    """One walk, and what its clicks ask for."""

    def __init__(self, page: Page, number: int) -> None:
        self.page, self.random = page, random.Random(number)
        self.wanted: dict[str, set[str]] = {}
        self.compared: list[str] = []
        self.steps: list[str] = []

    def go(self) -> None:
        """Click some times."""
        for _ in range(STEPS):
            step = self.random.choice((self.check, self.check, self.bound, self.choose, self.sort, self.compare))
            try:
                step()
            except NotThere:
                self.steps.append(f"not there: {step.__name__}")  # an answer without rows, for example
            self.page.wait_for_timeout(self.random.uniform(*PAUSES_MS))

    def check(self) -> None:
        """Check or uncheck a value of a filter, in the panel or, if it is there, by its chip."""
        name = self.random.choice(tuple(CHECKS))
        value = self.random.choice(CHECKS[name])
        box = self.page.locator(f'#filters input[name="{name}"][value="{value}" i]')
        box.evaluate("box => box.closest('details').open = true", timeout=2000)
        box.click(timeout=2000)
        self.wanted.setdefault(name, set()).symmetric_difference_update({value.lower()})
        self.steps.append(f"{name}={value}")

    def bound(self) -> None:
        """Type a bound and press Enter."""
        name = self.random.choice(tuple(BOUNDS))
        value = self.random.choice(BOUNDS[name])
        field = self.page.locator(f"#{name}")
        field.fill(value, timeout=2000)
        field.press("Enter", timeout=2000)
        self.wanted[name] = {value}
        self.steps.append(f"{name}={value}")

    def choose(self) -> None:
        """Choose an option of a select."""
        name = self.random.choice(tuple(SELECTS))
        value = self.random.choice(SELECTS[name])
        self.page.locator(f"select#{name}").select_option(value, timeout=2000, force=True)
        self.wanted[name] = {value} - {DEFAULTS.get(name)}
        self.steps.append(f"{name}={value}")

    def sort(self) -> None:
        """Sort by a header; which way around is the page's."""
        title, key = self.random.choice((("vCPUs", "vcpus"), ("Memory", "memory_gib")))
        self.page.locator("#compare thead").get_by_role("link", name=title, exact=True).click(timeout=2000)
        self.wanted["sort"] = {key}
        self.steps.append(f"sort by {key}")

    def compare(self) -> None:
        """Check a row, which stays checked whatever is shown next."""
        box = self.page.locator("[data-compared]:not(:checked):not(:disabled)").first
        if len(self.compared) < 4:  # more would be a matter of the most that can be compared
            box.click(timeout=2000)
            self.compared = self.page.evaluate("JSON.parse(sessionStorage.getItem('compared'))")
            self.steps.append(f"compare {self.compared[-1]}")

    def lost(self) -> list[str]:
        """Wait for the last answer, and return what is not as it was asked for."""
        expect(self.page.locator("[aria-busy]")).to_have_count(0)
        query = {name: set(value.lower().split(",")) for name, value in parse_qsl(urlsplit(self.page.url).query)}
        query["sort"] = {value.removeprefix("-") for value in query.get("sort", set())}
        wanted = {name: values for name, values in self.wanted.items() if values}
        shown = {name: values for name, values in query.items() if values}
        if "sort" not in wanted:
            shown.pop("sort", None)
        lost = [] if shown == wanted else [f"asked for {wanted}, the URL has {shown}"]
        form = self.page.evaluate("Object.fromEntries(new FormData(document.getElementById('filters')))")
        lost += [
            f"the field {name} has {form.get(name)}"
            for name, values in wanted.items()
            if name not in CHECKS and name != "sort" and form.get(name) not in values
        ]
        kept = self.page.evaluate("JSON.parse(sessionStorage.getItem('compared') ?? '[]')")
        checked = self.page.locator("[data-compared]:checked").evaluate_all("boxes => boxes.map(box => box.value)")
        if kept != self.compared or not set(checked) <= set(kept):
            lost.append(f"compared are {kept} and checked {checked}, asked for {self.compared}")
        return [f"{problem} after {self.steps}" for problem in lost]


def walk(browser: Browser, url: str, service: SlowService, number: int) -> list[str]:
    """Go on one walk; return what it lost."""
    latencies = random.Random(number)
    service.latency_ms = lambda: 0
    with open_page(browser, viewport=VIEWPORTS["desktop"]) as page:
        page.goto(url)
        service.latency_ms = lambda: latencies.uniform(*LATENCIES_MS)
        walked = Walk(page, number)
        walked.go()
        return walked.lost()


def main(walks: int) -> None:
    """Go on walks, and print what they lost."""
    losing = 0
    service = SlowService()
    with server(service) as url, launch() as browser:
        for number in range(walks):
            lost = walk(browser, url, service, number)
            losing += bool(lost)
            for problem in lost:
                print(f"walk {number}: {problem}")  # noqa: T201
    print(f"{losing} of {walks} walks lost something")  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
