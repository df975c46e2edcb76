from pathlib import Path

import pytest

from app.errors import BadData
from app.ingest.documents.gpu_rows import GpuMemoryIndex
from app.ingest.sources.documents import find_pages, read_documents
from tests.ingest.pages import details, facts, read_files

PAGE = """---
title: NX
ms.date: 05/26/2021
---

# NX

[!INCLUDE [nx](./includes/nx-specs.md)]

| Size | GPU | GPU memory: GiB |
|---|---|---|
| NX8 | 8 | 80 |
"""
SPECS = """---
title: NX specs
ms.date: 01/01/2024
---
| Part | Quantity | Specs |
|---|---|---|
| Network | 8 NICs | |
| Accelerators | 8 GPUs | Nvidia A100 GPU (80GB) |
"""


def test_an_included_file_is_a_source_of_its_own(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"nx.md": PAGE, "includes/nx-specs.md": SPECS})
    nics = next(item for item in reading.facts if item.field == "max_nics")
    assert (nics.source, Path(nics.file).parts[-2:], nics.line) == (
        "nx-specs-2024-01-01",
        ("includes", "nx-specs.md"),
        7,
    )
    assert facts(reading, "NX8")["gpu_memory_gib"] == 640
    assert details(reading) == []


def test_a_file_that_two_pages_include_is_one_source(tmp_path: Path) -> None:
    other = PAGE.replace("title: NX", "title: NY").replace("NX8", "NY8")
    reading = read_files(tmp_path, {"nx.md": PAGE, "ny.md": other, "includes/nx-specs.md": SPECS})
    assert [source.id for source in reading.sources].count("nx-specs-2024-01-01") == 1
    assert facts(reading, "NY8")["max_nics"] == facts(reading, "NX8")["max_nics"] == 8


def test_an_include_without_keys_of_its_own_has_the_pages_kind(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"nx.md": PAGE, "includes/nx-specs.md": SPECS.split("---\n", 2)[2]})
    found = {source.id: source for source in reading.sources}["nx-specs"]
    assert (found.kind, found.publisher) == ("vendor_page", "Microsoft")


def test_an_include_that_no_page_includes_is_not_read(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"nx.md": "# NX\n", "includes/nx-specs.md": SPECS})
    assert [source.title for source in reading.sources] == ["NX"]
    assert details(reading) == []


def test_a_missing_include_is_reported_unless_it_is_irrelevant(tmp_path: Path) -> None:
    footer = (
        "\n[!INCLUDE [f](../includes/sizes-footer.md)]\n[!INCLUDE [d](../../includes/common-sizes-table-defs.md)]\n"
    )
    reading = read_files(tmp_path, {"nx.md": PAGE + footer})
    report = next(report for report in reading.reports if report.cell == "./includes/nx-specs.md")
    assert report.line == 8
    assert [item.cell for item in reading.reports if item is not report] == ["80"]


def test_circular_includes_are_read_once(tmp_path: Path) -> None:
    loop = "[!INCLUDE [a](a.md)]\n[!INCLUDE [b](b.md)]\nAMD EPYC 7V12 (Rome) processors.\n"
    files = {"nx.md": PAGE.replace("nx-specs", "a"), "includes/a.md": loop, "includes/b.md": loop}
    assert facts(read_files(tmp_path, dict(files)), "NX8")["cpu_model"] == "AMD EPYC 7V12 (Rome)"


def test_a_long_chain_of_includes_is_refused_by_name(tmp_path: Path) -> None:
    links = {f"includes/{number}.md": f"[!INCLUDE [n]({number + 1}.md)]\n" for number in range(1_500)}
    with pytest.raises(BadData, match=r"includes/50\.md: is included by a chain of more than 50 pages"):
        read_files(tmp_path, {"nx.md": PAGE.replace("nx-specs", "0"), **links})


def test_a_missing_include_of_the_preview_notice_marks_sizes_as_preview(tmp_path: Path) -> None:
    notice = "\n[!INCLUDE [p](../includes/sizes-preview-tag.md)]\n"
    reading = read_files(tmp_path, {"nx.md": PAGE + notice, "includes/nx-specs.md": SPECS})
    assert facts(reading, "NX8")["preview"] is True
    assert details(reading) == []


OUTSIDE = SPECS.replace("NX specs", "Not for this page")


def test_an_include_outside_of_the_folder_is_reported_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "private.md").write_text(OUTSIDE)
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/link.md").symlink_to(tmp_path / "private.md")
    for target in ("../private.md", "/private.md", str(tmp_path / "private.md"), "./x/../../private.md", "link.md"):
        page = tmp_path / "pages/nx.md"
        page.write_text(PAGE.replace("./includes/nx-specs.md", target))
        reading = read_documents([page], gpu_memories=GpuMemoryIndex())
        assert [source.title for source in reading.sources] == ["NX"], target
        assert [report.line for report in reading.reports if report.cell == target] == [8], target


def test_an_include_beside_a_folder_above_is_read_as_azures_documentation_has_them(tmp_path: Path) -> None:
    for target in ("../includes/nx-specs.md", "../../includes/nx-specs.md"):
        files: dict[str, str | bytes] = {
            "a/b/nx.md": PAGE.replace("./includes/nx-specs.md", target),
            "a/includes/nx-specs.md": SPECS,
            "includes/nx-specs.md": SPECS,
        }
        read_files(tmp_path, files)
        reading = read_documents([tmp_path / "a/b/nx.md"], gpu_memories=GpuMemoryIndex())
        assert {source.title for source in reading.sources} == {"NX", "NX specs"}


def test_a_link_out_of_a_folder_of_pages_is_refused(tmp_path: Path) -> None:
    (tmp_path / "private.md").write_text(PAGE)
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/link.md").symlink_to(tmp_path / "private.md")
    with pytest.raises(BadData, match=r"pages/link\.md: is a link to a file outside of the folder"):
        find_pages([tmp_path / "pages"])
    (tmp_path / "pages/link.md").unlink()
    (tmp_path / "pages/nx.md").write_text(PAGE)
    (tmp_path / "pages/same.md").symlink_to(tmp_path / "pages/nx.md")
    (tmp_path / "linked").symlink_to(tmp_path / "pages")
    assert find_pages([tmp_path / "pages"]) == [tmp_path / "pages/nx.md"]
    assert find_pages([tmp_path / "linked"]) == [tmp_path / "linked/nx.md"]


def test_a_page_longer_than_any_is_refused_without_reading_all_of_it(tmp_path: Path) -> None:
    page = tmp_path / "nx.md"
    with page.open("wb") as sparse:
        sparse.truncate(2**36)
    with pytest.raises(BadData, match=r"nx\.md: has more than 5,242,880 bytes"):
        read_documents([page], gpu_memories=GpuMemoryIndex())
