"""The hand-written SQL that the service is measured against gives the page that the service gives."""

import httpx
import pytest

from benchmarks.page_query import PRICED_TARGET, Rows, open_sqlite, page_sql, parameters
from tests.conftest import TODAY
from tests.databases import SELECTED_KINDS

pytestmark = pytest.mark.one_database  # the SQL is the same for each kind


@pytest.mark.skipif(SELECTED_KINDS[0] != "sqlite", reason="SQLite is not among the selected databases")
def test_a_page_by_hand_written_sql_is_that_of_the_service(client: httpx.Client, seeded_url: str) -> None:
    items = client.get(PRICED_TARGET).raise_for_status().json()["items"]
    names = list(items[0])
    rows = Rows(names)
    values = parameters(PRICED_TARGET) | {"today": TODAY.isoformat()}
    every = [rows.row(row) for row in open_sqlite(seeded_url).execute(page_sql(names), values)]
    ordered = {
        item["name"] for item in items
    }  # catalogs of benchmarks have no withdrawn sizes, which the SQL leaves in
    found = [row for row in every if row["name"] in ordered]
    assert len(items) > 5
    for one in (*found, *items):
        del one["price_age_days"]  # hand-written SQL has the age of today
    assert found == items
