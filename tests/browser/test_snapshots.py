"""The main pages look as they did when their snapshots were taken."""

import pytest
from PIL import Image
from playwright.sync_api import Browser

from app.settings import PROJECT
from tests.browser import snapshots
from tests.browser.conftest import VIEWPORTS, KeptPage
from tests.browser.snapshots import FONTS, MAX_SHARE, SNAPSHOTS, VERSION, Snapshot, share_that_differs, take

MAX_BYTES = 1_000_000


@pytest.mark.takes_seconds
@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=lambda one: one.file.stem)
def test_a_page_looks_as_it_did(browser: Browser, kept_page: KeptPage, base_url: str, snapshot: Snapshot) -> None:
    if not FONTS.exists():
        pytest.skip("the fonts of the pages are not bundled: make assets")
    recorded = VERSION.read_text(encoding="utf-8").strip()
    # A patch release draws the same pages: what it may change is within MAX_SHARE.
    if browser.version.partition(".")[0] != recorded:
        pytest.skip(f"snapshots are of Chromium {recorded}, and this is {browser.version}: make snapshots")
    path = PROJECT / "build" / "snapshots" / snapshot.file.name
    page = kept_page(snapshot.device, snapshot.theme, True).page
    page.set_viewport_size(VIEWPORTS[snapshot.device])
    now = take(page, base_url, snapshot, path)
    with Image.open(snapshot.file) as before:
        differs = share_that_differs(before, now)
    assert differs <= MAX_SHARE, f"{differs:.1%} of {snapshot.file} differ from {path}; if it should: make snapshots"


def test_a_missing_block_is_noticed_and_a_changed_figure_is_not() -> None:
    before = Image.new("RGB", (360, 225), "white")
    block, figure = before.copy(), before.copy()
    block.paste("#0d5f5c", (0, 0, 360, 8))
    figure.paste("#0d5f5c", (100, 100, 120, 104))
    assert share_that_differs(before, block) > MAX_SHARE
    assert 0 < share_that_differs(before, figure) <= MAX_SHARE
    assert share_that_differs(before, Image.new("RGB", (360, 224), "white")) == 1


def test_snapshots_are_small_and_all_are_compared() -> None:
    kept = set(snapshots.FOLDER.glob("*.png"))
    assert kept == {one.file for one in SNAPSHOTS}
    assert sum(file.stat().st_size for file in kept) < MAX_BYTES
