"""Describes the machine and the software of a run, without naming a host or a person."""

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.build import PROJECT
from benchmarks.sides import DATASETTE
from tests.databases import VERSIONS

PACKAGES = (
    *("fastapi", "starlette", "uvicorn", "uvloop", "httptools", "pydantic", "sqlmodel", "sqlalchemy", "psycopg"),
    "orjson",
)
MEASURED = ("app", "migrations", "benchmarks", "requirements.lock", ":!benchmarks/results")
"""Uncommitted changes of these paths mark the commit as changed."""


def describe() -> dict[str, Any]:
    """Describe the machine and the versions of everything that is measured."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": VERSIONS["postgresql"]().removeprefix("PostgreSQL "),
        "wrk": _output_of("wrk", "-v").partition(" [")[0].removeprefix("wrk "),
        "datasette": _output_of(str(DATASETTE), "--version").rpartition(" ")[2],
        "packages": {name: _version(name) for name in PACKAGES},
    }


def commit() -> str:
    """Return the commit that is measured, with `-changed` where files differ from it."""
    found = _output_of("git", "rev-parse", "--short=12", "HEAD").strip()
    if not found:
        return "unknown"
    return found + ("-changed" if _output_of("git", "status", "--porcelain", "--", *MEASURED).strip() else "")


def _cpu() -> str:
    known = Path("/proc/cpuinfo")
    if not known.exists():
        return platform.processor()
    models = [line for line in known.read_text().splitlines() if line.startswith("model name")]
    return models[0].partition(":")[2].strip() if models else platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _output_of(*command: str) -> str:
    """Return what a program prints; empty where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT, timeout=20)
    except OSError:
        return ""
    return done.stdout if command[0] == "wrk" or done.returncode == 0 else ""
