"""Spans of the statements that run through SQLAlchemy."""

from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine import Connection, ExceptionContext

from app.telemetry import tracing

_SPAN = "vmsizes_span"


def trace_statements(engine: Engine) -> None:
    """Give each statement of an engine a span, where traces are sent."""
    if not tracing.is_on():
        return

    @event.listens_for(engine, "before_cursor_execute")
    def begin(
        connection: Connection, _cursor: Any, statement: str, _parameters: Any, context: Any, _many: bool
    ) -> None:  # as SQLAlchemy calls it
        span = tracing.statement_span(connection.dialect.name, statement)
        span.__enter__()
        setattr(context, _SPAN, span)

    @event.listens_for(engine, "after_cursor_execute")
    def end(
        _connection: Connection, _cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool
    ) -> None:
        _end(context, None)

    @event.listens_for(engine, "handle_error")
    def fail(failure: ExceptionContext) -> None:
        _end(failure.execution_context, failure.original_exception)


def _end(context: Any, error: BaseException | None) -> None:
    span: AbstractContextManager[object] | None = getattr(context, _SPAN, None)
    if span is not None:
        setattr(context, _SPAN, None)
        span.__exit__(type(error) if error else None, error, None)
