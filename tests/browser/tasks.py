"""`python -m tests.browser.tasks`: clicks and seconds that twenty tasks take in Chromium, on a desktop and on a phone.

Typing into a field and Enter are no clicks; opening a group, a checkbox, a choice of a select and a link are one each.
What is found is compared with what the API says.
"""

import csv
import io
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import Error as BrowserError

from app.main import create_asgi_app
from app.settings import Settings
from tests.browser.conftest import VIEWPORTS, launch, open_page
from tests.conftest import TODAY
from tests.seeded import seeded_sqlite_url
from tests.servers import open_client, server

SOLD = "status=current,preview"
MISSPELLED = (
    *("standard-d8s-v5", "Standard_NC24ads_A100v4", "stnadard_d8s_v5", "ds8_v5", "h-100", "nvida h100", "nd96_h100"),
    *("D8 s v5", "a 100"),
)
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 8192,
}


@dataclass(slots=True)
class Visitor:
    """Somebody at a page, whose clicks are counted, and the API that knows the right answers."""

    page: Page
    api: httpx.Client
    url: str
    clicks: int = 0

    @property
    def is_on_phone(self) -> bool:
        """Return whether the filters are behind a button."""
        return self.page.viewport_size == VIEWPORTS["phone"]

    @property
    def heading(self) -> str:
        """Return the heading of the page."""
        return self.page.get_by_role("heading", level=1).inner_text()

    def click(self, target: Locator) -> None:
        """Click, and count it."""
        target.click()
        self.clicks += 1

    def choose(self, field: str, value: str) -> None:
        """Choose an option of a select by its value."""
        self.page.locator(f"select#{field}").select_option(value)
        self.clicks += 1
        self.answered(f"{field}=")

    def find(self, text: str, becomes: str) -> None:
        """Type into the box, press Enter, and wait for the answer, whose URL has a part."""
        self.page.locator("#q").fill(text)
        self.page.locator("#q").press("Enter")
        self.answered(becomes)

    def answered(self, part: str) -> None:
        """Wait until the answer is there whose URL has this part."""
        self.page.wait_for_url(lambda url: part in url)
        expect(self.page.locator("[aria-busy]")).to_have_count(0)

    def open_size(self) -> None:
        """Open the first size of the list."""
        self.click(self.page.locator("#compare tbody th a").first)
        self.page.wait_for_url("**/ui/sizes/**")

    def open_filters(self, group: str) -> None:
        """Open a group of filters."""
        if self.is_on_phone:
            self.click(self.page.get_by_role("button", name=re.compile("^Filters")))
        self.click(self.page.locator(f"#group-{group} > summary"))

    def first_size(self) -> str:
        """Return the name of the first size of the list."""
        return self.page.locator("#compare tbody tr").first.locator("input").get_attribute("value") or ""

    def ask(self, path: str) -> Any:
        """Return the API's answer."""
        return self.api.get(path).raise_for_status().json()

    def cheapest(self, query: str) -> str:
        """Return the name of the cheapest size that the API finds."""
        return str(self.ask(f"/sizes?{query}&{SOLD}&sort=usd_per_hour&limit=1")["items"][0]["name"])

    def count(self, query: str) -> str:
        """Return the heading of a list by what the API counts."""
        return f"{self.ask(f'/sizes?{query}&{SOLD}&limit=1')['total']:,} sizes"


Found = tuple[bool, str]
"""Whether the answer is right, and the answer."""


def cheapest_with_80_gb(visitor: Visitor) -> Found:
    """Find the cheapest size with 80 GB on one GPU in West Europe."""
    visitor.find("80gb westeurope", "region=westeurope")
    return visitor.first_size() == visitor.cheapest("region=westeurope&min_gpu_mem_per_gpu=80"), visitor.first_size()


def holds_llama_70b(visitor: Visitor) -> Found:
    """Find what holds Llama 3.3 70B in FP8 for 64 users."""
    visitor.find("llama 3.3 70b fp8 64 users", "/ui/fit")
    return bool(re.fullmatch(r"\d+ sizes hold Llama 3.3 70B", visitor.heading)), visitor.heading


def csv_of_h100(visitor: Visitor) -> Found:
    """Download the sizes with an H100 as they are shown."""
    visitor.find("h100", "gpu=h100")
    with visitor.page.expect_download() as download:
        visitor.click(visitor.page.get_by_role("link", name="CSV", exact=True))
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    name = download.value.suggested_filename
    return f"{len(rows)} sizes" == visitor.heading and "gpu-h100" in name, name


def comparison_of_three(visitor: Visitor) -> Found:
    """Compare three sizes with an A100."""
    visitor.find("a100", "gpu=a100")
    for number in range(3):
        visitor.click(visitor.page.locator("#compare tbody input").nth(number))
    visitor.click(visitor.page.get_by_role("button", name="Compare 3"))
    visitor.page.wait_for_url("**/ui/compare?**")
    return visitor.heading == "Compare 3 sizes", visitor.heading


def price_a_year_ago(visitor: Visitor) -> Found:
    """Find the prices of D8s_v5 in euro by region, a year ago and now."""
    visitor.find("d8s_v5 eur", "currency=EUR")
    visitor.open_size()
    visitor.click(visitor.page.get_by_role("link", name="Compare with a year ago"))
    visitor.answered("as_of=")
    heads = " ".join(visitor.page.locator("#price-table thead").inner_text().split())
    rows = visitor.page.locator("#price-table tbody tr:visible").count()
    return "since 2025-09-01" in heads and rows >= 3, heads


def successor_of_retiring(visitor: Visitor) -> Found:
    """Find the successors of a size that retires."""
    visitor.find("retiring", "status=retiring")
    visitor.open_size()
    text = visitor.page.locator("#successors").inner_text()
    return "Lost" in text and "Gained" in text, text.splitlines()[0]


def cheapest_with_64_vcpus(visitor: Visitor) -> Found:
    """Find the cheapest size with 64 vCPUs and no GPU, unusual prices aside."""
    visitor.find("64 vcpu cpu", "min_vcpus=64")
    return visitor.first_size() == visitor.cheapest("min_vcpus=64&max_gpus=0"), visitor.first_size()


def shared_link(visitor: Visitor) -> Found:
    """Open what is shown from its URL elsewhere."""
    visitor.find("h100 spot eur", "gpu=h100")
    with open_page(visitor.page.context.browser) as other:  # type: ignore[arg-type]
        other.goto(visitor.page.url)
        text = other.get_by_role("heading", level=1).inner_text()
    return text == visitor.heading, visitor.page.url.rpartition("/")[2]


def way_back(visitor: Visitor) -> Found:
    """Go back to the list of before."""
    visitor.find("h100", "gpu=h100")
    before = visitor.heading
    visitor.find("h100 spot westeurope", "purchase=spot")
    visitor.page.go_back()
    visitor.clicks += 1
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(before)
    return "purchase" not in visitor.page.url, before


def dispute_of_nd40rs_v2(visitor: Visitor) -> Found:
    """Read what sources say about the disputed figures of ND40rs_v2."""
    visitor.find("nd40rs_v2", "name=")
    visitor.click(visitor.page.get_by_role("button", name="disputed").first)
    text = " ".join(visitor.page.locator(".sources:popover-open").inner_text().split())
    return "GPU memory: 256 by" in text and "128 by" in text, text


def price_history(visitor: Visitor) -> Found:
    """See the price of D8s_v5 over time, with years."""
    visitor.find("d8s_v5", "name=")
    visitor.open_size()
    visitor.click(visitor.page.get_by_role("link", name="Price history", exact=True))
    chart = visitor.page.locator(".history svg.points")
    expect(chart).to_be_in_viewport()
    ticks = chart.locator("text:visible").all_text_contents()
    return any(re.search(r"20\d\d", tick) for tick in ticks), " ".join(ticks)


def cheapest_region(visitor: Visitor) -> Found:
    """Find the cheapest region of a size."""
    visitor.find("nc24ads_a100_v4", "name=")
    visitor.open_size()
    asked = "/sizes/nc24ads_a100_v4/prices?purchase=on_demand&os=linux&limit=500"
    usd = min(one["usd_per_hour"] for one in visitor.ask(asked)["items"] if not one["unusual"])
    row = " ".join(visitor.page.locator("#price-table tbody tr").first.inner_text().split())
    return f" {usd:g} " in row, row


def greatest_spot_saving(visitor: Visitor) -> Found:
    """Find the size of which spot saves most in West Europe, and how much."""
    visitor.find("h100 westeurope", "region=westeurope")
    visitor.open_filters("columns")
    visitor.click(visitor.page.locator("input[name=columns][value=spot_saving_percent]"))
    visitor.answered("spot_saving_percent")
    if visitor.is_on_phone:
        visitor.choose("sort", "-spot_saving_percent")
    else:
        visitor.click(visitor.page.get_by_role("link", name="Spot saving"))
    visitor.answered("sort=-spot_saving_percent")
    best = visitor.ask(f"/sizes?gpu=h100&region=westeurope&{SOLD}&sort=-spot_saving_percent&limit=1")["items"][0]
    saving = 100 - 100 * best["spot_usd_per_hour"] / best["on_demand_usd_per_hour"]
    row = " ".join(visitor.page.locator("#compare tbody tr").first.inner_text().split())
    return visitor.first_size() == best["name"] and f"{saving:.1f}" in row, f"{visitor.first_size()} {saving:.1f} %"


def fits_on_a_size(visitor: Visitor) -> Found:
    """See what models fit on a size."""
    visitor.find("nc24ads_a100_v4", "name=")
    visitor.open_size()
    visitor.click(visitor.page.get_by_role("link", name="What fits on it"))
    expect(visitor.page.locator("#capacity-table")).to_be_visible()
    rows = visitor.page.locator("#capacity-table tbody tr").count()
    return rows > 1, f"{rows} models"


def pasted_config(visitor: Visitor) -> Found:
    """Find what holds a model by its config.json."""
    visitor.page.goto(f"{visitor.url}/ui/fit?by=config")
    visitor.page.locator("textarea[name=config]").fill(json.dumps(CONFIG))
    visitor.click(visitor.page.locator("#question button[type=submit]").first)
    expect(visitor.page.get_by_role("heading", level=1)).to_contain_text("hold")
    return "sizes hold" in visitor.heading, visitor.heading


def arm(visitor: Visitor) -> Found:
    """Find the sizes with Arm."""
    visitor.find("arm", "arch=arm64")
    return visitor.heading == visitor.count("arch=arm64"), visitor.heading


def local_nvme(visitor: Visitor) -> Found:
    """Find the sizes with local NVMe disks."""
    visitor.open_filters("features")
    visitor.choose("local_nvme", "true")
    return visitor.heading == visitor.count("local_nvme=true") != "0 sizes", visitor.heading


def confidential(visitor: Visitor) -> Found:
    """Find the sizes for confidential computing with AMD SEV-SNP."""
    visitor.open_filters("features")
    options = visitor.page.locator("select#confidential_computing option").evaluate_all("all => all.map(o => o.value)")
    visitor.choose("confidential_computing", options[1])
    expected = visitor.count(f"confidential_computing={options[1]}")
    return visitor.heading == expected != "0 sizes", f"{options[1]}: {visitor.heading}"


def type_a100(visitor: Visitor) -> Found:
    """Type A100."""
    visitor.find("A100", "gpu=a100")
    return visitor.heading == visitor.count("gpu=a100"), visitor.heading


def misspellings(visitor: Visitor) -> Found:
    """Type names as people misspell them; each has to find something or name what is nearest."""
    missed = []
    for text in MISSPELLED:
        visitor.page.goto(visitor.url)
        visitor.page.locator("#q").fill(text)
        visitor.page.locator("#q").press("Enter")
        visitor.answered("=")
        if visitor.heading == "0 sizes" and not visitor.page.get_by_text("The nearest names").count():
            missed.append(text)
    return not missed, f"{len(MISSPELLED) - len(missed)} of {len(MISSPELLED)}"


Task = Callable[[Visitor], Found]
TASKS: tuple[Task, ...] = (
    *(cheapest_with_80_gb, holds_llama_70b, csv_of_h100, comparison_of_three, price_a_year_ago),
    *(successor_of_retiring, cheapest_with_64_vcpus, shared_link, way_back, dispute_of_nd40rs_v2),
    *(price_history, cheapest_region, greatest_spot_saving, fits_on_a_size, pasted_config),
    *(arm, local_nvme, confidential, type_a100, misspellings),
)
"""Tasks, each of which begins at the search page."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task."""

    right: bool
    answer: str
    clicks: int
    seconds: float


def run(browser: Browser, api: httpx.Client, url: str, task: Task, device: str) -> Outcome:
    """Do a task on a device."""
    with open_page(browser, viewport=VIEWPORTS[device]) as page:
        page.goto(url)
        visitor, start = Visitor(page, api, url), time.perf_counter()
        try:
            right, answer = task(visitor)
        except BrowserError as error:
            right, answer = False, error.message.splitlines()[0]
        return Outcome(right, answer, visitor.clicks, time.perf_counter() - start)


def main() -> None:
    """Print each task with its clicks, its seconds and what was found."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_sqlite_url()), today=lambda: TODAY)
    wrong = 0
    with server(service) as url, open_client(url) as api, launch() as browser:
        print(f"{'task':24} {'device':8} {'clicks':>6} {'seconds':>7}  found")  # noqa: T201
        for task in TASKS:
            for device in VIEWPORTS:
                found = run(browser, api, url, task, device)
                wrong += not found.right
                says = f"{'' if found.right else 'WRONG: '}{found.answer[:60]}"
                print(f"{task.__name__:24} {device:8} {found.clicks:6} {found.seconds:7.2f}  {says}")  # noqa: T201
    print(f"{2 * len(TASKS) - wrong} of {2 * len(TASKS)} right")  # noqa: T201


if __name__ == "__main__":
    main()
