"""What the audit says of the files of other catalogs, and of this one."""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from app.catalog.readings import PriceRow, Reading
from app.db.engines import make_engine
from app.errors import BadData
from app.ingest.audit import PEER_FORMATS, Audit, audit_file, share_that_agrees
from app.ingest.run import ingest
from tests.command_line import run_command
from tests.factories import NOW, price, price_list, region, size, source

TODAY = date(2026, 9, 1)
JULY, AUGUST = date(2026, 7, 1), date(2026, 8, 1)


@pytest.fixture
def engine(engine: Engine) -> Engine:
    """Sizes of a vendor's page and of a third party, and prices of two lists a month apart."""
    facts = (
        *size("Standard_E32-8s_v4", vcpus=8, memory_gib=Decimal(256), gpu_count=Fraction(0)),
        *size("Standard_NV6", vcpus=6, memory_gib=Decimal("218.75"), gpu_count=Fraction(1, 6)),
        *size("Standard_D2", vcpus=2, memory_gib=Decimal(8)),
        *size("Standard_F1", vcpus=1, memory_gib=Decimal("0.6")),
        *size("Standard_N1", by="someone", vcpus=1),
    )
    first = replace(source("first", kind="third_party", retail=True), publisher="one")
    second = replace(source("second", kind="third_party", retail=True), publisher="two")
    prices = (
        *both("Standard_D2", "0.1", "0.2"),
        *both("Standard_NV6", "1", "3"),
        listed("Standard_E32-8s_v4", "2", JULY, "first"),
        listed("Standard_E32-8s_v4", "2.5", AUGUST, "second"),
    )
    files = {"first": [row for row in prices if row.source == "first"], "second": []}
    files["second"] = [row for row in prices if row.source == "second"]
    lists = tuple(each for rows in files.values() for each in price_list(*rows))
    ingest(
        engine,
        Reading(
            sources=(source(), source("prices"), source("someone", kind="third_party"), first, second),
            regions=(region("eastus"),),
            facts=facts,
            prices=lists,
        ),
        now=NOW,
    )
    return engine


def listed(name: str, usd: str, day: date, by: str, os: str = "linux") -> PriceRow:
    return price(name, usd, valid_from=day, source=by, file=f"{by}.csv", os=os)


def both(name: str, linux: str, windows: str) -> Iterable[PriceRow]:
    """Return the prices of a size in both lists."""
    for by, day in (("first", JULY), ("second", AUGUST)):
        yield listed(name, linux, day, by)
        yield listed(name, windows, day, by, "windows")


def audit(engine: Engine, file: Path, peer: str, rows: str, day: date | None = None) -> Audit:
    file.write_text(rows)
    with Session(engine) as session:
        return audit_file(session, file, PEER_FORMATS[peer], today=TODAY, day=day)


def verdicts(found: Audit) -> list[tuple[str, str, str, str]]:
    return [
        (each.claim.size.removeprefix("Standard_"), each.claim.meaning.field, each.claim.cell, each.verdict)
        for each in found.judgements
    ]


@pytest.mark.first_database
def test_a_figure_agrees_is_meant_otherwise_is_wrong_or_cannot_be_judged(engine: Engine, tmp_path: Path) -> None:
    rows = (
        "size,sku_family,vcpu,memory_mib,gpu,architecture\n"
        "Standard_E32-8s_v4,f,32,262144,1,amd64\n"
        "Standard_NV6,f,6,223232,1,amd64\n"
        "Standard_D2,f,2,4096,0,amd64\n"
        "Standard_F1,f,1,614,0,amd64\n"
        "Standard_N1,f,7,1024,0,amd64\n"
        "Standard_X9,f,7,1024,0,amd64\n"
    )
    found = audit(engine, tmp_path / "azure.csv", "autoscaler", rows)
    assert verdicts(found) == [
        ("E32-8s_v4", "vcpus", "32", "wrong"),
        ("E32-8s_v4", "memory_gib", "262144", "agrees"),
        ("E32-8s_v4", "gpu_count", "1", "wrong"),
        ("NV6", "vcpus", "6", "agrees"),
        ("NV6", "memory_gib", "223232", "other_meaning"),  # 218 whole GiB of 218.75
        ("NV6", "gpu_count", "1", "other_meaning"),  # a device, of which the size has a sixth
        ("D2", "vcpus", "2", "agrees"),
        ("D2", "memory_gib", "4096", "wrong"),
        ("D2", "gpu_count", "0", "unknown"),
        ("F1", "vcpus", "1", "agrees"),
        ("F1", "memory_gib", "614", "other_meaning"),  # whole MiB of 614.4
        ("F1", "gpu_count", "0", "unknown"),
        ("N1", "vcpus", "7", "unknown"),  # one source, which is no vendor's
        ("N1", "memory_gib", "1024", "unknown"),
        ("N1", "gpu_count", "0", "unknown"),
        ("X9", "vcpus", "7", "unknown"),
        ("X9", "memory_gib", "1024", "unknown"),
        ("X9", "gpu_count", "0", "unknown"),
    ]
    assert found.judgements[0].evidence == "8 in page"
    assert share_that_agrees(found.counts["vcpus"]) == Decimal("75.0")


@pytest.mark.first_database
def test_a_cell_that_is_no_number_is_counted_as_unknown(engine: Engine, tmp_path: Path) -> None:
    found = audit(
        engine, tmp_path / "vms.csv", "skypilot", "InstanceType,Region,vCPUs,Price\nStandard_D2,eastus,abc,x\n"
    )
    assert verdicts(found) == [("D2", "vcpus", "abc", "unknown"), ("D2", "linux on_demand", "x", "unknown")]
    assert {judgement.evidence for judgement in found.judgements} == {"is not a number"}
    assert share_that_agrees(found.counts["vcpus"]) is None


@pytest.mark.first_database
def test_no_gpu_is_wrong_where_a_vendor_says_that_there_is_a_part_of_one(engine: Engine, tmp_path: Path) -> None:
    found = audit(engine, tmp_path / "sizes.csv", "aspire", "size,gpus\nStandard_NV6,0\n")
    assert verdicts(found) == [("NV6", "gpu_count", "0", "wrong")]


def test_a_price_is_judged_by_identities_two_publishers_and_earlier_days(engine: Engine, tmp_path: Path) -> None:
    rows = (
        "date,region,size,usd_per_hour\n"
        "2026-07-15,eastus,Standard_D2,0.1\n"
        "2026-07-15,East US,Standard_D2,0.2\n"  # that of Windows
        "2026-07-15,eastus,Standard_NV6,2\n"  # both lists, before and after, have 1
        "2026-08-20,eastus,Standard_NV6,2\n"  # no list is as new
        "2026-08-20,eastus,Standard_E32-8s_v4,2\n"  # as before August
        "2026-07-15,eastus,Standard_E32-8s_v4,2.2\n"  # it may have cost that between
        "2026-07-15,mars,Standard_D2,0.1\n"
        "2026-07-15,eastus,Standard_N1,0.1\n"
    )
    found = audit(engine, tmp_path / "prices.csv", "karpenter", rows)
    assert [each.verdict for each in found.judgements] == [
        *("agrees", "wrong", "wrong", "unknown", "stale", "unknown", "unknown", "unknown"),
    ]
    assert found.judgements[1].evidence.startswith("equal the Windows price: equals the Windows price in first")
    assert found.judgements[2].evidence == "1 in first of 2026-07-01 and in second of 2026-08-01"
    assert found.judgements[4].evidence == "right in first of 2026-07-01; 2.5 in second of 2026-08-01"


@pytest.mark.first_database
def test_sources_that_were_made_from_the_audited_catalog_are_no_evidence(engine: Engine, tmp_path: Path) -> None:
    own = replace(source("own", kind="third_party", retail=True), publisher="djtools")
    row = listed("Standard_N1", "7", AUGUST, "own")
    ingest(engine, Reading(sources=(own,), prices=price_list(row)), now=NOW)
    rows = "size_without_Standard,region,linux,date\nN1,eastus,7,2026-08-01\n"
    found = audit(engine, tmp_path / "prices.csv", "sku-locator-prices", rows)
    assert [each.verdict for each in found.judgements] == ["unknown"]


@pytest.mark.one_database
def test_every_format_reads_a_file_of_its_columns(engine: Engine, tmp_path: Path) -> None:
    for name, peer in PEER_FORMATS.items():
        columns = [peer.size, *filter(None, (peer.region, peer.day)), *peer.columns]
        cells = {peer.size: "Standard_D2", peer.region: "eastus", peer.day: "2026-07-15"}
        rows = ",".join(columns) + "\n" + ",".join(cells.get(column, "2") for column in columns) + "\n"
        found = audit(engine, tmp_path / f"{name}.csv", name, rows)
        assert {each.claim.meaning for each in found.judgements} == {*peer.columns.values()}


@pytest.mark.one_database
def test_a_row_that_contradicts_an_earlier_one_of_the_size_is_judged_and_a_repetition_is_not(
    engine: Engine, tmp_path: Path
) -> None:
    rows = "size,vcpus\nStandard_D2,2\nStandard_D2,2.0\nStandard_D2,3\nStandard_D2,many\nStandard_D2,0\n"
    assert verdicts(audit(engine, tmp_path / "sizes.csv", "aspire", rows)) == [
        ("D2", "vcpus", "2", "agrees"),
        ("D2", "vcpus", "3", "wrong"),
        ("D2", "vcpus", "many", "unknown"),
        ("D2", "vcpus", "0", "wrong"),
    ]


@pytest.mark.one_database
@pytest.mark.parametrize("size", ["size", "instance_type"])
@pytest.mark.parametrize("usd", ["usd_per_hour", "price_per_hour"])
@pytest.mark.parametrize("day", ["date", "generated"])
def test_either_name_of_a_column_of_karpenter_may_stand_with_either_of_another(
    engine: Engine, tmp_path: Path, size: str, usd: str, day: str
) -> None:
    rows = f"{size},region,{usd},{day}\nStandard_NV6,eastus,1,2026-07-15\n"
    (judged,) = audit(engine, tmp_path / "prices.csv", "karpenter", rows).judgements
    assert (judged.claim.size, judged.claim.day, judged.verdict) == ("Standard_NV6", date(2026, 7, 15), "agrees")


@pytest.mark.one_database
@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_file_may_be_separated_as_spreadsheets_do(engine: Engine, tmp_path: Path, separator: str) -> None:
    rows = "size,vcpus,gpus\nStandard_D2,2,\n".replace(",", separator)
    assert verdicts(audit(engine, tmp_path / "sizes.csv", "aspire", rows)) == [("D2", "vcpus", "2", "agrees")]


@pytest.mark.one_database
@pytest.mark.parametrize("number", ["1e30000000", "1e-30000000", "9" * 5_000])
def test_a_number_that_has_no_end_is_none(engine: Engine, tmp_path: Path, number: str) -> None:
    (judged,) = audit(engine, tmp_path / "sizes.csv", "aspire", f"size,vcpus\nStandard_D2,{number}\n").judgements
    assert (judged.verdict, judged.evidence) == ("unknown", "is not a number")


@pytest.mark.one_database
def test_json_of_vantage_has_sizes_and_prices_by_region(engine: Engine, tmp_path: Path) -> None:
    prices = {"linux": {"ondemand": "0.1"}, "mswin": {"ondemand": "0.3"}}
    entry = {"instance_type": "Standard_D2", "vCPU": 2, "memory": 8.0, "GPU": 0, "pricing": {"eastus": prices}}
    found = audit(engine, tmp_path / "instances.json", "vantage", json.dumps([entry]), day=date(2026, 7, 15))
    assert verdicts(found) == [
        ("D2", "vcpus", "2", "agrees"),
        ("D2", "memory_gib", "8.0", "agrees"),
        ("D2", "gpu_count", "0", "unknown"),
        ("D2", "linux on_demand", "0.1", "agrees"),
        ("D2", "windows on_demand", "0.3", "wrong"),
    ]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("name", "rows", "said"),
    [
        ("a.csv", "name,vcpu\nx,1\n", r"a\.csv:1: column 'size': is missing from the header"),
        ("a.csv", "size,cores\nx,1\n", r"a\.csv:1: has none of the columns vcpu, memory_mib, gpu"),
        ("a.csv", "size,vcpu,vcpu\nx,1,2\n", r"a\.csv:1: column 'vcpu': is in the header twice"),
        ("a.csv", "size,instance_type,vcpu\n", r"a\.csv: states no figure of a size"),
        ("a.csv", "size,vcpu\nx,\n", r"a\.csv: states no figure of a size"),
        ("a.csv", '[{"size": "x"}]', r"a\.csv: is JSON, where a CSV file is expected"),
        ("a.json", '[{}, {"pricing": ["x"]}]', r"a\.json:2: entry 2 has a pricing that is not an object"),
        ("a.csv", "size,vcpu\nx,1,2\n", r"a\.csv:2: has 3 cells where the header names 2 columns"),
        ("a.json", '[{"size": ', r"is not whole JSON: .* \(before byte 10\)"),
        ("a.json", "[7]", "entry 1 is not an object"),
        ("a.json", "{}", "has no list of objects"),
    ],
)
def test_a_file_of_another_format_is_refused(engine: Engine, tmp_path: Path, name: str, rows: str, said: str) -> None:
    with pytest.raises(BadData, match=said):
        audit(engine, tmp_path / name, "autoscaler", rows)


@pytest.mark.one_database
def test_the_command_prints_the_share_that_agrees_and_writes_every_judgement(
    few_sizes_url: str, tmp_path: Path
) -> None:
    file, out = tmp_path / "vms.csv", tmp_path / "judged.csv"
    file.write_text("InstanceType,vCPUs,Region\nStandard_NC24ads_A100_v4,12,eastus\n")
    result = run_command(few_sizes_url, "audit", str(file), "--as", "skypilot", "--csv", str(out))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == (
        "vcpus: 0 agrees, 0 other_meaning, 0 stale, 1 wrong, 0 unknown; 0.0 % of those judged agree"
    )
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert (row["line"], row["says"], row["expected"], row["verdict"]) == ("2", "12", "24", "wrong")
    later = run_command(few_sizes_url, "audit", str(file), "--as", "skypilot", "--day", "2999-01-01")
    assert (later.returncode, "must not be later than" in later.stderr) == (2, True)
    assert "the formats are skypilot (" in run_command(few_sizes_url, "audit", str(file), "--as", "?").stderr


# Our own catalog


@pytest.fixture(scope="module")
def catalog(all_clouds_url: str) -> Iterator[Engine]:
    """The seeds of all clouds."""
    engine = make_engine(all_clouds_url)
    yield engine
    engine.dispose()


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_of_our_own_figures_of_sizes_none_is_wrong(catalog: Engine, tmp_path: Path) -> None:
    columns = "name, vcpus, memory_gib, gpu_count_numerator, gpu_count_denominator, gpu_memory_gib_per_gpu"
    with catalog.connect() as connection:
        sizes = connection.execute(text(f"select {columns} from size")).all()
    rows = ["name,vcpus,memory_gib,gpu_fraction,gpu_memory_gib_per_gpu"]
    for name, vcpus, memory, numerator, denominator, each in sizes:
        share = "" if numerator is None else f"{numerator}/{denominator}"
        rows.append(",".join("" if cell is None else str(cell) for cell in (name, vcpus, memory, share, each)))
    found = audit(catalog, tmp_path / "sizes.csv", "vmsizes", "\n".join(rows) + "\n")
    assert [each for each in found.judgements if each.verdict == "wrong"] == []
    assert all(share_that_agrees(counts) == 100 for counts in found.counts.values())
    assert found.counts["vcpus"]["agrees"] > 3500


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_of_our_own_prices_none_is_wrong(catalog: Engine, tmp_path: Path) -> None:
    statement = (
        "select seen_until, region, size_key, nano_usd_per_hour from price join source on id = source_id "
        "where os = 'linux' and purchase = 'on_demand' and not approximate_date "
        "and region in ('westeurope', 'us-east-1', 'eu-central-1', 'us-central1', 'oci')"
    )
    with catalog.connect() as connection:
        prices = connection.execute(text(statement)).all()
    rows = "".join(f"{day},{where},{name},{Decimal(nano).scaleb(-9):f}\n" for day, where, name, nano in prices)
    found = audit(catalog, tmp_path / "own.csv", "karpenter", "date,region,size,usd_per_hour\n" + rows)
    assert [each for each in found.judgements if each.verdict == "wrong"] == []
