"""Faults of PostgreSQL, each brought about on a real server and put right."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg

from tests.faults.catalogs import fill
from tests.faults.cluster import RESERVED, Cluster
from tests.faults.observe import Fault
from tests.faults.proxy import Proxy


@dataclass(frozen=True, slots=True)
class Server:
    """The server that the service reads from, and the proxy through which it does."""

    cluster: Cluster
    proxy: Proxy


@contextmanager
def stopped(server: Server, how: signal.Signals) -> Iterator[None]:
    server.cluster.stop(how)
    try:
        yield
    finally:
        server.cluster.start()


@contextmanager
def restarted(server: Server) -> Iterator[None]:
    server.cluster.stop()
    server.cluster.start()
    yield


@contextmanager
def backend_killed(server: Server) -> Iterator[None]:
    """Kill one backend: the server restarts all of them to recover."""
    os.kill(server.cluster.backends()[0], signal.SIGKILL)
    yield


@contextmanager
def paused(server: Server) -> Iterator[None]:
    server.cluster.signal_all(signal.SIGSTOP)
    try:
        yield
    finally:
        server.cluster.signal_all(signal.SIGCONT)


@contextmanager
def backends_paused(server: Server) -> Iterator[None]:
    pids = server.cluster.backends()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _end_connections(server: Server, database: str = "catalog") -> None:
    server.cluster.run(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'")


@contextmanager
def refusing(server: Server) -> Iterator[None]:
    """Refuse the service's user, and end its connections."""
    rules = server.cluster.here / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("host all service all reject\n" + before)
    server.cluster.run("select pg_reload_conf()")
    _end_connections(server)
    try:
        yield
    finally:
        rules.write_text(before)
        server.cluster.run("select pg_reload_conf()")


@contextmanager
def full(server: Server, *, end_own: bool) -> Iterator[None]:
    """Take every connection that there is; with `end_own` also those of the service."""
    with ExitStack() as stack:

        def take_all() -> None:
            while True:
                try:
                    stack.enter_context(psycopg.connect(server.cluster.url("postgres")))
                except psycopg.OperationalError:
                    return

        take_all()
        for _ in range(20 if end_own else 0):
            _end_connections(server)
            take_all()
            if not server.cluster.backends("datname = 'catalog'"):
                break
        yield


@contextmanager
def set_for_all(server: Server, setting: str) -> Iterator[None]:
    """Change a setting of the database for new connections, and end those that there are."""
    name = setting.partition("=")[0]
    server.cluster.run(f"alter database catalog set {setting}")
    _end_connections(server)
    try:
        yield
    finally:
        server.cluster.run(f"alter database catalog reset {name}")
        _end_connections(server)


@contextmanager
def repeated(server: Server, statement: str, pause_seconds: float) -> Iterator[None]:
    """Run a statement again and again."""
    stop = threading.Event()

    def run() -> None:
        with server.cluster.admin() as connection:
            while not stop.wait(pause_seconds):
                connection.execute(statement)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def dropped(server: Server, *, other_catalog: bool = False) -> Iterator[None]:
    """Drop the database, and create it again from a copy, or anew with another catalog."""
    server.cluster.run("drop database catalog with (force)")
    try:
        yield
    finally:
        if other_catalog:
            server.cluster.run("create database catalog")
            fill(server.cluster.url(user="postgres"), usd="2")
        else:
            server.cluster.run("create database catalog template spare")


@contextmanager
def changed(server: Server, change: str, back: str, database: str = "catalog") -> Iterator[None]:
    """Run one statement, and at the end another."""
    _end_connections(server)
    for _ in range(50):
        try:
            server.cluster.run(change, database)
            break
        except psycopg.errors.ObjectInUse:
            _end_connections(server)
            time.sleep(0.01)
    try:
        yield
    finally:
        server.cluster.run(back, database)


@contextmanager
def locked(server: Server) -> Iterator[None]:
    """Lock the tables as a migration does that alters them."""
    with server.cluster.admin("catalog") as connection, connection.transaction():
        connection.execute("lock table revision, size, offer, fact in access exclusive mode")
        yield


@contextmanager
def writing(server: Server) -> Iterator[None]:
    """Keep a transaction open that has written, as an ingest does for minutes."""
    with server.cluster.admin("catalog") as connection, connection.transaction(force_rollback=True):
        connection.execute("select pg_advisory_xact_lock(hashtext('vmsizes migrations'))")
        connection.execute("update size set name = name || '!'")
        yield


@contextmanager
def through_proxy(server: Server, change: Callable[[Proxy], None]) -> Iterator[None]:
    change(server.proxy)
    try:
        yield
    finally:
        server.proxy.reset()


@contextmanager
def ingested(server: Server) -> Iterator[None]:
    """Ingest another catalog while the service runs: no fault, but what must go on during one."""
    fill(server.cluster.url(user="postgres"), usd=f"{time.time_ns() % 1000 + 3}", migrate=False)
    yield


_TERMINATE = "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'catalog'"
_CANCEL = "select pg_cancel_backend(pid) from pg_stat_activity where datname = 'catalog' and state = 'active'"
_CLOSED = "it closed the connection|connection refused|it is shutting down|it is starting"

FAULTS: tuple[Fault[Server], ...] = (
    Fault("stopped (fast)", lambda it: stopped(it, signal.SIGINT), _CLOSED, quick=True),
    Fault("stopped (immediate)", lambda it: stopped(it, signal.SIGQUIT), _CLOSED),
    Fault("crashed (kill -9 of all processes)", lambda it: stopped(it, signal.SIGKILL), _CLOSED),
    Fault("restarted", restarted, may_fail=True, seconds=2),
    Fault("one backend killed -9", backend_killed, may_fail=True, seconds=2),
    Fault("paused (SIGSTOP)", paused, "does not answer in time", quick=True, seconds=4),
    Fault("its backends paused", backends_paused, "does not answer in time", seconds=4),
    Fault("refuses the user (pg_hba)", refusing, "refuses connections"),
    Fault("at its connection limit", lambda it: full(it, end_own=False), may_fail=True),
    Fault("at its limit, own connections ended", lambda it: full(it, end_own=True), "no connection left"),
    Fault("read-only", lambda it: set_for_all(it, "default_transaction_read_only=on"), may_fail=True),
    Fault("statement_timeout of 1 ms", lambda it: set_for_all(it, "statement_timeout=1"), may_fail=True),
    Fault("connections ended every 0.3 s", lambda it: repeated(it, _TERMINATE, 0.3), may_fail=True),
    Fault("connections ended every 20 ms", lambda it: repeated(it, _TERMINATE, 0.02), may_fail=True),
    Fault("queries cancelled every 5 ms", lambda it: repeated(it, _CANCEL, 0.005), may_fail=True),
    Fault("database dropped, restored", dropped, "there is no such database"),
    Fault(
        "database dropped and recreated",
        lambda it: dropped(it, other_catalog=True),
        "no such database",
        new_catalog=True,
    ),
    Fault(
        "database renamed and back",
        lambda it: changed(
            it, "alter database catalog rename to away", "alter database away rename to catalog", "postgres"
        ),
        "there is no such database",
    ),
    Fault(
        "database accepts no connections",
        lambda it: changed(
            it,
            "alter database catalog allow_connections off",
            "alter database catalog allow_connections on",
            "postgres",
        ),
        "accepts no connections",
    ),
    Fault(
        "user may not log in",
        lambda it: changed(it, "alter role service nologin", "alter role service login", "postgres"),
        "may not log in",
    ),
    Fault(
        "user may not read",
        lambda it: changed(it, "revoke pg_read_all_data from service", "grant pg_read_all_data to service", "postgres"),
        "may not read the catalog",
    ),
    Fault(
        "tables gone and back",
        lambda it: changed(it, "alter schema public rename to away", "alter schema away rename to public"),
        "has no catalog tables",
    ),
    Fault(
        "schema of an older version",
        lambda it: changed(
            it,
            "alter table alembic_version rename to kept; create table alembic_version as select '0004' version_num",
            "drop table alembic_version; alter table kept rename to alembic_version",
        ),
        "has the schema 0004",
    ),
    Fault("tables locked by a migration", locked, "does not answer in time"),
    Fault("an ingest holds its transaction open", writing),
    Fault("another catalog ingested", ingested, new_catalog=True),
    Fault("network: nothing gets through", lambda it: through_proxy(it, Proxy.hold), "does not answer in time"),
    Fault("network: connections reset", lambda it: through_proxy(it, Proxy.refuse), _CLOSED),
    Fault("network: 100 ms late", lambda it: through_proxy(it, Proxy.delay)),
    Fault("network: cut in mid-answer", lambda it: through_proxy(it, Proxy.cut), _CLOSED),
)

assert RESERVED  # the superuser looks at a full server with these
