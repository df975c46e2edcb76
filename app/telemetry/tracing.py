"""Traces by OpenTelemetry: a span for each request that the cache does not answer, for its statements and its fit.

`start` installs them where an endpoint is set and `vmsizes[otel]` is installed; else nothing of it is imported, and
`span` does nothing.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

P = ParamSpec("P")
T = TypeVar("T")

_NOTHING: AbstractContextManager[object] = nullcontext()
_log = logging.getLogger(__name__)
_tracer: "Tracer | None" = None
_provider: "TracerProvider | None" = None


def start(endpoint: str, version: str) -> None:
    """Send spans to an OTLP collector by HTTP: `http://collector:4318`; OTEL_… variables set sampling and resources."""
    global _tracer, _provider  # noqa: PLW0603  # one for the process, as in the SDK
    if not endpoint:
        return
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        _log.warning("VMSIZES_OTLP_ENDPOINT is set, and OpenTelemetry is missing: pip install 'vmsizes[otel]'")
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # an extra
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    resource = Resource.create({"service.name": "vmsizes", "service.version": version})
    _provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
    _tracer = _provider.get_tracer("vmsizes", version)


def stop() -> None:
    """Send the spans that are left."""
    global _tracer, _provider  # noqa: PLW0603
    if _provider is not None:
        _provider.shutdown()
    _tracer = _provider = None


def is_on() -> bool:
    """Whether spans are sent."""
    return _tracer is not None


def span(name: str, attributes: Mapping[str, str] | None = None) -> AbstractContextManager[object]:
    """Return a context manager that is a span within the current one."""
    return _NOTHING if _tracer is None else _tracer.start_as_current_span(name, attributes=attributes)


def statement_span(system: str, sql: str) -> AbstractContextManager[object]:
    """Return the span of a statement; without its parameters, which have values of clients."""
    if _tracer is None:
        return _NOTHING
    return span(f"{system} select", {"db.system.name": system, "db.query.text": sql})


def request_span(method: str, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[object]:
    """Return the span of a request, within the client's by its `traceparent` (W3C Trace Context)."""
    if _tracer is None:
        return _NOTHING
    from opentelemetry.propagate import extract  # noqa: PLC0415
    from opentelemetry.trace import SpanKind  # noqa: PLC0415

    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name.startswith(b"trace")}
    return _tracer.start_as_current_span(method, context=extract(carrier), kind=SpanKind.SERVER)


def describe_request(name: str, attributes: Mapping[str, str | int]) -> None:
    """Name the span of the request, and say what became of it; called only where spans are sent."""
    from opentelemetry.trace import Status, StatusCode, get_current_span  # noqa: PLC0415

    current = get_current_span()
    current.update_name(name)
    current.set_attributes(attributes)
    if int(attributes["http.response.status_code"]) >= 500:  # noqa: PLR2004
        current.set_status(Status(StatusCode.ERROR))


def within_current(work: Callable[P, T]) -> Callable[P, T]:
    """Return a function that runs in a thread as part of the current span."""
    if _tracer is None:
        return work
    return partial(copy_context().run, work)
