"""Pages of several series: what a section says holds for its own sizes."""

from pathlib import Path
from time import process_time

import pytest

from tests.ingest.pages import details, facts, read, read_files

COLUMNS = "| Size | vCPU | GPU | GPU memory: GiB |\n|---|---|---|---|\n"
TWO = f"""
# Sizes with GPUs

All are powered by 4 NVIDIA Tesla V100 GPUs.

## NX-series

Premium Storage:  Not Supported

NX VMs are powered by NVIDIA Tesla P40 GPUs.

{COLUMNS}| Standard_NX6 | 6 | 1 | 24 |
| Standard_NX24r * | 24 | 4 | 96 |

*RDMA capable

## NXv2-series (Preview) <sup>1</sup>

Premium Storage:  Supported

Infiniband: Not supported

### Drivers

The NXv2-series will be retired on August 31, 2028. They are powered by NVIDIA Tesla V100 GPUs.

{COLUMNS}| Standard_NX6s_v2 | 6 | 1 | 32 |
"""


def test_flags_of_a_section_hold_for_its_sizes_only(tmp_path: Path) -> None:
    reading = read(tmp_path, TWO, title="Sizes with GPUs")
    old, new = facts(reading, "Standard_NX24r"), facts(reading, "Standard_NX6s_v2")
    assert (old["series"], new["series"]) == ("NX", "NXv2")
    assert (old["premium_storage"], new["premium_storage"]) == (False, True)
    assert (old["infiniband"], new["infiniband"]) == (True, False)
    assert "infiniband" not in facts(reading, "Standard_NX6")
    assert not reading.reports


def test_gpus_preview_and_retirement_belong_to_their_section(tmp_path: Path) -> None:
    reading = read(tmp_path, TWO, title="Sizes with GPUs")
    old, new = facts(reading, "Standard_NX6"), facts(reading, "Standard_NX6s_v2")
    assert (old["gpu_model"], new["gpu_model"]) == ("P40", "V100")
    assert {"preview", "retirement_date"}.isdisjoint(old)
    assert {"preview", "retirement_date"} <= set(new)


def test_every_section_names_its_series_and_its_line(tmp_path: Path) -> None:
    reading = read(tmp_path, TWO, title="Sizes with GPUs")
    lines = (tmp_path / "page.md").read_text().splitlines()
    named = {s.value: lines[s.line - 1] for s in reading.facts if s.field == "name"}
    assert named == {"NX": "## NX-series", "NXv2": "## NXv2-series (Preview) <sup>1</sup>"}


def test_an_included_file_may_have_several_series(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "page.md": "# Sizes with GPUs\n\n[!INCLUDE [x](includes/all.md)]\n",
        "includes/all.md": TWO,
    }
    reading = read_files(tmp_path, files)
    assert facts(reading, "Standard_NX6")["premium_storage"] is False
    assert facts(reading, "Standard_NX6s_v2")["premium_storage"] is True


def test_a_section_takes_the_files_that_it_includes(tmp_path: Path) -> None:
    include = "\n[!INCLUDE [x](includes/specs.md)]\n"
    text = TWO.replace("## NXv2-series", include + "\n## NXv2-series")
    specs = "| Part | Quantity | Specs |\n|---|---|---|\n| Network | 7 NICs | |\n"
    reading = read_files(tmp_path, {"page.md": text, "includes/specs.md": specs})
    assert facts(reading, "Standard_NX6")["max_nics"] == 7
    assert "max_nics" not in facts(reading, "Standard_NX6s_v2")


def test_a_section_ends_where_one_of_its_level_begins(tmp_path: Path) -> None:
    text = TWO + f"\n## Older sizes\n\nPremium Storage:  Not Supported\n\n{COLUMNS}| Standard_X1 | 1 | 0 | |\n"
    reading = read(tmp_path, text, title="Sizes with GPUs")
    assert facts(reading, "Standard_NX6s_v2")["premium_storage"] is True
    assert "series" not in facts(reading, "Standard_X1")


@pytest.mark.parametrize(
    "heading", ["## Features of the NX-series", "## Other series", "## NY-series", "### [Basics](#tab/sizebasic)"]
)
def test_headings_without_sizes_of_a_second_series_do_not_split_a_page(tmp_path: Path, heading: str) -> None:
    text = f"# NX-series\n\n{COLUMNS}| Standard_NX6 | 6 | 1 | 24 |\n\n{heading}\n\nPremium Storage: Supported\n"
    reading = read(tmp_path, text, title="NX-series")
    assert facts(reading, "Standard_NX6")["premium_storage"] is True
    assert facts(reading, "Standard_NX6")["series"] == "NX"


@pytest.mark.parametrize(
    ("title", "size", "series"),
    [
        ("NXv2-series", "Standard_NX6s_v2", "NXv2"),
        ("NX A100 v4-series", "Standard_NX96asr_v4", "NX A100 v4"),
        ("NXadsA10_v5 sizes series", "Standard_NX6ads_A10_v5", "NXadsA10_v5"),
        ("NXH100v5-series", "Standard_NX96isr_H100_v5", "NXH100v5"),
        ("NXads V620-series", "Standard_NX32ads_V620_v1", "NXads V620"),
        ("NXsv2-series", "Standard_NXS6_v2", "NXsv2"),
        ("NXbdsv6-series", "Standard_NX6bds_v6", "NXbdsv6"),
        ("NXbdsv6-series", "Standard_NX6-2ibds_v6", "NXbdsv6"),
        ("NXbdsv6-series", "Standard_NX6ds_v6", None),
        ("NXbsv6-series", "Standard_NX6b_v6", "NXbsv6"),
        ("NXv3-series", "Standard_NX6s_v2", None),
        ("NX-series", "Standard_NX6s_v2", None),
        ("NXC-series", "Standard_NX6", None),
        ("RDMA", "Standard_NX6", None),
    ],
)
def test_a_size_belongs_to_the_series_with_its_letters_and_version(
    tmp_path: Path, title: str, size: str, series: str | None
) -> None:
    reading = read(tmp_path, f"# {title}\n\n{COLUMNS}| {size} | 6 | 1 | 24 |\n", title=title)
    assert facts(reading, size).get("series") == series
    assert [f"does not fit {size}" in text for text in details(reading)] == ([] if series else [True])


def test_what_a_page_says_of_its_series_is_not_said_of_sizes_of_others(tmp_path: Path) -> None:
    rows = "".join(f"| Standard_NX{count}bs_v6 | {count} | 1 | 24 |\n" for count in (2, 4, 8))
    page = (
        f"# NXbsv6-series (Preview)\n\n{COLUMNS}{rows}| Standard_NX2s_v6 | 2 | 1 | 24 |\n\nLive Migration: Supported\n"
    )
    reading = read(tmp_path, page, title="NXbsv6-series (Preview)")
    assert facts(reading, "Standard_NX8bs_v6").keys() >= {"preview", "live_migration", "vcpus"}
    assert facts(reading, "Standard_NX2s_v6").keys().isdisjoint({"preview", "live_migration", "series"})


def test_host_specifications_above_all_sections_hold_for_each(tmp_path: Path) -> None:
    specs = (
        "| Part | Quantity | Specs |\n|---|---|---|\n| Processor | | AMD third-Generation EPYC<sup>TM</sup> 7763v |\n"
    )
    page = f"# NXas and NXads-series\n\n{specs}"
    for series, size in (("NXasv5", "NX2as_v5"), ("NXadsv5", "NX2ads_v5")):
        page += f"\n## {series}-series\n\n{COLUMNS}| Standard_{size} | 6 | 1 | 24 |\n"
    reading = read(tmp_path, page, title="NXasv5 and NXadsv5-series")
    for size in ("Standard_NX2as_v5", "Standard_NX2ads_v5"):
        assert facts(reading, size)["cpu_model"] == "AMD EPYC 7763v"


def test_a_report_names_the_other_page_by_the_path_that_was_given(tmp_path: Path) -> None:
    page = f"# NX-series\n\n{COLUMNS}| Standard_NX6 | 6 | 1 | 24 |\n"
    reading = read_files(tmp_path, {"a.md": page, "b.md": page.replace("NX-series", "NXs-series")})
    (report,) = [text for text in details(reading) if "claims" in text]
    assert f"which {tmp_path.as_posix()}/a.md already assigned to NX" in report


def test_features_of_several_series_side_by_side_are_not_read(tmp_path: Path) -> None:
    flags = "| Feature | NX | NY |\n|---|---|---|\n| Premium Storage | Supported | Not Supported |\n"
    reading = read(tmp_path, f"# NX-series\n\n{flags}\n{COLUMNS}| Standard_NX6 | 6 | 1 | 24 |\n", title="NX-series")
    assert "premium_storage" not in facts(reading, "Standard_NX6")
    assert ["side by side" in text for text in details(reading)] == [True]


def test_a_heading_may_name_its_series_without_saying_so(tmp_path: Path) -> None:
    text = f"## NX A100 v4\n\n{COLUMNS}| NX96_v4 | 6 | 1 | 40 |\n\n## NY\n\n{COLUMNS}| NY6 | 6 | 1 | 24 |\n"
    reading = read_files(tmp_path, {"notes.md": f"# What we run\n\n{text}"})
    assert facts(reading, "NX96_v4")["series"] == "NX A100 v4"
    assert facts(reading, "NY6")["series"] == "NY"
    assert not reading.reports


def test_a_section_of_products_is_one_of_its_series(tmp_path: Path) -> None:
    page = "# QCas_cc_v5 and QCads_cc_v5-series\n"
    for series, size, status in (
        ("QCas_cc_v5", "QC4as_cc_v5", "Not Supported"),
        ("QCads_cc_v5", "QC4ads_cc_v5", "Supported"),
    ):
        page += f"\n### {series}-series products\n\n- Ephemeral OS Disks: {status}\n\n"
        page += f"| Size | vCPU |\n|---|---|\n| Standard_{size} | 4 |\n"
    reading = read(tmp_path, page, title="QCas_cc_v5 and QCads_cc_v5-series")
    found = [facts(reading, f"Standard_{size}") for size in ("QC4as_cc_v5", "QC4ads_cc_v5")]
    assert [each["ephemeral_os_disk"] for each in found] == [False, True]
    assert [each["series"] for each in found] == ["QCas_cc_v5", "QCads_cc_v5"]


@pytest.mark.takes_seconds
def test_a_page_takes_time_in_proportion_to_its_sections(tmp_path: Path) -> None:
    def seconds(sections: int) -> float:
        text = "".join(f"## DX{n}-series\n\n| Size | vCPU |\n|---|---|\n| DX{n}_v2 | 4 |\n\n" for n in range(sections))
        begun = process_time()
        read(tmp_path, text)
        return process_time() - begun

    # The least of some times is what the page takes, and not what the other processes on these cores add to it.
    many, few = (min(seconds(sections) for _ in range(3)) for sections in (1_600, 200))
    assert many < 12 * few
