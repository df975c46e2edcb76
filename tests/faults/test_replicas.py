"""Two API processes over a PostgreSQL primary and its streaming replica: faults, lag, and equal answers."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.replicas import PostgresNode, primary_and_replica
from tests.processes import ServiceProcess, run_service
from tests.seeded import run_program
from tests.servers import CLIENT_TIMEOUT
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.one_database]

_NUMBERS = count(1)


@dataclass
class Seen:
    """What a client saw that asked a process for what it had not answered yet, 20 times a second."""

    statuses: list[tuple[float, int]] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return sum(status != 200 for _, status in self.statuses)

    @property
    def outage_seconds(self) -> float:
        """The time from the first request that failed to the end of the last one that did."""
        failed = [at for at, status in self.statuses if status != 200]
        return failed[-1] - failed[0] + 0.05 if failed else 0.0


@contextmanager
def asking(service: ServiceProcess) -> Iterator[Seen]:
    seen, ended = Seen(), threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=service.url, trust_env=False, timeout=CLIENT_TIMEOUT) as client:
            while not ended.is_set():
                try:
                    status = client.get(f"/sizes?limit=1&min_memory={next(_NUMBERS)}.5").status_code
                except httpx.TransportError:
                    status = 0
                seen.statuses.append((time.monotonic(), status))
                ended.wait(0.05)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def get(service: ServiceProcess, path: str) -> httpx.Response:
    return httpx.get(f"{service.url}{path}", trust_env=False, timeout=CLIENT_TIMEOUT)


def ready(service: ServiceProcess) -> dict[str, Any]:
    answer = get(service, "/readyz")
    state: dict[str, Any] = answer.json() if answer.status_code == 200 else {}
    return state


def seconds_until(holds: Callable[[], bool], what: str) -> float:
    """Return how long it took; docs/operations.md has that, and a test only that it happens."""
    began = time.monotonic()
    wait_until(holds, what)
    return time.monotonic() - began


def url_of(*nodes: PostgresNode, attributes: str) -> str:
    servers = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
    return f"postgresql://postgres@{servers}/catalog?target_session_attrs={attributes}&connect_timeout=2"


def etags(services: tuple[ServiceProcess, ...]) -> set[str]:
    return {get(service, path).headers["etag"] for service in services for path in ("/sizes?limit=3",)}


def ingest_region(folder: Path, url: str, code: str) -> None:
    """Write a revision: one more region."""
    (folder / "sources.csv").write_text(
        "id,title,publisher,kind,url,published_on\nmade-up,Made up,tests,third_party,https://example.org/x,2026-01-01\n"
    )
    (folder / f"{code}.csv").write_text(f"code,name,geography,source\n{code},{code},Nowhere,made-up\n")
    run_program(url, "ingest", "regions", str(folder / f"{code}.csv"))


def test_processes_survive_a_replica_a_primary_and_lag_and_answer_alike(  # noqa: PLR0915  # each fault follows another
    few_size_seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table: list[str] = []
    with primary_and_replica() as (primary, replica):
        write_url = url_of(replica, primary, attributes="read-write")
        alone = url_of(primary, attributes="any")
        run_program(alone, "migrate")
        run_program(alone, "ingest", "seeds", str(few_size_seeds))
        replica.follow(primary)
        replica.start()
        with (
            run_service(url_of(primary, replica, attributes="prefer-standby"), tmp_path / "a.log") as near_replica,
            run_service(url_of(primary, replica, attributes="any"), tmp_path / "b.log") as near_primary,
        ):
            both = near_replica, near_primary
            assert ready(near_replica)["database_is_replica"] is True
            assert ready(near_replica)["database_is_receiving"] is True
            assert ready(near_primary)["database_is_replica"] is False
            assert len(etags(both)) == 1

            def follows(number: int) -> Callable[[], bool]:
                return lambda: {ready(service).get("revision") for service in both} == {number}

            ingest_region(tmp_path, write_url, "one")
            table.append(f"an ingest by read-write | seen by both after {seconds_until(follows(2), 'new'):.2f} s")
            assert len(etags(both)) == 1

            replica.query("select pg_wal_replay_pause()")
            ingest_region(tmp_path, write_url, "two")
            seconds_until(lambda: ready(near_primary).get("revision") == 3, "the primary has it")
            told = ready(near_replica)
            assert (told["revision"], told["database_is_replica"]) == (2, True)
            behind = told["database_replay_age_seconds"]
            seconds_until(lambda: ready(near_replica)["database_replay_age_seconds"] > behind + 1, "the lag is told")
            assert len(etags(both)) == 2, "an ETag is of the revision that the rows are of"
            scraped = get(near_replica, "/metrics").text
            assert "vmsizes_catalog_revision 2.0" in scraped
            assert "vmsizes_database_is_replica 1.0" in scraped
            replica.query("select pg_wal_replay_resume()")
            table.append(f"replay paused, then resumed | {seconds_until(follows(3), 'caught up'):.2f} s until equal")
            assert len(etags(both)) == 1

            with asking(near_replica) as seen, asking(near_primary) as others:
                time.sleep(1)
                replica.kill()
                seconds_until(lambda: ready(near_replica).get("database_is_replica") is False, "it uses the primary")
                time.sleep(1)
            table.append(line("the replica is killed", seen, others))
            assert others.failed == 0
            assert len(etags(both)) == 1

            replica.start()
            ingest_region(tmp_path, write_url, "three")
            seconds_until(follows(4), "both have it")
            assert ready(near_replica)["database_is_replica"] is False, "it stays where its connections are"
            seconds_until(lambda: replica.query("select count(*) from revision", "catalog") == 4, "the replica has it")

            with asking(near_replica) as seen, asking(near_primary) as others:
                time.sleep(1)
                primary.kill()
                seconds_until(
                    lambda: all(ready(service).get("database_is_replica") for service in both), "they use the replica"
                )
                replica.query("select pg_promote()")
                seconds_until(
                    lambda: {ready(service).get("database_is_replica") for service in both} == {False}, "promoted"
                )
                time.sleep(1)
            table.append(line("the primary is killed, the replica promoted", seen, others))
            ingest_region(tmp_path, write_url, "four")
            table.append(f"an ingest by the same URL after that | seen after {seconds_until(follows(5), 'new'):.2f} s")
            assert len(etags(both)) == 1
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(table) + "\n")  # docs/operations.md has these figures


def line(what: str, *clients: Seen) -> str:
    told = (f"{seen.failed} of {len(seen.statuses)} failed, within {seen.outage_seconds:.2f} s" for seen in clients)
    return f"{what} | {'; '.join(told)}"
