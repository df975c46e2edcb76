"""Asks questions of a running service, or of its commands, and keeps what they answer."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import orjson
from pyarrow import parquet  # type: ignore[import-untyped]  # has no type information

from tests.databases import START
from tests.golden.questions import (
    EXPORTS,
    FIT_FORMS,
    OF_A_COMMAND,
    OF_A_PAGE,
    OF_A_TOOL,
    OF_AN_OPERATION,
    PAGES,
    PLAN_FORMS,
    Operation,
    Question,
    bodies,
    calls,
    commands,
    forms,
    requests_of,
    with_pages,
)
from tests.golden.values import Values
from tests.processes import run_service
from tests.seeded import seeded_url
from tests.servers import open_client

KEPT_HEADERS = (
    "allow",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-range",
    "content-type",
    "etag",
    "link",
    "location",
    "retry-after",
    "vary",
    "x-total-count",
)
_TIMES = re.compile(r"\b\d{8}T\d{6}Z|\d{4}-\d\d-\d\d(T| )\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
_IDS = re.compile(r'"request_id":"[^"]*"|\b[0-9a-f]{12}-[0-9a-f]+\b|\b[0-9a-f]{32}\b')
DRIVER = """
import io, json, os, sys, tempfile
from app.cli import main
import app.catalog.queries.sizes, app.catalog.models
for line in sys.stdin:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.argv = ["vmsizes", *json.loads(line)]
            code = 1
            try:
                code = main() or 0
            except SystemExit as ended:
                code = ended.code or 0
            finally:
                sys.stdout.flush(), sys.stderr.flush()
                os._exit(code if isinstance(code, int) else 1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0), err.seek(0)
        print(json.dumps([code, out.read().decode(errors="replace"), err.read().decode(errors="replace")]), flush=True)
"""
"""Runs commands in forks of a process that has loaded them, which takes a fifth of the time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status or exit code, the headers that count, and a body without what differs from run to run."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def packed(self) -> tuple[int, str, bytes]:
        """Return it as it is kept."""
        return self.status, json.dumps(self.headers, sort_keys=True), zlib.compress(self.body, 3)


class Asker:
    """Asks a service by HTTP and by commands."""

    def __init__(self, client: httpx.Client, driver: "subprocess.Popen[str]") -> None:
        self.client, self._driver, self._lock = client, driver, Lock()

    def ask(self, question: Question) -> Answer:
        """Ask a question once."""
        if question.group.startswith("vmsizes "):
            return self._run(question.target)
        response = self.client.request(
            question.method,
            question.target,
            headers={"accept-encoding": "identity", **question.headers},
            content=question.body or None,
        )
        headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        return Answer(response.status_code, headers, _stable(response.content, headers.get("content-type", "")))

    def _run(self, arguments: str) -> Answer:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        with self._lock:
            self._driver.stdin.write(arguments + "\n")
            self._driver.stdin.flush()
            code, out, err = json.loads(self._driver.stdout.readline())
        return Answer(code, {"stderr": _stable(err.encode(), "text").decode()}, _stable(out.encode(), "text"))


def _stable(body: bytes, kind: str) -> bytes:
    if body.startswith(b"PAR1") and "parquet" in kind:
        table = parquet.read_table(io.BytesIO(body))
        described = f"{table.schema}\n{table.num_rows}\n".encode()
        return described + hashlib.sha256(orjson.dumps(table.to_pylist(), default=str)).hexdigest().encode()
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body
    text = text.replace("127.0.0.1", "HOST")
    return _IDS.sub("ID", _TIMES.sub("TIME", re.sub(r"HOST:\d+", "HOST", text))).encode()


def next_page(question: Question, answer: Answer) -> Question | None:
    """Return the question for the page behind an answer, if it is asked for and there is one."""
    if not question.pages or answer.status != 200 or question.method != "GET":
        return None
    try:
        cursor = json.loads(answer.body).get("next_cursor")
    except (ValueError, AttributeError):
        return None
    if not cursor:
        return None
    url = urlsplit(question.target)
    pairs = [(name, value) for name, value in parse_qsl(url.query, keep_blank_values=True) if name != "cursor"]
    return replace(question, target=f"{url.path}?{urlencode([*pairs, ('cursor', cursor)])}", pages=question.pages - 1)


def make_questions(client: httpx.Client, seed: int) -> list[Question]:
    """Make all questions; the same ones for the same catalog and document."""
    rng = Random(seed)
    values = Values.read(client, rng)
    document = with_pages(client.get("/openapi.json").json())
    sorts, fields = _names(client, "sort"), _names(client, "fields")
    questions: list[Question] = []
    for path, methods in document["paths"].items():
        if path in PAGES:
            count = OF_A_PAGE
        elif "{" in path or len(methods.get("get", {}).get("parameters", ())) > 1:
            count = OF_AN_OPERATION
        else:
            count = 12
        if "get" in methods:
            operation = Operation(document, path, values, sorts, fields)
            questions += requests_of(
                operation, rng, count=count, export=path.endswith((".csv", ".parquet", ".ndjson", ".ics"))
            )
        if "post" in methods:
            content = methods["post"]["requestBody"]["content"]["application/json"]
            examples = [_resolved(document, one)["value"] for one in content.get("examples", {}).values()]
            questions += bodies(rng, values, path, examples or [content["example"]], OF_AN_OPERATION)
    questions += forms(rng, "POST /ui/fit", "/ui/fit", FIT_FORMS, OF_A_PAGE)
    questions += forms(rng, "POST /ui/retirements/plan", "/ui/retirements/plan", PLAN_FORMS, OF_A_PAGE)
    questions += forms(rng, "POST /ui/retirements/plan.csv", "/ui/retirements/plan.csv", PLAN_FORMS, EXPORTS)
    for pairs in FIT_FORMS:
        questions += [
            Question("GET /ui/fit", f"/ui/fit?{urlencode(rng.sample(pairs, rng.randint(1, len(pairs))))}")
            for _ in range(40)
        ]
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    agents = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    for tool in client.post("/mcp", json=listing, headers=agents).json()["result"]["tools"]:
        questions += calls(rng, tool, values, OF_A_TOOL)
    plain = (
        "/openapi.json",
        "/openapi-3.0.json",
        "/llms.txt",
        "/healthz",
        "/docs",
        "/ui/none",
        "/sizes/",
        "/nothing",
        "/robots.txt",
    )
    questions += [
        Question("others", target, method)
        for target in plain
        for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS")
    ]
    questions += [
        Question("MCP", "/mcp", "POST", agents, json.dumps({**listing, "method": name}))
        for name in ("tools/list", "resources/list", "prompts/list", "nothing")
    ]
    return [*questions, *commands(rng, values, OF_A_COMMAND)]


def _resolved(document: Any, example: Any) -> Any:
    while "$ref" in example:
        kind, name = example["$ref"].split("/")[-2:]
        example = document["components"][kind][name]
    return example


def _names(client: httpx.Client, parameter: str) -> Sequence[str]:
    """Return the values of a parameter that the error of a wrong one lists."""
    detail = client.get(f"/sizes?{parameter}=nonsense").json()["errors"][0]["detail"]
    return re.findall(r"\w+", detail.partition("allowed are ")[2].replace(" and ", " ").replace(" or ", " "))


@contextmanager
def running(kind: str) -> Iterator[Asker]:
    """Run the service and the commands of this checkout on a database of a kind with the seeds."""
    with tempfile.TemporaryDirectory() as folder, START[kind](Path(folder)) as databases:
        url = seeded_url(databases)
        environment = {**os.environ, "VMSIZES_DATABASE_URL": url, "COLUMNS": "80", "NO_COLOR": "1"}
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        with (
            run_service(url, Path(folder) / "log") as service,
            open_client(service.url) as client,
        ):
            yield Asker(client, driver)
        driver.kill()


def as_text(question: Question) -> str:
    """Return a question as it is kept."""
    return json.dumps(asdict(question), ensure_ascii=True)
