"""Webhooks get each event once that a receiver counts: in order, in bounded messages, by a log of what was sent."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import orjson
import pytest
import trustme
from sqlalchemy import Engine, func, select

from app.catalog.column_types import table_of
from app.catalog.models import Change
from app.catalog.models.webhooks import Webhook, WebhookMessage
from app.catalog.queries.changes import ChangeFilter
from app.catalog.queries.snapshot import load_snapshot
from app.catalog.store.revisions import compute_digest
from app.db.engines import read_session
from app.db.writing import write_session
from app.errors import BadQuery, NotFound
from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from app.webhooks import delivery
from app.webhooks.delivery import (
    CLAIM,
    DISABLED_AFTER,
    DeliveryRun,
    add_webhook,
    deliver_due,
    enable_webhook,
    list_messages,
    list_webhooks,
    remove_webhook,
    send_ping,
)
from app.webhooks.sending import Sender, SendPolicy
from tests.databases import writable
from tests.factories import NOW, price, reading, size
from tests.servers import get, server
from tests.waiting import LONGEST_SECONDS, wait_until
from tests.webhooks.receiver import LOOPBACK, QUICK, SECRET, Receiver, receiver_running

ONCE = SendPolicy(attempts=1, timeout=LONGEST_SECONDS)
NAME = "Standard_NC24ads_A100_v4"


class Clock:
    """The time of deliveries: it goes on by `step` whenever it is asked, else when it is told to."""

    def __init__(self) -> None:
        self.now, self.step = NOW + timedelta(hours=1), timedelta()

    def __call__(self) -> datetime:
        self.now += self.step
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def catalog(engine: Engine) -> Engine:
    """A catalog with a size that has a price in two regions."""
    prices = [price(NAME, "3.5", region=code) for code in ("eastus", "westeurope")]
    statements = (*size(NAME, vcpus=24), *size("Standard_D2", vcpus=2))
    ingest(engine, reading(statements, regions=["eastus", "westeurope"], prices=prices), now=NOW - timedelta(days=2))
    return engine


def change_prices(engine: Engine, *usd: str, region: str = "westeurope", first_day: date = date(2026, 8, 1)) -> None:
    """Ingest prices of following days, each a revision with one event."""
    for number, one in enumerate(usd):
        row = price(NAME, one, region=region, valid_from=first_day + timedelta(days=number))
        ingest(engine, reading(prices=[row]), now=NOW)


def add(engine: Engine, receiver: Receiver, name: str = "ops", **filters: Any) -> None:
    request: dict[str, Any] = {"url": receiver.url, "filters": ChangeFilter(**filters), "secret": SECRET, "name": name}
    with write_session(engine) as session:
        add_webhook(session, load_snapshot(session), LOOPBACK, NOW, **request)


def deliver(engine: Engine, clock: Clock, policy: SendPolicy = ONCE) -> list[DeliveryRun]:
    return deliver_due(engine, Sender(LOOPBACK, policy), clock)


def delivering(url: str, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start `vmsizes webhooks deliver` as a process."""
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = os.environ | {"VMSIZES_DATABASE_URL": url, "VMSIZES_WEBHOOK_ALLOWED_NETWORKS": "localhost"}
    return subprocess.Popen([program, "webhooks", "deliver", *arguments], env=environment)


def webhook(engine: Engine, name: str = "ops") -> Webhook:
    with read_session(engine) as session:
        return session.get_one(Webhook, name)


def messages(engine: Engine) -> list[dict[str, Any]]:
    with read_session(engine) as session:
        return list_messages(session, None, 1000)


def items(receiver: Receiver) -> list[dict[str, Any]]:
    return [item for request in receiver.requests for item in request.verified()["data"]["items"]]


@pytest.mark.takes_seconds
def test_a_webhook_gets_later_events_as_the_list_of_changes_shows_them(
    service: CacheMiddleware, receiver: Receiver, clock: Clock
) -> None:
    engine = writable(service)
    ingest(engine, reading(size("Standard_X1", vcpus=16)), now=NOW)
    add(engine, receiver)
    assert deliver(engine, clock) == []
    ingest(engine, reading((*size("Standard_X1", vcpus=32), *size("Standard_X2", vcpus=4))), now=NOW)
    assert deliver(engine, clock) == [DeliveryRun(webhook="ops", messages=1, events=2)]
    with server(service) as base:
        listed = get(f"{base}/changes?since=2").json()["items"]
    (request,) = receiver.requests
    message = request.verified()
    assert message == {
        "type": "catalog.changed",
        "timestamp": "2026-09-01T12:00:00Z",
        "data": {"items": listed, "more": False},
    }
    assert {item["kind"] for item in listed} == {"field_changed", "size_new"}
    assert deliver(engine, clock) == []


@pytest.mark.one_database  # tests/api/test_changes.py asks each kind for events by each filter
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {"price_up", "price_down", "size_new", "field_changed"}),
        ({"kind": ["price_down", "size_new"]}, {"price_down", "size_new"}),
        ({"region": ["westeurope"]}, {"price_up"}),
        ({"size": ["*_a100_*"]}, {"price_up", "price_down"}),
        ({"size": ["d2"]}, {"field_changed"}),
        ({"min_percent": "30", "purchase": "on_demand"}, {"price_up"}),
        ({"region": ["eastus"], "os": "windows"}, set()),
    ],
)
def test_filters_choose_events(
    catalog: Engine, receiver: Receiver, clock: Clock, filters: dict[str, Any], expected: set[str]
) -> None:
    add(catalog, receiver, **filters)
    change_prices(catalog, "7")
    change_prices(catalog, "3", region="eastus")
    changed = (*size(NAME, vcpus=24), *size("Standard_D2", vcpus=4), *size("Standard_D8", vcpus=8))
    ingest(catalog, reading(changed), now=NOW)
    deliver(catalog, clock)
    assert {item["kind"] for item in items(receiver)} == expected
    with read_session(catalog) as session:
        newest = session.execute(select(func.max(table_of(Change).c.id))).scalar_one()
    assert webhook(catalog).after_change == newest or expected, "events that do not match are passed over once"


@pytest.mark.one_database  # refused before anything is written
def test_an_unknown_filter_a_name_that_is_taken_and_a_private_address_are_refused(
    catalog: Engine, receiver: Receiver
) -> None:
    add(catalog, receiver)
    for wrong, message in (
        ({"name": "ops"}, "name=ops: is taken"),
        ({"name": "a/b"}, "letters, digits"),
        ({"filters": ChangeFilter(region=["mars"])}, "region=mars"),
        ({"filters": ChangeFilter(size=["nd96"])}, "size=nd96"),
        ({"url": "https://10.0.0.1/"}, "10.0.0.1 is not a public address"),
        ({"url": "http://localhost/"}, "must begin with https"),
    ):
        known: dict[str, Any] = {"url": receiver.url, "filters": ChangeFilter(), "secret": SECRET, "name": "other"}
        with pytest.raises(BadQuery, match=message), write_session(catalog) as session:
            add_webhook(session, load_snapshot(session), LOOPBACK, NOW, **known | wrong)


def test_what_failed_is_sent_again_with_the_same_id_and_body_and_later_events_after_it(
    catalog: Engine, receiver: Receiver, clock: Clock
) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    receiver.then(500, 500)
    (run,) = deliver(catalog, clock)
    assert (run.error, run.messages) == ("it answered 500", 0)
    assert run.next_attempt_at is not None
    assert timedelta(minutes=4.5) <= run.next_attempt_at - clock.now <= timedelta(minutes=5.5)
    change_prices(catalog, "3.7", first_day=date(2026, 8, 2))
    assert deliver(catalog, clock) == []
    clock.now = run.next_attempt_at
    (again,) = deliver(catalog, clock)
    assert again.next_attempt_at is not None
    assert timedelta(minutes=9) <= again.next_attempt_at - clock.now <= timedelta(minutes=11)
    clock.now = again.next_attempt_at
    assert deliver(catalog, clock) == [DeliveryRun(webhook="ops", messages=2, events=2)]
    first, second, third, later = receiver.requests
    assert {(one.id, one.body) for one in (first, second, third)} == {(first.id, first.body)}
    assert later.id != first.id
    assert [item["new"] for item in items(receiver)[-2:]] == ["3.6", "3.7"]
    newest, oldest = messages(catalog)
    assert (oldest["status"], oldest["attempts"], oldest["status_code"], oldest["error"]) == ("delivered", 3, 204, None)
    assert newest["attempts"] == 1
    assert (webhook(catalog).failures, webhook(catalog).failing_since) == (0, None)


@pytest.mark.one_database  # waits are arithmetic on what the test before stores
def test_waits_double_up_to_a_day_and_are_as_long_as_the_receiver_asks(
    catalog: Engine, receiver: Receiver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "JITTER", 0.0)
    monkeypatch.setattr(delivery, "DISABLED_AFTER", timedelta(days=99))
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    waits = []
    receiver.then(*[500] * 11)
    for _ in range(11):
        (run,) = deliver(catalog, clock)
        assert run.next_attempt_at is not None
        waits.append((run.next_attempt_at - clock.now) / timedelta(minutes=1))
        clock.now = run.next_attempt_at
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]
    receiver.then(429, retry_after="1000000")
    (run,) = deliver(catalog, clock)
    assert run.next_attempt_at == clock.now + timedelta(days=1)


def test_a_message_has_at_most_100_events_in_their_order(catalog: Engine, receiver: Receiver, clock: Clock) -> None:
    add(catalog, receiver, kind=["size_new"])
    ingest(catalog, reading([one for number in range(250) for one in size(f"Standard_E{number}", vcpus=2)]), now=NOW)
    assert deliver(catalog, clock) == [DeliveryRun(webhook="ops", messages=3, events=250)]
    data = [request.verified()["data"] for request in receiver.requests]
    assert [(len(one["items"]), one["more"]) for one in data] == [(100, True), (100, True), (50, False)]
    ids = [item["id"] for item in items(receiver)]
    assert ids == sorted(set(ids))
    assert len({request.id for request in receiver.requests}) == 3


@pytest.mark.one_database  # events are divided in memory
def test_a_message_has_at_most_so_many_bytes(
    catalog: Engine, receiver: Receiver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_BODY_BYTES", 1_000)
    add(catalog, receiver, kind=["size_new"])
    ingest(catalog, reading([one for number in range(20) for one in size(f"Standard_E{number}", vcpus=2)]), now=NOW)
    deliver(catalog, clock)
    assert len(items(receiver)) == 20
    assert all(len(orjson.dumps(request.verified()["data"]["items"])) < 1_100 for request in receiver.requests)
    assert len(receiver.requests) > 4


def test_a_run_ends_after_two_minutes_and_the_next_goes_on(
    catalog: Engine, receiver: Receiver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_EVENTS", 2)
    monkeypatch.setattr(delivery, "KEPT_MESSAGES", 4)
    add(catalog, receiver, kind=["size_new"])
    ingest(catalog, reading([one for number in range(10) for one in size(f"Standard_E{number}", vcpus=2)]), now=NOW)
    clock.step = timedelta(seconds=10)
    assert [deliver(catalog, clock)[0].events for _ in range(2)] == [6, 4]
    assert len(items(receiver)) == 10
    assert len(messages(catalog)) == 4, "the log is bounded"


def test_two_runs_at_once_send_each_message_once(catalog: Engine, receiver: Receiver, clock: Clock) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6", "3.7")
    receiver.seconds = 0.3
    with ThreadPoolExecutor(max_workers=4) as threads:
        runs = [run for part in threads.map(lambda _: deliver(catalog, clock), range(4)) for run in part]
    assert runs == [DeliveryRun(webhook="ops", messages=1, events=2)]
    assert len(receiver.requests) == 1


@pytest.mark.takes_seconds
def test_a_process_that_is_killed_leaves_a_message_that_is_sent_again_with_its_id(
    catalog: Engine, database_url: str, receiver: Receiver, clock: Clock
) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    killed_it = Event()
    receiver.before_answer = lambda: killed_it.wait(LONGEST_SECONDS)
    with delivering(database_url) as process:
        wait_until(lambda: receiver.requests)
        process.send_signal(signal.SIGKILL)
    killed_it.set()
    claimed = webhook(catalog).claimed_until
    assert claimed is not None
    clock.now = claimed - timedelta(seconds=1)
    assert deliver(catalog, clock) == [], "the claim of the process that was killed lasts"
    clock.now = claimed
    assert deliver(catalog, clock) == [DeliveryRun(webhook="ops", messages=1, events=1)]
    killed, sent = receiver.requests
    assert (killed.id, killed.body) == (sent.id, sent.body)


@pytest.mark.takes_seconds
@pytest.mark.one_database  # signals; the test before stores a claim on each kind
def test_a_process_that_is_told_to_end_gives_its_claim_back(
    catalog: Engine, database_url: str, receiver: Receiver, clock: Clock
) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    ended = Event()
    receiver.before_answer = lambda: ended.wait(LONGEST_SECONDS)
    with delivering(database_url, "--every", "1h") as process:
        wait_until(lambda: receiver.requests)
        process.terminate()
        assert process.wait(timeout=LONGEST_SECONDS) == 0
    ended.set()
    assert webhook(catalog).claimed_until is None
    assert deliver(catalog, clock) == [DeliveryRun(webhook="ops", messages=1, events=1)]
    first, second = receiver.requests
    assert first.id == second.id


def test_a_run_that_was_overtaken_writes_nothing(
    catalog: Engine, receiver: Receiver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    sender = Sender(LOOPBACK, ONCE)

    class Slow(Sender):
        """The run of another process begins and ends while this one sends."""

        async def post(self, *values: Any, **more: Any) -> Any:
            clock.now += CLAIM
            other = await asyncio.to_thread(deliver_due, catalog, sender, clock)
            assert other == [DeliveryRun(webhook="ops", messages=1, events=1)]
            receiver.then(500)
            return await super().post(*values, **more)

    assert deliver_due(catalog, Slow(LOOPBACK, ONCE), clock) == []
    assert len({request.id for request in receiver.requests}) == 1
    assert messages(catalog)[0]["status"] == "delivered"
    assert webhook(catalog).failures == 0


def test_a_receiver_that_is_gone_is_disabled_and_goes_on_where_it_was_once_enabled(
    catalog: Engine, receiver: Receiver, clock: Clock
) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    receiver.then(410)
    (run,) = deliver(catalog, clock)
    assert (run.error, run.next_attempt_at) == ("it wants no more messages: it answered 410", None)
    clock.now += timedelta(days=30)
    change_prices(catalog, "3.7", first_day=date(2026, 8, 2))
    assert deliver(catalog, clock) == []
    with read_session(catalog) as session:
        (row,) = list_webhooks(session)
    assert (row["state"], row["error"]) == ("disabled", "it wants no more messages: it answered 410")
    with write_session(catalog) as session:
        enable_webhook(session, "ops")
    assert deliver(catalog, clock) == [DeliveryRun(webhook="ops", messages=2, events=2)]
    assert receiver.requests[0].id == receiver.requests[1].id


@pytest.mark.one_database  # the test before disables one on each kind
def test_a_webhook_that_fails_for_days_is_disabled(catalog: Engine, receiver: Receiver, clock: Clock) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    receiver.then(500, 500, 500)
    deliver(catalog, clock)
    clock.now += DISABLED_AFTER - timedelta(seconds=1)
    assert deliver(catalog, clock)[0].next_attempt_at is not None
    clock.now += timedelta(days=1)
    (run,) = deliver(catalog, clock)
    assert (run.error, run.next_attempt_at) == ("it failed for 5 days: it answered 500", None)
    assert webhook(catalog).disabled_at == clock.now


@pytest.mark.one_database  # about requests to receivers, not about what is stored
def test_one_that_fails_does_not_stop_the_others(catalog: Engine, receiver: Receiver, clock: Clock) -> None:
    for name in ("a", "b"):
        add(catalog, receiver, name)
    change_prices(catalog, "3.6")
    receiver.then(500)
    failed, delivered = sorted(deliver(catalog, clock), key=lambda run: run.error is None)
    assert (failed.error, failed.messages) == ("it answered 500", 0)
    assert (delivered.error, delivered.messages, delivered.events) == (None, 1, 1)
    assert {failed.webhook, delivered.webhook} == {"a", "b"}


@pytest.mark.one_database  # about requests to receivers, not about what is stored
def test_a_slow_receiver_delays_no_other(
    catalog: Engine, receiver: Receiver, authority: trustme.CA, clock: Clock
) -> None:
    quick_one_got_it, waits = Event(), list[bool]()
    with receiver_running(authority, "localhost") as quick:
        add(catalog, receiver, "a-slow")
        add(catalog, quick, "b-quick")
        change_prices(catalog, "3.6")
        receiver.before_answer = lambda: waits.append(quick_one_got_it.wait(LONGEST_SECONDS))
        quick.before_answer = quick_one_got_it.set
        runs = deliver(catalog, clock, SendPolicy(attempts=1, timeout=2 * LONGEST_SECONDS))
    assert runs == [DeliveryRun(webhook=name, messages=1, events=1) for name in ("a-slow", "b-quick")]
    assert waits == [True]


@pytest.mark.one_database  # about requests to receivers, not about what is stored
def test_several_attempts_of_a_run_are_counted(catalog: Engine, receiver: Receiver, clock: Clock) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    receiver.then(500, 503)
    assert deliver(catalog, clock, QUICK) == [DeliveryRun(webhook="ops", messages=1, events=1)]
    assert messages(catalog)[0]["attempts"] == 3
    assert len({request.id for request in receiver.requests}) == 1


def test_a_ping_is_sent_once_whatever_the_state(catalog: Engine, receiver: Receiver, clock: Clock) -> None:
    add(catalog, receiver)
    with write_session(catalog) as session:
        session.get_one(Webhook, "ops").disabled_at = NOW
    receiver.then(500)
    sender = Sender(LOOPBACK, QUICK)
    assert send_ping(catalog, sender, clock, "ops").error == "it answered 500"
    assert send_ping(catalog, sender, clock, "OPS").delivered
    assert [request.verified()["type"] for request in receiver.requests] == ["ping", "ping"]
    assert receiver.requests[0].verified()["data"] == {"webhook": "ops"}
    assert [(one["type"], one["status"]) for one in messages(catalog)] in (
        [("ping", "delivered"), ("ping", "failed")],
        [("ping", "failed"), ("ping", "delivered")],
    )
    with pytest.raises(NotFound, match=r"webhook named 'opps'. Did you mean ops"):
        send_ping(catalog, sender, clock, "opps")


def test_the_error_of_a_webhook_is_that_of_the_message_that_waits_else_of_the_last_attempt(
    catalog: Engine, receiver: Receiver, clock: Clock
) -> None:
    def error() -> str:
        clock.now += timedelta(minutes=1)
        with read_session(catalog) as session:
            (row,) = list_webhooks(session)
        return str(row["error"])

    add(catalog, receiver)
    change_prices(catalog, "3.6")
    assert error() == "None"
    receiver.then(503, 404)
    sender = Sender(LOOPBACK, ONCE)
    deliver(catalog, clock)
    assert error() == "it answered 503"
    for _ in range(2):
        send_ping(catalog, sender, clock, "ops")
        assert error() == "it answered 503"
    with write_session(catalog) as session:
        enable_webhook(session, "ops")
    deliver(catalog, clock)
    assert error() == "None"
    receiver.then(404)
    send_ping(catalog, sender, clock, "ops")
    assert error() == "it answered 404"


def test_a_webhook_that_is_removed_leaves_nothing(catalog: Engine, receiver: Receiver, clock: Clock) -> None:
    add(catalog, receiver)
    change_prices(catalog, "3.6")
    deliver(catalog, clock)
    with write_session(catalog) as session:
        remove_webhook(session, "ops")
    with read_session(catalog) as session:
        assert list_webhooks(session) == []
        assert session.execute(select(WebhookMessage)).all() == []


def test_webhooks_are_no_content_of_the_catalog(catalog: Engine, receiver: Receiver, clock: Clock) -> None:
    change_prices(catalog, "3.6")
    with read_session(catalog) as session:
        before, revision = compute_digest(session), load_snapshot(session).revision
    add(catalog, receiver)
    send_ping(catalog, Sender(LOOPBACK, ONCE), clock, "ops")
    deliver(catalog, clock)
    with read_session(catalog) as session:
        assert (compute_digest(session), load_snapshot(session).revision) == (before, revision)
