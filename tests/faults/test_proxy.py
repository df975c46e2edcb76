"""The nginx configuration of the guide, run by a real nginx: TLS, prefix, hit ratio, new revisions, a dead upstream."""

import random
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
import trustme

from app.settings import PROJECT
from tests.faults.test_replicas import ingest_region
from tests.processes import ServiceProcess, free_port, run_service
from tests.servers import CLIENT_TIMEOUT, get
from tests.waiting import LONGEST_SECONDS, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.one_database,
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed: apt-get install nginx"),
]
HOST = "vmsizes.example.org"


@contextmanager
def nginx_before(service: ServiceProcess, folder: Path) -> Iterator[httpx.Client]:
    """Run nginx with the configuration of the guide, but for addresses and folders; yields a client of the prefix."""
    authority, port = trustme.CA(), free_port()
    certificate = authority.issue_cert(HOST)
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "vmsizes.pem"))
    text = (PROJECT / "docs/deploy/nginx.conf").read_text(encoding="utf-8")
    for documented, here in {
        "127.0.0.1:8000": f"127.0.0.1:{service.port}",
        "listen 443": f"listen 127.0.0.1:{port}",
        "/etc/nginx/vmsizes.pem": str(folder / "vmsizes.pem"),
        "/etc/nginx/vmsizes.key": str(folder / "vmsizes.pem"),
        "/var/cache/nginx/vmsizes": str(folder / "cache"),
    }.items():
        assert documented in text
        text = text.replace(documented, here)
    (folder / "site.conf").write_text(text, encoding="utf-8")
    (folder / "nginx.conf").write_text(
        # as root, nginx would run its workers as a user who may not read what is below pytest's folder
        f"user root; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;\n"
        f"events {{}}\nhttp {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
        f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
        f"include {folder}/site.conf; }}\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")])
    try:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        transport = httpx.HTTPTransport(verify=context, local_address="127.0.0.1")
        with httpx.Client(
            base_url=f"https://127.0.0.1:{port}/vmsizes",
            transport=transport,
            headers={"host": HOST},
            timeout=CLIENT_TIMEOUT,
        ) as client:
            client.event_hooks["request"] = [lambda request: request.extensions.update(sni_hostname=HOST)]
            wait_until(lambda: _answers(client), (folder / "error.log").read_text())
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=LONGEST_SECONDS)


def _has_another(client: httpx.Client, etag: str) -> bool:
    return client.get("/regions").headers["etag"] != etag


def _answers(client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return client.get("/healthz").status_code == 200
    return False


def test_pages_lists_and_problems_work_under_the_prefix_over_tls(few_sizes_url: str, tmp_path: Path) -> None:
    public = f"https://{HOST}/vmsizes"
    with (
        run_service(few_sizes_url, tmp_path / "log", VMSIZES_PUBLIC_URL=public) as service,
        nginx_before(service, tmp_path) as client,
    ):
        page = client.get("/", headers={"accept": "text/html"})
        assert "text/html" in page.headers["content-type"]
        (style, *_) = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page.text)
        assert client.get(httpx.URL(f"{client.base_url}").join(style)).headers["content-type"].startswith("text/css")
        assert client.get("/").headers["content-type"] == "application/json", "by Accept, from the same cache"
        for accept in ("text/html, application/json", "text/html;q=0, application/json", "TEXT/HTML", "text/html;q=0"):
            kind = client.get("/", headers={"accept": accept}).headers["content-type"]
            assert kind.startswith("application/json" if "q=0" in accept else "text/html"), accept
        answer = client.get("/sizes?limit=2")
        assert f"<{public}/sizes?" in answer.headers["link"]
        assert client.get("/sizes/none_such").json()["type"] == f"{public}/problems/not-found"
        assert client.get("/sizes?limit=2", headers={"if-none-match": answer.headers["etag"]}).status_code == 304
        for encoding in ("br", "gzip", "identity"):
            sent = client.get("/sizes?limit=50", headers={"accept-encoding": encoding})
            assert sent.headers.get("content-encoding", "identity") == encoding
        for accepted, preferred in {
            "br;q=0, vibration, gzip;q=0.5": "gzip",
            "vibration": None,
            "BR;q=0.001": "br",
        }.items():
            sent = client.get("/sizes?limit=51", headers={"accept-encoding": accepted})
            assert sent.headers.get("content-encoding") == preferred
        with_origin = client.get("/sizes?limit=2", headers={"origin": "https://example.org"})
        assert with_origin.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-origin" not in client.get("/sizes?limit=2").headers
        whole = client.get("/sizes.csv", headers={"accept-encoding": "identity"}).content
        assert whole == get(f"{service.url}/sizes.csv").content
        assert client.get("/metrics").status_code == 404
        own = [client.get("/sizes?limit=3", headers={"x-request-id": name}) for name in ("first", "second")]
        assert [answer.headers["x-cache-status"] for answer in own] == ["MISS", "HIT"]
        assert [answer.headers.get("x-request-id") for answer in own] == ["first", None], "a copy has none of another"


def test_mixed_load_new_revisions_and_a_dead_service(
    few_sizes_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table: list[str] = []
    with (
        run_service(few_sizes_url, tmp_path / "log", VMSIZES_WORKERS="2") as service,
        nginx_before(service, tmp_path) as client,
    ):
        served = Counter(ask_mixed(client, seconds=15))
        total = sum(served.values())
        shares = {name: f"{served[name] / total:.1%}" for name in ("HIT", "REVALIDATED", "MISS", "EXPIRED")}
        table.append(f"{total} requests of a mixed load | {shares}")
        assert served["HIT"] / total > 0.5
        assert served["HIT"] + served["REVALIDATED"] + served["MISS"] + served["EXPIRED"] == total

        slowest = 0.0
        for number in range(3):
            before = client.get("/regions").headers["etag"]
            ingest_region(tmp_path, few_sizes_url, f"new{number}")
            began = time.monotonic()
            wait_until(partial(_has_another, client, before), "a new revision reaches clients")
            slowest = max(slowest, time.monotonic() - began)
            assert f"new{number}" in client.get("/regions?limit=500").text
        table.append(f"a new revision after its ingest | seen by clients within {slowest:.2f} s (3 times)")

        kept = client.get("/sizes?limit=5")
        for worker in service.workers:
            subprocess.run(["kill", "-9", str(worker)], check=True)
        service.process.kill()
        service.process.wait()
        time.sleep(2.1)  # until the copy is no longer fresh: nginx compares whole seconds
        again = client.get("/sizes?limit=5")
        assert (again.status_code, again.headers["x-cache-status"], again.content) == (200, "STALE", kept.content)
        assert client.get("/sizes?limit=6").status_code == 502
        table.append("the service is killed | kept responses 200 (STALE), others 502")
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(table) + "\n")  # docs/operations.md has these figures


def ask_mixed(client: httpx.Client, *, seconds: float) -> list[str]:
    """Send requests as four clients do: nine of ten of 300 URLs, the popular ones more often, one that is new."""
    ends = time.monotonic() + seconds

    def ask(seed: int) -> list[str]:
        chance = random.Random(seed)
        statuses: list[str] = []
        while time.monotonic() < ends:
            popular = int(300 * chance.random() ** 3)
            path = f"/sizes?limit={popular % 50 + 1}&min_vcpus={popular // 50 + 1}"
            if chance.random() < 0.1:
                path = f"/sizes?limit=1&min_memory={seed}{len(statuses)}.5"
            statuses.append(client.get(path).headers["x-cache-status"])
        return statuses

    with ThreadPoolExecutor(4) as threads:
        return [status for statuses in threads.map(ask, range(1, 5)) for status in statuses]
