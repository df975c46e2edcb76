"""Traces, as an OTLP collector receives them over HTTP."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.processes import run_service
from tests.servers import open_client

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@contextmanager
def collector_running() -> Iterator[tuple[str, list[Any]]]:
    """Run a collector; yields its URL, and the list of the spans that it was sent."""
    spans: list[Any] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            request = ExportTraceServiceRequest.FromString(body)
            assert self.path == "/v1/traces"
            for resource in request.resource_spans:
                spans.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", spans
        server.shutdown()
        thread.join()


def attributes_of(span: Any) -> dict[str, Any]:
    values = {one.key: one.value for one in span.attributes}
    return {
        key: value.int_value if value.HasField("int_value") else value.string_value for key, value in values.items()
    }


@pytest.mark.takes_seconds
def test_a_request_has_a_span_with_its_statements_and_its_fit_within_that_of_the_client(
    seeded_url: str, tmp_path: Path
) -> None:
    with collector_running() as (url, spans):  # noqa: SIM117  # it receives until the service has ended
        with (
            run_service(seeded_url, tmp_path / "log", VMSIZES_OTLP_ENDPOINT=url) as service,
            open_client(service.url) as client,
        ):
            for _ in range(3):
                assert client.get("/sizes?limit=2&gpu=A100").status_code == 200
            client.get("/sizes/nc6s_v3/facts")
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "mine"}
            fit = {"model": "llama-3.1-8b", "inference": {"context_tokens": 4096, "concurrency": 2}}
            assert client.post("/fit", json=fit, headers=headers).status_code == 200
            client.get("/sizes?gpu=secret_name")
        # The service has ended, and sent what was left.
    by_name: dict[str, list[Any]] = {}
    for span in spans:
        by_name.setdefault(span.name, []).append(span)
    assert len(by_name["GET /sizes"]) == 2, "one of them stored, and one refused"
    (request,) = by_name["POST /fit"]
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    told = attributes_of(request)
    assert (told["http.response.status_code"], told["vmsizes.cache"], told["vmsizes.request_id"]) == (
        200,
        "miss",
        "mine",
    )
    (fitting,) = [span for span in by_name["fit"] if span.trace_id == request.trace_id]
    assert fitting.parent_span_id == request.span_id
    statements = [span for span in spans if "db.query.text" in attributes_of(span)]
    assert {request.trace_id, by_name["GET /sizes"][0].trace_id} <= {span.trace_id for span in statements}
    facts = [one.trace_id for one in by_name["GET /sizes/{name}/facts"]]
    assert any(span.trace_id in facts for span in statements)
    assert not any("secret_name" in str(attributes_of(span)) for span in statements), "no parameters"


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_without_an_endpoint_nothing_of_it_is_imported() -> None:
    program = (
        "import sys; from app.asgi import service; service();"
        "sys.exit(any(name.startswith(('opentelemetry.sdk', 'opentelemetry.exp')) for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_a_collector_that_is_gone_delays_no_request(seeded_url: str, tmp_path: Path) -> None:
    with (
        run_service(seeded_url, tmp_path / "log", VMSIZES_OTLP_ENDPOINT="http://127.0.0.1:9") as service,
        open_client(service.url) as client,
    ):
        assert [client.get(f"/sizes?limit={number}").status_code for number in range(1, 30)] == [200] * 29
