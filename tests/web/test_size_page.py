"""The page of a size: facts side by side, prices and their history, successors, models, names that are unknown."""

import re
from decimal import Decimal
from html import unescape
from urllib.parse import quote

import httpx
import pytest

from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from tests.catalog.test_price_runs import X1, on, one_list
from tests.databases import writable
from tests.factories import NOW, price, reading, size
from tests.servers import open_client, server

HTML = {"accept": "text/html"}


def text_of(html: str) -> str:
    """Return the text of a page with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def page_part(page: str, first: str, behind: str) -> str:
    """Return a section of a page."""
    return page[page.index(f'<section id="{first}"') : page.index(f'<section id="{behind}"')]


def get(client: httpx.Client, path: str, status: int = 200) -> str:
    answer = client.get(path, headers=HTML, follow_redirects=True)
    assert answer.status_code == status
    return answer.text


def test_a_disputed_figure_has_the_words_of_both_sources_in_text(client: httpx.Client) -> None:
    page = text_of(get(client, "/ui/sizes/nd40rs_v2"))
    assert "Sources disagree on" in page
    assert re.search(r"GPU memory 256 GiB accepted: Updated NDv2-series", page)
    assert re.search(r"128 GiB says Azure ND-Series: third-party notes, 128 GB", page)


def test_every_fact_of_the_api_is_on_the_page_with_its_place(client: httpx.Client) -> None:
    page = unescape(get(client, "/ui/sizes/nd40rs_v2"))
    facts = client.get("/sizes/nd40rs_v2/facts?limit=500").json()["items"]
    assert len(facts) > 50
    for fact in facts:
        assert f"{fact['file'].rpartition('/')[2]}:{fact['line']}" in page


def test_a_fact_says_how_many_sources_agree_and_whether_others_do_not(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/nd40rs_v2")
    rows = [text_of(row) for row in re.findall(r"<tr.*?</tr>", page[page.index('id="fact-table"') :], re.DOTALL)]
    facts = client.get("/sizes/nd40rs_v2/facts?field=vcpus&limit=500").json()["items"]
    assert any(row.startswith(f"vCPUs 40 {len({fact['source_id'] for fact in facts})} sources agree") for row in rows)
    assert any(re.match(r"GPU memory 256 GiB disputed \d+ for it, 1 against", row) for row in rows)


def test_a_past_price_is_beside_that_of_today_with_the_change(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/nv36ads_a10_v5?region=centralus&as_of=2024-01-15")
    (row,) = [text_of(one) for one in re.findall(r'<tr class="chosen">.*?</tr>', page, re.DOTALL) if "centralus" in one]
    assert re.search(r"3\.936 .* 3\.20 (disputed )?↓ −18\.7 %$", row)
    assert "Change" not in text_of(page_part(get(client, "/ui/sizes/nv36ads_a10_v5"), "prices", "history"))


def test_a_day_before_all_prices_has_its_column_and_is_named_with_the_region(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/d8s_v5?region=westeurope&as_of=2020-01-01")
    assert "no source has a price in West Europe on 2020-01-01" in page
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page_part(page, "prices", "buy"))
    assert [text_of(head) for head in heads] == [
        *("Region", "Zones", "On demand on 2020-01-01", "On demand today", "Change since 2020-01-01")
    ]


def test_a_fact_that_a_rule_overrules_says_so(client: httpx.Client) -> None:
    item = client.get("/sizes/nc24ads_a100_v4").json()
    (fact,) = client.get("/sizes/nc24ads_a100_v4/facts?field=nvlink").json()["items"]
    rule = "the size has false: one GPU, or a part of one, has nothing to link"
    assert (item["nvlink"], fact["value"], fact["verdict"]) == (False, "true", "accepted")
    assert fact["reason"].endswith(rule)
    page = get(client, "/ui/sizes/nc24ads_a100_v4")
    row = text_of(page[page.index('<th scope="row">NVLink</th>') :].partition("</tr>")[0])
    assert row.startswith("NVLink no one source, overruled yes ✓ accepted")
    assert rule in row
    several = client.get("/sizes/nd96isr_h100_v5/facts?field=nvlink").json()["items"]
    assert not any(rule in stated["reason"] for stated in several)


def test_ways_to_buy_offer_what_the_cloud_has_and_lead_back_at_the_same_prices(
    client: httpx.Client, clouds: httpx.Client
) -> None:
    page = get(client, "/ui/sizes/d8s_v5/buy?region=westeurope&os=windows&currency=EUR")
    back = re.search(r'href="../../../ui/sizes/standard_d8s_v5\?([^"]+)"', page)
    assert back is not None
    assert {*unescape(back[1]).split("&")} == {"region=westeurope", "os=windows", "currency=EUR"}
    assert re.search(r'<select id="currency".*<option value="EUR" selected>', page, re.DOTALL)
    assert "Azure Hybrid Benefit" in page
    spot = page[page.index('<th scope="row">Spot</th>') :].partition("</tr>")[0]
    assert [text_of(cell) for cell in re.findall("<td.*?</td>", spot)][4:6] == ["no rank"] * 2
    assert "Azure Hybrid Benefit" not in get(clouds, "/ui/sizes/m5.large/buy")


def test_the_figures_name_the_disks_that_they_are_of(client: httpx.Client) -> None:
    figures = text_of(page_figures(get(client, "/ui/sizes/nc24ads_a100_v4")))
    assert "NVMe disks 894.07 GiB temporary disk 64 GiB" in figures
    assert "Local disks" not in figures
    assert "Local disks" in get(client, "/")


def page_figures(page: str) -> str:
    """Return the figures at the head of the page of a size."""
    return page.partition('<dl class="figures">')[2].partition("</dl>")[0]


def test_a_spot_price_has_its_difference_from_on_demand(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/d8s_v5?region=eastus")
    prices = client.get("/sizes/d8s_v5/prices?region=eastus&os=linux").json()["items"]
    usd = {one["purchase"]: one["usd_per_hour"] for one in prices}
    (row,) = re.findall(r'<tr class="chosen">.*?</tr>', page_part(page, "prices", "history"), re.DOTALL)
    assert f"−{100 - 100 * usd['spot'] / usd['on_demand']:.1f} %" in text_of(row).replace("\u00a0", " ")


def test_similar_sizes_have_signed_differences_from_the_price_and_figures_of_the_size(client: httpx.Client) -> None:
    page = page_part(get(client, "/ui/sizes/nd40rs_v2"), "similar", "models")
    own = client.get("/sizes?name=standard_nd40rs_v2").json()["items"][0]
    for one in client.get("/sizes/nd40rs_v2/similar?limit=6").json()["items"]:
        (row,) = [text_of(row) for row in page.split('<tr role="row">') if f">{one['size']}</a>" in row]
        if one["usd_per_hour"] is not None and one["usd_per_hour"] != own["usd_per_hour"]:
            percent = 100 * (one["usd_per_hour"] / own["usd_per_hour"] - 1)
            sign = "+" if percent > 0 else "−"
            assert re.search(rf" {re.escape(sign)}{abs(percent):,.1f}".removesuffix(".0"), row), row


def test_the_sizes_of_a_series_are_a_ladder_by_vcpus(client: httpx.Client) -> None:
    page = page_part(get(client, "/ui/sizes/d8s_v5"), "series", "models")
    names = re.findall(r"Standard_D(\d+)s_v5<", page)
    assert [int(name) for name in names] == sorted(map(int, names))
    assert "8" in names


def test_azure_alone_has_commands_that_create_a_size(client: httpx.Client, clouds: httpx.Client) -> None:
    page = unescape(get(client, "/ui/sizes/d8s_v5?region=westeurope&purchase=spot"))
    assert "--location westeurope --size Standard_D8s_v5 --priority Spot</code>" in page
    assert "hardwareProfile: { vmSize: 'Standard_D8s_v5' }" in page
    assert "az vm create" not in get(clouds, "/ui/sizes/m5.large")


def test_prices_are_those_of_the_api_in_the_currency_and_unit_of_the_page(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/d8s_v5?region=westeurope&currency=EUR&unit=day")
    rate = client.get("/sizes/d8s_v5?currency=EUR").json()["exchange_rate"]["units_per_usd"]
    (usd,) = [
        one["usd_per_hour"]
        for one in client.get("/sizes/d8s_v5/prices?region=westeurope&os=linux&purchase=on_demand").json()["items"]
    ]
    shown = Decimal(str(usd)) * 24 * Decimal(str(rate))
    (row,) = re.findall(r'<tr class="chosen">.*?</tr>', page, re.DOTALL)
    assert f"{shown:.3f}" in row
    assert "EUR a day" in text_of(page)


def test_the_prices_of_a_past_day_are_those_in_force_then(client: httpx.Client) -> None:
    now, then = (get(client, f"/ui/sizes/nv36ads_a10_v5?region=centralus{day}") for day in ("", "&as_of=2024-01-15"))
    rows = [re.findall(r'<tr class="chosen">.*?</tr>', page, re.DOTALL)[0] for page in (now, then)]
    assert "3.20" in rows[0]
    assert "3.936" in rows[1]


def test_the_chart_and_the_table_beside_it_have_the_same_prices(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/nv36ads_a10_v5?region=centralus")
    tips = re.findall(r'data-tip="(.*?)"', page)
    assert tips[0] == "on demand: 3.936 USD an hour, 2023-10-27 to 2026-06-18"
    assert "on demand: 3.20 USD an hour, 2026-08-01" in tips
    ticks = re.findall(r'<text class="tick(?: minor)?"[^>]* y="100%"[^>]*>(.*?)</text>', page)
    assert ticks[0] == "Jan 2024"
    assert all(re.fullmatch(r"[A-Z][a-z]{2} 20\d\d", tick) for tick in ticks)
    table = text_of(page[page.index('id="history-table"') :])
    assert "on demand disputed 3.936 2023-10-27 2026-06-18 first karpenter-azure-prices" in table
    assert (
        "on demand in force disputed 3.20 2026-08-01 2026-08-01 ↓ −18.7 % azure-sku-locator-prices-2026-08-01" in table
    )


def test_lists_that_agree_on_a_price_are_one_row_of_its_history(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/nc24ads_a100_v4?region=eastus&currency=EUR")
    rows = re.findall(r"<tr>.*?</tr>", page[page.index('id="history-table"') : page.index('id="sources"')], re.DOTALL)
    (row,) = [text_of(one) for one in rows if "on demand" in one]
    rate = Decimal(re.findall(r"([\d.]+) EUR per USD", page)[0])
    assert re.sub(r"[\d.]+ 2023", "2023", row) == (
        "on demand in force 2023-10-27 2026-08-01 first "
        "azure-sku-locator-prices-2026-08-01 karpenter-azure-prices skypilot-azure-2024"
    )
    assert abs(Decimal(row.split()[4]) - Decimal("3.673") * rate) < Decimal("0.01")


def test_lists_that_disagree_have_rows_beside_one_another(service: CacheMiddleware) -> None:
    for day in (1, 3):
        ingest(writable(service), one_list(day, {X1: 2}, file=f"{day}.csv"), now=NOW)
    other = [price("x1", "9", valid_from=on(2), source="page", file="page.csv")]
    ingest(writable(service), reading(prices=other), now=NOW)
    with server(service) as url, open_client(url) as client:
        page = get(client, "/ui/sizes/x1?region=eastus")
    table = text_of(page[page.index('id="history-table"') :])
    rows = (
        "on demand in force 2.00 2026-01-02 2026-01-04 first prices",
        "on demand 9.00 2026-01-03 2026-01-03 lists differ page",
    )
    assert " ".join(rows) in table


def test_a_size_that_retires_has_its_date_source_successors_and_what_they_lose(client: httpx.Client) -> None:
    page = text_of(get(client, "/ui/sizes/nc6s_v3"))
    assert "Retired on 2025-09-30" in page
    body = {"items": [{"size": "nc6s_v3", "region": "eastus"}]}
    (planned,) = client.post("/retirements", json=body).json()["items"]
    assert planned["source_title"] in page
    for successor in planned["successors"]:
        assert successor["size"] in page
        for lost in successor["lost"]:
            assert lost["detail"].replace("->", "→") in page


def test_unknown_is_unknown_and_zero_is_zero(service: CacheMiddleware) -> None:
    known = size("Standard_Some", vcpus=8)
    ingest(writable(service), reading(known, regions=["eastus"], prices=[]), now=NOW)
    with server(service) as url, open_client(url) as client:
        page = text_of(get(client, "/ui/sizes/Standard_Some"))
    assert "vCPUs 8" in page
    assert re.search(r"Memory – unknown", page)
    assert "no source has a price" in page
    assert "No price is known" in page


def test_what_a_size_does_not_have_has_no_unknown_figures(client: httpx.Client) -> None:
    for path, word in (("/ui/sizes/d2_v3", "no source mentions"), ("/ui/sizes/d2_v3.md", "Unknown:")):
        unknown = client.get(path, headers={"accept": "text/html"}).text.partition(word)[2].partition(".")[0]
        assert "vCPUs" not in unknown
        assert not [name for name in ("GPU", "NVLink", "InfiniBand") if name in unknown], unknown


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("/ui/sizes/ng16", "NG8"),
        ("/ui/sizes/ng8", "NG8"),
        ("/ui/compare?name=ng8,nc24ads_a100_v4", "NG8"),
        ("/?q=ng8", "NG8"),
        ("/ui/retirements?past=true&gpu=M60", "NV6_Promo"),
    ],
)
def test_a_size_that_is_not_verified_is_marked_wherever_it_is_listed(
    client: httpx.Client, path: str, size: str
) -> None:
    assert re.search(rf"\b{size}\b\W+(current |withdrawn |retired )?\W*unverified", text_of(get(client, path)))


def test_a_name_that_no_size_has_is_a_404_with_links_to_the_nearest(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/nd40rs_v9", status=404)
    assert page.count("Did you mean") == 1
    assert 'href="../../ui/sizes/standard_nd40rs_v2"' in page
    assert get(client, "/ui/sizes/nd40rs_v9/models", status=404)


def test_an_invalid_parameter_is_shown_at_its_field_and_the_page_is_there(client: httpx.Client) -> None:
    page = get(client, "/ui/sizes/d8s_v5?region=atlantis&unit=decade", status=422)
    assert 'id="region-error"' in page
    assert 'id="unit-error"' in page
    assert "Standard_D8s_v5" in page


def test_a_city_without_such_a_region_names_those_of_the_cloud_of_the_size(clouds: httpx.Client) -> None:
    asked = "region=frankfurt"
    paths = ("/ui/sizes/d8s_v5", "/ui/sizes/d8s_v5/buy", "/")
    *of_size, search = (get(clouds, f"{path}?{asked}", status=422) for path in paths)
    assert all("did you mean germanywestcentral?" in page for page in of_size)
    detail = clouds.get(f"/sizes?{asked}").json()["detail"]
    named = detail.partition("did you mean ")[2].partition("?")[0]
    assert {*named.split(" or ")} == {"germanywestcentral", "eu-central-1", "europe-west3"}
    assert f"did you mean {named}?" in search


def test_a_name_from_a_feed_is_text_in_every_part_of_the_page(service: CacheMiddleware) -> None:
    hostile = 'Standard_<img src=x onerror="alert(1)">'
    rows = [*size(hostile, vcpus=8), *size("Standard_Good", vcpus=8)]
    prices = [price(hostile, "3.5"), price("Standard_Good", "3.4")]
    ingest(writable(service), reading(rows, regions=["eastus"], prices=prices), now=NOW)
    with server(service) as url, open_client(url) as client:
        good = get(client, "/ui/sizes/standard_good")
        both = get(client, "/ui/compare?name=standard_good,some&baseline=", status=422)
    assert "&lt;img src=x" in good
    assert "<img src=x" not in good + both


def test_a_name_from_a_feed_is_text_in_markdown(service: CacheMiddleware) -> None:
    hostile = "Standard_<img src=x>|`a`[b](javascript:c)"
    rows = [*size(hostile, vcpus=8), *size("Standard_Good", vcpus=8)]
    ingest(writable(service), reading(rows, regions=["eastus"], prices=[price(hostile, "3.5")]), now=NOW)
    with server(service) as url, open_client(url) as client:
        text = client.get(f"/ui/sizes/{quote(hostile)}.md").text
    assert text.startswith("# Standard_\\<img src=x\\>\\|\\`a\\`\\[b\\](javascript:c)\n"), text


@pytest.mark.parametrize("name", ["nd96isr_h100_v5", "nv6ads_a10_v5"])
def test_models_fit_with_the_context_and_users_that_post_fit_confirms(client: httpx.Client, name: str) -> None:
    page = get(client, f"/ui/sizes/{name}/models")
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', page, re.DOTALL)
    model, cells = unescape(rows[-1][0]), rows[-1][1]
    cell = text_of(re.findall(r"<td.*?</td>", cells, re.DOTALL)[-1])
    context, users = (int(figure.replace(",", "")) for figure in re.findall(r"([\d,]+)", cell)[:2])

    def fits(**load: int) -> bool:
        body = {
            "model": model,
            "inference": {"dtype": "int4", **load},
            "constraints": {"checkpoint_on_local_disk": False, "name": [f"standard_{name}"]},
        }
        return bool(client.post("/fit", json=body).json()["fits"])

    each = min(8192, client.get(f"/models/{model}").json()["max_context_tokens"])
    assert fits(context_tokens=context, concurrency=1)
    assert fits(context_tokens=each, concurrency=users)
    assert not fits(context_tokens=each, concurrency=users + 1)


def test_prices_for_windows_are_said_to_have_its_licence(client: httpx.Client) -> None:
    hint = "Windows with its licence (with Azure Hybrid Benefit it costs what Linux does)"
    assert hint in get(client, "/ui/sizes/d4s_v5?os=windows")
    assert hint in get(client, "/?os=windows&limit=1")
    assert hint not in get(client, "/ui/sizes/d4s_v5")
    with_benefit = text_of(get(client, "/ui/sizes/d4s_v5/buy?os=windows&hybrid_benefit=true&region=westeurope"))
    assert "with Windows with Azure Hybrid Benefit in westeurope" in with_benefit
    assert "its licence" not in with_benefit


@pytest.mark.parametrize(
    "path",
    [
        *("/ui/sizes/m5.large?os=windows", "/ui/sizes/m5.large/buy?os=windows"),
        *("/ui/compare?name=m5.large,n2-standard-4&os=windows", "/?provider=aws&os=windows&limit=1"),
        "/ui/explore?provider=gcp&os=windows",
    ],
)
def test_pages_of_other_clouds_say_nothing_of_a_benefit_of_azure(clouds: httpx.Client, path: str) -> None:
    page = get(clouds, path)
    assert "Windows with its licence" in page
    assert "Azure Hybrid Benefit" not in page


@pytest.mark.parametrize("path", ["/ui/compare?name=m5.large,d4s_v5", "/?provider=aws,azure&limit=1"])
def test_pages_of_several_clouds_say_so_for_azure(clouds: httpx.Client, path: str) -> None:
    assert "Windows with its licence (with Azure Hybrid Benefit" in get(clouds, f"{path}&os=windows")


def test_successors_are_in_the_region_that_is_cheapest_on_demand_where_none_has_a_price(client: httpx.Client) -> None:
    on_demand, reserved = (
        re.search(r"Successors in ([\w ]+) that", get(client, f"/ui/sizes/b2s?purchase={purchase}"))
        for purchase in ("on_demand", "reserved_1y")
    )
    assert on_demand
    assert reserved
    assert on_demand[1] == reserved[1]


@pytest.mark.one_database
@pytest.mark.parametrize("path", ["/ui/sizes/nd40rs_v2", "/?gpu=A100", "/ui/fit?model=llama-3.1-8b"])
def test_commands_on_pages_name_the_port_that_is_served_and_never_the_host_that_was_sent(
    client: httpx.Client, path: str
) -> None:
    page = client.get(path, headers={**HTML, "host": "192.0.2.7:1"}).text
    assert f"<span data-origin>http://127.0.0.1:{client.base_url.port}</span>" in page
    assert "192.0.2.7" not in page
