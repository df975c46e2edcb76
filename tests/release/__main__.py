"""`make dist`: the wheel, the source distribution, the data package, the bill of materials, and their checksums.

The same commit gives the same wheel and source distribution; the data package is also that of the day.
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from app.catalog.queries.exports import EXPORTABLE_TABLES
from app.settings import PROJECT
from tests.audit.sbom import write_sbom

DIST = PROJECT / "dist"
NAME = f"vmsizes-{version('vmsizes')}"
DATA = f"vmsizes-data-{version('vmsizes')}"
TABLES = ("sizes", "prices", *EXPORTABLE_TABLES)
LICENCES = ("LICENSE", "NOTICE")


def commit_time() -> int:
    """Return the time of the commit that is built, or SOURCE_DATE_EPOCH where that is set; seconds since 1970."""
    command = ["git", "-C", str(PROJECT), "log", "-1", "--format=%ct"]
    return int(os.environ.get("SOURCE_DATE_EPOCH") or subprocess.check_output(command, text=True))


def build_packages(folder: Path) -> None:
    """Build the wheel and the source distribution."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(commit_time())}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True)


def write_data(folder: Path) -> Path:
    """Write the catalog of the seeds as a Frictionless data package: CSV tables and datapackage.json."""
    with TemporaryDirectory() as temporary:
        here = Path(temporary)
        run_command(here, "migrate")
        run_command(here, "ingest", "seeds")
        files = {name: (PROJECT / name).read_bytes() for name in LICENCES}
        resources = []
        for table in TABLES:
            run_command(here, "export", table, "--output", f"{table}.csv")
            run_command(here, "export", table, "--format", "parquet", "--output", f"{table}.parquet")
            files[f"{table}.csv"] = (here / f"{table}.csv").read_bytes()
            resources.append(describe_table(table, files[f"{table}.csv"], pq.read_schema(here / f"{table}.parquet")))
    files["datapackage.json"] = json.dumps(describe_package(resources), indent=1).encode() + b"\n"
    archive = folder / f"{DATA}.tar.gz"
    pack(archive, {f"{DATA}/{name}": files[name] for name in sorted(files)})
    return archive


def run_command(folder: Path, *words: str) -> None:
    """Run `vmsizes` with the database in a folder and no settings of the user."""
    settings = {"PYTHONPATH": str(PROJECT), "VMSIZES_DATABASE_URL": f"sqlite:///{folder / 'vmsizes.db'}"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VMSIZES_")}
    command = [sys.executable, "-c", "from app.cli import main; main()", *words]
    subprocess.run(command, cwd=folder, env=kept | settings, check=True, stdout=subprocess.DEVNULL)


def describe_table(table: str, content: bytes, schema: pa.Schema) -> dict[str, Any]:
    """Return the resource of a table; its types are those that it has as Parquet."""
    return {
        "name": table.replace("_", "-"),
        "path": f"{table}.csv",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": {"fields": [{"name": field.name, "type": type_of(field.type)} for field in schema]},
    }


def type_of(kind: pa.DataType) -> str:
    """Return the type of a column in the words of Table Schema."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_date(kind):
        return "date"
    return "string"


def describe_package(resources: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the descriptor of the data package."""
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "vmsizes-data",
        "title": "Sizes of cloud VMs and their prices, each figure with its source",
        "version": version("vmsizes"),
        "created": datetime.now(UTC).date().isoformat(),
        "licenses": [{"name": "MIT", "title": "The form of the tables; NOTICE names the sources of the figures"}],
        "resources": resources,
    }


def pack(archive: Path, files: dict[str, bytes]) -> None:
    """Write a compressed archive that depends on its files and the time of the commit alone."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=commit_time()) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), commit_time()
            tar.addfile(member, BytesIO(content))


def write_checksums(folder: Path) -> Path:
    """Write SHA256SUMS as `sha256sum` does, of all other files of the folder but signatures."""
    checksums = folder / "SHA256SUMS"
    files = sorted(path for path in folder.iterdir() if path != checksums and path.suffix != ".sig")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    checksums.write_text("".join(lines))
    return checksums


def main() -> int:
    if not (PROJECT / "app/web/static/dist/licences.txt").exists():
        print("the scripts and fonts of the pages are not bundled: run `make assets`, which needs npm", file=sys.stderr)
        return 1
    if subprocess.check_output(["git", "-C", str(PROJECT), "status", "--porcelain"], text=True):
        print("warning: there are changes that are not committed: nobody else can build this", file=sys.stderr)
    DIST.mkdir(exist_ok=True)
    for old in DIST.iterdir():
        old.unlink()
    build_packages(DIST)
    write_data(DIST)
    write_sbom(DIST / f"{NAME}.cdx.json")
    for line in write_checksums(DIST).read_text().splitlines():
        digest, name = line.split()
        print(f"{(DIST / name).stat().st_size:>11,} bytes  sha256 {digest[:16]}…  dist/{name}")
    print("dist/SHA256SUMS is not signed; docs/releasing.md has the command")
    return 0


if __name__ == "__main__":
    sys.exit(main())
