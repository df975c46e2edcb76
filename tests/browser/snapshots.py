"""`python -m tests.browser.snapshots [NAME ...]`: keep how the main pages look, which `test_snapshots.py` compares.

A snapshot is a screenshot at a quarter of its width and height: it shows layout and colours, in some kilobytes. Two are
alike where at most MAX_SHARE of their pixels differ by more than MAX_DIFFERENCE in a channel, which a figure that
changes does not reach, and rows that become a fifth higher do.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page

from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.browser.conftest import VIEWPORTS, Theme, launch, open_page
from tests.browser.pages import PAGES
from tests.conftest import TODAY
from tests.seeded import seeded_sqlite_url
from tests.servers import server

FOLDER = Path(__file__).with_name("snapshots")
VERSION = FOLDER / "chromium.txt"
"""The major version of Chromium that the snapshots were taken with."""
FONTS = PROJECT / "app/web/static/dist/fonts.css"

MAX_DIFFERENCE = 40
"""Of 255."""
MAX_SHARE = 0.02
_SCALE = 4
_COLOURS = 64


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of a page on a device in a theme."""

    state: str
    device: str
    theme: Theme

    @property
    def file(self) -> Path:
        """Return where the snapshot is kept."""
        return FOLDER / f"{self.state}-{self.device}-{self.theme}.png"


SNAPSHOTS = (
    Snapshot("search", "desktop", "light"),
    Snapshot("search-filtered", "phone", "dark"),
    Snapshot("size", "desktop", "dark"),
    Snapshot("size-retired", "phone", "light"),
    Snapshot("compare", "desktop", "light"),
    Snapshot("fit-model", "desktop", "light"),
    Snapshot("fit-service", "phone", "dark"),
    Snapshot("explore", "desktop", "dark"),
    Snapshot("retirement-plan", "desktop", "light"),
    Snapshot("retirements", "phone", "light"),
    Snapshot("conflicts", "desktop", "dark"),
)


def take(page: Page, base_url: str, snapshot: Snapshot, path: Path) -> Image.Image:
    """Take a snapshot by a page of its device and theme, and write it to a file."""
    state = next(one for one in PAGES if one.name == snapshot.state)
    page.goto(f"{base_url}{state.url}", wait_until="networkidle")
    page.evaluate("document.fonts.ready")
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, animations="disabled")
    with Image.open(path) as whole:
        small = whole.convert("RGB").reduce(_SCALE)
    small.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return small


def share_that_differs(one: Image.Image, other: Image.Image) -> float:
    """Return the share of pixels that differ by more than MAX_DIFFERENCE; all of them for another size."""
    if one.size != other.size:
        return 1.0
    first, second = (np.asarray(image.convert("RGB"), dtype=np.int16) for image in (one, other))
    return float((np.abs(first - second).max(axis=2) > MAX_DIFFERENCE).mean())


def main(names: list[str]) -> None:
    """Take the snapshots anew."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_sqlite_url()), today=lambda: TODAY)
    chosen = [one for one in SNAPSHOTS if not names or one.state in names]
    with server(service) as url, launch() as browser:
        for snapshot in chosen:
            with open_page(browser, viewport=VIEWPORTS[snapshot.device], color_scheme=snapshot.theme) as page:
                take(page, url, snapshot, snapshot.file)
        VERSION.write_text(f"{browser.version.partition('.')[0]}\n", encoding="utf-8")
    size = sum(file.stat().st_size for file in FOLDER.glob("*.png"))
    print(f"{len(chosen)} snapshots in {FOLDER}, {size / 1000:.0f} kB altogether")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
