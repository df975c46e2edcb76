"""Open-loop latency: requests are due at a fixed rate, and each is timed from when it was due.

A closed loop waits for a response before it sends the next request, so a stall delays requests and shows in few of them
(coordinated omission). Here requests keep coming, and the stall shows in every one that had to wait.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

from benchmarks.ratios import latencies, percentile, schedule
from benchmarks.servers import LoadRequest, Server

MAX_RATE = 1_500.0
"""Requests per second that this client can send on time; a higher rate would measure the client."""
CONNECTIONS = 64
GRACE = 10.0  # seconds after the last request is due


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop:
    """Latencies at a rate, in milliseconds; `late` requests had no response when the time was up."""

    per_second: float
    p50_ms: float
    p99_ms: float
    late: int


def open_loop(server: Server, request: LoadRequest, *, per_second: float, seconds: float) -> OpenLoop:
    """Send requests at a fixed rate for some seconds; one without a response counts with all the time waited."""
    rate = min(per_second, MAX_RATE)
    due = schedule(rate, seconds)
    finished = asyncio.run(_send_all(server.port, [_request(request, target) for target in request.targets], due))
    late = sum(end is None for end in finished)
    took = latencies(due, [due[-1] + GRACE if end is None else end for end in finished])
    return OpenLoop(per_second=rate, p50_ms=1000 * percentile(took, 50), p99_ms=1000 * percentile(took, 99), late=late)


def _request(request: LoadRequest, target: str) -> bytes:
    body = (request.body or "").encode()
    length = [("Content-Length", str(len(body)))] if body else []
    lines = [f"{name}: {value}\r\n" for name, value in (("Host", "localhost"), *length, *request.headers)]
    return f"{request.method} {target} HTTP/1.1\r\n{''.join(lines)}\r\n".encode() + body


async def _send_all(port: int, requests: list[bytes], due: list[float]) -> list[float | None]:
    finished: list[float | None] = [None] * len(due)
    turns = iter(range(len(due)))
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(min(CONNECTIONS, len(due)))]
    started = perf_counter()

    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for turn in _next(turns):
            await asyncio.sleep(due[turn] - (perf_counter() - started))
            writer.write(requests[turn % len(requests)])
            await _read_response(reader)
            finished[turn] = perf_counter() - started

    jobs = [asyncio.create_task(work(*connection)) for connection in connections]
    _, unfinished = await asyncio.wait(jobs, timeout=due[-1] + GRACE)
    for job in unfinished:
        job.cancel()
    await asyncio.gather(*jobs, return_exceptions=bool(unfinished))
    for _, writer in connections:
        writer.close()
    return finished


def _next(turns: Iterator[int]) -> Iterator[int]:
    """Yield the next request to whichever connection is free first."""
    yield from turns


async def _read_response(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head[9:12])
    if status >= 400:
        raise RuntimeError(f"a request was answered {status}")
    _, found, rest = head.partition(b"content-length:")
    if found:
        await reader.readexactly(int(rest.split(b"\r\n", 1)[0]))
