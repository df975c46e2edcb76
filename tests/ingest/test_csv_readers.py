"""The readers of CSV files, each on a file of a few lines."""

import os
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest

from app.catalog.readings import PriceRow, SourceRow
from app.errors import BadData
from app.ingest.registry import read_csv_source
from app.ingest.sources.claims import load_gpu_rows, read_facts, read_sources
from app.ingest.sources.prices import read_prices
from app.ingest.sources.reference import (
    read_aliases,
    read_availability,
    read_benchmarks,
    read_corrections,
    read_regions,
)
from tests.factories import price_rows

SOURCES = """id,title,publisher,kind,url,published_on
list,A price list,Someone,third_party,https://example.org/list,2026-06-18
memo,A memo,Someone,third_party,,
"""
PRICES = "size,region,os,purchase,usd_per_hour,valid_from,approximate_date,source\n"


def write(folder: Path, text: str, name: str = "some.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def sources(tmp_path: Path) -> Mapping[str, SourceRow]:
    return read_sources(write(tmp_path, SOURCES, "sources.csv"))


def test_a_source_may_be_undated_and_without_an_address(sources: Mapping[str, SourceRow]) -> None:
    assert sources["list"].published_on == date(2026, 6, 18)
    assert (sources["memo"].url, sources["memo"].published_on) == (None, None)


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("list,Again,Someone,third_party,,", "column 'id': 'list': is listed twice"),
        ("x,X,Someone,blog,,", "column 'kind': 'blog': must be one of vendor_page, vendor_api"),
        ("x,X,Someone,third_party,,2095-01-01", "column 'published_on': '2095-01-01': is in the future"),
        ("x,X,Someone,third_party,http://example.org,", "column 'url': 'http://example.org': must start with https://"),
    ],
)
def test_a_bad_row_in_the_list_of_sources_is_refused(tmp_path: Path, line: str, detail: str) -> None:
    with pytest.raises(BadData) as caught:
        read_sources(write(tmp_path, SOURCES + line + "\n"))
    assert f"some.csv:4: {detail}" in str(caught.value)


def test_a_price_is_read_with_its_place_and_its_exact_digits(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    path = write(tmp_path, PRICES + "Standard_NC6s_v3,West Europe,linux,spot,0.330480,2026-08-22,false,list\n")
    reading = read_prices(path, sources)
    assert tuple(price_rows(reading.prices)) == (
        PriceRow(
            size="Standard_NC6s_v3",
            region="westeurope",
            os="linux",
            purchase="spot",
            usd_per_hour=Decimal("0.330480"),
            valid_from=date(2026, 8, 22),
            approximate_date=False,
            source="list",
            file=str(path),
            line=2,
        ),
    )


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_list_of_sizes_regions_and_prices_is_a_source_of_its_own(
    tmp_path: Path, separator: str, encoding: str
) -> None:
    path = tmp_path / "Acme.csv"
    text = "size,region,usd_per_hour\nStandard_NC6s_v3,West Europe,3.50\n".replace(",", separator)
    path.write_text(text, encoding=encoding)
    os.utime(path, (1_780_000_000, 1_780_000_000))  # 2026-05-28
    reading = read_csv_source("prices", path)
    assert [(note.id, note.publisher, note.published_on) for note in reading.citable] == [("prices-acme", "own", None)]
    (price,) = price_rows(reading.prices)
    assert price == PriceRow(
        size="Standard_NC6s_v3",
        region="westeurope",
        os="linux",
        purchase="on_demand",
        usd_per_hour=Decimal("3.50"),
        valid_from=date(2026, 5, 28),
        approximate_date=True,
        source="prices-acme",
        file=str(path),
        line=2,
    )


def test_a_day_of_a_list_is_not_a_guess_unless_it_says_so(tmp_path: Path) -> None:
    text = "size,region,usd_per_hour,valid_from\nnc6s_v3,eastus,3.5,2026-06-01\n"
    (price,) = price_rows(read_csv_source("prices", write(tmp_path, text)).prices)
    assert (price.valid_from, price.approximate_date) == (date(2026, 6, 1), False)


def test_a_column_whose_unit_is_unknown_is_refused_with_the_name_that_has_it(tmp_path: Path) -> None:
    path = write(tmp_path, "size,region,price\nnc6s_v3,eastus,3.5\n")
    with pytest.raises(BadData, match="column 'price': is unknown; did you mean usd_per_hour"):
        list(price_rows(read_csv_source("prices", path).prices))


def test_only_cited_sources_are_handed_on_with_the_digest_of_the_citing_file(
    tmp_path: Path, sources: Mapping[str, SourceRow]
) -> None:
    path = write(tmp_path, "alias,size,source,reason\nNC6_Promo,NC6,memo,a promotion\n")
    (note,) = read_aliases(path, sources).sources
    assert (note.id, note.sha256) == ("memo", sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("NC6,eastus,linux,on_demand,0,2026-01-01,false,list", "usd_per_hour"),
        ("NC6,eastus,linux,on_demand,,2026-01-01,false,list", "usd_per_hour"),
        ("NC6,eastus,beos,on_demand,1,2026-01-01,false,list", "os"),
        ("NC6,eastus,linux,reserved,1,2026-01-01,false,list", "purchase"),
        ("NC6,eastus,linux,spot,1,June,false,list", "valid_from"),
        ("NC6,eastus,linux,spot,1,2026-01-01,maybe,list", "approximate_date"),
        ("NC6,eastus,linux,spot,1,2026-01-01,false,hearsay", "source"),
        (",eastus,linux,spot,1,2026-01-01,false,list", "size"),
        ("NC6,,linux,spot,1,2026-01-01,false,list", "region"),
    ],
)
def test_a_bad_price_is_refused_with_file_line_and_column(
    tmp_path: Path, sources: Mapping[str, SourceRow], line: str, column: str
) -> None:
    path = write(tmp_path, PRICES + line + "\n")
    with pytest.raises(BadData) as caught:
        list(price_rows(read_prices(path, sources).prices))
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(path), 2, column)


def test_every_filled_cell_of_a_gpu_is_a_statement_and_a_blank_one_is_none(
    tmp_path: Path, sources: Mapping[str, SourceRow]
) -> None:
    path = write(tmp_path, "id,model,memory_gib,fp64_tflops,scale_up_domain_gpus,source\nt4,Tesla T4,16,0.25,,list\n")
    found = {s.field: (s.kind, s.subject, s.value, s.raw, s.line) for s in read_facts(path, sources, kind="gpu").facts}
    assert found == {
        "model": ("gpu", "t4", "Tesla T4", "Tesla T4", 2),
        "memory_gib": ("gpu", "t4", Decimal(16), "16", 2),
        "fp64_tflops": ("gpu", "t4", Decimal("0.25"), "0.25", 2),
    }


def test_every_filled_cell_of_a_size_is_a_statement(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    path = write(tmp_path, "id,memory_gib,gpu_count,generation_1,max_nics,source\nStandard_NX6,27.5,1/6,false,,list\n")
    found = {s.field: (s.kind, s.subject, s.value) for s in read_facts(path, sources, kind="size").facts}
    assert found == {
        "memory_gib": ("size", "Standard_NX6", Decimal("27.5")),
        "gpu_count": ("size", "Standard_NX6", Fraction(1, 6)),
        "generation_1": ("size", "Standard_NX6", False),
    }


def test_a_source_of_the_list_may_be_pinned(tmp_path: Path) -> None:
    text = SOURCES.replace("published_on", "published_on,pinned").replace("18\n", "18,true\n").replace(",,\n", ",,,\n")
    found = read_sources(write(tmp_path, text, "sources.csv"))
    assert {id_: source.pinned for id_, source in found.items()} == {"list": True, "memo": False}


def test_a_pin_is_true_false_or_blank(tmp_path: Path) -> None:
    text = SOURCES.replace("published_on", "published_on,pinned").replace("18\n", "18,maybe\n").replace(",,\n", ",,,\n")
    with pytest.raises(BadData, match="column 'pinned': 'maybe': must be true, false or blank"):
        read_sources(write(tmp_path, text))


def test_two_sources_may_state_figures_of_one_gpu(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    path = write(tmp_path, "id,memory_gib,source\nv710,28,list\nv710,24,memo\n")
    statements = read_facts(path, sources, kind="gpu").facts
    assert [(s.source, s.value) for s in statements] == [("list", Decimal(28)), ("memo", Decimal(24))]


def test_a_gpus_names_are_filled_in_in_each_of_its_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "id,model,aliases,memory_gib,source\nv710,Pro V710,V710,28,list\nv710,,,24,memo\n")
    rows = load_gpu_rows(path)
    assert [(row["model"], row["aliases"], row["memory_gib"]) for row in rows] == [
        ("Pro V710", "V710", "28"),
        ("Pro V710", "V710", "24"),
    ]


@pytest.mark.parametrize(
    ("column", "cell", "detail"),
    [
        ("memory_gib", "lots", "must be a number above 0"),
        ("scale_up_domain_gpus", "1.5", "must be a whole number"),
        ("colour", "green", "is unknown"),
    ],
)
def test_a_figure_of_a_gpu_that_its_field_cannot_hold_is_refused(
    tmp_path: Path, sources: Mapping[str, SourceRow], column: str, cell: str, detail: str
) -> None:
    with pytest.raises(BadData, match=detail):
        read_facts(write(tmp_path, f"id,{column},source\nt4,{cell},list\n"), sources, kind="gpu")


@pytest.mark.parametrize(
    ("vcpus", "detail"),
    [
        ("2147483648", "must be at most 2147483647"),
        ("9" * 20, "must be at most 2147483647"),
        ("9" * 5_000, "must be a number above 0"),
    ],
)
def test_a_count_that_no_column_holds_is_refused(
    tmp_path: Path, sources: Mapping[str, SourceRow], vcpus: str, detail: str
) -> None:
    path = write(tmp_path, f"id,source,vcpus\nNC6,list,{vcpus}\n")
    with pytest.raises(BadData, match=f"some.csv:2: column 'vcpus': .*{detail}"):
        read_facts(path, sources, kind="size")


@pytest.mark.parametrize(
    ("column", "cell", "detail"),
    [
        ("infiniband", "yes", "must be true or false"),
        ("retirement_date", "31/12/2027", "must be a date written as YYYY-MM-DD"),
        ("gpu_count", "one", "must be a number, or a fraction such as 1/6"),
        ("gpu_count", "1/0", "must be a number, or a fraction such as 1/6"),
        ("gpu_count", "-1/6", "must be a fraction of whole numbers up to 2147483647, and not below 0"),
    ],
)
def test_how_a_figure_is_written_is_told_in_words(
    tmp_path: Path, sources: Mapping[str, SourceRow], column: str, cell: str, detail: str
) -> None:
    with pytest.raises(BadData, match=f"some.csv:2: column '{column}': '{cell}': {detail}"):
        read_facts(write(tmp_path, f"id,source,{column}\nNC6,list,{cell}\n"), sources, kind="size")


def test_a_size_may_have_no_disk_but_not_no_memory(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    path = write(tmp_path, "id,temp_disk_gib,gpu_count,source\nx1,0,0,list\n")
    assert {s.field: s.value for s in read_facts(path, sources, kind="size").facts} == {
        "temp_disk_gib": Decimal(0),
        "gpu_count": Fraction(0),
    }
    with pytest.raises(BadData, match="must be a number above 0"):
        read_facts(write(tmp_path, "id,memory_gib,source\nx1,0,list\n"), sources, kind="size")


def test_a_series_is_read_with_its_rack(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    path = write(tmp_path, "id,name,rack_vms,rack_hbm_tb,source\nnd,ND,18,13.5,list\n")
    statements = read_facts(path, sources, kind="series").facts
    assert [(s.kind, s.subject, s.field, s.value) for s in statements] == [
        ("series", "nd", "name", "ND"),
        ("series", "nd", "rack_vms", 18),
        ("series", "nd", "rack_hbm_tb", Decimal("13.5")),
    ]


def test_a_category_is_one_by_which_sizes_are_searched(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    path = write(tmp_path, "id,category,source\nnd,gpu_accelerated,list\nnx,banana,list\n")
    with pytest.raises(BadData, match=r"some\.csv:3: column 'category': 'banana': must be one of general_purpose, "):
        read_facts(path, sources, kind="series")


def test_a_region_is_read_under_its_code(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    path = write(tmp_path, "code,name,geography,source\nWest US 3,West US 3,,list\n")
    (region,) = read_regions(path, sources).regions
    assert (region.code, region.name, region.geography) == ("westus3", "West US 3", None)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_each_region_is_a_column_of_the_zones_of_sizes(
    tmp_path: Path, sources: Mapping[str, SourceRow], separator: str
) -> None:
    text = "size,eastus,West Europe,source\nStandard_NC6s_v3,1 2,,memo\n".replace(",", separator)
    (place,) = read_availability(write(tmp_path, text), sources).availability
    assert (place.size, place.region, place.zones) == ("Standard_NC6s_v3", "eastus", "1 2")


def test_a_size_has_one_list_of_zones_in_a_region(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    rows = "size,eastus,westus,source\nStandard_NC6,1  2,,memo\nnc6,1 2,-,memo\nnc6,3,,list\n"
    assert len(read_availability(write(tmp_path, rows), sources).availability) == 4
    expected = r"some\.csv:5: column 'size': 'NC6': is listed twice: in line 3 its zones in westus are -, here 1"
    with pytest.raises(BadData, match=expected):
        read_availability(write(tmp_path, rows + "NC6,,1,memo\n"), sources)


def test_a_code_that_is_no_code_is_refused(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    path = tmp_path / "regions.csv"
    path.write_text('code,name,geography,source\n"west""us",West,,list\n')
    with pytest.raises(BadData, match=r"regions.csv:2: column 'code': .*must be letters and digits"):
        read_regions(path, sources)


def test_an_alias_is_another_name(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    header = "alias,size,source,reason\n"
    path = write(tmp_path, header + "Standard_ND96asr_A100_v4,Standard_ND96asr_v4,list,same price\n")
    assert read_aliases(path, sources).aliases[0].size == "Standard_ND96asr_v4"
    with pytest.raises(BadData, match="is the same name as its size"):
        read_aliases(write(tmp_path, header + "nc6,Standard_NC6,list,none\n"), sources)


@pytest.mark.parametrize(
    ("kind", "rows", "cell"),
    [
        ("aliases", "alias,size,source,reason\nnc6old,NC6,list,a\nStandard_NC6old,NC12,memo,b", "Standard_NC6old"),
        ("regions", "code,name,geography,source\nwestus3,West,,list\nWest US 3,West,,list", "West US 3"),
        (
            "benchmarks",
            "id,series,scope,workload,metric,value,unit,comparison,source\n" + "b,ND,vm,w,m,1,u,,list\n" * 2,
            "b",
        ),
    ],
)
def test_what_is_listed_twice_is_refused(
    tmp_path: Path, sources: Mapping[str, SourceRow], kind: str, rows: str, cell: str
) -> None:
    read = {"aliases": read_aliases, "regions": read_regions, "benchmarks": read_benchmarks}[kind]
    with pytest.raises(BadData, match=f"some.csv:3: column .*: '{cell}': is listed twice: in line 2, too"):
        read(write(tmp_path, rows + "\n"), sources)


CORRECTIONS = "kind,subject,field,source,value,reason\n"


def test_a_correction_needs_no_listed_source(tmp_path: Path) -> None:
    path = write(tmp_path, CORRECTIONS + "size,Standard_NC6,max_data_disks,some-page,16,a slip\n")
    (correction,) = read_corrections(path, {}).corrections
    assert (correction.source, correction.value) == ("some-page", "16")
    path = write(tmp_path, CORRECTIONS + "size,Standard_NC6,temp_disk_gib,some-page,0,none\n")
    assert read_corrections(path, {}).corrections[0].value == "0"


def test_a_figure_is_corrected_to_one_value(tmp_path: Path) -> None:
    row = "size,Standard_NC6,vcpus,page,16,slip\n"
    path = write(tmp_path, CORRECTIONS + row + row.replace("Standard_NC6", "nc6"))
    assert len(read_corrections(path, {}).corrections) == 2
    path = write(tmp_path, CORRECTIONS + row + row.replace("Standard_NC6", "nc6").replace("16", "17"))
    with pytest.raises(BadData, match=r"some\.csv:3: column 'value': '17': line 2 corrects the same figure to '16'"):
        read_corrections(path, {})


@pytest.mark.parametrize(
    ("line", "column", "detail"),
    [
        ("vm,NC6,vcpus,page,16,slip", "kind", "must be one of"),
        ("size,NC6,colour,page,16,slip", "field", "must be one of"),
        ("size,NC6,vcpus,page,many,slip", "value", "'many': must be a whole number"),
        ("size,NC6,memory_gib,page,many,slip", "value", "'many': must be a number"),
        ("size,NC6,infiniband,page,yes,slip", "value", "'yes': must be true or false"),
        ("size,NC6,vcpus,page,16,", "reason", "must not be blank"),
        ("size,NC6,vcpus,page,99999999999999999999,slip", "value", "must be at most 2147483647"),
        ("size,NC6,vcpus,page,2147483648,slip", "value", "must be at most 2147483647"),
        ("size,NC6,memory_gib,page,-220,slip", "value", "'-220': must be a number above 0"),
        ("size,NC6,temp_disk_gib,page,-5,slip", "value", "'-5': must be a number above 0"),
        ("size,NC6,gpu_count,page,-1/6,slip", "value", "'-1/6': must be a fraction .*, and not below 0"),
        ("size,NC6,temp_disk,page,5,slip", "field", r"'temp_disk': is unknown; did you mean temp_disk_gib\?$"),
    ],
)
def test_a_bad_correction_is_refused(tmp_path: Path, line: str, column: str, detail: str) -> None:
    with pytest.raises(BadData, match=detail) as caught:
        read_corrections(write(tmp_path, CORRECTIONS + line + "\n"), {})
    assert (caught.value.line, caught.value.column) == (2, column)


def test_a_benchmark_says_what_was_measured(tmp_path: Path, sources: Mapping[str, SourceRow]) -> None:
    header = "id,series,scope,workload,metric,value,unit,comparison,source\n"
    path = write(tmp_path, header + "b,ND_GB300_v6,rack,Llama 2 70B,throughput,1100000,tokens/s,,list\n")
    (benchmark,) = read_benchmarks(path, sources).benchmarks
    assert (benchmark.value, benchmark.comparison) == (Decimal(1_100_000), None)
