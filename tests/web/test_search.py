"""The search page over HTTP: it shows what the API answers, and every filter has a place."""

import re
from decimal import Decimal
from html import unescape
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from app.catalog.providers import PROVIDERS
from app.catalog.queries.params import SizeFilter, SizeSearch
from app.web import filter_panel
from app.web.rendering import format_age, format_amount, format_money, format_number
from app.web.sizes_view import SizesView

HTML = {"accept": "text/html"}


def get(client: httpx.Client, url: str) -> str:
    answer = client.get(url, headers=HTML)
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


def rows(page: str) -> list[str]:
    """Return the rows of the table as text."""
    body = page.partition('id="compare"')[2].partition("<tbody")[2].partition("</tbody>")[0]
    plain = re.sub(r'<div class="sources".*?</div>', " ", body, flags=re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in plain.split('<tr role="row">')[1:]]


def api_query(query: str) -> str:
    """Return the query of `GET /sizes` for the list of a page, with its default order and statuses."""
    sort = "" if "sort=" in query else "&sort=usd_per_hour"
    return f"{query}{sort}" + ("" if "status=" in query or "q=" in query else "&status=current,preview")


def test_every_filter_of_the_api_is_in_the_panel(client: httpx.Client) -> None:
    filters = SizeFilter.model_fields.keys() | {"as_of", "known_at"}
    assert set(filter_panel.FILTER_NAMES) == filters
    page = get(client, "/")
    for name in filters:
        assert f'name="{name}"' in page, name
        assert filter_panel.title_of(name), name
    assert SizesView.model_fields.keys() >= SizeSearch.model_fields.keys() - {"cursor", "fields"}


@pytest.mark.parametrize("url", ["/", "/ui/explore"])
def test_series_to_choose_have_their_number_of_sizes(client: httpx.Client, url: str) -> None:
    options = get(client, url).partition('<datalist id="series-list">')[2].partition("</datalist>")[0]
    counts = re.findall(r">(\d+) (sizes?)<", options)
    assert len(counts) == options.count("<option")
    assert {word for number, word in counts if number == "1"} == {"size"}
    assert {word for number, word in counts if number != "1"} == {"sizes"}


@pytest.mark.parametrize(
    "query",
    [
        "gpu=H100&sort=-usd_per_hour&status=any",
        "min_vcpus=64&max_gpus=0&region=westeurope&limit=25",
        "purchase=spot&q=d16a",
    ],
)
def test_the_page_has_the_sizes_of_the_api_in_its_order(client: httpx.Client, query: str) -> None:
    answer: Any = client.get(f"/sizes?{api_query(query)}").json()
    page = get(client, f"/?{query}")
    assert re.findall(r'name="name" value="([^"]+)"', page) == [item["name"] for item in answer["items"]]
    assert f"<h1>{answer['total']:,} sizes</h1>" in page


def test_pages_have_numbers_and_follow_each_other(client: httpx.Client) -> None:
    names: list[str] = []
    for number in (1, 2, 3):
        page = get(client, f"/?limit=10&sort=-usd_per_hour{f'&page={number}' if number > 1 else ''}")
        names += re.findall(r'name="name" value="([^"]+)"', page)
    answer: Any = client.get(f"/sizes?{api_query('limit=30&sort=-usd_per_hour')}").json()
    assert names == [item["name"] for item in answer["items"]]
    assert 'rel="prev" href="?sort=-usd_per_hour&limit=10&page=2"' in page
    assert "There are no more sizes" in get(client, "/?page=5000")


def test_the_link_for_programs_leads_to_the_same_page(client: httpx.Client) -> None:
    for query in (
        "limit=10&sort=-usd_per_hour&page=3",
        "limit=25&gpu=A10&sort=gpu_count",
        "limit=5&min_gpu_mem=80&page=4",
    ):
        page = get(client, f"/?{query}")
        found = re.search(r'href="\./(sizes\?[^"]+)"', page)
        assert found is not None
        items = client.get(f"/{found[1]}").json()["items"]
        assert [item["name"] for item in items] == re.findall(r'name="name" value="([^"]+)"', page)


def test_a_price_is_shown_by_unit_divisor_and_currency(client: httpx.Client) -> None:
    (item,) = client.get("/sizes?name=*nc48ads_a100_v4&currency=EUR").json()["items"]
    usd = Decimal(str(item["usd_per_hour"]))
    columns = "columns=price&name=*nc48ads_a100_v4"
    for query, amount in {
        "unit=hour": usd,
        "unit=month": usd * 730,
        "unit=year": usd * 8760,
        "per=gpu": usd / 2,
        "per=vcpu": usd / 48,
        "unit=day&per=gpu_gib": usd * 24 / 160,
    }.items():
        (row,) = rows(get(client, f"/?{columns}&{query}".replace("&unit=hour", "")))
        assert f" {format_amount(amount)}" in row, (row, amount)
    (row,) = rows(get(client, f"/?{columns}&currency=EUR&per=gpu"))
    converted = item["converted"]["price_per_gpu_hour"]
    assert f" {format_amount(Decimal(str(converted)))}" in row


def test_a_figure_divided_by_an_unknown_one_is_unknown(client: httpx.Client) -> None:
    (row,) = rows(get(client, "/?columns=price&per=vcpu&name=Standard_ND96isf_H100_v5"))
    assert row.endswith("– unknown")


def test_a_list_is_in_the_order_of_the_prices_that_it_shows(client: httpx.Client) -> None:
    query = "per=vcpu&region=westeurope&category=memory_optimized&limit=500&columns=price"
    page = get(client, f"/?{query}")
    prices = re.findall(r'class="number price" data-title="[^"]*">([\d.]+)', page)
    assert len(prices) > 100
    assert [float(price) for price in prices] == sorted(map(float, prices))
    assert re.search(r'aria-sort="ascending"><a href="[^"]*sort=-usd_per_vcpu_hour[^"]*"[^>]*>per vCPU', page)


def test_a_disputed_size_names_the_sources_and_what_they_say(client: httpx.Client) -> None:
    page = get(client, "/?name=Standard_ND40rs_v2&status=any")
    assert re.search(r"<li>GPU memory: 256 by [^;]+; 128 by ", page)
    assert "gpu_memory_gib" not in page[page.index("Sources disagree on") : page.index("What each source says")]
    assert 'href="./ui/sizes/standard_nd40rs_v2#sources"' in page


def test_the_same_list_is_there_for_programs(client: httpx.Client) -> None:
    page = get(client, "/?gpu=A100&currency=EUR&limit=25&unit=month&columns=price")
    links = re.findall(r'class="button" href="\./(sizes[^"]+)"', page)
    assert [link.partition("?")[0] for link in links] == ["sizes.csv", "sizes", "sizes.parquet"]
    for link in links:
        assert client.get(f"/{link}").status_code == 200
    assert client.get(f"/{links[1]}").json()["items"][0]["converted"]["currency"] == "EUR"


@pytest.mark.parametrize(
    ("query", "words", "count"),
    [
        ("gpu=H100&min_vcpus=1000&region=westeurope", "vCPUs ≥ 96 instead of 1,000", 2),
        ("gpu=A10&max_gpus=0.1", "GPUs ≤ 1/6 instead of 0.1", 1),
        ("name=Standard_NC6", "with retired and withdrawn sizes", 1),
        ("name=Standard_D8s_v5&region=westeurope&as_of=2020-01-01", "without Prices on 2020-01-01", 1),
        ("name=Standard_NC24ads_A100_v4&status=preview", "without Status preview", 1),
        ("gpu=K80&min_vcpus=100000", "without vCPUs ≥ 100,000, with retired and withdrawn sizes", 8),
    ],
)
def test_an_empty_result_links_to_the_nearest_search_that_finds_something(
    client: httpx.Client, query: str, words: str, count: int
) -> None:
    page = get(client, f"/?{query}")
    assert "No size is known to match all of this" in page
    found = re.search(rf'<a href="([^"]+)"[^>]*>{re.escape(words)}</a> <span class="muted">{count} sizes?</span>', page)
    assert found is not None
    assert len(rows(get(client, f"/{found[1]}"))) == count


@pytest.mark.parametrize("query", ["country=FR&confidential_computing=SNP", "country=JP&gpu=MI300X"])
def test_a_country_is_left_out_as_a_country_and_not_as_its_regions(client: httpx.Client, query: str) -> None:
    page = get(client, f"/?{query}")
    offers = re.findall(r'<a href="([^"]+)"[^>]*>(without [^<]+)</a> <span class="muted">([\d,]+) sizes?</span>', page)
    assert any("Price in" in words for _, words, _ in offers)
    for link, _, count in offers:
        asked = client.get(f"/sizes{unescape(link)}&limit=1&status=preview,current").json()  # as pages do
        assert asked["total"] == int(count.replace(",", ""))


def test_other_regions_are_no_way_out_where_none_has_a_price(client: httpx.Client) -> None:
    page = get(client, "/?region=westeurope&as_of=2020-01-01")
    assert "without Prices on 2020-01-01" in page
    assert "without Price in" not in page


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("provider=oci,aws", "AWS, Oracle Cloud"),
        ("min_vcpus=8&max_vcpus=16", "vCPUs ≥ 8, vCPUs ≤ 16"),
        ("region=westeurope&as_of=2020-01-01", "West Europe, Prices on 2020-01-01"),
        ("name=standard_d8s_v5&os=windows", "Windows, Name standard_d8s_v5"),
    ],
)
def test_chips_and_the_title_say_what_is_filtered_by(clouds: httpx.Client, query: str, title: str) -> None:
    page = get(clouds, f"/?{query}")
    assert f"<title>{title} · Search · vmsizes</title>" in page
    assert all(f"</span> {name}</a>" in page for name in ("AWS", "Oracle Cloud")) == ("oci" in query)


def test_filters_and_errors_are_in_the_words_of_the_page(clouds: httpx.Client) -> None:
    empty = clouds.get("/?name=m5.large&region=westeurope", headers=HTML).text
    assert "without Price in West Europe</a>" in empty
    chips = clouds.get("/?category=gpu_accelerated", headers=HTML).text
    assert '<span class="of">Type</span> GPU accelerated' in chips
    other = clouds.get("/?provider=aws&region=westeurope", headers=HTML)
    assert other.status_code == 422
    assert "region: “westeurope”: is a region of Azure, not of AWS</a>" in other.text
    unknown = clouds.get("/?columns=colour", headers=HTML).text
    assert re.search(r"allowed are (\w+, ){8}and \d+ others", unknown)


def test_a_header_sorts_and_says_how_the_table_is_sorted(client: httpx.Client) -> None:
    page = get(client, "/?sort=-vcpus&limit=25")
    assert re.search(
        r'role="columnheader" class="number" aria-sort="descending"><a href="\?sort=vcpus&limit=25"[^>]*>vCPUs',
        page,
    )
    assert re.search(r'<th scope="col" role="columnheader"><a href="\?sort=name&limit=25"[^>]*>Size', page)
    assert re.search(r'aria-sort="ascending"><a href="\?sort=-usd_per_hour"[^>]*>Price', get(client, "/"))


def test_sizes_that_retire_are_left_out_and_counted_unless_they_are_asked_for(client: httpx.Client) -> None:
    page = get(client, "/?limit=500")
    found = re.search(r'([\d,]+) retiring sizes are hidden. <a href="([^"]+)"', page)
    assert found is not None
    assert found[1] == f"{client.get('/sizes?status=retiring&limit=1').json()['total']:,}"
    assert not any("retires" in row for row in rows(page))
    assert f"<h1>{client.get('/sizes?limit=1').json()['total']:,} sizes</h1>" in get(client, f"/{found[2]}")
    (row,) = rows(get(client, "/?name=Standard_NV12s_v3"))
    assert "retires" in row


@pytest.mark.parametrize(
    ("query", "kind", "headers"),
    [
        ("", "All sizes", ("GPU", "Processor")),
        ("?category=gpu_accelerated", "With GPU", ("GPUs", "GPU memory")),
        ("?gpu=h100", "With GPU", ("GPUs", "GPU memory")),
        ("?max_gpus=0", "Without GPU", ("Processor", "Network")),
    ],
)
def test_each_kind_of_sizes_has_columns_of_its_own(
    client: httpx.Client, query: str, kind: str, headers: tuple[str, ...]
) -> None:
    page = get(client, f"/{query}")
    assert re.search(rf'aria-current="true"[^>]*>{kind}</a>', page)
    head = re.sub(r"<[^>]+>", " ", page.partition('id="compare"')[2].partition("</thead>")[0])
    assert all(header in head for header in headers)
    assert ("GPU memory" in head) == (kind == "With GPU")
    shown = re.findall(r'name="columns" value="(\w+)" checked', page)
    separator = "&" if query else "?"
    answer = client.get(f"/{query}{separator}columns={','.join(shown)}", headers=HTML, follow_redirects=False)
    assert answer.headers["location"] == (query or "./")


def test_every_row_names_its_cloud_where_the_catalog_has_several(clouds: httpx.Client, client: httpx.Client) -> None:
    for query in ("", "?gpu=h100", "?gpu=h100&provider=aws", "?max_gpus=0"):
        page = get(clouds, f"/{query}")
        named = re.findall(r'data-title="Cloud">([^<]+)</td>', page)
        assert len(named) == len(rows(page)) > 0
        assert set(named) <= {provider.name for provider in PROVIDERS.values()}
    assert 'data-title="Cloud' not in get(client, "/?gpu=h100")


def test_a_size_and_a_comparison_are_at_the_prices_of_the_list(client: httpx.Client) -> None:
    listed = get(client, "/?gpu=t4&os=windows&currency=EUR&region=westeurope,eastus&as_of=2026-08-01")
    links = set(re.findall(r'href="./ui/sizes/[\w.]+(\?[^"]*)"', listed))
    assert links == {"?currency=EUR&os=windows&as_of=2026-08-01&region=eastus"}
    form = listed.partition('id="compare"')[2].partition("</form>")[0]
    sent = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    query = {"region": "eastus,westeurope", "os": "windows", "currency": "EUR", "as_of": "2026-08-01"}
    assert dict(sent) == query
    compared = get(client, f"/ui/compare?{urlencode(query)}&name=nc4as_t4_v3,nc8as_t4_v3")
    assert re.search(r'ui/sizes/standard_nc4as_t4_v3\?currency=EUR&os=windows&as_of=2026-08-01"', compared)
    assert 'name="country" value="DE"' in get(client, "/ui/compare?country=DE&name=nc4as_t4_v3,nc8as_t4_v3")
    assert "?" not in "".join(re.findall(r'href="./ui/sizes/([^"]*)"', get(client, "/?gpu=t4")))


def test_names_are_in_natural_order(client: httpx.Client) -> None:
    for query in ("sort=name&series=dv5", "sort=-name&series=dv5&limit=5&page=2"):
        names = re.findall(r'name="name" value="Standard_D(\d+)_v5"', get(client, f"/?{query}"))
        assert len(names) >= 3
        assert names == sorted(names, key=int, reverse="-name" in query)


def test_suggestions_go_on_with_the_last_word_and_count_what_they_find(client: httpx.Client) -> None:
    found = client.get("/ui/suggestions?q=spot%20h100").json()
    assert found[0]["value"] == "spot h100"
    count = int(re.findall(r"GPU, (\d+) sizes?", found[0]["label"])[0])
    assert f"<h1>{count} size" in get(client, "/?gpu=h100")
    (region,) = client.get("/ui/suggestions?q=h100%20westeu").json()
    assert region["value"] == "h100 westeurope"
    names = client.get("/ui/suggestions?q=d8s_v&sizes=true").json()
    assert names[0] == {"value": "Standard_D8s_v3", "label": ""}
    assert client.get("/ui/suggestions?q=zzz").json() == []


def test_decimal_points_of_prices_are_below_each_other(client: httpx.Client) -> None:
    page = get(client, "/?limit=25")
    amounts = re.findall(r'<td role="cell" class="number price"[^>]*>([\d.,\u2007]+)', page)
    assert len({len(amount.partition(".")[2]) for amount in amounts}) == 1
    assert len({len(amount.rstrip("\u2007").partition(".")[2]) for amount in amounts}) > 1


def test_figures_are_written_for_people() -> None:
    assert [format_number(value) for value in (None, 0, 0.75, 1536, 94.0)] == ["–", "0", "0.75", "1,536", "94"]
    assert format_number(80, "GiB") == "80\u00a0GiB"
    amounts = ("3.673", "0.0052", "172.0488", "2681.29", "0", "20", "27.197")
    shown = ["3.673", "0.0052", "172.05", "2,681.29", "0.00", "20.00", "27.197"]
    assert [format_amount(Decimal(amount)) for amount in amounts] == shown
    assert [format_money(Decimal("1.5"), currency) for currency in ("USD", "EUR", "CHF")] == [
        "$1.50",
        "€1.50",
        "CHF 1.50",
    ]
    assert [format_age(days) for days in (None, 0, 10, 92, 900)] == [
        "–",
        "today",
        "10\u00a0d",
        "3\u00a0mo",
        "2.5\u00a0y",
    ]


def test_a_page_without_a_price_says_where_prices_are_known(client: httpx.Client) -> None:
    note = "Linux, reserved, 3 years: no price is known in westeurope, only in polandcentral"
    assert f"{note}; vmsizes refresh azure-prices brings the others</p>" in get(
        client, "/?gpu=A100&region=westeurope&purchase=reserved_3y"
    )
    assert "no price is known" not in get(client, "/?gpu=A100&region=westeurope")


def test_a_family_of_gpus_has_the_number_of_sizes_that_it_finds_and_its_kinds_below(client: httpx.Client) -> None:
    page = get(client, "/")
    checks = re.findall(r'<label class="check(| below)">\s*<input type="checkbox" name="gpu" value="([^"]+)"', page)
    at = checks.index(("", "A100"))
    assert checks[at + 1][0] == " below"
    (count,) = re.findall(r'name="gpu" value="A100".*?<span class="count">(\d+)</span>', page, re.DOTALL)[:1]
    assert f"<h1>{count} sizes</h1>" in get(client, "/?gpu=a100")


@pytest.mark.parametrize(
    ("query", "column", "says"),
    [
        ("min_vcpus=8", "vCPUs", ">=8"),
        ("max_vcpus=64&min_vcpus=8", "vCPUs", "8..64"),
        ("max_vcpus=64", "vCPUs", "<=64"),
        ("min_vcpus=8&max_vcpus=8", "vCPUs", "8"),
        ("region=westeurope", "Region", "westeurope"),
        ("cpu=epyc*", "Processor", "epyc*"),
        ("min_memory=abc", "Memory", "abc"),
        ("min_memory=1TiB", "Memory", ">=1TiB"),
    ],
)
def test_the_head_of_a_column_says_what_it_is_filtered_by(
    client: httpx.Client, query: str, column: str, says: str
) -> None:
    page = unescape(client.get(f"/?{query}", headers=HTML).text)
    assert f'value="{says}" aria-label="{column}: filter"' in page
