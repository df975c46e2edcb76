"""The page of conflicts over HTTP: the disputed figures of the catalog, who says what, and filters with counts."""

import re
from html import unescape

import httpx
import pytest

HTML = {"accept": "text/html"}


def page(client: httpx.Client, url: str, status: int = 200) -> str:
    answer = client.get(url, headers=HTML)
    assert answer.status_code == status, answer.text
    return unescape(answer.text)


def rows(text: str) -> list[str]:
    """Return the rows of the table as text."""
    body = text.partition("<tbody")[2].partition("</tbody>")[0]
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in body.split('<tr role="row">')[1:]]


def conflicts(client: httpx.Client, query: str = "") -> set[tuple[str, ...]]:
    """Return the subject and the field of each conflict of the API, and of which offer a price is."""
    answer = client.get(f"/conflicts?limit=500{query}").json()
    return {tuple(item[name] for name in ("subject", "field", "region", "os", "purchase")) for item in answer["items"]}


def heading(text: str) -> int:
    return int(re.findall(r"<h1>(\d+) disputed figures?</h1>", text)[0])


def test_all_disputed_figures_of_the_api_are_there_each_once(client: httpx.Client) -> None:
    wanted = conflicts(client)
    first = page(client, "/ui/conflicts")
    assert heading(first) == len(wanted)
    full, rest = divmod(len(wanted), 50)
    others = [page(client, f"/ui/conflicts?page={number}") for number in range(2, full + 2)]
    assert full > 1
    assert [len(rows(text)) for text in (first, *others)] == [*[50] * full, rest]
    assert ['rel="next"' in text for text in (first, *others)] == [*[True] * full, False]


def test_a_price_on_which_two_lists_disagree_is_a_row(client: httpx.Client) -> None:
    (row,) = rows(page(client, "/ui/conflicts?subject=nv12ads_a10_v5&field=usd_per_hour"))
    assert row.startswith("NV12ads_A10_v5 price Price in centralus, linux, on demand")
    assert "Accepted 0.908 USD/h" in row
    assert "Others say 1.117 USD/h" in row
    assert row.endswith("last seen on 2026-06-18, the accepted one last seen on 2026-08-01")


def test_a_row_says_who_says_what_and_why_one_is_accepted(client: httpx.Client) -> None:
    (conflict,) = client.get("/conflicts?subject=v710").json()["items"]
    (row,) = rows(page(client, "/ui/conflicts?subject=v710"))
    assert row.startswith("v710 GPU Memory")
    assert f"{conflict['value']} GiB {conflict['source_title']}" in row
    said, why = conflict["reason"].split(", and ")
    assert row.endswith(why)
    assert said not in row
    assert "Accepted 24 GiB" in row


@pytest.mark.parametrize("query", ["field=max_nics", "subject=nd40rs_v2", "field=gpu_memory_gib_per_gpu"])
def test_filters_that_the_api_has_find_what_it_finds(client: httpx.Client, query: str) -> None:
    text = page(client, f"/ui/conflicts?{query}")
    assert heading(text) == len(conflicts(client, f"&{query}"))
    assert f'href="../conflicts?{query}"' in text


def test_a_series_is_its_sizes_and_itself(client: httpx.Client) -> None:
    sizes = {name.lower().removeprefix("standard_") for name in client.get("/series/nc").json()["sizes"]}
    wanted = {one for one in conflicts(client) if one[0] in sizes | {"nc"}}
    assert heading(page(client, "/ui/conflicts?series=nc")) == len(wanted) > 0


def test_the_count_beside_a_filter_is_what_it_finds(client: httpx.Client) -> None:
    text = page(client, "/ui/conflicts")
    counted = re.findall(r'<option value="([^"]+)">[^<]*\((\d+)\)</option>', text)
    field, of_field = next(one for one in counted if one[0] == "temp_disk_gib")
    assert heading(page(client, f"/ui/conflicts?field={field}")) == int(of_field)
    source, of_source = next(one for one in counted if one[0] == "nvadsa10v5-series-2022")
    assert heading(page(client, f"/ui/conflicts?source={source}")) == int(of_source)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("field=max_nic", "no such field; did you mean max_nics?"),
        ("source=wikipedia", "“wikipedia”: no such source"),
        ("series=nd_h1000", "“nd_h1000”: no such series"),
        ("subject=nd40rs_v9", "no size, series or GPU has this name"),
    ],
)
def test_an_unknown_name_is_an_error_at_its_field(client: httpx.Client, query: str, says: str) -> None:
    text = page(client, f"/ui/conflicts?{query}", 422)
    assert says in text
    assert f'id="{query.partition("=")[0]}' in text


def test_where_nothing_is_disputed_the_page_says_so(client: httpx.Client) -> None:
    assert "No disputed figure matches all of this" in page(client, "/ui/conflicts?series=dadsv5")
    assert "There are no more" in page(client, "/ui/conflicts?page=9")
