"""The command `vmsizes publish`: a static site whose links all lead somewhere."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urljoin, urlsplit

import pytest

from app import publish
from app.db.engines import make_engine
from app.ingest.run import ingest
from tests.cli.conftest import Run
from tests.command_line import run_command
from tests.conftest import TODAY
from tests.databases import Databases
from tests.factories import NOW, price, reading, size
from tests.servers import open_client
from tests.waiting import LONGEST_SECONDS, wait_until

pytestmark = pytest.mark.one_database  # the pages are those of the service, which other tests run on both

BASE = "https://sizes.example.org"
NAMES = ("Standard_D8s_v5", "Standard_D16s_v5", "Standard_E8s_v5")


@pytest.fixture(scope="module")
def published(databases: Databases, template_url: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A database of four sizes, one of which has a name that no file may have, and the site of it, to be copied."""
    url, folder = databases.copy(template_url), tmp_path_factory.mktemp("published") / "site"
    engine = make_engine(url)
    rows = [row for name in (*NAMES, "Standard_<../x>") for row in size(name, vcpus=8, memory_gib=32, gpu_count=0)]
    ingest(engine, reading(rows, regions=["eastus"], prices=[price(name, "0.4") for name in NAMES]), now=NOW)
    engine.dispose()
    done = run_command(url, "publish", str(folder), "--base-url", BASE, today=lambda: TODAY)
    assert done.returncode == 0, done.stderr
    return url, folder


@pytest.fixture
def database_url(databases: Databases, published: tuple[str, Path]) -> Iterator[str]:
    """A copy of the database of the site."""
    url = databases.copy(published[0])
    yield url
    databases.drop(url)


@pytest.fixture
def site(published: tuple[str, Path], tmp_path: Path) -> Path:
    """A copy of the site."""
    return shutil.copytree(published[1], tmp_path / "sizes" / "site")


@pytest.fixture
def url(site: Path) -> Iterator[str]:
    """The site below a path of a file server that knows nothing of it: that of `python -m http.server`."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(site.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/site/"
        server.shutdown()


@pytest.mark.takes_seconds
def test_every_link_of_the_site_leads_to_a_page_and_each_size_has_one(url: str) -> None:
    seen, waiting = {url}, [url]
    with open_client(url) as client:
        while waiting:
            page = waiting.pop()
            answer = client.get(page)
            assert answer.status_code == 200, page
            if not answer.headers["content-type"].startswith("text/html"):
                continue
            assert not re.search(r"<(form|script)\b", answer.text), page
            links = (urljoin(page, unescape(link)) for link in re.findall(r'(?:href|src)="([^"]*)"', answer.text))
            for link in (urlsplit(link)._replace(fragment="").geturl() for link in links):
                if link.startswith("http://127.0.0.1") and link not in seen:
                    assert link.startswith(url), (page, link)
                    seen.add(link)
                    waiting.append(link)
        for name in NAMES:
            assert f"{url}ui/sizes/{name.lower()}/" in seen
            assert f"{url}ui/sizes/{name.lower()}/buy/" in seen
            assert name in client.get(f"{url}ui/sizes/{name.lower()}/").text
        page = client.get(f"{url}ui/sizes/standard_d8s_v5/").text
        assert '<link rel="canonical" href="https://sizes.example.org/ui/sizes/standard_d8s_v5/">' in page
        sitemap = client.get(f"{url}sitemap.xml").text
    assert "<loc>https://sizes.example.org/ui/sizes/standard_d8s_v5/</loc>" in sitemap


def test_the_files_are_those_of_the_service(site: Path) -> None:
    sizes = json.loads((site / "files" / "azure" / "sizes.json").read_text(encoding="utf-8"))
    assert {one["name"] for one in sizes["sizes"]} >= set(NAMES)
    assert len((site / "files" / "azure" / "vms.csv").read_text(encoding="utf-8").splitlines()) > 1
    # Nothing is outside of the folder, and nothing else is left beside it.
    assert [path.name for path in site.parent.iterdir()] == ["site"]


def test_a_site_is_replaced_and_other_folders_are_not(run: Run, site: Path, database_url: str, tmp_path: Path) -> None:
    (site / "old.html").write_text("gone", encoding="utf-8")
    done = run(database_url, "publish", str(site))
    assert (done.returncode, "no sitemap" in done.stderr) == (0, True)
    assert not (site / "old.html").exists()
    assert not (site / "sitemap.xml").exists()
    assert (site / "index.html").exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "letter.txt").write_text("dear", encoding="utf-8")
    refused = run(database_url, "publish", str(other))
    assert (refused.returncode, "has something else in it" in refused.stderr) == (2, True)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.takes_seconds
def test_processes_that_share_the_pages_write_the_same_site(
    run: Run, site: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "_SIZES_OF_A_PROCESS", 1)
    shared = site.with_name("shared")
    done = run(database_url, "publish", str(shared), "--base-url", BASE)
    assert done.returncode == 0, done.stderr
    assert contents(shared) == contents(site)


@pytest.mark.takes_seconds
@pytest.mark.parametrize("sizes_of_a_process", [1, 100])
def test_a_site_stays_when_the_next_one_fails(
    run: Run, site: Path, database_url: str, monkeypatch: pytest.MonkeyPatch, sizes_of_a_process: int
) -> None:
    engine = make_engine(database_url)
    ingest(engine, reading(size(f"Standard_{'x' * 300}", vcpus=1)), now=NOW)  # no file can have such a name
    engine.dispose()
    before = contents(site)
    monkeypatch.setattr(publish, "_SIZES_OF_A_PROCESS", sizes_of_a_process)
    assert run(database_url, "publish", str(site)).returncode != 0
    assert contents(site) == before
    assert [path.name for path in site.parent.iterdir()] == ["site"]


_SHARED = "from app import cli, publish; publish._SIZES_OF_A_PROCESS = 1; cli.main()"


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    ("number", "whole_group", "code"),
    [
        (signal.SIGINT, True, 130),
        (signal.SIGTERM, False, 143),
        pytest.param(signal.SIGINT, False, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, False, -9, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_all_processes_and_removes_what_they_wrote(
    database_url: str, tmp_path: Path, number: signal.Signals, whole_group: bool, code: int
) -> None:
    command = [sys.executable, "-c", _SHARED, "publish", str(tmp_path / "site")]
    process = subprocess.Popen(
        command,
        env={**os.environ, "VMSIZES_DATABASE_URL": database_url},
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A shell lets what it runs in the background, as these tests may be, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no thread holds a lock
    )
    wait_until(lambda: next(tmp_path.glob(".site-*/*"), None) is not None)
    (os.killpg if whole_group else os.kill)(process.pid, number)
    _, errors = process.communicate(timeout=LONGEST_SECONDS)  # its workers have the same standard error
    assert (process.returncode, b"Traceback" in errors) == (code, False)
    assert bool([*tmp_path.iterdir()]) == (number == signal.SIGKILL)


@pytest.mark.parametrize("wrong", ["nonsense", "ftp://x", "https://x.example/?a", "http://["])
def test_a_base_url_that_no_path_can_be_added_to_is_refused(wrong: str, tmp_path: Path) -> None:
    done = run_command("sqlite://", "publish", str(tmp_path / "site"), "--base-url", wrong)
    assert (done.returncode, f"--base-url={wrong}: must be a URL" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "site").exists()
