"""A filter and a figure are added by the steps of CONTRIBUTING in a copy of the tree, and found on every face."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.settings import PROJECT
from tests.databases import Databases
from tests.processes import run_service
from tests.servers import open_client

pytestmark = pytest.mark.one_database  # what is added is found alike on both

FILTER = """
    min_nvme_disk_count: Count | None = optional("Number of NVMe disks.", 6400)
    board_vendor: LowerText | None = optional("Who makes the board.", "AMD")
"""
FIGURE = """
        "memory_channels": FieldSpec("integer", "count", sentence="Channels of memory of the host."),
        "board_vendor": FieldSpec("text", sentence="Who makes the board."),
"""
COLUMN = """
    memory_channels: int | None = None
    board_vendor: str | None = Field(sa_type=BYTEWISE, default=None)
"""
MIGRATION = """
import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision, down_revision, branch_labels, depends_on = "9999", "{last}", None, None


def upgrade() -> None:
    op.execute("delete from size_doc")
    op.add_column("size", sa.Column("memory_channels", sa.Integer(), nullable=True))
    op.add_column("size", sa.Column("board_vendor", BYTEWISE, nullable=True))
"""
SIZES = (
    {"id": "Standard_D2_v9", "vcpus": "2", "nvme_disk_count": "3200", "memory_channels": "8", "board_vendor": "Intel"},
    {"id": "Standard_D4_v9", "vcpus": "4", "nvme_disk_count": "6400", "memory_channels": "12", "board_vendor": "AMD"},
    {"id": "Standard_D8_v9", "vcpus": "8"},
)
SOURCE = "azure-bsv2-series-2026-03-10"


def insert_after(path: Path, line: str, text: str) -> None:
    before, found, after = path.read_text(encoding="utf-8").partition(line)
    assert found, (path, line)
    path.write_text(before + line + text.removeprefix("\n") + after, encoding="utf-8")


def write_csv(path: Path, *rows: Mapping[str, str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), restval="")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program with a filter, which is one file, and a figure, which is two and a migration."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("app", "migrations"):
        shutil.copytree(PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", copy)
    filters = '    """All filters of a search."""\n'
    insert_after(copy / "app/catalog/queries/params.py", filters, FILTER)
    insert_after(copy / "app/catalog/fields.py", '    "Processor and memory": {\n', FIGURE)
    insert_after(
        copy / "app/catalog/models/__init__.py",
        "    arch: str | None = Field(sa_type=BYTEWISE, default=None)\n",
        COLUMN,
    )
    versions = copy / "migrations/versions"
    last = max(path.name.partition("_")[0] for path in versions.glob("0*.py"))
    (versions / "9999_memory_channels.py").write_text(MIGRATION.format(last=last), encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def environment(tree: Path, databases: Databases) -> Mapping[str, str]:
    """The environment of programs of that tree, with a database of three sizes."""
    seeds = tree / "seeds"
    seeds.mkdir()
    shutil.copy(PROJECT / "seeds/sources.csv", seeds)
    write_csv(seeds / "sizes.csv", *({**size, "source": SOURCE} for size in SIZES))
    made = {"VMSIZES_DATABASE_URL": databases.create(), "PYTHONPATH": str(tree)}
    for arguments in (("migrate",), ("ingest", "seeds", str(seeds))):
        run(made, *arguments)
    return made


def run(environment: Mapping[str, str], *arguments: str) -> str:
    program = [sys.executable, "-c", "from app.cli import main; main()", *arguments]
    done = subprocess.run(
        program,
        cwd=environment["PYTHONPATH"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def service(environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    log = tmp_path_factory.mktemp("log") / "log"
    url, rest = environment["VMSIZES_DATABASE_URL"], {"PYTHONPATH": environment["PYTHONPATH"]}
    with run_service(url, log, **rest) as running, open_client(running.url, follow_redirects=True) as client:
        yield client


def ask_tool(service: httpx.Client, name: str, **arguments: object) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    reply = service.post("/mcp", json=request, headers=headers).json()["result"]
    assert not reply["isError"], reply
    content: dict[str, Any] = reply["structuredContent"]
    return content


@pytest.mark.takes_seconds
def test_an_added_filter_is_found_by_api_command_page_and_tool(
    service: httpx.Client, environment: Mapping[str, str]
) -> None:
    query = {"min_nvme_disk_count": "5000", "status": "any"}
    found = service.get("/sizes", params=query).json()
    assert [item["name"] for item in found["items"]] == ["Standard_D4_v9"]
    facets = service.get("/facets", params=query).json()
    assert facets["nvme_disk_count"] == {"min": 3200.0, "max": 6400.0, "unknown": 1}
    assert facets["undecided"]["fields"] == [{"value": "nvme_disk_count", "count": 1}]
    assert service.get("/sizes?min_nvme_disk_coun=1").json()["errors"][0]["detail"].count("min_nvme_disk_count")
    document = service.get("/openapi.json").json()
    (parameter,) = (
        one for one in document["paths"]["/sizes"]["get"]["parameters"] if one["name"] == "min_nvme_disk_count"
    )
    assert parameter["description"] == "Number of NVMe disks."
    assert "nvme_disk_count" in document["components"]["schemas"]["FacetsOut"]["required"]
    help_text = run(environment, "search", "--help")
    assert help_text.index("What a VM must have") < help_text.index("--min-nvme-disk-count")
    assert help_text.index("--min-nvme-disk-count") < help_text.index("What a VM may have at most")
    listed = json.loads(run(environment, "search", "--min-nvme-disk-count", "5000", "--status", "any", "--json"))
    assert [item["name"] for item in listed] == ["Standard_D4_v9"]
    page = service.get("/", params=query, headers={"accept": "text/html"}).text
    assert 'name="min_nvme_disk_count"' in page
    assert "NVMe disks, number ≥" in page
    assert "5,000" in page
    assert ask_tool(service, "find_sizes", min_nvme_disk_count=5000, status="any")["total"] == 1


def test_an_added_filter_by_a_text_is_counted_and_chosen(service: httpx.Client, environment: Mapping[str, str]) -> None:
    query = {"board_vendor": "amd", "status": "any"}
    assert [item["name"] for item in service.get("/sizes", params=query).json()["items"]] == ["Standard_D4_v9"]
    counts = service.get("/facets", params=query).json()["board_vendor"]
    assert counts == [{"value": "AMD", "count": 1}, {"value": "Intel", "count": 1}, {"value": None, "count": 1}]
    assert re.search(r"^Board vendor +AMD$", run(environment, "show", "d4_v9"), re.MULTILINE)
    page = service.get("/", params=query, headers={"accept": "text/html"}).text
    assert '<option value="amd" selected>AMD (1)</option>' in page
    assert ask_tool(service, "find_sizes", board_vendor="AMD", status="any")["total"] == 1


@pytest.mark.takes_seconds
def test_an_added_figure_is_shown_by_api_command_page_and_tool(
    service: httpx.Client, environment: Mapping[str, str]
) -> None:
    items = service.get("/sizes?sort=-memory_channels&status=any").json()["items"]
    assert [item["memory_channels"] for item in items] == [12, 8, None]
    assert "memory_channels" in service.get("/sizes.csv").text.partition("\n")[0]
    schema = service.get("/openapi.json").json()["components"]["schemas"]["SizeOut"]
    assert schema["properties"]["memory_channels"]["description"] == "Channels of memory of the host."
    assert "Memory channels" in run(environment, "show", "d4_v9")
    columns = run(environment, "search", "d4_v9", "--columns", "name,memory_channels")
    assert columns.split() == ["name", "memory_channels", "Standard_D4_v9", "12", "1", "of", "1."]
    of_size = service.get("/ui/sizes/d4_v9").text
    assert of_size.index("Processor and memory") < of_size.index("Memory channels") < of_size.index("Disks")
    listed = service.get("/?columns=memory_channels&status=any", headers={"accept": "text/html"}).text
    assert "Memory channels" in listed
    compared = service.get("/ui/compare?name=d2_v9&name=d4_v9").text
    assert "Memory channels" in compared
    assert "+50" in compared
    content = ask_tool(service, "find_sizes", fields="memory_channels", status="any", sort="-memory_channels")
    assert content["items"][0]["memory_channels"] == 12
