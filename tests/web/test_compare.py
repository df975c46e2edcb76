"""The comparison: differences with sign and word, missing values, disputes, links that change it, its errors."""

import re
from decimal import Decimal
from html import unescape

import httpx
import pytest

from tests.web.test_size_page import HTML, get, text_of

THREE = "/ui/compare?name=nd40rs_v2,nd96isr_h100_v5,d8s_v5"


def row(page: str, title: str) -> list[str]:
    """Return the cells of the row with a title, as text."""
    for head, cells in re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', page, re.DOTALL):
        if text_of(head).startswith(title):
            return [text_of(cell) for cell in re.findall(r"<td.*?</td>", cells, re.DOTALL)]
    raise AssertionError(title)


def test_differences_have_a_sign_a_percentage_and_a_word(client: httpx.Client) -> None:
    page = get(client, THREE)
    assert row(page, "vCPUs") == ["40", "96 ↑ +140 % better", "8 ↓ −80 % worse"]
    assert 'title="+56"' in page
    assert row(page, "On demand")[2].endswith("better")
    assert "±" not in page


def test_what_is_missing_stays_missing(client: httpx.Client) -> None:
    page = get(client, THREE)
    assert row(page, "NVMe disks")[0] == "– unknown"
    assert row(page, "NVMe disks")[1] == "28,672"
    assert row(page, "GPUs")[2].startswith("0 ↓ −100 %")


def test_what_a_size_cannot_have_is_not_unknown(client: httpx.Client) -> None:
    page = get(client, THREE)
    for title in ("GPU", "GPU memory on one GPU", "NVMe disks", "Price per GPU", "All GPUs: FP16"):
        assert row(page, title)[2] == "none", title


def test_a_disputed_value_is_marked_in_text(client: httpx.Client) -> None:
    memory = row(get(client, THREE), "GPU memory GiB")
    assert "disputed" in memory[0]
    assert "disputed" not in memory[1]


def test_the_baseline_can_be_another_size(client: httpx.Client) -> None:
    page = get(client, f"{THREE}&baseline=d8s_v5")
    assert row(page, "vCPUs") == ["40 ↑ +400 % better", "96 ↑ +1,100 % better", "8"]


def test_prices_and_differences_are_in_the_unit_and_currency_of_the_page(client: httpx.Client) -> None:
    page = get(client, f"{THREE}&unit=year&currency=EUR")
    api = client.get("/compare?size=nd40rs_v2&size=nd96isr_h100_v5&currency=EUR").json()["fields"]
    (values,) = [field["values"] for field in api if field["field"] == "on_demand_price_per_hour"]
    shown = row(page, "On demand")
    assert shown[0] == f"{Decimal(str(values[0]['value'])) * 8760:,.2f}"
    assert f'title="+{Decimal(str(values[1]["difference"])) * 8760:,.2f}"' in page
    assert "%" in shown[1]


def test_only_what_differs_can_be_shown(client: httpx.Client) -> None:
    page = get(client, "/ui/compare?name=nc24ads_a100_v4,nc40ads_h100_v5&differing=true")
    assert "GPU maker" not in page
    assert "fields in which no two known values differ" in page


def test_links_remove_a_size_choose_the_baseline_and_add_similar_ones(client: httpx.Client) -> None:
    page = get(client, THREE)
    urls = [unescape(url) for url in re.findall(r'href="([^"]+)"', page)]
    assert "?name=nd40rs_v2,d8s_v5" in urls
    assert "?name=nd40rs_v2,nd96isr_h100_v5,d8s_v5&baseline=d8s_v5" in urls
    added = [url for url in urls if url.startswith("?name=nd40rs_v2,nd96isr_h100_v5,d8s_v5,standard_")]
    assert added
    get(client, f"/ui/compare{added[0]}")


def test_the_form_of_the_search_page_leads_to_one_url(client: httpx.Client) -> None:
    answer = client.get("/ui/compare?name=Standard_D8s_v5&name=Standard_D4s_v5", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, "?name=standard_d8s_v5,standard_d4s_v5")


def test_a_page_takes_the_sizes_as_the_api_calls_them(client: httpx.Client) -> None:
    answer = client.get("/ui/compare?size=D8s_v5,d4s_v5&baseline=d4s_v5", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, "?name=d8s_v5,d4s_v5&baseline=d4s_v5")
    misspelled = client.get("/ui/compare?size=d8s_v55,d4s_v5", headers=HTML, follow_redirects=True)
    assert "Did you mean" in misspelled.text


def test_a_size_that_is_compared_is_not_proposed_and_a_repeated_name_is_taken_once(client: httpx.Client) -> None:
    page = get(client, "/ui/compare?name=nc24ads_a100_v4,nc40ads_h100_v5,nd96isr_h100_v5&region=westeurope")
    added = [
        url.rpartition(",")[2].removeprefix("standard_") for url in re.findall(r'href="([^"]+)" data-swap>\+ ', page)
    ]
    assert added
    assert not {"nc24ads_a100_v4", "nc40ads_h100_v5", "nd96isr_h100_v5"}.intersection(added)
    for names, once in (
        ("d8s_v5,d8s_v5", "d8s_v5"),
        ("d8s_v5,Standard_D8s_v5,d4s_v5&baseline=d4s_v5", "d8s_v5,d4s_v5&baseline=d4s_v5"),
    ):
        answer = client.get(f"/ui/compare?name={names.lower()}", headers=HTML)
        assert (answer.status_code, answer.headers["location"].rpartition("?")[2]) == (303, f"name={once}")


@pytest.mark.parametrize("path", ["/ui/compare?name=m5.large,n2-standard-4", "/?limit=1", "/ui/explore"])
def test_regions_of_one_name_are_offered_with_their_clouds(clouds: httpx.Client, path: str) -> None:
    offered = re.search(
        r'<datalist id="regions">(.*?)</datalist>|<select id="region"[^>]*>(.*?)</select>', get(clouds, path), re.DOTALL
    )
    assert offered
    titles = re.findall(r"<option[^>]*>([^<]+)</option>", offered[1] or offered[2])
    assert {"All regions, Lambda", "All regions, RunPod", "West Europe, Azure"} <= {*titles}
    assert len(titles) == len({*titles})


def test_sizes_without_a_price_in_a_region_say_so(clouds: httpx.Client) -> None:
    page = get(clouds, "/ui/compare?name=m5.large,n2-standard-4&region=westeurope&currency=EUR")
    note = page.partition('role="note">')[2].partition("</p>")[0]
    assert text_of(note).startswith("No price of these sizes is known, on demand, Linux, in West Europe.")
    (url,) = re.findall('href="([^"]+)"', note)
    priced = get(clouds, f"/ui/compare{unescape(url)}")
    assert 'role="note"' not in priced
    assert "unknown" not in row(priced, "On demand")[0]


def test_fewer_than_two_sizes_are_asked_for_more(client: httpx.Client) -> None:
    assert "Name at least two sizes" in get(client, "/ui/compare")
    one = get(client, "/ui/compare?name=d8s_v5")
    assert "Name one more size" in one
    assert "Add a similar size" in one


def test_the_best_of_each_row_is_marked_and_prices_of_a_gpu_come_first(client: httpx.Client) -> None:
    page = get(client, THREE)
    for title, best in {"vCPUs": [False, True, False], "Generation 2": [False, False, False]}.items():
        cells = page[page.index(f'<th scope="row">{title}') :].partition("</tr>")[0].split("<td")[1:]
        assert ['class="number best' in cell for cell in cells] == best
        assert ["<rect " in cell for cell in cells] == [any(best)] * 3
    titles = [text_of(head) for head in re.findall(r'<th scope="row">(.*?)</th>', page, re.DOTALL)]
    assert titles[0] == "Price per GPU"
    assert re.search(r"Price per unit <span class=\"unit\">\w+ an? \w+</span>", page)
    assert "TFLOPS" in titles[1]


def test_prices_are_those_of_a_country(client: httpx.Client) -> None:
    page = client.get("/ui/compare?name=d8s_v5,d4s_v5&country=DE", headers=HTML).text
    (size,) = client.get("/sizes?name=standard_d8s_v5&country=DE").json()["items"]
    assert "each in its cheapest region of DE, unusual prices aside" in page
    assert f"{size['usd_per_hour']:g}" in page


def test_sizes_are_added_to_a_comparison(client: httpx.Client) -> None:
    answer = client.get("/ui/compare?name=d8s_v5&add=d4s_v5,d2s_v5", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, "?name=d8s_v5,d4s_v5,d2s_v5")


def test_an_empty_comparison_has_examples(client: httpx.Client) -> None:
    examples = re.findall(r'<li><a href="(\?name=[^"]+)"', get(client, "/ui/compare"))
    assert len(examples) == 2
    for example in examples:
        assert "Compare 4 sizes" in get(client, f"/ui/compare{unescape(example)}")


def test_did_you_mean_leads_to_the_mended_comparison(client: httpx.Client) -> None:
    page = get(client, "/ui/compare?name=d8s_v5,nd40rs_v9&unit=month", status=422)
    found = re.search(r'Did you mean <a href="([^"]+)"', page)
    assert found is not None
    assert "Standard_ND40rs_v2" in get(client, f"/ui/compare{unescape(found[1])}")
    assert "unit=month" in found[1]


def test_an_unknown_size_is_named_at_the_field_which_keeps_what_was_sent(client: httpx.Client) -> None:
    page = get(client, "/ui/compare?name=d8s_v5,nd40rs_v9", status=422)
    assert 'value="d8s_v5,nd40rs_v9"' in page
    assert "Did you mean" in text_of(page)
    nine = ",".join(f"d{count}s_v5" for count in (2, 4, 8, 16, 32, 48, 64, 96)) + ",d2s_v3"
    assert 'id="name-error"' in get(client, f"/ui/compare?name={nine}", status=422)
