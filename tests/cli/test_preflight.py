"""The command `vmsizes preflight`: three plans, and its exit codes."""

import json
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.one_database  # what a command prints does not depend on the kind of database

USAGE = [
    {"currentValue": used, "limit": limit, "localName": name, "name": {"localizedValue": name, "value": name}}
    for name, used, limit in (
        *(("cores", "0", "100"), ("virtualMachines", "0", "25000")),
        *(("standardDSv5Family", "20", "100"), ("StandardNCADSA100v4Family", "0", "24")),
    )
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, size, count in (("fits", "d8s_v5", 2), ("missing", "nc24ads_a100_v4", 2), ("unknown", "e8s_v5", 1)):
        (tmp_path / f"{name}.csv").write_text(f"size,region,count\n{size},westeurope,{count}\n", encoding="utf-8")
    (tmp_path / "error.csv").write_text("size,region\nStandard_D8s_v55,westeurope\n", encoding="utf-8")
    # As Windows PowerShell writes what a command prints.
    (tmp_path / "usage.json").write_text(json.dumps(USAGE), encoding="utf-16")
    return tmp_path


@pytest.mark.parametrize("plan", ["fits", "missing", "unknown", "error"])
def test_the_exit_code_tells_whether_a_plan_fits(
    run: Run, seeded_url: str, client: httpx.Client, folder: Path, plan: str
) -> None:
    arguments = (f"{folder / plan}.csv", "--usage", f"westeurope={folder / 'usage.json'}")
    done = run(seeded_url, "preflight", *arguments)
    expected = {
        "fits": (0, "The plan fits."),
        "missing": (5, "from 24 to 48"),
        "unknown": (6, "Whether the plan fits is unknown"),
        "error": (2, "Did you mean"),
    }
    code, said = expected[plan]
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout
    body = {
        "plan": (folder / f"{plan}.csv").read_text(encoding="utf-8"),
        "usage": [{"region": "westeurope", "text": json.dumps(USAGE)}],
    }
    assert (
        json.loads(run(seeded_url, "preflight", *arguments, "--json").stdout)
        == client.post("/preflight", json=body).json()
    )


def test_a_check_without_quotas_says_what_prints_them(run: Run, seeded_url: str, folder: Path) -> None:
    done = run(seeded_url, "preflight", str(folder / "fits.csv"))
    assert (done.returncode, done.stdout.splitlines()[-1].partition(";")[0]) == (6, "No --usage was given")


def test_bad_input_names_the_file(run: Run, seeded_url: str, folder: Path) -> None:
    plan, usage = folder / "fits.csv", folder / "usage.json"
    for arguments, said in (
        ((str(folder / "no.csv"),), "no.csv: cannot be read: No such file"),
        ((str(plan), "--usage", str(usage)), "usage.json: quota 1: has no region"),
        ((str(plan), "--usage", f"westeurop={usage}"), "did you mean westeurope?"),
        ((str(plan), "--usage", f"westeurope={plan}"), "fits.csv: is not JSON"),
    ):
        done = run(seeded_url, "preflight", *arguments)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
