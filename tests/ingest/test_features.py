from pathlib import Path

import pytest

from tests.ingest.pages import details, facts, read

TABLE = "| Size | vCPU |\n|---|---|\n| NX6 | 6 |\n| NX12 | 12 |\n\n"
BOTH = {"premium_storage": True, "live_migration": False}


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(
            "[Premium Storage](a.md): Supported <br>[Live Migration](b.md): Not Supported <br>", id="one line"
        ),
        pytest.param(
            "[Premium Storage](a.md): Supported<br>\n[Live Migration](b.md): Not Supported<br>", id="line by line"
        ),
        pytest.param(
            "<br>\n[Premium Storage](a.md): Supported<br>\n[Live Migration](b.md): Not Supported<br>",
            id="below a break",
        ),
        pytest.param("- [Premium Storage](a.md): Supported\n- [Live Migration](b.md): Not Supported", id="list"),
        pytest.param("* **Premium Storage**: Supported\n* **Live Migration**: Not Supported", id="bold list"),
        pytest.param("Premium Storage:  Supported\n\nLive Migration: Not Supported", id="old lines"),
        pytest.param("Premium Storage:Supported\n\nLive Migration:Not Supported", id="without a space"),
        pytest.param(
            "|Feature name | Status |\n|---|---|\n|[Premium Storage](a.md)| Supported|\n|Live Migration| Not Supported",
            id="table",
        ),
        pytest.param(
            "|Feature | Supported? |\n|---|---|\n|Premium storage| Yes |\n|Live migration| No|",
            id="table of yes and no",
        ),
    ],
)
def test_a_flag_holds_for_every_size_whatever_its_form(tmp_path: Path, flags: str) -> None:
    reading = read(tmp_path, f"{TABLE}{flags}\n")
    for subject in ("NX6", "NX12"):
        found = facts(reading, subject)
        assert {name: found.get(name) for name in BOTH} == BOTH
    assert details(reading) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("VM Generation Support: Generation 1 and 2", {"generation_1": True, "generation_2": True}),
        ("[VM Generation Support](g.md): Generation 2<br>", {"generation_1": False, "generation_2": True}),
        ("[Generation 1 VMs](g.md): Not Supported", {"generation_1": False}),
        ("Ultra disk: Supported[Learn more](u.md)", {"ultra_disk": True}),
        (
            "[Ultra Disks](u.md): Supported ([Learn more](l.md) about availability, usage, and performance) <br>",
            {"ultra_disk": True},
        ),
        ("[Ephemeral OS Disks](e.md): Supported ([In preview](p.md))", {"ephemeral_os_disk": True}),
        ("[Accelerated Networking](n.md)<sup>1</sup>: Supported", {"accelerated_networking": True}),
        ("[Accelerated Networking](n.md)1: Supported", {"accelerated_networking": True}),
        ("Accelerated Networking1: Required<br>", {"accelerated_networking": True}),
        ("[Accelerated Networking](n.md): Required", {"accelerated_networking": True}),
        ("Live Migration: Limited Support", {"live_migration": True}),
        ("Live Migration: Restricted Support<br>", {"live_migration": True}),
        (
            "InfiniBand: Supported, GPUDirect RDMA, 8 x 200 Gigabit HDR<br>",
            {"infiniband": True, "infiniband_gbps": 1600, "gpudirect_rdma": True},
        ),
        ("InfiniBand: Not Supported", {"infiniband": False}),
        ("Nvidia NVLink Interconnect: Supported<br>", {"nvlink": True, "gpu_interconnect": "NVLink"}),
        ("NVIDIA NVLink Interconnect: Not Supported", {"nvlink": False}),
        ("Hibernation: Not applicable", {"hibernation": False}),
    ],
)
def test_text_after_supported_is_read(tmp_path: Path, line: str, found: dict[str, object]) -> None:
    reading = read(tmp_path, f"{TABLE}{line}\n")
    assert {name: value for name, value in facts(reading, "NX6").items() if name not in ("vcpus", "series")} == found
    assert details(reading) == []


def test_a_flag_in_preview_says_so(tmp_path: Path) -> None:
    reading = read(tmp_path, f"{TABLE}Ephemeral OS Disk: Supported (In preview)\n")
    assert {item.note for item in reading.facts if item.field == "ephemeral_os_disk"} == {"in preview"}


@pytest.mark.parametrize("status", ["Required", "Limited Support"])
def test_a_flag_that_is_more_or_less_than_supported_says_so(tmp_path: Path, status: str) -> None:
    reading = read(tmp_path, f"{TABLE}Live Migration: {status}\n")
    assert {item.note for item in reading.facts if item.field == "live_migration"} == {status.lower()}


def test_every_flag_has_its_own_line(tmp_path: Path) -> None:
    reading = read(tmp_path, f"{TABLE}Premium Storage: Supported<br>\nLive Migration: Not Supported<br>\n")
    lines = {item.field: item.line for item in reading.facts}
    assert lines["live_migration"] == lines["premium_storage"] + 1 == 13


@pytest.mark.parametrize("line", ["Time Travel: Supported", "Premium Storage: maybe"])
def test_a_flag_that_is_not_understood_is_reported(tmp_path: Path, line: str) -> None:
    reading = read(tmp_path, f"{TABLE}{line}\n")
    assert set(facts(reading, "NX6")) == {"vcpus", "series"}
    assert len(reading.reports) == 1


def test_lines_that_look_like_flags_are_ignored(tmp_path: Path) -> None:
    reading = read(tmp_path, f"{TABLE}ACU: 230-260\n\nPricing Calculator : [here](x.md)\n")
    assert details(reading) == []


def test_flags_in_columns_are_of_their_row(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        "| Size | Premium Storage | Accelerated networking |\n|---|---|---|\n"
        "| NX6 | Yes | - |\n| NX12 | No | Supported |\n",
    )
    assert facts(reading, "NX6") == {"series": "NX v1", "premium_storage": True}
    assert facts(reading, "NX12") == {"series": "NX v1", "premium_storage": False, "accelerated_networking": True}


def test_flags_by_size_in_columns_are_reported(tmp_path: Path) -> None:
    reading = read(
        tmp_path, f"{TABLE}|Feature | NX6 | NX12 |\n|---|---|---|\n|Premium Storage| Supported | Not Supported |\n"
    )
    assert "premium_storage" not in facts(reading, "NX6")
    assert ["has sizes as columns" in text for text in details(reading)] == [True]


FEATURES = """
## {series} series

- Premium Storage: Supported
- Ephemeral OS Disks: {ephemeral}

## {series} Series (NVMe)

| Size | vCPU | Max data disks |
|---|---|---|
| Standard_{size} | 2 | 4 |

## {series} Series (SCSI)

| Size | vCPU | Max data disks |
|---|---|---|
| Standard_{size} | 2 | 4 |
"""


def test_features_under_one_heading_are_not_those_of_its_sibling(tmp_path: Path) -> None:
    page = FEATURES.format(series="Qxdsv5", size="Q2xds_v5", ephemeral="Supported")
    page += FEATURES.format(series="Qxsv5", size="Q2xs_v5", ephemeral="Not supported")
    reading = read(tmp_path, page, title="Qxdsv5 and Qxsv5 series")
    first, second = facts(reading, "Standard_Q2xds_v5"), facts(reading, "Standard_Q2xs_v5")
    assert (first["ephemeral_os_disk"], first["series"]) == (True, "Qxdsv5")
    assert (second["ephemeral_os_disk"], second["series"]) == (False, "Qxsv5")
    assert details(reading) == []


NOTED = """
# NX v1 series

| Size | vCPUs |
|---|---|
| Standard_NX2_v1 | 2 |
| Standard_NX8_v1 | 8 |
| Standard_NX16_v1 | 16 |

| Feature name | Support status |
|---|---|
| Accelerated Networking | Supported |
| Live Migration | Supported |

> [!NOTE]
> {note}
"""


@pytest.mark.parametrize(
    "note",
    [
        "[Accelerated Networking](/x) is only supported for Standard_NX8_v1 and Standard_NX16_v1.",
        "Accelerated Networking is supported only on NX8_v1, NX16_v1.",
    ],
)
def test_a_note_restricts_a_feature_to_some_sizes(tmp_path: Path, note: str) -> None:
    reading = read(tmp_path, NOTED.format(note=note))
    found = {size: facts(reading, f"Standard_NX{size}_v1") for size in (2, 8, 16)}
    assert [found[size]["accelerated_networking"] for size in (2, 8, 16)] == [False, True, True]
    assert all(each["live_migration"] for each in found.values())


def test_a_feature_with_an_unknown_restriction_is_not_read(tmp_path: Path) -> None:
    reading = read(
        tmp_path, NOTED.format(note="Accelerated Networking is only supported for sizes with 8 vCPUs or more.")
    )
    assert all("accelerated_networking" not in facts(reading, f"Standard_NX{size}_v1") for size in (2, 8, 16))
    (report,) = details(reading)
    assert "restricts accelerated_networking to sizes that are not read" in report


@pytest.mark.parametrize(
    "line",
    ["Live Migration: Supported (except for NX12)<br>", "| Live Migration | Supported except on Standard_NX12 |"],
)
def test_a_flag_may_except_a_size(tmp_path: Path, line: str) -> None:
    header = "| Feature | Status |\n|---|---|\n" if "|" in line else ""
    reading = read(tmp_path, f"{TABLE}{header}{line}\n")
    assert [facts(reading, name)["live_migration"] for name in ("NX6", "NX12")] == [True, False]
    assert details(reading) == []


@pytest.mark.parametrize("rest", ["the largest sizes", "NX12 and NX48"])
def test_a_flag_with_an_exception_that_is_not_understood_is_reported(tmp_path: Path, rest: str) -> None:
    reading = read(tmp_path, f"{TABLE}Live Migration: Supported (except for {rest})\n")
    assert "live_migration" not in facts(reading, "NX6")
    assert ["makes an exception that is not understood" in text for text in details(reading)] == [True]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("NVMe Interface: Supported only on Generation 2 VMs", {"nvme_interface": True}),
        ("SCSI Interface: Not supported", {"scsi_interface": False}),
        ("[Temporary local NVMe disks](n.yml): Supported", {"local_temporary_storage": True}),
        ("[Trusted Launch](t.md): Not Supported - for now", {"trusted_launch": False}),
        ("Write Accelerator: Supported", {"write_accelerator": True}),
        ("[Constrained core](c.md): Supported", {"constrained_vcpus": True}),
        ("[Backend Network](b.md): InfiniBand NDR", {"infiniband": True}),
        ("|Feature name | Status |\n|---|---|\n|Live Migration| Supported |\n|Backend Network| InfiniBand HDR |",
         {"live_migration": True, "infiniband": True}),
    ],
)  # fmt: skip
def test_features_of_interfaces_and_backend_networks_are_read(
    tmp_path: Path, line: str, found: dict[str, object]
) -> None:
    reading = read(tmp_path, f"{TABLE}{line}\n")
    assert {name: value for name, value in facts(reading, "NX6").items() if name not in ("vcpus", "series")} == found
    assert details(reading) == []


def test_features_may_be_listed_by_whether_they_are_supported(tmp_path: Path) -> None:
    lists = """
*Supported* features in these VMs:

- [Premium Storage](p.md)
- [VM Generation 2](g.md)

*Unsupported* features in these VMs:

- [Live Migration](l.md)
- [Time Travel](t.md)

## Next steps

- [Nested Virtualization](n.md)
"""
    reading = read(tmp_path, TABLE + lists)
    found = {name: value for name, value in facts(reading, "NX6").items() if name not in ("vcpus", "series")}
    assert found == {"premium_storage": True, "generation_2": True, "live_migration": False}
    assert {item.raw for item in reading.facts if item.field == "live_migration"} == {
        "Unsupported features: Live Migration"
    }
    assert ["column 'Time Travel': is not a known feature" in text for text in details(reading)] == [True]
