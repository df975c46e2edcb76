"""The pages of retirements over HTTP: the list of the API by month, and plans that are those of the API."""

import csv
import io
import re
from decimal import Decimal
from html import unescape
from urllib.parse import quote

import httpx
import pytest

from tests.browser.pages import INVENTORY

HTML = {"accept": "text/html"}
PLAN = "/ui/retirements/plan"
ITEMS = [
    {"size": "Standard_NV12s_v3", "region": "West Europe", "count": 4, "id": "render"},
    {"size": "nc24rs_v3", "region": "centralindia", "count": 2, "id": "train"},
    {"size": "d8s_v3", "region": "eastus", "count": 20, "id": "web"},
    {"size": "nc24ads_a100_v4", "region": "eastus", "count": 1, "id": "new"},
    {"size": "d8s_v33", "region": "eastus", "count": 1, "id": "wrong"},
]


def page(client: httpx.Client, url: str, status: int = 200) -> str:
    answer = client.get(url, headers=HTML)
    assert answer.status_code == status, answer.text
    return unescape(answer.text)


def plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def sizes(text: str) -> list[str]:
    return re.findall(r'<th scope="row"[^>]*><a class="mono" href="[^"]*">([^<]+)</a>', text)


def test_regions_name_their_cloud_where_the_catalog_has_several(clouds: httpx.Client, client: httpx.Client) -> None:
    titles = re.findall(r'<option value="[^"]+">([^<]+, [^<]+)</option>', page(clouds, "/ui/retirements"))
    assert {"West Europe, Azure", "All regions, RunPod", "All regions, Lambda"} <= {*titles}
    assert ">West Europe</option>" in page(client, "/ui/retirements")


def test_the_calendar_has_what_will_retire_and_the_other_what_has_by_month(client: httpx.Client) -> None:
    items = client.get("/retirements?limit=500").json()["items"]
    coming = [item for item in items if item["days_left"] > 0]
    text = page(client, "/ui/retirements")
    assert f"<h1>{len(coming)} sizes will retire</h1>" in text
    assert set(sizes(text)) == {item["size"].removeprefix("Standard_") for item in coming}
    months = re.findall(r'id="month-(\d{4}-\d\d)"', text)
    assert months == sorted({item["retirement_date"][:7] for item in coming})
    past = page(client, "/ui/retirements?past=true")
    assert len(sizes(past)) == len(items) - len(coming)
    assert re.findall(r'id="month-(\d{4}-\d\d)"', past) == sorted(
        {item["retirement_date"][:7] for item in items if item["days_left"] <= 0}, reverse=True
    )


def test_a_successor_and_its_change_of_cost_are_those_of_a_plan_of_the_api(client: httpx.Client) -> None:
    text = page(client, "/ui/retirements?series=nvv3&region=westeurope")
    body = {"items": [{"size": "nv12s_v3", "region": "westeurope"}], "max_successors": 1}
    (item,) = client.post("/retirements", json=body).json()["items"]
    (best,) = item["successors"]
    row = plain(text.partition(">NV12s_v3</a>")[2].partition("</tr>")[0])
    assert best["size"].removeprefix("Standard_") in row
    assert f"+{best['change']['usd_per_month']:,.2f}" in row


def test_amounts_of_a_month_have_two_decimals_and_no_change_is_the_same_cost(client: httpx.Client) -> None:
    page = client.get("/ui/retirements?past=true", headers=HTML).text
    amounts = re.findall(r'data-title="(?:Change|Now), USD a month"[^>]*>(.*?)</td>', page)
    decimals = [digits for amount in amounts for digits in re.findall(r"\.(\d+)", amount)]
    assert decimals
    assert {len(digits) for digits in decimals} == {2}
    assert "the same USD" not in re.sub("<[^>]+>", "", page)


def test_the_calendar_file_and_the_json_have_the_filters_of_the_page(client: httpx.Client) -> None:
    text = page(client, "/ui/retirements?gpu=M60&region=eastus")
    for path in ("retirements.ics?gpu=m60&region=eastus", "retirements?gpu=m60&region=eastus"):
        assert f'href="../{path}"' in text
        assert client.get(f"/{path}").status_code == 200


def test_without_a_region_prices_are_of_the_one_where_most_are_cheapest(client: httpx.Client) -> None:
    assert "where most retiring sizes are cheapest" in plain(page(client, "/ui/retirements"))
    assert "where most sizes" not in page(client, "/ui/retirements?region=westeurope")


@pytest.mark.parametrize("send", ["link", "form"])
def test_a_plan_is_that_of_the_api(client: httpx.Client, send: str) -> None:
    answer = client.post("/retirements", json={"items": ITEMS}).json()
    if send == "link":
        text = page(client, f"{PLAN}?inventory={quote(INVENTORY)}")
    else:
        sent = client.post(PLAN, data={"inventory": INVENTORY.replace("\n", "\r\n"), "os": "linux", "before": ""})
        assert sent.status_code == 200
        text = unescape(sent.text)
    vms = sum(due["vms"] for due in answer["summary"]["by_date"])
    assert f"<h1>{vms} VMs need another size</h1>" in text
    said = plain(text)
    assert f"${answer['summary']['then']['usd_per_month']:,.2f}" in said
    for item in answer["items"]:
        assert item["id"] in said
        for successor in item["successors"]:
            assert successor["size"].removeprefix("Standard_") in said
        for error in item["errors"]:
            assert error["detail"] in said
    (link,) = re.findall(r'href="(\?inventory=[^"]+)">Link to this plan', text)
    assert f"{vms} VMs need another size" in page(client, PLAN + link)


def test_pages_say_where_a_purchase_model_has_no_prices(client: httpx.Client) -> None:
    said = plain(page(client, f"{PLAN}?inventory={quote(INVENTORY)}&purchase=reserved_1y"))
    assert "costs there are those of on_demand" in said
    for path in (
        "/ui/retirements?region=eastus&purchase=reserved_1y",
        "/ui/sizes/f8s_v2?region=eastus&purchase=reserved_1y",
    ):
        assert "on demand (no price is known there for “reserved, 1 year”)" in plain(page(client, path))


def test_the_csv_has_a_row_for_each_item_also_by_a_link(client: httpx.Client) -> None:
    sent = client.post(f"{PLAN}.csv", data={"inventory": INVENTORY})
    linked = client.get(f"{PLAN}.csv?inventory={quote(INVENTORY)}", follow_redirects=True)
    assert sent.text == linked.text
    for answer in (sent, linked):
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"] == 'attachment; filename="retirement-plan.csv"'
    rows = list(csv.DictReader(io.StringIO(sent.text)))
    assert [row["id"] for row in rows] == [item["id"] for item in ITEMS]
    assert rows[0]["successor"] == "Standard_NC36ds_xl_RTXPRO6000BSE_v6"
    assert rows[0]["change_usd_per_month"] == "1860.04"
    assert rows[4]["outcome"] == "error"


def test_a_long_inventory_is_answered_without_a_link(client: httpx.Client) -> None:
    lines = "\n".join(f"vm-{number:04},d8s_v3,eastus,1" for number in range(900))
    sent = client.post(PLAN, data={"inventory": f"id,size,region,count\n{lines}"})
    assert sent.status_code == 200
    assert "too long for an address" in sent.text
    assert "Link to this plan" not in sent.text
    assert '<input type="hidden" name="inventory"' in sent.text


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_part_of_a_spreadsheet_can_be_pasted(client: httpx.Client, separator: str) -> None:
    text = f"VM size{separator}Location{separator}Quantity\nNV12s_v3{separator}West Europe{separator}4\n"
    assert "4 VMs need another size" in client.post(PLAN, data={"inventory": text}).text


@pytest.mark.parametrize(
    ("inventory", "says"),
    [
        ("size,region\nnv6,eastus\n,eastus\n", "line 3, column 'size': '': must not be blank"),
        ("size,region,cuont\n", "line 1, column 'cuont': is unknown"),
        ('[{"size": "nv6"}]', "VM 1 has no region"),
        ("size,region", "has a header and no VMs below it"),
        ('size,region\n"nv6,eastus', "line 2: a quote that is opened here is not closed"),
        ("size,region\n" + "nv6,eastus\n" * 1001, "has 1,001 items; at most 1,000 here"),
    ],
)
def test_what_is_no_inventory_is_an_error_at_its_field(client: httpx.Client, inventory: str, says: str) -> None:
    sent = client.post(PLAN, data={"inventory": inventory})
    assert sent.status_code == 422
    assert says in unescape(sent.text)
    assert 'id="inventory-error"' in sent.text
    assert "inventory: inventory" not in sent.text
    download = client.post(f"{PLAN}.csv", data={"inventory": inventory})
    assert download.status_code == 422
    assert re.findall("<main.*</main>", download.text, re.DOTALL) == re.findall("<main.*</main>", sent.text, re.DOTALL)


def test_names_of_an_inventory_are_escaped(client: httpx.Client) -> None:
    sent = client.post(PLAN, data={"inventory": "id,size,region\n<script>,<b>x</b>,=1+1\n"})
    assert sent.status_code == 200
    assert "<script>," not in sent.text
    assert "<b>x</b>" not in sent.text
    rows = list(
        csv.DictReader(io.StringIO(client.post(f"{PLAN}.csv", data={"inventory": "id,size,region\n=1+1,x,y\n"}).text))
    )
    assert rows[0]["id"] == "'=1+1"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("Standard_Foo,westeurope\nD2s_v3,mars\n", "None of this is understood"),
        ("Standard_Foo,westeurope\nD2s_v5,westeurope\n", "No VM that is understood needs another size"),
        ("D2s_v5,westeurope\n", "No VM of these needs another size"),
    ],
)
def test_what_is_not_understood_is_not_said_to_stay(client: httpx.Client, lines: str, says: str) -> None:
    page = client.post(PLAN, data={"inventory": f"size,region\n{lines}"}, headers=HTML).text
    assert f"<h1>{says}</h1>" in page


def test_equal_lines_of_an_inventory_list_their_successors_once(client: httpx.Client) -> None:
    inventory = "size,region\n" + "f8s_v2,eastus\n" * 3
    text = client.post(PLAN, data={"inventory": inventory}, headers=HTML).text
    assert text.count("The others are those of item 1.") == 2
    assert text.count('<ol class="successor-list">') == 3
    answer = client.post(f"{PLAN}.csv", data={"inventory": inventory})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert rows[0] == rows[1] == rows[2]
    assert rows[0]["other_successors"].count("Standard_") == 2


def test_an_inventory_of_too_many_different_lines_says_what_is_allowed(client: httpx.Client) -> None:
    inventory = "size,region,count\n" + "".join(f"f8s_v2,eastus,{count}\n" for count in range(1, 1001))
    answer = client.post(PLAN, data={"inventory": inventory, "max_successors": "20"}, headers=HTML)
    assert answer.status_code == 422
    assert "at most 5,000: give max_successors=5, or fewer lines" in answer.text


def test_the_change_of_a_plan_is_that_of_the_amounts_beside_it(client: httpx.Client) -> None:
    rows = "%0A".join(
        f"{size},{region},1" for size in ("nv12s_v3", "hb120rs_v2") for region in ("eastus", "westeurope")
    )
    page = client.get(
        f"/ui/retirements/plan?inventory=size,region,count%0A{rows}", headers={"accept": "text/html"}
    ).text
    figure = page.partition("Best successors, a month")[2].partition("</div>")[0]
    then, now, change = (Decimal(text.replace(",", "")) for text in re.findall(r"[\d,]+\.\d\d", figure)[:3])
    assert abs(then - now) == change
