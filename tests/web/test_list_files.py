"""The list of the search page as files: what is shown is what comes."""

import csv
import io
import re
from decimal import Decimal

import httpx
import pytest
from PIL import Image

from app.main import create_asgi_app
from app.settings import Settings
from app.web.rendering import format_amount
from tests.conftest import TODAY
from tests.servers import open_client, server
from tests.web.test_search import get, rows

QUERY = "gpu=A100&region=westeurope&currency=EUR&unit=month&columns=price,vcpus,spot_usd_per_hour"


def test_a_file_has_the_columns_currency_unit_and_rows_that_are_shown(client: httpx.Client) -> None:
    answer = client.get(f"/ui/sizes.csv?{QUERY}", follow_redirects=True)
    assert re.search(
        r'filename="sizes-[a-z0-9-]*gpu-a100[a-z0-9-]*-2026-09-01.csv"', answer.headers["content-disposition"]
    )
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert list(lines[0]) == ["Size", "Price (EUR a month)", "vCPUs", "Spot (EUR a month)"]
    shown = rows(get(client, f"/?{QUERY}"))
    assert len(lines) == len(shown) > 1
    for line, row in zip(lines, shown, strict=True):
        assert line["Size"].removeprefix("Standard_") in row
        assert f" {format_amount(Decimal(line['Price (EUR a month)']))} " in row
    sizes = client.get(f"/ui/sizes.json?{QUERY}", follow_redirects=True).json()
    assert [str(one["vCPUs"] or "") for one in sizes] == [line["vCPUs"] for line in lines]
    copied = client.get(f"/ui/sizes.tsv?{QUERY}", follow_redirects=True).text.split("\n")
    assert copied[0].split("\t") == list(lines[0])
    assert len(copied) == len(lines) + 1


def test_a_file_says_that_a_size_has_no_gpu_as_the_page_does(client: httpx.Client) -> None:
    query = "series=dsv5&limit=1&columns=gpu_model"
    assert ">none</td>" in get(client, f"/?{query}")
    assert client.get(f"/ui/sizes.csv?{query}").text.splitlines()[1].endswith(",none")
    assert {one["GPU"] for one in client.get(f"/ui/sizes.json?{query}").json()} == {"none"}


def test_prices_on_windows_and_what_spot_saves_are_columns_of_pages_and_files(client: httpx.Client) -> None:
    columns = "on_demand_usd_per_hour,spot_saving_percent,windows_on_demand_usd_per_hour,windows_spot_usd_per_hour"
    query = f"region=westeurope&series=dsv5,ndasr_a100_v4&sort=-spot_saving_percent&columns={columns}"
    lines = client.get(f"/ui/sizes.json?{query}", follow_redirects=True).json()
    asked = {"region": "westeurope", "series": "dsv5,ndasr_a100_v4"}
    windows = {one["name"]: one for one in client.get("/sizes", params={**asked, "os": "windows"}).json()["items"]}
    linux = {one["name"]: one for one in client.get("/sizes", params=asked).json()["items"]}
    assert len(lines) == len(linux) > 1
    for line in lines:
        name, on_windows = line["Size"], windows.get(line["Size"], {})
        assert line["Windows, on demand (USD an hour)"] == on_windows.get("on_demand_usd_per_hour")
        assert line["Windows, spot (USD an hour)"] == on_windows.get("spot_usd_per_hour")
        if line["Spot saving (%)"] is not None:
            saving = 100 - 100 * linux[name]["spot_usd_per_hour"] / linux[name]["on_demand_usd_per_hour"]
            assert abs(line["Spot saving (%)"] - saving) <= 0.051
    page = get(client, f"/?{query}")
    assert re.search(r'<th[^>]*aria-sort="descending"><a [^>]*>Spot saving</a>', page)
    (by_windows,) = re.findall(r'<th[^>]*><a href="([^"]+)"[^>]*>Windows, on demand</a>', page)
    page_by_windows = get(client, f"/{by_windows}")
    assert re.search(r'<th[^>]*aria-sort="ascending"><a [^>]*>Windows, on demand</a>', page_by_windows)
    listed = re.findall(r'name="name" value="([^"]+)"', page_by_windows)
    assert listed == [
        size["name"] for size in sorted(windows.values(), key=lambda size: size["on_demand_usd_per_hour"])
    ]
    shown = [line for line in lines if line["Windows, on demand (USD an hour)"]]
    for line, row in zip(lines, rows(page), strict=True):
        assert line not in shown or f" {format_amount(line['Windows, on demand (USD an hour)'])}" in row


def test_a_file_has_the_whole_list_in_the_order_of_the_page(client: httpx.Client) -> None:
    names = [one["Size"] for one in client.get("/ui/sizes.json?sort=name").json()]
    assert f"<h1>{len(names):,} sizes</h1>" in get(client, "/?sort=name")
    assert names[:50] == re.findall(r'name="name" value="([^"]+)"', get(client, "/?sort=name"))


def test_an_invalid_parameter_of_a_file_is_a_page_of_what_is_wrong(client: httpx.Client) -> None:
    answer = client.get("/ui/sizes.csv?min_vcpus=lots")
    assert answer.status_code == 422
    assert "min_vcpus" in answer.text
    answer = client.get("/ui/sizes.csv?columns=usd_per_hour")
    assert answer.status_code == 422
    assert "allowed are provider, price, series" in answer.text


def test_links_of_a_page_lead_to_its_files(client: httpx.Client) -> None:
    page = get(client, f"/?{QUERY}")
    for kind in ("csv", "json"):
        (link,) = re.findall(rf'href="\./(ui/sizes\.{kind}\?[^"]+)"', page)
        assert client.get(f"/{link}").status_code == 200


def test_crawlers_find_each_size_once_and_only_under_the_public_url(seeded_url: str, client: httpx.Client) -> None:
    assert "Sitemap" not in client.get("/robots.txt").text
    assert client.get("/sitemap.xml").status_code == 404
    assert 'rel="canonical"' not in get(client, "/?gpu=A100")
    settings = Settings(_env_file=None, database_url=seeded_url, public_url="https://sizes.example/vm")
    with server(create_asgi_app(settings, today=lambda: TODAY)) as url, open_client(url) as public:
        assert "Sitemap: https://sizes.example/vm/sitemap.xml" in public.get("/robots.txt").text
        places = re.findall("<loc>([^<]+)</loc>", public.get("/sitemap.xml").text)
        assert "https://sizes.example/vm/ui/sizes/standard_d8s_v5" in places
        assert len(places) == len(set(places)) == 1 + client.get("/sizes?status=any&limit=1").json()["total"]
        page = get(public, "/?gpu=A100&currency=EUR&sort=-vcpus")
        assert '<link rel="canonical" href="https://sizes.example/vm/?gpu=a100">' in page
        described = re.findall('<meta property="og:description" content="(.*?)">', get(public, "/?gpu=a100"))
        assert re.fullmatch(
            r"9 cloud VM sizes \(A100\), from \$[\d.]+ an hour \(Standard_\w+ in \w+\): .*", described[0]
        )
        described = re.findall(
            '<meta property="og:description" content="(.*?)">', get(public, "/ui/sizes/nc24ads_a100_v4")
        )
        assert described[0].startswith(
            "Standard_NC24ads_A100_v4: 1 × A100 80GB PCIe, 24 vCPUs, 220\xa0GiB, $3.673 an hour"
        )
        assert '<meta property="og:title" content="A100' in page


@pytest.mark.takes_seconds
def test_a_shared_link_has_an_image_of_the_answer(seeded_url: str) -> None:
    settings = Settings(_env_file=None, database_url=seeded_url, public_url="https://sizes.example/vm")
    images = {}
    with server(create_asgi_app(settings, today=lambda: TODAY)) as url, open_client(url) as public:
        for page, rows in (
            ("/?gpu=a100&limit=100", 5),
            ("/?gpu=a100&region=westeurope&currency=EUR", 5),
            (f"/?q={'x' * 120}", 0),
            ("/ui/compare?name=nc24ads_a100_v4,d8s_v5&region=westeurope", 2),
            ("/ui/sizes/nc24ads_a100_v4?unit=month", 4),
            ("/ui/sizes/nc24ads_a100_v4?unit=month&purchase=spot", 4),
            ("/ui/sizes/d8s_v5", 3),
        ):
            (address,) = re.findall(
                '<meta property="og:image" content="https://sizes.example/vm/(.*?)">', get(public, page)
            )
            first, again = (public.get(f"/{address}") for _ in range(2))
            assert (first.status_code, first.headers["content-type"]) == (200, "image/png")
            assert "hit" in again.headers["cache-status"]
            image = Image.open(io.BytesIO(first.content))
            assert image.size == (1200, 630)
            lines = [y for y in range(630) if image.crop((64, y, 1136, y + 1)).getextrema() == (216, 216)]
            assert len(lines) == rows, page
            assert len(first.content) < 80_000
            images[page] = first.content
        assert len(set(images.values())) == len(images)
        assert "og:image" not in get(public, "/ui/changes")
        assert "Allow: /ui/sizes.png" in public.get("/robots.txt").text
        assert public.get("/ui/sizes/nd40rs_v9.png").status_code == 404
        assert public.get("/ui/compare.png").status_code == 200
