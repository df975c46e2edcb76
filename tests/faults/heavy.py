"""`python -m tests.faults.heavy`: send single requests that are made to cost much, and print what each cost.

Words as arguments choose requests whose names contain one of them. Each is sent once to a service with everything in
seeds/, while /healthz is asked from another process.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import httpx
import psutil
from sqlalchemy import Engine, text

from app.db.engines import make_engine
from tests.databases import START
from tests.faults.probes import asking_health
from tests.processes import ServiceProcess, run_service
from tests.seeded import seeded_url
from tests.servers import open_client

GLOB = quote("*?" * 59)
FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
MCP = {"accept": "application/json, text/event-stream", **JSON}
HTML = {"accept": "text/html"}
SURROGATE = "\\ud800"
TIMEOUT_SECONDS = 120.0
HEADINGS = ("request", "sent", "status", "CPU s", "of the database", "answer", "slowest /healthz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heavy:
    """A request, and what it may cost: CPU seconds of the worker and of PostgreSQL, and bytes of the answer."""

    name: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    statuses: tuple[int, ...] = (422,)
    cpu_seconds: float = 0.3
    database_seconds: float = 0.3
    max_bytes: int = 20_000


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request cost; status 0 for no answer in time."""

    status: int
    cpu_seconds: float
    database_seconds: float
    size: int


def _unknown_fields(count: int) -> bytes:
    return "&".join(f"a{number}=1" for number in range(count)).encode()


def _call(tool: str, **arguments: object) -> bytes:
    call = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()


def _found(name: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Heavy:
    """Return a request that is answered, by a page of a list."""
    return Heavy(name=name, path=path, headers=headers, body=body, statuses=(200,), max_bytes=600_000)


def _requests() -> Iterator[Heavy]:
    for path in ("/sizes", "/", "/fit", "/facets", "/sizes.csv"):
        query = f"?name={GLOB}" + ("&min_gpu_mem=1" if path == "/fit" else "")
        yield _found(f"{path}?name=, 59 times *?", path + query, HTML if path == "/" else JSON)
    yield _found("/mcp find_sizes, 59 times *?", "/mcp", MCP, _call("find_sizes", name="*?" * 59))
    for glob in ("*A*", "*B*", "??*"):
        yield _found(f"/prices?gpu={glob}", f"/prices?gpu={quote(glob)}", JSON)
    workload = '"inference":{"context_tokens":1,"concurrency":1}'
    for path, sent in {
        "/fit": f'{{"model":"{SURROGATE}",{workload}}}',
        "/estimate": f'{{"model":"{SURROGATE}",{workload}}}',
        "/fit, a key": f'{{"{SURROGATE}":1}}',
        "/retirements": f'{{"items":[{{"size":"{SURROGATE}"}}]}}',
        "/receipts": f'{{"{SURROGATE}":"{SURROGATE}"}}',
    }.items():
        yield Heavy(
            name=f"{path}, a lone surrogate", path=path.partition(",")[0], body=sent.encode(), headers=JSON,
            statuses=(400, 404, 422),
        )  # fmt: skip
    body = _call("find_sizes", name=SURROGATE).replace(b"\\\\u", b"\\u")
    yield Heavy(name="/mcp, a lone surrogate", path="/mcp", body=body, headers=MCP, statuses=(200, 400))
    for path in ("/ui/sizes/a%00", "/ui/sizes/a%00.md", "/ui/sizes/a%00/models"):
        yield Heavy(name=f"{path}, a NUL", path=path, headers=HTML, statuses=(404,))
    for tool in ("explain_size", "price_history"):
        yield Heavy(name=f"/mcp {tool}, a NUL", path="/mcp", body=_call(tool, size="a\0"), headers=MCP, statuses=(200,))
    cursor = "WyJhMDY1NzBlMzA1NWQiLCAiXHVkODAwIiwgImEyX3YyIl0"  # its revision is a lone surrogate
    yield Heavy(name="/sizes?cursor=, a lone surrogate", path=f"/sizes?limit=2&cursor={cursor}", statuses=(400,))
    config = quote(f'{{"model_type":"{SURROGATE}"}}')
    yield Heavy(
        name="/ui/fit?config=, a lone surrogate", path=f"/ui/fit?by=config&config={config}", headers=HTML,
        statuses=(200, 422), max_bytes=100_000,
    )  # fmt: skip


def config_of_names(
    count: int, ignored: str = "model.layers.{0}.block_sparse_moe.experts.{1}.w1.input_quantizer"
) -> bytes:
    """Return a body with a configuration that lists `count` modules as not quantized."""
    names = [ignored.format(*divmod(number, 700)) for number in range(count)]
    fields = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",
    }  # fmt: skip
    quantization = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": names}
    workload = {"inference": {"context_tokens": 8192, "concurrency": 1}}
    return json.dumps({"config": {**fields, "quantization_config": quantization}, **workload}).encode()


def _unknown() -> Iterator[Heavy]:
    """Yield requests with fields that are unknown, which are refused before a database is asked."""
    for path in ("/ui/fit", "/ui/retirements/plan"):
        for count in (1_000, 10_000, 20_000):
            yield Heavy(
                name=f"{path}, a form of {count:,} unknown fields", path=path, body=_unknown_fields(count),
                headers=FORM | HTML, cpu_seconds=0.1, statuses=(413, 422),
            )  # fmt: skip
        yield Heavy(
            name=f"{path}, a form of 100,000 &", path=path, body=b"&" * 100_000, headers=FORM | HTML,
            statuses=(200, 413, 422), max_bytes=100_000,
        )  # fmt: skip
    for path in ("/", "/ui/fit", "/ui/explore"):
        url = f"{path}?{_unknown_fields(1_050).decode()}"
        yield Heavy(name=f"{path}?, 1,050 unknown fields", path=url, headers=HTML, statuses=(414, 422), cpu_seconds=0.1)


def _long_bodies() -> Iterator[Heavy]:
    """Yield bodies of up to 8 MiB: a real kind of configuration, and what takes longest to read of any kind."""
    answered: dict[str, object] = {"statuses": (200,), "cpu_seconds": 3.0, "max_bytes": 200_000}
    refused: dict[str, object] = {"statuses": (400, 413, 422), "cpu_seconds": 1.5}
    bodies = {
        "42,000 modules not quantized": (config_of_names(42_000), answered),
        "8 MiB of modules not quantized": (config_of_names(120_000), answered),
        "240,000 short names": (config_of_names(240_000, "{0}.{1}"), answered),
        "8 MiB of lists": (b'{"config":{"a":[' + b"[]," * 2_700_000 + b"0]}}", refused),
        "240,000 lists": (b'{"config":{"a":[' + b"[]," * 120_000 + b"0]}}", refused),
        "120,000 repeated keys": (b'{"config":{"a":[' + b'{"a":1,"a":1},' * 80_000 + b"0]}}", refused),
        "240,000 unknown modules": (b'{"training":{"lora_modules":[' + b'"zz",' * 240_000 + b'"q"]}}', refused),
        "240,000 wrong names": (b'{"constraints":{"series":[' + b"1," * 240_000 + b"1]}}", refused),
        "escapes": (b'{"config":{"a":"' + b"\\u00e9" * 249_000 + b'"}}', refused),
        "a text of 8 MiB": (b'{"model":"' + b"a" * 8_000_000 + b'"}', refused),
        "a name of 8 MiB": (b'{"' + b"a" * 8_000_000 + b'":1}', refused),
        "a number of 8 MiB": (b'{"config":{"a":0.' + b"1" * 8_000_000 + b"}}", refused),
        "8 MiB of emoji": (b'{"config":{"a":"' + "\N{CAT FACE}".encode() * 2_000_000 + b'"}}', refused),
    }
    for name, (body, bounds) in bodies.items():
        for path in ("/estimate", "/fit"):
            yield Heavy(name=f"{path}, {name}", path=path, body=body, headers=JSON, **bounds)  # type: ignore[arg-type]


SHORT = tuple(_requests())
"""Those for which a database may be asked."""
REQUESTS = (*SHORT, *_unknown(), *_long_bodies())


def measure(
    request: Heavy, service: ServiceProcess, client: httpx.Client, database_seconds: Callable[[], float]
) -> Cost:
    """Send a request to a service by a client of it, and return what it cost."""
    client.get("/healthz")
    before, before_of_database = service.cpu_seconds, database_seconds()
    method = "GET" if request.body is None else "POST"
    try:
        response = client.request(
            method, request.path, content=request.body, headers=request.headers, timeout=TIMEOUT_SECONDS
        )
        status, size = response.status_code, len(response.content)
    except httpx.TransportError:
        status, size = 0, 0
    return Cost(status, service.cpu_seconds - before, database_seconds() - before_of_database, size)


@contextmanager
def database_clock(url: str) -> Iterator[Callable[[], float]]:
    """Yield what returns the CPU seconds of a database's own processes; SQLite has none."""
    if url.startswith("sqlite"):
        yield lambda: 0.0
        return
    engine: Engine = make_engine(url, pooled=False)
    with engine.connect() as connection:
        own = psutil.Process(connection.execute(text("select pg_backend_pid()")).scalar_one())
        server = own.parent()
        assert server is not None

        def seconds() -> float:
            times = [server.cpu_times(), *(child.cpu_times() for child in server.children() if child != own)]
            return float(sum(one.user + one.system for one in times) + times[0].children_user)

        yield seconds
    engine.dispose()


def warm(service: ServiceProcess) -> None:
    """Have the service import and load what its first requests need."""
    with open_client(service.url) as client:
        for path in ("/sizes?limit=1&min_vcpus=3", "/prices?limit=1", "/facets", "/fit?min_gpu_mem=2", "/retirements"):
            client.get(path)
        for path in ("/", "/ui/fit", "/ui/explore", "/ui/retirements", "/?name=x", "/ui/fit?a=1", "/ui/explore?a=1"):
            client.get(path, headers=HTML)
        for path in ("/ui/fit", "/ui/retirements/plan"):
            client.post(path, content=b"a=1", headers=FORM | HTML)
        for path in ("/fit", "/estimate", "/receipts"):
            client.post(path, content=b"{}", headers=JSON)
        client.post("/mcp", content=_call("find_sizes", name="x"), headers=JSON)


def main(words: Sequence[str]) -> int:
    """Print a table for each database; returns 1 where a request cost more than it may."""
    wrong = 0
    for kind in START:
        _say(f"\n### {kind}\n\n| {' | '.join(HEADINGS)} |\n|{' --- |' * len(HEADINGS)}")
        with tempfile.TemporaryDirectory() as folder, START[kind](Path(folder)) as databases:
            url = seeded_url(databases)
            for request in REQUESTS:
                if not words or any(word in request.name for word in words):
                    wrong += _print_cost(request, url, Path(folder) / "log")
    return 1 if wrong else 0


def _print_cost(request: Heavy, url: str, log: Path) -> bool:
    """Measure with a service of its own: one that is stopped by a request would answer no other."""
    with run_service(url, log) as service, database_clock(url) as clock, open_client(service.url) as client:
        warm(service)
        with asking_health(service.port) as answers:
            begun = time.monotonic()
            cost = measure(request, service, client, clock)
            ended = time.monotonic()
            while cost.status and not (answers and answers[-1].at > ended):
                time.sleep(0.01)
        slowest = max((answer.seconds for answer in answers if answer.at >= begun), default=ended - begun)
        if not cost.status:
            service.process.kill()
    sent = len(request.path) + len(request.body or b"")
    cells = (
        *(request.name, f"{sent:,} B", str(cost.status or "none"), f"{cost.cpu_seconds:.2f}"),
        *(f"{cost.database_seconds:.2f}", f"{cost.size:,} B", f"{1000 * slowest:,.0f} ms"),
    )
    _say(f"| {' | '.join(cells).replace('*', chr(92) + '*')} |")
    return cost.status not in request.statuses or cost.size > request.max_bytes


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201  # this is what the command is for


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
