"""Files cannot drive the terminal of whoever reads them: their control characters are refused, or shown escaped."""

import re
from pathlib import Path

import pytest

from app.ingest.files import read_rows
from app.settings import PROJECT
from tests.command_line import run_command

pytestmark = pytest.mark.first_database

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
"""What no output may hold when standard output is no terminal."""

PAGE = f"""---
title: NX {ESCAPES}
ms.date: 05/26/2021
kind: {ESCAPES}
---
# NX {ESCAPES}

[!INCLUDE [x](x{ESCAPES}.md)]

| Size | GPU | GPU memory: GiB |
|---|---|---|
| Standard_NX8_v1{ESCAPES} | 8 | 80 |
| Standard_NX9_v1 | 8 | 8{ESCAPES} |
| Standard_NX10_v1 | 8 | 80 |
"""


def test_a_page_with_control_characters_is_reported_without_them(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "nx.md").write_text(PAGE)
    shown = ""
    for command in (["ingest", "documents", "nx.md"], ["show", "nx10_v1"], ["sources"], ["sources", "--json"]):
        done = run_command(database_url, *command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        shown += done.stdout + done.stderr
    assert "not read: nx.md" in shown
    assert RAW.findall(shown) == []


ROW_OF = {"benchmarks": "llama,nd_gb300_v6,rack,Llama 2 70B,throughput,1,tokens/s,,azure-docs"}
"""A row for a table that has none in the seeds."""


@pytest.mark.parametrize(
    "kind", ["regions", "series", "gpus", "aliases", "models", "benchmarks", "corrections", "disks"]
)
def test_a_cell_with_a_control_character_is_refused_and_shown_escaped(
    database_url: str, tmp_path: Path, kind: str
) -> None:
    header, row = [*(PROJECT / "seeds" / f"{kind}.csv").read_text().splitlines(), ROW_OF.get(kind, "")][:2]
    (tmp_path / "sources.csv").symlink_to(PROJECT / "seeds/sources.csv")
    first, rest = row.split(",", 1)
    (tmp_path / f"{kind}.csv").write_text(f"{header}\n{first}{ESCAPES},{rest}\n")
    done = run_command(database_url, "ingest", kind, f"{kind}.csv", folder=tmp_path)
    assert done.returncode == 3
    assert f"{kind}.csv:2: column" in done.stderr
    assert "has a control character, which a terminal would obey" in done.stderr
    assert RAW.findall(done.stdout + done.stderr) == []


def test_tabs_and_line_ends_in_a_quoted_cell_are_text(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(b'name\n"a\tb\r\nc"\n')
    (row,) = read_rows(path, ("name",))
    assert row.cells["name"] == "a\tb\r\nc"


@pytest.mark.parametrize(
    "command",
    [
        ("search", ESCAPES), ("search", "--provider", ESCAPES), ("search", "--max-usd-per-hour", ESCAPES),
        ("webhooks", "add", f"https://example.org/{ESCAPES}"), ("ingest", "documents", ESCAPES),
    ],
)  # fmt: skip
def test_an_error_shows_what_was_typed_without_control_characters(seeded_url: str, command: tuple[str, ...]) -> None:
    done = run_command(seeded_url, *command)
    assert done.returncode in {2, 3}
    assert r"\x1b[2J" in done.stderr
    assert RAW.findall(done.stdout + done.stderr) == []


def test_a_report_has_the_beginning_of_a_long_cell(database_url: str, tmp_path: Path) -> None:
    long = "many " * 500
    (tmp_path / "nx.md").write_text(f"# NX\n\n| Size | GPU | vCPU |\n|---|---|---|\n| Standard_NX8_v1 | 8 | {long} |\n")
    done = run_command(database_url, "ingest", "documents", "nx.md", folder=tmp_path)
    (report,) = [line for line in done.stderr.splitlines() if "nx.md:5" in line]
    assert "many many" in report
    assert len(report) < 800
