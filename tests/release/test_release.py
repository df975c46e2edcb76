"""A release is reproducible, runs from an empty folder, and is verified by the commands of docs/releasing.md."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from app.settings import PROJECT
from tests.processes import free_port
from tests.release.__main__ import build_packages, write_checksums
from tests.servers import CLIENT_TIMEOUT, get
from tests.waiting import LONGEST_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.one_database]

FIRST_START_SECONDS = 600
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build_packages(folder)
    return folder


def wheel_of(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_same_commit_gives_the_same_wheel_also_from_its_source_distribution(dist: Path, tmp_path: Path) -> None:
    build_packages(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        file.name: file.read_bytes() for file in dist.iterdir()
    }
    (sources,) = dist.glob("*.tar.gz")
    with tarfile.open(sources) as tar:
        tar.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")]
    subprocess.run(build, cwd=unpacked, check=True, capture_output=True)
    again, first = ZipFile(wheel_of(tmp_path / "again")), ZipFile(wheel_of(dist))
    assert {name: again.read(name) for name in again.namelist()} == {
        name: first.read(name) for name in first.namelist()
    }


def test_the_wheel_brings_licences_pages_and_data_and_one_package(dist: Path) -> None:
    names = ZipFile(wheel_of(dist)).namelist()
    assert {name.split("/")[0] for name in names} == {"app", f"{wheel_of(dist).name.partition('-py3')[0]}.dist-info"}
    for ending in ("licenses/LICENSE", "licenses/NOTICE", "app/seeds/sizes.csv", "app/migrations/env.py"):
        assert any(name.endswith(ending) for name in names), ending


@pytest.fixture
def installed(dist: Path, tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """An empty folder, and an environment of uv of its own in which nothing of this checkout can be found."""
    folder = tmp_path / "empty"
    folder.mkdir()
    own = {"UV_TOOL_DIR": str(tmp_path / "tools"), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}
    cache = {"UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VMSIZES_", "PYTHON"))}
    environment = {**kept, **own, **cache}
    install = [str(UV), "tool", "install", "--quiet", "--constraints"]
    subprocess.run(
        [*install, str(PROJECT / "requirements.lock"), "--python", sys.executable, str(wheel_of(dist))],
        cwd=folder,
        env=environment,
        check=True,
    )
    yield folder, environment
    shutil.rmtree(tmp_path / "tools")


def test_an_installed_wheel_serves_from_an_empty_folder_and_writes_nothing_elsewhere(
    installed: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, environment = installed
    tools = Path(environment["UV_TOOL_DIR"])
    program, port = tools / "vmsizes" / "bin" / "vmsizes", free_port()
    before = {path: path.lstat().st_mtime_ns for path in tools.rglob("*")}
    printed = subprocess.run([program, "--version"], env=environment, cwd=folder, check=True, capture_output=True)
    began = time.monotonic()
    with (folder.parent / "log").open("wb") as log:
        service = subprocess.Popen(
            [program, "serve", "--port", str(port)], env=environment, cwd=folder, stdout=log, stderr=log
        )
    try:
        # A first start writes the whole catalog, for which a busy machine takes minutes.
        while not answers(port):
            assert service.poll() is None, (folder.parent / "log").read_text()
            assert time.monotonic() < began + FIRST_START_SECONDS, (folder.parent / "log").read_text()
            time.sleep(0.2)
        took = time.monotonic() - began
        listed = get(f"http://127.0.0.1:{port}/sizes?min_gpu_mem=80&provider=azure&limit=1").json()
        described = get(f"http://127.0.0.1:{port}/openapi.json").json()
        page = httpx.get(f"http://127.0.0.1:{port}/", headers={"accept": "text/html"}, timeout=CLIENT_TIMEOUT).text
    finally:
        service.terminate()
        service.wait(timeout=LONGEST_SECONDS)
    assert listed["total"] > 0
    assert printed.stdout.decode().split() == ["vmsizes", described["info"]["version"]]
    assert re.search(r"assets/app-\w+\.js", page)
    assert {path: path.lstat().st_mtime_ns for path in tools.rglob("*")} == before
    assert {path.name for path in folder.iterdir()} <= {"vmsizes.db", "vmsizes.db-shm", "vmsizes.db-wal"}
    with capsys.disabled():
        sys.stdout.write(f"\nfirst answer after {took:.1f} s\n")


def answers(port: int) -> bool:
    try:
        return get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.skipif(
    not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed: apt-get install openssh-client"
)
def test_the_documented_commands_sign_and_verify_the_checksums(dist: Path, tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    shutil.copytree(dist, folder)
    write_checksums(folder)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (folder / "allowed_signers").write_text(f"releases@vmsizes {key.with_suffix('.pub').read_text()}")
    text = (PROJECT / "docs/releasing.md").read_text(encoding="utf-8")
    sign, verify = re.findall(r"(?ms)^```sh (?:sign|verify)\n(.*?)^```", text)
    shell = ["sh", "-eu", "-c"]
    environment = {**os.environ, "KEY": str(key)}
    subprocess.run([*shell, sign], cwd=tmp_path, env=environment, check=True)
    checked = subprocess.run([*shell, verify], cwd=folder, check=True, capture_output=True, text=True).stdout
    assert 'Good "file" signature for releases@vmsizes' in checked
    with wheel_of(folder).open("ab") as wheel:
        wheel.write(b"changed")
    assert subprocess.run([*shell, verify], cwd=folder, check=False, capture_output=True).returncode != 0
