from datetime import date
from pathlib import Path

import pytest

from app.catalog.readings import SourceRow
from app.errors import BadData
from app.ingest.sources.documents import read_documents
from tests.ingest.pages import MEMORIES, details, facts, read_files

TABLE = "| Size | vCPU |\n|---|---|\n| NX6 | 6 |\n"


def source(folder: Path, front: str, **kind: object) -> SourceRow:
    reading = read_files(folder, {"nx-series.md": f"---\n{front}\n---\n\n# NX-series\n\n{TABLE}"}, **kind)  # type: ignore[arg-type]  # a kind
    return reading.sources[0]


@pytest.mark.parametrize(
    ("front", "day"),
    [
        ("ms.date: 05/26/2021", date(2021, 5, 26)),
        ("ms.date:     09/02/2025", date(2025, 9, 2)),
        ("ms.date: 16/03/2026", date(2026, 3, 16)),
        ("date: 2025-11-19 01:13:53 +00:00", date(2025, 11, 19)),
        ("published_on: 2024-02-29", date(2024, 2, 29)),
        ("ms.date: soon", None),
        ("title: NX", None),
    ],
)
def test_a_pages_day_is_read_however_it_is_written(tmp_path: Path, front: str, day: date | None) -> None:
    assert source(tmp_path, front).published_on == day


def test_a_vendors_keys_make_a_vendor_page(tmp_path: Path) -> None:
    found = source(tmp_path, "title: NX\nms.date: 05/26/2021")
    assert (found.id, found.publisher, found.kind) == ("nx-series-2021-05-26", "Microsoft", "vendor_page")


@pytest.mark.parametrize(("value", "pinned"), [("true", True), ("false", False)])
def test_a_page_may_say_that_it_is_pinned(tmp_path: Path, value: str, *, pinned: bool) -> None:
    assert source(tmp_path, f"title: NX\npinned: {value}").pinned is pinned
    assert not source(tmp_path, "title: NX").pinned


def test_pinned_is_true_or_false_or_reported(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"nx-series.md": f"---\ntitle: NX\npinned: maybe\n---\n\n# NX-series\n\n{TABLE}"})
    assert not reading.sources[0].pinned
    assert [(r.line, r.column, r.cell) for r in reading.reports] == [(3, "pinned", "maybe")]


@pytest.mark.parametrize(
    ("front", "line", "column", "detail"),
    [
        ("kind: vendor_page\nkind: third_party", 4, "kind", "is in the front matter twice; the last counts"),
        ("id: bad id é", 3, "id", "must be letters of A to Z, digits, `.`, `_` and `-`; the id is made of the name"),
    ],
)
def test_a_repeated_key_and_a_bad_id_are_reported(
    tmp_path: Path, front: str, line: int, column: str, detail: str
) -> None:
    reading = read_files(tmp_path, {"nx-series.md": f"---\ntitle: NX\n{front}\n---\n\n# NX-series\n\n{TABLE}"})
    assert (reading.sources[0].id, reading.sources[0].kind) == ("nx-series", "third_party")
    (report,) = reading.reports
    assert (report.line, report.column) == (line, column)
    assert report.detail.startswith(detail)


@pytest.mark.parametrize("front", ["published_on: 2026-13-40", "published_on:\nms.date: soon"])
def test_a_day_that_is_none_is_reported(tmp_path: Path, front: str) -> None:
    reading = read_files(tmp_path, {"nx-series.md": f"---\ntitle: NX\n{front}\n---\n\n# NX-series\n\n{TABLE}"})
    key, _, day = front.rpartition("\n")[2].partition(": ")
    line = 3 + front.count("\n")
    (report,) = reading.reports
    assert (report.line, report.column, report.cell) == (line, key, day)
    assert report.detail == "is not a date, which is written as YYYY-MM-DD; the page counts as undated"


def test_the_kind_of_the_command_applies_where_the_page_has_none(tmp_path: Path) -> None:
    assert source(tmp_path / "a", "title: NX").kind == "third_party"
    assert source(tmp_path / "b", "title: NX", kind="vendor_announcement").kind == "vendor_announcement"
    assert source(tmp_path / "c", "ms.topic: x", kind="third_party").kind == "vendor_page"


def test_keys_of_the_front_matter_take_precedence(tmp_path: Path) -> None:
    found = source(
        tmp_path,
        "id: our-nx\ntitle: NX of ours\npublisher: Ours\nkind: third_party\nurl: https://example.org/nx\n"
        "ms.date: 01/02/2020\npublished_on: 2022-03-04",
    )
    assert (found.id, found.title, found.publisher, found.kind, found.url, found.published_on) == (
        "our-nx", "NX of ours", "Ours", "third_party", "https://example.org/nx", date(2022, 3, 4),
    )  # fmt: skip


@pytest.mark.parametrize("key", ["url", "canonical_url"])
def test_a_url_that_is_no_address_of_the_web_is_refused(tmp_path: Path, key: str) -> None:
    page = f"---\ntitle: NX\n{key}: javascript:alert(1)\n---\n# NX-series\n\n{TABLE}"
    with pytest.raises(BadData, match=rf"nx\.md:3: column '{key}': 'javascript:alert\(1\)': must start with https://"):
        read_files(tmp_path, {"nx.md": page})


@pytest.mark.parametrize("key", ["published_on", "ms.date", "date"])
def test_a_day_to_come_is_refused(tmp_path: Path, key: str) -> None:
    page = f"---\ntitle: NX\n{key}: 2095-01-01\n---\n# NX-series\n\n{TABLE}"
    with pytest.raises(BadData, match=rf"nx\.md:3: column '{key}': '2095-01-01': is in the future"):
        read_files(tmp_path, {"nx.md": page})


def test_an_unknown_kind_is_reported(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"nx.md": f"---\nkind: hearsay\n---\n# NX-series\n\n{TABLE}"})
    assert ["is not a kind of source" in text for text in details(reading)] == [True]


@pytest.mark.parametrize(
    "front",
    [
        pytest.param("# a comment\n# another\ntitle: NX\nms.date: 05/26/2021", id="comments first"),
        pytest.param(" title: NX\n ms.date: 05/26/2021", id="indented by one"),
        pytest.param("title: NX\nms.date: 05/26/2021\n", id="a blank line at the end"),
        pytest.param("title: 'NX '\nms.date: 05/26/2021", id="quoted title"),
        pytest.param("title: NX\ndescription: all of it.```\nms.date: 05/26/2021", id="backticks"),
        pytest.param("title: NX\ndescription: sizes: a list: of them\nms.date: 05/26/2021", id="no YAML"),
        pytest.param("title: NX\ntags: [unclosed\nms.date: 05/26/2021", id="a list left open"),
        pytest.param("title: NX\ntags:\n  - one\n  - two\nms.date: 05/26/2021", id="a list"),
    ],
)
def test_odd_front_matter_loses_nothing(tmp_path: Path, front: str) -> None:
    found = source(tmp_path, front)
    assert (found.title, found.kind, found.published_on) == ("NX", "vendor_page", date(2021, 5, 26))


def test_two_versions_of_a_page_are_two_sources(tmp_path: Path) -> None:
    page = "---\ntitle: NX\nms.date: {day}\n---\n" + TABLE
    reading = read_files(
        tmp_path,
        {
            "a/nx.md": page.format(day="01/02/2020"),
            "b/nx.md": page.format(day="01/02/2021"),
            "c/nx.md": page.format(day="01/02/2021") + "\nMore.\n",
        },
    )
    ids = [found.id for found in reading.sources]
    assert ids[:2] == ["nx-2020-01-02", "nx-2021-01-02"]
    assert len(set(ids)) == 3


def test_a_missing_path_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="give a Markdown file or a folder"):
        read_documents([tmp_path / "nothing"], gpu_memories=MEMORIES)
    with pytest.raises(BadData, match="has no Markdown file"):
        read_documents([tmp_path], gpu_memories=MEMORIES)


def test_a_file_given_twice_is_read_once_and_progress_has_every_page(tmp_path: Path) -> None:
    (tmp_path / "nx.md").write_text(f"# NX-series\n\n{TABLE}")
    steps: list[tuple[str, float | None]] = []

    def progress(doing: str, share: float | None, rows: int = 0) -> None:
        steps.append((doing, share))

    reading = read_documents([tmp_path, tmp_path / "nx.md"], gpu_memories=MEMORIES, progress=progress)
    assert steps == [("reading nx.md", 1.0)]
    assert len(reading.sources) == 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("# NX-series\n\nAMD Epyc™ 7V12 (Rome) CPUs, 16–40 GB.\n\n".encode() + TABLE.encode(), id="UTF-8"),
        pytest.param(
            "\ufeff# NX-series\n\nAMD Epyc™ 7V12 (Rome).\n\n".encode() + TABLE.encode(), id="with a mark in front"
        ),
        pytest.param("# NX-series\n\nAMD Epycâ„¢ 7V12 (Rome), 16â€“40 GB.\n\n".encode() + TABLE.encode(), id="mangled"),
        pytest.param("# NX-series\n\nAMD Epyc™ 7V12 (Rome).\n\n".encode("cp1252") + TABLE.encode(), id="Windows-1252"),
    ],
)
def test_encodings_are_repaired_and_lines_keep_their_numbers(tmp_path: Path, data: bytes) -> None:
    reading = read_files(tmp_path, {"nx.md": data})
    assert facts(reading, "NX6")["cpu_model"] == "AMD EPYC 7V12 (Rome)"
    assert {item.line for item in reading.facts if item.field == "vcpus"} == {7}
    assert not any("â" in item.raw for item in reading.facts)
