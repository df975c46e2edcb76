"""`vmsizes webhooks`: what is printed, what it exits with, and what a refresh delivers."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.catalog.models.webhooks import Webhook
from app.db.writing import write_session
from app.ingest.run import ingest
from app.webhooks.delivery import CLAIM
from tests.cli.conftest import Run
from tests.factories import NOW, price, reading
from tests.ingest.feeds.fake_api import FakeApi, serving
from tests.ingest.feeds.meters import in_region
from tests.price_changes import NAME, ingest_a_price_that_rises
from tests.waiting import LONGEST_SECONDS
from tests.webhooks.receiver import SECRET, Receiver, receiver_running, write_authority


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    authority, file = write_authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("VMSIZES_WEBHOOK_ALLOWED_NETWORKS", "localhost")
    with receiver_running(authority, "localhost") as running:
        yield running


@pytest.fixture
def url(engine: Engine, database_url: str) -> str:
    """A catalog with a change."""
    ingest_a_price_that_rises(engine)
    engine.dispose()
    return database_url


def lower_the_price(engine: Engine, usd: str = "3.4") -> None:
    ingest(engine, reading(prices=[price(NAME, usd, region="westeurope", valid_from=date(2026, 8, 20))]), now=NOW)
    engine.dispose()


@pytest.mark.takes_seconds
def test_a_webhook_is_added_tested_delivered_to_and_removed(
    run: Run, url: str, engine: Engine, receiver: Receiver
) -> None:
    filters = ("--events", "price_down,retirement_announced", "--region", "westeurope", "--size", "*_a100_*")
    added = run(url, "webhooks", "add", receiver.url, "--name", "ops", *filters)
    assert added.returncode == 0, added.stderr
    first, second = added.stdout.splitlines()
    assert first == ("ops gets kind price_down, retirement_announced; size *_a100_*; region westeurope from now on.")
    secret = second.removeprefix("Secret, shown only now: ")
    tested = run(url, "webhooks", "test", "ops")
    assert (tested.returncode, tested.stdout) == (0, "ops: it answered 204.\n")
    assert "Nothing is due." in run(url, "webhooks", "deliver").stderr
    lower_the_price(engine)
    done = run(url, "webhooks", "deliver")
    assert (done.returncode, done.stdout) == (0, "ops: 1 message with 1 event delivered\n")
    ping, message = (request.verified(secret) for request in receiver.requests)
    (event,) = message["data"]["items"]
    assert (ping["type"], event["kind"], event["new"]) == ("ping", "price_down", "3.4")
    table = run(url, "webhooks", "log").stdout
    assert table.splitlines()[1].split()[2:5] == ["catalog.changed", "1", "delivered"]
    listed = run(url, "webhooks", "list", "--json").stdout
    assert secret not in run(url, "webhooks", "list", "--wide").stdout + listed + table
    (row,) = json.loads(listed)
    assert (row["state"], row["filters"]["region"]) == ("active", ["westeurope"])
    assert run(url, "webhooks", "remove", "ops").stdout == "ops is removed.\n"
    for command, said in (("list", "There are no webhooks"), ("log", "Nothing was sent.")):
        empty = run(url, "webhooks", command)
        assert (empty.returncode, said in empty.stderr) == (1, True)


@pytest.mark.first_database
def test_what_fails_is_told_and_exits_with_3(run: Run, url: str, engine: Engine, receiver: Receiver) -> None:
    assert run(url, "webhooks", "add", receiver.url).returncode == 0
    receiver.then(404, 404, 404)
    tested = run(url, "webhooks", "test", "localhost")
    assert (tested.returncode, tested.stderr) == (3, "localhost: it answered 404\n")
    lower_the_price(engine)
    done = run(url, "webhooks", "deliver")
    assert done.returncode == 3
    assert (
        "localhost: 0 messages with 0 events delivered, then failed: it answered 404; next attempt at " in done.stdout
    )
    assert "failing" in run(url, "webhooks", "list").stdout
    assert run(url, "webhooks", "enable", "localhost").returncode == 0
    (failed,) = json.loads(run(url, "webhooks", "deliver", "--json").stdout)
    assert (failed["webhook"], failed["error"]) == ("localhost", "it answered 404")


def test_a_claim_of_a_run_that_was_killed_is_told_with_its_end(
    run: Run, url: str, engine: Engine, receiver: Receiver
) -> None:
    assert run(url, "webhooks", "add", receiver.url, "--name", "ops").returncode == 0
    lower_the_price(engine)
    until = datetime.now(UTC).replace(microsecond=0) + CLAIM
    with write_session(engine) as session:
        session.get_one(Webhook, "ops").claimed_until = until
    done = run(url, "webhooks", "deliver")
    due = f"{until:%Y-%m-%dT%H:%M:%SZ}"
    said = f"ops is claimed by another run; if that was killed, it is due again at {due}.\n"
    assert (done.returncode, done.stdout, done.stderr, receiver.requests) == (0, "", said, [])
    with write_session(engine) as session:
        session.get_one(Webhook, "ops").claimed_until = datetime.now(UTC) - timedelta(seconds=1)
    assert run(url, "webhooks", "deliver").stdout == "ops: 1 message with 1 event delivered\n"


@pytest.mark.first_database
def test_a_secret_of_a_file_is_used_and_not_printed(run: Run, url: str, receiver: Receiver, tmp_path: Path) -> None:
    file = tmp_path / "secret.txt"
    file.write_text(f"{SECRET}\n")
    file.chmod(stat.S_IRUSR)
    added = run(url, "webhooks", "add", receiver.url, "--secret-file", str(file), "--json")
    assert json.loads(added.stdout) == {"name": "localhost", "url": receiver.url, "filters": {}}
    assert run(url, "webhooks", "test", "localhost").returncode == 0
    receiver.requests[0].verified(SECRET)
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    file.write_text("hunter2")
    wrong = run(url, "webhooks", "add", receiver.url, "--secret-file", str(file), "--name", "other")
    assert wrong.returncode == 3
    assert "hunter2" not in wrong.stderr


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("http://localhost/",), "URL=http://localhost/: must begin with https://"),
        (("https://10.0.0.1/",), "URL=https://10.0.0.1/: 10.0.0.1 is not a public address"),
        (("https://localhost/", "--events", "price_dwon"), "--events=price_dwon: did you mean price_down"),
        (("https://localhost/", "--region", "mars"), "--region=mars"),
        (("https://localhost/", "--name", "a b"), "--name=a b: letters, digits"),
    ],
)
def test_what_cannot_be_a_webhook_is_refused(
    run: Run, url: str, receiver: Receiver, arguments: tuple[str, ...], message: str
) -> None:
    done = run(url, "webhooks", "add", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "There is no webhook named 'ops'." in run(url, "webhooks", "test", "ops").stderr


@pytest.mark.first_database
def test_a_setting_that_cannot_be_read_is_named(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VMSIZES_WEBHOOK_ALLOWED_NETWORKS", "10.0.0.0/99")
    done = run(url, "webhooks", "deliver")
    assert done.returncode == 2
    assert "VMSIZES_WEBHOOK_ALLOWED_NETWORKS=10.0.0.0/99: names of hosts and networks are allowed" in done.stderr


@pytest.mark.first_database
def test_a_file_of_authorities_that_cannot_be_read_is_named(
    run: Run, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "empty.pem").touch()
    for file in ("nosuch.pem", "empty.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / file))
        for command in (("webhooks", "deliver"), ("refresh", "exchange-rates", "--url", "http://127.0.0.1:9/x.zip")):
            done = run(url, *command)
            assert done.returncode == 2
            assert f"error: SSL_CERT_FILE={tmp_path / file}: has no certificates that can be read" in done.stderr


@pytest.mark.takes_seconds
def test_a_refresh_delivers_what_it_brought_and_succeeds_whatever_the_receiver_says(
    run: Run, few_sizes_url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VMSIZES_FEEDS", str(tmp_path / "feeds"))
    with serving(FakeApi(items={"eastus": in_region("eastus", size="Standard_NC24ads_A100_v4")})) as api:
        refresh = ("refresh", "azure-prices", "--url", api.url, "--region", "eastus")
        assert run(few_sizes_url, "webhooks", "add", receiver.url).returncode == 0
        assert "webhooks" not in run(few_sizes_url, *refresh, "--dry-run").stderr
        assert receiver.requests == []
        receiver.then(400)
        failed = run(few_sizes_url, *refresh)
        assert failed.returncode == 0, failed.stderr
        assert "webhooks: localhost: 0 messages with 0 events delivered, then failed: it answered 400" in failed.stderr
    assert run(few_sizes_url, "webhooks", "enable", "localhost").returncode == 0
    assert run(few_sizes_url, "webhooks", "deliver").returncode == 0
    refused, taken = receiver.requests
    assert refused.id == taken.id


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_a_process_goes_on_delivering_until_sigterm(run: Run, url: str, engine: Engine, receiver: Receiver) -> None:
    assert run(url, "webhooks", "add", receiver.url).returncode == 0
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = os.environ | {"VMSIZES_DATABASE_URL": url}
    command = [program, "webhooks", "deliver", "--every", "1s"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert "nothing is due" in process.stdout.readline()
        lower_the_price(engine)
        line = next(line for line in process.stdout if "nothing is due" not in line)
        assert "localhost: 1 message with 1 event delivered; took" in line
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=LONGEST_SECONDS) == 0
