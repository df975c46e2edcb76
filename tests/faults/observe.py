"""A fault, and what clients saw of it: one row of docs/faults.md."""

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tests.faults.probes import (
    FIT,
    HEALTH,
    KEPT,
    PATHS,
    READY,
    THREADS,
    UNCACHED,
    Observation,
    asking,
)
from tests.processes import ServiceProcess
from tests.servers import open_client
from tests.waiting import wait_until

W = TypeVar("W")

SETTLED_SECONDS = 2.0
"""So long after its beginning a fault is known to the service: what is asked later is answered accordingly."""
ENOUGH = 3
"""So many answers of each kind must come while a fault lasts: none may wait for its end."""


@dataclass(frozen=True, slots=True)
class Fault(Generic[W]):
    """A fault of a database: `make` brings it about in a context, whose end puts everything right.

    `says` is part of what /readyz tells during it; empty where the service has to go on as ever. `new_catalog` where
    another catalog is there afterwards. `quick` ones are part of `make test`.
    """

    name: str
    make: Callable[[W], AbstractContextManager[None]]
    says: str = ""
    new_catalog: bool = False
    seconds: float = 3.5
    quick: bool = False
    may_fail: bool = False
    """Single requests may be refused although the database answers others."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was seen of a fault, with the problems that make it a failure."""

    name: str
    kept: str
    uncached: str
    slowest_refusal_seconds: float
    ready: str
    recovered_seconds: float
    same_catalog: bool
    slowest_health_seconds: float
    logged: str
    problems: tuple[str, ...]


def observe(fault: Fault[W], world: W, service: ServiceProcess, log: Path) -> Outcome:
    """Bring a fault about while clients ask, put it right, and return what they saw."""
    logged_before = len(log.read_text())
    with open_client(service.url) as client:
        assert client.get(PATHS[KEPT](0)).status_code == 200
        before = client.get("/readyz").json()
        with asking(service.port) as seen:
            time.sleep(0.5)
            seen.began = time.monotonic()
            with fault.make(world):
                time.sleep(max(0.0, seen.began + fault.seconds - time.monotonic()))
                wait_until(lambda: _is_answered(fault, seen), f"answers during {fault.name}")
            seen.ended = time.monotonic()
            wait_until(seen.has_recovered, f"three answers in a row to everything after {fault.name}")
            if fault.says:
                wait_until(lambda: _has_ended_in(log.read_text()[logged_before:]), "the log tells of the end")
        after = client.get("/readyz").json()
    return _outcome(fault, seen, before, after, log.read_text()[logged_before:])


def _is_answered(fault: Fault[W], seen: Observation) -> bool:
    """Whether clients have had what they should get during the fault."""
    answered = all(sum(one.at >= seen.began for one in seen.answers[name]) >= ENOUGH for name in PATHS)
    return answered and (not fault.says or any(re.search(fault.says, reason) for reason in seen.reasons()))


def _has_ended_in(logged: str) -> bool:
    """Whether the end of each outage is in the log whose beginning is."""
    return not _BEGIN.search(logged) or "answers again" in logged


_BEGIN = re.compile(r"^.* error +app\.http\.outages: ", re.MULTILINE)
"""The line of the log that tells of the beginning of an outage."""


def _outcome(
    fault: Fault[W], seen: Observation, before: dict[str, object], after: dict[str, object], logged: str
) -> Outcome:
    asked = (UNCACHED, THREADS, FIT)
    kept = seen.during(KEPT)
    stale = sum(answer.stale for answer in kept)
    refused = [answer for name in asked for answer in seen.answers[name] if answer.status == 503]
    reasons = [reason for reason, _ in seen.reasons().most_common(2)]
    same = before.get("digest") == after.get("digest")
    begun, ended = len(_BEGIN.findall(logged)), logged.count("answers again")
    tracebacks = logged.count("Traceback")
    return Outcome(
        name=fault.name,
        kept=_told({answer.status for answer in kept}) + (f", {stale} of {len(kept)} with their age" if stale else ""),
        uncached=_told({status for name in asked for status in seen.statuses(name, SETTLED_SECONDS)}),
        slowest_refusal_seconds=max((answer.seconds for answer in refused), default=0.0),
        ready=" / ".join(_short(reason) for reason in reasons) or "ready",
        recovered_seconds=seen.recovered_seconds(),
        same_catalog=same,
        slowest_health_seconds=seen.slowest_seconds(HEALTH),
        logged=f"{begun} + {ended}" + (f", {tracebacks} tracebacks" if tracebacks else ""),
        problems=tuple(_problems(fault, seen, after, same=same, logged=logged)),
    )


def _problems(fault: Fault[W], seen: Observation, after: dict[str, object], *, same: bool, logged: str) -> list[str]:
    """Return in which ways the service did not do what it should."""
    problems = []
    if set(seen.statuses(KEPT)) != {200}:
        problems.append(f"kept answers: {dict(seen.statuses(KEPT))}")
    if set(seen.statuses(HEALTH)) != {200}:
        problems.append(f"/healthz: {dict(seen.statuses(HEALTH))}")
    for name in (UNCACHED, THREADS, FIT, READY):
        wrong = {answer.status for answer in seen.answers[name]} - {200, 503}
        if wrong:
            problems.append(f"{name}: {wrong}")
    failed = {name for name in (UNCACHED, THREADS, FIT, READY) if 503 in seen.statuses(name)}
    if failed and not fault.says and not fault.may_fail:
        problems.append(f"refused although the database answers: {', '.join(sorted(failed))}")
    if fault.says and not any(re.search(fault.says, reason) for reason in seen.reasons()):
        problems.append(f"/readyz did not say {fault.says!r}: {dict(seen.reasons())}")
    if after.get("status") != "ready":
        problems.append(f"not ready afterwards: {after.get('detail')}")
    elif same == fault.new_catalog:
        problems.append("another catalog afterwards" if not same else "still the catalog of before")
    if "Traceback" in logged:
        problems.append("a traceback in the log")
    return problems


def _told(statuses: set[int]) -> str:
    return " and ".join(str(status) if status else "no answer" for status in sorted(statuses)) or "-"


def _short(reason: str) -> str:
    return reason.removeprefix("The database cannot be reached: ").rstrip(".")
