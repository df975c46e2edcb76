"""The command `vmsizes retirements`, and the inventories that it reads."""

import csv
import io
import json
import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import httpx
import pytest

from app.converters.inventory import read_inventory
from app.errors import BadData
from app.services.retirements import InventoryItem
from tests.cli.conftest import Run
from tests.conftest import TODAY

pytestmark = pytest.mark.one_database  # what a command prints does not depend on the kind of database

INVENTORY = """VM Name,VM-Size,Location,Quantity
render,Standard_NV12s_v3,West Europe,4
train,nc6s_v3,eastus,
new,nc24ads_a100_v4,eastus,1
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    file = tmp_path / "vms.csv"
    file.write_text(INVENTORY, encoding="utf-8")
    return file


def test_the_list_is_that_of_the_api(run: Run, seeded_url: str, client: httpx.Client) -> None:
    done = run(seeded_url, "retirements", "--series", "nvv3", "--json")
    assert json.loads(done.stdout) == client.get("/retirements?series=nvv3").json()["items"]
    table = run(seeded_url, "retirements", "--gpu", "M60,MI25", "--after", "2026-01-01", "--limit", "2")
    assert "2026-09-30" in table.stdout
    assert "2 of 7." in table.stdout
    assert "More: --cursor" in table.stderr


@pytest.mark.takes_seconds
def test_past_retirements_are_listed_on_request_and_counted_otherwise(run: Run, seeded_url: str) -> None:
    def days(*arguments: str) -> list[str]:
        listed = json.loads(run(seeded_url, "retirements", "--limit", "500", "--json", *arguments).stdout)
        return [one["retirement_date"] for one in listed]

    coming, past = days(), days("--past")
    today = str(TODAY)
    assert coming == sorted(day for day in coming if day > today)
    assert past == sorted(day for day in past if day <= today)
    assert days("--before", "2999-01-01") == coming + past
    done = run(seeded_url, "retirements", "--limit", "1")
    assert f"1 of {len(coming)}." in done.stdout
    assert f"{len(past)} have passed: --past lists them." in done.stderr
    none = run(seeded_url, "retirements", "--series", "ncv2")
    assert (none.returncode, none.stdout) == (1, "")
    assert "Nothing is to come." in none.stderr


@pytest.mark.takes_seconds
def test_the_plan_is_that_of_the_api(run: Run, seeded_url: str, client: httpx.Client, inventory: Path) -> None:
    done = run(seeded_url, "retirements", str(inventory), "--json", "--max-successors", "1", "--purchase", "spot")
    items = [
        {"id": "render", "size": "Standard_NV12s_v3", "region": "West Europe", "count": 4},
        {"id": "train", "size": "nc6s_v3", "region": "eastus"},
        {"id": "new", "size": "nc24ads_a100_v4", "region": "eastus"},
    ]
    body = {"items": items, "max_successors": 1, "purchase": "spot"}
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == client.post("/retirements", json=body).json()


def test_a_table_says_what_retires_and_what_it_will_cost(run: Run, seeded_url: str, inventory: Path) -> None:
    done = run(seeded_url, "retirements", str(inventory))
    (render,) = (line for line in done.stdout.splitlines() if line.startswith("render"))
    assert render.split()[1:6] == ["Standard_NV12s_v3", "westeurope", "4", "2026-09-30", "29"]
    assert "4 VMs of 1 item retire on 2026-09-30." in done.stdout
    assert "1 VM of 1 item retired on 2025-09-30." in done.stdout
    assert "No successor needed: 1. Unknown size or region: 0." in done.stdout


def test_amounts_of_a_plan_have_cents_and_add_up(run: Run, seeded_url: str, tmp_path: Path) -> None:
    path = tmp_path / "vms.csv"
    rows = [f"{size},{region},{count}" for count, size in enumerate(("nv12s_v3", "hb120rs_v2", "nv6"), 3)
            for region in ("eastus", "westeurope")]  # fmt: skip
    path.write_text("\n".join(["size,region,count", *rows]))
    done = run(seeded_url, "retirements", str(path), "--hours-per-month", "731.37")
    (text,) = (line for line in done.stdout.splitlines() if line.startswith("Best successors"))
    then, now, change = (Decimal(amount.replace(",", "")) for amount in re.findall(r"[-+]?[\d,]+\.\d\d", text))
    assert then - now == change
    header, *lines = done.stdout.splitlines()
    place = re.search("\\+/- USD/month", header)
    assert place is not None
    amounts = [line[: place.end()].split()[-1] for line in lines[: len(rows)]]
    assert all(amount == "-" or re.fullmatch(r"-?[\d,]+\.\d\d", amount) for amount in amounts), amounts


def test_a_plan_without_prices_of_a_purchase_model_has_those_on_demand(
    run: Run, seeded_url: str, inventory: Path
) -> None:
    asked = ("retirements", str(inventory), "--purchase", "reserved_1y")
    for output in ((), ("--csv",), ("--json",)):
        done = run(seeded_url, *asked, *output)
        assert done.returncode == 0
        assert "no price is known in eastus or westeurope, only in polandcentral" in done.stderr
        assert done.stderr.endswith("; costs there are those of on_demand.\n")
        assert "no successor" not in done.stdout


def test_csv_has_a_row_for_each_item(run: Run, seeded_url: str, inventory: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(seeded_url, "retirements", str(inventory), "--csv").stdout)))
    assert [(row["id"], row["successor"]) for row in rows] == [
        ("render", "Standard_NC36ds_xl_RTXPRO6000BSE_v6"),
        ("train", "Standard_NC36ds_xl_RTXPRO6000BSE_v6"),
        ("new", ""),
    ]
    assert "generation 1: yes -> no" in rows[1]["lost"]


def test_an_unknown_name_is_reported_after_the_answers(run: Run, seeded_url: str, tmp_path: Path) -> None:
    file = tmp_path / "vms.csv"
    file.write_text("size,region\nnc6s_v9,eastus\nnc6s_v3,eastus\n", encoding="utf-8")
    done = run(seeded_url, "retirements", str(file))
    assert done.returncode == 3
    assert "item 1: There is no size named 'nc6s_v9'. Did you mean Standard_NC6s_v2 or Standard_NC6s_v3?" in done.stdout
    assert "Standard_NC36ds_xl_RTXPRO6000BSE_v6" in done.stdout


def test_an_inventory_without_vms_is_refused(run: Run, seeded_url: str, tmp_path: Path) -> None:
    (tmp_path / "vms.csv").write_text("size,region\n", encoding="utf-8")
    done = run(seeded_url, "retirements", str(tmp_path / "vms.csv"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "vms.csv: has no VMs" in done.stderr


def test_what_no_size_can_replace_is_explained(run: Run, seeded_url: str, tmp_path: Path) -> None:
    file = tmp_path / "vms.csv"
    file.write_text("size,region\nnc24rs_v3,centralindia\n", encoding="utf-8")
    done = run(seeded_url, "retirements", str(file), "--keep", "infiniband,vcpus,memory_gib,gpu_memory_gib")
    assert done.returncode == 0
    assert "Standard_NC24rs_v3 in centralindia: no successor. Nearest is" in done.stdout
    assert re.search(r"Nearest is Standard_\S+: needs 64 GiB", " ".join(done.stdout.split()))
    assert "without infiniband: Standard_" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--keep", "vcpus"), "--keep=vcpus: needs an inventory"),
        (("vms.csv", "--series", "nvv3"), "--series=nvv3: is about the list of retirements"),
        (("vms.csv", "--keep", "vcpu"), "--keep=vcpu: did you mean vcpus?"),
        (("vms.csv", "--successor-days", "-1"), "--successor-days=-1"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    run: Run, seeded_url: str, inventory: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run(seeded_url, "retirements", *(str(inventory) if one == "vms.csv" else one for one in arguments))
    assert done.returncode == 2
    assert message in done.stderr


def read(tmp_path: Path, text: str) -> list[InventoryItem]:
    file = tmp_path / "vms.csv"
    file.write_text(text, encoding="utf-8")
    return read_inventory(file)


@pytest.mark.parametrize(
    "header", ["size,region,count,id", "SKU,Location,Quantity,Name", "Vm Size, REGION ,vms,vm-name"]
)
def test_a_header_may_have_the_names_of_other_tools(tmp_path: Path, header: str) -> None:
    assert read(tmp_path, f"{header}\nnv6,East US,3,a\n\n,,,\n") == [
        InventoryItem(size="nv6", region="eastus", count=3, id="a")
    ]


VM = InventoryItem(size="Standard_NV6", region="eastus", id="vm01")


@pytest.mark.parametrize(
    "text",
    [
        "VMName,ResourceGroupName,Location,VMSize,OSDiskType,Size,DataDiskCount\nvm01,rg,eastus,Standard_NV6,,128,0\n",
        '#TYPE Selected.PSVirtualMachineList\n"Name","Location","VmSize"\n"vm01","eastus","Standard_NV6"\n',
        "AzVMName,AzVMResourceGroup,AzVMLocation,AzVMSize\nvm01,rg,East US,Standard_NV6\n",
        "NAME\tTYPE\tLOCATION\tSIZE\nvm01\tVirtual machine\tEast US\tStandard_NV6\n",
        "sep=;\nName;Location;Size\nvm01;eastus;Standard_NV6\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_other_tools_export_is_read_as_it_is(tmp_path: Path, text: str, encoding: str) -> None:
    file = tmp_path / "vms.csv"
    file.write_text(text, encoding=encoding)
    assert read_inventory(file) == [VM]


_CLI_VM = {"name": "vm01", "id": "/x/y", "location": "eastus", "hardwareProfile": {"vmSize": "Standard_NV6"}}
_REST_VM = {"name": "vm01", "location": "eastus", "properties": {"hardwareProfile": {"vmSize": "Standard_NV6"}}}
_POWERSHELL_VM = {"Name": "vm01", "Location": "eastus", "HardwareProfile": {"VmSize": "Standard_NV6"}, "Zones": None}


@pytest.mark.parametrize(
    "listed", [[_CLI_VM], {"value": [_REST_VM]}, {"data": [_REST_VM], "count": 1}, [_POWERSHELL_VM], _CLI_VM]
)
def test_the_json_of_other_tools_is_read(tmp_path: Path, listed: object) -> None:
    assert read(tmp_path, json.dumps(listed, indent=1)) == [VM]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('[{"location": "eastus"}]', "VM 1 has no size, which is hardwareProfile.vmSize in `az vm list`"),
        ('[{"size": "nv6", "location": "eastus"}, 3]', "VM 2 has no size"),
        ('[{"name": ', "is not JSON"),
        ('{"value": 3}', "is JSON without a list of VMs"),
        ('[{"size": "nv6", "region": "eastus", "count": 2.5}]', "'2.5': must be a whole number from 1"),
        ('[{"size": "nv6", "region": "eastus", "count": [4]}]', "'[4]': must be a whole number from 1"),
        ('[{"size": "nv6", "region": "eastus", "count": null}]', "'null': must be a whole number from 1"),
        ('[{"size": "nv6", "region": "eastus", "cout": 4}]', "is unknown; did you mean count?"),
    ],
)
def test_other_json_is_refused_with_the_reason(tmp_path: Path, text: str, detail: str) -> None:
    with pytest.raises(BadData) as refused:
        read(tmp_path, text)
    assert detail in refused.value.detail


@pytest.mark.parametrize("count", ["4.0", "4", '"4"', "0.4e1"])
def test_a_count_of_json_may_be_written_in_any_form(tmp_path: Path, count: str) -> None:
    (vms,) = read(tmp_path, f'[{{"size": "nv6", "region": "eastus", "count": {count}}}]')
    assert vms.count == 4


def test_equal_lines_are_explained_once(run: Run, seeded_url: str, tmp_path: Path) -> None:
    file = tmp_path / "vms.csv"
    file.write_text("name,size,region\na,nc24rs_v3,centralindia\nb,nc24rs_v3,centralindia\n", encoding="utf-8")
    done = run(seeded_url, "retirements", str(file))
    assert done.stdout.count("in centralindia: no successor") == 1
    assert [line.split()[0] for line in done.stdout.splitlines()[1:3]] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "line", "column", "detail"),
    [
        ("size,region,cuont\n", 1, "cuont", "is unknown; did you mean count?"),
        ("#TYPE x\nsize,region\nnv6\n", 3, None, "has 1 cell where the header names 2 columns"),
        ("size,count\n", 1, "region", "is missing from the header; it may be called region, location"),
        ("size,Region,region\n", 1, "region", "is the region, as 'Region' is"),
        ("size,region\nnv6,eastus\n,eastus\n", 3, "size", "must not be blank"),
        ("size,region,count\nnv6,eastus,-1\n", 2, "count", "must be a whole number from 1, written like 4096"),
        ("size,region,count\nnv6,eastus,0\n", 2, "count", "must be at least 1"),
        ("size,region\nnv6\n", 2, None, "has 1 cell where the header names 2 columns"),
        ("", 1, "size", "is missing from the header"),
        ('size,region\n"a\nb",eastus\n"nv6,eastus\n\n', 4, None, "a quote that is opened here is not closed"),
    ],
)
def test_bad_data_names_file_line_and_column(
    tmp_path: Path, text: str, line: int, column: str | None, detail: str
) -> None:
    with pytest.raises(BadData) as refused:
        read(tmp_path, text)
    assert (refused.value.line, refused.value.column) == (line, column)
    assert detail in refused.value.detail
    assert refused.value.file.endswith("vms.csv")


@pytest.mark.takes_seconds
def test_list_prices_stand_beside_what_is_paid(run: Run, few_sizes_url: str, tmp_path: Path) -> None:
    rules, vms = tmp_path / "contoso.csv", tmp_path / "vms.csv"
    rules.write_text("name,region,discount_percent\nEA discount,eastus,12\n", encoding="utf-8")
    vms.write_text("size,region\nnc6s_v3,eastus\nnc6s_v3,westus2\n", encoding="utf-8")
    assert run(few_sizes_url, "ingest", "adjustments", str(rules)).returncode == 0
    here, there = csv.DictReader(io.StringIO(run(few_sizes_url, "retirements", str(vms), "--csv").stdout))
    assert (here["adjustments"], here["successor_adjustments"]) == ("EA discount", "EA discount")
    for prefix in ("", "successor_"):
        listed, paid = (Decimal(here[f"{prefix}{name}usd_per_hour"]) for name in ("list_", ""))
        assert paid == (listed * Decimal("0.88")).quantize(Decimal("1e-9"), ROUND_HALF_UP)
        assert (there[f"{prefix}list_usd_per_hour"], there[f"{prefix}adjustments"]) == (
            there[f"{prefix}usd_per_hour"],
            "",
        )
    shown = run(few_sizes_url, "search", "H100", "--region", "eastus", "--columns", "adjustment", "--limit", "1").stdout
    assert '"list_usd_per_hour": ' in shown
    table = run(few_sizes_url, "similar", "nc24ads_a100_v4", "--region", "eastus", "--wide").stdout
    assert "list USD/h" in table.splitlines()[0]
    assert "EA discount" in table
