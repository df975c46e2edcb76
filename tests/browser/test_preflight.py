"""The form of a preflight, whose fields are texts or files."""

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import RecordedPage

FILE = FilePayload(name="plan.csv", mimeType="text/csv", buffer=b"size,region,count\nd8s_v5,westeurope,3")


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(("files", "vcpus"), [([], "16"), ([FILE], "24")], ids=["text", "file"])
def test_a_pasted_text_or_a_file_in_its_place_is_sent(
    watched: RecordedPage, base_url: str, files: list[FilePayload], vcpus: str
) -> None:
    page = watched.page
    page.goto(f"{base_url}/ui/preflight")
    page.get_by_label("Plan", exact=True).fill("size,region,count\nd8s_v5,westeurope,2")
    page.get_by_label("Plan: a file").set_input_files(files)
    page.get_by_role("button", name="Check the plan").click()
    expect(page.locator("#quotas tbody tr").first).to_contain_text(vcpus)
