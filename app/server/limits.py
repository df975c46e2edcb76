"""What one worker allows its clients, and whether it may open enough files for that."""

import sys
from dataclasses import dataclass, replace

REFUSING = 128
"""How many connections over the limit a worker reads for a moment, to answer health checks and to refuse the others."""

OWN_FILES = 192
"""Descriptors that a worker keeps for itself: databases, exports with their files, logs."""

LEAST_CONNECTIONS = 16


class TooFewFiles(Exception):
    """The process may not open enough files to serve anyone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one worker; durations are in seconds."""

    max_connections: int = 2000
    keep_alive_seconds: float = 75
    """How long a connection stays open without a request."""
    header_seconds: float = 10
    """Within this a new connection has to send its first headers, and any other request all of its headers."""
    body_seconds: float = 30
    """Within this a request has to send all of its body, after its headers."""
    write_seconds: float = 30
    """A client that takes nothing of a response for so long is disconnected."""
    shutdown_seconds: float = 7
    """How long a shutdown waits for requests in progress."""


def fit_to_descriptors(limits: Limits) -> Limits:
    """Return limits that the process has enough file descriptors for, raising its soft limit (`ulimit -n`) if needed.

    Raises TooFewFiles where not even LEAST_CONNECTIONS are possible.
    """
    if sys.platform == "win32":
        return limits
    import resource  # noqa: PLC0415  # Windows does not have it

    needed = limits.max_connections + REFUSING + OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < needed:
        soft = needed if hard == unlimited else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == unlimited or soft >= needed:
        return limits
    possible = soft - REFUSING - OWN_FILES
    if possible < LEAST_CONNECTIONS:
        least = LEAST_CONNECTIONS + REFUSING + OWN_FILES
        raise TooFewFiles(f"a worker needs {least} open files at least, and the limit is {soft} (ulimit -n)")
    return replace(limits, max_connections=possible)
